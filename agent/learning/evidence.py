"""Checks of what a model noted against what a person said. Pure; for extraction and insights.

A model that obeys a text which it read can write anything, but it cannot make a person have said it
(threat model T14). So the quote must stand in the person's own line, and the note must be made of
the words of that line. Whether a line means what it says (a wish, a joke, a tale of others, a text
to be translated) is asked of the model, as the certainty of each fact: until 2026-11 lists of words
in twenty languages judged that here, and each language had its exceptions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import islice

from memory.facts.similarity import bare, place_of_words, says_no, stem
from memory.records.words import fold, is_unbordered, unbordered_runs, words
from memory.search.fts import STOP_WORDS

PASTED_WORDS_MIN, PASTED_CHARS_MIN = 4, 10
"""Of a quote that is looked for in texts from outside: fewer may be there by chance."""
STEM_CHARS = 4
"""Words that begin alike count as one: prefer, prefers, preference."""
NOT_BEFORE_WORDS, NOT_AFTER_WORDS, NOT_NEAR_CHARS = 4, 3, 10
"""Around a quote, where a "not" turns it round; characters where no blanks part words."""
COVERED_SHARE = 0.5
"""More than this part of a note's words must stand in the line that it rests on."""
PLACES_MAX = 20
"""Of one quote in one message."""

