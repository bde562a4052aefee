"""What is said of words after a slash that are no command, and of words that a command does not
take. Called by `bot.commands.table`.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from bot.commands.memory_messages import bare
from bot.commands.typed import slash

ALIKE = 0.75
"""From here on two words are so alike that one may be meant by the other, of 1."""

LETTERS_MAX = 32
"""No command is longer by far."""

_ALONE = re.compile(rf"/([A-Za-z0-9_]{{1,{LETTERS_MAX}}})(?:@[A-Za-z0-9_]+)?\s*")


def lone_word(text: str) -> str:
    """The word of a text that is one word after a slash; empty for any other text."""
    found = _ALONE.fullmatch(text)
    return found[1] if found is not None else ""


def nearest(word: str, names: Collection[str]) -> str:
    """The name that was probably meant; empty where none is near."""
    from difflib import get_close_matches  # rarely needed, and a start loads what stands above

    return next(iter(get_close_matches(word.lower(), names, n=1, cutoff=ALIKE)), "")


def unknown_text(word: str, where: str, names: Collection[str]) -> str:
    """What is answered to a word that is no command. `where` as for `bot.commands.typed.slash`."""
    before = slash(where)
    meant = nearest(word, names)
    hint = f" Did you mean `{before}{meant}`?" if meant else ""
    text = f"There is no `{before}{word}`.{hint} `{before}help` lists them."
    if before == "/" or before.startswith("@"):
        return text
    return f"{text} What is meant for me is written without `{before.strip()}`."


def left_out(name: str, rest: str, where: str, *, but: str = "") -> str:
    """Stands in front of the answer of a command that takes no words `but` one."""
    said = bare(rest, chars_max=60)
    no_words = f"no words behind it but `{but}`" if but else "no words behind it"
    return f"`{slash(where)}{name}` takes {no_words}, so I left out “{said}”."


PAUSE_NEEDS_NO_WORDS = (
    "Nothing was paused: I cannot pause for a time, or a part. `/pause` alone pauses all until "
    "`/resume`, `/job j12 pause` one job, and `/quiet 22:00-07:00` sets hours in which I do not "
    "speak up by myself."
)
RESUME_NEEDS_NO_WORDS = (
    "Nothing was resumed: `/resume` alone lets all go on, `/job j12 resume` one job."
)
UNDO_NEEDS_NO_WORDS = (
    "Nothing was undone: `/undo` alone takes back what the last answer stored, and "
    "`/memory forget f12` one thing that I know."
)
RESTORE_NEEDS_NO_WORDS = (
    "Nothing was changed: `/restore` alone takes back the last summing-up of this chat."
)
