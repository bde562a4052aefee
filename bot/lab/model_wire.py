"""The OpenAI-compatible format: answers, stream chunks, error bodies and the strict rules.

Called by `bot.lab.model`; pure functions from steps to bytes and from requests to complaints.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from bot.lab.faults import FaultAction
from bot.lab.model_script import ScriptedCall, ScriptedStep

Json = dict[str, Any]
CHARS_PER_TOKEN = 4
ROLES = ("system", "assistant", "user", "function", "tool", "developer")
DONE = b"data: [DONE]\n\n"
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class ModelRefusal(Exception):
    """A request that the API would not take."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        param: str | None = None,
        code: str | None = None,
        kind: str = "invalid_request_error",
    ) -> None:
        super().__init__(message)
        self.status = status
        self.payload = {"error": {"message": message, "type": kind, "param": param, "code": code}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """What all parts of one answer have in common."""

    id: str
    model: str
    created: int
    prompt_tokens: int
    chunk_size: int
    include_usage: bool
    no_usage: bool = False


def shaped(step: ScriptedStep, action: FaultAction | None) -> ScriptedStep:
    """The step as a fault deforms it; faults of the stream alone leave it as it is."""
    match action.kind if action else "":
        case "empty":
            return replace(step, text="", calls=(), finish="stop")
        case "reasoning_only":
            thought = "The user wants something. I should answer."
            return replace(step, text=None, calls=(), reasoning=thought, finish="stop")
        case "content_filter":
            return replace(step, text="", calls=(), finish="content_filter")
        case "length" if step.calls:
            last = step.calls[-1]
            half = replace(last, arguments=last.arguments[: len(last.arguments) // 2])
            return replace(step, calls=(*step.calls[:-1], half), finish="length")
        case "length":
            text = step.text or ""
            return replace(step, text=text[: len(text) // 2], finish="length")
        case "bad_arguments":
            broken = tuple(
                replace(c, arguments=c.arguments[:-1] + ', "x": nope') for c in step.calls
            )
            return replace(step, calls=broken)
        case "missing_id":
            return replace(step, calls=tuple(replace(c, id="") for c in step.calls))
        case "double_id" if step.calls:
            calls = step.calls if len(step.calls) > 1 else step.calls * 2
            same = calls[0].id or "call_same"
            return replace(step, calls=tuple(replace(c, id=same) for c in calls))
    return step


def finish_of(step: ScriptedStep) -> str:
    """The finish reason: as scripted, else what the content implies."""
    return step.finish or ("tool_calls" if step.calls else "stop")


def usage_of(step: ScriptedStep, envelope: Envelope) -> Json:
    """The token counts, as scripted or at four characters each."""
    if step.usage is not None:
        return dict(step.usage)
    written = len(step.text or "") + len(step.reasoning or "")
    written += sum(len(call.name) + len(call.arguments) for call in step.calls)
    completion = max(1, written // CHARS_PER_TOKEN)
    return {
        "prompt_tokens": envelope.prompt_tokens,
        "completion_tokens": completion,
        "total_tokens": envelope.prompt_tokens + completion,
        "prompt_tokens_details": {"cached_tokens": 0},
    }


def whole(step: ScriptedStep, envelope: Envelope) -> Json:
    """The answer to a request without streaming."""
    message: Json = {"role": "assistant", "content": step.text, "refusal": None}
    if step.reasoning is not None:
        message["reasoning_content"] = step.reasoning
    if step.calls:
        message["tool_calls"] = [_call_json(call) for call in step.calls]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_of(step)}
    answer: Json = {
        "id": envelope.id,
        "object": "chat.completion",
        "created": envelope.created,
        "model": envelope.model,
        "choices": [choice],
        "system_fingerprint": None,
    }
    return answer if envelope.no_usage else answer | {"usage": usage_of(step, envelope)}


def _call_json(call: ScriptedCall) -> Json:
    function = {"name": call.name, "arguments": call.arguments}
    plain: Json = {"type": "function", "function": function}
    return {"id": call.id, **plain} if call.id else plain


def stream(step: ScriptedStep, envelope: Envelope) -> list[bytes]:
    """All events of a streamed answer, the closing one included."""
    head: Json = {
        "id": envelope.id,
        "object": "chat.completion.chunk",
        "created": envelope.created,
        "model": envelope.model,
        "system_fingerprint": None,
    }
    with_usage = envelope.include_usage and not envelope.no_usage
    nothing: Json = {"usage": None} if with_usage else {}

    def event(delta: Json, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _sse({**head, "choices": [choice], **nothing})

    opening = None if step.text is None else ""
    events = [event({"role": "assistant", "content": opening, "refusal": None})]
    size = envelope.chunk_size
    events += [event({"reasoning_content": piece}) for piece in _pieces(step.reasoning, size)]
    events += [event({"content": piece}) for piece in _pieces(step.text, size)]
    for index, call in enumerate(step.calls):
        function = {"name": call.name, "arguments": ""}
        opened = {"index": index, **_call_json(call), "function": function}
        events.append(event({"tool_calls": [opened]}))
        for piece in _pieces(call.arguments, size):
            more = {"index": index, "function": {"arguments": piece}}
            events.append(event({"tool_calls": [more]}))
    events.append(event({}, finish_of(step)))
    if with_usage:
        events.append(_sse({**head, "choices": [], "usage": usage_of(step, envelope)}))
    return [*events, DONE]


def broken_stream(events: list[bytes], action: FaultAction | None) -> list[bytes]:
    """The events up to the place where a fault breaks them."""
    place = max(1, min(action.chunks, len(events) - 3)) if action else 0
    match action.kind if action else "":
        case "cut" | "stream_reset" | "stall":
            return events[:place]
        case "bad_chunk":
            return [*events[:place], b'data: {"id": "chatcmpl", "choices": [{"delta":\n\n']
    return events


def _sse(payload: Json) -> bytes:
    return b"data: " + json.dumps(payload).encode() + b"\n\n"


def _pieces(text: str | None, size: int) -> list[str]:
    return [text[i : i + size] for i in range(0, len(text), size)] if text else []


# What a request must be ---------------------------------------------------------------------------


def count_tokens(request: Mapping[str, Any]) -> int:
    """The size of a request at four characters a token; images count nothing."""
    chars = len(json.dumps(request["tools"])) if request.get("tools") else 0
    for message in request.get("messages") or ():
        content = message.get("content")
        if isinstance(content, str):
            chars += len(content)
        elif isinstance(content, list):
            chars += sum(len(str(part.get("text", ""))) for part in content)
        for call in message.get("tool_calls") or ():
            function = call.get("function", {})
            chars += len(str(function.get("name"))) + len(str(function.get("arguments")))
    return chars // CHARS_PER_TOKEN


def check_size(tokens: int, limit: int | None) -> None:
    """Refuse what does not fit the window."""
    if limit is not None and tokens > limit:
        raise ModelRefusal(
            f"This model's maximum context length is {limit} tokens. However, your messages"
            f" resulted in {tokens} tokens. Please reduce the length of the messages.",
            param="messages",
            code="context_length_exceeded",
        )


def check_strictly(request: Mapping[str, Any]) -> None:
    """Refuse what OpenAI refuses: unpaired calls, unknown roles, empty messages, bad tools."""
    messages = request.get("messages")
    if not isinstance(messages, list) or not messages:
        wrong = "Invalid 'messages': empty array. Expected an array with minimum length 1."
        raise ModelRefusal(wrong, param="messages", code="empty_array")
    _check_tools(request.get("tools") or [])
    owed: list[str] = []
    for index, message in enumerate(messages):
        place = f"messages.[{index}]"
        if message.get("role") == "tool":
            owed = _check_result(message, owed, place)
            continue
        _check_paid(owed, index)
        _check_message(message, place)
        owed = _check_calls(message, place)
    _check_paid(owed, len(messages))


def _check_message(message: Mapping[str, Any], place: str) -> None:
    role = message.get("role")
    if role not in ROLES:
        listed = ", ".join(f"'{known}'" for known in ROLES)
        wrong = f"Invalid value: '{role}'. Supported values are: {listed}."
        raise ModelRefusal(wrong, param=f"{place}.role", code="invalid_value")
    content = message.get("content")
    if content is not None and not isinstance(content, str | list):
        wrong = "Invalid type for 'content': expected a string or an array of parts."
        raise ModelRefusal(wrong, param=f"{place}.content", code="invalid_type")
    if not content and not message.get("tool_calls"):
        wrong = f"Invalid value for 'content': expected a string, got {json.dumps(content)}."
        raise ModelRefusal(wrong, param=f"{place}.content")


def _check_calls(message: Mapping[str, Any], place: str) -> list[str]:
    ids: list[str] = []
    for call in message.get("tool_calls") or ():
        function = call.get("function", {})
        if not isinstance(function.get("arguments"), str):
            wrong = "Invalid type for 'arguments': expected a string."
            raise ModelRefusal(wrong, param=f"{place}.tool_calls", code="invalid_type")
        if not _TOOL_NAME.fullmatch(str(function.get("name", ""))):
            wrong = "Invalid 'name': string does not match pattern."
            raise ModelRefusal(wrong, param=f"{place}.tool_calls", code="invalid_value")
        if not call.get("id") or call["id"] in ids:
            wrong = f"Invalid or duplicate tool call id: {json.dumps(call.get('id'))}."
            raise ModelRefusal(wrong, param=f"{place}.tool_calls", code="invalid_value")
        ids.append(call["id"])
    return ids


def _check_result(message: Mapping[str, Any], owed: list[str], place: str) -> list[str]:
    call_id = message.get("tool_call_id")
    if call_id not in owed:
        wrong = (
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding"
            " message with 'tool_calls'."
        )
        raise ModelRefusal(wrong, param=f"{place}.role")
    if not isinstance(message.get("content"), str | list):
        wrong = "Invalid value for 'content': expected a string, got null."
        raise ModelRefusal(wrong, param=f"{place}.content")
    return [other for other in owed if other != call_id]


def _check_paid(owed: list[str], index: int) -> None:
    if owed:
        wrong = (
            "An assistant message with 'tool_calls' must be followed by tool messages responding"
            " to each 'tool_call_id'. The following tool_call_ids did not have response messages:"
            f" {', '.join(owed)}"
        )
        raise ModelRefusal(wrong, param=f"messages.[{index}].role")


def _check_tools(tools: list[Mapping[str, Any]]) -> None:
    names = [str(tool.get("function", {}).get("name", "")) for tool in tools]
    for index, name in enumerate(names):
        if not _TOOL_NAME.fullmatch(name):
            wrong = f"Invalid 'tools[{index}].function.name': does not match pattern."
            raise ModelRefusal(wrong, param=f"tools[{index}].function.name", code="invalid_value")
    if len(set(names)) < len(names):
        raise ModelRefusal("Tool names must be unique.", param="tools")
