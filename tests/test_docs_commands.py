"""Every command that a page shows is run: against the stand-ins, in a home of its own."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bot.lab.model import ScriptedModel
from bot.lab.telegram import FakeTelegram
from tests.checkout import PAGES, ROOT
from tests.test_docs import blocks

STRANGER = 4242

SHOWN_ONLY = {
    "make run": "serves until it is stopped; `hearthbot` alone, which it calls, is run here",
    "make test": "is what runs this test",
    "hearthbot init": "asks questions at a terminal; tests/acceptance/test_init.py answers them",
    "make lint": "a run of its own in .ci/run",
    "make bench": "measures for minutes",
    "make setup": "installs; it was run to get here",
    "make format": "would change the files under test",
    "make lock": "needs uv and a package server",
    "make clean": "would take away the environment of the test",
}
"""Commands that a test cannot run to their end. Make says with -n what each would do."""

SERVICE = re.compile(r"(?:systemctl|journalctl|loginctl)\b")
"""The service manager of a machine is not for tests to touch."""

page_by_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def shown(page: Path) -> list[str]:
    """The command lines of a page, in order, those that go on with a backslash joined."""
    text = "".join(blocks(page, "sh")).replace("\\\n", " ")
    lines = [line.partition("  #")[0].strip() for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


class Sandbox:
    """A home, the stand-ins, and a bot that serves them."""

    def __init__(self, folder: Path, telegram: FakeTelegram, model: ScriptedModel) -> None:
        self._folder = folder
        self._telegram = telegram
        self._serving: asyncio.subprocess.Process | None = None
        self.code = ""
        scripts = Path(sys.executable).parent
        self._env = {
            "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder),
            "HEARTHBOT_TELEGRAM__TOKEN": telegram.token,
            "HEARTHBOT_TELEGRAM__BASE_URL": telegram.base_url,
            "HEARTHBOT_LLM__API_BASE": model.api_base,
            "HEARTHBOT_LLM__MODEL": "lab-model",
        }

    async def serve(self, line: str) -> None:
        """Starts a bot by `hearthbot run` or `hearthbot` as written, in place of the former one."""
        await self.stop()
        self._serving = await self._spawn(f"exec {line}")
        polls = len(self._telegram.calls("getUpdates"))
        await self._telegram.until(
            lambda: len(self._telegram.calls("getUpdates")) > polls, timeout_s=30
        )

    async def stop(self) -> None:
        """By SIGTERM; the bot has to end well."""
        if self._serving is not None:
            serving, self._serving = self._serving, None
            serving.terminate()
            _, said = await asyncio.wait_for(serving.communicate(), 30)
            assert serving.returncode == 0, said.decode()

    async def meet(self) -> None:
        """A stranger writes, and is given a code."""
        self._telegram.message(chat_id=STRANGER, text="Hello")

        def codes() -> list[str]:
            texts = [message.text for message in self._telegram.chat(STRANGER)]
            return re.findall(r"code: (\w{8})", "\n".join(texts))

        await self._telegram.until(codes, timeout_s=30)
        self.code = codes()[-1]

    async def start(self, line: str) -> None:
        """Starts a server that says its address, and ends it."""
        process = await self._spawn(f"exec {line}")
        assert process.stdout is not None
        said = await asyncio.wait_for(process.stdout.readline(), 30)
        process.terminate()
        await process.communicate()
        assert b"http://127.0.0.1:" in said, line

    async def run(self, line: str, said: bytes = b"Hello\n", **settings: str) -> str:
        """Runs a command to its end, which has to be a good one; returns what it printed."""
        process = await self._spawn(line.replace("CODE", self.code), **settings)
        out, err = await asyncio.wait_for(process.communicate(said), 60)
        assert process.returncode == 0, f"{line}\n{out.decode()}{err.decode()}"
        return out.decode()

    async def _spawn(self, line: str, **settings: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *("bash", "-c", line),
            cwd=self._folder / "checkout",
            env=self._env | settings,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )


@asynccontextmanager
async def sandbox(folder: Path) -> AsyncIterator[Sandbox]:
    """Beside the home lies the checkout that a page speaks of."""
    checkout = folder / "checkout"
    checkout.mkdir()
    (folder / ".hearthbot").mkdir(mode=0o700)
    (checkout / ".venv").symlink_to(Path(sys.prefix))
    for entry in ROOT.iterdir():
        if not entry.name.startswith("."):
            (checkout / entry.name).symlink_to(entry)
    async with FakeTelegram() as telegram, ScriptedModel() as model:
        box = Sandbox(folder, telegram, model)
        try:
            yield box
        finally:
            await box.stop()


@page_by_page
@pytest.mark.timeout(240)
async def test_every_command_of_a_page_works(page: Path, tmp_path: Path) -> None:
    lines = [line for line in shown(page) if line not in SHOWN_ONLY and not SERVICE.match(line)]
    if not lines:
        return

    async with sandbox(tmp_path) as box:
        await box.serve("hearthbot run")
        await box.meet()
        for line in lines:
            if line in {"hearthbot", "hearthbot run"}:
                await box.serve(line)
            elif line.startswith("python -m bot.lab."):
                await box.start(re.sub(r"--port \d+", "--port 0", line))
            elif line == "hearthbot run --once":
                await box.stop()
                await box.run(line)
                await box.serve("hearthbot run")
            else:
                await box.run(line)


async def test_hearthbot_alone_ends_by_itself_when_nobody_types(tmp_path: Path) -> None:
    async with sandbox(tmp_path) as box:
        for said in (b"", b"Hello\n"):
            shown = await box.run("hearthbot", said, HEARTHBOT_TELEGRAM__TOKEN="")

            assert "No channel is set up" in shown
            assert ("You said: Hello" in shown) is bool(said)


def test_every_make_target_that_a_page_shows_exists() -> None:
    lines = {line for page in PAGES for line in shown(page) if "make " in line}
    targets = {word for line in lines for word in re.findall(r"\bmake (\w+)", line)}

    for target in targets:
        made = subprocess.run(
            ["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert made.returncode == 0, made.stderr


def test_make_help_names_every_target_that_a_person_calls() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE)) - {"help"}

    said = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout

    assert set(re.findall(r"^make (\w+)", said, re.MULTILINE)) == targets


def test_the_list_of_commands_that_are_only_shown_is_not_longer_than_the_pages_need() -> None:
    used = {line for page in PAGES for line in shown(page)}

    assert set(SHOWN_ONLY) <= used
