"""Whatever a library that speaks to providers raised, as one of our errors.

Used by `litellm`. The wrappings differ from provider to provider, so what counts is what lies at
the bottom: a server's own answer is read as the direct client would read it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent.errors import (
    AssistantError,
    AuthRefused,
    BrokenAnswer,
    ContextTooLong,
    ModelRefused,
    ModelTimeout,
    Overloaded,
    RateLimited,
)
from agent.models.refusals import Server, refused, refused_in_stream

if TYPE_CHECKING:
    import httpx


@dataclass(slots=True, kw_only=True)
class Asked:
    """Who was asked, and how far the answer had come: `streams` once the library hands it on,
    `begun` once a piece of it came."""

    server: Server
    name: str
    streams: bool = False
    begun: bool = False


UNREADABLE = "a chunk of it is no JSON"
"""What our own connection says of a stream that the library would pass over in silence."""


def failure(error: Exception, asked: Asked) -> AssistantError:
    """The error of ours. Never holds a key."""
    import httpx

    chain = list(_chain(error))
    for cause in reversed(chain):
        if isinstance(cause, httpx.HTTPStatusError):
            response = cause.response
            return _refused(asked.server, response.status_code, _text(response), response)
    for cause in reversed(chain):
        if isinstance(cause, httpx.TimeoutException):
            return ModelTimeout(f"{asked.server.host} did not answer in time")
        if isinstance(cause, httpx.TransportError):
            return _unreachable(cause, chain[-1], asked)
        if isinstance(cause, ImportError):
            return ModelRefused(
                f"{asked.name} needs a library that is not installed ({cause.name}): install it "
                "beside the bot, or choose another model"
            )
    bottom = chain[-1]
    if asked.streams and not hasattr(bottom, "status_code") and not _is_openais(bottom):
        return broken(asked.server, f"{type(bottom).__name__}{asked.server.quote(f'{bottom}')}")
    for cause in reversed(chain):
        if isinstance(body := getattr(cause, "body", None), dict) and body.get("message"):
            return refused_in_stream(asked.server, {"error": body})
    return _other(chain, asked)


def broken(server: Server, why: str) -> BrokenAnswer:
    """The error of an answer that came but cannot be used."""
    return BrokenAnswer(f"The answer of {server.host} cannot be read: {why}")


def _unreachable(
    error: httpx.TransportError, bottom: BaseException, asked: Asked
) -> AssistantError:
    import httpx

    if UNREADABLE in f"{error}":
        return broken(asked.server, UNREADABLE)
    reason = bottom.strerror if isinstance(bottom, OSError) and bottom.strerror else f"{error}"
    said = asked.server.quote(reason).replace("it said", "reason")
    host = asked.server.host
    # Of some providers the library hands on a stream before it has asked them at all.
    reached = asked.streams and not isinstance(error, httpx.ConnectError)
    if asked.begun or reached:
        return BrokenAnswer(f"The connection to {host} broke during the answer{said}")
    return Overloaded(f"{host} cannot be reached: is it running, and is the address right{said}")


def _other(chain: list[BaseException], asked: Asked) -> AssistantError:
    """An error that a provider streamed, or the library's own, before it asked anybody."""
    for cause in reversed(chain):
        status = getattr(cause, "status_code", None)
        if isinstance(status, int):
            text = _PREFIXES.sub("", f"{getattr(cause, 'message', cause)}")
            text = text.partition("Traceback (most recent")[0]
            if asked.begun and status == 500 and (found := _object(text)):
                return refused_in_stream(asked.server, found)
            return _refused(asked.server, status, text)
    words = f"{type(chain[0]).__name__}: {chain[0]}"
    if asked.begun:
        return broken(asked.server, f"it broke off{asked.server.quote(words)}")
    return refused(asked.server, 400, words)


_PREFIXES = re.compile(r"^(?:litellm\.)?(?:\w+(?:Error|Exception|Timeout): ?|\w+Exception - )+")
_KEY_REFUSED = re.compile(r"API_KEY_INVALID|API key not valid|AuthenticationError|UnrecognizedClie")
_TOO_LONG = re.compile(r"exceeds the maximum number of tokens|ContextWindowExceeded")
_RETRY_DELAY = re.compile(r'"retryDelay":\s*"([\d.]+)s"')


def _is_openais(error: BaseException) -> bool:
    return type(error).__module__.partition(".")[0] == "openai"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error and what led to it, up to errors of ours: those belong to an earlier call."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen and not isinstance(found, AssistantError):
        seen.add(id(found))
        yield found
        found = found.__cause__ or found.__context__


def _refused(
    server: Server, status: int, text: str, response: httpx.Response | None = None
) -> AssistantError:
    """`refusals` knows the wordings of OpenAI's kin; these are the others'."""
    error = refused(server, status, text, response.headers if response is not None else None)
    said = f"{error}".partition("; it said")[2]
    said = f"; it said{said}" if said else ""
    host = f"{server.host} (HTTP {status})"
    if _TOO_LONG.search(text):
        return ContextTooLong(f"The request is too long for the model at {host}{said}")
    if _KEY_REFUSED.search(text) and status in (400, 401, 403):
        return AuthRefused(
            f"{host} did not accept the API key: check llm.api_key or the provider's environment "
            f"variable{said}"
        )
    if status == 429 and (delay := _RETRY_DELAY.search(text)) and "PerDay" not in text:
        # Gemini words a pause of seconds like an empty account.
        return RateLimited(f"{host} asks for a pause{said}", retry_after_s=float(delay[1]))
    return error


def _text(response: httpx.Response) -> str:
    """The library has read it before it raised, save where the connection broke."""
    import httpx

    try:
        return response.text
    except httpx.StreamError:
        return ""


def _object(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text[text.index("{") :])
    except ValueError:
        return None
    return found if isinstance(found, dict) and found.get("error") else None
