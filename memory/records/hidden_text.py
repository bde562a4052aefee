"""Hidden text: what a person may see of what a model wrote, whole or as it comes.

Text goes through two sieves: `_Sieve` takes out thinking tags and role markers and knows what is
code, `_Edges` takes control tokens off the ends and holds back what may still become one.
"""

from __future__ import annotations

import re
from enum import Enum

HOLD_CHARS = 200
"""How much visible text must have come before the first of it is shown."""


def visible(text: str) -> str:
    """What a person may see of a model's text, stripped; empty when nothing remains."""
    stream = VisibleText()
    stream.feed(text)
    stream.end()
    return stream.so_far().strip()


class VisibleText:
    """`visible` for a text that comes in pieces: of each, what is safe to show now.

    `</think>` without an opening tag means that all before it was thought. No stream can know
    that beforehand, so the first `hold_chars` characters (at least 64) wait until more has come,
    or the end. Should such a tag come later still, `so_far` begins anew from it; what `feed` gave
    out cannot be unsaid. In all other cases the pieces joined are `visible` of the whole.
    """

    def __init__(self, *, hold_chars: int = HOLD_CHARS) -> None:
        self._edges = _Edges(max(hold_chars, 64))
        self._sieve = _Sieve(self._edges)
        self._shown: list[str] = []

    def feed(self, piece: str) -> str:
        """Takes a piece of the model's text; returns what may be shown in addition."""
        return self._pass(piece, final=False)

    def end(self) -> str:
        """The model has ended: what was held back and turned out to be visible."""
        return self._pass("", final=True)

    def so_far(self) -> str:
        """All visible text up to now."""
        if len(self._shown) > 1:
            self._shown = ["".join(self._shown)]
        return self._shown[0] if self._shown else ""

    def _pass(self, piece: str, *, final: bool) -> str:
        self._sieve.feed(piece, final=final)
        if self._edges.take_restart():
            self._shown.clear()
        text = self._edges.release(final=final)
        if text:
            self._shown.append(text)
        return text


_THOUGHT = ("think", "thinking", "thought", "reasoning")
_TAGS = (*_THOUGHT, "final")
_TAG = re.compile(
    rf"<\s{{0,3}}(?P<close>/?)\s{{0,3}}(?P<name>{'|'.join(_TAGS)})(?=[\s/>])[^<>]{{0,200}}>",
    re.IGNORECASE,
)
_BEGUN_TAG = re.compile(
    rf"<\s{{0,3}}/?\s{{0,3}}(?:{'|'.join(_TAGS)})(?:[\s/][^<>]{{0,200}})?\Z", re.IGNORECASE
)
_MAYBE_TAG = re.compile(r"<\s{0,3}/?\s{0,3}([A-Za-z]{0,9})\Z")
_MARKER = re.compile(
    r"<[|｜](?:im_start|start_header_id)[|｜]>[ \t]*(?:assistant|user|system|tool)?\n?"
    r"|<[|｜][A-Za-z0-9_▁]{1,40}[|｜]>"
    r"|<start_of_turn>(?:model|user)?\n?|<end_of_turn>"
    r"|<</?SYS>>|\[/?INST\]"
)
_MAYBE_MARKER = re.compile(
    r"<[|｜][A-Za-z0-9_▁]{0,40}[|｜]?\Z"
    r"|<[|｜](?:im_start|start_header_id)[|｜]>[ \t]*[a-z]{0,9}\Z"
    r"|<start_of_turn>[a-z]{0,5}\Z"
)
_WHOLE_MARKERS = ("<start_of_turn>", "<end_of_turn>", "<<SYS>>", "<</SYS>>", "[INST]", "[/INST]")

_SPECIAL = re.compile(r"[<\[`\n]")
_FENCE = re.compile(r"[ \t>]{0,40}(`{3,}|~{3,})")
_MAYBE_FENCE = re.compile(r"[ \t>]{0,40}(?:`{1,}|~{1,})?\Z")
_FENCE_INFO_MAX = 200
_CODE_CHARS_MAX = 1_000
"""Longer inline code does not occur; beyond that a lone backtick is a backtick."""


class _In(Enum):
    TEXT = "text"
    THOUGHT = "thought"
    FENCE = "fence"


