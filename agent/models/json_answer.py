"""A model's answer in JSON, read at the edge: for extraction, insights and compaction.

Small models wrap it in words and fences, forget a bracket, or write objects where texts are wanted.
What can mean one thing only is taken; the rest is refused with words that a model can act on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from memory.records.errors import Temporary

ANSWER_CHARS_MAX = 50_000
STARTS_MAX = 40
"""Places of one answer at which an object may begin that are tried."""
BRACKETS_MAX = 300
PROBLEMS_SHOWN_MAX = 3


class AnswerUnreadable(Temporary):
    """What came is not the wanted JSON. The text says what is wrong, and never quotes the answer:
    it may be shown to the model that is asked again, and stand in the log."""


class ModelAnswer(BaseModel):
    """Base of what is wanted: frozen, unknown fields passed over, numbers taken for texts."""

    model_config = ConfigDict(frozen=True, extra="ignore", coerce_numbers_to_str=True)


Wanted = TypeVar("Wanted", bound=BaseModel)


def read_answer(text: str, model: type[Wanted]) -> Wanted:
    """Return the answer as `model` wants it. Raise AnswerUnreadable.

    The last whole object that fits counts: before it a model may think aloud, or say its example
    again. Only where there is none is the text repaired. What ends in the middle of a string was
    cut off, and is never completed.
    """
    if len(text) > ANSWER_CHARS_MAX:
        raise AnswerUnreadable("The answer is far too long: write one short JSON object.")
    why = ""
    for value in _values(text.strip()):
        try:
            return model.model_validate(value)
        except ValidationError as error:
            problems = error.errors(include_url=False, include_context=False, include_input=False)
            told = "; ".join(
                # Names of unknown fields are passed over, so each part is one of ours or a number.
                f"{'.'.join(map(str, one['loc'])) or 'the whole'}: "
                f"{'is missing' if one['type'] == 'missing' else one['msg'].lower()}"
                for one in problems[:PROBLEMS_SHOWN_MAX]
            )
            why = why or f"The answer does not have the wanted form: {told}."
        except RecursionError:
            why = why or "The answer is nested too deeply."
    raise AnswerUnreadable(why or "The answer holds no JSON object that is whole.")


def plain_text(value: Any) -> Any:
    """Return the one text that an object or a list of one stands for; anything else as it is.

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
_DECODER = json.JSONDecoder(strict=False)


def _values(text: str) -> Iterator[Any]:
    """What the answer may be, the likeliest first: all of it, an object within it, the last one
    first, or what json-repair makes of it from the first bracket on."""
    whole = _loaded(text)
    if isinstance(whole, str):  # an object, encoded twice
        whole = _loaded(whole)
    if isinstance(whole, dict | list):
        yield whole
        return
    found: list[Any] = []
    at = _next_start(text, 0)
    for _ in range(STARTS_MAX):
        if at < 0:
            break
        try:
            value, at = _DECODER.raw_decode(text, at)
            found.append(value)
        except (ValueError, RecursionError):
            at += 1
        at = _next_start(text, at)
    yield from reversed(found)
    start = _next_start(text, 0)
    brackets = text.count("{") + text.count("[")
    is_cut = text[start:].replace("\\\\", "").replace('\\"', "").count('"') % 2 == 1
    # Over many open brackets the library takes seconds, and no answer that is wanted has them.
    if start < 0 or brackets > BRACKETS_MAX or is_cut:
        return
    import json_repair

    try:
        repaired = json_repair.loads(text[start:])
    except (ValueError, RecursionError):
        return
    yield from (
        reversed(repaired) if isinstance(repaired, list) and text[start] == "{" else [repaired]
    )


def _loaded(text: str) -> Any:
    """The JSON value, raw line breaks within strings let pass; None when it is none."""
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None


def _next_start(text: str, at: int) -> int:
    starts = [found for sign in "{[" if (found := text.find(sign, at)) >= 0]
    return min(starts, default=-1)
