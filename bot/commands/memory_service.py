"""What is remembered, as its owner sees and changes it on the machine: `hearthbot memory`.

Its operations are served on the private socket, which is the owner's alone; so they may be about
any person. Answers are JSON objects; what each holds stands at the method that makes it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, time, tzinfo
from pathlib import Path
from typing import Any

from bot.commands import memory_messages as words
from bot.commands.memory import Remembered, as_markdown, edited
from bot.people.register import called, gone
from bot.people.timezone import zone_of
from bot.rpc import Emit, Operation
from bot.settings.home import write_private
from memory.records.erasure import Forgets, Found, Imported, Proof, Stage, Wish
from memory.records.errors import Permanent, StorageError
from memory.records.facts import StoredFact, Whose, fact_id_of
from memory.records.messages import PersonId, Role
from memory.records.rows import Person

Json = dict[str, Any]

FACTS_AT_ONCE = 2_000
"""In one answer, which is one line on the socket."""
FOUND_MAX = 50
PEOPLE_NAMED_MAX = 10
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""How the id of somebody who was removed may look; folders are named after it."""


class MemoryWrong(Permanent):
    """What was asked for is not there, or cannot be; the text says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfficeOptions:
    """The home, below which paths are told, and the zone of people who have set none."""

    root: Path
    host_zone: str


class MemoryOffice:
    """Answers what the owner asks about what is remembered of somebody."""

    def __init__(
        self,
        stores: Remembered,
        forgetting: Forgets,
        people: Callable[[], Sequence[Person]],
        *,
        as_json: Callable[[Mapping[str, Any]], str],
        options: OfficeOptions,
    ) -> None:
        """`as_json` makes a file of what was taken out, which can be brought in again."""
        self._stores = stores
        self._forgetting = forgetting
        self._people = people
        self._as_json = as_json
        self._options = options

    # --- looking ------------------------------------------------------------------------------

    async def listed(self, person: str, *, as_of: str, past: bool, offset: int) -> Json:
        """`facts` from `offset` on, `more` for whether that is not all, `zone` of the person."""
        who = await self._remembered(person)
        at = None if not as_of else _moment(as_of, self._zone(who))
        facts = await self._stores.overviews.facts(who.id, at=at, past=past)
        shown = facts[offset : offset + FACTS_AT_ONCE]
        return {
            "person": who.id,
            "zone": str(self._zone(who)),
            "facts": [row_of(fact) for fact in shown],
            "more": len(facts) > offset + len(shown),
        }

    async def searched(self, person: str, text: str) -> Json:
        """`facts` that fit, best first: private ones, then those of groups."""
        who = await self._remembered(person)
        every = await self._stores.overviews.facts(who.id)
        scopes = ["", *sorted({fact.whose.scope for fact in every} - {""})]
        found: list[StoredFact] = []
        for scope in scopes:
            of = Whose(person_id=who.id, scope=scope)
            some = await self._stores.facts.search(of, text, k=FOUND_MAX)
            found += [fact for fact in some if fact.whose.person_id == who.id]
        return {
            "person": who.id,
            "zone": str(self._zone(who)),
            "facts": [row_of(fact) for fact in found[:FOUND_MAX]],
        }

    async def shown(self, person: str, key: str) -> Json:
        """`fact`, and in `past` what it replaced, newest first."""
        who = await self._remembered(person)
        fact = await self._fact(who, key)
        past = await self._stores.facts.past(fact.whose, fact.id)
        return {
            "person": who.id,
            "zone": str(self._zone(who)),
            "fact": row_of(fact),
            "past": [row_of(one) for one in past if one.whose.person_id == who.id],
        }

    # --- changing -----------------------------------------------------------------------------

    async def edit(self, person: str, key: str, text: str) -> Json:
        """`outcome`, `text` about it, `fact` and `replaced`. Raises MemoryWrong when refused."""
        who = self._person(person)
        fact = await self._fact(who, key)
        if fact.valid_to_ms is not None:
            raise MemoryWrong(f"{fact.key} no longer holds, so it cannot be corrected.")
        stored = await self._stores.facts.store(edited(fact, " ".join(text.split())))
        if stored.fact is None:
            raise MemoryWrong(stored.why)
        return {
            "person": who.id,
            "outcome": stored.outcome.value,
            "text": words.stored_text(stored),
            "fact": row_of(stored.fact),
            "replaced": None if stored.replaced is None else row_of(stored.replaced),
        }

    async def found(self, person: str, what: str) -> Json:
        """Every place that holds it: `counts` by kind, the same in `words`, `notes` and `files`,
        the `facts` that would go, `backups`, the `refusal` if it cannot be erased right now, and
        whether it `is_empty` or `under_way` already."""
        who = await self._remembered(person)
        wish = await self._wish(who, what)
        found = await self._forgetting.find(wish)
        under_way = await self._forgetting.under_way()
        rows = [await self._stores.overviews.fact(who.id, one) for one in found.facts]
        return {
            "person": who.id,
            "name": called(self._people()).get(who.id, gone(who.id)),
            "zone": str(self._zone(who)),
            **self._found(found),
            "facts": [row_of(one) for one in rows if one is not None],
            "is_empty": found.is_empty,
            "under_way": under_way is not None and under_way.person_id == who.id,
        }

    async def forget(self, person: str, what: str, *, files: bool, emit: Emit) -> Json:
        """Emits each `stage`, with `words`. Answers with the proof: `ok`, what was `erased`, how
        many `files` and `bytes` were looked through, in which other files the words were `blanked`,
        where it still stands (`hits`, `tables`,
        `unread`), what was `left`, and in what `theirs` others said the same."""
        who = await self._remembered(person)
        wish = await self._wish(who, what, files=files)

        def tell(stage: Stage) -> None:
            emit({"stage": stage.value, "words": words.STAGES[stage]})

        return self._proven(await self._forgetting.forget(wish, tell), who)

    # --- out and in ---------------------------------------------------------------------------

    async def take_out(self, person: str, *, form: str, out: str) -> Json:
        """Writes a file that was not there, for its owner's eyes alone: `path`, and how many
        `facts`, `documents` and `notes` it has."""
        who = self._person(person)
        carried = await self._stores.carrying.taken_out(who.id, is_owner=who.role is Role.OWNER)
        text = self._as_json(carried) if form == "json" else as_markdown(carried, self._zone(who))
        path = Path(out)
        await asyncio.to_thread(_write, path, text)
        counts = {part: len(carried[part]) for part in ("facts", "documents", "notes")}
        return {"person": who.id, "path": str(path), "format": form, **counts}

    async def bring_in(self, person: str, path: str) -> Json:
        """What became of a file: facts `stored`, `refreshed`, `superseded` and `refused`, what of
        `profile`, `documents` and `notes` is new, and what was `left` as it stands here."""
        who = self._person(person)
        taken: Imported = await self._stores.carrying.brought_in(
            who.id, Path(path), is_owner=who.role is Role.OWNER
        )
        return {"person": who.id, **asdict(taken)}

    # --- steps --------------------------------------------------------------------------------

    async def _remembered(self, wanted: str) -> Person:
        """The same, and by their id somebody who was removed and of whom something is kept."""
        try:
            return self._person(wanted)
        except MemoryWrong:
            if _ID.fullmatch(wanted) is None:
                raise
            gone = Person(id=PersonId(wanted), role=Role.MEMBER)
            found = await self._forgetting.find(Wish(person_id=gone.id, everything=True))
            begun = await self._forgetting.under_way()
            if not found.counts and (begun is None or begun.person_id != gone.id):
                raise
            return gone

    def _person(self, wanted: str) -> Person:
        """By id, address or name; the owner where nobody is named. Raises MemoryWrong."""
        people = self._people()
        if not wanted:
            owners = [one for one in people if one.role is Role.OWNER]
            if not owners:
                raise MemoryWrong(
                    "Nobody owns this bot yet, so nothing is remembered. Talk with it here "
                    "(`hearthbot chat`), or set up Telegram or Slack (`hearthbot init`): the first "
                    "one who is let in is its owner."
                )
            return owners[0]
        exact = [one for one in people if wanted == one.id or wanted in one.addresses]
        named = [one for one in people if one.name.casefold() == wanted.casefold()]
        found = exact or named
        if len(found) == 1:
            return found[0]
        names = called(people)
        if named:
            several = ", ".join(names[one.id] for one in named[:PEOPLE_NAMED_MAX])
            raise MemoryWrong(
                f"{wanted[:64]!r}: more than one person is called that. Name an address, or one of "
                f"the ids: {several}"
            )
        known = ", ".join(names[one.id] for one in people[:PEOPLE_NAMED_MAX])
        raise MemoryWrong(
            f"{wanted[:64]!r}: nobody is called that. There are: {known}. `hearthbot access list` "
            "has their addresses, which do as well."
        )

    def _zone(self, person: Person) -> tzinfo:
        return zone_of(person.time_zone or self._options.host_zone) or UTC

    async def _fact(self, person: Person, key: str) -> StoredFact:
        fact_id = fact_id_of(key)
        found = None
        if fact_id is not None:
            found = await self._stores.overviews.fact(person.id, fact_id)
        if found is None:
            raise MemoryWrong(
                f"There is no fact {key[:40]!r} of this person; `hearthbot memory list` has all."
            )
        return found

    async def _wish(self, person: Person, what: str, *, files: bool = False) -> Wish:
        """Of numbers, the word `everything`, or else words. Raises MemoryWrong."""
        keys = what.replace(",", " ").split()
        ids = [fact_id_of(key) for key in keys]
        facts = tuple(one for one in ids if one is not None)
        is_numbers = bool(keys) and len(facts) == len(keys)
        everything = what.strip().lower() == "everything"
        if is_numbers:
            begun = await self._forgetting.under_way()
            known = begun.facts if begun is not None and begun.person_id == person.id else ()
            for key, fact_id in zip(keys, facts, strict=True):
                if fact_id not in known:
                    await self._fact(person, key)
        return Wish(
            person_id=person.id,
            facts=facts if is_numbers else (),
            phrases=() if is_numbers or everything or not keys else (what.strip(),),
            everything=everything,
            is_owner=person.role is Role.OWNER,
            names=(person.name,) if person.name else (),
            with_files=files,
        )

    def _found(self, found: Found) -> Json:
        return {
            "counts": {kind.value: count for kind, count in found.counts.items()},
            "words": [words.counted(kind, count) for kind, count in found.counts.items()],
            "notes": self._told(found.notes),
            "files": self._told(found.files),
            "backups": found.backups,
            "refusal": found.refusal,
        }

    def _proven(self, proof: Proof, who: Person) -> Json:
        return {
            "person": who.id,
            "ok": proof.ok,
            "erased": {kind.value: count for kind, count in proof.erased.items()},
            "words": [words.counted(kind, count) for kind, count in proof.erased.items()],
            "backup": self._told([proof.backup])[0],
            "dropped": self._told(proof.dropped),
            "files": proof.files,
            "bytes": proof.bytes,
            "failures": words.failures(proof, self._options.root),
            "blanked": self._told(proof.blanked),
            "hits": self._told(proof.hits),
            "tables": list(proof.tables),
            "unread": self._told(proof.unread),
            "left": self._told(proof.left),
            "theirs": [*proof.theirs, *self._told(proof.their_files)],
            "nowhere": words.NOWHERE if proof.ok and not proof.left else "",
            "cannot_reach": words.CANNOT_REACH,
        }

    def _told(self, paths: Sequence[Path]) -> list[str]:
        root = self._options.root
        return [str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
                for path in paths]  # fmt: skip


def memory_operations(office: MemoryOffice) -> Mapping[str, Operation]:
    """What is offered on the private socket, and to a command where no bot runs."""

    def asked(do: Callable[[Json], Awaitable[Json]]) -> Operation:
        async def operation(request: Json, emit: Emit) -> Json:
            return await do(request)

        return operation

    async def forget(request: Json, emit: Emit) -> Json:
        person, what = str(request["person"]), str(request["what"])
        return await office.forget(person, what, files=bool(request["files"]), emit=emit)

    return {
        "memory.list": asked(
            lambda r: office.listed(
                str(r["person"]),
                as_of=str(r["as_of"]),
                past=bool(r["past"]),
                offset=max(0, int(r["offset"])),
            )
        ),
        "memory.search": asked(lambda r: office.searched(str(r["person"]), str(r["text"]))),
        "memory.show": asked(lambda r: office.shown(str(r["person"]), str(r["key"]))),
        "memory.edit": asked(
            lambda r: office.edit(str(r["person"]), str(r["key"]), str(r["text"]))
        ),
        "memory.find": asked(lambda r: office.found(str(r["person"]), str(r["what"]))),
        "memory.forget": forget,
        "memory.export": asked(
            lambda r: office.take_out(str(r["person"]), form=str(r["format"]), out=str(r["out"]))
        ),
        "memory.import": asked(lambda r: office.bring_in(str(r["person"]), str(r["path"]))),
    }


def row_of(fact: StoredFact) -> Json:
    """A fact as JSON."""
    return {
        "key": fact.key,
        "id": fact.id,
        "text": fact.text,
        "category": fact.category,
        "confidence": fact.confidence,
        "scope": fact.whose.scope,
        "source": fact.source.value,
        "message_id": fact.message_id,
        "quote": fact.quote,
        "speaker": fact.speaker,
        "valid_from_ms": fact.valid_from_ms,
        "valid_to_ms": fact.valid_to_ms,
        "superseded_by": fact.superseded_by,
        "created_ms": fact.created_ms,
        "last_used_ms": fact.last_used_ms,
        "uses": fact.uses,
    }


def _moment(text: str, zone: tzinfo) -> datetime:
    """A day means its end: what was so on that day. Raises MemoryWrong."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise MemoryWrong(f"{text[:40]!r} is no date such as 2026-08-01.") from error
    if len(text) <= len("2026-08-01"):
        at = datetime.combine(at.date(), time(23, 59, 59, 999_000))
    return at if at.tzinfo is not None else at.replace(tzinfo=zone)


def _write(path: Path, text: str) -> None:
    if path.exists():
        raise MemoryWrong(f"{path} is there already, so nothing was written. Name another file.")
    try:
        write_private(path, text.encode("utf-8", "replace"))
    except OSError as error:
        raise StorageError(f"{path} could not be written ({error.strerror}).") from error
