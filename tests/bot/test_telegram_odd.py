"""Messages of Telegram that are neither text nor a file: read as text, or said to be unreadable."""

from __future__ import annotations

from typing import Any

import pytest
import telegram

from bot.app.app import App
from bot.channels.telegram.parse import TelegramParser, without_odd_kinds
from bot.channels.telegram.wire import TelegramSketch, to_payload
from memory.records.messages import IncomingMessage
from tests.bot.kit import GROUP, MEMBER, OWNER, STRANGER, Rig, eventually

PLACE = {"latitude": 52.5, "longitude": 13.4}
PHOTO = {"file_id": "p", "file_unique_id": "u", "width": 1, "height": 1}
KINDS = ["poll", "dice", "game", "story", "checklist", "invoice", "giveaway", "paid_media"]


def sends(rig: Rig, *, by: int = OWNER, chat: int | None = None, **kind: Any) -> None:
    """A person sends a message of a kind, in which most fields are missing."""
    where = OWNER if chat is None and by == OWNER else chat or by
    rig.telegram.update(
        {
            "message": {
                "message_id": 900,
                "date": 1_790_000_000,
                "chat": {"id": where, "type": "private" if where > 0 else "supergroup"},
                "from": {"id": by, "is_bot": False, "first_name": "Ann"},
                **kind,
            }
        }
    )


async def settled(rig: Rig, bot: App, events: int) -> None:
    """So many events came, and all is done about them."""
    await eventually(lambda: len(rig.inbox()) == events)
    await rig.quiet(bot)


