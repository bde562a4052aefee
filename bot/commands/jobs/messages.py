"""What is said about jobs, reminders and events in a chat.

Markdown, for a phone. Names and words of people get here without a meaning as markup.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from typing import assert_never
from zoneinfo import ZoneInfo

from agent.budget.messages import PRICE_UNKNOWN, money
from bot.markup.command_text import bare
from memory.records.jobs import (
    COUNTED_MAX,
    MADE_UP_MAX,
    At,
    Cron,
    Every,
    Job,
    JobKind,
    JobList,
    JobRun,
    JobStatus,
    MisfirePolicy,
    Misfires,
    SlotState,
    When,
    list_name,
)
from memory.records.rows import Button, ButtonRows, NewMessage
from memory.records.schedule import (
    Estimate,
    Event,
    TimeRead,
    due_words,
    moment_words,
)

PREFIX = "job"
"""Of all buttons about jobs; those of reminders are made by `scheduler.kinds.kinds`."""

NEW, SAVE_NOT = "new", "no"
DONE, PAUSE, RESUME, RUN, SKIP = "done", "pause", "resume", "run", "skip"

NAME_CHARS = 60
TEXT_CHARS = 600
LISTED_MAX = 30
EVENTS_LISTED_MAX = 10
RUNS_SHOWN = 5
MISSED_SHOWN = 20
ASKED_MAX = 8
"""Questions about missed runs that are sent at once; the others are answered by /job."""

UNKNOWN = "This button no longer does anything."
GONE = "That job is gone."
ANSWERED = "That was answered before."
NOT_YOURS = "Only the person whose job this is can answer it."
GOES_ON = "Nothing is saved yet; once I know, I show what I would save."
ASKED_ABOVE = "Nothing is saved before you press a button above."
FORGOTTEN = "Not saved: ten minutes are over, or I was started anew since. Write it again, please."
NO_JOBS = "There are no jobs. `/remind tomorrow at 5 call Bob` makes a reminder."
REMIND_USE = (
    "`/remind tomorrow at 5 call Bob` reminds you here, once\n"
    "`/remind every weekday at 8 stand up` does so again and again"
)
NO_TIME = f"I found no time in that.\n{REMIND_USE}"
NO_TEXT = "What shall I remind you of? Write the time and the words in one line."
JOB_USE = """\
`/jobs` lists them
`/job j12` shows one
`/job j12 pause` (or resume, run, remove)
`/job j12 move tomorrow at 5` gives it another time
`/job j12 text …` gives it other words"""
QUIET_USE = "`/quiet 22:00-07:00` sets quiet hours, `/quiet off` ends them."
QUIET_NONE = f"You have no quiet hours. {QUIET_USE}"
QUIET_ENDED = "You have no quiet hours any more."
HEARTBEAT_USE = (
    "`/heartbeat on` or `off`, `/heartbeat now` looks at once, `/heartbeat why` shows the last ten."
)
HEARTBEAT_NEVER = (
    "There is no heartbeat: heartbeat.every_minutes is 0 in the settings. A number of minutes "
    "there, and a restart, make one."
)
HEARTBEAT_NOT_YET = (
    "There is no heartbeat yet: it begins once I know a private chat of yours to report to."
)
HEARTBEAT_OFF = "The heartbeat is off, until `/heartbeat on`."
HEARTBEAT_NOTHING = "There was no heartbeat yet."

DOES = {
    JobKind.MESSAGE: "reminder",
    JobKind.AGENT: "instructions",
    JobKind.SKILL: "skill",
    JobKind.TOOL: "tool",
    JobKind.HEARTBEAT: "heartbeat",
}
STATES = {
    SlotState.TAKEN: "runs now",
    SlotState.FOUND: "has a result",
    SlotState.TOLD: "told",
    SlotState.SILENT: "nothing to tell",
    SlotState.FAILED: "failed",
    SlotState.SKIPPED: "left out",
    SlotState.WAITING: "waits to be told",
    SlotState.ASKED: "waits for your answer",
}


# --- times and jobs ----------------------------------------------------------------------------


def name_of(job: Job) -> str:
    """Its name, on one line."""
    return bare(job.name, chars_max=NAME_CHARS)


def when_words(when: When, zone: tzinfo) -> str:
    """A kept time, roughly; the next runs say it exactly."""
    match when:
        case At():
            return f"once, {moment_words(when.moment, zone)}"
        case Every():
            step = f"{when.unit}" if when.count == 1 else f"{when.count} {when.unit}s"
            pattern = f", at `{when.pattern}`" if when.pattern else ""
            return f"every {step}{pattern} ({when.zone})"
        case Cron():
            return f"`{when.expression}` ({when.zone})"
    assert_never(when)


def read_words(time: TimeRead, zone: tzinfo) -> str:
    """Return how a time was read, with the next runs, before anything is saved."""
    following = "; ".join(moment_words(one, zone) for one in time.next)
    return f"When: {bare(time.sentence)}\nNext: {following or 'never'} ({zone})"


def next_line(now: JobStatus) -> str:
    """When it runs next, as it is kept, or why not."""
    if not now.job.enabled:
        return f"Paused: {paused_state(now)}"
    if now.due:
        zone = ZoneInfo(now.zone)
        return f"Next: {'; '.join(due_words(one, zone) for one in now.due)} ({zone})"
    return "It is over."


def paused_state(now: JobStatus) -> str:
    """Why it stands still, and what comes when it goes on."""
    due = now.once_resumed
    then = f"; resumed now, next {due_words(due, ZoneInfo(now.zone))}" if due else ""
    return f"{bare(now.job.paused or 'by hand')}{then}"


def job_line(now: JobStatus) -> str:
    """One row of `/jobs`."""
    job = now.job
    if not job.enabled:
        state = f"paused: {paused_state(now)}"
    elif job.next is None:
        state = "over"
    else:
        state = due_words(job.next, ZoneInfo(now.zone))
    return f"- {job.key} {name_of(job)} ({DOES[job.kind]}): {state}"


def jobs_text(found: JobList, events: Sequence[Event], zone: tzinfo) -> str:
    """Return what `/jobs` says."""
    blocks, jobs = [], found.jobs
    if jobs:
        lines = [job_line(one) for one in jobs[:LISTED_MAX]]
        if len(jobs) > LISTED_MAX:
            lines.append(f"… and {len(jobs) - LISTED_MAX} more")
        blocks.append("\n".join([f"Jobs ({zone}):", *lines]))
    if found.broken:
        lines = [f"- j{one.id} {bare(one.name)}: {bare(one.why)}" for one in found.broken]
        blocks.append("\n".join(["These cannot be read, and do not run:", *lines]))
    if events:
        lines = [f"- {event_words(one, zone)}" for one in events[:EVENTS_LISTED_MAX]]
        if len(events) > EVENTS_LISTED_MAX:
            lines.append(f"… and {len(events) - EVENTS_LISTED_MAX} more")
        blocks.append("\n".join(["Events:", *lines]))
    if not blocks:
        return NO_JOBS
    return "\n\n".join([*blocks, "`/job j12` shows one, and what can be done with it."])


def event_words(event: Event, zone: tzinfo) -> str:
    """`e5 Dentist: Thu 3 Dec 2026, 10:00`."""
    if event.at is None:
        when = "no date"
    else:
        at = moment_words(event.at, zone)
        when = f"{at.partition(',')[0]}, all day" if event.all_day else at
    return f"{event.key} {bare(event.name, chars_max=NAME_CHARS)}: {when}"


def job_text(now: JobStatus, runs: Sequence[JobRun], *, here: str) -> str:
    """Return what `/job j12` says; `here` is the chat in which it is asked."""
    job, zone = now.job, ZoneInfo(now.zone)
    where = "this chat" if job.deliver_to == here else bare(job.deliver_to)
    lines = [
        f"**{job.key} {name_of(job)}**",
        does_line(job),
        f"When: {when_words(job.when, zone)}",
        next_line(now),
        f"Goes to: {where}",
    ]
    if job.nag_s is not None:
        lines.append(f"Repeated every {job.nag_s // 60} min until it is done")
    if job.urgent:
        lines.append("Also in quiet hours")
    if job.failures:
        lines.append(f"Failed {job.failures} times in a row")
    if runs:
        lines += ["", "Last runs:", *(run_line(run, zone) for run in runs)]
    return "\n".join(lines)


def does_line(job: Job) -> str:
    """Return what comes of a job at its time."""
    what = job.what
    return {
        JobKind.MESSAGE: f"Says: {bare(what.text, chars_max=TEXT_CHARS)}",
        JobKind.AGENT: f"Follows: {bare(what.text, chars_max=TEXT_CHARS)}",
        JobKind.SKILL: f"Follows the skill {bare(what.skill)}",
        JobKind.TOOL: f"Calls {bare(what.tool)} {bare(what.arguments, chars_max=TEXT_CHARS)}",
        JobKind.HEARTBEAT: f"Looks at {list_name(job.agent)}",
    }[job.kind]


def job_use(job: Job) -> str:
    """Return what can be typed about it."""
    if job.kind is JobKind.HEARTBEAT:
        return HEARTBEAT_USE
    return JOB_USE.replace("j12", job.key)


def run_line(run: JobRun, zone: tzinfo) -> str:
    """One row of the ledger."""
    note = f" ({bare(run.note)})" if run.note else ""
    return f"- {due_words(run.due, zone)}: {STATES[run.state]}{note}"


def takes_words(job: Job, estimate: Estimate) -> str:
    """The same before it is kept, in a line: `about 2,400 tokens a run, 3 runs a day: about $0.01 a
    day with fake/model`."""
    cost, a_day, model = estimate.cost, estimate.a_day, estimate.model
    run = f"about {cost.tokens:,.0f} tokens"
    if isinstance(job.when, At):
        price = PRICE_UNKNOWN if cost.dollars is None else f"about {money(cost.dollars)}"
        return f"{run}, once: {price} with {model}"
    if a_day.dollars is not None:
        whole = f"about {money(a_day.dollars)} a day with {model}"
    else:
        whole = f"about {a_day.tokens:,.0f} tokens a day with {model}; {PRICE_UNKNOWN}"
    return f"{run} a run, {_often(a_day.runs)}: {whole}"


def _often(runs_a_day: float) -> str:
    for runs, span in ((runs_a_day, "day"), (runs_a_day * 7, "week")):
        if runs >= 0.99:
            return f"1 run a {span}" if runs < 1.05 else f"{runs:.2g} runs a {span}"
    return f"{max(runs_a_day * 365, 1):.0f} runs a year"


# --- cards that ask ----------------------------------------------------------------------------


def data(*words: str | int) -> str:
    """Of a button."""
    return ":".join([PREFIX, *map(str, words)])


def standing_button(job: Job) -> Button | None:
    """Pause for what runs again and again, and Go on for what stands still. A heartbeat has a
    command of its own for that."""
    if job.kind is JobKind.HEARTBEAT:
        return None
    if not job.enabled:
        return Button(label="Go on", data=data(job.id, RESUME))
    if isinstance(job.when, At):
        return None
    return Button(label="Pause", data=data(job.id, PAUSE))


def done_button(job: Job, when: At) -> Button:
    """Sees to a reminder before its time; like those of `scheduler.kinds.kinds`, it stands for
    one date."""
    return Button(label="Done", data=data(job.id, DONE, int(when.moment.timestamp())))


def save_buttons(token: str, options: Sequence[TimeRead], zone: tzinfo) -> ButtonRows:
    """Save and No; of several readings one button each."""
    no = Button(label="No", data=data(NEW, token, SAVE_NOT), style="bad")
    if len(options) == 1:
        return ((Button(label="Save", data=data(NEW, token, 0), style="good"), no),)
    rows = [
        (Button(label=_option(option, zone), data=data(NEW, token, number)),)
        for number, option in enumerate(options)
    ]
    return (*rows, (no,))


def _option(option: TimeRead, zone: tzinfo) -> str:
    is_once = isinstance(option.when, At) and option.next
    words = moment_words(option.next[0], zone) if is_once else option.sentence
    return words[:60]


def stays(job: Job, told_s: int, zone: tzinfo) -> str:
    """Answers a press for a date from which a reminder was moved away."""
    told = moment_words(datetime.fromtimestamp(told_s, UTC), zone)
    if job.next is None:
        return f"That was for {told}."
    return f"That was for {told}; the next one is {due_words(job.next, zone)} and stays."


def paused_words(job: Job) -> str:
    """Answers a pause."""
    return f"{job.key} {name_of(job)} stands still. `/job {job.key} resume` lets it go on."


def asked_card(head: str, question: str, options: Sequence[TimeRead], zone: tzinfo) -> str:
    """Return what is shown where a time can be read in several ways."""
    lines = [
        f"{number}. {bare(one.sentence)}"
        + (f" (next: {moment_words(one.next[0], zone)})" if one.next else "")
        for number, one in enumerate(options, start=1)
    ]
    return "\n".join([head, bare(question, chars_max=TEXT_CHARS), *lines])


# --- unasked -----------------------------------------------------------------------------------


def stopped_card(lane: str, job: Job, why: str) -> NewMessage:
    """The notice that a job was stopped because it kept failing, with a button to go on."""
    text = (
        f"I stopped the job {job.key} **{name_of(job)}**: {bare(why, chars_max=TEXT_CHARS)}. It "
        f"does not run again until you say so; `/job {job.key}` shows more."
    )
    go_on = Button(label="Go on", data=data(job.id, RESUME), style="good")
    return NewMessage(lane=lane, text=text, buttons=((go_on,),))


def missed_cards(
    lane: str, missed: Sequence[tuple[Job, Misfires]], zone: tzinfo
) -> tuple[NewMessage, ...]:
    """Return what came due while nothing ran, and what was done about each: one message, and one
    more for each that is asked about where there are several. Of heartbeats nothing is said."""
    told = [one for one in missed if one[0].kind is not JobKind.HEARTBEAT]
    if not told:
        return ()
    lines = [f"- {_missed_line(job, dues, zone)}" for job, dues in told[:MISSED_SHOWN]]
    if len(told) > MISSED_SHOWN:
        lines.append(f"… and {len(told) - MISSED_SHOWN} more: `/jobs`")
    text = "\n".join([f"While I was off, this came due ({zone}):", *lines])
    asked = [one for one in told if one[1].done is SlotState.ASKED]
    if len(asked) == 1:
        return (NewMessage(lane=lane, text=text, buttons=(_missed_row(*asked[0]),)),)
    questions = [
        NewMessage(
            lane=lane,
            text=f"Missed: {_missed_line(job, dues, zone)}",
            buttons=(_missed_row(job, dues),),
        )
        for job, dues in asked[:ASKED_MAX]
    ]
    return (NewMessage(lane=lane, text=text), *questions)


def _missed_line(job: Job, dues: Misfires, zone: tzinfo) -> str:
    first, last = due_words(dues.first, zone), due_words(dues.last, zone)
    more = " or more" if dues.count >= COUNTED_MAX else ""
    when = first if dues.count == 1 else f"{dues.count:,}{more} times, from {first} to {last}"
    return f"{job.key} {name_of(job)}: {when}. {_made_up(job, dues)}"


def _made_up(job: Job, dues: Misfires) -> str:
    if dues.done is SlotState.ASKED:
        return "Shall I make up for it?"
    if dues.done is SlotState.SKIPPED:
        return "Left out."
    if dues.count > 1 and job.missed is MisfirePolicy.ONCE:
        return "Made up for once."
    if dues.count > MADE_UP_MAX:
        return f"The newest {MADE_UP_MAX} are made up for now."
    return "Made up for now."


def _missed_row(job: Job, dues: Misfires) -> tuple[Button, Button]:
    slot = dues.last.slot
    return (
        Button(label="Run it now", data=data(job.id, RUN, slot), style="good"),
        Button(label="Leave it out", data=data(job.id, SKIP, slot)),
    )
