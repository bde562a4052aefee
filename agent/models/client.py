"""What all clients of models share: checked addresses and keys, a limit on each call, the end of a
client with all calls that it runs, and the reading of answers in JSON.
"""

from __future__ import annotations

import asyncio
import json
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any, Self, TypeVar
from urllib.parse import SplitResult, urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from agent.models.errors import ServerLabel
from memory.records.errors import ModelTimeout, Overloaded, SettingsWrong, Temporary
from memory.records.transcript import ModelTraits

# --- answers in JSON ------------------------------------------------------------------------------
#
# Small models wrap JSON in words and fences, forget a bracket, or write objects where texts are
# wanted. What can mean one thing only is taken; the rest is refused with words that a model can
# act on.


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
    """Yield what the answer may be, the likeliest first: all of it, an object within it, the last
    one first, or what json-repair makes of it from the first bracket on."""
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


# --- client ---------------------------------------------------------------------------------------

TICK_S = 1.0
STOOD_STILL_S = 5.0
"""A tick that is so late means that the process stood still, not that it was busy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimits:
    """Seconds that one call may take: in all, to connect, and between two pieces of an answer."""

    timeout_s: float = 120
    connect_timeout_s: float = 10
    stall_timeout_s: float = 60


class CallDeadline:
    """The limit of one call in all, and the watch for a stall, which begins with the first piece:
    how long a model thinks before its first word is bounded by the limit of the call alone.

    `host` is named in the errors.
    """

    def __init__(self, limits: CallLimits, *, host: str) -> None:
        self._ends = asyncio.get_running_loop().time() + limits.timeout_s
        self._stall_s = limits.stall_timeout_s
        self._host = host
        self._timeout: asyncio.Timeout | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Bound what is done within. Raises TimeoutError."""
        with Standstill(self._stood_still):
            async with asyncio.timeout_at(self._ends) as self._timeout:
                yield

    def wind_up(self) -> None:
        """Begin the watch for a stall anew, since something came."""
        if self._timeout is not None:
            now = asyncio.get_running_loop().time()
            self._timeout.reschedule(min(self._ends, now + self._stall_s))

    def end(self) -> None:
        """End the call now, as if its time were over."""
        if self._timeout is not None and not self._timeout.expired():
            self._timeout.reschedule(asyncio.get_running_loop().time())

    def late(self) -> ModelTimeout:
        """Return the error of a call whose time is over."""
        if asyncio.get_running_loop().time() < self._ends:
            return ModelTimeout(f"{self._host} stopped in the middle of its answer")
        return ModelTimeout(f"{self._host} did not finish its answer in time")

    def _stood_still(self, seconds: float) -> None:
        """Extend the limits by the seconds in which we read nothing."""
        self._ends += seconds
        if self._timeout is None or self._timeout.expired():
            return
        if (ends := self._timeout.when()) is not None:
            self._timeout.reschedule(ends + seconds)


@dataclass(slots=True)
class Standstill:
    """Measures, while entered, how long this process stood still: stopped, or on a machine that
    slept. It could read nothing meanwhile, so the others' time limits should not have run.

    `woke` is called with each standstill before any time limit that ran out in it: ticks come
    first.
    """

    woke: Callable[[float], None] | None = None
    _lost: float = 0.0
    _last: float = 0.0
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    _tick: asyncio.TimerHandle | None = None

    @property
    def seconds(self) -> float:
        """Return the seconds stood still so far, in all."""
        return self._lost + self._late()

    def __enter__(self) -> Self:
        self._wait()
        return self

    def __exit__(self, *raised: object) -> None:
        if self._tick is not None:
            self._tick.cancel()

    def _wait(self) -> None:
        self._last = self._loop.time()
        self._tick = self._loop.call_later(TICK_S, self._passed)

    def _passed(self) -> None:
        late = self._late()
        self._lost += late
        self._wait()
        if late and self.woke is not None:
            self.woke(late)

    def _late(self) -> float:
        late = self._loop.time() - self._last - TICK_S
        return late if late > STOOD_STILL_S else 0.0


class ModelClient(ABC):
    """One model at one server. Enter it, or call `aclose`, to give its connections back."""

    def __init__(
        self,
        name: str,
        *,
        server: ServerLabel,
        traits: ModelTraits | None = None,
        limits: CallLimits | None = None,
    ) -> None:
        self.name = name
        self.traits = traits or ModelTraits()
        self._server = server
        self._limits = limits or CallLimits()
        self._opening = asyncio.Lock()
        self._running: set[CallDeadline] = set()
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections, also those of running calls. May be called twice."""
        self._closed = True
        for deadline in self._running:
            deadline.end()
        async with self._opening:
            await self._disconnect()

    @abstractmethod
    async def _disconnect(self) -> None:
        """Give back what was opened, if anything was."""

    @asynccontextmanager
    async def _deadline(self) -> AsyncIterator[CallDeadline]:
        """Bound one call. Raises ModelTimeout, or Overloaded where the client was closed."""
        deadline = CallDeadline(self._limits, host=self._server.host)
        self._running.add(deadline)
        try:
            async with deadline.running():
                yield deadline
        except TimeoutError as error:
            raise (self._gone() if self._closed else deadline.late()) from error
        finally:
            self._running.discard(deadline)

    def _gone(self) -> Overloaded:
        return Overloaded(f"The connection to {self._server.host} is closed")


def checked_address(api_base: str, example: str) -> SplitResult:
    """Return the parts of an address. Raises SettingsWrong for what is none."""
    address = api_base.strip()
    try:
        parts = urlsplit(address)
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        (parts.hostname or "").encode("idna")
    except ValueError:
        known = False
    if not known or any(one.isspace() or not one.isprintable() for one in address):
        raise SettingsWrong(f"llm.api_base must be a web address such as {example}")
    return parts


def checked_key(api_key: str) -> str:
    """Return a key without blanks around it. Raises SettingsWrong for what is none: else a library
    would fail at each call, and name the key in its error."""
    api_key = api_key.strip()
    if not all("!" <= character <= "~" for character in api_key):
        raise SettingsWrong("llm.api_key holds a character that no key has: copy it again")
    return api_key


def is_here(address: str) -> bool:
    """Return whether an address is one of this machine, which no proxy leads to."""
    try:
        host = urlsplit(address).hostname or ""
    except ValueError:  # no address at all, which is told where it is used
        return False
    return host in ("localhost", "::1") or bool(re.fullmatch(r"127(\.\d{1,3}){3}", host))
