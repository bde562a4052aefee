"""How many of our own functions a message goes through, from Telegram's library to the provider."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.rig import Home, Model, Telegram, until

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"

STATIONS_MAX = 14
"""See docs/architecture.md, "The way of one message"."""


class TracedHome(Home):
    """A home whose program writes down the way of the first message."""

    def process(
        self, arguments: Sequence[str], *, env: Mapping[str, str] | None = None, **options: Any
    ) -> subprocess.Popen[Any]:
        if list(arguments) != ["run"]:
            return super().process(arguments, env=env, **options)
        words = ["-m", "tests.acceptance.hops", str(self.path.parent / "way.json"), *arguments]
        return subprocess.Popen([sys.executable, *words], env=env or self.env, **options)


@pytest.fixture
def home(tmp_path: Path, telegram: Telegram, model: Model) -> Iterator[Home]:
    home = TracedHome(tmp_path)
    home.serve_with(telegram, model)
    yield home
    home.close()


def test_a_message_goes_through_few_functions_on_its_way_to_the_model(
    home: Home, telegram: Telegram
) -> None:
    """Stations are the functions of ours that are on the stack when the provider's client sends its
    request: each was called by the one before it and waits for it.

    The first is the one to which python-telegram-bot's `get_updates` returned. Where a function
    handed the rest over to a task, the stack on which that task was created stands before the
    task's own. What is called aside and has returned by then (storing the update, the prompt, the
    budget) is no station; nor are frames of libraries.
    """
    home.approve(7)
    telegram.says(7, "hello")
    running = home.start()
    (reply,) = until(lambda: telegram.shown(7), about=running.said)
    assert reply == "You said: hello"
    assert running.end() == 0

    way = json.loads((home.path.parent / "way.json").read_text("utf-8"))
    stations = list(dict.fromkeys(f"{Path(file).with_suffix('')}: {name}" for file, name in way))
    print("\n" + "\n".join(f"{n:2} {one}" for n, one in enumerate(stations, 1)))
    assert any(one.startswith("bot/channels/telegram/") for one in stations[:1]), stations
    assert any(one.startswith("agent/models/") for one in stations[-1:]), stations
    assert len(stations) <= STATIONS_MAX, "\n".join(stations)
    named = re.findall(r"^\| \d+ \| \[?`(.+?)`", PAGE.read_text("utf-8"), re.MULTILINE)
    assert named == [one.partition(": ")[2] for one in stations]
