"""A whole bot in this process: the real App on a home in a temporary folder, against a
stand-in Telegram and a scripted model. Tests wait for what they want to see, never for time."""

from __future__ import annotations

import asyncio
import inspect
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from agent.tools.arguments import Arguments
from agent.tools.tool import Caller, Effect, Tool, ToolCard, Trust
from bot.app.app import App
from bot.app.jobs import LOOK_EVERY_S
from bot.app.run import EVERY_S
from bot.lab.model import ScriptedModel
from bot.lab.slack import APP_TOKEN, SIGNING_SECRET
from bot.lab.slack import TOKEN as TOKEN_OF_SLACK
from bot.lab.telegram import FakeTelegram
from bot.lab.telegram_state import SeenInTelegram
from bot.settings.home import Home, prepare
from bot.settings.load import load
from bot.settings.schema.settings import SlackSettings, TelegramSettings
from scheduler.clock.machine import SystemClock
from scheduler.clock.timetable import ALARM_AFTER_S
from scheduler.clock.timetable import LOOK_EVERY_S as DUE_EVERY_S
from tests.agent.house import of_model
from tests.judge import telegram_text
from tests.laid import lay

TOKEN = "123456:SECRETSECRET"
US = "hearth_lab_bot"
OWNER, MEMBER, STRANGER = 5, 6, 99
GROUP = -1001

# So long that only a hang ends it: litellm alone takes seconds to load on a loaded machine.
WAIT_S = 60.0


def telegram_settings(**values: Any) -> TelegramSettings:
    """The section of a bot that nobody slows down, unchecked: a test may poll without a wait."""
    given: dict[str, Any] = {"token": SecretStr(TOKEN), "base_url": "http://127.0.0.1:1"}
    rates = dict.fromkeys(("rate_per_chat", "rate_per_group_minute", "rate_total"), 0)
    return TelegramSettings.model_construct(**{**given, **rates, **values})


def slack_settings(**values: Any) -> SlackSettings:
    """The same for Slack."""
    secrets = {
        "bot_token": TOKEN_OF_SLACK,
        "app_token": APP_TOKEN,
        "signing_secret": SIGNING_SECRET,
    }
    given = {name: SecretStr(value) for name, value in secrets.items()}
    rates = dict.fromkeys(("rate_per_chat", "rate_edits_minute", "rate_total"), 0)
    return SlackSettings.model_construct(**{**given, **rates, **values})


BACKGROUND_S = frozenset({ALARM_AFTER_S, DUE_EVERY_S, LOOK_EVERY_S, EVERY_S})
"""Pauses of what looks by itself all the time."""


class HastyClock:
    """The real time for who asks; pauses are so many times shorter. Those of the background are
    not kept."""

    def __init__(self, hurry: float) -> None:
        self._hurry = hurry
        self._ahead_s = 0.0
        self.paused_s: list[float] = []

    def move(self, seconds: float) -> None:
        """So much later it is from now on."""
        self._ahead_s += seconds

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self._ahead_s)

    def monotonic(self) -> float:
        return SystemClock().monotonic() + self._ahead_s

    async def sleep(self, seconds: float) -> None:
        if seconds not in BACKGROUND_S:
            self.paused_s.append(seconds)
        await asyncio.sleep(seconds / self._hurry)


async def eventually(true: Callable[[], Any], *, timeout_s: float = WAIT_S) -> Any:
    """What the condition says once it says something; AssertionError when it never does."""
    try:
        async with asyncio.timeout(timeout_s):
            while True:
                found = true()
                if inspect.isawaitable(found):
                    found = await found
                if found:
                    return found
                await asyncio.sleep(0.01)
    except TimeoutError:
        name = inspect.getsource(true).strip() if inspect.isfunction(true) else repr(true)
        raise AssertionError(f"never true: {name}") from None


