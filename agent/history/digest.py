"""A summary without a model: mechanical, so that it is there when no model answers.

It carries what can be told from the words alone: effects of tools, questions that are open, names
and numbers, and how each exchange began. Used by `agent.history.compaction`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from agent.prompt.tokens import estimate_tokens
from memory.records.ports import StoredEntry
from memory.records.text import one_line, visible
from memory.records.transcript import Answered, Said
from memory.search.fts import STOP_WORDS
from memory.stores.compactions import effects_of, exchanges_in, own_words

DONE, OPEN, MENTIONED, BEGAN = "Done: ", "Asked: ", "Mentioned: ", "Said: "
"""How the lines of a digest begin; by them a later one takes it up again."""

_SHARES = ((DONE, 0.25), (OPEN, 0.15), (MENTIONED, 0.3))
"""Of the tokens, at most. What one part leaves free goes to those after it, the first words of the
exchanges last of all."""
_FORMER_SHARE = 0.35
"""Of a former summary that a model wrote."""

BEGINNING_CHARS = (80, 48)
"""Of an exchange: the longest that all fit in."""
OPEN_MAX = 5
TEXT_CHARS_MAX = 4_000
"""Of one message that is looked at: pasted text names more than anybody means."""


def digest(entries: Sequence[StoredEntry], former: str, *, tokens_max: int) -> str:
    """Return what can be kept of the entries and of the former summary within so many tokens."""
    parts = _taken_up(former)
    parts[DONE] += effects_of(entries)
    # With what an exchange ended: a question to the person, or one that nobody answered.
    found = []
    for turn in exchanges_in(entries):
        answers = [one.entry for one in turn if isinstance(one.entry, Answered)]
        said = [one.entry for one in turn if isinstance(one.entry, Said)]
        text = _words(answers[-1]) if answers else _words(said[-1]) if said else ""
        last = _SENTENCE_END.sub(lambda end: f"{end[0]}\n", text).strip().rpartition("\n")[2]
        if last.strip().endswith(("?", "？", "؟")):
            found.append(one_line(last, chars_max=120))
    parts[OPEN] = [*parts[OPEN], *found][-OPEN_MAX:]
    parts[MENTIONED] += [
        word
        for one in entries
        if isinstance(entry := one.entry, Said | Answered)
        for word in mentioned(_words(entry))
    ]
    lines: list[str] = []
    left = tokens_max
    if earlier := cut_at_sentence(parts[""][0] if parts[""] else "", int(left * _FORMER_SHARE)):
        lines.append(earlier)
        left -= estimate_tokens(earlier) + 1
    for label, share in _SHARES:
        line = _newest(label, parts[label], min(left, int(tokens_max * share)))
        if line:
            lines.append(line)
            left -= estimate_tokens(line) + 1
    opened = [
        words
        for turn in exchanges_in(entries)
        for one in turn[:8]
        if isinstance(entry := one.entry, Said) and (words := own_words(entry))
    ]
    began = ""
    for chars in BEGINNING_CHARS:  # shortened until all fit, and else the newest
        items = [one_line(words, chars_max=chars) for words in (*parts[BEGAN], *opened)]
        began = _newest(BEGAN, items, left)
        if began.count("; ") + 1 >= len({_item(item).casefold() for item in items}):
            break
    lines += [began] if began else []
    return "\n".join(lines)


def cut_at_sentence(text: str, tokens_max: int) -> str:
    """As many whole sentences as fit, the first ones; of a single one as many words."""
    text = text.strip()
    if estimate_tokens(text) <= tokens_max:
        return text
    for pattern in (_SENTENCE_END, _BLANK):
        ends = [found.end() for found in pattern.finditer(text)]
        fitting = [end for end in ends if estimate_tokens(text[:end].strip()) <= tokens_max]
        if fitting:
            return text[: fitting[-1]].strip()
    while text and estimate_tokens(text) > tokens_max:
        text = text[: len(text) * 3 // 4]
    return text.strip()


_SENTENCE_END = re.compile(r"(?:[.!?…。！？؟।]+[\"'”’»)\]]*(?=\s|$)|(?<=[。！？])|\n)")
_BLANK = re.compile(r"\s+")


# --- what is said by the words alone -------------------------------------------------------------

_WORD = r"[^\W\d_]{1,20}"
_NUMBER = r"[\w.:,/€$£%#+-]{0,20}\d(?:[\w.:,/-]{0,20}[\w€$£%])?"
_TELLING = re.compile(
    r"(?P<address>[\w.+-]{1,60}@[\w-]{1,60}\.[\w.]{0,30}\w|\w{2,10}://\S{1,150}\w"
    r"|(?<![\w/.-])[\w~.-]{1,60}/[\w./-]{0,80}\w)"
    rf"|(?P<number>(?:{_WORD} )?(?<![\w/]){_NUMBER}(?: {_NUMBER}){{0,4}}(?:\.? {_WORD})?)"
    r"|(?P<file>\b[\w-]{1,60}\.[a-z]\w{0,4}\b)"
    r"|(?P<name>\b[^\W\d_]+(?:['’-][^\W\d_]+)?)"
)
_TRIMMED = ".,:'’-/+"
_BEGINS = re.compile(r"(?:^|[.!?:…\n])[\s\"'“”‘’«»(*_-]*$")


def mentioned(text: str) -> list[str]:
    """Names, numbers with the words beside them, addresses and paths, in order of appearance."""
    text = text[:TEXT_CHARS_MAX]
    found: list[str] = []
    name_ends = -2
    for match in _TELLING.finditer(text):
        word = match[0].strip(_TRIMMED)
        if match["number"]:
            # With the words beside it, unless they say nothing.
            parts = word.split(" ")
            if len(parts) > 1 and parts[0].casefold() in STOP_WORDS:
                parts.pop(0)
            if len(parts) > 1 and parts[-1].islower() and parts[-1] in STOP_WORDS:
                parts.pop()
            found.append(" ".join(parts).strip(_TRIMMED))
        elif not match["name"]:
            found.append(word)
        elif not word[:1].isupper() or len(word) < 2:
            continue
        elif name_ends + 1 == match.start() and text[name_ends] == " ":
            found[-1] += f" {word}"
            name_ends = match.end()
        elif word.isupper() or not _BEGINS.search(text, max(0, match.start() - 8), match.start()):
            # The first word of a sentence has a capital letter whatever it is.
            found.append(word)
            name_ends = match.end()
    return found


def _words(entry: Said | Answered) -> str:
    return own_words(entry) if isinstance(entry, Said) else visible(entry.text)


# --- the lines -----------------------------------------------------------------------------------


def _taken_up(former: str) -> dict[str, list[str]]:
    """The parts of a former digest; what has no label is one text under the empty one."""
    parts: dict[str, list[str]] = {"": [], DONE: [], OPEN: [], MENTIONED: [], BEGAN: []}
    prose = []
    for line in former.splitlines():
        label = next((one for one in parts if one and line.startswith(one)), "")
        if label:
            parts[label] += [one for one in line.removeprefix(label).split("; ") if one]
        else:
            prose.append(line)
    if text := "\n".join(prose).strip():
        parts[""].append(text)
    return parts


def _newest(label: str, items: Iterable[str], tokens_max: int) -> str:
    """As many as fit, the newest; each once, where it came last."""
    once: dict[str, str] = {}
    for item in filter(None, map(_item, items)):
        once.pop(item.casefold(), None)
        once[item.casefold()] = item
    kept: list[str] = []
    for item in reversed(once.values()):
        longer = [item, *kept]
        if estimate_tokens(label + "; ".join(longer)) > tokens_max:
            break
        kept = longer
    return label + "; ".join(kept) if kept else ""


def _item(text: str) -> str:
    """On one line, and without what parts the items."""
    return " ".join(text.replace(";", ",").split())
