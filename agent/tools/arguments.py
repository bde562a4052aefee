"""Arguments that a model wrote, read at the edge: JSON, repaired where that is unambiguous.

A tool of ours is a function, and its signature is the schema of its arguments (`agent.tools.tool`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from inspect import Parameter, signature
from typing import Any, Protocol, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model, model_validator

from agent.guards.tool_call_text import read_object

ERRORS_SHOWN_MAX = 5

NOT_JSON = (
    "the arguments are not a JSON object. Write them as valid JSON, with a backslash before each "
    "quote within a string."
)


class ArgumentsWrong(ValueError):
    """What is wrong with a call's arguments, in words for the model."""


class Arguments(BaseModel):
    """Base of all arguments models: frozen, nothing unknown, nulls of optional fields dropped.

    Numbers and booleans written as strings are coerced by pydantic, and numbers where a string
    is wanted.
    """

    # Built when a tool is first offered or called: many never are, and a start waits for none.
    model_config = ConfigDict(
        frozen=True, extra="forbid", coerce_numbers_to_str=True, defer_build=True
    )

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        optional = {name for name, field in cls.model_fields.items() if not field.is_required()}
        return {
            name: value for name, value in data.items() if not (value is None and name in optional)
        }


class Parameters(Protocol):
    """What a tool takes: by the signature of a function of ours, or by a schema that an MCP server
    wrote."""

    def schema(self) -> Mapping[str, Any]:
        """As a model is shown it: what no provider takes is left out."""

    def parse(self, data: dict[str, Any]) -> Any:
        """Return what the tool gets of a call's arguments. Raises ArgumentsWrong."""


class ToolSignature:
    """Parameters of a method, behind the instance and the caller. It is looked at when the tool is
    first offered or called: many never are, and a start waits for none."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._schema: Mapping[str, Any] | None = None

    @cached_property
    def model(self) -> type[BaseModel]:
        """The model that reads a call's arguments."""
        hints = get_type_hints(self._function, include_extras=True)
        parameters = list(signature(self._function).parameters.values())[2:]
        fields: dict[str, Any] = {
            one.name: hints[one.name]
            if one.default is Parameter.empty
            else (hints[one.name], one.default)
            for one in parameters
        }
        return create_model(self._function.__name__, __base__=Arguments, **fields)

    def schema(self) -> Mapping[str, Any]:
        """As a model is shown it: without titles, nulls, and the refusal of unknown names."""
        # Kept: each agent has the same tools, and pydantic takes half a millisecond for one.
        if self._schema is None:
            schema = _slim(self.model.model_json_schema())
            schema.pop("description", None)  # the docstring; the tool has a description of its own
            schema.setdefault("properties", {})
            self._schema = schema
        return self._schema

    def parse(self, data: dict[str, Any]) -> BaseModel:
        """The arguments, coerced and checked. Raises ArgumentsWrong."""
        try:
            return self.model.model_validate(data)
        except ValidationError as error:
            problems = error.errors(include_url=False, include_context=False, include_input=False)
            words: list[str] = []
            for problem in problems[:ERRORS_SHOWN_MAX]:
                where = ".".join(str(part)[:60] for part in problem["loc"]) or "the arguments"
                if problem["type"] == "extra_forbidden":
                    known = ", ".join(self.model.model_fields) or "none"
                    words.append(f"unknown parameter '{where}' (known: {known})")
                elif problem["type"] == "missing":
                    words.append(f"parameter '{where}' is missing")
                else:
                    # Before the words of a check of ours the library puts its own.
                    message = problem["msg"].removeprefix("Value error, ")
                    words.append(f"'{where}': {message[:1].lower()}{message[1:]}")
            if len(problems) > ERRORS_SHOWN_MAX:
                words.append(f"and {len(problems) - ERRORS_SHOWN_MAX} more problems")
            raise ArgumentsWrong("; ".join(words) + ".") from error


def parse_arguments(parameters: Parameters, text: str) -> Any:
    """The arguments of a call. Raises ArgumentsWrong with a text that the model can act on."""
    data = read_object(text)
    if data is None:
        raise ArgumentsWrong(NOT_JSON)
    return parameters.parse(data)


def _slim(node: Any) -> Any:
    if isinstance(node, list):
        return [_slim(item) for item in node]
    if not isinstance(node, dict):
        return node
    slim: dict[str, Any] = {}
    for key, value in node.items():
        if key in {"properties", "$defs"}:  # names of parameters, not keywords
            slim[key] = {name: _slim(part) for name, part in value.items()}
        elif key == "anyOf":
            real = [_slim(choice) for choice in value if choice != {"type": "null"}]
            slim |= real[0] if len(real) == 1 else {"anyOf": real}
        elif key not in {"title", "additionalProperties"} and (key, value) != ("default", None):
            slim[key] = _slim(value)
    return slim
