"""`hearthbot doctor`, by itself and beside a bot: each planted fault is named with its fix."""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from bot.cli.main import app
from bot.lab.slack_state import BOT_SCOPES
from tests.acceptance.rig import TOKEN, Home, Model, StandIn, Telegram, until
from tests.acceptance.terminal import Terminal
from tests.agent.sandbox.given import needs_sandbox

NOW_MS = int(time.time() * 1000)
DAY_S = 86_400
XOXB, XAPP = "xoxb-canary-1", "xapp-canary-1"
CONFLICT = {
    "ok": False,
    "error_code": 409,
    "description": "Conflict: terminated by other getUpdates request",
}


# The stand-ins are shared, and well behaved when a test begins: what is planted is at home.


@pytest.fixture(scope="module")
def telegram() -> Iterator[Telegram]:
    with closing(Telegram()) as stand_in:
        yield stand_in


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with closing(Model()) as stand_in:
        yield stand_in


@pytest.fixture(scope="module")
def slack() -> Iterator[StandIn]:
    with closing(StandIn("bot.lab.slack", "--token", XOXB, "--app-token", XAPP)) as stand_in:
        yield stand_in


@dataclass(frozen=True)
class World:
    """A home that is well but for what a test does to it."""

    home: Home
    telegram: Telegram
    model: Model
    slack: StandIn

    @property
    def path(self) -> Path:
        return self.home.path

    def configured(self, text: str) -> None:
        file = self.path / "config.toml"
        file.write_text(text)
        file.chmod(0o600)

    def sql(self, *statements: str) -> None:
        with closing(sqlite3.connect(self.home.database)) as connection, connection:
            for statement in statements:
                connection.execute(statement)

    def backup(self) -> Path:
        folder = self.home.database.parent / "backups"
        folder.mkdir(mode=0o700, exist_ok=True)
        file = folder / "hearthbot-20260101.db"
        with closing(sqlite3.connect(self.home.database)) as connection:
            connection.execute("vacuum into ?", (str(file),))
        file.chmod(0o600)
        return file

    def with_slack(self) -> None:
        self.home.env |= {
            "HEARTHBOT_SLACK__BOT_TOKEN": XOXB,
            "HEARTHBOT_SLACK__APP_TOKEN": XAPP,
            "HEARTHBOT_SLACK__BASE_URL": f"{self.slack.url}/api/",
        }
        self.without_telegram()

    def without_telegram(self) -> None:
        self.home.env["HEARTHBOT_TELEGRAM__TOKEN"] = ""

    def model_is(self, **settings: str) -> None:
        self.without_telegram()
        self.home.env |= {f"HEARTHBOT_LLM__{key.upper()}": text for key, text in settings.items()}


@pytest.fixture
def world(home: Home, telegram: Telegram, model: Model, slack: StandIn) -> World:
    home.env["TZ"] = "Europe/Berlin"
    home.approve(7)
    for stand_in in (telegram, model, slack):
        stand_in.ask("clear_faults")
    httpx.post(f"{telegram.url}/bot{TOKEN}/deleteWebhook", trust_env=False)
    slack.ask("set", token_error=None, bot_scopes=BOT_SCOPES.split())
    slack.ask("set", app_scopes=["connections:write"])
    return World(home, telegram, model, slack)


def examined(home: Home, *options: str) -> list[dict[str, str]]:
    """What doctor finds; its exit code must fit, and no secret may be shown."""
    done = CliRunner().invoke(app, ["doctor", "--json", *options], env=home.env)
    print(done.stdout, done.stderr)
    answer = json.loads(done.stdout)
    assert done.exit_code == (0 if answer["ok"] else 1)
    assert done.stderr == ""
    for secret in (TOKEN, TOKEN.partition(":")[2], "lab-key", XOXB, XAPP):
        assert secret not in done.stdout
    checks: list[dict[str, str]] = answer["checks"]
    assert answer["ok"] == all(check["level"] != "fail" for check in checks)
    assert all(check["fix"] for check in checks if check["level"] != "ok")
    return checks


def named(found: Sequence[dict[str, str]], check: str) -> str:
    return "\n".join(
        f"{one['level']}: {one['text']} → {one['fix']}" for one in found if one["name"] == check
    )


# --- the faults: what is done, the check that names it, what it says, and how it is mended --------

Plant = Callable[[World], Any]


def both(first: Plant, second: Plant) -> Plant:
    """One after the other."""

    def plant(world: World) -> None:
        first(world)
        second(world)

    return plant


