"""Kinds of Telegram messages that are neither text nor a file: places and contacts become text, the
others have a name. Called before the library reads an update: it fails where one lacks a field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

CHARS_MAX = 200
"""Of a name or an address, which somebody else may have written."""

_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "checklist": "checklists",
        "contact": "this contact",
        "dice": "dice",
        "game": "games",
        "giveaway": "giveaways",
        "giveaway_winners": "giveaways",
        "invoice": "invoices",
        "location": "this place",
        "paid_media": "paid media",
        "poll": "polls",
        "story": "stories",
        "venue": "this place",
    }
)
_HOLDERS = ("message", "edited_message")


@dataclass(frozen=True, slots=True, kw_only=True)
class OddKind:
    """`text` is what a message of such a kind says, `name` what it is where that is nothing.
    `source` names where its words come from, empty where they are the sender's own: who shares a
    contact or a venue passes on names that somebody else chose (threat T12)."""

    name: str = ""
    text: str = ""
    source: str = ""


def without_odd_kinds(update: dict[str, Any]) -> tuple[dict[str, Any], OddKind]:
    """The update without them, also in what its message replies to; and what it had. Never
    raises."""
    for holder in _HOLDERS:
        body = update.get(holder)
        if not isinstance(body, dict):
            continue
        bare = _bare(body)
        if isinstance(body.get("reply_to_message"), dict):
            bare["reply_to_message"] = _bare(body["reply_to_message"])
        return {**update, holder: bare}, _told(body)
    return update, OddKind()


def _bare(body: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key not in _NAMES}


def _told(body: dict[str, Any]) -> OddKind:
    name = next((_NAMES[key] for key in _NAMES if body.get(key) is not None), "")
    if place := _place(body):
        # Coordinates are the sender's own; the title and the address of a venue are not.
        source = "the listing of a place" if _venue_words(body.get("venue")) else ""
        return OddKind(name=name, text=place, source=source)
    contact = _contact(body.get("contact"))
    return OddKind(name=name, text=contact, source="a shared contact" if contact else "")


def _place(body: dict[str, Any]) -> str:
    venue = body.get("venue")
    about = venue if isinstance(venue, dict) else {}
    found = body.get("location") or about.get("location")
    if not isinstance(found, dict):
        return ""
    latitude, longitude = found.get("latitude"), found.get("longitude")
    if not _is_degrees(latitude, 90) or not _is_degrees(longitude, 180):
        return ""
    named = _venue_words(venue)
    return f"location: {latitude}, {longitude}" + (f" ({named})" if named else "")


def _venue_words(venue: object) -> str:
    about = venue if isinstance(venue, dict) else {}
    return ", ".join(one for key in ("title", "address") if (one := _line(about.get(key))))


def _contact(found: object) -> str:
    if not isinstance(found, dict):
        return ""
    name = " ".join(filter(None, (_line(found.get(key)) for key in ("first_name", "last_name"))))
    shown = [one for one in (name, _line(found.get("phone_number"))) if one]
    return f"contact: {', '.join(shown)}" if shown else ""


def _is_degrees(value: object, most: int) -> bool:
    return type(value) in {int, float} and -most <= value <= most  # type: ignore[operator]


def _line(value: object) -> str:
    """On one line, whole characters alone."""
    if not isinstance(value, str):
        return ""
    whole = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return " ".join(whole.split())[:CHARS_MAX]
