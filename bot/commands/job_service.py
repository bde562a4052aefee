"""Jobs as their owner sees and changes them: `hearthbot schedule`.

Built by `bot.app`; its operations are served on the private socket, which is the owner's alone.
Answers are JSON objects; what each holds stands at the method that makes it. Moments are ISO texts
in the zone of the job, `slot` its due time as the clock on the wall shows it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from agent.trace.dry_run import Rehearsal
from bot.commands.job_messages import (
    JobOrders,
    JobOutlook,
    JobPeople,
    PastRuns,
    Rehearsals,
    clock_note,
    cost_row,
    due_row,
    foreseen_row,
    heard_row,
    iso,
    job_row,
    next_shift,
    pace_words,
    run_row,
    takes_words,
    zone_of,
)
from bot.rpc import Emit, Operation
from memory.records.errors import AssistantError, Permanent
from memory.records.job_specs import At, to_json
from memory.records.jobs import Due, Job, JobKind, Missed, What, WhenQuiet
from memory.records.messages import PersonId, TurnInput
from memory.records.ports import Clock
from memory.records.schedule import JobWish, RunCost

Json = dict[str, Any]

RUNS_SHOWN, NEXT_SHOWN, SHIFT_SHOWN = 10, 5, 3
DAYS_MAX = 366
TEXT_CHARS = 100_000
"""Of one event: a prompt may be longer than a line of the socket."""


class JobWrong(Permanent):
    """What was asked of the desk cannot be done; with what to do instead."""


class JobDesk:
    """Answers what the owner asks about jobs, and does what they decide."""

    def __init__(
        self,
        orders: JobOrders,
        outlook: JobOutlook,
        rehearsals: Rehearsals,
        people: JobPeople,
        *,
        clock: Clock,
        past: PastRuns | None = None,
    ) -> None:
        """Without `past` all costs are estimates, also of what has run before."""
        self._past = past
        self._orders = orders
        self._outlook = outlook
        self._rehearsals = rehearsals
        self._people = people
        self._clock = clock

    # --- looking -------------------------------------------------------------------------------

    async def listed(self) -> Json:
        """`jobs` (see `row`), and `broken` ones with `id`, `name`, `why`."""
        broken = await self._orders.broken()
        return {
            "jobs": [self.row(job) for job in await self._orders.of()],
            "broken": [{"id": one.id, "name": one.name, "why": one.why} for one in broken],
        }

    async def shown(self, name: str) -> Json:
        """The row, with its `next_runs`, as if it were on (or the `trouble` of finding them), and
        the `newest_runs`: `slot`, `state`, `at`, `late_s`, `note`, `result`, `run`."""
        job = await self._orders.find(name)
        zone = zone_of(job)
        runs = await self._orders.runs(job, limit=RUNS_SHOWN)
        dues, trouble = self._dues(job)
        return {
            **self.row(job),
            "next_runs": await self._next(job, dues),
            "trouble": trouble,
            "newest_runs": [run_row(run, zone) for run in runs],
        }

    def row(self, job: Job) -> Json:
        """One job: see `bot.commands.job_messages.job_row`."""
        person = self._people.person(job.new.person_id)
        return job_row(job, person, once_resumed=self._orders.once_resumed(job))

    async def read(self, asked: Json) -> Json:
        """How the time `when` is read for the owner: `sentence`, `when`, `zone`, `next` moments; of
        a job that is `wanted` (see `add`), what it `takes`. Raises Permanent, with what is to be
        asked, or because a job has the `name` already."""
        owner = self._owner()
        if name := str(asked.get("name") or ""):
            await self._orders.require_free(owner, name)
        found, zone = self._orders.read(owner, str(asked["when"])), self._people.zone(owner)
        wanted: Json = asked.get("wanted") or {}
        return {
            "sentence": found.sentence,
            "when": to_json(found.when),
            "zone": zone.key,
            "next": [{"at": at.astimezone(zone).isoformat()} for at in found.next],
            "runs_max": found.runs_max,
            "takes": await self._takes_of(wanted) if wanted.get("do") else "",
        }

    async def takes(self, job: Job) -> str:
        """What it will take, in a line; empty where it asks no model. Raises AssistantError."""
        turn = await self._rehearsals.turns.turn(job)
        found = await self._rehearsals.stage.rehearse(turn)
        if not found.asks:
            return ""
        cost = self._cost_row(job, await self._cost(job, found.cost))
        return takes_words(cost, model=found.model, is_once=isinstance(job.new.when, At))

    async def _takes_of(self, wanted: Json) -> str:
        """That it cannot be told is words too: it keeps nobody from keeping the job."""
        try:
            return await self.takes(self._orders.preview(await self._wish(wanted)))
        except AssistantError as error:
            return f"unknown: {str(error).rstrip('.')}"

    async def cost(self, skill: str) -> Json:
        """What a skill that runs by the clock would take: see `_cost_row`, and `text` in words."""
        job = await self._rehearsals.skills.preview(skill)
        turn = await self._rehearsals.turns.turn(job)
        cost = self._cost_row(job, (await self._rehearsals.stage.rehearse(turn)).cost)
        return {**cost, "text": pace_words(cost)}

    # --- changing ------------------------------------------------------------------------------

    async def add(self, wanted: Json) -> Json:
        """Keeps a job of the owner: `text`, `when`, and perhaps `do` (the assistant works on it),
        `name`, `to`, `urgent`, `nag_minutes`, `missed`, `quiet`. Its row."""
        if name := str(wanted.get("name") or ""):
            await self._orders.require_free(self._owner(), name)
        job = await self._orders.add(await self._wish(wanted))
        return {**self.row(job), "text": f"{job.key} ({job.new.name}) is kept."}

    async def _wish(self, wanted: Json) -> JobWish:
        owner = self._owner()
        nag = wanted.get("nag_minutes")
        missed = wanted.get("missed")
        return JobWish(
            person_id=owner,
            kind=JobKind.AGENT if wanted.get("do") else JobKind.MESSAGE,
            what=What(text=str(wanted["text"])),
            time=self._orders.read(owner, str(wanted["when"])),
            deliver_to=str(wanted.get("to") or "") or await self._home(owner),
            name=str(wanted.get("name") or ""),
            urgent=bool(wanted.get("urgent")),
            nag_s=None if nag is None else int(nag) * 60,
            missed=None if not missed else Missed(missed),
            quiet=WhenQuiet(wanted.get("quiet") or WhenQuiet.DEFER),
        )

    async def edit(self, key: str, wanted: Json) -> Json:
        """Gives a job other times (`when`), words (`text`), another `name` or other rules
        (`missed`, `quiet`); what is empty stays. Its row."""
        job = await self._orders.find(key)
        when, text = str(wanted.get("when") or ""), str(wanted.get("text") or "")
        missed, quiet = wanted.get("missed"), wanted.get("quiet")
        # Both or neither: a time that cannot be read leaves the words as they are.
        time = self._orders.read(job.new.person_id, when) if when else None
        if name := str(wanted.get("name") or ""):
            await self._orders.require_free(job.new.person_id, name, but=job.id)
        if text:
            job = await self._orders.reword(job, text)
        if time is not None:
            job = await self._orders.move(job, time)
        if missed or quiet or name:
            job = await self._orders.rule(
                job,
                name=name,
                missed=Missed(missed) if missed else None,
                quiet=WhenQuiet(quiet) if quiet else None,
            )
        return {**self.row(job), "text": f"{job.key} is changed."}

    async def pause(self, name: str) -> Json:
        """Its row."""
        job = await self._orders.pause(await self._orders.find(name))
        return {**self.row(job), "text": f"{job.key} stands still."}

    async def resume(self, name: str) -> Json:
        """Its row."""
        job = await self._orders.resume(await self._orders.find(name))
        return {**self.row(job), "text": f"{job.key} goes on."}

    async def remove(self, name: str) -> Json:
        """`key` and `name` of what is gone."""
        job = await self._orders.find(name)
        await self._orders.remove(job)
        return {
            "key": job.key,
            "name": job.new.name,
            "text": f"{job.key} ({job.new.name}) is removed.",
        }

    async def run(self, name: str) -> Json:
        """Runs it now; `run` is the turn, empty where a message was sent."""
        job = await self._orders.find(name)
        taken = await self._orders.run(job)
        if taken is None:
            raise JobWrong(f"{job.key} was not run: it is being run this very moment.")
        run = "" if taken.run is None else str(taken.run.run.run_id)
        done = "runs; its result is told when it is done" if run else "was sent"
        return {"key": job.key, "name": job.new.name, "run": run, "text": f"{job.key} {done}."}

    # --- beforehand ------------------------------------------------------------------------------

    async def test(self, name: str, emit: Emit, *, with_model: bool) -> Json:
        """What a run would be, without effect: the `job`, whether it `asks` a model and which,
        `tools`, `tokens`, `cost`, `next_runs`, those around the next `shift` of clocks, and what
        would keep it from running (`trouble`). With a model, `heard`: `text`, `wishes`, `dollars`.

        The texts of the prompt come as events `{"part": "system" or "user", "text": piece}`.
        """
        job = await self._orders.find(name)
        turn, found, trouble = await self._rehearsed(job)
        for part, text in (("system", found.system), ("user", found.user)):
            for start in range(0, len(text), TEXT_CHARS):
                emit({"part": part, "text": text[start : start + TEXT_CHARS]})
        heard = None
        if with_model and turn is not None and found.asks:
            heard = heard_row(await self._rehearsals.stage.ask(turn))
        dues, lost = self._dues(job)
        return {
            "job": self.row(job),
            "asks": found.asks,
            "model": found.model,
            "tokens": found.tokens,
            "tools": list(found.tools),
            "cost": None if lost else self._cost_row(job, await self._cost(job, found.cost)),
            "next_runs": await self._next(job, dues),
            "shift": None if lost else await self._around_shift(job),
            "trouble": trouble or lost,
            "heard": heard,
        }

    async def simulate(self, *, days: float, since: str) -> Json:
        """Everything that would fire: `runs` in order (`job`, `name`, `kind`, `slot`, `at`, `fate`,
        `told`, `missed`, `note`, `tokens`, `dollars`), the `total`, and `troubles`."""
        if not 0 < days <= DAYS_MAX:
            raise JobWrong(f"It looks ahead up to {DAYS_MAX} days, such as 7d or 12h.")
        begin = _moment(since, self._zone_of_owner()) if since else None
        costs = await self._costs()
        found = await self._outlook.ahead(since=begin, days=days, costs=costs)
        return {
            "since": (begin or self._clock.now()).isoformat(),
            "days": days,
            "runs": [foreseen_row(run) for run in found.runs],
            "total": {
                "runs": len(found.runs),
                "calls": found.calls,
                "tokens": found.tokens,
                "dollars": found.dollars,
                "unpriced": found.unpriced,
            },
            "troubles": [{"job": key, "why": why} for key, why in found.troubles],
            "is_cut": found.is_cut,
        }

    # --- steps -----------------------------------------------------------------------------------

    def _owner(self) -> PersonId:
        owner = self._people.owner()
        if owner is None:
            raise JobWrong("The bot has no owner yet: write to it, then hearthbot access approve.")
        return owner

    def _zone_of_owner(self) -> ZoneInfo:
        return self._people.zone(self._owner())

    async def _home(self, person_id: PersonId) -> str:
        found = await self._people.home_of(person_id)
        if not found:
            raise JobWrong(
                "You have no private chat with the bot yet: write to it once, or name a chat with "
                "--to."
            )
        return found

    def _dues(self, job: Job) -> tuple[Sequence[Due], str]:
        """The next due times; else why there is no telling, such as a zone that is gone."""
        try:
            return self._orders.next_runs(job, n=NEXT_SHOWN), ""
        except Permanent as error:
            return (), str(error)

    async def _rehearsed(self, job: Job) -> tuple[TurnInput | None, Rehearsal, str]:
        """The turn, what would be sent, and what would keep it from running."""
        try:
            turn = await self._rehearsals.turns.turn(job)
        except Permanent as error:
            return None, Rehearsal(asks=False), str(error)
        return turn, await self._rehearsals.stage.rehearse(turn), ""

    async def _costs(self) -> Mapping[int, RunCost]:
        """Of one run of each job; jobs alike are looked at once."""
        found: dict[int, RunCost] = {}
        known: dict[tuple[str, What, str, str], RunCost | None] = {}
        for job in await self._outlook.jobs():
            # Instructions are a part of the prompt, so their length counts; what a reminder says
            # is not.
            what = What() if job.new.kind is JobKind.MESSAGE else job.new.what
            alike = job.new.kind, what, job.new.person_id, job.new.deliver_to
            if alike not in known:
                _, rehearsal, trouble = await self._rehearsed(job)
                known[alike] = None if trouble else rehearsal.cost
            cost = known[alike]
            if cost is not None:
                found[job.id] = await self._cost(job, cost)
        return found

    async def _cost(self, job: Job, estimate: RunCost) -> RunCost:
        """Of one run: what its last ones took, else the estimate."""
        if self._past is None or not estimate.calls:
            return estimate
        return await self._past.cost(job) or estimate

    def _cost_row(self, job: Job, cost: RunCost) -> Json:
        return cost_row(cost, self._outlook.pace(job, cost))

    async def _next(self, job: Job, dues: Sequence[Due]) -> list[Json]:
        """Due times with what quiet hours and clocks do to them."""
        zone = zone_of(job)
        foreseen = {run.due.slot: run for run in (await self._outlook.told_at(job, dues)).runs}
        rows = []
        for due in dues:
            run = foreseen.get(due.slot)
            rows.append(
                {
                    **due_row(due, zone),
                    "note": clock_note(due.at_ms, zone),
                    "fate": run.fate.value if run is not None else "",
                    "told": None if run is None else iso(run.told_ms, zone),
                }
            )
        return rows

    async def _around_shift(self, job: Job) -> Json | None:
        """The runs from the day before the next change of clocks on; None: there is none, or none
        runs near it."""
        zone = zone_of(job)
        shift = next_shift(self._clock.now(), zone)
        if shift is None:
            return None
        dues = self._orders.next_runs(job, n=SHIFT_SHOWN, after=shift - timedelta(minutes=61))
        near = [due for due in dues if due.at_ms < (shift + timedelta(days=2)).timestamp() * 1000]
        return {
            "at": shift.astimezone(zone).isoformat(),
            "runs": await self._next(job, near),
        }


def job_operations(desk: JobDesk) -> Mapping[str, Operation]:
    """What is offered on the private socket, and to a command where no bot runs."""

    def asked(do: Callable[[Json], Awaitable[Json]]) -> Operation:
        async def operation(request: Json, emit: Emit) -> Json:
            return await do(request)

        return operation

    async def test(request: Json, emit: Emit) -> Json:
        return await desk.test(str(request["job"]), emit, with_model=bool(request["with_model"]))

    return {
        "jobs.list": asked(lambda r: desk.listed()),
        "jobs.show": asked(lambda r: desk.shown(str(r["job"]))),
        "jobs.read": asked(desk.read),
        "jobs.cost": asked(lambda r: desk.cost(str(r["skill"]))),
        "jobs.add": asked(desk.add),
        "jobs.edit": asked(lambda r: desk.edit(str(r["job"]), r)),
        "jobs.pause": asked(lambda r: desk.pause(str(r["job"]))),
        "jobs.resume": asked(lambda r: desk.resume(str(r["job"]))),
        "jobs.remove": asked(lambda r: desk.remove(str(r["job"]))),
        "jobs.run": asked(lambda r: desk.run(str(r["job"]))),
        "jobs.test": test,
        "jobs.simulate": asked(
            lambda r: desk.simulate(days=float(r["days"]), since=str(r["since"]))
        ),
    }


def _moment(text: str, zone: ZoneInfo) -> datetime:
    """Raises JobWrong."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise JobWrong(f"{text[:40]!r} is no time in ISO form, such as 2026-12-01T09:00.") from None
    return (found if found.tzinfo else found.replace(tzinfo=zone)).astimezone(UTC)
