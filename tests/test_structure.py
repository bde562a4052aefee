"""The code's shape stays within its limits, and the limits stay at the code.

The second half is a ratchet: a figure whose limit leaves it too much room fails as well, since a
limit that nobody lowers lets the code grow back. Where several people commit, their branches can be
green and the merge of them not, and that has to cost next to nothing:

- There is slack, 2 % and no less than a small change takes. Who takes a little away need not touch
  the table; and two branches that write the same line (of 68 records, 67) merge to a figure of 66,
  which passes.
- Where the sum of several is too much room, or the merge stops at a line that both have lowered,
  nothing has to be judged: take either side and run `python -m tests.structure --tighten`.
- A limit itself has no slack: what grows by a line takes a line away elsewhere, or raises the limit
  and says why in the same line. Two branches that raise one conflict there, as they should.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from tests.checkout import ROOT
from tests.limits import LISTS, Limits, tightened
from tests.structure import Shape, main, measure


@pytest.fixture(scope="module")
def shape() -> Shape:
    return measure(ROOT)


def test_no_figure_of_the_code_is_out_of_its_limit(shape: Shape) -> None:
    passed = Limits.read(ROOT).passed(shape.figures)

    assert not passed, "\n".join(passed)


def test_the_limits_are_as_low_as_the_code_lets_them_be(shape: Shape) -> None:
    limits = Limits.read(ROOT)

    complaints = [*limits.loose(shape.figures), *limits.unmatched(shape.figures)]

    assert not complaints, "\n".join(complaints)


def test_what_a_message_says_to_list_can_be_listed(shape: Shape) -> None:
    assert LISTS.keys() <= shape.figures.keys()
    assert set(LISTS.values()) == shape.lists.keys()


# --- the measure -------------------------------------------------------------------------------

FIRST = '''\
"""Say what the module is for.

No line of this counts.
"""

from typing import Any, Protocol
# one comment


class Shop(Protocol):
    async def open(self, hour: int) -> None: ...


class Stall:
    """Sell."""

    a: int
    """Documented."""
    b: int
    c: int
    d: int

    async def open(self, hour: int) -> None:
        self.part.hour = hour
        self.hour = _once(hour)

    def note(self, *, row: dict[str, Any] | None) -> str:
        return """two # no comment

lines"""
'''
"""Has 15 lines of code, of 30."""

SECOND = """\
from collections.abc import Mapping
from typing import Any


def _once(hour):
    return (
        "one"  # a remark
        # a comment, and a blank line

        "and # two"
    )


def _twice(row: Mapping[str, Any]):
    return _twice(_twice(_once(row)))


class _Stall:
    a: int
    b: int
    c: int
    e: int
    d: int
    part = None
"""
"""Has 16 lines of code, of 24."""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    files = {
        "bot/__init__.py": '"""The doors."""\n',
        "bot/first.py": FIRST,
        "bot/lab/second.py": "class Shop:\n    pass\n",
        "agent/tools/deep/wire.py": SECOND,
        "agent/tools/asking.py": SECOND,
        "bot/routing.py": "x = 1\n" * 501,
        "scheduler/long.py": "def long():\n" + "    pass\n" * 60,
        "tests/test_first.py": '"""Try."""\n\n\ndef test() -> None:\n    pass  # now\n',
        "README.md": "Hello\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def test_code_lines_are_counted_by_package_and_by_folder_below_it(tree: Path) -> None:
    figures = measure(tree).figures

    assert {name: size for name, size in figures.items() if name.startswith("sloc")} == {
        "sloc": 611,
        "sloc.agent": 32,
        "sloc.agent/tools": 32,
        "sloc.bot": 518,
        "sloc.bot/lab": 2,
        "sloc.memory": 0,
        "sloc.scheduler": 61,
        "sloc.tests": 2,
    }


def test_modules_and_functions_are_measured_at_both_ends(tree: Path) -> None:
    figures = measure(tree).figures

    assert figures["modules"] == 6
    assert figures["modules.small"] == 4
    assert figures["modules.large"] == 1
    assert figures["modules.in the fullest folder"] == 2
    assert figures["modules named by a gerund"] == 1
    assert figures["comment lines per 1,000"] == round(1000 * 3 / 643, 1)
    assert figures["functions"] == 8
    assert figures["function lines, median"] == 3.5
    assert figures["function lines, p90"] == 61
    assert figures["functions over 60 lines, %"] == 12.5
    assert figures["private helpers used once, %"] == 25.0
    assert figures["code lines per function"] == 76.4
    assert figures["readme bytes"] == 6


def test_what_is_said_twice_is_found(tree: Path) -> None:
    shape = measure(tree)

    assert shape.figures["classes"] == 5
    assert shape.lists["names"] == [
        "3 Stall: bot/first.py, agent/tools/asking.py, agent/tools/deep/wire.py",
        "2 Shop: bot/first.py, bot/lab/second.py",
    ]
    assert shape.figures["protocols"] == 1
    assert shape.lists["protocols"] == ["bot/first.py:10 Shop (1)"]
    assert shape.lists["twins"] == [
        " 5 agent/tools/asking.py:_Stall ~ agent/tools/deep/wire.py:_Stall",
        " 4 bot/first.py:Stall ~ agent/tools/deep/wire.py:_Stall",
        " 4 bot/first.py:Stall ~ agent/tools/asking.py:_Stall",
    ]


# --- the limits --------------------------------------------------------------------------------


def test_tightening_leaves_less_room_and_never_more() -> None:
    project = """\
[tool.hearthbot.limits]
"sloc" = 900  # the lab plays two platforms
"sloc.bot/gone" = 30
"classes" = 10

[tool.hearthbot.floors]
"comment lines per 1,000" = 7.6

[tool.other]
"sloc" = 5
"""
    figures = {
        "sloc": 800,
        "sloc.bot/new": 40,
        "functions": 9,
        "comment lines per 1,000": 8.1,
        "classes": 12,
    }

    assert (
        tightened(project, figures)
        == """\
[tool.hearthbot.limits]
"sloc" = 800  # the lab plays two platforms
"sloc.bot/new" = 40
"classes" = 10

[tool.hearthbot.floors]
"comment lines per 1,000" = 8.1

[tool.other]
"sloc" = 5
"""
    )


def test_the_command_checks_tightens_and_lists(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = tree / "pyproject.toml"
    floors = {"comment lines per 1,000": 0, "code lines per function": 0}
    project.write_text(
        '[tool.hearthbot.limits]\n"sloc" = 700\n\n[tool.hearthbot.floors]\n'
        + "".join(f'"{name}" = {value}\n' for name, value in floors.items()),
        encoding="utf-8",
    )

    assert main([str(tree), "--check"]) == 1
    assert "sloc: 611 leaves 89 to 700: lower the limit" in capsys.readouterr().out
    assert main([str(tree), "--tighten"]) == 0
    assert main([str(tree), "--check"]) == 0
    assert tomllib.loads(project.read_text())["tool"]["hearthbot"]["limits"]["sloc"] == 611
    capsys.readouterr()
    assert main([str(tree), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == measure(tree).figures
    assert main([str(tree), "--list", "long"]) == 0
    assert capsys.readouterr().out == "scheduler/long.py:1 long (61)\n"
