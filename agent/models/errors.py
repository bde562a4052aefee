"""What a server said instead of an answer, as one of our errors with a sentence for the owner.

The wordings are those of OpenAI, vLLM, llama.cpp, Ollama, LM Studio, Groq, Mistral, DeepSeek, xAI,
OpenRouter, Gemini, Bedrock and of litellm, which words some itself. No sentence ever holds a key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from memory.records.errors import (
    AssistantError,
    AuthRefused,
    BillingRefused,
    BrokenAnswer,
    ContentFiltered,
    ContextTooLong,
    MalformedCall,
    ModelRefused,
    ModelTimeout,
    Overloaded,
    RateLimited,
)

if TYPE_CHECKING:
    import httpx


QUOTE_CHARS_MAX = 300

_CONTEXT = re.compile(
    r"context_length_exceeded|exceed_context_size|request_too_large|string_above_max_length"
    r"|maximum context length|available context size|context window|maximum prompt length"
    r"|context length exceeded|exceeds? (?:the |maximum |the maximum )?context length"
    r"|context the overflows|context length of only|maximum model length|max_model_len"
    r"|reduce the length of|(?:prompt|input|request) is too long|too many (?:input )?tokens"
    r"|exceeds the maximum number of tokens|ContextWindowExceeded",
    re.IGNORECASE,
)
_BILLING = re.compile(
    r"insufficient_quota|exceeded your current quota|billing|\bcredits?\b|insufficient balance",
    re.IGNORECASE,
)
_FILTER = re.compile(
    r"content_filter|content_policy|content management policy|requires moderation|was flagged",
    re.IGNORECASE,
)
_MALFORMED = re.compile(
    r"tool_use_failed|malformed_function_call|failed to call a function|tool call validation failed"
    r"|failed to parse tool call|error parsing tool call|invalid tool call",
    re.IGNORECASE,
)
_KEY_REFUSED = re.compile(r"API_KEY_INVALID|API key not valid|AuthenticationError|UnrecognizedClie")
_HOPELESS = re.compile(r"requires more system memory|unable to load model", re.IGNORECASE)
_TRY_AGAIN = re.compile(r"try again in (?:(\d+)m)?([\d.]+)(ms|s)\b", re.IGNORECASE)
_RETRY_DELAY = re.compile(r'"retryDelay":\s*"([\d.]+)s"')

# What an error inside a stream calls itself, as the status that it would have had before it.
_STATUS_OF = (
    (re.compile(r"rate_?limit|too_many|insufficient_quota|quota", re.IGNORECASE), 429),
    (re.compile(r"auth|permission", re.IGNORECASE), 401),
    (re.compile(r"not_?found", re.IGNORECASE), 404),
    (re.compile(r"overload|unavailable|server", re.IGNORECASE), 503),
    (re.compile(r"invalid|bad_?request|context|content", re.IGNORECASE), 400),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLabel:
    """Whom we speak to, for sentences: the host is named, the secrets are taken out."""

    api_base: str
    secrets: tuple[str, ...] = ()

    @property
    def host(self) -> str:
        """Host and port, without a user or password that stood in the address."""
        parts = urlsplit(self.api_base)
        port = f":{parts.port}" if parts.port else ""
        return f"{parts.hostname or 'the model server'}{port}"

    def quote(self, text: str) -> str:
        """The server's own words, ready to stand at the end of a sentence."""
        for secret in self.secrets:
            if len(secret) > 3:
                text = text.replace(secret, "[key]")
        text = " ".join(re.sub(r"<[^>]{0,500}>", " ", text).split())
        if len(text) > QUOTE_CHARS_MAX:
            text = text[: QUOTE_CHARS_MAX - 1] + "…"
        return f'; it said: "{text}"' if text else ""


@dataclass(slots=True, kw_only=True, eq=False)
class CallProgress:
    """Who was asked, and how far the answer had come: `streams` once a library hands it on,
    `begun` once a piece of it came."""

    server: ServerLabel
    name: str
    streams: bool = False
    begun: bool = False

    def unreached(self, reason: str, *, reached: bool = False) -> AssistantError:
        """Return the error of a connection that could not be made, or broke."""
        said = self.server.quote(reason).replace("it said", "reason")
        host = self.server.host
        if self.begun or reached:
            return BrokenAnswer(f"The connection to {host} broke during the answer{said}")
        return Overloaded(
            f"{host} cannot be reached: is it running, and is the address right{said}"
        )

    def broken(self, why: str) -> BrokenAnswer:
        """Return the error of an answer that came but cannot be used."""
        return BrokenAnswer(f"The answer of {self.server.host} cannot be read: {why}")


