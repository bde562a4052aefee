"""The heartbeat under the real program: nothing to look at costs nothing, and what is found is told
once (cases SC-19, CO-01; SPEC §11)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.acceptance.rig import Home, Model, Telegram, until
from tests.acceptance.schedule_words import ANN, started
from tests.acceptance.test_kills import settled
from tests.acceptance.tool_words import reads


def looks(home: Home, telegram: Telegram, *, word: str = "skipped") -> None:
    """One look that somebody asks for, to its end; waits for one more row of it."""
    count = len(beats(home, word))
    telegram.says(ANN, "/heartbeat now")
    until(lambda: len(beats(home, word)) > count, about=lambda: str(beats(home)))


def beats(home: Home, word: str = "") -> list[str]:
    """What became of the looks so far."""
    rows = [str(outcome) for (outcome,) in home.ask_database("select outcome from heartbeats")]
    return [row for row in rows if word in row]


def writes(home: Home, text: str) -> None:
    (home.path / "workspace" / "HEARTBEAT.md").write_text(text)


@pytest.mark.case("SC-19")
def test_an_empty_or_missing_list_asks_no_model(
    home: Home, telegram: Telegram, model: Model
) -> None:
    home.approve(ANN)
    started(home)
    looks(home, telegram)
    said = reads(telegram, ANN, "No model was asked")
    (home.path / "workspace" / "HEARTBEAT.md").unlink()
    looks(home, telegram)

    assert "nothing to look at" in said
    assert (home.path / "workspace" / "HEARTBEAT.md").exists(), "written anew"
    assert model.user_texts() == []


def test_what_a_look_finds_is_told_once_and_rests_on_the_list_alone(
    home: Home, telegram: Telegram, model: Model
) -> None:
    home.approve(ANN)
    started(home)
    telegram.says(ANN, "something else")
    reads(telegram, ANN, "You said: something else")
    writes(home, "- look at the oven")
    for text in (
        "The oven is on (checked 10:00).",
        "The oven is on (checked 10:30).",
        "HEARTBEAT_OK",
    ):
        model.ask("say", text=text)
    looks(home, telegram, word="told")
    looks(home, telegram, word="silent")
    looks(home, telegram, word="silent")
    until(lambda: settled(home))

    asked = [str(request["messages"]) for request in model.ask("requests")][1:]
    assert len(asked) == 3, "one call a look"
    assert all("look at the oven" in one and "Now: " in one for one in asked)
    assert not [one for one in asked if "something else" in one]
    assert [text for text in telegram.shown(ANN) if text.startswith("The oven")] == [
        "The oven is on (checked 10:00)."
    ]


# --- many looks, by a clock that stands until it is moved -----------------------------------------

MORNING = datetime(2026, 6, 1, tzinfo=UTC)
