"""A payload of Slack comes in: through Bolt, into the inbox, and only then is it acknowledged.

Called by the sockets and by the HTTP route. Bolt acknowledges before its listeners work, and where
`auth.test` fails it answers 200 before anything of ours is asked (DESIGN §2). So an event is stored
in `before_authorize`, which ends the way through Bolt; what is stored is acted on afterwards.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import structlog
from slack_bolt.app.async_app import AsyncApp
from slack_bolt.middleware.async_middleware import AsyncMiddleware
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.web.async_client import AsyncWebClient

from bot.channels.base import Outage
from bot.channels.slack.app_home import HomeWriter
from bot.channels.slack.modals import Forms, filled, form_wish
from bot.channels.slack.wire import EventKind, SlackEvent, opened, sketch
from bot.inbox.intake import InboundEvent, Intake
from memory.records.errors import StorageError
from memory.records.messages import Address, IncomingMessage
from memory.records.ports import Clock
from memory.records.rows import StoredEvent

if TYPE_CHECKING:
    from bot.channels.slack.channel import SlackChannel

log = structlog.get_logger()

WAITING_MAX = 2_000
"""Stored events that wait to be acted on. Beyond it nothing is acknowledged until there is room."""

_PASSED_ON = ("ssl_check", "url_verification")
"""What Bolt answers itself. Everything else ends with us."""

Next = Callable[[], Awaitable[BoltResponse]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledgement:
    """What goes back to Slack: 200 is taken, anything else brings it again."""

    status: int
    body: str = ""

    @property
    def taken(self) -> bool:
        return self.status == 200


class SlackIntake:
    """Stores what comes, one after the other, and has the inbox act on it in that order."""

    def __init__(
        self,
        channel: SlackChannel,
        inbox: Intake,
        client: AsyncWebClient,
        *,
        homes: HomeWriter,
        forms: Forms,
        clock: Clock,
    ) -> None:
        self._channel = channel
        self._inbox = inbox
        self._homes = homes
        self._forms = forms
        self._storage = Outage("slack.not_stored", clock)
        self._one_at_a_time = asyncio.Lock()
        self._waiting: asyncio.Queue[tuple[SlackEvent, StoredEvent]] = asyncio.Queue(WAITING_MAX)
        # Bolt without a signature check: ours comes before the body is even read.
        logger = logging.getLogger("hearthbot.bolt")
        logger.setLevel(logging.ERROR)  # its warnings quote whole bodies
        self._app = AsyncApp(
            name="hearthbot",
            client=client,
            before_authorize=_StoreFirst(self._taken),
            request_verification_enabled=False,
            logger=logger,
        )

    async def receive(
        self, body: dict[str, Any], headers: Mapping[str, str] | None = None
    ) -> Acknowledgement:
        """One payload, whose sender was checked. Never raises for what is in it."""
        try:
            request = AsyncBoltRequest(body=body, headers=dict(headers or {}), mode="socket_mode")
        except (AttributeError, LookupError, TypeError, ValueError):
            # Bolt looks around in it before anybody can say no; ours does so with care.
            return Acknowledgement(status=await self._taken(body))
        response = await self._app.async_dispatch(request)
        return Acknowledgement(status=int(response.status or 500), body=str(response.body or ""))

    async def work(self) -> None:
        """Acts on what was stored, until cancelled; what is left then is taken up at the next
        start."""
        async with asyncio.TaskGroup() as group:
            for beside in (self._channel.panes, self._homes, self._forms):
                group.create_task(beside.work(), name=f"slack {type(beside).__name__}")
            while True:
                found, event = await self._waiting.get()
                await self._channel.people.meet(found.payload.home, found.sender, group)
                if found.payload.kind is EventKind.POST:
                    # Only of what is said to us: most of what is said in a channel is not. What
                    # cannot be read, the inbox says so of.
                    with suppress(ValueError):
                        understood = self._channel.understand(event.event.payload or "")
                        if isinstance(understood, IncomingMessage):
                            await self._channel.parents.meet(understood)
                await self._inbox.handle(self._channel, [event])
                match found.payload.kind:
                    case EventKind.POST:
                        said = found.payload.body.get("text")
                        self._channel.panes.said(found.channel, found.thread, said)
                    case EventKind.HOME:
                        self._homes.opened(found.person, found.chat_id)
                self._waiting.task_done()

    async def idle(self) -> None:
        """Returns once all that was stored has been acted on."""
        await self._waiting.join()

    # --- inside --------------------------------------------------------------------------------

    async def _taken(self, body: dict[str, Any]) -> int:
        """The status of the answer. What is not stored is not acknowledged, so Slack sends it
        again."""
        try:
            await self._store(body)
        except StorageError as error:
            self._storage.tell(str(error))
            return 503
        return 200

    async def _store(self, body: dict[str, Any]) -> None:
        """Returns once all is durable that has to be. Raises StorageError."""
        if (thread := opened(body)) is not None:
            self._channel.panes.opened(thread)
            return
        if (wish := form_wish(body)) is not None:
            if self._homes.knows(wish.sender):
                self._forms.wished(wish)
            return
        try:
            found = filled(body) or sketch(body)
        except ValueError as error:
            log.warning("slack.unreadable", why=str(error), type=str(body.get("type"))[:40])
            return
        if found is None:
            return
        inbound = InboundEvent(
            source=found.source,
            event_id=found.event_id,
            address=Address(channel="slack", chat_id=found.chat_id, thread_id=found.thread),
            sender=found.person,
            is_group=found.is_group,
            payload=found.payload.to_json(),
            link=found.link,
            is_press=found.payload.kind is EventKind.BUTTON,
        )
        # Looking at a home is no way in: whoever is not known stays a stranger, and gets no code.
        is_looking = found.payload.kind is EventKind.HOME and not self._homes.knows(found.person)
        if is_looking:
            inbound = replace(inbound, sender=None)
        async with self._one_at_a_time:
            is_new = is_looking and await self._inbox.state_of(inbound) is None
            stored = await self._inbox.store([inbound])
            if stored:
                self._channel.asides.heard(found, body)
            for event in stored:
                await self._waiting.put((found, event))
        self._storage.over()
        if is_new:
            self._homes.opened_by_stranger(found.person, found.chat_id)


class _StoreFirst(AsyncMiddleware):
    """In front of Bolt's authorization. A class, since for a function Bolt takes the body apart
    first, and an odd one makes it fail beyond its own error handler."""

    def __init__(self, taken: Callable[[dict[str, Any]], Awaitable[int]]) -> None:
        self._taken = taken

    async def async_process(
        self, *, req: AsyncBoltRequest, resp: BoltResponse, next: Next
    ) -> BoltResponse | None:
        if req.body.get("type") in _PASSED_ON:
            await next()
            return resp
        return BoltResponse(status=await self._taken(req.body), body="")
