"""Nothing is not told, and whatever is said beside it is."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.settings.home import shipped
from scheduler.notify import findings as news
from scheduler.notify.findings import MARKER, has_tasks, is_trivial, phrases_of, without_token

PHRASES = phrases_of((shipped("prompts") / "words_trivial.md").read_text())


def is_silent(reply: str) -> bool:
    return is_trivial(without_token(reply), PHRASES)


@pytest.mark.case("SC-17")
@pytest.mark.parametrize(
    "reply",
    [
        "HEARTBEAT_OK",
        "**HEARTBEAT_OK**",
        "HEARTBEAT_OK\n\nNothing needs attention.",
        "<b>HEARTBEAT_OK</b>",
        "heartbeat_ok",
        "  HEARTBEAT_OK 👍",
        "HEARTBEAT\\_OK",
        "**`Heartbeat_OK`** — nothing to report!",
        "",
        "*Nothing to report.*",
        "𝗛𝗘𝗔𝗥𝗧𝗕𝗘𝗔𝗧_OK",
        "HEARTBEAT\u200b_OK",
        "HEARTBEAT OK",
        "**Heartbeat:** OK.",
        "<!-- HEARTBEAT_OK -->",
        "\u2705 HEARTBEAT_OK",
        "```text\nHEARTBEAT_OK\n```",
        "<response>\nHEARTBEAT_OK\n</response>",
        '<p class="note">HEARTBEAT_OK</p>',
    ],
)
def test_nothing_is_silent_however_it_is_wrapped(reply: str) -> None:
    assert is_silent(reply)


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        ("Dentist at 10. HEARTBEAT_OK", "Dentist at 10."),
        ("**HEARTBEAT_OK**\n\nRent is due today.", "Rent is due today."),
        ("The variable HEARTBEAT_OKAY is unset", "The variable HEARTBEAT_OKAY is unset"),
        ("No news from Ana: she flies at 9", "No news from Ana: she flies at 9"),
        ("HEARTBEAT_OK <Server 5 is down>", "<Server 5 is down>"),
        ("HEARTBEAT_OK\n5", "5"),
        ("HEARTBEAT_OK **Rent** is due", "**Rent** is due"),
        ("**HEARTBEAT_OK: Rent** is due", "Rent** is due"),
        ("Rent is due (HEARTBEAT-OK).", "Rent is due"),
        ("Rent\n\n- HEARTBEAT_OK\n\nDentist", "Rent\n\nDentist"),
        ("HEARTBEAT_OK\n```\ndf -h\n```", "```\ndf -h\n```"),
        ("Is my heartbeat ok?", "Is my heartbeat ok?"),
        ("Heartbeat \u2260 OK", "Heartbeat \u2260 OK"),
        ("MY_HEARTBEAT_OK and HEARTBEAT_OK_FLAG", "MY_HEARTBEAT_OK and HEARTBEAT_OK_FLAG"),
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
    "text",
    [
        "-" * 20_000 + " HEARTBEA x",
        "<b " * 7_000 + "HEARTBEAT_OK x",
        "HEARTBEAT_OK a " * 1_500,
        "(" * 10_000 + "HEARTBEAT_OK x" + ")" * 10_000,
        "`" * 20_000 + "x",
        "```\nHEARTBEAT_OK\n" * 1_000,
    ],
    ids=["dashes", "tags", "many", "nested", "fence", "fences"],
)
def test_a_very_long_answer_is_looked_at_in_time(text: str) -> None:
    # The square of its length would take minutes, longer than a test may run.
    is_silent(text)
    has_tasks(text)


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


NOON = datetime(2026, 11, 28, 12, 0, tzinfo=UTC)


def finding(text: str, now: datetime = NOON) -> str:
    return news.finding(text, now=now)


def is_told(
    text: str,
    former: list[str],
    now: datetime = NOON,
    likeness: Callable[[str, str], float] | None = None,
) -> bool:
    return news.is_told(text, former, now=now, likeness=likeness)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Rent is due", "- **Rent** is due!"),
        ("Disk is 91 % full (checked 10:00)", "disk is 91% full (checked 10:30)"),
        ("All paid but one (as of 10:05)", "All paid but one (as of 11:05)"),
        ("Rent is due. Last check: 10:05 UTC", "Rent is due. Last check: 11:05 UTC"),
        ("Rent is due (2026-11-28T10:05:31Z)", "Rent is due (2026-11-28T11:35:02.417Z)"),
        ("Disk is 91 % full (10:00)", "disk is 91 % full (11:00)."),
        ("Ana has not answered since 2026-05-01 08:00.", "Ana has not answered since 2026-05-02!"),
        ("Backup failed 20 minutes ago", "Backup failed 50 minutes ago"),
    ],
)
def test_the_same_looked_at_later_is_no_news(one: str, other: str) -> None:
    assert is_told(other, [finding(one)])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Disk is 91 % full", "Disk is 97 % full"),
        ("Mail from Ana about the rent", "Mail from Ben about the rent"),
        ("The dentist is tomorrow", "The rent is due"),
        ("Rent of 3 days is due", "Rent of 30 days is due"),
        ("Balance is 5 \u20ac", "Balance is \u22125 \u20ac"),
        ("Temperature is - 5", "Temperature is 5"),
        ("a>b", "a<b"),
        ("x is 10\u00b2", "x is 102"),
        ("Dentist at 13:00", "Dentist at 15:00"),
        ("Flight on 2026-11-28", "Flight on 2026-12-02"),
        ("Flight on 2026-11-30 08:00", "Flight on 2026-11-30 09:00"),
        ("Meeting in 5 minutes", "Meeting in 50 minutes"),
        ("Backup failed", "Backup failed 5 minutes ago"),
        ("All paid!", "All paid?"),
        ("The front door is open", "The front door is closed"),
        ("The backup \u2705", "The backup \u274c"),
    ],
)
def test_another_value_is_news_even_to_a_likeness_that_sees_none(one: str, other: str) -> None:
    assert not is_told(other, [finding(one)])
    assert not is_told(other, [finding(one)], likeness=lambda a, b: 0.89)


def test_a_time_of_looking_in_utc_is_over_wherever_its_reader_lives() -> None:
    morning = NOON.astimezone(ZoneInfo("America/New_York"))
    former = [finding("Disk is 91 % full (checked 11:35 UTC)", morning)]

    assert is_told("Disk is 91 % full (checked 11:50 UTC)", former, morning)
    assert not is_told("Disk is 91 % full (until 12:30 UTC)", former, morning)


def test_a_time_that_is_over_meanwhile_makes_no_news() -> None:
    former = [finding("Dentist at 13:00")]

    assert is_told("Dentist at 13:00", former, NOON + timedelta(hours=2))
    assert not is_told("Dentist at 16:00", former, NOON + timedelta(hours=2))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ana owes 5 and Ben 7", "Now Ana owes 7, and Ben 5"),
        ("The pipe is warm: 5 degrees", "It is warm in the pipe, -5 degrees"),
        ("The backup did work at night", "At night the backup did not work at all"),
        ("The front door is open", "The front door is closed"),
        ("The dentist is on Monday", "On Tuesday you see the dentist"),
    ],
)
def test_a_high_likeness_hides_no_changed_value(one: str, other: str) -> None:
    assert not is_told(other, [finding(one)], likeness=lambda a, b: 1.0)


def test_the_same_in_other_words_is_no_news_unless_a_number_differs() -> None:
    former = [finding("The disk is nearly full: 91 %")]

    assert is_told("Nearly full, the disk (91 %)", former, likeness=lambda a, b: 0.93)
    assert not is_told("Nearly full, the disk (92 %)", former, likeness=lambda a, b: 0.93)
    assert not is_told("Nearly full, the disk (91 %)", former, likeness=lambda a, b: 0.89)


@given(st.text(alphabet=st.characters() | st.sampled_from("*_`-. 1:<>\n"), max_size=40))
def test_every_text_is_the_same_as_itself(text: str) -> None:
    assert is_told(text, [finding(text)])


@given(
    st.integers(-999, 999),
    st.integers(-999, 999),
    st.sampled_from(["%", " \u20ac", " days", ""]),
)
def test_no_two_numbers_are_the_same(one: int, other: int, unit: str) -> None:
    former = finding(f"The value is {one}{unit} today")

    assert is_told(f"The value is {other}{unit} today", [former]) is (one == other)


@pytest.mark.parametrize("part", [".", "`", "1 h ", "checked at ", "- ", "heartbeat ", "9"])
def test_a_very_long_finding_is_compared_in_time(part: str) -> None:
    text = part * (20_000 // len(part))

    assert not is_told(f"{text} x", [finding(f"{text} 5")], likeness=lambda a, b: 1.0)
