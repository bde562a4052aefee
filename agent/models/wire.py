"""What comes back over the wire: server-sent events, and an answer put together from the chunks of
a stream, or from one whole JSON answer.

The one place where an answer is parsed, in all the ways in which servers send text and tool calls;
raises BrokenAnswer for what cannot be read. What is kept of one answer is bounded, whatever a
server sends: an answer past the bound ends like one at the output limit.
"""

from __future__ import annotations

import codecs
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from memory.records.errors import BrokenAnswer
from memory.records.transcript import Answered, ToolCall, Usage

BYTES_A_TOKEN = 16
"""Limit of an answer; with o200k a token has 4 to 5 in English, up to 12 in Thai and Hindi."""

RAW_BYTES_A_TOKEN = 4_096
"""Limit of its stream: a token comes in an event of 200 to 900 bytes."""

_FINISHES = {
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "filter",
    "safety": "filter",
}


@dataclass(slots=True)
class _CallSlot:
    """A tool call in the making; `index` is the server's number for it, if it gave one."""

    index: int | None
    id: str = ""
    name: str = ""
    arguments: str = ""


class Assembly:
    """Takes chunks in order; visible text goes on to `on_text` at once. It `is_full` once more came
    than the tokens asked for can be; then whoever reads the stream closes it."""

    def __init__(self, on_text: Callable[[str], None], *, tokens_max: int) -> None:
        self._on_text = on_text
        self._room = tokens_max * BYTES_A_TOKEN
        self._raw_room = tokens_max * RAW_BYTES_A_TOKEN
        self.is_full = False
        self._text: list[str] = []
        self._slots: list[_CallSlot] = []
        self._by_index: dict[int, _CallSlot] = {}
        self._by_id: dict[str, _CallSlot] = {}
        self._usage = Usage()
        self._finish = ""
        self._begun = False

    @property
    def finished(self) -> bool:
        """Return whether the model said that its answer is over."""
        return bool(self._finish)

    def passes(self, piece: bytes) -> None:
        """Count the bytes that come over the wire, whatever they hold."""
        self._raw_room -= len(piece)
        self.is_full = self.is_full or self._raw_room < 0

    def take(self, chunk: dict[str, Any]) -> None:
        """One chunk of a stream, or a whole answer (`message` in place of `delta`)."""
        usage = chunk.get("usage") or _at(chunk, "x_groq", "usage")
        if isinstance(usage, dict):
            self._usage = _usage(usage)
        choices = chunk.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            return
        self._begun = True
        if self.is_full:
            return
        choice = choices[0]
        delta = choice.get("delta") or choice.get("message")
        if isinstance(delta, dict):
            # Reasoning stands in other fields and is never text; a refusal is what a person
            # reads.
            thought = (_plain(delta.get(name)) for name in _THOUGHT)
            self._within(next(filter(None, thought), ""))
            for content in (delta.get("content"), delta.get("refusal")):
                text = self._within(_plain(content))
                if text:
                    self._text.append(text)
                    self._on_text(text)
            for index, call in enumerate(_dicts(delta.get("tool_calls"))):
                self._take_call(call, index if "message" in choice else None)
        if choice.get("finish_reason"):
            self._finish = str(choice["finish_reason"])

    def answer(self, name: str, *, done: bool) -> Answered:
        """The whole. `done`: the server said so itself ([DONE], or one whole JSON answer)."""
        if not self._begun or not (self._finish or done or self.is_full):
            raise BrokenAnswer("the answer ended before it was complete")
        if self._finish.lower() == "error":
            raise BrokenAnswer("the provider broke the answer off")
        # Each call has an id of its own: a missing one is made from its place, a doubled one told
        # apart, so that the same stream always gives the same ids.
        calls: dict[str, ToolCall] = {}
        for n, slot in enumerate(self._slots, start=1):
            wanted = unique = slot.id or f"call_{n}"
            more = n
            while unique in calls:
                unique, more = f"{wanted}_{more}", more + 1
            calls[unique] = ToolCall(id=unique, name=slot.name, arguments=slot.arguments)
        finish = "length" if self.is_full else _FINISHES.get(self._finish.lower(), "stop")
        if finish in ("stop", "tool_calls"):
            finish = "tool_calls" if calls else "stop"
        return Answered(
            text="".join(self._text),
            calls=tuple(calls.values()),
            finish=finish,
            model=name,
            usage=self._usage,
        )

    def _within(self, text: str) -> str:
        """Return as much of a text as there is room for; if not all fits, the assembly is full."""
        if self.is_full or not text:
            return ""
        whole = text.encode("utf-8", "surrogatepass")
        if len(whole) <= self._room:
            self._room -= len(whole)
            return text
        self.is_full = True
        return whole[: self._room].decode("utf-8", "ignore")

    def _take_call(self, delta: dict[str, Any], place: int | None) -> None:
        function = delta.get("function")
        function = function if isinstance(function, dict) else {}
        number, arguments = delta.get("index"), function.get("arguments")
        if isinstance(arguments, dict):
            arguments = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
        came = _CallSlot(
            index=number if isinstance(number, int) else place,
            id=_string(delta.get("id")),
            name=_string(function.get("name")),
            arguments=_string(arguments),
        )
        self._within(f"{came.id}{came.name}{came.arguments}" or " ")
        if self.is_full:
            return
        slot = self._slot_for(came)
        if slot is None:
            slot = came
            self._slots.append(came)
        else:
            slot.id = slot.id or came.id
            if came.name != slot.name:
                slot.name += came.name
            slot.arguments += came.arguments
        if came.index is not None:
            self._by_index[came.index] = slot
        if slot.id:
            self._by_id[slot.id] = slot

    def _slot_for(self, came: _CallSlot) -> _CallSlot | None:
        """Return the call that this piece continues; None when it begins another one."""
        if came.index is not None:
            slot = self._by_index.get(came.index)
        elif came.id in self._by_id:
            slot = self._by_id[came.id]
        else:
            begins = not self._slots or (came.id and came.name)
            slot = None if begins else self._slots[-1]
        # Some servers number all parallel calls 0.
        is_another = slot and came.id and slot.id and came.id != slot.id and came.name
        if slot is None or is_another:
            return None
        if came.name and slot.arguments and (came.name != slot.name or _whole(slot.arguments)):
            return None
        return slot


