"""A whole bot in this process that is served by a stand-in for Slack, by socket or by HTTP."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Literal

from bot.app.app import App
from bot.lab.model import ScriptedModel
from bot.lab.slack import APP_TOKEN, SIGNING_SECRET, TOKEN, FakeSlack
from bot.lab.slack_state import SeenInSlack
from bot.markup.command_text import NAMES
from bot.settings.home import Home, prepare
from bot.settings.load import load
from tests.bot.kit import WAIT_S, HastyClock, eventually
from tests.bot.kit import Rig as TelegramRig
from tests.judges.block_kit import judge_calls
from tests.laid import lay

ANN, BOB, STRANGER = "U0ANN", "U0BOB", "U0EVE"
TEAM = "T0LAB"
US = "U0LABBOT"
CHANNEL = "C0GENERAL"

BARE = re.compile(rf"(?<!@hearth )(?<!\w)/(?:{'|'.join(sorted(NAMES))})\b")
"""A command as nobody can type it in Slack."""

NOT_OURS = re.compile(r"“[^”]*”|`/link [A-Z0-9]{8}`(?=\n\nFrom Slack)|\AYou said:.*", re.DOTALL)
"""In our messages: what somebody is quoted with, a code for elsewhere, the echo of the model."""

Mode = Literal["socket", "http"]


class SlackRig(TelegramRig):
    """A home with its stand-ins; `running` starts the bot on it, as often as is wanted."""

    def __init__(self, folder: Path, slack: FakeSlack, model: ScriptedModel, mode: Mode) -> None:
        self.home = Home(folder / "home")
        self.slack = slack
        self.model = model
        self.mode = mode
        self.clock = HastyClock(1)
        self.ahead = timedelta()
        self.foreign: set[str] = set()
        """Texts of the model that name commands as nobody types them in Slack."""
        self.serving: asyncio.Task[None] | None = None
        self._gives_up = False
        self.port = free_port() if mode == "http" else 0
        self.env = {
            "HEARTHBOT_SLACK__BOT_TOKEN": TOKEN,
            "HEARTHBOT_SLACK__APP_TOKEN": APP_TOKEN,
            "HEARTHBOT_SLACK__SIGNING_SECRET": SIGNING_SECRET,
            "HEARTHBOT_SLACK__MODE": mode,
            "HEARTHBOT_SLACK__LISTEN": f"127.0.0.1:{self.port or 3000}",
            "HEARTHBOT_SLACK__BASE_URL": slack.api_url,
            "HEARTHBOT_SLACK__SEND_TIMEOUT_S": "5",
            "HEARTHBOT_SLACK__RATE_PER_CHAT": "0",
            "HEARTHBOT_SLACK__RATE_TOTAL": "0",
            "HEARTHBOT_ACCESS__MESSAGES_PER_MINUTE": "0",
            "HEARTHBOT_SLACK__RATE_EDITS_MINUTE": "0",
            "HEARTHBOT_BUDGET__BRAKE": "false",
            "HEARTHBOT_LLM__API_BASE": model.api_base,
            "HEARTHBOT_LLM__MODEL": "openai/lab-model",
            "HEARTHBOT_LLM__API_KEY": "lab-key-of-the-test",
        }
        prepare(self.home)
        lay(self.home.database)

    @asynccontextmanager
    async def serving_slack(
        self, *people: str, chats: tuple[str, ...] = (), hurry: float = 1, reached: bool = True
    ) -> AsyncIterator[App]:
        """A bot that serves until the block ends; `people` are let in first, the owner before.
        `reached` waits until Slack can deliver to it."""
        self.clock = HastyClock(hurry)
        settings = load(self.home.path, self.env)
        app = App(self.home, settings, env=self.env, digest="test", clock=self.clock)
        async with app.running() as bot:
            for person in people:
                await bot.access.approve(f"slack:{TEAM}:{person}")
            for chat in chats:
                await bot.access.approve(f"slack:{TEAM}.{chat}")
            stopping = asyncio.Event()
            serving = self.serving = asyncio.create_task(bot.serve(stopping))
            serving.add_done_callback(partial(self._ended, stopping, asyncio.current_task()))
            try:
                if reached:
                    await self.reached()
                yield bot
            except asyncio.CancelledError:
                if serving.done():
                    await serving
                raise
            finally:
                stopping.set()
                await asyncio.gather(serving, return_exceptions=True)

    async def reached(self) -> None:
        """Waits until Slack has a way to the bot."""
        if self.mode == "socket":
            await eventually(lambda: [one for one in self.slack.sockets() if not one.leaving])
        else:
            await eventually(
                lambda: self.slack.deliver_to(f"http://127.0.0.1:{self.port}/slack/events")
            )

    async def quiet(self, bot: App) -> None:
        """Returns once all that came is taken, and nothing runs or is on its way."""
        await self.slack.settled(timeout_s=WAIT_S)
        async with asyncio.timeout(WAIT_S):
            await eventually(lambda: not self.rows("select 1 from inbox where state = 'received'"))
            await bot.settled()

    # --- people ----------------------------------------------------------------------------------

    def writes(self, text: str, *, by: str = ANN, **more: Any) -> str:
        """A person writes to the bot directly, or in a channel; the message's ts."""
        return self.slack.post(text=text, user=by, **more)

    def replies(self, channel: str | None = None, *, to: str = ANN) -> list[SeenInSlack]:
        """The bot's messages in a conversation, as they read now."""
        where = channel or self.slack.direct(to)
        return [seen for seen in self.slack.chat(where) if seen.is_bot]

    def read(self, channel: str | None = None, *, to: str = ANN) -> list[str]:
        """Their texts."""
        return [seen.text for seen in self.replies(channel, to=to)]

    async def shows(self, *texts: str, channel: str | None = None, to: str = ANN) -> None:
        """Waits until the bot's messages in a conversation are exactly these."""
        try:
            await eventually(lambda: self.read(channel, to=to) == list(texts))
        except AssertionError:
            raise AssertionError(f"{self.read(channel, to=to)} and not {list(texts)}") from None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@asynccontextmanager
async def slack_rigged(
    folder: Path, mode: Mode = "socket", **slack: Any
) -> AsyncIterator[SlackRig]:
    """A rig whose stand-ins run. Slack's minutes of waiting are made short."""
    options = {"retry_scale": 0.002, "ack_s": 1.0, **slack}
    async with FakeSlack(**options) as fake, ScriptedModel() as model:
        rig = SlackRig(folder, fake, model, mode)
        yield rig
        judge_slack(fake, rig.foreign)


def judge_slack(slack: FakeSlack, foreign: Collection[str] = ()) -> None:
    """Whatever went out fits, calls nobody, has no address opened for a preview, has its answers
    in a thread in channels, and names commands as they are typed, but in the texts of others."""
    for method in ("chat.postMessage", "chat.update"):
        for call in slack.calls(method):
            text = call.params["text"]
            assert 0 < len(text) <= 4_000
            for code in ("<!", "<@", "<#"):
                assert code not in text
            assert call.params["parse"] == "none"
            assert not BARE.search(NOT_OURS.sub("", text)) or text in foreign, text
    for alone in slack.ephemeral():
        assert len(alone.text) <= 4_000
        assert not any(code in alone.text for code in ("<!", "<@", "<#"))
        assert not BARE.search(NOT_OURS.sub("", alone.text)), alone.text
    assert slack.previewed() == []
    shown = ("chat.postEphemeral", "chat.postMessage", "chat.update", "views.open", "views.publish")
    judge_calls((call.method, call.params) for call in slack.calls() if call.method in shown)
