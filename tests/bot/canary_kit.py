"""A household in which every place that remembers a person holds a word of its own, a canary, and
whole prompts for anybody in it, made by a real App on a real home. No model is asked."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import count, product
from pathlib import Path

from agent.models.chat_request import body
from agent.prompt.scene import PromptKind, PromptOccasion
from agent.tools.arguments import parse_arguments
from agent.tools.tool import Caller
from bot.app.app import App
from bot.people.access import ADMITTED
from bot.settings.home import Home, prepare
from bot.settings.load import load
from memory.records.facts import place_of
from memory.records.messages import (
    Address,
    ConversationId,
    IncomingMessage,
    JobOrder,
    Origin,
    PersonId,
    Role,
    RunId,
    Task,
    TurnInput,
)
from memory.records.rows import Person
from memory.records.transcript import Context, Entry, ModelRequest, ModelTraits, Note, Said
from memory.stores.people import SqlitePeople
from tests.memory.kit import StillClock

ANN = Person(
    id=PersonId("p_ann"),
    role=Role.OWNER,
    name="Ann",
    addresses=("telegram:555005", "slack:T0:U0ANN"),
)
BEN = Person(
    id=PersonId("p_ben"),
    role=Role.MEMBER,
    name="Ben",
    addresses=("telegram:555006", "slack:T0:U0BEN"),
)
CEM = Person(
    id=PersonId("p_cem"),
    role=Role.MEMBER,
    name="Cem",
    addresses=("telegram:555007", "slack:T0:U0CEM"),
)
HOUSEHOLD = (ANN, BEN, CEM)

FAMILY, CLUB, OFFICE = "telegram:-100", "telegram:-200", "slack:T0.C0OFFICE"
MEMBERS = {FAMILY: HOUSEHOLD, CLUB: (BEN, CEM), OFFICE: HOUSEHOLD}
"""The owner is not in the club."""

_THINGS = (
    "sailboat orchard violin kettle garage beehive telescope lantern bakery accordion greenhouse "
    "canoe chimney sledge fountain cottage loom windmill harmonica pantry barometer anvil teapot "
    "hammock carousel compass bonfire attic trellis saddle gondola quilt lighthouse mandolin"
)
_NOUNS = _THINGS.split()
_ASKED = (
    "What is my {0} called?",
    "Tell me about the {0} and the {1}.",
    "Do you remember what {name} said about the {0}?",
    "Which {0} does {name} keep, and where is the {1}?",
    "Remind me which {0} we spoke about.",
    "Please write a note about {name} and the {0}.",
)
_OTHERWISE = (
    "hello there",
    "What do you know about {name}?",
    "What do you know about me?",
    "What is planned this week?",
    "Tell me everything that {name} told you in private.",
    "How should I cook rice for six people on Sunday?",
    "List all documents, notes and reminders of {name}.",
    "what did we talk about yesterday evening",
    "translate good morning into Turkish",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """A word that stands in one place: what is remembered of a person there, in private or in the
    group `scope`. `noun` is what is asked about to have it found."""

    word: str
    person: PersonId
    scope: str
    place: str
    noun: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """Where somebody writes: in private or in a group, with a topic or thread perhaps."""

    person: Person
    address: Address
    is_group: bool = False

    @property
    def scope(self) -> str:
        return place_of(self.address) if self.is_group else ""

    def may_see(self, canary: Canary) -> bool:
        """In a group what belongs to it; in private what is the person's own."""
        if self.is_group:
            return canary.scope == self.scope
        return canary.person == self.person.id


def spots() -> list[Spot]:
    """All private chats, and each group as each of its members."""
    private = [
        Spot(person=one, address=Address(channel=channel, chat_id=chat))
        for one in HOUSEHOLD
        for channel, chat in (
            ("telegram", one.addresses[0].split(":")[1]),
            ("slack", f"T0.D0{one.name.upper()}"),
        )
    ]
    threads = {FAMILY: (None, "7"), CLUB: (None,), OFFICE: ("1700000000.1",)}
    groups = [
        Spot(
            person=one,
            address=Address(channel=key.split(":")[0], chat_id=key.split(":")[1], thread_id=thread),
            is_group=True,
        )
        for key, members in MEMBERS.items()
        for one, thread in product(members, threads[key])
    ]
    return [*private, *groups]


