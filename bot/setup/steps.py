"""Steps of the set-up for the channels and the person, and the terminal that they ask on.

The step for the model is `bot.setup.model`; `bot.setup.wizard` puts them in order. Each answer is
tested before it goes into the plan.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from getpass import getpass
from pathlib import Path
from typing import Any, TypeVar

import typer

from bot.doctor import live_slack, live_telegram
from bot.doctor.live_telegram import BotAccount, Newcomer
from bot.people.timezone import read_zone
from bot.settings.edit import Value
from bot.settings.messages import variable
from bot.settings.schema.settings import Settings
from bot.settings.tree import KeyPath
from memory.records.errors import AssistantError, SettingsWrong
from memory.records.languages import AUTO, read_language

T = TypeVar("T")

LINE_BYTES_MAX = 4_096


class SetupTerminal:
    """Standard input and output, where a person sits. Each question may raise KeyboardInterrupt:
    then nothing is saved. The end of the input counts as that, since a set-up that was half
    answered is none."""

    def title(self, text: str) -> None:
        """Begin a new step."""
        typer.secho(f"\n{text}", bold=True)

    def say(self, text: str) -> None:
        """Say what one has to know or do."""
        typer.echo(text)

    def good(self, text: str) -> None:
        """Say that something was tested and works."""
        typer.secho(f"✓ {text}", fg="green")

    def bad(self, text: str) -> None:
        """Say that something was tested and does not work, and what to do."""
        typer.secho(f"✗ {text}", fg="red")

    def ask(self, question: str, *, default: str = "") -> str:
        """Ask for one line; Enter is the default."""
        shown = f"{question} [{default}] " if default else f"{question} "
        return _line(lambda: input(shown)).strip() or default

    def ask_secret(self, question: str) -> str:
        """Ask for one line that is not shown; Enter is empty."""
        return _line(lambda: getpass(f"{question}: "))

    def confirm(self, question: str, *, default: bool = True) -> bool:
        """Ask yes or no, again until it is one."""
        while True:
            typed = self.ask(f"{question} {'[Y/n]' if default else '[y/N]'}").lower()
            if typed in {"", "y", "yes", "n", "no"}:
                return default if not typed else typed.startswith("y")

    def pick(self, question: str, options: Sequence[str], *, default: int) -> int:
        """Return the place of one of the options; Enter is the default."""
        for number, option in enumerate(options, start=1):
            typer.echo(f"  {number:2}  {option}")
        while True:
            typed = self.ask(question, default=str(default + 1))
            if typed.isdecimal() and 1 <= int(typed) <= len(options):
                return int(typed) - 1
            self.bad(f"A number from 1 to {len(options)}, please.")

    def live(self, doing: str, work: Coroutine[Any, Any, T]) -> T:
        """Run something to its end, with a spinner."""
        from rich.console import Console

        with Console().status(f"{doing} …"):
            return asyncio.run(work)

    def live_or_enter(self, doing: str, work: Coroutine[Any, Any, T]) -> T | None:
        """Do the same, but Enter ends it without a result."""
        # One plain line: a spinner would draw over what is typed meanwhile.
        typer.echo(f"{doing} …")
        return asyncio.run(_unless_enter(work))


def _line(read: Callable[[], str]) -> str:
    try:
        return read()
    except EOFError:
        raise KeyboardInterrupt from None


async def _unless_enter(work: Coroutine[Any, Any, T]) -> T | None:
    loop = asyncio.get_running_loop()
    pressed = asyncio.Event()

    def read() -> None:
        # One line comes at a time. At the end of the input there is nothing more to wait for.
        os.read(sys.stdin.fileno(), LINE_BYTES_MAX)
        pressed.set()

    loop.add_reader(sys.stdin.fileno(), read)
    doing, waiting = asyncio.ensure_future(work), asyncio.ensure_future(pressed.wait())
    try:
        await asyncio.wait({doing, waiting}, return_when=asyncio.FIRST_COMPLETED)
        return doing.result() if doing.done() else None
    finally:
        loop.remove_reader(sys.stdin.fileno())
        doing.cancel()
        waiting.cancel()
        await asyncio.gather(doing, waiting, return_exceptions=True)


# --- steps ----------------------------------------------------------------------------------------

TOKEN = ("telegram", "token")
BOT, APP, SIGNING = (("slack", key) for key in ("bot_token", "app_token", "signing_secret"))
LANGUAGE = ("prompt", "language")
LANGUAGE_CHARS_MAX = 50

HOW_TELEGRAM = """\
1. In Telegram, open https://t.me/BotFather and press Start.
2. Send /newbot. It asks for a name, then for a username that ends in bot.
3. It answers with a token like 123456:ABC-DEF. Copy all of it."""

HOW_SLACK = """\
1. Open https://api.slack.com/apps, press Create New App, then From a manifest, and choose your
   workspace.
2. Paste all of this file in place of what stands there, then press Next and Create:
   {manifest}
