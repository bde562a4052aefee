"""Keywords: which playbooks a message calls up, and which it does not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.skills.matcher import Almost, KeywordHit, Matcher, near_misses
from agent.skills.skill import SkillSchedule, SkillSet, SkillState
from tests.agent.skills.shelves import shelf, skill
from tests.thorough import rounds


def hits(keyword: str, text: str) -> bool:
    """Whether this keyword alone calls its playbook up."""
    return bool(Matcher(shelf(skill("one", keyword))).playbooks(text))


@pytest.mark.parametrize(
    ("keyword", "text"),
    [
        ("email", "email"),
        ("email", "Any new EMAILS?"),
        ("email", "the email's subject"),
        ("email", "the email’s subject"),
        ("email", "Emailed her, am emailing him"),
        ("email", "(email)"),
        ("email", "_email_ me"),
        ("email", "l'email de Paul"),
        ("box", "two boxes"),
        ("plan", "what have you planned"),
        ("plan", "planning the week"),
        ("schedule", "scheduling it"),
        ("schedule", "it is scheduled"),
        ("reply", "she replied"),
        ("summary", "two summaries"),
        ("Straße", "in der STRASSE"),
        ("café", "le café est fermé"),
        ("cafe\u0301", "un café"),
        ("ｅｍａｉｌ", "email"),
        ("почта", "Где моя ПОЧТА?"),
        ("हिन्दी", "मुझे हिन्दी आती है"),
    ],
)
def test_a_keyword_hits_whole_words_with_light_endings(keyword: str, text: str) -> None:
    assert hits(keyword, text)


@pytest.mark.parametrize(
    ("keyword", "text"),
    [
        ("file", "my profile"),
        ("file", "a filet of fish"),
        ("file", "my_file_list"),
        ("mail", "email"),
        ("art", "start the party"),
        ("plan", "a planner, a plant, an airplane"),
        ("cafe", "le café"),
        ("café", "the cafe"),
        ("meetings", "one meeting"),
        ("can", "I can't"),
        ("ill", "we'll see"),
        ("кот", "который час"),
        ("email", "e mail"),
    ],
)
def test_a_keyword_does_not_hit_a_part_of_a_word(keyword: str, text: str) -> None:
    assert not hits(keyword, text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("schedule meeting", True),
        ("Scheduling  \n meetings", True),
        ("schedule-meeting", True),
        ("schedule **meeting** now", True),
        ("schedule a meeting", False),
        ("meeting schedule", False),
        ("schedule, meeting", False),
        ("reschedule meeting", False),
        ("schedule meetinghouse", False),
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
        ("#todo", "#TODO: milk", True),
        ("#todo", "todo: milk", False),
        ("'s address", "what is Bob’s  address", True),
        ("https://", "see https://example.org", True),
        ("👍", "👍🏽", True),
        ("☎️", "☎ me", True),
        ("日历", "打开我的日历吧", True),
        ("미팅", "내일 미팅이 있어요", True),
        ("ประชุม", "นัดประชุมพรุ่งนี้", True),
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


@pytest.mark.parametrize(
    ("keyword", "text", "found", "almost"),
    [
        ("file", "my profile", "profile", Almost.PART),
        ("meetings", "one meeting", "meeting", Almost.LONGER),
        ("cafe", "le café", "café", Almost.ACCENT),
        ("schedule meeting", "schedule a meeting", "schedule … meeting", Almost.SCATTERED),
    ],
)
def test_near_misses_are_told(keyword: str, text: str, found: str, almost: Almost) -> None:
    [miss] = near_misses((keyword,), text)

    assert (miss.keyword, miss.found, miss.almost) == (keyword, found, almost)


@settings(max_examples=rounds(75, 300))
@given(st.lists(st.text(max_size=12), max_size=4), st.text(max_size=60))
def test_any_keywords_and_any_message_are_survived(keywords: list[str], text: str) -> None:
    matcher = Matcher(shelf(skill("one", *keywords)))

    for match in matcher.playbooks(text):
        assert match.hits
    near_misses(keywords, text)
