"""What the scripted model says: steps, and the tiny language by which a black box orders them.

Called by `bot.lab.model` for each request. Nothing here knows HTTP.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bot.lab.faults import FaultAction, answer, bad_gateway, drop, hold, reset

Json = dict[str, Any]
RESULT_SHOWN_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedCall:
    """One tool call; `arguments` is JSON text, sent as it is. An id of None is made up."""

    name: str
    arguments: str = "{}"
    id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedStep:
    """One answer of the model: text, calls, or both, and what goes wrong with it."""

    text: str | None = None
    calls: tuple[ScriptedCall, ...] = ()
    reasoning: str | None = None
    finish: str | None = None
    usage: Mapping[str, Any] | None = None
    wait_s: float = 0.0
    fault: FaultAction | None = None


def say(text: str, *, wait_s: float = 0.0) -> ScriptedStep:
    """Answer with text."""
    return ScriptedStep(text=text, wait_s=wait_s)


def call(
    name: str, arguments: Mapping[str, Any] | str | None = None, id: str | None = None
) -> ScriptedStep:
    """Answer with one tool call; a str goes out as the argument text, well-formed or not."""
    return ScriptedStep(calls=(make_call(name, arguments, id),))


def make_call(
    name: str, arguments: Mapping[str, Any] | str | None = None, call_id: str | None = None
) -> ScriptedCall:
    """A call whose arguments are given as a mapping or as text."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    return ScriptedCall(name=name, arguments=text, id=call_id)


# The faults that have a name ----------------------------------------------------------------------


def _refusal(status: int, message: str, kind: str, code: str | None, **headers: str) -> FaultAction:
    error = {"message": message, "type": kind, "param": None, "code": code}
    return answer(status, {"error": error}, headers=headers)


SHAPES = frozenset(
    {
        "empty",
        "reasoning_only",
        "length",
        "bad_chunk",
        "bad_arguments",
        "cut",
        "stream_reset",
        "stall",
        "content_filter",
    }
)
_QUOTA = "You exceeded your current quota, please check your plan and billing details."
NAMED: Mapping[str, FaultAction] = {
    **{kind: FaultAction(kind=kind, after=True) for kind in SHAPES},
    "400": _refusal(400, "Bad request on demand.", "invalid_request_error", None),
    "401": _refusal(401, "Incorrect API key provided.", "invalid_request_error", "invalid_api_key"),
    "402": _refusal(402, _QUOTA, "insufficient_quota", "insufficient_quota"),
    "429": _refusal(
        429,
        "Rate limit reached for requests.",
        "requests",
        "rate_limit_exceeded",
        **{"Retry-After": "1"},
    ),
    "insufficient_quota": _refusal(429, _QUOTA, "insufficient_quota", "insufficient_quota"),
    "500": _refusal(
        500, "The server had an error while processing your request.", "server_error", None
    ),
    "502": bad_gateway(),
    "503": _refusal(503, "The server is overloaded.", "server_error", None),
    "529": _refusal(529, "Overloaded", "overloaded_error", None),
    "context": _refusal(
        400,
        "This model's maximum context length is 8000 tokens. Please reduce the length.",
        "invalid_request_error",
        "context_length_exceeded",
    ),
    "drop": drop(),
    "reset": reset(),
    "hold": hold(),
}


def named_fault(kind: str, *, chunks: int = 1) -> FaultAction:
    """A fault by its name; `chunks` says after how many a stream breaks (cut, stall …)."""
    if kind in SHAPES:
        return FaultAction(kind=kind, chunks=chunks, after=True)
    return NAMED[kind]


# The built-in rule --------------------------------------------------------------------------------


def last_user_text(messages: list[Json]) -> str:
    """Return what the person said last: the last text part that is neither a note in brackets nor
    context.

    Parts before it are older messages, which had no answer.
    """
    for message in reversed(messages):
        if message.get("role") == "user":
            return _person_text(message.get("content"))
    return ""


_NOTE = re.compile(r"\[(?!In reply to: )[^\[\]\n]*\]")


def _person_text(content: Any) -> str:
    if isinstance(content, list):
        texts = [
            p.get("text", "") for p in content if isinstance(p, dict) and p.get("type") == "text"
        ]
        # A note stands alone, or above the text of a file that came.
        said = [text for text in texts if not _NOTE.fullmatch(text.partition("\n")[0])]
        words = [_before_context(text) for text in said]
        return next((one for one in reversed(words) if one), texts[0] if texts else "")
    return _before_context(content if isinstance(content, str) else "")


