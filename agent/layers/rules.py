"""How the assistant works: acting by tools, where it runs, what is plugged in, how it writes."""

from __future__ import annotations

from agent import headings
from agent.request import Piece, PromptLayer, Stability
from agent.scene import Scene, fill


def tool_rules(scene: Scene) -> PromptLayer:
    """Layer 2: act by calling tools, claim nothing without a call."""
    return PromptLayer.of(
        "tool rules",
        scene.texts["acting"],
        source="prompts/acting.md",
        heading=headings.ACTING,
        stability=Stability.STATIC,
    )


def surroundings(scene: Scene) -> PromptLayer:
    """Layer 3: product, machine, workspace."""
    return PromptLayer.of(
        "surroundings",
        fill(scene.texts["surroundings"], VERSION=scene.version, SYSTEM=scene.system),
        source="prompts/surroundings.md",
        heading=headings.SURROUNDINGS,
        stability=Stability.STATIC,
    )


def routing(scene: Scene) -> PromptLayer | None:
    """Layer 6: a line for each plugged-in server, and when to use what."""
    if not scene.servers and not scene.listed:
        return None
    servers = "\n".join(f"- {line}" for line in scene.servers)
    return PromptLayer(
        name="routing",
        pieces=(
            Piece(text=fill(scene.texts["routing"], SERVERS=servers), source="prompts/routing.md"),
        ),
        heading=headings.ROUTING,
        stability=Stability.STATIC,
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
        "language and format",
        fill(
            scene.texts["language"],
            LANGUAGE=language.strip(),
            FORMAT=scene.texts.get(f"format_{channel}", "").strip(),
        ),
        source="prompts/language.md",
        heading=headings.LANGUAGE,
        stability=Stability.STATIC,
    )
