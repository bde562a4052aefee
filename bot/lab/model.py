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
from typing import Any

from aiohttp import web
from aiohttp.web_request import BaseRequest, FileField

from bot.lab.faults import COMMON, Fault, FaultAction, matches
from bot.lab.model_script import (
    DefaultRule,
    Json,
    ScriptedCall,
    ScriptedStep,
    from_raw,
    last_user_text,
    make_call,
    named_fault,
)
from bot.lab.model_wire import (
    Envelope,
    ModelRefusal,
    broken_stream,
    check_size,
    check_strictly,
    count_tokens,
    shaped,
    stream,
    whole,
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

CHAT = "chat"
MODELS = "models"
SPEECH = "transcriptions"


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
        context_limit_tokens: int | None = None,
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
        self.context_limit_tokens = context_limit_tokens
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

    def answer(self, raw: Mapping[str, Any], *, when: Mapping[str, Any] | None = None) -> None:
        """Queue a whole response, a message, or the flat form of the recorded cases."""
        self.step(from_raw(raw), when=when)

    def step(self, step: ScriptedStep, *, when: Mapping[str, Any] | None = None) -> None:
        """Queue any step."""
        self._queue.append(_Queued(step=step, when=when or {}))

    @property
    def left(self) -> int:
        """How many queued answers nobody has asked for yet."""
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
        ours: dict[str, Callable[..., Any]] = {
            "say": self.say,
            "call": self.call,
            "calls_together": lambda calls, **more: self.calls_together(
                *(tuple(one) for one in calls), **more
            ),
            "answer": self.answer,
            "named_fault": lambda **asked: self.named_fault(**asked) and None,
            "requests": lambda since=0: self.requests[since:],
            "left": lambda: self.left,
            "set": self._set,
        }
        return super().controls() | ours

    async def serve(self, request: BaseRequest) -> web.StreamResponse:
        match request.method, request.path:
            case "POST", "/v1/chat/completions":
                return await self._chat(request)
            case "GET", "/v1/models":
                return await self.perform(request, MODELS, {}, self._list_models(request))
            case "POST", "/v1/audio/transcriptions":
                return await self._transcription(request)
        wrong = ModelRefusal(f"Invalid URL ({request.method} {request.path})", status=404)
        return web.json_response(wrong.payload, status=404)

    def _list_models(
        self, request: BaseRequest
    ) -> Callable[[FaultAction | None], Awaitable[StandInAnswer]]:
        async def effect(_: FaultAction | None) -> StandInAnswer:
            try:
                self._check_key(request)
            except ModelRefusal as wrong:
                return json_answer(wrong.payload, status=wrong.status)
            rows = [
                {"id": name, "object": "model", "created": 0, "owned_by": "lab"}
                for name in self.models
            ]
            return json_answer({"object": "list", "data": rows})

        return effect

    async def _transcription(self, request: BaseRequest) -> web.StreamResponse:
        """Hears what it was told to hear, in any recording that is not empty."""
        fields = await request.post()
        file = fields.get("file")
        data = file.file.read() if isinstance(file, FileField) else b""
        named = file.filename if isinstance(file, FileField) else ""
        params = {"model": fields.get("model"), "file": named, "bytes": len(data)}

        async def effect(_: FaultAction | None) -> StandInAnswer:
            try:
                self._check_key(request)
                if not data or not params["model"]:
                    raise ModelRefusal(
                        "you must provide a model parameter and a file", param="file"
                    )
            except ModelRefusal as wrong:
                return json_answer(wrong.payload, status=wrong.status)
            return json_answer({"text": self.hears})

        return await self.perform(request, SPEECH, params, effect)

    async def _chat(self, request: BaseRequest) -> web.StreamResponse:
        try:
            body = json.loads(await request.read())
            asked: Json = body if isinstance(body, dict) else {}
        except ValueError:
            asked = {}
        self._requests.append(asked)
        messages = asked.get("messages") or []
        params = {
            "model": asked.get("model"),
            "stream": bool(asked.get("stream")),
            "messages": len(messages),
            "tools": len(asked.get("tools") or ()),
            "user": last_user_text(messages),
        }

        async def effect(action: FaultAction | None) -> StandInAnswer:
            try:
                return await self._completion(request, asked, params, action)
            except ModelRefusal as wrong:
                return json_answer(wrong.payload, status=wrong.status)

        return await self.perform(request, CHAT, params, effect)

    async def _completion(
        self, request: BaseRequest, asked: Json, params: Json, action: FaultAction | None
    ) -> StandInAnswer:
        self._check_key(request)
        if not isinstance(asked.get("messages"), list) or not asked.get("model"):
            raise ModelRefusal("you must provide a model parameter and messages")
        if self.strict:
            check_strictly(asked)
        tokens = count_tokens(asked)
        check_size(tokens, self.context_limit_tokens)
        step = await self._next_step(asked, params)
        fault = step.fault if action is None or action.kind in COMMON else action
        # A common fault of the step is acted out by the server, after the answer is made.
        later = fault if fault is not None and fault.kind in COMMON else None
        shape = fault if later is None else None
        step = self._with_ids(shaped(step, shape))
        envelope = self._envelope(asked, tokens, no_usage=bool(shape and shape.kind == "no_usage"))
        answer = self._written(step, envelope, shape, streamed=params["stream"])
        wait_s = self.delay_s + step.wait_s
        return replace(answer, fault=later, first_after_s=wait_s)

    def _written(
        self, step: ScriptedStep, envelope: Envelope, shape: FaultAction | None, *, streamed: bool
    ) -> StandInAnswer:
        shown = {"text": step.text, "calls": [call.name for call in step.calls]}
        kind = shape.kind if shape else ""
        if not streamed:
            plain = json_answer(whole(step, envelope))
            return replace(_broken_whole(plain, kind), shown=shown)
        events = broken_stream(stream(step, envelope), shape)
        return StandInAnswer(
            headers={"Content-Type": "text/event-stream; charset=utf-8"},
            shown=shown,
            chunks=tuple(events),
            chunk_after_s=self.chunk_delay_s,
            end="reset" if kind == "stream_reset" else "stall" if kind == "stall" else "whole",
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
        self._queue[:0] = [_Queued(step=step, when={}) for step in rest]
        return first

    def _with_ids(self, step: ScriptedStep) -> ScriptedStep:
        if not step.calls:
            return step
        calls = []
        for call in step.calls:
            self._calls += 1
            made = call if call.id is not None else replace(call, id=f"call_{self._calls:08d}")
            calls.append(made)
        return replace(step, calls=tuple(calls))

    def _envelope(self, asked: Json, tokens: int, *, no_usage: bool) -> Envelope:
        self._answers += 1
        return Envelope(
            id=f"chatcmpl-{self._answers:08d}",
            model=str(asked["model"]),
            created=int(time.time()),
            prompt_tokens=tokens,
            chunk_size=max(1, self.chunk_size),
            include_usage=bool((asked.get("stream_options") or {}).get("include_usage")),
            no_usage=no_usage,
        )

    def _check_key(self, request: BaseRequest) -> None:
        if self.api_key is None:
            return
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if given != self.api_key:
            wrong = "Incorrect API key provided." if given else "You didn't provide an API key."
            raise ModelRefusal(wrong, status=401, code="invalid_api_key")

    def _set(self, **settings: Any) -> None:
        known = {
            "strict",
            "api_key",
            "context_limit_tokens",
            "delay_s",
            "chunk_delay_s",
            "chunk_size",
            "hears",
        }
        for name, value in settings.items():
            if name not in known:
                raise LookupError(name)
            setattr(self, name, value)


def _broken_whole(plain: StandInAnswer, kind: str) -> StandInAnswer:
    match kind:
        case "bad_chunk" | "cut":
            return replace(plain, body=plain.body[: len(plain.body) // 2])
        case "stream_reset":
            return replace(plain, end="reset")
        case "stall":
            return replace(plain, chunks=(plain.body[:10],), end="stall")
    return plain


def main() -> None:
    """Run as a process of its own."""
    parser = common_options("A scripted model behind an OpenAI-compatible API.")
    parser.add_argument("--model", action="append", dest="models", help="may be given repeatedly")
    parser.add_argument("--api-key")
    parser.add_argument("--strict", action="store_true", help="refuse unpaired tool calls")
    parser.add_argument("--context-limit-tokens", type=int)
    parser.add_argument("--delay-s", type=float, default=0.0)
    parser.add_argument("--chunk-delay-s", type=float, default=0.0)
    parser.add_argument("--chunk-size", type=int, default=24)
    given = vars(parser.parse_args())
    given["models"] = given["models"] or ["lab-model"]
    serve_until_interrupted(lambda: ScriptedModel(**given))


if __name__ == "__main__":
    main()
