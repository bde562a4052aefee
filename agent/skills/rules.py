"""Force-include rules: a pattern fits a message, and the prompt gets what the rule names (SPEC §7).

Rules stand in the settings (`[[prompt.force_include]]`) or are a skill's `trigger`. Called for each
message of a chat by what gathers the prompt, at start to check the settings, and by `why`.
"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from agent.skills.skill import AutoInvoke, Skill, SkillPlace, SkillSet
from memory.records.errors import Permanent

# --- patterns -----------------------------------------------------------------------------------
#
# Regular expressions that come from settings and skills: checked before use, and held to a time.
#
# The dialect is that of Python's `re`, which every pattern must satisfy. The search is done by the
# `regex` library, because it alone can be told to stop; the only module that knows it. What ships
# with the program, and is tried by its tests, is searched for by `re`.

CHARS_MAX = 1_000
REPEATS_MAX = 10_000
"""How often the counts of a pattern may multiply to: `(a{99}){99}` is all right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternFault:
    """Why a pattern cannot be used. `position` counts from 1; 0 means the pattern as a whole."""

    text: str
    position: int = 0

    def __str__(self) -> str:
        """`missing ), unterminated subpattern (character 3)`."""
        return f"{self.text} (character {self.position})" if self.position else self.text


class PatternWrong(Permanent):
    """The pattern cannot be used; `fault` says where and why."""

    def __init__(self, fault: PatternFault) -> None:
        super().__init__(str(fault))
        self.fault = fault


class TooSlow(Permanent):
    """The pattern did not come to an end in its time: on this text it never will."""


def fault_of(pattern: str) -> PatternFault | None:
    """What is wrong with a pattern; None if nothing is."""
    if len(pattern) > CHARS_MAX:
        return PatternFault(text=f"it is longer than {CHARS_MAX:,} characters")
    try:
        _compiled_by_re(pattern)
    except re.error as error:
        return PatternFault(text=error.msg, position=0 if error.pos is None else error.pos + 1)
    except OverflowError:
        return PatternFault(text="a repetition count is too large")
    except RecursionError:
        return PatternFault(text="too many brackets stand within each other")
    if comment := _COMMENT.search(pattern):
        # They could hide from the count below what a repetition stands behind.
        return PatternFault(text="leave out comments and (?x)", position=comment.start() + 1)
    if _repeats(pattern) > REPEATS_MAX:
        # The engine unrolls counts: (a{1000}){1000} would take gigabytes.
        return PatternFault(text=f"its repetitions multiply to more than {REPEATS_MAX:,}")
    return None


class Pattern:
    """A pattern ready for use, in any case of letters."""

    def __init__(self, pattern: str, *, is_ours: bool = False) -> None:
        """`is_ours`: it ships with the program, so that no limit of time is needed; and `re` keeps
        the other threads waiting for a moment, where `regex` would hand over to them in the middle
        of each search. Raises PatternWrong for what `fault_of` finds."""
        if fault := fault_of(pattern):
            raise PatternWrong(fault)
        self._search: Callable[[str, float], re.Match[str] | None]
        if is_ours:
            ours = _compiled_by_re(pattern)
            self._search = lambda text, limit_s: ours.search(text)
            return
        # Loaded here: most bots have no patterns of their own, and it takes a twentieth of the
        # start.
        import regex  # type: ignore[import-untyped]

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                theirs = regex.compile(pattern, regex.IGNORECASE | regex.VERSION0)
        except (regex.error, RecursionError, OverflowError) as error:
            raise PatternWrong(PatternFault(text=f"the search cannot read it: {error}")) from error
        self._search = lambda text, limit_s: theirs.search(text, timeout=limit_s)

    def found(self, text: str, *, limit_s: float) -> str | None:
        """The piece of the text that fits, or None. Raises TooSlow after about `limit_s`."""
        try:
            hit = self._search(text, limit_s)
        except TimeoutError as error:
            raise TooSlow(f"no end within {limit_s:g} s") from error
        return hit.group() if hit is not None else None