class _Sieve:
    """Takes out thought and markers, and tells code from text. Whatever it does depends on the
    text alone, never on how it came in pieces: in doubt a step waits for more."""

    def __init__(self, edges: _Edges) -> None:
        self._edges = edges
        self._raw = ""
        self._in = _In.TEXT
        self._line_start = True
        self._fence = ""
        self._before = ""
        self._final_in_thought = False

    def feed(self, piece: str, *, final: bool) -> None:
        """Works off as much as is certain; with `final`, everything."""
        self._raw += piece
        steps = {_In.TEXT: self._text, _In.THOUGHT: self._thought, _In.FENCE: self._fenced}
        while self._raw and steps[self._in](final):
            pass

    # Each step takes something off the front and returns True, or waits and returns False.

    def _text(self, final: bool) -> bool:
        if self._line_start:
            opened = self._opens_fence(final)
            if opened is None:
                return False
            if opened:
                return True
        special = _SPECIAL.search(self._raw)
        if special is None or special.start() > 0:
            return self._give(special.start() if special else len(self._raw))
        match self._raw[0]:
            case "\n":
                self._give(1)
                self._line_start = True
                return True
            case "`":
                return self._inline_code(final)
            case _:
                return self._tag_or_marker(final)

    def _opens_fence(self, final: bool) -> bool | None:
        """Whether a fenced block began here and was entered; None: not known yet."""
        match = _FENCE.match(self._raw)
        if match is None:
            if not final and _MAYBE_FENCE.match(self._raw):
                return None
            self._line_start = False
            return False
        end = self._raw.find("\n", match.end())
        info = self._raw[match.end() : end if end >= 0 else None][: _FENCE_INFO_MAX + 1]
        if match[1][0] == "`" and "`" in info:
            self._line_start = False  # inline code of three or more backticks
            return False
        if end < 0 and not final and len(info) <= _FENCE_INFO_MAX:
            return None
        self._in, self._fence = _In.FENCE, match[1]
        self._give(end + 1 if end >= 0 else len(self._raw), code=True)
        self._line_start = end >= 0
        return True

    def _fenced(self, final: bool) -> bool:
        end = self._raw.find("\n")
        line = self._raw[: end if end >= 0 else None]
        if self._line_start and self._may_close(line):
            if end < 0 and not final:
                return False
            if self._closes(line):
                self._in = _In.TEXT
        self._give(end + 1 if end >= 0 else len(self._raw), code=True)
        self._line_start = end >= 0
        return True

    def _may_close(self, line: str) -> bool:
        return len(line) < _FENCE_INFO_MAX and not line.strip(" \t>" + self._fence[0])

    def _closes(self, line: str) -> bool:
        return len(line.strip(" \t>")) >= len(self._fence)

    def _inline_code(self, final: bool) -> bool:
        raw = self._raw
        run = len(raw) - len(raw.lstrip("`"))
        if run == len(raw) and not final:
            return False
        window = raw[run : run + _CODE_CHARS_MAX + run + 1]
        line_end = window.find("\n")
        line = window[: line_end if line_end >= 0 else None]
        close = re.search(rf"(?<!`)`{{{run}}}(?!`)", line)
        at_edge = close is not None and close.end() == len(line) and line_end < 0
        whole = final or line_end >= 0 or len(window) > _CODE_CHARS_MAX + run
        if (close is None or at_edge) and not whole:
            return False
        if close is None:
            return self._give(run)
        return self._give(run + close.end(), code=True)

    def _tag_or_marker(self, final: bool) -> bool:
        raw = self._raw
        marker = _MARKER.match(raw)
        if not final and _may_become(raw, marker):
            return False
        if marker is not None:
            return self._drop(marker.end())
        tag = _TAG.match(raw)
        if tag is not None:
            return self._meet(tag)
        if _BEGUN_TAG.match(raw):  # the text ends within a tag
            return self._drop(len(raw))
        return self._give(1)

    def _meet(self, tag: re.Match[str]) -> bool:
        """A tag in visible text: thought begins, ends, or ended without a beginning."""
        closes = bool(tag["close"])
        self._drop(tag.end())
        if tag["name"].lower() == "final":
            if closes and self._final_in_thought:
                self._in, self._final_in_thought = _In.THOUGHT, False
        elif not closes:
            if not tag[0].rstrip("> \t").endswith("/"):
                self._in = _In.THOUGHT
        elif self._final_in_thought:
            self._final_in_thought = False
        else:
            self._edges.restart()
            self._line_start = True
        return True

    def _thought(self, final: bool) -> bool:
        start = self._raw.find("<")
        if start != 0:
            return self._drop(start if start > 0 else len(self._raw))
        if not final and (_BEGUN_TAG.match(self._raw) or _maybe_tag(self._raw)):
            return False
        tag = _TAG.match(self._raw)
        if tag is None or (not tag["close"] and tag["name"].lower() != "final"):
            return self._drop(1)
        if self._before == "`":  # the thought speaks of a tag: `</think>`
            if tag.end() == len(self._raw) and not final:
                return False
            if self._raw[tag.end() : tag.end() + 1] == "`":
                return self._drop(tag.end())
        is_final = tag["name"].lower() == "final"
        self._drop(tag.end())
        if is_final and tag["close"]:
            return True
        self._in, self._final_in_thought = _In.TEXT, is_final
        self._line_start = True
        return True

    def _give(self, count: int, *, code: bool = False) -> bool:
        self._edges.add(self._raw[:count], code=code)
        return self._drop(count)

    def _drop(self, count: int) -> bool:
        self._before = self._raw[count - 1 : count]
        self._raw = self._raw[count:]
        return True


