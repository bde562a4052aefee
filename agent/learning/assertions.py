"""Whether what is quoted was said as true of now: not asked, supposed, wished, over or doubted, not
told by others, not brought along to be worked on. Pure; used by `agent.learning.proposals`.

It reads the sentence that a quote stands in, by the words that mark such a thing in the languages
that people write most. Where it is in doubt it says no: nothing is lost by a fact that is not kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from memory.records.words import fold, words

PLACES_MAX = 20
"""Of one quote in one message."""

_MARKS = str.maketrans(dict.fromkeys("*_~`", None) | dict.fromkeys("“”„‟«»‹›「」『』", '"'))
_EDGES = " \t\n\"'.,:;!?-–—()[]…"
_BLANKS = re.compile(r"[^\S\n]+")
_SENTENCE_END = re.compile(r"[.!?…]+(?=[\s\")\]]|$)|\n|[。！？]")
_CLAUSE_END = re.compile(
    r"[,;、，;()–—]|\s-\s|(?:,\s*)?\b(?:but|aber|sondern|mais|pero|ma|mas|maar|men|ale|но|а|ama)\b"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClausePlace:
    """Where a quote stands: what is before and after it in its sentence, with the mark at the end,
    and the whole of the message before that sentence and after it. All folded."""

    quote: str
    before: str
    after: str
    earlier: str
    later: str

    @property
    def sentence(self) -> str:
        return f"{self.before}{self.quote}{self.after}"


def places(quote: str, said: str) -> Iterator[ClausePlace]:
    """Each place where a quote stands in a message, whatever the case, the blanks and the marks."""
    text = _BLANKS.sub(" ", fold(said.translate(_MARKS)))
    needle = fold(quote.translate(_MARKS)).replace('"', "").strip(_EDGES)
    parts = ['"?'.join(map(re.escape, part)) for part in needle.split()]
    if not parts:
        return
    for match in islice(re.finditer(r'"?\s+"?'.join(parts), text), PLACES_MAX):
        start, end = match.span()
        begins = max((one.end() for one in _SENTENCE_END.finditer(text, 0, start)), default=0)
        ending = _SENTENCE_END.search(text, end)
        ends = ending.end() if ending else len(text)
        yield ClausePlace(
            quote=match.group(),
            before=text[begins:start],
            after=text[end:ends],
            earlier=text[:begins],
            later=text[ends:],
        )


def clauses(sentence: str) -> list[str]:
    """Its parts, between commas and words like "but"."""
    return [part for part in _CLAUSE_END.split(sentence) if part.strip()]


def is_asserted(quote: str, said: str, note: str) -> bool:
    """Whether the quote is said as what the note makes of it, wherever it stands in the message. A
    note that keeps the mark ("wants a dog", "used to smoke") says no more than the person did."""
    found = list(places(quote, said))
    noted = fold(note)
    return bool(found) and all(_is_plain(place, noted) for place in found)


def _is_plain(place: ClausePlace, note: str) -> bool:
    return not (
        _is_asked(place)
        or _is_material(place)
        or _is_ordered(place, note)
        or _JOKE.search(f"{place.earlier}{place.sentence}{place.later}")
        or any(
            pattern.search(_region(place, name)) and not kept.search(note)
            for name, pattern, kept in _MOODS
        )
        or (_reported(place) and not _TELLS.search(note))
    )


def _region(place: ClausePlace, mood: str) -> str:
    """Where a mark of this kind would belong to the quote: a condition anywhere in the sentence,
    what is past, wished or doubted in the quote's own clause and in what is before it."""
    if mood == "condition":
        return place.sentence
    own = _CLAUSE_END.split(place.after)[0]
    if mood == "past":
        before = _CLAUSE_END.split(place.before)[-1]
        return f"{before}{place.quote}{own} \n {place.after if _OVER.search(place.after) else ''}"
    return f"{place.before}{place.quote}{own}"


# --- questions ---------------------------------------------------------------------------------

