"""Files and reactions out by the real library against the stand-in: each kind, each refusal, each
doubt; and the whole way from a model's call to the chat."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from telegram.constants import ReactionEmoji

from bot.channels.base import (
    DeliveryRefused,
    FileOut,
    MessagePart,
    SentMessage,
)
from bot.channels.telegram.channel import TEXT_UNITS_MAX, TelegramChannel
from bot.channels.telegram.send import CAPTION_UNITS_MAX, captioned
from bot.lab.telegram import FakeTelegram, flood, refusal
from bot.markup.render import utf16_length
from bot.settings.schema.values import REACTIONS, telegram_reaction
from memory.records.messages import Address, IncomingMessage
from scheduler.clock.machine import SystemClock
from tests.bot.files_kit import png
from tests.bot.kit import GROUP, MEMBER, OWNER, TOKEN, Rig, eventually, telegram_settings

CHAT = Address(channel="telegram", chat_id="5")
BLANK = MessagePart(markup="", source="")
BOLD = MessagePart(markup="<b>Here</b>", source="**Here**")


@asynccontextmanager
async def channel(
    timeout_s: float = 5.0, ack_reaction: str = ""
) -> AsyncIterator[tuple[TelegramChannel, FakeTelegram]]:
    async with FakeTelegram(TOKEN) as fake:
        settings = telegram_settings(
            base_url=fake.base_url, send_timeout_s=timeout_s, ack_reaction=ack_reaction
        )
        async with TelegramChannel(settings, clock=SystemClock()) as made:
            yield made, fake


def file(name: str, content: bytes) -> FileOut:
    return FileOut(name=name, path=name, content=content)


# --- kinds -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "is_photo"),
    [
        ("plan.pdf", b"%PDF-1.7", False),
        ("picture.png", png(), True),
        ("no-picture.png", b"only called so", False),
        ("picture.txt", png(), True),
        ("wide.png", png(5_000, 100), False),
        ("huge.png", png(6_000, 5_000), False),
        ("heavy.png", png(more=10_000_000), False),
    ],
)
async def test_a_picture_that_telegram_shows_goes_as_one_and_all_else_as_a_document(
    name: str, content: bytes, is_photo: bool
) -> None:
    async with channel() as (telegram, fake):
        sent = await telegram.send_file(CHAT, file(name, content), BOLD)

        [seen] = fake.chat(5)
        assert sent == SentMessage(message_id=str(seen.message_id))
        assert (seen.is_photo, seen.file_name) == (is_photo, None if is_photo else name)
        assert seen.file_id is not None
        assert fake.file(seen.file_id) == content
        assert seen.text == "Here"
        assert [entity["type"] for entity in seen.entities] == ["bold"]


async def test_a_picture_that_telegram_does_not_take_goes_as_a_document() -> None:
    async with channel() as (telegram, fake):
        fake.fault("sendPhoto", action=refusal(400, "Bad Request: IMAGE_PROCESS_FAILED"))

        sent = await telegram.send_file(CHAT, file("p.png", png()), BLANK)

        assert isinstance(sent, SentMessage)
        assert [seen.file_name for seen in fake.chat(5)] == ["p.png"]


async def test_a_topic_and_a_name_of_any_letters_are_kept() -> None:
    async with channel() as (telegram, fake):
        fake.message(chat_id=GROUP, user_id=5, text="x", thread_id=7)
        topic = Address(channel="telegram", chat_id=str(GROUP), thread_id="7")

        await telegram.send_file(topic, file('Übersicht "März".csv', b"a,b"), BLANK)

        seen = fake.chat(GROUP)[-1]
        assert (seen.thread_id, seen.text) == (7, "")
        assert seen.file_name is not None
        assert "bersicht" in seen.file_name


# --- captions ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("", 0),
        ("short", 0),
        ("word " * 250, 1),
        ("word " * 1_000, 1),
        ("👍" * 600, 1),
        ("word " * 1_100 + "end", 2),
    ],
)
def test_what_finds_no_place_in_a_caption_is_as_few_messages_as_can_be(
    text: str, messages: int
) -> None:
    first, *rest = captioned(text, limit=TEXT_UNITS_MAX)

    assert utf16_length(first.source.strip()) <= CAPTION_UNITS_MAX
    assert len(rest) == messages
    assert "".join(part.source for part in (first, *rest)).split() == text.split()


@settings(max_examples=40)
@given(st.text(alphabet="ab *`_\n#>-👍", max_size=2_600))
def test_no_word_of_a_caption_is_lost(text: str) -> None:
    parts = captioned(text, limit=TEXT_UNITS_MAX)

    assert "".join(part.source for part in parts).split() == (
        text.split() if parts[0].source else []
    )


# --- what becomes of it --------------------------------------------------------------------------


async def test_a_file_over_the_limit_is_refused_before_a_byte_of_it_goes() -> None:
    async with channel() as (telegram, fake):
        sent = await telegram.send_file(CHAT, file("big.bin", bytes(50_000_001)), BLANK)

        assert sent == DeliveryRefused(
            reason="Telegram takes no file of more than 50 MB from a bot"
        )
        assert not fake.calls("sendDocument")


@pytest.mark.parametrize(
    ("status", "description", "says"),
    [
        (413, "Request Entity Too Large", "no file of more than 50 MB"),
        (400, "Bad Request: not enough rights to send documents to the chat", "let me send files"),
        (403, "Forbidden: bot was blocked by the user", "let me send files"),
        (400, "Bad Request: chat not found", "Telegram refuses it"),
    ],
)
async def test_a_refusal_is_the_end_of_a_sentence(status: int, description: str, says: str) -> None:
    async with channel() as (telegram, fake):
        fake.fault("sendDocument", action=refusal(status, description))

        sent = await telegram.send_file(CHAT, file("a.txt", b"x"), BLANK)

        assert isinstance(sent, DeliveryRefused)
        assert says in sent.reason


# --- reactions -----------------------------------------------------------------------------------


def test_the_list_of_reactions_is_that_of_the_library() -> None:
    theirs = {emoji.value.replace("\ufe0f", "") for emoji in ReactionEmoji}

    assert set(REACTIONS) == theirs


@pytest.mark.parametrize(
    ("emoji", "shown"),
    [
        ("👍", "👍"),
        ("👍🏽", "👍"),
        ("❤️", "❤"),
        ("✅", "👌"),
        ("😂", "🤣"),
        (" 👀 ", "👀"),
        ("🦖", ""),
        ("yes", ""),
        ("", ""),
    ],
)
def test_an_emoji_is_the_nearest_that_telegram_has(emoji: str, shown: str) -> None:
    assert telegram_reaction(emoji) == shown


@pytest.mark.parametrize(
    ("message_id", "emoji", "says"),
    [
        ("1", "🦖", "Telegram has no reaction '🦖'; it has 👍"),
        ("x", "👍", "no message 'x'"),
        ("²", "👍", "no message"),
        ("77", "👍", "Message to react not found"),
    ],
)
async def test_a_reaction_that_is_not_taken_is_a_sentence(
    message_id: str, emoji: str, says: str
) -> None:
    async with channel() as (telegram, fake):
        fake.message(chat_id=5, text="x")

        done = await telegram.react(CHAT, message_id, emoji)

        assert isinstance(done, DeliveryRefused)
        assert says in done.reason


async def test_a_message_is_acknowledged_only_where_it_is_wished_and_trouble_is_no_matter() -> None:
    message = IncomingMessage(address=CHAT, message_id="1", sender_id="5", text="x")
    async with channel() as (telegram, fake):
        fake.message(chat_id=5, text="x")
        await telegram.acknowledge(message)
        assert not fake.calls("setMessageReaction")
    async with channel(ack_reaction="👀") as (telegram, fake):
        fake.message(chat_id=5, text="x")
        fake.fault("setMessageReaction", action=flood(3))
        await telegram.acknowledge(message)
        await telegram.acknowledge(message)
        assert fake.chat(5)[0].reaction == ({"type": "emoji", "emoji": "👀"},)


# --- the whole way -------------------------------------------------------------------------------


async def test_a_file_and_a_reaction_go_from_a_call_of_the_model_to_the_chat(rig: Rig) -> None:
    rig.model.calls_together(
        ("send_file", {"path": "plan.txt", "caption": "The **plan**"}), ("react", {"emoji": "👍"})
    )
    rig.model.say("There it is.")
    async with rig.running(OWNER) as bot:
        (rig.home.workspace / "plan.txt").write_text("at ten")

        asked = rig.says("send me the plan and give it a thumbs up")
        await rig.reads("The plan", "There it is.")
        await rig.quiet(bot)

        sent, _ = rig.seen()
        assert sent.file_name == "plan.txt"
        assert sent.file_id is not None
        assert rig.telegram.file(sent.file_id) == b"at ten"
        [said] = [one for one in rig.telegram.chat(OWNER) if one.message_id == asked]
        assert said.reaction == ({"type": "emoji", "emoji": "👍"},)
        told = [m["content"] for m in rig.model.requests[-1]["messages"] if m["role"] == "tool"]
        assert told == [
            "plan.txt (6 bytes) is on its way to this chat.",
            "The reaction 👍 stands under the message.",
        ]
        assert rig.outbox() == ["sent", "sent"]
        assert not list((rig.home.data / "outgoing").iterdir())


@pytest.mark.case("CH-05")
async def test_a_file_that_was_committed_before_a_kill_is_sent_once_after_it(rig: Rig) -> None:
    rig.model.call("send_file", {"path": "plan.txt"})
    rig.model.say("Sent.")
    rig.telegram.fault("sendDocument", action=refusal(500, "Internal Server Error"), times=None)
    async with rig.running(OWNER, killed=True):
        (rig.home.workspace / "plan.txt").write_text("at ten")
        rig.says("send me the plan")
        await eventually(lambda: rig.telegram.calls("sendDocument"))
    (rig.home.workspace / "plan.txt").unlink()
    rig.telegram.clear_faults()

    async with rig.running(hurry=50) as bot:
        await eventually(lambda: rig.wrote(2))
        await rig.quiet(bot)

        assert [seen.file_name for seen in rig.seen() if seen.file_id] == ["plan.txt"]
        assert not list((rig.home.data / "outgoing").iterdir())


@pytest.mark.case("SE-09")
async def test_what_may_not_leave_does_not(rig: Rig) -> None:
    """Threats T10 and T12: secrets, links, other people's chats."""
    refused = ("../config.toml", "link.txt", ".env", "key.txt")
    for path in refused:
        rig.model.call("send_file", {"path": path})
    rig.model.call("send_file", {"path": "plan.txt", "chat": f"telegram:{MEMBER}"})
    rig.model.say("Only the plan.")
    async with rig.running(OWNER, MEMBER) as bot:
        workspace = rig.home.workspace
        (workspace / "plan.txt").write_text("at ten")
        (workspace / "link.txt").symlink_to(rig.home.database)
        (workspace / ".env").write_text("A=1")
        (workspace / "key.txt").write_text("the key is lab-key-of-the-test")

        rig.says("send me all of it")
        await rig.reads("", "Only the plan.")
        await rig.quiet(bot)

        assert [seen.file_name for seen in rig.seen() if seen.file_id] == ["plan.txt"]
        assert rig.seen(MEMBER) == []
