"""What is remembered, as its owner sees and changes it on the machine: `hearthbot memory`.

Operations of the private socket, which is the owner's alone; so they may be about any person.
Answers are JSON objects; what each holds stands at the method that makes it.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, time, tzinfo
from pathlib import Path
from typing import Any

from bot.commands import memory_messages as words
from bot.people.register import called, gone
from bot.people.timezone import zone_of
from bot.rpc import Emit, Operation
from bot.settings.home import write_private
from memory.records.erasure import ForgetStage, ForgetWish, Proof
from memory.records.errors import Permanent, StorageError
from memory.records.facts import EVERYWHERE, StoredFact, Whose
from memory.records.messages import PersonId, Role
from memory.records.rows import Person
from memory.service import MemoryService, UnknownFact

Json = dict[str, Any]

FACTS_AT_ONCE = 2_000
"""In one answer, which is one line on the socket."""
FOUND_MAX = 50
PEOPLE_NAMED_MAX = 10
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""How the id of somebody who was removed may look; folders are named after it."""


class MemoryWrong(Permanent):
    """What was asked for is not there, or cannot be; the text says what to do."""


class MemoryOperations:
    """Answers what the owner asks about what is remembered of somebody."""

    def __init__(
        self,
        memory: MemoryService,
        people: Callable[[], Sequence[Person]],
        *,
        root: Path,
        host_zone: str,
    ) -> None:
        """`root` is the home, below which paths are told; `host_zone` that of people who have set
        none."""
        self._memory = memory
        self._people = people
        self._root = root
        self._host_zone = host_zone

    def served(self) -> Mapping[str, Operation]:
        """Return what is offered on the private socket, and to a command where no bot runs."""
        asked: dict[str, Callable[..., Awaitable[Json]]] = {
            "list": self.facts,
            "search": self.search,
            "show": self.show,
            "edit": self.edit,
            "find": self.find,
            "forget": self.forget,
            "export": self.export,
            "import": self.load,
        }
        return {f"memory.{name}": _operation(do) for name, do in asked.items()}

    # --- looking ------------------------------------------------------------------------------

    async def facts(self, person: str, as_of: str, past: bool, offset: int) -> Json:
        """`facts` from `offset` on, `more` for whether that is not all, `zone` of the person."""
        who = await self._remembered(person)
        if past:
            facts = await self._memory.facts.closed(_all_of(who))
        else:
            at = None if not as_of else _moment(as_of, self._zone(who))
            facts = await self._memory.facts.list(_all_of(who), at=at)
        shown = facts[offset : offset + FACTS_AT_ONCE]
        return {
            **self._head(who),
            "facts": [row_of(fact) for fact in shown],
            "more": len(facts) > offset + len(shown),
        }

    async def search(self, person: str, text: str) -> Json:
        """`facts` that fit, best first."""
        who = await self._remembered(person)
        found = await self._memory.facts.search(_all_of(who), text, k=FOUND_MAX)
        return {**self._head(who), "facts": [row_of(fact) for fact in found]}

    async def show(self, person: str, key: str) -> Json:
        """`fact`, and in `past` what it replaced, newest first."""
        who = await self._remembered(person)
        try:
            fact = await self._memory.fact(_all_of(who), key)
        except UnknownFact as error:
            raise _unknown(key) from error
        past = await self._memory.facts.past(_all_of(who), fact.id)
        return {**self._head(who), "fact": row_of(fact), "past": [row_of(one) for one in past]}

    # --- changing -----------------------------------------------------------------------------

    async def edit(self, person: str, key: str, text: str) -> Json:
        """`outcome`, `text` about it, `fact` and `replaced`. Raises MemoryWrong when refused."""
        who = self._person(person)
        try:
            stored = await self._memory.correct(_all_of(who), key, " ".join(text.split()))
        except UnknownFact as error:
            raise _unknown(key) from error
        if stored.fact is None:
            raise MemoryWrong(stored.why)
        return {
            "person": who.id,
            "outcome": stored.outcome.value,
            "text": words.stored_text(stored),
            "fact": row_of(stored.fact),
            "replaced": None if stored.replaced is None else row_of(stored.replaced),
        }

    async def find(self, person: str, what: str) -> Json:
        """Every place that holds it: `counts` by kind, the same in `words`, `notes` and `files`,
        the `facts` that would go, `similar` sentences that would stay, `backups`, the `refusal` if
        it cannot be erased right now, and whether it `is_empty` or `under_way` already."""
        who = await self._remembered(person)
        found = await self._memory.forgetting.find(await self._wish(who, what))
        under_way = await self._memory.forgetting.under_way()
        facts = [await self._memory.facts.get(_all_of(who), one) for one in found.facts]
        return {
            **self._head(who),
            "name": called(self._people()).get(who.id, gone(who.id)),
            "counts": {kind.value: count for kind, count in found.counts.items()},
            "words": [words.counted(kind, count) for kind, count in found.counts.items()],
            "similar": list(found.similar),
            "notes": self._told(found.notes),
            "files": self._told(found.files),
            "backups": found.backups,
            "refusal": found.refusal,
            "facts": [row_of(one) for one in facts if one is not None],
            "is_empty": found.is_empty,
            "under_way": under_way is not None and under_way.person_id == who.id,
        }

    async def forget(self, person: str, what: str, files: bool, emit: Emit) -> Json:
        """Emits each `stage`, with `words`. Answers with the proof: `ok`, what was `erased`, how
        many `files` and `bytes` were looked through, in which other files the words were `blanked`,
        where it still stands (`hits`, `tables`, `unread`), what was `left`, and in what `theirs`
        others said the same."""
        who = await self._remembered(person)
        wish = await self._wish(who, what, files=files)

        def tell(stage: ForgetStage) -> None:
            emit({"stage": stage.value, "words": words.STAGES[stage]})

        return {"person": who.id, **self._proven(await self._memory.forgetting.forget(wish, tell))}

    # --- out and in ---------------------------------------------------------------------------

    async def export(self, person: str, format: str, out: str) -> Json:
        """Writes a file that was not there, for its owner's eyes alone: `path`, and how many
        `facts`, `documents` and `notes` it has."""
        who = self._person(person)
        taken = await self._memory.transfer.export(who.id, is_owner=who.role is Role.OWNER)
        is_json = format == "json"
        text = words.as_json(taken) if is_json else words.as_markdown(taken, self._zone(who))
        await asyncio.to_thread(_write, Path(out), text)
        counts = {part: len(taken[part]) for part in ("facts", "documents", "notes")}
        return {"person": who.id, "path": out, "format": format, **counts}

    async def load(self, person: str, path: str) -> Json:
        """What became of a file: facts `stored`, `refreshed`, `superseded` and `refused`, what of
        `profile`, `documents` and `notes` is new, and what was `left` as it stands here."""
        who = self._person(person)
        is_owner = who.role is Role.OWNER
        taken = await self._memory.transfer.load(who.id, Path(path), is_owner=is_owner)
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
            found = await self._memory.forgetting.find(
                ForgetWish(person_id=gone.id, everything=True)
            )
            begun = await self._memory.forgetting.under_way()
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
        return zone_of(person.time_zone or self._host_zone) or UTC

    def _head(self, who: Person) -> Json:
        return {"person": who.id, "zone": str(self._zone(who))}

    async def _wish(self, who: Person, what: str, *, files: bool = False) -> ForgetWish:
        """Raises MemoryWrong for a fact that is not there."""
        try:
            return await self._memory.wish(who, what, _all_of(who), with_files=files)
        except UnknownFact as error:
            raise _unknown(error.key) from error

    def _proven(self, proof: Proof) -> Json:
        return {
            "ok": proof.ok,
            "erased": {kind.value: count for kind, count in proof.erased.items()},
            "words": [words.counted(kind, count) for kind, count in proof.erased.items()],
            "backup": self._told([proof.backup])[0],
            "dropped": self._told(proof.dropped),
            "files": proof.files,
            "bytes": proof.bytes,
            "failures": words.failures(proof, self._root),
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
        root = self._root
        return [str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
                for path in paths]  # fmt: skip


def _operation(do: Callable[..., Awaitable[Json]]) -> Operation:
    """Return an operation that takes a method's arguments from the request, by their names."""
    names = inspect.signature(do).parameters

    async def operation(request: Json, emit: Emit) -> Json:
        given = {**request, "emit": emit}
        return await do(**{name: given[name] for name in names})

    return operation


def _all_of(who: Person) -> Whose:
    return Whose(person_id=who.id, scope=EVERYWHERE)


def _unknown(key: str) -> MemoryWrong:
    return MemoryWrong(
        f"There is no fact {key[:40]!r} of this person; `hearthbot memory list` has all."
    )


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