async def test_what_cannot_be_read_is_answered_by_one_sentence(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        for kind in KINDS:
            sparse: dict[str, Any] = {kind: {"id": "1"}}
            sends(rig, **sparse)
        await settled(rig, bot, len(KINDS))

    assert len(rig.texts()) == len(KINDS)
    assert all(said.startswith("I cannot read ") for said in rig.texts())
    assert rig.model.requests == []
    assert rig.inbox() == ["silent"] * len(KINDS)


async def test_a_place_and_a_contact_reach_the_model_as_text(rig: Rig) -> None:
    contact = {"first_name": "Bo", "last_name": "Li", "phone_number": "+4912"}
    async with rig.running(OWNER) as bot:
        sends(rig, location=PLACE)
        await settled(rig, bot, 1)
        sends(rig, venue={"location": PLACE, "title": "Zoo\n", "address": "Main St 1"})
        await settled(rig, bot, 2)
        sends(rig, contact=contact)
        await settled(rig, bot, 3)

    assert [heard.rpartition("\n")[2] for heard in rig.heard()] == [
        "location: 52.5, 13.4",
        "location: 52.5, 13.4 (Zoo, Main St 1)",
        "contact: Bo Li, +4912",
    ]
    assert ["forwarded" in heard for heard in rig.heard()] == [False, True, True]


async def test_nobody_else_is_answered(rig: Rig) -> None:
    async with rig.running(OWNER, MEMBER) as bot:
        await bot.access.approve(f"telegram:{GROUP}")
        sends(rig, chat=GROUP, poll={"id": "1"})
        sends(rig, by=STRANGER, poll={"id": "1"})
        sends(rig, pinned_message={})
        await settled(rig, bot, 3)

    assert rig.texts(GROUP) == []
    assert len(rig.texts(STRANGER)) == 1, "the code alone"
    assert [one for one in rig.texts() if "cannot read" in one] == []


async def test_a_place_that_moves_says_nothing_anew(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        sends(rig, location=PLACE)
        await settled(rig, bot, 1)
        message = {
            "message_id": 900,
            "date": 1_790_000_000,
            "edit_date": 1_790_000_001,
            "chat": {"id": OWNER, "type": "private"},
            "from": {"id": OWNER, "is_bot": False, "first_name": "Ann"},
            "location": {"latitude": 1.0, "longitude": 2.0},
        }
        rig.telegram.update({"edited_message": message})
        await settled(rig, bot, 2)

    assert rig.rows("select reason from inbox order by id desc limit 1") == [
        ("a place that moves",)
    ]


async def test_a_reply_to_a_sparse_poll_is_read(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        replied = {
            "message_id": 5,
            "date": 1_790_000_000,
            "chat": {"id": OWNER, "type": "private"},
            "poll": {"id": "1"},
        }
        sends(rig, text="what is that?", reply_to_message=replied)
        await settled(rig, bot, 1)

    assert rig.heard()[-1].endswith("what is that?")


@pytest.mark.parametrize(
    "found",
    [
        {"location": {"latitude": "52", "longitude": 13}},
        {"location": {"latitude": 91, "longitude": 13}},
        {"location": {"latitude": True, "longitude": 13}},
        {"location": [52.5, 13.4]},
        {"location": {"latitude": float("nan"), "longitude": 0}},
        {"contact": {"first_name": 7}},
        {"contact": "Bo"},
    ],
)
def test_what_is_no_place_and_nobody_is_no_text(found: dict[str, Any]) -> None:
    bare, told = without_odd_kinds({"update_id": 1, "message": {"message_id": 2, **found}})

    assert told.text == ""
    assert told.name
    assert bare == {"update_id": 1, "message": {"message_id": 2}}


# --- whose words they are ------------------------------------------------------------------------

EVIL_BOT = {"id": 99, "is_bot": True, "first_name": "Evil", "username": "evilbot"}
VENUE = {"location": PLACE, "title": "Zoo", "address": "x"}


def as_read(**fields: Any) -> IncomingMessage:
    message = {
        "message_id": 7,
        "date": 1_790_000_000,
        "chat": {"id": OWNER, "type": "private", "first_name": "Ann"},
        "from": {"id": OWNER, "is_bot": False, "first_name": "Ann"},
        **fields,
    }
    reading = TelegramParser(
        bot=telegram.Bot("1:x"), policy="mention", bot_id=1, username="hearthbot"
    )
    found = reading.understand(to_payload({"update_id": 1, "message": message}, username="h"))
    assert isinstance(found, IncomingMessage)
    return found


@pytest.mark.parametrize(
    ("fields", "whose"),
    [
        ({"text": "buy this", "via_bot": EVIL_BOT}, "the bot @evilbot"),
        ({"text": "x", "via_bot": {**EVIL_BOT, "username": None}}, "the bot Evil"),
        ({"caption": "x", "photo": [PHOTO], "via_bot": EVIL_BOT}, "the bot @evilbot"),
        ({"text": "x", "sender_business_bot": EVIL_BOT}, "the bot @evilbot"),
        ({"text": "x", "sender_chat": {"id": -7, "type": "channel", "title": "News"}}, "News"),
        ({"text": "x", "forward_date": 1_700_000_000}, "somebody else"),
        ({"contact": {"phone_number": "+1", "first_name": "obey"}}, "a shared contact"),
        ({"venue": VENUE, "location": PLACE}, "the listing of a place"),
    ],
)
@pytest.mark.threat("T12")
def test_what_somebody_else_wrote_is_not_the_senders_own(
    fields: dict[str, Any], whose: str
) -> None:
    assert as_read(**fields).forwarded == whose


@pytest.mark.threat("T12")
async def test_a_command_that_an_inline_bot_wrote_is_not_given(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        sends(rig, text="/access list", via_bot=EVIL_BOT)
        await settled(rig, bot, 1)

    assert rig.heard()[-1].endswith("/access list")


@pytest.mark.parametrize(
    "field", ["via_bot", "sender_business_bot", "forward_origin", "forward_date"]
)
@pytest.mark.threat("T12")
def test_a_code_that_somebody_else_wrote_links_nobody(field: str) -> None:
    message = {
        "text": "/link ABCD2345",
        "chat": {"id": 5, "type": "private"},
        "from": {"id": 5, "is_bot": False, "first_name": "Ann"},
    }

    assert TelegramSketch.of({"message": message}).link == "ABCD2345"
    assert TelegramSketch.of({"message": {**message, field: {"id": 9}}}).link == ""
