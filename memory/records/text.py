"""Text made fit: what a person may see of a model's words, and what a request may hold of others'.

Thinking tags and role markers are taken out, and control tokens off both ends; code stays as it is.
Outside text is cleaned and cut. Pure.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

HOLD_CHARS = 200
"""How much visible text must have come before the first of it is shown."""
LOOKED_AT_CHARS, LOOKED_AT_SHARE = 24, 50
"""After so many new ones, or a fiftieth of all, a text that comes in pieces is looked through again
from its beginning: that is simpler than to go on in the middle of it, and quick enough."""


def visible(text: str) -> str:
    """Return what a person may see of a model's text, stripped; empty when nothing remains."""
    return _shown(text).strip()


class VisibleText:
    """`visible` for a text that comes in pieces: of each, what is safe to show now.

    `</think>` without an opening tag means that all before it was thought. No stream can know
    that beforehand, so the first `hold_chars` characters (at least 64) wait until more has come,
    or the end. Should such a tag come later still, `so_far` begins anew from it; what `feed` gave
    out cannot be unsaid. In all other cases the pieces joined are `visible` of the whole.
    """

    def __init__(self, *, hold_chars: int = HOLD_CHARS) -> None:
        self._hold_chars = max(hold_chars, 64)
        self._raw = ""
        self._new: list[str] = []
        self._new_chars = 0
        self._shown = ""

    def feed(self, piece: str) -> str:
        """Take a piece of the model's text; return what may be shown in addition."""
        self._new.append(piece)
        self._new_chars += len(piece)
        if self._new_chars < max(LOOKED_AT_CHARS, len(self._raw) // LOOKED_AT_SHARE):
            return ""
        self._raw += "".join(self._new)
        self._new, self._new_chars = [], 0
        # What goes with a token that may follow waits for it.
        text = _shown(_settled(self._raw)).rstrip(_SOFT)
        return self._added(text) if self._shown or len(text) >= self._hold_chars else ""

    def end(self) -> str:
        """The model has ended: return what was held back and turned out to be visible."""
        return self._added(_shown(self._raw + "".join(self._new)))

    def so_far(self) -> str:
        """Return all visible text up to now."""
        return self._shown

    def _added(self, text: str) -> str:
        # Anew, where what was shown turns out to be thought.
        added = text.removeprefix(self._shown) if text.startswith(self._shown) else text
        self._shown = text
        return added


def _shown(raw: str) -> str:
    text, code_start, code_end = "", -1, 0
    for part in _parts(raw):
        if part is None:
            text, code_start, code_end = "", -1, 0
            continue
        piece, is_code = part
        if is_code and piece:
            code_start = len(text) if code_start < 0 else code_start
            code_end = len(text) + len(piece)
        text += piece
    # Code is never taken for a token, unless it is the whole reply.
    if _ONLY_CONTROL.fullmatch(text):
        return ""
    cut = _start(text if code_start < 0 else text[:code_start])
    return _without_tokens(text[cut:], max(code_end - cut, 0)).rstrip()


def _settled(raw: str) -> str:
    """Return the beginning of a text that is seen the same whatever follows it: up to a blank, and
    before code in line, a tag or a marker that is not closed yet."""
    line_start = raw.rfind("\n") + 1
    end = max(line_start, raw.rfind(" ") + 1)
    ticks = list(_TICKS.finditer(raw, line_start, end))
    longer = next((run.start() for run in ticks if len(run[0]) > 1), None)
    if longer is not None or len(ticks) % 2:
        end = ticks[-1].start() if longer is None else longer
    open_tag = _OPEN_TAG.search(raw, max(end - TAG_CHARS_MAX, 0), end)
    return raw[: open_tag.start() if open_tag else end]


_THOUGHT = ("think", "thinking", "thought", "reasoning")
_TAGS = (*_THOUGHT, "final")
_TAG = re.compile(
    rf"<\s{{0,3}}(?P<close>/?)\s{{0,3}}(?P<name>{'|'.join(_TAGS)})(?=[\s/>])[^<>]{{0,200}}>",
    re.IGNORECASE,
)
TAG_CHARS_MAX = 256
_OPEN_TAG = re.compile(
    rf"<\s{{0,3}}/?\s{{0,3}}(?:(?:{'|'.join(_TAGS)})(?:[\s/][^<>]{{0,200}})?)?\Z", re.IGNORECASE
)
_BEGUN_TAG = re.compile(
    rf"<\s{{0,3}}/?\s{{0,3}}(?:{'|'.join(_TAGS)})(?:[\s/][^<>]{{0,200}})?\Z", re.IGNORECASE
)
_MARKER = re.compile(
    r"<[|｜](?:im_start|start_header_id)[|｜]>[ \t]*(?:assistant|user|system|tool)?\n?"
    r"|<[|｜][A-Za-z0-9_▁]{1,40}[|｜]>"
    r"|<start_of_turn>(?:model|user)?\n?|<end_of_turn>"
    r"|<</?SYS>>|\[/?INST\]"
)

_RUN = re.compile(r"[^<\[`\n]+|\n+")
_FENCE = re.compile(r"[ \t>]{0,40}(?:(`{3,})[^`\n]*|(~{3,})[^\n]*)(\n|\Z)")
_TICKS = re.compile(r"`+")
CODE_CHARS_MAX = 1_000
"""Longer inline code does not occur; beyond that a lone backtick is a backtick."""
_CODE = re.compile(rf"(`+)(?!`)[^\n]{{0,{CODE_CHARS_MAX}}}?(?<!`)\1(?!`)")


def _parts(raw: str) -> Iterator[tuple[str, bool] | None]:
    """Yield what can be seen of a text, and whether it is code; None where all before was
    thought."""
    at, line_start, in_final = 0, True, False
    while at < len(raw):
        if line_start and (fence := _FENCE.match(raw, at)):
            end = _fence_end(raw, fence)
            yield raw[at:end], True
            at, line_start = end, raw[end - 1] == "\n"
        elif run := _RUN.match(raw, at):
            yield run[0], False
            at, line_start = run.end(), run[0][-1] == "\n"
        elif ticks := _TICKS.match(raw, at):
            code = _CODE.match(raw, at)
            end = (code or ticks).end()
            yield raw[at:end], code is not None
            at, line_start = end, False
        elif marker := _MARKER.match(raw, at) or _BEGUN_TAG.match(raw, at):
            at, line_start = marker.end(), False
        elif tag := _TAG.match(raw, at):
            is_late = bool(tag["close"]) and not _is_final(tag) and not in_final
            if is_late:  # a thought ends that had no beginning
                yield None
            after = _after_tag(raw, tag, in_final=in_final)
            if after is None:
                return
            at, in_final = after
            line_start = is_late or at > tag.end()
        else:
            yield raw[at], False
            at, line_start = at + 1, False


def _is_final(tag: re.Match[str]) -> bool:
    return tag["name"].lower() == "final"


def _after_tag(raw: str, tag: re.Match[str], *, in_final: bool) -> tuple[int, bool] | None:
    """Return where what is seen goes on after a tag, and whether that is marked as final within a
    thought, as what is `in_final` is; None where the rest is thought."""
    closes = bool(tag["close"])
    hides = in_final if _is_final(tag) and closes else not _is_final(tag) and not closes
    if not hides or tag[0].rstrip("> \t").endswith("/"):
        return tag.end(), in_final and not closes
    for end in _TAG.finditer(raw, tag.end()):
        if bool(end["close"]) == _is_final(end):
            continue
        if raw[end.start() - 1] == raw[end.end() : end.end() + 1] == "`":
            continue  # the thought speaks of a tag: `</think>`
        return end.end(), not end["close"]
    return None


def _fence_end(raw: str, fence: re.Match[str]) -> int:
    """Return how far a fenced block goes."""
    ticks, at = fence[1] or fence[2], fence.end()
    while at < len(raw):
        end = raw.find("\n", at) + 1 or len(raw)
        line = raw[at:end]
        if not line.strip(f" \t>\n{ticks[0]}") and len(line.strip(" \t>\n")) >= len(ticks):
            return end
        at = end
    return at


# --- control tokens at the ends ----------------------------------------------------------------

_CONTROLS = ("heartbeat_ok", "heartbeat\\_ok", "no_reply", "no\\_reply")
_CONTROL = r"_*+(?:HEARTBEAT\\?_OK|NO\\?_REPLY)_*+(?![A-Za-z0-9])"
_SOFT = " \t\r\n\v\f\u00a0\u200b\u200d\ufeff*_~`\"'“”„‘’«»()[]{}<>#|\\-–—:;,•"
"""What goes with a token that follows it: blanks, quotes, markup, dashes. Not the full stop."""
_AFTER = _SOFT + ".!?…"
_ADJACENT = "".join(letter for letter in _AFTER if not letter.isspace())
_LEADING = re.compile(
    rf"[{re.escape(_SOFT)}]*+{_CONTROL}[{re.escape(_ADJACENT)}]*(?:[ \t]*[-–—:|]+(?=[ \t]))?\s*",
    re.IGNORECASE,
)
_NAME = re.compile(r"\s*[*_]{0,2}assistant[*_]{0,2}:[*_]{0,2}\s*", re.IGNORECASE)
_ONLY_CONTROL = re.compile(rf"(?:[\W_]*?{_CONTROL})+[\W_]*", re.IGNORECASE)


def _start(text: str) -> int:
    """Return how much is to go at the start: blanks, `Assistant:`, tokens with what is around."""
    cut = len(text) - len(text.lstrip())
    if match := _NAME.match(text):
        cut = match.end()
    while match := _LEADING.match(text, cut):
        cut = match.end()
    return cut


def _without_tokens(text: str, code_end: int) -> str:
    """Return the text without tokens at its end, punctuation after them included."""
    while True:
        bare = _rstrip(text, _AFTER, code_end)
        token = next((one for one in _CONTROLS if bare[code_end:].lower().endswith(one)), None)
        if token is None or _is_inside_word(bare, len(bare) - len(token)):
            return text
        text = _rstrip(bare[: -len(token)], _SOFT, code_end)


def _is_inside_word(text: str, start: int) -> bool:
    before = text[:start].rstrip("_")[-1:]
    return before.isascii() and before.isalnum()


def _rstrip(text: str, chars: str, code_end: int) -> str:
    """Without these characters at its end, but never into code."""
    return text[:code_end] + text[code_end:].rstrip(chars)


def declines(text: str) -> bool:
    """Return whether a text of which nothing is to be seen is empty on purpose: it says the word of
    a model that has nothing to report."""
    return any(token in text.lower() for token in _CONTROLS)


# --- text -----------------------------------------------------------------------------------------
#
# Outside text made fit for a request: cleaned and cut.

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor moves
    r"|\x1b[\]PX^_][^\x07\x1b\n]{0,4096}(?:\x07|\x1b\\)?"  # window titles, links
    r"|\x1b[@-Z\\^_]?"
)
_SLICE_CHARS = 65_536
_CONTROL_CHARS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_SURROGATES = re.compile("[\ud800-\udfff]")
_UNCLEAN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_UNSEEN_KINDS = frozenset({"Cf", "Cn", "Co", "Cs"})
_UNSEEN_MARKS = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
)
"""Letters and marks that are drawn as nothing, though their kind does not say so."""