def _maybe_tag(raw: str) -> bool:
    """Whether the text ends within what may become the name of a tag."""
    match = _MAYBE_TAG.match(raw)
    return match is not None and any(tag.startswith(match[1].lower()) for tag in _TAGS)


def _may_become(raw: str, marker: re.Match[str] | None) -> bool:
    """Whether more text could make a tag or marker of this, or a longer one."""
    if _MAYBE_MARKER.match(raw):
        return True
    if marker is not None:
        return False
    begun = _BEGUN_TAG.match(raw) is not None or _maybe_tag(raw)
    return begun or any(whole.startswith(raw) for whole in _WHOLE_MARKERS)


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


class _Edges:
    """Visible text on its way out: its start waits, its end waits while it may be a token."""

    def __init__(self, hold_chars: int) -> None:
        self._hold_chars = hold_chars
        self._pending = ""
        self._code: tuple[int, int] | None = None
        self._begun = False
        self._last = ""
        self._restarted = False

    def add(self, text: str, *, code: bool) -> None:
        """Text in order; code is never taken for a token, unless it is the whole reply."""
        if code:
            first = self._code[0] if self._code else len(self._pending)
            self._code = (first, len(self._pending) + len(text))
        self._pending += text

    def restart(self) -> None:
        """All before was thought."""
        self._pending, self._code, self._last = "", None, ""
        self._begun, self._restarted = False, True

    def take_restart(self) -> bool:
        """Whether there was a restart since this was last asked."""
        restarted, self._restarted = self._restarted, False
        return restarted

    def release(self, *, final: bool) -> str:
        """What may go out now."""
        if not self._begun and not self._begin(final):
            return ""
        code_end = self._code[1] if self._code else 0
        if final:
            text, self._pending = self._ended(code_end), ""
        else:
            held = self._held_from(code_end)
            text, self._pending = self._pending[:held], self._pending[held:]
        self._code = None
        self._last = text[-1:] or self._last
        return text

    def _begin(self, final: bool) -> bool:
        cut = self._start(self._pending[: self._code[0] if self._code else None])
        if not final and len(self._pending) - cut < self._hold_chars:
            return False
        if final and _ONLY_CONTROL.fullmatch(self._pending):
            cut = len(self._pending)
        self._pending = self._pending[cut:]
        if self._code:
            self._code = (max(self._code[0] - cut, 0), max(self._code[1] - cut, 0))
        self._begun = True
        return True

    def _start(self, text: str) -> int:
        """How much is to go at the start: blanks, `Assistant:`, tokens with what is around."""
        cut = len(text) - len(text.lstrip())
        if match := _NAME.match(text):
            cut = match.end()
        while match := _LEADING.match(text, cut):
            cut = match.end()
        return cut

    def _ended(self, code_end: int) -> str:
        text = self._pending
        while (start := self._token_before(text, code_end)) is not None:
            text = _rstrip(text[:start], _SOFT, code_end)
        return text.rstrip()

    def _held_from(self, code_end: int) -> int:
        """Where the end begins that may yet turn out to be tokens and what is around them."""
        text = self._pending
        for size in range(min(len(_CONTROLS[1]), len(text) - code_end), 0, -1):
            ending = text[-size:].lower()
            begins = any(token.startswith(ending) for token in _CONTROLS)
            if begins and not self._is_inside_word(text, len(text) - size):
                text = text[:-size]
                break
        while (start := self._token_before(text, code_end)) is not None:
            text = _rstrip(text[:start], _SOFT, code_end)
        return len(_rstrip(text, _SOFT, code_end))

    def _token_before(self, text: str, code_end: int) -> int | None:
        """Where the token begins with which the text ends, punctuation after it apart."""
        bare = _rstrip(text, _AFTER, code_end)
        for token in _CONTROLS:
            start = len(bare) - len(token)
            if start >= code_end and bare[start:].lower() == token:
                return None if self._is_inside_word(bare, start) else start
        return None

    def _is_inside_word(self, text: str, start: int) -> bool:
        before = (self._last + text[:start]).rstrip("_")[-1:]
        return before.isascii() and before.isalnum()


def _rstrip(text: str, chars: str, code_end: int) -> str:
    """Without these characters at its end, but never into code."""
    return text[:code_end] + text[code_end:].rstrip(chars)


def declines(text: str) -> bool:
    """Whether a text of which nothing is to be seen is empty on purpose: it says the word of a
    model that has nothing to report."""
    return any(token in text.lower() for token in _CONTROLS)