_MARKS = str.maketrans(dict.fromkeys("*_~`", None) | dict.fromkeys("“”„‟«»‹›「」『』", '"'))
_EDGES = " \t\n\"'.,:;!?-–—()[]…"
_BLANKS = re.compile(r"[^\S\n]+")
_SENTENCE_END = re.compile(r"[.!?؟…]+(?=[\s\")\]]|$)|\n|[。！？]")
_CLAUSE_END = re.compile(
    r"[,;:、，；()–—]|\s-\s|\b(?:but|aber|sondern|mais|pero|ma|mas|maar|men|ale|но|а|ama)\b"
)
_PART_END = re.compile(rf"{_CLAUSE_END.pattern}|\b(?:and|und|et|y|e|och|og|en)\b")
_REMINDED = re.compile(
    r"^\W*(?:please )?(?:remember|note|do(?: not|n't) forget|keep in mind)(?: that)? "
    r"(?=$|(?:i|my)\b)"
)
"""What only asks for a statement to be kept: "Don't forget that I …"."""
_ELIDED = re.compile(r"\b[a-z]{1,2}'(?=\w{3})")
_OPENING = """
btw fyi actually honestly anyway well ok okay yes hey hi hello now today yesterday last next week
month year
"""
_FRAME = STOP_WORDS.union(_OPENING.split())
"""What may stand in front of a statement about oneself and take nothing from it."""
_NOMINATIVES = "i i'm i've i'd i'll we we're we've ich wir je yo jag eu io ja я мы"
_SELF = frozenset(_NOMINATIVES.split())
_ADDRESS = re.compile(
    r"(?:https?://|www\.)\S+|[\w.+-]+@[\w-]+\.\w+|\b(?:[\w-]+\.)+[a-z]{2,}(?:/\S*)?", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotePlace:
    """Where a quote stands: what is before and after it in its sentence, with the mark at the end.
    `is_quoted`: it stands within quotation marks, so somebody else may have said it. All folded."""

    quote: str
    before: str
    after: str
    is_quoted: bool


def places(quote: str, said: str) -> Iterator[QuotePlace]:
    """Find each place of a quote in a message, whatever the case, the blanks and the marks."""
    text = _BLANKS.sub(" ", fold(said.translate(_MARKS)))
    needle = fold(quote.translate(_MARKS)).replace('"', "").strip(_EDGES)
    parts = ['"?'.join(map(re.escape, part)) for part in needle.split()]
    if not parts:
        return
    for match in islice(re.finditer(r'"?\s+"?'.join(parts), text), PLACES_MAX):
        start, end = match.span()
        begins = max((one.end() for one in _SENTENCE_END.finditer(text, 0, start)), default=0)
        ending = _SENTENCE_END.search(text, end)
        yield QuotePlace(
            quote=match.group(),
            before=_REMINDED.sub("", text[begins:start]),
            after=text[end : ending.end() if ending else len(text)],
            is_quoted=text.count('"', 0, start) % 2 == 1 and '"' not in match.group(),
        )


def is_asked_or_quoted(quote: str, said: str) -> bool:
    """Return whether the quote is part of a question, or stands within quotation marks, at any of
    its places. `I live in Oslo, is it cold there?` asks only about what comes last."""
    return any(
        place.is_quoted
        or (
            len(_CLAUSE_END.split(place.after)) == 1
            and re.search(r"[?？؟]", f"{place.quote[-1:]}{place.after}")
        )
        for place in places(quote, said)
    )


def is_turned_round(quote: str, said: str, note: str) -> bool:
    """Return whether a note says no where the quote does not, or drops a "not" that stands in the
    quote or belongs to it: "like tea" of "I don't like tea"."""
    noted, told = says_no(note), keys(note)

    def denies(place: QuotePlace) -> bool:
        # Of parts like "tea, not coffee" only those count that the note has something of.
        parts = [part for part in _CLAUSE_END.split(place.quote) if part.strip()]
        meant = [part for part in parts if keys(part) & told] or parts
        before, after = _CLAUSE_END.split(place.before)[-1], _CLAUSE_END.split(place.after)[0]
        if is_unbordered(place.quote):
            near = [before[-NOT_NEAR_CHARS:], after[:NOT_NEAR_CHARS]]
        else:
            # One that begins behind its subject is denied from anywhere before it: "I will never
            # in my life eat meat".
            is_whole = place.quote.split()[0] in _SELF
            near = [" ".join(before.split()[-NOT_BEFORE_WORDS if is_whole else 0 :])]
            near.append(" ".join(after.split()[:NOT_AFTER_WORDS]))
        return any(map(says_no, [*near, *meant]))

    return any(denies(place) != noted for place in places(quote, said))


def is_about_another(quote: str, said: str, note: str) -> bool:
    """Return whether something that tells stands in front of "I", or of the first word that the
    clause and the note share: there stands whom it is about (`My sister is allergic …`), or what
    takes from it (`Maybe I am …`, `Back then I had …`), and a note that drops it says more."""
    noted = {word.text.removesuffix("'s") for word in words(fold(note))}
    begins, stems = keys(note), set(map(stem, noted))

    def drops(place: QuotePlace) -> bool:
        begun = _PART_END.split(place.before)[-1] + place.quote
        for clause in _PART_END.split(begun):
            is_dropped = False
            # French elides: j'habite. A day in front says when.
            for word in words(_ELIDED.sub("", _DATE.sub(" ", clause))):
                told = word.text.removesuffix("'s")
                is_shared = told[:STEM_CHARS] in begins or stem(told) in stems
                if told in _SELF or is_shared or _swapped(told, noted):
                    return is_dropped
                is_dropped = is_dropped or not (told in _FRAME or _is_trifle(told))
        return False

    return any(map(drops, places(quote, said)))


def is_pasted(quote: str, outside: Iterable[str]) -> bool:
    """Return whether a quote of some length stands word for word in what came from outside."""
    needle = bare(quote)
    if len(words(needle)) < PASTED_WORDS_MIN and not (
        is_unbordered(needle) and len(needle) >= PASTED_CHARS_MIN
    ):
        return False
    return any(place_of_words(needle, bare(text)) is not None for text in outside)


def has_foreign_address(note: str, own: str) -> bool:
    """Return whether a note names an address of the web or of mail that they did not write."""
    theirs = fold(own)
    return any(fold(one.group()).rstrip("./") not in theirs for one in _ADDRESS.finditer(note))


def is_carried(note: str, *, by: str, foreign: AbstractSet[str]) -> bool:
    """Return whether a note has words of what carries it, and no more that are others' alone.
    `foreign` are the `keys` of what anybody else said or a tool returned."""
    told, own = keys(note), keys(by)
    return bool(told & own) and len(told & foreign - own) <= len(told & own)


def shares_words(note: str, quote: str) -> bool:
    """Return whether a note has anything of its quote: else it may tell of another sentence of the
    line, in which somebody else is spoken of."""
    told, there = (
        {*map(stem, (w.text for w in words(fold(t))))} - STOP_WORDS for t in (note, quote)
    )
    return bool(keys(note) & keys(quote) or told & there or _numbers(note) & _numbers(quote))


def is_covered(note: str, line: str, *, speaker: str, year: int) -> bool:
    """Return whether a line holds what a note tells of its speaker: most of its words, whatever
    their endings, all names and all numbers.

    Of the speaker's name parts may be left in the note. A day that is reckoned from the `year` and
    day of the line needs not stand there, if no other one does.
    """
    left = _DATE.sub(" ", note)
    if not _is_dated_alike(note, line, year=year):
        return False
    counted = _numbers(left) - {str(year - 1), str(year), str(year + 1)}
    if not counted <= _numbers(line):
        return False
    own = {word.text for word in words(fold(speaker))}
    every = {word.text.removesuffix("'s") for word in words(fold(line))}
    for match in _NAME.finditer(left):
        name = fold(match.group()).removesuffix("'s")
        is_name = match.group()[0].isupper() and left[: match.start()].strip() and name not in own
        begun = name[: max(STEM_CHARS, len(name) - 2)]
        if is_name and not any(word.startswith(begun) for word in every):
            return False
    # Of all words: what says nothing in one sentence ("I own it") is the point of another.
    begins = {word[:STEM_CHARS] for word in every} | keys(line)
    stems = set(map(stem, every))

    def holds(word: str) -> bool:
        return (
            word[:STEM_CHARS] in begins
            or stem(word) in stems
            or word.removesuffix("es") in every  # goes
            or word.removesuffix("ies") + "y" in every  # flies
            or _swapped(word, every)
        )

    telling = [word.text.removesuffix("'s") for word in words(fold(left))]
    told = [
        word
        for word in telling
        if not (word in STOP_WORDS or word in _NOBODY or word in own or word.isdecimal())
        and not _is_trifle(word)
    ]
    pairs = [pair for run in unbordered_runs(fold(left)) for pair in _pairs(run)]
    if not told and not pairs:
        return bool(counted)
    held = sum(map(holds, told)) + sum(pair in begins for pair in pairs)
    return held > COVERED_SHARE * (len(told) + len(pairs))


_NOBODY = frozenset(
    ["user", "person", "speaker", "currently", "called", "named", "every", "always"]
)
"""They say nothing of their own."""
_NAME = re.compile(r"(?<![\w'’])[^\W\d_]{2,}(?:['’]s\b)?")
_THOUSANDS = re.compile(r"(?<=\d)[,'’ \u00a0\u202f](?=\d{3}\b)")
_NUMBER_WORDS = "zero one two three four five six seven eight nine ten eleven twelve"
_COUNTED = {word: str(number) for number, word in enumerate(_NUMBER_WORDS.split()) if number > 1}
_MONTH_NAMES = (
    "Jan(?:uary|uar|vier)?|Feb(?:ruary|ruar)?|F[ée]v(?:rier)?|Mar(?:ch|s|zo)?|März|Apr(?:il)?|Avril"
    "|May|Mai|Mayo|June?|Juni|Juin|Junio|July?|Juli|Juillet|Julio|Aug(?:ust)?|Août|Agosto"
    "|Sept?(?:ember|embre)?|O[ck]t(?:ober|obre|ubre)?|Nov(?:ember|embre)?|De[cz](?:ember)?"
)
_MONTH = re.compile(rf"(?<!\w)(?:{_MONTH_NAMES})(?!\w)")
_DATE = re.compile(
    r"\b\d{4}-\d\d(?:-\d\d)?\b|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b"
    rf"|(?:\b\d{{1,2}}(?:st|nd|rd|th|\.)?\s+)?\b(?-i:{_MONTH_NAMES})\b\.?"
    r"(?:\s+\d{1,2}(?:st|nd|rd|th)?\b)?(?:,?\s+\d{4}\b)?",
    re.IGNORECASE,
)


_ISO_DAY = re.compile(r"\b\d{4}-(\d\d)(?:-(\d\d))?\b")
_MONTHS = "jan feb:fev mar apr:avr may:mai jun:jui jul:jui aug:aou:ago sep oct:okt nov dec:dez"


def _months(text: str) -> set[int]:
    """The months that are named in a text, or stand in its days as numbers."""
    begins = {fold(name)[:3].translate(_PLAIN_VOWELS) for name in _MONTH.findall(text)}
    named = {n for n, one in enumerate(_MONTHS.split(), 1) if begins & {*one.split(":")}}
    return named | {int(month) for month, _ in _ISO_DAY.findall(text)}


_PLAIN_VOWELS = str.maketrans("éäû", "eau")


def _is_dated_alike(note: str, line: str, *, year: int) -> bool:
    """Return whether the days of a note are those of the line, or can be reckoned from when it was
    said: a year that is far from that has to stand there, and of a line that names a month the
    day."""
    told = " ".join(_DATE.findall(note))
    there = set(map(int, re.findall(r"\d+", line)))
    years = {int(one) for one in re.findall(r"(?<!\d)\d{4}(?!\d)", told)}
    if not years <= there | {year - 1, year, year + 1}:
        return False
    if not (months := _months(line)):
        return True
    days = {int(one) for one in re.findall(r"(?<![\d-])\d\d?(?!\d)", told)}
    days |= {int(day) for _, day in _ISO_DAY.findall(told) if day}
    return _months(note) <= months and days <= there


def _numbers(text: str) -> set[str]:
    folded = fold(_THOUSANDS.sub("", text))
    found = set(re.findall(r"\d+(?:[.,:/]\d+)*", folded))
    return found | {_COUNTED[word.text] for word in words(folded) if word.text in _COUNTED}


def keys(text: str) -> set[str]:
    """Return the words that say something, by how they begin; in scripts without blanks pairs of
    characters."""
    folded = fold(text)
    found = {
        word.text[:STEM_CHARS]
        for word in words(folded)
        if word.text not in STOP_WORDS and not _is_trifle(word.text)
    }
    return found.union(*map(_pairs, unbordered_runs(folded)))


def _swapped(word: str, among: AbstractSet[str]) -> bool:
    """Return whether a short verb of another language is there in another person: vivo, vive."""
    return word[-1] in "aeiou" and any(word[:-1] + vowel in among for vowel in "aeiou")


def _pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(max(len(run) - 1, 1))]


def _is_trifle(word: str) -> bool:
    """Return whether it is one letter, or a contraction of words that say nothing: I'm, don't."""
    return len(word) < 2 or all(part in STOP_WORDS for part in word.split("'"))
