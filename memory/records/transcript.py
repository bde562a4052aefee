"""What was said and done in a conversation, in our own words, and the request made of it.

Entries are stored as JSON through `to_json` and read back by `entry_from_json`. A provider's format
is not here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

from memory.records.codec import from_json
from memory.records.messages import ConversationId, RunId

# --- memoised values ------------------------------------------------------------------------------
#
# Memoise per object: a result lives as long as the entry that it was found for.
#
# A long history comes back with each request. In the entries themselves results need no bound, and
# nobody has to drop them when words are forgotten.


class Keeps:
    """A frozen value with room for what was found out about it, which is no part of the value."""

    __slots__ = ("_found",)
    _found: dict[object, Any]


K = TypeVar("K", bound=Keeps)
T = TypeVar("T")


def once(find: Callable[[K], T]) -> Callable[[K], T]:
    """`find`, called once for each value. What it returns must not hold the value itself: that
    would keep both until the next search for garbage."""

    def known(value: K) -> T:
        try:
            answer: T = value._found[find]
        except AttributeError:
            object.__setattr__(value, "_found", {})
        except KeyError:
            pass
        else:
            return answer
        answer = value._found[find] = find(value)
        return answer

    return known


def changed_once(change: Callable[[K], K]) -> Callable[[K], K]:
    """As `once`, for what makes another value of its kind, and mostly gives back the value itself.

    So what is found out about the other one is kept as long as the value is.
    """

    @once
    def other(value: K) -> K | None:
        made = change(value)
        return None if made is value else made

    def changed(value: K) -> K:
        made = other(value)
        return value if made is None else made

    return changed


NOBODY = ("agent:", "task-")
"""How `Said.by` begins where no person spoke: the task of a subagent, the report of one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said(Keeps):
    """The person's words, clean. `quote` is what they replied to; in groups `sender` is the name
    that is shown, and `by` the person's id. With `forwarded` the words are somebody else's, which
    the person passed on."""

    text: str
    sender: str = ""
    quote: str = ""
    by: str = ""
    forwarded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Context(Keeps):
    """The block of turn layers, as it was sent after the words before it."""

    text: str


