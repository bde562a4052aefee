"""Bolt apps for the tests of the Slack stand-in: what they were told is kept in `heard`."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import web
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.app.async_app import AsyncApp
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.web.async_client import AsyncWebClient

from bot.lab.slack import APP_TOKEN, SIGNING_SECRET, TOKEN, FakeSlack

Next = Callable[[], Awaitable[BoltResponse]]


@dataclass(slots=True)
class Heard:
    """What reached the app, in order: in front of Bolt's authorization, and its listeners."""

    before: list[dict[str, Any]] = field(default_factory=list)
    retries: list[tuple[str, str]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    broken: int = 0
    """How often storing still fails before it works."""
    takes_over: bool = True

    def stored(self, name: str = "event_id") -> list[str]:
        return [str(body.get(name)) for body in self.before]


def bolt_app(slack: FakeSlack, session: aiohttp.ClientSession, heard: Heard) -> AsyncApp:
    """An app that stores in `before_authorize`, and answers events itself if it takes over."""

    async def store(req: AsyncBoltRequest, next: Next) -> BoltResponse | None:
        kind = req.body.get("type")
        if kind in {"event_callback", None}:
            number, reason = (
                req.headers.get("x-slack-retry-num"),
                req.headers.get("x-slack-retry-reason"),
            )
            heard.retries.append(((number or ["0"])[0], (reason or [""])[0]))
            if heard.broken:
                heard.broken -= 1
                raise OSError("disk full")
            heard.before.append(dict(req.body))
            if kind == "event_callback" and heard.takes_over:
                return BoltResponse(status=200, body="")
        await next()
        return None

    quiet = logging.getLogger("quiet")
    quiet.setLevel(logging.CRITICAL)
    client = AsyncWebClient(TOKEN, base_url=slack.api_url, session=session)
    app = AsyncApp(
        client=client, signing_secret=SIGNING_SECRET, before_authorize=store, logger=quiet
    )

    @app.event("message")
    async def message(event: dict[str, Any]) -> None:
        heard.events.append(event)

    @app.event("app_mention")
    async def mention(event: dict[str, Any]) -> None:
        heard.events.append(event)

    return app


@asynccontextmanager
async def socket_app(
    slack: FakeSlack, app: Callable[[FakeSlack, aiohttp.ClientSession], AsyncApp]
) -> AsyncIterator[AsyncApp]:
    """The app, connected by Socket Mode."""
    async with aiohttp.ClientSession() as session:
        made = app(slack, session)
        before = len(slack.sockets())
        handler = AsyncSocketModeHandler(made, APP_TOKEN, ping_interval=0.1)
        await handler.connect_async()  # type: ignore[no-untyped-call]
        await slack.until(lambda: len(slack.sockets()) > before)
        try:
            yield made
        finally:
            await handler.close_async()  # type: ignore[no-untyped-call]


@asynccontextmanager
async def http_app(
    slack: FakeSlack, app: Callable[[FakeSlack, aiohttp.ClientSession], AsyncApp]
) -> AsyncIterator[str]:
    """The address of the app, served by Bolt's own routes."""
    async with aiohttp.ClientSession() as session:
        runner = web.AppRunner(app(slack, session).web_app(), access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}/slack/events"
        finally:
            await runner.cleanup()
