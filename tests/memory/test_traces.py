"""What was sent to a model, what stands behind a message, and what files said before."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from memory.database.connection import Database
from memory.records.erasure import FileChange
from memory.records.jobs import Due, Held, Notification, SlotState, Taken, Taking
from memory.records.messages import Address, ConversationId, OutboxId, PersonId, Role, RunId
from memory.records.ports import Json
from memory.records.rows import NewApproval, NewMessage, OutPart, PartState
from memory.records.transcript import Answered, Said
from memory.records.turns import Behind, DueSlot
from memory.stores.approvals import SqliteApprovals
from memory.stores.conversations import SqliteConversations
from memory.stores.jobs import SqliteJobs
from memory.stores.outbox import SqliteOutbox
from memory.stores.schedule import SqliteTellings
from memory.stores.sessions import SqliteSessions
from memory.stores.traces import KEPT_MAX, SqliteFormerFiles, SqliteTraces
from memory.stores.turns import SqliteJournal
from tests.memory.kit import LANE, START_MS, StillClock, rows, run, turn_end
from tests.scheduler.jobs_kit import job as new_job

# --- traces --------------------------------------------------------------------------------------


BEGIN: Json = {"upto": 0, "sent_from": None, "system": "d1", "context": "☀", "tools": ["clock"]}
STRANGE = ["", "null", "[" * 100_000, '{"a": 1} trailing']


@pytest.fixture
def traces(database: Database) -> SqliteTraces:
    return SqliteTraces(database)


def answer(text: str) -> Json:
    return {"turns_sent": 1, "sent_from": None, "answer": {"kind": "answered", "text": text}}


async def take_turn(
    journal: SqliteJournal, run_id: str, *steps: tuple[str, Json], lane: str = LANE
) -> None:
    """A turn that has begun and recorded these steps, and goes on."""
    await journal.submit(run(run_id, lane=lane))
    await journal.begin(RunId(run_id))
    for n, (name, output) in enumerate(steps):
        await journal.record(RunId(run_id), n, name, output)


async def spoil(database: Database, run_id: str, n: int, output: str) -> None:
    """Writes what another version might have left."""
    await database.write(
        lambda c: c.execute(
            "update steps set output = ? where run_id = ? and n = ?", (output, run_id, n)
        )
    )


@pytest.mark.parametrize("strange", STRANGE, ids=lambda text: text[:8])
async def test_a_beginning_that_cannot_be_read_is_left_out_and_logged(
    traces: SqliteTraces, journal: SqliteJournal, database: Database, strange: str
) -> None:
    for run_id in ("r1", "r2", "r3"):
        await take_turn(journal, run_id, ("begin", BEGIN), ("model", answer("x")))
    await spoil(database, "r2", 0, strange)

    with capture_logs() as logs:
        alone = await traces.prompt(RunId("r2"))
        found = await traces.prompts(LANE, limit=2)

    assert alone is None
    assert [trace.run_id for trace in found] == ["r3", "r1"]
    line = {"event": "trace.unreadable", "turn": "r2", "step": 0, "kind": "begin"}
    assert logs == [line | {"log_level": "warning"}] * 2


# --- explained -----------------------------------------------------------------------------------


OTHERS = "telegram:7"


class Chat:
    """A private chat on a real database."""

    def __init__(self, database: Database, clock: StillClock) -> None:
        self.database, self.clock = database, clock
        self.journal = SqliteJournal(database)
        self.outbox = SqliteOutbox(database)
        self.conversations = SqliteConversations(database)
        self.records = SqliteTraces(database)

    async def turn(self, run_id: str, *steps: tuple[str, Json], lane: str = LANE) -> str:
        """A turn that was answered by the message whose id is returned."""
        conversation = await self.conversations.current(lane)
        await self.journal.submit(run(run_id, lane=lane))
        await self.journal.begin(RunId(run_id))
        for n, (name, output) in enumerate(steps):
            await self.journal.record(RunId(run_id), n, name, output)
        end = turn_end(run_id, conversation, entries=(Said(text="hi"), Answered(text="yes")))
        end = replace(end, reply="yes", reply_to=Address.parse(lane))
        done = await self.journal.finish(RunId(run_id), end)
        self.clock.move(1)
        return await self.sent(done.ready[0][1], f"of-{run_id}")

    async def sent(self, outbox_id: OutboxId, message_id: str) -> str:
        part = OutPart(n=0, source="x", message_id=message_id, state=PartState.SENT)
        await self.outbox.plan(outbox_id, [part])
        return message_id

    async def command(self, text: str = "Stopped.", *, lane: str = LANE) -> str:
        """What a command said; its message."""
        outbox_id = await self.outbox.add(NewMessage(lane=lane, text=text))
        self.clock.move(1)
        return await self.sent(outbox_id, f"command-{outbox_id}")

    async def reminded(self, name: str = "tea") -> str:
        """A reminder that was sent; its message."""
        jobs, due = SqliteJobs(self.database), Due(slot="2026-08-01T12:00", at_ms=START_MS)
        job = await jobs.add(new_job(name), due)
        assert job is not None
        message = NewMessage(lane=LANE, text=name)
        taken = await jobs.take(
            Taking(
                job_id=job.id,
                due=due,
                next=None,
                state=SlotState.TOLD,
                message=message,
                joins=f"by the job {job.key} ({name})",
            ),
            of=job,
        )
        assert isinstance(taken, Taken)
        assert taken.outbox_id is not None
        self.clock.move(1)
        return await self.sent(taken.outbox_id, f"due-{job.id}")


@pytest.fixture
def chat(database: Database, clock: StillClock) -> Chat:
    return Chat(database, clock)


async def behind(chat: Chat, message_id: str, *lanes: str) -> Behind | None:
    return await chat.records.of_message(lanes or (LANE,), message_id)


# --- messages -----------------------------------------------------------------------------------


async def test_a_reminder_leads_to_its_due_time_as_long_as_the_job_is_there(chat: Chat) -> None:
    message = await chat.reminded()
    kept = await behind(chat, message)
    chat.clock.move(-1)
    command = await chat.command("said in the same moment")
    await SqliteJobs(chat.database).remove(1)
    removed = await behind(chat, message)

    assert kept == Behind(sent_ms=START_MS, slots=(DueSlot(job_id=1, due_ms=START_MS),))
    assert removed == Behind(sent_ms=START_MS, gone="by the job j1 (tea)")
    assert await behind(chat, command) == Behind(sent_ms=START_MS)


async def test_a_question_leads_to_its_turn_where_that_runs_and_nowhere_else(chat: Chat) -> None:
    approvals = SqliteApprovals(chat.database)
    for number, lane in enumerate((LANE, "telegram:7"), start=1):
        await chat.journal.submit(run(f"r{number}", lane=lane))
        ready = await approvals.add(
            NewApproval(
                id=f"a{number}",
                run_id=RunId(f"r{number}"),
                lane=lane,
                person_id=PersonId("p1"),
                agent="default",
                tool="exec",
                digest="d",
                shows="ls",
                why="it runs a program",
            ),
            role=Role.OWNER,
            expires_ms=START_MS + 60_000,
            card=NewMessage(lane=LANE, text="May I?"),
        )
        assert ready is not None
        await chat.sent(ready[0][1], f"card-{number}")

    own, others = await behind(chat, "card-1"), await behind(chat, "card-2")

    assert own == Behind(sent_ms=START_MS, run_id=RunId("r1"))
    assert others == Behind(sent_ms=START_MS), "the owner is asked, and is not in that chat"


async def test_the_newest_is_the_last_answer_or_reminder_of_the_open_conversation(
    chat: Chat,
) -> None:
    assert await chat.records.newest(LANE) is None
    await chat.turn("r1")
    await chat.command()
    await chat.reminded()
    await chat.command()
    await chat.turn("r2", lane=OTHERS)

    newest = await chat.records.newest(LANE)
    before = await chat.records.newest(LANE, back=2)
    none = await chat.records.newest(LANE, back=3)
    await chat.conversations.start_new(LANE)
    chat.clock.move(1)
    fresh = await chat.records.newest(LANE)

    assert newest is not None
    assert newest.slots
    assert before is not None
    assert before.run_id == "r1"
    assert none is None
    assert fresh is None


async def test_a_digest_leads_to_all_that_it_gathers(chat: Chat) -> None:
    jobs, tellings = SqliteJobs(chat.database), SqliteTellings(chat.database)
    for number in (1, 2):
        due = Due(slot="2026-08-01T12:00", at_ms=START_MS + number)
        job = await jobs.add(new_job(f"tea {number}"), due)
        assert job is not None
        taking = Taking(job_id=job.id, due=due, next=None, state=SlotState.TAKEN)
        await jobs.take(taking, of=job)
        await tellings.hold(Notification(job=job, due=due, text="found"), Held.QUIET)
    outbox_id = await tellings.tell_waiting(
        await tellings.waiting(), NewMessage(lane=LANE, text="all"), note="several"
    )
    assert outbox_id is not None
    await chat.sent(outbox_id, "digest")

    found = await behind(chat, "digest")

    assert found is not None
    assert [slot.job_id for slot in found.slots] == [1, 2]


# --- turns --------------------------------------------------------------------------------------


def memories(*facts: str) -> list[Json]:
    return [{"name": "memories", "sources": [f"fact:{fact}" for fact in facts]}]


async def test_facts_of_the_turns_that_were_sent_along_are_found(chat: Chat) -> None:
    conversation = await chat.conversations.current(LANE)
    for number in (1, 2, 3):
        begin: Json = {"layers": memories(f"f{number}"), "conversation": conversation}
        await chat.turn(f"r{number}", ("begin", begin))
    history = (await chat.conversations.history(conversation)).entries
    begin = {"conversation": conversation, "since": history[2].id, "upto": history[-1].id}
    await chat.turn("r4", ("begin", begin))
    await chat.turn("r5", ("begin", {"conversation": conversation, "since": "x", "upto": None}))

    found, odd = await chat.records.turn(RunId("r4")), await chat.records.turn(RunId("r5"))

    assert found is not None
    assert odd is not None
    assert [one["layers"] for one in found.before] == [memories("f3"), memories("f2")]
    assert odd.before == ()


async def test_what_was_erased_is_known_to_be(chat: Chat) -> None:
    conversation = await chat.conversations.current(LANE)
    message = await chat.turn("r1", ("begin", {"conversation": conversation}))
    await chat.conversations.start_new(LANE)
    await SqliteSessions(chat.database).erase(ConversationId(conversation))

    found = await chat.records.turn(RunId("r1"))

    assert (await behind(chat, message) or Behind(sent_ms=0)).run_id == "r1"
    assert found is not None
    assert (found.is_erased, found.steps, found.entries) == (True, (), ())


# --- former files --------------------------------------------------------------------------------


PATH = "memory/MEMORY.md"


@pytest.fixture
def files(database: Database) -> SqliteFormerFiles:
    return SqliteFormerFiles(database)


def change(former: str, becomes: str, *, run: str = "r1", path: str = PATH) -> FileChange:
    return FileChange(
        person_id=PersonId("p1"), run_id=RunId(run), path=path, former=former, becomes=becomes
    )


async def kept(files: SqliteFormerFiles, run: str = "r1") -> list[str]:
    return [one.former for one in await files.of([RunId(run)])]


async def test_what_only_adds_is_not_kept_unless_something_went_before(
    files: SqliteFormerFiles,
) -> None:
    await files.keep(change("a\nb\n", "a\nb\nc\n"))
    nothing = await kept(files)
    await files.keep(change("a\nb\nc\n", "a\n"))
    before = await files.keep(change("a\n", "a\nd\n"))

    assert nothing == []
    assert before == "a\nb\nc\n"
    assert await kept(files) == ["a\nb\nc\n"]


async def test_a_call_that_is_made_again_after_a_kill_keeps_the_same(
    files: SqliteFormerFiles,
) -> None:
    for _ in range(2):
        assert await files.keep(change("a\nb\n", "")) == "a\nb\n"

    assert await kept(files) == ["a\nb\n"]


async def test_there_are_few_and_the_oldest_go_first(files: SqliteFormerFiles, path: Path) -> None:
    for n in range(KEPT_MAX + 3):
        await files.keep(change(f"{n}\n", "", run=f"r{n}"))

    assert rows(path, "select count(*) from former_files") == [(KEPT_MAX,)]
    assert await kept(files, "r2") == []
    assert await kept(files, "r3") == ["3\n"]
