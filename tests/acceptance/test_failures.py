"""Starts that cannot work: one clear sentence with the way out, the right exit code, no traceback,
no loop; and troubles that pass: nothing acknowledged is lost."""

from __future__ import annotations

import os
import shutil
import socket
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.acceptance.rig import Home, Telegram, until


def refused(home: Home, *arguments: str, code: int) -> str:
    """What the command says on its way out."""
    done = home.run(*(arguments or ("run",)))
    sentences = [line for line in done.stderr.splitlines() if not line.startswith("{")]
    print("\n" + done.stdout + done.stderr)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert sentences, "nothing was said"
    return " ".join(sentences)


# --- the settings --------------------------------------------------------------------------------


def test_a_token_that_telegram_refuses(home: Home) -> None:
    home.env["HEARTHBOT_TELEGRAM__TOKEN"] = "123456:WRONGWRONG"

    said = refused(home, code=2)

    assert "telegram.token" in said
    assert "@BotFather" in said
    assert "WRONGWRONG" not in said + home.log


def test_a_model_without_its_key(home: Home) -> None:
    home.env |= {"HEARTHBOT_LLM__API_KEY": "", "HEARTHBOT_LLM__API_BASE": ""}

    assert "OPENAI_API_KEY" in refused(home, code=2)


@pytest.mark.case("CF-03")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[telegram]\nallow_form = [5]\n", "allow_from"),
        ("[telegram]\ntoken = \n", "line 2"),
        ("[turns]\nqueue = 'later'\nparallel = 0\n", "turns.parallel"),
        ("\xff\xfe", "config.toml"),
    ],
)
def test_settings_that_cannot_be_read(home: Home, text: str, expected: str) -> None:
    home.path.mkdir()
    (home.path / "config.toml").write_bytes(text.encode("latin-1"))

    for command in ("run", "access list"):
        assert expected in refused(home, *command.split(), code=2)


def test_a_home_below_a_file(home: Home, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    home.env["HEARTHBOT_HOME"] = str(tmp_path / "file" / "home")

    assert "HEARTHBOT_HOME" in refused(home, code=2)


def as_an_ordinary_user(home: Home, *arguments: str) -> str:
    """What is said when file modes count: root without its powers."""
    done = subprocess.run(
        ["setpriv", "--bounding-set", "-all", *home.command(), *arguments],
        env=home.env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    print(done.stderr)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    return done.stderr


needs_setpriv = pytest.mark.skipif(
    os.getuid() != 0 or shutil.which("setpriv") is None, reason="needs root and setpriv"
)


@needs_setpriv
def test_a_home_that_cannot_be_written(home: Home) -> None:
    home.path.mkdir(mode=0o755)
    os.chown(home.path, 65534, 65534)

    for command in ("run", "status"):
        assert "cannot be written" in as_an_ordinary_user(home, command)


@needs_setpriv
def test_a_config_that_cannot_be_read(home: Home) -> None:
    home.path.mkdir()
    config = home.path / "config.toml"
    config.write_text("")
    config.chmod(0o600)
    os.chown(config, 65534, 65534)

    assert "config.toml" in as_an_ordinary_user(home, "run")


def test_nothing_is_configured(bare_home: Home) -> None:
    said = refused(bare_home, code=2)

    assert "telegram.token" in said
    assert "hearthbot chat" in said


def test_the_webhook_port_is_taken(home: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        home.env |= {
            "HEARTHBOT_TELEGRAM__MODE": "webhook",
            "HEARTHBOT_TELEGRAM__WEBHOOK_URL": "https://example.org/hook",
            "HEARTHBOT_TELEGRAM__WEBHOOK_SECRET": "s3cret-s3cret",
            "HEARTHBOT_TELEGRAM__WEBHOOK_LISTEN": f"127.0.0.1:{port}",
        }

        said = refused(home, code=2)

    assert str(port) in said
    assert "telegram.webhook_listen" in said


# --- the database --------------------------------------------------------------------------------


def prepared(home: Home) -> Path:
    """A home with a database in it."""
    home.approve(7)
    return home.database


def garbage(path: Path) -> None:
    path.write_bytes(b"not a database" * 1000)


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def torn(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4096 : 4096 * 3] = os.urandom(4096 * 2)
    path.write_bytes(content)


def another_program(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table notes (text)")


@pytest.mark.case("HI-09")
@pytest.mark.parametrize("spoil", [garbage, torn, another_program])
def test_a_database_that_cannot_be_used_stays_as_it_is(
    home: Home, spoil: Callable[[Path], None]
) -> None:
    path = prepared(home)
    spoil(path)
    before = path.read_bytes()

    said = [refused(home, *c.split(), code=1) for c in ("run", "chat -m hello")]

    assert all("cannot be used" in text and "backup" in text for text in said)
    assert path.read_bytes() == before


@pytest.mark.case("HI-09")
def test_an_emptied_database_with_a_backup_is_not_taken_for_a_first_start(
    home: Home, telegram: Telegram
) -> None:
    path = prepared(home)
    running = home.start()
    until(lambda: list(path.parent.glob("backups/*.db")))
    assert running.end() == 0
    emptied(path)

    said = refused(home, code=1)

    assert "it is empty" in said
    assert "newest good backup is" in said
    assert path.read_bytes() == b""


def test_a_database_of_a_newer_version(home: Home) -> None:
    path = prepared(home)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma user_version = 99")

    assert "newer Hearthbot" in refused(home, code=1)
