"""What strict providers demand of a request's messages, as three checkers for tests.

Each turns entries into its provider's shape in the plainest way (neighbours of one role joined,
a user message put first where an answer stands first) and raises AssertionError where that
provider would refuse: none of them mends calls and results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from memory.records.transcript import Answered, Entry, ToolCall, ToolResult

Checker = Callable[[Sequence[Entry]], None]


def check_openai(entries: Sequence[Entry]) -> None:
    """Each call has one `tool` message right after its assistant message, in any order; a `tool`
    message stands nowhere else; an assistant message has text or calls."""
    waiting: set[str] = set()
    for entry in entries:
        if isinstance(entry, ToolResult):
            assert entry.call_id in waiting, "a tool message must follow a call with its id"
            waiting.remove(entry.call_id)
            continue
        assert not waiting, f"calls without tool messages: {waiting}"
        if isinstance(entry, Answered):
            assert entry.text.strip() or entry.calls, "an assistant message must not be empty"
            ids = [call.id for call in entry.calls]
            assert all(ids), "a call must have an id"
            assert len(set(ids)) == len(ids), "ids of one message must differ"
            waiting = set(ids)
    assert not waiting, f"calls without tool messages: {waiting}"


@dataclass(slots=True)
class _Message:
    role: str
    texts: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    results: list[ToolResult] = field(default_factory=list)
    text_before_results: bool = False


def _joined(entries: Sequence[Entry]) -> list[_Message]:
    messages: list[_Message] = []
    for entry in entries:
        role = "assistant" if isinstance(entry, Answered) else "user"
        if not messages and role == "assistant":
            messages.append(_Message("user", ["…"]))
        if not messages or messages[-1].role != role:
            messages.append(_Message(role))
        message = messages[-1]
        if isinstance(entry, ToolResult):
            message.text_before_results |= bool(message.texts)
            message.results.append(entry)
        else:
            if isinstance(entry, Answered):
                message.calls.extend(entry.calls)
            message.texts.append(entry.text)
    return messages


def check_anthropic(entries: Sequence[Entry]) -> None:
    """Roles alternate from user on; `tool_use` blocks are all answered at the front of the next
    user message, each once; ids differ throughout."""
    messages = _joined(entries)
    seen: set[str] = set()
    for before, message in zip([None, *messages], messages, strict=False):
        called = [call.id for call in before.calls] if before else []
        answered = [result.call_id for result in message.results]
        assert sorted(called) == sorted(answered), "tool_use and tool_result must match"
        assert not message.text_before_results, "tool_result blocks must stand first"
        for call in message.calls:
            assert call.id, "tool_use needs an id"
            assert call.id not in seen, "tool_use ids must be unique"
            seen.add(call.id)
        has_content = message.calls or message.results or any(map(str.strip, message.texts))
        assert message.role == "user" or has_content, "content must not be empty"
    assert not messages or not messages[-1].calls, "tool_use without tool_result"


def check_gemini(entries: Sequence[Entry]) -> None:
    """A function call turn follows a user or a function response turn, and is followed by exactly
    as many responses, in the order of the calls, and of the same names."""
    messages = _joined(entries)
    for number, message in enumerate(messages):
        if not message.calls:
            assert number > 0 or not message.results, "a response without a call"
            continue
        assert number > 0, "a function call turn must not stand first"
        assert messages[number - 1].role == "user", "a function call follows a user turn"
        assert number + 1 < len(messages), "a function call needs a response turn"
        responses = [result.call_id for result in messages[number + 1].results]
        assert responses == [call.id for call in message.calls], "as many responses, in order"
    for before, message in pairwise(messages):
        assert not message.results or before.calls, "a response without a call"


CHECKERS: tuple[Checker, ...] = (check_openai, check_anthropic, check_gemini)


def check_all(entries: Sequence[Entry]) -> None:
    """All three."""
    for check in CHECKERS:
        check(entries)
