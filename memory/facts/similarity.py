"""What two short sentences share and where they differ: stems, numbers, names, negation.

Called where facts are written: for what is nearly the same, and for what was forgotten. Pure, and
meant for English; of other languages it knows the words alone.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memory.database.stored_text import storable
from memory.records.words import fold, is_unbordered, squeezed, unbordered_runs, words
from memory.search.fts import STOP_WORDS

ALIKE_MIN = 0.90
"""Plain cosine from which two sentences say the same, unless they `differ` (DESIGN §5)."""
NEAR_MIN = 0.75
"""From here on they may say the same: a model is asked."""
SHARED_MIN = 0.80
"""Of their stems, where there are no embeddings."""
NEAR_SHARED_MIN = 0.50

_NO = """
not no never none nothing nobody neither nor cannot without against except unless hardly
dislike dislikes disliked hate hates hated avoid avoids refuse refuses stopped stops quit
isn't aren't wasn't weren't hasn't haven't hadn't doesn't don't didn't won't can't couldn't
shouldn't wouldn't nicht kein keine keinen nie ohne gegen pas jamais sans nunca sin
non mai senza não sem niet geen nooit zonder inte ej aldrig utan ikke ikkje aldri uden uten
nie nigdy bez ne není nikdy не нет ни ніколи никогда без tidak bukan tanpa değil hiç nem soha
ei không لا ليس لم لن לא אין नहीं δεν μη ekki aldrei
"""
_COUNTED = "zero one two three four five six seven eight nine ten eleven twelve"
_OPPOSED = """
before/after with/without always/sometimes always/rarely often/rarely first/last
morning/evening morning/afternoon morning/night day/night buy/sell bought/sold
start/stop started/stopped begin/end open/close arrive/leave love/hate hot/cold
warm/cold early/late long/short left/right more/less most/least new/old
cheap/expensive single/married married/divorced mother/father sister/brother
son/daughter wife/husband increase/decrease above/below inside/outside private/public
for/against and/or all/some lend/borrow lent/borrowed win/lose won/lost on/off
"""
_NEGATIONS = frozenset(_NO.split())
_NUMBER_WORDS = {word: str(number) for number, word in enumerate(_COUNTED.split())} | {
    "once": "1",
    "twice": "2",
    "dozen": "12",
    "hundred": "100",
    "thousand": "1000",
}
_OPPOSITES = tuple(frozenset(pair.split("/")) for pair in _OPPOSED.split())
_DIRECTED = "over than to from before after instead rather by with without for against of"
_TURNS = """
only with without for from before after over under and or but by was were had will would could might
used rarely seldom sometimes occasionally barely nearly almost
"""
_PEOPLE = {
    "user": "user",
    "person": "user",
    **dict.fromkeys(("i", "me"), "user"),
    **dict.fromkeys(("he", "him"), "he"),
    **dict.fromkeys(("they", "them"), "they"),
    **dict.fromkeys(("we", "us"), "we"),
}
"""Who acts or is acted upon, though these words tell nothing of the matter."""
_BEFORE_PARTICIPLES = frozenset(["is", "are", "am", "be", "been", "being", "get", "gets"])
_PERFECT = frozenset(["has", "have"])
_BETWEEN = frozenset(["just", "recently", "already", "always", "also", "now"])
_ORDER = frozenset(["first", "then", "later", "better", "worse", "more", "less", "rather"])
_DAYS = """
monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays
fridays saturdays sundays january february march april may june july august september october
november december
"""
_CALENDAR = frozenset(_DAYS.split())
_OWNING = frozenset(["has", "have", "had", "owns", "own", "with"])
_DIRECTIONS = frozenset(_DIRECTED.split())
_TURNING = frozenset(_TURNS.split())
"""Small words that change what is said when they come or go."""
_SAME = {
    word: words[0]
    for words in (
        ("like", "likes", "liked", "enjoy", "enjoys", "loves", "love", "liking"),
        ("take", "takes", "drink", "drinks"),
        ("call", "called", "named", "name"),
        ("live", "lives", "living", "reside", "resides"),
        ("favorite", "favourite"),
        ("color", "colour"),
        ("center", "centre"),
        ("car", "automobile"),
        ("phone", "telephone"),
        ("big", "large"),
        ("begin", "start", "starts"),
    )
    for word in words
}
_IDLE = "every each currently user person really very quite still own owns"
_LIGHT = frozenset(_IDLE.split())
"""Words that stand beside what is said and add nothing to it."""
_SELF_JOINED = re.compile(r"\b(e)-(mails?)\b")
_OWNER = re.compile(r"\b(\w+)'s\b")
_THOUSANDS = re.compile(r"(?<=\d)[,'’ \u00a0\u202f](?=\d{3}\b)")
_NUMBER = re.compile(r"\d+(?:[.:/-]\d+)*")
_ENDINGS = (("ies", "y"), ("sses", "ss"), ("ing", ""), ("ed", ""), ("es", ""), ("s", ""))
_STEM_MIN = 3
_PAST = re.compile(r"[^\Waeiouy]*[aeiouy]\w*(?<!e)ed")
_TELLING_MARKS = frozenset("#@%/\\&")
_TELLING_KINDS = frozenset(["So", "Sm", "Sc", "Sk"])
_INNER_DOT = re.compile(r"[^\W\d]\.\w|\w\.[^\W\d]")
_MINUS = re.compile(r"-\d")
_EDGES = ".,;:!?…\"'“”„«»()[]{}*_~`-"
_AND = re.compile(r"(?<=\s)&(?=\s)")
_CAPITAL = re.compile(r"(?<![\w'’])[^\W\d_a-z][\w'’-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class WordTurn:
    """A word like `over` with the stems on both sides of it."""

    word: str
    before: frozenset[str]
    after: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """What stands in a sentence. `stems` are those of its content words, in their order; `every`
    are all its words; `owners` those with a possessive `'s`. `order` is like `stems`, with whoever
    acts; `past` are the stems of verbs that tell of the past, `signs` the words with a symbol."""

    whole: str
    stems: tuple[str, ...]
    numbers: frozenset[str]
    names: tuple[str, ...]
    every: frozenset[str]
    turns: tuple[WordTurn, ...]
    owners: frozenset[str]
    order: tuple[str, ...]
    past: frozenset[str]
    signs: frozenset[str]

    @property
    def negations(self) -> int:
        """How often it says no, modulo what cancels out is not looked at."""
        return len(self.every & _NEGATIONS)


def sentence(text: str) -> Sentence:
    """Takes a sentence apart."""
    tidy = _AND.sub("and", " ".join(storable(text).split()))
    folded = _SELF_JOINED.sub(r"\1\2", squeezed(fold(_THOUSANDS.sub("", tidy))))
    found = [word.text for word in words(folded)]
    every = [word.removesuffix("'s") for word in found]
    return Sentence(
        whole=folded.strip(" .!?…"),
        stems=(*_stems(every), *_pairs(folded)),
        numbers=frozenset(_numbers(folded, every)),
        names=tuple(_names(tidy)),
        every=frozenset(every),
        turns=tuple(_turns(every)),
        owners=frozenset(_OWNER.findall(folded)),
        order=tuple(_order(found)),
        past=frozenset(_past(every)),
        signs=frozenset(_signs(folded)),
    )


def differ(one: Sentence, other: Sentence) -> bool:
    """Whether two sentences that look alike surely do not say the same."""
    return (
        one.numbers != other.numbers
        or one.signs != other.signs
        or one.negations != other.negations
        or one.every & _TURNING != other.every & _TURNING
        or _names_differ(one, other)
        or _is_turned_round(one, other)
        or _changes_places(one, other)
        or _is_of_another_time(one, other)
        or _owns_another(one, other)
        or _are_opposed(one, other)
        or _is_exchanged(one, other)
    )


def says_the_same(one: Sentence, other: Sentence, likeness: float | None) -> bool:
    """Whether two sentences need not both be kept. `likeness` is their plain cosine, if known."""
    if one.whole == other.whole:
        return True
    if differ(one, other):
        return False
    together = shared(one, other)
    if likeness is None:
        return together >= SHARED_MIN
    return likeness >= ALIKE_MIN or together == 1.0


def says_more(one: Sentence, other: Sentence) -> bool:
    """Whether the first one says all that the second one does, and more."""
    return set(one.stems) > set(other.stems)


def may_say_the_same(one: Sentence, other: Sentence, likeness: float | None) -> bool:
    """Whether it takes more than rules to tell."""
    if likeness is None:
        return shared(one, other) >= NEAR_SHARED_MIN
    return likeness >= NEAR_MIN


def shared(one: Sentence, other: Sentence) -> float:
    """How many of the stems they share, between 0 and 1 (Jaccard)."""
    mine, others = set(one.stems), set(other.stems)
    either = mine | others
    return len(mine & others) / len(either) if either else float(one.whole == other.whole)


def stem(word: str) -> str:
    """A folded English word without its light ending. Never shorter than three letters."""
    if word in _SAME:
        return _SAME[word]
    if len(word) <= _STEM_MIN or not word.isalpha():
        return word
    for ending, instead in _ENDINGS:
        cut = word.removesuffix(ending)
        if cut == word or len(cut) < _STEM_MIN or (ending == "s" and cut.endswith(("s", "u", "i"))):
            continue
        return stem(cut) if ending == "s" else _SAME.get(cut + instead, _settled(cut + instead))
    return _settled(word)


def _settled(stemmed: str) -> str:
    """`runn` and `run`, `hik` and `hike` are one."""
    if len(stemmed) > _STEM_MIN and stemmed[-1] == stemmed[-2] and stemmed[-1] not in "lsz":
        return stemmed[:-1]
    return stemmed[:-1] if len(stemmed) > _STEM_MIN and stemmed.endswith("e") else stemmed


def _stems(every: Iterable[str]) -> list[str]:
    idle = STOP_WORDS | _LIGHT | _NEGATIONS
    telling = (word for word in every if word not in idle)
    return [_NUMBER_WORDS.get(word) or stem(word) for word in telling]


def _order(found: Iterable[str]) -> Iterable[str]:
    """Whoever owns something (`the user's sister`) does nothing to anybody."""
    idle = STOP_WORDS | _LIGHT | _NEGATIONS
    for whole in found:
        word = whole.removesuffix("'s")
        if whole in _PEOPLE:
            yield _PEOPLE[whole]
        elif word not in idle:
            yield _NUMBER_WORDS.get(word) or stem(word)


def _past(every: Sequence[str]) -> Iterable[str]:
    """Stems of verbs in the past: `liked`, `has liked`; not `is called`, nor `has a son named`."""
    for place, word in enumerate(every):
        if not _PAST.fullmatch(word) or word == "named":
            continue
        before = [earlier for earlier in every[:place] if earlier not in _BETWEEN]
        is_perfect = bool(before) and before[-1] in _PERFECT
        if is_perfect or not (_BEFORE_PARTICIPLES | _PERFECT) & set(before):
            yield stem(word)


def _signs(folded: str) -> Iterable[str]:
    """Words that a symbol is part of, as in `c++`, `a.b`, `-5` and `🍎`. Marks around words tell
    nothing, and numbers are compared as such."""
    for word in folded.split():
        bare = word.strip(_EDGES)
        if _MINUS.match(word):
            yield f"-{bare}"
        elif _INNER_DOT.search(bare) or any(_is_telling(mark) for mark in bare):
            yield bare.removesuffix("'s")


def _is_telling(mark: str) -> bool:
    if mark.isalnum():
        return False
    return mark in _TELLING_MARKS or unicodedata.category(mark) in _TELLING_KINDS


def _turns(every: Sequence[str]) -> Iterable[WordTurn]:
    for place, word in enumerate(every):
        if word in _DIRECTIONS:
            before, after = _stems(every[:place]), _stems(every[place + 1 :])
            yield WordTurn(word=word, before=frozenset(before), after=frozenset(after))


def _pairs(folded: str) -> list[str]:
    if not is_unbordered(folded):
        return []
    runs = unbordered_runs(folded)
    return [run[place : place + 2] for run in runs for place in range(max(1, len(run) - 1))]


def _numbers(folded: str, every: Iterable[str]) -> Iterable[str]:
    yield from _NUMBER.findall(folded)
    yield from (_NUMBER_WORDS[word] for word in every if word in _NUMBER_WORDS)


def _names(tidy: str) -> Iterable[str]:
    """Words that begin with a capital, the first one of the sentence included."""
    for match in _CAPITAL.finditer(tidy):
        name = fold(match[0])
        yield name.removesuffix("'s")


def _names_differ(one: Sentence, other: Sentence) -> bool:
    """Whether one names something that does not stand in the other, in whatever case."""
    return any(
        not {name, stem(name)} & {*there.names, *there.every, *there.stems}
        and name not in STOP_WORDS | _LIGHT
        for here, there in ((one, other), (other, one))
        for name in here.names
    )


def _is_turned_round(one: Sentence, other: Sentence) -> bool:
    """Tea over coffee is not coffee over tea, and who lends is not who borrows."""
    if set(one.stems) != set(other.stems):
        return False
    if (one.every & _ORDER) and one.stems != other.stems:
        return True
    both = (set(one.names) & set(other.names)) - _CALENDAR
    in_order = [[name for name in each.names if name in both] for each in (one, other)]
    if in_order[0] != in_order[1]:
        return True
    after_in_other = {turn.word: turn for turn in other.turns}
    return any(
        turn.before & there.after and turn.after & there.before
        for turn in one.turns
        if (there := after_in_other.get(turn.word)) is not None
    )


def _changes_places(one: Sentence, other: Sentence) -> bool:
    """Whether two words stand on other sides of a third one: who feeds whom. What only moves to
    the begin (`On Mondays …`) changes places with nothing."""
    mine, others = _places(one.order), _places(other.order)
    both = mine.keys() & others.keys()
    for pivot in both:
        went = {word for word in both if mine[word] < mine[pivot]}
        came = {word for word in both if others[word] < others[pivot]}
        if went - came - {pivot} and came - went - {pivot}:
            return True
    return False


def _places(order: Sequence[str]) -> dict[str, int]:
    """Where each stem stands first."""
    return {word: place for place, word in reversed(list(enumerate(order)))}


def _is_of_another_time(one: Sentence, other: Sentence) -> bool:
    """Whether what one tells of the past, the other tells of now."""
    return any(
        here.past & (set(there.order) - there.past) for here, there in ((one, other), (other, one))
    )


def _owns_another(one: Sentence, other: Sentence) -> bool:
    """Whose family cooks is not who cooks for a family. `Has a daughter` is another way to own."""
    return one.owners != other.owners and not (one.every | other.every) & _OWNING


def _are_opposed(one: Sentence, other: Sentence) -> bool:
    mine, others = one.every - other.every, other.every - one.every
    return any(pair & mine and pair & others for pair in _OPPOSITES)


def _is_exchanged(one: Sentence, other: Sentence) -> bool:
    """Whether each has a content word that the other lacks: of a meaning close by, or of another
    of the same kind, which nothing here can tell apart."""
    mine, others = set(one.stems), set(other.stems)
    return bool(mine - others) and bool(others - mine)
