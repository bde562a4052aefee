"""Values that are said of somebody, and of which kind they are: a name, a date, 900 euros.

Called by `memory.facts.statements`: only a value takes the place of another one of the same kind.
What is of no kind that is surely told apart (`nice`, `on holiday`, `German`) is none. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from memory.facts.cities import CITIES
from memory.facts.countries import COUNTRIES
from memory.facts.similarity import stem
from memory.records.words import fold, squeezed, words

NAME_WORDS_MAX = 5
PHONE_DIGITS_MIN = 5
_SAME_DIGITS = 6
"""Numbers of telephones that end alike are one, whatever stands before."""


class ValueKind(Enum):
    """Of which kind a value is. A PLACE may lie within another one, a TOWN does not."""

    NAME = "name"
    SOMEBODY = "somebody"
    NUMBER = "number"
    DATE = "date"
    TOWN = "town"
    PLACE = "place"
    ADDRESS = "address"
    PHONE = "phone"
    MAIL = "mail"
    HANDLE = "handle"
    ZONE = "zone"
    COLOUR = "colour"


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """`text` is folded. `unit` is that of a number."""

    kind: ValueKind
    text: str
    unit: str = ""

    def excludes(self, other: Value) -> bool:
        """Whether only one of both can hold."""
        if (self.kind, self.unit) != (other.kind, other.unit) or self.kind is ValueKind.PLACE:
            return False
        if self.kind is ValueKind.DATE:
            return self.text[-5:] != other.text[-5:]
        if self.kind is ValueKind.PHONE:
            return self.text[-_SAME_DIGITS:] != other.text[-_SAME_DIGITS:]
        if self.kind in (ValueKind.NUMBER, ValueKind.MAIL, ValueKind.HANDLE, ValueKind.ZONE):
            return self.text != other.text
        mine, others = _telling(self.text), _telling(other.text)
        if self.kind is ValueKind.SOMEBODY:
            return mine.isdisjoint(others)
        return not (mine <= others or others <= mine)


def read(what: str, text: str) -> Value | None:
    """What is said to be somebody's `what` (`rent`, `work phone`); None where it is no value."""
    bare = text.strip().strip("\"'“”")
    if what.startswith("favorite "):
        return _liked_best(what, bare)
    kind = _KIND_OF.get(what.rsplit(maxsplit=1)[-1])
    return _READERS[kind](bare) if kind else None


def is_name(text: str) -> bool:
    """Whether a text names something: capitals throughout, and no day, month or people."""
    parts = text.split()
    if not parts or len(parts) > NAME_WORDS_MAX or not parts[0][0].isupper():
        return False
    folded = [fold(part) for part in parts]
    if any(part in _TIMES for part in folded) or (len(parts) == 1 and _is_origin(folded[0])):
        return False
    return all(
        part[0].isupper() or part[0].isdigit() or low in _PARTICLES
        for part, low in zip(parts, folded, strict=True)
    )


_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_DAYS = """
monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays
fridays saturdays sundays today tomorrow tonight morning noon afternoon evening night nights
spring summer autumn winter
"""
_TIMES = frozenset([*_MONTHS, *_DAYS.split()])
_SMALL = "of de del della di da du van von der den la le el bin al the & y"
_PARTICLES = frozenset(_SMALL.split())
_OF_POSTS = frozenset(["of", "the", "&"])
_TITLES = re.compile(r"^(?:(?:Dr|Mr|Mrs|Ms|Prof|Herr|Frau)\b\.? ?)+")
_PEOPLES = "french dutch greek swiss czech welsh christian catholic muslim hindu"
_IRREGULAR = frozenset(_PEOPLES.split())
_OF_A_PEOPLE = re.compile(r"\w+(?:ish|ese|ist)")
_OF_A_COUNTRY = re.compile(r"\w+(?:an|i|er|en)")
_COUNTRY_BEGINS = frozenset(country[:4] for country in COUNTRIES if len(country) > 4)
_NUMBER = re.compile(
    r"(?P<sign>[€$£¥]?) ?(?P<number>\d+(?:\.\d+)?) ?(?P<unit>[^\W\d_]*(?: \w+){0,2}|[€$£¥%])"
)
_THOUSANDS = re.compile(r"(?<=\d)[,'’ \u00a0\u202f](?=\d{3}\b)")
_UNITS = {"€": "euro", "eur": "euro", "$": "dollar", "usd": "dollar", "£": "pound", "gbp": "pound"}
_IDLE_IN_UNITS = frozenset(["a", "an", "per", "each", "every"])
_MONTH = "|".join(_MONTHS)
_DATE = re.compile(
    rf"(?:on )?(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<month>{_MONTH})"
    rf"|(?P<month2>{_MONTH}) (?P<day2>\d{{1,2}})(?:st|nd|rd|th)?)(?:,? (?P<year>\d{{4}}))?"
)
_ISO = re.compile(r"(?:on )?(\d{4}-\d\d-\d\d)")
_PHONE = re.compile(r"\+?[\d(][\d ()./-]+")
_MAIL = re.compile(r"[^\s@]+@[^\s@]+\.[^\s@]+")
_HANDLE = re.compile(r"@\S+|[\w.-]*[\d_.-][\w.-]*")
_ZONE = re.compile(r"[A-Z][A-Za-z]+(?:/[A-Z][A-Za-z_-]+)+")
_ADDRESS_WORDS_MIN = 2
_NAMED_COLOURS = """
red orange yellow green blue purple violet pink brown black white grey gray turquoise beige gold
silver teal magenta
"""
_COLOURS = frozenset(_NAMED_COLOURS.split())


