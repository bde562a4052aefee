"""Keywords: which playbooks a message calls up, and which it does not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.skills.matcher import KeywordHit, Matcher, near_misses
from agent.skills.skill import SkillSchedule, SkillSet, SkillState
from tests.agent.skills.shelves import shelf, skill
from tests.thorough import rounds


def hits(keyword: str, text: str) -> bool:
    """Whether this keyword alone calls its playbook up."""
    return bool(Matcher(shelf(skill("one", keyword))).playbooks(text))


@pytest.mark.parametrize(
    ("keyword", "text"),
    [
        ("email", "Any new EMAILS?"),
        ("email", "the email’s subject"),
        ("email", "Emailed her, am emailing him"),
        ("email", "_email_ me"),
        ("email", "l'email de Paul"),
        ("plan", "what have you planned"),
        ("schedule", "scheduling it"),
        ("reply", "she replied"),
        ("Straße", "in der STRASSE"),
        ("cafe\u0301", "un café"),
        ("ｅｍａｉｌ", "email"),
        ("हिन्दी", "मुझे हिन्दी आती है"),
    ],
)
def test_a_keyword_hits_whole_words_with_light_endings(keyword: str, text: str) -> None:
    assert hits(keyword, text)


@pytest.mark.parametrize(
    ("keyword", "text"),
    [
        ("file", "my profile"),
        ("file", "my_file_list"),
        ("mail", "email"),
        ("plan", "a planner, a plant, an airplane"),
        ("cafe", "le café"),
        ("meetings", "one meeting"),
        ("can", "I can't"),
        ("ill", "we'll see"),
    ],
)
def test_a_keyword_does_not_hit_a_part_of_a_word(keyword: str, text: str) -> None:
    assert not hits(keyword, text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Scheduling  \n meetings", True),
        ("schedule-meeting", True),
        ("schedule **meeting** now", True),
        ("schedule a meeting", False),
        ("meeting schedule", False),
        ("schedule, meeting", False),
        ("reschedule meeting", False),
    ],
)
def test_a_phrase_hits_as_a_whole(text: str, expected: bool) -> None:
    assert hits("schedule meeting", text) is expected


@pytest.mark.parametrize(
    ("keyword", "text", "expected"),
    [
        ("c++", "I write C++.", True),
        ("c++", "I write C.", False),
        (".pdf", "open report.PDF", True),
        (".pdf", "a pdf file", False),
        ("https://", "see https://example.org", True),
        ("👍", "👍🏽", True),
        ("日历", "打开我的日历吧", True),
        ("미팅", "내일 미팅이 있어요", True),
        ("email", "请用email发给我", True),
    ],
)
def test_what_is_not_quite_a_word_hits_as_plain_text(
    keyword: str, text: str, expected: bool
) -> None:
    assert hits(keyword, text) is expected


def test_all_matches_come_by_priority_then_name_with_all_their_keywords() -> None:
    low = skill("a-low", "mail", "new mails")
    high = skill("z-high", "mail", priority=9)
    also = skill("b-also", "inbox", "mail")
    matcher = Matcher(SkillSet(skills=(low, also, high)))

    found = matcher.playbooks("New mails!")

    assert [match.skill.name for match in found] == ["z-high", "a-low", "b-also"]
    assert found[1].hits == (
        KeywordHit(keyword="mail", found="mails"),
        KeywordHit(keyword="new mails", found="new mails"),
    )


def test_only_used_playbooks_match() -> None:
    matcher = Matcher(
        shelf(
            skill("quarantined", "mail", state=SkillState.QUARANTINED),
            skill("missing", "mail", state=SkillState.MISSING),
            skill("by-clock", "mail", schedule=SkillSchedule(cron="0 8 * * *")),
            skill("listed"),
            skill("used", "mail"),
        )
    )

    assert [match.skill.name for match in matcher.playbooks("mail")] == ["used"]


@settings(max_examples=rounds(75, 300))
@given(st.lists(st.text(max_size=12), max_size=4), st.text(max_size=60))
def test_any_keywords_and_any_message_are_survived(keywords: list[str], text: str) -> None:
    matcher = Matcher(shelf(skill("one", *keywords)))

    for match in matcher.playbooks(text):
        assert match.hits
    near_misses(keywords, text)
