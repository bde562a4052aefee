"""One question over HTTP to a platform, with a limit and a sentence for whatever goes wrong.

Used by `hearthbot init` and `hearthbot doctor`, which ask platforms directly: a channel of the bot
would go on trying, and these want to hear what is wrong. Addresses hold tokens, so no sentence ever
shows more of one than its host.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from agent.errors import Temporary
from agent.text import clean

ASK_S = 6.0
"""Limit of one question, seconds."""

NAME_CHARS_MAX = 60

_HERE = ("127.0.0.1", "::1", "localhost")


class Unreachable(Temporary):
    """Nobody answers there, or what answers is in trouble."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back. `body` is the JSON object, empty where there is none."""

    status: int
    body: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def date(self) -> datetime | None:
        """The server's clock; None where it does not tell."""
        try:
            found = parsedate_to_datetime(self.headers.get("date", ""))
        except ValueError:
            return None
        return found if found.tzinfo else found.replace(tzinfo=UTC)


async def ask(
    url: str,
    *,
    who: str,
    form: Mapping[str, str | int] | None = None,
    token: str = "",
    limit_s: float = ASK_S,
) -> Answer:
    """One request: a POST with this form, or a GET. `token` goes into the header, if any.

    Raises Unreachable, also for a server that has trouble of its own (5xx).
    """
    import httpx

    host = host_of(url)
    try:
        async with _client(url, limit_s) as client:
            found = await client.request(
                "GET" if form is None else "POST",
                url,
                data=None if form is None else dict(form),
                headers={"Authorization": f"Bearer {token}"} if token else None,
            )
    except httpx.TimeoutException:
        raise Unreachable(
            f"{who} did not answer within {limit_s:g} s ({host}). Check the network, then try "
            "again."
        ) from None
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
        # The library's own words may quote the address, and with it the token.
        raise Unreachable(
            f"{who} cannot be reached at {host} ({_kind(error)}). Check the network, and a proxy "
            "or firewall in between."
        ) from None
    if found.status_code >= 500:
        raise Unreachable(
            f"{who} has trouble of its own just now (HTTP status {found.status_code} from {host}). "
            "Try again in a few minutes."
        )
    return Answer(status=found.status_code, body=_object(found.text), headers=found.headers)


def host_of(url: str) -> str:
    """The host of an address, and nothing else of it."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "that address"
    return f"{parts.hostname or 'that address'}{port}"


def shown_name(*parts: object) -> str:
    """A name that somebody else chose, fit for the terminal: one line, short, no control codes."""
    words = " ".join(clean(str(part)) for part in parts if isinstance(part, str) and part)
    name = " ".join(words.split())
    return name if len(name) <= NAME_CHARS_MAX else f"{name[: NAME_CHARS_MAX - 1]}…"


def _client(url: str, limit_s: float) -> Any:
    import httpx

    plain = url.startswith("http:")
    return httpx.AsyncClient(
        timeout=limit_s,
        trust_env=urlsplit(url).hostname not in _HERE,
        verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else True,
    )


def _kind(error: Exception) -> str:
    import httpx

    if isinstance(error, httpx.ConnectError):
        return "no connection"
    return type(error).__name__


def _object(text: str) -> Mapping[str, Any]:
    import json

    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
