"""Homes in Slack: published when they are opened, and after a press on them.

Called by the intake and the channel, which never wait for it. Slack keeps what was published last,
so one that is opened often is written once for all that came meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from itertools import count

import structlog

from agent.models.router import Router
from bot.channels.base import EDIT_FACT, NEW_REMINDER, Outage
from bot.channels.slack.api import Limited, SlackTrouble, SlackWeb
from bot.channels.slack.send import ROW_BUTTONS_MAX, SECTION_CHARS_MAX, Block, button_block, marked
from bot.channels.slack.wire import HOME_CHANNEL
from bot.commands.jobs import messages as words
from bot.commands.usage import cost_words
from bot.markup.command_text import bare, day
from bot.markup.render import slack_parts
from bot.people.access import Access
from memory.records.errors import AssistantError
from memory.records.facts import StoredFact, Whose
from memory.records.jobs import At, Job, JobKind, JobStatus, SetBy
from memory.records.messages import Address, Role
from memory.records.ports import Clock
from memory.records.rows import Button, Person, StoredApproval
from memory.records.schedule import due_words
from memory.records.usage import Period, UsageQuery, UsageSum, added, bounds
from scheduler.jobs.events import EventService
from scheduler.jobs.service import JobService

log = structlog.get_logger()

EVERY_S = 0.75
"""Between two writings: Slack allows a hundred a minute in a workspace. Whoever opens theirs again
and again waits behind all others each time."""

STRANGERS_EVERY_S = 3_600.0
"""Between two writings for one stranger: the page is the one answer that they get (SPEC §4)."""

WAITING_MAX = 500
"""Homes that wait to be written. One more is left out: it is written when it is opened again."""

BLOCKS_MAX = 100
TITLE_CHARS_MAX = 150
SAID_CHARS_MAX = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeLine:
    """One thing on a page, in Markdown, with the buttons that belong to it."""

    text: str
    buttons: tuple[Button, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeSection:
    """Lines under a title; an empty title: none is shown."""

    lines: tuple[HomeLine, ...]
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _HomeRequest:
    """A home that is to be written. `said` is what came of the press on it."""

    chat_id: str
    said: str = ""


class HomeWriter:
    """Writes homes, one after the other, in `work`."""

    def __init__(self, web: SlackWeb, page: HomeView, *, clock: Clock) -> None:
        self._web = web
        self._page = page
        self._clock = clock
        self._wishes: dict[str, _HomeRequest] = {}
        self._strangers: dict[str, float] = {}
        """When the page of a stranger was last wished for, on the monotonic clock."""
        self._some = asyncio.Event()
        self._outage = Outage("slack.no_home", clock)

    def knows(self, sender: str) -> bool:
        """Return whether this address is somebody's who is let in."""
        return self._page.knows(sender)

    def opened(self, sender: str, chat_id: str) -> None:
        """Somebody who is let in looks at their home. Returns at once."""
        self._strangers.pop(sender, None)
        self._look(sender, chat_id)

    def opened_by_stranger(self, sender: str, chat_id: str) -> None:
        """The same of a stranger: once an hour, for Slack keeps what they read. Of more strangers
        than can wait, none is written. Returns at once."""
        now_s = self._clock.monotonic()
        if now_s - self._strangers.get(sender, -STRANGERS_EVERY_S) < STRANGERS_EVERY_S:
            return
        self._strangers = {
            one: at_s for one, at_s in self._strangers.items() if now_s - at_s < STRANGERS_EVERY_S
        }
        if len(self._strangers) < WAITING_MAX:
            self._strangers[sender] = now_s
            self._look(sender, chat_id)

    def _look(self, sender: str, chat_id: str) -> None:
        before = self._wishes.get(sender)
        self._wish(sender, _HomeRequest(chat_id=chat_id) if before is None else before)

    def pressed(self, sender: str, chat_id: str, said: str) -> None:
        """Somebody pressed a button on their home, and is told this. Returns at once."""
        self._wish(sender, _HomeRequest(chat_id=chat_id, said=said))

    def _wish(self, sender: str, wish: _HomeRequest) -> None:
        if sender not in self._wishes and len(self._wishes) >= WAITING_MAX:
            log.debug("slack.home_left_out", waiting=WAITING_MAX)
            return
        self._wishes[sender] = wish
        self._some.set()

    async def work(self) -> None:
        """Until cancelled. What goes wrong is told once, and harms nothing else."""
        while True:
            await self._some.wait()
            sender = next(iter(self._wishes))
            wish = self._wishes.pop(sender)
            if not self._wishes:
                self._some.clear()
            try:
                await self._write(sender, wish)
                self._outage.over()
            except Limited as limit:
                self._outage.tell(str(limit))
                self._wish(sender, self._wishes.get(sender, wish))
                await self._clock.sleep(limit.seconds)
            except (AssistantError, SlackTrouble) as trouble:
                self._strangers.pop(sender, None)  # nothing was written, so the next look counts
                self._outage.tell(str(trouble))
            await self._clock.sleep(EVERY_S)

    async def _write(self, sender: str, wish: _HomeRequest) -> None:
        lane = Address(channel="slack", chat_id=wish.chat_id).key
        shown = await self._page.sections(sender, lane)
        view = {
            "type": "home",
            "blocks": home_blocks(shown, said=wish.said),
            HOME_CHANNEL: wish.chat_id.partition(".")[2],
        }
        user = sender.rpartition(":")[2]
        await self._web.call("views.publish", user_id=user, view=view)