def _compiled_by_re(pattern: str) -> re.Pattern[str]:
    with warnings.catch_warnings():
        # `[[a]` may mean something else one day; today it is what its author has tried.
        warnings.simplefilter("ignore")
        return re.compile(pattern, re.IGNORECASE)


_COMMENT = re.compile(r"\(\?(?:#|[a-zA-Z]*x)")
_COUNT = re.compile(r"\{(\d*)(?:(,)(\d*))?\}")


def _repeats(pattern: str) -> int:
    """How large the pattern is with its counts written out; brackets multiply what is in them.

    Never less than it is: what is not understood counts as a character.
    """
    sizes, last = [0], 0
    at = 0
    while at < len(pattern):
        character = pattern[at]
        count = _COUNT.match(pattern, at) if character == "{" else None
        step = 1
        if count is not None and (count[1] or count[3]):
            times = max(int(count[1] or 0), int(count[3] or 0), 1)
            sizes[-1] += last * (times - 1)
            last, step = last * times, len(count[0])
        elif character == "(":
            sizes.append(0)
            last = 0
        elif character == ")" and len(sizes) > 1:
            last = max(sizes.pop(), 1)
            sizes[-1] += last
        else:
            step = _atom_length(pattern, at)
            last = last if character in "*+?" else 1
            sizes[-1] += 1
        at += step
    return sum(sizes)


def _atom_length(pattern: str, at: int) -> int:
    """How many characters make one atom: an escape, a whole set, or one."""
    if pattern[at] == "\\":
        return 2
    if pattern[at] != "[":
        return 1
    end = at + 1
    if pattern[end : end + 1] == "^":
        end += 1
    end += 1  # a first ] is a member of the set
    while end < len(pattern) and pattern[end] != "]":
        end += 2 if pattern[end] == "\\" else 1
    return end + 1 - at


