"""Block Kit's rules, and the error texts with JSON pointers that Slack gives for a broken one.

Called by the Slack stand-in for every message and view.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Problems = list[str]

MESSAGE_BLOCKS_MAX = 50
VIEW_BLOCKS_MAX = 100
SECTION_CHARS_MAX = 3000
MARKDOWN_CHARS_MAX = 12_000
TABLE_ROWS_MAX = 100
TABLE_COLUMNS_MAX = 20
_ID_CHARS_MAX = 255
_UNCHECKED = frozenset(
    {"file", "video", "rich_text", "plan", "task_card", "alert", "card", "carousel"}
)


def block_problems(blocks: Any, *, most: int = MESSAGE_BLOCKS_MAX) -> Problems:
    """What is wrong with these blocks, in Slack's words; empty if they are fit to be shown."""
    if not isinstance(blocks, list):
        return ["must be an array [json-pointer:/blocks]"]
    found: Problems = []
    if len(blocks) > most:
        found.append(f"no more than {most} items allowed [json-pointer:/blocks]")
    ids: set[str] = set()
    tables = 0
    for index, block in enumerate(blocks):
        at = f"/blocks/{index}"
        found += _block(block, at)
        if isinstance(block, dict):
            tables += block.get("type") == "table"
            found += _new_id(block, "block_id", at, ids)
    if tables > 1:
        found.append("only one table allowed [json-pointer:/blocks]")
    return found


def chars(blocks: Any) -> int:
    """How much text these blocks hold; Slack refuses too much of it altogether."""
    if isinstance(blocks, Mapping):
        text = blocks.get("text")
        own = len(text) if isinstance(text, str) else 0
        return own + sum(chars(v) for v in blocks.values() if not isinstance(v, str))
    if isinstance(blocks, Sequence) and not isinstance(blocks, str):
        return sum(chars(block) for block in blocks)
    return 0


def plain_text(blocks: Any) -> str:
    """All words of the blocks, one line each, as one would read them from top to bottom."""
    lines: list[str] = []
    _collect(blocks, lines)
    return "\n".join(lines)


def view_problems(view: Any, *, kinds: Sequence[str]) -> Problems:
    """What is wrong with a modal or a home tab."""
    if not isinstance(view, dict):
        return ["must be an object [json-pointer:/view]"]
    kind = view.get("type")
    if kind not in kinds:
        return [f"must be one of: {', '.join(kinds)} [json-pointer:/view/type]"]
    if "blocks" not in view:
        return ["missing required field: blocks [json-pointer:/view]"]
    inside = block_problems(view["blocks"], most=VIEW_BLOCKS_MAX)
    found = [p.replace("[json-pointer:/", "[json-pointer:/view/") for p in inside]
    for name, most in (("private_metadata", 3000), ("callback_id", _ID_CHARS_MAX)):
        found += _short(view, name, "/view", most=most)
    if kind != "modal":
        return found
    found += _text(view, "title", "/view", most=24, kinds=("plain_text",))
    for name in ("submit", "close"):
        if name in view:
            found += _text(view, name, "/view", most=24, kinds=("plain_text",))
    asks = any(isinstance(b, dict) and b.get("type") == "input" for b in view["blocks"])
    if asks and "submit" not in view:
        found.append("missing required field: submit [json-pointer:/view]")
    return found


def _block(block: Any, at: str) -> Problems:
    if not isinstance(block, dict):
        return [f"must be an object [json-pointer:{at}]"]
    kind = block.get("type")
    if not isinstance(kind, str):
        return [f"missing required field: type [json-pointer:{at}]"]
    found = _short(block, "block_id", at, most=_ID_CHARS_MAX)
    if kind in _UNCHECKED or kind == "divider":
        return found
    check = _CHECKS.get(kind)
    if check is None:
        return [*found, f"unsupported type: {kind} [json-pointer:{at}/type]"]
    return found + check(block, at)


def _section(block: Mapping[str, Any], at: str) -> Problems:
    found: Problems = []
    if "text" not in block and "fields" not in block:
        return [f"missing required field: text [json-pointer:{at}]"]
    if "text" in block:
        found += _text(block, "text", at, most=SECTION_CHARS_MAX)
    if "fields" in block:
        found += _items(block, "fields", at, most=10)
        for index, _ in enumerate(_listed(block.get("fields"))):
            fields = {str(i): v for i, v in enumerate(_listed(block["fields"]))}
            found += _text(fields, str(index), f"{at}/fields", most=2000)
    if "accessory" in block:
        found += _element(block["accessory"], f"{at}/accessory")
    return found


def _header(block: Mapping[str, Any], at: str) -> Problems:
    return _text(block, "text", at, most=150, kinds=("plain_text",))


def _context(block: Mapping[str, Any], at: str) -> Problems:
    found = _items(block, "elements", at, most=10)
    for index, element in enumerate(_listed(block.get("elements"))):
        place = f"{at}/elements"
        if isinstance(element, dict) and element.get("type") == "image":
            found += _image(element, f"{place}/{index}")
        else:
            found += _text({str(index): element}, str(index), place, most=SECTION_CHARS_MAX)
    return found


