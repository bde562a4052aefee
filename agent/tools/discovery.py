"""Reaching tools that were not offered: they can be counted, listed, looked for, read and called.

Each tool here sees only what role, agent and kind of run allow. `tool_call` is never run: the
toolbox turns it into the call that is meant, before anything is checked. At the end stands what
makes tools searchable, for `tool_search` and for whoever selects tools for a request.
"""

from __future__ import annotations

import json
import re
import threading
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import structlog
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)

from agent.guards.tool_call_text import TOOL_CALL, read_object
from agent.tools.arguments import NOT_JSON, ArgumentsWrong, ToolSignature, parse_arguments
from agent.tools.tool import Caller, Effect, ToolCard, tool
from memory.records.errors import Permanent, SettingsWrong
from memory.records.ports import Ranked, Ranker
from memory.records.text import clean
from memory.records.transcript import ToolCall
from memory.records.words import fold, phrases_of, squeezed

FOUND_MAX = 10
LISTED_MAX = 100
NEAREST_MAX = 3
LINE_CHARS_MAX = 200
_GROUP = "discovery"
_HOW = f"Call one by its name if it was offered to you, else through {TOOL_CALL}."


class NotFound(Permanent):
    """There is no such tool or group for this caller; names the nearest."""


def resolved(call: ToolCall) -> ToolCall:
    """The call that is meant: that within a `tool_call`, any other as it is.

    Raises ArgumentsWrong, in words for the model.
    """
    if call.name != TOOL_CALL:
        return call
    wanted = parse_arguments(_CALL, call.arguments)
    name = wanted.name.strip()
    if name == TOOL_CALL:
        raise ArgumentsWrong(f"{TOOL_CALL} cannot call itself. Name the tool that is meant.")
    if not name:
        raise ArgumentsWrong(f"{TOOL_CALL} names no tool. Give the exact name of one.")
    arguments = json.dumps(wanted.arguments, ensure_ascii=False)
    return replace(call, name=name, arguments=arguments)


def _from_text(value: Any) -> Any:
    """The object; models also send it as JSON text, or null for none."""
    if value is None:
        return {}
    if not isinstance(value, str):
        return value
    if (read := read_object(value)) is None:
        raise ArgumentsWrong(NOT_JSON)
    return read


ToolName = Annotated[str, Field(description="The exact name of the tool.")]


class DiscoveryTools:
    """Counts, lists, finds, shows and calls the tools that a run may have at all, offered or not.
    `cards` gives them in the order of the toolbox, `everything` all that there are."""

    def __init__(
        self,
        cards: Callable[[Caller], Sequence[ToolCard]],
        everything: Callable[[], Sequence[ToolCard]],
        ranking: ToolRanking,
    ) -> None:
        self._cards = cards
        self._everything = everything
        self._ranking = ranking

    @tool(_GROUP, Effect.NONE, status="Looking through the tools")
    async def tool_categories(self, caller: Caller) -> str:
        """Lists the groups of tools that exist here, with how many each holds. More tools exist
        than are offered to you at a time."""
        cards = self._cards(caller)
        counts = Counter(_group(card) for card in cards)
        about = {_group(card): card.server_about for card in cards if card.server_about}
        lines = [
            f"{group} ({count}){_after(': ', _line(about.get(group, '')))}"
            for group, count in sorted(counts.items())
        ]
        return "\n".join(lines) or "There are no tools here."

    @tool(_GROUP, Effect.NONE, status="Looking through the tools")
    async def tool_list(
        self,
        caller: Caller,
        group: Annotated[str, Field(description="A group, as tool_categories names it.")],
    ) -> str:
        """Lists the tools of one group, a line each."""
        cards = self._cards(caller)
        wanted = group.strip().casefold()
        found = [card for card in cards if _group(card).casefold() == wanted]
        if not found:
            groups = sorted({_group(card) for card in cards})
            raise NotFound(
                f"There is no group {group[:64]!r} here. There are: {', '.join(groups)}."
            )
        lines = [_summary(card) for card in found[:LISTED_MAX]]
        if len(found) > LISTED_MAX:
            lines.append(f"… and {len(found) - LISTED_MAX} more: narrow it down by tool_search.")
        return "\n".join([*lines, _HOW])

    @tool(_GROUP, Effect.NONE, status="Looking for a tool")
    async def tool_search(
        self,
        caller: Caller,
        query: Annotated[str, Field(description="What is to be done, in a few plain words.")],
    ) -> str:
        """Finds tools by what is to be done. Use it before you say that something cannot be done:
        more tools exist than are offered to you."""
        cards = [card for card in self._cards(caller) if card.group != _GROUP]
        by_name = {card.name: card for card in cards}
        ranked = self._ranking.rank(query, cards, of=self._everything())
        found = [by_name[one.id] for one in ranked if one.id in by_name][:FOUND_MAX]
        if not found:
            return "No tool fits these words. tool_categories shows which groups there are."
        lines = [f"{_summary(card)} [{_group(card)}]" for card in found]
        return "\n".join([*lines, _HOW])

    @tool(_GROUP, Effect.NONE, status="Reading about a tool")
    async def tool_describe(self, caller: Caller, name: ToolName) -> str:
        """Shows what a tool does, and the schema of its arguments."""
        by_name = {card.name: card for card in self._cards(caller)}
        wanted = name.strip()
        card = by_name.get(wanted)
        if card is None:
            near = get_close_matches(wanted.lower(), by_name, n=NEAREST_MAX, cutoff=0.5)
            advice = f"Nearest: {', '.join(near)}." if near else "Look for it by tool_search."
            raise NotFound(f"There is no tool {wanted[:64]!r} here. {advice}")
        schema = json.dumps(card.spec().parameters, ensure_ascii=False)
        head = f"{card.name} [{_group(card)}]\n{clean(card.description)}"
        return f"{head}\nArguments: {schema}\n{_HOW}"

    # It stands for any tool that exists: `resolved` puts the tool itself in its place.
    @tool(_GROUP, Effect.NONE, status="Calling a tool")
    async def tool_call(
        self,
        caller: Caller,
        name: ToolName,
        arguments: Annotated[
            dict[str, Any],
            BeforeValidator(_from_text),
            Field(default_factory=dict, description="Its arguments, as tool_describe shows them."),
        ],
    ) -> str:
        """Calls a tool that exists but was not offered to you, by its exact name. See tool_describe
        first for what it takes."""
        raise Permanent(f"{name[:64]} cannot be called in this way here.")


