"""Comparison of short sentences: what they share, where they differ, and whether a quote stands.

Called where facts are written, found and forgotten. Pure. It looks at what can be compared exactly:
words, numbers, negation, the order of who does what. It does not know what a sentence means.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memory.database.rows import storable
from memory.records.facts import StoredFact
from memory.records.words import fold, is_unbordered, squeezed, unbordered_runs, words
from memory.search.fts import STOP_WORDS

ALIKE_MIN = 0.90
"""Plain cosine from which two sentences say the same, unless they `differ` (DESIGN §5)."""
SHARED_MIN = 0.80
"""Of their stems, where there are no embeddings."""

_COUNTED = "zero one two three four five six seven eight nine ten eleven twelve"
_NUMBER_WORDS = {word: str(number) for number, word in enumerate(_COUNTED.split())} | {
    "once": "1",
    "twice": "2",
    "dozen": "12",
    "hundred": "100",
    "thousand": "1000",
}
_TURNS = """
only with without for from before after over under and or but by was were had will would could might
used rarely seldom sometimes occasionally barely nearly almost against except unless
"""
_TURNING = frozenset(_TURNS.split())
"""Small words that change what is said when they come or go."""
_PEOPLE = {
    "user": "user",
    "person": "user",
    **dict.fromkeys(("i", "me"), "user"),
    **dict.fromkeys(("he", "him"), "he"),
    **dict.fromkeys(("they", "them"), "they"),
    **dict.fromkeys(("we", "us"), "we"),
}
"""Who acts or is acted upon, though these words tell nothing of the matter."""
_DIRECTED = "over than to from instead rather by with without for against of"
_BETWEEN = frozenset(_DIRECTED.split())
"""Small words whose two sides tell who or what is which."""
_OWNING = frozenset(["has", "have", "had", "owns", "own", "with"])
_NO_PAST = frozenset(["named", "called"])
_BEFORE_PARTICIPLES = frozenset(["is", "are", "am", "be", "been", "being", "get", "gets"])
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
class Sentence:
    """What stands in a sentence. `stems` are those of its content words, in their order; `every`
    are all its words; `owners` those with a possessive `'s`. `order` is like `stems`, with whoever
    acts and the words between; `past` are verbs that tell of the past, `signs` words with a symbol.
    """

    whole: str
    stems: tuple[str, ...]
    numbers: frozenset[str]
    names: tuple[str, ...]
    every: frozenset[str]
    owners: frozenset[str]
    order: tuple[str, ...]
    past: frozenset[str]
    signs: frozenset[str]
    is_negative: bool


def sentence(text: str) -> Sentence:
    """Take a sentence apart."""
    tidy = _AND.sub("and", " ".join(storable(text).split()))
    folded = _SELF_JOINED.sub(r"\1\2", squeezed(fold(_THOUSANDS.sub("", tidy))))
    found = [word.text for word in words(folded)]
    every = [word.removesuffix("'s") for word in found]
    idle = STOP_WORDS | _LIGHT | NEGATIONS
    runs = unbordered_runs(folded)
    pairs = [run[place : place + 2] for run in runs for place in range(max(1, len(run) - 1))]
    return Sentence(
        whole=folded.strip(" .!?…"),
        stems=(*(_stem_of(word) for word in every if word not in idle), *pairs),
        numbers=frozenset(
            [*_NUMBER.findall(folded), *(_NUMBER_WORDS[w] for w in every if w in _NUMBER_WORDS)]
        ),
        # The first word of the sentence included.
        names=tuple(fold(match[0]).removesuffix("'s") for match in _CAPITAL.finditer(tidy)),
        every=frozenset(every),
        owners=frozenset(_OWNER.findall(folded)),
        # Whoever owns something (`the user's sister`) does nothing to anybody.
        order=(
            *(
                _PEOPLE.get(whole) or _stem_of(word)
                for whole, word in zip(found, every, strict=True)
                if whole in _PEOPLE or word in _BETWEEN or word not in idle
            ),
            *pairs,
        ),
        past=frozenset(_past(every)),
        signs=frozenset(_signs(folded)),
        is_negative=says_no(folded),
    )


def differ(one: Sentence, other: Sentence) -> bool:
    """Return whether two sentences that look alike are not known to say the same.

    Where nothing exact tells them apart or together they differ: two facts that say nearly the
    same do little harm, one that took the place of a true one does.
    """
    return (
        one.numbers != other.numbers
        or one.signs != other.signs
        or one.is_negative != other.is_negative
        or one.past != other.past
        or one.every & _TURNING != other.every & _TURNING
        # Whose family cooks is not who cooks for a family. `Has a daughter` is another way to own.
        or (one.owners != other.owners and not (one.every | other.every) & _OWNING)
        or _is_exchanged(one.order, other.order)
    )


def _is_exchanged(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether each has a word that the other lacks, or two words stand on other sides of a
    third one: who feeds whom, what is preferred over what. What only moves to the begin (`On
    Mondays …`) changes places with nothing."""
    if set(one) - set(other) and set(other) - set(one):
        return True
    mine, others = (
        {word: place for place, word in reversed(list(enumerate(each)))} for each in (one, other)
    )
    both = mine.keys() & others.keys()
    for pivot in both:
        went = {word for word in both if mine[word] < mine[pivot]}
        came = {word for word in both if others[word] < others[pivot]}
        if went - came - {pivot} and came - went - {pivot}:
            return True
    return False


