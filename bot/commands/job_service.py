"""Jobs as the operator of this machine has them: `hearthbot schedule`.

Answers are JSON objects; what each holds stands in `bot.commands.job_messages`. Moments are ISO
texts in the zone of the job, `slot` its due time as the wall clock shows it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
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
from memory.records.errors import AssistantError
from memory.records.jobs import OPERATOR, Job, JobKind, JobRef, MisfirePolicy, QuietPolicy, What
from memory.records.recurrence import to_json
from memory.records.schedule import JobChanges, TimeRead
from scheduler.jobs.rules import JobRefused
from scheduler.jobs.service import JobService
from scheduler.kinds.dry_run import JobDryRuns

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedJob:
    """A job of the owner that is to be kept. `do`: the assistant works on it. `to` is a chat; empty
    is the private one."""

    when: str
    text: str
    do: bool = False
    to: str = ""
    urgent: bool = False
    nag_minutes: int | None = None
    name: str = ""
    missed: MisfirePolicy | None = None
    quiet: QuietPolicy = QuietPolicy.DEFER


class OperatorJobs:
    """Answers what the operator asks about jobs, and does what they decide."""

    def __init__(self, jobs: JobService, dry_runs: JobDryRuns) -> None:
        self._jobs = jobs
        self._dry_runs = dry_runs

    async def list(self) -> Json:
        """`jobs`, and `broken` ones with `id`, `name`, `why`."""
        found = await self._jobs.list(by=OPERATOR)
        return {
            "jobs": [job_row(one) for one in found.jobs],
            "broken": [{"id": one.id, "name": one.name, "why": one.why} for one in found.broken],
        }

    async def show(self, job: JobRef) -> Json:
        """The row, with its `next_runs` (or the `trouble` of finding them), and the
        `newest_runs`."""
        found = await self._dry_runs.details(job, by=OPERATOR)
        now = found.status.job
        return {
            **job_row(found.status),
            "next_runs": ahead_rows(now, found.next_runs),
            "trouble": found.trouble,
            "newest_runs": [run_row(run, zone_of(now)) for run in found.runs],
        }

    async def read(self, when: str, wanted: WantedJob | None = None) -> Json:
        """How a time is read for the owner: `sentence`, `when`, `zone`, `next` moments; of a job
        that is `wanted`, what it `takes`. Raises Permanent, with what is to be asked, or because a
        job has its name already."""
        owner, _ = await self._jobs.owner_chat()
        if wanted is not None and wanted.name:
            await self._jobs.require_free(owner, wanted.name)
        time, zone = self._jobs.times.require(owner, when), self._jobs.times.zone(owner)
        return {
            "sentence": time.sentence,
            "when": to_json(time.when),
            "zone": zone.key,
            "next": [{"at": at.astimezone(zone).isoformat()} for at in time.next],
            "runs_max": time.runs_max,
            "takes": await self._takes(wanted) if wanted is not None and wanted.do else "",
        }

    async def _takes(self, wanted: WantedJob) -> str:
        """That it cannot be told is words too: it keeps nobody from keeping the job."""
        try:
            draft = self._jobs.prepare(await self._draft(wanted))
            found = await self._dry_runs.estimate(draft)
        except AssistantError as error:
            return f"unknown: {str(error).rstrip('.')}"
        return "" if found is None else takes_words(draft, found)

    async def cost(self, skill: str) -> Json:
        """What a skill that runs by the clock would take: see `cost_row`, and `text` in words; that
        it cannot be told is words too."""
        try:
            found = await self._dry_runs.skill_estimate(skill)
        except AssistantError as error:
            return {"text": f"What it will cost cannot be told: {str(error).rstrip('.')}."}
        return {**cost_row(found), "text": pace_words(cost_row(found))}

    # --- changing ------------------------------------------------------------------------------

    async def add(self, wanted: WantedJob) -> Json:
        """Its row."""
        job = await self._jobs.add(await self._draft(wanted), by=OPERATOR)
        return self._row(job, f"{job.key} ({job.name}) is kept.")

    async def _draft(self, wanted: WantedJob) -> Job:
        owner, home = await self._jobs.owner_chat()
        time: TimeRead = self._jobs.times.require(owner, wanted.when)
        lane = wanted.to or home
        if not lane:
            raise JobRefused(
                "You have no private chat with the bot yet: write to it once, or name a chat with "
                "--to."
            )
        draft = Job(
            person_id=owner,
            kind=JobKind.AGENT if wanted.do else JobKind.MESSAGE,
            what=What(text=wanted.text),
            when=time.when,
            max_runs=time.runs_max,
            expires_ms=time.expires_ms,
            deliver_to=lane,
            name=wanted.name,
            urgent=wanted.urgent,
            missed=wanted.missed or MisfirePolicy.ONCE,
            quiet=wanted.quiet,
        )
        nag = wanted.nag_minutes
        return draft if nag is None else replace(draft, nag_s=nag * 60)

    async def edit(
        self,
        job: JobRef,
        *,
        when: str = "",
        text: str = "",
        name: str = "",
        missed: MisfirePolicy | None = None,
        quiet: QuietPolicy | None = None,
    ) -> Json:
        """Gives a job other times, words or rules, or another name; what is empty stays. Its
        row."""
        found = await self._jobs.find(job, by=OPERATOR)
        time = self._jobs.times.require(found.person_id, when) if when else None
        changes = JobChanges(time=time, text=text, name=name, missed=missed, quiet=quiet)
        changed = await self._jobs.update(found.key, changes, by=OPERATOR)
        return self._row(changed, f"{changed.key} is changed.")

    async def pause(self, job: JobRef) -> Json:
        """Its row."""
        found = await self._jobs.pause(job, by=OPERATOR)
        return self._row(found, f"{found.key} stands still.")

    async def resume(self, job: JobRef) -> Json:
        """Its row."""
        found = await self._jobs.resume(job, by=OPERATOR)
        return self._row(found, f"{found.key} goes on.")

    async def remove(self, job: JobRef) -> Json:
        """`key` and `name` of what is gone."""
        gone = await self._jobs.remove(job, by=OPERATOR)
        text = f"{gone.key} ({gone.name}) is removed."
        return {"key": gone.key, "name": gone.name, "text": text}

    async def run(self, job: JobRef) -> Json:
        """Runs it now; `run` is the turn, empty where a message was sent."""
        found = await self._jobs.find(job, by=OPERATOR)
        taken = await self._jobs.run_now(found.key, by=OPERATOR)
        run = "" if taken.run is None else str(taken.run.run.run_id)
        done = "runs; its result is told when it is done" if run else "was sent"
        return {"key": found.key, "name": found.name, "run": run, "text": f"{found.key} {done}."}

    def _row(self, job: Job, text: str) -> Json:
        return {**job_row(self._jobs.status(job)), "text": text}

    # --- beforehand ------------------------------------------------------------------------------

    async def test(self, job: JobRef, *, with_model: bool) -> Json:
        """What a run would be, without effect: the `job`, whether it `asks` a model and which,
        `tools`, `tokens`, `cost`, `next_runs`, those around the next `shift` of clocks, and what
        would keep it from running (`trouble`), and the `prompt`. With a model, `heard`: `text`,
        `wishes`, `dollars`.
        """
        found = await self._dry_runs.dry_run(job, by=OPERATOR, with_model=with_model)
        kept, sent, shift = found.status.job, found.sent, found.shift
        around = None
        if shift is not None:
            around = {"at": shift.at.isoformat(), "runs": ahead_rows(kept, shift.runs)}
        return {
            "job": job_row(found.status),
            "asks": sent.asks,
            "model": sent.model,
            "tokens": sent.tokens,
            "tools": [*sent.tools],
            "cost": None if found.estimate is None else cost_row(found.estimate),
            "next_runs": ahead_rows(kept, found.next_runs),
            "shift": around,
            "trouble": found.trouble,
            "heard": None if found.heard is None else heard_row(found.heard),
            "prompt": {"system": sent.system, "user": sent.user},
        }

    async def simulate(self, *, days: float, since: str = "") -> Json:
        """Everything that would fire: see `forecast_row`; `since` and `days` as they were asked."""
        owner, _ = await self._jobs.owner_chat() if since else (None, "")
        begin = _moment(since, self._jobs.times.zone(owner)) if owner is not None else None
        found = await self._dry_runs.forecast(days=days, since=begin)
        at = datetime.fromtimestamp(found.since_ms / 1000, UTC)
        return {"since": at.isoformat(), "days": days, **forecast_row(found)}


def _moment(text: str, zone: ZoneInfo) -> datetime:
    """Raises JobRefused."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise JobRefused(
            f"{text[:40]!r} is no time in ISO form, such as 2026-12-01T09:00."
        ) from None
    return (found if found.tzinfo else found.replace(tzinfo=zone)).astimezone(UTC)
