"""Whose words are in what is sent: the fence around those from outside, and what follows from them.

While untrusted text is in what is sent, the next wish of the model may be somebody else's: code
then asks a person before anything leaves or lasts (SPEC §15, threat model rule 4). Used by the
loop and the steps of a turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from agent.guards.tool_call_text import called_name
from agent.prompt.templates import (
    ABOUT,
    DAILY_NOTES,
    DOCUMENTS,
    EARLIER,
    KEEP_IN_MIND,
    MEMORIES,
    PREVIOUS,
    UNTRUSTED_CLOSE,
    UNTRUSTED_OPEN,
    UPCOMING,
    USING_TOOLS,
    disarmed,
)
from memory.records.transcript import (
    NOBODY,
    Answered,
    Context,
    Entry,
    Note,
    Said,
    ToolResult,
)
from memory.records.words import after_name, fold, forms, is_unbordered, words


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
    """Return what untrusted text there is among the entries, in words for a person; empty for none.

    Results of tools that read the outside, files that came with a message, what was forwarded,
    quoted text, answers that were given after any of it, and in a group what others said.
    """
    return next((why for _, why in _untrusted(entries, person_id)), "")


def taint_start(entries: Iterable[Entry], *, person_id: str) -> int | None:
    """The place of the first entry that is untrusted text; None where none is."""
    return next((place for place, _ in _untrusted(entries, person_id)), None)


def marked(entries: Sequence[Entry], *, was_tainted: bool, person_id: str) -> tuple[Entry, ...]:
    """The entries of a turn as they are kept: an answer that was given when untrusted text had been
    read may repeat it, whatever becomes of that text (`was_tainted`: it was there before)."""
    start = -1 if was_tainted else taint_start(entries, person_id=person_id)
    if start is None:
        return tuple(entries)
    return tuple(
        replace(entry, tainted=True) if isinstance(entry, Answered) and place > start else entry
        for place, entry in enumerate(entries)
    )


def _untrusted(entries: Iterable[Entry], person_id: str) -> Iterator[tuple[int, str]]:
    """Places and reasons, in order."""
    is_group = False
    for place, entry in enumerate(entries):
        is_group = is_group or (isinstance(entry, Said) and bool(entry.by))
        if why := _why_untrusted(entry, person_id, is_group=is_group):
            yield place, why


def _why_untrusted(entry: Entry, person_id: str, *, is_group: bool) -> str:
    match entry:
        case ToolResult(untrusted=True):
            return "text from outside (a page, a file or another tool's result)"
        # A model repeats what it reads, also once the page itself is no longer sent.
        case Answered(tainted=True):
            return "an answer that was given after text from outside"
        case Said(forwarded=True):
            return "forwarded text"
        case Note() if entry.brings:
            return "a file that came with a message"
        case Note(untrusted=True):
            return "what came with a message, or what a run that nobody watched had read"
        case Said(quote=quote) if quote:
            return "quoted text"
        case Context(text=text) if DOCUMENTS in text:
            return "a saved document"
        case Said(by=by) if by and by != person_id:
            return "what somebody else wrote in this chat"
        # Any member may have put it there, and none of it is the asker's own word.
        case Context(text=text) if is_group and MEMORIES in text:
            return OTHERS_FACTS
        case _:
            return ""


REMEMBERED_LAYERS = frozenset(
    {
        *("long-term notes", "daily notes", "about the user", "memories", "earlier conversation"),
        *("insights", "upcoming", "previous conversation"),
    }
)
_REMEMBERED_HEADINGS = (
    *(DAILY_NOTES, ABOUT, MEMORIES, EARLIER, KEEP_IN_MIND, USING_TOOLS, UPCOMING, PREVIOUS),
)
_REMEMBERING_TOOLS = frozenset(
    {"search_memories", "list_facts", "search_conversations", "read_notes", "get_profile"}
)


def rests_on_memory(entries: Iterable[Entry]) -> bool:
    """Return whether what is remembered is among the entries. It is the person's own, but nobody
    can say of each sentence who made it: what it tells to somebody new has to be known from
    elsewhere."""
    for entry in entries:
        match entry:
            case Context(text=text) if any(one in text for one in _REMEMBERED_HEADINGS):
                return True
            case Answered(calls=calls) if any(
                called_name(call) in _REMEMBERING_TOOLS for call in calls
            ):
                return True
            case _:
                pass
    return False


def has_said(entries: Iterable[Entry], target: str, *, person_id: str) -> bool:
    """Return whether the name of a chat stands in what this person wrote here, as a whole. What
    they only forwarded, they did not say; what a model wrote never counts, whichever way it came
    back."""
    return any(is_named_in(target, text) for text in own_texts(entries, person_id))


def own_texts(entries: Iterable[Entry], person_id: str) -> Iterator[str]:
    """Return what this person wrote here themselves."""
    for entry in entries:
        if isinstance(entry, Said) and is_own(entry) and entry.by in {"", person_id}:
            yield entry.text


_TIMES = frozenset(
    re.findall(
        r"\w+",
        "in at on am pm a an the of and to next this today tomorrow tonight noon midnight morning"
        " evening night afternoon week weeks day days hour hours minute minutes min h half quarter"
        " monday tuesday wednesday thursday friday saturday sunday january february march april may"
        " june july august september october november december t z oclock o clock st nd rd th",
    )
)


def is_once(when: str) -> bool:
    """Return whether a time surely comes but once, by its words: one that may come again is looked
    at by somebody."""
    text = fold(when)
    found = re.findall(r"[^\W\d_]+", text)
    return "*" not in text and all(word in _TIMES for word in found)


def is_said_now(values: Iterable[str], entries: Sequence[Entry], *, name: str = "") -> bool:
    """Return whether each of the values is a run of words of what the person (called `name`) wrote
    in this turn themselves: endings, and their name before it, aside.

    An address, other scripts and signs within words have to stand there exactly so: words alone
    would let `evil.example` pass for "the evil example".
    """
    own = "\n".join(fold(one.text) for one in entries if isinstance(one, Said) and is_own(one))
    said = [word.text for word in words(own)]
    # "likes tea" for "Ada likes tea", where she is the one who wrote.
    texts = [
        rest if (rest := after_name(value, name)) is not None and rest[:1].isspace() else value
        for value in values
        if value
    ]
    return bool(texts) and all(_is_run(fold(text), said, own) for text in texts)


def _is_run(text: str, said: Sequence[str], own: str) -> bool:
    for piece in text.split():
        is_plain = _PLAIN_WORD.fullmatch(piece) is not None and not is_unbordered(piece)
        if not is_plain and piece not in own:
            return False
    told = [forms(word.text) for word in words(text)]
    runs = (said[at : at + len(told)] for at in range(len(said) - len(told) + 1))
    return bool(told) and any(
        all(not one.isdisjoint(forms(other)) for one, other in zip(told, run, strict=True))
        for run in runs
    )


_PLAIN_WORD = re.compile(r"[\"'(]*[^\W_]+(?:['’-][^\W_]+)*[\"')]*[.,:;!?]*")


def is_named_in(target: str, text: str) -> bool:
    """Return whether the name of a chat stands in a text, as a whole."""
    whole = rf"(?<![\w.@%/-]){re.escape(target.strip())}(?![\w%=&/?#+~-]|[.,:;@!][\w%])"
    return bool(target.strip()) and re.search(whole, text) is not None


def is_own(said: Said) -> bool:
    """Return whether a person wrote it here themselves."""
    return not said.forwarded and not said.by.startswith(NOBODY)