def _socket(world: World) -> None:
    running = world.home.start()
    until(running.serving)
    running.kill()


def _corrupt(world: World) -> None:
    world.backup()
    for name in ("-wal", "-shm"):
        Path(f"{world.home.database}{name}").unlink(missing_ok=True)
    with world.home.database.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 8192)


def _missing(world: World) -> None:
    world.backup()
    world.home.database.unlink()


def _old_backup(world: World) -> None:
    os.utime(world.backup(), (time.time() - 9 * DAY_S,) * 2)


def _large_log(world: World) -> None:
    file = world.path / "logs" / "forgotten.txt"
    file.touch(0o600)
    os.truncate(file, 80 * 1024 * 1024)


def _broken_skill(world: World) -> None:
    (world.path / "workspace" / "skills" / "Bad Name").mkdir(parents=True)
    (world.path / "workspace" / "skills" / "Bad Name" / "SKILL.md").write_text("no front matter")


def _broken_prompt(world: World) -> None:
    (world.path / "workspace" / "prompts").mkdir()
    (world.path / "workspace" / "prompts" / "language.md").write_text("Speak.")


def _data_is_a_file(world: World) -> None:
    for file in (world.path / "data").iterdir():
        file.unlink()
    (world.path / "data").rmdir()
    (world.path / "data").write_text("")


def _webhook(world: World) -> None:
    url = f"{world.telegram.url}/bot{TOKEN}/setWebhook"
    assert httpx.post(url, data={"url": "https://hooks.example/x"}, trust_env=False).json()["ok"]


def _row(state: str, ended_ms: str) -> str:
    return (
        "insert into inbox (source, event_id, state, received_ms, ended_ms) "
        f"values ('telegram:1', '{state}', '{state}', {NOW_MS}, {ended_ms})"
    )


def _reply(state: str) -> str:
    return (
        "insert into outbox (lane, state, created_ms, ended_ms) "
        f"values ('telegram:7', '{state}', {NOW_MS}, {NOW_MS})"
    )


OFFLINE: dict[str, tuple[Plant, str, str, str]] = {
    "a misspelt key": (
        lambda w: w.configured('[telegram]\ntokn = "x"\n'),
        "settings", "telegram.tokn: unknown key", "Correct it",
    ),
    "a config.toml that is none": (
        lambda w: w.configured("[telegram\n"), "settings", "line 1", "Correct it",
    ),
    "a secret for all to read": (
        both(
            lambda w: w.configured(f'[telegram]\ntoken = "{TOKEN}"\n'),
            lambda w: (w.path / "config.toml").chmod(0o644),
        ),
        "modes", "fail: ", "chmod 600",
    ),
    "a data folder for all to write": (
        lambda w: (w.path / "data").chmod(0o777), "modes", "can be changed by others", "chmod 700",
    ),
    "a database for all to read": (
        lambda w: w.home.database.chmod(0o644), "modes", "hearthbot.db can be read", "chmod 600",
    ),
    "a missing folder": (
        both(
            lambda w: (w.path / "workspace" / "HEARTBEAT.md").unlink(),
            lambda w: (w.path / "workspace").rmdir(),
        ),
        "folders", "workspace is missing", "mkdir -m 700",
    ),
    "a file where a folder belongs": (
        _data_is_a_file, "folders", "data is not a folder", "mv ",
    ),
    "a socket of a killed bot": (_socket, "process", "left over", "next start removes it"),
    "a half-written file": (
        lambda w: (w.path / ".config.toml.x1y2").touch(0o600), "leftovers", "being written", "rm ",
    ),
    "a log that grew": (_large_log, "log", "80.0 MB", "forgotten.txt"),
    "a file that is no database": (
        lambda w: w.home.database.write_bytes(b"SQLite? No."),
        "database", "fail: ", "no good backup",
    ),
    "a damaged database": (_corrupt, "database", "damaged", "hearthbot-20260101.db"),
    "a database that is gone": (_missing, "database", "missing", "hearthbot-20260101.db"),
    "a database of the future": (
        lambda w: w.sql("pragma user_version = 999"),
        "database", "newer Hearthbot", "newer version",
    ),
    "somebody else's database": (
        lambda w: w.sql("pragma application_id = 1"), "database", "not a database of", "begin anew",
    ),
    "a backup of long ago": (_old_backup, "backup", "days older", "housekeeping"),
    "a message without an end": (
        lambda w: w.sql(_row("replied", "null")), "inbox", "does not fit their end", "report",
    ),
    "a message that waits for nothing": (
        lambda w: w.sql(_row("queued", "null")), "inbox", "a turn that is over", "Restart",
    ),
    "messages that wait for the bot": (
        lambda w: w.sql(_row("received", "null")), "inbox", "1 message waits", "hearthbot run",
    ),
    "a reply of unknown fate": (
        lambda w: w.sql(_reply("unknown")), "outbox", "may have arrived", "reliability",
    ),
    "a refused reply": (
        lambda w: w.sql(_reply("failed")), "outbox", "could not be delivered", "outbox.refused",
    ),
    "nobody is the owner": (
        lambda w: w.sql("delete from addresses"), "owner", "nobody", "access approve",
    ),
    "a zone of a person that is none": (
        lambda w: w.sql("update people set time_zone = 'Mars/Base'"),
        "time zone", "Mars/Base", "tzdata",
    ),
    "a zone of the machine that is none": (
        lambda w: w.home.env.update(TZ="Mars/Base"), "time zone", "Mars/Base", "Correct TZ",
    ),
    "a broken skill": (_broken_skill, "skills", "Bad Name", "hearthbot skills validate"),
    "a prompt without its placeholder": (_broken_prompt, "prompts", "language.md", "shipped one"),
    "a persona that is not there": (
        lambda w: w.configured('[agents.default]\nsystem_prompt_file = "me.md"\n'),
        "prompts", "me.md", "Correct that file",
    ),
    "no channel": (lambda w: w.without_telegram(), "channels", "none is set up", "hearthbot init"),
}  # fmt: skip

