"""What `/why` says of a message that came by the clock: which job sent it, whose, and when it was
due. Markdown, as in `bot.why_words`. Used by `bot.why`.
"""

from __future__ import annotations

from collections.abc import Mapping

from agent.explaining import Behind, Slot
from agent.scheduled import Job, JobKind, SetBy
from bot.memory_words import bare
from bot.schedule_words import name_of, when_words
from bot.why_words import NAME_CHARS, RESULT_CHARS, Known, Reader, moment

SLOTS_SHOWN = 10

_KINDS = {
    JobKind.MESSAGE: "reminder",
    JobKind.AGENT: "job",
    JobKind.SKILL: "scheduled skill",
    JobKind.TOOL: "job",
    JobKind.HEARTBEAT: "heartbeat",
}
_SET_BY = {
    SetBy.PERSON: "set up by its person",
    SetBy.SKILL: "set up by a skill",
    SetBy.BOT: "set up by me",
}


def clock_text(behind: Behind, jobs: Mapping[int, Job | None], known: Known, reader: Reader) -> str:
    """Why something was sent that nobody asked for just then."""
    if behind.gone:
        note = bare(behind.gone, chars_max=RESULT_CHARS) if reader.detailed else ""
        said = "**Why this was sent**: by the clock, by a job that is not there any more."
        return f"{said}\n{note}".rstrip()
    lines = [_slot(slot, jobs.get(slot.job_id), known, reader) for slot in behind.slots]
    if len(lines) == 1:
        return f"**Why this was sent**: {lines[0]}"
    shown = [f"- {line}" for line in lines[:SLOTS_SHOWN]]
    if len(lines) > SLOTS_SHOWN:
        shown.append(f"- and {len(lines) - SLOTS_SHOWN} more")
    return "\n".join(["**Why this was sent**: it gathers what had to wait.", *shown])


def _slot(slot: Slot, job: Job | None, known: Known, reader: Reader) -> str:
    """One due time. Names and rules of a job are its person's alone to read."""
    due = f"due {moment(slot.due_ms, reader.zone)}"
    if slot.late_s >= 60:
        due += f", {slot.late_s // 60} min late"
    if job is None:
        return f"a job that is not there any more, {due}"
    is_own = job.new.person_id == reader.person_id
    owner = bare(known.name_of(job.new.person_id), chars_max=NAME_CHARS) or "somebody"
    what = f"a {_KINDS[job.new.kind]} of {'yours' if is_own else owner}"
    if not (reader.detailed and is_own):
        return f"{what} ({job.key}), {due}"
    runs = f"it runs {when_words(job.new.when, reader.zone)}, {_SET_BY[job.new.set_by]}"
    change = f"`/job {job.key}` shows and changes it."
    return f"{what}, {job.key} “{name_of(job)}”, {due}; {runs}. {change}"
