"""Commands in texts of ours, as they are typed where a text goes, and words of others in them.

Most platforms hand us what begins with a slash. Slack keeps such words for itself and knows one of
ours, `/hearth`, behind which the command stands. On the command line there is `hearthbot …`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from types import MappingProxyType

NAMES = frozenset(
    (
        *("help", "new", "stop", "status", "model", "context", "why", "skills", "snippets"),
        *("usage", "compact", "restore", "memory", "remember", "undo", "private", "remind"),
        *("jobs", "job", "quiet", "heartbeat", "agents", "approve", "timezone", "language"),
        *("link", "pair", "access", "pause", "resume", "logs"),
    )
)
"""Of all commands (`bot.commands.table`), which stands above whoever writes a text."""

_BEHIND = MappingProxyType({"slack": "/hearth "})
_IN_THREADS = MappingProxyType({"slack": "@hearth /"})
"""Where a platform takes no commands in threads, we are mentioned with one."""

_CODE = re.compile(r"(`+)(.+?)(?<!`)\1(?!`)")
_COMMAND = re.compile(r"/([a-z]+)(?= |$)")
_BARE = re.compile(r"(?<![^\s(`])/([a-z]+)(?![\w/-]|\.\w)")
_FENCES = ("```", "~~~")


def slash(where: str) -> str:
    """Return what stands before a command's name, by a channel or an address of it: `/` or `/hearth
    `, and in a thread `@hearth /`."""
    channel, *rest = where.split(":")
    # A thread is a time; a person's own address, and an aside (`bot.channels.base`), end otherwise.
    is_thread = len(rest) == 2 and rest[1][:1].isdigit()
    if is_thread and channel in _IN_THREADS:
        return _IN_THREADS[channel]
    return _BEHIND.get(where.partition(":")[0], "/")


def as_typed(text: str, where: str) -> str:
    """Return Markdown of ours with the commands in it as they are typed there (`slash`).

    A command is code that begins with a name of one: words that persons wrote are shown without
    code (`bare`), or quoted or fenced, which is left as it is. What is done to a text a second time
    changes nothing.
    """
    before = slash(where)
    if before == "/":
        return text

    def typed(found: re.Match[str]) -> str:
        command = _COMMAND.match(found[2])
        if command is None or command[1] not in NAMES or found[1] != "`":
            return found[0]
        return f"`{before}{found[2][1:]}`"

    return "\n".join(_outside_of_quotes(text, lambda line: _CODE.sub(typed, line)))


def all_as_typed(text: str, where: str) -> str:
    """As `as_typed`, of a text in which nobody else has a word: commands count without being code
    too."""

    def typed(found: re.Match[str]) -> str:
        return f"{slash(where)}{found[1]}" if found[1] in NAMES else found[0]

    return _BARE.sub(typed, text)


def on_command_line(text: str) -> str:
    """A text of ours, with the commands in it as they are typed in a shell, for what is said there
    and in chats alike. What is about one chat, such as `/stop`, has to be typed in that chat and
    stays as it is."""

    def typed(found: re.Match[str]) -> str:
        shell = _in_a_shell(found[2][1:])
        return f"`{shell}`" if found[1] == "`" and found[2][0] == "/" and shell else found[0]

    lines = _outside_of_quotes(text, lambda line: _CODE.sub(typed, line))
    return _BARE.sub(lambda found: _in_a_shell(found[1]) or found[0], "\n".join(lines))


_JOB_VERBS = frozenset({"pause", "resume", "run", "remove"})
_SHELL = MappingProxyType(
    {
        "jobs": "schedule list",
        "job": "schedule list",
        "memory": "memory list",
        "usage": "usage",
        "skills": "skills list",
        "status": "status",
        "model": "model list",
        "access": "access list",
        "pair": "access list",
    }
)
"""The commands that have a form of their own in a shell, and what that is without more words."""
_ANYWHERE = frozenset({"heartbeat", "pause", "quiet", "remind", "remember", "resume", "timezone"})
"""Those that are the same in whichever chat they are typed."""


def _in_a_shell(command: str) -> str:
    """`hearthbot schedule list` for `jobs`; empty for what has no such form."""
    match command.split(" "):
        case ["job", job, verb] if verb in _JOB_VERBS:
            return f"hearthbot schedule {verb} {job}"
        case ["job", job, "move" | "text" as verb, *_]:
            option = "--when" if verb == "move" else "--text"
            return f"hearthbot schedule edit {job} {option} …"
        case ["job", job]:
            return f"hearthbot schedule show {job}"
        case ["memory", fact] if _FACT.fullmatch(fact):
            return f"hearthbot memory show {fact}"
        case ["memory" | "access" as name, *more] if more:
            return f"hearthbot {name} {' '.join(more)}"
        case [name] if name in _SHELL:
            return f"hearthbot {_SHELL[name]}"
        case [name, *_] if name in _ANYWHERE:
            return f'hearthbot chat -m "/{command}"'
    return ""


_FACT = re.compile(r"f[0-9]+")


def outside_of_code(text: str) -> str:
    """Markdown without what stands in code marks."""
    return _CODE.sub("", text)


def _outside_of_quotes(text: str, change: Callable[[str], str]) -> list[str]:
    """The lines, those changed that stand neither in a quotation nor in a block of code."""
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        bare = line.lstrip()
        if fence:
            lines.append(line)
            fence = "" if bare.startswith(fence) else fence
            continue
        fence = next((one for one in _FENCES if bare.startswith(one)), "")
        lines.append(line if fence or bare.startswith(">") else change(line))
    return lines


# --- words of others ----------------------------------------------------------------------------

TEXT_CHARS = 300
_MARKUP = re.compile(r"([\\*_<>~|\[])")
_ESCAPED = re.compile(r"\\([\\*_<>~|\[])")


def bare(text: str, *, chars_max: int = TEXT_CHARS) -> str:
    """Return somebody's words on one line, without a meaning as markup.

    A bracket that closes needs no escape where none opens, and a pair of escaped ones could be read
    as the marks of a formula.
    """
    flat = " ".join(text.split())
    if len(flat) > chars_max:
        flat = flat[:chars_max].rstrip() + " …"
    return _MARKUP.sub(r"\\\1", flat.replace("`", "'"))


def plain(text: str) -> str:
    """Return Markdown of ours for a terminal: without its marks, and with words as they were said
    (`bare`)."""
    return _ESCAPED.sub(r"\1", text.replace("**", "").replace("`", ""))


def day(at_ms: int, zone: tzinfo | None) -> str:
    """`1 Aug 2026`, on the person's calendar."""
    at = datetime.fromtimestamp(at_ms / 1000, zone or UTC)
    return f"{at.day} {at:%b %Y}"
