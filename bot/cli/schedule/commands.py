"""`hearthbot schedule`: what runs by the clock, seen, changed, and foreseen."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING, Annotated
from zoneinfo import ZoneInfo

import typer

from bot.app.app import App
from bot.cli import render as out
from bot.cli.client import Bot, call, run
from bot.cli.schedule import render as shown
from bot.cli.schedule.forecast import Name, simulate, try_out, when
from memory.records.errors import AssistantError, Permanent
from memory.records.jobs import (
    OPERATOR,
    Job,
    JobKind,
    JobRef,
    JobRun,
    JobStatus,
    MisfirePolicy,
    QuietPolicy,
    What,
)

if TYPE_CHECKING:
    from memory.records.schedule import (
        JobDetails,
        TimeRead,
    )

app = typer.Typer(help="What runs by the clock.", no_args_is_help=True)
app.command()(when)
app.command("test")(try_out)
app.command("simulate")(simulate)

Missed = Annotated[
    MisfirePolicy | None,
    typer.Option("--missed", help="What becomes of times that pass while no bot runs."),
]

RESULT_CHARS = 120


# --- looking -----------------------------------------------------------------------------------


@app.command("list")
def list_jobs(as_json: out.AsJson = False) -> None:
    """Show all jobs: what each does, when it is due next, and where it stands."""
    found = call(App.jobs.list, by=OPERATOR)
    if as_json:
        out.print_json(
            {
                "jobs": [shown.job_json(one) for one in found.jobs],
                "broken": [out.fields(one, "id", "name", "why") for one in found.broken],
            }
        )
        return
    if not found.jobs and not found.broken and out.is_terminal():
        nothing = 'No job is kept. hearthbot schedule add "every day at 9" "water the plants"'
        out.print_lines([(nothing, "")])
        return
    columns: out.Columns[JobStatus] = {
        "Job": lambda one: one.job.key,
        "Next": _due,
        "State": lambda one: shown.state_words(one.job),
        "Kind": lambda one: one.job.kind.value,
        "Chat": lambda one: one.job.deliver_to,
        "When": lambda one: shown.when_words(one.job.when),
        "Name": lambda one: one.job.name,
        "What": lambda one: shown.what_words(one.job),
    }
    out.print_rows(found.jobs, columns, piped_only=("Kind", "Chat"))
    for one in found.broken:
        row = f"j{one.id}\t-\tcannot be read: {out.flat(one.why)}\t{out.flat(one.name)}"
        out.print_lines([(row, "bad")])


def _due(now: JobStatus) -> datetime | str:
    job = now.job
    if not job.enabled:
        return "paused"
    return "-" if job.next is None else shown.moment_of(job.next.at_ms, job)


@app.command("show")
def show(job: Name, as_json: out.AsJson = False) -> None:
    """Show one job: its rules, its next runs, and what became of the last ones."""
    found = call(App.dry_runs.details, JobRef(job), by=OPERATOR)
    out.render(_details_json(found), _details_lines(found), as_json=as_json)


def _details_json(found: JobDetails) -> out.Json:
    job = found.status.job
    return {
        **shown.job_json(found.status),
        "next_runs": [shown.ahead_json(one, job) for one in found.next_runs],
        "trouble": found.trouble,
        "newest_runs": [
            {
                **out.fields(one, "state", "late_s", "note", "result"),
                "slot": one.due.slot,
                "at": shown.iso(one.taken_ms, job),
                "run": one.run_id,
            }
            for one in found.runs
        ],
    }


def _details_lines(found: JobDetails) -> out.Lines:
    job, then = found.status.job, found.status.once_resumed
    yield from shown.job_lines(found.status)
    if job.enabled:
        yield from shown.ahead_lines(found.next_runs, job)
    elif then is not None:
        yield f"resumed\t{shown.iso(then.at_ms, job)}", ""
    if found.trouble:
        yield f"trouble\t{out.flat(found.trouble)}", "bad"
    for one in found.runs:
        yield from _run_lines(one)


def _run_lines(one: JobRun) -> out.Lines:
    late = f", {one.late_s} s late" if one.late_s > 60 else ""
    note = f": {out.flat(one.note)}" if one.note else ""
    look = "bad" if one.state == "failed" else ""
    yield f"ran\t{one.due.slot}\t{one.state.value}{late}{note}", look
    if one.result:
        yield f"found\t{one.due.slot}\t{out.shortened(one.result, RESULT_CHARS)}", "dim"


# --- changing ----------------------------------------------------------------------------------


@app.command("add")
def add(  # noqa: PLR0913, PLR0917 - each is an option of the command
    when: Annotated[str, typer.Argument(help="A time, as `hearthbot schedule when` reads it.")],
    text: Annotated[str, typer.Argument(help="What to be reminded of; with --do, what to do.")],
    do: Annotated[
        bool, typer.Option("--do", help="The assistant works on it, and tells what it found.")
    ] = False,
    to: Annotated[
        str, typer.Option("--to", metavar="CHAT", help="A chat of yours; else the private one.")
    ] = "",
    urgent: Annotated[
        bool, typer.Option("--urgent", help="Its results pass quiet hours and the daily limit.")
    ] = False,
    nag: Annotated[
        int | None,
        typer.Option("--nag", min=1, max=1_440, metavar="MINUTES", help="Again, until done."),
    ] = None,
    name: Annotated[str, typer.Option("--name", help="How it is called; else by its words.")] = "",
    missed: Missed = None,
    quiet: Annotated[
        QuietPolicy, typer.Option("--quiet", help="What becomes of results in your quiet hours.")
    ] = QuietPolicy.DEFER,
    yes: out.Yes = False,
    as_json: out.AsJson = False,
) -> None:
    """Keep a job of yours: shows how its time is read and the next runs, then asks."""

    async def draft(bot: Bot) -> Job:
        owner, home = await bot.call(App.jobs.owner_chat)
        if name:
            await bot.call(App.jobs.require_free, owner, name)
        zone = shown.zone_by_name((await bot.call(App.access.named, owner)).time_zone)
        time = _read(when, zone)
        job = Job(
            person_id=owner,
            kind=JobKind.AGENT if do else JobKind.MESSAGE,
            what=What(text=text),
            when=time.when,
            max_runs=time.runs_max,
            expires_ms=time.expires_ms,
            deliver_to=to or home,
            name=name,
            urgent=urgent,
            missed=missed or MisfirePolicy.ONCE,
            quiet=quiet,
            nag_s=nag and nag * 60,
        )
        if not as_json:
            out.print_lines(shown.answer_lines(time, zone))
            if do and (takes := await _takes(bot, job)):
                out.print_lines([(f"takes\t{out.flat(takes)}", "")])
        if not job.deliver_to:
            raise Permanent(
                "You have no private chat with the bot yet: write to it once, or name a chat with "
                "--to."
            )
        return job

    wanted = run(draft)
    if not yes and not as_json:
        out.confirm("\nKeep it?")
    _change(
        lambda bot: bot.call(App.jobs.add, wanted, by=OPERATOR),
        "{job.key} ({job.name}) is kept.",
        as_json=as_json,
    )


async def _takes(bot: Bot, job: Job) -> str:
    """That it cannot be told is words too: it keeps nobody from keeping the job."""
    from bot.commands.jobs.messages import takes_words

    try:
        found = await bot.call(App.dry_runs.estimate, job)
    except AssistantError as error:
        return f"unknown: {str(error).rstrip('.')}"
    return "" if found is None else takes_words(job, found)


@app.command("edit")
def edit(
    job: Name,
    when: Annotated[str, typer.Option("--when", help="Another time.")] = "",
    text: Annotated[str, typer.Option("--text", help="Other words.")] = "",
    name: Annotated[str, typer.Option("--name", help="Another name.")] = "",
    missed: Missed = None,
    quiet: Annotated[
        QuietPolicy | None,
        typer.Option("--quiet", help="What becomes of results in your quiet hours."),
    ] = None,
    yes: out.Yes = False,
    as_json: out.AsJson = False,
) -> None:
    """Give a job another time, other words or other rules; what is left out stays."""
    from memory.records.schedule import JobChanges

    if not any((when, text, name, missed, quiet)):
        raise out.wrong_usage("Say what to change: --when, --text, --name, --missed or --quiet.")

    async def read(bot: Bot) -> TimeRead | None:
        found = await bot.call(App.jobs.show, JobRef(job), by=OPERATOR)
        zone = ZoneInfo(found.zone)
        time = _read(when, zone) if when else None
        if time is not None and not as_json:
            out.print_lines(shown.answer_lines(time, zone))
        return time

    time = run(read)
    if time is not None and not yes and not as_json:
        out.confirm("\nChange it?")
    changes = JobChanges(time=time, text=text, name=name, missed=missed, quiet=quiet)
    _change(
        lambda bot: bot.call(App.jobs.update, JobRef(job), changes, by=OPERATOR),
        "{job.key} is changed.",
        as_json=as_json,
    )


def _read(text: str, zone: ZoneInfo) -> TimeRead:
    """Read a time by a person's clock. Raise Permanent with what is to be asked first."""
    from memory.records.messages import PersonId
    from scheduler.clock.machine import SystemClock
    from scheduler.jobs.times import TimeReader

    return TimeReader(lambda _: zone, clock=SystemClock()).require(PersonId(""), text)


