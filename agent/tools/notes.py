"""The tools over notes: what is worked on, agreed for today or long, in files of the person."""

from __future__ import annotations

import asyncio
import re
from datetime import date, timedelta
from typing import Literal

from pydantic import Field

from agent.headings import harmless
from agent.tools.arguments import Arguments
from agent.tools.household import NOTHING_HERE, Household, MemoryRefused
from agent.tools.note_files import NOTE_CHARS_MAX, Notes
from agent.tools.tool import AboutFile, Caller, Effect, Needs, ToolCard, Trust

DAYS_LISTED_MAX = 60

IN_GROUPS = "notes are private, and closed in group chats."

Where = Literal["today", "long-term"]


# --- read_notes ----------------------------------------------------------------------------------


class ReadNotesArguments(Arguments):
    """Which notes."""

    day: str = Field(
        default="",
        max_length=40,
        description="a date such as 2026-03-01, today, yesterday, or long-term; empty: list them",
    )


class ReadNotes:
    """The notes of a day, those that last, or which there are."""

    card = ToolCard(
        name="read_notes",
        description="Read the person's notes of a day or the long-term ones, or list the days.",
        arguments=ReadNotesArguments,
        group="memory",
        effect=Effect.NONE,
        redo="repeat",
        trust=Trust.OURS,
        status="reading the notes …",
    )

    def __init__(self, notes: Notes, household: Household) -> None:
        self._notes = notes
        self._household = household

    def needs(self, arguments: ReadNotesArguments, caller: Caller) -> Needs:
        """See SaysNeeds."""
        return Needs(refused=IN_GROUPS if caller.is_group else "")

    async def run(self, arguments: ReadNotesArguments, caller: Caller) -> str:
        """The text, or one line a day."""
        if await self._household.is_off(caller):
            return NOTHING_HERE
        wanted = " ".join(arguments.day.casefold().split())
        if not wanted:
            return await asyncio.to_thread(self._listed, caller)
        if wanted in _LONG_TERM:
            return await asyncio.to_thread(self._read, caller, None)
        today = self._household.now_of(caller.person_id).date()
        return await asyncio.to_thread(self._read, caller, _day(wanted, today))

    def _read(self, caller: Caller, day: date | None) -> str:
        named = "Long-term notes" if day is None else f"Notes of {day:%A}, {day}"
        text = harmless(self._notes.read(caller, day))
        return f"{named}:\n{text}" if text else f"{named}: there are none."

    def _listed(self, caller: Caller) -> str:
        lines = ["long-term"] if self._notes.read(caller, None) else []
        days = self._notes.days(caller)
        lines += [f"{one.day} ({one.size_bytes:,} bytes)" for one in days[:DAYS_LISTED_MAX]]
        if len(days) > DAYS_LISTED_MAX:
            lines.append(f"[the newest {DAYS_LISTED_MAX} of {len(days):,} days]")
        return "\n".join(lines) or "There are no notes yet."


_LONG_TERM = frozenset({"long-term", "long term", "longterm", "memory.md"})


def _day(text: str, today: date) -> date:
    """Raises MemoryRefused for what is no day."""
    if text in {"today", "yesterday"}:
        return today - timedelta(days=int(text == "yesterday"))
    try:
        if not re.fullmatch(r"[0-9]{4}-?[0-9]{2}-?[0-9]{2}", text):
            raise ValueError("a day is written with its year, month and day alone")
        return date.fromisoformat(text)
    except ValueError as error:
        raise MemoryRefused(
            "this names no day: write it like 2026-03-01, or today, yesterday, long-term"
        ) from error


# --- append_notes --------------------------------------------------------------------------------


class AppendNotesArguments(Arguments):
    """What to note, and where."""

    text: str = Field(min_length=1, max_length=NOTE_CHARS_MAX)
    where: Where = "today"


class AppendNotes:
    """Adds to notes what does not stand there yet, so that a call made again adds nothing."""

    card = ToolCard(
        name="append_notes",
        description=(
            "Note what is worked on or agreed, for today or long-term. What stays true of the "
            "person is a fact instead (store_fact)."
        ),
        arguments=AppendNotesArguments,
        group="memory",
        effect=Effect.PERSON,
        redo="idempotent",
        trust=Trust.OURS,
        status="making a note …",
    )

    def __init__(self, notes: Notes, household: Household) -> None:
        self._notes = notes
        self._household = household

    def needs(self, arguments: AppendNotesArguments, caller: Caller) -> Needs:
        """See SaysNeeds."""
        if caller.is_group:
            return Needs(refused=IN_GROUPS)
        where = "notes of today" if arguments.where == "today" else "long-term notes"
        return Needs(shows=(f"Into the {where}, which later prompts show:",))

    async def run(self, arguments: AppendNotesArguments, caller: Caller) -> str:
        """What was added, and where."""
        await self._household.check_writable(caller)
        day = None
        if arguments.where == "today":
            day = self._household.now_of(caller.person_id).date()
        added = await self._notes.add(caller, arguments.text, day)
        named = "the long-term notes" if day is None else f"the notes of {day}"
        if not added.added:
            return f"It stands in {named} already ({added.path}); nothing was added."
        done = f"Added to {named} ({added.path}), {len(added.added):,} characters."
        return AboutFile(done, added.of)