def says_the_same(one: Sentence, other: Sentence, likeness: float | None) -> bool:
    """Return whether two sentences need not both be kept. `likeness` is their plain cosine, if
    known."""
    if one.whole == other.whole:
        return True
    if differ(one, other):
        return False
    together = shared(one, other)
    if likeness is None:
        return together >= SHARED_MIN
    return likeness >= ALIKE_MIN or together == 1.0


def says_more(one: Sentence, other: Sentence) -> bool:
    """Return whether the first one says all that the second one does, and more."""
    return set(one.stems) > set(other.stems)


def shared(one: Sentence, other: Sentence) -> float:
    """Return how many of the stems they share, between 0 and 1 (Jaccard)."""
    mine, others = set(one.stems), set(other.stems)
    either = mine | others
    return len(mine & others) / len(either) if either else float(one.whole == other.whole)


# Tombstones keep hashes of stems (`memory.facts.tombstones`): where this answers otherwise, what
# somebody had forgotten years ago is no longer known by its words, and is learnt again.
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


def _stem_of(word: str) -> str:
    return _NUMBER_WORDS.get(word) or stem(word)


def _past(every: Sequence[str]) -> Iterable[str]:
    """Verbs in the past: `liked`, `has liked`; not `is called`, nor what a perfect says of now
    (`has decided`, `decided`)."""
    for place, word in enumerate(every):
        is_verb = word not in _NO_PAST and not _BEFORE_PARTICIPLES & set(every[:place])
        if is_verb and _PAST.fullmatch(word):
            yield stem(word)


def _signs(folded: str) -> Iterable[str]:
    """Words that a symbol is part of, as in `c++`, `a.b`, `-5` and `🍎`. Marks around words tell
    nothing, and numbers are compared as such."""
    for word in folded.split():
        bare = word.strip(_EDGES)
        if _MINUS.match(word):
            yield f"-{bare}"
        elif _INNER_DOT.search(bare) or any(
            mark in _TELLING_MARKS or unicodedata.category(mark) in _TELLING_KINDS for mark in bare
        ):
            yield bare.removesuffix("'s")


# --- negation -----------------------------------------------------------------------------------
#
# Whether a text says no, in the languages that people write most, by words, and by endings where a
# language says no by them. It takes too much for a no rather than too little: in doubt a fact is
# not kept, or two are, and what was said stays searchable.

