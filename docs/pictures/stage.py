"""The whole bot on a stage: its files, its database and its App, before the stand-ins of
`bot/lab`, with a clock that is set. Called by `docs.make_pictures`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bot.app.app import App
from bot.lab.model import ScriptedModel
from bot.lab.slack import APP_TOKEN, SIGNING_SECRET, TOKEN, FakeSlack
from bot.lab.slack_state import SeenInSlack as SlackSeen
from bot.lab.telegram import FakeTelegram
from bot.lab.telegram_state import SeenInTelegram
from bot.settings.home import Home, prepare, settings_digest
from bot.settings.load import load
from scheduler.clock.machine import CheckedClock

ANN = 4242
SLACK_ANN, TEAM = "U0ANN", "T0LAB"
MONDAY = datetime(2026, 8, 3, 16, 30, tzinfo=UTC)
ZONE = "Europe/Berlin"
WAIT_S = 20.0
"""Nothing here takes so long: what does has failed."""


class StageClock:
    """Implements `memory.records.ports.Clock`: goes like any clock, from a moment that is chosen,
    and jumps when it is told to. Who sleeps over the jump wakes."""

    def __init__(self, start: datetime) -> None:
        self._start = start
        self._begun = asyncio.get_running_loop().time()
        self._skipped_s = 0.0
        self._jumped = asyncio.Event()

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time() - self._begun + self._skipped_s

    async def sleep(self, seconds: float) -> None:
        ends = self.monotonic() + seconds
        while (left_s := ends - self.monotonic()) > 0:
            try:
                async with asyncio.timeout(left_s):
                    await self._jumped.wait()
            except TimeoutError:
                return

    def jump_to(self, moment: datetime) -> None:
        """On to a later moment, at once."""
        self._skipped_s += (moment - self.now()).total_seconds()
        jumped, self._jumped = self._jumped, asyncio.Event()
        jumped.set()


@dataclass(slots=True)
class Stage:
    """A home in a folder that is thrown away, and who acts on it."""

    home: Home
    model: ScriptedModel
    env: dict[str, str]

    async def put(self, name: str, content: str) -> None:
        """A file of the workspace."""
        file = self.home.path / "workspace" / name
        await asyncio.to_thread(file.write_text, content, encoding="utf-8")

    @asynccontextmanager
    async def serving(self, clock: StageClock) -> AsyncIterator[App]:
        """The bot, until the block ends."""
        settings = load(self.home.path, self.env)
        digest = settings_digest(self.home, self.env)
        # The stand-ins tell the real time.
        own = CheckedClock(clock, is_trusted=True)
        app = App(self.home, settings, env=self.env, digest=digest, clock=own)
        async with app.running() as bot:
            stopping = asyncio.Event()
            serving = asyncio.create_task(bot.serve(stopping))
            try:
                yield bot
            finally:
                stopping.set()
                await serving


@asynccontextmanager
async def staged(folder: Path, **env: str) -> AsyncIterator[Stage]:
    """A home, and the model that the bot asks."""
    async with ScriptedModel() as model:
        home = Home(folder / "home")
        prepare(home)
        yield Stage(
            home=home,
            model=model,
            env={
                "HEARTHBOT_LLM__API_BASE": model.api_base,
                "HEARTHBOT_LLM__MODEL": "openai/lab-model",
                "HEARTHBOT_LLM__API_KEY": "lab-key",
                # Calls behind the scenes would take what was written for the scene.
                "HEARTHBOT_MEMORY__INSIGHTS": "false",
                "HEARTHBOT_MEMORY__EXTRACTION__ENABLED": "false",
                **env,
            },
        )


def telegram_env(telegram: FakeTelegram) -> dict[str, str]:
    """Points the bot at Telegram's stand-in."""
    return {
        "HEARTHBOT_TELEGRAM__TOKEN": telegram.token,
        "HEARTHBOT_TELEGRAM__BASE_URL": telegram.base_url,
    }


def slack_env(slack: FakeSlack) -> dict[str, str]:
    """Points the bot at Slack's stand-in."""
    return {
        "HEARTHBOT_SLACK__BOT_TOKEN": TOKEN,
        "HEARTHBOT_SLACK__APP_TOKEN": APP_TOKEN,
        "HEARTHBOT_SLACK__SIGNING_SECRET": SIGNING_SECRET,
        "HEARTHBOT_SLACK__BASE_URL": slack.api_url,
    }


class AnnInTelegram:
    """A private chat, from Ann's side."""

    def __init__(self, telegram: FakeTelegram) -> None:
        self._telegram = telegram

    def says(self, text: str) -> None:
        self._telegram.message(chat_id=ANN, text=text)

    def sees(self) -> list[SeenInTelegram]:
        """The chat as it reads now."""
        return self._telegram.chat(ANN)

    async def reads(self, words: str) -> SeenInTelegram:
        """Waits for a message of the bot with these words; the last one."""
        return await self._found(lambda seen: words in seen.text)

    async def no_longer_reads(self, words: str) -> None:
        """Waits until no message of the bot has these words."""
        await self._telegram.until(
            lambda: not any(words in seen.text for seen in self.sees()), timeout_s=WAIT_S
        )

    async def reads_card(self, words: str, *, button: str) -> SeenInTelegram:
        """Waits for a message with these words and this button; the last one."""
        return await self._found(lambda seen: words in seen.text and button in buttons(seen))

    async def presses(self, label: str, *, on: str) -> None:
        """A button of the card with these words, once it is there."""
        card = await self.reads_card(on, button=label)
        self._telegram.callback(chat_id=ANN, message_id=card.message_id, data=buttons(card)[label])

    async def _found(self, wanted: Callable[[SeenInTelegram], bool]) -> SeenInTelegram:
        def found() -> list[SeenInTelegram]:
            return [seen for seen in self.sees() if seen.is_bot and wanted(seen)]

        await self._telegram.until(found, timeout_s=WAIT_S)
        return found()[-1]


def buttons(seen: SeenInTelegram) -> dict[str, str]:
    """What the buttons of a message send back, by what they read."""
    rows = (seen.markup or {}).get("inline_keyboard", ())
    return {button["text"]: button["callback_data"] for row in rows for button in row}


async def slack_reads(slack: FakeSlack, channel: str, words: str) -> SlackSeen:
    """Waits for a message of the bot with these words; the last one."""

    def found() -> list[SlackSeen]:
        return [seen for seen in slack.chat(channel) if seen.is_bot and words in seen.text]

    await slack.until(found, timeout_s=WAIT_S)
    return found()[-1]
