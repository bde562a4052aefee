"""What is sent to a model: layers of a prompt, tools, and the request itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from memory.records.transcript import Entry


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
