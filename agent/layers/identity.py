"""Who the assistant is: the base text and the workspace's bootstrap files."""

from __future__ import annotations

from agent.request import PromptLayer, Stability
from agent.scene import Scene

HEAD_SHARE, TAIL_SHARE = 0.7, 0.2
"""What is kept of a bootstrap file that is too long (SPEC §5, layer 4)."""


def base(scene: Scene) -> PromptLayer:
    """Layer 1: the persona text, with `system_extra` after it where there is one."""
    extra = scene.texts.get("system_extra", "").strip()
    text = f"{scene.base.strip()}\n\n{extra}" if extra else scene.base
    return PromptLayer.of(
        name="base", text=text, stability=Stability.STATIC, source=scene.base_source, trust="owner"
    )


def bootstrap(scene: Scene) -> PromptLayer | None:
    """Layer 4: AGENTS.md, SOUL.md, ... each under its own heading."""
    parts = [
        f"## {name}\n{_bounded(text.strip(), scene.bootstrap_chars_max)}"
        for name, text in scene.bootstrap.items()
        if text.strip()
    ]
    if not parts:
        return None
    return PromptLayer.of(
        name="bootstrap",
        text="\n\n".join(parts),
        stability=Stability.STATIC,
        source="workspace",
        trust="owner",
    )


def _bounded(text: str, chars_max: int) -> str:
    if len(text) <= chars_max:
        return text
    head, tail = int(chars_max * HEAD_SHARE), int(chars_max * TAIL_SHARE)
    left_out = len(text) - head - tail
    return f"{text[:head]}\n[… {left_out:,} characters left out …]\n{text[len(text) - tail :]}"
