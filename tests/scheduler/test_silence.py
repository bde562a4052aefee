"""Nothing is not told, and news is told once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.home import shipped
from scheduler.silence import (
    MARKER,
    finding,
    has_tasks,
    is_told,
    is_trivial,
    phrases_of,
    without_token,
)

PHRASES = phrases_of((shipped("prompts") / "words_trivial.md").read_text())


def is_silent(reply: str) -> bool:
    return is_trivial(without_token(reply), PHRASES)


@pytest.mark.case("SC-17")
@pytest.mark.parametrize(
    "reply",
    [
        "HEARTBEAT_OK",
        "**HEARTBEAT_OK**",
        "`HEARTBEAT_OK`",
        "HEARTBEAT_OK.",
        '"HEARTBEAT_OK"',
        "HEARTBEAT_OK\n\nNothing needs attention.",
        "<b>HEARTBEAT_OK</b>",
        "heartbeat_ok",
        "  HEARTBEAT_OK 👍",
        "HEARTBEAT\\_OK",
        "> HEARTBEAT_OK",
        "**`Heartbeat_OK`** — nothing to report!",
        "“HEARTBEAT_OK”",
        "[HEARTBEAT_OK]",
        "HEARTBEAT_OK HEARTBEAT_OK",
        "",
        "👍",
        "✅ 🎉",
        "All clear.",
        "*Nothing to report.*",
    ],
)
def test_nothing_is_silent_however_it_is_wrapped(reply: str) -> None:
    assert is_silent(reply)


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        ("Dentist at 10. HEARTBEAT_OK", "Dentist at 10."),
        ("HEARTBEAT_OK\nThe backup failed", "The backup failed"),
        ("**HEARTBEAT_OK**\n\nRent is due today.", "Rent is due today."),
        ("The variable HEARTBEAT_OKAY is unset", "The variable HEARTBEAT_OKAY is unset"),
        ("No news from Ana: she flies at 9", "No news from Ana: she flies at 9"),
        ("Not OK", "Not OK"),
    ],
)
def test_what_is_said_beside_it_is_told(reply: str, told: str) -> None:
    assert without_token(reply) == told
    assert not is_silent(reply)


@given(st.text(max_size=60))
def test_no_text_breaks_it_and_taking_the_token_out_twice_changes_nothing_more(text: str) -> None:
    once = without_token(f"{text} HEARTBEAT_OK")

    assert without_token(once) == once
    assert isinstance(is_trivial(once, PHRASES), bool)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Disk is 91 % full (checked 10:00)", "disk is 91 % full (checked 10:30)"),
        ("Backup failed 20 minutes ago", "Backup failed 50 minutes ago"),
        ("Ana has not answered since 2026-05-01 08:00.", "Ana has not answered since 2026-05-02!"),
        ("Call Bob at 9 am", "Call Bob at 10 am"),
    ],
)
def test_the_same_finding_at_another_time_is_no_news(one: str, other: str) -> None:
    assert is_told(other, [finding(one)])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Disk is 91 % full", "Disk is 97 % full"),
        ("3 mails from Ana", "4 mails from Ana"),
        ("The dentist is tomorrow", "The rent is due"),
    ],
)
def test_another_finding_is_news(one: str, other: str) -> None:
    assert not is_told(other, [finding(one)])
    assert not is_told(other, [finding(one)], likeness=lambda a, b: 0.85)


def test_the_same_in_other_words_is_no_news_unless_a_number_differs() -> None:
    former = [finding("The disk is nearly full: 91 %")]

    assert is_told("Nearly full, the disk (91 %)", former, likeness=lambda a, b: 0.93)
    assert not is_told("Nearly full, the disk (92 %)", former, likeness=lambda a, b: 0.93)
    assert not is_told("Nearly full, the disk (91 %)", former, likeness=lambda a, b: 0.89)


@pytest.mark.case("SC-19")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "# HEARTBEAT.md\n\n# Keep empty to skip\n# Add tasks below\n",
        "# Heartbeat Tasks\n\n<!--\nmulti-line comment\nwith - a bullet inside\n-->\n\n"
        "## Active Tasks\n\n<!-- add here -->\n",
        "```markdown\n# only the template\n```\n\n## Related\n\n"
        "- [Heartbeat config](/docs/heartbeat)\n",
        "- [ ] \n- \n",
        "\ufeff# Heartbeat\r\n\r\n",
        "Some words on what this is.\n\n" + MARKER + "\n",
        "<!-- never closed\n- pay the rent",
        "~~~\n- pay the rent\n~~~\n---\n* \n1. \n2) [ ]\n",
        "https://example.org/docs\n<https://example.org>\n",
    ],
)
def test_a_list_without_tasks_has_none(text: str) -> None:
    assert not has_tasks(text)


@pytest.mark.parametrize(
    "text",
    [
        "- pay the rent on the 1st",
        "Look at the backups",
        f"# Title\n{MARKER}\n- [ ] call Ana",
        f"<!-- {MARKER} -->\nwater the plants",
        "- read https://example.org/status and say if it is down",
        "```\nexample\n```\n- feed the cat",
    ],
)
def test_a_list_with_a_task_has_one(text: str) -> None:
    assert has_tasks(text)


def test_the_shipped_list_is_empty() -> None:
    assert not has_tasks(shipped("HEARTBEAT.md").read_text())
