"""A value checked against a stranger's schema: the work is counted before it is done."""

from __future__ import annotations

from typing import Any

import pytest

from agent.mcp.json_schema import Checker, TooMuchToCheck

LIST: dict[str, Any] = {"type": "array", "items": {"anyOf": [{"type": "integer"}] * 3}}
"""One step for the list; four for each element: itself, and one for each choice."""


def test_a_check_within_its_steps_says_what_is_wrong() -> None:
    checker = Checker(steps_max=9)

    assert checker.problems([1, 2], LIST) == []


def test_a_check_beyond_its_steps_is_not_made() -> None:
    with pytest.raises(TooMuchToCheck):
        Checker(steps_max=8).problems([1, 2], LIST)


def test_all_checks_of_one_checker_share_its_steps() -> None:
    checker = Checker(steps_max=9)

    assert checker.is_valid([1], LIST)
    with pytest.raises(TooMuchToCheck):
        checker.is_valid([1], LIST)


def test_a_long_value_takes_a_step_more_for_each_thousand_characters() -> None:
    whole = {"type": "string"}

    assert Checker(steps_max=3).is_valid("x" * 2_000, whole)
    with pytest.raises(TooMuchToCheck):
        Checker(steps_max=2).is_valid("x" * 2_000, whole)


def test_each_name_that_is_missing_takes_a_step() -> None:
    schema = {"required": ["a", "b", "c"]}

    assert Checker(steps_max=1).is_valid({"a": 1, "b": 1, "c": 1}, schema)
    with pytest.raises(TooMuchToCheck):
        Checker(steps_max=3).problems({}, schema)
