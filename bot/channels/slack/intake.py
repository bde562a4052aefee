"""A payload of Slack comes in: through Bolt, into the inbox, and only then is it acknowledged.

Called by the sockets and by the HTTP route. Bolt acknowledges before its listeners work, and where
`auth.test` fails it answers 200 before anything of ours is asked (DESIGN §2). So an event is stored
in `before_authorize`, which ends the way through Bolt; what is stored is acted on afterwards.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import structlog
from slack_bolt.app.async_app import AsyncApp
from slack_bolt.middleware.async_middleware import AsyncMiddleware
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.web.async_client import AsyncWebClient

from bot.channels.base import Channel
from bot.channels.health import Outage
from bot.channels.slack.app_home import HomeWriter
from bot.channels.slack.assistant_pane import AssistantPanes
from bot.channels.slack.lookup import Parents
from bot.channels.slack.modals import Forms, filled, form_wish
from bot.channels.slack.people import SlackPeople
from bot.channels.slack.raw import EventKind, SlackSketch, opened, sketch
from bot.channels.slack.send import EphemeralMessages
from bot.inbox.intake import InboundEvent, Intake
from memory.records.errors import StorageError
from memory.records.messages import Address, IncomingMessage
from memory.records.ports import Clock
from memory.records.rows import StoredEvent

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

    parents: Parents | None = None
    """Told of what is said to us, before it is acted on; set once, before the first event."""

    asides: EphemeralMessages | None = None
    """Told where commands can be answered to one person alone; set once, before the first event."""

    def __init__(
        self,
        channel: Channel,
        inbox: Intake,
        people: SlackPeople,
        client: AsyncWebClient,
        *,
        clock: Clock,
        panes: AssistantPanes | None = None,
        homes: HomeWriter | None = None,
        forms: Forms | None = None,
    ) -> None:
        """`panes` is told of threads that were opened in the assistant's pane, `homes` of homes
        that were, `forms` of those that somebody wants to fill in on their home; without them,
        nothing is done about it."""
        self._channel = channel
        self._inbox = inbox
        self._people = people
        self._clock = clock
        self._panes = panes
        self._homes = homes
        self._forms = forms
        self._storage = Outage("slack.not_stored", clock)
        self._one_at_a_time = asyncio.Lock()
        self._waiting: asyncio.Queue[tuple[SlackSketch, StoredEvent]] = asyncio.Queue(WAITING_MAX)
        self._app = self._bolt(client)

    def _bolt(self, client: AsyncWebClient) -> AsyncApp:
        """Bolt without a signature check: ours comes before the body is even read."""
        logger = logging.getLogger("hearthbot.bolt")
        logger.setLevel(logging.ERROR)  # its warnings quote whole bodies
        return AsyncApp(
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
            if self._panes is not None:
                group.create_task(self._panes.work(), name="slack panes")
            if self._homes is not None:
                group.create_task(self._homes.work(), name="slack homes")
            if self._forms is not None:
                group.create_task(self._forms.work(), name="slack forms")
            while True:
                found, event = await self._waiting.get()
                await self._people.meet(found.home, found.sender, group)
                await self._meet_parent(found, event)
                await self._inbox.handle(self._channel, [event])
                if found.kind is EventKind.POST and self._panes is not None:
                    self._panes.said(found.channel, found.thread, found.body.get("text"))
                if found.kind is EventKind.HOME and self._homes is not None:
                    self._homes.opened(found.person, found.chat_id)
                self._waiting.task_done()

    async def _meet_parent(self, found: SlackSketch, event: StoredEvent) -> None:
        """Only of what is said to us: most of what is said in a channel is not."""
        if self.parents is None or found.kind is not EventKind.POST:
            return
        try:
            understood = self._channel.understand(event.event.payload or "")
        except ValueError:
            return  # the inbox says so
        if isinstance(understood, IncomingMessage):
            await self.parents.meet(understood)

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
            if self._panes is not None:
                self._panes.opened(thread)
            return
        if (wish := form_wish(body)) is not None:
            if (
                self._forms is not None
                and self._homes is not None
                and self._homes.knows(wish.sender)
            ):
                self._forms.wished(wish)
            return
        try:
            found = filled(body) or sketch(body)
        except ValueError as error:
            log.warning("slack.unreadable", why=str(error), type=str(body.get("type"))[:40])
            return
        if found is None:
            return
        if found.kind is EventKind.HOME:
            await self._store_home(found)
            return
        async with self._one_at_a_time:
            stored = await self._inbox.store([_inbound(found)])
            if stored and self.asides is not None:
                self.asides.heard(found, body)
            for event in stored:
                await self._waiting.put((found, event))
        self._storage.over()

    async def _store_home(self, found: SlackSketch) -> None:
        """As any event. Who is not known stays a stranger: looking is no way in, and nobody is
        given a code for it."""
        homes = self._homes
        if homes is None:
            return
        inbound = _inbound(found)
        is_stranger = not homes.knows(found.person)
        if is_stranger:
            inbound = replace(inbound, sender=None)
        async with self._one_at_a_time:
            is_new = not is_stranger or await self._inbox.state_of(inbound) is None
            for event in await self._inbox.store([inbound]):
                await self._waiting.put((found, event))
        self._storage.over()
        if is_new and is_stranger:
            homes.opened_by_stranger(found.person, found.chat_id)


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


def _inbound(found: SlackSketch) -> InboundEvent:
    return InboundEvent(
        source=found.source,
        event_id=found.event_id,
        address=Address(channel="slack", chat_id=found.chat_id, thread_id=found.thread),
        sender=found.person,
        is_group=found.is_group,
        payload=found.to_payload(),
        link=found.link,
        is_press=found.kind is EventKind.BUTTON,
    )
