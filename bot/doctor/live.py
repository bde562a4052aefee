"""One question over HTTP to a platform, with a limit and a sentence for whatever goes wrong.

Used by `hearthbot init` and `hearthbot doctor`, which ask platforms directly: a channel of the bot
would go on trying, and these want to hear what is wrong. Addresses hold tokens, so no sentence ever
shows more of one than its host.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from agent.models.catalog import LOCAL, PROVIDERS
from agent.models.choose import Probe, choose, models_at
from agent.models.service import ask_once
from memory.records.errors import AssistantError, Temporary
from memory.records.section import LlmSettings
from memory.records.text import clean

ASK_S = 6.0
"""Limit of one question, seconds."""

NAME_CHARS_MAX = 60

_HERE = ("127.0.0.1", "::1", "localhost")


class Unreachable(Temporary):
    """Nobody answers there, or what answers is in trouble."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeAnswer:
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
    limit_s: float = ASK_S,
) -> ProbeAnswer:
    """One request: a POST with this form, or a GET.

    Raises Unreachable, also for a server that has trouble of its own (5xx).
    """
    import httpx

    host = host_of(url)
    try:
        async with httpx.AsyncClient(
            timeout=limit_s,
            trust_env=urlsplit(url).hostname not in _HERE,
            # Without TLS no certificates are read, which takes a while.
            verify=not url.startswith("http:") or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        ) as client:
            found = await client.request(
                "GET" if form is None else "POST",
                url,
                data=None if form is None else dict(form),
            )
    except httpx.TimeoutException:
        raise Unreachable(
            f"{who} did not answer within {limit_s:g} s ({host}). Check the network, then try "
            "again."
        ) from None
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
        # The library's own words may quote the address, and with it the token.
        is_away = isinstance(error, httpx.ConnectError)
        why = "no connection" if is_away else type(error).__name__
        raise Unreachable(
            f"{who} cannot be reached at {host} ({why}). Check the network, and a proxy or "
            "firewall in between."
        ) from None
    if found.status_code >= 500:
        raise Unreachable(
            f"{who} has trouble of its own just now (HTTP status {found.status_code} from {host}). "
            "Try again in a few minutes."
        )
    try:
        body = json.loads(found.text)
    except (ValueError, RecursionError):
        body = {}
    return ProbeAnswer(
        status=found.status_code,
        body=body if isinstance(body, dict) else {},
        headers=found.headers,
    )


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


# --- live model ---------------------------------------------------------------------------------
#
# Which models there are to ask. Called by `hearthbot init` and `hearthbot doctor`.

LOCAL_SHOWN_MAX = 4
LIST_S = 2.0
"""How long a local server is waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedModel:
    """A model that could be taken, and how one knows of it."""

    model: str
    title: str


async def with_version(wanted: LlmSettings, *, env: Mapping[str, str], limit_s: float) -> str:
    """The address with `/v1` behind it, where the model answers there: many leave that out. Empty
    where the address has a version, or it does not answer there either."""
    base = versioned(wanted.api_base)
    if not base:
        return ""
    try:
        at_base = wanted.model_copy(update={"api_base": base})
        await ask_once(await choose(at_base, env=env), limit_s=limit_s)
    except AssistantError:
        return ""
    return base


def versioned(api_base: str) -> str:
    """The address with `/v1` behind it; empty where there is none, or it ends in a version."""
    base = api_base.rstrip("/")
    return f"{base}/v1" if base and not _VERSION.search(base) else ""


_VERSION = re.compile(r"/v\d+\w*$", re.ASCII)


async def offers(env: Mapping[str, str], *, probe: Probe = models_at) -> list[OfferedModel]:
    """Return what this machine has: providers whose key is in the environment, local servers that
    answer.

    In the order in which the bot itself would take them. Takes some tenths of a second.
    """
    found = [
        OfferedModel(
            model=f"{key}/{provider.model}",
            title=f"{provider.model} of {provider.title} ({variable} is set)",
        )
        for key, provider in PROVIDERS.items()
        if provider.model and (variable := provider.key_set(env))
    ]

    async def listed(api_base: str) -> list[str]:
        try:
            async with asyncio.timeout(LIST_S):
                return [name for name in await probe(api_base) if "embed" not in name.lower()]
        except TimeoutError:
            return []

    served = await asyncio.gather(*(listed(PROVIDERS[key].api_base) for key in LOCAL))
    for key, names in zip(LOCAL, served, strict=True):
        title = PROVIDERS[key].title
        found += [
            OfferedModel(model=f"{key}/{name}", title=f"{clean(name)} of {title} on this machine")
            for name in names[:LOCAL_SHOWN_MAX]
        ]
    return found
