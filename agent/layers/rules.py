"""How the assistant works: acting by tools, where it runs, and how it writes."""

from __future__ import annotations

from agent.request import PromptLayer, Stability
from agent.scene import Scene, fill


def tool_rules(scene: Scene) -> PromptLayer:
    """Layer 2: act by calling tools, claim nothing without a call."""
    return PromptLayer.of(
        name="tool rules",
        heading="## Acting",
        text=scene.texts["acting"],
        stability=Stability.STATIC,
        source="prompts/acting.md",
    )


def surroundings(scene: Scene) -> PromptLayer:
    """Layer 3: product, machine, workspace."""
    return PromptLayer.of(
        name="surroundings",
        heading="## Surroundings",
        text=fill(scene.texts["surroundings"], VERSION=scene.version, SYSTEM=scene.system),
        stability=Stability.STATIC,
        source="prompts/surroundings.md",
    )


def language_and_format(scene: Scene) -> PromptLayer:
    """Layer 8: the person's language, the direct reply only, the channel's formatting."""
    channel = scene.turn.message.address.channel
    language = (
        f"Reply in {scene.fixed_language}."
        if scene.fixed_language
        else scene.texts["language_auto"]
    )
    return PromptLayer.of(
        name="language and format",
        heading="## Language and format",
        text=fill(
            scene.texts["language"],
            LANGUAGE=language.strip(),
            FORMAT=scene.texts.get(f"format_{channel}", "").strip(),
        ),
        stability=Stability.STATIC,
        source="prompts/language.md",
    )
