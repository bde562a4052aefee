"""What somebody calls their time zone, as an IANA name. Called by `bot.commands.people`.

Understood where only one zone can be meant: a name of the database, a city, a whole-hour offset.
What could mean several (abbreviations, half hours) is never guessed: likely ones are named.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

NAME_CHARS_MAX = 64
SUGGESTIONS_MAX = 4

CITIES = {
    "Africa/Johannesburg": "Cape Town, Durban, Pretoria",
    "America/Chicago": "Austin, Dallas, Houston, Minneapolis, New Orleans",
    "America/Denver": "Salt Lake City",
    "America/Los_Angeles": "Las Vegas, San Diego, San Francisco, Seattle",
    "America/New_York": "Atlanta, Boston, Miami, New York City, Philadelphia, Washington DC",
    "America/Edmonton": "Calgary",
    "America/Toronto": "Montreal, Ottawa, Quebec",
    "America/Sao_Paulo": "Brasilia, Rio de Janeiro",
    "Asia/Dubai": "Abu Dhabi",
    "Asia/Ho_Chi_Minh": "Hanoi",
    "Asia/Jerusalem": "Haifa",
    "Asia/Karachi": "Islamabad, Lahore",
    "Asia/Kolkata": "Bangalore, Bengaluru, Chennai, Delhi, Mumbai, New Delhi, Pune",
    "Asia/Shanghai": "Beijing, Guangzhou, Shenzhen",
    "Asia/Tokyo": "Kyoto, Osaka, Yokohama",
    "Australia/Sydney": "Canberra",
    "Europe/Amsterdam": "Rotterdam, The Hague, Utrecht",
    "Europe/Berlin": "Cologne, Dresden, Frankfurt, Hamburg, Köln, Leipzig, München, Munich, "
    "Stuttgart",
    "Europe/Brussels": "Antwerp, Ghent",
    "Europe/Istanbul": "Ankara, Izmir",
    "Europe/London": "Edinburgh, Glasgow, Liverpool",
    "Europe/Madrid": "Barcelona, Sevilla, Seville",
    "Europe/Moscow": "Saint Petersburg",
    "Europe/Paris": "Lyon, Marseille, Toulouse",
    "Europe/Rome": "Milan, Milano, Naples, Napoli, Roma, Torino, Turin",
    "Europe/Vienna": "Graz, Innsbruck, Linz, Salzburg, Wien",
    "Europe/Warsaw": "Gdansk, Krakow, Warszawa, Wroclaw",
    "Europe/Zurich": "Basel, Bern, Geneva, Genève, Lausanne",
    "Pacific/Auckland": "Christchurch, Wellington",
}
"""Large cities that are no names of the database. Those that many places share are left out."""

ABBREVIATIONS = {
    "AEST": "Australia/Sydney, Australia/Brisbane",
    "AST": "America/Halifax, Asia/Riyadh",
    "BST": "Europe/London, Asia/Dhaka",
    "CDT": "America/Chicago, America/Havana",
    "CEST": "Europe/Berlin, Europe/Paris, Europe/Madrid",
    "CET": "Europe/Berlin, Europe/Paris, Africa/Algiers",
    "CST": "America/Chicago, America/Mexico_City, Asia/Shanghai",
    "EDT": "America/New_York, America/Toronto",
    "EET": "Europe/Athens, Europe/Kyiv, Africa/Cairo",
    "EST": "America/New_York, America/Toronto, America/Panama",
    "HST": "Pacific/Honolulu",
    "IST": "Asia/Kolkata, Europe/Dublin, Asia/Jerusalem",
    "JST": "Asia/Tokyo",
    "KST": "Asia/Seoul",
    "MDT": "America/Denver, America/Boise",
    "MET": "Europe/Berlin, Europe/Paris",
    "MSK": "Europe/Moscow",
    "MST": "America/Denver, America/Phoenix",
    "PDT": "America/Los_Angeles, America/Vancouver",
    "PST": "America/Los_Angeles, America/Vancouver, Asia/Manila",
    "SGT": "Asia/Singapore",
    "WET": "Europe/Lisbon, Atlantic/Canary",
}
"""They say the same of many places, and nothing of summer time, so they only suggest."""

_OFFSET = re.compile(r"(?:utc|gmt)?([+-])([0-9]{1,2})(?::?([0-9]{2}))?", re.ASCII)
_NO_CITIES = ("Etc/", "SystemV/", "US/", "Canada/", "Brazil/", "Chile/", "Mexico/")


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneRead:
    """`zone` where it is clear, else what may have been meant. `cities` are those by which a
    suggestion was found whose name does not say so, by the suggestion."""

    zone: str = ""
    suggestions: tuple[str, ...] = ()
    cities: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_fixed(self) -> bool:
        """A mere offset: it knows no summer time."""
        return self.zone.startswith("Etc/") or self.zone in {"GMT", "UTC"}


def read_zone(text: str, *, now: datetime) -> ZoneRead:
    """Return the zone that a text names. `now` says which zones have an offset at present."""
    said = _folded(text[: NAME_CHARS_MAX + 1])
    if not said or len(said) > NAME_CHARS_MAX:
        return ZoneRead()
    if offset := _OFFSET.fullmatch(said.replace(" ", "")):
        return _of_offset(offset, now=now)
    if (short := said.upper()) in ABBREVIATIONS:
        return ZoneRead(suggestions=tuple(ABBREVIATIONS[short].split(", ")))
    meant = _names().get(said) or _cities().get(said)
    if meant is None:
        # Zones whose name, or a city of theirs, is written much like this.
        known = {**_names(), **_cities()}
        near = difflib.get_close_matches(said, known, n=2 * SUGGESTIONS_MAX, cutoff=0.72)
        within = [name for name in _cities() if len(said) >= 4 and said in name]
        found: dict[str, str] = {}
        for name in (*near, *within):
            for zone in known[name]:
                found.setdefault(zone, _written().get(name, ""))
        kept = tuple(found)[:SUGGESTIONS_MAX]
        return ZoneRead(
            suggestions=kept, cities={zone: found[zone] for zone in kept if found[zone]}
        )
    if len(meant) == 1:
        return ZoneRead(zone=meant[0])
    return ZoneRead(suggestions=meant[:SUGGESTIONS_MAX])


def zone_of(name: str) -> ZoneInfo | None:
    """Return the zone of a stored name; None where this machine does not know it (any more)."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _of_offset(found: re.Match[str], *, now: datetime) -> ZoneRead:
    hours, minutes = int(found[2]), int(found[3] or 0)
    if minutes == 0 and hours == 0:
        return ZoneRead(zone="Etc/UTC")
    ahead = found[1] == "+"
    if minutes == 0 and hours <= (14 if ahead else 12):
        # The database counts these westwards: Etc/GMT-2 is two hours *ahead* of Greenwich.
        return ZoneRead(zone=f"Etc/GMT{'-' if ahead else '+'}{hours}")
    if minutes >= 60 or hours > 14:
        return ZoneRead()
    offset = timedelta(hours=hours, minutes=minutes) * (1 if ahead else -1)
    return ZoneRead(suggestions=_with_offset(offset, now=now)[:SUGGESTIONS_MAX])


