"""What was before and what is to come: earlier talk, saved documents, insights, events."""

from __future__ import annotations

from agent import headings
from agent.recalled import Coming, Exchange
from agent.request import Piece, PromptLayer, Repeat, Stability
from agent.scene import Scene, one_line

EXCHANGES_MAX, EXCHANGE_CHARS_MAX = 5, 300
CHUNKS_MAX, CHUNK_CHARS_MAX = 5, 1_500
PINS_MAX, RECOMMENDATIONS_MAX, INSIGHT_CHARS_MAX = 2, 1, 150
COMING_MAX = 10


def earlier_conversation(scene: Scene) -> PromptLayer | None:
    """Layer 14: past exchanges that match the message and are no longer in the history sent.

    An answer that may repeat text from outside stays away: here nothing would say that it does, and
    search_conversations finds it.
    """
    exchanges = scene.recalled.exchanges[:EXCHANGES_MAX]
    if not exchanges:
        return None
    half = EXCHANGE_CHARS_MAX // 2
    return PromptLayer(
        name="earlier conversation",
        pieces=tuple(
            Piece(
                text=_exchange_line(exchange, half),
                source=f"exchange:{exchange.id}",
            )
            for exchange in exchanges
        ),
        heading=headings.EARLIER,
        between="\n",
        stability=Stability.TURN,
        repeat=Repeat.MATERIAL,
        trust="outside",
    )


def knowledge(scene: Scene) -> PromptLayer | None:
    """Layer 15: passages of saved documents, each with the document it is from."""
    chunks = scene.recalled.chunks[:CHUNKS_MAX]
    if not chunks:
        return None
    return PromptLayer(
        name="knowledge",
        pieces=tuple(
            Piece(
                heading=f"### Document: {one_line(chunk.document)}",
                text=chunk.text.strip()[:CHUNK_CHARS_MAX],
                source=f"chunk:{chunk.id}",
            )
            for chunk in chunks
        ),
        heading=headings.DOCUMENTS,
        stability=Stability.TURN,
        repeat=Repeat.MATERIAL,
        trust="outside",
    )


def insights(scene: Scene) -> PromptLayer | None:
    """Layer 16: what this person needs, and how to use tools better."""
    recalled = scene.recalled
    pieces = (
        Piece(heading=headings.KEEP_IN_MIND, text=_items(recalled.pins[:PINS_MAX]), source="pins"),
        Piece(
            heading=headings.USING_TOOLS,
            text=_items(recalled.recommendations[:RECOMMENDATIONS_MAX]),
            source="recommendations",
        ),
    )
    if not any(piece.text for piece in pieces):
        return None
    return PromptLayer(
        name="insights",
        pieces=tuple(piece for piece in pieces if piece.text),
        stability=Stability.TURN,
        repeat=Repeat.MATERIAL,
        trust="outside",
    )


def upcoming(scene: Scene) -> PromptLayer | None:
    """Layer 17: the next events and jobs."""
    coming = scene.recalled.coming[:COMING_MAX]
    if not coming:
        return None
    return PromptLayer(
        name="upcoming",
        pieces=tuple(
            Piece(
                text=f"- {_when(item)}: {one_line(item.text, chars_max=200)}",
                source=f"coming:{item.id}",
            )
            for item in coming
        ),
        heading=headings.UPCOMING,
        between="\n",
        stability=Stability.TURN,
        trust="outside",
    )


def _when(item: Coming) -> str:
    return "no date" if item.when is None else f"{item.when:%a %Y-%m-%d %H:%M}"


def previous_conversation(scene: Scene) -> PromptLayer | None:
    """Layer 18: the summary of what is no longer sent."""
    if not scene.recalled.summary.strip():
        return None
    return PromptLayer.of(
        "previous conversation",
        scene.recalled.summary,
        source="summary",
        heading=headings.PREVIOUS,
        stability=Stability.TURN,
        trust="outside",
    )


def _exchange_line(exchange: Exchange, chars_max: int) -> str:
    said = f"- {exchange.when:%Y-%m-%d}: «{_quoted(exchange.said, chars_max)}»"
    if exchange.tainted or not exchange.answered.strip():
        return said
    return f"{said} → «{_quoted(exchange.answered, chars_max)}»"


def _quoted(text: str, chars_max: int) -> str:
    return one_line(text.replace("«", "‹").replace("»", "›"), chars_max=chars_max)


def _items(texts: tuple[str, ...]) -> str:
    return "\n".join(f"- {one_line(text, chars_max=INSIGHT_CHARS_MAX)}" for text in texts)
