"""A person's own page: what comes next, what is known of them, what it cost.

Implements `bot.channel.TellsHome`; shown by channels that have such a page. Every question names
the person whose page it is, so that nobody reads another's. Their words get there without markup.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Protocol

from agent.agreed import StoredApproval
from agent.events import Agenda, Occasion
from agent.jobbook import JobBook, due_words
from agent.jobs import At
from agent.messages import PersonId, Role
from agent.ports import Clock, InUse
from agent.remembering import Facts, Whose
from agent.scheduled import Job, JobKind, SetBy
from agent.spending import Period, Scope, bounds, zone_for
from agent.spent import Group, UsageSums, Wanted
from agent.stored import Button
from bot import schedule_words as words
from bot.access import Policy
from bot.channel import EDIT_FACT, NEW_REMINDER, HomeLine, HomeSection
from bot.memory_words import bare, day
from bot.ports import Person
from bot.usage import cost_words

NEXT_SHOWN = 10
STOPPED_SHOWN = 5
FACTS_SHOWN = 3
FACT_CHARS = 200

ASK_TO_BE_LET_IN = {
    "pairing": "I do not know you yet: write me a message, and I answer with a code that my owner "
    "can let you in with.",
    "allowlist": "I do not know you yet: ask the person who runs me to let you in.",
    "open": "I do not know you yet: write me a message, and I answer.",
}
FOR_GUESTS = (
    "You are a guest here: write me a message, and ask the person who runs me to make you a member "
    "if you want to see reminders, memory and cost on this page."
)
NOTHING_NEXT = "Nothing so far. Write me `/hearth remind tomorrow at 5 call Bob`, or just say so."
HOW_TO_MEMORY = (
    "`/hearth memory` shows all of it, `/hearth memory forget f12` (or everything) erases it."
)

NEW = Button(label="New reminder", data=NEW_REMINDER)

_LAST = 2**62


class People(Protocol):
    """Who is let in; `bot.access` is one."""

    @property
    def policy(self) -> Policy:
        """What becomes of strangers."""

    def who(self, sender: str) -> Person | None:
        """The person behind an address; None is a stranger."""


class Answers(Protocol):
    """Which model answers at an address; `bot.model_pool` is one."""

    async def at(self, lane: str) -> InUse: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a page is made of. `counted` returns once the figures of `sums` are up to date.
    `jobs` are everybody's, and `open_questions` what waits for a yes or no: of both, the owner
    alone reads a number."""

    book: JobBook
    agenda: Agenda
    facts: Facts
    sums: UsageSums
    counted: Callable[[], Awaitable[object]]
    models: Answers
    jobs: Callable[[], Awaitable[Sequence[Job]]]
    open_questions: Callable[[], Awaitable[Sequence[StoredApproval]]]


