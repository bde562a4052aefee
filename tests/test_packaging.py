"""The project as something to install: names, versions, locks, and the wheel."""

from __future__ import annotations

import importlib.metadata
import re
import site
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from agent.version import VERSION
from tests.checkout import PACKAGES, ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

LOCKS = (
    "requirements.txt",
    "requirements-model.txt",
    "requirements-dev.txt",
    "requirements-pictures.txt",
)

KNOWN_PTH = {
    # Ours: one line with the path of the checkout.
    "_editable_impl_hearthbot.pth",
    # Of setuptools, which `python -m venv` of Python 3.11 brings along.
    "distutils-precedence.pth",
    # Of virtualenv, where somebody made .venv with it.
    "_virtualenv.pth",
}
"""Files that Python runs at every start: where a hijacked package would hide (case SE-23)."""


def locked(name: str) -> Mapping[str, Requirement]:
    """The requirements of a lock file, by name."""
    text = (ROOT / name).read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line.partition("--hash=")[0] for line in text.splitlines() if line.strip()]
    found = [Requirement(line.strip()) for line in lines if not line.startswith("#")]
    return {str(canonicalize_name(requirement.name)): requirement for requirement in found}


def test_no_other_distribution_claims_our_import_names() -> None:
    claimed = importlib.metadata.packages_distributions()

    strangers = {name: claimed[name] for name in PACKAGES if name in claimed}

    assert {owner for owners in strangers.values() for owner in owners} <= {"hearthbot"}


def test_the_version_stands_in_two_places_and_is_the_same() -> None:
    assert PROJECT["version"] == VERSION


def test_the_changelog_speaks_of_this_version() -> None:
    assert f"## {VERSION}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", LOCKS)
@pytest.mark.threat("T22")
def test_every_locked_requirement_is_one_version_with_hashes(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    entries = re.split(r"\n(?=\S)", text.strip())

    loose = [
        entry.splitlines()[0]
        for entry in entries
        if not re.match(r"[A-Za-z0-9._-]+==[^ ;]+( ;.*)?( \\)?\n", entry)
        or not re.search(r"--hash=sha256:[0-9a-f]{64}\b", entry)
    ]

    assert loose == []


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_names_no_address_and_no_option(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")

    assert not re.search(r"://|^-|@ file", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("lock", "extras"), [("requirements.txt", ["build"]), ("requirements-dev.txt", ["dev"])]
)
def test_what_the_project_asks_for_is_in_the_lock(lock: str, extras: list[str]) -> None:
    wanted = [*PROJECT["dependencies"]]
    for extra in extras:
        wanted += PROJECT["optional-dependencies"][extra]
    have = locked(lock)

    for text in wanted:
        requirement = Requirement(text)
        pinned = have[canonicalize_name(requirement.name)]
        (version,) = [pin.version for pin in pinned.specifier]
        assert requirement.specifier.contains(version), text


def test_running_and_testing_use_the_same_versions() -> None:
    run, dev = locked("requirements.txt"), locked("requirements-dev.txt")

    # Where only the tests need a package, it may be wanted on more platforms than by the bot.
    assert {name: str(pin.specifier) for name, pin in run.items()} == {
        name: str(pin.specifier) for name, pin in dev.items() if name in run
    }


@pytest.mark.parametrize("lock", LOCKS)
@pytest.mark.threat("T22")
def test_what_is_installed_is_what_is_locked(lock: str) -> None:
    installed = {
        str(canonicalize_name(found.metadata["Name"])): found.version
        for found in importlib.metadata.distributions()
    }
    pins = locked(lock)

    wrong = {
        name: installed[name]
        for name, pin in pins.items()
        if name in installed and not pin.specifier.contains(installed[name])
    }

    assert wrong == {}


@pytest.mark.case("SE-23")
@pytest.mark.threat("T22")
def test_hijacked_releases_are_neither_allowed_nor_locked() -> None:
    (allowed,) = [
        requirement
        for text in PROJECT["dependencies"]
        if (requirement := Requirement(text)).name == "litellm"
    ]
    (locked_version,) = [pin.version for pin in locked("requirements.txt")["litellm"].specifier]

    for bad in ("1.82.7", "1.82.8", "1.107.0"):
        assert not allowed.specifier.contains(bad)
        assert locked_version != bad


@pytest.mark.case("SE-23")
@pytest.mark.threat("T22")
def test_nothing_unknown_runs_whenever_python_starts() -> None:
    folders = [Path(folder) for folder in site.getsitepackages()]

    found = {file.name for folder in folders for file in folder.glob("*.pth")}
    customised = [name for name in ("sitecustomize", "usercustomize") if name in sys.modules]

    assert found <= KNOWN_PTH
    assert customised == []


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of this checkout, built without a network."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (built,) = folder.glob("*.whl")
    return built


def test_a_wheel_holds_the_packages_and_the_shipped_data_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()

    assert {name.partition("/")[0] for name in names} == {
        *PACKAGES,
        f"hearthbot-{VERSION}.dist-info",
    }
    for folder in ("prompts", "skills"):
        for file in (ROOT / folder).rglob("*"):
            if file.is_file():
                assert f"bot/shipped/{file.relative_to(ROOT)}" in names
    assert "bot/shipped/HEARTBEAT.md" in names
    assert any(name.startswith("memory/database/migrations/") for name in names)


def test_a_bot_from_a_wheel_finds_its_shipped_data_and_answers(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import bot.settings.home, bot.__main__\n"
        "assert bot.__file__.startswith(sys.argv[1]), bot.__file__\n"
        "for name in ('prompts/system.md', 'skills', 'HEARTBEAT.md'):\n"
        "    print(bot.settings.home.shipped(name).relative_to(sys.argv[1]))\n"
        "sys.argv = ['hearthbot', 'access', 'list']\n"
        "bot.__main__.main()\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "installed")],
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stderr == ""
    assert done.stdout.split("\n")[:4] == [
        "bot/shipped/prompts/system.md",
        "bot/shipped/skills",
        "bot/shipped/HEARTBEAT.md",
        "policy\tpairing",
    ]
    assert (tmp_path / ".hearthbot" / "workspace" / "HEARTBEAT.md").is_file()
