"""The job service on the private socket, which is the owner's alone: `hearthbot schedule`.

Answers are JSON objects; what each holds stands in `bot.commands.job_messages`. Moments are ISO
texts in the zone of the job, `slot` its due time as the wall clock shows it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from bot.commands.job_messages import (
    ahead_rows,
    cost_row,
    forecast_row,
    heard_row,
    job_row,
    pace_words,
    run_row,
    takes_words,
    zone_of,
)
from bot.rpc import Emit, Operation
from memory.records.errors import AssistantError
from memory.records.jobs import OPERATOR, Job, JobKind, JobRef, MisfirePolicy, QuietPolicy, What
from memory.records.recurrence import to_json
from memory.records.schedule import JobChanges, TimeRead
from scheduler.jobs.rules import JobRefused
from scheduler.jobs.service import JobService
from scheduler.kinds.dry_run import JobDryRuns

Json = dict[str, Any]

TEXT_CHARS = 100_000
"""Of one event: a prompt may be longer than a line of the socket."""


class JobOperations:
    """Answers what the operator asks about jobs, and does what they decide."""

    def __init__(self, jobs: JobService, dry_runs: JobDryRuns) -> None:
        self._jobs = jobs
        self._dry_runs = dry_runs

    async def list(self, request: Json) -> Json:
        """`jobs`, and `broken` ones with `id`, `name`, `why`."""
        found = await self._jobs.list(by=OPERATOR)
        return {
            "jobs": [job_row(one) for one in found.jobs],
            "broken": [{"id": one.id, "name": one.name, "why": one.why} for one in found.broken],
        }

    async def show(self, request: Json) -> Json:
        """The row, with its `next_runs` (or the `trouble` of finding them), and the
        `newest_runs`."""
        found = await self._dry_runs.details(_ref(request), by=OPERATOR)
        job = found.status.job
        return {
            **job_row(found.status),
            "next_runs": ahead_rows(job, found.next_runs),
            "trouble": found.trouble,
            "newest_runs": [run_row(run, zone_of(job)) for run in found.runs],
        }

    async def read(self, request: Json) -> Json:
        """How the time `when` is read for the owner: `sentence`, `when`, `zone`, `next` moments; of
        a job that is `wanted` (see `add`), what it `takes`. Raises Permanent, with what is to be
        asked, or because a job has the `name` already."""
        owner, _ = await self._jobs.owner_chat()
        if name := str(request.get("name") or ""):
            await self._jobs.require_free(owner, name)
        time, zone = (
            self._jobs.times.require(owner, str(request["when"])),
            self._jobs.times.zone(owner),
        )
        wanted: Json = request.get("wanted") or {}
        return {
            "sentence": time.sentence,
            "when": to_json(time.when),
            "zone": zone.key,
            "next": [{"at": at.astimezone(zone).isoformat()} for at in time.next],
            "runs_max": time.runs_max,
            "takes": await self._takes(wanted) if wanted.get("do") else "",
        }

    async def _takes(self, wanted: Json) -> str:
        """That it cannot be told is words too: it keeps nobody from keeping the job."""
        try:
            draft = self._jobs.prepare(await self._draft(wanted))
            found = await self._dry_runs.estimate(draft)
        except AssistantError as error:
            return f"unknown: {str(error).rstrip('.')}"
        return "" if found is None else takes_words(draft, found)

    async def cost(self, request: Json) -> Json:
        """What a skill that runs by the clock would take: see `cost_row`, and `text` in words."""
        found = await self._dry_runs.skill_estimate(str(request["skill"]))
        return {**cost_row(found), "text": pace_words(cost_row(found))}

    # --- changing ------------------------------------------------------------------------------

    async def add(self, request: Json) -> Json:
        """Keeps a job of the owner: `text`, `when`, and perhaps `do` (the assistant works on it),
        `name`, `to`, `urgent`, `nag_minutes`, `missed`, `quiet`. Its row."""
        job = await self._jobs.add(await self._draft(request), by=OPERATOR)
        return self._row(job, f"{job.key} ({job.name}) is kept.")

    async def _draft(self, wanted: Json) -> Job:
        owner, home = await self._jobs.owner_chat()
        time: TimeRead = self._jobs.times.require(owner, str(wanted["when"]))
        lane = str(wanted.get("to") or "") or home
        if not lane:
            raise JobRefused(
                "You have no private chat with the bot yet: write to it once, or name a chat with "
                "--to."
            )
        draft = Job(
            person_id=owner,
            kind=JobKind.AGENT if wanted.get("do") else JobKind.MESSAGE,
            what=What(text=str(wanted["text"])),
            when=time.when,
            max_runs=time.runs_max,
            expires_ms=time.expires_ms,
            deliver_to=lane,
            name=str(wanted.get("name") or ""),
            urgent=bool(wanted.get("urgent")),
            missed=MisfirePolicy(wanted.get("missed") or MisfirePolicy.ONCE),
            quiet=QuietPolicy(wanted.get("quiet") or QuietPolicy.DEFER),
        )
        nag = wanted.get("nag_minutes")
        return draft if nag is None else replace(draft, nag_s=int(nag) * 60)

    async def edit(self, request: Json) -> Json:
        """Gives a job other times (`when`), words (`text`), another `name` or other rules
        (`missed`, `quiet`); what is empty stays. Its row."""
        job = await self._jobs.find(_ref(request), by=OPERATOR)
        when, missed, quiet = (str(request.get(one) or "") for one in ("when", "missed", "quiet"))
        changes = JobChanges(
            time=self._jobs.times.require(job.person_id, when) if when else None,
            text=str(request.get("text") or ""),
            name=str(request.get("name") or ""),
            missed=MisfirePolicy(missed) if missed else None,
            quiet=QuietPolicy(quiet) if quiet else None,
        )
        job = await self._jobs.update(job.key, changes, by=OPERATOR)
        return self._row(job, f"{job.key} is changed.")

    async def pause(self, request: Json) -> Json:
        """Its row."""
        job = await self._jobs.pause(_ref(request), by=OPERATOR)
        return self._row(job, f"{job.key} stands still.")

    async def resume(self, request: Json) -> Json:
        """Its row."""
        job = await self._jobs.resume(_ref(request), by=OPERATOR)
        return self._row(job, f"{job.key} goes on.")

    async def remove(self, request: Json) -> Json:
        """`key` and `name` of what is gone."""
        job = await self._jobs.remove(_ref(request), by=OPERATOR)
        return {"key": job.key, "name": job.name, "text": f"{job.key} ({job.name}) is removed."}

    async def run(self, request: Json) -> Json:
        """Runs it now; `run` is the turn, empty where a message was sent."""
        job = await self._jobs.find(_ref(request), by=OPERATOR)
        taken = await self._jobs.run_now(job.key, by=OPERATOR)
        run = "" if taken.run is None else str(taken.run.run.run_id)
        done = "runs; its result is told when it is done" if run else "was sent"
        return {"key": job.key, "name": job.name, "run": run, "text": f"{job.key} {done}."}

    def _row(self, job: Job, text: str) -> Json:
        return {**job_row(self._jobs.status(job)), "text": text}

    # --- beforehand ------------------------------------------------------------------------------

    async def test(self, request: Json, emit: Emit) -> Json:
        """What a run would be, without effect: the `job`, whether it `asks` a model and which,
        `tools`, `tokens`, `cost`, `next_runs`, those around the next `shift` of clocks, and what
        would keep it from running (`trouble`). With a model, `heard`: `text`, `wishes`, `dollars`.

        The texts of the prompt come as events `{"part": "system" or "user", "text": piece}`.
        """
        found = await self._dry_runs.dry_run(
            _ref(request), by=OPERATOR, with_model=bool(request["with_model"])
        )
        job, sent, shift = found.status.job, found.sent, found.shift
        for part, text in (("system", sent.system), ("user", sent.user)):
            for start in range(0, len(text), TEXT_CHARS):
                emit({"part": part, "text": text[start : start + TEXT_CHARS]})
        around = None
        if shift is not None:
            around = {"at": shift.at.isoformat(), "runs": ahead_rows(job, shift.runs)}
        return {
            "job": job_row(found.status),
            "asks": sent.asks,
            "model": sent.model,
            "tokens": sent.tokens,
            "tools": [*sent.tools],
            "cost": None if found.estimate is None else cost_row(found.estimate),
            "next_runs": ahead_rows(job, found.next_runs),
            "shift": around,
            "trouble": found.trouble,
            "heard": None if found.heard is None else heard_row(found.heard),
        }

    async def simulate(self, request: Json) -> Json:
        """Everything that would fire: see `forecast_row`; `since` and `days` as they were asked."""
        since, days = str(request["since"]), float(request["days"])
        owner, _ = await self._jobs.owner_chat() if since else (None, "")
        begin = _moment(since, self._jobs.times.zone(owner)) if owner is not None else None
        found = await self._dry_runs.forecast(days=days, since=begin)
        at = datetime.fromtimestamp(found.since_ms / 1000, UTC)
        return {"since": at.isoformat(), "days": days, **forecast_row(found)}


def job_operations(jobs: JobService, dry_runs: JobDryRuns) -> Mapping[str, Operation]:
    """What is offered on the private socket, and to a command where no bot runs."""
    asked = JobOperations(jobs, dry_runs)

    def answered(do: Callable[[Json], Awaitable[Json]]) -> Operation:
        async def operation(request: Json, emit: Emit) -> Json:
            return await do(request)

        return operation

    names = "list show read cost add edit pause resume remove run simulate"
    found = {f"jobs.{name}": answered(getattr(asked, name)) for name in names.split()}
    return {**found, "jobs.test": asked.test}


def _ref(request: Json) -> JobRef:
    return JobRef(str(request["job"]))


def _moment(text: str, zone: ZoneInfo) -> datetime:
    """Raises JobRefused."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise JobRefused(
            f"{text[:40]!r} is no time in ISO form, such as 2026-12-01T09:00."
        ) from None
    return (found if found.tzinfo else found.replace(tzinfo=zone)).astimezone(UTC)
