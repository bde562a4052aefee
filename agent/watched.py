"""What people see of turns that run or wait: typing and a status line go on while a subagent works.

A turn that waits frees its lane. While a subagent works for it, its draft stays open and says so;
while a person is asked, by it or by the subagent, there is nothing to wait for but their answer,
and it rests. Called by `agent.assistant`.
"""

from __future__ import annotations

from agent.messages import Address, RunId, TurnInput
from agent.ports import Drafts
from agent.subagents import is_subagents_end
from agent.tools.agents import SUBAGENT


class WatchedTurns:
    """The drafts of one process's turns. After a restart nothing is shown of a turn that waits
    until it goes on."""

    def __init__(self, drafts: Drafts) -> None:
        self._drafts = drafts
        self._waiting: dict[RunId, Address] = {}
        """Turns that wait for a subagent's end."""
        self._asking: dict[RunId, set[RunId]] = {}
        """Of a turn, its subagents that wait for a person's answer."""

    def begins(self, run_id: RunId, turn: TurnInput) -> None:
        """It begins, or goes on."""
        draft = self._drafts.open(run_id, turn.message.address)
        if self._waiting.pop(run_id, None) is not None:
            draft.status("")
        self._hears(run_id, turn, asks=False)

    def leaves(self, run_id: RunId, turn: TurnInput, *, waits_for: str = "") -> None:
        """It has ended, or waits for this signal."""
        if is_subagents_end(waits_for):
            self._waiting[run_id] = turn.message.address
            self._show(run_id)
            return
        self._drafts.close(run_id)
        self._hears(run_id, turn, asks=bool(waits_for))

    def broke(self, run_id: RunId) -> None:
        """It has ended, and not by itself."""
        self._waiting.pop(run_id, None)
        self._drafts.close(run_id)

    def _hears(self, child: RunId, turn: TurnInput, *, asks: bool) -> None:
        """The turn that waits for this one, if there is such a turn."""
        if turn.task is None or not turn.task.waits:
            return
        parent = turn.task.parent
        asking = self._asking.get(parent, set())
        if asks == (child in asking):
            return
        if now := asking | {child} if asks else asking - {child}:
            self._asking[parent] = now
        else:
            self._asking.pop(parent)
        self._show(parent)

    def _show(self, run_id: RunId) -> None:
        address = self._waiting.get(run_id)
        if address is None:
            return
        if run_id in self._asking:
            self._drafts.close(run_id)
        else:
            self._drafts.open(run_id, address).status(SUBAGENT.status)