@app.command("pause")
def pause(job: Name, as_json: out.AsJson = False) -> None:
    """Stop a job until it is resumed."""
    _change(
        lambda bot: bot.call(App.jobs.pause, JobRef(job), by=OPERATOR),
        "{job.key} stands still.",
        as_json=as_json,
    )


@app.command("resume")
def resume(job: Name, as_json: out.AsJson = False) -> None:
    """Let a job go on from now; what it missed is not made up for."""
    _change(
        lambda bot: bot.call(App.jobs.resume, JobRef(job), by=OPERATOR),
        "{job.key} goes on.",
        as_json=as_json,
    )


def _change(work: Callable[[Bot], Awaitable[Job]], done: str, *, as_json: bool) -> None:
    """Do it, and say what was done and how the job stands now."""

    async def changed(bot: Bot) -> JobStatus:
        return await bot.call(App.jobs.show, (await work(bot)).key, by=OPERATOR)

    now = run(changed)
    job, text = now.job, done.format(job=now.job)
    lines = [(text, "good")]
    if job.enabled and job.next:
        lines.append((f"next\t{shown.iso(job.next.at_ms, job)}", ""))
    out.render({**shown.job_json(now), "text": text}, lines, as_json=as_json)


@app.command("remove")
def remove(job: Name, yes: out.Yes = False, as_json: out.AsJson = False) -> None:
    """Delete a job with its history."""
    ref = JobRef(job)
    if not yes and not as_json and out.is_interactive():
        found = call(App.jobs.show, ref, by=OPERATOR).job
        out.confirm(f"Delete {found.key} ({out.flat(found.name)})?")
        ref = found.key
    gone = call(App.jobs.remove, ref, by=OPERATOR)
    text = f"{gone.key} ({gone.name}) is removed."
    out.render({**out.fields(gone, "key", "name"), "text": text}, [(text, "good")], as_json=as_json)


@app.command("run")
def run_job(job: Name, as_json: out.AsJson = False) -> None:
    """Run a job now, beside its times. Needs a running bot."""

    async def begun(bot: Bot) -> out.Json:
        found = (await bot.call(App.jobs.show, JobRef(job), by=OPERATOR)).job
        taken = await bot.call(App.jobs.run_now, found.key, by=OPERATOR)
        run_id = "" if taken.run is None else taken.run.run.run_id
        done = "runs; its result is told when it is done" if run_id else "was sent"
        return {**out.fields(found, "key", "name"), "run": run_id, "text": f"{found.key} {done}."}

    answer = run(begun)
    out.render(answer, [(answer["text"], "good")], as_json=as_json)
