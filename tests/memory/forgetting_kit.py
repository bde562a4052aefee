"""A home with a past: two people, a group, and one sentence in every place that may hold it."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory.database.connection import Database
from memory.database.premises import Premises
from memory.erasure.erase import Forgetting
from memory.facts.profile import SqliteProfiles
from memory.facts.store import SqliteFacts
from memory.records.erasure import ForgetWish
from memory.records.messages import PersonId
from memory.search.archive import SqliteArchive
from memory.search.documents import SqliteDocuments
from memory.search.indexes import Indexes
from memory.search.vectors import Embedding
from memory.service import MemoryService
from memory.stores.conversations import SqliteConversations
from tests.laid import lay
from tests.memory.kit import START_MS, StillClock, rows

ANN, BEN = PersonId("p_ann"), PersonId("p_ben")
ANNS_CHAT, BENS_CHAT, GROUP = "telegram:5", "telegram:6", "telegram:-100"

SECRET = "I keep the spare key under the zinc tub"
FACT = "Ann keeps the spare key under the zinc tub."
TRACES_OF_IT = (FACT, SECRET, "zinc tub", "spare key")
CANARY = "Ben feeds the heron behind the mill"


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """What the tests act on."""

    database: Database
    facts: SqliteFacts
    conversations: SqliteConversations
    forgetting: Forgetting
    memory: MemoryService


def premises(root: Path) -> Premises:
    return Premises(root=root, workspace=root / "workspace", backups=root / "data" / "backups")


def database_of(root: Path) -> Path:
    return root / "data" / "hearthbot.db"


@asynccontextmanager
async def opened_home(root: Path, clock: StillClock | None = None) -> AsyncIterator[Opened]:
    clock = clock or StillClock()
    (root / "workspace").mkdir(parents=True, exist_ok=True)
    lay(database_of(root))
    async with Database.open(database_of(root), clock=clock, busy_timeout_s=2) as database:
        conversations = SqliteConversations(database)
        memory = service_over(database, conversations, premises(root), clock=clock)
        yield Opened(
            database=database,
            facts=memory.facts,
            conversations=conversations,
            forgetting=memory.forgetting,
            memory=memory,
        )


def service_over(
    database: Database, conversations: SqliteConversations, home: Premises, *, clock: StillClock
) -> MemoryService:
    embedding = Embedding(enabled=False)
    facts = SqliteFacts(database, Indexes(database, embedding=embedding))
    return MemoryService(
        database,
        facts=facts,
        profiles=SqliteProfiles(database),
        documents=SqliteDocuments(database, embedding=embedding),
        conversations=conversations,
        forgetting=Forgetting(
            database,
            facts,
            conversations,
            premises=home,
            clock=clock,
            rebuilds=[SqliteArchive(database).rebuild],
        ),
        premises=home,
    )


def wish(**wanted: object) -> ForgetWish:
    values: dict[str, object] = {"person_id": ANN, "is_owner": True}
    return ForgetWish(**{**values, **wanted})  # type: ignore[arg-type]


@dataclass(slots=True)
class Past:
    """Writes rows as the bot would have, by hand: one line each."""

    connection: sqlite3.Connection
    runs: int = 0

    def add(self, table: str, **values: object) -> int:
        """A column that has to be there and is not named gets a value of its type."""
        for _, name, kind, is_needed, default, _ in self.connection.execute(
            f"pragma table_info({table})"
        ).fetchall():
            if is_needed and default is None and name not in values:
                is_text = kind.lower() == "text"
                values[name] = "" if is_text else START_MS if name.endswith("_ms") else 0
        marks = ", ".join("?" * len(values))
        sql = f"insert into {table} ({', '.join(values)}) values ({marks})"
        return self.connection.execute(sql, tuple(values.values())).lastrowid or 0

    def person(self, person_id: str, address: str, *, role: str, name: str) -> None:
        self.add("people", id=person_id, role=role, name=name)
        self.add("addresses", address=address, person_id=person_id)

    def conversation(self, conversation: str, lane: str) -> None:
        self.add("conversations", id=conversation, lane=lane)

    def turn(
        self,
        person_id: str,
        conversation: str,
        lane: str,
        said: str,
        answered: str,
        *,
        entries: Sequence[dict[str, Any]] = (),
        is_open: bool = False,
    ) -> str:
        """A turn with its steps, entries, reply and trace; returns its run id."""
        self.runs += 1
        run_id = f"in-{self.runs}"
        end = None if is_open else START_MS + 10
        self.add(
            "turns",
            run_id=run_id,
            lane=lane,
            person_id=person_id,
            payload=json.dumps({"message": {"text": said}, "conversation": conversation}),
            status="running" if is_open else "done",
            ended_ms=end,
        )
        prompt = {"system": digest_of(run_id), "context": f"context of {said}"}
        steps = [("begin", prompt), ("model", {"text": answered, "words": [said]})]
        for n, (name, output) in enumerate(steps):
            output_json = json.dumps(output)
            self.add("steps", run_id=run_id, n=n, name=name, output=output_json, ended_ms=START_MS)
        by = person_id if lane == GROUP else ""
        all_entries: list[dict[str, Any]] = [
            {"kind": "said", "text": said, "sender": "", "quote": "", "by": by},
            *entries,
            {"kind": "answered", "text": answered, "calls": []},
        ]
        for entry in all_entries:
            of = {"conversation_id": conversation, "run_id": run_id, "kind": entry["kind"]}
            self.add("messages", **of, body=json.dumps(entry))
        row = {"run_id": run_id, "lane": lane, "text": answered}
        outbox_id = self.add("outbox", **row, state="sent", ended_ms=START_MS)
        markup = f"<b>{answered}</b>"
        sent = {"n": 0, "markup": markup, "source": answered, "state": "sent", "message_id": "9"}
        self.add("outbox_parts", outbox_id=outbox_id, **sent)
        return run_id


def digest_of(run_id: str) -> str:
    return f"digest-of-{run_id}-".ljust(32, "0")


def write_past(root: Path) -> None:
    """One sentence of Ann's in each place; Ben's beside it. The database must exist."""
    with closing(sqlite3.connect(database_of(root))) as connection, connection:
        past = Past(connection)
        past.person(ANN, ANNS_CHAT, role="owner", name="Ann")
        past.person(BEN, BENS_CHAT, role="member", name="Ben")
        past.conversation("c_ann", ANNS_CHAT)
        past.conversation("c_ben", BENS_CHAT)
        past.conversation("c_group", GROUP)
        _anns(past)
        bens = past.turn(BEN, "c_ben", BENS_CHAT, CANARY, f"Noted: {CANARY}")
        _kept_text(past, BEN, bens, f"{CANARY}\n")
        past.turn(BEN, "c_group", GROUP, f"Hello, {CANARY}", "Hello Ben")
        past.turn(ANN, "c_group", GROUP, f"Listen: {SECRET}", "I will not tell")
    _write_files(root)


def _anns(past: Past) -> None:
    call = {"id": "k1", "name": "store_fact", "arguments": json.dumps({"text": FACT})}
    run_id = past.turn(
        ANN,
        "c_ann",
        ANNS_CHAT,
        f"{SECRET}. Please remember it.",
        "So your spare key is kept under the zinc tub.",
        entries=[
            {"kind": "context", "text": f"<context>\n- {FACT}\n</context>"},
            {"kind": "answered", "text": "", "calls": [call]},
            {
                "kind": "result",
                "call_id": "k1",
                "content": f"stored: {FACT}",
                "ok": True,
                "lost": f"`memory/MEMORY.md` lost 1 of its 1 lines (`{FACT}`)",
            },
        ],
    )
    past.turn(ANN, "c_ann", ANNS_CHAT, "What shall I cook?", "Rice with peas.")
    of = {"category": "background", "source": "message", "quote": SECRET, "run_id": run_id}
    past.add("facts", person_id=ANN, text=FACT, confidence=1.0, **of)
    past.add("texts", digest=digest_of(run_id), body=f"You are kind.\n\nMEMORY:\n{FACT}")
    past.add("notes", conversation_id="c_ann", text=f"It now reads: {SECRET}")
    summary = f"Ann cooks rice. {FACT} Ben is away."
    past.add("compactions", conversation_id="c_ann", kind="summarise", summary=summary)
    pins = json.dumps([{"text": FACT}, {"text": "Ann cooks rice."}])
    past.add("insights", conversation_id="c_ann", pins=pins, recommendations="[]")
    question = {"id": "a1", "run_id": run_id, "shows": FACT, "why": "it lasts"}
    past.add("approvals", person_id=ANN, **question, state="once", decided_ms=START_MS)
    past.add("children", run_id=run_id, parent_run="in-0", parent_lane=ANNS_CHAT, head=SECRET)
    past.add("signals", key=f"child:{run_id}", value=json.dumps({"text": SECRET}))
    body = json.dumps({"name": "Ann", "preferences": {"keys": SECRET, "tea": "green"}})
    past.add("profiles", person_id=ANN, body=body)
    change = {"path": "preferences.keys", "new": json.dumps(SECRET), "reason": f"said: {SECRET}"}
    past.add("profile_changes", person_id=ANN, **change)
    document = past.add("documents", person_id=ANN, name="house.md", kind="md", digest="d", chars=9)
    past.add("chunks", document_id=document, n=0, text=f"About the house. {SECRET}. The end.")
    _kept_text(past, ANN, run_id, f"# Keys\n{SECRET}\n")
    _anns_future(past)
    past.add("outbox", lane=ANNS_CHAT, text=f"f1: {FACT}", state="sent", ended_ms=START_MS)


def _kept_text(past: Past, person: PersonId, run_id: str, text: str) -> None:
    """What a file said before a run took most of it away."""
    of = {"person_id": person, "run_id": run_id, "path": "memory/MEMORY.md"}
    past.add("former_files", **of, former=text, becomes="d")


def _anns_future(past: Past) -> None:
    """What happens by the clock, and a message that nobody has acted on yet."""
    job = past.add(
        "jobs",
        name=f"Think: {SECRET}",
        person_id=ANN,
        kind="message",
        what=json.dumps({"text": f"Look whether {SECRET}", "skill": ""}),
        runs_when="{}",
        deliver_to=ANNS_CHAT,
        missed="once",
        quiet="defer",
        set_by="person",
        enabled=1,
    )
    past.add("job_runs", job_id=job, slot="s", state="told", result=SECRET)
    text = f"You wanted to hear: {SECRET}"
    past.add("tellings", person_id=ANN, lane=ANNS_CHAT, text=text, finding=FACT, counts=1)
    past.add("events", person_id=ANN, name="Look under the tub", note=SECRET, zone="UTC")
    payload = json.dumps({"message": {"text": f"/memory forget {SECRET}", "id": 7}})
    of = {"source": "telegram:1", "event_id": "77", "state": "received"}
    past.add("inbox", lane=ANNS_CHAT, payload=payload, **of)


def _write_files(root: Path) -> None:
    notes = root / "workspace" / "memory"
    (notes / "202607").mkdir(parents=True)
    (notes / "MEMORY.md").write_text(f"- Cooks rice\n- {FACT}\n- Has a cat\n")
    (notes / "202607" / "20260731.md").write_text(f"{SECRET.upper()}\nWent out\n")
    others = notes / "people" / BEN
    others.mkdir(parents=True)
    (others / "MEMORY.md").write_text(f"- {CANARY}\n")
    backups = root / "data" / "backups"
    backups.mkdir()
    for day in ("20260730", "20260731"):
        with closing(sqlite3.connect(database_of(root))) as connection:
            connection.execute("vacuum into ?", (str(backups / f"hearthbot-{day}.db"),))
    (root / "data" / "hearthbot.db.before-11").write_bytes(
        (backups / "hearthbot-20260731.db").read_bytes()
    )
    logs = root / "logs"
    logs.mkdir()
    (logs / "hearthbot.log").write_text('{"event": "bot.started"}\n')


def files_with(root: Path, *texts: str) -> list[str]:
    """Files below the home that hold one of the texts, looked for in the plainest way."""
    found = []
    for path in sorted(root.rglob("*")):
        if path.is_file():
            data = path.read_bytes().lower()
            if any(text.lower().encode() in data for text in texts):
                found.append(path.relative_to(root).as_posix())
    return found


def changed(root: Path, sql: str, *values: object) -> None:
    """Changes rows while nobody has the database open."""
    with closing(sqlite3.connect(database_of(root))) as connection, connection:
        connection.execute(sql, values)


def of_ben(root: Path) -> list[list[tuple[object, ...]]]:
    """All that is Ben's, and what is nobody's."""
    queries = (
        "select * from messages where run_id in (select run_id from turns where person_id='p_ben')",
        "select * from steps where run_id in (select run_id from turns where person_id = 'p_ben')",
        "select * from turns where person_id = 'p_ben'",
        "select * from outbox where lane = 'telegram:6'",
        "select * from former_files where person_id = 'p_ben'",
        "select * from people",
        "select * from addresses",
    )
    return [rows(database_of(root), query) for query in queries]


def lived_in(made: Path, root: Path) -> Path:
    """A home of this past. `made` keeps one for all tests of a module: making it takes longest."""
    if not made.joinpath("data").exists():
        asyncio.run(_make(made))
    shutil.copytree(made, root, dirs_exist_ok=True)
    return root


async def _make(root: Path) -> None:
    async with opened_home(root):
        pass
    write_past(root)
    async with opened_home(root) as opened:
        await SqliteArchive(opened.database).index_new()