_FIRST_PERSON = r"(?:i|i'm|i've|i'd|my|we|our|ich|mein\w*|wir|je|j'\w+|mon|ma|yo|mi|soy|я|мой|моя)"
_ASKS_ELSE = re.compile(
    rf"^\W*(?:\w+\W+)??{_FIRST_PERSON}(?!\w).*[,;–—-]\s*(?:so |and |und |et |y )?"
    r"(?:what|which|where|how|who|when|why|can|could|would|will|"
    r"was|welche\w*|wo|wie|wer|wann|warum|que|quel\w*|où|comment|qué|cuál|dónde|cómo)\b(?! not)"
)
"""A statement about oneself, and behind it a question about something else."""
_ASKS = re.compile(r"[?？؟]|[吗嗎][。\s]*$|(?:ですか|ますか|でしょうか|인가요|나요|까요)[。\s]*$")
_ASKS_WHETHER = re.compile(
    r"^\W*(?:is it true|am i|are we|do i|did i|was i|have i|do you think|bin ich|habe ich"
    r"|est-ce que|suis-je|soy yo|правда ли)\b"
)


def _is_asked(place: ClausePlace) -> bool:
    sentence = place.sentence
    if _ASKS_WHETHER.search(sentence):
        return True
    if not _ASKS.search(place.after) and not _ASKS.search(place.quote):
        return False
    told = _ASKS_ELSE.match(sentence)
    return told is None or len(place.before) + len(place.quote) > told.end()


# --- what is not so, or not now ----------------------------------------------------------------


def _any(listed: str) -> str:
    return "|".join(
        re.escape(phrase.strip()).replace(r"\ ", r"\s+") for phrase in listed.split(",")
    )


def _pattern(listed: str, more: str = "") -> re.Pattern[str]:
    """Of whole words and phrases, parted by commas; `more` is added as it is."""
    return re.compile(rf"(?<!\w)(?:{_any(listed)})(?!\w){more}")


