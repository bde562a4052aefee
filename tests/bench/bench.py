"""The frame of a run: the stages, started when first needed, and how thorough to be."""

import statistics
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self

from tests.bench.figures import FLOORS, PRODUCT, Figure
from tests.bench.processes import machine_busy
from tests.bench.stage import Stage

ALL = (PRODUCT, *FLOORS)
QUIET_SHARE = 0.15
LOOK_S = 0.25
QUIET_WAITS_MAX = 20
PATIENCE_S = 60.0
"""How long a whole run waits for a quiet machine, over all its measurements."""


@dataclass(slots=True, kw_only=True)
class Bench:
    """A context manager. The stages of the three systems stay up, idle while another one works:
    so they take turns in short blocks, and what disturbs the machine disturbs all of them."""

    quick: bool = False
    figures: list[Figure] = field(default_factory=list)
    busy: list[float] = field(default_factory=list)
    _patience_s: float = PATIENCE_S
    _stages: dict[str, Stage] = field(default_factory=dict)
    _stack: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    def stage(self, name: str) -> Stage:
        """The stage of a system that all measures share."""
        if name not in self._stages:
            self._stages[name] = self._stack.enter_context(fresh_stage(name))
        return self._stages[name]

    def stop_all(self) -> None:
        """Has every bot started afresh when it is next needed."""
        for stage in self._stages.values():
            stage.stop()

    def rounds(self, whole: int) -> int:
        """How often to repeat: a third of it, at least once, when it has to be quick."""
        return max(1, whole // 3) if self.quick else whole

    def add(self, figure: Figure) -> None:
        """Keeps what was found."""
        self.figures.append(figure)

    def say(self, text: str) -> None:
        """Tells how far it is."""
        end = "\x1b[K\r" if sys.stderr.isatty() else "\n"
        print(f"  {text} …", end=end, file=sys.stderr, flush=True)

    def settle(self) -> None:
        """Waits, within reason, until others leave the machine alone."""
        for _ in range(QUIET_WAITS_MAX):
            busy = machine_busy(LOOK_S)
            if busy <= QUIET_SHARE or self._patience_s <= 0:
                break
            self._patience_s -= LOOK_S
        self.busy.append(busy)

    def in_turns(self, blocks: int, *, names: Sequence[str] = ALL) -> Iterator[Stage]:
        """Each system's stage, block after block, each time after a look at the machine."""
        for _ in range(blocks):
            for name in names:
                stage = self.stage(name)
                stage.ready()
                self.settle()
                yield stage


@contextmanager
def fresh_stage(name: str) -> Iterator[Stage]:
    """A stage with a home of its own."""
    with (
        TemporaryDirectory(prefix="hearthbot-bench-") as folder,
        Stage(name, Path(folder)) as stage,
    ):
        yield stage


def medians(found: dict[str, list[float]]) -> dict[str, float]:
    """The median of each system's values."""
    return {name: statistics.median(values) for name, values in found.items() if values}


def p95(values: Sequence[float]) -> float:
    """What 95 % do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
