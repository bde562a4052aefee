"""Who the assistant is: the base text and the workspace's bootstrap files."""

from __future__ import annotations

from agent.request import Piece, PromptLayer, Stability
from agent.scene import Scene

HEAD_SHARE, TAIL_SHARE = 0.7, 0.2
"""What is kept of a bootstrap file that is too long (SPEC §5, layer 4)."""


def base(scene: Scene) -> PromptLayer:
    """Layer 1: the persona text, with `system_extra` after it where there is one.

    A persona in the person's profile replaces what the base chain chose.
    """
    persona = scene.recalled.persona_prompt.strip()
    text = persona or scene.base.strip()
    if extra := scene.texts.get("system_extra", "").strip():
        text = f"{text}\n\n{extra}"
    return PromptLayer.of(
        "base",
        text,
        source="profile: persona.system_prompt" if persona else scene.base_source,
        stability=Stability.STATIC,
        trust="owner",
    )


def bootstrap(scene: Scene) -> PromptLayer | None:
    """Layer 4: AGENTS.md, SOUL.md, ... each under its own heading."""
    pieces = tuple(
        Piece(
            heading=f"## {name}",
            text=_bounded(text.strip(), scene.bootstrap_chars_max),
            source=name,
        )
        for name, text in scene.bootstrap.items()
        if text.strip()
    )
    if not pieces:
        return None
    return PromptLayer(
        name="bootstrap",
        pieces=pieces,
        stability=Stability.STATIC,
        trust="owner",
        cuts=True,
    )


def _bounded(text: str, chars_max: int) -> str:
    if len(text) <= chars_max:
        return text
    head, tail = int(chars_max * HEAD_SHARE), int(chars_max * TAIL_SHARE)
    left_out = len(text) - head - tail
    return f"{text[:head]}\n[… {left_out:,} characters left out …]\n{text[len(text) - tail :]}"
