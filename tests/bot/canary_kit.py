"""A household in which every place that remembers a person holds a word of its own, a canary, and
whole prompts for anybody in it, made by the real wiring on a real home. No model is asked."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import count, product
from pathlib import Path

from agent.events import OccasionWish
from agent.gathering import Occasion
from agent.jobbook import JobWish, TimeRead
from agent.jobs import At
from agent.messages import (
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
from agent.models.wire import body
from agent.remembering import CATEGORIES, FactSource, NewFact, Whose, place_of
from agent.request import ModelRequest, ModelTraits
from agent.scene import PromptKind
from agent.scheduled import JobKind, What
from agent.tools.tool import Caller
from agent.transcript import Answered, Context, Entry, Note, Said, ToolCall, ToolResult
from bot.access import ADMITTED
from bot.assembly import opened_database, pool_of
from bot.config_reading import load
from bot.home import Home, prepare
from bot.model_names import configured
from bot.parts import Abilities, Prompting, Stores, abilities_of, access_of, prompting_of, stores_of
from bot.place import Workplace
from bot.ports import Person
from bot.toolmaking import Doors
from memory.compactions import NEVER, NewCompaction
from memory.insights import Insights
from memory.people import SqlitePeople
from tests.memory.history_kit import add_turns
from tests.memory.kit import START, StillClock

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
    stores: Stores
    abilities: Abilities
    prompting: Prompting
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
        return await self.stores.conversations.current(spot.address.key)

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

    async def occasion(self, spot: Spot, text: str, kind: PromptKind) -> Occasion:
        if kind is PromptKind.CHAT:
            return Occasion(turn=await self.turn(spot, text))
        turn = await self.turn(spot, text, origin=Origin.JOB)
        if kind is PromptKind.SUBAGENT:
            task = Task(parent=RunId("r"), call_id="c", conversation=turn.conversation, waits=True)
            return Occasion(turn=replace(turn, task=task), kind=kind, task=text)
        order = JobOrder(job_id=1, slot="s", name="job", is_heartbeat=kind is PromptKind.HEARTBEAT)
        full = kind is PromptKind.PROACTIVE and len(text) % 2 == 0
        return Occasion(turn=replace(turn, job=order), kind=kind, task=text, full_context=full)

    async def prompt(self, spot: Spot, text: str, kind: PromptKind = PromptKind.CHAT) -> str:
        """All that would be sent, as it goes over the wire, without the words of the message."""
        plan = await self.prompting.beginning.plan(await self.occasion(spot, text, kind))
        prompt = plan.prompt
        entries: tuple[Entry, ...] = (
            *plan.entries(),
            *(Note(text=text) for _, text in plan.history.notes),
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
        tool = self.abilities.tools.toolbox.get(name)
        assert tool is not None, name
        kind = tool.card.arguments
        assert isinstance(kind, type), name
        given = kind.model_validate(arguments)
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
    place = Workplace(home=home, settings=settings, clock=clock, env=env)
    async with AsyncExitStack() as stack:
        database = await opened_database(stack, place)
        people = SqlitePeople(database)
        for person in HOUSEHOLD:
            await people.add_person(person)
        for chat in MEMBERS:
            await people.set_chat(chat, ADMITTED)
        models = await configured(settings, env)
        pool = await stack.enter_async_context(pool_of(place, models, database))
        stores, access = stores_of(place, database), await access_of(place, database)
        abilities = abilities_of(place, stores, access, Doors())
        prompting = prompting_of(place, stores, abilities, access=access, models=pool)
        await abilities.calendar.chats.load()
        yield Cage(home=home, clock=clock, stores=stores, abilities=abilities, prompting=prompting)


# --- planting ------------------------------------------------------------------------------------


async def plant(cage: Cage) -> None:
    """A canary in every place, of everybody."""
    for spot in spots():
        await _talk(cage, spot)
    for person in HOUSEHOLD:
        for address in (*person.addresses, f"slack:T0.D0{person.name.upper()}"):
            cage.address(person, address.rpartition(":")[2].rpartition(".")[2])
        await _facts(cage, person, "")
        await _profile(cage, person)
        _notes(cage, person)
        await _document(cage, person, "")
        await _future(cage, person, Spot(person=person, address=_home_of(person)))
    for chat, members in MEMBERS.items():
        for person in members:
            await _facts(cage, person, chat)
            await _document(cage, person, chat)
    for spot in spots():
        if spot.is_group and spot.address.thread_id is None:
            await _future(cage, spot.person, spot)
    await cage.stores.memories.archive.index_new()


def _home_of(person: Person) -> Address:
    return Address.parse(person.addresses[0])


async def _facts(cage: Cage, person: Person, scope: str) -> None:
    of = Whose(person_id=person.id, scope=scope)
    where = "group facts" if scope else "facts"

    async def store(place: str, **more: object) -> int:
        text = cage.line(person, place, scope=scope)
        values: dict[str, object] = {"category": "background", "source": FactSource.PERSON, **more}
        new = NewFact(whose=of, text=text, speaker=person.name, quote=text, **values)  # type: ignore[arg-type]
        stored = await cage.stores.memories.facts.store(new)
        assert stored.fact is not None, stored.why
        return stored.fact.id

    for category in CATEGORIES if not scope else CATEGORIES[:2]:
        await store(where, category=category)
    for source in FactSource:
        await store(where, source=source)
    old = await store(f"closed {where}")
    await store(where, replaces=old)


async def _profile(cage: Cage, person: Person) -> None:
    paths: dict[str, object] = {
        "name": cage.canary(person, "profile").word,
        "title": cage.canary(person, "profile").word,
        "languages": [cage.canary(person, "profile").word],
        "preferences.tea": cage.line(person, "profile"),
        "projects": [cage.line(person, "profile")],
        "persona.name": cage.canary(person, "persona").word,
        "persona.style": cage.line(person, "persona"),
        "persona.tone": cage.line(person, "persona"),
        "persona.system_prompt": f"You are kind. {cage.line(person, 'persona prompt')}",
    }
    for path, value in paths.items():
        await cage.stores.memories.profiles.update(person.id, path, value, reason="they said so")


def _notes(cage: Cage, person: Person) -> None:
    workspace = cage.home.workspace
    notes = workspace / "memory"
    if person.role is Role.OWNER:
        (workspace / "USER.md").write_text(cage.line(person, "USER.md"))
    else:
        notes = notes / "people" / person.id
    notes.mkdir(parents=True, exist_ok=True)
    (notes / "MEMORY.md").write_text(cage.line(person, "MEMORY.md"))
    for back in range(3):
        day = START - timedelta(days=back)
        folder = notes / f"{day:%Y%m}"
        folder.mkdir(exist_ok=True)
        (folder / f"{day:%Y%m%d}.md").write_text(cage.line(person, "daily notes"))


async def _document(cage: Cage, person: Person, scope: str) -> None:
    place = "group documents" if scope else "documents"
    text = "\n\n".join(cage.line(person, place, scope=scope) for _ in range(3))
    name = cage.canary(person, f"names of {place}", scope=scope).word
    await cage.stores.memories.documents.save(
        Whose(person_id=person.id, scope=scope),
        name=f"{name}.txt",
        kind="txt",
        source=cage.canary(person, f"sources of {place}", scope=scope).word,
        text=text,
    )


async def _future(cage: Cage, person: Person, spot: Spot) -> None:
    calendar, lane, scope = cage.abilities.calendar, spot.address.key, spot.scope
    place = "group upcoming" if scope else "upcoming"
    when = TimeRead(when=At(moment=START + timedelta(days=1), zone="UTC"), sentence="tomorrow")
    for kind in (JobKind.MESSAGE, JobKind.AGENT):
        await calendar.clerk.add(
            JobWish(
                person_id=person.id,
                kind=kind,
                what=What(text=cage.line(person, f"words of {place}", scope=scope)),
                time=when,
                deliver_to=lane,
                name=cage.canary(person, place, scope=scope).word,
            )
        )
    await calendar.agenda.record(
        OccasionWish(
            person_id=person.id,
            name=cage.canary(person, place, scope=scope).word,
            note=cage.line(person, place, scope=scope),
            when="tomorrow at 8",
            time=when,
            deliver_to=lane,
            scope=scope,
        )
    )


async def _talk(cage: Cage, spot: Spot) -> None:
    """A talk that was closed, one that is open, and what was made of it."""
    person, lane, scope = spot.person, spot.address.key, spot.scope
    where = "group history" if scope else "history"
    database, conversations = cage.stores.database, cage.stores.conversations

    def turn(place: str) -> Sequence[Entry]:
        def line() -> str:
            return cage.line(person, place, scope=scope)

        call = ToolCall(id="c1", name="read_file", arguments=f'{{"path": "{line()}"}}')
        said = Said(text=line())
        if scope:
            said = replace(said, sender=person.name, by=person.id)
        return [
            said,
            Context(text=f"<context>\n{line()}\n</context>"),
            Answered(text="", calls=(call,)),
            ToolResult(call_id="c1", content=line()),
            Answered(text=line()),
        ]

    async def says(conversation: ConversationId, place: str) -> None:
        await add_turns(database, conversation, [turn(place)], by=person.id, lane=lane)

    if scope == "":
        await says(await conversations.current(lane), f"closed {where}")
        await conversations.start_new(lane)
    current = await conversations.current(lane)
    if not (await conversations.history(current)).entries:
        await says(current, f"summed-up {where}")
        await _sum_up(cage, current, cage.line(person, f"summary of {where}", scope=scope))
    await says(current, where)
    await conversations.note(current, cage.line(person, f"edits of {where}", scope=scope))
    had = await cage.stores.memories.insights.current(current, cage.clock.now()) or Insights()
    notes = f"pins of {where}", f"recommendations of {where}"
    await cage.stores.memories.insights.put(
        current,
        Insights(
            pins=(*had.pins, cage.line(person, notes[0], scope=scope)),
            recommendations=(*had.recommendations, cage.line(person, notes[1], scope=scope)),
            updated_ms=database.now_ms(),
        ),
    )


async def _sum_up(cage: Cage, conversation: ConversationId, summary: str) -> None:
    history = await cage.stores.conversations.history(conversation)
    made = await cage.stores.memories.compactions.add(
        conversation,
        NewCompaction(
            after=NEVER,
            generation=0,
            kind="summarise",
            from_id=0,
            sent_from=history.entries[-1].id + 1,
            summary=summary,
            reason="",
            messages=5,
            tokens_before=100,
            tokens_after=10,
        ),
    )
    assert made is not None