_CALL = ToolSignature(DiscoveryTools.tool_call)


def _group(card: ToolCard) -> str:
    """Tools of a server stand together, under its name."""
    return card.server if card.server and card.group == "mcp" else card.group


def _summary(card: ToolCard) -> str:
    return f"{card.name}{_after(': ', _line(card.description))}"


def _line(text: str) -> str:
    """The first sentence of a text, on one line."""
    flat = " ".join(clean(text).split())
    sentence = flat.partition(". ")[0]
    return sentence if len(sentence) <= LINE_CHARS_MAX else sentence[: LINE_CHARS_MAX - 1] + "…"


def _after(mark: str, text: str) -> str:
    return f"{mark}{text}" if text else ""


# --- tools as text ------------------------------------------------------------------------------

DESCRIPTION_CHARS_MAX = 2_000
PARAMETERS_MAX = 60
"""Of one tool, nested ones included; more would drown what the tool is for."""
PARAMETER_CHARS_MAX = 200
_DEPTH_MAX = 6
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_JOINTS = re.compile(r"[_\-./:]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolText:
    """What is known of a tool in words. `title` is its name as words, and begins the text too."""

    name: str
    title: str
    text: str


MakeRanker = Callable[[Sequence[ToolText]], Ranker]
"""Indexes tools; ids are their names. Blocks for milliseconds, and for less than a second where
embeddings are loaded for it. Raises nothing."""


def tool_text(card: ToolCard) -> ToolText:
    """The words of a tool: name, description, parameters with what is said of them, server."""
    own_name = card.name.removeprefix(f"{card.server}__") if card.server else card.name
    title = split_name(own_name)
    parameters = islice(_properties(card.arguments.schema(), depth=0), PARAMETERS_MAX)
    parts = (
        title,
        card.description[:DESCRIPTION_CHARS_MAX],
        *parameters,
        split_name(card.server),
        card.server_about[:DESCRIPTION_CHARS_MAX],
    )
    text = ". ".join(part for part in parts if part)
    return ToolText(name=card.name, title=title, text=clean(text))


def split_name(name: str) -> str:
    """`readFile`, `read_file` and `read-file` as words."""
    return _JOINTS.sub(" ", _CAMEL.sub(" ", name)).strip()


class ToolRanking:
    """Ranks tools for a text. Safe to call from several threads at once."""

    def __init__(self, make: MakeRanker) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._cards: tuple[ToolCard, ...] = ()
        self._texts: tuple[ToolText, ...] = ()
        self._ranker: Ranker | None = None

    def of(self, cards: Sequence[ToolCard]) -> Ranker:
        """The ranker of these tools: that of the last call, unless their words have changed."""
        with self._lock:
            if self._ranker is None or not (
                len(cards) == len(self._cards)
                and all(card is other for card, other in zip(cards, self._cards, strict=True))
            ):
                texts = tuple(tool_text(card) for card in cards)
                if self._ranker is None or texts != self._texts:
                    self._ranker = self._make(texts)
                self._cards, self._texts = tuple(cards), texts
            return self._ranker

    def rank(
        self, text: str, among: Sequence[ToolCard], *, of: Sequence[ToolCard]
    ) -> Sequence[Ranked]:
        """`among` by how well they fit a text, best first; `of` are all tools, indexed at once."""
        names = {card.name for card in among}
        return [one for one in self.of(of).rank(text, k=len(of)) if one.id in names]


def _properties(schema: Any, *, depth: int) -> Iterator[str]:
    """Names and descriptions of parameters, nested ones after those that hold them."""
    if not isinstance(schema, Mapping) or depth > _DEPTH_MAX:
        return
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        for name, about in properties.items():
            described = about.get("description") if isinstance(about, Mapping) else None
            yield split_name(str(name))
            if isinstance(described, str) and described:
                yield described[:PARAMETER_CHARS_MAX]
            yield from _properties(about, depth=depth + 1)
    yield from _properties(schema.get("items"), depth=depth + 1)


# --- routes -------------------------------------------------------------------------------------
#
# Which groups of tools a message brings in by its words: `prompts/tool_routes.toml`.
#
# Called where tools are selected. A copy of the file in the workspace wins.

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
        """Return what this message brings in."""
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
