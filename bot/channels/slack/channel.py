"""Slack as a channel, by slack-bolt: what goes out, and the ways in put together.

Only this file and its neighbours `slack_*` know the libraries. An event is stored before it is
acknowledged (`bot.channels.slack.intake`); whether a reply arrived is looked up by the mark that it
carries.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

import structlog

from bot.channels.base import (
    Channel,
    ChannelTrouble,
    Delivery,
    DeliveryRefused,
    EditOutcome,
    FileOut,
    InDoubt,
    LookedUp,
    MessageGone,
    MessagePart,
    NotSent,
    Outage,
    Pressed,
    Reaction,
    SentMessage,
    Understood,
    Upload,
    Uploaded,
    chat_of,
    reader_of,
)
from bot.channels.slack.api import (
    CALL_LIMITS,
    Limited,
    SaidNo,
    SlackTokens,
    SlackTrouble,
    SlackWeb,
    Us,
)
from bot.channels.slack.app_home import HomeView, HomeWriter
from bot.channels.slack.assistant_pane import AssistantPanes, Offer
from bot.channels.slack.events import OpenAddress, SlackSockets, read_once, serve_events
from bot.channels.slack.files import SlackFiles, has_link, show, upload, without_caption
from bot.channels.slack.intake import SlackIntake
from bot.channels.slack.lookup import Learn, Parents, SlackPeople, find_file, find_marked
from bot.channels.slack.modals import Forms
from bot.channels.slack.parse import ON_HOME, SlackParser
from bot.channels.slack.send import (
    EphemeralMessages,
    channel_of,
    fate,
    fate_of_file,
    looked_up,
    posted_text,
    put_reaction,
    whispered,
)
from bot.channels.slack.wire import SlackPayload
from bot.channels.throttle import EditPace, SendThrottle
from bot.channels.tokens import TokenNotices
from bot.inbox.intake import Intake
from bot.markup.command_text import as_typed
from bot.markup.render import slack_parts
from bot.settings.schema.settings import SlackSettings
from memory.records.messages import Address, Attachment
from memory.records.ports import Clock

log = structlog.get_logger()

TEXT_CHARS_MAX = 4_000 - 40
"""Slack's limit of an edit, less room for the mark of a second copy."""


