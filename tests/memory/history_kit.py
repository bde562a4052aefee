"""Conversations made by hand, and cheap models that are scripted, for the tests of what becomes of
a history."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from itertools import count

from agent.history.compaction import ASK_S, Extract, SqliteCompactor
from agent.history.summaries import Summaries
from bot.settings.home import shipped
from memory.database.connection import Database
from memory.database.rows import dump
from memory.records.errors import Overloaded
from memory.records.facts import CompactionWanted
from memory.records.messages import ConversationId, PersonId
from memory.records.ports import CheapModel, InUse, Model
from memory.records.section import HistorySettings
from memory.records.transcript import (
    Answered,
    Entry,
    ModelTraits,
    Said,
    ToolCall,
    ToolResult,
    kind_of,
    to_json,
)
from memory.records.usage import Charge, Purpose
from memory.stores.compactions import SqliteCompactions
from tests.memory.kit import LANE

_numbers = count(1)


async def add_turns(
    database: Database,
    conversation: ConversationId,
    turns: Iterable[Sequence[Entry]],
    *,
    by: str = "p1",
    lane: str = LANE,
) -> list[str]:
    """Stores finished turns, as the journal does; returns their run ids."""
    now_ms = database.now_ms()
    made = [(f"r{next(_numbers)}", turn) for turn in turns]

    def work(connection: sqlite3.Connection) -> None:
        for run_id, turn in made:
            connection.execute(
                "insert into turns (run_id, lane, person_id, payload, status, created_ms, ended_ms)"
                " values (?, ?, ?, ?, 'done', ?, ?)",
                (run_id, lane, by, json.dumps({"conversation": conversation}), now_ms, now_ms),
            )
            connection.executemany(
                "insert into messages (conversation_id, run_id, kind, body, created_ms)"
                " values (?, ?, ?, ?, ?)",
                [(conversation, run_id, kind_of(e), dump(to_json(e)), now_ms) for e in turn],
            )

    await database.write(work)
    return [run_id for run_id, _ in made]


def talk(said: str, answered: str = "Fine.") -> list[Entry]:
    """An exchange."""
    return [Said(text=said), Answered(text=answered)]


def work_done(said: str, tool: str, arguments: str, *, effect: str = "workspace") -> list[Entry]:
    """An exchange in which a tool changed something."""
    call = ToolCall(id="c1", name=tool, arguments=arguments)
    result = ToolResult(call_id="c1", content="ok", effect=effect)
    return [Said(text=said), Answered(text="", calls=(call,)), result, Answered(text="Done.")]


class Texts:
    """The shipped prompts."""

    def __init__(self) -> None:
        folder = shipped("prompts")
        self._texts = {path.stem: path.read_text() for path in folder.glob("*.md")}

    def __call__(self) -> Mapping[str, str]:
        return self._texts


@dataclass(slots=True)
class ScriptedCheap:
    """Implements `memory.records.ports.CheapModel`: `answer` makes the text from the prompt."""

    answer: Callable[[str], str]
    window: int = 128_000
    demo: bool = False
    asked: list[str] = field(default_factory=list)
    charges: list[Charge] = field(default_factory=list)

    async def traits(self, lane: str) -> ModelTraits:
        return ModelTraits(window=self.window, demo=self.demo)

    async def ask(self, prompt: str, charge: Charge, *, tokens_max: int) -> str:
        self.asked.append(prompt)
        self.charges.append(charge)
        return self.answer(prompt)


@dataclass(frozen=True, slots=True)
class Window:
    """Implements `memory.records.ports.Models`, as far as a window is asked for."""

    window: int = 128_000

    async def at(self, lane: str, *, agent: str = "") -> InUse:
        return InUse(name="m", traits=ModelTraits(window=self.window))

    async def named(self, name: str, *, agent: str = "") -> Model:
        raise AssertionError("nobody asks the model of the conversation")

    def untold(self) -> Sequence[str]:
        return ()


def detected(summary: str, *, boundary: int = -1, confidence: float = 0.9) -> str:
    """What a good model answers."""
    found = {"boundary_index": boundary, "reason": "a new aim", "confidence": confidence}
    return json.dumps({**found, "summary": summary})


def never(prompt: str) -> str:
    """A model that cannot be reached."""
    raise Overloaded("nobody answers")


def part(prompt: str, tag: str) -> str:
    """What stands in a marked block of a prompt."""
    found = re.search(rf"<{tag}>\n(.*?)\n</{tag}>\s*$|<{tag}>\n(.*?)\n</{tag}>", prompt, re.DOTALL)
    return (found[1] or found[2] or "").strip() if found else ""


PLANTED = re.compile(r"\b[A-Z][a-z]+[0-9]{3}\b|#\d{4}")


def attentive(prompt: str) -> str:
    """A model that keeps each planted name and number, the newest of them."""
    texts = [part(prompt, tag) for tag in ("former_summary", "conversation", "first", "second")]
    words = list(dict.fromkeys(PLANTED.findall("\n".join(texts))))[-80:]
    return detected(f"They spoke of {', '.join(words)}." if words else "Small talk.")


def compactor(
    database: Database,
    cheap: CheapModel,
    *,
    options: HistorySettings | None = None,
    window: int = 128_000,
    extract: Extract | None = None,
    ask_s: float = ASK_S,
) -> SqliteCompactor:
    return SqliteCompactor(
        SqliteCompactions(database),
        Window(window),
        Summaries(cheap, Texts()),
        host_zone=UTC,
        options=options or HistorySettings(),
        now_ms=database.now_ms,
        extract=extract,
        ask_s=ask_s,
    )


def wanted(
    conversation: ConversationId, *, forced: bool = False, tokens_max: int = 0
) -> CompactionWanted:
    return CompactionWanted(
        charge=Charge(
            purpose=Purpose.COMPACTION,
            conversation=conversation,
            lane=LANE,
            person_id=PersonId("p1"),
        ),
        forced=forced,
        tokens_max=tokens_max,
    )
