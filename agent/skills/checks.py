"""What is wrong with skills on the disk, with file and line, before anything is done with them.

Needs no home and changes nothing; called by `hearthbot skills validate`. Blocks: use a thread.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agent.skills.install import prepare_install
from agent.skills.parser import (
    FILE_BYTES_MAX,
    Fields,
    Items,
    Node,
    Scalar,
    Unreadable,
    folded,
    structured,
)
from agent.skills.places import SKILL_FILE, Stamp, digest, read_file, stamps
from agent.skills.reader import SkillFile, read_skill
from agent.skills.rules import Rule
from agent.skills.skill import Place, Problem, Severity, Skill, SkillSet
from agent.skills.suspicious import findings
from agent.skills.why import SkillWhy, Verdict, as_used, state_words, why
from memory.records.errors import AssistantError

# --- trying -------------------------------------------------------------------------------------
#
# Trigger tests: the `tests.yaml` beside a SKILL.md, read and run (`hearthbot skills test`).
#
# The file is a list (or has one below the key `tests`), in YAML or JSON:
#
#     - message: Could you summarize this thread?
#       must: match
#     - message: What is the sum of 2 and 3?
#       must: no match
#     - message: Draft a commit message
#       must: match
#       tools: [read_file]
#       skills: [commit-message]
#
# `message` is what a person would write. `must` is `match` (also: yes, true) or `no match` (no,
# false); `must_match` and `must_not_match` with true or false do the same, and without any of them
# it is `match`. `tools` names all tools that the matched skill may require or call by itself; left
# out, nothing is said about them, and an empty list allows none. `skills` names the skills that are
# meant if it is not the one that the file lies beside. A skill matches if a keyword hits, a rule or
# its own pattern fits, or its score is high enough; no model is asked.

FILE_CHARS_MAX = 100_000
TESTS_MAX = 500
_MATCH = frozenset({"match", "matches", "yes", "true", "on", "1"})
_NO_MATCH = frozenset({"no match", "not match", "no", "false", "off", "0", "none", "never"})
_MESSAGE_KEYS = ("message", "text", "prompt", "input", "query")
_MATCH_KEYS = ("must", "must_match", "match", "matches", "should_match", "should_trigger", "expect")
_NO_MATCH_KEYS = ("must_not_match", "no_match", "should_not_match", "should_not_trigger")
_TOOL_KEYS = ("tools", "allowed_tools", "may_use")
_SKILL_KEYS = ("skills", "skill")


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerTest:
    """One message, and whether it must call up the skills. `tools` is None if nothing is said."""

    message: str
    must_match: bool
    tools: tuple[str, ...] | None = None
    skills: tuple[str, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerResult:
    """How a test came out; `reasons` say what matched or did not, what went wrong first."""

    test: TriggerTest
    passed: bool
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerTests:
    """The tests of one file, and what is wrong with it. What can be read is kept."""

    tests: tuple[TriggerTest, ...] = ()
    problems: tuple[Problem, ...] = ()


def read_tests(text: str, *, skill: str, file: str) -> TriggerTests:
    """Reads a `tests.yaml`. Raises nothing: what is wrong becomes a problem with its line."""
    reader = _Reader(skill=skill, file=file)
    if len(text) > FILE_CHARS_MAX:
        reader.error(f"the file is longer than {FILE_CHARS_MAX:,} characters", 0)
        return TriggerTests(problems=tuple(reader.problems))
    try:
        root = structured(Scalar(text=text.lstrip("\ufeff"), line=1))
    except Unreadable as error:
        reader.error(str(error), error.line)
        return TriggerTests(problems=tuple(reader.problems))
    tests = reader.tests(root)
    return TriggerTests(tests=tests, problems=tuple(reader.problems))


def run_tests(
    tests: Iterable[TriggerTest],
    *,
    skill: str,
    shelf: SkillSet,
    rules: Sequence[Rule] = (),
    tools_known: Collection[str] | None = None,
) -> tuple[TriggerResult, ...]:
    """Runs the tests of a skill on a shelf, as if it and those named were in use.

    A skill in quarantine can so be tried before it is approved. With `tools_known`, a tool that
    does not exist fails the test that names it.
    """
    return tuple(
        _result(test, test.skills or (skill,), shelf, rules, tools_known) for test in tests
    )


# --- running -----------------------------------------------------------------------------------


def _result(
    test: TriggerTest,
    names: Sequence[str],
    shelf: SkillSet,
    rules: Sequence[Rule],
    tools_known: Collection[str] | None,
) -> TriggerResult:
    explained = why(_with_used(shelf, names), rules, test.message)
    verdicts = {one.skill.name: one for one in reversed(explained.skills) if one.reasons}
    failures: list[str] = []
    notes: list[str] = list(explained.problems)
    for name in names:
        known, verdict = shelf.get(name), verdicts.get(name)
        if known is None or verdict is None:
            failures.append(f"there is no skill named {name}")
            continue
        matched = verdict.verdict is Verdict.PICKED
        said = notes if matched is test.must_match else failures
        said.append(_verdict_words(verdict, matched=matched))
        if not known.is_used:
            notes.append(f"{name} is not used at present: {state_words(known)}")
        if matched and test.must_match:
            failures.extend(_tool_failures(known, test.tools))
    failures.extend(_unknown_tools(test.tools or (), tools_known))
    return TriggerResult(test=test, passed=not failures, reasons=(*failures, *notes))


def _with_used(shelf: SkillSet, names: Collection[str]) -> SkillSet:
    skills = tuple(as_used(one) if one.name in names else one for one in shelf.skills)
    return replace(shelf, skills=skills, shadowed=())


def _verdict_words(verdict: SkillWhy, *, matched: bool) -> str:
    what = "matches" if matched else "does not match"
    return f"{verdict.skill.name} {what}: {'; '.join(verdict.reasons)}"


def _tool_failures(skill: Skill, allowed: tuple[str, ...] | None) -> list[str]:
    if allowed is None:
        return []
    wanted = dict.fromkeys((*skill.required_tools, *(one.tool for one in skill.auto_invoke)))
    return [
        f"{skill.name} uses the tool {tool}, which the test does not allow"
        for tool in wanted
        if tool not in allowed
    ]


def _unknown_tools(named: Iterable[str], known: Collection[str] | None) -> list[str]:
    if known is None:
        return []
    return [f"there is no tool named {tool}" for tool in named if tool not in known]


# --- reading -----------------------------------------------------------------------------------


class _Reader:
    """Makes tests of nodes, and notes what cannot be one."""

    def __init__(self, *, skill: str, file: str) -> None:
        self._skill = skill
        self._file = file
        self.problems: list[Problem] = []

    def error(self, text: str, line: int, severity: Severity = Severity.ERROR) -> None:
        self.problems.append(
            Problem(skill=self._skill, file=self._file, text=text, line=line, severity=severity)
        )

    def tests(self, root: Node) -> tuple[TriggerTest, ...]:
        if isinstance(root, Fields):
            root = root.find("tests") or root
        if isinstance(root, Scalar | Fields):
            empty = isinstance(root, Fields) and not root.entries
            empty = empty or (isinstance(root, Scalar) and not root.text.strip())
            text = "it holds no test" if empty else "tests must be a list: begin each with `- `"
            self.error(text, 0 if empty else root.line)
            return ()
        if len(root.values) > TESTS_MAX:
            self.error(f"only the first {TESTS_MAX} tests are read", root.line, Severity.WARNING)
        found = (self._test(node) for node in root.values[:TESTS_MAX])
        return tuple(test for test in found if test is not None)

    def _test(self, node: Node) -> TriggerTest | None:
        if not isinstance(node, Fields):
            self.error("a test needs `message: …` and `must: match` or `must: no match`", node.line)
            return None
        self._check_keys(node)
        message = _find(node, _MESSAGE_KEYS)
        if not isinstance(message, Scalar) or not message.text.strip():
            self.error("the test has no message", node.line)
            return None
        must = self._must(node)
        tools, skills = self._names(node, _TOOL_KEYS), self._names(node, _SKILL_KEYS)
        if must is None:
            return None
        return TriggerTest(
            message=message.text,
            must_match=must,
            tools=tools,
            skills=skills or (),
            line=node.line,
        )

    def _check_keys(self, node: Fields) -> None:
        all_keys = (*_MESSAGE_KEYS, *_MATCH_KEYS, *_NO_MATCH_KEYS, *_TOOL_KEYS, *_SKILL_KEYS)
        known = {folded(key) for key in (*all_keys, "name", "note", "comment", "description")}
        for key, _ in node.entries:
            if folded(key.text) not in known:
                text = f"the key {key.text!r} means nothing here"
                self.error(text, key.line, Severity.WARNING)

    def _must(self, node: Fields) -> bool | None:
        """Whether it must match; None, with a problem, if that cannot be told."""
        said: list[bool] = []
        for keys, sense in ((_MATCH_KEYS, True), (_NO_MATCH_KEYS, False)):
            for key in keys:
                value = node.find(key)
                if value is None:
                    continue
                truth = _truth(value)
                if truth is None:
                    self.error(f"{key} must be `match` or `no match`", value.line or node.line)
                    return None
                said.append(truth is sense)
        if len(set(said)) > 1:
            self.error("the test says both that it must match and that it must not", node.line)
            return None
        return said[0] if said else True

    def _names(self, node: Fields, keys: Sequence[str]) -> tuple[str, ...] | None:
        value = _find(node, keys)
        if value is None or (isinstance(value, Scalar) and value.is_null):
            return None
        if isinstance(value, Scalar):
            return tuple(name for part in value.text.split(",") if (name := part.strip()))
        if isinstance(value, Items) and all(isinstance(one, Scalar) for one in value.values):
            texts = (one.text.strip() for one in value.values if isinstance(one, Scalar))
            return tuple(name for name in texts if name)
        self.error(f"{keys[0]} must be a list of names", value.line or node.line)
        return ()


def _find(node: Fields, keys: Sequence[str]) -> Node | None:
    return next((found for key in keys if (found := node.find(key)) is not None), None)


def _truth(value: Node) -> bool | None:
    if not isinstance(value, Scalar):
        return None
    word = " ".join(value.text.replace("_", " ").replace("-", " ").casefold().split())
    word = word.removeprefix("must ")
    return True if word in _MATCH else False if word in _NO_MATCH else None


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
        reading = read_skill(data, SkillFile(folder_name=folder.resolve().name, file=file))
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


# --- trials -------------------------------------------------------------------------------------
#
# The trigger tests that stand beside the skills of a shelf: found, read and run.
#
# Called by `hearthbot skills`. Reads files: use a thread.


def has_tests(skill: Skill) -> bool:
    """Whether there is a file of tests."""
    return skill.folder is not None and (skill.folder / TESTS_FILE).is_file()


def tests_file(skill: Skill) -> str:
    """As a person would name it, like the place of the skill."""
    where = "workspace/" if skill.place is Place.WORKSPACE else ""
    return f"{where}{skill.location.removesuffix(SKILL_FILE)}{TESTS_FILE}"


def tests_of(skill: Skill) -> TriggerTests:
    """The tests of one skill; none where there is no file, or none that can be read."""
    if skill.folder is None:
        return TriggerTests()
    try:
        data = read_file(str(skill.folder / TESTS_FILE), bytes_max=4 * FILE_CHARS_MAX)
    except (OSError, Unreadable):
        return TriggerTests()
    text = data.decode("utf-8", "replace")
    return read_tests(text, skill=skill.name, file=tests_file(skill))


def tried(
    skill: Skill, shelf: SkillSet, rules: Sequence[Rule]
) -> tuple[TriggerTests, tuple[TriggerResult, ...]]:
    """The tests of one skill, and how they came out; one in quarantine is tried as if in use."""
    tests = tests_of(skill)
    small = _without_others(shelf, skill, tests, rules)
    return tests, run_tests(tests.tests, skill=skill.name, shelf=small, rules=rules)


def _without_others(
    shelf: SkillSet, skill: Skill, tests: TriggerTests, rules: Sequence[Rule]
) -> SkillSet:
    """The shelf without the playbooks that do not matter: they are matched each by itself, and to
    explain them all for each test takes most of the time."""
    named = {skill.name}
    named.update(name for test in tests.tests for name in test.skills)
    named.update(name for rule in rules for name in rule.skills)
    kept = (one for one in shelf.skills if one.name in named or one.is_listed)
    return SkillSet(skills=tuple(kept))
