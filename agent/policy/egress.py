"""What leaves because a model asked for it: pages that are opened, and reading tools of servers.

Whoever keeps a page or a server reads what it is asked for. So once words of others, or what is
remembered, are in what is sent, two things go without a question and nothing else: a page whose
whole address was named (by the person, by a search, or by a page that was read), within limits; and
a server's tool that says it only reads, where a person agreed to it in this conversation.

What a search service is asked goes unasked; docs/security.md says so.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeVar

from agent.guards.tool_call_text import called_arguments, called_name
from agent.policy.taint import own_texts
from agent.web.addresses import UrlRefused, addresses_in, parse_url, with_scheme
from memory.records.messages import RunId, TurnInput
from memory.records.transcript import Answered, Entry, ToolCall, ToolResult

FETCH, SEARCH = "web_fetch", "web_search"
HANDS_ON = frozenset({"subagent", "spawn"})

PAGES_MAX, SITE_PAGES_MAX = 8, 3
"""Which of many links is opened can tell something, too: three of 500 links tell three letters."""
DAY_TURNS = 5
"""All runs by the clock of a person may open on one day what so many turns may: a job may run each
five minutes, and nobody is there who would see what it does."""

COUNTED_MAX, HANDED_MAX = 1_000, 50
"""Turns of which is remembered how many pages they opened, and what they told their subagents. Five
of these run at once; the addresses of a turn may take some 100 kB."""

NAMELESS = "where it goes stands in nothing that was said or read here"
TOO_MANY = (
    f"it is more than the {PAGES_MAX} pages of a turn, or the {SITE_PAGES_MAX} of a site, that are "
    "opened without a question"
)


def told_to(server: str) -> str:
    """Return why a reading tool of a server is asked about."""
    return f"the server {server} learns what it is asked, now and in the rest of this conversation"


@dataclass(slots=True)
class NamedPages:
    """Addresses that a turn knows of, and their sites: `said` by its person, `found` by searches,
    `linked` on pages that were read. `led_to` are sites where redirects ended."""

    said: dict[str, str] = field(default_factory=dict)
    found: dict[str, str] = field(default_factory=dict)
    linked: dict[str, str] = field(default_factory=dict)
    led_to: Counter[str] = field(default_factory=Counter)

    @classmethod
    def among(cls, entries: Sequence[Entry], *, said: Iterable[str]) -> NamedPages:
        """Return those of entries; `said` are the words of the person among them.

        Pages are what code has read: a file that the model wrote, an error that quotes what it was
        given, a subagent's answer can be the model's own words come back.
        """
        named = cls(said=_sites("\n".join(said)))
        for call, text in _pages(entries):
            if called_name(call) == SEARCH:
                named.found |= _sites(text)
                continue
            named.linked |= _sites(text)
            try:
                asked = parse_url(with_scheme(str(called_arguments(call).get("url", ""))))
            except UrlRefused:
                continue
            # The tool's own heading says where a redirect ended: that site was asked for, too.
            heading = text.partition("\n\n")[0]
            if "Redirected from: " in heading:
                named.led_to.update({*_sites(heading).values()} - {asked.site})
        return named

    def add(self, other: NamedPages) -> None:
        """Know what another turn of the family knew."""
        self.said |= other.said
        self.found |= other.found
        self.linked |= other.linked


def _sites(text: str) -> dict[str, str]:
    return {url.whole: url.site for url in addresses_in(text)}


def _pages(entries: Iterable[Entry]) -> Iterator[tuple[ToolCall, str]]:
    calls: dict[str, ToolCall] = {}
    for entry in entries:
        if isinstance(entry, Answered):
            calls.update((call.id, call) for call in entry.calls)
        elif isinstance(entry, ToolResult) and entry.ok and entry.untrusted:
            call = calls.get(entry.call_id)
            if call is not None and called_name(call) in {FETCH, SEARCH}:
                yield call, entry.content


class Egress:
    """Counts pages and knows what was agreed to. All in memory: after a restart the counts begin
    anew, and a server's tool is asked about once more."""

    def __init__(self) -> None:
        self._opened: OrderedDict[Hashable, Counter[str]] = OrderedDict()
        self._said: OrderedDict[Hashable, set[str]] = OrderedDict()
        self._handed: OrderedDict[Hashable, NamedPages] = OrderedDict()
        self._agreed: set[tuple[str, ...]] = set()

    def named(self, turn: TurnInput, run_id: RunId, entries: Sequence[Entry]) -> NamedPages:
        """Return what was named in a conversation and its turn, whose `entries` these are. May take
        a tenth of a second; safe to call from any thread."""
        # The words of a task are a model's: they name nothing.
        texts = () if turn.task is not None else own_texts(entries, turn.person_id)
        named = NamedPages.among(entries, said=texts)
        named.add(self._handed.get(_root(turn, run_id), NamedPages()))
        return named

    def hand_on(self, turn: TurnInput, run_id: RunId, named: NamedPages) -> None:
        """Let the subagents of a turn know what was named in it."""
        _kept(self._handed, _root(turn, run_id), NamedPages, most=HANDED_MAX).add(named)

    def open_page(self, turn: TurnInput, run_id: RunId, url: str, named: NamedPages) -> str:
        """Count a page that may be opened unasked; return why not, if it may not."""
        # Read as the client reads it: what differs in a way that it would keep is another address.
        address = parse_url(url)
        whole, site = address.whole, address.site
        seen = _kept(self._said, (turn.person_id, _root(turn, run_id)), set, most=COUNTED_MAX)
        # For the first time in this turn: in how often and in which spelling it is opened again a
        # model could tell as much as it likes.
        if whole in named.said and whole not in seen:
            seen.add(whole)
            return ""
        if whole not in named.said | named.found | named.linked:
            return NAMELESS
        # A report is no turn that a person began: else each background task would bring a turn's.
        turns = 0 if turn.report is not None else 1 if turn.job is None else DAY_TURNS
        with_all: str = _root(turn, run_id)
        if turn.job is not None:
            with_all = f"{datetime.fromtimestamp(turn.message.sent_at_ms / 1000, UTC):%Y-%m-%d}"
        opened = _kept(self._opened, (turn.person_id, with_all), Counter, most=COUNTED_MAX)
        # Hits are few, of a service that the owner chose; and who names a site means its parts: a
        # manual of five pages would be asked about at its fourth.
        is_free = whole in named.found or site in named.said.values()
        of_site = 0 if is_free else opened[site] + named.led_to[site]
        if opened.total() >= PAGES_MAX * turns or of_site >= SITE_PAGES_MAX * turns:
            return TOO_MANY
        opened[site] += 1
        return ""

    def is_agreed(self, turn: TurnInput, tool: str) -> bool:
        """Return whether a person agreed to this reading tool in this conversation."""
        return _consent(turn, tool) in self._agreed

    def agree(self, turn: TurnInput, tool: str) -> None:
        """Keep that a person agreed to it."""
        self._agreed.add(_consent(turn, tool))


def _consent(turn: TurnInput, tool: str) -> tuple[str, ...]:
    """Return for whom a yes counts: subagents speak in their parent's conversation, and the runs of
    a job are one."""
    where: str = turn.conversation if turn.task is None else turn.task.conversation
    where = where if turn.job is None else f"job {turn.job.job_id}"
    return turn.person_id, turn.agent, where, tool


def _root(turn: TurnInput, run_id: RunId) -> RunId:
    return run_id if turn.task is None else turn.task.parent


T = TypeVar("T")


def _kept(values: OrderedDict[Hashable, T], key: Hashable, make: type[T], *, most: int) -> T:
    """Return the value of a key, made where there is none; the oldest go."""
    value = values.setdefault(key, make())
    values.move_to_end(key)
    while len(values) > most:
        values.popitem(last=False)
    return value
