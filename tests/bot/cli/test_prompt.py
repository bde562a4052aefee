"""`hearthbot prompt show`: what it prints, how it ends, with and without a running bot."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from bot.cli.main import app
from tests.bot.kit import OWNER, Rig, eventually, rigged
from tests.fork_server import plain_env, start

Shown = dict[str, Any]

# --- what is printed ---------------------------------------------------------------------------


def part(name: str, where: str, tokens: int, cache: str = "new", **more: Any) -> Shown:
    return {
        "name": name,
        "where": where,
        "tokens": tokens,
        "share": tokens / 1_000,
        "money": tokens * 0.000002,
        "cache": cache,
        "cached_tokens": tokens if cache == "cached" else 0,
        "sources": [],
        "known": True,
        **more,
    }


# --- without a running bot ---------------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home whose model nobody serves: whoever asked it would fail."""
    path = tmp_path / "home"
    monkeypatch.setenv("HEARTHBOT_HOME", str(path))
    monkeypatch.setenv("HEARTHBOT_LLM__MODEL", "openai/gpt-4.1-mini")
    monkeypatch.setenv("HEARTHBOT_LLM__API_BASE", "http://127.0.0.1:9/v1")
    return path


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["prompt", "show", *words])


def test_a_fresh_home_shows_its_prompt_without_asking_anybody(home: Path) -> None:
    result = run("--message", "please draft an email to Tom")

    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "kind\tchat"
    assert "chat\tconsole:local" in lines
    assert "turn\tnow" in lines
    assert any(line.startswith("part\tbase\tsystem\t") for line in lines)
    (picked,) = [line for line in lines if line.startswith("picked\tplaybook:email-compose\t")]
    assert "draft an email" in picked


def test_the_price_is_that_of_the_model(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEARTHBOT_LLM__API_BASE")
    monkeypatch.setenv("HEARTHBOT_LLM__API_KEY", "a key that nobody gets to see")

    shown = json.loads(run("--json", "--message", "hello").stdout)

    each = shown["money"]["request"] / shown["tokens"]
    assert each == pytest.approx(0.4e-6), "gpt-4.1-mini: $0.40 a million"
    assert sum(one["money"] for one in shown["parts"]) == pytest.approx(shown["money"]["request"])


def test_full_prints_the_texts_too(home: Path) -> None:
    result = run("--full", "--message", "what\x1b[31m now")

    assert "\n===== base · system · " in result.stdout
    assert "## Current Date & Time" in result.stdout
    assert "\nwhat now\n" in result.stdout
    assert "\x1b" not in result.stdout, "what others wrote cannot steer the terminal"


def test_the_list_of_a_heartbeat_is_that_of_the_workspace(home: Path) -> None:
    run()
    (home / "workspace" / "HEARTBEAT.md").write_text("Look after the boat.")

    result = run("--kind", "heartbeat", "--full")

    assert "kind\theartbeat" in result.stdout
    assert "Look after the boat." in result.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--chat", "telegram:42"], "Nobody is known in the chat telegram:42"),
        (["--turn", "1"], "Nothing was sent to the model in console:local yet"),
        (["--turn", "in-9"], "No turn 'in-9' is recorded"),
        (["--diff", "2", "1"], "Nothing was sent to the model in console:local yet"),
    ],
)
def test_what_is_not_there_is_one_sentence_and_a_failure(
    words: list[str], said: str, home: Path
) -> None:
    result = run(*words)

    assert result.exit_code == 1
    assert result.stdout == ""
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "words",
    [
        ["--chat", "Ada"],
        ["--chat", "telegram:"],
        ["--diff", "1"],
        ["--diff", "2", "1", "--turn", "1"],
        ["--diff", "2", "1", "--full"],
        ["--turn", "1", "--message", "x"],
        ["--turn", "1", "--kind", "heartbeat"],
        ["--kind", "proactive"],
        ["--kind", "heartbeat", "--message", "x"],
        ["--kind", "dream"],
    ],
)
def test_options_that_do_not_fit_are_wrong_usage(words: list[str], home: Path) -> None:
    result = run(*words)

    assert result.exit_code == 2
    assert result.stdout == ""
    assert not home.exists(), "nothing was opened for it"


# --- beside a running bot ----------------------------------------------------------------------


async def hearthbot(rig: Rig, *words: str) -> tuple[int, str, str]:
    env = {**plain_env(), **rig.env, "HEARTHBOT_HOME": str(rig.home.path)}
    words = ("prompt", "show", *words)
    with start("bot", words, env=env, stdout=PIPE, stderr=PIPE, text=True) as one:
        out, err = await asyncio.to_thread(one.communicate, timeout=30)
    return one.returncode, out, err


async def test_beside_a_running_bot_it_asks_that_one(tmp_path: Path) -> None:
    chat = f"telegram:{OWNER}"
    async with rigged(tmp_path) as rig, rig.running(OWNER) as bot:
        for count, text in enumerate(("one", "two"), 1):
            rig.says(text)
            await eventually(partial(rig.wrote, count))
            await rig.quiet(bot)

        code, out, err = await hearthbot(rig, "--chat", chat, "--turn", "1", "--full", "--json")
        plain = await hearthbot(rig, "--chat", chat, "--diff", "2", "1")
        wrong = await hearthbot(rig, "--chat", "telegram:77")

    assert code == 0, err
    shown = json.loads(out)
    system = "\n\n".join(one["text"] for one in shown["parts"] if one["where"] == "system")
    assert system == rig.model.requests[1]["messages"][0]["content"]
    assert plain[0] == 0
    assert plain[1].startswith("from\tin-1\t")
    assert "history\t+" in plain[1]
    assert wrong[0] == 1
    assert "Nobody is known in the chat telegram:77" in wrong[2]
    assert len(rig.model.requests) == 2
