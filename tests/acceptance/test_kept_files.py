"""Notes and steering files are kept like facts: what takes most of one away is told, and is put
back by `/undo`, byte for byte (SPEC §6, §9)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.acceptance.memory_words import QUICK, asks, holders
from tests.acceptance.rig import Home, Telegram, until
from tests.acceptance.tool_words import ONCE, calling, only_card, reads

ANN = 7
LINES = [f"- Ann keeps thing {number} in box {number}. " for number in range(1, 41)]
WHOLE = "# About Ann\r\n" + "\n".join(LINES)
"""Mixed ends of lines, blanks at their ends, and none at the end: nothing of it may change."""


def laid(home: Home, path: str, text: str = WHOLE) -> Path:
    file = home.path / "workspace" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode())
    return file


@pytest.fixture
def kept(home: Home) -> Home:
    home.env |= QUICK
    home.approve(ANN)
    return home


def test_notes_that_are_wiped_are_told_of_and_put_back_also_after_a_kill(
    kept: Home, telegram: Telegram
) -> None:
    path = "memory/202607/20260731.md"
    file = laid(kept, path)
    bot = kept.start()

    answer = asks(telegram, ANN, calling("write_file", say="wipe", path=path, content=""))
    wiped = file.read_bytes()
    # A kill in the middle of the send would have the answer come again.
    until(lambda: kept.ask_database("select count(*) from outbox where ended_ms is null") == [(0,)])
    bot.kill()
    kept.start()
    undone = asks(telegram, ANN, "/undo")
    again = asks(telegram, ANN, "/undo")

    assert wiped == b""
    assert answer.splitlines()[-1] == (
        f"{path} lost 41 of its 41 lines (# About Ann, - Ann keeps thing 1 in box 1., 39 more). "
        "/undo puts it back."
    )
    assert file.read_bytes() == WHOLE.encode()
    assert f"{path} says what it said before again (41 lines)" in undone
    assert "cannot take back" not in undone
    assert "do not go further back" in again


def test_what_counts_is_what_most_of_a_file_lost_by_the_end_of_a_turn(
    kept: Home, telegram: Telegram
) -> None:
    path = "memory/MEMORY.md"
    kept.start()

    def does(say: str, *calls: tuple[str, dict[str, str]]) -> str:
        lines = [f"!call {name} {json.dumps(given)}" for name, given in calls]
        return asks(telegram, ANN, "\n".join([say, *lines]))

    def takes(lines: Sequence[str]) -> tuple[str, dict[str, str]]:
        return "edit_file", {"path": path, "old": "\n".join(lines), "new": ""}

    file = laid(kept, path, "\n".join(LINES))
    half = does("half", takes(LINES[:20]))
    more = does("more", takes(LINES[20:31]))
    asks(telegram, ANN, "/undo")
    after_undo = file.read_text()

    laid(kept, path, "\n".join(LINES))
    note = {"text": "Ann moved house.", "where": "long-term"}
    slices = [takes(one) for one in (LINES[:15], LINES[15:27], LINES[27:34])]
    sliced = does("slices", *slices, ("append_notes", note))
    left = file.read_text()
    asks(telegram, ANN, "/undo")
    whole = file.read_text()

    # What is there again at the end of the turn is no loss.
    wiping = {"path": path, "content": ""}
    anew = {"path": path, "content": "\n".join(reversed(LINES))}
    there_again = does("sort", ("write_file", wiping), ("write_file", anew))

    assert "lost" not in half
    assert "lost 11 of its 20 lines" in more.splitlines()[-1]
    assert after_undo == "\n" + "\n".join(LINES[20:])
    assert "Ann moved house." in left
    assert "lost 34 of its 40 lines" in sliced.splitlines()[-1]
    assert whole == "\n".join(LINES)
    assert "lost 40" not in there_again


def test_of_a_steering_file_the_card_says_what_goes_and_it_is_put_back(
    kept: Home, telegram: Telegram
) -> None:
    file = laid(kept, "SOUL.md", "Be kind.\nBe brief.\nNever shout.\n")
    kept.start()
    telegram.says(ANN, calling("write_file", say="soul", path="SOUL.md", content="Shout."))

    card = only_card(telegram, ANN)
    telegram.press(ANN, card, ONCE)
    answer = reads(telegram, ANN, "| soul")
    undone = asks(telegram, ANN, "/undo")

    assert (
        "Takes away 3 of its 3 lines, which an undo puts back:⏎Be kind.⏎Be brief.⏎Never shout."
        in card.text
    )
    assert "lost" not in answer
    assert "SOUL.md says what it said before again (3 lines)" in undone
    assert file.read_text() == "Be kind.\nBe brief.\nNever shout.\n"


def test_a_file_that_was_changed_since_is_left_and_that_is_said(
    kept: Home, telegram: Telegram
) -> None:
    path = "memory/MEMORY.md"
    file = laid(kept, path)
    kept.start()
    asks(telegram, ANN, calling("write_file", say="wipe", path=path, content=""))
    file.write_text("Written by hand.")

    undone = asks(telegram, ANN, "/undo")

    assert f"{path} has been changed since, so it stays as it is" in undone
    assert file.read_text() == "Written by hand."


def test_what_is_forgotten_is_in_no_kept_text_and_no_undo_brings_it_back(
    kept: Home, telegram: Telegram
) -> None:
    path = "memory/MEMORY.md"
    file = laid(kept, path, "The key is under the zinc tub.\nAnn likes peas.\n")
    kept.start()
    asks(telegram, ANN, calling("write_file", say="wipe", path=path, content="Nothing yet."))
    was_held = holders(kept, "zinc tub")
    telegram.says(ANN, "/memory forget zinc tub")
    (card,) = until(lambda: telegram.cards(ANN))
    telegram.press(ANN, card, "Forget all of it")
    until(lambda: "Forgotten" in "".join(telegram.shown(ANN)))
    until(lambda: not (kept.path / "data" / "forgetting.json").exists())

    undone = asks(telegram, ANN, "/undo")

    assert was_held != []
    assert holders(kept, "zinc tub") == []
    assert "a file was written" in undone
    assert file.read_text() == "Nothing yet."
