"""Whether a reply claims that something was done (guard (b), SPEC §8.6), and whether it is of no
help. Called by the loop.

A claim is of a kind, and only an effect of that kind in the turn makes it true: a stored fact sends
no mail. Only what the reply itself says outright counts: not code, not what it quotes or drafts,
nothing supposed, denied or of an earlier time. In doubt there is no claim: to correct a true
answer is worse.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from memory.records.words import FoundPhrase, Phrases, fold, phrases_of, read_list, squeezed, words

# --- unhelpful ----------------------------------------------------------------------------------
#
# Whether a reply is of no help, so that a rule's `auto_invoke` may try instead (SPEC §7).
#
# Called after a turn without any tool call. In doubt a reply is helpful: to replace a good answer
# is worse than to keep a poor one. So words in code or quotation marks are somebody else's, and "if
# I cannot …" is no refusal.

SHORT_CHARS = 100
"""A reply of fewer characters is judged by list A too."""

_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|^[ \t]*>[^\n]*", re.DOTALL | re.MULTILINE)
_QUOTED = re.compile(r"\"[^\"\n]{1,300}\"|“[^”\n]{1,300}”|„[^“”\n]{1,300}[“”]|«[^»\n]{1,300}»")
_SENTENCE_END = re.compile(r"(?<=[.!?…:;])\s|\n")
_IF = Phrases(
    (
        *("if", "when", "whenever", "unless", "in case", "should"),
        *("wenn", "falls", "sofern", "sobald", "si", "quand", "lorsque", "cuando"),
    ),
    endings=False,
)
_WITH = frozenset({"with", "without", "mit", "ohne", "avec", "sans", "con", "sin"})
_HOW_TO = Phrases(
    (
        *(
            "how do i",
            "how do you",
            "how do we",
            "how can i",
            "how can you",
            "how can we",
            "how to",
        ),
        *("how would i", "how should i", "how could i", "how does one", "how does", "how do"),
        *("what do i do", "wie kann ich", "wie kann man", "wie mache ich", "wie macht man"),
        *("wie geht", "wie funktioniert", "wie lösche ich", "wie bekomme ich", "wie stelle ich"),
        *("comment faire", "comment puis-je", "comment est-ce que", "comment je", "comment on"),
        *("cómo puedo", "cómo se", "cómo hago", "cómo hacer"),
    ),
    endings=False,
)


def looks_unhelpful(reply: str, list_a: str, list_b: str, *, message: str = "") -> bool:
    """Return whether the reply is of no help: empty, short with a phrase of list A in it, or with
    one of list B at any length. The lists are `prompts/unhelpful_short.md` and `unhelpful_any.md`.

    `message` is what it answers, if known: a longer answer to "how do I …" counts as help, whatever
    words are in it.
    """
    bare = reply.strip()
    if not bare:
        return True
    own = own_sentences(bare)
    is_short = len(bare) < SHORT_CHARS
    if is_short and _is_said_outright(list_a, own):
        return True
    return (is_short or not asks_how(message)) and _is_said_outright(list_b, own)


def asks_how(message: str) -> bool:
    """Return whether a message asks how something is done."""
    return bool(_HOW_TO.first(squeezed(fold(message))))


def own_sentences(reply: str) -> list[str]:
    """The sentences that the reply says itself, folded: without code and what it quotes."""
    plain = _QUOTED.sub(' "" ', _CODE.sub(" `` ", reply))
    return [squeezed(fold(part)) for part in _SENTENCE_END.split(plain) if part.strip()]


def _is_said_outright(phrases: str, sentences: list[str]) -> bool:
    """Return whether a phrase is said, not supposed: "if there is …", "with no … at hand"."""
    listed = phrases_of(read_list(phrases), endings=False)
    for sentence in sentences:
        for hit in listed.all(sentence):
            clause = sentence[: hit.start].rpartition(",")[2]
            is_with = any(word.text in _WITH for word in words(clause)[-1:])
            if not is_with and not _IF.first(clause):
                return True
    return False


CLAIM_CHARS_MAX = 120

SENTENCE_CHARS_MAX = 600
"""Of a longer sentence the beginning is looked at."""

GAP_WORDS_MAX = 10
"""Words that may stand where a phrase of the list has `…`."""


class ClaimKind(StrEnum):
    """What is said to be done; the sections of the word list. DONE is anything at all."""

    SENT = "sent"
    SCHEDULED = "scheduled"
    SAVED = "saved"
    DELETED = "deleted"
    DONE = "done"


_SECTIONS = {kind.value: kind for kind in ClaimKind}
ANYTHING = frozenset(ClaimKind)
_GONE = frozenset({ClaimKind.DELETED, ClaimKind.DONE})
_SENT = frozenset({ClaimKind.SENT, ClaimKind.DONE})
_KEPT = frozenset({ClaimKind.SAVED, ClaimKind.DONE})
_CHANGED = _KEPT | _GONE
_PLANNED = _KEPT | {ClaimKind.SCHEDULED}

BACKED_BY = {
    **dict.fromkeys(("send_message", "send_file", "react"), _SENT),
    **dict.fromkeys(("remind_me", "schedule_job", "record_event", "run_job"), _PLANNED),
    "update_job": _PLANNED | _GONE,
    **dict.fromkeys(("store_fact", "append_notes", "save_document", "create_skill"), _KEPT),
    "append_file": _KEPT,
    # An entry that is taken out of a list, or a fact that is replaced, is gone.
    **dict.fromkeys(("write_file", "edit_file", "update_fact", "update_profile"), _CHANGED),
    "update_skill": _CHANGED,
    **dict.fromkeys(("forget_fact", "remove_document", "remove_job"), _GONE),
}
"""What an effect of each tool of ours makes true. Any other tool (a program, a subagent, a tool of
an MCP server) may have done anything."""

_WORDS_OF = {
    ClaimKind.SENT: "sent",
    ClaimKind.SCHEDULED: "scheduled",
    ClaimKind.SAVED: "saved or changed",
    ClaimKind.DELETED: "deleted",
    ClaimKind.DONE: "sent, saved or changed",
}

_NOT_NOW = Phrases(
    (
        *("earlier", "yesterday", "before", "previously", "ago", "this morning", "last time"),
        *("last week", "last night", "last month", "last year", "last monday", "last friday"),
        *("if", "when", "once", "after", "until", "unless", "would", "could", "should", "might"),
        *("not yet", "whether", "perhaps", "maybe", "i think", "i believe", "make sure"),
        *(
            "above",
            "below",
            "previous message",
            "last message",
            "in this chat",
            "as if",
            "at the start",
        ),
        *("gestern", "vorhin", "wenn", "sobald", "falls", "nachdem", "würde", "könnte", "ob"),
        *("noch nicht", "vielleicht", "oben", "unten", "letzte woche", "vorige woche"),
        *("hier", "si", "quand", "lorsque", "après que", "peut-être", "ci-dessus", "ce matin"),
        *("ayer", "cuando", "después de", "todavía no", "quizás", "arriba", "esta mañana"),
        *("he said", "she said", "they said", "you said", "wrote that", "says that", "told me"),
        *("said that", "says", "according to", "laut", "at the beginning"),
    ),
    endings=False,
)
_NO = frozenset(
    {
        *("not", "never", "no", "nothing", "nobody", "without", "neither", "cannot"),
        *("nicht", "nichts", "nie", "kein", "keine", "keinen", "keiner"),
        *("pas", "rien", "jamais", "aucun", "aucune", "nada", "nunca", "ningún", "ninguna"),
    }
)
_NO_SHORT = ("n't", "n’t")

_FILLER = re.compile(
    r"\b(?:already|just|now|also|successfully|finally|both|all|therefore|schon|bereits|gerade|"
    r"soeben|eben|jetzt|auch|erfolgreich|déjà|bien|maintenant|aussi|ya|también|go(?:ne|) ahead and|"
    r"went ahead and)\b,? ?"
)
"""What may stand between the words of a claim and changes nothing about it."""

_OF_TEXT = frozenset(
    {
        *("text", "sentence", "sentences", "paragraph", "paragraphs", "comma", "commas", "word"),
        *(
            "words",
            "wording",
            "passive",
            "duplicates",
            "lines",
            "bullet",
            "bullets",
            "typo",
            "typos",
        ),
        *("spelling", "heading", "translation", "satz", "sätze", "absatz", "wort", "komma"),
        *("phrase", "phrases", "paragraphe", "mot", "virgule", "frase", "frases", "párrafo"),
    }
)
"""Of what a reply writes itself: who edits a text of the chat removes and adds, and changes no
file."""

_CLAUSE_BEGINS = re.compile(
    r"(?:[^\w ] ?|\b(?:and|but|so|then|because|as|confirm that|und|aber|denn|dann|et|mais|donc|"
    r"y|pero|e) )$"
)
"""What stands before a claim: "the list I sent you" is none."""

_OPENING = re.compile(
    r"^(?:\W|(?:done|ok|okay|sure|great|all set|got it|perfect|all right|alright|yes|of course|"
    r"certainly|erledigt|fertig|gut|klar|ja|hecho|listo|sí|fait|c'est fait|voilà|oui)\b)+"
)
_SINGLE_QUOTED = re.compile(r"(?<!\w)['‘](?:[^'’\n]|(?<=\w)['’](?=\w)){1,300}['’](?!\w)")
_HANDED_OVER = re.compile(
    r"\b(?:draft\w*|translat\w*|example|means?|wording|suggest\w*|versions?|reads?|proofread\w*|"
    r"corrected|rewritten|says|said|sagt|dit|dice|in (?:english|german|french|spanish)|"
    r"auf (?:deutsch|englisch)|übersetz\w*|entwurf|beispiel|vorschlag|brouillon|traduction|exemple|"
    r"borrador|traducción|ejemplo)\b"
    r"[^\n:]{0,80}:[*_]*(?:[ \t]*\n.*|[^\n]*)",
    re.IGNORECASE | re.DOTALL,
)
"""Words that the reply hands over as a text: the rest of its line, or of all where a line ends."""
_LETTER = re.compile(
    r"\n[ \t>*_]*(?:(?:subject|betreff|objet|asunto)[*_]*:|(?:dear|hi|hello|hey|hallo|liebe[r]?|"
    r"sehr geehrte[r]?|bonjour|chère?|hola|querid[oa])\b[^.!?\n]{0,40},[ \t]*\n).*",
    re.IGNORECASE | re.DOTALL,
)
_ENDS_LETTER = re.compile(r"\n[ \t]*(?:-{3,}|\*{3,}|_{3,})[ \t]*\n")
_BY_OTHERS = re.compile(
    r"\b(?:by (?!me\b|e-?mail\b|mail\b|post\b)|von (?!mir\b)|par (?!moi\b|mail\b|e-mail\b)|"
    r"por (?!mí\b|correo\b))"
)
_TELL = Phrases(
    (
        *("what", "what's", "when", "when's", "who", "where", "which", "why", "is", "are", "was"),
        *("were", "did", "does", "do", "has", "have", "am", "any", "tell me", "show me", "list"),
        *("give me", "sum up", "summarize", "summarise", "translate", "explain", "describe"),
        *("proofread", "check", "read", "look up", "find", "write me", "draft", "remind me what"),
        *("was", "wann", "wer", "wo", "welche", "warum", "ist", "sind", "hat", "habe", "gibt"),
        *("zeig", "sag mir", "erkläre", "übersetze", "fasse", "quand", "qui", "où", "que", "est"),
        *("quel", "quelle", "est-ce que", "dis-moi", "montre", "traduis", "résume", "qué"),
        *("cuándo", "quién", "dónde", "cuál", "está", "dime", "muestra", "traduce", "resume"),
    ),
    endings=False,
)
_WISH = Phrases(
    (
        *("can you", "could you", "would you", "will you", "can i", "could we", "please"),
        *("kannst du", "könntest du", "können sie", "bitte", "peux-tu", "pouvez-vous"),
        *("pourrais-tu", "s'il te plaît", "puedes", "podrías", "por favor"),
    ),
    endings=False,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What is said to be done, and the sentence that says it, shortened."""

    kind: ClaimKind
    text: str

    @property
    def correction(self) -> str:
        """Return what a person reads below a reply that keeps saying it."""
        return f"_(To be exact: nothing was {_WORDS_OF[self.kind]} just now.)_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """What a turn has done, and whether its reply may be telling of what is, not of what it did:
    something was read, or the person asked to be told."""

    done: frozenset[ClaimKind] = frozenset()
    tells: bool = False


def asks_to_be_told(message: str) -> bool:
    """Return whether it asks for words, not for something to be done: "when is …", "translate
    …"."""
    folded = squeezed(fold(message))
    if asks_how(folded):
        return True
    if _WISH.first(folded):
        return False
    opens = any(hit.start == 0 for hit in _TELL.first(_OPENING.sub("", folded)).values())
    return opens or folded.endswith("?")


