"""The HTTP side of the Slack stand-in: signed requests to the app's address.

Called by `bot.lab.slack_delivery` for each payload, and by `bot.lab.slack` to verify an address.
"""

import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlencode

import aiohttp

from bot.lab.slack_delivery import DeliveryOutcome, Sending
from bot.lab.slack_events import VERIFICATION_TOKEN
from bot.lab.slack_state import Json

REDIRECTS_MAX = 2
_JSON = "application/json"
_FORM = "application/x-www-form-urlencoded"


def signature(secret: str, timestamp: str, body: str) -> str:
    """Slack's `v0` signature."""
    base = f"v0:{timestamp}:{body}".encode()
    return f"v0={hmac.new(secret.encode(), base, hashlib.sha256).hexdigest()}"


class HttpOut:
    """Posts to one address of the app."""

    def __init__(self, url: str, *, secret: str, wall: Callable[[], float] = time.time) -> None:
        self.url = url
        self._secret = secret
        self._wall = wall
        self._session: aiohttp.ClientSession | None = None

    async def verify(self, *, within_s: float) -> bool:
        """Whether the address gives the challenge back, as text, form or JSON."""
        challenge = secrets.token_urlsafe(24)
        payload = {
            "token": VERIFICATION_TOKEN,
            "challenge": challenge,
            "type": "url_verification",
        }
        outcome = await self.send(Sending(kind="events_api", payload=payload), within_s=within_s)
        return not outcome.failure and _challenge(outcome.answer) == challenge

    async def send(self, sending: Sending, *, within_s: float) -> DeliveryOutcome:
        body, kind = _body(sending)
        headers = {**self._signed(body, sending), "Content-Type": kind}
        if sending.number:
            headers |= {
                "X-Slack-Retry-Num": str(sending.number),
                "X-Slack-Retry-Reason": sending.reason,
            }
        timeout = aiohttp.ClientTimeout(total=within_s)
        session = self._opened()
        try:
            async with session.post(
                self.url,
                data=body.encode(),
                headers=headers,
                timeout=timeout,
                max_redirects=REDIRECTS_MAX,
            ) as response:
                text = await response.text()
        except TimeoutError:
            return DeliveryOutcome(failure="http_timeout", via=self.url)
        except aiohttp.TooManyRedirects:
            return DeliveryOutcome(failure="too_many_redirects", via=self.url)
        except aiohttp.ClientError:
            return DeliveryOutcome(failure="connection_failed", via=self.url)
        taken = 200 <= response.status < 300
        return DeliveryOutcome(
            failure="" if taken else "http_error",
            via=self.url,
            status=response.status,
            answer=_read(text, response.content_type),
            retry=response.headers.get("X-Slack-No-Retry") != "1",
        )

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession()
        return self._session

    def _signed(self, body: str, sending: Sending) -> dict[str, str]:
        kind = sending.fault.kind if sending.fault is not None else ""
        at = self._wall()
        if sending.fault is not None and kind == "stale":
            at -= sending.fault.seconds or 0.0
        timestamp = str(int(at))
        secret = "not the secret" if kind == "forged" else self._secret
        return {
            "User-Agent": "Slackbot 1.0 (+https://api.slack.com/robots)",
            "X-Slack-Request-Timestamp": timestamp,
            "X-Slack-Signature": signature(secret, timestamp, body),
        }


def _body(sending: Sending) -> tuple[str, str]:
    match sending.kind:
        case "events_api":
            return json.dumps(sending.payload), _JSON
        case "slash_commands":
            return urlencode(sending.payload), _FORM
        case _:
            return urlencode({"payload": json.dumps(sending.payload)}), _FORM


def _read(text: str, kind: str) -> Any:
    if kind == _JSON or text.startswith("{"):
        try:
            return json.loads(text)
        except ValueError:
            return {"text": text}
    return {"text": text} if text else None


def _challenge(answer: Json | None) -> str:
    if answer is None:
        return ""
    if "challenge" in answer:
        return str(answer["challenge"])
    text = str(answer.get("text", "")).strip()
    return parse_qs(text).get("challenge", [text])[0]