def home_blocks(sections: Sequence[HomeSection], *, said: str = "") -> list[Block]:
    """At most as many blocks as Slack takes; what is beyond is left out, and that is said."""
    numbers = count(1)
    found: list[Block] = []
    if said.strip():
        found += [_text(said[:SAID_CHARS_MAX]), {"type": "divider"}]
    for one in sections:
        if one.title.strip():
            title = one.title.strip()[:TITLE_CHARS_MAX]
            shown = {"type": "plain_text", "text": title, "emoji": True}
            found.append({"type": "header", "text": shown})
        found += _lines(one.lines, numbers)
    if len(found) <= BLOCKS_MAX:
        return found
    return [*found[: BLOCKS_MAX - 1], _text("… and more than fits here.")]


def _lines(lines: Sequence[HomeLine], numbers: count[int]) -> list[Block]:
    """A line with buttons is a block of its own; the others are one text, cut where it is long."""
    found: list[Block] = []
    plain: list[str] = []
    for line in lines:
        if not line.buttons:
            plain.append(line.text)
            continue
        found += _texts(plain)
        plain = []
        buttons = [button_block(one, next(numbers)) for one in line.buttons]
        texts = _texts([line.text])
        if len(buttons) == 1 and texts:  # a single button stands beside its text, several below it
            found += [*texts[:-1], {**texts[-1], "accessory": buttons[0]}]
        else:
            found += [*texts, {"type": "actions", "elements": buttons[:ROW_BUTTONS_MAX]}]
    return [*found, *_texts(plain)]


def _texts(lines: Sequence[str]) -> list[Block]:
    parts = slack_parts("\n".join(lines), limit=SECTION_CHARS_MAX)
    return [marked(part.markup) for part in parts]


def _text(line: str) -> Block:
    """Words of ours or of a command, as Markdown; the first part is all that there is room for."""
    parts = slack_parts(line, limit=SECTION_CHARS_MAX)
    return marked(parts[0].markup if parts else "…")


# --- what stands on a home ----------------------------------------------------------------------
#
# What comes next, what is known of the person, what it cost. Every question names the person whose
# page it is, so that nobody reads another's. Their words get there without markup.

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
"""When what has no date comes."""


