"""Messages besides the answer: whose chats they may go to, and what the chat knows of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from agent.tools.groups.messages import FileToSend
from bot.app.chats import NOTED, NOTED_FILE, BotMessenger
from bot.outbox.outbox import NewFile
from bot.people.access import Access
from memory.database.connection import Database
from memory.records.messages import PersonId, Role, RunId
from memory.records.ports import NewRun
from memory.records.rows import NewMessage, Person
from memory.stores.conversations import SqliteConversations
from memory.stores.people import SqlitePeople
from memory.stores.turns import SqliteJournal
from tests.fakes import FixedClock


class Said:
    """An outbox that keeps what it is given."""

    def __init__(self) -> None:
        self.messages: list[NewMessage] = []
        self.files: list[tuple[str, NewFile, str]] = []

    async def say(self, message: NewMessage) -> None:
        self.messages.append(message)

    async def post_file(self, lane: str, file: NewFile, *, caption: str) -> None:
        self.files.append((lane, file, caption))


async def test_a_persons_chats_are_theirs_alone_and_what_is_sent_is_known_there(
    tmp_path: Path,
) -> None:
    clock = FixedClock()
    said = Said()
    async with Database.open(tmp_path / "hearthbot.db", clock=clock) as database:
        people = SqlitePeople(database)
        for name, addresses in (
            ("p1", ("telegram:42", "slack:T1:U1", "console:local")),
            ("p2", ("telegram:43",)),
        ):
            await people.add_person(
                Person(id=PersonId(name), role=Role.MEMBER, name=name, addresses=addresses)
            )
        journal = SqliteJournal(database)
        for lane, whose in (("slack:T1.D7", "p1"), ("slack:T1.D8", "p2"), ("slack:T1.C1", "p1")):
            await journal.submit(
                NewRun(run_id=RunId(lane), lane=lane, by=PersonId(whose), payload={})
            )
        access = Access(people, policy="pairing", allowed=[], clock=clock)
        await access.load()
        conversations = SqliteConversations(database)
        messenger = BotMessenger(access, conversations, lambda: cast(Any, said))

        chats = [chat.lane for chat in await messenger.chats(PersonId("p1"))]
        await messenger.send("slack:T1.D7", "Your table is booked.", untrusted=True)
        history = await conversations.history(await conversations.current("slack:T1.D7"))

    assert chats == ["telegram:42", "slack:T1.D7"]
    assert said.messages == [NewMessage(lane="slack:T1.D7", text="Your table is booked.")]
    [note] = history.notes
    assert (note.text, note.untrusted) == (f"{NOTED}Your table is booked.", True)


async def test_a_file_for_another_chat_is_known_there_and_one_for_this_chat_is_not_told_twice(
    tmp_path: Path,
) -> None:
    clock = FixedClock()
    said = Said()
    file = FileToSend(path="files/plan.pdf", name="plan.pdf", content=b"%PDF")

    async with Database.open(tmp_path / "hearthbot.db", clock=clock) as database:
        access = Access(SqlitePeople(database), policy="pairing", allowed=[], clock=clock)
        conversations = SqliteConversations(database)
        messenger = BotMessenger(access, conversations, lambda: cast(Any, said))

        await messenger.send_file("telegram:42", file, caption="The plan", untrusted=None)
        await messenger.send_file("slack:T1.D7", file, caption="", untrusted=True)
        here = await conversations.history(await conversations.current("telegram:42"))
        there = await conversations.history(await conversations.current("slack:T1.D7"))

    new = NewFile(name="plan.pdf", path="files/plan.pdf", content=b"%PDF")
    assert said.messages == []
    assert said.files == [("telegram:42", new, "The plan"), ("slack:T1.D7", new, "")]
    assert not here.notes
    [note] = there.notes
    assert (note.text, note.untrusted) == (f"{NOTED_FILE}files/plan.pdf", True)
