"""A scripted model behind an OpenAI-compatible API: for tests, or as a process of its own.

Its answer comes from the queue (`say`, `call` …), else from `reply`, else from the built-in rule
of `bot.lab.model_script`, which echoes and understands `!call`, `!say`, `!wait`, `!long`, `!fault`.
"""

import inspect
import json
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from aiohttp import web
from aiohttp.web_request import BaseRequest, FileField

from bot.lab.faults import COMMON, Fault, FaultAction, matches
from bot.lab.model_script import (
    DefaultRule,
    Json,
    ScriptedCall,
    ScriptedStep,
    last_user_text,
    make_call,
    named_fault,
)
from bot.lab.server import (
    LabServer,
    StandInAnswer,
    common_options,
    json_answer,
    serve_until_interrupted,
)

Said = ScriptedStep | str | Sequence[ScriptedStep | str]
Reply = Callable[[Json], Said | Awaitable[Said]]

Act = Callable[[FaultAction | None], Awaitable[StandInAnswer]]
Asked = tuple[str, Json, Act]
"""A request: the name under which it is counted, its parameters, and what it does."""

CHAT = "chat"
MODELS = "models"
SPEECH = "transcriptions"


SETTINGS = frozenset({"strict", "api_key", "delay_s", "chunk_delay_s", "chunk_size", "hears"})
CHARS_PER_TOKEN = 4
_ENDS: Mapping[str, Literal["reset", "stall"]] = {"stream_reset": "reset", "stall": "stall"}
DONE = b"data: [DONE]\n\n"


