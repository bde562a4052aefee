"""Where the address of a page stands that is asked for: in what page, search or message, and among
how many. Pure; called by `agent.policy.egress`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agent.policy.known import Place
from agent.policy.sites import site_of
from agent.policy.taint import bare, called_arguments, called_name, is_own, pages_in, stands_in
from memory.records.transcript import Entry, Said

FETCH = "web_fetch"
SEARCHED = "what a search found"
_OTHERS = "what others wrote here"


def address_of(arguments: Any) -> tuple[str, int]:
    """The address of a page, and which part of it."""
    if not isinstance(arguments, dict):
        return "", 1
    url, page = arguments.get("url", ""), arguments.get("page", 1)
    return str(url).strip(), page if isinstance(page, int) else 1


_ADDRESS = re.compile(
    r"https?://[^\s<>\"'`|]+|(?<![\w@./-])[\w-]+(?:\.[\w-]+)+(?::\d+)?(?:[/?#][^\s<>\"'`|]*)?",
    re.IGNORECASE,
)


def addresses_in(text: str) -> list[str]:
    """What can be meant as the address of a page."""
    return [match[0].rstrip(".,:;!?)]}") for match in _ADDRESS.finditer(text)]


@dataclass(frozen=True, slots=True)
class Link:
    """Where an address stands, and in what: the pages of which site, or what a search found; among
    how many, and whether exactly so."""

    place: Place
    source: str
    many: int
    is_exact: bool


def link_of(entries: Sequence[Entry], address: str) -> Link | None:
    """The link that it is, where a page names it."""
    for number, (call, page) in enumerate(pages_in(entries)):
        if stands_in(address, page):
            source = SEARCHED
            if called_name(call) == FETCH:
                source = f"from {site_of(address_of(called_arguments(call))[0])}"
            return _link_in(page, number, source, address)
    return None


def others_link(entries: Sequence[Entry], address: str, person_id: str) -> Link | None:
    """The link that it is, where somebody else of the chat wrote it."""
    written = (one for one in entries if isinstance(one, Said) and is_own(one))
    text = "\n".join(one.text for one in written if one.by not in {"", person_id})
    return _link_in(text, -1, _OTHERS, address) if stands_in(address, text) else None


def _link_in(text: str, number: int, source: str, address: str) -> Link:
    links = list(dict.fromkeys(addresses_in(text)))
    plain = list(map(bare, links))
    is_exact = address in links
    # One that is not among the plain ones is followed by no other.
    at = links.index(address) if is_exact else -2
    if not is_exact and bare(address) in plain:
        at = plain.index(bare(address))
    return Link(Place(number, at), source, max(len(links), 1), is_exact)
