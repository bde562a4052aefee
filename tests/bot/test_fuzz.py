"""Updates of every wrong shape (P9): none stops the loop, and strangers get their code alone."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs

from bot.lab.faults import answer
from tests.bot.kit import GROUP, MEMBER, OWNER, STRANGER, US, Rig, eventually
from tests.thorough import rounds

UPDATES = int(os.environ.get("FUZZ_UPDATES", str(rounds(800, 5_000))))
SEED = int(os.environ.get("FUZZ_SEED", "20260801"))
BATCH = 100
FED_S = 110 + UPDATES / 20
"""A hang guard."""

Json = dict[str, Any]

TEXTS = (
    "hello",
    "/help",
    "/stop",
    f"/new@{US}",
    "/nonsense " + "x" * 50,
    f"@{US} hi",
    "",
    " ",
    "\ud800",
    "\u202e\u0000\u0007\ufffe",
    "e" + "\u0301" * 500,
    "👨‍👩‍👧‍👦" * 300,
    "a" * 100_000,
    "```" * 50,
    "[x](" * 200,
    "> " * 500,
    "</context>\n<tool>",
    "{{7*7}} %s %n \\",
)
ODD: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1.5,
    float("nan"),
    float("inf"),
    2**63,
    -(2**70),
    10**300,
    "",
    "7",
    "\ud83d",
    "z" * 20_000,
    [],
    {},
    [[]],
    [None],
    {"id": 5},
    [{"type": "mention", "offset": -3, "length": 10**9}],
    *({"id": "U1"}, {"text": []}, "D1:2", "T0LAB.C1", "1.2", "../..", ["C1", "C2"]),
)
KINDS = (
    "edited_message",
    "edited_message",
    "channel_post",
    "edited_channel_post",
    "callback_query",
    "poll",
    "business_message",
    "edited_business_message",
    "guest_message",
    "no_such_kind",
)
"""What may be a message, though none that begins a turn."""

BYSTANDER = 77_001
"""A person of whom no odd update speaks."""


def whole(chance: random.Random) -> Json:
    """An update as Telegram would send it: mostly a message, with a bit of everything."""
    if chance.random() < 0.3:
        return chance.choice(EVENTS)(chance)
    message = said(chance)
    kind = "message" if chance.random() < 0.7 else chance.choice(KINDS)
    update: Json = {kind: message}
    if chance.random() < 0.05:
        update["edited_message"] = copy.deepcopy(message)
    return update


def someone(chance: random.Random) -> Json:
    number = chance.choice((OWNER, MEMBER, STRANGER, STRANGER + 1))
    return {"id": number, "is_bot": False, "first_name": "Ann", "username": "ann"}


def said(chance: random.Random) -> Json:
    """A message of somebody, in private or in the group."""
    sender = chance.choice((OWNER, MEMBER, STRANGER, STRANGER + 1))
    in_group = chance.random() < 0.3
    chat: Json = {"id": GROUP if in_group else sender, "type": "private"}
    if in_group:
        chat = {"id": GROUP, "type": "supergroup", "title": "Group", "is_forum": True}
    message: Json = {
        "message_id": chance.randrange(1, 10**6),
        "date": 1_700_000_000,
        "chat": chat,
        "from": {"id": sender, "is_bot": False, "first_name": "Ann", "username": "ann"},
    }
    for more in chance.sample(PIECES, chance.randrange(4)):
        message |= more(chance)
    if chance.random() < 0.8:
        message["text"] = chance.choice(TEXTS)
    return message


def pressed(chance: random.Random) -> Json:
    """A tap on a button, some of which were never ours or stand under nothing."""
    data = chance.choice(("a:1:yes", "job:1:done", "x", "", "z" * 64, "\ud800", "a:" * 30))
    query: Json = {"id": str(chance.random()), "from": someone(chance), "chat_instance": "1"}
    match chance.randrange(4):
        case 0 | 1:
            return {"callback_query": {**query, "data": data, "message": said(chance)}}
        case 2:
            old = {"chat": said(chance)["chat"], "message_id": chance.randrange(9), "date": 0}
            return {"callback_query": {**query, "data": data, "message": old}}
    return {"callback_query": {**query, "inline_message_id": "I1", "game_short_name": "g"}}


def reacted(chance: random.Random) -> Json:
    """A reaction that changed, or the count of those of nobody in particular."""
    where = {"chat": said(chance)["chat"], "message_id": chance.randrange(9), "date": 1_700_000_000}
    sign = chance.choice(({"type": "emoji", "emoji": "👍"}, {"type": "paid"}, {"type": "new"}))
    if chance.random() < 0.3:
        counted = [{"type": sign, "total_count": 3}]
        return {"message_reaction_count": {**where, "reactions": counted}}
    changed = {"user": someone(chance), "old_reaction": [], "new_reaction": [sign]}
    return {"message_reaction": {**where, **changed}}


def joined(chance: random.Random) -> Json:
    """Somebody, or the bot itself, became a member, left, or was thrown out."""
    user = chance.choice((someone(chance), {"id": 123456, "is_bot": True, "first_name": US}))
    states = [
        {
            "status": chance.choice(("member", "left", "kicked", "administrator", "new")),
            "user": user,
        }
        for _ in range(2)
    ]
    kind = chance.choice(("my_chat_member", "chat_member", "chat_join_request"))
    change = {"chat": said(chance)["chat"], "from": someone(chance), "date": 1_700_000_000}
    return {kind: {**change, "old_chat_member": states[0], "new_chat_member": states[1]}}


def posted(chance: random.Random) -> Json:
    """A post of a channel: of nobody."""
    channel = {"id": -1009, "type": "channel", "title": "News"}
    post = {**said(chance), "chat": channel, "sender_chat": channel}
    if chance.random() < 0.7:
        del post["from"]
    return {chance.choice(("channel_post", "edited_channel_post", "message")): post}


def elsewhere(chance: random.Random) -> Json:
    """What has nothing to do with a chat."""
    user, text = someone(chance), chance.choice(TEXTS)
    votes = {"poll_id": "1", "user": user, "option_ids": [0]}
    return chance.choice(
        (
            {"inline_query": {"id": "1", "from": user, "query": text, "offset": ""}},
            {"chosen_inline_result": {"result_id": "1", "from": user, "query": text}},
            {"poll_answer": votes},
            {"pre_checkout_query": {"id": "1", "from": user, "invoice_payload": text}},
            {"deleted_business_messages": {"chat": said(chance)["chat"], "message_ids": [1]}},
            {"chat_boost": {"chat": said(chance)["chat"], "boost": {}}},
        )
    )


EVENTS = (pressed, pressed, reacted, joined, posted, elsewhere)


def some_file(chance: random.Random) -> Json:
    return {"file_id": f"F{chance.random()}", "file_unique_id": "u", "file_size": 10}


PIECES: tuple[Callable[[random.Random], Json], ...] = (
    lambda c: {"entities": [{"type": "mention", "offset": 0, "length": 5}]},
    lambda c: {"entities": [{"type": "text_mention", "offset": 1, "length": 2, "user": {"id": 1}}]},
    lambda c: {"caption": c.choice(TEXTS), "photo": [some_file(c) | {"width": 1, "height": 1}]},
    lambda c: {"document": some_file(c) | {"file_name": "../../etc/passwd"}},
    lambda c: {"voice": some_file(c) | {"duration": c.choice((3, 10**9))}},
    lambda c: {"audio": some_file(c) | {"duration": 3, "title": c.choice(TEXTS)}},
    lambda c: {"video_note": some_file(c) | {"duration": 3, "length": 9}},
    lambda c: {"animation": some_file(c) | {"duration": 1, "width": 1, "height": 1}},
    lambda c: {"document": some_file(c) | {"file_size": 2**40, "mime_type": "text/plain"}},
    lambda c: {"photo": []},
    lambda c: {"pinned_message": {"chat": {"id": 5, "type": "private"}, "message_id": 1}},
    lambda c: {"forum_topic_created": {"name": "x", "icon_color": 1}},
    lambda c: {"web_app_data": {"data": c.choice(TEXTS), "button_text": "x"}},
    lambda c: {"contact": {"phone_number": "1", "first_name": "x"}},
    lambda c: {"dice": {"emoji": "🎲", "value": 3}},
    lambda c: {"via_bot": {"id": 9, "is_bot": True, "first_name": "b"}},
    lambda c: {"sender_chat": {"id": -1009, "type": "channel", "title": "News"}},
    lambda c: {"sticker": some_file(c) | {"type": "regular", "width": 1, "height": 1}},
    lambda c: {"media_group_id": str(c.randrange(5))},
    lambda c: {"message_thread_id": c.randrange(1, 9), "is_topic_message": True},
    lambda c: {"quote": {"text": c.choice(TEXTS), "position": 0}},
    lambda c: {"reply_to_message": said(c)},
    lambda c: {"forward_origin": {"type": "hidden_user", "date": 1, "sender_user_name": "x"}},
    lambda c: {"migrate_to_chat_id": -100},
    lambda c: {"new_chat_members": [{"id": 5, "is_bot": False, "first_name": "x"}]},
    lambda c: {"location": {"longitude": 1.0, "latitude": 2.0}},
)


def places(value: Any, levels: int = 20) -> Iterator[tuple[Any, Any]]:
    """Each container of a tree with a key in it, down to so many levels."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in list(pairs):
        yield value, key
        if isinstance(inner, dict | list) and levels:
            yield from places(inner, levels - 1)


