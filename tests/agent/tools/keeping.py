"""A household, which the tests of memory's tools start from."""

from __future__ import annotations

from collections.abc import Sequence
from zoneinfo import ZoneInfo

from agent.tools.groups.memory import PersonContext
from memory.records.messages import ConversationId
from tests.fakes import FixedClock

BERLIN = ZoneInfo("Europe/Berlin")
NAMES = {"p1": "Ada", "p2": "Bob"}


def household(
    *, clock: FixedClock | None = None, off: Sequence[str] = (), zone: str = "Europe/Berlin"
) -> PersonContext:
    """Everybody lives in `zone`; memory is off in the conversations `off`."""

    async def is_private(conversation: ConversationId) -> bool:
        return conversation in off

    return PersonContext(
        clock=clock or FixedClock(),
        name_of=lambda person_id: NAMES.get(person_id, ""),
        zone_of=lambda person_id: ZoneInfo(zone),
        is_private=is_private,
    )
