"""What a wish to forget means: which words are looked for, and where; what only says the same.

Words are those of the wish, those of its facts, and the sentences of the turns that the facts are
from which tell them. Sentences elsewhere that tell a fact in other words are listed, for the person
to say which are to go too: nothing is erased for being alike. Called by `memory.erasure.erase`.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from memory.erasure.places import PlaceSearch, facts_holding, located
from memory.erasure.verify import Wording, sentences
from memory.facts.similarity import sentence
from memory.records.erasure import ForgetWish, too_short
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


def search_of(wish: ForgetWish, wording: Wording) -> PlaceSearch:
    return PlaceSearch(
        person_id=wish.person_id, wording=wording, facts=wish.facts, lanes=wish.lanes
    )


def asked(wish: ForgetWish, connection: sqlite3.Connection) -> PlaceSearch:
    """What to look for: the words of the facts too, and where."""
    plain = Wording(wish.phrases, everything=wish.everything)
    search = located(connection, search_of(wish, plain))
    if wish.everything:
        search = replace(search, facts=tuple(facts_holding(connection, search)))
    of_facts = [text for text in _words_of(connection, search) if text and not too_short(text)]
    if wish.everything:
        said = [text for text in _sayings(connection, search) if len(text) >= SAMPLE_CHARS_MIN]
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


def _words_of(connection: sqlite3.Connection, search: PlaceSearch) -> Iterable[str]:
    """The texts and quotes of facts, and the lines that they are from."""
    found: dict[str, None] = {}
    for pair in connection.execute(_FACT_TEXTS, search.values):
        found.update(dict.fromkeys(pair))
    sources = () if search.wording.everything else connection.execute(_SOURCES, search.values)
    for fact, body in sources:
        wanted = [set(sentence(fact).stems)]
        found.update(dict.fromkeys(_telling(wanted, _said_in(body, search))))
    return found


def _sayings(connection: sqlite3.Connection, search: PlaceSearch) -> Iterator[str]:
    """What the person said, the newest first."""
    return (_said_in(body, search) for (body,) in connection.execute(_SAYINGS, search.values))


# --- what is similar -----------------------------------------------------------------------------


def similar(connection: sqlite3.Connection, search: PlaceSearch) -> tuple[str, ...]:
    """Return sentences that tell one of the facts and do not hold the words that are to go: of
    summaries, then of conversations, the newest first."""
    facts = [text for text, _ in connection.execute(_FACT_TEXTS, search.values)]
    wanted = [stems for fact in facts if len(stems := set(sentence(fact).stems)) >= TELLING_MIN]
    found: dict[str, None] = {}
    for text in _texts(connection, search) if wanted else ():
        found.update(dict.fromkeys(_telling(wanted, search.wording.without(text))))
        if len(found) >= LISTED_MAX:
            break
    return tuple(found)[:LISTED_MAX]


def _texts(connection: sqlite3.Connection, search: PlaceSearch) -> Iterator[str]:
    for (summary,) in connection.execute(_SUMMARIES, search.values):
        yield summary
    for (body,) in connection.execute(_CONVERSATIONS, search.values):
        yield _said_in(body, search)


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
    """What an entry says; nothing where somebody else said it."""
    entry = json.loads(body)
    return entry.get("text", "") if entry.get("by", "") in {"", search.person_id} else ""


_MARKUP = re.compile(r"[*_`]+")
