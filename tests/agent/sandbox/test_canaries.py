"""Thousands of changed commands against one sandbox: nothing outside is changed, and nothing is
read. A thorough run has 5,000 of them."""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
from pathlib import Path
from random import Random

import pytest

from memory.records.errors import AssistantError
from tests.agent.sandbox.given import Home, needs_sandbox, ran
from tests.agent.sandbox.mutations import ALL, ALONG, Places, command, filled
from tests.thorough import rounds

COMMANDS = rounds(400, 5_000)
SINGLY = rounds(80, 1_000)
BATCH = 20
SECRETS = ("canary-beside", "canary-config", "canary-soul", "canary-other", "sk-test1", "t-test2")
"""Content of files outside or covered, and what stands in the environment of the bot. The keys
are asked for by name and value: a program that prints one has got hold of it."""

BATCHED = r"""
import os, re, signal, subprocess, sys
texts = sys.stdin.read().split("\0")
for text in texts:
    child = subprocess.Popen(
        ["bash", "-c", text], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, start_new_session=True, errors="replace",
    )
    try:
        said = child.communicate(timeout=1.5)[0]
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        said = child.communicate()[0]
    for line in re.findall("^.*(?:canary-|-test[12]).*$", said, re.MULTILINE):
        print("heard:", line[:2000])
print("batch done")
"""
"""Runs many commands in one sandbox: each sees what the earlier ones did to it, which makes it only
harder to hold. Of what they say, all lines that could hold a canary come out, so that nothing is
lost by cutting. A batch that does not come to its end is run singly."""


def _stamp(path: Path) -> tuple[object, ...]:
    status = path.stat()
    return (
        hashlib.sha256(path.read_bytes()).hexdigest(),
        status.st_mode,
        status.st_uid,
        status.st_mtime_ns,
        status.st_ino,
        status.st_nlink,
    )


class Grounds:
    """A home with canaries; `check` fails when one was touched or heard of."""

    def __init__(self, root: Path) -> None:
        self.home = Home(root)
        soul = self.home.write("SOUL.md", "canary-soul, which may be read")
        other = self.home.write("memory/people/p2/notes.md", "canary-other")
        skill = self.home.write("skills/mine/SKILL.md", "a skill")
        files = [self.home.beside / "file", self.home.home / "config.toml", soul, other, skill]
        self.before = {path: _stamp(path) for path in files}
        self.core_pattern = Path("/proc/sys/kernel/core_pattern").read_bytes()
        self.secrets = [one for one in SECRETS if one != "canary-soul"]
        self.runner = self.home.runner()
        self.places = Places(
            canary=str(self.home.beside),
            config=str(self.home.home / "config.toml"),
            bot=os.getpid(),
        )

    def check(self, said: str, about: object) -> None:
        for secret in self.secrets:
            assert secret not in said, (secret, about)
        for path, stamp in self.before.items():
            assert path.exists(), (path, about)
            assert _stamp(path) == stamp, (path, about)
        assert Path("/proc/sys/kernel/core_pattern").read_bytes() == self.core_pattern, about
        names = {path.name for path in self.home.home.parent.iterdir()}
        assert names == {"home", "canary"}, about
        assert not (self.home.workspace / "SOUL.md").is_symlink()


async def _said(
    grounds: Grounds, *words: str, timeout_s: float = 3, stdin: str | None = None
) -> str:
    try:
        return await ran(grounds.runner, *words, timeout_s=timeout_s, stdin=stdin)
    except AssistantError as error:
        return str(error)


@needs_sandbox
@pytest.mark.case("SE-07", "SE-15")
@pytest.mark.threat("T8")
async def test_every_attack_alone_leaves_the_canaries_as_they_are(tmp_path: Path) -> None:
    grounds = Grounds(tmp_path)

    for template in ALL:
        text = filled(template, grounds.places)
        said = await _said(grounds, "bash", "-c", text, timeout_s=3)
        grounds.check(said, text)


@needs_sandbox
@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.case("SE-07", "SE-15")
@pytest.mark.threat("T8")
async def test_thousands_of_changed_commands_leave_the_canaries_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test1")
    monkeypatch.setenv("TG_TOKEN", "t-test2")
    grounds = Grounds(tmp_path)
    chance = Random(20260107)
    texts = [command(chance, grounds.places) for _ in range(SINGLY)]
    texts += [command(chance, grounds.places, ALONG) for _ in range(COMMANDS - SINGLY)]

    gate = asyncio.Semaphore(4)
    unfinished: list[str] = []

    async def together(batch: list[str]) -> None:
        async with gate:
            said = await _batch(grounds, batch)
        grounds.check(said, batch)
        if not said.endswith("batch done"):
            unfinished.extend(batch)

    async def alone(text: str) -> None:
        async with gate:
            said = await _said(grounds, "bash", "-c", text, timeout_s=1.5)
        grounds.check(said, text)

    assert "canary-soul" in await _batch(grounds, ["true", "cat SOUL.md"]), "nothing is overheard"
    batches = [texts[start : start + BATCH] for start in range(SINGLY, COMMANDS, BATCH)]
    await asyncio.gather(*map(together, batches))
    await asyncio.gather(*map(alone, texts[:SINGLY] + unfinished))

    assert len(unfinished) < COMMANDS // 10


async def _batch(grounds: Grounds, texts: list[str]) -> str:
    return await _said(grounds, "python3", "-c", BATCHED, stdin="\0".join(texts), timeout_s=60)


@needs_sandbox
@pytest.mark.slow
@pytest.mark.case("SE-07")
@pytest.mark.threat("T8")
async def test_words_without_a_shell_leave_the_canaries_as_they_are(tmp_path: Path) -> None:
    """The same attacks, as a model that knows no argument vectors writes them."""
    grounds = Grounds(tmp_path)
    chance = Random(3)

    for _ in range(rounds(100, 300)):
        words = command(chance, grounds.places).split()[:200] or ["true"]
        said = await _said(grounds, *words, timeout_s=1.5)
        grounds.check(said.replace(" ".join(words), ""), words)


def test_the_attacks_really_harm_where_nothing_confines_them(tmp_path: Path) -> None:
    """Else the tests above would prove nothing. A process of its own, as one command kills all."""
    harmed = 0
    attacks = [
        text for text in ALL if text.startswith(("rm", "c=rm", "echo {b}", "truncate", "sed"))
    ]
    for number, template in enumerate(attacks):
        grounds = Grounds(tmp_path / str(number))
        text = filled(template, grounds.places)
        subprocess.run(["bash", "-c", text], cwd=grounds.home.workspace, check=False)
        file = grounds.home.beside / "file"
        harmed += not file.exists() or _stamp(file) != grounds.before[file]

    assert harmed == len(attacks)
