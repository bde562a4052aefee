"""Which groups of tools a message brings in by its words: `prompts/tool_routes.toml`.

Called where tools are selected. A copy of the file in the workspace wins.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import structlog
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from memory.records.errors import SettingsWrong
from memory.records.words import fold, phrases_of, squeezed

FILE_NAME = "tool_routes.toml"
TEXT_CHARS_MAX = 4_000
"""Of a message that is looked at; its wish stands in the beginning, or it is short."""

ReadText = Callable[[Path], str | None]
"""The text of a small file, None where there is none; such as
`agent.prompt.templates.TextFiles.read`."""

_log = structlog.get_logger(__name__)


class RoutesWrong(SettingsWrong):
    """The file of routes cannot be used; names the file and what is wrong with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Routed:
    """The groups that a message brings in, in the order of the file, and the words that did it;
    no words where no route matched."""

    groups: tuple[str, ...]
    words: tuple[str, ...] = ()


class Routes:
    """The routes of one file, ready to be looked up."""

    def __init__(self, text: str, *, source: str) -> None:
        """Takes the TOML text. Raises RoutesWrong; `source` is what the file is called."""
        written = _read(text, source)
        self._otherwise = tuple(dict.fromkeys(written.otherwise))
        self._words = [word for route in written.route for word in route.words]
        self._groups = [route.groups for route in written.route for _ in route.words]
        self._phrases = phrases_of(tuple(self._words), endings=True)

    @property
    def groups(self) -> frozenset[str]:
        """All groups that the file names, to be compared with those that there are."""
        return frozenset(self._otherwise).union(*self._groups)

    def match(self, text: str) -> Routed:
        """What this message brings in."""
        found = self._phrases.first(squeezed(fold(text[:TEXT_CHARS_MAX])))
        if not found:
            return Routed(groups=self._otherwise)
        hits = sorted(found)
        groups = dict.fromkeys(group for hit in hits for group in self._groups[hit])
        words = dict.fromkeys(self._words[hit] for hit in hits)
        return Routed(groups=tuple(groups), words=tuple(words))


class RouteFile:
    """The routes as the files say now: read when first needed, and again when a file changes."""

    def __init__(self, shipped: Path, workspace: Path, *, read: ReadText) -> None:
        """`shipped` is the folder of the prompts that come with the program."""
        self._shipped = shipped / FILE_NAME
        self._own = workspace / "prompts" / FILE_NAME
        self._text = read
        self._read: dict[Path, tuple[str, Routes]] = {}
        self._told = ""

    def check(self) -> None:
        """Refuses to start with a file that cannot be used. Raises RoutesWrong."""
        path = self._own if self._text(self._own) is not None else self._shipped
        self._at(path)

    def routes(self) -> Routes:
        """Those of the workspace; where that file is broken or absent, the shipped ones.

        A file that breaks while the bot runs is told once. Raises RoutesWrong when the shipped
        file is unusable too.
        """
        if self._text(self._own) is None:
            return self._at(self._shipped)
        try:
            return self._at(self._own)
        except RoutesWrong as error:
            if self._told != str(error):
                self._told = str(error)
                _log.error("tool_routes_broken", file=f"prompts/{FILE_NAME}", reason=str(error))
            return self._at(self._shipped)

    def _at(self, path: Path) -> Routes:
        text = self._text(path)
        if text is None:
            raise RoutesWrong(f"{path}: this file is missing; restore it from the release")
        known = self._read.get(path)
        if known is None or known[0] != text:
            known = self._read[path] = (text, Routes(text, source=str(path)))
        return known[1]


_Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=128)]


class _Written(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class _WrittenRoute(_Written):
    words: Annotated[list[_Name], Field(min_length=1)]
    groups: Annotated[list[_Name], Field(min_length=1)]


class _WrittenRoutes(_Written):
    otherwise: list[_Name] = []
    route: list[_WrittenRoute] = []


def _read(text: str, source: str) -> _WrittenRoutes:
    try:
        data = tomllib.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise RoutesWrong(f"{source}: this is no valid TOML: {error}") from error
    try:
        written = _WrittenRoutes.model_validate(data)
    except ValidationError as error:
        raise RoutesWrong("\n".join(_problems(error, source))) from error
    silent = [word for route in written.route for word in route.words if not squeezed(fold(word))]
    if silent:
        raise RoutesWrong(f"{source}: these words hold no character that is seen: {silent}")
    return written


def _problems(error: ValidationError, source: str) -> Sequence[str]:
    """A line for each, with its place: `route 2, words 1`."""
    lines = []
    for problem in error.errors(include_url=False, include_context=False, include_input=False):
        place = " ".join(
            f"{part + 1}," if isinstance(part, int) else str(part) for part in problem["loc"]
        )
        message = str(problem["msg"])
        if problem["type"] == "extra_forbidden":
            message = "this key is not known; there are otherwise, route, words and groups"
        lines.append(f"{source}: {place.rstrip(',')}: {message}")
    return lines