class ModelRefusal(Exception):
    """A request that the API would not take."""

    def __init__(
        self, message: str, *, status: int = 400, param: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        about = {"type": "invalid_request_error", "param": param, "code": code}
        self.payload = {"error": {"message": message, **about}}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Queued:
    step: ScriptedStep
    when: Mapping[str, Any]


class ScriptedModel(LabServer):
    """A model that says what it was told to say, and keeps what it was asked."""

    def __init__(
        self,
        *,
        models: Sequence[str] = ("lab-model",),
        api_key: str | None = None,
        strict: bool = False,
        delay_s: float = 0.0,
        chunk_delay_s: float = 0.0,
        chunk_size: int = 24,
        requests_cap: int = 5000,
        host: str = "127.0.0.1",
        port: int = 0,
        log_cap: int = 200_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(host=host, port=port, log_cap=log_cap, clock=clock)
        self.models = tuple(models)
        self.api_key = api_key
        self.strict = strict
        self.delay_s = delay_s
        self.chunk_delay_s = chunk_delay_s
        self.chunk_size = chunk_size
        self.reply: Reply | None = None
        self.hears = "This is what was said in the recording."
        self._default = DefaultRule()
        self._queue: list[_Queued] = []
        self._requests: deque[Json] = deque(maxlen=requests_cap)
        self._answers = 0
        self._calls = 0

    @property
    def api_base(self) -> str:
        """The address that clients are given; it ends in `/v1`."""
        return f"{self.base_url}/v1"

    @property
    def requests(self) -> list[Json]:
        """The bodies of the chat requests in order, refused ones included."""
        return list(self._requests)

    # The script ---------------------------------------------------------------------------------

    def say(self, text: str, *, wait_s: float = 0.0, when: Mapping[str, Any] | None = None) -> None:
        """Queue an answer in words; `when` picks requests by `model`, `stream`, `user`, `user~`.

        A queued answer is given once, to the first request that it fits.
        """
        self.step(ScriptedStep(text=text, wait_s=wait_s), when=when)

    def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | str | None = None,
        *,
        id: str | None = None,
        text: str | None = None,
        when: Mapping[str, Any] | None = None,
    ) -> None:
        """Queue an answer that calls one tool, perhaps after some words."""
        self.step(ScriptedStep(text=text, calls=(make_call(name, arguments, id),)), when=when)

    def calls_together(
        self,
        *calls: tuple[str, Mapping[str, Any] | str] | ScriptedCall,
        text: str | None = None,
        when: Mapping[str, Any] | None = None,
    ) -> None:
        """Queue one answer with several calls, each (name, arguments) or a `ScriptedCall`."""
        made = [one if isinstance(one, ScriptedCall) else make_call(*one) for one in calls]
        self.step(ScriptedStep(text=text, calls=tuple(made)), when=when)

    def step(self, step: ScriptedStep, *, when: Mapping[str, Any] | None = None) -> None:
        """Queue any step."""
        self._queue.append(_Queued(step=step, when=when or {}))

    @property
    def left(self) -> int:
        """Return how many queued answers nobody has asked for yet."""
        return len(self._queue)

    def named_fault(
        self,
        kind: str,
        *,
        times: int | None = 1,
        skip: int = 0,
        chunks: int = 1,
        when: Mapping[str, Any] | None = None,
    ) -> Fault:
        """A fault of chat requests by its name; the names stand in `bot.lab.model_script.NAMED`."""
        action = named_fault(kind, chunks=chunks)
        return self.fault(CHAT, action=action, times=times, skip=skip, when=when)

    # The server ---------------------------------------------------------------------------------

    def controls(self) -> dict[str, Callable[..., Any]]:
        return {
            "calls_together": lambda calls, **more: self.calls_together(
                *(tuple(one) for one in calls), **more
            ),
            "requests": lambda since=0: self.requests[since:],
            "left": lambda: self.left,
            "set": self.change,
        }

    async def serve(self, request: BaseRequest) -> web.StreamResponse:
        async def listed(_: FaultAction | None) -> StandInAnswer:
            rows = [{"id": name, "object": "model", "owned_by": "lab"} for name in self.models]
            return json_answer({"object": "list", "data": rows})

        match request.method, request.path:
            case "POST", "/v1/chat/completions":
                name, params, act = await self._chat(request)
            case "GET", "/v1/models":
                name, params, act = MODELS, {}, listed
            case "POST", "/v1/audio/transcriptions":
                name, params, act = await self._transcription(request)
            case _:
                wrong = ModelRefusal(f"Invalid URL ({request.method} {request.path})", status=404)
                return web.json_response(wrong.payload, status=404)

        async def effect(action: FaultAction | None) -> StandInAnswer:
            given = request.headers.get("Authorization", "").removeprefix("Bearer ")
            try:
                if self.api_key not in {None, given}:
                    wrong_key = "Incorrect API key provided."
                    said = wrong_key if given else "You didn't provide an API key."
                    raise ModelRefusal(said, status=401, code="invalid_api_key")
                return await act(action)
            except ModelRefusal as wrong:
                return json_answer(wrong.payload, status=wrong.status)

        return await self.perform(request, name, params, effect)

    async def _transcription(self, request: BaseRequest) -> Asked:
        """Hear what it was told to hear, in any recording that is not empty."""
        fields = await request.post()
        file = fields.get("file")
        data = file.file.read() if isinstance(file, FileField) else b""
        named = file.filename if isinstance(file, FileField) else ""
        params = {"model": fields.get("model"), "file": named, "bytes": len(data)}

        async def act(_: FaultAction | None) -> StandInAnswer:
            if not data or not params["model"]:
                raise ModelRefusal("you must provide a model parameter and a file", param="file")
            return json_answer({"text": self.hears})

        return SPEECH, params, act

    async def _chat(self, request: BaseRequest) -> Asked:
        try:
            body = json.loads(await request.read())
            asked: Json = body if isinstance(body, dict) else {}
        except ValueError:
            asked = {}
        # Before it is judged: what was sent is worth a look also where it is refused.
        self._requests.append(asked)
        messages = asked.get("messages") or []
        params = {
            "model": asked.get("model"),
            "stream": bool(asked.get("stream")),
            "messages": len(messages),
            "tools": len(asked.get("tools") or ()),
            "user": last_user_text(messages),
        }
        return CHAT, params, partial(self._completion, asked, params)

    async def _completion(
        self, asked: Json, params: Json, action: FaultAction | None
    ) -> StandInAnswer:
        if not isinstance(asked.get("messages"), list) or not asked.get("model"):
            raise ModelRefusal("you must provide a model parameter and messages")
        if self.strict:
            check_pairs(asked["messages"])
        step = await self._next_step(asked, params)
        # A fault from outside goes before one that the script ordered.
        fault = step.fault if action is None or action.kind in COMMON else action
        # A common fault of the step is acted out by the server, after the answer is made.
        later = fault if fault is not None and fault.kind in COMMON else None
        shape = fault.kind if fault is not None and later is None else ""
        step = shaped(step, shape)
        calls = []
        for call in step.calls:
            self._calls += 1
            made = call if call.id is not None else replace(call, id=f"call_{self._calls:08d}")
            calls.append(made)
        step = replace(step, calls=tuple(calls))
        self._answers += 1
        head = {
            "id": f"chatcmpl-{self._answers:08d}",
            "created": int(time.time()),
            "model": str(asked["model"]),
        }
        usage = usage_of(step, count_tokens(asked))
        if params["stream"]:
            wanted = bool((asked.get("stream_options") or {}).get("include_usage"))
            events = stream(step, head, usage if wanted else None, size=max(1, self.chunk_size))
            answer = StandInAnswer(
                headers={"Content-Type": "text/event-stream; charset=utf-8"},
                chunks=broken_stream(events, shape, fault.chunks if fault else 1),
                chunk_after_s=self.chunk_delay_s,
            )
        else:
            answer = json_answer(whole(step, head, usage))
            if shape in {"bad_chunk", "cut"}:
                answer = replace(answer, body=answer.body[: len(answer.body) // 2])
            if shape == "stall":
                answer = replace(answer, chunks=(answer.body[:10],))
        return replace(
            answer,
            shown={"text": step.text, "calls": [call.name for call in step.calls]},
            end=_ENDS.get(shape, "whole"),
            fault=later,
            first_after_s=self.delay_s + step.wait_s,
        )

    async def _next_step(self, asked: Json, params: Json) -> ScriptedStep:
        for place, queued in enumerate(self._queue):
            if matches(queued.when, params):
                del self._queue[place]
                return queued.step
        said = (self.reply or self._default)(asked)
        if inspect.isawaitable(said):
            said = await said
        steps = [said] if isinstance(said, ScriptedStep | str) else list(said)
        first, *rest = [ScriptedStep(text=one) if isinstance(one, str) else one for one in steps]
        # In front of what waits: the rule's answers belong together.
        self._queue[:0] = [_Queued(step=step, when={}) for step in rest]
        return first

    def change(self, **settings: Any) -> None:
        """Change settings by their names, from now on."""
        for name, value in settings.items():
            if name not in SETTINGS:
                raise LookupError(name)
            setattr(self, name, value)


# The format ---------------------------------------------------------------------------------------


def shaped(step: ScriptedStep, kind: str) -> ScriptedStep:
    """Deform a step as a fault of this kind does; faults of the stream alone leave it as it is."""
    match kind:
        case "empty":
            return replace(step, text="", calls=(), finish="stop")
        case "reasoning_only":
            thought = "The user wants something. I should answer."
            return replace(step, text=None, calls=(), reasoning=thought, finish="stop")
        case "content_filter":
            return replace(step, text="", calls=(), finish="content_filter")
        case "length":
            calls = tuple(replace(c, arguments=_half(c.arguments)) for c in step.calls[-1:])
            text = step.text if step.calls else _half(step.text or "")
            return replace(step, text=text, calls=(*step.calls[:-1], *calls), finish="length")
        case "bad_arguments":
            broken = (replace(c, arguments=c.arguments[:-1] + ', "x": nope') for c in step.calls)
            return replace(step, calls=tuple(broken))
    return step


def _half(text: str) -> str:
    return text[: len(text) // 2]


def usage_of(step: ScriptedStep, prompt_tokens: int) -> Json:
    """The token counts, as scripted or at four characters each."""
    if step.usage is not None:
        return dict(step.usage)
    written = len(step.text or "") + len(step.reasoning or "")
    written += sum(len(call.name) + len(call.arguments) for call in step.calls)
    completion = max(1, written // CHARS_PER_TOKEN)
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion,
        "total_tokens": prompt_tokens + completion,
        "prompt_tokens_details": {"cached_tokens": 0},
    }


def _finish(step: ScriptedStep) -> str:
    return step.finish or ("tool_calls" if step.calls else "stop")


def whole(step: ScriptedStep, head: Json, usage: Json) -> Json:
    """The answer to a request without streaming."""
    message: Json = {"role": "assistant", "content": step.text, "refusal": None}
    if step.reasoning is not None:
        message["reasoning_content"] = step.reasoning
    if step.calls:
        message["tool_calls"] = [_call_json(call, call.arguments) for call in step.calls]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(step)}
    return {**head, "object": "chat.completion", "choices": [choice], "usage": usage}


def _call_json(call: ScriptedCall, arguments: str) -> Json:
    function = {"name": call.name, "arguments": arguments}
    return {"id": call.id, "type": "function", "function": function}


def stream(step: ScriptedStep, head: Json, usage: Json | None, *, size: int) -> list[bytes]:
    """All events of a streamed answer, the closing one included."""
    head = {**head, "object": "chat.completion.chunk"}

    def event(delta: Json, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        # Where usage is asked for, it stands in each event and is null until the last.
        return _sse({**head, "choices": [choice], **({} if usage is None else {"usage": None})})

    def pieces(text: str | None) -> list[str]:
        return [text[i : i + size] for i in range(0, len(text), size)] if text else []

    opening = None if step.text is None else ""
    events = [event({"role": "assistant", "content": opening, "refusal": None})]
    events += [event({"reasoning_content": piece}) for piece in pieces(step.reasoning)]
    events += [event({"content": piece}) for piece in pieces(step.text)]
    for index, call in enumerate(step.calls):
        events.append(event({"tool_calls": [{"index": index, **_call_json(call, "")}]}))
        for piece in pieces(call.arguments):
            more = {"index": index, "function": {"arguments": piece}}
            events.append(event({"tool_calls": [more]}))
    events.append(event({}, _finish(step)))
    if usage is not None:
        events.append(_sse({**head, "choices": [], "usage": usage}))
    return [*events, DONE]


def broken_stream(events: list[bytes], kind: str, chunks: int) -> tuple[bytes, ...]:
    """The events up to the place where a fault of this kind breaks them."""
    before = events[: max(1, min(chunks, len(events) - 3))]
    if kind in {"cut", "stream_reset", "stall"}:
        return tuple(before)
    if kind == "bad_chunk":
        return (*before, b'data: {"id": "chatcmpl", "choices": [{"delta":\n\n')
    return tuple(events)


def _sse(payload: Json) -> bytes:
    return b"data: " + json.dumps(payload).encode() + b"\n\n"


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


def check_pairs(messages: list[Json]) -> None:
    """Refuse what strict providers do: an empty message, a call without its result or the other
    way round. `tests/agent/pairing.py` knows more of this."""
    owed: list[str] = []
    for index, message in enumerate([*messages, {"role": "user", "content": "the end"}]):
        place, content = f"messages.[{index}]", message.get("content")
        if message.get("role") == "tool":
            if message.get("tool_call_id") not in owed:
                wrong = "messages with role 'tool' must be a response to a preceding 'tool_calls'"
                raise ModelRefusal(f"Invalid parameter: {wrong}.", param=f"{place}.role")
            owed.remove(message["tool_call_id"])
            continue
        if owed:
            wrong = "'tool_calls' must be followed by tool messages responding to each of them"
            raise ModelRefusal(f"{wrong}: {', '.join(owed)}", param=f"{place}.role")
        owed = [call["id"] for call in message.get("tool_calls") or ()]
        if len(set(owed)) < len(owed) or not all(owed):
            wrong = f"Invalid or duplicate tool call id: {json.dumps(owed)}."
            raise ModelRefusal(wrong, param=f"{place}.tool_calls", code="invalid_value")
        if not content and not owed:
            wrong = f"Invalid value for 'content': expected a string, got {json.dumps(content)}."
            raise ModelRefusal(wrong, param=f"{place}.content")


def main() -> None:
    """Run as a process of its own."""
    parser = common_options("A scripted model behind an OpenAI-compatible API.")
    parser.add_argument("--model", action="append", dest="models", help="may be given repeatedly")
    parser.add_argument("--api-key")
    parser.add_argument("--strict", action="store_true", help="refuse unpaired tool calls")
    parser.add_argument("--delay-s", type=float, default=0.0)
    parser.add_argument("--chunk-delay-s", type=float, default=0.0)
    parser.add_argument("--chunk-size", type=int, default=24)
    given = vars(parser.parse_args())
    given["models"] = given["models"] or ["lab-model"]
    serve_until_interrupted(lambda: ScriptedModel(**given))


if __name__ == "__main__":
    main()
