"""Nothing is not told, and whatever is said beside it is."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.settings.home import shipped
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
        "𝗛𝗘𝗔𝗥𝗧𝗕𝗘𝗔𝗧_OK",
        "\uff28\uff25\uff21\uff32\uff34\uff22\uff25\uff21\uff34\uff3f\uff2f\uff2b",
        "HEARTBEAT\u200b_OK",
        "HEARTBEAT-OK",
        "HEARTBEAT OK",
        "HEARTBEAT__OK",
        "Heartbeat: OK",
        "**Heartbeat:** OK.",
        "<!-- HEARTBEAT_OK -->",
        "&lt;HEARTBEAT_OK&gt;",
        "# HEARTBEAT_OK",
        "Status: HEARTBEAT_OK",
        "\u2705 HEARTBEAT_OK",
        "1. HEARTBEAT_OK",
        "+ HEARTBEAT_OK",
        "$HEARTBEAT_OK$",
        "```text\nHEARTBEAT_OK\n```",
        "<response>\nHEARTBEAT_OK\n</response>",
        "<!--\n\nHEARTBEAT_OK\n-->",
        '<p class="note">HEARTBEAT_OK</p>',
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
        ("HEARTBEAT_OK <Server 5 is down>", "<Server 5 is down>"),
        ("<Server 5 is down>", "<Server 5 is down>"),
        ("HEARTBEAT_OK -5 degrees", "-5 degrees"),
        ("HEARTBEAT_OK\n5", "5"),
        ("HEARTBEAT_OK.5 of them failed", ".5 of them failed"),
        ("HEARTBEAT_OK (Rent is due)", "(Rent is due)"),
        ("HEARTBEAT_OK **Rent** is due", "**Rent** is due"),
        ("**HEARTBEAT_OK: Rent** is due", "Rent** is due"),
        ("(HEARTBEAT_OK) Rent is due", "Rent is due"),
        ("<b>HEARTBEAT_OK</b> Rent is due", "Rent is due"),
        ("Rent is due. **HEARTBEAT_OK", "Rent is due."),
        ("Rent is due (HEARTBEAT-OK).", "Rent is due"),
        ("Rent is due \u2014 HEARTBEAT_OK", "Rent is due"),
        ("Rent is due\n\n\u2705 HEARTBEAT_OK", "Rent is due"),
        ("Rent\n\n- HEARTBEAT_OK\n\nDentist", "Rent\n\nDentist"),
        ("```\nHEARTBEAT_OK\n```\nRent is due", "Rent is due"),
        ("HEARTBEAT_OK\n```\ndf -h\n```", "```\ndf -h\n```"),
        ("- HEARTBEAT_OK but rent is due", "- but rent is due"),
        ("Is my heartbeat ok?", "Is my heartbeat ok?"),
        ("Heartbeat \u2260 OK", "Heartbeat \u2260 OK"),
        ("Heartbeat: not OK", "Heartbeat: not OK"),
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
    started = time.perf_counter()

    is_silent(text)
    has_tasks(text)

    assert time.perf_counter() - started < 5  # a guard: the square of its length takes minutes


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
