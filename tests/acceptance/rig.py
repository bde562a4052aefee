"""The real program and its stand-ins as processes of their own, driven from outside alone."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx

from tests.fork_server import plain_env, start

T = TypeVar("T")

TOKEN = "123456:TESTTESTTEST"
LONG_S = 60.0
"""Nothing in these tests takes so long; a wait that does has failed."""


EFFECTS = ("sendMessage", "chat.postMessage", "chat")
"""Requests whose order matters. A poll always waits, and an edit may change nothing."""


def until(what: Callable[[], T], *, timeout_s: float = LONG_S, about: Callable[[], str] = str) -> T:
    """The first true value of `what`. Time decides nothing here: the limit is only generous.

    To ask costs whoever is waited for time too, so it is done less often the longer it takes.
    """
    began = time.monotonic()
    while not (value := what()):
        waited_s = time.monotonic() - began
        assert waited_s < timeout_s, f"waited in vain: {about()}"
        time.sleep(min(0.01 + waited_s / 20, 0.05))
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A message with buttons; `buttons` are what the platform sends back, by what they read."""

    place: str
    text: str
    buttons: Mapping[str, str]


def _inline(markup: Mapping[str, Any] | None) -> dict[str, str]:
    rows = (markup or {}).get("inline_keyboard", ())
    return {button["text"]: button["callback_data"] for row in rows for button in row}


def _actions(blocks: Sequence[Mapping[str, Any]] | None) -> dict[str, str]:
    rows = [block["elements"] for block in blocks or () if block["type"] == "actions"]
    return {button["text"]["text"]: button["action_id"] for row in rows for button in row}


