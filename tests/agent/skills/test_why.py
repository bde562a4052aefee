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


def test_a_keyword_that_did_not_hit_is_explained_by_what_came_near() -> None:
    found = of("change my profile", skill("files", "file", "folder"))

    assert found.verdict is SkillVerdict.NOT_PICKED
    assert found.reasons == (
        "none of its keywords stands in the message ('file', 'folder')",
        "the keyword 'file' stands in 'profile' only as a part of a longer word",
    )


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
