"""What asking for a page tells whoever keeps it, where no person wrote its address and no page
named it. Pure; added up by `agent.told`.
"""

from __future__ import annotations

import re

from agent.known import NO_SHAPE, Known
from agent.news import CALL_BITS, RUN, Cost, Counting, case_bits, of_choice, spelled

_ADDRESS = re.compile(r"(?:https?://)?(?P<host>[^/?#:@\s]+)(?P<rest>[^\s]*)", re.IGNORECASE)
_USUAL = frozenset(
    re.findall(
        r"\w+",
        """api article articles blog books doc docs en feed forecast format html id index json lang
    language latest news page pages product products q query question questions rss search section
    stable title tree v1 v2 v3 version weather wiki www xml""",
    )
)
"""Words of addresses that tell nothing but which of them was chosen."""
_NUMBERED = re.compile(r"[\d.]+|\[.*")


def site_of(address: str) -> str:
    """Whose place an address is, as near as its name tells: the last two parts of it."""
    match = _ADDRESS.match(address.strip())
    host = match["host"].lower() if match else ""
    return host if _NUMBERED.fullmatch(host) else ".".join(host.rstrip(".").split(".")[-2:])


def cost_of_address(address: str, known: Known, *, former: str = "") -> Cost:
    """Of asking for a page whose address no person wrote and no page named: the name of its site is
    free, all that stands before and behind it is told to whoever keeps it. `former` is the address
    that this site was asked for last."""
    match = _ADDRESS.fullmatch(address.strip())
    if match is None or _NUMBERED.fullmatch(match["host"]):
        return spelled(address)
    counting = Counting(NO_SHAPE, known, None)
    total = Cost(bits=CALL_BITS)
    runs, before = _runs_of(address), _runs_of(former)
    pairs = enumerate(zip(runs, before, strict=False))
    same = next((place for place, (one, other) in pairs if one != other), len(before))
    if before and same < len(runs):
        total += Cost(bits=1.0 if same == len(before) - 1 else 1.0 + of_choice(len(before)))
        runs = runs[same:]
    for run in runs:
        if run.lower() in _USUAL:
            total += Cost(bits=1.0 + of_choice(len(_USUAL)) + case_bits(run) - 1.0)
        elif run[0].isalnum() or any(char not in _BORDERS for char in run):
            total += counting.text(run)
        else:
            total += Cost(bits=of_choice(len(_BORDERS)) * (len(run) - 1))
    return total


def _runs_of(address: str) -> list[str]:
    """The words and signs of an address, without the name of its site."""
    match = _ADDRESS.fullmatch(address.strip())
    if match is None:
        return []
    before = match["host"].lower().removesuffix(site_of(address))
    return [*RUN.findall(before), *RUN.findall(match["rest"])]


_BORDERS = "/?&=.-_%#()"
"""Signs between the words of an address: one tells next to nothing, a row of them whatever it is
to tell."""
