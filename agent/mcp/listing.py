"""A server's list of tools, put right before the SDK reads it: there, one tool that is not quite
to the letter makes the whole list unreadable (case TO-07). Pure."""

from __future__ import annotations

from typing import Any

HINTS = ("readOnlyHint", "idempotentHint")


def mended(result: object) -> int:
    """Mends the result of a `tools/list` in place; leaves any other as it is.

    Of each tool stays what we use: what it promises of its results is not held against it. Returns
    how many entries were left out, since nobody can read them.
    """
    if not isinstance(result, dict) or not isinstance(result.get("tools"), list):
        return 0
    tools = [_tool(one) for one in result["tools"]]
    result["tools"] = [tool for tool in tools if tool is not None]
    return len(tools) - len(result["tools"])


def _tool(entry: object) -> dict[str, Any] | None:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        return None
    made: dict[str, Any] = {"name": entry["name"], "inputSchema": _schema(entry)}
    for key in ("title", "description"):
        if isinstance(entry.get(key), str):
            made[key] = entry[key]
    hints = entry.get("annotations")
    if isinstance(hints, dict):
        made["annotations"] = {k: hints[k] for k in HINTS if isinstance(hints.get(k), bool)}
    return made


def _schema(entry: dict[str, Any]) -> dict[str, Any]:
    """Arguments are an object; the rest of the schema is looked at later."""
    schema = entry.get("inputSchema")
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        return {"type": "object"}
    return {**schema, "type": "object"}