class StandIn:
    """A stand-in as a process of its own, and its control routes."""

    def __init__(self, module: str, *options: str) -> None:
        words = ["--port", "0", *options]
        self._process = start(module, words, env=plain_env(), stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        self.url: str = json.loads(self._process.stdout.readline())["url"]
        self._http = httpx.Client(base_url=self.url, timeout=LONG_S, trust_env=False)

    def ask(self, operation: str, **arguments: Any) -> Any:
        """One control route."""
        answer = self._http.post(f"/lab/{operation}", json=arguments)
        assert answer.status_code == 200, (operation, arguments, answer.text)
        return answer.json()["result"]

    def received(self, method: str) -> int:
        """How many requests of a method came."""
        return int(self.ask("gate").get(method, {}).get("received", 0))

    def vanished(self, method: str) -> int:
        """Requests that took effect while their client died."""
        return int(self.ask("gate").get(method, {}).get("vanished", 0))

    def behave(self) -> None:
        """No faults from now on. What was held takes effect first, so that a request of a process
        that was killed comes before those of the next one, as its order on the wire says."""
        self.ask("clear_faults")
        self.ask("release")
        until(self._is_idle)

    def _is_idle(self) -> bool:
        gates = self.ask("gate")
        return all(gates[m]["received"] == gates[m]["applied"] for m in EFFECTS if m in gates)

    def close(self) -> None:
        self._http.close()
        with self._process:
            self._process.terminate()


class Telegram(StandIn):
    """The Bot API."""

    def __init__(self, *options: str) -> None:
        super().__init__("bot.lab.telegram", "--token", TOKEN, *options)

    def says(self, chat: int, text: str) -> None:
        """A person writes to the bot in a private chat."""
        self.ask("message", chat_id=chat, text=text)

    def shown(self, chat: int) -> list[str]:
        """What the bot's messages in this chat read now, in order."""
        return [message["text"] for message in self.ask("chat", chat_id=chat) if message["is_bot"]]

    def cards(self, chat: int) -> list[Card]:
        """The bot's messages with buttons, in order."""
        return [
            Card(place=str(message["message_id"]), text=message["text"], buttons=buttons)
            for message in self.ask("chat", chat_id=chat)
            if message["is_bot"] and (buttons := _inline(message["markup"]))
        ]

    def press(self, chat: int, card: Card, label: str, *, by: int = 0) -> None:
        """A person taps a button that they see, or saw; in private it is the chat's own."""
        self.ask(
            "callback",
            chat_id=chat,
            message_id=int(card.place),
            data=card.buttons[label],
            user_id=by or chat,
        )

    def popped_up(self) -> list[str]:
        """What was said to those who tapped, in order."""
        return [answer["text"] for answer in self.ask("answers")]

    def close(self) -> None:
        """Judges too: whatever went out, Telegram opened no address of it by itself."""
        previewed = self.ask("previewed")
        super().close()
        assert previewed == []


SLACK_TEAM, SLACK_BOT = "T0LAB", "U0LABBOT"


class Slack(StandIn):
    """A workspace with one app; its minutes of waiting before an event comes again are short, and
    it tries more often than the real one, since here the bot dies more often."""

    def __init__(self, *options: str) -> None:
        super().__init__("bot.lab.slack", "--retry-scale", "0.01", *options)
        self.ask("set", ack_s=1.0, retries_max=30)

    def says(self, channel: str, text: str, *, by: str, thread: str | None = None) -> str:
        """A person mentions the bot in a channel, in a thread or to open one; the post's ts."""
        words = f"<@{SLACK_BOT}> {text}"
        return str(self.ask("post", channel=channel, user=by, text=words, thread_ts=thread))

    def shown(self, channel: str, thread: str) -> list[str]:
        """What the bot's messages in this thread read now, in order."""
        posts = self.ask("thread", channel=channel, ts=thread)
        return [post["text"] for post in posts if post["is_bot"]]

    def cards(self, channel: str) -> list[Card]:
        """The bot's posts with buttons, in order, those in threads included."""
        return [
            Card(place=post["ts"], text=post["text"], buttons=buttons)
            for post in self.ask("chat", channel=channel)
            if post["is_bot"] and (buttons := _actions(post["blocks"]))
        ]

    def press(self, channel: str, card: Card, label: str, *, by: str) -> None:
        """A person presses a button that they see."""
        self.ask("press", channel=channel, ts=card.place, action_id=card.buttons[label], user=by)

    def close(self) -> None:
        """Judges too: whatever went out, Slack opened no address of it by itself."""
        previewed = self.ask("previewed")
        super().close()
        assert previewed == []


class Model(StandIn):
    """The language model."""

    def __init__(self, *options: str) -> None:
        super().__init__("bot.lab.model", *options)

    def user_texts(self) -> list[str]:
        """What was asked, by chat request."""
        return [entry["params"]["user"] for entry in self.ask("log", method="chat")]


@dataclass(slots=True)
class Running:
    """A `hearthbot` process."""

    process: subprocess.Popen[Any]
    errors: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def said(self) -> str:
        """Its standard error so far."""
        return self.errors.read_text("utf-8", "replace")

    def serving(self) -> bool:
        """Whether it takes messages in. One that has ended never will."""
        said = self.said()
        assert self.process.poll() is None, said[-2000:]
        return "telegram.connected" in said

    def kill(self) -> None:
        """As a power cut."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(LONG_S)

    def end(self, number: int = signal.SIGTERM, *, timeout_s: float = LONG_S) -> int:
        """Asks it to stop; its exit code."""
        self.process.send_signal(number)
        return self.process.wait(timeout_s)

    def wait(self, timeout_s: float = LONG_S) -> int:
        """The exit code of one that ends by itself."""
        return self.process.wait(timeout_s)


class Home:
    """A home folder, and the program run on it with a clean environment."""

    def __init__(self, folder: Path, **env: str) -> None:
        self.path = folder / "home"
        self._folder = folder
        self._starts = 0
        self._running: list[Running] = []
        self.loads_anew = False
        """Whether each process loads the program itself, as those of a user do."""
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "NO_PROXY": "*",
            "HEARTHBOT_HOME": str(self.path),
            **env,
        }

    @property
    def database(self) -> Path:
        return self.path / "data" / "hearthbot.db"

    @property
    def log(self) -> str:
        return (self.path / "logs" / "hearthbot.log").read_text("utf-8")

    def serve_with(self, telegram: Telegram, model: Model, **settings: str) -> None:
        """Points the bot at the stand-ins, without limits and without streaming."""
        self.env |= {
            "HEARTHBOT_TELEGRAM__TOKEN": TOKEN,
            "HEARTHBOT_TELEGRAM__BASE_URL": telegram.url,
            "HEARTHBOT_TELEGRAM__RATE_PER_CHAT": "0",
            "HEARTHBOT_TELEGRAM__RATE_PER_GROUP_MINUTE": "0",
            "HEARTHBOT_TELEGRAM__RATE_TOTAL": "0",
            "HEARTHBOT_ACCESS__MESSAGES_PER_MINUTE": "0",
            "HEARTHBOT_TELEGRAM__STREAMING": "false",
            "HEARTHBOT_LLM__MODEL": "openai/lab-model",
            "HEARTHBOT_LLM__API_BASE": f"{model.url}/v1",
            "HEARTHBOT_LLM__API_KEY": "lab-key",
            # Many messages at once are what it is there for; it has tests of its own.
            "HEARTHBOT_BUDGET__BRAKE": "false",
            # Calls behind the scenes have tests of their own: elsewhere calls are counted.
            "HEARTHBOT_MEMORY__INSIGHTS": "false",
            "HEARTHBOT_MEMORY__EXTRACTION__ENABLED": "false",
            **settings,
        }

    def serve_slack(self, slack: Slack, *, listen: str = "", **settings: str) -> None:
        """Points the bot at a workspace too: by socket, or by HTTP where it is to listen."""
        self.env |= {
            "HEARTHBOT_SLACK__BOT_TOKEN": "xoxb-lab",
            "HEARTHBOT_SLACK__APP_TOKEN": "xapp-lab",
            "HEARTHBOT_SLACK__SIGNING_SECRET": "lab-signing-secret",
            "HEARTHBOT_SLACK__BASE_URL": f"{slack.url}/api/",
            "HEARTHBOT_SLACK__RATE_PER_CHAT": "0",
            "HEARTHBOT_SLACK__RATE_TOTAL": "0",
            "HEARTHBOT_ACCESS__MESSAGES_PER_MINUTE": "0",
            "HEARTHBOT_SLACK__RATE_EDITS_MINUTE": "0",
            "HEARTHBOT_SLACK__STREAMING": "false",
            **({"HEARTHBOT_SLACK__MODE": "http"} if listen else {}),
            **({"HEARTHBOT_SLACK__LISTEN": listen} if listen else {}),
            **settings,
        }

    def command(self) -> list[str]:
        """How the program is called."""
        return [sys.executable, "-m", "bot"]

    def process(
        self, arguments: Sequence[str], *, env: Mapping[str, str] | None = None, **options: Any
    ) -> subprocess.Popen[Any]:
        """The program as a process, by the options of `Popen`."""
        return start("bot", arguments, env=env or self.env, anew=self.loads_anew, **options)

    def run(
        self,
        *arguments: str,
        typed: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout_s: float = LONG_S,
    ) -> subprocess.CompletedProcess[str]:
        """One command to its end."""
        streams: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        env = {**self.env, **(env or {})}
        with self.process(arguments, env=env, text=True, **streams) as one:
            try:
                said, errors = one.communicate(typed or "", timeout_s)
            except BaseException:
                one.kill()
                raise
        return subprocess.CompletedProcess(one.args, one.returncode, said, errors)

    def start(self, *arguments: str, **options: Any) -> Running:
        """A command that goes on; without arguments, `run`."""
        self._starts += 1
        errors = self._folder / f"stderr-{self._starts}.txt"
        with errors.open("wb") as file:
            streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": file, "stderr": file}
            process = self.process(arguments or ("run",), **(streams | options))
        running = Running(process=process, errors=errors)
        self._running.append(running)
        return running

    def approve(self, *people: int, role: str = "") -> None:
        """Lets people of Telegram in, by the command line; the first is the owner.

        What that makes of a home that never was is kept beside the folders of the tests, and
        copied for the next one that asks for the same.
        """
        kept = self._folder.parent / "let-in" / "-".join([*map(str, people), role or "default"])
        is_new = not self.path.exists()
        if is_new and kept.exists():
            shutil.copytree(kept, self.path)
            return
        named = ("--role", role) if role else ()
        for person in people:
            done = self.run("access", "approve", f"telegram:{person}", *named)
            assert done.returncode == 0, done.stderr
        if is_new:
            # Without its log, which is as long as this test wants it.
            shutil.copytree(self.path, kept, ignore=shutil.ignore_patterns("hearthbot.log*"))

    def processes(self) -> list[int]:
        """All processes that run on this home."""
        mark = f"HEARTHBOT_HOME={self.path}".encode()
        marked = [int(pid.name) for pid in Path("/proc").glob("[0-9]*") if mark in _environ(pid)]
        # Those that were forked bear no mark, but for what they started themselves.
        return marked + [one.pid for one in self._running if one.process.poll() is None]

    def ask_database(self, sql: str) -> list[tuple[Any, ...]]:
        """Looks at a copy, as whoever opens the file itself might mend it."""
        with self.snapshot() as connection:
            return connection.execute(sql).fetchall()

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """A connection to a copy of the file as it lies there, its `-wal` included."""
        copy = self._folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()
        for file in self.database.parent.glob("hearthbot.db*"):
            shutil.copy(file, copy / file.name)
        with closing(sqlite3.connect(copy / "hearthbot.db")) as connection:
            yield connection

    def close(self) -> None:
        """Nothing stays behind."""
        for running in self._running:
            if running.process.poll() is None:
                running.kill()


def _environ(process: Path) -> bytes:
    try:
        return (process / "environ").read_bytes()
    except OSError:
        return b""
