"""Why a skill was picked or not, in words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent.skills.rules import Rule
from agent.skills.skill import Skill, SkillSchedule, SkillState
from agent.skills.why import Explanation, SkillVerdict, SkillWhy, why
from tests.agent.skills.shelves import shelf, skill


def explain(text: str, *skills: Skill, rules: tuple[Rule, ...] = ()) -> Explanation:
    return why(shelf(*skills), rules, text)


def of(text: str, one: Skill, *rules: Rule) -> SkillWhy:
    [found] = explain(text, one, rules=rules).skills
    return found


def test_each_kind_of_near_miss_has_a_sentence() -> None:
    found = of(
        "schedule a meeting at the café",
        skill("one", "schedule meeting", "cafe", "schedules", "edul"),
    )

    assert found.reasons[1:] == (
        "all words of 'schedule meeting' are there ('schedule … meeting'), but not side by side",
        "the message says 'café'; the keyword 'cafe' has other accents",
        "the message says 'schedule'; the keyword 'schedules' has an ending that it lacks",
        "the keyword 'edul' stands in 'schedule' only as a part of a longer word",
    )


def test_skills_that_are_not_used_say_why_and_what_would_have_picked_them() -> None:
    states = {
        "quarantined": skill("quarantined", "mail", state=SkillState.QUARANTINED),
        "missing": skill(
            "missing", state=SkillState.MISSING, missing=("the program ffmpeg",), patterns=("mail",)
        ),
        "off": skill("off", state=SkillState.OFF, schedule=SkillSchedule(cron="0 8 * * *")),
    }

    found = {one.skill.name: one for one in explain("my mail", *states.values()).skills}

    assert {one.verdict for one in found.values()} == {SkillVerdict.CANNOT}
    assert "the owner has to approve it" in found["quarantined"].reasons[0]
    assert found["quarantined"].reasons[1] == (
        "otherwise it would have been picked: the keyword 'mail' stands in the message"
    )
    assert found["missing"].reasons[0].endswith("lacks what it needs: the program ffmpeg")
    assert found["missing"].reasons[1].endswith("its own pattern 'mail' fits 'mail'")
    assert "nobody has enabled it" in found["off"].reasons[0]


@given(
    st.text(max_size=40),
    st.lists(st.text(max_size=8), max_size=3),
    st.sampled_from(list(SkillState)),
    st.lists(st.text(max_size=6), max_size=2),
)
def test_every_skill_gets_a_reason(
    text: str, keywords: list[str], state: SkillState, patterns: list[str]
) -> None:
    one = skill("one", *keywords, state=state, patterns=tuple(patterns))

    assert all(of(text, one).reasons)


def test_what_picked_a_skill_or_came_near_is_named() -> None:
    by_keyword = of("Any Emails?", skill("mail", "email", "inbox"))
    by_rule = of(
        "Deploy it",
        skill("review", "audit"),
        Rule(source="prompt.force_include[0]", patterns=("x", r"\bdeploy"), skills=("review",)),
    )
    by_pattern = of("go home", skill("own", patterns=("^go",)))
    by_score = of("what is the weather", skill("weather", description="Forecasts."))
    near = of("the forecasts of gold", skill("weather", description="Forecasts for a place."))
    unlike = of("stay", skill("own", description="Forecasts.", patterns=("^go",)))

    for found in (by_keyword, by_rule, by_pattern, by_score):
        assert found.verdict is SkillVerdict.PICKED
    assert by_keyword.reasons == ("the keyword 'email' stands in the message, as 'emails'",)
    assert by_rule.reasons[0] == (
        "the rule prompt.force_include[0], whose pattern '\\\\bdeploy' fits 'Deploy'"
    )
    assert by_pattern.reasons[0] == "its own pattern '^go' fits 'go'"
    assert "shares 'weather' with its name and description: score 0.60" in by_score.reasons[0]
    assert "score 0.25, and 0.47 is needed" in near.reasons[0]
    assert "none of its own patterns fits ('^go')" in unlike.reasons
    assert "the message shares no word with its name or description" in unlike.reasons