_NO = """
no not never none neither nor cannot without nobody nothing nowhere hardly rarely seldom
barely against except unless dislike dislikes disliked hate hates hated avoid avoids refuse refuses
stopped stops quit dont doesnt didnt cant wont isnt arent wasnt isn't aren't wasn't weren't hasn't
haven't hadn't doesn't don't didn't won't can't couldn't shouldn't wouldn't
nicht nichts kein keine keinen keinem keiner keines nie niemals niemand kaum ohne weder gegen
ne pas jamais aucun aucune sans personne rien
nunca jamás ningún ninguno ninguna nada nadie sin tampoco
non mai niente nessuno nessuna senza
não nem nenhum nenhuma ninguém sem nao
niet geen nooit niemand niets zonder
inte ingen inget inga aldrig ej utan ikke ikkje aldri uten intet uden ekki aldrei
nie nigdy żaden żadna żadnego bez nikt nic
nejsem nemám nechci nikdy není nemůžu neumím nejím nepiju nerad nemam
не нет нету никогда никто ничего нельзя без ни ні немає ніколи ніхто
δεν δε μην μη όχι ποτέ χωρίς κανείς τίποτα
değil yok hiç asla hayır
nu nici niciodată fără nem sem soha nincs sincs ei eivät emme ette ilman
tidak bukan belum jangan nggak tanpa không chưa chẳng
नहीं मत ना لا لم لن ليس ليست لست לא אין אף
안 못
"""
# They are no stems. Until 2026-11 there was a second, shorter list for that: a tombstone of before
# may hold one of these as a word, which a match of four in five bears.
NEGATIONS = frozenset(_NO.split())
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
    """Return whether anything in it says no."""
    folded = _JUST_NO.sub("", fold(text))
    return bool(_WITHOUT_BLANKS.search(folded)) or any(
        word.text in NEGATIONS or _ENDS_NO.search(word.text) or _BEGINS_NO.search(word.text)
        for word in words(folded)
    )


# --- quotes -------------------------------------------------------------------------------------

QUOTE_WORDS_MIN, QUOTE_CHARS_MIN = 2, 4
"""Of a quote that is less than the whole message; characters where no blanks part words."""
_QUOTE_MARKS = str.maketrans(dict.fromkeys('"“”„‟«»‹›「」『』*_~`', None) | {"…": "..."})
_QUOTE_EDGES = " \t\n.,:;!?'-–—()[]"


def bare(text: str) -> str:
    """Return a text as quotes are looked for in it: folded, without marks and line breaks."""
    return squeezed(fold(text.translate(_QUOTE_MARKS))).strip(_QUOTE_EDGES)


def stands_in(quote: str, said: str) -> bool:
    """Return whether a quote stands in what was said: whole words in one piece, whatever the case,
    the white space and the quotation marks; and enough of them to mean anything."""
    needle, text = bare(quote), bare(said)
    if not sentence(needle).stems and not says_no(needle):
        return False
    is_enough = (
        len(needle) >= QUOTE_CHARS_MIN
        if is_unbordered(needle)
        else len(words(needle)) >= QUOTE_WORDS_MIN
    )
    return needle == text or (is_enough and place_of_words(needle, text) is not None)


def place_of_words(needle: str, text: str) -> int | None:
    """Return where whole words stand in a text, both as of `bare`; None if they do not."""
    found = re.search(rf"(?<!\w){re.escape(needle)}(?!\w)", text)
    if found is None and is_unbordered(needle):
        at = text.find(needle)
        return at if at >= 0 else None
    return None if found is None else found.start()


# --- relevance ------------------------------------------------------------------------------------
#
# A search always finds something. What is not about the message is left out before anything
# reaches a prompt.

