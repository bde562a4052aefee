"""The channels of one bot: opened by the settings, and served side by side.

A platform that does not accept us does not silence the others: it is told in the log, and the rest
goes on. A library is loaded only when its channel is set up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, assert_never

import structlog

from agent.files.values import FileUnavailable
from bot.channels.base import NO_REACTIONS, Channel, DeliveryRefused, NotSent, Reacted, SentMessage
from bot.channels.console import ConsoleChannel
from bot.channels.tokens import PAUSES_S, TokenNotices, TokenRefused
from bot.commands import table as commands
from bot.inbox.intake import Intake
from bot.lean import load_without
from bot.people.access import Access
from memory.records.errors import Permanent, SettingsWrong, StorageError, Temporary
from memory.records.messages import Address, Attachment, IncomingMessage, Role
from memory.records.usage import UsageQuery, UsageSum
from memory.stores.approvals import SqliteApprovals, SqliteCards
from scheduler.clock.machine import CheckedClock

if TYPE_CHECKING:
    from bot.app.app import App
    from bot.channels.slack.app_home import HomeView
    from bot.channels.slack.channel import SlackChannel
    from bot.channels.telegram.api import Menu, Menus
    from bot.channels.telegram.channel import TelegramChannel

log = structlog.get_logger()

TELL_S = 10.0
"""Time limit of one message that cannot wait in the outbox."""


class NoReaction(Permanent):
    """A reaction that is not shown, and will not be."""


class NoReactionNow(Temporary):
    """A reaction that is not shown now."""


@dataclass(slots=True, kw_only=True)
class Channels:
    """The terminal always, the platforms where they are set up."""

    access: Access
    clock: CheckedClock
    notices: TokenNotices
    console: ConsoleChannel
    telegram: TelegramChannel | None
    slack: SlackChannel | None

    @property
    def platforms(self) -> Sequence[TelegramChannel | SlackChannel]:
        """Return those that are set up."""
        return [one for one in (self.telegram, self.slack) if one is not None]

    @property
    def by_name(self) -> Mapping[str, Channel]:
        """Return all of them."""
        return {one.name: one for one in (self.console, *self.platforms)}

    async def take_in(self, intake: Intake) -> None:
        """Serve every platform until cancelled.

        Raises SettingsWrong when none of them accepts us. If only some refuse us, that is told and
        they are tried again.
        """
        platforms, refused = self.platforms, set[str]()

        async def kept(platform: TelegramChannel | SlackChannel) -> None:
            told = ""
            while True:
                refused.discard(platform.name)
                try:
                    return await platform.serve(intake)
                except (SettingsWrong, ExceptionGroup) as error:
                    wrong = next(_settings_wrong(error), None)
                    if wrong is None:
                        raise
                    refused.add(platform.name)
                    if len(refused) == len(platforms):
                        raise wrong from error
                if str(wrong) != told:
                    told = str(wrong)
                    log.error("channel.refused", why=told)
                if isinstance(wrong, TokenRefused):
                    await self.notices.refused(platform.name, wrong)
                await self.clock.sleep(PAUSES_S[-1])

        async with asyncio.TaskGroup() as group:
            for platform in platforms:
                group.create_task(kept(platform), name=platform.name)

    async def fetch_waiting(self, intake: Intake) -> None:
        """Take in what waits at the platforms, and hand it on; for `run --once`. What somebody
        wrote too fast is handed on as their minutes have room for it."""
        for platform in self.platforms:
            await platform.fetch_waiting(intake)
        await intake.idle()  # an album may wait for its last photo
        await intake.worked_off()

    async def tell_owner_at_once(self, text: str) -> None:
        """Send past the outbox, for when nothing can be stored any more, to the first of the
        owner's private chats that takes it. Never fails."""
        owner = self.access.owner_id()
        person = None if owner is None else self.access.person(owner)
        lanes: Sequence[str] = ()
        if owner is not None and person is not None:
            try:
                lanes = await self.access.private_chats(owner)
            except StorageError:
                lanes = person.addresses
        for lane in lanes:
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

    async def react(self, address: Address, message_id: str, emoji: str) -> str:
        """Set a reaction at once: one that comes late says nothing any more.

        Return what is shown now. Raise NoReaction, NoReactionNow.
        """
        channel = self.by_name.get(address.channel)
        if channel is None:
            raise NoReaction(NO_REACTIONS)
        match await channel.react(address, message_id, emoji):
            case Reacted(shown=shown):
                return shown
            case NotSent(reason=reason, retry_after_s=after_s):
                raise NoReactionNow(
                    f"the reaction could not be set now ({reason}); go on without it",
                    retry_after_s=after_s,
                )
            case DeliveryRefused(reason=reason):
                raise NoReaction(reason)
            case other:
                assert_never(other)

    async def acknowledge(self, message: IncomingMessage) -> None:
        """Show that it was taken in, where its channel does so."""
        channel = self.by_name.get(message.address.channel)
        if channel is not None:
            await channel.acknowledge(message)

    async def fetch(self, address: Address, attachment: Attachment, bytes_max: int) -> bytes:
        """Return the whole of a file of a message. Raise FileUnavailable, Temporary."""
        channel = self.by_name.get(address.channel)
        if channel is None:
            raise FileUnavailable("files cannot be fetched where this message came from")
        return await channel.fetch(attachment, bytes_max=bytes_max)

    def can_deliver(self, lane: str) -> bool:
        """Return whether a reply can go there: to the terminal only while somebody is at it."""
        return self.console.attended or not lane.startswith(f"{self.console.name}:")