3. Press Install to Workspace, then Allow.
4. Under OAuth & Permissions, copy the Bot User OAuth Token. It begins with xoxb-."""

HOW_APP = """\
Under Basic Information, App-Level Tokens, press Generate Token and Scopes. Give it any name, add
the scope connections:write, press Generate, and copy the token. It begins with xapp-."""

HOW_SIGNING = "Under Basic Information, App Credentials, copy the Signing Secret."

LATER = (
    "Later, write to the bot: it answers with a code, and `hearthbot access approve CODE` makes "
    "you the owner."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupState:
    """What there is before anything is asked.

    `owners` are the addresses of the owner; `is_running` says whether a bot serves this home now;
    `zone` is this machine's.
    """

    settings: Settings
    env: Mapping[str, str]
    manifest: Path
    zone: str
    owners: Sequence[str] = ()
    is_running: bool = False

    def by_environment(self, *paths: KeyPath) -> list[str]:
        """The environment variables that set these keys: they win over config.toml."""
        return [variable(path) for path in paths if variable(path) in self.env]


@dataclass(slots=True)
class Plan:
    """What is to be saved, all of it at the end. None as a value takes a key out."""

    changes: dict[KeyPath, Value] = field(default_factory=dict)
    owner: Newcomer | None = None
    name: str = ""
    zone: str = ""

    def owned_by(self, person: Newcomer) -> None:
        """Make this person the owner at the end."""
        self.owner = person

    @property
    def is_empty(self) -> bool:
        return not (self.changes or self.owner or self.name or self.zone)


@dataclass(frozen=True, slots=True)
class SetupStep:
    """Some questions, whose answers go into the plan."""

    tty: SetupTerminal
    here: SetupState
    plan: Plan

    def tried(self, doing: str, work: Coroutine[Any, Any, T], said: Callable[[T], str]) -> T | None:
        """Test something and say how it went. `said` may raise SettingsWrong too."""
        try:
            found = self.tty.live(doing, work)
            self.tty.good(said(found))
        except AssistantError as error:
            self.tty.bad(str(error))
            return None
        return found

    def token(
        self,
        path: KeyPath,
        question: str,
        before: str,
        accepted: Callable[[str], T | None],
        *,
        how: str = "",
        without: str,
    ) -> tuple[str, T | None]:
        """A token that works, with what its test found; what there is when the person goes on."""
        found = accepted(before) if before else None
        if names := self.here.by_environment(path):
            self.tty.say(f"It is from the environment ({names[0]}) and stays there.")
            return before, found
        if not before and how:
            self.tty.say(how)
        way = "Enter keeps the one that is set" if before else f"Enter: {without}"
        while True:
            typed = self.tty.ask_secret(f"{question}, not shown while you paste it ({way})").strip()
            if not typed:
                return before, found
            if (right := accepted(typed)) is not None:
                if typed != before:
                    self.plan.changes[path] = typed
                return typed, right

    def find_owner(
        self,
        channel: str,
        how: str,
        listen: Callable[[Collection[str]], Coroutine[Any, Any, Newcomer]],
    ) -> None:
        """Add the owner to the plan, unless there is one or nobody writes: whoever writes first,
        and is confirmed here. `listen` waits for somebody who is not among these addresses.

        What they write is not kept; it waits at the platform, and the bot answers it once it runs.
        """
        tty, owners = self.tty, self.here.owners
        if known := [address for address in owners if address.startswith(f"{channel}:")]:
            tty.say(f"The owner there is {known[0]}.")
            return
        if any(not one.startswith("console:") for one in owners):
            tty.say(f"The owner is {owners[0]}. Your address here is added with /link, in a chat.")
            return
        if (owner := self.plan.owner) is not None:
            tty.say(f"The owner is {owner.address}. Your address here is added with /link later.")
            return
        if self.here.is_running:
            tty.say(f"The running bot takes its messages, so they cannot be seen here. {LATER}")
            return
        tty.say(f"{how} That makes you the owner.")
        refused: set[str] = set()
        while True:
            try:
                found = tty.live_or_enter(
                    "Waiting for your message (Enter: skip this)", listen(frozenset(refused))
                )
            except AssistantError as error:
                tty.bad(f"{error} {LATER}")
                return
            if found is None:
                tty.say(LATER)
                return
            if tty.confirm(f"{found.name} wrote, {found.address}. Is that you?"):
                self.plan.owned_by(found)
                tty.good(f"{found.address} will be the owner.")
                return
            # Their message still waits at the platform, so they would be found again at once.
            refused.add(found.address)


class TelegramStep(SetupStep):
    """The token, tested, and the owner by a first message."""

    def run(self) -> None:
        """Ask until Telegram accepts a token, or the person goes on without."""
        self.tty.title("Telegram")
        telegram = self.here.settings.telegram

        def accepted(token: str) -> BotAccount | None:
            work = live_telegram.account(telegram.base_url, token)
            return self.tried(
                "Asking Telegram",
                work,
                lambda found: f"This is {found.name} (@{found.username}): {found.link}",
            )

        token, found = self.token(
            TOKEN,
            "Token",
            telegram.token.get_secret_value(),
            accepted,
            how=HOW_TELEGRAM,
            without="without Telegram",
        )
        if found is not None:
            self.find_owner(
                "telegram",
                f"Now open {found.link}, press Start, and write anything to it.",
                lambda but: live_telegram.first_message(telegram.base_url, token, but=but),
            )


class SlackStep(SetupStep):
    """The app from its manifest, its tokens and their scopes."""

    def run(self) -> None:
        """Ask until Slack accepts the tokens, or the person goes on without."""
        tty, slack = self.tty, self.here.settings.slack
        tty.title("Slack")
        before = slack.bot_token.get_secret_value()
        if not before:
            if not tty.confirm("Do you want it in Slack?", default=False):
                return
            tty.say(HOW_SLACK.format(manifest=self.here.manifest))
        wanted = live_slack.wanted_scopes(self.here.manifest)

        def who(found: live_slack.SlackTeam) -> str:
            if missing := wanted - found.scopes:
                raise SettingsWrong(live_slack.scopes_missing(missing))
            return f"This is @{found.bot} in {found.team}: {found.url}"

        bot, works = self.token(
            BOT,
            "Bot token (xoxb-…)",
            before,
            lambda typed: self.tried(
                "Asking Slack", live_slack.workspace(slack.base_url, typed), who
            ),
            without="without Slack",
        )
        if not bot or (works is None and self.here.by_environment(BOT)):
            return
        if slack.mode == "http":
            if not self.here.by_environment(SIGNING):
                has_one = bool(slack.signing_secret.get_secret_value())
                tty.say(f"slack.mode is http. {HOW_SIGNING} It cannot be tested from here.")
                way = "Enter keeps the one that is set" if has_one else "Enter: later"
                typed = tty.ask_secret(f"Signing secret, not shown while you paste it ({way})")
                if typed.strip():
                    self.plan.changes[SIGNING] = typed.strip()
            return
        app, works_app = self.token(
            APP,
            "App-level token (xapp-…)",
            slack.app_token.get_secret_value(),
            lambda typed: self.tried(
                "Asking Slack",
                live_slack.socket_address(slack.base_url, typed),
                lambda _: "Slack would open a socket for it.",
            ),
            how=HOW_APP,
            without="without Slack",
        )
        if not app or (works_app is None and self.here.by_environment(APP)):
            # One token alone would have the bot refuse to start.
            self.plan.changes.pop(BOT, None)
            tty.say("Without it Slack cannot be served, so nothing of Slack is saved.")
            return
        self.find_owner(
            "slack",
            "Now open the app in Slack (Apps, in the sidebar) and send it a message.",
            lambda but: live_slack.first_message(
                slack.base_url, bot_token=bot, app_token=app, but=but
            ),
        )


class PersonStep(SetupStep):
    """The owner's name and time zone, and the language of replies."""

    def run(self) -> None:
        """Ask for name and zone where there is somebody to keep them for; the language always."""
        tty, plan = self.tty, self.plan
        tty.title("You")
        if plan.owner is None and not self.here.owners:
            tty.say("There is no owner yet: the first person you approve becomes the owner.")
        elif self.here.is_running:
            tty.say("The bot runs, so it is the one to tell: /timezone, in a chat with it.")
        else:
            given = plan.owner.first_name if plan.owner else ""
            kept = "" if given else " (Enter: as it is)"
            name = tty.ask(f"What should it call you?{kept}", default=given)
            plan.name, plan.zone = name, self._zone()
        if names := self.here.by_environment(LANGUAGE):
            tty.say(f"The language is set by the environment ({names[0]}).")
            return
        now = self.here.settings.prompt.language
        tty.say(f"Language of its replies, for everybody; {AUTO} is the one of the message.")
        typed = tty.ask("Language?", default=now).strip()[:LANGUAGE_CHARS_MAX]
        # "deutsch" and "de" mean one that has a name; what is not known may be one all the same.
        if (known := read_language(typed).language) is not None:
            typed = known.english
        if typed and typed != now:
            plan.changes[LANGUAGE] = typed

    def _zone(self) -> str:
        default = self.here.zone if self.plan.owner else ""
        kept = "" if default else " (Enter: as it is)"
        question = f"Your time zone, or a large city near you?{kept}"
        while True:
            typed = self.tty.ask(question, default=default)
            read = read_zone(typed, now=datetime.now(UTC))
            if read.zone or not typed:
                return read.zone
            near = " or ".join(read.suggestions)
            hint = f"Did you mean {near}?" if near else "One is called Europe/Berlin."
            self.tty.bad(f"No single time zone is meant by {typed}. {hint}")