CLOSE_MIN = 0.35
"""Plain cosine from which a text has to do with a message, whatever words it shares with it."""
FAINT_MIN = 0.12
"""Enough for a short fact about the person: `prefers metric units`, and `convert 5 miles`."""
RELEVANT_SHARED_MIN = 0.40
"""Stems that they share, by the geometric mean of how many each has."""
SHORT_STEMS_MAX = 7
HEAD_CHARS, TAIL_CHARS = 1_500, 500
"""Of a long message what is searched by: what is asked stands at its begin or at its end."""
_MATTERS = frozenset(["project", "decision"])
"""Categories of facts that are about a matter, and of no use to any other matter."""
_NO_NAMES = STOP_WORDS | {"project", "projects", "team", "user"}
"""They begin sentences, with a capital."""

_TALK = """
hi hello hey hiya yo good morning afternoon evening night thanks thank thx cheers ok okay yes no yep
nope yeah sure great cool nice perfect fine well bye goodbye see later soon welcome sorry lol haha
hmm oh wow right correct done go ahead continue stop wait maybe exactly
lot lots much job one got it sounds problem course agreed understood noted appreciated everyone
hallo moin servus danke bitte ja nein super tschüss guten tag morgen abend
merci bonjour salut oui non gracias hola adios vale
"""
_OF_REMEMBERING = """
remember know knew known memory memories remembered facts fact stored saved learnt learned tell told
everything anything something all things thing list show summary summarize summarise so far info
information say said weißt weisst erinnerst alles sais souviens tout sabes recuerdas todo
"""
_SMALL = frozenset(_TALK.split()) | STOP_WORDS
_REMEMBERING = frozenset(_OF_REMEMBERING.split())
_REMEMBER = frozenset(
    ["remember", "know", "knew", "memory", "memories", "facts", "learnt", "learned"]
)
_SELF = frozenset(["me", "my", "mine", "myself", "i", "mich", "mir", "mein", "meine", "moi", "mon"])


def gist(message: str) -> str:
    """The message, without the middle of a long one."""
    if len(message) <= HEAD_CHARS + TAIL_CHARS:
        return message
    return f"{message[:HEAD_CHARS]} {message[-TAIL_CHARS:]}"


def is_small_talk(message: str) -> bool:
    """Return whether a message is a greeting or the like, or has no word at all; never where it
    speaks of whoever writes it."""
    said = sentence(message)
    return (
        not said.every & _SELF
        and not said.numbers
        and (not said.stems or all(word in _SMALL for word in said.every))
    )


def is_about_self(message: str) -> bool:
    """Return whether it asks what is known of whoever asks, and of nothing in particular."""
    every = [word.text for word in words(fold(message))]
    if every == ["who", "am", "i"]:
        return True
    telling = [word for word in every if word not in STOP_WORDS]
    asks = all(word in _REMEMBERING for word in telling) and not _REMEMBER.isdisjoint(telling)
    return asks and not _SELF.isdisjoint(every)


def speaks_of_self(message: str) -> bool:
    """Whether somebody speaks of themselves: `Plan my week`, `Where do I live?`"""
    return not sentence(message).every.isdisjoint(_SELF)


def fitting(message: str, fact: StoredFact, likeness: float | None) -> bool:
    """Return whether a fact has to do with a message.

    A matter needs to be spoken of: by name, or closely. What is said of the person in few words
    may bear on much, so little is asked of it, and nothing where they speak of themselves.
    """
    asked, known = sentence(message), sentence(fact.text)
    mine, others = set(asked.stems), set(known.stems)
    shared = len(mine & others)
    # The geometric mean of how many each has: a long message shares a few words with anything.
    is_shared = bool(shared) and shared / math.sqrt(len(mine) * len(others)) >= RELEVANT_SHARED_MIN
    if is_shared or (likeness or 0.0) >= CLOSE_MIN:
        return True
    is_long = len(known.stems) > SHORT_STEMS_MAX
    if is_long or fact.category in _MATTERS or "project" in known.every:
        return any(name in asked.every for name in known.names if name not in _NO_NAMES)
    return speaks_of_self(message) or bool(shared) or (likeness or 0.0) >= FAINT_MIN
