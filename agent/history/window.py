"""What of a conversation is sent to a model: mended, cut on turn boundaries, and shortened.

Pure; called by the steps that build a request. Every function returns its input unchanged (and
says so by its value) when there is nothing to do, so that what was sent stays as it was sent.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from agent.prompt.tokens import estimate_tokens, picture_tokens, tokens_of
from memory.records.ports import History, StoredEntry
from memory.records.text import cut_more
from memory.records.transcript import (
    Answered,
    Context,
    Entry,
    Note,
    Said,
    ToolCall,
    ToolResult,
    once,
)

_MESSAGES = (Said, Answered, ToolResult)
"""Context and notes are parts of a message, not messages."""
_ENDS_EXCHANGE = (Answered, ToolResult)
_SHORTENED_ONES = (ToolResult, Note)

MISSING = "No result was recorded for this call: it was interrupted, and may not have happened."

# --- repair ------------------------------------------------------------------------------------


def repair(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """The entries with every call answered exactly once, right after its answer, under an id of
    its own; without empty answers, and without a context block that follows nobody's words.

    What a person said is never lost. Repairing twice changes nothing more, and entries appended
    later do not change what became of those before, unless they hold a result for them.
    """
    kept = [
        entry
        for entry in entries
        if not isinstance(entry, Answered) or entry.calls or entry.text.strip()
    ]
    results = _paired(kept)
    repaired: list[Entry] = []
    taken: set[str] = set()
    follows_words = False
    for position, entry in enumerate(kept):
        match entry:
            case Said():
                follows_words = True
                repaired.append(entry)
            case Context():
                if follows_words:
                    repaired.append(entry)
            case Note():
                repaired.append(entry)
            case Answered(calls=()):
                follows_words = False
                repaired.append(entry)
            case Answered():
                follows_words = False
                repaired.extend(_closed(entry, results[position], taken))
            case ToolResult():
                pass  # stands after its answer, or nowhere
    return tuple(repaired)


_Results = dict[int, ToolResult]
"""Results of one answer, by the number of their call."""


def _paired(entries: Sequence[Entry]) -> dict[int, _Results]:
    """For the position of each answer, its results: the first that came for each call.

    An id that several answers use belongs to the latest of them that still waits for it.
    """
    found: dict[int, _Results] = defaultdict(dict)
    waiting: dict[str, list[list[tuple[int, int]]]] = defaultdict(list)
    for position, entry in enumerate(entries):
        if isinstance(entry, Answered) and entry.calls:
            slots: dict[str, list[tuple[int, int]]] = defaultdict(list)
            for number, call in enumerate(entry.calls):
                slots[call.id].append((position, number))
            for call_id, places in slots.items():
                waiting[call_id].append(places)
        elif isinstance(entry, ToolResult) and (answers := waiting[entry.call_id]):
            place, number = answers[-1].pop(0)
            found[place][number] = entry
            if not answers[-1]:
                answers.pop()
    return found


def _closed(answer: Answered, results: _Results, taken: set[str]) -> list[Entry]:
    """An answer with its results behind it, in the order of its calls, each under an id that no
    call before it has."""
    calls: list[ToolCall] = []
    for call in answer.calls:
        name, number = call.id or "call", 1
        while not name.strip() or name in taken:
            number += 1
            name = f"{call.id[:32] or 'call'}-{number}"
        taken.add(name)
        calls.append(call if name == call.id else replace(call, id=name))
    own = tuple(calls)
    closed: list[Entry] = [answer if own == answer.calls else replace(answer, calls=own)]
    for number, call in enumerate(own):
        result = results.get(number) or ToolResult(call_id=call.id, content=MISSING, ok=False)
        closed.append(result if result.call_id == call.id else replace(result, call_id=call.id))
    return closed


# --- window ------------------------------------------------------------------------------------


def window(stored: Sequence[StoredEntry], *, tokens_max: int) -> int | None:
    """Return None while the history fits; else the id from which on it is to be sent.

    The cut is a step: about half of the limit stays free, so that the next many turns only append.
    It falls between turns. The newest turn stays as long as it fits; if not even that does, the id
    is one past the last.
    """
    turns = _turns(stored)
    sizes = [_size(turn)[1] for turn in turns]
    if sum(sizes) <= tokens_max:
        return None
    if sizes[-1] > tokens_max:
        return stored[-1].id + 1
    first, tokens = len(turns) - 1, sizes[-1]
    while first > 0:
        tokens += sizes[first - 1]
        if tokens > tokens_max // 2:
            break
        first -= 1
    start = turns[first][0].id
    return start if start != stored[0].id else None


def since_compaction(history: History) -> tuple[History, int | None]:
    """Return what is left of a history since it was summed up, and the id from which on it is sent
    where that is later than before: what was summed up counts from the next turn on (SPEC §10)."""
    compaction = history.compaction
    if compaction is None or not history.entries:
        return history, None
    start = compaction.sent_from
    if history.entries[0].id >= start:
        return history, None
    return replace(history, entries=tuple(sent_since(history.entries, start))), start


def sent_since(stored: Sequence[StoredEntry], start: int) -> Sequence[StoredEntry]:
    """Those from this id on."""
    return stored[_place(stored, start) :]


def _place(stored: Sequence[StoredEntry], entry_id: int) -> int:
    """Where the entries with this id and later ones begin: ids only grow."""
    return bisect_left(stored, entry_id, key=lambda one: one.id)


def tail_start(
    stored: Sequence[StoredEntry],
    *,
    messages_max: int,
    tokens_max: int,
    exchanges_min: int,
) -> int | None:
    """The id from which on the newest turns stay word for word where what is before them is summed
    up; one past the last if none stays, None without any.

    As many whole turns as both limits allow, and `exchanges_min` turns in which somebody spoke
    whatever their size.
    """
    if not stored:
        return None
    start = stored[-1].id + 1
    messages = tokens = exchanges = 0
    for turn in reversed(_turns(stored)):
        size = _size(turn)
        messages += size[0]
        tokens += size[1]
        if (messages > messages_max or tokens > tokens_max) and exchanges >= exchanges_min:
            break
        start = turn[0].id
        exchanges += any(isinstance(one.entry, Said) for one in turn)
    return start


def sent_size(stored: Sequence[StoredEntry], shortened_to: int) -> tuple[int, int]:
    """Messages and tokens of what is sent, the tool results before this id shortened."""
    return _size_of(shorten_before(stored, shortened_to))


def last_request(stored: Sequence[StoredEntry]) -> int:
    """Tokens of the newest request with its answer, as the provider counted them, prompt and tools
    with it; 0 if it did not say."""
    for one in reversed(stored):
        if isinstance(one.entry, Answered):
            return one.entry.usage.prompt + one.entry.usage.completion
    return 0


def _turns(stored: Sequence[StoredEntry]) -> list[list[StoredEntry]]:
    turns: list[list[StoredEntry]] = []
    for entry in stored:
        if turns and turns[-1][-1].run_id == entry.run_id:
            turns[-1].append(entry)
        else:
            turns.append([entry])
    return turns


def _size(stored: Sequence[StoredEntry]) -> tuple[int, int]:
    return _size_of([one.entry for one in stored])


def _size_of(entries: Sequence[Entry]) -> tuple[int, int]:
    """Messages and tokens."""
    messages = sum([isinstance(entry, _MESSAGES) for entry in entries])
    return messages, sum(map(tokens_of, entries))


# --- shortening --------------------------------------------------------------------------------

_SHORTENED = re.compile(r"\[.* was \d+ chars\]", re.DOTALL)


def shorten(
    entries: Sequence[Entry], keep_chars: int, *, exchanges_kept: int = 0
) -> tuple[Entry, ...]:
    """Tool results of over `keep_chars` characters become `[name: truncated, was N chars]`; of a
    note on files the pictures go, and their text where it is as long.

    Left alone are the last `exchanges_kept` exchanges (from a person's words on), and always the
    results that the model has not answered yet. Shortening twice changes nothing more.
    """
    end = min(_exchange_start(entries, exchanges_kept), _last_answer(entries))
    names = {
        call.id: call.name
        for entry in entries
        if isinstance(entry, Answered)
        for call in entry.calls
    }
    return tuple(
        _shorter(entry, names, keep_chars) if position < end else entry
        for position, entry in enumerate(entries)
    )


def _shorter(entry: Entry, names: dict[str, str], keep_chars: int) -> Entry:
    match entry:
        case ToolResult():
            size = len(entry.content)
            marker = f"[{names.get(entry.call_id, 'tool')}: truncated, was {size} chars]"
            if size <= max(keep_chars, len(marker)) or _SHORTENED.fullmatch(entry.content):
                return entry
            known = _shortened_by(entry)
            if marker not in known:
                # Still untrusted: the answers after it stand, and may repeat what it said.
                known[marker] = replace(entry, content=marker)
            return known[marker]
        case Note() if entry.pictures or len(entry.content) > keep_chars:
            content = "" if len(entry.content) > keep_chars else entry.content
            # The answers after it stand, and may repeat what was in the files.
            text = f"{entry.text} {PUT_AWAY}"
            return replace(entry, text=text, content=content, pictures=(), untrusted=True)
        case _:
            return entry


PUT_AWAY = "What was in the files is not shown any more; they are kept where they lie."


EXCHANGES_KEPT = 2
SAVED_TOKENS_MIN = 4_000
OLD_RESULT_CHARS_MAX = 200
"""Old results up to this length stay: a marker in their place would save next to nothing."""


def shortening_step(
    stored: Sequence[StoredEntry], shortened_to: int, *, always: bool = False
) -> int | None:
    """The id before which old tool results are to be sent shortened from now on; None for no step.

    The results of all but the last two exchanges may go, in one batch that saves 4,000 tokens
    (SPEC §5, placement), or with `always` whatever it saves. It never moves back.
    """
    entries = [one.entry for one in stored]
    end = _exchange_start(entries, EXCHANGES_KEPT)
    if end >= len(stored) or stored[end].id <= shortened_to:
        return None
    candidates = entries[_place(stored, shortened_to) : end]
    saved = sum(
        # What goes with its pictures, and with its text where that is too long to stay.
        picture_tokens(entry)
        + (estimate_tokens(entry.content) if len(entry.content) > OLD_RESULT_CHARS_MAX else 0)
        for entry in candidates
        if isinstance(entry, _SHORTENED_ONES)
    )
    return stored[end].id if saved >= (1 if always else SAVED_TOKENS_MIN) else None


def shorten_before(stored: Sequence[StoredEntry], shortened_to: int) -> tuple[Entry, ...]:
    """The entries, with the tool results before this id shortened."""
    entries = tuple([one.entry for one in stored])
    old = _place(stored, shortened_to)
    if not old:
        return entries
    return (*shorten(entries[:old], OLD_RESULT_CHARS_MAX), *entries[old:])


@once
def _shortened_by(result: ToolResult) -> dict[str, ToolResult]:
    """Return what it was shortened to, by the marker in its place: one, unless an id was given
    twice."""
    return {}


ROUND_CHARS_MIN = 400
"""What a result keeps at least when it is cut to make room for others."""

NO_ROOM = "it did not fit beside the other results: call it again on its own for more"


def unanswered(entries: Sequence[Entry]) -> Sequence[ToolResult]:
    """Return the results that the model has not answered yet."""
    new = entries[_last_answer(entries) :]
    return [entry for entry in new if isinstance(entry, ToolResult)]


def share_out(entries: Sequence[Entry], tokens_max: int) -> tuple[Entry, ...]:
    """Return the entries, with the results that the model has not answered yet cut to
    `tokens_max` in all. Each gets an equal share, and the newest first what short ones leave."""
    wanted = {id(result): tokens_of(result) for result in unanswered(entries)}
    if sum(wanted.values()) <= tokens_max:
        return tuple(entries)
    given = {key: min(tokens, tokens_max // len(wanted)) for key, tokens in wanted.items()}
    left = tokens_max - sum(given.values())
    for key in reversed(wanted):
        more = max(min(wanted[key] - given[key], left), 0)
        given[key] += more
        left -= more
    shared: list[Entry] = []
    for entry in entries:
        shared.append(entry)
        if not isinstance(entry, ToolResult) or id(entry) not in given:
            continue
        cut, chars, most = entry, len(entry.content), given[id(entry)]
        # To about so many tokens, or to its shortest form if that is longer.
        while tokens_of(cut) > most and chars > ROUND_CHARS_MIN:
            chars = max(int(chars * min(most / tokens_of(cut), 0.9)), ROUND_CHARS_MIN)
            text = cut_more(entry.content, chars_max=chars, pointer=NO_ROOM)
            shared[-1] = cut = replace(entry, content=text)
    return tuple(shared)


def _exchange_start(entries: Sequence[Entry], count: int) -> int:
    """Where the last `count` exchanges begin; words that follow words open no new one. A note on
    files belongs to the words after it."""
    start: int | None = None
    found = 0
    for place in range(len(entries) - 1, -1, -1):
        if isinstance(entries[place], Said):
            start = place
        opens = place == 0 or isinstance(entries[place - 1], _ENDS_EXCHANGE)
        if opens and start is not None:
            found += 1
            if found == count:
                is_noted = start > 0 and isinstance(entries[start - 1], Note)
                return start - 1 if is_noted else start
            start = None
    return 0 if found and count > 0 else len(entries)


def _last_answer(entries: Sequence[Entry]) -> int:
    """Where the newest answer of the model stands: it has read all before it."""
    positions = (n for n in range(len(entries) - 1, -1, -1) if isinstance(entries[n], Answered))
    return next(positions, 0)
