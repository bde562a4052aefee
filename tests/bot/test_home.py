"""One folder holds a bot; it is private, prepared once, and held by one running bot."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.settings import home as home_module
from bot.settings.home import (
    Home,
    HomeLock,
    find_home,
    prepare,
    settings_changed,
    settings_digest,
    shipped,
    write_private,
)
from bot.settings.load import load
from memory.records.errors import AssistantError, HomeBusy, SettingsWrong, StorageFull

TOKEN = "123456:SECRETSECRET"
STARTED = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
CHECKOUT = Path(__file__).parents[2]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    found = Home(tmp_path / "home")
    prepare(found)
    return found


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# --- finding -----------------------------------------------------------------------------------


def test_the_home_is_named_by_the_environment_or_lies_in_the_users_folder(tmp_path: Path) -> None:
    user = str(tmp_path)

    assert find_home({"HEARTHBOT_HOME": user}).path == tmp_path
    assert find_home({"HOME": user}).path == tmp_path / ".hearthbot"
    assert find_home({"HOME": user, "HEARTHBOT_HOME": ""}).path == tmp_path / ".hearthbot"
    assert find_home({"HOME": user, "HEARTHBOT_HOME": "~/bot"}).path == tmp_path / "bot"
    assert find_home({}).path == (Path.home() / ".hearthbot").resolve()
    assert find_home({"HEARTHBOT_HOME": "some/where"}).path.is_absolute()


def test_two_names_of_one_home_are_the_same_home(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")

    assert find_home({"HEARTHBOT_HOME": str(tmp_path / "link")}) == Home(tmp_path / "real")


# --- preparing ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("open_umask")
def test_the_first_run_makes_private_folders_and_the_checklist(tmp_path: Path) -> None:
    home = Home(tmp_path / "a" / "home")

    findings = prepare(home)

    assert findings == []
    for folder in (home.path, home.workspace, home.data, home.logs):
        assert mode(folder) == 0o700
    checklist = home.workspace / "HEARTBEAT.md"
    assert checklist.read_bytes() == shipped("HEARTBEAT.md").read_bytes()
    assert mode(checklist) == 0o600


def test_a_second_run_keeps_what_the_owner_wrote(home: Home) -> None:
    checklist = home.workspace / "HEARTBEAT.md"
    checklist.write_text("- water the plants\n")

    prepare(home)

    assert checklist.read_text() == "- water the plants\n"


def test_a_checklist_that_the_owner_removed_stays_away(home: Home) -> None:
    home.database.touch()
    (home.workspace / "HEARTBEAT.md").unlink()

    prepare(home)

    assert not (home.workspace / "HEARTBEAT.md").exists()


@pytest.mark.parametrize(("bits", "warned"), [(0o600, False), (0o640, True), (0o604, True)])
def test_settings_with_a_token_that_others_can_read_are_reported_and_left_alone(
    home: Home, bits: int, warned: bool
) -> None:
    home.config.write_text(f'[telegram]\ntoken = "{TOKEN}"\n')
    home.config.chmod(bits)

    findings = prepare(home)

    assert [finding.fix for finding in findings] == [f"chmod 600 {home.config}"] * warned
    assert "SECRETSECRET" not in str(findings)
    assert mode(home.config) == bits
    home.config.write_text('[llm]\nmodel = "m"\n')
    assert prepare(home) == [], "without a secret others may read it"


def test_folders_that_others_can_open_are_reported(home: Home) -> None:
    home.path.chmod(0o755)
    home.data.chmod(0o750)

    assert [finding.fix for finding in prepare(home)] == [f"chmod 700 {home.data}"]

    home.path.chmod(0o777)

    assert f"chmod 700 {home.path}" in [finding.fix for finding in prepare(home)]


@pytest.mark.parametrize("part", ["", "data", "logs", "workspace"])
def test_a_file_in_place_of_a_folder_is_told_with_its_path(tmp_path: Path, part: str) -> None:
    home = Home(tmp_path / "home")
    if part:
        home.path.mkdir()
    (home.path / part).write_text("")

    with pytest.raises(SettingsWrong) as caught:
        prepare(home)

    assert f"{home.path / part} is not a folder" in str(caught.value)
    assert "HEARTHBOT_HOME" in str(caught.value)


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_home_that_cannot_be_written_is_told(home: Home) -> None:
    home.data.chmod(0o500)

    with (
        pytest.raises(SettingsWrong, match="cannot be written"),
        HomeLock(home, started_at=STARTED),
    ):
        pass


@pytest.mark.parametrize(
    ("number", "kind", "words"),
    [
        (errno.ENOSPC, StorageFull, "No space is left to write"),
        (errno.EDQUOT, StorageFull, "No space is left to write"),
        (errno.EACCES, SettingsWrong, "cannot be written"),
        (errno.EROFS, SettingsWrong, "Read-only file system"),
    ],
)
def test_what_the_system_says_becomes_a_sentence(
    number: int, kind: type[Exception], words: str
) -> None:
    said = home_module._trouble(Path("/home/bot"), OSError(number, os.strerror(number)))

    assert type(said) is kind
    assert words in str(said)
    assert "/home/bot" in str(said)


@pytest.mark.usefixtures("open_umask")
def test_a_private_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_private(path, b"old")

    with pytest.raises(TypeError):
        write_private(path, "no bytes")  # type: ignore[arg-type]

    assert path.read_bytes() == b"old"
    assert mode(path) == 0o600
    assert list(tmp_path.iterdir()) == [path]


# --- changed settings --------------------------------------------------------------------------


@pytest.mark.case("CF-07")
@pytest.mark.threat("T5")
def test_a_changed_secret_means_that_a_restart_is_due_until_it_has_happened(home: Home) -> None:
    env = {"HEARTHBOT_LLM__MODEL": "m", "PATH": "/bin"}
    home.config.write_text('[telegram]\nwebhook_secret = "A"\n')
    at_start = settings_digest(home, env)

    assert not settings_changed(home, at_start, env)
    assert not settings_changed(home, at_start, {**env, "PATH": "/usr/bin"})
    assert settings_changed(home, at_start, {**env, "HEARTHBOT_LLM__API_KEY": "k"})

    home.config.write_text('[telegram]\nwebhook_secret = "B"\n')

    assert settings_changed(home, at_start, env)
    assert not settings_changed(home, settings_digest(home, env), env)


@pytest.mark.case("CF-01")
@pytest.mark.threat("T19")
def test_reading_settings_writes_none_of_them_anywhere(home: Home) -> None:
    env = {"HEARTHBOT_TELEGRAM__TOKEN": TOKEN, "HEARTHBOT_LLM__API_KEY": "k3y-of-mine"}
    content = '# mine\n[telegram]\nwebhook_secret   = "t0p-s3cret" # kept\n'
    home.config.write_text(content)

    load(home.path, env)
    prepare(home)
    settings_digest(home, env)
    with HomeLock(home, started_at=STARTED):
        texts = {path: path.read_bytes() for path in home.path.rglob("*") if path.is_file()}

    assert texts.pop(home.config) == content.encode()
    assert home.lock in texts
    for secret in (b"SECRETSECRET", b"k3y-of-mine", b"t0p-s3cret"):
        assert not any(secret in text for text in texts.values())


# --- one running bot per home ------------------------------------------------------------------

HOLD = """
import sys, time
from datetime import UTC, datetime
from pathlib import Path
from bot.settings.home import Home, HomeLock
with HomeLock(Home(Path(sys.argv[1])), started_at=datetime(2026, 3, 1, 12, 30, tzinfo=UTC)):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(home: Home) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(home.path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=CHECKOUT,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_second_bot_is_refused_with_the_process_that_runs(
    home: Home, holder: subprocess.Popen[str]
) -> None:
    with pytest.raises(HomeBusy) as caught, HomeLock(home, started_at=STARTED):
        pass

    text = str(caught.value)
    assert f"process {holder.pid}, since 2026-03-01T12:30:00+00:00" in text
    assert f"kill {holder.pid}" in text
    assert str(home.path) in text
    assert "HEARTHBOT_HOME" in text


def test_a_lock_that_cannot_be_opened_is_told(home: Home) -> None:
    home.lock.mkdir()

    with pytest.raises(AssistantError, match="cannot be used: Is a directory"):
        HomeLock(home, started_at=STARTED).__enter__()


def test_a_killed_bot_leaves_the_home_free(home: Home, holder: subprocess.Popen[str]) -> None:
    holder.send_signal(signal.SIGKILL)
    holder.wait()

    with HomeLock(home, started_at=STARTED):
        assert home.lock.read_text() == f"{os.getpid()} 2026-03-01T12:30:00+00:00\n"


@pytest.mark.usefixtures("open_umask")
def test_the_home_is_free_again_after_leaving_also_by_an_error(home: Home) -> None:
    with pytest.raises(KeyError), HomeLock(home, started_at=STARTED):
        raise KeyError

    with HomeLock(home, started_at=STARTED):
        assert mode(home.lock) == 0o600
    assert home.lock.read_text() == ""


def test_a_refused_bot_does_not_take_the_lock_from_the_one_that_runs(home: Home) -> None:
    with HomeLock(home, started_at=STARTED):
        for _ in range(2):
            with pytest.raises(HomeBusy), HomeLock(home, started_at=STARTED):
                pass

        assert home.lock.read_text().startswith(f"{os.getpid()} ")


def test_a_holder_that_has_not_signed_yet_is_still_a_holder(home: Home) -> None:
    with HomeLock(home, started_at=STARTED):
        home.lock.write_text("")

        with pytest.raises(HomeBusy, match="Another Hearthbot runs on"):
            HomeLock(home, started_at=STARTED).__enter__()
