"""What can be said of somebody only once at a time: where they live, their age, their employer.

Called before a fact is stored, to find the one that it contradicts. It speaks up only where it is
sure: a plain English sentence about one person who is named, in the present, with one value, of
the same kind as the one that it replaces: a name for a name, euros for euros. To keep two facts
that say nearly the same does little harm, to close a true one does. Whatever else contradicts is
for whoever writes the fact to say (`NewFact.replaces`). Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace

from agent.learning.said_values import Value, ValueKind, is_name, read
from memory.facts.cities import CITIES
from memory.facts.countries import COUNTRIES
from memory.records.words import after_name, fold, squeezed

SELF = "self"

_SINGLE_ASPECTS = """
name age birthday birthdate employer boss manager supervisor landlord dentist doctor hometown
address salary rent husband wife spouse partner fiancé fiancée boyfriend girlfriend timezone zone
phone mobile email e-mail handle username weight height city residence
"""
_LONGER = "(?:phone|mobile|telephone) number|shoe size|job title"
_LIKED_BEST = r"(?:favou?rite|preferred) (?:[\w-]+ ?){1,3}"
_SINGLE = "|".join([*_SINGLE_ASPECTS.split(), _LONGER, _LIKED_BEST])
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
    rf"^{_WHO} {_HAS}(?:moved|relocated)(?: house)?(?: from (?P<left>[\w .-]+?))?"
    r" to (?P<value>.+)$"
)
_WORKS = re.compile(
    rf"^{_WHO} {_NOW}(?:works?|(?:is|are) {_NOW}(?:working|employed)) {_NOW}(?:at|for|by)"
    r" (?P<value>.+)$"
)
# To join is said of clubs too, and to start at of an hour.
_STARTED = re.compile(
    rf"^{_WHO} {_HAS}(?:started (?:working|work|(?:a|an|the|his|her|their|my) (?:new )?job)"
    r"|got a (?:new )?job|a new job) (?:at|for|with) (?P<value>.+)$"
)
_AGED = re.compile(rf"^{_WHO} (?:is|are|turned|just turned) (?P<value>\d{{1,3}})(?: years? old)?$")
_BORN = re.compile(rf"^{_WHO} (?:was|were) born on (?P<value>.+)$")
_CALLED = re.compile(
    rf"^{_WHO} (?:(?:prefers?|wants?|likes?) to be called|goes by|go by) (?P<value>.+)$"
)
_HAS_ASPECT = re.compile(
    rf"^(?:(?P<who>{_PERSON})['’]s?|(?P<mine>[Mm]y)) {_ASPECT}"
    rf" (?:is|are|has changed to|changed to) {_NOW}(?:called |named )?(?P<value>.+)$"
)
_ASPECT_ALONE = re.compile(
    rf"^(?!(?:my|his|her|their|the|our|your) ){_ASPECT} ?(?:is|are|:) (?P<value>.+)$", re.IGNORECASE
)
_VERBS = """
lives resides living residing based works working employed moved relocated started now
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
    r"[;(]|,(?!\d{3}\b)| (?:with|because|since|for|near|who|which|where|last|this|now|recently"
    r"|again|from|while|but|in|on|at|as|to|after|when|these|by|today|yesterday|just)\b"
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
_IS_ASIDE = re.compile(r"(?:with|because|since|near|who|which|where|as)\b", re.IGNORECASE)
"""Begins what may follow a home or an employer; `on weekdays` and `for now` narrow them down."""
_ONE_OF_A_KIND = "mother father mum mom dad wife husband spouse partner boss manager landlord"
_KIN_OF_ONE = frozenset(_ONE_OF_A_KIND.split())
_ALIASES_OF_SELF = frozenset({"user", "the user", "person", "the person", "i", SELF})
_PRONOUNS = "he she they it we you this that who his her their its our your"
_NOBODY = frozenset(_PRONOUNS.split())
"""Whom they mean stands in another sentence."""
_SAME_ASPECT = {
    "birthdate": "birthday",
    "date of birth": "birthday",
    "home address": "address",
    "email address": "email",
    "mobile phone": "mobile",
    "full name": "name",
    "home town": "hometown",
    "time zone": "timezone",
    "husband": "spouse",
    "wife": "spouse",
    "city": "residence",
    "home city": "residence",
    "city of residence": "residence",
    "place of residence": "residence",
}
_NEW_OR_MAIN = re.compile(r"^(?:new|current|present|own|main|primary|latest) ")
_ITS_NUMBER = re.compile(r"\b(phone|mobile) number$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """Of `who`, the `what` is `value`. `is_plain`: nothing else is said besides. `left` is the
    (folded) place that somebody moved away from, if that is said."""

    who: str
    what: str
    value: Value
    is_plain: bool = True
    left: str = ""

    def contradicts(self, other: Statement) -> bool:
        """Whether both cannot hold now. What says more or less of the same does not contradict,
        nor does a value of another kind."""
        if (self.who, self.what) != (other.who, other.what):
            return False
        if self.left and self.left == other.value.text != self.value.text:
            return True
        return self.value.excludes(other.value)

    def repeats(self, other: Statement) -> bool:
        """Whether both say the same and no more."""
        same = (self.who, self.what, self.value) == (other.who, other.what, other.value)
        return same and self.is_plain and other.is_plain


def statement(text: str, *, names: Collection[str] = ()) -> Statement | None:
    """What a sentence states, None where that is not sure. `names` are those of the person whose
    facts these are: what is said of them by name is the same as what is said of `the user`."""
    plain = " ".join(text.split()).rstrip(".!")
    told = (after_name(plain, " ".join(name.split())) for name in names)
    plain = next((f"{SELF}{rest}" for rest in told if rest is not None), plain)
    plain = _with_subject(plain)
    unsure_in = _BORN_WAS.sub("", plain)
    if _UNSURE.search(unsure_in):
        return None
    for find in (_of_aspect, _lived, _employed, _personal):
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
    "residence": ("live", "living", "resid", "based", "moved", "relocated", "city"),
    "employer": ("work", "employ", "job"),
    "age": ("is ", "are ", "turned", "age"),
    "birthday": ("birth", "born"),
    "call name": ("called", "goes by", "go by"),
    "spouse": ("spouse", "husband", "wife"),
    "timezone": ("timezone", "zone"),
    "hometown": ("town",),
    "address": ("address",),
    "email": ("mail",),
    "phone": ("phone",),
    "mobile": ("mobile",),
    "name": ("name",),
}


def _with_subject(plain: str) -> str:
    """`Lives in Oslo` and `Favourite colour: blue` are said of the person."""
    if match := _ASPECT_ALONE.match(plain):
        return f"user's {match['what'].lower()} is {match['value']}"
    first, _, rest = plain.partition(" ")
    begun = first.lower() in _BEGINNINGS
    return f"user {first.lower()} {rest}" if begun else plain


def _of_aspect(plain: str) -> Statement | None:
    match = _HAS_ASPECT.match(plain)
    if match is None:
        return None
    what = fold(match["what"]).replace("favourite", "favorite").replace("colour", "color").strip()
    what = _NEW_OR_MAIN.sub("", what.replace("e-mail", "email").replace("telephone", "phone"))
    what = _ITS_NUMBER.sub(r"\1", what)
    what = _SAME_ASPECT.get(what, what)
    value, rest = _split(match["value"])
    known = (read(what, value) if _is_time(rest) else None) or read(what, match["value"])
    return Statement(who=match["who"] or SELF, what=what, value=known) if known else None


def _lived(plain: str) -> Statement | None:
    match = _LIVES.match(plain)
    moved = None if match else _MOVED.match(plain)
    found = match or moved
    if found is None:
        return None
    value, rest = _split(found["value"])
    is_told = _is_time(rest)
    # Of moves of long ago people tell too: those count where nothing else is said but that.
    if not is_name(value) or not (is_told or (match and _is_aside(rest)) or _is_land(rest)):
        return None
    left = squeezed(fold(moved["left"] or "")) if moved else ""
    kind = ValueKind.TOWN if fold(value) in CITIES or _is_land(rest) else ValueKind.PLACE
    known = Value(kind=kind, text=squeezed(fold(value)))
    return Statement(who=found["who"], what="residence", value=known, is_plain=is_told, left=left)


def _employed(plain: str) -> Statement | None:
    match = _WORKS.match(plain) or _STARTED.match(plain)
    if match is None:
        return None
    value, rest = _split(match["value"])
    is_told = _is_time(rest)
    known = read("employer", value)
    if known is None or not (is_told or _is_aside(rest) or _is_there(rest)):
        return None
    return Statement(who=match["who"], what="employer", value=known, is_plain=is_told)


def _personal(plain: str) -> Statement | None:
    for pattern, what in ((_AGED, "age"), (_BORN, "birthday"), (_CALLED, "call name")):
        if (match := pattern.match(plain)) and (known := read(what, match["value"])):
            return Statement(who=match["who"], what=what, value=known)
    return None


def _split(text: str) -> tuple[str, str]:
    """The value, and what is said after it."""
    cut = _END_OF_VALUE.search(text)
    if cut is None:
        return text.strip(), ""
    return text[: cut.start()].strip(), text[cut.start() :].strip(" ,;")


def _is_time(rest: str) -> bool:
    return not rest or bool(_OF_TIME.match(rest))


def _is_aside(rest: str) -> bool:
    return bool(_IS_ASIDE.match(rest))


def _is_land(rest: str) -> bool:
    """`Oslo, Norway`"""
    return fold(rest) in COUNTRIES


def _is_there(rest: str) -> bool:
    """`in Oslo`, of an office."""
    place = fold(rest.removeprefix("in "))
    return rest.startswith("in ") and (place in CITIES or place in COUNTRIES)


def _person(who: str, names: Collection[str]) -> str:
    """Whom it is about; empty where that may be more than one, or is said in another sentence."""
    folded = squeezed(fold(who))
    mine = {part for name in names for part in (fold(name), *fold(name).split()[:1]) if part}
    if folded in mine | _ALIASES_OF_SELF:
        return SELF
    owner, has_owner, kin = folded.partition("'s ")
    if not has_owner and folded.startswith("my "):
        owner, has_owner, kin = SELF, "'s", folded.removeprefix("my ")
    if folded.split(" ")[0] in _NOBODY or (folded.startswith("the ") and not has_owner):
        return ""
    if not has_owner:
        return folded if who[0].isupper() else ""
    if kin not in _KIN_OF_ONE:
        return ""
    return f"{SELF if owner in mine | _ALIASES_OF_SELF else owner}'s {kin}"