def _liked_best(what: str, text: str) -> Value | None:
    """A colour may be said of a thing, as any other word that is no name."""
    folded = squeezed(fold(text))
    if what.endswith(" color"):
        is_colour = bool(_COLOURS & set(folded.split())) and len(folded.split()) <= 2
        return Value(kind=ValueKind.COLOUR, text=folded) if is_colour else None
    return _number(text) or _name(text)


def _name(text: str) -> Value | None:
    return (
        Value(kind=ValueKind.NAME, text=squeezed(fold(text)).strip(".")) if is_name(text) else None
    )


def _somebody(text: str) -> Value | None:
    """Short forms in capitals are what somebody does (CEO), or where; and so is `Head of Sales`."""
    bare = _TITLES.sub("", text)
    if not bare or not is_name(text) or _OF_POSTS & set(bare.split()):
        return None
    if any(len(part) > 1 and part.isupper() for part in bare.split()):
        return None
    return Value(kind=ValueKind.SOMEBODY, text=squeezed(fold(bare)))


def _number(text: str) -> Value | None:
    match = _NUMBER.fullmatch(_THOUSANDS.sub("", text))
    if match is None:
        return None
    named = [_UNITS.get(word, stem(word)) for word in fold(match["unit"]).split()]
    said = [_UNITS[match["sign"]]] if match["sign"] in _UNITS else []
    unit = " ".join([*said, *(word for word in named if word not in _IDLE_IN_UNITS)])
    return Value(kind=ValueKind.NUMBER, text=match["number"], unit=unit)


def _date(text: str) -> Value | None:
    folded = squeezed(fold(text))
    if match := _ISO.fullmatch(folded):
        return Value(kind=ValueKind.DATE, text=match[1])
    match = _DATE.fullmatch(folded)
    if match is None:
        return None
    month = _MONTHS.index(match["month"] or match["month2"]) + 1
    day = f"{month:02}-{int(match['day'] or match['day2']):02}"
    return Value(kind=ValueKind.DATE, text=f"{match['year']}-{day}" if match["year"] else day)


def _town(text: str) -> Value | None:
    folded = squeezed(fold(text))
    return Value(kind=ValueKind.TOWN, text=folded) if folded in CITIES else None


def _address(text: str) -> Value | None:
    parts = text.split()
    has_both = any(part[0].isdigit() for part in parts) and any(part[0].isupper() for part in parts)
    if not has_both or len(parts) < _ADDRESS_WORDS_MIN:
        return None
    if not all(part[0].isdigit() or part[0].isupper() for part in parts):
        return None
    return Value(kind=ValueKind.ADDRESS, text=squeezed(fold(text)))


def _phone(text: str) -> Value | None:
    digits = "".join(letter for letter in text if letter.isdigit())
    is_phone = _PHONE.fullmatch(text) and len(digits) >= PHONE_DIGITS_MIN
    return Value(kind=ValueKind.PHONE, text=digits) if is_phone else None


def _mail(text: str) -> Value | None:
    return Value(kind=ValueKind.MAIL, text=fold(text)) if _MAIL.fullmatch(text) else None


def _handle(text: str) -> Value | None:
    return Value(kind=ValueKind.HANDLE, text=fold(text)) if _HANDLE.fullmatch(text) else None


def _zone(text: str) -> Value | None:
    """By its place alone: CET and Europe/Vienna are both true."""
    return Value(kind=ValueKind.ZONE, text=fold(text)) if _ZONE.fullmatch(text) else None