def _actions(block: Mapping[str, Any], at: str) -> Problems:
    most = 5 if block.get("type") == "context_actions" else 25
    found = _items(block, "elements", at, most=most)
    seen: set[str] = set()
    for index, element in enumerate(_listed(block.get("elements"))):
        place = f"{at}/elements/{index}"
        found += _element(element, place)
        if isinstance(element, dict):
            found += _new_id(element, "action_id", place, seen)
    return found


def _image(block: Mapping[str, Any], at: str) -> Problems:
    found = _short(block, "image_url", at, most=3000)
    if "image_url" not in block and "slack_file" not in block:
        found.append(f"missing required field: image_url [json-pointer:{at}]")
    if not isinstance(block.get("alt_text"), str):
        found.append(f"missing required field: alt_text [json-pointer:{at}]")
    return found + _short(block, "alt_text", at, most=2000)


def _markdown(block: Mapping[str, Any], at: str) -> Problems:
    text = block.get("text")
    if not isinstance(text, str):
        return [f"missing required field: text [json-pointer:{at}]"]
    return _length(text, f"{at}/text", most=MARKDOWN_CHARS_MAX)


def _input(block: Mapping[str, Any], at: str) -> Problems:
    found = _text(block, "label", at, most=2000, kinds=("plain_text",))
    if not isinstance(block.get("element"), dict):
        found.append(f"missing required field: element [json-pointer:{at}]")
    return found


def _table(block: Mapping[str, Any], at: str) -> Problems:
    found = _items(block, "rows", at, most=TABLE_ROWS_MAX)
    for index, row in enumerate(_listed(block.get("rows"))):
        if len(_listed(row)) > TABLE_COLUMNS_MAX:
            place = f"{at}/rows/{index}"
            found.append(f"no more than {TABLE_COLUMNS_MAX} items allowed [json-pointer:{place}]")
    return found


_CHECKS: dict[str, Callable[[Mapping[str, Any], str], Problems]] = {
    "section": _section,
    "header": _header,
    "context": _context,
    "actions": _actions,
    "context_actions": _actions,
    "image": _image,
    "markdown": _markdown,
    "input": _input,
    "table": _table,
}


def _element(element: Any, at: str) -> Problems:
    if not isinstance(element, dict) or not isinstance(element.get("type"), str):
        return [f"missing required field: type [json-pointer:{at}]"]
    found = _short(element, "action_id", at, most=_ID_CHARS_MAX)
    if element["type"] == "button":
        found += _text(element, "text", at, most=75, kinds=("plain_text",))
        found += _short(element, "value", at, most=2000)
        found += _short(element, "url", at, most=3000)
        if element.get("style", "primary") not in {"primary", "danger"}:
            found.append(f"must be one of: primary, danger [json-pointer:{at}/style]")
    if element["type"] == "image":
        found += _image(element, at)
    return found


def _text(
    holder: Mapping[str, Any],
    name: str,
    at: str,
    *,
    most: int,
    kinds: Sequence[str] = ("plain_text", "mrkdwn"),
) -> Problems:
    if name not in holder:
        return [f"missing required field: {name} [json-pointer:{at}]"]
    value = holder[name]
    at = f"{at}/{name}"
    if not isinstance(value, dict):
        return [f"must be an object [json-pointer:{at}]"]
    if value.get("type") not in kinds:
        return [f"must be one of: {', '.join(kinds)} [json-pointer:{at}/type]"]
    if not isinstance(value.get("text"), str):
        return [f"missing required field: text [json-pointer:{at}]"]
    return _length(value["text"], f"{at}/text", most=most)


def _length(text: str, at: str, *, most: int) -> Problems:
    if not text:
        return [f"must be more than 0 characters [json-pointer:{at}]"]
    if len(text) > most:
        return [f"must be less than {most + 1} characters [json-pointer:{at}]"]
    return []


def _short(holder: Mapping[str, Any], name: str, at: str, *, most: int) -> Problems:
    value = holder.get(name)
    if value is None:
        return []
    if not isinstance(value, str):
        return [f"must be a string [json-pointer:{at}/{name}]"]
    if len(value) > most:
        return [f"must be less than {most + 1} characters [json-pointer:{at}/{name}]"]
    return []


def _new_id(holder: Mapping[str, Any], name: str, at: str, seen: set[str]) -> Problems:
    value = holder.get(name)
    if not isinstance(value, str):
        return []
    known = value in seen
    seen.add(value)
    return [f"{name} `{value}` already exists [json-pointer:{at}/{name}]"] if known else []


def _items(holder: Mapping[str, Any], name: str, at: str, *, most: int) -> Problems:
    if not isinstance(holder.get(name), list):
        return [f"missing required field: {name} [json-pointer:{at}]"]
    if not holder[name]:
        return [f"no fewer than 1 items allowed [json-pointer:{at}/{name}]"]
    if len(holder[name]) > most:
        return [f"no more than {most} items allowed [json-pointer:{at}/{name}]"]
    return []


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _collect(node: Any, lines: list[str]) -> None:
    if isinstance(node, Mapping):
        for name, value in node.items():
            if name == "text" and isinstance(value, str):
                lines.append(value)
            elif not isinstance(value, str):
                _collect(value, lines)
    elif isinstance(node, Sequence) and not isinstance(node, str):
        for value in node:
            _collect(value, lines)