class Rig:
    """A home with its stand-ins; `running` starts the bot on it, as often as is wanted."""

    def __init__(self, folder: Path, telegram: FakeTelegram, model: ScriptedModel) -> None:
        self.home = Home(folder / "home")
        self.telegram = telegram
        self.model = model
        self.clock = HastyClock(1)
        self.serving: asyncio.Task[None] | None = None
        self._gives_up = False
        self.env = {
            "HEARTHBOT_TELEGRAM__TOKEN": TOKEN,
            "HEARTHBOT_TELEGRAM__BASE_URL": telegram.base_url,
            "HEARTHBOT_TELEGRAM__POLL_TIMEOUT_S": "5",
            "HEARTHBOT_TELEGRAM__SEND_TIMEOUT_S": "5",
            "HEARTHBOT_TELEGRAM__RATE_PER_CHAT": "0",
            "HEARTHBOT_TELEGRAM__RATE_PER_GROUP_MINUTE": "0",
            "HEARTHBOT_TELEGRAM__RATE_TOTAL": "0",
            "HEARTHBOT_ACCESS__MESSAGES_PER_MINUTE": "0",
            "HEARTHBOT_LLM__API_BASE": model.api_base,
            "HEARTHBOT_LLM__MODEL": "openai/lab-model",
            "HEARTHBOT_LLM__API_KEY": "lab-key-of-the-test",
            # A flood of a test is what the brake is there for; it has tests of its own.
            "HEARTHBOT_BUDGET__BRAKE": "false",
            # Calls behind the scenes have tests of their own: elsewhere calls are counted.
            "HEARTHBOT_MEMORY__INSIGHTS": "false",
            "HEARTHBOT_MEMORY__EXTRACTION__ENABLED": "false",
        }
        prepare(self.home)
        lay(self.home.database)

    def set(self, **settings: object) -> None:
        """Settings by their names, as `telegram__mode="webhook"`."""
        for name, value in settings.items():
            self.env[f"HEARTHBOT_{name.upper()}"] = str(value)

    # --- running ---------------------------------------------------------------------------------

    @asynccontextmanager
    async def opened(self, *, hurry: float = 1) -> AsyncIterator[App]:
        """A bot that takes nothing in yet."""
        self.clock = HastyClock(hurry)
        settings = load(self.home.path, self.env)
        app = App(self.home, settings, env=self.env, digest="test", clock=self.clock)
        async with app.running() as bot:
            yield bot

    @asynccontextmanager
    async def running(
        self, *people: int, hurry: float = 1, killed: bool = False
    ) -> AsyncIterator[App]:
        """A bot that serves until the block ends; `people` are let in first, the owner before.

        `killed` ends it without draining, as far as that can be done inside of one process.
        """
        async with self.opened(hurry=hurry) as bot:
            for person in people:
                await bot.access.approve(f"telegram:{person}")
            stopping = asyncio.Event()
            serving = self.serving = asyncio.create_task(bot.serve(stopping))
            waiter = asyncio.current_task()
            serving.add_done_callback(partial(self._ended, stopping, waiter))
            try:
                yield bot
            except asyncio.CancelledError:
                if serving.done():
                    await serving
                raise
            finally:
                if killed:
                    serving.cancel()
                stopping.set()
                await asyncio.gather(serving, return_exceptions=True)

    def _ended(
        self,
        stopping: asyncio.Event,
        waiter: asyncio.Task[Any] | None,
        serving: asyncio.Task[None],
    ) -> None:
        """A bot that ended by itself ends the test that waits for something of it."""
        if not stopping.is_set() and not self._gives_up and waiter is not None:
            waiter.cancel()

    async def gives_up(self) -> None:
        """Waits until the bot ends by itself, and raises what it raises."""
        assert self.serving is not None
        self._gives_up = True
        async with asyncio.timeout(WAIT_S):
            await self.serving

    async def quiet(self, bot: App) -> None:
        """Returns once all that came is confirmed, and nothing runs or is on its way."""
        await eventually(lambda: not self.telegram.pending())
        async with asyncio.timeout(WAIT_S):
            await bot.settled()

    # --- people ----------------------------------------------------------------------------------

    def says(
        self, text: str | None, *, by: int = OWNER, chat: int | None = None, **more: Any
    ) -> int:
        """A person writes; the id of the message."""
        where = chat if chat is not None else by
        update = self.telegram.message(chat_id=where, user_id=by, text=text, **more)
        assert update
        return max(seen.message_id for seen in self.telegram.chat(where))

    def seen(self, chat: int = OWNER) -> list[SeenInTelegram]:
        """The bot's messages in a chat, as they read now."""
        return [message for message in self.telegram.chat(chat) if message.is_bot]

    def texts(self, chat: int = OWNER) -> list[str]:
        """Their texts."""
        return [message.text for message in self.seen(chat)]

    def wrote(self, count: int, *, chat: int = OWNER) -> bool:
        """Whether the bot wrote so many messages in the chat."""
        return len(self.seen(chat)) == count

    async def reads(self, *texts: str, chat: int = OWNER) -> None:
        """Waits until the bot's messages in the chat are exactly these."""
        try:
            await eventually(lambda: self.texts(chat) == list(texts))
        except AssertionError:
            raise AssertionError(f"{self.texts(chat)} and not {list(texts)}") from None

    def heard(self) -> list[str]:
        """What people said in the last request to the model, oldest first."""
        return heard(self.model.requests[-1]) if self.model.requests else []

    # --- what is stored --------------------------------------------------------------------------

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Reads the database as another process would."""
        with closing(sqlite3.connect(f"file:{self.home.database}?mode=ro", uri=True)) as read:
            return read.execute(sql, values).fetchall()

    def inbox(self) -> list[str]:
        """The states of all events, in order."""
        return [row[0] for row in self.rows("select state from inbox order by id")]

    def took(self, count: int) -> bool:
        """Whether so many events are in the inbox."""
        return len(self.inbox()) == count

    def outbox(self) -> list[str]:
        """The states of all replies, in order."""
        return [row[0] for row in self.rows("select state from outbox order by id")]

    def parts(self) -> list[str]:
        """The states of all parts of all replies, in order."""
        return [row[0] for row in self.rows("select state from outbox_parts order by outbox_id, n")]

    def bytes_on_disk(self) -> bytes:
        """All files of the home together."""
        files = [file for file in self.home.path.rglob("*") if file.is_file()]
        return b"\0".join(file.read_bytes() for file in files)


def heard(request: dict[str, Any]) -> list[str]:
    """The texts of the user messages of a request, without the block of the turn's context."""
    texts = []
    for message in request["messages"]:
        if message["role"] == "user":
            content = message["content"]
            if isinstance(content, list):
                content = "\n".join(part.get("text", "") for part in content)
            texts.append(content.partition("<context")[0].strip())
    return texts


