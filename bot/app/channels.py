"""The channels of one bot: opened by the settings, and served side by side.

A platform that does not accept us does not silence the others: it is told in the log, and the rest
goes on. A library is loaded only when its channel is set up.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import structlog

from bot.channels.base import Channel, SentMessage
from bot.channels.console import ConsoleChannel
from bot.channels.throttle import SendRates
from bot.channels.tokens import PAUSES_S, TokenNotices, TokenRefused
from bot.commands import table as commands
from bot.inbox.intake import Intake
from bot.lean import load_without
from bot.people.access import Access
from bot.settings.options import host_zone
from bot.settings.schema.settings import Settings
from memory.records.errors import SettingsWrong, StorageError
from memory.records.messages import Address, Role
from memory.stores.approvals import SqliteApprovals, SqliteCards
from scheduler.clock.machine import CheckedClock

if TYPE_CHECKING:
    from bot.app.app import App
    from bot.channels.slack.app_home import HomeView
    from bot.channels.slack.channel import SlackChannel
    from bot.channels.slack.people import SlackProfile
    from bot.channels.telegram.api import Menu, Menus
    from bot.channels.telegram.channel import TelegramChannel

log = structlog.get_logger()

TELL_S = 10.0
"""Time limit of one message that cannot wait in the outbox."""


@dataclass(slots=True, kw_only=True)
class Channels:
    """The terminal always, the platforms where they are set up."""

    settings: Settings
    access: Access
    clock: CheckedClock
    notices: TokenNotices
    console: ConsoleChannel
    telegram: TelegramChannel | None
    slack: SlackChannel | None

    @property
    def by_name(self) -> Mapping[str, Channel]:
        """All of them."""
        found: dict[str, Channel] = {self.console.name: self.console}
        for channel in (self.telegram, self.slack):
            if channel is not None:
                found[channel.name] = channel
        return found

    async def take_in(self, intake: Intake) -> None:
        """Serves every platform until cancelled.

        Raises SettingsWrong when none of them accepts us. If only some refuse us, that is told and
        they are tried again.
        """
        serving: dict[str, Callable[[], Awaitable[None]]] = {}
        if self.telegram is not None:
            serving["telegram"] = partial(self._telegram, self.telegram, intake)
        if self.slack is not None:
            serving["slack"] = partial(self.slack.serve, intake)
        refused = set[str]()

        async def kept(name: str) -> None:
            told = ""
            while True:
                refused.discard(name)
                try:
                    return await serving[name]()
                except (SettingsWrong, ExceptionGroup) as error:
                    wrong = next(_settings_wrong(error), None)
                    if wrong is None:
                        raise
                    refused.add(name)
                    if len(refused) == len(serving):
                        raise wrong from error
                if str(wrong) != told:
                    told = str(wrong)
                    log.error("channel.refused", why=told)
                if isinstance(wrong, TokenRefused):
                    await self.notices.refused(name, wrong)
                await self.clock.sleep(PAUSES_S[-1])

        async with asyncio.TaskGroup() as group:
            for name in serving:
                group.create_task(kept(name), name=name)

    async def fetch_waiting(self, intake: Intake) -> None:
        """Takes in what waits at the platforms, and hands it on; for `run --once`. What somebody
        wrote too fast is handed on as their minutes have room for it."""
        if self.telegram is not None:
            await self.telegram.connect()
            await self.telegram.fetch_waiting(intake)
        if self.slack is not None:
            await self.slack.fetch_waiting(intake)
        await intake.idle()  # an album may wait for its last photo
        await intake.worked_off()

    async def tell_owner_at_once(self, text: str) -> None:
        """Send past the outbox, for when nothing can be stored any more, to the first of the
        owner's private chats that takes it. Never fails."""
        for lane in await self._owners_chats():
            address = Address.parse(lane)
            channel = self.by_name.get(address.channel)
            if channel is None or channel is self.console:
                continue
            try:
                async with asyncio.timeout(TELL_S):
                    outcomes = [await channel.send(address, part) for part in channel.parts(text)]
            except TimeoutError:
                continue
            if all(isinstance(outcome, SentMessage) for outcome in outcomes):
                return
        log.warning("channel.owner_untold")

    async def _owners_chats(self) -> Sequence[str]:
        owner = self.access.owner_id()
        if owner is None:
            return ()
        try:
            return await self.access.private_chats(owner)
        except StorageError:
            people = self.access.directory.people
            return next(person.addresses for person in people if person.id == owner)

    def can_deliver(self, lane: str) -> bool:
        """A reply to the terminal waits until somebody is there, perhaps for days."""
        return self.console.attended or not lane.startswith(f"{self.console.name}:")

    async def _telegram(self, telegram: TelegramChannel, intake: Intake) -> None:
        await telegram.connect()
        async with asyncio.TaskGroup() as group:
            menus = group.create_task(telegram.announce(self._menus))
            if self.settings.telegram.mode == "webhook":
                await self._listen(telegram, intake)
            else:
                await telegram.poll(intake)
            menus.cancel()

    def _menus(self) -> Menus:
        """Who sees which commands in Telegram: everybody those for everybody, in a private chat
        also what else the person there may type."""
        from bot.channels.telegram.api import EVERYBODY

        whole = {role: _menu(role) for role in Role}
        found = {EVERYBODY: whole[Role.GUEST]}
        for person in self.access.directory.people:
            for address in person.addresses:
                channel, _, chat = address.partition(":")
                is_chat = channel == "telegram" and chat.isascii() and chat.isdecimal()
                if is_chat and person.role is not Role.GUEST:
                    found[chat] = whole[person.role]
        return found

    async def _listen(self, telegram: TelegramChannel, intake: Intake) -> None:
        from bot.channels.telegram.webhook import serve_webhook

        try:
            await serve_webhook(telegram, intake, self.settings.telegram)
        except OSError as error:
            raise SettingsWrong(
                f"Cannot listen on {self.settings.telegram.webhook_listen} "
                f"({os.strerror(error.errno or 0)}). Close what uses that port, or choose another "
                "in telegram.webhook_listen."
            ) from error