def refused(
    server: ServerLabel, status: int, text: str, headers: Mapping[str, str] | None = None
) -> AssistantError:
    """Return the error of an HTTP answer. `headers` may be of any case-insensitive mapping."""
    try:
        data: object = json.loads(text)
    except ValueError:
        data = text
    return _refusal(server, status, data, text, headers or {})


def refused_in_stream(server: ServerLabel, data: object) -> AssistantError:
    """Return the error of an `error` object that came where an answer was due."""
    error = _error_of(data)
    code = error.get("code") if isinstance(error, dict) else None
    if isinstance(code, str) and code.isdigit():
        code = int(code)
    if not isinstance(code, int) or not 400 <= code <= 599:
        marks = _marks(error)
        code = next((status for mark, status in _STATUS_OF if mark.search(marks)), 500)
    return _refusal(server, code, data, json.dumps(data), {})


def retry_after(headers: Mapping[str, str], text: str, *, now: datetime) -> float | None:
    """Return the seconds that the server asks us to wait: its headers first, then its words."""
    ms = _number(headers.get("retry-after-ms"))
    if ms is not None:
        return ms / 1000
    header = headers.get("retry-after")
    if header is not None:
        seconds = _number(header)
        if seconds is not None:
            return seconds
        # An HTTP date counts by the server's own clock where it tells it.
        then, start = _date(header), _date(headers.get("date", ""))
        return max(0.0, (then - (start or now)).total_seconds()) if then else None
    if delay := _RETRY_DELAY.search(text):
        return float(delay[1])
    if found := _TRY_AGAIN.search(text):
        minutes, number, unit = found.groups()
        value = _number(number) or 0.0
        return int(minutes or 0) * 60 + (value / 1000 if unit.lower() == "ms" else value)
    return None


def _refusal(
    server: ServerLabel, status: int, data: object, text: str, headers: Mapping[str, str]
) -> AssistantError:
    """Wordings first, since servers put them under all sorts of statuses; then the status."""
    error = _error_of(data)
    words = _words(error)
    marks = f"{_marks(error)} {words}"
    host, said = f"{server.host} (HTTP {status})", server.quote(words)
    pause = retry_after(headers, text, now=datetime.now(UTC))
    if status == 413 or _CONTEXT.search(marks):
        return ContextTooLong(f"The request is too long for the model at {host}{said}")
    # Groq's rate limits advertise its billing page, and Gemini words a pause of seconds like an
    # empty account: the code decides at the one, the delay at the other.
    is_pause = "rate_limit" in marks or (_RETRY_DELAY.search(text) and "PerDay" not in text)
    if status == 402 or (400 <= status < 500 and not is_pause and _BILLING.search(marks)):
        return BillingRefused(
            f"The account at {host} has no credit or quota left: add credit there, or choose "
            f"another model{said}"
        )
    if status < 500 and _FILTER.search(marks):
        return ContentFiltered(f"The content filter at {host} refused the request{said}")
    if _MALFORMED.search(marks):
        return MalformedCall(f"The model wrote a tool call that {host} could not read{said}")
    if status in (401, 403) or (status == 400 and _KEY_REFUSED.search(text)):
        return AuthRefused(
            f"{host} did not accept the API key: check llm.api_key or the provider's environment "
            f"variable{said}"
        )
    if status == 429:
        return RateLimited(f"{host} asks for a pause{said}", retry_after_s=pause)
    if status == 408:
        return ModelTimeout(f"{host} ran out of time{said}", retry_after_s=pause)
    if status == 425 or (status >= 500 and not _HOPELESS.search(marks)):
        return Overloaded(f"{host} has trouble of its own{said}", retry_after_s=pause)
    if status == 404:
        why = f"{host} does not know this model or address: check llm.model and llm.api_base"
    elif 300 <= status < 400:
        why = f"{host} points to another address: correct llm.api_base"
    else:
        why = f"{host} refused the request: check llm.model and its settings"
    return ModelRefused(why + said)


