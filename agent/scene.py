"""Everything that the layers of a prompt may look at, gathered before they run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from agent.messages import TurnInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """The moment, the place and the texts. `now` is aware and in the person's zone.

    `texts` maps template names (`system`, `acting`, ...) to their words, workspace copies first.
    `bootstrap` maps file names of the workspace to their content. `base` is the persona text that
    the base chain chose. `fixed_language` is empty when the reply follows the person's language.
    """

    now: datetime
    zone: str
    turn: TurnInput
    base: str
    base_source: str
    texts: Mapping[str, str]
    bootstrap: Mapping[str, str]
    bootstrap_chars_max: int = 20_000
    fixed_language: str = ""
    version: str = ""
    system: str = ""


def one_line(text: str, *, chars_max: int = 80) -> str:
    """An outside name or title, made harmless: one line, no markup that could pose as ours.

    A display name is whatever its bearer typed, so it must not be able to open or close our
    marked blocks (threat model T13, case SE-18).
    """
    flat = " ".join(text.replace("<", "‹").replace(">", "›").split())
    return flat if len(flat) <= chars_max else flat[: chars_max - 1] + "…"


def fill(template: str, **values: str) -> str:
    """Replaces `{{NAME}}` placeholders; text that a value brings is not looked at again."""
    pieces = template.split("{{")
    filled = [pieces[0]]
    for piece in pieces[1:]:
        name, closed, rest = piece.partition("}}")
        filled.append(values[name] + rest if closed and name in values else "{{" + piece)
    return "".join(filled)
