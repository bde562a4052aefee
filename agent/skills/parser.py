"""The front matter of a SKILL.md as texts with lines: as YAML, and where that fails line by line.

Nothing is turned into numbers, dates or booleans here: `name: 123` is text. Whatever a file
holds, nothing but Unreadable is raised. Called by `agent.skills.reader`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from textwrap import dedent
from typing import Any

from memory.records.errors import Permanent

FILE_BYTES_MAX = 1_000_000
FRONT_CHARS_MAX = 100_000
NODES_MAX = 5_000
DEPTH_MAX = 32
LATE_LINES_MAX = 50
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
_KEY_TEXT = r"""(?P<quote>["']?)(?P<key>[A-Za-z_][\w.-]*)(?P=quote)[ \t]*:(?:[ \t]+|$)"""
_KEY = re.compile(_KEY_TEXT)
_HEAD = re.compile(rf"(?P<margin> *)(?P<items>(?:- +)*)(?:{_KEY_TEXT})?")
_INDENT = re.compile(r"^[ \t]+")
_BLOCK_MARK = re.compile(r"[|>][+-]?\d?[+-]?[ \t]*(?:#.*)?")
_YAML_TAG = "tag:yaml.org,2002:"


class Unreadable(Permanent):
    """A part of a SKILL.md that cannot be read. `line` counts from 1; 0 means the whole file."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


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
    """Keys with values, in the order of the file; none stands there twice in one place."""

    entries: tuple[tuple[Scalar, Node], ...] = ()
    line: int = 0

    def find(self, path: str) -> Node | None:
        """Return the value of `trigger.patterns`: under that key as a whole, or one below the
        other. Upper and lower case, hyphens and underscores do not matter in keys.
        """
        wanted = folded(path)
        for key, node in self.entries:
            if folded(key.text) == wanted:
                return node
        outer, dot, rest = path.partition(".")
        inner = self.find(outer) if dot else None
        return inner.find(rest) if isinstance(inner, KeyValues) else None

    def below(self, key: str) -> KeyValues:
        """Return what was written flat, as `hearthbot.keywords`, like `keywords` below
        `hearthbot`: the standard for skills knows `metadata` as one flat map."""
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
    """A SKILL.md in its two parts. Without front matter, `fields` is None; `trouble` is why it is
    no YAML, where it was read all the same."""

    fields: KeyValues | None
    body: str
    trouble: Unreadable | None = None


def folded(key: str) -> str:
    """`allowed-tools`, `allowed_tools` and `allowedTools` are one key."""
    return key.casefold().replace("-", "").replace("_", "")


def cleaned(text: str) -> str:
    """Remove characters that a reader cannot see: control, direction, tags, half characters."""
    return _UNSEEN.sub("", text)


def parts(data: bytes) -> SkillParts:
    """Return front matter and body. Raise Unreadable: encoding, size, never closed, not key and
    value."""
    lines = _decoded(data).split("\n")
    start = next((n for n, line in enumerate(lines) if line.strip()), 0)
    if not _FENCE.fullmatch(lines[start]):
        # Below a title or a comment it was meant as such: its limits must not be lost.
        for n, (line, after) in enumerate(pairwise(lines[:LATE_LINES_MAX]), 1):
            match = _KEY.match(after)
            if match and _FENCE.fullmatch(line) and folded(match["key"]) in _FIRST_KEYS:
                raise Unreadable("the front matter must begin in the first line", n)
        return SkillParts(fields=None, body="\n".join(lines).strip())
    end = next((n for n in range(start + 1, len(lines)) if _FENCE_END.fullmatch(lines[n])), None)
    if end is None:
        raise Unreadable("the front matter that begins here is never closed by ---", start + 1)
    front = lines[start + 1 : end]
    if sum(map(len, front)) > FRONT_CHARS_MAX:
        raise Unreadable(f"the front matter is longer than {FRONT_CHARS_MAX:,} characters")
    fields, trouble = _fields(front, start + 2)
    return SkillParts(fields=fields, body="\n".join(lines[end + 1 :]).strip(), trouble=trouble)


def structured(value: Scalar) -> Node:
    """Return what a text holds that was written as JSON or YAML in one value. Raise Unreadable."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(found := dict(pairs)) < len(pairs):
            raise ValueError("a key stands twice")
        return found

    text = value.text
    # JSON is YAML but for its tabs and its escapes in pairs (`\ud83c\udfac`), which go here. A key
    # that stands twice is left for YAML to show.
    with suppress(ValueError, RecursionError):
        text = json.dumps(json.loads(text, object_pairs_hook=once), ensure_ascii=False)
    return _built(text, value.line)


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
    """Return what YAML makes of a text, without turning it into values. Raise Unreadable."""
    # Here, not above: a start reads no skill yet, and does not wait for the library.
    import yaml  # type: ignore[import-untyped]

    loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        # Looked at before it is composed, which goes down as deep as the text does: what could run
        # away or do something is refused.
        depth = 0
        for count, event in enumerate(yaml.parse(text, Loader=loader)):
            kind, line = type(event).__name__, event.start_mark.line + first_line
            depth += kind.endswith("StartEvent") - kind.endswith("EndEvent")
            if count > 2 * NODES_MAX or depth > DEPTH_MAX:
                raise Unreadable("too much is nested here", line)
            if getattr(event, "anchor", None) is not None:
                raise Unreadable("references (&name, *name) are not read", line)
            if not (getattr(event, "tag", None) or _YAML_TAG).startswith(_YAML_TAG):
                raise Unreadable("tags (!name) are not read", line)
        root = yaml.compose(text, Loader=loader)
        return KeyValues(line=first_line) if root is None else _node(root, first_line)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = (mark.line if mark else 0) + first_line
        why = getattr(error, "problem", None) or "it cannot be parsed"
        raise Unreadable(f"this is not YAML: {why}", line) from error
    except (ValueError, OverflowError, RecursionError) as error:
        raise Unreadable("this is not YAML", first_line) from error


def _node(node: Any, first_line: int) -> Node:
    line = node.start_mark.line + first_line
    if node.id == "scalar":
        return Scalar(text=cleaned(node.value), line=line, is_plain=not node.style)
    if node.id == "sequence":
        return Items(tuple(_node(one, first_line) for one in node.value), line)
    seen: dict[str, int] = {}
    entries: list[tuple[Scalar, Node]] = []
    for written, value in node.value:
        key = _node(written, first_line)
        if not isinstance(key, Scalar):
            raise Unreadable("a key must be a text", key.line)
        if (name := folded(key.text)) in seen:
            # Nobody knows which of the two was meant.
            where = f"first in line {seen[name]}"
            raise Unreadable(f"{key.text} is there twice ({where}): keep one", key.line)
        seen[name] = key.line
        entries.append((key, _node(value, first_line)))
    return KeyValues(entries=tuple(entries), line=line)


def _fields(lines: Sequence[str], first_line: int) -> tuple[KeyValues, Unreadable | None]:
    trouble: Unreadable | None = None
    try:
        root = _built("\n".join(lines), first_line)
    except Unreadable as error:
        if len(lines) > TOLERANT_LINES_MAX:
            raise
        trouble = error
        lines = [
            _INDENT.sub(lambda found: found[0].replace("\t", "  "), line).rstrip() for line in lines
        ]
        root = _built("\n".join(_quoted(lines, first_line)), first_line)
    if isinstance(root, Scalar) and root.is_null:
        return KeyValues(line=first_line), trouble
    if not isinstance(root, KeyValues):
        raise Unreadable("the front matter is not made of `key: value` lines", first_line)
    return root, trouble


def _quoted(lines: Sequence[str], first_line: int) -> Iterator[str]:
    """Yield the same lines, with each value in quotes that is not YAML by itself.

    `description: Two sides: a, b` is what people write. The number of lines stays as it is. Raise
    Unreadable.
    """
    at = 0
    while at < len(lines):
        head = _HEAD.match(lines[at])
        assert head is not None, "all of it may be absent"
        rest = lines[at][head.end() :]
        end = at + 1
        while end < len(lines) and _goes_on(lines[end], head, is_text=bool(rest)):
            end += 1
        below = next((one.lstrip() for one in lines[at + 1 : end] if one), "")
        if (not rest or rest[0] == "#") and (_KEY.match(below) or below.startswith("- ")):
            end = at + 1  # Keys or items of its own, which are looked at one by one.
        chunk = lines[at:end]
        if not (head["key"] or head["items"]) or _is_yaml(chunk, first_line + at):
            yield from chunk
        else:
            column = head.end("items")
            after = _HEAD.match(lines[end]) if end < len(lines) else None
            is_mapping = after is not None and after["key"] and after.end("margin") == column
            # An item that no further key follows is a text, whatever colons are in it.
            start = column if head["items"] and not is_mapping else head.end()
            name = head["key"] if start == head.end() and head["key"] else "-"
            text = _text_of(lines[at][start:], chunk[1:], name, first_line + at)
            yield f"{lines[at][:start].rstrip()} {json.dumps(text, ensure_ascii=False)}"
            yield from [""] * (len(chunk) - 1)
        at = end


def _goes_on(line: str, head: re.Match[str], *, is_text: bool) -> bool:
    """Return whether a line belongs to the value that begins behind a head: it stands further in,
    or is neither key nor item; below a key that has a text, items belong to it too."""
    one = _HEAD.match(line)
    assert one is not None, "all of it may be absent"
    column = len(head["margin"]) + (len(head["items"]) if head["key"] else 0)
    if not line or len(one["margin"]) > column or not (one["key"] or one["items"]):
        return True
    return bool(one["items"]) and is_text and not head["items"] and len(one["margin"]) == column


def _text_of(rest: str, more: Sequence[str], name: str, line: int) -> str:
    """Return a value that is not YAML as the text that its writer meant."""
    for n, one in enumerate(more, line + 1):
        key = _KEY.match(one.lstrip())
        if key and folded(key["key"]) in LIMITING:
            raise Unreadable(f"{key['key']} stands below {name}: begin it at the margin", n)
    if _BLOCK_MARK.fullmatch(rest):
        return dedent("\n".join(more)).strip()
    text = "\n".join(one.strip() for one in (rest, *more)).strip()
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    return text[1:-1] if is_quoted else text


def _is_yaml(lines: Sequence[str], line: int) -> bool:
    try:
        _built(dedent("\n".join(lines)), line)
    except Unreadable:
        return False
    return True
