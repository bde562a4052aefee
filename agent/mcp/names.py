"""How tools of servers are called here, and the way back. Pure.

A name is `server__tool` where that is unmistakable and every provider takes it; else it is made
so, with a hash of both names. So it depends on nothing else that is installed, and stays the same.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from fnmatch import fnmatchcase

NAME_CHARS_MAX = 64
HASH_CHARS = 8
JOINT = "__"


def is_hidden(tool: str) -> bool:
    """What a server has for itself: `health`, and what begins with `_`."""
    return not tool or tool.startswith("_") or tool == "health"


def is_wanted(tool: str, globs: Collection[str]) -> bool:
    """Whether the owner's globs let it in; without globs all are."""
    return not globs or any(fnmatchcase(tool, glob) for glob in globs)


def shown_names(
    server: str, tools: Iterable[str], *, reserved: Collection[str] = ()
) -> Mapping[str, str]:
    """The names here, each with the server's own. Hidden ones are left out, doubled ones once."""
    return {
        shown_name(server, tool, reserved=reserved): tool for tool in tools if not is_hidden(tool)
    }


def shown_name(server: str, tool: str, *, reserved: Collection[str] = ()) -> str:
    """The name of one tool here: at most 64 of `[A-Za-z0-9_-]`."""
    plain = f"{server}{JOINT}{tool}"
    if _is_clear(server, plain) and plain not in reserved:
        return plain
    digest = hashlib.sha256(f"{server}\0{tool}".encode("utf-8", "surrogatepass")).hexdigest()
    fitted = re.sub(r"[^A-Za-z0-9_-]+", "_", plain)[: NAME_CHARS_MAX - HASH_CHARS - 1]
    return f"{fitted}_{digest[:HASH_CHARS]}"


def _is_clear(server: str, plain: str) -> bool:
    """Whether no other pair of names gives the same."""
    unmistakable = JOINT not in server and not server.endswith("_")
    return unmistakable and re.fullmatch(r"[A-Za-z0-9_-]{1,64}", plain) is not None
