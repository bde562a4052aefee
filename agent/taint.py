"""Whose words are in what is sent: the fence around those from outside, and what follows from them.

While untrusted text is in what is sent, the next wish of the model may be somebody else's: code
then asks a person before anything leaves or lasts (SPEC §15, threat model rule 4). Used by the
loop and the steps of a turn.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from agent.headings import (
    DOCUMENTS,
    MEMORIES,
    UNTRUSTED_CLOSE,
    UNTRUSTED_OPEN,
    disarmed,
)
from agent.transcript import Answered, Context, Entry, Note, Said, ToolCall, ToolResult


def fenced(entry: Entry) -> Entry:
    """As it is sent: what an untrusted result or a file says stands in a marked block that it
    cannot close itself."""
    match entry:
        case ToolResult(untrusted=True):
            return replace(entry, content=_block(entry.content))
        case Note(content=content) if content:
            return replace(entry, content=_block(content))
        case _:
            return entry


def _block(text: str) -> str:
    return f"{UNTRUSTED_OPEN}\n{disarmed(text)}\n{UNTRUSTED_CLOSE}"


OTHERS_FACTS = "what is remembered of this group, whoever said it"


def tainted_by(entries: Iterable[Entry], *, person_id: str) -> str:
    """What untrusted text there is among the entries, in words for a person; empty for none.

    Results of tools that read the outside, files that came with a message, what was forwarded,
    quoted text, and in a group what others said.
    """
    is_group = False
    for entry in entries:
        match entry:
            case ToolResult(untrusted=True):
                return "text from outside (a page, a file or another tool's result)"
            case Said(forwarded=True):
                return "forwarded text"
            case Note() if entry.brings:
                return "a file that came with a message"
            case Note(untrusted=True):
                return "what a run that nobody watched had read"
            case Said(quote=quote) if quote:
                return "quoted text"
            case Context(text=text) if DOCUMENTS in text:
                return "a saved document"
            case Said(by=by) if by and by != person_id:
                return "what somebody else wrote in this chat"
            case Said(by=by) if by:
                is_group = True
            case Context(text=text) if is_group and MEMORIES in text:
                return OTHERS_FACTS
            case _:
                pass
    return ""


LINKS_FROM = frozenset({"web_fetch", "web_search"})
"""Tools whose results may name the next address. What another one returns can be the model's own
words come back: a file that it wrote, an error that quotes its argument, a subagent's answer."""

NOBODY = ("agent:", "task-")
"""How `Said.by` begins where no person spoke: the task of a subagent, the report of one."""


def has_seen(entries: Sequence[Entry], target: str) -> bool:
    """Whether a URL or an address stands in what a person said or a page named, word for word.
    What they only forwarded, they did not say.

    A longer one in which it is a part does not count: else a page that lists beginnings could have
    the rest filled in. What a model wrote never counts, by whichever way it came back.
    """
    needle = _bare(target)
    if not needle:
        return False
    whole = re.compile(rf"(?<![\w.@%/-]){re.escape(needle)}/?(?![\w%=&/?#+~-]|[.,:;@!][\w%])")
    return any(whole.search(_plain(text)) for text in _read(entries))


def _read(entries: Sequence[Entry]) -> Iterator[str]:
    """Texts that no model wrote, and nobody forwarded."""
    names: dict[str, str] = {}
    for entry in entries:
        match entry:
            case Answered():
                names.update((call.id, called_name(call)) for call in entry.calls)
            case ToolResult(ok=True, untrusted=True) if names.get(entry.call_id) in LINKS_FROM:
                yield entry.content
            case Said() if _is_own(entry):
                yield entry.text
            case _:
                pass


def _is_own(said: Said) -> bool:
    """Whether a person wrote it here themselves."""
    return not said.forwarded and not said.by.startswith(NOBODY)


NEWS_CHARS_MAX = 3
"""What a call may hold in all that is known from nowhere: a number of rows, or `asc`."""


def knows(entries: Sequence[Entry], texts: Iterable[str], *, server: str, own: str = "") -> bool:
    """Whether all these texts stand in what persons wrote, or in what the server returned itself:
    then it learns nothing by them that nobody meant for it. `own` are further words of its."""
    names: dict[str, str] = {}
    known = [own.casefold()]
    for entry in entries:
        match entry:
            case Answered():
                names.update((call.id, called_name(call)) for call in entry.calls)
            case ToolResult() if names.get(entry.call_id, "").startswith(f"{server}__"):
                known.append(entry.content.casefold())
            case Said() if _is_own(entry):
                known.append(entry.text.casefold())
            case _:
                pass
    wanted = [text.strip().casefold() for text in texts]
    news = (len(text) for text in wanted if not any(text in one for one in known))
    return sum(news) <= NEWS_CHARS_MAX


def texts_of(arguments: Any) -> Iterator[str]:
    """All texts, numbers and names of fields in the arguments of a call."""
    match arguments:
        case str():
            yield arguments
        case dict():
            for name, value in arguments.items():
                yield str(name)
                yield from texts_of(value)
        case list() | tuple():
            for value in arguments:
                yield from texts_of(value)
        case bool() | None:
            pass
        case _:
            yield str(arguments)


def called_name(call: ToolCall) -> str:
    """The tool that a call means: that within a tool_call."""
    if call.name != "tool_call":
        return call.name
    try:
        inner = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return call.name
    return str(inner.get("name", "")) if isinstance(inner, dict) else call.name


_SCHEME = re.compile(r"\bhttps?://", re.IGNORECASE)


def _bare(target: str) -> str:
    return _plain(target.strip()).rstrip("/")


def _plain(text: str) -> str:
    """Without the scheme, which people leave out."""
    return _SCHEME.sub("", text)
