"""What `/why` does: says what made an answer, or why something was sent unasked, from what is
recorded. No model is asked, and nothing changes but what a button then asks for.

A person hears of messages of their own chat alone. What a turn read and did in detail is told to
whose turn it was, where nobody reads along; what was forgotten since is told without its words.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC

from agent.trace.explanation import explained
from bot.channels.base import HAVE_FORMS, Pressed
from bot.commands.command import Answer
from bot.commands.jobs.messages import name_of, when_words
from bot.commands.memory.commands import MemoryCommands
from bot.commands.trace import why_messages as words
from bot.commands.trace.why_messages import NAME_CHARS, RESULT_CHARS, Reader, moment
from bot.markup.command_text import bare
from bot.people.approvals import is_shared
from bot.people.timezone import zone_of
from memory.facts.store import SqliteFacts
from memory.records.facts import StoredFact, fact_id_of, fact_key, place_of, whose
from memory.records.jobs import Job, JobKind, SetBy
from memory.records.messages import IncomingMessage, PersonId, Role, RunId
from memory.records.rows import Person
from memory.records.turns import Behind, DueSlot
from memory.stores.jobs import SqliteJobs
from memory.stores.traces import SqliteTraces

# --- why clock ----------------------------------------------------------------------------------
#
# What `/why` says of a message that came by the clock: which job sent it, whose, and when it was
# due. Markdown, as in `bot.commands.trace.why_messages`. Used by `bot.commands.trace.why`.

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


def clock_text(behind: Behind, jobs: Mapping[int, Job | None], reader: Reader) -> str:
    """Say why something was sent that nobody asked for just then."""
    if behind.gone:
        note = bare(behind.gone, chars_max=RESULT_CHARS) if reader.detailed else ""
        said = "**Why this was sent**: by the clock, by a job that is not there any more."
        return f"{said}\n{note}".rstrip()
    lines = [_slot(slot, jobs.get(slot.job_id), reader) for slot in behind.slots]
    if len(lines) == 1:
        return f"**Why this was sent**: {lines[0]}"
    shown = [f"- {line}" for line in lines[:SLOTS_SHOWN]]
    if len(lines) > SLOTS_SHOWN:
        shown.append(f"- and {len(lines) - SLOTS_SHOWN} more")
    return "\n".join(["**Why this was sent**: it gathers what had to wait.", *shown])


def _slot(slot: DueSlot, job: Job | None, reader: Reader) -> str:
    """Return one due time. Names and rules of a job are its person's alone to read."""
    due = f"due {moment(slot.due_ms, reader.zone)}"
    if slot.late_s >= 60:
        due += f", {slot.late_s // 60} min late"
    if job is None:
        return f"a job that is not there any more, {due}"
    is_own = job.person_id == reader.person_id
    owner = bare(reader.name_of(job.person_id), chars_max=NAME_CHARS) or "somebody"
    what = f"a {_KINDS[job.kind]} of {'yours' if is_own else owner}"
    if not (reader.detailed and is_own):
        return f"{what} ({job.key}), {due}"
    runs = f"it runs {when_words(job.when, reader.zone)}, {_SET_BY[job.set_by]}"
    change = f"`/job {job.key}` shows and changes it."
    return f"{what}, {job.key} “{name_of(job)}”, {due}; {runs}. {change}"


