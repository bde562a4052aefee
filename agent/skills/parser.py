"""The front matter of a SKILL.md as texts with lines: as YAML, and where that fails line by line.

Nothing is turned into numbers, dates or booleans here: `name: 123` is text. Whatever a file
holds, nothing but Unreadable is raised. Called by `agent.skills.reading`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from agent.skills.skill import Severity
from memory.records.errors import Permanent

FILE_BYTES_MAX = 1_000_000
FRONT_CHARS_MAX = 100_000
NODES_MAX = 5_000
DEPTH_MAX = 32
LATE_LINES_MAX = 50
TOLERANT_DEPTH_MAX = 6
TOLERANT_LINES_MAX = 1_000

LIMITING = frozenset({"allowedtools", "requiredtools", "notools", "maxsteps", "metadata"})
"""Keys that hold limits, as `folded` writes them: lost ones would widen what a skill may do."""

_FIRST_KEYS = LIMITING | {"name", "description"}

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_FENCE = re.compile(r"---+[ \t]*")
_FENCE_END = re.compile(r"(?:---+|\.\.\.)[ \t]*")
_KEY = re.compile(r"""(?P<quote>["']?)(?P<key>[A-Za-z_][\w.-]*)(?P=quote)[ \t]*:(?:[ \t]+|$)""")
_ITEM = re.compile(r"-(?:[ \t]+|$)")
_BLOCK_MARK = re.compile(r"[|>][+-]?\d?[+-]?[ \t]*(?:#.*)?")
_YAML_TAG = "tag:yaml.org,2002:"


class Unreadable(Permanent):
    """A part of a SKILL.md that cannot be read. `line` counts from 1; 0 means the whole file."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True, slots=True, kw_only=True)
class Flaw:
    """Something wrong at a line of the file."""

    text: str
    line: int = 0
    severity: Severity = Severity.ERROR


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalar:
    """A text as written. `is_plain`: without quotes, so that it may stand for null or a number."""

    text: str
    line: int = 0
    is_plain: bool = False

    @property
    def is_null(self) -> bool:
        return self.is_plain and self.text in {"", "~", "null", "Null", "NULL"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """A list."""

    values: tuple[Node, ...]
    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """Keys with values, in the order of the file; the first of two equal keys counts."""

    entries: tuple[tuple[Scalar, Node], ...] = ()
    line: int = 0

    def find(self, path: str) -> Node | None:
        """The value of `trigger.patterns`: under that key as a whole, or one below the other.

        Upper and lower case, hyphens and underscores do not matter in keys.
        """
        wanted = folded(path)
        for key, node in self.entries:
            if folded(key.text) == wanted:
                return node
        outer, dot, rest = path.partition(".")
        inner = self.find(outer) if dot else None
        return inner.find(rest) if isinstance(inner, Fields) else None

    def below(self, key: str) -> Fields:
        """What was written flat, as `hearthbot.keywords`, like `keywords` below `hearthbot`."""
        start = folded(key) + "."
        return Fields(
            entries=tuple(
                (Scalar(text=name.text.partition(".")[2], line=name.line), value)
                for name, value in self.entries
                if folded(name.text).startswith(start)
            ),
            line=self.line,
        )


Node = Scalar | Items | Fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """A SKILL.md in its two parts. Without front matter, `fields` is None."""

    fields: Fields | None
    body: str
    flaws: tuple[Flaw, ...] = ()


def folded(key: str) -> str:
    """`allowed-tools`, `allowed_tools` and `allowedTools` are one key."""
    return key.casefold().replace("-", "").replace("_", "")


def cleaned(text: str) -> str:
    """Without characters that a reader cannot see: control, direction, tags, half characters."""
    return _UNSEEN.sub("", text)


def parts(data: bytes) -> Parts:
    """Front matter and body. Raises Unreadable: encoding, size, never closed, not key and value."""
    lines = _decoded(data).split("\n")
    start = next((n for n, line in enumerate(lines) if line.strip()), 0)
    if not _FENCE.fullmatch(lines[start]):
        _check_no_late_front_matter(lines)
        return Parts(fields=None, body="\n".join(lines).strip())
    end = next((n for n in range(start + 1, len(lines)) if _FENCE_END.fullmatch(lines[n])), None)
    if end is None:
        raise Unreadable("the front matter that begins here is never closed by ---", start + 1)
    front = lines[start + 1 : end]
    if sum(map(len, front)) > FRONT_CHARS_MAX:
        raise Unreadable(f"the front matter is longer than {FRONT_CHARS_MAX:,} characters")
    fields, flaws = _fields(front, start + 2)
    return Parts(fields=fields, body="\n".join(lines[end + 1 :]).strip(), flaws=flaws)


def _check_no_late_front_matter(lines: Sequence[str]) -> None:
    """Front matter below a title or a comment was meant as such: its limits must not be lost."""
    for n, (line, after) in enumerate(pairwise(lines[:LATE_LINES_MAX]), 1):
        match = _KEY.match(after)
        if match and _FENCE.fullmatch(line) and folded(match["key"]) in _FIRST_KEYS:
            raise Unreadable("the front matter must begin in the first line", n)


def structured(value: Scalar) -> Node:
    """What a text holds that was written as JSON or YAML in one value. Raises Unreadable."""
    try:
        node = _node(json.loads(value.text, **_json_hooks(value.line)), value.line)
    except (ValueError, RecursionError):
        return _built(value.text, value.line).root
    _check_size(node, value.line)
    return node


def duplicates(node: Node) -> Iterator[Flaw]:
    """A flaw for each key that stands twice in one place: nobody knows which was meant."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Fields):
            seen: dict[str, int] = {}
            for key, value in node.entries:
                name = folded(key.text)
                if name in seen:
                    where = f"first in line {seen[name]}"
                    yield Flaw(text=f"{key.text} is there twice ({where}): keep one", line=key.line)
                seen.setdefault(name, key.line)
                waiting.append(value)
        elif isinstance(node, Items):
            waiting.extend(node.values)


# --- from bytes to lines -----------------------------------------------------------------------


def _decoded(data: bytes) -> str:
    if len(data) > FILE_BYTES_MAX:
        raise Unreadable(f"the file is larger than {FILE_BYTES_MAX:,} bytes")
    encoding = _encoding(data)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1 if encoding == "utf-8-sig" else 0
        raise Unreadable("encoding: this is not UTF-8; save the file as UTF-8", line) from error
    return cleaned(text.replace("\r\n", "\n").replace("\r", "\n"))


def _encoding(data: bytes) -> str:
    if data.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        return "utf-32"
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    if b"\0" in data:
        raise Unreadable("encoding: the file holds zero bytes; save it as UTF-8")
    return "utf-8-sig"


# --- YAML --------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Open:
    """A list or mapping whose end has not come yet."""

    line: int
    is_list: bool
    values: list[Node] = field(default_factory=list)

    def closed(self) -> Node:
        if self.is_list:
            return Items(values=tuple(self.values), line=self.line)
        keys, values = self.values[::2], self.values[1::2]
        entries = tuple(
            (key, value) for key, value in zip(keys, values, strict=True) if isinstance(key, Scalar)
        )
        if len(entries) < len(keys):
            raise Unreadable("a key must be a text", self.line)
        return Fields(entries=entries, line=self.line)


@dataclass(slots=True)
class _Builder:
    """Makes nodes from YAML's events, so that neither depth nor references can run away."""

    first_line: int
    root: Node = field(default_factory=Fields)
    _open: list[_Open] = field(default_factory=list)
    _count: int = 0
    _is_begun: bool = False

    def take(self, event: Any) -> None:
        import yaml  # type: ignore[import-untyped]

        line = event.start_mark.line + self.first_line
        match event:
            case yaml.DocumentStartEvent():
                if self._is_begun:
                    raise Unreadable("a second document begins here", line)
                self._is_begun = True
            case yaml.AliasEvent():
                raise Unreadable("references (*name) are not read", line)
            case yaml.ScalarEvent():
                self._check(event, line)
                self._add(Scalar(text=cleaned(event.value), line=line, is_plain=event.implicit[0]))
            case yaml.SequenceStartEvent() | yaml.MappingStartEvent():
                self._check(event, line)
                is_list = isinstance(event, yaml.SequenceStartEvent)
                self._open.append(_Open(line, is_list))
            case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                self._add(self._open.pop().closed())

    def _check(self, event: Any, line: int) -> None:
        self._count += 1
        if self._count > NODES_MAX or len(self._open) >= DEPTH_MAX:
            raise Unreadable("too much is nested here", line)
        if event.anchor is not None:
            raise Unreadable("anchors (&name) are not read", line)
        if event.tag is not None and not event.tag.startswith(_YAML_TAG):
            raise Unreadable("tags (!name) are not read", line)

    def _add(self, node: Node) -> None:
        if self._open:
            self._open[-1].values.append(node)
        else:
            self.root = node


def _built(text: str, first_line: int) -> _Builder:
    # Here, not above: a start reads no skill yet, and does not wait for the library.
    import yaml

    builder = _Builder(first_line)
    loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        for event in yaml.parse(text, Loader=loader):
            builder.take(event)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = (mark.line if mark else 0) + first_line
        why = getattr(error, "problem", None) or "it cannot be parsed"
        raise Unreadable(f"this is not YAML: {why}", line) from error
    except (ValueError, OverflowError, RecursionError) as error:
        raise Unreadable("this is not YAML", first_line) from error
    return builder


def _fields(lines: Sequence[str], first_line: int) -> tuple[Fields, tuple[Flaw, ...]]:
    try:
        root = _built("\n".join(lines), first_line).root
    except Unreadable as error:
        if len(lines) > TOLERANT_LINES_MAX:
            raise
        hint = f"{error}; read as it stands. Put the value in quotes"
        flaw = Flaw(text=hint, line=error.line, severity=Severity.WARNING)
        return _line_by_line(lines, first_line, 0), (flaw,)
    if isinstance(root, Scalar) and root.is_null:
        return Fields(line=first_line), ()
    if not isinstance(root, Fields):
        raise Unreadable("the front matter is not made of `key: value` lines", first_line)
    return root, ()


# --- line by line ------------------------------------------------------------------------------


@dataclass(slots=True)
class _Chunk:
    """A key with all lines up to the next one at the same depth."""

    key: str
    line: int
    rest: str
    lines: list[str]


def _line_by_line(lines: Sequence[str], first_line: int, depth: int) -> Fields:
    """Each `key: value` on its own: YAML where it works, else the text as it stands."""
    if depth > TOLERANT_DEPTH_MAX:
        raise Unreadable("too much is nested here", first_line)
    chunks: list[_Chunk] = []
    for n, line in enumerate(_dedented(lines), first_line):
        if match := _KEY.match(line):
            chunks.append(_Chunk(match["key"], n, line[match.end() :].strip(), [line]))
        elif chunks:
            chunks[-1].lines.append(line)
        elif line.strip() and not line.lstrip().startswith("#"):
            raise Unreadable("this is not a `key: value` line", n)
    entries = tuple(
        (Scalar(text=chunk.key, line=chunk.line), _chunk_value(chunk, depth)) for chunk in chunks
    )
    return Fields(entries=entries, line=first_line)


def _chunk_value(chunk: _Chunk, depth: int) -> Node:
    try:
        root = _built("\n".join(chunk.lines), chunk.line).root
    except Unreadable:
        return _as_it_stands(chunk, depth)
    if isinstance(root, Fields) and len(root.entries) == 1:
        return root.entries[0][1]
    return _as_it_stands(chunk, depth)


def _as_it_stands(chunk: _Chunk, depth: int) -> Node:
    more, rest = chunk.lines[1:], chunk.rest
    first = next((line.lstrip() for line in more if line.strip()), "")
    if not rest or rest.startswith("#"):
        if _ITEM.match(first):
            return _items(more, chunk.line + 1, depth)
        if _KEY.match(first):
            return _line_by_line(more, chunk.line + 1, depth + 1)
    for n, line in enumerate(more, chunk.line + 1):
        match = _KEY.match(line.lstrip())
        if match and folded(match["key"]) in LIMITING:
            raise Unreadable(f"{match['key']} stands below {chunk.key}: begin it at the margin", n)
    if _BLOCK_MARK.fullmatch(rest):
        return Scalar(text="\n".join(_dedented(more)).strip(), line=chunk.line)
    text = "\n".join(line.strip() for line in (rest, *more)).strip()
    return Scalar(text=_unquoted(text), line=chunk.line)


def _items(lines: Sequence[str], first_line: int, depth: int) -> Items:
    """A list whose items stand in lines of their own; each is read like a value."""
    chunks: list[_Chunk] = []
    for n, line in enumerate(_dedented(lines), first_line):
        if match := _ITEM.match(line):
            inner = " " * match.end() + line[match.end() :]
            chunks.append(_Chunk("", n, line[match.end() :].strip(), [inner]))
        elif chunks:
            chunks[-1].lines.append(line)
        elif line.strip() and not line.lstrip().startswith("#"):
            raise Unreadable("this is not an item of the list", n)
    values = tuple(_item(chunk, depth) for chunk in chunks)
    return Items(values=values, line=first_line)


def _item(chunk: _Chunk, depth: int) -> Node:
    try:
        return _built("\n".join(chunk.lines), chunk.line).root
    except Unreadable:
        if _KEY.match(chunk.rest) and len(chunk.lines) > 1:
            return _line_by_line(chunk.lines, chunk.line, depth + 1)
        text = " ".join(line.strip() for line in chunk.lines).strip()
        return Scalar(text=_unquoted(text), line=chunk.line)


def _dedented(lines: Sequence[str]) -> list[str]:
    depths = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    margin = min(depths, default=0)
    return [line[margin:].rstrip() for line in lines]


def _unquoted(text: str) -> str:
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    return text[1:-1] if is_quoted else text


# --- JSON --------------------------------------------------------------------------------------


def _check_size(root: Node, line: int) -> None:
    """JSON held to the same bounds as YAML: those who use it go down by recursion."""
    count, waiting = 0, [(root, 0)]
    while waiting:
        node, depth = waiting.pop()
        count += 1
        if count > NODES_MAX or depth > DEPTH_MAX:
            raise Unreadable("too much is nested here", line)
        if isinstance(node, Fields):
            waiting.extend((value, depth + 1) for _, value in node.entries)
        elif isinstance(node, Items):
            waiting.extend((value, depth + 1) for value in node.values)


def _json_hooks(line: int) -> dict[str, Any]:
    def number(text: str) -> Scalar:
        return Scalar(text=text, line=line, is_plain=True)

    def fields(pairs: list[tuple[str, Any]]) -> Fields:
        entries = tuple(
            (Scalar(text=cleaned(key), line=line), _node(value, line)) for key, value in pairs
        )
        return Fields(entries=entries, line=line)

    return {
        "object_pairs_hook": fields,
        "parse_int": number,
        "parse_float": number,
        "parse_constant": number,
    }


def _node(value: Any, line: int) -> Node:
    """A value that JSON gave, in our terms; mappings and numbers are so already."""
    match value:
        case Scalar() | Items() | Fields():
            return value
        case list():
            return Items(values=tuple(_node(item, line) for item in value), line=line)
        case None:
            return Scalar(text="null", line=line, is_plain=True)
        case bool():
            return Scalar(text=str(value).lower(), line=line, is_plain=True)
        case _:
            return Scalar(text=cleaned(str(value)), line=line)
