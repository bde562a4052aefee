"""Whom the assistant talks with: their notes, their profile, and what is remembered of them."""

from __future__ import annotations

from agent import headings
from agent.remembering import FACT_SOURCE
from agent.request import Piece, PromptLayer, Repeat, Stability
from agent.scene import Scene, one_line

NOTES_CHARS_MAX = 5_000
PROFILE_CHARS_MAX = 2_000
DAY_CHARS_MAX = 4_000
FACTS_MAX, FACTS_MIN = 5, 2
FACT_CHARS_MAX = 500

NOTES_WIN = "Where these notes and remembered facts disagree, the notes hold."


def long_term_notes(scene: Scene) -> PromptLayer | None:
    """Layer 7: the person's MEMORY.md; past its bound, its head and where the rest is."""
    text = scene.notes.strip()
    if not text:
        return None
    if len(text) > NOTES_CHARS_MAX:
        text = (
            f"{text[:NOTES_CHARS_MAX]}\n"
            f"[… {len(text) - NOTES_CHARS_MAX:,} characters more: read {scene.notes_source}]"
        )
    return PromptLayer.of(
        "long-term notes",
        f"{text}\n\n{NOTES_WIN}",
        source=scene.notes_source,
        heading=headings.LONG_TERM_NOTES,
        stability=Stability.STATIC,
        trust="owner",
        cuts=True,
    )


def daily_notes(scene: Scene) -> PromptLayer | None:
    """Layer 9: the notes of the last days, the newest first."""
    days = [note for note in scene.daily_notes if note.text.strip()]
    if not days:
        return None
    return PromptLayer(
        name="daily notes",
        pieces=tuple(
            Piece(
                heading=f"### {note.day:%Y-%m-%d}",
                text=_head(note.text.strip(), DAY_CHARS_MAX),
                source=f"notes:{note.day:%Y%m%d}",
            )
            for note in days
        ),
        heading=headings.DAILY_NOTES,
        stability=Stability.TURN,
        repeat=Repeat.MATERIAL,
        trust="owner",
    )


def about_the_user(scene: Scene) -> PromptLayer | None:
    """Layer 12: the profile."""
    if not scene.recalled.profile.strip():
        return None
    return PromptLayer.of(
        "about the user",
        _head(scene.recalled.profile.strip(), PROFILE_CHARS_MAX),
        source="profile",
        heading=headings.ABOUT,
        stability=Stability.TURN,
        trust="outside",
        cuts=True,
    )


def memories(scene: Scene) -> PromptLayer | None:
    """Layer 13: the facts that fit best. In a group each says who said it."""
    facts = scene.recalled.facts[:FACTS_MAX]
    if not facts:
        return None
    lines = []
    for fact in facts:
        text = one_line(fact.text, chars_max=FACT_CHARS_MAX)
        said_by = f"{one_line(fact.speaker)}: " if fact.speaker else ""
        category = f" ({one_line(fact.category)})" if fact.category else ""
        lines.append(Piece(text=f"- {said_by}{text}{category}", source=f"{FACT_SOURCE}{fact.id}"))
    return PromptLayer(
        name="memories",
        pieces=tuple(lines),
        pieces_min=FACTS_MIN,
        heading=headings.MEMORIES,
        between="\n",
        stability=Stability.TURN,
        repeat=Repeat.MATERIAL,
        trust="outside",
    )


def _head(text: str, chars_max: int) -> str:
    if len(text) <= chars_max:
        return text
    return f"{text[:chars_max]}\n[… {len(text) - chars_max:,} characters more]"