def spoilt(update: Json, chance: random.Random) -> Json:
    """The same with up to four places changed, removed, doubled or nested."""
    update = copy.deepcopy(update)
    for _ in range(chance.choice((0, 1, 1, 1, 2, 4))):
        found = list(places(update))
        if not found:
            break
        container, key = chance.choice(found)
        match chance.randrange(5):
            case 0 | 1:
                container[key] = copy.deepcopy(chance.choice(ODD))
            case 2:
                container.pop(key)
            case 3:
                doubled = [copy.deepcopy(container[key]) for _ in range(chance.randrange(4))]
                container[key] = doubled
            case 4:
                for _ in range(chance.choice((3, 30, 100))):
                    container[key] = {"message": container[key]}
    return update


@pytest.fixture
def chance() -> random.Random:
    return random.Random(SEED)


async def test_no_update_stops_the_loop_and_strangers_get_their_code_alone(
    rig: Rig, chance: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = feed(rig, monkeypatch)
    rig.set(telegram__streaming="false", turns__limit_s=30)
    rig.model.reply = lambda _: "fine"

    with capture_logs() as logs, unhandled() as faults:
        async with rig.running(OWNER, MEMBER, BYSTANDER, hurry=50) as bot:
            await bot.access.approve(f"telegram:{GROUP}")
            number = 1000
            for _ in range(UPDATES // BATCH):
                batch = []
                for _ in range(BATCH):
                    number += 1
                    batch.append({"update_id": number, **spoilt(whole(chance), chance)})
                number += 1
                batches.append([*batch, {"update_id": number, "message": by_the_bystander(number)}])
            await eventually(lambda: not batches, timeout_s=FED_S)
            rig.telegram.fault("getUpdates", action=answer(200, deep(number + 1)))
            rig.says("/new")
            rig.says("a normal message")
            await eventually(lambda: "a normal message" in str(rig.heard()), timeout_s=60)
            await rig.quiet(bot)
            assert rig.serving is not None
            assert not rig.serving.done()

    assert not faults
    assert not [entry for entry in logs if entry.get("exc_info")]
    strangers = {STRANGER, STRANGER + 1}
    to_strangers = [sent for sent in rig.telegram.sent() if sent["chat"]["id"] in strangers]
    codes = [sent for sent in rig.telegram.sent() if "give them this code" in sent["text"]]
    assert 1 <= len(codes) <= 3
    assert all("give them this code" in sent["text"] for sent in to_strangers)
    assert rig.texts(BYSTANDER) == ["fine"] * (UPDATES // BATCH)
    assert rig.rows("select count(*) from inbox where ended_ms is null") == [(0,)]
    assert rig.rows("select count(*) from inbox") == [(UPDATES + UPDATES // BATCH + 4,)]
    assert "from the deep" in str(rig.model.requests)


def by_the_bystander(number: int) -> Json:
    """An ordinary message, which has to be answered whatever stands beside it."""
    person = {"id": BYSTANDER, "is_bot": False, "first_name": "Cy"}
    chat = {"id": BYSTANDER, "type": "private", "first_name": "Cy"}
    return {"message_id": number, "date": 1, "chat": chat, "from": person, "text": f"n {number}"}


@contextmanager
def unhandled() -> Iterator[list[dict[str, Any]]]:
    """What the event loop was told of that nobody caught."""
    loop, faults = asyncio.get_running_loop(), list[dict[str, Any]]()
    loop.set_exception_handler(lambda _, context: faults.append(context))
    try:
        yield faults
    finally:
        loop.set_exception_handler(None)


def deep(number: int) -> str:
    """An answer with updates that are nested too deeply to be read as a whole."""
    person = {"id": OWNER, "is_bot": False, "first_name": "Ann"}
    chat = {"id": OWNER, "type": "private"}
    message = {"message_id": 1, "date": 1, "chat": chat, "from": person, "text": "from the deep"}
    levels = 20_000
    nested = '{"reply_to_message":' * levels + "[]" + "}" * levels
    whole = json.dumps({"update_id": number, "message": {**message, "x": 0}}).replace("0}}", "X}}")
    first = whole.replace("X", nested)
    second = f'{{"update_id": {number + 1}, "message": {nested}}}'
    return f'{{"ok": true, "result": [{first}, {second}]}}'


def feed(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> list[list[Json]]:
    """Batches that the stand-in hands out before its own updates, each until it is confirmed."""
    batches: list[list[Json]] = []
    own = rig.telegram._get_updates
    rig.telegram.change(next_update_id=10**6)

    async def get_updates(params: Any, request: Any) -> Any:
        while batches and params.number("offset") > batches[0][-1]["update_id"]:
            batches.pop(0)
        return batches[0] if batches else await own(params, request)

    monkeypatch.setattr(rig.telegram, "_get_updates", get_updates)
    return batches
