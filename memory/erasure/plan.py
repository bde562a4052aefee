"""What a wish to forget means: which words are looked for, and where; what only says the same.

Words are those of the wish, those of its facts, and the sentences of the turns that the facts are
from which tell them. Sentences elsewhere that tell a fact in other words are listed, for the person
to say which are to go too: nothing is erased for being alike. Called by `memory.erasure.erase`.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from memory.erasure.verify import Wording, sentences
from memory.facts.similarity import sentence
from memory.records.erasure import ForgetWish, too_short
from memory.records.messages import PersonId
from memory.records.words import fold

SAMPLED_MAX, SAMPLE_CHARS_MIN = 200, 12
"""Of everything that somebody said, what the files are looked through for at the end."""

LISTED_MAX = 5
TELLING_SHARE, TELLING_MIN = 0.6, 2
"""Of the words of a fact that say anything: so many tell it."""

_FACT_TEXTS = """
select text, quote from facts where id in (select value from json_each(:facts)) order by id
"""
# A command that kept a fact (`/remember`) is no turn, and has no lines.
_SOURCES = """
select facts.text, body from facts join messages on (
    messages.id = facts.message_id or facts.run_id <> '' and messages.run_id = facts.run_id
)
where facts.id in (select value from json_each(:facts)) and kind in ('said', 'answered')
order by messages.id
"""
_SAYINGS = """
select body from messages join turns on turns.run_id = messages.run_id
where kind = 'said' and turns.person_id = :person order by messages.id desc
"""
_CONVERSATIONS = """
select body from messages left join turns on turns.run_id = messages.run_id
where kind in ('said', 'answered') and (
    turns.person_id = :person or conversation_id in (select value from json_each(:own))
) order by messages.id desc
"""
_SUMMARIES = """
select summary from compactions where conversation_id in (select value from json_each(:own))
order by id desc
"""


TOLD_MAX, TOLD_CHARS_MIN = 400, 12
"""Sentences of somebody, the newest, that are looked for in what others were told; shorter ones say
too little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceSearch:
    """Whose words are looked for, where, and which. The ids of `facts` count whatever they say.

    `lanes` are addresses that nobody else writes at, `own` the conversations there; `touched` those
    shared ones where the person said it, and nobody else did. Of everything, `shared` are all in
    which the person spoke, and `told` is what they said there, and nobody else did.
    """

    person_id: PersonId
    wording: Wording
    facts: tuple[int, ...] = ()
    lanes: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    touched: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    told: tuple[str, ...] = ()

    @property
    def among_others(self) -> PlaceSearch:
        """For what was told of it in shared conversations, by its words: rows of nobody's own."""
        wording = Wording(self.told)
        return PlaceSearch(person_id=PersonId(""), wording=wording, touched=self.shared)

    @property
    def values(self) -> dict[str, str]:
        """For the statements below; lists are JSON."""
        return {
            "person": self.person_id,
            "facts": json.dumps(self.facts),
            "lanes": json.dumps(self.lanes),
            "own": json.dumps(self.own),
            "touched": json.dumps(self.touched),
            "shared": json.dumps(self.shared),
        }


# --- where to look ---------------------------------------------------------------------------

# In a channel of Slack, what was said to one person alone has an address of its own
# (`bot.channels.base`).
_OWN_LANES = """
select lane from turns group by lane having min(person_id) = :person and max(person_id) = :person
union select address from addresses where person_id = :person
union select lane from outbox where lane glob 'slack:*.*:~*' and exists (
    select 1 from addresses
    where person_id = :person and address =
        substr(lane, 1, instr(lane, '.') - 1) || ':' || substr(lane, instr(lane, ':~') + 2)
)
union select value from json_each(:lanes)
"""
_OWN = "select id from conversations where lane in (select value from json_each(:lanes))"
# The line of a fact that was corrected is still there, closed: it goes with the newer one.
_FACTS = """
with recursive chain (id) as (
    select id from facts
    where person_id = :person and id in (select value from json_each(:facts))
    union
    select facts.id from facts join chain on facts.superseded_by = chain.id
    where facts.person_id = :person
)
select id from chain
"""
_SHARED_SAYINGS = """
select conversation_id, body, turns.person_id
from messages join turns on turns.run_id = messages.run_id
where kind = 'said' and conversation_id in (
    select conversation_id from messages join turns on turns.run_id = messages.run_id
    where turns.person_id = :person
) and conversation_id not in (select value from json_each(:own))
"""
_OPEN_TURNS = """
select count(*) from turns where ended_ms is null and (
    person_id = :person
    or lane in (select value from json_each(:lanes))
    or lane in (
        select lane from conversations where id in (select value from json_each(:touched))
    )
)
"""


