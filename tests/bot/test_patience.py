"""What has to be done is tried until storage lets it be done."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from bot.inbox.background import STORAGE_PAUSES_S, patiently
from memory.records.errors import AssistantError, StorageError
from tests.fakes import FixedClock


class Troubled:
    """Fails so many times, and is done then."""

    def __init__(self, times: int, trouble: AssistantError) -> None:
        self.left = times
        self._trouble = trouble

    async def act(self) -> None:
        self.left -= 1
        if self.left >= 0:
            raise self._trouble


async def test_it_is_tried_until_it_is_done_with_longer_pauses_and_told_of_once() -> None:
    clock = FixedClock()
    tries = len(STORAGE_PAUSES_S) + 2

    with capture_logs() as logs:
        await patiently(Troubled(tries, StorageError("the disk is full")).act, clock)

    assert clock.pauses == [*STORAGE_PAUSES_S, STORAGE_PAUSES_S[-1], STORAGE_PAUSES_S[-1]]
    assert [entry["event"] for entry in logs] == ["inbox.storage"]


async def test_other_trouble_is_not_waited_for() -> None:
    clock = FixedClock()

    with pytest.raises(AssistantError, match="no"):
        await patiently(Troubled(1, AssistantError("no")).act, clock)

    assert clock.pauses == []
