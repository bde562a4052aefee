"""What can be said of somebody only once at a time: where they live, their age, their employer.

Called before a fact is stored, to find the one that it contradicts. It speaks up only where it is
sure: a plain English sentence about one person, in the present, with one value. Whatever else
contradicts is for whoever writes the fact to say (`NewFact.replaces`). Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace

from agent.words import fold, squeezed, words
from memory.countries import COUNTRIES
from memory.sentences import stem

SELF = "self"

_SINGLE_ASPECTS = """
name age birthday birthdate employer boss manager supervisor landlord dentist doctor hometown
address nationality salary rent title job profession husband wife spouse partner fiancé fiancée
boyfriend girlfriend timezone zone phone mobile email e-mail handle username weight height
city residence location
"""
_NUMBERED = "(?:phone|mobile|telephone) number|shoe size"
_LIKED_BEST = r"(?:favou?rite|preferred) (?:[\w-]+ ?){1,3}"
_SINGLE = "|".join([*_SINGLE_ASPECTS.split(), _NUMBERED, _LIKED_BEST])
_ASPECT = rf"(?P<what>(?:[\w-]+ ){{0,3}}?(?:{_SINGLE}))"
_PERSON = r"(?:[Tt]he )?[\w.-]+(?: [\w.-]+){0,2}?"
_WHO = r"(?P<who>(?:[Tt]he )?[\w.-]+(?:['’]s)?(?: [\w.-]+(?:['’]s)?){0,2}?)"
_NOW = r"(?:now |currently |still |presently )?"
_HAS = r"(?:has |have )?(?:just |recently |now )?"

_LIVES = re.compile(
    rf"^{_WHO} {_NOW}(?:(?:has been |is |are )?{_NOW}(?:living|residing|based)|lives?|resides?)"
    rf" {_NOW}in (?P<value>.+)$"
)
_MOVED = re.compile(
    rf"^{_WHO} {_HAS}(?:moved|relocated)(?: house)?(?: from [\w .-]+?)? to (?P<value>.+)$"
)
_WORKS = re.compile(
    rf"^{_WHO} {_NOW}(?:works?|(?:is|are) {_NOW}(?:working|employed)) {_NOW}(?:at|for|by)"
    r" (?P<value>.+)$"
)
_STARTED = re.compile(
    rf"^{_WHO} {_HAS}(?:joined|started (?:working |a (?:new )?job |work )?(?:at|for))"
    r" (?P<value>.+)$"
)
_AGED = re.compile(rf"^{_WHO} (?:is|are|turned|just turned) (?P<value>\d{{1,3}})(?: years? old)?$")
_BORN = re.compile(rf"^{_WHO} (?:was|were) born on (?P<value>.+)$")
_CALLED = re.compile(
    rf"^{_WHO} (?:(?:prefers?|wants?|likes?) to be called|goes by|go by) (?P<value>.+)$"
)
_HAS_ASPECT = re.compile(
    rf"^(?:(?P<who>{_PERSON})['’]s?|(?P<whose>[Mm]y|[Hh]is|[Hh]er|[Tt]heir)) {_ASPECT}"
    rf" (?:is|are|has changed to|changed to) {_NOW}(?:called |named |on |at )?(?P<value>.+)$"
)
_ASPECT_ALONE = re.compile(
    rf"^(?!(?:my|his|her|their|the|our|your) ){_ASPECT} ?(?:is|are|:) (?P<value>.+)$", re.IGNORECASE
)
_VERBS = """
lives resides living residing based works working employed moved relocated joined started now
currently recently prefers wants goes likes turned
"""
_BEGINNINGS = frozenset(_VERBS.split())

_UNSURE = re.compile(
    r"\b(?:not|never|no|longer|used to|will|would|might|could|should|may be|maybe|perhaps|probably"
    r"|possibly|wants? to (?!be called)|plans?|planning|hopes?|considers?|considering|thinks?|if|or"
    r"|and|also|sometimes|often|partly|part[- ]time|second|another|former|formerly|previous"
    r"|previously|ex|until|was|were(?! born)|had|dreams?|either|both|between|half|half-time"
    r"|temporarily|weekends?(?! ago)|summers?|winters?|during|except|one of|among|some|several)\b"
    r"|n['’]t\b|\?",
    re.IGNORECASE,
)
_BORN_WAS = re.compile(r"\b(?:was|were) born\b", re.IGNORECASE)
_END_OF_VALUE = re.compile(
    r"[,;(]| (?:with|because|since|for|near|who|which|where|last|this|now|recently|again|from|while"
    r"|but|in|on|at|as|to|after|when|these|by|today|yesterday|just)\b"
    r"| (?:a|an|one|two|three|four|five|six|a few|some|\d+) (?:day|week|month|year)s? ago"
)
_OF_TIME = re.compile(
    r"^(?:now|currently|recently|just|today|yesterday|again|these days|right now|at the moment"
    r"|this (?:week|weekend|month|year|spring|summer|autumn|fall|winter|morning|afternoon)"
    r"|last (?:week|weekend|month|night|(?:mon|tues|wednes|thurs|fri|satur|sun)day)"
    r"|(?:on|last|this) (?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|(?:a|an|one|two|three|four|five|six|a few|some|\d{1,2}) (?:day|week|month)s? ago)$",
    re.IGNORECASE,
)
_PRODUCTS_AND_TEAMS = """
linux windows macos mac ubuntu debian fedora arch android ios iphone python rust java javascript
typescript slack telegram signal whatsapp discord teams zoom matrix github gitlab bitbucket
notion obsidian emacs vim neovim excel sheets gmail outlook proton protonmail firefox chrome
safari aws azure gcp kubernetes docker sqlite postgres postgresql mysql team marketing sales
engineering finance hr management spotify netflix apple google microsoft
"""
_NO_PLACES = frozenset(_PRODUCTS_AND_TEAMS.split())
_ONE_OF_A_KIND = "mother father mum mom dad wife husband spouse partner boss manager landlord"
_KIN_OF_ONE = frozenset(_ONE_OF_A_KIND.split())
_ALIASES_OF_SELF = frozenset({"user", "the user", "person", "the person", "i", "he", "she", "they"})
_SAME_ASPECT = {
    "birthdate": "birthday",
    "date of birth": "birthday",
    "home address": "address",
    "email address": "email",
    "phone number": "phone",
    "mobile number": "mobile",
    "mobile phone": "mobile",
    "mobile phone number": "mobile",
    "telephone number": "phone",
    "job title": "title",
    "full name": "name",
    "home town": "hometown",
    "time zone": "timezone",
    "spouse": "partner",
    "husband": "partner",
    "wife": "partner",
    "city": "residence",
    "home city": "residence",
    "city of residence": "residence",
    "place of residence": "residence",
    "location": "residence",
}
_NEW_OR_MAIN = re.compile(r"^(?:new|current|present|own|main|primary|latest) ")
_ORDINAL = re.compile(r"\b(\d+)(?:st|nd|rd|th)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """Of `who`, the `what` is `value` (folded). `is_plain`: nothing else is said besides."""

    who: str
    what: str
    value: str
    is_plain: bool = True

    def contradicts(self, other: Statement) -> bool:
        """Whether both cannot hold now. What says more or less of the same does not contradict."""
        if (self.who, self.what) != (other.who, other.what):
            return False
        mine, others = _telling(self.value), _telling(other.value)
        if mine <= others or others <= mine:
            return False
        return (self.value in COUNTRIES) == (other.value in COUNTRIES) or self.what != "residence"

    def repeats(self, other: Statement) -> bool:
        """Whether both say the same and no more."""
        same = (self.who, self.what, self.value) == (other.who, other.what, other.value)
        return same and self.is_plain and other.is_plain


def statement(text: str, *, names: Collection[str] = ()) -> Statement | None:
    """What a sentence states, None where that is not sure. `names` are those of the person whose
    facts these are: what is said of them by name is the same as what is said of `the user`."""
    plain = _with_subject(" ".join(text.split()).strip().rstrip(".!"))
    unsure_in = _BORN_WAS.sub("", plain)
    if _UNSURE.search(unsure_in):
        return None
    for find in (_lived, _employed, _personal, _of_aspect):
        found = find(plain)
        if found is not None:
            who = _person(found.who, names)
            return replace(found, who=who) if who else None
    return None


def cues(what: str) -> tuple[str, ...]:
    """Words of which one at least stands, in any case, in every statement of this kind."""
    if what.startswith("favorite "):
        return ("favo",)
    return _CUES.get(what) or (what.rsplit(maxsplit=1)[-1],)


_CUES = {
    "residence": ("live", "living", "resid", "based", "moved", "relocated", "city", "location"),
    "employer": ("work", "employ", "joined", "started"),
    "age": ("is ", "are ", "turned", "age"),
    "birthday": ("birth", "born"),
    "call name": ("called", "goes by", "go by"),
    "partner": ("partner", "spouse", "husband", "wife"),
    "timezone": ("timezone", "zone"),
    "hometown": ("town",),
    "address": ("address",),
    "email": ("mail",),
    "phone": ("phone",),
    "mobile": ("mobile",),
    "title": ("title",),
    "name": ("name",),
}


def _with_subject(plain: str) -> str:
    """`Lives in Oslo` and `Favourite colour: blue` are said of the person."""
    if match := _ASPECT_ALONE.match(plain):
        return f"user's {match['what'].lower()} is {match['value']}"
    first, _, rest = plain.partition(" ")
    begun = first.lower() in _BEGINNINGS
    return f"user {first.lower()} {rest}" if begun else plain


def _lived(plain: str) -> Statement | None:
    if match := _LIVES.match(plain):
        return _stated(match, "residence")
    match = _MOVED.match(plain)
    return _event(match, "residence") if match else None


def _employed(plain: str) -> Statement | None:
    if match := _WORKS.match(plain):
        return _stated(match, "employer")
    match = _STARTED.match(plain)
    return _event(match, "employer") if match else None


def _personal(plain: str) -> Statement | None:
    for pattern, what in ((_AGED, "age"), (_BORN, "birthday"), (_CALLED, "call name")):
        if match := pattern.match(plain):
            value = match["value"]
            return Statement(who=match["who"], what=what, value=_value(value))
    return None


def _of_aspect(plain: str) -> Statement | None:
    match = _HAS_ASPECT.match(plain)
    if match is None:
        return None
    what = fold(match["what"]).replace("favourite", "favorite").replace("colour", "color").strip()
    what = _NEW_OR_MAIN.sub("", what.replace("e-mail", "email"))
    what = _SAME_ASPECT.get(what, what)
    value, rest = _split(match["value"])
    is_plain = not rest or bool(_OF_TIME.match(rest))
    if not value:
        return None
    who = match["who"] or SELF
    return Statement(who=who, what=what, value=_value(value), is_plain=is_plain)


def _stated(match: re.Match[str], what: str) -> Statement | None:
    value, rest = _split(match["value"])
    if not _is_name(value):
        return None
    is_plain = not rest or bool(_OF_TIME.match(rest))
    return Statement(who=match["who"], what=what, value=_value(value), is_plain=is_plain)


def _event(match: re.Match[str], what: str) -> Statement | None:
    """A move counts only where it happened just now, for all that is said: people also tell of
    moves of long ago."""
    value, rest = _split(match["value"])
    first = fold(value).split(" ")[0] if value else ""
    if not _is_name(value) or first in _NO_PLACES or (rest and not _OF_TIME.match(rest)):
        return None
    return Statement(who=match["who"], what=what, value=_value(value))


def _split(text: str) -> tuple[str, str]:
    """The value, and what is said after it."""
    cut = _END_OF_VALUE.search(text)
    if cut is None:
        return text.strip(), ""
    return text[: cut.start()].strip(), text[cut.start() :].strip(" ,;")


def _is_name(value: str) -> bool:
    return bool(value) and value[0].isupper() and len(value.split()) <= 5


def _value(text: str) -> str:
    return _ORDINAL.sub(r"\1", squeezed(fold(text))).strip("\"'“”. ")


def _telling(value: str) -> frozenset[str]:
    return frozenset(stem(word.text) for word in words(value))


def _person(who: str, names: Collection[str]) -> str:
    """Whom it is about; empty where that may be more than one."""
    folded = squeezed(fold(who))
    mine = {part for name in names for part in (fold(name), *fold(name).split()[:1]) if part}
    if folded in mine | _ALIASES_OF_SELF or folded == SELF:
        return SELF
    owner, has_owner, kin = folded.partition("'s ")
    if not has_owner:
        return folded if not folded.startswith("the ") else ""
    if kin not in _KIN_OF_ONE:
        return ""
    return f"{SELF if owner in mine | _ALIASES_OF_SELF else owner}'s {kin}"
