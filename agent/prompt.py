"""Assembles every prompt from its layers, in one order. Nothing else may add text to a prompt.

Static layers make the system message, byte-identical while their sources are. Turn layers make
one marked block that follows the person's words. Called by `agent.assistant`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from agent.layers import identity, moment, rules
from agent.request import PromptLayer, Stability
from agent.scene import Scene

Layer = Callable[[Scene], PromptLayer | None]

LAYERS: tuple[Layer, ...] = (
    identity.base,
    rules.tool_rules,
    rules.surroundings,
    identity.bootstrap,
    rules.language_and_format,
    moment.date_and_time,
    moment.current_chat,
)
"""In the order of SPEC §5: what never changes first, what changes most last."""

CONTEXT_OPEN, CONTEXT_CLOSE = "<context>", "</context>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A finished prompt: the system message and the block of turn layers (may be empty)."""

    system: str
    context: str
    layers: tuple[PromptLayer, ...]

    @property
    def digest(self) -> str:
        """Names the system message."""
        return hashlib.sha256(self.system.encode()).hexdigest()[:32]


def assemble(
    scene: Scene,
    *,
    sent_contexts: Sequence[str] = (),
    turn_layers_in: str = "user",
    layers: Sequence[Layer] = LAYERS,
) -> Prompt:
    """Runs the layers over the scene.

    `sent_contexts` are the blocks already in the history that is sent: a turn layer whose text
    stands there is not sent again. `turn_layers_in` is "user" or "system" (prompt.turn_layers).
    """
    made = [layer for build in layers if (layer := build(scene)) is not None and layer.render()]
    static = [layer for layer in made if layer.stability is Stability.STATIC]
    turn = [layer for layer in made if layer.stability is Stability.TURN]
    if turn_layers_in == "system":
        return Prompt(system=_join(static + turn), context="", layers=tuple(static + turn))
    fresh = [layer for layer in turn if not _stands_in(layer.render(), sent_contexts)]
    context = f"{CONTEXT_OPEN}\n{_join(fresh)}\n{CONTEXT_CLOSE}" if fresh else ""
    return Prompt(system=_join(static), context=context, layers=tuple(static + fresh))


def demo_prompt(scene: Scene) -> Prompt:
    """The whole prompt of a demo model: a larger one would fill its window (DESIGN §7)."""
    layer = PromptLayer.of(
        name="base",
        text=scene.texts["demo"],
        stability=Stability.STATIC,
        source="prompts/demo.md",
    )
    return Prompt(system=layer.render(), context="", layers=(layer,))


def _join(layers: Iterable[PromptLayer]) -> str:
    return "\n\n".join(layer.render() for layer in layers)


def _stands_in(text: str, contexts: Sequence[str]) -> bool:
    return any(f"\n{text}\n" in context for context in contexts)