class SlackChannel(Channel):
    """Slack for one workspace: sends, and takes events in. An async context manager."""

    name = "slack"

    def __init__(
        self,
        settings: SlackSettings,
        *,
        clock: Clock,
        learn: Learn | None = None,
        offer: Offer | None = None,
        dated: Callable[[str | None], None] | None = None,
        notices: TokenNotices | None = None,
        make_home: Callable[[], HomeView] | None = None,
    ) -> None:
        """`dated` gets Slack's time with each of its answers. `learn` gets the profiles of those
        who are let in; `offer` returns the texts that somebody is offered in the assistant's pane
        (only those who are let in); `notices` tell of a refused token; `make_home` builds what
        people read on their home (None: none is shown)."""
        self._settings = settings
        self._make_home = make_home
        self._clock = clock
        token, base_url = settings.bot_token.get_secret_value(), settings.base_url
        limit_s = settings.send_timeout_s
        self._pace = SendThrottle(clock, per_chat=settings.rate_per_chat, total=settings.rate_total)
        self._edits = EditPace(settings.rate_edits_minute, clock=clock)
        self._web = SlackWeb(token, base_url=base_url, timeout_s=limit_s, dated=dated)
        self._files = SlackFiles(self._web, token=token, base_url=base_url, silence_s=limit_s)
        self.people = SlackPeople(self._web, clock, learn=learn)
        self.parents = Parents(self._web)
        self.asides = EphemeralMessages(self._web, base_url=base_url, clock=clock)
        self._us = Us()
        app_token = settings.app_token.get_secret_value()
        self._tokens = SlackTokens(self._web, app_token, clock=clock, notices=notices)
        self.panes = AssistantPanes(self._web, clock=clock, offer=offer)
        self._homes: HomeWriter | None = None
        self._disconnected = Outage("slack.disconnected", clock)

    async def __aenter__(self) -> Self:
        await self._web.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._web.__aexit__(kind, error, traceback)

    @property
    def trouble(self) -> ChannelTrouble | None:
        """Return what keeps messages from coming in just now."""
        return self._tokens.trouble or self._disconnected.trouble

    # --- coming in -------------------------------------------------------------------------------

    async def serve(self, inbox: Intake) -> None:
        """Takes events in until cancelled. Raises SettingsWrong (also within an ExceptionGroup)
        for a token that Slack does not accept, or an address that cannot be listened on.

        Events are taken in from the first moment: who we are is asked meanwhile, and where that
        fails for a while nothing is lost.
        """
        intake = self._intake(inbox)
        async with asyncio.TaskGroup() as group:
            group.create_task(intake.work(), name="slack intake")
            group.create_task(self.connect(), name="slack connect")
            if self._settings.mode == "http":
                await serve_events(
                    intake.receive,
                    secret=self._settings.signing_secret.get_secret_value(),
                    listen=self._settings.listen,
                    now_s=lambda: self._clock.now().timestamp(),
                )
            else:
                await self._sockets(intake, self._tokens.socket_address).run()

    async def fetch_waiting(self, inbox: Intake) -> None:
        """Takes in what Slack brings within a moment; for `run --once`. By HTTP nothing is asked
        for: Slack brings it again when somebody listens.

        Raises SlackRefused; Temporary when Slack cannot be asked now.
        """
        self._us = await self._tokens.who_we_are_now()
        if self._settings.mode == "http":
            return
        intake = self._intake(inbox)
        sockets = self._sockets(intake, self._tokens.socket_address_now)
        limit_s = self._settings.send_timeout_s
        await read_once(intake, sockets, clock=self._clock, greeted_s=limit_s)

    async def connect(self) -> None:
        """Ask Slack who we are and what we may do, for as long as it takes, and again whenever a
        call was refused because of the token; until cancelled. Raises SlackRefused."""
        while True:
            self._us = await self._tokens.who_we_are()
            await self._web.doubted.wait()

    def _intake(self, inbox: Intake) -> SlackIntake:
        if self._homes is None:
            assert self._make_home is not None, "whoever takes events in shows homes"
            self._homes = HomeWriter(self._web, self._make_home(), clock=self._clock)
        return SlackIntake(
            self,
            inbox,
            self._web.client,
            homes=self._homes,
            forms=Forms(self._web),
            clock=self._clock,
        )

    def _sockets(self, intake: SlackIntake, address: OpenAddress) -> SlackSockets:
        return SlackSockets(
            address, self._web.session, intake.receive, outage=self._disconnected, clock=self._clock
        )

    def understand(self, payload: str) -> Understood:
        """A stored event as a message. Raises ValueError when it cannot be read."""
        reading = SlackParser(
            policy=self._settings.group_policy,
            us=self._us.user_id,
            our_name=self._us.name,
            name_of=lambda team, user: self.people.profile(team, user).name,
            parent_of=self.parents.text,
            title_of=lambda team, user: self.people.profile(team, user).title,
        )
        return reading.understand(SlackPayload.of(payload))

    # --- going out -------------------------------------------------------------------------------

    def stream_every(self, address: Address) -> float | None:
        """Seconds between edits; more while several replies grow."""
        wished = self._settings
        return self._edits.every(wished.stream_every_s) if wished.streaming else None

    def parts(self, text: str) -> Sequence[MessagePart]:
        """Markdown as messages of mrkdwn."""
        return [
            MessagePart(markup=part.markup, source=part.source)
            for part in slack_parts(text, limit=TEXT_CHARS_MAX)
        ]

    async def ready(self, address: Address) -> None:
        """Waits for the limits of this conversation and of the workspace."""
        await self._pace.wait(address.chat_id, is_group=False)

    async def send(self, address: Address, part: MessagePart) -> Delivery:
        """One new message, in the thread of the address, or to its one reader; plain where Slack
        wants it so. What has buttons is for the chat: what comes of it is written into it."""
        if reader_of(address) and not any(part.buttons):
            return await self.asides.say(address, part)
        chat = chat_of(address)
        where = {"channel": channel_of(chat)}
        if chat.thread_id is not None:
            where["thread_ts"] = chat.thread_id
        try:
            heard = await posted_text(self._web, "chat.postMessage", part, where)
        except SlackTrouble as error:
            self._slow_down(address, error)
            return fate(error)
        self.panes.posted(address)
        ts = heard.data.get("ts")
        if not isinstance(ts, str) or not ts:
            return InDoubt(reason="Slack's answer could not be read")
        return SentMessage(message_id=ts)

    async def edit(self, address: Address, message_id: str, part: MessagePart) -> EditOutcome:
        """Makes a message read so, as soon as the bucket of all edits allows it."""
        later_s = await self._edits.turn(f"{address.chat_id}:{message_id}")
        if later_s is not None:
            return NotSent(reason="the workspace's limit of edits", retry_after_s=later_s)
        where = {"channel": channel_of(address), "ts": message_id}
        try:
            await posted_text(self._web, "chat.update", part, where)
        except SlackTrouble as error:
            if isinstance(error, Limited):
                self._edits.pause(error.seconds)
            # Whatever is wrong with editing this message, a new one may work; if that is refused
            # too, the row ends there.
            done = fate(error)
            return MessageGone() if isinstance(done, DeliveryRefused) else done
        return SentMessage(message_id=message_id)

    async def remove(self, address: Address, message_id: str) -> EditOutcome:
        """Takes a message of ours away."""
        try:
            await self._web.call("chat.delete", channel=channel_of(address), ts=message_id)
        except SlackTrouble as error:
            gone = {"message_not_found", "channel_not_found"}
            is_gone = isinstance(error, SaidNo) and error.error in gone
            return MessageGone() if is_gone else fate(error)
        return SentMessage(message_id=message_id)

    async def look_up(self, address: Address, mark: str, *, since_ms: int) -> LookedUp:
        """Return whether a message with this mark stands in the conversation. What one person alone
        saw cannot be looked for."""
        channel, thread = channel_of(address), chat_of(address).thread_id
        found = await looked_up(
            find_marked(self._web, channel=channel, thread=thread, mark=mark, since_ms=since_ms)
        )
        if isinstance(found, NotSent) and reader_of(address):
            return DeliveryRefused(reason="nobody can tell what one person alone saw")
        return found

    def _slow_down(self, address: Address, error: SlackTrouble) -> None:
        if isinstance(error, Limited):
            self._pace.pause(address.chat_id, error.seconds)

    # --- files and reactions ----------------------------------------------------------------------

    def captioned(self, text: str) -> Sequence[MessagePart]:
        """A caption, and what is left as messages; all of it where Slack would look into it."""
        parts = tuple(self.parts(text))
        return without_caption(parts) if not parts or has_link(parts[0].source) else parts

    async def upload(self, address: Address, file: FileOut) -> Upload:
        """The bytes, which nobody sees yet."""
        limit_s = CALL_LIMITS * self._settings.send_timeout_s
        try:
            return Uploaded(ref=await upload(self._web, file, usual_s=limit_s))
        except SlackTrouble as error:
            done = fate_of_file(error)
            # Nobody sees the bytes before `send_file`, so there is no doubt about them.
            return NotSent(reason=done.reason) if isinstance(done, InDoubt) else done

    async def send_file(self, address: Address, file: FileOut, part: MessagePart) -> Delivery:
        """Shows the uploaded file, in the thread of the address."""
        try:
            await show(
                self._web, file, part.markup.strip(), channel=channel_of(address), to=address
            )
        except SlackTrouble as error:
            self._slow_down(address, error)
            return fate_of_file(error)
        self.panes.posted(address)
        return SentMessage(message_id=file.ref)  # Slack posts the message a moment later

    async def look_up_file(self, address: Address, ref: str, *, since_ms: int) -> LookedUp:
        """Return whether a message shows this file."""
        channel, thread = channel_of(address), address.thread_id
        return await looked_up(
            find_file(self._web, channel=channel, thread=thread, file_id=ref, since_ms=since_ms)
        )

    async def react(self, address: Address, message_id: str, emoji: str) -> Reaction:
        """An emoji by Slack's name of it."""
        return await put_reaction(self._web, address, message_id, emoji)

    async def fetch(self, attachment: Attachment, *, bytes_max: int) -> bytes:
        """The whole file that came with a message."""
        return await self._files.fetch(attachment, bytes_max=bytes_max)

    async def typing(self, address: Address) -> None:
        """A status in an assistant's thread. Elsewhere Slack lets nobody be seen typing."""
        await self.panes.typing(address)

    def doing(self, address: Address, line: str) -> None:
        """What that status says."""
        self.panes.doing(address, line)

    async def answered(self, pressed: Pressed, text: str) -> None:
        """Where the button is, to the person who pressed it.
        Slack shows by itself that a press arrived; a home is shown anew in any case."""
        text = as_typed(text, self.name)
        if pressed.message_id.startswith(ON_HOME):
            if self._homes is not None:
                self._homes.pressed(pressed.sender, pressed.address.chat_id, text)
            return
        if not text.strip():
            return
        user = pressed.sender.rpartition(":")[2]
        try:
            await whispered(self._web, pressed.address, user, text)
        except SlackTrouble as error:
            log.debug("slack.press_unanswered", why=str(error))