def _menu(role: Role) -> Menu:
    """What this role may type. A menu shows plain text."""
    rows = (one for one in commands.COMMANDS if role in one.roles)
    return tuple((one.name, one.help.replace("`", "")) for one in rows)


def _settings_wrong(error: BaseException) -> Iterator[SettingsWrong]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _settings_wrong(inner)
    elif isinstance(error, SettingsWrong):
        yield error


def channels_of(app: App) -> Channels:
    """Build the channels that are set up; they tell the clock the time."""
    notices = TokenNotices(app.access, lambda message: app.outbox.say(message))
    return Channels(
        settings=app.settings,
        access=app.access,
        clock=app.clock,
        notices=notices,
        console=ConsoleChannel(SqliteCards(app.database).others),
        telegram=_telegram_of(app, notices),
        slack=_slack_of(app, notices),
    )


def _telegram_of(app: App, notices: TokenNotices) -> TelegramChannel | None:
    wanted = app.settings.telegram
    token = wanted.token.get_secret_value()
    if not token:
        return None
    # Telegram's passport, which no bot of ours asks for, would bring in all of OpenSSL anew.
    load_without("cryptography", "telegram")
    from bot.channels.telegram.channel import TelegramChannel, TelegramOptions

    options = TelegramOptions(
        token=token,
        base_url=wanted.base_url,
        group_policy=wanted.group_policy,
        streaming=wanted.streaming,
        stream_every_s=wanted.stream_every_s,
        stream_every_group_s=wanted.stream_every_group_s,
        poll_timeout_s=wanted.poll_timeout_s,
        stall_s=wanted.stall_s,
        send_timeout_s=wanted.send_timeout_s,
        rates=SendRates(
            per_chat=wanted.rate_per_chat,
            per_group_minute=wanted.rate_per_group_minute,
            total=wanted.rate_total,
        ),
        ack_reaction=wanted.ack_reaction,
    )
    dated = partial(app.clock.told, "Telegram")
    return app.entered(TelegramChannel(options, clock=app.clock, dated=dated, notices=notices))


def _slack_of(app: App, notices: TokenNotices) -> SlackChannel | None:
    wanted, access = app.settings.slack, app.access
    token = wanted.bot_token.get_secret_value()
    if not token:
        return None
    from bot.channels.slack.channel import SlackChannel, SlackOptions

    options = SlackOptions(
        bot_token=token,
        app_token=wanted.app_token.get_secret_value(),
        signing_secret=wanted.signing_secret.get_secret_value(),
        over_http=wanted.mode == "http",
        listen=wanted.listen,
        base_url=wanted.base_url,
        group_policy=wanted.group_policy,
        streaming=wanted.streaming,
        stream_every_s=wanted.stream_every_s,
        send_timeout_s=wanted.send_timeout_s,
        edits_per_minute=wanted.rate_edits_minute,
        rates=SendRates(per_chat=wanted.rate_per_chat, per_group_minute=0, total=wanted.rate_total),
    )

    async def learn(profile: SlackProfile) -> None:
        try:
            await access.introduce(
                profile.address,
                name=profile.name,
                time_zone=profile.time_zone,
                language=profile.language,
            )
        except StorageError as error:
            log.warning("slack.profile_not_kept", why=str(error))

    def offer(person: str) -> list[tuple[str, str]]:
        if access.who(person) is None:
            return []
        found = app.snippets.read().snippets
        return [(snippet.tooltip, snippet.message.strip()) for snippet in found]

    return app.entered(
        SlackChannel(
            options,
            clock=app.clock,
            learn=learn,
            offer=offer,
            dated=partial(app.clock.told, "Slack"),
            notices=notices,
            make_home=lambda: home_view_of(app),
        )
    )


def home_view_of(app: App) -> HomeView:
    """Build what people read on their home in Slack."""
    from bot.channels.slack.app_home import HomeSources, HomeView

    told = HomeSources(
        jobs=app.calendar.jobs,
        events=app.calendar.events,
        facts=app.memories.facts,
        sums=app.usage_store.groups,
        counted=app.budget.flush,
        models=app.models,
        open_questions=SqliteApprovals(app.database).open_ones,
    )
    return HomeView(app.access, told, clock=app.clock, host_zone=ZoneInfo(host_zone()))
