"""Puts a canary into every place that remembers a person, as the bot itself would store it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from memory.facts.insights import Insights
from memory.records.facts import CATEGORIES, Compaction, FactSource, NewFact, Whose
from memory.records.jobs import Asker, At, Job, JobKind, What
from memory.records.messages import Address, ConversationId, Role
from memory.records.rows import Person
from memory.records.schedule import Event, TimeRead
from memory.records.transcript import Answered, Context, Entry, Said, ToolCall, ToolResult
from memory.stores.compactions import NEVER, SqliteCompactions
from tests.bot.canary_kit import HOUSEHOLD, MEMBERS, Cage, Spot, spots
from tests.memory.history_kit import add_turns
from tests.memory.kit import START


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
    await cage.app.memories.archive.index_new()


def _home_of(person: Person) -> Address:
    return Address.parse(person.addresses[0])


async def _facts(cage: Cage, person: Person, scope: str) -> None:
    of = Whose(person_id=person.id, scope=scope)
    where = "group facts" if scope else "facts"

    async def store(place: str, **more: object) -> int:
        text = cage.line(person, place, scope=scope)
        values: dict[str, object] = {"category": "background", "source": FactSource.PERSON, **more}
        new = NewFact(whose=of, text=text, speaker=person.name, quote=text, **values)  # type: ignore[arg-type]
        stored = await cage.app.memories.facts.store(new)
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
        await cage.app.memories.profiles.update(person.id, path, value, reason="they said so")


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
    await cage.app.memories.documents.save(
        Whose(person_id=person.id, scope=scope),
        name=f"{name}.txt",
        kind="txt",
        source=cage.canary(person, f"sources of {place}", scope=scope).word,
        text=text,
    )


async def _future(cage: Cage, person: Person, spot: Spot) -> None:
    calendar, lane, scope = cage.app.calendar, spot.address.key, spot.scope
    place = "group upcoming" if scope else "upcoming"
    when = At(moment=START + timedelta(days=1), zone="UTC")
    for kind in (JobKind.MESSAGE, JobKind.AGENT):
        draft = Job(
            person_id=person.id,
            kind=kind,
            what=What(text=cage.line(person, f"words of {place}", scope=scope)),
            when=when,
            deliver_to=lane,
            name=cage.canary(person, place, scope=scope).word,
        )
        await calendar.jobs.add(draft, by=Asker(person_id=person.id))
    event = Event(
        person_id=person.id,
        name=cage.canary(person, place, scope=scope).word,
        note=cage.line(person, place, scope=scope),
        scope=scope,
    )
    time = TimeRead(when=when, sentence="tomorrow")
    await calendar.events.record(event, time, deliver_to=lane)


async def _talk(cage: Cage, spot: Spot) -> None:
    """A talk that was closed, one that is open, and what was made of it."""
    person, lane, scope = spot.person, spot.address.key, spot.scope
    where = "group history" if scope else "history"
    database, conversations = cage.app.database, cage.app.conversations

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
    edit = cage.line(person, f"edits of {where}", scope=scope)
    await conversations.note(current, edit, untrusted=True)
    had = await cage.app.memories.insights.current(current, cage.clock.now()) or Insights()
    notes = f"pins of {where}", f"recommendations of {where}"
    await cage.app.memories.insights.put(
        current,
        Insights(
            pins=(*had.pins, cage.line(person, notes[0], scope=scope)),
            recommendations=(*had.recommendations, cage.line(person, notes[1], scope=scope)),
            updated_ms=database.now_ms(),
        ),
    )


async def _sum_up(cage: Cage, conversation: ConversationId, summary: str) -> None:
    history = await cage.app.conversations.history(conversation)
    made = await SqliteCompactions(cage.app.database).add(
        conversation,
        Compaction(
            kind="summarise",
            from_id=0,
            sent_from=history.entries[-1].id + 1,
            summary=summary,
            reason="",
            messages=5,
            tokens_before=100,
            tokens_after=10,
        ),
        after=NEVER,
        generation=0,
    )
    assert made is not None
