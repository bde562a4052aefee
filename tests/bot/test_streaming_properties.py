"""A reply that is streamed over trouble and kills stands whole in the end: no half, no double but
the one that is marked, and nothing left behind but what nobody can know of."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bot.channels.base import (
    Channel,
    Delivery,
    EditOutcome,
    Ignored,
    InDoubt,
    MessageGone,
    MessagePart,
    NotSent,
    SentMessage,
)
from bot.outbox.drafts import LiveDraft, is_to_go, planned
from bot.outbox.outbox import REPEATED, Outbox
from memory.database.connection import Database
from memory.records.messages import Address, OutboxId, RunId
from memory.records.rows import OutPart, PartState
from memory.stores.outbox import SqliteOutbox
from tests.memory.kit import StillClock
from tests.thorough import rounds

LANE = Address(channel="telegram", chat_id="5")
PART_CHARS = 10

WHOLE = "".join(chr(ord("A") + n) for n in range(4 * PART_CHARS - 3))
"""No character comes twice."""


@dataclass(slots=True)
class Platform(Channel):
    """Messages of ten characters. `script` says what becomes of the next requests; then all goes
    well."""

    script: list[str]
    name: str = "telegram"
    doubts: int = 0
    messages: dict[str, str] = field(default_factory=dict)
    ids: Any = field(default_factory=count)

    def deleted(self, at: int | None) -> None:
        """A person deletes the message there, if there is one."""
        there = list(self.messages)
        if at is not None and at < len(there):
            del self.messages[there[at]]

    def _next(self) -> str:
        return self.script.pop(0) if self.script else "done"

    def stream_every(self, address: Address) -> float | None:
        return 1.0

    def understand(self, payload: str) -> Ignored:
        return Ignored(reason="not asked")

    def parts(self, text: str) -> Sequence[MessagePart]:
        cuts = [text[at : at + PART_CHARS] for at in range(0, len(text), PART_CHARS)]
        return [MessagePart(markup=one, source=one) for one in cuts]

    async def ready(self, address: Address) -> None:
        return

    async def send(self, address: Address, part: MessagePart) -> Delivery:
        outcome = self._next()
        if outcome == "not":
            return NotSent(reason="script")
        message_id = f"m{next(self.ids)}"
        if outcome != "lost":
            self.messages[message_id] = part.source
        if outcome == "done":
            return SentMessage(message_id=message_id)
        self.doubts += 1
        return InDoubt(reason="script")

    async def edit(self, address: Address, message_id: str, part: MessagePart) -> EditOutcome:
        outcome = self._next()
        if message_id not in self.messages:
            return MessageGone()
        if outcome == "not":
            return NotSent(reason="script", retry_after_s=1.0)
        if outcome != "lost":
            self.messages[message_id] = part.source
        return SentMessage(message_id=message_id) if outcome == "done" else InDoubt(reason="script")

    async def remove(self, address: Address, message_id: str) -> EditOutcome:
        outcome = self._next()
        if outcome == "not":
            return NotSent(reason="script", retry_after_s=1.0)
        if outcome != "lost":
            gone = self.messages.pop(message_id, None) is None
            if outcome == "done":
                return MessageGone() if gone else SentMessage(message_id=message_id)
        return InDoubt(reason="script")


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """How much of the text was there at each look, before which of them the process died, what
    became of the requests, before which looks somebody deletes a message, and how much of it the
    reply has in the end."""

    looks: tuple[int, ...]
    deaths: frozenset[int]
    deletions: dict[int, int]
    script: tuple[str, ...]
    end: int


STORIES = st.builds(
    Story,
    looks=st.lists(st.integers(1, len(WHOLE)), min_size=1, max_size=6).map(
        lambda looks: tuple(sorted(looks))
    ),
    deaths=st.frozensets(st.integers(0, 6), max_size=2),
    deletions=st.dictionaries(st.integers(1, 6), st.integers(0, 3), max_size=1),
    script=st.lists(
        st.sampled_from(["done", "done", "done", "not", "lost", "arrived"]), max_size=8
    ).map(tuple),
    end=st.integers(1, len(WHOLE)),
)


async def told(story: Story, folder: Path) -> Platform:
    """The story, over the real store and the real outbox."""
    clock, platform = StillClock(), Platform(list(story.script))
    async with Database.open(folder / "hearthbot.db", clock=clock) as database:
        store = SqliteOutbox(database)
        draft = _draft(platform, store)
        for number, chars in enumerate(story.looks):
            if number in story.deaths:
                draft.close()
                draft = _draft(platform, store)
            platform.deleted(story.deletions.get(number))
            if not draft._blocked:
                await draft._update(WHOLE[:chars], with_status=False)
        draft.close()
        platform.deleted(story.deletions.get(len(story.looks)))
        await _reply(database, store, WHOLE[: story.end])
        outbox = Outbox(store, {platform.name: platform}, clock=clock, chance=lambda: 1.0)
        async with outbox, asyncio.timeout(10):
            await outbox.start()
            await outbox.idle()
        row = await store.row(OutboxId(1))
        assert row is not None
        assert row.state in {"sent", "unknown"}
    return platform


def _draft(platform: Platform, store: SqliteOutbox) -> LiveDraft:
    def spawn(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        raise AssertionError("looks are made by hand")

    return LiveDraft(RunId("r1"), LANE, platform, store=store, spawn=spawn)


async def _reply(database: Database, store: SqliteOutbox, text: str) -> None:
    """The turn ends with this text."""
    if await store.row_of_run(RunId("r1")) is None:
        await store.open_draft(RunId("r1"), LANE.key)
        await database.write(lambda c: c.execute("delete from outbox_parts").rowcount)
    await database.write(
        lambda c: c.execute("update outbox set text = ?, state = 'ready'", (text,)).rowcount
    )


@given(STORIES)
@settings(deadline=None, max_examples=rounds(25, 400))
def test_a_streamed_reply_stands_whole_in_the_end(story: Story) -> None:
    with TemporaryDirectory() as folder:
        platform = asyncio.run(told(story, Path(folder)))

    wanted = [part.source for part in platform.parts(WHOLE[: story.end])]
    seen = list(platform.messages.values())
    if "lost" not in story.script and not platform.doubts:
        if story.deletions and "not" in story.script:
            seen.sort(key=WHOLE.find)  # what could not be taken away stands above what comes anew
        assert seen == wanted
        return
    plain = [text.removesuffix(REPEATED) for text in seen]
    strange = [text for text in seen if text.removesuffix(REPEATED) not in wanted]
    repeated = [text for text in seen if text.endswith(REPEATED)]
    assert len(strange) + len(repeated) <= 2 * platform.doubts
    assert all(WHOLE.find(text) >= 0 for text in strange), "a beginning of what was written"
    missing = [text for text in wanted if text not in plain]
    assert len(missing) <= platform.doubts // 2, "twice in doubt is given up"


class _Waits(Platform):
    """While somebody waits for their turn to send, the turn ends."""

    ends: Callable[[], Awaitable[None]]

    async def ready(self, address: Address) -> None:
        await self.ends()


async def test_a_reply_that_is_stored_while_its_draft_waits_goes_out_once(tmp_path: Path) -> None:
    clock, platform = StillClock(), _Waits([])
    async with Database.open(tmp_path / "hearthbot.db", clock=clock) as database:
        store = SqliteOutbox(database)
        platform.ends = partial(_reply, database, store, WHOLE[:5])
        draft = _draft(platform, store)

        await draft._update(WHOLE[:3], with_status=False)
        await draft._update(WHOLE[:4], with_status=False)

        assert platform.messages == {}
        outbox = Outbox(store, {platform.name: platform}, clock=clock, chance=lambda: 1.0)
        platform.ends = partial(asyncio.sleep, 0)
        async with outbox, asyncio.timeout(10):
            await outbox.start()
            await outbox.idle()
    assert list(platform.messages.values()) == [WHOLE[:5]]


# --- what the messages of a reply are to read, in view of those that were begun ---


BEGUN = st.builds(
    OutPart,
    n=st.just(0),
    source=st.sampled_from(["", "", "a", "b"]),
    state=st.sampled_from(PartState),
    message_id=st.sampled_from(["", "7", "8"]),
)
STORED = st.lists(BEGUN, max_size=5).map(
    lambda parts: [
        OutPart(n=n, source=p.source, state=p.state, message_id=p.message_id)
        for n, p in enumerate(parts)
    ]
)
WANTED = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=5).map(
    lambda texts: [MessagePart(markup=f"<{text}>", source=text) for text in texts]
)


@given(WANTED, STORED)
def test_every_text_is_planned_and_every_message_that_stands_there_is_used_or_goes(
    wanted: list[MessagePart], stored: list[OutPart]
) -> None:
    parts = planned(wanted, stored)

    assert [part.source for part in parts if part.source] == [part.source for part in wanted]
    assert {part.message_id for part in stored} <= {part.message_id for part in parts} | {""}
    assert [part.n for part in parts] == sorted({part.n for part in parts})
    for part in parts[len(wanted) :]:
        assert is_to_go(part)


@given(WANTED, STORED)
def test_what_reads_otherwise_is_edited_and_what_was_sent_so_is_left_alone(
    wanted: list[MessagePart], stored: list[OutPart]
) -> None:
    for before, after in zip(stored, planned(wanted, stored), strict=False):
        if not after.source:
            continue
        if before.message_id and before.source != after.source:
            assert after.state is PartState.READY
        else:
            assert after.state is before.state
