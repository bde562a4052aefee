"""Many chats write at once, one of them far more than its share: everybody is answered, each once
and in order, within the limits that the platform judges by. Times are figures
(`tests.bench.surge`)."""

from __future__ import annotations

import pytest

from tests.bench.surge import Platform, Surge, name_in, staged
from tests.thorough import THOROUGH

SURGE = Surge() if THOROUGH else Surge(messages=24, chats=6, loud=6, seconds=0.3)
MEMORY_MB_MAX = 250
"""What a thousand messages that wait may take beside an idle bot."""

REFUSED_MAX = SURGE.messages // 10 if THOROUGH else SURGE.messages
"""Requests that came a moment too early, because the one before came late: the platform says so,
and they come again. In a whole surge a bot that keeps no pace is turned away hundreds of times; in
a small one a busy machine alone may do it to some."""


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("platform", ["telegram", "slack"])
def test_a_chat_that_floods_costs_nobody_an_answer_or_their_order(platform: Platform) -> None:
    with staged(platform, limits=True) as run:
        came = run(SURGE)

    read = {chat: [name_in(text) for text in shown] for chat, shown in came.shown.items()}
    assert read == came.asked
    assert sum(map(len, read.values())) == SURGE.messages
    assert came.refused <= REFUSED_MAX
    assert came.memory_peak_mb - came.memory_before_mb < MEMORY_MB_MAX