def without_surrogates(text: str) -> str:
    """The text with lone surrogates replaced: it can be written as UTF-8."""
    return _SURROGATES.sub("\ufffd", text) if not text.isascii() else text


def clean(text: str) -> str:
    """Readable text: no terminal codes, no control characters, line ends as `\\n`."""
    if not _UNCLEAN.search(text):
        return text
    if "\x1b" in text:
        text = "".join(_ESCAPES.sub("", part) for part in _slices(text))
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROL_CHARS.sub("", without_surrogates(text))


def seen(text: str) -> str:
    """Return what a person sees of a text: clean, and without what is drawn as nothing, such as
    tags, marks of direction, joiners and variants, which can hold whole sentences.

    Also a joined emoji comes apart: what two readers are shown is the same at that price.
    """
    text = clean(text)
    if text.isascii():
        return text
    text = _UNSEEN_MARKS.sub("", text)
    return "".join(char for char in text if unicodedata.category(char) not in _UNSEEN_KINDS)


def _slices(text: str) -> Iterator[str]:
    """The text in parts that begin with an escape: one pass over it all would need memory for
    each of a hundred thousand matches (case TO-01)."""
    start = 0
    while start < len(text):
        end = start + _SLICE_CHARS
        if end < len(text):
            escape = text.rfind("\x1b", start + 1, end)
            end = escape if escape > start else end
        yield text[start:end]
        start = end