_IF = """
if, unless, whether, suppose, supposing, imagine, assuming, assume, pretend, hypothetically,
in case, provided, as though, otherwise, wenn, falls, ob, sofern, angenommen, stell dir vor,
supposons, imaginons, suponiendo, imagina, supponiamo, если, бы, якби, якщо, jeśli, jeżeli, gdyby,
kdyby, pokud, eğer, keşke, indien, stel dat, ifall, tänk om, dersom, hvis, αν, εάν, अगर, لو, إذا,
אם, nếu, kalau, jika, dacă, jos
"""
_IF_FIRST = r"|^\W*(?:si|s'il\w*|se|caso|als|om|were i|had i|should i)\s|,\s*(?:si|s'il\w*|se)\s"
_IF_GLUED = "|如果|要是|假如|假设|的话|もし|としたら|たら|なら|만약|라면|다면|으면"
_WISH = """
wish, wishes, wished, hope, hopes, hoping, want, wants, wanted, wanting, dream, dreams, dreaming,
would, wouldn't, i'd, we'd, could, might, may, maybe, perhaps, should, will, i'll, we'll, shall,
going to, gonna, planning, plan to, considering, thinking of, thinking about, if only, look into,
tempted, almost, nearly, about to, try to, trying to,
möchte, möchten, würde, würden, wünsche, wünschte, hätte, hätten, wäre, wären, könnte, hoffe,
vielleicht, werde, werden, fast, beinahe, am liebsten, voudrais, aimerais, souhaite, espère,
peut-être, si seulement, quisiera, querría, ojalá, gustaría, quiero, espero, quizás, vorrei,
magari, forse, spero, gostaria, talvez, oxalá, хочу, хотел, хотела, хотелось, мечтаю, надеюсь,
может быть, chciałbym, chciałabym, może, chci, chtěl, zou, wou, misschien, hoop, skulle,
kanske, hoppas, ville, kanskje, håper, isterdim, istiyorum, belki, θα ήθελα, ίσως, ελπίζω
"""
_WISH_GLUED = "|希望|想要|也许|可能|但愿|打算|たい(?:です)?|かもしれ|ほしい|欲しい|싶"
_PAST = """
used to, formerly, no longer, once was, was, were, had, had been, back then, in those days, ex,
until, till, as a child, as a kid, when i was, last century, previously,
früher, damals, ehemals, war, waren, hatte, hatten, als kind, bis, autrefois, avant, étais, avais,
était, antes, era, tenía, solía, fui, estaba, tinha, costumava, ero, avevo, prima, раньше, был,
была, были, было, когда-то, kiedyś, byłem, byłam, miałem, miałam, býval, byl, byla, vroeger, waren,
had, förr, brukade, tidigare, hade, pleide, eskiden, vardı, κάποτε, ήμουν, είχα
"""
_PAST_GLUED = "|以前|曾经|過去|过去|昔|かつて|前は|でした|예전|옛날|었던|았던"
_OVER = _pattern("""
over, any more, anymore, any longer, no longer, in the past, back then, gave up, given up, stopped,
quit, vorbei, nicht mehr, aufgehört, fini, plus maintenant, se acabó, ya no
""")
_DOUBT = """
doubt, doubts, unsure, not sure, uncertain, wrong, false, untrue, lie, lies, lied, allegedly,
supposedly, rumour, rumor, mistake, mistaken, pretending, deny, denies, denied, as a joke, myth,
zweifle, bezweifle, unsicher, falsch, angeblich, gelogen, doute, faux, mentira, dudo, falso, dubito,
duvido, сомневаюсь, неправда, вряд ли, wątpię, nieprawda, pochybuji, betwijfel, tvivlar, tviler,
şüpheliyim, yalan, αμφιβάλλω
"""
_DOUBT_GLUED = "|怀疑|懷疑|疑い|嘘|의심|거짓"
_MOODS: Sequence[tuple[str, re.Pattern[str], re.Pattern[str]]] = (
    (
        "condition",
        _pattern(_IF, f"{_IF_FIRST}{_IF_GLUED}"),
        _pattern(f"{_IF}, when, whenever, as soon as, would", f"|\\bsi\\b|\\bse\\b{_IF_GLUED}"),
    ),
    (
        "wish",
        _pattern(_WISH, _WISH_GLUED),
        _pattern(f"{_WISH}, plans, plan, tries, prefer, prefers, preferred", _WISH_GLUED),
    ),
    (
        "past",
        _pattern(
            _PAST, f"|(?<!\\w)(?:{_any('over, any more, anymore, ya no')})(?!\\w){_PAST_GLUED}"
        ),
        _pattern(f"{_PAST}, former, ago, past, stopped, quit, gave up, not", _PAST_GLUED),
    ),
    ("doubt", _pattern(_DOUBT, _DOUBT_GLUED), _pattern(_DOUBT, _DOUBT_GLUED)),
)
_JOKE = _pattern(
    "kidding, joking, just a joke, only a joke, april fool, war nur spaß, scherz", "|/s$"
)


# --- words of others ---------------------------------------------------------------------------

_SAYS = """
says, said, saying, tells, told, telling, thinks, thought, believes, believed, claims, claimed,
writes, wrote, written, asks, asked, asking, heard, according to, reckons, suggests, quote, quotes,
reads, states, answered, replied, insists, suspects, mentioned, assumes, guesses,
sagt, sagte, meint, meinte, glaubt, behauptet, behauptete, schreibt, schrieb, laut, dit, disait,
pense, croit, prétend, écrit, selon, dice, dijo, piensa, cree, afirma, según, pensa, crede,
secondo, diz, disse, acha, segundo, говорит, сказал, сказала, думает, считает, пишет, mówi,
powiedział, powiedziała, myśli, říká, řekl, zegt, zei, denkt, volgens, säger, sade, tror, sier,
diyor, dedi, söyledi, λέει, είπε
"""
_TELLS = _pattern(_SAYS, "|说|說|と言|라고")
_BY_OTHERS = re.compile(
    r"(?<!\w)(?P<who>i|we|ich|wir|i've|i have|as i|je|yo)?\s*"
    r"(?:(?:just|already|always|really|have|had|must|can|would) )*"
    rf"(?<!\w)(?P<verb>{_any(_SAYS)}|think|thinks|believe|say|claim|sagen|meinen|pensent|dicen)(?!\w)"
)
_BY_OTHERS_GLUED = re.compile("(?<!我)(?:说|說)|と言|って言|라고")
_QUOTE_SELF = re.compile(r"^(?:i|we|ich|wir|i've|i have|as i)$")