_THOUGHT = ("reasoning_content", "reasoning", "thinking")
"""Where servers put what a model thinks: DeepSeek, vLLM and llama.cpp; OpenRouter, Groq; Ollama."""


def _usage(data: dict[str, Any]) -> Usage:
    cached = _at(data, "prompt_tokens_details", "cached_tokens")
    return Usage(
        prompt=_count(data.get("prompt_tokens")),
        completion=_count(data.get("completion_tokens")),
        cached=_count(cached if cached is not None else data.get("prompt_cache_hit_tokens")),
    )


def _at(data: dict[str, Any], outer: str, inner: str) -> Any:
    found = data.get(outer)
    return found.get(inner) if isinstance(found, dict) else None


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _dicts(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _plain(content: object) -> str:
    """Text as a string or as a list of parts."""
    if isinstance(content, str):
        return content
    parts = (part for part in _dicts(content) if part.get("type") in ("text", "refusal", None))
    return "".join(_string(part.get("text")) for part in parts)


def _whole(arguments: str) -> bool:
    try:
        return isinstance(json.loads(arguments), dict)
    except ValueError:
        return False


# --- server-sent events -------------------------------------------------------------------------
#
# Read by hand: bytes in any pieces go in, the data of whole events comes out. Lenient where servers
# are sloppy: CR, LF and CRLF, a missing last blank line, a byte order mark, unknown fields.

EVENT_BYTES_MAX = 16 * 1024 * 1024


class EventTooLarge(ValueError):
    """One event is larger than any answer we would accept."""


class EventReader:
    """Collects bytes; `feed` returns the events that became whole, `end` a last unfinished one."""

    def __init__(self) -> None:
        utf8 = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._decoder = io.IncrementalNewlineDecoder(utf8, translate=True)
        self._tail = ""
        self._data: list[str] = []
        self._size = 0

    def feed(self, piece: bytes, *, final: bool = False) -> list[str]:
        """Raises EventTooLarge when a server never ends its event."""
        *lines, self._tail = (self._tail + self._decoder.decode(piece, final)).split("\n")
        events: list[str] = []
        for line in lines:
            field, _, value = line.partition(":")
            if field == "data":
                value = value.removeprefix(" ")
                self._data.append(value)
                self._size += len(value)
            elif not line and self._data:
                events.append("\n".join(self._data))
                self._data, self._size = [], 0
        if len(self._tail) + self._size > EVENT_BYTES_MAX:
            raise EventTooLarge(f"an event of more than {EVENT_BYTES_MAX} bytes")
        return events

    def end(self) -> list[str]:
        """Return what a server sent without the closing blank line. Cut JSON fails where it is
        parsed."""
        return self.feed(b"\n\n", final=True)
