"""One bot with a Telegram and a model of its own, each a process; and what is read off them."""

import json
import os
import statistics
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.bench.figures import PRODUCT
from tests.bench.processes import ROOT, Child

TOKEN = "123456:BENCH"
OWNER = 1001
"""The owner's chat, and the first one of a talk."""
NOTES = "notes.txt"
CALL_S_MAX = 300.0
HEARTHBOT = (sys.executable, "-m", "bot")
"""The command `hearthbot`, of this checkout whatever is installed."""


class Standin:
    """A stand-in in a process of its own, spoken to on its /lab routes."""

    def __init__(self, arguments: Sequence[str], *, output: Path) -> None:
        self._child = Child([sys.executable, "-m", *arguments], output=output)
        self.url: str = json.loads(self._child.first_line())["url"]

    def order(self, name: str, **what: Any) -> Any:
        """Calls `/lab/NAME`."""
        asked = urllib.request.Request(
            f"{self.url}/lab/{name}",
            data=json.dumps(what).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(asked, timeout=CALL_S_MAX) as response:
            return json.load(response)["result"]

    def received(self) -> int:
        """How many requests came so far: the number of the next one."""
        return sum(gate["received"] for gate in self.order("gate").values())

    def wait(self, method: str, *, more_than: int = 0, timeout_s: float = 30.0) -> None:
        """Returns once so many requests of this method were answered."""
        self.order("wait", method=method, timeout_s=timeout_s, received=more_than + 1)

    def count(self, method: str) -> int:
        """How many requests of this method came so far."""
        return int(self.order("gate").get(method, {}).get("received", 0))

    def stop(self) -> None:
        self._child.stop()


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """What came of a talk: the time that each reply took, and what went wrong."""

    turns: tuple[tuple[float, float], ...]
    seconds: float
    lost: int
    strange: int
    extra: int

    @property
    def waits_s(self) -> list[float]:
        return [replied - asked for asked, replied in self.turns]

    @property
    def median_ms(self) -> float:
        return 1000 * statistics.median(self.waits_s)

    @property
    def wrong(self) -> int:
        """Messages without their own one answer."""
        return self.lost + self.strange + self.extra


class Stage:
    """A context manager. The bot is started by `start`, and may be stopped and started again."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self._folder = folder
        self._runs = 0
        self._stack = ExitStack()
        self.bot: Child | None = None

    def __enter__(self) -> Self:
        self.home.mkdir(mode=0o700)
        self.home.joinpath("workspace").mkdir(mode=0o700)
        self.home.joinpath("workspace", NOTES).write_text("milk\nbread\ncandles\n")
        telegram = ["tests.bench.crowd", "--token", TOKEN]
        self.telegram = Standin(telegram, output=self._folder / "telegram.out")
        self._stack.callback(self.telegram.stop)
        self.model = Standin(["bot.lab.model"], output=self._folder / "model.out")
        self._stack.callback(self.model.stop)
        self._stack.callback(self.stop)
        if self.name == PRODUCT:
            self._let_owner_in()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    @property
    def home(self) -> Path:
        return self._folder / "home"

    def start(self) -> Child:
        """Starts the bot; returns at once."""
        self._runs += 1
        output = self._folder / f"bot-{self._runs}.out"
        command = [*HEARTHBOT, "run"] if self.name == PRODUCT else self._floor()
        self.bot = Child(command, output=output, env=self._env())
        return self.bot

    def ready(self) -> Child:
        """The bot, polling; started if it does not run."""
        if self.bot is None:
            polls = self.telegram.count("getUpdates")
            self.start()
            self.telegram.wait("getUpdates", more_than=polls)
        assert self.bot is not None
        self.bot.require_running()
        return self.bot

    def stop(self) -> None:
        """Stops the bot, if it runs."""
        bot, self.bot = self.bot, None
        if bot is not None:
            bot.stop()

    def talk(self, **what: Any) -> Talk:
        """People talk with the bot; see `tests.bench.crowd`."""
        bot = self.ready()
        found = self.telegram.order("talk", **what)
        bot.require_running()
        return Talk(
            turns=tuple((asked, replied) for asked, replied in found["turns"]),
            seconds=found["seconds"],
            lost=found["lost"],
            strange=len(found["strange"]),
            extra=found["extra"],
        )

    def _let_owner_in(self) -> None:
        """The owner may do everything, so the model is told of all tools; all others are guests."""
        command = [*HEARTHBOT, "access", "approve", f"telegram:{OWNER}"]
        subprocess.run(command, env=self._env(), cwd=ROOT, check=True, capture_output=True)

    def _floor(self) -> list[str]:
        where = ["--telegram", self.telegram.url, "--token", TOKEN, "--model", self.model.url]
        folder = ["--folder", str(self.home / "workspace")]
        return [sys.executable, "-m", "tests.bench.floors", self.name, *where, *folder]

    def _env(self) -> dict[str, str]:
        """Settings of the bench alone: nothing of the person who runs it gets in."""
        return {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(self._folder),
            "LANG": "C.UTF-8",
            "HEARTHBOT_HOME": str(self.home),
            "HEARTHBOT_LLM__MODEL": "openai/lab-model",
            "HEARTHBOT_LLM__API_BASE": f"{self.model.url}/v1",
            "HEARTHBOT_LLM__API_KEY": "bench-key",
            "HEARTHBOT_TELEGRAM__TOKEN": TOKEN,
            "HEARTHBOT_TELEGRAM__BASE_URL": self.telegram.url,
            "HEARTHBOT_TELEGRAM__RATE_PER_CHAT": "0",
            "HEARTHBOT_TELEGRAM__RATE_PER_GROUP_MINUTE": "0",
            "HEARTHBOT_TELEGRAM__RATE_TOTAL": "0",
            "HEARTHBOT_ACCESS__MESSAGES_PER_MINUTE": "0",
            "HEARTHBOT_BUDGET__BRAKE": "false",
            "HEARTHBOT_ACCESS__POLICY": "open",
            "HEARTHBOT_TURNS__QUEUE": "followup",
        }
