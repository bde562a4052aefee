"""What the runs by the clock told others on one day: a job may run each five minutes, and nobody is
there who would see what it does. Called by `agent.gate`.

Kept in memory: who starts the bot anew is its owner, and sees that it was.
"""

from __future__ import annotations

from datetime import date

from agent.messages import PersonId, RunId
from agent.news import Cost
from agent.told import BITS_MAX, SPELLED_MAX

TURNS_A_DAY = 5
"""As much as so many turns may tell, all runs of a person's jobs may tell on a day; then they are
asked."""


class Unwatched:
    """Sums of the current day."""

    def __init__(self) -> None:
        self._day = date.min
        self._told: dict[PersonId, dict[RunId, Cost]] = {}

    def left(self, person_id: PersonId, run_id: RunId, today: date) -> Cost:
        """What this run may tell, its own calls so far not counted: they are gone through again."""
        others = [cost for of, cost in self._of(today).get(person_id, {}).items() if of != run_id]
        return Cost(
            bits=TURNS_A_DAY * BITS_MAX - sum(one.bits for one in others),
            spelled=TURNS_A_DAY * SPELLED_MAX - sum(one.spelled for one in others),
        )

    def told(self, person_id: PersonId, run_id: RunId, today: date, cost: Cost) -> None:
        """What this run told in all so far."""
        self._of(today).setdefault(person_id, {})[run_id] = cost

    def _of(self, today: date) -> dict[PersonId, dict[RunId, Cost]]:
        if today != self._day:
            self._day = today
            self._told = {}
        return self._told
