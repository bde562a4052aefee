"""What a turn has told others so far, and whether one more call still goes without a question.

The calls of the turn are gone through again in their order, each counted as it was then; so the
answer is the same after a restart. Called by `agent.policy.gate`; what each call costs says
`agent.policy.news`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from agent.policy.known import Known, Place, Shape, Texts, words_of
from agent.policy.links import FETCH, SEARCHED, Link, address_of, addresses_in, link_of, others_link
from agent.policy.news import Cost, cost_of_call
from agent.policy.sites import cost_of_address, site_of
from agent.policy.taint import bare, called_arguments, called_name, has_said, is_own, taint_start
from memory.records.messages import PersonId, RunId
from memory.records.transcript import Answered, Entry, Said, ToolCall, ToolResult

BITS_MAX = 40.0
"""What a turn, with all its subagents, may tell all others together: by which words of the message
it takes, which day it works out, which fields and tools it chooses."""
SPELLED_MAX = 20.0
"""How much of it may be characters that are known from nowhere: three letters or digits."""
PICKS_MAX, ALL_PICKS_MAX = 3, 8
"""Links to one site, or out of the pages of one, that are followed, or values of one server that
are handed back to it, against their order; and those of all together. What a search found may all
be taken up."""
TASKS_MAX = 3
"""Subagents of a turn that others' words may move."""
TASK_SHARE = 1 / (TASKS_MAX + 1)
"""What one of them may tell of all that: so much is taken off what its parent may."""
TASK_PICKS_MAX = 2
SPAWN = "spawn"
HANDS_ON = frozenset({"subagent", SPAWN})
WEIGHED = HANDS_ON | {FETCH}
"""Tools of ours whose calls are counted also where only what is remembered was read."""


def is_weighed(name: str) -> bool:
    """Whether a tool of this name may be one whose calls are counted there: ours, or a server's."""
    return name in WEIGHED or "__" in name


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """A call as it is meant, whichever way it was written. `schema` is that of a server's tool
    which only reads, as it says itself; None for any other tool. `kin` is how many tools all
    servers have."""

    name: str
    arguments: Any
    schema: Mapping[str, Any] | None = None
    kin: int = 1


Reads = Callable[[ToolCall], Called | None]
"""Reads a call of before; None for one that cannot have been run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What stands behind a call. `history` came before the turn and `turn` are its entries, the
    last answer of which holds the call; `was_tainted` says that history is tainted, and
    `rests_on_memory` that what is remembered is in what is sent. In a task (`is_task`) what was
    said is a model's: only whole addresses in it count, which were looked at when it was given."""

    history: Sequence[Entry]
    turn: Sequence[Entry]
    was_tainted: bool
    person_id: str
    today: date
    is_task: bool = False
    is_report: bool = False
    rests_on_memory: bool = False


_NAMELESS = "places that nobody named"


WHOLE = Cost(bits=BITS_MAX, spelled=SPELLED_MAX)


@dataclass(slots=True)
class _SpentShare:
    share: float
    most: Cost = WHOLE
    bits: float = 0.0
    spelled: float = 0.0
    all_picks: int = 0
    picks: dict[str, int] = field(default_factory=dict)
    last: dict[str, Place] = field(default_factory=dict)
    words: dict[str, list[str]] = field(default_factory=dict)

    def takes(self, reader: str, cost: Cost, *, source: str = "") -> bool:
        """Counts it, unless that is too much: then a person is asked, and it tells nothing. What is
        picked counts for its reader, and for the `source` that listed it."""
        groups = [one for one in (reader, source) if one]
        if self.bits + cost.bits > min(BITS_MAX * self.share, self.most.bits):
            return False
        if self.spelled + cost.spelled > min(SPELLED_MAX * self.share, self.most.spelled):
            return False
        if cost.picks and self._are_many(groups, cost):
            return False
        self.bits += cost.bits
        self.spelled += cost.spelled
        self.all_picks += cost.picks
        for group in groups:
            self.picks[group] = self.picks.get(group, 0) + cost.picks
        if cost.last is not None:
            self.last[reader] = cost.last
        return True

    def _are_many(self, groups: Sequence[str], cost: Cost) -> bool:
        is_whole = self.share == 1
        if self.all_picks + cost.picks > (ALL_PICKS_MAX if is_whole else TASK_PICKS_MAX):
            return True
        bounded = (one for one in groups if one != SEARCHED)
        most = PICKS_MAX if is_whole else 1
        return any(self.picks.get(one, 0) + cost.picks > most for one in bounded)