def one_line(text: str, *, chars_max: int = 80) -> str:
    """An outside name or title, made harmless: one line, no markup that could pose as ours.

    A display name is whatever its bearer typed, so it must not be able to open or close our
    marked blocks (threat model T13, case SE-18).
    """
    flat = " ".join(text.replace("<", "‹").replace(">", "›").split())
    return flat if len(flat) <= chars_max else flat[: chars_max - 1] + "…"


def cut_middle(text: str, *, chars_max: int, pointer: str) -> str:
    """Head and tail of a long text, with a marker that names its size.

    The marker counts towards `chars_max`; three quarters of the room are the head's.
    """
    if len(text) <= chars_max:
        return text
    where = f"; {pointer}" if pointer else ""
    marker = f"\n\n[… cut here: {len(text):,} characters in all{where} …]\n\n"
    return _around(marker, text, text, chars_max)


_CUT_MARK = re.compile(r"\n\n\[… cut here: [\d,]+ characters in all[^\n]* …\]\n\n")


def cut_more(text: str, *, chars_max: int, pointer: str) -> str:
    """`cut_middle` for a text that may be cut already. Then its first marker stays, since it says
    how long the text is and where the rest is."""
    found = _CUT_MARK.search(text)
    if found is None or len(text) <= chars_max:
        return cut_middle(text, chars_max=chars_max, pointer=pointer)
    return _around(found[0], text[: found.start()], text[found.end() :], chars_max)


def _around(marker: str, head: str, tail: str, chars_max: int) -> str:
    room = max(chars_max - len(marker), 0)
    last = min(room // 4, len(tail))
    return (head[: room - last] + marker + tail[len(tail) - last :])[:chars_max]
