"""How a command is typed on a channel. Used by `bot.commands`, and by notices that name a command.

Most platforms hand us what begins with a slash. Slack keeps such words for itself and knows one of
ours, `/hearth`, behind which the command stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from types import MappingProxyType

_BEHIND = MappingProxyType({"slack": "/hearth "})
_CODE = re.compile(r"(`+)(.+?)(?<!`)\1(?!`)")
_COMMAND = re.compile(r"/([a-z]+)(?= |$)")
_BARE = re.compile(r"(?<![^\s(`])/([a-z]+)(?![\w/-]|\.\w)")
_FENCES = ("```", "~~~")


def slash(where: str) -> str:
    """What stands before a command's name, by a channel or an address of it: `/` or `/hearth `."""
    return _BEHIND.get(where.partition(":")[0], "/")


def as_typed(text: str, where: str, names: Collection[str]) -> str:
    """Markdown of ours, with the commands in it as they are typed there. `where` as for `slash`.

    A command is code that begins with one of these names: words that persons wrote are shown
    without code (`bot.memory_words.bare`), or quoted or fenced, which is left as it is. What is
    done to a text a second time changes nothing.
    """
    before = slash(where)
    if before == "/":
        return text

    def typed(found: re.Match[str]) -> str:
        command = _COMMAND.match(found[2])
        if command is None or command[1] not in names or found[1] != "`":
            return found[0]
        return f"`{before}{found[2][1:]}`"

    return "\n".join(_outside_of_quotes(text, lambda line: _CODE.sub(typed, line)))


def all_as_typed(text: str, where: str, names: Collection[str]) -> str:
    """As `as_typed`, of a text in which nobody else has a word: commands count without being code
    too."""

    def typed(found: re.Match[str]) -> str:
        return f"{slash(where)}{found[1]}" if found[1] in names else found[0]

    return _BARE.sub(typed, text)


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