def _reported(place: ClausePlace) -> bool:
    """Whether somebody else says it, or it stands between quotation marks."""
    if (place.earlier + place.before).count('"') % 2 and '"' not in place.quote:
        return True
    near = f"{place.before}{place.quote}"
    if _BY_OTHERS_GLUED.search(place.before):
        return True
    behind = re.match(r"\W*(?:\w+\s){0,1}", place.after)
    after = place.after[: (behind.end() if behind else 0) + 20] if place.after[:1] == "," else ""
    return any(
        not (match.group("who") and _QUOTE_SELF.match(match.group("who")))
        for text in (near, after)
        for match in _BY_OTHERS.finditer(text)
    )


# --- what is to be worked on -------------------------------------------------------------------

_REWORK = """
translate, proofread, rewrite, rephrase, reword, paraphrase, summarise, summarize, shorten,
spellcheck, polish, transcribe, übersetze, übersetz, übersetzen, korrigiere, traduis, traduisez,
traduire, corrige, corrigez, résume, traduce, traduzca, traducir, resume, traduci, correggi,
riassumi, traduza, traduz, corrija, переведи, переведите, исправь, przetłumacz, popraw, přelož,
vertaal, översätt, oversett, çevir, μετάφρασε
"""
_WRITE = """
correct, edit, repeat, recite, type, say, pronounce, spell, write, draft, compose, convert, quote,
encode, format, classify, umschreiben, formuliere, fasse, schreib, schreibe, sag, sage, wiederhole,
écris, répète, dis, escribe, repite, di, scrivi, escreva, напиши, повтори, napisz, schrijf, skriv,
yaz, γράψε
"""
_PIECE = """
answer, reply, respond, analyse, analyze, explain, check, fix, act, pretend, imagine, role-play,
complete, continue, improve, read, mail, email, e-mail, letter, message, text, article, story, poem,
song, lyrics, review, essay, post, tweet, comment, dialogue, script, sentence, paragraph, caption,
headline, ad, sms, transcript, cv, character, brief, nachricht, gedicht, geschichte, satz, artikel,
lettre, texte, courriel, phrase, poème, carta, correo, texto, mensaje, frase, lettera, messaggio,
письмо, текст, сообщение, list, wiadomość, dopis, brev, mektup, metin, γράμμα
"""
_POLITE = r"""(?:please|pls|hey|hi|ok|so|now|then|and|can you|could you|would you|will you|bitte
|kannst du|s'il te plaît|peux-tu|por favor|puedes|per favore|пожалуйста|just|quickly|help me|\W)*
""".replace("\n", "")
_WORK_FIRST = re.compile(rf"^{_POLITE}(?<!\w)(?:{_any(_REWORK)}|{_any(_WRITE)})(?!\w)")
_HOW_TO_SAY = _pattern("""
how do you say, how do i say, how would you say, how to say, what does, wie sagt man, wie heißt,
comment dit-on, cómo se dice, come si dice, как сказать, into german, into english,
in english please
""")
_FOLLOWS = _pattern("""
this, these, the following, following, below, folgenden, folgendes, diesen, dieses, suivant,
suivante, siguiente, seguente, seguinte, следующее, эту, это
""")
_BEHIND = re.compile(
    rf"(?<!\w)(?:{_any(_REWORK)})\s+(?:that|it|this|the above|das|ça|eso|into|to|in|ins)(?!\w)"
)
_WORK_NAMED = _pattern(f"{_REWORK}, {_WRITE}, {_PIECE}", "|翻译|翻譯|訳して|번역")
_MINE = re.compile(
    r"(?<!\w)(?:i|i'm|i've|me|my|mine|we|our|us|ich|mich|mir|mein\w*|yo|mis?|moi|mon|mes)(?!\w)"
)
_OPENS = _pattern("""
careful, remember, note, fyi, important, btw, by the way, also, ps, p.s, update, warning, attention,
thing, fact, facts, info, reminder, besides, reason, problem, sorry, hello, ok, yes, wichtig,
achtung, hinweis, merke, übrigens, importante, ojo, важно
""")
_HEADER = re.compile(
    r"^(?:from|to|subject|date|von|an|betreff|de|à|asunto|от|кому|тема)\s*:", re.MULTILINE
)
_COLON = re.compile(r"[:：](?=[\s\"]|$)")
_NAME_WORDS_MAX = 3


