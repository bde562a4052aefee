"""The recorded failures of real bots that the tests cover: a list, so that none is lost unseen."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.checkout import ROOT

LIST = ROOT / "tests" / "cases.txt"


def marked(mark: str = "case") -> set[str]:
    """The ids that tests are marked with: `pytest.mark.case("CH-11", …)`."""
    files = (ROOT / "tests").rglob("*.py")
    return {name for file in files for name in _ids(file, mark)}


def _ids(file: Path, mark: str) -> Iterator[str]:
    text = file.read_text(encoding="utf-8")
    if f"pytest.mark.{mark}(" not in text:
        return  # to parse all tests takes seconds
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if ast.unparse(node.func) == f"pytest.mark.{mark}":
            yield from (str(ast.literal_eval(argument)) for argument in node.args)


def test_the_list_names_exactly_the_cases_that_tests_are_marked_with() -> None:
    listed = LIST.read_text(encoding="utf-8").split()
    found = marked()

    assert sorted(set(listed) - found) == [], "listed in tests/cases.txt, and no test has them"
    assert sorted(found - set(listed)) == [], "marked in a test: add them to tests/cases.txt"


def test_the_list_is_in_order_and_well_formed() -> None:
    listed = LIST.read_text(encoding="utf-8").split()

    assert listed == sorted(set(listed))
    assert [name for name in listed if not re.fullmatch(r"[A-Z]{2}-[0-9]{2}", name)] == []
