"""Many chats write at once, one of them far more than its share, and the platforms' limits are in
force: `tests/acceptance/test_surge.py` drives this and judges what came of it."""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Literal

from tests.acceptance.rig import (
    SLACK_TEAM,
    Home,
    Model,
    Running,
    Slack,
    StandIn,
    Telegram,
    until,
)

Platform = Literal["telegram", "slack"]

SETTLED_S = 900.0
"""A hang guard: the platforms' own limits make a whole surge take five minutes."""

OPEN = """
select (select count(*) from inbox where ended_ms is null)
    + (select count(*) from turns where ended_ms is null)
    + (select count(*) from outbox where ended_ms is null)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surge:
    """What is written: `messages` in `seconds` over `chats`, `loud` of them in the first one."""

    messages: int = 1_000
    chats: int = 50
    loud: int = 300
    seconds: float = 10.0

    @property
    def people(self) -> range:
        """Their numbers; the first is the loud one, where there is one."""
        return range(1, self.chats + 1)

    def lines(self, chance: Random) -> list[tuple[int, str]]:
        """Who writes what, in order: each text bears its chat and its number there."""
        first, *others = self.people
        share = [others[n % len(others)] for n in range(self.messages - self.loud)]
        writers = [first] * self.loud + share
        chance.shuffle(writers)
        counts: defaultdict[int, int] = defaultdict(int)
        lines = []
        for writer in writers:
            lines.append((writer, mark(writer, counts[writer])))
            counts[writer] += 1
        return lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Came:
    """What came of a surge. Memory in MB."""

    asked: dict[int, list[str]]
    shown: dict[int, list[str]]
    refused: int
    """Requests that the platform turned away for their pace (429)."""
    memory_before_mb: float
    memory_peak_mb: float


def mark(chat: int, number: int) -> str:
    """Stands in a message, and comes back in its answer."""
    return f"m-{chat:02d}-{number:03d}"


class Stage:
    """A real bot on one platform, everybody of the surge let in."""

    def __init__(self, home: Home, platform: Platform, stand_in: StandIn, people: range) -> None:
        self._home = home
        self._platform = platform
        self._stand_in = stand_in
        self._method = "sendMessage" if platform == "telegram" else "chat.postMessage"
        if platform == "telegram":
            home.env["HEARTHBOT_TELEGRAM__ALLOW_FROM"] = str(list(people))
        else:
            names = ",".join(f"{SLACK_TEAM}:{_member(number)}" for number in people)
            home.env["HEARTHBOT_SLACK__ALLOW_FROM"] = names

    def run(self, surge: Surge, *, seed: int = 1) -> Came:
        """Starts the bot, lets all be written and answered, and stops it."""
        running = self._home.start()
        until(lambda: self._is_reached(running))
        before = _memory_mb(running, "VmRSS")
        lines = surge.lines(Random(seed))
        began = time.monotonic()
        for number, (writer, text) in enumerate(lines):
            wait_s = began + number * surge.seconds / len(lines) - time.monotonic()
            if wait_s > 0:
                time.sleep(wait_s)
            self._says(writer, text)
        until(self._is_settled, timeout_s=SETTLED_S)
        peak = _memory_mb(running, "VmHWM")
        running.end()
        asked: defaultdict[int, list[str]] = defaultdict(list)
        for writer, text in lines:
            asked[writer].append(text)
        log = self._stand_in.ask("log", method=self._method)
        return Came(
            asked=dict(asked),
            shown={writer: self._shown(writer) for writer in asked},
            refused=sum(entry["status"] == 429 for entry in log),
            memory_before_mb=before,
            memory_peak_mb=peak,
        )

    # --- the platforms ---------------------------------------------------------------------------

    def _is_reached(self, running: Running) -> bool:
        said = running.said()
        assert running.process.poll() is None, said[-2000:]
        if self._platform == "telegram":
            return "telegram.connected" in said
        return bool(self._stand_in.ask("sockets"))

    def _is_settled(self) -> bool:
        time.sleep(0.2)
        return not self._stand_in.ask("pending") and self._home.ask_database(OPEN) == [(0,)]

    def _says(self, writer: int, text: str) -> None:
        if isinstance(self._stand_in, Telegram):
            self._stand_in.says(writer, text)
        else:
            self._stand_in.ask("post", user=_member(writer), text=text)

    def _shown(self, writer: int) -> list[str]:
        """What the person sees of us, message by message."""
        if isinstance(self._stand_in, Telegram):
            return self._stand_in.shown(writer)
        channel = self._stand_in.ask("direct", user=_member(writer))
        seen = self._stand_in.ask("chat", channel=channel)
        return [post["text"] for post in seen if post["is_bot"]]


def name_in(text: str) -> str:
    """The mark in a reply."""
    at = text.index("m-")
    return text[at : at + 8]


def _member(number: int) -> str:
    return f"U0P{number:03d}"


def _memory_mb(running: Running, what: str) -> float:
    status = Path(f"/proc/{running.pid}/status").read_text("utf-8")
    line = next(line for line in status.splitlines() if line.startswith(f"{what}:"))
    return int(line.split()[1]) / 1024


@contextmanager
def staged(platform: Platform, *, limits: bool) -> Iterator[Callable[[Surge], Came]]:
    """Runs surges on a fresh home; `limits`: the platform's are in force, and the bot's own."""
    options = ("--limits",) if limits else ()
    with (
        tempfile.TemporaryDirectory(prefix="hearthbot-surge-") as folder,
        closing(Telegram(*options)) as telegram,
        closing(Slack(*options)) as slack,
        closing(Model()) as model,
        closing(Home(Path(folder))) as home,
    ):
        home.serve_with(telegram, model, **(DEFAULT_LIMITS if limits else {}))
        stand_in: StandIn = telegram
        if platform == "slack":
            stand_in = slack
            del home.env["HEARTHBOT_TELEGRAM__TOKEN"]
            home.serve_slack(slack, **(SLACK_LIMITS if limits else {}))
        yield lambda surge: Stage(home, platform, stand_in, surge.people).run(surge)


DEFAULT_LIMITS = {
    "HEARTHBOT_TELEGRAM__RATE_PER_CHAT": "1",
    "HEARTHBOT_TELEGRAM__RATE_PER_GROUP_MINUTE": "20",
    "HEARTHBOT_TELEGRAM__RATE_TOTAL": "30",
}
SLACK_LIMITS = {
    "HEARTHBOT_SLACK__RATE_PER_CHAT": "1",
    "HEARTHBOT_SLACK__RATE_TOTAL": "5",
    "HEARTHBOT_SLACK__RATE_EDITS_MINUTE": "50",
}