def _before_context(text: str) -> str:
    return re.split(r"^<context", text, maxsplit=1, flags=re.MULTILINE)[0].strip()


@dataclass(slots=True)
class ScriptOrders:
    """The `!` lines of one text, read."""

    rounds: list[tuple[ScriptedCall, ...]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    plain: list[str] = field(default_factory=list)
    wait_s: float = 0.0
    fault: str = ""
    fault_times: float = 1


_LINE = re.compile(r"!(call|then|say|wait|long|fault)\b ?(.*)", re.DOTALL)


def read_orders(text: str) -> ScriptOrders:
    """Read `!call NAME {json}`, `!then NAME {json}`, `!say TEXT`, `!wait S`, `!long N` and
    `!fault KIND [TIMES|always]`; other lines are plain text.
    """
    orders = ScriptOrders()
    first: list[ScriptedCall] = []
    later: list[tuple[ScriptedCall, ...]] = []
    for line in text.split("\n"):
        match = _LINE.fullmatch(line.strip())
        if match is None:
            orders.plain.append(line)
            continue
        word, rest = match.groups()
        match word:
            case "call":
                first.append(_read_call(rest))
            case "then":
                later.append((_read_call(rest),))
            case "say":
                orders.said.append(rest)
            case "wait":
                orders.wait_s = float(rest or 0)
            case "long":
                orders.said.append(prose(int(rest or 1000)))
            case "fault":
                kind, _, times = rest.partition(" ")
                if kind not in NAMED:
                    raise ValueError(f"no fault is called {kind!r}")
                orders.fault = kind
                orders.fault_times = float("inf") if times == "always" else int(times or 1)
    orders.rounds = [tuple(first), *later] if first else later
    return orders


def _read_call(rest: str) -> ScriptedCall:
    name, _, arguments = rest.strip().partition(" ")
    return ScriptedCall(name=name, arguments=arguments.strip() or "{}")


class DefaultRule:
    """Echo, or follow the orders in the last user text.

    It keeps one thing between requests: how often a text's `!fault` struck already.
    """

    def __init__(self) -> None:
        self._struck: Counter[str] = Counter()

    def __call__(self, request: Mapping[str, Any]) -> ScriptedStep:
        messages: list[Json] = list(request.get("messages") or ())
        text = last_user_text(messages)
        try:
            orders = read_orders(text)
        except ValueError as wrong:
            return say(f"cannot read the orders: {wrong}")
        step = self._answer(orders, text, messages, offered=bool(request.get("tools")))
        # The bot asks again with the same text, which is how it is known that it did.
        if orders.fault and self._struck[text] < orders.fault_times:
            self._struck[text] += 1
            return replace(step, fault=named_fault(orders.fault, chunks=2))
        return step

    def _answer(
        self, orders: ScriptOrders, text: str, messages: list[Json], *, offered: bool
    ) -> ScriptedStep:
        done, results = 0, list[str]()
        # Rounds of earlier questions do not count: each question has its own orders.
        for message in reversed(messages):
            role = message.get("role")
            if role == "user":
                break
            if role == "assistant" and message.get("tool_calls"):
                done += 1
            elif role == "tool":
                content = message.get("content")
                results.append(content if isinstance(content, str) else _person_text(content))
        if offered and done < len(orders.rounds):
            return ScriptedStep(calls=orders.rounds[done], wait_s=orders.wait_s)
        if orders.said:
            return say("\n".join(orders.said), wait_s=orders.wait_s)
        first_line = text.partition("\n")[0]
        if results:
            shown = results[0][:RESULT_SHOWN_CHARS]
            return say(f"done: {shown} | {first_line}", wait_s=orders.wait_s)
        plain = "\n".join(orders.plain).strip() or text
        return say(f"You said: {plain}", wait_s=orders.wait_s)


_PARAGRAPHS = (
    "## Part {n}\n\n",
    "This is **paragraph {n}** of a long answer, with `code_{n}` and a"
    " [link](https://example.com/{n}).\n\n",
    "- first point of {n}\n- second point, 2 < 3 & 3 > 2\n\n",
    "```python\nfor step in range({n}):\n    print(step)\n```\n\n",
    "Plain words go on for a while, so that the text has lines of very different lengths and a"
    " reader of part {n} can tell them apart.\n\n",
)


def prose(chars: int) -> str:
    """Exactly so many characters of numbered prose with Markdown."""
    pieces: list[str] = []
    length = 0
    number = 0
    while length < chars:
        piece = _PARAGRAPHS[number % len(_PARAGRAPHS)].format(n=number)
        pieces.append(piece)
        length += len(piece)
        number += 1
    return "".join(pieces)[:chars]