PICTURE_TOKENS_MIN, PICTURE_TOKENS_MAX = 85, 1_600
PIXELS_A_TOKEN = 750
"""What providers ask for a picture, within a factor of two of each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A picture that came with a message: a file of the workspace. Its size is in pixels, 0 where
    nobody knows it."""

    path: str
    media_type: str
    width: int = 0
    height: int = 0

    @property
    def tokens(self) -> int:
        """Estimated."""
        pixels = self.width * self.height
        if not pixels:
            return PICTURE_TOKENS_MAX
        return max(PICTURE_TOKENS_MIN, min(pixels // PIXELS_A_TOKEN, PICTURE_TOKENS_MAX))


@dataclass(frozen=True, slots=True, kw_only=True)
class Note(Keeps):
    """A fact about the conversation that nobody said, such as a later edit, or which files came.

    `untrusted`: the answer after it may rest on text from outside. `content` is such text, of files
    that came, and fenced where it is sent; `pictures` are shown to a model that sees.
    """

    text: str
    untrusted: bool = False
    content: str = ""
    pictures: tuple[Picture, ...] = ()

    @property
    def brings(self) -> bool:
        """Return whether it shows what stands in a file."""
        return bool(self.content or self.pictures)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A model's wish. `arguments` is the JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one model call; zeros when the provider did not say."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered(Keeps):
    """One answer of the model. `finish` is stop, tool_calls, length or filter. `tainted`: it was
    given when untrusted text had been read, so it may repeat that (`agent.policy.taint`)."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    finish: str = "stop"
    model: str = ""
    usage: Usage = field(default_factory=Usage)
    tainted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult(Keeps):
    """What came of one call. `untrusted`: the words are not ours, and are fenced where they are
    sent; `effect` is what the call changed ("" for nothing: also when it failed). `file` is the
    protected file that it changed; `lost` tells the person what it said, if most of it went."""

    call_id: str
    content: str
    ok: bool = True
    untrusted: bool = False
    effect: str = ""
    file: str = ""
    lost: str = ""


Entry = Said | Context | Note | Answered | ToolResult


class Unpaired(AssertionError):
    """A finished turn has a call without a result, or a result without a call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A finished turn. Every ToolCall in it has exactly one ToolResult: checked here, always."""

    run_id: RunId
    entries: tuple[Entry, ...]

    def __post_init__(self) -> None:
        check_pairs(self.entries)


def check_pairs(entries: Sequence[Entry]) -> None:
    """Raises Unpaired unless each call is answered once, right after its answer."""
    waiting: set[str] = set()
    for entry in entries:
        if isinstance(entry, ToolResult):
            if entry.call_id not in waiting:
                raise Unpaired(f"a result without a call: {entry.call_id}")
            waiting.remove(entry.call_id)
            continue
        if waiting:
            raise Unpaired(f"calls without a result: {sorted(waiting)}")
        if isinstance(entry, Answered):
            waiting = {call.id for call in entry.calls}
            if len(waiting) != len(entry.calls):
                raise Unpaired("two calls of one answer have the same id")
    if waiting:
        raise Unpaired(f"calls without a result: {sorted(waiting)}")


_KINDS: dict[str, type[Entry]] = {
    "said": Said,
    "context": Context,
    "note": Note,
    "answered": Answered,
    "result": ToolResult,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def kind_of(entry: Entry) -> str:
    """Return the name under which an entry is stored."""
    return _NAMES[type(entry)]


def to_json(entry: Entry) -> dict[str, Any]:
    """A JSON object that `entry_from_json` reads back equal."""
    data = {"kind": kind_of(entry), **_fields(entry)}
    match entry:
        case Answered():
            data["calls"] = [_fields(call) for call in entry.calls]
            data["usage"] = _fields(entry.usage)
        case Note():
            data["pictures"] = [_fields(picture) for picture in entry.pictures]
        case _:
            pass
    return data


def _fields(value: Entry | ToolCall | Usage | Picture) -> dict[str, Any]:
    """As `asdict`, which would copy each text of each entry of each turn deeply."""
    return {name: getattr(value, name) for name in value.__slots__}


def entry_from_json(data: dict[str, Any]) -> Entry:
    """The entry of `to_json`. Unknown keys of later versions are ignored.

    Raises ValueError when the kind is unknown, KeyError when a field is missing.
    """
    kind = _KINDS.get(data["kind"])
    if kind is None:
        raise ValueError(f"unknown entry kind: {data['kind']!r}")
    return from_json(kind, data)


# --- sessions -----------------------------------------------------------------------------------
#
# Conversations as whole things: what a person or the owner looks at, takes back, or erases.
#
# Kept by `memory.stores`, and used by commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """What of a conversation is in the archive alone: how many messages, from when to when (epoch
    milliseconds; 0 where there are none)."""

    messages: int
    first_ms: int = 0
    last_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A conversation. `lane` is where it is, `people` the names of those who spoke in it.

    `began_ms` and `last_ms` are of its first and last message; `tokens` of all of it, estimated;
    `summary` that of its last compaction.
    """

    id: ConversationId
    lane: str
    began_ms: int
    last_ms: int
    messages: int
    tokens: int
    people: tuple[str, ...] = ()
    closed_ms: int | None = None
    is_private: bool = False
    summary: str = ""


# --- request --------------------------------------------------------------------------------------
#
# What is sent to a model: layers of a prompt, tools, and the request itself.


class Stability(StrEnum):
    """`static` text stands in the system message; `turn` text follows the person's words."""

    STATIC = "static"
    TURN = "turn"


class Repeat(StrEnum):
    """What the history that is sent anyway spares a turn layer (SPEC §5, placement)."""

    STATE = "state"
    """How things stand: left out while its newest version stands there, told when it is gone."""
    MATERIAL = "material"
    """To be read once: a piece that stands anywhere in it is not sent again."""
    MOMENT = "moment"
    """Of this message alone: always sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a layer that comes or goes as a whole. `source` is an id for the trace (`fact:12`).

    `heading` is ours, whatever the text is. `brief` is said in place of the text where all of it
    stands in the history already; without it, the piece is left out then.
    """

    text: str
    source: str = ""
    heading: str = ""
    brief: str = ""

    def render(self) -> str:
        """Heading and text, or nothing."""
        text = self.text.strip()
        return f"{self.heading}\n{text}" if text and self.heading else text


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptLayer:
    """One named part of a prompt. Without text it vanishes together with its heading.

    `pieces` stand in order of worth: over budget the last ones go first, down to `pieces_min`;
    where `cuts` is set, the last one left is shortened instead of dropped. `closing` ends a layer
    whose heading opens a block. `trust` says whose words these are: "ours", "owner" (files of the
    workspace) or "outside".
    """

    name: str
    pieces: tuple[Piece, ...]
    stability: Stability
    heading: str = ""
    closing: str = ""
    between: str = "\n\n"
    trust: str = "ours"
    repeat: Repeat = Repeat.STATE
    pieces_min: int = 0
    cuts: bool = False

    @classmethod
    def of(cls, name: str, text: str, *, source: str, **more: Any) -> PromptLayer:
        """A layer of one piece."""
        return cls(name=name, pieces=(Piece(text=text, source=source),), **more)

    @property
    def text(self) -> str:
        """All pieces, without heading."""
        return self.between.join(text for piece in self.pieces if (text := piece.render()))

    @property
    def sources(self) -> tuple[str, ...]:
        """Where its words are from, each once."""
        return tuple(dict.fromkeys(piece.source for piece in self.pieces if piece.source))

    def render(self) -> str:
        """Heading, text and closing, or nothing."""
        text = self.text
        if not text:
            return ""
        return "\n".join(part for part in (self.heading, text, self.closing) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool as a model sees it; `parameters` is a JSON schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTraits:
    """What a model can take. `window` is in tokens; a `demo` model gets a tiny prompt."""

    window: int = 128_000
    tools: bool = True
    demo: bool = False
    effort: bool = False
    """Whether it has a setting for how long it thinks (reasoning effort)."""
    vision: bool = False
    """Whether it sees pictures."""

    def output_tokens(self, wanted: int) -> int:
        """Room for an answer: in a small window a quarter at most, so that a prompt fits too."""
        return min(wanted, self.window // 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One call of a model. `tools` empty means: answer in text. `pictures` are those of the
    entries by their path, as `data:` URLs; empty for one that is not there any more."""

    system: str
    entries: tuple[Entry, ...]
    tools: tuple[ToolSpec, ...] = ()
    temperature: float = 0.4
    max_output_tokens: int = 8_192
    extra: Mapping[str, Any] = field(default_factory=dict)
    pictures: Mapping[str, str] = field(default_factory=dict)
