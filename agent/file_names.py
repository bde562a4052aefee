"""Names that other people gave to files, made fit for a folder, a path and a sentence.

Pure; called by whoever keeps a file that came from outside.
"""

from __future__ import annotations

import re
import unicodedata

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


def _is_seen(letter: str) -> bool:
    """Not a control, a direction, a joiner or a half of a character."""
    return unicodedata.category(letter) not in {"Cc", "Cf", "Cs", "Co", "Cn", "Mn", "Me"}


def _shortened(stem: str) -> str:
    return stem.encode()[:NAME_BYTES_MAX].decode("utf-8", "ignore")
