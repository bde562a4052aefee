from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.skills.matcher import allows_command
from agent.skills.reader import SkillFile, SkillReading, read_skill


def read(value: str) -> SkillReading:
    text = f"---\nname: a\ndescription: d\nallowed-tools: {value}\n---\nText"
    return read_skill(text.encode(), SkillFile(folder_name="a"))


def entries(value: str) -> tuple[str, ...] | None:
    reading = read(value)
    assert reading.skill is not None, reading.problems
    return reading.skill.allowed_tools


@pytest.mark.case("SK-11")
@pytest.mark.parametrize(
    "value",
    [
        "Read, Bash(git:*)",
        "Bash(git:*) Read",
        '[Read, "Bash(git:*)"]',
        "\n  - Read\n  - Bash(git:*)",
        '\'["Read", "Bash(git:*)"]\'',
        "Read Bash (git:*)",
    ],
)
def test_the_same_limit_is_the_same_in_every_shape(value: str) -> None:
    assert entries(value) == ("Bash(git:*)", "Read")


@pytest.mark.case("SK-11")
@pytest.mark.parametrize("value", ["", "null", "~", '""', "'  '"])
def test_an_empty_value_sets_no_limit(value: str) -> None:
    found = entries(value)

    assert found is None
    assert allows_command(found, ["rm", "-rf", "x"])


@pytest.mark.case("SK-11")
def test_a_star_sets_no_limit_either() -> None:
    for found in (entries('"*"'), entries("*")):
        assert found == ("*",)
        assert allows_command(found, ["rm", "-rf", "x"])


@pytest.mark.case("SK-11")
def test_an_empty_list_allows_nothing() -> None:
    found = entries("[]")

    assert found == ()
    assert not allows_command(found, ["ls"])


@pytest.mark.parametrize("value", ["Bash(git:*", "{Bash: git}", "[[Read]]", "(git:*)", "'[x'"])
def test_a_limit_that_cannot_be_read_is_an_error(value: str) -> None:
    assert read(value).skill is None


@pytest.mark.case("SK-11")
@pytest.mark.threat("T9")
def test_a_limit_to_one_program_allows_that_program_alone() -> None:
    found = entries("Read, Bash(git:*)")

    assert allows_command(found, ["git", "status"])
    assert allows_command(found, ["git"])
    assert not allows_command(found, ["rm", "-rf", "x"])


@pytest.mark.case("SK-11")
@pytest.mark.parametrize(
    "argv",
    [
        ["git", "status", "&&", "rm", "x"],
        ["git status && rm x"],
        ["git", "status;", "rm", "x"],
        ["git", "log\nrm x"],
        ["git", "$(rm x)"],
        ["env", "git", "status"],
        ["X=1", "git", "status"],
        ["./git", "status"],
        ["gitx", "status"],
        ["Git", "status"],
        [],
    ],
)
@pytest.mark.threat("T9")
def test_what_is_more_than_the_program_is_refused(argv: list[str]) -> None:
    assert not allows_command(("Bash(git:*)", "Read"), argv)


@pytest.mark.parametrize(
    ("entry", "argv", "allowed"),
    [
        ("Bash(git status)", ["git", "status", "-s"], False),
        ("Bash(git status:*)", ["git", "status", "-s"], True),
        ("Bash(git status *)", ["git", "push"], False),
        ("Bash(npm run test*)", ["npm", "run", "test:unit"], True),
        ("Bash(*git:*)", ["/tmp/git"], False),
        ("Bash(a*b*c)", ["axc"], False),
        ("Bash(/usr/bin/git:*)", ["/usr/bin/git", "log"], True),
        ("Bash(*)", ["rm", "x"], True),
        ("Bash()", ["rm"], False),
        ("Bash('git:*)", ["git"], False),
        ("Bash", ["rm", "a;b"], True),
        ("Read", ["cat", "x"], False),
    ],
)
def test_an_entry_allows_commands_by_its_words(entry: str, argv: list[str], allowed: bool) -> None:
    assert allows_command((entry,), argv) is allowed


@given(st.lists(st.text(max_size=12), max_size=6), st.text(max_size=20))
def test_no_command_and_no_entry_make_it_fail(argv: list[str], limit: str) -> None:
    allowed = allows_command((f"Bash({limit})",), argv)

    assert not allowed or argv or limit == "*"


def test_long_patterns_take_no_time() -> None:
    stars = "Bash(" + "a*" * 1_000 + "b)"
    blanks = read("'Bash" + " " * 90_000 + "(git:*)'")

    assert not allows_command((stars,), ["a" * 5_000])
    assert blanks.skill is None
