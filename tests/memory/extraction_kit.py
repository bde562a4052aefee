"""What the tests of extraction and insights share: talk that is stored, and a cheap model that says
its lines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent.prompt.templates import PersonaSettings, PromptLibrary
from memory.database.connection import Database
from memory.records.errors import AssistantError
from memory.records.messages import ConversationId, PersonId, Role, RunId
from memory.records.rows import Person
from memory.records.transcript import Answered, Entry, ModelTraits, Said, ToolCall, ToolResult
from memory.records.usage import Charge
from memory.stores.conversations import SqliteConversations
from memory.stores.inbox import SqliteInbox
from memory.stores.turns import SqliteJournal
from tests.memory.kit import LANE, event, run, turn_end

PROMPTS = Path(__file__).resolve().parents[2] / "prompts"
ANA = Person(id=PersonId("p1"), role=Role.OWNER, name="Ana", time_zone="Europe/Berlin")
BOB = Person(id=PersonId("p2"), role=Role.MEMBER, name="Bob")
OTHER_BOB = Person(id=PersonId("p3"), role=Role.MEMBER, name="Bob")
GUS = Person(id=PersonId("p4"), role=Role.GUEST, name="Gus")
PEOPLE = {one.id: one for one in (ANA, BOB, OTHER_BOB, GUS)}
GROUP = "telegram:-100:7"
GROUP_SCOPE = "telegram:-100"


def shipped(workspace: Path) -> PromptLibrary:
    """The templates as they are shipped."""
    return PromptLibrary(PROMPTS, workspace, PersonaSettings())


class Talk:
    """Turns of people, stored as the bot stores them."""

    def __init__(self, database: Database) -> None:
        self.conversations = SqliteConversations(database)
        self._journal = SqliteJournal(database)
        self._inbox = SqliteInbox(database)
        self._n = 0

    async def say(
        self,
        text: str,
        reply: str = "I see.",
        *,
        by: Person = ANA,
        found: str = "",
        **said: Any,
    ) -> ConversationId:
        """One exchange. `found` is what a tool brought in from outside meanwhile; `said` goes into
        Said."""
        entries: list[Entry] = [Said(text=text, **said)]
        if found:
            call = ToolCall(id="c1", name="web_fetch", arguments='{"url": "https://evil.example"}')
            entries += [
                Answered(text="", calls=(call,), finish="tool_calls"),
                ToolResult(call_id="c1", content=found, untrusted=True),
            ]
        return await self.turn(*entries, Answered(text=reply), by=by)

    async def in_group(self, by: Person, text: str, reply: str = "I see.", **said: Any) -> Any:
        said = {"sender": by.name, "by": by.id, **said}
        entries = (Said(text=text, **said), Answered(text=reply))
        return await self.turn(*entries, by=by, lane=GROUP)

    async def turn(
        self,
        *entries: Entry,
        by: Person = ANA,
        lane: str = LANE,
        came_in: bool = True,
        called: str = "",
    ) -> ConversationId:
        """`called`: the name that the channel gave with the message."""
        self._n += 1
        name = f"r{self._n}"
        conversation = await self.conversations.current(lane)
        inbox_id = None
        if came_in:
            (stored,) = await self._inbox.store([event(name, lane=lane)])
            inbox_id = stored.id
        payload = {"message": {"text": name, "sender_name": called}}
        new = run(name, lane=lane, inbox_id=inbox_id, payload=payload)
        await self._journal.submit(replace(new, by=by.id))
        await self._journal.finish(
            RunId(name), turn_end(name, conversation, entries=tuple(entries))
        )
        return conversation


class Cheap:
    """Implements `CheapModel`: says its lines in order, and keeps what it was asked."""

    def __init__(self, *lines: str | AssistantError, traits: ModelTraits | None = None) -> None:
        self._lines = list(lines)
        self._traits = traits or ModelTraits()
        self.prompts: list[str] = []
        self.charges: list[Charge] = []
        self.tokens_max: list[int] = []

    async def traits(self, lane: str) -> ModelTraits:
        return self._traits

    async def ask(self, prompt: str, charge: Charge, *, tokens_max: int) -> str:
        self.prompts.append(prompt)
        self.charges.append(charge)
        self.tokens_max.append(tokens_max)
        line = self._lines.pop(0)
        if isinstance(line, AssistantError):
            raise line
        return line


def a_fact(text: str, quote: str, *, speaker: str = "Ana", **more: object) -> Mapping[str, object]:
    fact = {"text": text, "category": "background", "certainty": 0.9, "speaker": speaker}
    return {**fact, "quote": quote, "contradicts": None, **more}


def answer(*facts: object) -> str:
    return json.dumps({"facts": list(facts)})