def judge_markup(telegram: FakeTelegram) -> None:
    """Every text that went out with markup is accepted by Telegram's own parser and fits, and none
    has an address opened for a preview."""
    for method in ("sendMessage", "editMessageText"):
        for call in telegram.calls(method):
            text = call.params["text"]
            if call.params.get("parse_mode") == "HTML":
                text = telegram_text(text)
            assert 0 < len(text.encode("utf-16-le")) // 2 <= 4096
    assert telegram.previewed() == []


@asynccontextmanager
async def rigged(folder: Path, **telegram: Any) -> AsyncIterator[Rig]:
    """A rig whose stand-ins run."""
    async with FakeTelegram(TOKEN, username=US, **telegram) as tg, ScriptedModel() as model:
        rig = Rig(folder, tg, model)
        yield rig
        judge_markup(tg)


class Nothing(Arguments):
    """No arguments."""


class SlowTool(Tool):
    """A tool that runs until it is let go."""

    card = ToolCard(
        name="wait_here",
        description="Waits.",
        arguments=of_model(Nothing),
        group="memory",
        effect=Effect.NONE,
        redo="repeat",
        trust=Trust.OURS,
    )

    def __init__(self) -> None:
        self.running = asyncio.Event()
        self.go = asyncio.Event()
        self.runs = 0

    async def run(self, arguments: Any, caller: Caller) -> str:
        self.runs += 1
        self.running.set()
        await self.go.wait()
        return "waited"
