"""What a prompt says of the time ahead, with a date and without."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from agent.prompt.layers.knowledge import upcoming
from agent.prompt.templates import PersonaSettings, PromptLibrary
from bot.settings.home import shipped
from memory.records.facts import Coming, Recalled
from tests.agent.house import OWNER
from tests.agent.scenes import scene


def test_what_has_no_date_says_so(tmp_path: Path) -> None:
    there = scene(OWNER, PromptLibrary(shipped("prompts"), tmp_path, PersonaSettings()))
    dated = Coming(id="e1", when=datetime(2026, 8, 4, 10, 0, tzinfo=UTC), text="Dentist")
    undated = Coming(id="e2", when=None, text="Move\nhouse")

    layer = upcoming(replace(there, recalled=Recalled(coming=(dated, undated))))

    assert layer is not None
    assert [(piece.text, piece.source) for piece in layer.pieces] == [
        ("- Tue 2026-08-04 10:00: Dentist", "coming:e1"),
        ("- no date: Move house", "coming:e2"),
    ]
