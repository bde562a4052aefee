"""Skills tried before they are used: their files looked over, their trigger tests read and run.

Changes nothing and needs no home. Blocks: use a thread.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
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
from agent.skills.reader import SkillFile, read_skill
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
# `message` is what a person would write. `must` is `match` (also: yes, true) or `no match` (no,
# false); `must_match` and `must_not_match` with true or false do the same, and without any of them
# it is `match`. `tools` names all tools that the matched skill may require or call by itself; left
# out, nothing is said about them, and an empty list allows none. `skills` names the skills that are
# meant if it is not the one that the file lies beside. A skill matches if a keyword hits, a rule or
# its own pattern fits, or its score is high enough; no model is asked.

TESTS_FILE = "tests.yaml"
FILE_CHARS_MAX = 100_000
TESTS_MAX = 500
SKILLS_MAX = 1_000
_MATCH = frozenset({"match", "matches", "yes", "true", "on", "1"})
_NO_MATCH = frozenset({"no match", "not match", "no", "false", "off", "0", "none", "never"})
_MESSAGE_KEYS = ("message", "text", "prompt", "input", "query")
_MATCH_KEYS = ("must", "must_match", "match", "matches", "should_match", "should_trigger", "expect")
_NO_MATCH_KEYS = ("must_not_match", "no_match", "should_not_match", "should_not_trigger")
_TOOL_KEYS = ("tools", "allowed_tools", "may_use")
_SKILL_KEYS = ("skills", "skill")
_KNOWN_KEYS = frozenset(
    folded(key)
    for keys in (_MESSAGE_KEYS, _MATCH_KEYS, _NO_MATCH_KEYS, _TOOL_KEYS, _SKILL_KEYS)
    for key in (*keys, "name", "note", "comment", "description")
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
    reader = _TestReader(skill, file)
    tests: tuple[TriggerTest, ...] = ()
    if len(text) > FILE_CHARS_MAX:
        reader.error(f"the file is longer than {FILE_CHARS_MAX:,} characters", 0)
    else:
        try:
            tests = reader.tests(structured(Scalar(text=text.lstrip("\ufeff"), line=1)))
        except Unreadable as error:
            reader.error(str(error), error.line)
    return TriggerTests(tests=tests, problems=tuple(reader.problems))


@dataclass(slots=True)
class _TestReader:
    """Makes tests of nodes, and notes what cannot be one."""

    skill: str
    file: str
    problems: list[Problem] = field(default_factory=list)

    def error(self, text: str, line: int, severity: Severity = Severity.ERROR) -> None:
        problem = Problem(skill=self.skill, file=self.file, text=text, line=line, severity=severity)
        self.problems.append(problem)

    def tests(self, root: Node) -> tuple[TriggerTest, ...]:
        if isinstance(root, KeyValues):
            root = root.find("tests") or root
        if not isinstance(root, Items):
            if not (root.entries if isinstance(root, KeyValues) else root.text.strip()):
                self.error("it holds no test", 0)
            else:
                self.error("tests must be a list: begin each with `- `", root.line)
            return ()
        if len(root.values) > TESTS_MAX:
            self.error(f"only the first {TESTS_MAX} tests are read", root.line, Severity.WARNING)
        found = (self._test(node) for node in root.values[:TESTS_MAX])
        return tuple(test for test in found if test is not None)

    def _test(self, node: Node) -> TriggerTest | None:
        if not isinstance(node, KeyValues):
            self.error("a test needs `message: …` and `must: match` or `must: no match`", node.line)
            return None
        for key, _ in node.entries:
            if folded(key.text) not in _KNOWN_KEYS:
                text = f"the key {key.text!r} means nothing here"
                self.error(text, key.line, Severity.WARNING)
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

    def _must(self, node: KeyValues) -> bool | None:
        """Whether it must match; None, with a problem, if that cannot be told."""
        said: set[bool] = set()
        for key in (*_MATCH_KEYS, *_NO_MATCH_KEYS):
            value = node.find(key)
            truth = _truth(value) if value is not None else None
            if truth is not None:
                said.add(truth is (key in _MATCH_KEYS))
            elif value is not None:
                self.error(f"{key} must be `match` or `no match`", value.line or node.line)
                return None
        if len(said) > 1:
            self.error("the test says both that it must match and that it must not", node.line)
            return None
        return said.pop() if said else True

    def _names(self, node: KeyValues, keys: Sequence[str]) -> tuple[str, ...] | None:
        match _find(node, keys):
            case None | Scalar(is_null=True):
                return None
            case Scalar() as value:
                texts = value.text.split(",")
            case Items() as value if all(isinstance(one, Scalar) for one in value.values):
                texts = [one.text for one in value.values if isinstance(one, Scalar)]
            case value:
                self.error(f"{keys[0]} must be a list of names", value.line or node.line)
                return ()
        return tuple(name for text in texts if (name := text.strip()))


def _find(node: KeyValues, keys: Sequence[str]) -> Node | None:
    return next((found for key in keys if (found := node.find(key)) is not None), None)


def _truth(value: Node) -> bool | None:
    if not isinstance(value, Scalar):
        return None
    word = " ".join(value.text.replace("_", " ").replace("-", " ").casefold().split())
    word = word.removeprefix("must ")
    return True if word in _MATCH else False if word in _NO_MATCH else None


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
    """What failed, and what else there is to say."""
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
    """Whether there is a file of tests."""
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
        """Whether it would be used; warnings do not matter."""
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
        folders = sorted(_skills_below(path))[:SKILLS_MAX]
        nothing = _broken(path, shown, f"it holds no {SKILL_FILE}, and no folder with one")
        return tuple(_validated(path / name, f"{shown}/{name}") for name in folders) or (nothing,)
    except OSError as error:
        return (_broken(path, shown, f"cannot be read: {error.strerror}"),)


def _skills_below(path: Path) -> Iterator[str]:
    """Folders with a SKILL.md, one or two levels down, as the library looks for them."""
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
