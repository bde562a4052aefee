"""Names that other people gave to files, made fit for a folder, a path and a sentence.

Pure; called by whoever keeps a file that came from outside.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from agent.signatures import CLAIMS, ENDINGS, EXACT, Signature

NAME_BYTES_MAX = 120
"""Of a name without its mark: file systems take 255."""

_KEPT = frozenset("-_.")
_RUNS = re.compile(r"_{2,}")


def safe_name(given: str, *, mark: str = "") -> str:
    """A name of letters, digits and `-_.` alone: no folders, nothing hidden, nothing unseen, and
    nothing that could end a quote of ours. With a `mark`, that stands before the ending.

    Never empty: a name of which nothing is left becomes `file`.
    """
    last = re.split(r"[/\\]", unicodedata.normalize("NFKC", given))[-1]
    letters = (one if one.isalnum() or one in _KEPT else "_" for one in last if _is_seen(one))
    name = _RUNS.sub("_", "".join(letters)).strip("_. -")
    stem, dot, ending = name.rpartition(".")
    if not dot or not stem or len(ending) > 10:
        stem, ending = name, ""
    stem = _shortened(stem.rstrip("_. -")) or "file"
    marked = f"{stem}-{mark}" if mark else stem
    return f"{marked}.{ending}" if ending else marked


def fitting(path: str, found: Signature) -> str:
    """The path with an ending that fits what the file is: programs go by it. What may well end so
    keeps its ending, and text that has none needs none."""
    endings = ENDINGS.get(found.media_type, ())
    stem, ending = _parted(path)
    claimed = ending.lower()
    if not endings or claimed in endings:
        return path
    if claimed in _KNOWN:
        is_wrong = found.media_type in EXACT or claimed in CLAIMS
        return f"{stem}.{endings[0]}" if is_wrong else path
    is_bare = not claimed and found.media_type != "text/plain"
    return f"{path}.{endings[0]}" if is_bare or found.media_type in EXACT else path


_KNOWN = frozenset(ending for endings in ENDINGS.values() for ending in endings)


def as_fitted(path: str) -> Iterator[str]:
    """Every path that `fitting` may make of this one, itself first."""
    yield path
    stem, ending = _parted(path)
    before = stem if ending.lower() in _KNOWN else path
    usual = dict.fromkeys(endings[0] for endings in ENDINGS.values())
    yield from (f"{before}.{one}" for one in usual)


def _parted(path: str) -> tuple[str, str]:
    """Stem and ending of the last name."""
    folder, slash, name = path.rpartition("/")
    stem, _, ending = name.rpartition(".")
    return (f"{folder}{slash}{stem}", ending) if stem else (path, "")


def _is_seen(letter: str) -> bool:
    """Not a control, a direction, a joiner or a half of a character."""
    return unicodedata.category(letter) not in {"Cc", "Cf", "Cs", "Co", "Cn", "Mn", "Me"}


def _shortened(stem: str) -> str:
    return stem.encode()[:NAME_BYTES_MAX].decode("utf-8", "ignore")
