"""What calls of a kind usually take: learned from those that were made. Used by `agent.budget`."""

from __future__ import annotations

from dataclasses import dataclass

from agent.spending import ModelCall, Purpose, Unit
from agent.transcript import Usage

KINDS_KEPT_MAX = 500
STEP = 0.2
"""How much the newest call counts in what is usual."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateError:
    """How far estimates were from what providers counted, since the start: `mean_share` of the
    tokens, and the most tokens that one call took beyond its estimate."""

    calls: int = 0
    mean_share: float = 0.0
    most_tokens: int = 0


class Usual:
    """Moving means by model and purpose."""

    def __init__(self, output_usual: int) -> None:
        """`output_usual` tokens are expected of a model that nothing is known of."""
        self._output_usual = output_usual
        self._kinds: dict[tuple[str, Purpose], tuple[float, float]] = {}
        self._typical: dict[Purpose, tuple[float, float]] = {}
        self._calls = self._counted = self._off = self._most = 0

    def usage(self, model: str, purpose: Purpose, tokens_in: int, tokens_out: int) -> Usage:
        """What to expect of a call whose answer has `tokens_out` at most."""
        output, cached = self._kinds.get((model, purpose), (float(self._output_usual), 0.0))
        return Usage(
            prompt=tokens_in,
            completion=min(tokens_out, round(output)),
            cached=int(tokens_in * cached),
        )

    def typical(self, purpose: Purpose, unit: Unit) -> float:
        """What one call for this has cost of late; 0 when none was made."""
        tokens, micros = self._typical.get(purpose, (0.0, 0.0))
        return tokens if unit is Unit.TOKENS else micros

    def learn(self, call: ModelCall) -> None:
        """A call that the provider counted."""
        usage, purpose = call.usage, call.charge.purpose
        if len(self._kinds) >= KINDS_KEPT_MAX:
            self._kinds.clear()
        key = call.model, purpose
        now = float(usage.completion), min(1.0, usage.cached / max(usage.prompt, 1))
        former = self._kinds.get(key, (float(self._output_usual), 0.0))
        self._kinds[key] = _moved(former, now)
        cost = float(call.tokens), float(call.micros or 0)
        self._typical[purpose] = _moved(self._typical.get(purpose, cost), cost)
        beyond = call.tokens - call.guessed
        self._calls += 1
        self._counted += call.tokens
        self._off += abs(beyond)
        self._most = max(self._most, beyond)

    def error(self) -> EstimateError:
        """How good what was expected was."""
        share = self._off / self._counted if self._counted else 0.0
        return EstimateError(calls=self._calls, mean_share=share, most_tokens=self._most)


def _moved(former: tuple[float, float], now: tuple[float, float]) -> tuple[float, float]:
    return (
        former[0] + STEP * (now[0] - former[0]),
        former[1] + STEP * (now[1] - former[1]),
    )
