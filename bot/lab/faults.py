"""Faults on demand: what a stand-in should do wrong, when, and how often.

One table per server; `LabServer` asks it at each request. The kinds named in `COMMON` are acted
out by the server itself, every other kind is handed to the stand-in (`refuse_markup`, `length`).
Limits of pace stand here too.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

COMMON = frozenset({"answer", "hold", "drop", "reset", "garble"})
EVENT = "event"
"""The method under which Slack's stand-in asks for faults of what it sends to the app. `*` means
requests, so it leaves them alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultAction:
    """One misbehaviour; `after` says whether the request takes effect before it."""

    kind: str
    status: int = 500
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float | None = None
    after: bool = False
    chunks: int = 1

    @property
    def instead(self) -> bool:
        """Return whether the request never takes effect."""
        return self.kind in {"answer", "drop", "reset"} and not self.after


def answer(
    status: int, body: Any = None, *, headers: Mapping[str, str] | None = None, after: bool = False
) -> FaultAction:
    """Answer with this status; a str body goes out as HTML, anything else as JSON."""
    return FaultAction(kind="answer", status=status, body=body, headers=headers or {}, after=after)


def hold(seconds: float | None = None, *, after: bool = True) -> FaultAction:
    """Keep the client waiting (None: until `release()`), after or before taking effect."""
    return FaultAction(kind="hold", seconds=seconds, after=after)


def drop(*, after: bool = False) -> FaultAction:
    """Close the connection without an answer, before or after taking effect."""
    return FaultAction(kind="drop", after=after)


def reset(*, after: bool = False) -> FaultAction:
    """As `drop`, with a TCP reset instead of an orderly end."""
    return FaultAction(kind="reset", after=after)


def garble() -> FaultAction:
    """Take effect, then send only the first half of the body."""
    return FaultAction(kind="garble", after=True)


def bad_gateway(*, after: bool = False) -> FaultAction:
    """The HTML page of a proxy in front of the real server."""
    page = "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"
    return answer(502, page, after=after)


@dataclass(slots=True, kw_only=True)
class Fault:
    """An action with its occasions; `hits` counts how often it struck."""

    action: FaultAction
    method: str = "*"
    times: int | None = 1
    skip: int = 0
    when: Mapping[str, Any] = field(default_factory=dict)
    hits: int = 0


class FaultTable:
    """The faults in force, asked in the order in which they were added."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def add(self, fault: Fault) -> None:
        self._faults.append(fault)

    def clear(self) -> None:
        self._faults.clear()

    def take(self, method: str, params: Mapping[str, Any]) -> FaultAction | None:
        """The action that this request meets, if any; counts it."""
        for fault in self._faults:
            meant = {method} if method == EVENT else {"*", method}
            if fault.method not in meant or not matches(fault.when, params):
                continue
            # Only what fits is counted, so that a test can rely on `skip`.
            if fault.skip > 0:
                fault.skip -= 1
                continue
            if fault.times is not None and fault.hits >= fault.times:
                continue
            fault.hits += 1
            return fault.action
        return None


def matches(when: Mapping[str, Any], params: Mapping[str, Any]) -> bool:
    """Return whether all named parameters are equal as text; a key ending in `~` asks for a part of
    it."""
    for key, wanted in when.items():
        if key.endswith("~"):
            if str(wanted) not in str(params.get(key[:-1], "")):
                return False
        elif str(params.get(key)) != str(wanted):
            return False
    return True


class Buckets:
    """Token buckets by any key. They last as long as the stand-in: none is dropped."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._levels: dict[object, tuple[float, float]] = {}

    def wait_s(self, asked: Sequence[tuple[object, float, float]]) -> int:
        """Take one from each bucket, given as key, rate a second, and burst; or take none, and say
        in how many whole seconds it may be tried again."""
        now = self._clock()
        wait_s = 0.0
        for key, rate, burst in asked:
            level, at = self._levels.get(key, (burst, now))
            level = min(burst, level + (now - at) * rate)
            self._levels[key] = level, now
            wait_s = max(wait_s, (1.0 - level) / rate)
        if wait_s > 1e-9:
            return max(1, math.ceil(wait_s))
        for key, _, _ in asked:
            self._levels[key] = self._levels[key][0] - 1.0, now
        return 0
