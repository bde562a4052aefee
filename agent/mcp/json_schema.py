"""JSON schemas that somebody else wrote, made harmless.

Used to read arguments (`agent.mcp.tools`) and to show a schema to a model (`agent.mcp.schema`).
Whatever comes in, a finite schema without references comes out that means the same or allows more:
the server has the last word on its arguments anyway.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import unquote

NODES_MAX = 2_000
DEPTH_MAX = 16
SAME_REF_MAX = 3
"""How often a reference may stand within itself before it means anything at all."""

REF_HOPS_MAX = 20
PROPERTY_CHARS_MAX = 64
INTEGER_END = 2**64

Schema = dict[str, Any]

TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")


def inlined(schema: object) -> Schema:
    """The schema with each `$ref` replaced by what it points to, and nothing that is malformed.

    What is too deep, too much, dangling or of another document becomes `{}`, which allows
    anything. Patterns stay, for a model to read; to search by a stranger's can take for ever.
    """
    return _Inliner(schema).node(schema, depth=0, within=())


def resolved(root: object, ref: object) -> object:
    """Return what a reference such as `#/$defs/a~1b%20c` points to; None when there is no such
    thing."""
    if not isinstance(ref, str) or not ref.startswith("#"):
        return None
    pointer = unquote(ref[1:])
    if not pointer:
        return root
    if not pointer.startswith("/"):
        return None
    node = root
    for part in pointer[1:].split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, Mapping) and key in node:
            node = node[key]
        elif isinstance(node, list) and re.fullmatch(r"[0-9]{1,6}", key) and int(key) < len(node):
            node = node[int(key)]
        else:
            return None
    return node


def shown_properties(names: Iterable[str]) -> Mapping[str, str]:
    """Parameter names as providers take them, each with the original one."""
    shown: dict[str, str] = {}
    for name in names:
        key = name
        if re.fullmatch(rf"[A-Za-z0-9_.-]{{1,{PROPERTY_CHARS_MAX}}}", name) is None:
            digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
            plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", name)[: PROPERTY_CHARS_MAX - 9]
            key = f"{plain}_{digest}"
        shown[key] = name
    return shown


class _Inliner:
    """One pass over one document, with a bound on how much may come out."""

    def __init__(self, root: object) -> None:
        self._root = root
        self._left = NODES_MAX

    def node(self, node: object, *, depth: int, within: tuple[str, ...]) -> Schema:
        self._left -= 1
        if not isinstance(node, Mapping) or depth > DEPTH_MAX or self._left < 0:
            return {}  # `false`, which nothing satisfies, is a mistake in a parameter
        rest = node
        target: object = node
        for _ in range(REF_HOPS_MAX):
            if not (isinstance(target, Mapping) and "$ref" in target):
                break
            ref = target["$ref"]
            if not isinstance(ref, str) or within.count(ref) >= SAME_REF_MAX:
                target = None
                break
            within = (*within, ref)
            target = resolved(self._root, ref)
        if target is rest:
            return self._keywords(rest, depth, within)
        own = self._keywords({k: v for k, v in rest.items() if k != "$ref"}, depth, within)
        if not isinstance(target, Mapping) or "$ref" in target:
            return own
        # What a reference points to, together with what stands beside it.
        made = self._keywords(target, depth, within)
        notes: Schema = {key: own[key] for key in ("description", "title", "default") if key in own}
        limits = {key: value for key, value in own.items() if key not in notes}
        if limits.keys().isdisjoint(made):
            return {**made, **limits, **notes}
        return {"allOf": [made, limits], **notes}

    def _keywords(self, node: Mapping[Any, Any], depth: int, within: tuple[str, ...]) -> Schema:
        made: Schema = {}
        for key, is_fine in _PLAIN.items():
            if key in node and is_fine(node[key]):
                made[key] = node[key]
        named = node.get("type")
        types = [named] if isinstance(named, str) else named if isinstance(named, list) else []
        known = [one for one in dict.fromkeys(str(one) for one in types) if one in TYPES]
        if known and len(known) == len(types):  # beside a type that nobody knows, all may be meant
            if node.get("nullable") is True and "null" not in known:
                known.append("null")
            made["type"] = known[0] if len(known) == 1 else known
        made.update(self._of_object(node, depth, within))
        items, places = node.get("items"), node.get("prefixItems")
        if isinstance(items, list):  # as it was written before 2020
            items, places = node.get("additionalItems"), items
        if isinstance(places, list) and places:
            made["prefixItems"] = [self.node(one, depth=depth + 1, within=within) for one in places]
        if isinstance(items, Mapping):
            made["items"] = self.node(items, depth=depth + 1, within=within)
        for key in ("anyOf", "oneOf", "allOf"):
            if isinstance(choices := node.get(key), list) and choices:
                made[key] = [self.node(one, depth=depth + 1, within=within) for one in choices]
        return made

    def _of_object(self, node: Mapping[Any, Any], depth: int, within: tuple[str, ...]) -> Schema:
        made: Schema = {}
        if isinstance(found := node.get("properties"), Mapping):
            made["properties"] = {
                name: self.node(part, depth=depth + 1, within=within)
                for name, part in found.items()
                if isinstance(name, str)
            }
        if isinstance(required := node.get("required"), list):
            names = [name for name in required if isinstance(name, str)]
            made["required"] = list(dict.fromkeys(names))
        more = node.get("additionalProperties")
        if isinstance(more, Mapping):
            made["additionalProperties"] = self.node(more, depth=depth + 1, within=within)
        elif more is False and not node.get("patternProperties") and "$ref" not in node:
            made["additionalProperties"] = False
        return made


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_scalar(value: object) -> bool:
    return value is None or isinstance(value, str | bool) or _is_number(value)


def _is_number(value: object) -> bool:
    """Return whether every reader of JSON takes it as one: hundreds of digits, few do."""
    if isinstance(value, bool):
        return False
    if isinstance(value, int):
        return abs(value) < INTEGER_END
    return isinstance(value, float) and math.isfinite(value)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


_PLAIN: Mapping[str, Callable[[object], bool]] = {
    "title": _is_text,
    "description": _is_text,
    "format": _is_text,
    "pattern": _is_text,
    "default": _is_scalar,
    "const": _is_scalar,
    "enum": lambda value: isinstance(value, list) and value != [] and all(map(_is_scalar, value)),
    "minimum": _is_number,
    "maximum": _is_number,
    "exclusiveMinimum": _is_number,
    "exclusiveMaximum": _is_number,
    "minLength": _is_count,
    "maxLength": _is_count,
    "minItems": _is_count,
    "maxItems": _is_count,
}
