"""How the assistant works: acting by tools, where it runs, what is plugged in, how it writes."""

from __future__ import annotations

from agent import headings
from agent.languages import AUTO, language_name
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
    return PromptLayer.of(
        "language and format",
        fill(
            scene.texts["language"],
            LANGUAGE=_language(scene),
            FORMAT=scene.texts.get(f"format_{channel}", "").strip(),
        ),
        source="prompts/language.md",
        heading=headings.LANGUAGE,
        stability=Stability.STATIC,
    )


def _language(scene: Scene) -> str:
    """What the person has set, else the language that is set for all, else the rule that goes by
    each message. A platform's word on it stands in only where no message says: apps are set to
    languages that their people do not write. In a group nobody's own language counts."""
    turn = scene.turn
    is_alone = not turn.message.is_group
    own = turn.language if is_alone else ""
    if chosen := language_name(own):
        return f"Reply in {chosen}."
    if scene.fixed_language and own != AUTO:
        return f"Reply in {language_name(scene.fixed_language) or scene.fixed_language}."
    rule = scene.texts["language_auto"].strip()
    hint = language_name(turn.language_hint) if is_alone else ""
    return f"{rule} Where no words of theirs show one, write in {hint}." if hint else rule
