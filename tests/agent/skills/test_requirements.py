from __future__ import annotations

import pytest

from agent.skills.skill import Machine, Requires, lacking

HAS = {"git", "sh"}


def machine(system: str = "linux", **env: str) -> Machine:
    return Machine(env=env, find_program=lambda n: f"/bin/{n}" if n in HAS else None, system=system)


def test_what_is_lacking_is_said_in_words() -> None:
    requires = Requires(
        env=("TASKS_URL", "TASKS_TOKEN"),
        bins=("git", "no-such-bin"),
        any_bins=("a", "b"),
        systems=("darwin", "win32"),
    )

    clauses = lacking(requires, machine(TASKS_URL="x", TASKS_TOKEN=""))

    assert clauses == (
        "it is for macOS or Windows",
        "the environment variable TASKS_TOKEN is not set",
        "the program no-such-bin is not installed",
        "none of the programs a, b is installed",
    )


@pytest.mark.parametrize(
    ("wanted", "system", "fits"),
    [
        ("darwin", "darwin", True),
        ("macos", "darwin", True),
        ("windows", "win32", True),
        ("win32", "linux", False),
        ("freebsd14", "freebsd14", True),
        ("all", "linux", True),
    ],
)
def test_systems_are_known_by_several_names(wanted: str, system: str, fits: bool) -> None:
    assert (lacking(Requires(systems=(wanted,)), machine(system)) == ()) is fits