ONLINE: dict[str, tuple[Plant, str, str, str]] = {
    "a model without its key": (
        lambda w: w.model_is(model="openai/gpt-4.1-mini", api_base="", api_key=""),
        "model", "needs a key of OpenAI", "OPENAI_API_KEY",
    ),
    "a key that is refused": (
        both(
            World.without_telegram, lambda w: w.model.ask("named_fault", kind="401", times=None)
        ),
        "model", "did not accept the API key", "llm.api_key",
    ),
    "a model server that is away": (
        lambda w: w.model_is(api_base="http://127.0.0.1:9/v1"),
        "model", "cannot be reached", "running",
    ),
    "a stand-in model that is not set up": (
        both(
            World.without_telegram, lambda w: w.configured('[llm]\nfallbacks = ["groq/llama"]\n')
        ),
        "model groq/llama", "needs a key of Groq", "GROQ_API_KEY",
    ),
    "a demo for a model": (
        lambda w: w.model_is(model="embedded", api_base="", api_key=""),
        "model", "demo", "llm.model",
    ),
    "a token that Telegram refuses": (
        lambda w: w.home.env.update(HEARTHBOT_TELEGRAM__TOKEN="123456:WRONG"),
        "Telegram", "does not accept the token", "@BotFather",
    ),
    "no way to Telegram": (
        lambda w: w.home.env.update(HEARTHBOT_TELEGRAM__BASE_URL="http://127.0.0.1:9"),
        "Telegram", "cannot be reached at 127.0.0.1:9", "Check the network",
    ),
    "a webhook in the way": (
        _webhook,
        "Telegram webhook", "hooks.example", "hearthbot run removes it",
    ),
    "another copy with the same token": (
        lambda w: w.telegram.ask(
            "fault", method="getUpdates", action={"kind": "answer", "status": 409, "body": CONFLICT}
        ),
        "Telegram conflict", "409", "Stop that copy",
    ),
    "a revoked token of Slack": (
        both(World.with_slack, lambda w: w.slack.ask("set", token_error="token_revoked")),
        "Slack", "revoked", "install the app again",
    ),
    "an app without a scope": (
        both(World.with_slack, lambda w: w.slack.ask("set", bot_scopes=["chat:write"])),
        "Slack", "lacks the scopes app_mentions:read", "Reinstall to Workspace",
    ),
    "an app-level token without its scope": (
        both(World.with_slack, lambda w: w.slack.ask("set", app_scopes=[])),
        "Slack socket", "connections:write", "app-level",
    ),
    "a clock that is wrong": (
        both(
            World.with_slack,
            lambda w: w.slack.ask(
                "fault",
                method="api.test",
                action={
                    "kind": "answer",
                    "status": 200,
                    "body": {"ok": True},
                    "headers": {"Date": "Thu, 01 Jan 2026 00:00:00 GMT"},
                },
            ),
        ),
        "clock", "ahead of Slack", "set-ntp",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", OFFLINE)
def test_a_fault_at_home_is_named_with_its_fix(world: World, fault: str) -> None:
    plant, check, words, fix = OFFLINE[fault]
    plant(world)

    found = named(examined(world.home, "--offline"), check)

    assert found.startswith(("warn: ", "fail: "))
    assert words in found
    assert fix in found


@pytest.mark.parametrize("fault", ONLINE)
def test_a_fault_outside_is_named_with_its_fix(world: World, fault: str) -> None:
    plant, check, words, fix = ONLINE[fault]
    plant(world)

    found = named(examined(world.home), check)

    assert found.startswith(("warn: ", "fail: "))
    assert words in found
    assert fix in found


@needs_sandbox
@pytest.mark.case("CF-07")
def test_all_is_well_beside_a_running_bot_and_without(world: World) -> None:
    running = world.home.start()
    until(running.serving)
    beside = examined(world.home)
    world.configured('[turns]\nqueue = "collect"\n')
    changed = named(examined(world.home, "--offline"), "process")
    assert running.end() == 0
    alone = examined(world.home)

    assert {check["level"] for check in (*beside, *alone)} == {"ok"}
    assert "a bot runs on this home" in named(beside, "process")
    assert "warn: the settings were changed" in changed
    assert "Restart the bot" in changed
    assert "no bot runs" in named(alone, "process")
    assert "lab-model answered" in named(alone, "model")
    assert "no other copy" in named(alone, "Telegram conflict")
    assert running.said().count("conflict") == 0


def test_a_process_that_holds_the_home_in_silence_is_named(world: World) -> None:
    with (world.path / "data" / "hearthbot.lock").open("w") as lock:
        lock.write("4711 2026-01-01T00:00:00+00:00\n")
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)

        found = named(examined(world.home, "--offline"), "process")

    assert "does not answer" in found
    assert "kill 4711" in found


@needs_sandbox
@pytest.mark.case("CF-01")
def test_fix_mends_what_is_safe_says_so_and_touches_nothing_else(world: World) -> None:
    _socket(world)
    world.configured(f'[telegram]\ntoken = "{TOKEN}" # mine\n')
    config = world.path / "config.toml"
    config.chmod(0o644)
    (world.path / "data").chmod(0o755)
    (world.path / "workspace" / "HEARTBEAT.md").unlink()
    (world.path / "workspace").rmdir()
    before = config.read_bytes()

    mended = {one["fixed"] for one in examined(world.home, "--offline", "--fix") if one["fixed"]}
    after = examined(world.home, "--offline")

    assert f"chmod 600 {config}" in mended
    assert f"chmod 700 {world.path / 'data'}" in mended
    assert f"made {world.path / 'workspace'}" in mended
    assert any(did.startswith("removed ") and did.endswith("hearthbot.sock") for did in mended)
    assert {one["level"] for one in after} == {"ok"}
    assert config.read_bytes() == before


def test_looking_changes_nothing(world: World) -> None:
    files = {file: file.read_bytes() for file in world.path.rglob("*") if file.is_file()}

    examined(world.home, "--offline")

    assert {file: file.read_bytes() for file in world.path.rglob("*") if file.is_file()} == files


def test_a_home_that_is_not_there_is_not_made_by_looking(bare_home: Home) -> None:
    bare_home.env["TZ"] = "Europe/Berlin"

    found = examined(bare_home, "--offline")

    assert "hearthbot init" in named(found, "folders")
    assert not bare_home.path.exists()


def test_piped_it_is_a_line_for_each_finding_parted_by_tabs(world: World) -> None:
    (world.path / "data").chmod(0o777)

    done = world.home.run("doctor", "--offline")

    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert done.returncode == 1
    assert ["fail", "modes"] in [line[:2] for line in lines]
    assert all(line[0] == "ok" or len(line) == 4 for line in lines)


def test_at_a_terminal_it_is_a_table_with_the_fix_below_each_finding(world: World) -> None:
    (world.path / "data").chmod(0o777)

    with Terminal(world.home, "doctor", "--offline") as terminal:
        terminal.expect("✗ fail")
        terminal.expect("→ chmod 700")
        terminal.expect("1 failed")
        terminal.expect("--fix mends some of it")
        assert terminal.ends() == 1
        print(terminal.text)