class Replay:
    """The calls of a turn up to one of them."""

    def __init__(self, told: Told, reads: Reads, *, most: Cost = WHOLE) -> None:
        """`most` is what it may tell where that is less than a turn may."""
        self._told = told
        self._reads = reads
        self._spent = _SpentShare(TASK_SHARE if told.is_task or told.is_report else 1, most)
        self._tool = ""
        self._link: Link | None = None
        self._run = self._said_run = 1
        self._tasks = 0
        self._fetched: list[str] = []

    @property
    def spent(self) -> Cost:
        """What was told so far."""
        return Cost(bits=self._spent.bits, spelled=self._spent.spelled)

    def passes(self, call_id: str, called: Called) -> bool:
        """Whether this call of the last answer goes without a question."""
        told = self._told
        start = taint_start(told.turn, person_id=told.person_id)
        starts = len(told.turn) if start is None else start
        last = _last_answer(told.turn)
        for place, entry in enumerate(told.turn[: last + 1]):
            if not isinstance(entry, Answered):
                continue
            tainted = told.was_tainted or starts < place
            # An id may come twice: then all but the last of these calls came before.
            ids = [one.id for one in entry.calls]
            here = len(ids) - 1 - ids[::-1].index(call_id) if call_id in ids else -1
            for number, one in enumerate(entry.calls):
                if place == last and number == here:
                    return self._counted(place, called, tainted=tainted)
                if before := self._reads(one):
                    self._counted(place, before, tainted=tainted)
        return self._counted(len(told.turn), called, tainted=told.was_tainted)

    def _counted(self, place: int, called: Called, *, tainted: bool) -> bool:
        name, arguments = called.name, called.arguments
        if name == FETCH:
            return self._fetches(place, arguments, tainted=tainted)
        if name in HANDS_ON:
            # What is done in the background is reported in a turn of its own.
            shares = 2 if name == SPAWN else 1
            return self._hands_on(place, arguments, shares=shares, tainted=tainted)
        if called.schema is None:
            return True
        server = name.partition("__")[0]
        cost = Cost()
        if tainted or self._told.rests_on_memory:
            cost = cost_of_call(
                arguments,
                Shape.of(called.schema),
                self._known(place, server),
                former=_former([*self._told.history, *self._told.turn[:place]], name),
                last=self._spent.last.get(server),
            )
            if self._tool != name:
                cost += Cost(bits=math.log2(max(called.kin, 1)))  # which of them is called
        self._tool = name
        return self._spent.takes(server, cost)

    # --- pages -----------------------------------------------------------------------------------

    def _hands_on(self, place: int, arguments: Any, *, shares: int, tainted: bool) -> bool:
        """A tainted task is as wary as its parent. In another the addresses count as said, so here
        they are looked at as if they were asked for."""
        self._tasks += 1
        part = TASK_SHARE * shares
        share = Cost(bits=BITS_MAX * part, spelled=SPELLED_MAX * part)
        if self._tasks > TASKS_MAX or not self._spent.takes("", share + Cost(picks=TASK_PICKS_MAX)):
            return False
        if tainted:
            return True
        found = dict.fromkeys(one for text in words_of(arguments) for one in addresses_in(text))
        # Each of them is counted, also after one that is too much.
        passed = [self._asks_for(place, one, tainted=False) for one in found]
        return all(passed)

    def _fetches(self, place: int, arguments: Any, *, tainted: bool) -> bool:
        address, page = address_of(arguments)
        if page > 1 and self._has_it(place, address):
            # Reading on is a choice, and in which of the pages that were fetched.
            return self._spent.takes("", Cost(bits=1.0 + math.log2(len(self._fetched) + 1)))
        passed = self._asks_for(place, address, tainted=tainted)
        if passed:
            self._fetched.append(address)
        return passed

    def _asks_for(self, place: int, address: str, *, tainted: bool) -> bool:
        before = [*self._told.history, *self._told.turn[:place]]
        if (said := self._said_among(before, address)) is not None:
            return self._asks_for_said(said, address)
        link = link_of(before, address) or others_link(before, address, self._told.person_id)
        if link is not None:
            return self._follows(link, address)
        return not tainted and self._is_bare(place, f"//{site_of(address)}", address)

    def _follows(self, link: Link, address: str) -> bool:
        last = self._link
        goes_on = last is not None and link.place == Place(last.place.among, last.place.number + 1)
        bits = 0.0 if link.is_exact else self._of_spelling()
        bits += _of_going_on(self._run) if goes_on else math.log2(link.many)
        cost = Cost(bits=bits, picks=0 if goes_on else 1)
        if not self._spent.takes(f"//{site_of(address)}", cost, source=link.source):
            return False
        self._link = link
        self._run = self._run + 1 if goes_on else 1
        return True

    def _of_spelling(self) -> float:
        """Of writing an address otherwise than it stands there: which of all that are asked for."""
        return 2.0 + math.log2(len(self._fetched) + 1)

    def _is_bare(self, place: int, site: str, address: str) -> bool:
        """Whether an address that nobody named tells next to nothing. Which sites are asked is a
        choice, too."""
        spent = self._spent
        asked = spent.words.get(site, ())
        known = replace(self._known(place, ""), sent=Texts(asked))
        cost = cost_of_address(address, known, former=asked[-1] if asked else "")
        is_new = site not in spent.words
        if not spent.takes(site, cost) or not spent.takes(_NAMELESS, Cost(picks=int(is_new))):
            return False
        spent.words.setdefault(site, []).append(address)
        return True

    def _said_among(self, before: Sequence[Entry], address: str) -> list[str] | None:
        """The addresses that the person wrote, in their order, where this is one of them."""
        person_id = self._told.person_id
        own = (one for one in before if isinstance(one, Said) and is_own(one))
        texts = (one.text for one in own if one.by in {"", person_id})
        found = list(dict.fromkeys(one for text in texts for one in addresses_in(text)))
        if not has_said(before, address, person_id=person_id):
            return None
        is_whole = bare(address) in map(bare, found)
        return None if self._told.is_task and not is_whole else found

    def _asks_for_said(self, said: Sequence[str], address: str) -> bool:
        """One of these: the next one once, as it was written, tells next to nothing."""
        names = [bare(one) for one in said]
        asked = [bare(one) for one in self._fetched]
        is_new = bare(address) not in asked
        bits = 0.0 if is_new else 2.0
        bits += 0.0 if is_new and address in said else self._of_spelling()
        fresh = [one for one in names if one not in asked]
        in_order = fresh[:1] == [bare(address)]
        bits += _of_going_on(self._said_run) if in_order else math.log2(max(len(names), 1))
        if not self._spent.takes("", Cost(bits=bits)):
            return False
        self._said_run = self._said_run + 1 if in_order else 1
        return True

    def _has_it(self, place: int, address: str) -> bool:
        """Whether the text is at hand: a further part of it is not asked for again."""
        fetched = [
            call.id
            for entry in self._told.turn[:place]
            if isinstance(entry, Answered)
            for call in entry.calls
            if called_name(call) == FETCH and address_of(called_arguments(call))[0] == address
        ]
        return any(
            isinstance(entry, ToolResult) and entry.ok and entry.call_id in fetched
            for entry in self._told.turn[:place]
        )

    # --- what a server knows ---------------------------------------------------------------------

    def _known(self, place: int, server: str) -> Known:
        told = self._told
        now = told.turn[:place]
        sent, listed = _exchanged([*told.history, *now], server)
        return Known(
            own=Texts([] if told.is_task else _own(now)),
            earlier=Texts([] if told.is_task else _own(told.history)),
            sent=Texts(sent),
            listed=Texts(listed),
            today=told.today,
        )


