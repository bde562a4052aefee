"""Skills tried before they are used: their files looked over, their trigger tests read and run.

Changes nothing and needs no home. Blocks: use a thread.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from agent.skills.install import prepare_install
from agent.skills.parser import (
    FILE_BYTES_MAX,
    Items,
    KeyValues,
    Node,
    Scalar,
    Unreadable,
    folded,
    structured,
)
from agent.skills.places import SKILL_FILE, digest, read_file, stamps
from agent.skills.reader import FieldReader, SkillFile, read_skill
from agent.skills.rules import Rule
from agent.skills.skill import Problem, Severity, Skill, SkillPlace, SkillSet
from agent.skills.suspicious import FINDINGS_MAX, suspicious_lines
from agent.skills.why import SkillVerdict, as_used, state_words, why
from memory.records.errors import AssistantError

# --- trigger tests ------------------------------------------------------------------------------
#
# The `tests.yaml` beside a SKILL.md, read and run (`hearthbot skills test`).
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
# `message` is what a person would write. `must` (or `match`) is `match`, yes, true or `no match`,
# no, false; `must_match` and `must_not_match` with true or false do the same, and without any of
# them it is `match`. `tools` names all tools that the matched skill may require or call by itself;
# left out, nothing is said about them, and an empty list allows none. `skills` names the skills
# that are meant if it is not the one that the file lies beside. A skill matches if a keyword hits,
# a rule or its own pattern fits, or its score is high enough; no model is asked.

TESTS_FILE = "tests.yaml"
FILE_CHARS_MAX = 100_000
TESTS_MAX = 500
SKILLS_MAX = 1_000
_MATCH = frozenset({"match", "yes", "true", "on", "1"})
_NO_MATCH = frozenset({"no match", "not match", "no", "false", "off", "0"})
_MATCH_KEYS = ("must", "match", "must_match")
_NO_MATCH_KEYS = ("must_not_match",)
_KNOWN_KEYS = frozenset(
    map(folded, (*_MATCH_KEYS, *_NO_MATCH_KEYS, "message", "tools", "skills", "name", "note"))
)


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
class TriggerReport:
    """How the tests of one skill came out, and what is wrong with their `file`."""

    name: str
    file: str
    results: tuple[TriggerResult, ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerTests:
    """The tests of one file, and what is wrong with it. What can be read is kept."""

    tests: tuple[TriggerTest, ...] = ()
    problems: tuple[Problem, ...] = ()


def read_tests(text: str, *, skill: str, file: str) -> TriggerTests:
    """Read a `tests.yaml`. Raise nothing: what is wrong becomes a problem with its line."""
    reader = FieldReader(file)
    tests: tuple[TriggerTest, ...] = ()
    if len(text) > FILE_CHARS_MAX:
        reader.error(f"the file is longer than {FILE_CHARS_MAX:,} characters")
    else:
        try:
            root = structured(Scalar(text=text.lstrip("\ufeff"), line=1))
            if isinstance(root, KeyValues):
                root = root.find("tests") or root
            if isinstance(root, Items):
                if not root.values:
                    reader.error("it holds no test", root)
                if len(root.values) > TESTS_MAX:
                    reader.warning(f"only the first {TESTS_MAX} tests are read", root)
                found = (_test(reader, node) for node in root.values[:TESTS_MAX])
                tests = tuple(test for test in found if test is not None)
            elif root.entries if isinstance(root, KeyValues) else root.text.strip():
                reader.error("tests must be a list: begin each with `- `", root)
            else:
                reader.error("it holds no test")
        except Unreadable as error:
            reader.error(str(error), error)
    return TriggerTests(tests=tests, problems=reader.of(skill))


def _test(reader: FieldReader, node: Node) -> TriggerTest | None:
    """Return one test; None, with an error, for what is none."""
    if not isinstance(node, KeyValues):
        reader.error("a test needs `message: …` and `must: match` or `must: no match`", node)
        return None
    for key, _ in node.entries:
        if folded(key.text) not in _KNOWN_KEYS:
            reader.warning(f"the key {key.text!r} means nothing here", key)
    message = node.find("message")
    if not isinstance(message, Scalar) or not message.text.strip():
        reader.error("the test has no message", node)
        return None
    said: set[bool] = set()
    for name in (*_MATCH_KEYS, *_NO_MATCH_KEYS):
        if (value := node.find(name)) is None:
            continue
        written = (
            value.text.casefold().replace("_", " ").replace("-", " ")
            if isinstance(value, Scalar)
            else ""
        )
        word = " ".join(written.split()).removeprefix("must ")
        if word not in _MATCH | _NO_MATCH:
            reader.error(f"{name} must be `match` or `no match`", value)
            return None
        said.add((word in _MATCH) is (name in _MATCH_KEYS))
    if len(said) > 1:
        reader.error("the test says both that it must match and that it must not", node)
        return None
    tools = node.find("tools")
    is_silent = tools is None or (isinstance(tools, Scalar) and tools.is_null)
    return TriggerTest(
        message=message.text,
        must_match=said.pop() if said else True,
        tools=None if is_silent else reader.texts(tools, "tools"),
        skills=reader.texts(node.find("skills"), "skills"),
        line=node.line,
    )


# --- running -----------------------------------------------------------------------------------


def run_tests(
    tests: Iterable[TriggerTest],
    *,
    skill: str,
    skills: SkillSet,
    rules: Sequence[Rule] = (),
    tools_known: Collection[str] | None = None,
) -> tuple[TriggerResult, ...]:
    """Run the tests of a skill, as if it and those named were in use.

    A skill in quarantine can so be tried before it is approved. With `tools_known`, a tool that
    does not exist fails the test that names it.
    """
    results = []
    for test in tests:
        names = test.skills or (skill,)
        failures, notes = _run(test, names, skills, rules)
        if tools_known is not None:
            unknown = [tool for tool in test.tools or () if tool not in tools_known]
            failures += [f"there is no tool named {tool}" for tool in unknown]
        reasons = (*failures, *notes)
        results.append(TriggerResult(test=test, passed=not failures, reasons=reasons))
    return tuple(results)


def _run(
    test: TriggerTest, names: Sequence[str], skills: SkillSet, rules: Sequence[Rule]
) -> tuple[list[str], list[str]]:
    """Return what failed, and what else there is to say."""
    used = tuple(as_used(one) if one.name in names else one for one in skills.skills)
    explained = why(replace(skills, skills=used, shadowed=()), rules, test.message)
    verdicts = {one.skill.name: one for one in explained.skills}
    failures: list[str] = []
    notes: list[str] = list(explained.problems)
    for name in names:
        known, verdict = skills.get(name), verdicts.get(name)
        if known is None or verdict is None:
            failures.append(f"there is no skill named {name}")
            continue
        matched = verdict.verdict is SkillVerdict.PICKED
        said = notes if matched is test.must_match else failures
        what = "matches" if matched else "does not match"
        said.append(f"{name} {what}: {'; '.join(verdict.reasons)}")
        if not known.is_used:
            notes.append(f"{name} is not used at present: {state_words(known)}")
        if matched and test.must_match and test.tools is not None:
            tools = (*known.required_tools, *(one.tool for one in known.auto_invoke))
            failures += [
                f"{name} uses the tool {tool}, which the test does not allow"
                for tool in dict.fromkeys(tools)
                if tool not in test.tools
            ]
    return failures, notes


def has_tests(skill: Skill) -> bool:
    """Return whether there is a file of tests."""
    return skill.folder is not None and (skill.folder / TESTS_FILE).is_file()


def tests_file(skill: Skill) -> str:
    """As a person would name it, like the place of the skill."""
    where = "workspace/" if skill.place is SkillPlace.WORKSPACE else ""
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


def tried(skill: Skill, skills: SkillSet, rules: Sequence[Rule]) -> TriggerReport:
    """Run the tests of one skill; one in quarantine is tried as if in use.

    Playbooks that do not matter are left out: they are matched each by itself, and to explain them
    all for each test takes most of the time.
    """
    tests = tests_of(skill)
    named = {skill.name, *(name for rule in rules for name in rule.skills)}
    named.update(name for test in tests.tests for name in test.skills)
    kept = tuple(one for one in skills.skills if one.name in named or one.is_listed)
    small = SkillSet(skills=kept)
    return TriggerReport(
        name=skill.name,
        file=tests_file(skill),
        results=run_tests(tests.tests, skill=skill.name, skills=small, rules=rules),
        problems=tests.problems,
    )


# --- files -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Validated:
    """One skill that was looked at. `tests` counts its trigger tests."""

    name: str
    file: str
    problems: tuple[Problem, ...] = ()
    tests: int = 0

    @property
    def is_usable(self) -> bool:
        """Return whether it would be used; warnings do not matter."""
        return all(problem.severity is Severity.WARNING for problem in self.problems)


def validate(path: Path, *, shown: str = "") -> tuple[Validated, ...]:
    """Check all skills at a path: a SKILL.md, its folder, a folder of skills, or an archive.

    `shown` is how the path is called in what is reported. Raise nothing: what cannot be read is a
    problem of its own.
    """
    shown = shown or str(path)
    try:
        if path.name == SKILL_FILE and path.is_file():
            return (_validated(path.parent, str(Path(shown).parent)),)
        if path.is_file():
            return (_archive(path, shown),)
        if not path.is_dir():
            return (_broken(path, shown, "there is no such file, folder or skill"),)
        if (path / SKILL_FILE).exists():
            return (_validated(path, shown),)
        # One or two levels down, as the library looks for them.
        levels = ("[!.]*", "[!.]*/[!.]*")
        files = {file for level in levels for file in path.glob(f"{level}/{SKILL_FILE}")}
        folders = sorted(
            file.parent
            for file in files
            if file.parent.parent / SKILL_FILE not in files
            and not any(one.is_symlink() for one in (file.parent, file.parent.parent))
        )[:SKILLS_MAX]
        nothing = _broken(path, shown, f"it holds no {SKILL_FILE}, and no folder with one")
        return tuple(
            _validated(folder, f"{shown}/{folder.relative_to(path)}") for folder in folders
        ) or (nothing,)
    except OSError as error:
        return (_broken(path, shown, f"cannot be read: {error.strerror}"),)


def _validated(folder: Path, shown: str) -> Validated:
    file = f"{shown}/{SKILL_FILE}"
    problems: list[Problem] = []

    def odd(text: str, at: str = shown, line: int = 0) -> None:
        severity = Severity.WARNING if at != shown else Severity.ERROR
        problems.append(
            Problem(skill=folder.name, file=at, text=text, line=line, severity=severity)
        )

    try:
        files = stamps(str(folder))
        data = read_file(str(folder / SKILL_FILE), bytes_max=FILE_BYTES_MAX)
        reading = read_skill(data, SkillFile(folder_name=folder.resolve().name, file=file))
        if not digest(str(folder), files):
            odd("has too many or too large files")
        tests = TriggerTests()
        if (folder / TESTS_FILE).is_file():
            text = read_file(str(folder / TESTS_FILE), bytes_max=4 * FILE_CHARS_MAX)
            tests = read_tests(
                text.decode("utf-8", "replace"), skill=folder.name, file=f"{shown}/{TESTS_FILE}"
            )
        problems += tests.problems
        for name, *_ in files:
            content = read_file(str(folder / name), bytes_max=FILE_BYTES_MAX)
            for line, found in islice(suspicious_lines(content), FINDINGS_MAX):
                odd(found, f"{shown}/{name}", line)
    except OSError as error:
        return _broken(folder, file, f"cannot be read: {error.strerror}")
    except Unreadable as error:
        return _broken(folder, shown, str(error))
    name = reading.skill.name if reading.skill is not None else folder.resolve().name
    return Validated(
        name=name,
        file=file,
        problems=tuple(replace(one, skill=name) for one in (*reading.problems, *problems)),
        tests=len(tests.tests),
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


def _broken(path: Path, shown: str, text: str) -> Validated:
    problem = Problem(skill=path.name, file=shown, text=text)
    return Validated(name=path.name, file=shown, problems=(problem,))
