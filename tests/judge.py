"""Telegram's own parser as the judge of what is sent: TDLib, which runs offline."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import tdjson

TEXT_UNITS_MAX, CAPTION_UNITS_MAX = 4096, 1024
"""Of what is left once the markup is parsed, in UTF-16 units; TDLib's parser counts nothing."""

WORDED = {
    "sendMessage": ("text", TEXT_UNITS_MAX),
    "editMessageText": ("text", TEXT_UNITS_MAX),
    "sendDocument": ("caption", CAPTION_UNITS_MAX),
    "sendPhoto": ("caption", CAPTION_UNITS_MAX),
}
"""The methods whose words people read: where these stand, and how long they may be."""


@dataclass(slots=True)
class Judged:
    """What was judged: texts with markup and without, and the entities that were found in them."""

    marked: int = 0
    plain: int = 0
    kinds: Counter[str] = field(default_factory=Counter)


def judge_requests(requests: Iterable[tuple[str, Mapping[str, Any]]]) -> Judged:
    """Judges all words of requests to the Bot API, each as its method and parameters.

    AssertionError when Telegram's parser would refuse one, or when it is empty or too long.
    """
    judged = Judged()
    for method, params in requests:
        name, most = WORDED.get(method, ("", 0))
        text = params.get(name)
        if text is None:
            continue
        if params.get("parse_mode"):
            assert params["parse_mode"] == "HTML", params["parse_mode"]
            parsed = _parsed(text)
            judged.kinds.update(one["type"]["@type"] for one in parsed["entities"])
            judged.marked += 1
            text = parsed["text"]
        else:
            judged.plain += 1
        assert 0 < len(text.strip().encode("utf-16-le")) // 2 <= most, (method, text)
    return judged


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