_OF_PEOPLE = """
boss manager supervisor landlord dentist doctor spouse husband wife partner fiancé fiancée
boyfriend girlfriend
"""
_KIND_OF = {
    **dict.fromkeys(("name", "employer", "title"), ValueKind.NAME),
    **dict.fromkeys(_OF_PEOPLE.split(), ValueKind.SOMEBODY),
    **dict.fromkeys(("age", "salary", "rent", "weight", "height", "size"), ValueKind.NUMBER),
    "birthday": ValueKind.DATE,
    **dict.fromkeys(("residence", "hometown", "city"), ValueKind.TOWN),
    "address": ValueKind.ADDRESS,
    **dict.fromkeys(("phone", "mobile"), ValueKind.PHONE),
    "email": ValueKind.MAIL,
    **dict.fromkeys(("handle", "username"), ValueKind.HANDLE),
    **dict.fromkeys(("timezone", "zone"), ValueKind.ZONE),
}
_READERS = {
    ValueKind.NAME: _name,
    ValueKind.SOMEBODY: _somebody,
    ValueKind.NUMBER: _number,
    ValueKind.DATE: _date,
    ValueKind.TOWN: _town,
    ValueKind.ADDRESS: _address,
    ValueKind.PHONE: _phone,
    ValueKind.MAIL: _mail,
    ValueKind.HANDLE: _handle,
    ValueKind.ZONE: _zone,
}


def _is_origin(folded: str) -> bool:
    """Whether a word says where somebody is from, or what they believe: `German`, `Buddhist`."""
    if folded in _IRREGULAR or _OF_A_PEOPLE.fullmatch(folded):
        return True
    return folded[:4] in _COUNTRY_BEGINS and bool(_OF_A_COUNTRY.fullmatch(folded))


def _telling(text: str) -> frozenset[str]:
    return frozenset(stem(word.text) for word in words(text))


# --- negations ----------------------------------------------------------------------------------
#
# Whether a text says no, in the languages that people write most. Pure; used by
# `agent.learning.evidence`.
#
# It knows words, and endings where a language says no by them. It takes too much for a no rather
# than too little: where it is in doubt a note is not kept, and what was said stays searchable.

_WORDS = """
no not never none neither nor cannot without nobody nothing nowhere hardly rarely seldom barely
stopped quit dont doesnt didnt cant wont isnt arent wasnt
nicht nichts kein keine keinen keinem keiner keines nie niemals niemand kaum ohne weder
ne pas jamais aucun aucune sans personne rien
nunca jamás ningún ninguno ninguna nada nadie sin tampoco
non mai niente nessuno nessuna senza
não nem nenhum nenhuma ninguém sem nao
niet geen nooit niemand niets zonder
inte ingen inget inga aldrig ej utan ikke ikkje aldri uten intet
nie nigdy żaden żadna żadnego bez nikt nic
nejsem nemám nechci nikdy není nemůžu neumím nejím nepiju nerad nemam
не нет нету никогда никто ничего нельзя без ни ні немає ніколи ніхто
δεν δε μην μη όχι ποτέ χωρίς κανείς τίποτα
değil yok hiç asla hayır
nu nici niciodată fără nem sem soha nincs sincs ei eivät emme ette ilman
tidak bukan belum jangan nggak không chưa chẳng
नहीं मत ना لا لم لن ليس ليست لست לא אין אף
안 못
"""
_SAYS_NO = frozenset(_WORDS.split())
_ENDS_NO = re.compile(
    r"(?:n't|m[ıiuü]yor\w*|(?<!ta)m[ae]m|m[ae]z(?:s[ıi]n|lar|ler)?|m[ae]d[ıi]\w*)$"
)
"""English, and Turkish: its verbs say no by an ending."""
_BEGINS_NO = re.compile(r"^n['’](?=\w)")
"""French: n'aime."""
_WITHOUT_BLANKS = re.compile(
    "不(?!错|錯)|[没沒未无無]|(?<!特)[别別]|非(?!常)|ません|まへん|ない|なかった|なく|じゃな|ではな"
    "|않|없|아니|못[ 하해한했]|(?:^| )안 (?=[\uac00-\ud7a3])|ไม่"
)
_JUST_NO = re.compile(
    r"^\W*(?:no|nein|non|não|nie|nee|nej|nei|нет|hayır|όχι|nah|nope)\s*[,!.:–-]\s*"
)
"""An answer to what was said before, and no part of the sentence: "No, I like tea"."""


def says_no(text: str) -> bool:
    """Whether anything in it says no."""
    folded = _JUST_NO.sub("", fold(text))
    if _WITHOUT_BLANKS.search(folded):
        return True
    return any(
        word.text in _SAYS_NO or _ENDS_NO.search(word.text) or _BEGINS_NO.search(word.text)
        for word in words(folded)
    )
