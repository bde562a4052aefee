"""What is wrong with skills on the disk, with file and line, before anything is done with them.

Needs no home and changes nothing; called by `hearthbot skills validate`. Blocks: use a thread.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from agent.errors import AssistantError
from agent.skills.folder import SKILL_FILE, Stamp, digest, read_file, stamps
from agent.skills.front_matter import FILE_BYTES_MAX, Unreadable
from agent.skills.installing import prepare_install
from agent.skills.reading import Where, read_skill
from agent.skills.skill import Problem, Severity
from agent.skills.suspicious import findings
from agent.skills.trying import FILE_CHARS_MAX, read_tests

TESTS_FILE = "tests.yaml"
SKILLS_MAX = 1_000
_FINDING = re.compile(r"(?:(?P<line>\d+): )?(?P<text>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Validated:
    """One skill that was looked at. `tests` counts its trigger tests."""

    name: str
    file: str
    problems: tuple[Problem, ...] = ()
    tests: int = 0

    @property
    def is_usable(self) -> bool:
        """Whether it would be used; warnings do not matter."""
        return all(problem.severity is Severity.WARNING for problem in self.problems)


def validate(path: Path, *, shown: str = "") -> tuple[Validated, ...]:
    """All skills at a path: a SKILL.md, its folder, a folder of skills, or an archive.

    `shown` is how the path is called in what is reported. Raises nothing: what cannot be read is a
    problem of its own.
    """
    shown = shown or str(path)
    try:
        return _all_at(path, shown)
    except OSError as error:
        return (_broken(path, shown, f"cannot be read: {error.strerror}"),)


def _all_at(path: Path, shown: str) -> tuple[Validated, ...]:
    if path.name == SKILL_FILE and path.is_file():
        return (_validated(path.parent, str(Path(shown).parent)),)
    if not path.is_dir():
        return (_archive(path, shown) if path.is_file() else _nothing(path, shown),)
    if (path / SKILL_FILE).exists():
        return (_validated(path, shown),)
    folders = sorted(_skills_below(path))[:SKILLS_MAX]
    return tuple(_validated(path / name, f"{shown}/{name}") for name in folders) or (
        _nothing(path, shown),
    )


def _skills_below(path: Path) -> Iterator[str]:
    """Folders with a SKILL.md, one or two levels down, as the shelf looks for them."""
    for entry in path.iterdir():
        if entry.name.startswith(".") or entry.is_symlink() or not entry.is_dir():
            continue
        if (entry / SKILL_FILE).exists():
            yield entry.name
            continue
        for inner in entry.iterdir():
            if not inner.is_symlink() and (inner / SKILL_FILE).is_file():
                yield f"{entry.name}/{inner.name}"


def _validated(folder: Path, shown: str) -> Validated:
    file = f"{shown}/{SKILL_FILE}"
    try:
        files = stamps(str(folder))
        data = read_file(str(folder / SKILL_FILE), bytes_max=FILE_BYTES_MAX)
        pinned = digest(str(folder), files)
        reading = read_skill(data, Where(folder_name=folder.resolve().name, file=file))
        odd = tuple(_suspicious(folder, shown, files))
        tests, wrong = _tests(folder, shown)
    except OSError as error:
        return _broken(folder, file, f"cannot be read: {error.strerror}")
    except Unreadable as error:
        return _broken(folder, shown, str(error))
    name = reading.skill.name if reading.skill is not None else folder.resolve().name
    large = () if pinned else (_problem(name, shown, "has too many or too large files"),)
    problems = (*reading.problems, *large, *wrong, *odd)
    return Validated(
        name=name,
        file=file,
        problems=tuple(replace(problem, skill=name) for problem in problems),
        tests=tests,
    )


def _tests(folder: Path, shown: str) -> tuple[int, tuple[Problem, ...]]:
    file = f"{shown}/{TESTS_FILE}"
    try:
        data = read_file(str(folder / TESTS_FILE), bytes_max=4 * FILE_CHARS_MAX)
    except FileNotFoundError:
        return 0, ()
    found = read_tests(data.decode("utf-8", "replace"), skill=folder.name, file=file)
    return len(found.tests), found.problems


def _suspicious(folder: Path, shown: str, files: tuple[Stamp, ...]) -> Iterator[Problem]:
    for name, *_ in files:
        for finding in findings(name, read_file(str(folder / name), bytes_max=FILE_BYTES_MAX)):
            found = _FINDING.fullmatch(finding.removeprefix(f"{name}:").lstrip())
            assert found is not None, "the pattern takes any text"
            yield Problem(
                skill=folder.name,
                file=f"{shown}/{name}",
                line=int(found["line"] or 0),
                text=found["text"],
                severity=Severity.WARNING,
            )


def _archive(path: Path, shown: str) -> Validated:
    """Unpacked where it does no harm, as an installation would do it."""
    with tempfile.TemporaryDirectory(prefix="hearthbot-") as folder:
        try:
            prepared = prepare_install(path, Path(folder) / "skills")
        except AssistantError as error:
            return _broken(path, shown, str(error))
        inside = _validated(prepared.ready, shown)
        prepared.discard()
    # It was unpacked to a folder of another name.
    problems = tuple(
        problem for problem in inside.problems if "the folder should be called" not in problem.text
    )
    return replace(inside, name=prepared.skill.name, problems=problems)


def _nothing(path: Path, shown: str) -> Validated:
    if path.is_dir():
        return _broken(path, shown, f"it holds no {SKILL_FILE}, and no folder with one")
    return _broken(path, shown, "there is no such file, folder or skill")


def _broken(path: Path, shown: str, text: str) -> Validated:
    return Validated(name=path.name, file=shown, problems=(_problem(path.name, shown, text),))


def _problem(name: str, file: str, text: str) -> Problem:
    return Problem(skill=name, file=file, text=text)
