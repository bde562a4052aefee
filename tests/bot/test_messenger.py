"""Messages besides the answer: whose chats they may go to, and what the chat knows of them."""

from __future__ import annotations

from pathlib import Path

from agent.tools.messages import FileToSend
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


async def no_file(lane: str, file: NewFile, *, caption: str) -> None:
    raise AssertionError("nobody sent a file")


async def test_a_persons_chats_are_theirs_alone_and_what_is_sent_is_known_there(
    tmp_path: Path,
) -> None:
    clock = FixedClock()
    said: list[NewMessage] = []

    async def say(message: NewMessage) -> None:
        said.append(message)

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
        access = Access(
            people, policy="pairing", allowed=[], clock=clock, deliver=lambda rows: None
        )
        await access.load()
        conversations = SqliteConversations(database)
        messenger = BotMessenger(access, conversations, say, no_file)

        chats = [chat.lane for chat in await messenger.chats(PersonId("p1"))]
        await messenger.send("slack:T1.D7", "Your table is booked.", untrusted=True)
        history = await conversations.history(await conversations.current("slack:T1.D7"))

    assert chats == ["telegram:42", "slack:T1.D7"]
    assert said == [NewMessage(lane="slack:T1.D7", text="Your table is booked.")]
    [note] = history.notes
    assert (note.text, note.untrusted) == (f"{NOTED}Your table is booked.", True)


async def test_a_file_for_another_chat_is_known_there_and_one_for_this_chat_is_not_told_twice(
    tmp_path: Path,
) -> None:
    clock = FixedClock()
    posted: list[tuple[str, NewFile, str]] = []
    file = FileToSend(path="files/plan.pdf", name="plan.pdf", content=b"%PDF")

    async def post(lane: str, file: NewFile, *, caption: str) -> None:
        posted.append((lane, file, caption))

    async def say(message: NewMessage) -> None:
        raise AssertionError("nothing was said")

    async with Database.open(tmp_path / "hearthbot.db", clock=clock) as database:
        access = Access(
            SqlitePeople(database),
            policy="pairing",
            allowed=[],
            clock=clock,
            deliver=lambda rows: None,
        )
        conversations = SqliteConversations(database)
        messenger = BotMessenger(access, conversations, say, post)

        await messenger.send_file("telegram:42", file, caption="The plan", untrusted=None)
        await messenger.send_file("slack:T1.D7", file, caption="", untrusted=True)
        here = await conversations.history(await conversations.current("telegram:42"))
        there = await conversations.history(await conversations.current("slack:T1.D7"))

    new = NewFile(name="plan.pdf", path="files/plan.pdf", content=b"%PDF")
    assert posted == [("telegram:42", new, "The plan"), ("slack:T1.D7", new, "")]
    assert not here.notes
    [note] = there.notes
    assert (note.text, note.untrusted) == (f"{NOTED_FILE}files/plan.pdf", True)
