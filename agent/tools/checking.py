"""A value checked against somebody else's schema, with a bound on the work. The one module that
knows jsonschema; called by `agent.tools.foreign`.

The work is counted before it is done: a library that is at it cannot be stopped.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from agent.text import seen
from agent.tools.arguments import ERRORS_SHOWN_MAX
from agent.tools.json_schema import Schema

CHECK_STEPS_MAX = 50_000
"""Each value with each schema that may count for it is a step: about a second for all of them."""

NAMES_A_STEP = 20
"""Names or allowed values that are looked at in the time of one step."""

CHARS_A_STEP = 1_000
"""What is wrong is said with the value written out, once for each choice that it does not fit."""

MESSAGE_CHARS_MAX = 160


class TooMuchToCheck(Exception):
    """A check would take more steps than there are left; nothing was checked."""


class Checker:
    """Checks values against schemas that have no references and no patterns, until its steps are
    used up. Raises TooMuchToCheck."""

    def __init__(self, *, steps_max: int = CHECK_STEPS_MAX) -> None:
        self._left = steps_max

    def is_valid(self, value: Any, schema: Schema) -> bool:
        self._count(value, schema)
        return bool(_validator()(schema).is_valid(value))

    def problems(self, value: Any, schema: Schema) -> list[str]:
        """What is wrong, in words for the model."""
        from jsonschema.exceptions import best_match  # type: ignore[import-untyped]

        self._count(value, schema)
        found = list(_validator()(schema).iter_errors(value))
        words = []
        for error in found[:ERRORS_SHOWN_MAX]:
            deepest = best_match([error]) or error
            where = ".".join(str(part)[:60] for part in deepest.absolute_path) or "the arguments"
            words.append(seen(f"'{where}': {_cut(_said(deepest))}"))
        if len(found) > ERRORS_SHOWN_MAX:
            words.append(f"and {len(found) - ERRORS_SHOWN_MAX} more problems")
        return words

    def _count(self, value: Any, schema: Schema) -> None:
        sizes: dict[int, int] = {}
        _measure(value, sizes)
        self._take(len(sizes) // NAMES_A_STEP)
        self._walk(value, schema, sizes)

    def _walk(self, value: Any, schema: Schema, sizes: Mapping[int, int]) -> None:
        if not schema:
            return
        self._take(1 + (_size(value, sizes) // CHARS_A_STEP))
        self._take(len(schema.get("enum", ())) // NAMES_A_STEP)
        if isinstance(value, dict):
            properties = schema.get("properties", {})
            required = schema.get("required", ())
            self._take((len(properties) + len(required)) // NAMES_A_STEP)
            self._take(sum(name not in value for name in required))
            more = schema.get("additionalProperties")
            for name, one in value.items():
                wanted = properties.get(name, more)
                self._walk(one, wanted if isinstance(wanted, dict) else {}, sizes)
        elif isinstance(value, list):
            places, items = schema.get("prefixItems", ()), schema.get("items", {})
            for n, one in enumerate(value):
                self._walk(one, places[n] if n < len(places) else items, sizes)
        for key in ("allOf", "anyOf", "oneOf"):
            for part in schema.get(key, ()):
                self._walk(value, part, sizes)

    def _take(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise TooMuchToCheck


def _measure(value: Any, sizes: dict[int, int]) -> int:
    """Roughly the characters of a value as Python writes it; of lists and objects they are noted,
    by their id."""
    if isinstance(value, dict):
        size = sum(len(key) + _measure(one, sizes) + 6 for key, one in value.items())
    elif isinstance(value, list):
        size = sum(_measure(one, sizes) + 4 for one in value)
    else:
        return _size(value, sizes)
    sizes[id(value)] = size + 2
    return size + 2


def _size(value: Any, sizes: Mapping[int, int]) -> int:
    if isinstance(value, str):
        return len(value)
    return sizes.get(id(value), 8) if isinstance(value, dict | list) else 8


@cache
def _validator() -> Any:
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
    from jsonschema.validators import extend  # type: ignore[import-untyped]

    # No searching by a pattern of a stranger: the server may do that itself. And where a choice
    # is not as clear as its writer thought, what fits two of them is no mistake of a model.
    lenient = {"pattern": lambda *_: None, "oneOf": Draft202012Validator.VALIDATORS["anyOf"]}
    return extend(Draft202012Validator, lenient)


def _said(error: Any) -> str:
    if error.validator == "required" and isinstance(error.instance, dict):
        missing = [name for name in error.validator_value if name not in error.instance]
        return f"missing: {', '.join(missing)}"
    if error.validator == "additionalProperties" and isinstance(error.instance, dict):
        known = error.schema.get("properties", {})
        unknown = [name for name in error.instance if name not in known]
        return f"unknown: {', '.join(unknown)} (known: {', '.join(known) or 'none'})"
    return str(error.message)


def _cut(text: str) -> str:
    return text if len(text) <= MESSAGE_CHARS_MAX else text[:MESSAGE_CHARS_MAX] + "…"
