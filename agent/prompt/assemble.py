"""Assembles every prompt from its layers, in one order. Nothing else may add text to a prompt.

Static layers make the system message, byte-identical while their sources are. Turn layers make
one marked block that follows the person's words. Called by `agent.turn.steps.begin`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from agent.prompt import templates as headings
from agent.prompt.layers import abilities
from agent.prompt.layers import instructions as identity
from agent.prompt.layers import instructions as moment
from agent.prompt.layers import instructions as request
from agent.prompt.layers import instructions as rules
from agent.prompt.layers import knowledge as past
from agent.prompt.layers import knowledge as person
from agent.prompt.scene import PromptKind, Scene, fill
from agent.prompt.templates import CONTEXT_CLOSE, CONTEXT_OPEN, TURN_HEADINGS, harmless, harmless_in
from agent.prompt.tokens import estimate_tokens
from memory.records.section import LayersSettings
from memory.records.transcript import Context, Piece, PromptLayer, Repeat, Stability, once

# --- fitting ------------------------------------------------------------------------------------
#
# Truncation: which layers of a prompt give way so that it fits, in which order, and what they
# become.
#
# Pure; called by `agent.prompt.assemble`. Nothing is dropped silently: each cut is named for the
# trace.

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
class LayerCut:
    """A layer that gave way: its tokens before and after (0: it is gone)."""

    layer: str
    tokens_before: int
    tokens_after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedLayers:
    """The layers that are left, in the order they came in, and what was cut.

    `tokens` is what they come to; it is more than the room where even the least is too much.
    """

    layers: tuple[PromptLayer, ...]
    tokens: int
    cuts: tuple[LayerCut, ...] = ()


def fit(layers: Sequence[PromptLayer], room_tokens: int, count: Count) -> FittedLayers:
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
        cuts.append(LayerCut(layer=name, tokens_before=before, tokens_after=after))
        total += after - before
        if smaller is None:
            del left[name]
        else:
            left[name], sizes[name] = smaller, after
    kept = tuple(left[layer.name] for layer in layers if layer.name in left)
    return FittedLayers(layers=kept, tokens=total, cuts=tuple(cuts))


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
    # A layer of one piece whose text is cut; its head stays.
    (piece,) = smaller.pieces
    if tokens < CUT_TOKENS_MIN:
        return None
    fits, too_long = 0, len(piece.text)
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        if count(_with_head(smaller, piece, middle).render()) <= tokens:
            fits = middle
        else:
            too_long = middle
    return _with_head(smaller, piece, fits) if fits else None


def _with_head(layer: PromptLayer, piece: Piece, chars: int) -> PromptLayer:
    mark = CUT_MARK.format(f"{len(piece.text) - chars:,}")
    return replace(layer, pieces=(replace(piece, text=piece.text[:chars] + mark),))


Layer = Callable[[Scene], PromptLayer | None]

LAYERS: tuple[Layer, ...] = (
    identity.base,
    rules.tool_rules,
    rules.surroundings,
    identity.bootstrap,
    abilities.skills,
    rules.routing,
    person.long_term_notes,
    rules.language_and_format,
    person.daily_notes,
    abilities.workflow_guidance,
    abilities.relevant_skills,
    person.about_the_user,
    person.memories,
    past.earlier_conversation,
    past.knowledge,
    past.insights,
    past.upcoming,
    past.previous_conversation,
    moment.date_and_time,
    moment.current_chat,
    request.directness_and_reminder,
    request.current_task,
    request.instruction,
)
"""In the order of SPEC §5: what never changes first, what changes most last."""

UNATTENDED: tuple[Layer, ...] = (
    moment.date_and_time,
    person.memories,
    request.current_task,
)
"""What follows the static layers where nobody is there (SPEC §5, kinds of prompt)."""

HEARTBEAT: tuple[Layer, ...] = (
    identity.base,
    rules.tool_rules,
    rules.surroundings,
    identity.bootstrap,
    abilities.skills,
    rules.routing,
    person.long_term_notes,
    rules.language_and_format,
    *UNATTENDED,
)

PROACTIVE: tuple[Layer, ...] = (
    identity.base,
    rules.tool_rules,
    rules.surroundings,
    identity.bootstrap,
    rules.language_and_format,
    *UNATTENDED,
)

PROACTIVE_FULL: tuple[Layer, ...] = (
    identity.base,
    rules.tool_rules,
    rules.surroundings,
    identity.bootstrap,
    abilities.skills,
    rules.routing,
    rules.language_and_format,
    abilities.workflow_guidance,
    abilities.relevant_skills,
    past.previous_conversation,
    moment.date_and_time,
    moment.current_chat,
    person.memories,
    request.current_task,
    request.instruction,
)
"""With `full_context`: playbooks, skills, routing, chat and summary too."""

GONE = "(nothing any more)"
"""What a state says once it is empty: the history still shows what it was."""

_STATES = {headings.ABOUT: "about the user", headings.UPCOMING: "upcoming"}
"""Layers that can come to say nothing, by their heading."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A finished prompt: the system message, the block of turn layers (may be empty), and, where
    nobody wrote a message, what stands in place of one. `layers` are those that are sent; `spared`
    names turn layers that stand in the history already, and `whole_context` is the block with them
    (empty when none was spared), for a request whose history has to go. `cuts` says what had no
    room.
    """

    system: str = ""
    context: str = ""
    layers: tuple[PromptLayer, ...] = ()
    whole_context: str = ""
    user: str = ""
    spared: tuple[str, ...] = ()
    cuts: tuple[LayerCut, ...] = ()
    tokens: int = 0

    @property
    def digest(self) -> str:
        """Names the system message."""
        return hashlib.sha256(self.system.encode("utf-8", "replace")).hexdigest()[:32]


_SETTINGS = LayersSettings()


def assemble(
    scene: Scene,
    *,
    sent_contexts: Sequence[Context] = (),
    settings: LayersSettings = _SETTINGS,
    room_tokens: int | None = None,
    count: Count = estimate_tokens,
) -> Prompt:
    """Runs the layers of this kind of prompt over the scene.

    `sent_contexts` are the blocks already in the history that is sent, oldest first: what stands
    there is not sent again. `room_tokens` is what system message and block may have together; None
    is as much as they want. A prompt that is over it even so says so by its `tokens`.
    """
    if scene.kind is PromptKind.SUBAGENT:
        prompt = _of_one("base", scene.texts["subagent"], source="prompts/subagent.md")
        task = scene.task.strip()
        return replace(prompt, user=task, tokens=prompt.tokens + count(task))
    made = _built(scene, settings)
    static, turn = _static(made), _of_turn(made)
    in_block = scene.kind is PromptKind.CHAT and settings.turn_layers == "user"
    every, spared = static + turn, list[str]()
    if in_block:
        asides = [scene.texts.get(name, "").strip() for name in ("directness", "reminder")]
        turn, spared = _fresh(turn, sent_contexts, asides)
    user = _user(scene)
    layers: Sequence[PromptLayer] = static + turn
    room = _NO_LIMIT if room_tokens is None else room_tokens - (count(user) if user else 0)
    fitted = fit(layers, room, count)
    static = _static(fitted.layers)
    turn = _of_turn(fitted.layers)
    return Prompt(
        system=_join(static if in_block else static + turn),
        context=_block(turn) if in_block else "",
        whole_context=_block(_of_turn(fit(every, room, count).layers)) if spared else "",
        user=user,
        layers=fitted.layers,
        spared=tuple(spared),
        cuts=fitted.cuts,
        tokens=fitted.tokens + (count(user) if user else 0),
    )


_NO_LIMIT = 1 << 62


def _static(layers: Iterable[PromptLayer]) -> list[PromptLayer]:
    return [layer for layer in layers if layer.stability is Stability.STATIC]


def _of_turn(layers: Iterable[PromptLayer]) -> list[PromptLayer]:
    return [layer for layer in layers if layer.stability is Stability.TURN]


def demo_prompt(scene: Scene) -> Prompt:
    """The whole prompt of a demo model: a larger one would fill its window (DESIGN §7)."""
    return _of_one("base", scene.texts["demo"], source="prompts/demo.md")


def from_template(texts: Mapping[str, str], name: str, **values: str) -> Prompt:
    """The one message of a run that has no system message: compaction, merge, extraction,
    insights (SPEC §5, kinds of prompt). What fills it in cannot close its marked blocks."""
    template = texts[name]
    guarded = {key: harmless_in(template, value) for key, value in values.items()}
    user = fill(template, **guarded).strip()
    return Prompt(user=user, tokens=estimate_tokens(user))


def _of_one(name: str, text: str, *, source: str) -> Prompt:
    layer = PromptLayer.of(name, text, source=source, stability=Stability.STATIC)
    system = layer.render()
    return Prompt(system=system, layers=(layer,), tokens=estimate_tokens(system))


# --- the layers of a kind ----------------------------------------------------------------------


def _built(scene: Scene, settings: LayersSettings) -> list[PromptLayer]:
    layers: Sequence[Layer] = LAYERS
    if scene.kind is PromptKind.HEARTBEAT:
        layers = HEARTBEAT
    elif scene.kind is PromptKind.PROACTIVE:
        layers = PROACTIVE_FULL if scene.full_context else PROACTIVE
    if settings.instruction_position != "end" and request.instruction in layers:
        others = [layer for layer in layers if layer is not request.instruction]
        others.insert(others.index(abilities.relevant_skills) + 1, request.instruction)
        layers = others
    made = (layer for build in layers if (layer := build(scene)) is not None)
    return [guarded for layer in made if (guarded := _guarded(layer)).text]


def _guarded(layer: PromptLayer) -> PromptLayer:
    """Words that are not ours can neither end our blocks nor pose as another layer."""
    if layer.trust == "ours":
        return layer
    return replace(
        layer, pieces=tuple(replace(piece, text=harmless(piece.text)) for piece in layer.pieces)
    )


def _user(scene: Scene) -> str:
    if scene.kind is PromptKind.HEARTBEAT:
        time = f"{scene.now:%A, %Y-%m-%d %H:%M} ({scene.zone})"
        template = scene.texts["heartbeat"]
        return fill(template, TIME=time, LIST=harmless_in(template, scene.task.strip())).strip()
    return scene.task.strip() if scene.kind is PromptKind.PROACTIVE else ""


# --- what stands in the history already --------------------------------------------------------


def _fresh(
    turn: Sequence[PromptLayer], contexts: Sequence[Context], asides: Sequence[str]
) -> tuple[list[PromptLayer], list[str]]:
    """The turn layers that have to be sent, and the names of those that need not."""
    told = ToldLayers(contexts, asides)
    fresh, spared = [], []
    for layer in turn:
        left = _unsaid(layer, told)
        if left is None:
            spared.append(layer.name)
        else:
            fresh.append(left)
    said = {layer.heading for layer in turn}
    return [
        *[
            PromptLayer.of(name, GONE, source="", heading=heading, stability=Stability.TURN)
            for heading, name in _STATES.items()
            if heading in told.standing
            and heading not in said
            and told.standing[heading] != f"{heading}\n{GONE}"
        ],
        *fresh,
    ], spared


def _unsaid(layer: PromptLayer, told: ToldLayers) -> PromptLayer | None:
    """Return what of a layer has to be sent; None when all of it stands."""
    if layer.repeat is Repeat.MOMENT:
        return layer
    if layer.repeat is Repeat.STATE:
        return None if told.newest(layer.heading) == layer.render() else layer
    pieces: list[Piece] = []
    found_new = False
    for piece in layer.pieces:
        if not told.holds(layer, piece):
            pieces.append(piece)
            found_new = True
        elif piece.brief:
            pieces.append(replace(piece, text=piece.brief))
    return replace(layer, pieces=tuple(pieces)) if found_new else None


def read_back(contexts: Sequence[str], asides: Sequence[str] = ()) -> Mapping[str, str]:
    """Return what each turn layer with a heading said last, by heading, from the blocks as sent.

    `asides` are the texts of layers without a heading, which may follow any other. One that is not
    known any more stays with the layer before it: that one is then told once more, no worse.
    """
    standing: dict[str, str] = {}
    for context in contexts:
        heading = ""
        for line in context.split("\n")[1:-1]:
            if line in TURN_HEADINGS:
                heading = standing[line] = line
            elif heading:
                standing[heading] += f"\n{line}"
    return {heading: _without(text, asides) for heading, text in standing.items()}


@once
def _read_back(context: Context) -> Mapping[str, str]:
    return read_back([context.text])


def _without(text: str, asides: Sequence[str]) -> str:
    text = text.rstrip("\n")
    for aside in reversed(asides):
        if aside:
            text = text.removesuffix(f"\n\n{aside}")
    return text


class ToldLayers:
    """What the blocks of the history say, by the heading of each layer."""

    def __init__(self, contexts: Sequence[Context], asides: Sequence[str] = ()) -> None:
        self._all: dict[str, list[str]] = {}
        ends = tuple(f"\n\n{aside}" for aside in asides if aside)
        for context in contexts:
            for heading, text in _read_back(context).items():
                said = _without(text, asides) if text.endswith(ends) else text
                self._all.setdefault(heading, []).append(said)
        self.standing = {heading: texts[-1] for heading, texts in self._all.items()}

    def newest(self, heading: str) -> str:
        """Return what a layer said last, with its heading; empty if nothing."""
        return self.standing.get(heading, "")

    def holds(self, layer: PromptLayer, piece: Piece) -> bool:
        """Return whether a piece stands in what this very layer said: one with a heading of its own
        as the newest under it, any other as lines anywhere."""
        if not layer.heading:
            return self.newest(piece.heading) == piece.render()
        said = self._all.get(layer.heading, ())
        if not piece.heading:
            return any(f"\n{piece.render()}\n" in f"{text}\n" for text in said)
        for text in reversed(said):
            _, found, after = f"{text}\n".rpartition(f"\n{piece.heading}\n")
            if found and not (piece.brief and after.startswith(f"{piece.brief}\n")):
                return after.startswith(f"{piece.text.strip()}\n")
        return False


def _block(layers: Sequence[PromptLayer]) -> str:
    return f"{CONTEXT_OPEN}\n{_join(layers)}\n{CONTEXT_CLOSE}" if layers else ""


def _join(layers: Iterable[PromptLayer]) -> str:
    return "\n\n".join(layer.render() for layer in layers)
