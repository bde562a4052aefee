"""A model's answer in JSON, read at the edge: for extraction, insights and compaction.

Small models wrap it in words and fences, forget a bracket, or write objects where texts are wanted.
What can mean one thing only is taken; the rest is refused with words that a model can act on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from agent.errors import Temporary

ANSWER_CHARS_MAX = 50_000
STARTS_MAX = 40
"""Places of one answer at which an object may begin that are tried."""
BRACKETS_MAX = 300


class AnswerUnreadable(Temporary):
    """What came is not the wanted JSON. The text says what is wrong, and never quotes the answer:
    it may be shown to the model that is asked again, and stand in the log."""


class Answer(BaseModel):
    """Base of what is wanted: frozen, unknown fields passed over, numbers taken for texts."""

    model_config = ConfigDict(frozen=True, extra="ignore", coerce_numbers_to_str=True)


Wanted = TypeVar("Wanted", bound=BaseModel)


def read_answer(text: str, model: type[Wanted]) -> Wanted:
    """The answer as `model` wants it. Raises AnswerUnreadable.

    The last whole object that fits counts: before it a model may think aloud, or say its example
    again. Only where there is none is the text repaired. What ends in the middle of a string was
    cut off, and is never completed.
    """
    if len(text) > ANSWER_CHARS_MAX:
        raise AnswerUnreadable("The answer is far too long: write one short JSON object.")
    why = ""
    for value in _values(text):
        try:
            return model.model_validate(value)
        except ValidationError as error:
            why = why or _readable(error)
        except RecursionError:
            why = why or "The answer is nested too deeply."
    raise AnswerUnreadable(why or "The answer holds no JSON object that is whole.")


def plain_text(value: Any) -> Any:
    """The one text that an object or a list of one stands for; anything else as it is.

    `{"timestamp": …, "summary": "asked about X"}` is "asked about X" (case ME-03).
    """
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, Mapping):
        texts = [value[name] for name in _TEXT_NAMES if isinstance(value.get(name), str)]
        return texts[0] if len(texts) == 1 else value
    return value


PlainText = Annotated[str, BeforeValidator(plain_text)]
"""A text, also where a model wrote an object around it."""

_TEXT_NAMES = ("text", "summary", "content", "value", "fact", "quote", "statement", "name")


def _values(text: str) -> Iterator[Any]:
    """What the answer may be, the likeliest first."""
    text = text.strip()
    whole = _loaded(text)
    if isinstance(whole, str):  # an object, encoded twice
        whole = _loaded(whole)
    if isinstance(whole, dict | list):
        yield whole
        return
    yield from reversed(list(_within(text)))
    yield from _repaired(text)


def _loaded(text: str) -> Any:
    """The JSON value, raw line breaks within strings let pass; None when it is none."""
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None


_DECODER = json.JSONDecoder(strict=False)


def _within(text: str) -> Iterator[Any]:
    """The whole objects and lists that stand in a text, in order."""
    at = 0
    for _ in range(STARTS_MAX):
        at = _next_start(text, at)
        if at < 0:
            return
        try:
            value, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            at += 1
        else:
            yield value


def _next_start(text: str, at: int) -> int:
    starts = [found for sign in "{[" if (found := text.find(sign, at)) >= 0]
    return min(starts, default=-1)


def _repaired(text: str) -> Iterator[Any]:
    """What json-repair makes of it from the first bracket on."""
    start = _next_start(text, 0)
    brackets = text.count("{") + text.count("[")
    # Over many open brackets the library takes seconds, and no answer that is wanted has them.
    if start < 0 or brackets > BRACKETS_MAX or _ends_in_a_string(text[start:]):
        return
    import json_repair

    try:
        value = json_repair.loads(text[start:])
    except (ValueError, RecursionError):
        return
    yield from reversed(value) if isinstance(value, list) and text[start] == "{" else [value]


def _ends_in_a_string(text: str) -> bool:
    return text.replace("\\\\", "").replace('\\"', "").count('"') % 2 == 1


PROBLEMS_SHOWN_MAX = 3


def _readable(error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    words = "; ".join(_problems(problems[:PROBLEMS_SHOWN_MAX]))
    return f"The answer does not have the wanted form: {words}."


def _problems(problems: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for problem in problems:
        # Names of unknown fields are passed over, so each part is one of ours or a number.
        where = ".".join(str(part) for part in problem["loc"]) or "the whole"
        message = "is missing" if problem["type"] == "missing" else str(problem["msg"]).lower()
        yield f"{where}: {message}"