class _Phrase(NamedTuple):
    """A line of the list: a head, and a tail where a gap (`…`) is between them. Of its `marks` `^`
    says that it stands only at the beginning of a sentence, `$` that it is the whole sentence, and
    `~` that it may tell how things are, which nobody has to have done."""

    kind: ClaimKind
    marks: str
    head: str
    tail: str


_SAYS_I = ("i ", "ich ", "j'ai ", "je ", "he ", "lo ", "le envié")
"""Who begins with the one that did it begins a clause: "the list I sent you" is no claim."""


class ClaimWords:
    """The list `prompts/words_claims.md`, made ready."""

    def __init__(self, text: str) -> None:
        """Lines before any `[section]` are of the kind DONE: so are all of a list without any."""
        self._text = text

    @cached_property
    def _list(self) -> tuple[list[_Phrase], list[str], Phrases]:
        """Made when the first reply is looked at: some milliseconds that no start waits for."""
        phrases, kind = list[_Phrase](), ClaimKind.DONE
        for line in read_list(self._text):
            if line.startswith("[") and line.endswith("]"):
                kind = _SECTIONS.get(line[1:-1].strip(), ClaimKind.DONE)
                continue
            bare = line.lstrip("~^ ").rstrip("$ ")
            marks = line[: len(line) - len(line.lstrip("~^ "))] + line[-1]
            head, _, tail = (part.strip() for part in bare.partition("…"))
            phrases.append(_Phrase(kind, marks, head, tail))
        pieces = list({piece: None for one in phrases for piece in one[2:] if piece})
        return phrases, pieces, Phrases(pieces, endings=False)

    def unbacked(self, reply: str, ledger: Ledger) -> Claim | None:
        """Return the first sentence that claims what the turn has not done; None for none."""
        # Without the texts that it hands over: drafts, letters, translations.
        parts = (_SINGLE_QUOTED.sub(' "" ', part) for part in _ENDS_LETTER.split(reply))
        own = "\n".join(_HANDED_OVER.sub(" ", _LETTER.sub(" ", part)) for part in parts)
        for whole in own_sentences(own):
            if whole.endswith("?"):
                continue
            sentence = whole[:SENTENCE_CHARS_MAX]
            for kind in self._kinds(sentence, tells=ledger.tells):
                if kind not in ledger.done and not _is_other(sentence, kind):
                    shown = sentence.strip().rstrip(".!:;")
                    is_long = len(shown) > CLAIM_CHARS_MAX
                    return Claim(
                        kind=kind, text=shown[: CLAIM_CHARS_MAX - 1] + "…" if is_long else shown
                    )
        return None

    def _kinds(self, sentence: str, *, tells: bool) -> list[ClaimKind]:
        """Return the kinds of what it claims."""
        plain = squeezed(_FILLER.sub("", sentence.replace("'ve ", " have ")))
        plain = _OPENING.sub("", plain)
        phrases, pieces, lookup = self._list
        hits: dict[str, list[FoundPhrase]] = {}
        for hit in lookup.all(plain):
            hits.setdefault(pieces[hit.phrase], []).append(hit)
        passes_over = bool(hits) and (tells or _BY_OTHERS.search(plain) is not None)
        return [
            one.kind
            for one in phrases
            if one.head in hits
            and not (passes_over and "~" in one.marks)
            and any(_stands(one, head, plain, hits) for head in hits[one.head])
        ]


def _stands(
    phrase: _Phrase, head: FoundPhrase, plain: str, hits: Mapping[str, Sequence[FoundPhrase]]
) -> bool:
    before = plain[: head.start]
    if phrase.head.startswith(_SAYS_I) and before and not _CLAUSE_BEGINS.search(before):
        return False
    if "^" in phrase.marks and before:
        return False
    if "$" in phrase.marks and re.search(r"\w", plain[head.end :]):
        return False
    between = (plain[head.end : tail.start] for tail in hits.get(phrase.tail, ()))
    # They are one phrase where no other clause stands between them.
    return not phrase.tail or any(
        text[:1] == " " and "," not in text and len(words(text)) <= GAP_WORDS_MAX
        for text in between
    )


def _is_other(sentence: str, kind: ClaimKind) -> bool:
    """Return whether a sentence speaks of another time, supposes, denies, or edits a text of the
    chat."""
    if _NOT_NOW.first(sentence) or any(short in sentence for short in _NO_SHORT):
        return True
    said = {word.text for word in words(sentence)}
    return bool(said & _NO) or (
        kind in {ClaimKind.SAVED, ClaimKind.DELETED} and bool(said & _OF_TEXT)
    )