class HomeView:
    """Implements `bot.channel.TellsHome`."""

    def __init__(self, people: People, told: Told, *, clock: Clock, host_zone: tzinfo) -> None:
        self._people = people
        self._told = told
        self._clock = clock
        self._host_zone = host_zone

    def knows(self, sender: str) -> bool:
        """Whether this address is somebody's who is let in."""
        return self._people.who(sender) is not None

    async def sections(self, sender: str, lane: str) -> Sequence[HomeSection]:
        """The page of whoever has this address. Raises StorageError."""
        person = self._people.who(sender)
        if person is None:
            return (_section("", [ASK_TO_BE_LET_IN[self._people.policy]]),)
        if person.role is Role.GUEST:
            return (_section("", [FOR_GUESTS]),)
        found = [
            *await self._ahead(person),
            await self._known(person),
            await self._spent(person),
            await self._set(person, lane),
        ]
        if person.role is Role.OWNER:
            found.append(await self._for_owner(person))
        return found

    # --- what comes ---------------------------------------------------------------------------

    async def _ahead(self, person: Person) -> list[HomeSection]:
        zone = self._told.book.zone(person.id)
        jobs = await self._told.book.of(person.id)
        found = [(job.next.at_ms, _of_job(job, zone)) for job in jobs if job.enabled and job.next]
        for event in await self._told.agenda.ahead(person.id, ""):
            found.append((_at_ms(event), HomeLine(text=f"- {words.event_words(event, zone)}")))
        found.sort(key=lambda one: one[0])
        lines = [line for _, line in found[:NEXT_SHOWN]]
        if len(found) > NEXT_SHOWN:
            lines.append(HomeLine(text=f"… and {len(found) - NEXT_SHOWN} more: `/hearth jobs`"))
        if not lines:
            lines = [HomeLine(text=NOTHING_NEXT)]
        sections = [HomeSection(title=f"Next ({zone})", lines=tuple(lines))]
        stopped = [job for job in jobs if not job.enabled]
        if stopped:
            still = [_standing(self._told.book, job) for job in stopped[:STOPPED_SHOWN]]
            if len(stopped) > STOPPED_SHOWN:
                more = len(stopped) - STOPPED_SHOWN
                still.append(HomeLine(text=f"… and {more} more: `/hearth jobs`"))
            sections.append(HomeSection(title="Standing still", lines=tuple(still)))
        return [*sections, HomeSection(lines=(HomeLine(text="", buttons=(NEW,)),))]

    # --- what is known, and what it cost ------------------------------------------------------

    async def _known(self, person: Person) -> HomeSection:
        facts = await self._told.facts.list(Whose(person_id=person.id))
        zone = self._told.book.zone(person.id)
        many = "1 fact" if len(facts) == 1 else f"{len(facts):,} facts"
        shown = [
            HomeLine(
                text=f"- {fact.key} “{bare(fact.text, chars_max=FACT_CHARS)}” "
                f"({day(fact.created_ms, zone)})",
                buttons=(Button(label="Correct", data=f"{EDIT_FACT}{fact.key}"),),
            )
            for fact in facts[:FACTS_SHOWN]
        ]
        first = HomeLine(text=f"{many} about you{', the newest:' if facts else '.'}")
        lines = (first, *shown, HomeLine(text=HOW_TO_MEMORY))
        return HomeSection(title="What I know of you", lines=lines)

    async def _spent(self, person: Person) -> HomeSection:
        await self._told.counted()
        zone = zone_for(Scope.PERSON, person.time_zone, self._host_zone)
        lines = []
        for name, period in (("Today", Period.DAY), ("This month", Period.MONTH)):
            since_ms, until_ms = bounds(period, self._clock.now(), zone)
            wanted = Wanted(since_ms=since_ms, until_ms=until_ms, person_id=person.id)
            lines.append(f"**{name}**: {_spent_words(await self._told.sums.groups(wanted))}")
        return _section("What you used", lines)

    async def _set(self, person: Person, lane: str) -> HomeSection:
        model = bare((await self._told.models.at(lane)).name)
        hours = await self._told.book.quiet_hours(person.id)
        quiet = f"{hours} ({self._told.book.zone(person.id)})" if hours else "none"
        return _section(
            "How I am set for you",
            [
                f"**Model**: {model} (`/hearth model`)",
                f"**Quiet hours**: {quiet} (`/hearth quiet 22:00-07:00`)",
            ],
        )

    async def _for_owner(self, owner: Person) -> HomeSection:
        now_ms = int(self._clock.now().timestamp() * 1000)
        waiting = sum(
            one.expires_ms > now_ms and _answers(owner.id, one)
            for one in await self._told.open_questions()
        )
        stopped = sum(job.failures > 0 and not job.enabled for job in await self._told.jobs())
        return _section(
            "For you as the owner",
            [
                f"**Waiting for your yes or no**: {waiting} (`/hearth approve`)",
                f"**Jobs of everybody that were stopped, as they kept failing**: {stopped}",
            ],
        )


# --- words ---------------------------------------------------------------------------------------


def _section(title: str, lines: Sequence[str]) -> HomeSection:
    return HomeSection(title=title, lines=tuple(HomeLine(text=line) for line in lines))


def _of_job(job: Job, zone: tzinfo) -> HomeLine:
    """A reminder that comes once can be seen to before its time; what comes again and again can be
    paused."""
    assert job.next is not None, "chosen so"
    text = f"- {job.key} {words.name_of(job)} ({words.DOES[job.new.kind]}): "
    is_own = job.new.kind is JobKind.MESSAGE and job.new.set_by is SetBy.PERSON
    button = words.standing_button(job)
    if is_own and isinstance(job.new.when, At):
        button = words.done_button(job, job.new.when)
    return HomeLine(text=text + due_words(job.next, zone), buttons=(button,) if button else ())


def _standing(book: JobBook, job: Job) -> HomeLine:
    text = f"- {job.key} {words.name_of(job)}: {words.paused_state(book, job)}"
    if job.new.kind is JobKind.HEARTBEAT:
        return HomeLine(text=f"{text} (`/hearth heartbeat`)")
    button = words.standing_button(job)
    return HomeLine(text=text, buttons=(button,) if button else ())


def _at_ms(event: Occasion) -> int:
    """What has no date comes last."""
    at: datetime | None = event.new.at
    return _LAST if at is None else int(at.astimezone(UTC).timestamp() * 1000)


def _answers(owner: PersonId, one: StoredApproval) -> bool:
    """Whether this question is for the owner to answer."""
    return one.asked.owner_alone or one.asked.person_id == owner


def _spent_words(groups: Sequence[Group]) -> str:
    calls = sum(one.calls for one in groups)
    if not calls:
        return "nothing"
    tokens = sum(one.tokens for one in groups)
    micros, unpriced = sum(one.micros for one in groups), sum(one.unpriced for one in groups)
    counted = "1 call" if calls == 1 else f"{calls:,} calls"
    return f"{counted}, {tokens:,} tokens, {cost_words(micros, calls, unpriced)}"
