"""Force-include rules: a pattern fits a message, and the prompt gets what the rule names (SPEC §7).

Rules stand in the settings (`[[prompt.force_include]]`) or are a skill's `trigger`. Called for each
message of a chat by what gathers the prompt, at start to check the settings, and by `why`.
"""

from __future__ import annotations

import math
import re
import time
import warnings
from collections.abc import Callable, Sequence
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


class PatternWrong(Permanent):
    """A pattern that cannot be used. `position` counts from 1; 0 means the pattern as a whole."""

    def __init__(self, text: str, position: int = 0) -> None:
        super().__init__(f"{text} (character {position})" if position else text)
        self.text = text
        self.position = position


class TooSlow(Permanent):
    """The pattern did not come to an end in its time: on this text it never will."""


def check_pattern(pattern: str) -> re.Pattern[str]:
    """Return the pattern as `re` compiles it, in any case of letters. Raise PatternWrong."""
    if len(pattern) > CHARS_MAX:
        raise PatternWrong(f"it is longer than {CHARS_MAX:,} characters")
    try:
        with warnings.catch_warnings():
            # `[[a]` may mean something else one day; today it is what its author has tried.
            warnings.simplefilter("ignore")
            compiled = re.compile(pattern, re.IGNORECASE)
    except re.error as error:
        raise PatternWrong(error.msg, 0 if error.pos is None else error.pos + 1) from error
    except OverflowError as error:
        raise PatternWrong("a repetition count is too large") from error
    except RecursionError as error:
        raise PatternWrong("too many brackets stand within each other") from error
    if comment := _COMMENT.search(pattern):
        # They could hide from the count below what a repetition stands behind.
        raise PatternWrong("leave out comments and (?x)", comment.start() + 1)
    # The engine writes counts out: (a{1000}){1000} would take gigabytes. Where a group is counted,
    # all counts are multiplied, which is never less than it takes.
    counts = [max(int(least or 0), int(most or 0), 1) for least, most in _COUNT.findall(pattern)]
    if (math.prod(counts) if "){" in pattern else sum(counts)) > REPEATS_MAX:
        raise PatternWrong(f"its repetitions multiply to more than {REPEATS_MAX:,}")
    return compiled


class Pattern:
    """A pattern ready for use, in any case of letters."""

    def __init__(self, pattern: str, *, is_ours: bool = False) -> None:
        """`is_ours`: it ships with the program, so that no limit of time is needed; and `re` keeps
        the other threads waiting for a moment, where `regex` would hand over to them in the middle
        of each search. Raises PatternWrong."""
        ours = check_pattern(pattern)
        self._search: Callable[[str, float], re.Match[str] | None]
        if is_ours:
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
            raise PatternWrong(f"the search cannot read it: {error}") from error
        self._search = lambda text, limit_s: theirs.search(text, timeout=limit_s)

    def found(self, text: str, *, limit_s: float) -> str | None:
        """The piece of the text that fits, or None. Raises TooSlow after about `limit_s`."""
        try:
            hit = self._search(text, limit_s)
        except TimeoutError as error:
            raise TooSlow(f"no end within {limit_s:g} s") from error
        return hit.group() if hit is not None else None


_COMMENT = re.compile(r"\(\?(?:#|[a-zA-Z]*x)")
_COUNT = re.compile(r"\{(\d*),?(\d*)\}")


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
class RuleHit:
    """A rule that fits, the first of its patterns that does, and the piece that it hit."""

    rule: Rule
    pattern: str
    found: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Forced:
    """What the rules bring for one message, in the order of the rules, each thing once; `problems`
    are sentences for the owner."""

    hits: tuple[RuleHit, ...] = ()
    skills: tuple[Skill, ...] = ()
    plugins: tuple[str, ...] = ()
    auto_invokes: tuple[AutoInvoke, ...] = ()
    problems: tuple[str, ...] = ()


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
        problems: list[str] = []
        self._patterns: list[list[tuple[str, Pattern]]] = []
        for rule in self.rules:
            ready = []
            for written in rule.patterns:
                try:
                    ready.append((written, Pattern(written, is_ours=rule.is_ours)))
                except PatternWrong as error:
                    at = f", at character {error.position}" if error.position else ""
                    problems.append(f"{_place(rule, written)}{at}: {error.text}")
            self._patterns.append(ready)
        problems += (
            _unknown(rule, name)
            for rule in rules
            for name in rule.skills
            if skills.get(name) is None
        )
        self.problems = tuple(problems)

    def forced(self, text: str) -> Forced:
        """Return what the rules bring for this message. Takes `message_limit_s` at the very
        most."""
        end = self._seconds() + self._message_limit_s
        hits: list[RuleHit] = []
        problems: list[str] = []
        for rule, patterns in zip(self.rules, self._patterns, strict=True):
            for written, pattern in patterns:
                found, why = self._search(pattern, text.strip(), end)
                if found is not None:
                    hits.append(RuleHit(rule=rule, pattern=written, found=found))
                    break
                if why:
                    problems.append(f"{_place(rule, written)}: {why}")
        skills: dict[str, Skill] = {}
        for hit in hits:
            for name in hit.rule.skills:
                skill = self._skills.get(name)
                if skill is None:
                    problems.append(_unknown(hit.rule, name))
                elif skill.is_used:
                    skills.setdefault(name, skill)
                else:
                    unused = f"the skill {name} is not used now: it is {skill.state.value}"
                    problems.append(f"{hit.rule.source}: {unused}")
        calls: list[AutoInvoke] = []  # Equal ones once; their arguments cannot be hashed.
        for hit in hits:
            calls += (call for call in hit.rule.auto_invoke if call not in calls)
        return Forced(
            hits=tuple(hits),
            skills=tuple(skills.values()),
            plugins=tuple(dict.fromkeys(name for hit in hits for name in hit.rule.plugins)),
            auto_invokes=tuple(calls),
            problems=tuple(problems),
        )

    def _search(self, pattern: Pattern, text: str, end: float) -> tuple[str | None, str]:
        """The piece that fits; or why it was not looked for to the end."""
        left_s = min(self._pattern_limit_s, end - self._seconds())
        if left_s <= 0:
            why = "not tried, the patterns before it took all the time there is for one message"
            return None, why
        try:
            return pattern.found(text, limit_s=left_s), ""
        except TooSlow:
            why = f"given up after {round(left_s * 1000)} ms on this message; make it simpler"
            return None, why


def _place(rule: Rule, pattern: str) -> str:
    short = pattern if len(pattern) <= 80 else pattern[:79] + "…"
    return f"{rule.source}: the pattern {short!r}"


def _unknown(rule: Rule, name: str) -> str:
    return f"{rule.source}: there is no skill named {name}"
