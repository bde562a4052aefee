"""What asking for a page tells whoever keeps it, where no person wrote its address and no page
named it. Pure; added up by `agent.policy.egress`.
"""

from __future__ import annotations

import re

from agent.policy.known import NO_SHAPE, Known
from agent.policy.news import CALL_BITS, RUN, Cost, Counting, case_bits, of_choice, spelled

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
    """Of asking for a page whose address no person wrote and no page named: all of it is told to
    whoever keeps it, and to who is asked for names. `former` is the address that this site was
    asked for last."""
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
    if not former:
        total += _of_site(site_of(address), counting)
    was_word = True
    for run in runs:
        if not run:
            was_word = True
            continue
        if run.lower() in _USUAL:
            total += Cost(bits=1.0 + of_choice(len(_USUAL)) + case_bits(run) - 1.0)
        elif run[0].isalnum() or any(char not in _BORDERS for char in run):
            total += counting.text(run)
        else:
            total += Cost(bits=_of_borders(run, is_alone=was_word))
        was_word = run[0].isalnum()
    return total if was_word else total + Cost(bits=1.0)


def _of_borders(run: str, *, is_alone: bool) -> float:
    """Of signs between two words: a slash or a dot tells next to nothing."""
    first = 0.5 if is_alone and run[0] in "/." else of_choice(len(_BORDERS)) - 1.0
    return first + of_choice(len(_BORDERS)) * (len(run) - 1)


def _of_site(site: str, counting: Counting) -> Cost:
    """Of which site is asked: next to nothing of one that everybody knows, much of a name that may
    have been made for what it tells."""
    if site in WELL_KNOWN:
        return Cost(bits=2.0)
    name, _, end = site.rpartition(".")
    known_end = Cost(bits=2.0) if end in _ENDS else spelled(end)
    return counting.text(name) + known_end


def _runs_of(address: str) -> list[str]:
    """The words and signs of an address, with nothing in place of the name of its site."""
    match = _ADDRESS.fullmatch(address.strip())
    if match is None:
        return []
    before = match["host"].lower().removesuffix(site_of(address))
    return [*RUN.findall(before), "", *RUN.findall(match["rest"])]


_BORDERS = "/?&=.-_%#()"
"""Signs between the words of an address."""
_ENDS = frozenset({"com", "de", "edu", "eu", "fr", "gov", "in", "io", "net", "org", "uk"})
WELL_KNOWN = frozenset(
    re.findall(
        r"[\w.-]+",
        """apache.org apple.com archive.org arxiv.org bahn.de bbc.com bbc.co.uk cnn.com
    debian.org duckduckgo.com elpais.com europa.eu github.com gitlab.com
    go.dev golang.org google.com heise.de imdb.com kernel.org lemonde.fr met.no microsoft.com
    mozilla.org nasa.gov numpy.org nytimes.com openstreetmap.org postgresql.org
    python.org readthedocs.io reddit.com reuters.com rust-lang.org slack.com spiegel.de sqlite.org
    stackexchange.com stackoverflow.com tagesschau.de telegram.org theguardian.com ubuntu.com
    w3.org weather.gov who.int wikidata.org wikimedia.org wikipedia.org wiktionary.org wttr.in
    ycombinator.com youtube.com zeit.de""",
    )
)
"""Sites that many people ask for, each of which is kept by somebody else."""
