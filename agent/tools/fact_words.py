"""Facts in words for a model, and which fact a call means. Used by the tools of memory."""

from __future__ import annotations

from datetime import date, datetime, time, tzinfo

from agent.headings import harmless
from agent.remembering import Facts, StoredFact, Whose, fact_id_of, fact_key, whose
from agent.scene import one_line
from agent.text import clean
from agent.tools.household import MemoryRefused
from agent.tools.tool import Caller


def shown(fact: StoredFact, zone: tzinfo, *, credited: bool = False) -> str:
    """A fact in one line that can pose as nothing else: `f12: … (preference, since 2026-03-01)`.

    With `credited` it says who said it.
    """
    told: list[str] = [fact.category]
    if credited and fact.speaker:
        told.append(f"said by {one_line(harmless(fact.speaker))}")
    told.append(f"since {_day(fact.valid_from_ms, zone)}")
    if fact.valid_to_ms is not None:
        told.append(f"until {_day(fact.valid_to_ms, zone)}")
    if fact.superseded_by is not None:
        told.append(f"then {fact_key(fact.superseded_by)}")
    return f"{fact.key}: {plain(fact.text)} ({', '.join(told)})"


def as_of(text: str, zone: tzinfo) -> datetime | None:
    """The end of the day that a text names, in that zone; None where there is none.

    Raises MemoryRefused.
    """
    if not text.strip():
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise MemoryRefused("as_of is no date: write it like 2026-03-01") from error
    if moment.time() != time.min or "T" in text.strip().upper():
        return moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)
    return datetime.combine(moment.date(), time.max, tzinfo=zone)


async def own_fact(facts: Facts, key: str, caller: Caller) -> StoredFact:
    """A fact of this person here. Raises MemoryRefused."""
    fact_id = fact_id_of(key)
    fact = None if fact_id is None else await facts.get(here(caller), fact_id)
    if fact is None:
        raise MemoryRefused(
            f"there is no fact {named(key)} here; list_facts and search_memories name them"
        )
    if fact.whose.person_id != caller.person_id:
        raise MemoryRefused(f"{fact.key} is somebody else's: only they may change or forget it")
    return fact


def here(caller: Caller) -> Whose:
    """Whose memory a call is about."""
    return whose(caller.person_id, caller.address, is_group=caller.is_group)


def sentence(text: str) -> str:
    """As it is stored: clean, and one line."""
    return " ".join(clean(text).split())


def plain(text: str) -> str:
    """A stored sentence in one line that can pose as nothing of ours."""
    return " ".join(harmless(text).split())


def named(key: str) -> str:
    """An id as a model gave it, if it is one."""
    fact_id = fact_id_of(key)
    return repr(one_line(key)) if fact_id is None else fact_key(fact_id)


def _day(at_ms: int, zone: tzinfo) -> date:
    return datetime.fromtimestamp(at_ms / 1000, tz=zone).date()
