"""What is wanted right now: how directly to answer, the task, and the owner's instructions."""

from __future__ import annotations

from agent import headings
from agent.request import Piece, PromptLayer, Repeat, Stability
from agent.scene import PromptKind, Scene


def directness_and_reminder(scene: Scene) -> PromptLayer | None:
    """Layer 21: the note of reasoning control, and the reminder that comes back now and then."""
    pieces = []
    if scene.direct:
        pieces.append(Piece(text=scene.texts["directness"], source="prompts/directness.md"))
    if scene.reminder_due:
        pieces.append(Piece(text=scene.texts["reminder"], source="prompts/reminder.md"))
    if not any(piece.text.strip() for piece in pieces):
        return None
    return PromptLayer(
        name="directness and reminder",
        pieces=tuple(pieces),
        stability=Stability.TURN,
        repeat=Repeat.MOMENT,
    )


def current_task(scene: Scene) -> PromptLayer | None:
    """Layer 22: nobody is there, and the instructions are the goal."""
    if scene.kind not in {PromptKind.HEARTBEAT, PromptKind.PROACTIVE}:
        return None
    return PromptLayer.of(
        "current task",
        scene.texts["proactive"],
        source="prompts/proactive.md",
        heading=headings.TASK,
        stability=Stability.TURN,
        repeat=Repeat.MOMENT,
    )


def instruction(scene: Scene) -> PromptLayer | None:
    """Layer 23: what the force-include rules say for this request."""
    if not scene.instructions:
        return None
    return PromptLayer(
        name="instruction for this request",
        pieces=tuple(Piece(text=one.text, source=one.source) for one in scene.instructions),
        heading=headings.INSTRUCTION,
        stability=Stability.TURN,
        repeat=Repeat.MOMENT,
        trust="owner",
    )
