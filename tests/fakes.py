"""Stand-ins for the core's ports, shared by all tests: a clock, a model, and the drafts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from memory.records.errors import AssistantError
from memory.records.messages import Address, PersonId, RunId
from memory.records.ports import InUse, Model
from memory.records.rows import NewApproval, Outcome
from memory.records.transcript import Answered, ModelRequest, ModelTraits, ToolCall

START = datetime(2026, 8, 3, 10, 0, tzinfo=UTC)


class FixedClock:
    """Stands still until told to move, or until somebody sleeps: that passes at once. With
    `hold`, sleepers stay asleep until `wake`."""

    def __init__(self, start: datetime = START) -> None:
        self._start = self._now = start
        self._awake = asyncio.Event()
        self._awake.set()
        self.asleep = asyncio.Event()
        self.pauses: list[float] = []

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return (self._now - self._start).total_seconds()

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.asleep.set()
        await asyncio.sleep(0)
        await self._awake.wait()
        self.move(seconds)

    def move(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)

    def hold(self) -> None:
        self._awake.clear()
        self.asleep.clear()

    def wake(self) -> None:
        self._awake.set()


# --- the model ---------------------------------------------------------------------------------

OnText = Callable[[str], None]
Line = str | Answered | AssistantError | Callable[[ModelRequest, OnText], Awaitable[Answered]]
"""What a scripted model does: answers, fails, or whatever a function does."""


def calls(*wanted: tuple[str, str], text: str = "", finish: str = "tool_calls") -> Answered:
    """An answer that calls tools: pairs of name and arguments; ids are unique in a test run."""
    return Answered(
        text=text,
        calls=tuple(
            ToolCall(id=f"c{next(_numbers)}", name=name, arguments=arguments)
            for name, arguments in wanted
        ),
        finish=finish,
    )


def _count() -> Iterable[int]:
    n = 0
    while True:
        n += 1
        yield n


_numbers = iter(_count())


class KeptApprovals:
    """Implements Approvals: what was asked is kept, and the test answers."""

    def __init__(self) -> None:
        self.asked: dict[str, NewApproval] = {}
        self.outcomes: dict[str, Outcome] = {}
        self.always: set[str] = set()

    async def ask(self, approval: NewApproval) -> None:
        self.asked.setdefault(approval.id, approval)

    async def outcome(self, approval_id: str) -> Outcome | None:
        return self.outcomes.get(approval_id)

    async def is_always(self, person_id: PersonId, agent: str, tool: str) -> bool:
        return tool in self.always


class OneModel:
    """Implements `memory.records.ports.Models`: there is one, whatever it is called."""

    def __init__(self, model: Model) -> None:
        self._model = model

    async def at(self, lane: str, *, agent: str = "") -> InUse:
        return InUse(name=self._model.name, traits=self._model.traits)

    async def named(self, name: str, *, agent: str = "") -> Model:
        return self._model

    def untold(self) -> Sequence[str]:
        return ()


class ScriptedModel:
    """Implements `memory.records.ports.Model`: says its lines in order, and keeps what it was
    asked.

    Streams text in pieces of `piece_chars`. `check` fails after a call too many or too few: a
    turn survives an exception in here, so the test must ask.
    """

    def __init__(
        self,
        *lines: Line,
        traits: ModelTraits | None = None,
        piece_chars: int = 3,
        judge: Callable[[ModelRequest], None] | None = None,
    ) -> None:
        self._lines = list(lines)
        self._traits = traits or ModelTraits()
        self._piece_chars = piece_chars
        self._judge = judge
        self._wrong: list[str] = []
        self.asked: list[ModelRequest] = []

    @property
    def name(self) -> str:
        return "scripted"

    @property
    def traits(self) -> ModelTraits:
        return self._traits

    def add(self, *lines: Line) -> None:
        self._lines.extend(lines)

    def replace(self, *lines: Line) -> None:
        """Drops what was not asked for yet."""
        self._lines = list(lines)

    async def answer(self, request: ModelRequest, *, on_text: OnText) -> Answered:
        self.asked.append(request)
        if self._judge is not None:
            try:
                self._judge(request)
            except AssertionError as error:
                self._wrong.append(f"request {len(self.asked)}: {error}")
                raise
        if not self._lines:
            self._wrong.append(f"request {len(self.asked)} is one too many")
            raise AssertionError(self._wrong[-1])
        await asyncio.sleep(0)
        line = self._lines.pop(0)
        if isinstance(line, AssistantError):
            raise line
        if isinstance(line, str):
            line = Answered(text=line)
        return (
            self._stream(line, on_text)
            if isinstance(line, Answered)
            else await line(request, on_text)
        )

    def check(self) -> None:
        assert not self._wrong, "; ".join(self._wrong)
        assert not self._lines, f"{len(self._lines)} lines were never asked for"

    def _stream(self, answer: Answered, on_text: OnText) -> Answered:
        size = self._piece_chars
        for start in range(0, len(answer.text), size):
            on_text(answer.text[start : start + size])
        return answer


# --- what a person sees ------------------------------------------------------------------------


@dataclass(slots=True)
class KeptDraft:
    """Implements `memory.records.ports.Draft`; all that was ever shown, in order."""

    address: Address
    texts: list[str] = field(default_factory=list)
    statuses: list[str] = field(default_factory=list)

    def text(self, so_far: str) -> None:
        self.texts.append(so_far)

    def status(self, line: str) -> None:
        self.statuses.append(line)


class KeptReplies:
    """Implements `memory.records.ports.Drafts`."""

    def __init__(self) -> None:
        self.by_run: dict[RunId, KeptDraft] = {}
        self.open_now: set[RunId] = set()

    def open(self, run_id: RunId, address: Address) -> KeptDraft:
        self.open_now.add(run_id)
        return self.by_run.setdefault(run_id, KeptDraft(address))

    def close(self, run_id: RunId) -> None:
        self.open_now.discard(run_id)

    def shown(self) -> list[str]:
        """Every text and status line that anybody saw."""
        drafts = self.by_run.values()
        return [line for draft in drafts for line in (*draft.texts, *draft.statuses)]
