"""`hearthbot prompt show`: what it prints, how it ends, with and without a running bot."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from bot.cli.main import app
from bot.cli.prompt import diff_lines, plain_lines, text_lines
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


TURN: Shown = {
    "kind": "chat",
    "chat": "telegram:42",
    "turn": "in-7",
    "started_ms": 1_700_000_000_000,
    "model": "gpt-4.1-mini",
    "tokens": 1_000,
    "window": 128_000,
    "fullness": 0.0078125,
    "answer_tokens": 8_192,
    "cached_tokens": 600,
    "cacheable": 0.6,
    "first": False,
    "broke": "skills: skill:boats came",
    "money": {"request": 0.002, "request_with_cache": 0.0008, "counted": 0.0011},
    "parts": [
        part("tools", "tools", 500, "cached", sources=["read_file", "list_dir"]),
        part("base", "system", 100, "cached", sources=["prompts/system.md"], text="You are Vesla."),
        part("skills", "system", 90, "changed", sources=["skill:boats"], text="one\ntwo"),
        part("history", "history", 200, "behind", known=False, text=None),
        part("the person's words", "words", 10),
        part("memories", "block", 100, sources=["fact:1", "fact:2"]),
    ],
    "tools": ["read_file", "list_dir"],
    "spared": ["current chat"],
    "cuts": [{"layer": "memories", "tokens_before": 300, "tokens_after": 100}],
    "picked": [{"name": "rule:x", "why": "the pattern a\tb fits"}],
    "requests": [
        {
            "tokens": 1_004,
            "cached_tokens": 600,
            "changed": "skills",
            "model": "gpt-4.1-mini",
            "error": "",
            "counted": {"prompt": 1_010, "completion": 30, "cached": 512},
        },
        {
            "tokens": 1_100,
            "cached_tokens": 1_004,
            "changed": "",
            "model": "",
            "error": "ModelTimeout",
            "counted": None,
        },
    ],
}

PLAIN = """\
kind	chat
chat	telegram:42
turn	in-7
model	gpt-4.1-mini
tokens	1000	0.8 %
window	128000
answer	8192
cacheable	600	60 %
money	$0.0020	$0.00080 with cache	$0.0011 counted
part	tools	tools	500	50 %	$0.0010	cached	read_file, list_dir
part	base	system	100	10 %	$0.00020	cached	prompts/system.md
part	skills	system	90	9.0 %	$0.00018	changed	skill:boats
part	history	history	200	20 %	$0.00040	behind
part	the person's words	words	10	1.0 %	$0.000020	new
part	memories	block	100	10 %	$0.00020	new	fact:1, fact:2
broke	skills: skill:boats came
spared	current chat	stands above, not sent again
cut	memories	300	100	no room
picked	rule:x	the pattern a b fits
request	1	1004	600 cacheable	1010 counted	512 cached	30 answered
request	2	1100	1004 cacheable	ModelTimeout
"""

TEXTS = """\

===== base · system · 100 tokens · 1 line =====
You are Vesla.

===== skills · system · 90 tokens · 2 lines =====
one
two

===== history · history · 200 tokens · not stored any more =====
"""

DIFF: Shown = {
    "before": {"turn": "in-6", "chat": "telegram:42", "tokens": 800},
    "after": {"turn": None, "chat": "telegram:42", "tokens": 1_000},
    "tokens": 200,
    "history_tokens": 150,
    "layers": [
        {
            "name": "skills",
            "where": "system",
            "change": "changed",
            "tokens_before": 80,
            "tokens_after": 90,
            "diff": ["@@ -1 +1,2 @@", " one", "+two"],
        },
        {
            "name": "memories",
            "where": "block",
            "change": "came",
            "tokens_before": 0,
            "tokens_after": 100,
            "diff": None,
        },
        {
            "name": "current chat",
            "where": "block",
            "change": "spared",
            "tokens_before": 17,
            "tokens_after": 0,
            "diff": [],
        },
    ],
    "tools_came": ["list_dir"],
    "tools_went": ["write_file"],
    "broke": "skills: skill:boats came",
    "first": False,
}

DIFF_PLAIN = """\
from	in-6	800
to	now	1000
tokens	+200
history	+150
layer	changed	skills	system	80	90
diff	@@ -1 +1,2 @@
diff	 one
diff	+two
layer	came	memories	block	0	100
diff	(a text is not stored any more)
layer	spared	current chat	block	17	0
tool	came	list_dir
tool	went	write_file
broke	skills: skill:boats came
"""


def joined(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def test_the_plain_form_is_as_reviewed() -> None:
    assert joined(plain_lines(TURN)) == PLAIN


def test_the_texts_are_told_apart() -> None:
    shown = {**TURN, "parts": [one for one in TURN["parts"] if "text" in one]}

    assert joined(text_lines(shown)) == TEXTS


def test_a_diff_is_as_reviewed() -> None:
    assert joined(diff_lines(DIFF)) == DIFF_PLAIN


def test_an_unknown_price_and_a_first_request_are_said() -> None:
    parts = [{**one, "money": None} for one in TURN["parts"]]
    shown = {**TURN, "money": None, "broke": "", "first": True, "parts": parts, "requests": []}

    plain = joined(plain_lines(shown))

    assert "money\tprice unknown\n" in plain
    assert "part\tbase\tsystem\t100\t10 %\t\tcached" in plain
    assert "broke\tno request before is recorded\n" in plain


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


def test_json_is_one_object_with_the_same_facts(home: Path) -> None:
    result = run("--json", "--full", "--message", "hello")

    shown = json.loads(result.stdout)
    assert shown["turn"] is None
    assert shown["tokens"] == sum(one["tokens"] for one in shown["parts"])
    assert {one["name"]: one["text"] for one in shown["parts"]}["the person's words"] == "hello"


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
