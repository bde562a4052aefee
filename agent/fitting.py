"""Makes a prompt fit: which layers give way, in which order, and what they become.

Pure; called by `agent.prompt`. Nothing is dropped silently: each cut is named for the trace.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from agent.request import Piece, PromptLayer

Count = Callable[[str], int]

SHRINK_ORDER = (
    "knowledge",
    "earlier conversation",
    "daily notes",
    "insights",
    "upcoming",
    "skills for this message",
    "memories",
    "skills",
    "routing",
    "workflow guidance",
    "about the user",
    "long-term notes",
    "surroundings",
    "bootstrap",
)
"""What gives way first stands first; a layer that is not named here never does (SPEC §5)."""

CUT_TOKENS_MIN = 50
"""A text that would be cut to less than this is dropped instead."""

CUT_MARK = "\n[… {} characters left out: no room …]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A layer that gave way: its tokens before and after (0: it is gone)."""

    layer: str
    tokens_before: int
    tokens_after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """The layers that are left, in the order they came in, and what was cut.

    `tokens` is what they come to; it is more than the room where even the least is too much.
    """

    layers: tuple[PromptLayer, ...]
    tokens: int
    cuts: tuple[Cut, ...] = ()


def fit(layers: Sequence[PromptLayer], room_tokens: int, count: Count) -> Fitted:
    """Shrinks layers by SHRINK_ORDER until all of them fit into the room."""
    left = {layer.name: layer for layer in layers}
    sizes = {name: count(layer.render()) for name, layer in left.items()}
    total = sum(sizes.values())
    cuts = []
    for name in SHRINK_ORDER:
        if total <= room_tokens:
            break
        if name not in left:
            continue
        before = sizes[name]
        smaller = _shrunk(left[name], before - (total - room_tokens), count)
        after = count(smaller.render()) if smaller else 0
        if after == before:
            continue
        cuts.append(Cut(layer=name, tokens_before=before, tokens_after=after))
        total += after - before
        if smaller is None:
            del left[name]
        else:
            left[name], sizes[name] = smaller, after
    kept = tuple(left[layer.name] for layer in layers if layer.name in left)
    return Fitted(layers=kept, tokens=total, cuts=tuple(cuts))


def _shrunk(layer: PromptLayer, tokens: int, count: Count) -> PromptLayer | None:
    """The layer within `tokens`, or as near as its kind allows; None when nothing is left."""
    pieces = list(layer.pieces)
    while len(pieces) > max(layer.pieces_min, 1 if layer.cuts else 0):
        pieces.pop()
        smaller = replace(layer, pieces=tuple(pieces))
        if count(smaller.render()) <= tokens:
            break
    else:
        smaller = replace(layer, pieces=tuple(pieces))
    if not pieces:
        return None
    if not layer.cuts or count(smaller.render()) <= tokens:
        return smaller
    return _shortened(smaller, tokens, count)


def _shortened(layer: PromptLayer, tokens: int, count: Count) -> PromptLayer | None:
    """A layer of one piece whose text is cut; its head stays."""
    (piece,) = layer.pieces
    if tokens < CUT_TOKENS_MIN:
        return None
    fits, too_long = 0, len(piece.text)
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        if count(_with_head(layer, piece, middle).render()) <= tokens:
            fits = middle
        else:
            too_long = middle
    return _with_head(layer, piece, fits) if fits else None


def _with_head(layer: PromptLayer, piece: Piece, chars: int) -> PromptLayer:
    mark = CUT_MARK.format(f"{len(piece.text) - chars:,}")
    return replace(layer, pieces=(replace(piece, text=piece.text[:chars] + mark),))
