"""Trigger tests: the `tests.yaml` beside a SKILL.md, read and run (`hearthbot skills test`).

The file is a list (or has one below the key `tests`), in YAML or JSON:

    - message: Could you summarize this thread?
      must: match
    - message: What is the sum of 2 and 3?
      must: no match
    - message: Draft a commit message
      must: match
      tools: [read_file]
      skills: [commit-message]

`message` is what a person would write. `must` is `match` (also: yes, true) or `no match` (no,
false); `must_match` and `must_not_match` with true or false do the same, and without any of them
it is `match`. `tools` names all tools that the matched skill may require or call by itself; left
out, nothing is said about them, and an empty list allows none. `skills` names the skills that are
meant if it is not the one that the file lies beside. A skill matches if a keyword hits, a rule or
its own pattern fits, or its score is high enough; no model is asked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from agent.skills.front_matter import Fields, Items, Node, Scalar, Unreadable, folded, structured
from agent.skills.rules import Rule
from agent.skills.skill import Problem, Severity, Shelf, Skill
from agent.skills.why import SkillWhy, Verdict, as_used, state_words, why

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
    shelf: Shelf,
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
    shelf: Shelf,
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


def _with_used(shelf: Shelf, names: Collection[str]) -> Shelf:
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
