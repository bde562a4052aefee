"""Force-include rules: what a fitting pattern brings into the prompt."""

from __future__ import annotations

from collections.abc import Iterator

from agent.skills.rules import Forced, Rule, RuleBook
from agent.skills.skill import AutoInvoke, SkillState
from tests.agent.skills.shelves import shelf, skill

SEARCH = AutoInvoke(tool="search_memories", args={"query": "{{query}}"})


def told(forced: Forced) -> tuple[str, ...]:
    return tuple(dict.fromkeys(hit.rule.instruction.strip() for hit in forced.hits))


def rule(*patterns: str, **more: object) -> Rule:
    return Rule(source="prompt.force_include[0]", patterns=patterns, **more)  # type: ignore[arg-type]


def test_a_fitting_rule_brings_all_that_it_names() -> None:
    review = skill("review")
    book = RuleBook(
        shelf(review),
        [
            rule(
                "^ship",
                r"\bdeploy",
                skills=("review",),
                plugins=("github",),
                instruction="Ask which environment is meant.",
                auto_invoke=(SEARCH,),
            )
        ],
    )

    forced = book.forced("  please DEPLOY it\n")

    assert forced.skills == (review,)
    assert forced.plugins == ("github",)
    assert told(forced) == ("Ask which environment is meant.",)
    assert forced.auto_invokes == (SEARCH,)
    assert [(hit.pattern, hit.found) for hit in forced.hits] == [(r"\bdeploy", "DEPLOY")]
    assert forced.problems == ()


def test_a_skills_trigger_names_itself_behind_the_rules_of_the_settings() -> None:
    own = skill("own", patterns=("^deploy",), instruction="Own.", auto_invoke=(SEARCH,))
    other = skill("other")
    book = RuleBook(shelf(own, other), [rule("deploy", skills=("other",), instruction="First.")])

    forced = book.forced("deploy now")

    assert forced.skills == (other, own)
    assert told(forced) == ("First.", "Own.")
    assert forced.auto_invokes == (SEARCH,)


def test_the_trigger_of_a_skill_that_is_not_used_does_nothing() -> None:
    waiting = skill("waiting", patterns=("x",), instruction="Do.", state=SkillState.QUARANTINED)

    forced = RuleBook(shelf(waiting)).forced("x")

    assert (forced.skills, forced.hits) == ((), ())


def test_a_rule_cannot_bring_a_skill_that_is_not_used() -> None:
    waiting = skill("waiting", state=SkillState.QUARANTINED)
    book = RuleBook(
        shelf(waiting), [rule("x", skills=("waiting", "unknown"), instruction="Still.")]
    )

    forced = book.forced("x")

    assert forced.skills == ()
    assert told(forced) == ("Still.",)
    assert [str(problem) for problem in forced.problems] == [
        "prompt.force_include[0]: the skill waiting is not used now: it is quarantined",
        "prompt.force_include[0]: there is no skill named unknown",
    ]
    assert "no skill named unknown" in str(book.problems[0])


def test_a_pattern_that_takes_too_long_is_no_hit_and_the_rest_goes_on() -> None:
    book = RuleBook(
        shelf(),
        [rule("(a+)+$", "b$", instruction="By the second."), rule("a", instruction="Next.")],
        message_limit_s=60,
    )

    forced = book.forced("a" * 5_000 + "b")

    assert told(forced) == ("By the second.", "Next.")
    [problem] = forced.problems
    assert "'(a+)+$': given up after 50 ms" in problem


def test_patterns_beyond_the_time_of_one_message_are_not_tried() -> None:
    def clock() -> Iterator[float]:
        now = 100.0
        while True:
            yield now
            now += 0.1

    ticks = clock()
    book = RuleBook(
        shelf(),
        [rule("a", "b", "c", "d")],
        message_limit_s=0.25,
        seconds=lambda: next(ticks),
    )

    forced = book.forced("d")

    assert forced.hits == ()
    assert len(forced.problems) == 2
    assert "the pattern 'c': not tried" in forced.problems[0]
