"""Estimates how many tokens texts and entries of a history take, without a tokenizer.

Pure. Asking a provider's tokenizer is `agent.models.chat_request`.
"""

from __future__ import annotations

from functools import lru_cache

from memory.records.transcript import Answered, Context, Entry, Note, Said, ToolResult, once


@once
def tokens_of(entry: Entry) -> int:
    """Return what an entry adds to a request, estimated: its text and its pictures."""
    return estimate_tokens(text_of(entry)) + picture_tokens(entry)


@once
def chars_of(entry: Entry) -> int:
    """Return how long the text of an entry is."""
    return len(text_of(entry))


def text_of(entry: Entry) -> str:
    """All that an entry adds to a request, for counting."""
    match entry:
        case Said():
            if not (entry.sender or entry.quote):
                return entry.text
            return "\n".join(part for part in (entry.sender, entry.quote, entry.text) if part)
        case Answered():
            if not entry.calls:
                return entry.text
            calls = (f"{call.id} {call.name} {call.arguments}" for call in entry.calls)
            return "\n".join((entry.text, *calls))
        case ToolResult():
            return f"{entry.call_id}\n{entry.content}"
        case Context():
            return entry.text
        case Note():
            paths = (picture.path for picture in entry.pictures)
            return "\n".join(part for part in (entry.text, entry.content, *paths) if part)


def brought_tokens(entry: Entry) -> int:
    """Return what a note on files adds to the words after it, estimated."""
    if not isinstance(entry, Note) or not entry.brings:
        return 0
    return estimate_tokens(f"{entry.text}\n{entry.content}") + picture_tokens(entry)


def picture_tokens(entry: Entry) -> int:
    """Return what the pictures of an entry add to its text."""
    return sum(one.tokens for one in entry.pictures) if isinstance(entry, Note) else 0


def estimate_tokens(text: str) -> int:
    """Tokens of a text, without a tokenizer: rather too many than too few for running text.

    Measured with cl100k and o200k, characters a token: English, German and code 4 (machine text
    such as logs, numbers and ids 1.2 to 2.5), Polish, Russian and Arabic 1.5 to 2.3, Hebrew and
    Greek 1 to 1.15, CJK, Thai and Hindi 0.8 to 1, emoji 0.4. The sum is by width in UTF-8;
    the share of digits and signs tells running text from machine text.
    """
    return _estimated(text) if len(text) > KNOWN_CHARS_MAX else _known(text)


KNOWN_TEXTS_MAX, KNOWN_CHARS_MAX = 4_096, 500
"""Short texts whose tokens are kept: each of a conversation is weighed several times a turn, and in
every turn. A long one is rare, and would take more room than it saves time."""


@lru_cache(maxsize=KNOWN_TEXTS_MAX)
def _known(text: str) -> int:
    return _estimated(text)


def drop_known() -> None:
    """Keeps none of the texts that were weighed: somebody has one forgotten."""
    _known.cache_clear()


def _estimated(text: str) -> int:
    if text.isascii():
        return _ascii_tokens(text)
    whole = text.encode("utf-8", "replace")
    ascii_text = whole.decode("ascii", "ignore")
    four = sum(whole.count(bytes([lead])) for lead in range(0xF0, 0xF5))
    others = len(text) - len(ascii_text) - four
    three = len(whole) - len(ascii_text) - 4 * four - 2 * others
    two = others - three
    return (
        _ascii_tokens(ascii_text) + (two * 6 + 4) // 5 + (three * 5 + 3) // 4 + (four * 5 + 1) // 2
    )


_DENSE = str.maketrans(dict.fromkeys("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ \n_"))


def _ascii_tokens(text: str) -> int:
    dense = len(text.translate(_DENSE))
    return (len(text) - dense + 3) // 4 + (dense * 3 + 3) // 4