class HomeView:
    """The page of each person."""

    def __init__(
        self,
        access: Access,
        *,
        jobs: JobService,
        events: EventService,
        facts: Callable[[Whose], Awaitable[Sequence[StoredFact]]],
        models: Router,
        sums: Callable[[UsageQuery], Awaitable[Sequence[UsageSum]]],
        open_questions: Callable[[], Awaitable[Sequence[StoredApproval]]],
        clock: Clock,
    ) -> None:
        """`sums` counts what was used up to now. Of `open_questions`, which wait for a yes or no,
        and of everybody's jobs, the owner alone reads a number."""
        self._access = access
        self._jobs = jobs
        self._events = events
        self._facts = facts
        self._models = models
        self._sums = sums
        self._open_questions = open_questions
        self._clock = clock

    def knows(self, sender: str) -> bool:
        """Return whether this address is somebody's who is let in."""
        return self._access.who(sender) is not None

    async def sections(self, sender: str, lane: str) -> Sequence[HomeSection]:
        """The page of whoever has this address. Raises StorageError."""
        person = self._access.who(sender)
        if person is None:
            return (_section("", [ASK_TO_BE_LET_IN[self._access.policy]]),)
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
        zone = self._jobs.times.zone(person.id)
        jobs = await self._jobs.of(person.id)
        found = [(job.next.at_ms, _of_job(job, zone)) for job in jobs if job.enabled and job.next]
        for event in await self._events.ahead(person.id, ""):
            at_ms = _LAST if event.at is None else int(event.at.timestamp() * 1000)
            found.append((at_ms, HomeLine(text=f"- {words.event_words(event, zone)}")))
        found.sort(key=lambda one: one[0])
        lines = [line for _, line in found[:NEXT_SHOWN]]
        if len(found) > NEXT_SHOWN:
            lines.append(HomeLine(text=f"… and {len(found) - NEXT_SHOWN} more: `/hearth jobs`"))
        if not lines:
            lines = [HomeLine(text=NOTHING_NEXT)]
        sections = [HomeSection(title=f"Next ({zone})", lines=tuple(lines))]
        stopped = [job for job in jobs if not job.enabled]
        if stopped:
            still = [_standing(self._jobs.status(job)) for job in stopped[:STOPPED_SHOWN]]
            if len(stopped) > STOPPED_SHOWN:
                more = len(stopped) - STOPPED_SHOWN
                still.append(HomeLine(text=f"… and {more} more: `/hearth jobs`"))
            sections.append(HomeSection(title="Standing still", lines=tuple(still)))
        return [*sections, HomeSection(lines=(HomeLine(text="", buttons=(NEW,)),))]

    # --- what is known, and what it cost ------------------------------------------------------

    async def _known(self, person: Person) -> HomeSection:
        facts = await self._facts(Whose(person_id=person.id))
        zone = self._jobs.times.zone(person.id)
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
        zone = self._jobs.times.zone(person.id)
        lines = []
        for name, period in (("Today", Period.DAY), ("This month", Period.MONTH)):
            since_ms, until_ms = bounds(period, self._clock.now(), zone)
            wanted = UsageQuery(since_ms=since_ms, until_ms=until_ms, person_id=person.id)
            used = added(await self._sums(wanted))
            counted = "1 call" if used.calls == 1 else f"{used.calls:,} calls"
            spent = f"{counted}, {used.tokens:,} tokens, {cost_words(used)}"
            lines.append(f"**{name}**: {spent if used.calls else 'nothing'}")
        return _section("What you used", lines)

    async def _set(self, person: Person, lane: str) -> HomeSection:
        model = bare((await self._models.at(lane)).name)
        hours = await self._jobs.quiet_hours(person.id)
        quiet = f"{hours} ({self._jobs.times.zone(person.id)})" if hours else "none"
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
            one.expires_ms > now_ms and (one.asked.owner_alone or one.asked.person_id == owner.id)
            for one in await self._open_questions()
        )
        stopped = sum(job.failures > 0 and not job.enabled for job in await self._jobs.of(None))
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
    text = f"- {job.key} {words.name_of(job)} ({words.DOES[job.kind]}): "
    is_own = job.kind is JobKind.MESSAGE and job.set_by is SetBy.PERSON
    button = words.standing_button(job)
    if is_own and isinstance(job.when, At):
        button = words.done_button(job, job.when)
    return HomeLine(text=text + due_words(job.next, zone), buttons=(button,) if button else ())


def _standing(now: JobStatus) -> HomeLine:
    job = now.job
    text = f"- {job.key} {words.name_of(job)}: {words.paused_state(now)}"
    if job.kind is JobKind.HEARTBEAT:
        return HomeLine(text=f"{text} (`/hearth heartbeat`)")
    button = words.standing_button(job)
    return HomeLine(text=text, buttons=(button,) if button else ())
