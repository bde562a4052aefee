"""Places in a chat where one person alone reads."""

from __future__ import annotations

import pytest

from bot.channels.base import aside_to, chat_of, is_for_all, reader_of, said_to_all
from bot.markup.command_text import NAMES
from memory.records.messages import Address, IncomingMessage

CHAT = Address(channel="slack", chat_id="T0LAB.C1")


def test_a_place_for_one_reader_reads_back_from_its_key() -> None:
    aside = aside_to(CHAT, "U0ANN")

    assert Address.parse(aside.key) == aside
    assert reader_of(aside) == "U0ANN"
    assert chat_of(aside) == CHAT


@pytest.mark.parametrize("thread", [None, "1714000000.000100", "7"])
def test_any_other_place_is_none(thread: str | None) -> None:
    place = Address(channel="slack", chat_id="T0LAB.C1", thread_id=thread)

    assert reader_of(place) == ""
    assert chat_of(place) is place


def test_a_command_is_about_the_chat_whoever_reads_the_answer() -> None:
    message = IncomingMessage(
        address=aside_to(CHAT, "U0ANN"), message_id="1", sender_id="T0LAB:U0ANN", text="/usage"
    )

    assert said_to_all(message).address == CHAT


def test_what_concerns_everybody_in_a_chat_is_for_all_of_them() -> None:
    alone = {name for name in NAMES if is_for_all(name, "")}
    with_words = {name for name in NAMES if is_for_all(name, "x")}

    assert alone == {"new", "stop", "compact", "restore", "undo"}
    assert with_words == alone | {"model", "remind", "job", "agents"}
    assert not is_for_all("unknown", "x")