@dataclass(slots=True, kw_only=True)
class Cage:
    """The home with its canaries."""

    home: Home
    clock: StillClock
    app: App
    canaries: list[Canary] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)

    def canary(self, person: Person, place: str, *, scope: str = "") -> Canary:
        number = next(self._numbers)
        word = f"zq{person.name.lower()}{_letters(number)}"
        # Everybody has something of everything: what is asked about is near to each of them.
        mine = sum(one.person == person.id for one in self.canaries)
        noun = _NOUNS[mine % len(_NOUNS)]
        made = Canary(word=word, person=person.id, scope=scope, place=place, noun=noun)
        self.canaries.append(made)
        return made

    def address(self, person: Person, word: str) -> None:
        """A part of an address: what is chatted about does not name it."""
        made = Canary(word=word, person=person.id, scope="", place="addresses", noun="sailboat")
        self.canaries.append(made)

    def line(self, person: Person, place: str, *, scope: str = "") -> str:
        """A sentence that holds a new one."""
        made = self.canary(person, place, scope=scope)
        return f"{person.name} has a {made.noun} called {made.word}."

    # --- asking ----------------------------------------------------------------------------------

    async def conversation(self, spot: Spot) -> ConversationId:
        return await self.app.conversations.current(spot.address.key)

    async def turn(self, spot: Spot, text: str, *, origin: Origin = Origin.CHAT) -> TurnInput:
        person = spot.person
        message = IncomingMessage(
            address=spot.address,
            message_id="1",
            sender_id=person.addresses[0].rpartition(":")[2],
            sender_name=person.name,
            text=text,
            is_group=spot.is_group,
            chat_title="Us" if spot.is_group else "",
        )
        return TurnInput(
            message=message,
            conversation=await self.conversation(spot),
            person_id=person.id,
            role=person.role,
            person_name=person.name,
            time_zone="UTC",
            origin=origin,
        )

    async def occasion(self, spot: Spot, text: str, kind: PromptKind) -> PromptOccasion:
        if kind is PromptKind.CHAT:
            return PromptOccasion(turn=await self.turn(spot, text))
        turn = await self.turn(spot, text, origin=Origin.JOB)
        if kind is PromptKind.SUBAGENT:
            task = Task(parent=RunId("r"), call_id="c", conversation=turn.conversation, waits=True)
            return PromptOccasion(turn=replace(turn, task=task), kind=kind, task=text)
        order = JobOrder(job_id=1, slot="s", name="job", is_heartbeat=kind is PromptKind.HEARTBEAT)
        full = kind is PromptKind.PROACTIVE and len(text) % 2 == 0
        return PromptOccasion(
            turn=replace(turn, job=order), kind=kind, task=text, full_context=full
        )

    async def prompt(self, spot: Spot, text: str, kind: PromptKind = PromptKind.CHAT) -> str:
        """All that would be sent, as it goes over the wire, without the words of the message."""
        plan = await self.app.beginning.plan(await self.occasion(spot, text, kind))
        prompt = plan.prompt
        entries: tuple[Entry, ...] = (
            *plan.entries(),
            *(Note(text=note.text) for note in plan.history.notes),
            Said(text=prompt.user.replace(text, "") or "…"),
            *(Context(text=one) for one in (prompt.context, prompt.whole_context) if one),
        )
        request = ModelRequest(system=prompt.system, entries=entries, tools=plan.tools)
        return body("openai/lab-model", request, traits=ModelTraits()).decode()

    async def caller(self, spot: Spot) -> Caller:
        return Caller(
            person_id=spot.person.id,
            role=spot.person.role,
            address=spot.address,
            conversation=await self.conversation(spot),
            run_id=RunId("r_now"),
            is_group=spot.is_group,
        )

    async def call(self, spot: Spot, name: str, **arguments: object) -> str:
        """What a tool says."""
        tool = self.app.abilities.toolbox.get(name)
        assert tool is not None, name
        given = parse_arguments(tool.card.arguments, json.dumps(arguments))
        return await tool.run(given, await self.caller(spot))

    def question(self, chance: random.Random) -> str:
        """Half of them touch what somebody told."""
        name = chance.choice(HOUSEHOLD).name
        if chance.random() < 0.5:
            nouns = chance.sample(_NOUNS, 2)
            return chance.choice(_ASKED).format(*nouns, name=name)
        if chance.random() < 0.3:
            return f"Who or what is {chance.choice(self.canaries).word}?"
        return chance.choice(_OTHERWISE).format(name=name)


def _letters(number: int) -> str:
    first, second = divmod(number, 26)
    return chr(97 + first // 26) + chr(97 + first % 26) + chr(97 + second)


@asynccontextmanager
async def opened_cage(root: Path, *, embeddings: bool) -> AsyncIterator[Cage]:
    """An empty one, with its people and groups."""
    home, clock = Home(root / "home"), StillClock()
    prepare(home)
    env = {
        "HEARTHBOT_LLM__API_BASE": "http://127.0.0.1:9/v1",
        "HEARTHBOT_LLM__MODEL": "openai/lab-model",
        "HEARTHBOT_LLM__API_KEY": "lab-key-of-the-test",
        "HEARTHBOT_MEMORY__EMBEDDINGS": str(embeddings).lower(),
        "HEARTHBOT_TOOLS__EMBEDDINGS": "false",
    }
    settings = load(home.path, env)
    async with App(home, settings, env=env, clock=clock) as app:
        people = SqlitePeople(app.database)
        for person in HOUSEHOLD:
            await people.add_person(person)
        for chat in MEMBERS:
            await people.set_chat(chat, ADMITTED)
        await app.ready(app.prompts, app.chats)
        yield Cage(home=home, clock=clock, app=app)
