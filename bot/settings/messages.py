"""How settings are spoken of: keys, variables, what is allowed, and what was probably meant.

Called by what reads the settings and by what writes the example.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Sequence
from typing import Literal, TypeVar, get_args, get_origin

from annotated_types import Ge, Gt, Le, MaxLen, MinLen
from pydantic import BeforeValidator
from pydantic.fields import FieldInfo

from bot.settings.schema.settings import (
    ENV_DELIMITER,
    ENV_PREFIX,
    KEYS,
    KEYS_BY_NAME,
    SECTIONS,
    Settings,
)
from bot.settings.schema.values import listed
from bot.settings.tree import (
    ANY_NAME,
    KeyPath,
    Loc,
    Node,
    below,
    is_map,
    is_secret,
    node_at,
    tables_by_name,
    tables_of,
)

Mark = TypeVar("Mark")

# --- places ------------------------------------------------------------------------------------


def dotted(path: Sequence[str | int]) -> str:
    """A key path as one would write it: `telegram.allow_from[1]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            name = part if re.fullmatch(r"[A-Za-z0-9_-]+", part) else json.dumps(part)
            text += f".{name}" if text else name
    return text


def key_part(loc: Loc) -> KeyPath:
    """The key of a place within its value: what stands before the first number."""
    numbers = (at for at, part in enumerate(loc) if isinstance(part, int))
    return tuple(str(part) for part in loc[: next(numbers, len(loc))])


def variable(loc: Loc) -> str:
    """The environment variable of a key, or of the key that a place is within."""
    parts = []
    node: Node | None = Settings
    for part in key_part(loc):
        # The names in a table of a key are the owner's, and stay as they are.
        kept = isinstance(node, FieldInfo)
        parts.append(part if kept else part.upper().replace("-", "_"))
        node = below(node, part) if node is not None else None
    return ENV_PREFIX + ENV_DELIMITER.join(parts)


def path_of(name: str) -> KeyPath | None:
    """The key that an environment variable sets, None where there is none."""
    parts = name.removeprefix(ENV_PREFIX).split(ENV_DELIMITER)
    node: Node | None = Settings
    path: KeyPath = ()
    for at, part in enumerate(parts):
        if isinstance(node, FieldInfo):
            # A table of the key: whatever is left is one name in it.
            entry = ENV_DELIMITER.join(parts[at:])
            return (*path, entry) if is_map(node) and entry else None
        if node is None or not part or part != part.upper():
            return None
        lower = part.lower()
        known = lower in node.model_fields
        path = (*path, lower if known else lower.replace("_", "-"))
        node = below(node, path[-1])
    return path if isinstance(node, FieldInfo) else None


# --- what is allowed ---------------------------------------------------------------------------


def allowed(node: Node) -> str:
    """Return what a key or an item takes, in words."""
    if not isinstance(node, FieldInfo):
        return "a table"
    kind = node.annotation
    if get_origin(kind) is Literal:
        return " | ".join(get_args(kind))
    if get_origin(kind) is tuple:
        if tables_of(node) is None:
            return "a list, not empty" if _mark(node, MinLen) else "a list"
        # One table may stand for a list of one.
        marks = [mark.func for mark in node.metadata if isinstance(mark, BeforeValidator)]
        return "a table or a list of tables" if listed in marks else "a list of tables"
    if is_map(node):
        return "a table of texts" if is_secret(node) else "a table"
    if kind is bool:
        return "true or false"
    if kind in {int, float}:
        return ("a whole number" if kind is int else "a number") + _bounds(node)
    shortest, longest = _mark(node, MinLen), _mark(node, MaxLen)
    if longest is None:
        return "text, not empty" if shortest is not None else "text"
    start = f"{shortest.min_length} to" if shortest is not None else "up to"
    return f"text, {start} {longest.max_length} characters"


def _bounds(field: FieldInfo) -> str:
    least, most, above = _mark(field, Ge), _mark(field, Le), _mark(field, Gt)
    if above is not None:
        return f" above {above.gt}"
    start = least.ge if least is not None else None
    return f" from {start} to {most.le}" if most is not None else f", at least {start}"


def _mark(field: FieldInfo, kind: type[Mark]) -> Mark | None:
    return next((mark for mark in field.metadata if isinstance(mark, kind)), None)


# --- what was probably meant -------------------------------------------------------------------


def known_hint(loc: Loc) -> str:
    """Return what an unknown key should perhaps be, or what there is in its place."""
    if loc[0] == "bindings":
        return "bindings belong under agents: write [[agents.bindings]]"
    if near := nearest(loc):
        return f"the nearest is {dotted(near)}"
    for end in range(len(loc) - 1, 0, -1):
        if names := _names_at(loc[:end]):
            return f"{_heading(loc[:end])} takes {', '.join(names)}"
    return f"there are the sections {', '.join(dotted(known) for known in SECTIONS)}"


def nearest(loc: Loc) -> Loc | None:
    """Return the known key with the most similar name: of the same table, else of any."""
    table, names = loc[:-1], _names_at(loc[:-1])
    if close := difflib.get_close_matches(str(loc[-1]).lower(), names, n=1):
        return (*table, close[0])
    if names and table not in SECTIONS:
        return None  # in a list of tables only its own keys are meant
    # Whole paths are compared, as the right key often stands under a wrong section.
    path = tuple(map(str, loc))
    likely = {dotted(key).lower(): key for key in _likely(path)}
    best = difflib.get_close_matches(dotted(path).lower(), likely, n=1, cutoff=0.5)
    return likely[best[0]] if best else None


def _likely(path: KeyPath) -> Iterator[KeyPath]:
    """Yield the keys with a similar last name; all for a lone name, which may be a whole path that
    was joined wrongly, as in HEARTHBOT_TELEGRAM_TOKEN."""
    last = path[-1].lower()
    for known in KEYS:
        if len(path) == 1 or difflib.get_close_matches(last, [known[-1]]):
            yield known
    for known in KEYS_BY_NAME:
        if len(path) >= len(known):
            own = zip(known, path, strict=False)
            meant = [given if name == ANY_NAME else name for name, given in own]
            written = dotted(path[: len(known)])
            if difflib.get_close_matches(written, [dotted(meant)], cutoff=0.85):
                yield (*meant, *path[len(known) :])


def _names_at(loc: Loc) -> Sequence[str]:
    """The keys that a table takes; none where no table belongs."""
    node = node_at(Settings, loc) if loc else None
    model = tables_of(node) if isinstance(node, FieldInfo) else node
    if model is None:
        return ()
    names = [name for name in model.model_fields if isinstance(below(model, name), FieldInfo)]
    if tables_by_name(model):
        names.append(f"tables like [{dotted((*loc, 'NAME'))}]")
    return names


def _heading(loc: Loc) -> str:
    if loc == key_part(loc):
        is_list = isinstance(node_at(Settings, loc), FieldInfo)
        return f"[[{dotted(loc)}]]" if is_list else f"[{dotted(loc)}]"
    inner = loc[:-1] if isinstance(loc[-1], int) else loc
    return f"[[{dotted(inner)}]]" if inner == key_part(inner) else dotted(loc)
