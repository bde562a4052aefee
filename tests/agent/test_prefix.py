"""What tool schemas take of a prompt."""

from __future__ import annotations

import json

from agent.models.chat_request import TokenCounter
from agent.prompt.prefix_cache import schema_tokens, tools_part
from agent.tools.tool import tools_of
from scheduler.jobs.events import EventTools
from scheduler.jobs.tools import JobTools

SPECS = tuple(
    made.card.spec() for group in (JobTools, EventTools) for made in tools_of(group.__new__(group))
)


async def test_schemas_are_estimated_as_they_are_sent() -> None:
    sent = json.dumps([[spec.name, spec.description, spec.parameters] for spec in SPECS])
    counted = await TokenCounter().total("gpt-4.1", [sent], limit=len(sent) // 4)

    estimated = schema_tokens(SPECS)

    assert len(SPECS) >= 8
    assert abs(estimated - counted) < counted / 10
    assert tools_part(SPECS).tokens > counted, "what is fitted is on the safe side"
