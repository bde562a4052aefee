"""Clicks and filled forms as Slack reports them, made from the blocks that a person sees.

Called by the people's side of the Slack stand-in.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bot.lab.slack_state import Json

_PICKED = frozenset({"static_select", "radio_buttons", "overflow", "external_select"})
_PICKED_MANY = frozenset({"checkboxes", "multi_static_select"})


def action_from(blocks: Iterable[Json], action_id: str, value: str | None, *, at: str) -> Json:
    """The entry of `actions` for this element; raises LookupError if it is not there."""
    for block in blocks:
        for element in _elements(block):
            if element.get("action_id") == action_id:
                action = {
                    "action_id": action_id,
                    "block_id": block.get("block_id", ""),
                    "type": element["type"],
                    "action_ts": at,
                }
                return action | _chosen(element, value)
    raise LookupError(f"no element {action_id!r} in these blocks")


def form_state(blocks: Iterable[Json], values: Mapping[str, Mapping[str, Any]]) -> Json:
    """The `state.values` of a form: what is given, and for all other fields nothing."""
    state: Json = {}
    for block in blocks:
        block_id = str(block.get("block_id", ""))
        for element in _elements(block):
            action_id = str(element.get("action_id", ""))
            given = values.get(block_id, {}).get(action_id)
            field = {"type": element["type"], **_chosen(element, given)}
            state.setdefault(block_id, {})[action_id] = field
    return state


def _elements(block: Json) -> Iterator[Json]:
    yield from block.get("elements", ())
    for name in ("accessory", "element"):
        if name in block:
            yield block[name]


def _chosen(element: Json, value: Any) -> Json:
    kind = element["type"]
    if kind == "button":
        shown = {"text": element.get("text")}
        return shown | ({"value": element["value"]} if "value" in element else {})
    if kind in _PICKED:
        return {"selected_option": _option(element, value)}
    if kind in _PICKED_MANY:
        return {"selected_options": [_option(element, one) for one in value or ()]}
    if kind == "timepicker":
        return {"selected_time": value}
    if kind == "datepicker":
        return {"selected_date": value}
    if kind in {"users_select", "conversations_select"}:
        return {f"selected_{kind.removesuffix('s_select')}": value}
    return {"value": value}


def _option(element: Json, value: Any) -> Json | None:
    if value is None:
        return None
    for option in element.get("options", ()):
        if option.get("value") == value:
            return dict(option)
    raise LookupError(f"no option {value!r} in {element.get('action_id')!r}")
