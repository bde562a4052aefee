"""Updates of every wrong shape (P9): none stops the loop, and strangers get their code alone."""

from __future__ import annotations

import copy
import json
import os
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bot.lab.faults import answer
from tests.bot.kit import GROUP, MEMBER, OWNER, STRANGER, US, Rig, eventually
from tests.thorough import rounds

UPDATES = int(os.environ.get("FUZZ_UPDATES", str(rounds(1_500, 5_000))))
SEED = int(os.environ.get("FUZZ_SEED", "20260801"))
BATCH = 100

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
)
KINDS = (
    "message",
    "edited_message",
    "channel_post",
    "callback_query",
    "my_chat_member",
    "poll",
    "message_reaction",
    "business_message",
    "no_such_kind",
)


def whole(chance: random.Random) -> Json:
    """A message as Telegram would send it, with a bit of everything."""
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
    kind = KINDS[0] if chance.random() < 0.7 else chance.choice(KINDS)
    update: Json = {kind: message}
    if chance.random() < 0.05:
        update["edited_message"] = copy.deepcopy(message)
    return update


def some_file(chance: random.Random) -> Json:
    return {"file_id": f"F{chance.random()}", "file_unique_id": "u", "file_size": 10}


PIECES: tuple[Callable[[random.Random], Json], ...] = (
    lambda c: {"entities": [{"type": "mention", "offset": 0, "length": 5}]},
    lambda c: {"entities": [{"type": "text_mention", "offset": 1, "length": 2, "user": {"id": 1}}]},
    lambda c: {"caption": c.choice(TEXTS), "photo": [some_file(c) | {"width": 1, "height": 1}]},
    lambda c: {"document": some_file(c) | {"file_name": "../../etc/passwd"}},
    lambda c: {"voice": some_file(c) | {"duration": 3}},
    lambda c: {"sticker": some_file(c) | {"type": "regular", "width": 1, "height": 1}},
    lambda c: {"media_group_id": str(c.randrange(5))},
    lambda c: {"message_thread_id": c.randrange(1, 9), "is_topic_message": True},
    lambda c: {"quote": {"text": c.choice(TEXTS), "position": 0}},
    lambda c: {"reply_to_message": whole(c).get("message", {})},
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

    async with rig.running(OWNER, MEMBER, hurry=50) as bot:
        await bot.access.approve(f"telegram:{GROUP}")
        number = 1000
        for _ in range(UPDATES // BATCH):
            batch = []
            for _ in range(BATCH):
                number += 1
                batch.append({"update_id": number, **spoilt(whole(chance), chance)})
            batches.append(batch)
        await eventually(lambda: not batches, timeout_s=110)
        rig.telegram.fault("getUpdates", action=answer(200, deep(number + 1)))
        rig.says("/new")
        rig.says("a normal message")
        await eventually(lambda: "a normal message" in str(rig.heard()), timeout_s=60)
        await rig.quiet(bot)
        assert rig.serving is not None
        assert not rig.serving.done()

    strangers = {STRANGER, STRANGER + 1}
    to_strangers = [sent for sent in rig.telegram.sent() if sent["chat"]["id"] in strangers]
    codes = [sent for sent in rig.telegram.sent() if "give them this code" in sent["text"]]
    assert 1 <= len(codes) <= 3
    assert all("give them this code" in sent["text"] for sent in to_strangers)
    assert rig.rows("select count(*) from inbox where ended_ms is null") == [(0,)]
    assert rig.rows("select count(*) from inbox") == [(UPDATES + 4,)]
    assert "from the deep" in str(rig.model.requests)


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
    rig.telegram.next_update_id = 10**6

    async def get_updates(params: Any, request: Any) -> Any:
        while batches and params.number("offset") > batches[0][-1]["update_id"]:
            batches.pop(0)
        return batches[0] if batches else await own(params, request)

    monkeypatch.setattr(rig.telegram, "_get_updates", get_updates)
    return batches