def located(connection: sqlite3.Connection, search: PlaceSearch) -> PlaceSearch:
    """The search with its addresses and conversations filled in, and the facts that belong."""
    found = replace(search, lanes=_column(connection, _OWN_LANES, search))
    found = replace(found, own=_column(connection, _OWN, found))
    found = replace(found, facts=tuple(map(int, _column(connection, _FACTS, found))))
    if search.wording.everything:
        return _with_shared(connection, found)
    mine: set[str] = set()
    theirs: set[str] = set()
    for conversation, body, person_id in connection.execute(_SHARED_SAYINGS, found.values):
        if found.wording.holds_json(body):
            by = json.loads(body).get("by") or person_id
            (mine if by == found.person_id else theirs).add(conversation)
    return replace(found, touched=tuple(sorted(mine - theirs)))


def is_busy(connection: sqlite3.Connection, search: PlaceSearch) -> bool:
    """Return whether a turn that may have read it is not over."""
    values = {**search.values, "touched": json.dumps((*search.touched, *search.shared))}
    return bool(connection.execute(_OPEN_TURNS, values).fetchone()[0])


def _column(connection: sqlite3.Connection, sql: str, search: PlaceSearch) -> tuple[Any, ...]:
    return tuple(row[0] for row in connection.execute(sql, search.values))


def _with_shared(connection: sqlite3.Connection, search: PlaceSearch) -> PlaceSearch:
    shared: dict[str, None] = {}
    mine: dict[str, None] = {}
    theirs: list[str] = []
    for conversation, body, person_id in connection.execute(_SHARED_SAYINGS, search.values):
        shared[conversation] = None
        entry = json.loads(body)
        if (entry.get("by") or person_id) == search.person_id:
            parts = (part.strip(" .!?") for _, part in sentences(entry.get("text", "")))
            mine.update(dict.fromkeys(one for one in parts if len(one) >= TOLD_CHARS_MIN))
        else:
            theirs.append(entry.get("text", ""))
    told = list(mine)[-TOLD_MAX:]
    # Mostly nobody else said any of it: then one look at each text is enough.
    said = Wording(tuple(told))
    among = [text for text in theirs if said.says(text)]
    told = [one for one in told if not any(Wording((one,)).says(text) for text in among)]
    return replace(search, shared=tuple(shared), told=tuple(told))


_FACTS_HELD = "select id, text, quote from facts where person_id = :person"


def facts_holding(connection: sqlite3.Connection, search: PlaceSearch) -> list[int]:
    """Facts of the person that are to go: those that were named, and those that hold the words."""
    named, said = set(search.facts), search.wording
    return [
        fact_id
        for fact_id, text, quote in connection.execute(_FACTS_HELD, search.values)
        if fact_id in named or said.holds(text) or said.holds(quote)
    ]


# --- what a wish means ---------------------------------------------------------------------------


def search_of(wish: ForgetWish, wording: Wording) -> PlaceSearch:
    return PlaceSearch(
        person_id=wish.person_id, wording=wording, facts=wish.facts, lanes=wish.lanes
    )