PATTERN_LIMIT_S = 0.05
"""For one pattern on one message. An honest pattern takes a thousandth of that."""
MESSAGE_LIMIT_S = 0.25
"""For all patterns on one message: the event loop stands still meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What the prompt gets for messages that fit one of the patterns.

    `source` says where the rule stands, for a person: `prompt.force_include[0]`, or the file of a
    skill. `name` is that of the skill whose trigger it is; empty for rules of the settings.
    """

    source: str
    patterns: tuple[str, ...]
    name: str = ""
    skills: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    instruction: str = ""
    auto_invoke: tuple[AutoInvoke, ...] = ()
    is_ours: bool = False
    """It ships with the program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleProblem:
    """A pattern that cannot be used or took too long, or a skill that a rule cannot bring.

    `position` is the character of the pattern, from 1; 0 means the pattern as a whole.
    """

    source: str
    text: str
    pattern: str = ""
    position: int = 0

    def __str__(self) -> str:
        """One sentence for the owner."""
        if not self.pattern:
            return f"{self.source}: {self.text}"
        at = f", at character {self.position}" if self.position else ""
        short = self.pattern if len(self.pattern) <= 80 else self.pattern[:79] + "…"
        return f"{self.source}: the pattern {short!r}{at}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleHit:
    """A rule that fits, the first of its patterns that does, and the piece that it hit."""

    rule: Rule
    pattern: str
    found: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Forced:
    """What the rules bring for one message, in the order of the rules, each thing once."""

    hits: tuple[RuleHit, ...] = ()
    skills: tuple[Skill, ...] = ()
    plugins: tuple[str, ...] = ()
    instructions: tuple[str, ...] = ()
    auto_invokes: tuple[AutoInvoke, ...] = ()
    problems: tuple[RuleProblem, ...] = ()


def trigger_of(skill: Skill) -> Rule:
    """The trigger of one skill as a rule; without patterns it never fits."""
    return Rule(
        source=skill.location,
        name=skill.name,
        patterns=skill.patterns,
        skills=(skill.name,),
        instruction=skill.instruction,
        auto_invoke=skill.auto_invoke,
        is_ours=skill.place is SkillPlace.SHIPPED,
    )


class RuleBook:
    """Rules ready for use: first those of the settings, then the triggers of the used skills.

    Built once for a set of skills. A pattern that cannot be used is in `problems`, and the rest
    works.
    """

    def __init__(
        self,
        skills: SkillSet,
        rules: Sequence[Rule] = (),
        *,
        pattern_limit_s: float = PATTERN_LIMIT_S,
        message_limit_s: float = MESSAGE_LIMIT_S,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self.rules = (*rules, *(trigger_of(skill) for skill in skills.used if skill.patterns))
        self._skills = skills
        self._pattern_limit_s = pattern_limit_s
        self._message_limit_s = message_limit_s
        self._seconds = seconds
        problems: list[RuleProblem] = []
        self._patterns = [_prepared(rule, problems) for rule in self.rules]
        problems += (
            _unknown(rule, name)
            for rule in rules
            for name in rule.skills
            if skills.get(name) is None
        )
        self.problems = tuple(problems)

    def forced(self, text: str) -> Forced:
        """What the rules bring for this message. Takes `message_limit_s` at the very most."""
        end = self._seconds() + self._message_limit_s
        hits: list[RuleHit] = []
        problems: list[RuleProblem] = []
        for rule, patterns in zip(self.rules, self._patterns, strict=True):
            for written, pattern in patterns:
                found, why = self._search(pattern, text.strip(), end)
                if found is not None:
                    hits.append(RuleHit(rule=rule, pattern=written, found=found))
                    break
                if why:
                    problems.append(RuleProblem(source=rule.source, pattern=written, text=why))
        calls: list[AutoInvoke] = []  # Equal ones once; their arguments cannot be hashed.
        for hit in hits:
            calls += (call for call in hit.rule.auto_invoke if call not in calls)
        return Forced(
            hits=tuple(hits),
            skills=self._usable(hits, problems),
            plugins=tuple(dict.fromkeys(name for hit in hits for name in hit.rule.plugins)),
            instructions=tuple(
                dict.fromkeys(told for hit in hits if (told := hit.rule.instruction.strip()))
            ),
            auto_invokes=tuple(calls),
            problems=tuple(problems),
        )

    def _search(self, pattern: Pattern, text: str, end: float) -> tuple[str | None, str]:
        """The piece that fits; or why it was not looked for to the end."""
        left_s = min(self._pattern_limit_s, end - self._seconds())
        if left_s <= 0:
            return (
                None,
                "not tried, the patterns before it took all the time there is for one message",
            )
        try:
            return pattern.found(text, limit_s=left_s), ""
        except TooSlow:
            why = f"given up after {round(left_s * 1000)} ms on this message; make it simpler"
            return None, why

    def _usable(self, hits: Iterable[RuleHit], problems: list[RuleProblem]) -> tuple[Skill, ...]:
        """The skills that hits name, and a problem for each that cannot be used now."""
        skills: dict[str, Skill] = {}
        for hit in hits:
            for name in hit.rule.skills:
                skill = self._skills.get(name)
                if skill is None:
                    problems.append(_unknown(hit.rule, name))
                elif skill.is_used:
                    skills.setdefault(name, skill)
                else:
                    text = f"the skill {name} is not used now: it is {skill.state.value}"
                    problems.append(RuleProblem(source=hit.rule.source, text=text))
        return tuple(skills.values())


def _prepared(rule: Rule, problems: list[RuleProblem]) -> list[tuple[str, Pattern]]:
    """The patterns of a rule that can be used; a problem for each of the others."""
    ready = []
    for written in rule.patterns:
        try:
            ready.append((written, Pattern(written, is_ours=rule.is_ours)))
        except PatternWrong as error:
            text, position = error.fault.text, error.fault.position
            problems.append(
                RuleProblem(source=rule.source, pattern=written, text=text, position=position)
            )
    return ready


def _unknown(rule: Rule, name: str) -> RuleProblem:
    return RuleProblem(source=rule.source, text=f"there is no skill named {name}")
