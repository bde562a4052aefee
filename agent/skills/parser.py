"""The front matter of a SKILL.md as texts with lines: as YAML, and where that fails line by line.

Nothing is turned into numbers, dates or booleans here: `name: 123` is text. Whatever a file
holds, nothing but Unreadable is raised. Called by `agent.skills.reader`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from textwrap import dedent
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
_ITEM = re.compile(r"(?P<key>-)(?:[ \t]+|$)")
_INDENT = re.compile(r"^[ \t]+")
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


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    values: tuple[Node, ...]
    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyValues:
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
        return inner.find(rest) if isinstance(inner, KeyValues) else None

    def below(self, key: str) -> KeyValues:
        """What was written flat, as `hearthbot.keywords`, like `keywords` below `hearthbot`."""
        start = folded(key) + "."
        return KeyValues(
            entries=tuple(
                (Scalar(text=name.text.partition(".")[2], line=name.line), value)
                for name, value in self.entries
                if folded(name.text).startswith(start)
            ),
            line=self.line,
        )


Node = Scalar | Items | KeyValues


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillParts:
    """A SKILL.md in its two parts. Without front matter, `fields` is None."""

    fields: KeyValues | None
    body: str
    flaws: tuple[Flaw, ...] = ()


def folded(key: str) -> str:
    """`allowed-tools`, `allowed_tools` and `allowedTools` are one key."""
    return key.casefold().replace("-", "").replace("_", "")


def cleaned(text: str) -> str:
    """Without characters that a reader cannot see: control, direction, tags, half characters."""
    return _UNSEEN.sub("", text)


def parts(data: bytes) -> SkillParts:
    """Front matter and body. Raises Unreadable: encoding, size, never closed, not key and value."""
    lines = _decoded(data).split("\n")
    start = next((n for n, line in enumerate(lines) if line.strip()), 0)
    if not _FENCE.fullmatch(lines[start]):
        _check_no_late_front_matter(lines)
        return SkillParts(fields=None, body="\n".join(lines).strip())
    end = next((n for n in range(start + 1, len(lines)) if _FENCE_END.fullmatch(lines[n])), None)
    if end is None:
        raise Unreadable("the front matter that begins here is never closed by ---", start + 1)
    front = lines[start + 1 : end]
    if sum(map(len, front)) > FRONT_CHARS_MAX:
        raise Unreadable(f"the front matter is longer than {FRONT_CHARS_MAX:,} characters")
    fields, flaws = _fields(front, start + 2)
    return SkillParts(fields=fields, body="\n".join(lines[end + 1 :]).strip(), flaws=flaws)


def _check_no_late_front_matter(lines: Sequence[str]) -> None:
    """Front matter below a title or a comment was meant as such: its limits must not be lost."""
    for n, (line, after) in enumerate(pairwise(lines[:LATE_LINES_MAX]), 1):
        match = _KEY.match(after)
        if match and _FENCE.fullmatch(line) and folded(match["key"]) in _FIRST_KEYS:
            raise Unreadable("the front matter must begin in the first line", n)


def structured(value: Scalar) -> Node:
    """What a text holds that was written as JSON or YAML in one value. Raises Unreadable."""
    return _built(_json_as_yaml(value.text), value.line)


def _json_as_yaml(text: str) -> str:
    """JSON is YAML but for its tabs and its escapes in pairs (`\\ud83c\\udfac`), which go here.
    A key that stands twice is left for YAML to show."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(found := dict(pairs)) < len(pairs):
            raise ValueError("a key stands twice")
        return found

    try:
        return json.dumps(json.loads(text, object_pairs_hook=once), ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def duplicates(node: Node) -> Iterator[Flaw]:
    """A flaw for each key that stands twice in one place: nobody knows which was meant."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if isinstance(node, KeyValues):
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
    encoding = "utf-8-sig"
    if data.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        encoding = "utf-32"
    elif data.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    elif b"\0" in data:
        raise Unreadable("encoding: the file holds zero bytes; save it as UTF-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1 if encoding == "utf-8-sig" else 0
        raise Unreadable("encoding: this is not UTF-8; save the file as UTF-8", line) from error
    return cleaned(text.replace("\r\n", "\n").replace("\r", "\n"))


# --- YAML --------------------------------------------------------------------------------------


def _built(text: str, first_line: int) -> Node:
    """What YAML makes of a text, without turning it into values. Raises Unreadable."""
    # Here, not above: a start reads no skill yet, and does not wait for the library.
    import yaml  # type: ignore[import-untyped]

    loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        return _of_events(yaml.parse(text, Loader=loader), first_line)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = (mark.line if mark else 0) + first_line
        why = getattr(error, "problem", None) or "it cannot be parsed"
        raise Unreadable(f"this is not YAML: {why}", line) from error
    except (ValueError, OverflowError, RecursionError) as error:
        raise Unreadable("this is not YAML", first_line) from error


def _of_events(events: Iterator[Any], first_line: int) -> Node:
    """Nodes from YAML's events, by a stack of our own: neither depth nor references run away."""
    root: list[Node] = []
    open_nodes: list[tuple[int, list[Node]]] = [(first_line, root)]
    documents = count = 0
    for event in events:
        kind, line = type(event).__name__, event.start_mark.line + first_line
        documents += kind == "DocumentStartEvent"
        if documents > 1:
            raise Unreadable("a second document begins here", line)
        if kind == "AliasEvent":
            raise Unreadable("references (*name) are not read", line)
        if kind in {"SequenceEndEvent", "MappingEndEvent"}:
            begun, values = open_nodes.pop()
            node = Items(tuple(values), begun) if kind[0] == "S" else _mapping(values, begun)
            open_nodes[-1][1].append(node)
        if kind not in {"ScalarEvent", "SequenceStartEvent", "MappingStartEvent"}:
            continue
        count += 1
        if count > NODES_MAX or len(open_nodes) > DEPTH_MAX:
            raise Unreadable("too much is nested here", line)
        if event.anchor is not None:
            raise Unreadable("anchors (&name) are not read", line)
        if event.tag is not None and not event.tag.startswith(_YAML_TAG):
            raise Unreadable("tags (!name) are not read", line)
        if kind == "ScalarEvent":
            scalar = Scalar(text=cleaned(event.value), line=line, is_plain=event.implicit[0])
            open_nodes[-1][1].append(scalar)
        else:
            open_nodes.append((line, []))
    return root[0] if root else KeyValues(line=first_line)


def _mapping(values: Sequence[Node], line: int) -> KeyValues:
    pairs = zip(values[::2], values[1::2], strict=True)
    entries = tuple((key, value) for key, value in pairs if isinstance(key, Scalar))
    if 2 * len(entries) < len(values):
        raise Unreadable("a key must be a text", line)
    return KeyValues(entries=entries, line=line)


def _fields(lines: Sequence[str], first_line: int) -> tuple[KeyValues, tuple[Flaw, ...]]:
    flaws: tuple[Flaw, ...] = ()
    try:
        root = _built("\n".join(lines), first_line)
    except Unreadable as error:
        if len(lines) > TOLERANT_LINES_MAX:
            raise
        hint = f"{error}; read as it stands. Put the value in quotes"
        flaws = (Flaw(text=hint, line=error.line, severity=Severity.WARNING),)
        lines = [
            _INDENT.sub(lambda found: found[0].replace("\t", "  "), line).rstrip() for line in lines
        ]
        root = _built("\n".join(_quoted(lines, first_line)), first_line)
    if isinstance(root, Scalar) and root.is_null:
        return KeyValues(line=first_line), flaws
    if not isinstance(root, KeyValues):
        raise Unreadable("the front matter is not made of `key: value` lines", first_line)
    return root, flaws


# --- what YAML cannot read ---------------------------------------------------------------------


def _quoted(lines: Sequence[str], first_line: int, depth: int = 0) -> Iterator[str]:
    """The same lines, with each value in quotes that is not YAML by itself.

    `description: Two sides: a, b` is what people write. What belongs to a key are all lines up to
    the next key at the same depth; the number of lines stays as it is. Raises Unreadable.
    """
    if depth > TOLERANT_DEPTH_MAX:
        raise Unreadable("too much is nested here", first_line)
    first = next((line.lstrip() for line in lines if line.strip()), "")
    margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    head = _ITEM if _ITEM.match(first) else _KEY
    starts = [n for n, line in enumerate(lines) if head.match(line[margin:])]
    yield from lines[: min(starts, default=len(lines))]
    for start, end in pairwise((*starts, len(lines))):
        yield from _chunk_quoted(lines[start:end], margin, head, first_line + start, depth)


def _chunk_quoted(
    lines: Sequence[str], margin: int, head: re.Pattern[str], line: int, depth: int
) -> Iterable[str]:
    """A key or an item of a list with all its lines."""
    if _is_yaml(lines, line):
        return lines
    found = head.match(lines[0], margin)
    assert found is not None, "a chunk begins with its head"
    rest, more = lines[0][found.end() :].strip(), lines[1:]
    below = next((one.lstrip() for one in more if one.strip()), "")
    if head is _KEY and (not rest or rest[0] == "#") and (_ITEM.match(below) or _KEY.match(below)):
        return (lines[0], *_quoted(more, line + 1, depth + 1))
    if head is _ITEM and more and _KEY.match(rest):
        inner = [" " * found.end() + rest, *more]
        first, *others = _quoted(inner, line, depth + 1)
        return (lines[0][: found.end()] + first[found.end() :], *others)
    for n, one in enumerate(more, line + 1):
        key = _KEY.match(one.lstrip())
        if key and folded(key["key"]) in LIMITING:
            raise Unreadable(f"{key['key']} stands below {found['key']}: begin it at the margin", n)
    if _BLOCK_MARK.fullmatch(rest):
        text = dedent("\n".join(more)).strip()
    else:
        text = "\n".join(one.strip() for one in (rest, *more)).strip()
        if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
            text = text[1:-1]
    return (
        lines[0][: found.end()].rstrip() + " " + json.dumps(text, ensure_ascii=False),
        *[""] * len(more),
    )


def _is_yaml(lines: Sequence[str], line: int) -> bool:
    try:
        root = _built(dedent("\n".join(lines)), line)
    except Unreadable:
        return False
    return len(root.entries if isinstance(root, KeyValues) else getattr(root, "values", ())) == 1