def menus_of(access: Access) -> Menus:
    """Return who sees which commands in Telegram: everybody those for everybody, in a private chat
    also what else the person there may type."""
    from bot.channels.telegram.api import EVERYBODY

    # A menu shows plain text.
    whole: dict[Role, Menu] = {
        role: tuple(
            (one.name, one.help.replace("`", "")) for one in commands.COMMANDS if role in one.roles
        )
        for role in Role
    }
    found = {EVERYBODY: whole[Role.GUEST]}
    for person in access.directory.people:
        for address in person.addresses:
            channel, _, chat = address.partition(":")
            is_chat = channel == "telegram" and chat.isascii() and chat.isdecimal()
            if is_chat and person.role is not Role.GUEST:
                found[chat] = whole[person.role]
    return found


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
        access=app.access,
        clock=app.clock,
        notices=notices,
        console=ConsoleChannel(SqliteCards(app.database).others),
        telegram=_telegram_of(app, notices),
        slack=_slack_of(app, notices),
    )


def _telegram_of(app: App, notices: TokenNotices) -> TelegramChannel | None:
    wanted = app.settings.telegram
    if not wanted.token.get_secret_value():
        return None
    # Telegram's passport, which no bot of ours asks for, would bring in all of OpenSSL anew.
    load_without("cryptography", "telegram")
    from bot.channels.telegram.channel import TelegramChannel

    dated = partial(app.clock.told, "Telegram")
    return app.entered(
        TelegramChannel(
            wanted,
            clock=app.clock,
            dated=dated,
            notices=notices,
            menus=lambda: menus_of(app.access),
        )
    )


def _slack_of(app: App, notices: TokenNotices) -> SlackChannel | None:
    wanted, access = app.settings.slack, app.access
    if not wanted.bot_token.get_secret_value():
        return None
    from bot.channels.slack.channel import SlackChannel

    def offer(person: str) -> list[tuple[str, str]]:
        if access.who(person) is None:
            return []
        found = app.snippets.read().snippets
        return [(snippet.tooltip, snippet.message.strip()) for snippet in found]

    return app.entered(
        SlackChannel(
            wanted,
            clock=app.clock,
            learn=access.introduce,
            offer=offer,
            dated=partial(app.clock.told, "Slack"),
            notices=notices,
            make_home=lambda: home_view_of(app),
        )
    )


def home_view_of(app: App) -> HomeView:
    """Build what people read on their home in Slack."""
    from bot.channels.slack.app_home import HomeView

    async def sums(wanted: UsageQuery) -> Sequence[UsageSum]:
        await app.budget.flush()
        return await app.usage_store.groups(wanted)

    return HomeView(
        app.access,
        jobs=app.calendar.jobs,
        events=app.calendar.events,
        facts=app.memories.facts.list,
        models=app.models,
        sums=sums,
        open_questions=SqliteApprovals(app.database).open_ones,
        clock=app.clock,
    )