def _is_material(place: ClausePlace) -> bool:
    if _WORK_FIRST.search(place.before) or _HOW_TO_SAY.search(place.sentence):
        return True
    if _HEADER.search(f"{place.earlier}{place.before}"):
        return True
    if any(_is_lead_in(lead) for lead in _leads(place)):
        return True
    earlier = [part for part in _SENTENCE_END.split(place.earlier) if part.strip()]
    if any(_WORK_FIRST.search(one) and _FOLLOWS.search(one) for one in earlier):
        return True
    return bool(_BEHIND.search(f"{place.after}{place.later}"))


def _leads(place: ClausePlace) -> Iterator[str]:
    """What stands before a colon that the quote comes after, in its line or at the end of one."""
    yield from _COLON.split(place.before)[:-1]
    for line in place.earlier.splitlines():
        if line.rstrip().endswith(":"):
            yield _SENTENCE_END.split(line.rstrip()[:-1])[-1]


def _is_lead_in(lead: str) -> bool:
    """Whether what comes after it is somebody's words, or a text, rather than what one tells."""
    if _WORK_NAMED.search(lead) or _TELLS.search(lead):
        return True
    is_name = 0 < len(words(lead)) <= _NAME_WORDS_MAX
    return is_name and not _MINE.search(lead) and not _OPENS.search(lead)


# --- orders ------------------------------------------------------------------------------------

_DO = """
send, book, find, tell, remind, show, make, buy, order, pay, open, delete, forward, look, search,
schedule, cancel, remove, reserve, fetch, share, post, upload, download, invite, print, schick,
schicke, sende, buche, finde, zeig, erinnere, kauf, kaufe, bestell, bestelle, lösche, suche, envoie,
réserve, trouve, montre, achète, envía, reserva, busca, muestra, compra, manda, invia, prenota,
cerca, отправь, закажи, найди, купи, wyślij, zarezerwuj, znajdź, stuur, boek, zoek, skicka, boka,
gönder, bul
"""
_ORDER = re.compile(rf"^{_POLITE}(?<!\w)(?:{_any(_DO)})(?!\w)")
_LASTING = _pattern(
    """
always, every, each, never, whenever, from now on, in future, in the future, generally, usually,
all, by default, automatically, any time, without asking, daily, weekly, monthly, immer, jede,
jeden, jedes, nie, künftig, ab jetzt, stets, alle, toujours, chaque, jamais, siempre, cada, nunca,
sempre, ogni, mai, всегда, каждый, никогда
""",
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)days",
)


def _is_ordered(place: ClausePlace, note: str) -> bool:
    """Whether one order was made a habit, or a habit is noted that nobody spoke of."""
    if _LASTING.search(place.sentence):
        return False
    own = f"{_CLAUSE_END.split(place.before)[-1]}{place.quote}"
    return bool(_ORDER.search(own) or _LASTING.search(note))
