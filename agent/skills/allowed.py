"""`allowed-tools`: which tools, and which commands, a skill keeps itself to while it is followed.

A limit only ever takes away: what the bot's own rules refuse stays refused whatever stands here.
Called by the reader, by the choice of tools and by exec.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from agent.skills.front_matter import Fields, Items, Node, Scalar, Unreadable, structured

ALL = "*"
EXEC = "exec"
CHARS_MAX = 5_000

_ENTRY = re.compile(r"[A-Za-z*][\w*.:/-]*(?P<limit>\(.*\))?", re.DOTALL)
_ALIASES = {
    "bash": EXEC,
    "shell": EXEC,
    "read": "read_file",
    "write": "write_file",
    "edit": "edit_file",
    "multiedit": "edit_file",
    "ls": "list_dir",
    "glob": "search_files",
    "grep": "search_files",
    "webfetch": "web_fetch",
    "websearch": "web_search",
    "task": "subagent",
}
"""How other assistants call what we have too: a limit written for them means the same here."""

_SHELL = re.compile(r"[;&|<>`\n\r\0]|\$[({]|^\(")
_NO_LIMIT = frozenset({"", "(*)"})
_PREFIX = re.compile(r"(?::|\s+)\*$")


def allowed_entries(value: Node | None) -> tuple[str, ...] | None:
    """The entries of `allowed-tools`, each once, sorted: the shape it was written in is no matter.

    No key, null and an empty text set no limit (None); an empty list allows nothing. Raises
    Unreadable: a limit that cannot be understood is never taken for none.
    """
    match value:
        case None:
            return None
        case Fields():
            raise Unreadable("allowed-tools must be a list of tools", value.line)
        case Scalar() if value.is_null or not value.text.strip():
            return None
        case Scalar() if value.text.lstrip().startswith("["):
            inner = structured(value)
            if not isinstance(inner, Items):
                raise Unreadable("allowed-tools must be a list of tools", value.line)
            return allowed_entries(inner)
        case Scalar():
            return tuple(sorted(set(_entries(value))))
        case Items():
            entries = [entry for item in value.values for entry in _entries(item)]
            return tuple(sorted(set(entries)))


def allows_tool(entries: Sequence[str] | None, tool: str) -> bool:
    """Whether a tool may be called at all; for exec, `allows_command` says which commands.

    A limit on a tool's arguments that is not exec's (`Read(docs/**)`) cannot be kept, so that
    entry allows nothing.
    """
    if entries is None:
        return True
    return any(
        _matches(_ours(name), tool) and (limit in _NO_LIMIT or tool == EXEC)
        for name, limit in map(_split, entries)
    )


def allows_command(entries: Sequence[str] | None, argv: Sequence[str]) -> bool:
    """Whether exec may run one command, given as the words of its argument vector.

    `Bash(git:*)` and `Bash(git *)` allow git with any arguments, `Bash(git status)` that alone,
    `Bash` everything. Under a limit the program must be the first word as written (no path, no
    wrapper before it), and no word may hold what a shell would act on, quoted or not.
    """
    if entries is None:
        return True
    limits = [limit for name, limit in map(_split, entries) if _matches(_ours(name), EXEC)]
    if not _NO_LIMIT.isdisjoint(limits):
        return True
    if not argv or any(_SHELL.search(word) for word in argv):
        return False
    return any(_fits(limit[1:-1].strip(), argv) for limit in limits)


def _entries(item: Node) -> list[str]:
    if not isinstance(item, Scalar):
        raise Unreadable("allowed-tools: each entry must be a text (in quotes)", item.line)
    found: list[str] = []
    entry, depth = "", 0
    # A blank before the bracket belongs to the entry: `Bash (git:*)` is not all of Bash.
    for letter in " ".join(item.text.split()).replace(" (", "(") + ",":
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and (letter == "," or letter.isspace()):
            found.append(entry)
            entry = ""
        else:
            entry += letter
    if (
        depth
        or len(item.text) > CHARS_MAX
        or not all(_ENTRY.fullmatch(entry) for entry in found if entry)
    ):
        raise Unreadable(f"allowed-tools: {item.text[:80]!r} cannot be read", item.line)
    return [entry for entry in found if entry]


def _split(entry: str) -> tuple[str, str]:
    name, bracket, limit = entry.partition("(")
    return name, bracket + limit


def _ours(name: str) -> str:
    return _ALIASES.get(name.casefold(), name)


def _matches(pattern: str, text: str) -> bool:
    """Equal, where `*` in the pattern stands for any characters."""
    first, *more = pattern.split(ALL)
    if not more:
        return pattern == text
    if len(text) < len(first) + len(more[-1]):
        return False
    at, end = len(first), len(text) - len(more[-1])
    for piece in more[:-1]:
        at = text.find(piece, at, end) + len(piece)
        if at < len(piece):
            return False
    return text.startswith(first) and text.endswith(more[-1])


def _fits(limit: str, argv: Sequence[str]) -> bool:
    prefix = _PREFIX.sub("", limit)
    try:
        wanted = shlex.split(prefix)
    except ValueError:
        return False
    if not wanted or ("/" in argv[0] and "/" not in wanted[0]):
        return False
    is_long_enough = len(argv) >= len(wanted) if prefix != limit else len(argv) == len(wanted)
    return is_long_enough and all(map(_matches, wanted, argv))
