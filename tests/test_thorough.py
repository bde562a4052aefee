"""What only `make soak` runs is a variant of a test that is there; conftest.py sees to it that
another variant of it runs in `make test`."""

from __future__ import annotations

import ast

from tests.checkout import ROOT
from tests.thorough import SOAK_ONLY

ALONE = {
    "tests/memory/test_compaction.py::test_with_a_real_model_a_history_is_summed_up_whatever_it_writes",
    "tests/memory/test_insights.py::test_with_a_real_model_nothing_is_noted_that_the_turn_does_not_carry",
}
"""Left out whole: a minute of a real model's time; test_extraction.py has it write all the same."""


def test_what_is_left_out_is_a_variant_of_a_test_that_is_there() -> None:
    for entry in SOAK_ONLY - ALONE:
        file, _, rest = entry.partition("::")
        name, _, variant = rest.partition("[")
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        functions = (ast.FunctionDef, ast.AsyncFunctionDef)
        assert any(isinstance(n, functions) and n.name == name for n in ast.walk(tree)), entry
        assert variant, f"{entry} is no variant"