def _own(entries: Sequence[Entry]) -> list[str]:
    return [one.text for one in entries if isinstance(one, Said) and is_own(one)]


def _exchanged(entries: Sequence[Entry], server: str) -> tuple[list[str], list[str]]:
    """What a server was told by calls that were run, and what it answered."""
    sent: list[str] = []
    listed: list[str] = []
    calls: dict[str, ToolCall] = {}
    if not server:
        return sent, listed
    for entry in entries:
        if isinstance(entry, Answered):
            calls = {call.id: call for call in entry.calls}
        elif isinstance(entry, ToolResult):
            call = calls.get(entry.call_id)
            if call is None or not called_name(call).startswith(f"{server}__"):
                continue
            if entry.ok:  # the words of an error may be what was to be sent
                listed.append(entry.content)
                sent.extend(words_of(called_arguments(call)))
    return sent, listed


def _former(entries: Sequence[Entry], name: str) -> Any:
    """The arguments of the last call of a tool that was run."""
    done: set[str] = set()
    for entry in reversed(entries):
        if isinstance(entry, ToolResult) and entry.ok:
            done.add(entry.call_id)
        elif isinstance(entry, Answered):
            for call in reversed(entry.calls):
                if call.id in done and called_name(call) == name:
                    return called_arguments(call)
            done.clear()
    return None


def _of_going_on(done: int) -> float:
    """Of one more in their order after so many: how far somebody goes is a number that is told,
    and a run of n costs 2 log2 n, as long as a number is that says where it ends."""
    return 2.0 * math.log2((done + 1) / done)


def _last_answer(entries: Sequence[Entry]) -> int:
    places = (n for n in reversed(range(len(entries))) if isinstance(entries[n], Answered))
    return next(places, -1)


# --- unwatched ----------------------------------------------------------------------------------
#
# What the runs by the clock told others on one day: a job may run each five minutes, and nobody is
# there who would see what it does. Called by `agent.policy.gate`.
#
# Kept in memory: who starts the bot anew is its owner, and sees that it was.

TURNS_A_DAY = 5
"""As much as so many turns may tell, all runs of a person's jobs may tell on a day; then they are
asked."""


class Unwatched:
    """Sums of the current day."""

    def __init__(self) -> None:
        self._day = date.min
        self._told: dict[PersonId, dict[RunId, Cost]] = {}

    def left(self, person_id: PersonId, run_id: RunId, today: date) -> Cost:
        """What this run may tell, its own calls so far not counted: they are gone through again."""
        others = [cost for of, cost in self._of(today).get(person_id, {}).items() if of != run_id]
        return Cost(
            bits=TURNS_A_DAY * BITS_MAX - sum(one.bits for one in others),
            spelled=TURNS_A_DAY * SPELLED_MAX - sum(one.spelled for one in others),
        )

    def told(self, person_id: PersonId, run_id: RunId, today: date, cost: Cost) -> None:
        """What this run told in all so far."""
        self._of(today).setdefault(person_id, {})[run_id] = cost

    def _of(self, today: date) -> dict[PersonId, dict[RunId, Cost]]:
        if today != self._day:
            self._day = today
            self._told = {}
        return self._told