def asked(wish: ForgetWish, connection: sqlite3.Connection) -> PlaceSearch:
    """Return what to look for: the words of the facts too, and where."""
    plain = Wording(wish.phrases, everything=wish.everything)
    search = located(connection, search_of(wish, plain))
    if wish.everything:
        search = replace(search, facts=tuple(facts_holding(connection, search)))
    # The texts and quotes of facts, and the lines that they are from.
    of_facts = [text for pair in connection.execute(_FACT_TEXTS, search.values) for text in pair]
    sources = () if wish.everything else connection.execute(_SOURCES, search.values)
    for fact, body in sources:
        of_facts += _telling([set(sentence(fact).stems)], _said_in(body, search))
    of_facts = [text for text in of_facts if text and not too_short(text)]
    if wish.everything:
        sayings = connection.execute(_SAYINGS, search.values)
        texts = (_said_in(body, search) for (body,) in sayings)
        said = [text for text in texts if len(text) >= SAMPLE_CHARS_MIN]
        sample = tuple(dict.fromkeys([*of_facts, *said]))[:SAMPLED_MAX]
        wording = Wording(sample, everything=True)
    else:
        wording = Wording(tuple(dict.fromkeys([*wish.phrases, *of_facts])))
    return located(connection, replace(search, wording=wording))


def together(
    former: tuple[ForgetWish, Wording], now: tuple[ForgetWish, Wording]
) -> tuple[ForgetWish, Wording]:
    """Both wishes of one person as one: the words of the former may be nowhere else any more."""
    (a, said), (b, says) = former, now
    wish = replace(
        b,
        facts=tuple(dict.fromkeys(a.facts + b.facts)),
        phrases=tuple(dict.fromkeys(a.phrases + b.phrases)),
        everything=a.everything or b.everything,
        lanes=tuple(dict.fromkeys(a.lanes + b.lanes)),
        with_files=a.with_files or b.with_files,
        cards=tuple(dict.fromkeys(a.cards + b.cards)),
    )
    phrases = tuple(dict.fromkeys(said.phrases + says.phrases))
    return wish, Wording(phrases, everything=wish.everything)


# --- what is similar -----------------------------------------------------------------------------


def similar(connection: sqlite3.Connection, search: PlaceSearch) -> tuple[str, ...]:
    """Return sentences that tell one of the facts and do not hold the words that are to go: of
    summaries, then of conversations, the newest first."""
    facts = [text for text, _ in connection.execute(_FACT_TEXTS, search.values)]
    wanted = [stems for fact in facts if len(stems := set(sentence(fact).stems)) >= TELLING_MIN]
    found: dict[str, None] = {}
    summaries = (summary for (summary,) in connection.execute(_SUMMARIES, search.values))
    rows = connection.execute(_CONVERSATIONS, search.values)
    texts = chain(summaries, (_said_in(body, search) for (body,) in rows))
    for text in texts if wanted else ():
        found.update(dict.fromkeys(_telling(wanted, search.wording.without(text))))
        if len(found) >= LISTED_MAX:
            break
    return tuple(found)[:LISTED_MAX]


def _telling(wanted: Sequence[set[str]], text: str) -> Iterator[str]:
    """The sentences of a text that tell one of the facts, by their stems."""
    # A stem is how its words begin: a quick look spares most texts the close one.
    folded = fold(text)
    if not any(_is_told(stems, {one for one in stems if one in folded}) for stems in wanted):
        return
    for _, part in sentences(text):
        told = set(sentence(part).stems)
        if any(_is_told(stems, stems & told) for stems in wanted):
            yield _MARKUP.sub("", part).strip()


def _is_told(stems: set[str], of_them: set[str]) -> bool:
    return len(of_them) >= max(TELLING_MIN, TELLING_SHARE * len(stems))


def _said_in(body: str, search: PlaceSearch) -> str:
    """Return what an entry says; nothing where somebody else said it."""
    entry = json.loads(body)
    return entry.get("text", "") if entry.get("by", "") in {"", search.person_id} else ""


_MARKUP = re.compile(r"[*_`]+")
