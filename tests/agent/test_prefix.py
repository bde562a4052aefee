"""What tool schemas take of a prompt."""

from __future__ import annotations

import json

from agent.models.tokens import Encodings
from agent.prompt.prefix_cache import schema_tokens, tools_part
from agent.tools.tool import tools_of
from scheduler.jobs.events import EventTools
from scheduler.jobs.tools import JobTools

SPECS = tuple(
    made.card.spec() for group in (JobTools, EventTools) for made in tools_of(group.__new__(group))
)


async def test_schemas_are_estimated_as_they_are_sent() -> None:
    encoding = await Encodings().load("o200k_base")
    assert encoding is not None
    sent = [[spec.name, spec.description, spec.parameters] for spec in SPECS]
    counted = len(encoding.encode_ordinary(json.dumps(sent)))

    estimated = schema_tokens(SPECS)

    assert len(SPECS) >= 8
    assert abs(estimated - counted) < counted / 10
    assert tools_part(SPECS).tokens > counted, "what is fitted is on the safe side"
