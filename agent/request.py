"""What is sent to a model: layers of a prompt, tools, and the request itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from agent.transcript import Entry


class Stability(StrEnum):
    """`static` text stands in the system message; `turn` text follows the person's words."""

    STATIC = "static"
    TURN = "turn"


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptLayer:
    """One named piece of a prompt. An empty text vanishes together with its heading.

    `trust` says whose words these are: "ours", "owner" (workspace files) or "outside".
    """

    name: str
    text: str
    stability: Stability
    source: str
    heading: str = ""
    trust: str = "ours"
    tokens_max: int | None = None

    def render(self) -> str:
        """Heading and text, or nothing."""
        text = self.text.strip()
        if not text:
            return ""
        return f"{self.heading}\n{text}" if self.heading else text


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One call of a model. `tools` empty means: answer in text."""

    system: str
    entries: tuple[Entry, ...]
    tools: tuple[ToolSpec, ...] = ()
    temperature: float = 0.4
    max_output_tokens: int = 8_192
    extra: Mapping[str, Any] = field(default_factory=dict)