BACK_DIGITS_MAX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyCommand:
    """Answers `/why`. What it asks of stores may raise StorageError."""

    records: SqliteTraces
    facts: SqliteFacts
    jobs: SqliteJobs
    memories: MemoryCommands
    counted: Callable[[], Awaitable[object]]
    """Returns once the figures of what was spent are stored."""
    texts: Callable[[], Mapping[str, str]]
    """The templates of the library."""
    name_of: Callable[[PersonId], str]
    server_of: Callable[[str], str]
    redact: Callable[[str], str]
    host_zone: str

    async def tell(self, message: IncomingMessage, person: Person, rest: str) -> Answer:
        """Explain the message that is replied to, or one of the last answers here."""
        wanted = rest.strip() or "1"
        is_number = wanted.isascii() and wanted.isdecimal() and len(wanted) <= BACK_DIGITS_MAX
        back = int(wanted) if is_number else 0
        if not back:
            return Answer(text=words.USE)
        behind = None
        if message.reply_to:
            # Below a message of a chat a thread may have an address of its own.
            lanes = dict.fromkeys([message.address.key, place_of(message.address)])
            behind = await self.records.of_message([*lanes], message.reply_to)
            # Everything in a thread replies to what its thread began with.
            if behind is None and message.reply_to != message.address.thread_id:
                return Answer(text=words.NOT_MINE.format(use=words.USE))
        behind = behind or await self.records.newest(message.address.key, back=back)
        if behind is None:
            return Answer(
                text=words.NOTHING_YET if back == 1 else words.NOT_SO_MANY.format(use=words.USE)
            )
        if behind.run_id is not None:
            return await self._of_turn(behind.run_id, message, person)
        if not (behind.slots or behind.gone):
            return Answer(text=words.NO_TURN)
        jobs = {slot.job_id: await self.jobs.get(slot.job_id) for slot in behind.slots}
        owners = {job.person_id for job in jobs.values() if job is not None}
        theirs = next(iter(owners)) if len(owners) == 1 else person.id
        said = clock_text(behind, jobs, self._reader(message, person, {}, whose_turn=theirs))
        calls = {id for id, job in jobs.items() if job is not None and job.kind is JobKind.TOOL}
        # What calls a tool asks no model.
        runs = {one.run_id for one in behind.slots if one.run_id and one.job_id not in calls}
        if len(runs) != 1:
            return Answer(text=said)
        made = await self._of_turn(RunId(runs.pop()), message, person)
        return Answer(text=f"{said}\n\n{made.text}", buttons=made.buttons)

    async def press(self, pressed: Pressed, person: Person) -> str:
        """Act on a button with the data `why:f12:forget`: ask, as `/memory forget f12` does."""
        match pressed.data.split(":"):
            case [words.PREFIX, key, words.FORGET] if (fact_id := fact_id_of(key)) is not None:
                pass
            case _:
                return words.TOO_OLD
        if is_shared(pressed.address.key):
            return words.IN_PRIVATE
        asked = IncomingMessage(
            address=pressed.address,
            message_id=pressed.message_id,
            sender_id=pressed.sender.partition(":")[2],
        )
        return await self.memories.tell(asked, person, f"forget {fact_key(fact_id)}")

    # --- steps --------------------------------------------------------------------------------

    async def _of_turn(self, run_id: RunId, message: IncomingMessage, person: Person) -> Answer:
        await self.counted()
        record = await self.records.turn(run_id)
        if record is None:
            return Answer(text=words.EXPIRED)
        found = explained(record, self.texts())
        if record.is_erased:
            return Answer(text=words.FORGOTTEN if record.entries else words.ERASED)
        if record.ended_ms is None:
            return Answer(text=words.STILL_MADE)
        if found is None:
            return Answer(text=words.EXPIRED)
        # In a group what was said in it is shown, else what is the person's own.
        of = whose(person.id, message.address, is_group=message.is_group)
        ids = (*found.facts, *found.facts_before)
        facts = {fact_id: await self.facts.get(of, fact_id) for fact_id in ids}
        reader = self._reader(message, person, facts, whose_turn=record.person_id)
        if record.is_private:
            # What is written about it would stay when all else of it is erased.
            reader = replace(reader, detailed=False)
        text = words.answer_text(record, found, reader)
        if not reader.detailed:
            return Answer(text=text)
        open_facts = [one for one in facts.values() if one and one.valid_to_ms is None]
        with_forms = message.address.channel in HAVE_FORMS
        return Answer(text=text, buttons=words.fact_buttons(open_facts, with_forms=with_forms))

    def _reader(
        self,
        message: IncomingMessage,
        person: Person,
        facts: Mapping[int, StoredFact | None],
        *,
        whose_turn: PersonId,
    ) -> Reader:
        detailed = not message.is_group and whose_turn == person.id
        return Reader(
            person_id=person.id,
            zone=zone_of(person.time_zone or self.host_zone) or UTC,
            detailed=detailed,
            shows_money=detailed and person.role is not Role.GUEST,
            is_owner=person.role is Role.OWNER,
            facts=facts,
            name_of=self.name_of,
            server_of=self.server_of,
            redact=self.redact,
        )
