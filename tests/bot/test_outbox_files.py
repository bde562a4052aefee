"""Each state of a file on its way, over the real store and real copies: sent once, or twice with
the mark; and what the person reads where it does not arrive."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bot.channels.base import (
    Channel,
    Delivery,
    DeliveryRefused,
    EditOutcome,
    FileOut,
    Ignored,
    InDoubt,
    LookedUp,
    MessagePart,
    NotSent,
    SentMessage,
    Upload,
    Uploaded,
)
from bot.outbox.files import OutgoingFiles
from bot.outbox.outbox import REPEATED, NewFile, Outbox
from memory.database.connection import Database
from memory.records.messages import Address
from memory.stores.outbox import SqliteOutbox
from tests.bot.dying import Dying
from tests.memory.kit import StillClock

LANE = "telegram:5"
PLAN = NewFile(name="plan.txt", path="files/plan.txt", content=b"the plan")
FILE = "plan.txt=the plan"
NOT_SENT, DOUBT = NotSent(reason="net"), InDoubt(reason="time")
NO = DeliveryRefused(reason="the platform takes no plans.")

WRITES = ("add", "plan", "mark", "postpone")
"""Of the store: a process may die at each of them."""


class FilesChannel(Channel):
    """Sends as it was told to, and keeps what arrived. A caption is what stands before a blank
    line; what is in doubt did arrive."""

    name = "telegram"

    def __init__(self) -> None:
        self.script: list[Delivery] = []
        self.arrived: list[str] = []

    def stream_every(self, address: Address) -> float | None:
        return None

    def understand(self, payload: str) -> Ignored:
        return Ignored(reason="not asked")

    def parts(self, text: str) -> Sequence[MessagePart]:
        return [MessagePart(markup=one, source=one) for one in text.split("\n\n") if one]

    async def ready(self, address: Address) -> None:
        return

    async def send(self, address: Address, part: MessagePart) -> Delivery:
        return self._outcome(part.source, "1")

    async def edit(self, address: Address, message_id: str, part: MessagePart) -> EditOutcome:
        raise AssertionError("nothing of a file is edited")

    def captioned(self, text: str) -> Sequence[MessagePart]:
        return self.parts(text) or [MessagePart(markup="", source="")]

    async def send_file(self, address: Address, file: FileOut, part: MessagePart) -> Delivery:
        return self._outcome(f"{file.name}={file.content.decode()}|{part.source}", "file")

    def _outcome(self, what: str, message_id: str) -> Delivery:
        outcome = self.script.pop(0) if self.script else None
        if outcome is None or isinstance(outcome, InDoubt):
            self.arrived.append(what)
        return outcome or SentMessage(message_id=message_id)


class UploadingChannel(FilesChannel):
    """One whose platform takes the bytes first, and can be asked whether a file is shown."""

    def __init__(self) -> None:
        super().__init__()
        self.uploads: list[Upload] = []
        self.found: list[LookedUp] = []
        self.looked_up: list[str] = []
        self.refs = 0

    async def upload(self, address: Address, file: FileOut) -> Upload:
        self.refs += 1
        return self.uploads.pop(0) if self.uploads else Uploaded(ref=f"F{self.refs}")

    async def send_file(self, address: Address, file: FileOut, part: MessagePart) -> Delivery:
        return self._outcome(f"{file.ref}|{part.source}", file.ref)

    async def look_up_file(self, address: Address, ref: str, *, since_ms: int) -> LookedUp:
        self.looked_up.append(ref)
        return self.found.pop(0)


class Place:
    """A store and copies that live on while processes come and go."""

    def __init__(self, path: Path, database: Database, clock: StillClock) -> None:
        self.store = SqliteOutbox(database)
        self.copies = path / "outgoing"
        self.clock = clock

    @asynccontextmanager
    async def running(self, channel: Channel, *, over: Any = None) -> AsyncIterator[Outbox]:
        outbox = Outbox(
            over or self.store,
            {channel.name: channel},
            clock=self.clock,
            chance=lambda: 1.0,
            copies=OutgoingFiles(self.copies),
        )
        async with outbox:
            await outbox.start()
            yield outbox

    async def post(self, channel: Channel, *, caption: str = "", over: Any = None) -> None:
        """One file, as far as it comes in one process."""
        async with self.running(channel, over=over) as outbox:
            await outbox.post_file(LANE, PLAN, caption=caption)
            await idle(outbox)

    async def ends(self) -> list[str]:
        counts = await self.store.counts()
        return sorted(state for state, count in counts.items() for _ in range(count))

    def kept(self) -> list[Path]:
        return sorted(self.copies.iterdir()) if self.copies.exists() else []


async def idle(outbox: Outbox) -> None:
    async with asyncio.timeout(5):
        await outbox.idle()


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    clock = StillClock()
    async with Database.open(tmp_path / "hearthbot.db", clock=clock) as database:
        yield Place(tmp_path, database, clock)


@pytest.mark.parametrize(
    ("script", "arrived", "end"),
    [
        ([], [f"{FILE}|Here"], ["sent"]),
        ([NOT_SENT, NOT_SENT], [f"{FILE}|Here"], ["sent"]),
        ([DOUBT], [f"{FILE}|Here", f"{FILE}|Here{REPEATED}"], ["sent"]),
        ([DOUBT, NOT_SENT], [f"{FILE}|Here", f"{FILE}|Here{REPEATED}"], ["sent"]),
        ([DOUBT, DOUBT], [f"{FILE}|Here", *[f"{FILE}|Here{REPEATED}"] * 2], ["sent"]),
    ],
)
async def test_each_way_of_a_file(
    place: Place, script: list[Delivery], arrived: list[str], end: list[str]
) -> None:
    channel = FilesChannel()
    channel.script = [*script]

    await place.post(channel, caption="Here")

    assert channel.arrived == arrived
    assert await place.ends() == end
    assert place.kept() == [], "the copy goes with the row"


async def test_words_that_find_no_place_in_the_caption_come_after_the_file(place: Place) -> None:
    channel = FilesChannel()

    await place.post(channel, caption="Here\n\nand more\n\nand more still")

    assert channel.arrived == [f"{FILE}|Here", "and more", "and more still"]


@pytest.mark.parametrize("caption", ["", "The plan for **May**"])
async def test_a_refusal_becomes_one_sentence_with_the_words_of_the_caption(
    place: Place, caption: str
) -> None:
    channel = FilesChannel()
    channel.script = [NO]

    await place.post(channel, caption=caption)

    sentence = "I could not send the file `plan.txt` here: the platform takes no plans."
    assert channel.arrived == [sentence, *([caption] if caption else [])]
    assert await place.ends() == ["failed", "sent"]
    assert place.kept() == []


async def test_a_copy_that_is_gone_is_told(place: Place) -> None:
    channel = FilesChannel()
    async with place.running(channel) as outbox:
        await outbox.stop(0)
        await outbox.post_file(LANE, PLAN)
    for copy in place.kept():
        copy.write_bytes(b"somebody wrote here")

    async with place.running(channel) as outbox:
        await idle(outbox)

    assert channel.arrived == [
        "I could not send the file `plan.txt` here: my copy of it is damaged; ask me to send it "
        "anew."
    ]


async def test_a_channel_without_files_says_so(place: Place) -> None:
    class WordsAlone(FilesChannel):
        captioned = Channel.captioned
        send_file = Channel.send_file

    channel = WordsAlone()
    await place.post(channel, caption="Here")

    assert channel.arrived == [
        "I could not send the file `plan.txt` here: no files can be sent there.",
        "Here",
    ]


async def test_secrets_go_out_of_names_and_captions(place: Place) -> None:
    channel = FilesChannel()
    outbox = Outbox(
        place.store,
        {channel.name: channel},
        clock=place.clock,
        clean=lambda text: text.replace("sesame", "[redacted]"),
        copies=OutgoingFiles(place.copies),
    )

    async with outbox:
        await outbox.start()
        file = NewFile(name="sesame.txt", path="sesame.txt", content=b"x")
        await outbox.post_file(LANE, file, caption="say sesame")
        await idle(outbox)

    assert channel.arrived == ["[redacted].txt=x|say [redacted]"]


# --- a platform that takes the bytes first -------------------------------------------------------


async def test_bytes_that_do_not_get_through_are_handed_over_again_and_nothing_is_shown_twice(
    place: Place,
) -> None:
    channel = UploadingChannel()
    channel.uploads = [NOT_SENT, NOT_SENT]

    await place.post(channel, caption="Here")

    assert channel.arrived == ["F3|Here"]
    assert channel.looked_up == []


async def test_bytes_that_are_refused_are_told(place: Place) -> None:
    channel = UploadingChannel()
    channel.uploads = [NO]

    await place.post(channel)

    assert channel.arrived == [
        "I could not send the file `plan.txt` here: the platform takes no plans."
    ]


@pytest.mark.parametrize(
    ("found", "arrived"),
    [
        ([SentMessage(message_id="M")], ["F1|Here"]),
        ([NOT_SENT, SentMessage(message_id="M")], ["F1|Here"]),
        ([NOT_SENT, NOT_SENT], ["F1|Here", "F2|Here"]),
        ([DOUBT, DOUBT, SentMessage(message_id="M")], ["F1|Here"]),
        ([NO], ["F1|Here", f"F2|Here{REPEATED}"]),
    ],
)
async def test_a_doubt_is_settled_by_looking_twice_and_else_the_copy_is_marked(
    place: Place, found: list[LookedUp], arrived: list[str]
) -> None:
    channel = UploadingChannel()
    channel.script = [DOUBT]
    channel.found = [*found]

    await place.post(channel, caption="Here")

    assert channel.arrived == arrived
    assert channel.looked_up == ["F1"] * len(found)
    assert await place.ends() == ["sent"]


# --- a process that dies -----------------------------------------------------------------------


def of_the_file(channel: FilesChannel) -> list[str]:
    return [text for text in channel.arrived if not text.startswith("more")]


@pytest.mark.case("CH-05")
@pytest.mark.parametrize("kind", [FilesChannel, UploadingChannel])
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", range(1, 7))
async def test_a_death_at_any_write_loses_no_file_and_repeats_it_at_most_once_with_the_mark(
    place: Place, kind: type[FilesChannel], after: bool, at: int
) -> None:
    channel = kind()
    dying = Dying(place.store, at=at, after=after, writes=WRITES)

    async with place.running(channel, over=dying) as outbox:
        posting = asyncio.create_task(outbox.post_file(LANE, PLAN, caption="Here\n\nmore"))
        died = asyncio.create_task(dying.dead.wait())
        await asyncio.wait([posting, died], return_when=asyncio.FIRST_COMPLETED)
        ended = asyncio.create_task(outbox.idle())
        await asyncio.wait([ended, died], return_when=asyncio.FIRST_COMPLETED)
        for task in (posting, died, ended):
            task.cancel()
    was_stored = bool(await place.ends())
    shown = of_the_file(channel)
    if isinstance(channel, UploadingChannel):
        channel.found = [SentMessage(message_id="M") if shown else NOT_SENT] * 3
    for _ in range(3):
        async with place.running(channel) as outbox:
            await idle(outbox)

    copies = of_the_file(channel)
    plain = [text for text in copies if not text.endswith(REPEATED)]
    if not was_stored:
        assert channel.arrived == []
    else:
        assert 1 <= len(copies) <= 2
        assert len(plain) <= 1
        assert len(copies) == 1 or not isinstance(channel, UploadingChannel)
        assert channel.arrived[-1] in {"more", f"more{REPEATED}"}
        assert channel.arrived.index(copies[-1]) < len(channel.arrived) - 1, "the file before words"
    assert place.kept() == [], "no copy is left behind"
    assert set(await place.ends()) <= {"sent", "unknown"}
