"""Telegram's own parser as the judge of what is sent: TDLib, which runs offline."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import tdjson


def telegram_text(markup: str) -> str:
    """The text that Telegram would show; AssertionError when it would refuse the markup."""
    return str(_parsed(markup)["text"])


def telegram_entities(markup: str) -> list[tuple[str, str, str]]:
    """Each entity as (type, the text it covers, its address or language)."""
    parsed = _parsed(markup)
    units = parsed["text"].encode("utf-16-le")
    found = []
    for entity in parsed["entities"]:
        start, kind = entity["offset"] * 2, entity["type"]
        covered = units[start : start + entity["length"] * 2].decode("utf-16-le")
        value = kind.get("url") or kind.get("language") or ""
        found.append((kind["@type"].removeprefix("textEntityType"), covered, value))
    return found


def _parsed(markup: str) -> dict[str, Any]:
    answer = _execute(
        {
            "@type": "parseTextEntities",
            "text": markup,
            "parse_mode": {"@type": "textParseModeHTML"},
        }
    )
    assert answer["@type"] == "formattedText", f"{answer.get('message')}: {markup!r}"
    return answer


def _execute(request: dict[str, Any]) -> dict[str, Any]:
    _hush()
    return _call(request)


@cache
def _hush() -> None:
    _call({"@type": "setLogVerbosityLevel", "new_verbosity_level": 0})


def _call(request: dict[str, Any]) -> dict[str, Any]:
    answer = tdjson.td_execute(json.dumps(request).encode())
    assert answer is not None
    parsed: dict[str, Any] = json.loads(answer)
    return parsed