def _error_of(data: object) -> object:
    if isinstance(data, list) and data:
        data = data[0]
    return data.get("error", data) if isinstance(data, dict) else data


def _marks(error: object) -> str:
    """Return code and type of an error, as one text to search."""
    if not isinstance(error, dict):
        return ""
    return " ".join(str(error[key]) for key in ("code", "type", "status") if error.get(key))


def _words(error: object) -> str:
    if isinstance(error, dict):
        error = next((error[k] for k in ("message", "detail", "error") if error.get(k)), error)
    return error if isinstance(error, str) else json.dumps(error)


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text is not None else -1.0
    except ValueError:
        return None
    return value if 0 <= value < 1e7 else None


def _date(text: str) -> datetime | None:
    try:
        read = parsedate_to_datetime(text)
    except (ValueError, TypeError):
        return None
    return read if read.tzinfo else read.replace(tzinfo=UTC)


# --- failures -----------------------------------------------------------------------------------
#
# Whatever a library that speaks to providers raised, as one of our errors. The wrappings differ
# from provider to provider, so what counts is what lies at the bottom: a server's own answer is
# read as the direct client would read it.

UNREADABLE = "a chunk of it is no JSON"
"""What our own connection says of a stream that the library would pass over in silence."""

_PREFIXES = re.compile(r"^(?:litellm\.)?(?:\w+(?:Error|Exception|Timeout): ?|\w+Exception - )+")


def failure(error: Exception, asked: CallProgress) -> AssistantError:
    """Return the error of ours. Never holds a key."""
    import httpx

    chain = list(_chain(error))
    for cause in reversed(chain):
        if isinstance(cause, httpx.HTTPStatusError):
            response = cause.response
            return refused(asked.server, response.status_code, _text(response), response.headers)
    bottom = chain[-1]
    for cause in reversed(chain):
        if isinstance(cause, httpx.TimeoutException):
            return ModelTimeout(f"{asked.server.host} did not answer in time")
        if isinstance(cause, httpx.TransportError):
            if UNREADABLE in f"{cause}":
                return asked.broken(UNREADABLE)
            reason = bottom.strerror if isinstance(bottom, OSError) else ""
            # Of some providers the library hands on a stream before it has asked them at all.
            reached = asked.streams and not isinstance(cause, httpx.ConnectError)
            return asked.unreached(reason or f"{cause}", reached=reached)
        if isinstance(cause, ImportError):
            return ModelRefused(
                f"{asked.name} needs a library that is not installed ({cause.name}): install it "
                "beside the bot, or choose another model"
            )
    is_own = type(bottom).__module__.partition(".")[0] != "openai"
    if asked.streams and is_own and not hasattr(bottom, "status_code"):
        return asked.broken(f"{type(bottom).__name__}{asked.server.quote(f'{bottom}')}")
    for cause in reversed(chain):
        if isinstance(body := getattr(cause, "body", None), dict) and body.get("message"):
            return refused_in_stream(asked.server, {"error": body})
    return _other(chain, asked)


def _other(chain: list[BaseException], asked: CallProgress) -> AssistantError:
    """An error that a provider streamed, or the library's own, before it asked anybody."""
    for cause in reversed(chain):
        status = getattr(cause, "status_code", None)
        if isinstance(status, int):
            text = _PREFIXES.sub("", f"{getattr(cause, 'message', cause)}")
            text = text.partition("Traceback (most recent")[0]
            if asked.begun and status == 500:
                try:
                    found = json.loads(text[text.index("{") :])
                except ValueError:
                    found = None
                if isinstance(found, dict) and found.get("error"):
                    return refused_in_stream(asked.server, found)
            return refused(asked.server, status, text)
    words = f"{type(chain[0]).__name__}: {chain[0]}"
    if asked.begun:
        return asked.broken(f"it broke off{asked.server.quote(words)}")
    return refused(asked.server, 400, words)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error and what led to it, up to errors of ours: those belong to an earlier call."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen and not isinstance(found, AssistantError):
        seen.add(id(found))
        yield found
        found = found.__cause__ or found.__context__


def _text(response: httpx.Response) -> str:
    """The library has read it before it raised, save where the connection broke."""
    import httpx

    try:
        return response.text
    except httpx.StreamError:
        return ""