def _with_offset(offset: timedelta, *, now: datetime) -> tuple[str, ...]:
    found = []
    for names in _cities().values():
        for name in names:
            zone = zone_of(name)
            if name not in found and zone and now.astimezone(zone).utcoffset() == offset:
                found.append(name)
    return tuple(sorted(found))


@cache
def _names() -> dict[str, tuple[str, ...]]:
    """All names of the database, folded."""
    named = {name for name in available_timezones() if name not in {"Factory", "localtime"}}
    return {_folded(name): (name,) for name in sorted(named)}


@cache
def _cities() -> dict[str, tuple[str, ...]]:
    """Cities, folded, each with the zones that it may mean."""
    found: dict[str, set[str]] = {}
    for name in (name for (name,) in _names().values()):
        if "/" in name and not name.startswith(_NO_CITIES):
            found.setdefault(_folded(name.rpartition("/")[2]), set()).add(name)
    for name, cities in CITIES.items():
        for city in cities.split(", "):
            found.setdefault(_folded(city), set()).add(name)
    return {city: _one_of_each(names) for city, names in sorted(found.items())}


@cache
def _written() -> dict[str, str]:
    """Our own cities, folded, as they are written."""
    every = (city for cities in CITIES.values() for city in cities.split(", "))
    return {_folded(city): city for city in every}


def _one_of_each(names: set[str]) -> tuple[str, ...]:
    """Names for the same zone count once: the shortest, which is the one in use."""
    kept: dict[tuple[timedelta | None, ...], str] = {}
    for name in sorted(names, key=lambda name: (name.count("/"), len(name), name)):
        kept.setdefault(_year_of(name), name)
    return tuple(kept.values())


def _year_of(name: str) -> tuple[timedelta | None, ...]:
    """Return the offsets of each month of some years, by which equal zones are told."""
    zone = zone_of(name)
    moments = [
        datetime(year, month, 1, tzinfo=UTC) for year in (2000, 2026) for month in range(1, 13)
    ]
    return tuple(moment.astimezone(zone).utcoffset() if zone else None for moment in moments)


def _folded(text: str) -> str:
    """Without accents, case, and the difference between space, hyphen and underscore."""
    apart = unicodedata.normalize("NFKD", text.strip()).casefold()
    plain = "".join(letter for letter in apart if not unicodedata.combining(letter))
    return re.sub(r"[\s_]+", " ", plain.replace("ł", "l").replace("ø", "o"))
