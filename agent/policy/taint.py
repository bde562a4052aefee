"""Whose words are in what is sent: the fence around those from outside, and what follows from them.

While untrusted text is in what is sent, the next wish of the model may be somebody else's: code
then asks a person before anything leaves or lasts (SPEC §15, threat model rule 4). Used by the
loop and the steps of a turn.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from agent.guards.loose_json import read_object
from agent.prompt.templates import (
    ABOUT,
    DAILY_NOTES,
    DOCUMENTS,
    EARLIER,
    KEEP_IN_MIND,
    MEMORIES,
    PREVIOUS,
    UNTRUSTED_CLOSE,
    UNTRUSTED_OPEN,
    UPCOMING,
    USING_TOOLS,
    disarmed,
)
from memory.records.transcript import (
    NOBODY,
    Answered,
    Context,
    Entry,
    Note,
    Said,
    ToolCall,
    ToolResult,
)
from memory.records.words import after_name, fold, forms, is_unbordered, words

# --- meant --------------------------------------------------------------------------------------
#
# What a recorded call means, whichever way it was written: its tool, and what that was given.
#
# Read as leniently as the toolbox reads it that runs it: what it takes for a call of a tool is one
# here too. Pure.

TOOL_CALL = "tool_call"
"""The tool by which any other can be called."""


def called_name(call: ToolCall) -> str:
    """The tool that a call means: that within a tool_call."""
    if call.name != TOOL_CALL:
        return call.name
    inner = read_object(call.arguments)
    return call.name if inner is None else str(inner.get("name", "")).strip()


def called_arguments(call: ToolCall) -> dict[str, Any]:
    """What the tool that is meant was given; what cannot be read is one value without a name."""
    given = read_object(call.arguments)
    if given is not None and call.name == TOOL_CALL:
        inner = given.get("arguments") or {}
        given = read_object(inner) if isinstance(inner, str) else inner
    return given if isinstance(given, dict) else {"": call.arguments}


def fenced(entry: Entry) -> Entry:
    """As it is sent: what an untrusted result or a file says stands in a marked block that it
    cannot close itself."""
    match entry:
        case ToolResult(untrusted=True):
            return replace(entry, content=_block(entry.content))
        case Note(content=content) if content:
            return replace(entry, content=_block(content))
        case _:
            return entry


def _block(text: str) -> str:
    return f"{UNTRUSTED_OPEN}\n{disarmed(text)}\n{UNTRUSTED_CLOSE}"


OTHERS_FACTS = "what is remembered of this group, whoever said it"


def tainted_by(entries: Iterable[Entry], *, person_id: str) -> str:
    """What untrusted text there is among the entries, in words for a person; empty for none.

    Results of tools that read the outside, files that came with a message, what was forwarded,
    quoted text, answers that were given after any of it, and in a group what others said.
    """
    return next((why for _, why in _untrusted(entries, person_id)), "")


def taint_start(entries: Iterable[Entry], *, person_id: str) -> int | None:
    """The place of the first entry that is untrusted text; None where none is."""
    return next((place for place, _ in _untrusted(entries, person_id)), None)


def marked(entries: Sequence[Entry], *, was_tainted: bool, person_id: str) -> tuple[Entry, ...]:
    """The entries of a turn as they are kept: an answer that was given when untrusted text had been
    read may repeat it, whatever becomes of that text (`was_tainted`: it was there before)."""
    start = -1 if was_tainted else taint_start(entries, person_id=person_id)
    if start is None:
        return tuple(entries)
    return tuple(
        replace(entry, tainted=True) if isinstance(entry, Answered) and place > start else entry
        for place, entry in enumerate(entries)
    )


def _untrusted(entries: Iterable[Entry], person_id: str) -> Iterator[tuple[int, str]]:
    """Places and reasons, in order."""
    is_group = False
    for place, entry in enumerate(entries):
        is_group = is_group or (isinstance(entry, Said) and bool(entry.by))
        if why := _why_untrusted(entry, person_id, is_group=is_group):
            yield place, why


def _why_untrusted(entry: Entry, person_id: str, *, is_group: bool) -> str:
    match entry:
        case ToolResult(untrusted=True):
            return "text from outside (a page, a file or another tool's result)"
        case Answered(tainted=True):
            return "an answer that was given after text from outside"
        case Said(forwarded=True):
            return "forwarded text"
        case Note() if entry.brings:
            return "a file that came with a message"
        case Note(untrusted=True):
            return "what came with a message, or what a run that nobody watched had read"
        case Said(quote=quote) if quote:
            return "quoted text"
        case Context(text=text) if DOCUMENTS in text:
            return "a saved document"
        case Said(by=by) if by and by != person_id:
            return "what somebody else wrote in this chat"
        case Context(text=text) if is_group and MEMORIES in text:
            return OTHERS_FACTS
        case _:
            return ""


REMEMBERED_LAYERS = frozenset(
    {
        *("long-term notes", "daily notes", "about the user", "memories", "earlier conversation"),
        *("insights", "upcoming", "previous conversation"),
    }
)
_REMEMBERED_HEADINGS = (
    *(DAILY_NOTES, ABOUT, MEMORIES, EARLIER, KEEP_IN_MIND, USING_TOOLS, UPCOMING, PREVIOUS),
)
_REMEMBERING_TOOLS = frozenset(
    {"search_memories", "list_facts", "search_conversations", "read_notes", "get_profile"}
)


def rests_on_memory(entries: Iterable[Entry]) -> bool:
    """Whether what is remembered is among the entries. It is the person's own, but nobody can say
    of each sentence who made it: what it tells to somebody new has to be known from elsewhere."""
    for entry in entries:
        match entry:
            case Context(text=text) if any(one in text for one in _REMEMBERED_HEADINGS):
                return True
            case Answered(calls=calls) if any(
                called_name(call) in _REMEMBERING_TOOLS for call in calls
            ):
                return True
            case _:
                pass
    return False


LINKS_FROM = frozenset({"web_fetch", "web_search"})
"""Tools whose results may name the next address. What another one returns can be the model's own
words come back: a file that it wrote, an error that quotes its argument, a subagent's answer."""


def has_seen(entries: Sequence[Entry], target: str) -> bool:
    """Whether a URL or an address stands in what a person said or a page named, word for word.
    What they only forwarded, they did not say.

    A longer one in which it is a part does not count: else a page that lists beginnings could have
    the rest filled in. What a model wrote never counts, by whichever way it came back.
    """
    return has_said(entries, target) or any(
        stands_in(target, text) for _, text in pages_in(entries)
    )


LITTLE_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a an and are at be by for from has have he her his in is it its my of on or our she that"
        " the their they this to user was we will with you your person",
    )
)
"""Words in which what somebody said is put down, in whatever person and number."""


NEGATIONS = frozenset(
    re.findall(
        r"\w+",
        "cannot ei ikke ingen inte kein keine keinen n never nicht nie niemals nihil no nobody non "
        "none nor not nothing nunca não nie pas rien sin sans without won ne jamais kun ohne senza "
        "mai niet geen ez yok değil не нет dont wont cant doesnt "
        "stop delete cancel remove refuse hardly "
        "keinesfalls weder nao",
    )
)
"""After such a word the same words say something else."""


def has_said(entries: Sequence[Entry], target: str, *, person_id: str = "") -> bool:
    """`has_seen`, by a person alone; with `person_id` by this one."""
    said = (entry for entry in entries if isinstance(entry, Said) and is_own(entry))
    if person_id:
        said = (entry for entry in said if entry.by in {"", person_id})
    return any(stands_in(target, entry.text) for entry in said)


_TIMES = frozenset(
    re.findall(
        r"\w+",
        "in at on am pm a an the of and to next this today tomorrow tonight noon midnight morning"
        " evening night afternoon week weeks day days hour hours minute minutes min h half quarter"
        " monday tuesday wednesday thursday friday saturday sunday january february march april may"
        " june july august september october november december t z oclock o clock st nd rd th",
    )
)


def is_once(when: str) -> bool:
    """Whether a time surely comes but once, by its words: one that may come again is looked at by
    somebody."""
    text = fold(when)
    found = re.findall(r"[^\W\d_]+", text)
    return "*" not in text and all(word in _TIMES for word in found)


def is_said_now(values: Iterable[str], entries: Sequence[Entry], *, name: str = "") -> bool:
    """Whether each word of the values is one that the person (called `name`) wrote in this turn
    themselves, in its order and with nothing left out in between, little words and endings aside.
    What they say that is not, and what stands in no words of theirs (other scripts, signs within
    words), is not looked at: somebody is asked."""
    own = [fold(one.text) for one in entries if isinstance(one, Said) and is_own(one)]
    said = [word.text for text in own for word in words(_REMEMBER.sub(" ", text))]
    if any(word in NEGATIONS or word.endswith("n't") for word in said):
        return False
    said = [word for word in said if word not in LITTLE_WORDS]
    names = {word.text for word in words(fold(name))}
    meant = [fold(_told(value, name)) for value in values if value]
    return bool(meant) and all(_is_said(text, said, names, "\n".join(own)) for text in meant)


_ASKED = re.compile(
    r"^\s*(?:(?:hey|ok|please|bitte|can you|could you)[\s,]+)*"
    r"(?:remember|note|keep in mind|save|record|merke? dir|notiere?|recuerda|ricorda|noter)?"
    r"(?:[\s,:]+(?:that|dass|que|che|this|:))*[\s,:]*"
)
_NO_STATEMENT = re.compile(
    r"[?？؟]|^(?:am|are|can|could|did|do|does|has|have|is|may|should|was|were|will|would|what|when"
    r"|where|which|who|whose|why|how|ist|sind|hat|hast|soll|wer|was|wann|wo|wie|warum)\b"
)
_SAME = dict.fromkeys(("am", "are", "is"), "be") | dict.fromkeys(
    ("my", "his", "her", "their", "our", "your"), "own"
)
_DROPPED = frozenset({"i", "he", "she", "they", "we", "a", "an", "the", "s"})


def is_stated_now(value: str, entries: Sequence[Entry], *, name: str = "") -> bool:
    """Whether a value says what the whole message of the person (called `name`) states, or asks to
    keep, word for word: their "I", an article and a verb's "s" aside. "He is my friend" is no word
    of theirs in "Eve says he is my friend", and a question states nothing."""
    own = [fold(one.text) for one in entries if isinstance(one, Said) and is_own(one)]
    if len(own) != 1:
        return False
    stated = _ASKED.sub("", own[0])
    if _NO_STATEMENT.search(stated) or any(one.text in NEGATIONS for one in words(own[0])):
        return False
    value = _told(value, name)
    names = {word.text for word in words(fold(name))}
    said, told = (_in_short(text, names) for text in (stated, fold(value)))
    plain = all(_is_plain_or_said(piece, own[0]) for piece in fold(value).split())
    return bool(told) and plain and len(said) == len(told) and all(map(_say_the_same, said, told))


def _told(value: str, name: str) -> str:
    """Return the value without the name before it, which may hold signs that no word has."""
    rest = after_name(value, name)
    return rest if rest is not None and rest[:1].isspace() else value


def _in_short(text: str, names: Collection[str]) -> list[str]:
    found = [word.text for word in words(text)]
    while found and found[0] in names:
        found = found[1:]
    return [_SAME.get(word, word) for word in found if word not in _DROPPED]


def _say_the_same(one: str, other: str) -> bool:
    """The same word, or that of another person: "like" and "likes"."""
    short, long = sorted((one, other), key=len)
    return long in {short, f"{short}s", f"{short}es"}


_NAMED = re.compile(
    r"\s*(?:please\s+)?(?:call me|my name is|nenn mich|ich heiße)\s+(.{1,40}?)[.!\s]*", re.I
)


def is_named_now(name: str, entries: Sequence[Entry]) -> bool:
    """Whether the whole message says that the person is called so."""
    own = [one.text for one in entries if isinstance(one, Said) and is_own(one)]
    found = _NAMED.fullmatch(own[0]) if len(own) == 1 else None
    # Most scripts have no capitals, and emoji neither: nothing in small letters is a name.
    is_name = not any(word[:1].islower() for word in name.split())
    return found is not None and is_name and found[1].strip(" .") == name.strip(" .")


_REMEMBER = re.compile(
    r"\b(?:(?:don['’]?t|do not|never) (?:let me )?forget|nicht vergessen|vergiss nicht)\b"
)
"""What has a "not" in it, and says the same as "remember"."""


def _is_said(text: str, said: Sequence[str], names: Collection[str], own: str) -> bool:
    told = [one.text for one in words(text) if one.text not in LITTLE_WORDS]
    while told and told[0] in names:
        told = told[1:]
    if not told or any(not _is_plain_or_said(piece, own) for piece in text.split()):
        return False
    runs = (said[at : at + len(told)] for at in range(len(said) - len(told) + 1))
    return any(all(map(_are_alike, told, run)) for run in runs)


def _are_alike(one: str, other: str) -> bool:
    return not {one, *forms(one)}.isdisjoint({other, *forms(other)})


def _is_plain_or_said(piece: str, own: str) -> bool:
    """A word with the usual signs around it; what has others stands in the message so."""
    is_plain = _PLAIN_WORD.fullmatch(piece) is not None and not is_unbordered(piece)
    return is_plain or piece in own


_PLAIN_WORD = re.compile(r"[\"'(]*[^\W_]+(?:['’-][^\W_]+)*[\"')]*[.,:;!?]*")


def stands_in(target: str, text: str) -> bool:
    """Whether a URL or an address stands in a text, as a whole."""
    needle = bare(target)
    if not needle:
        return False
    whole = rf"(?<![\w.@%/-]){re.escape(needle)}/?(?![\w%=&/?#+~-]|[.,:;@!][\w%])"
    return re.search(whole, _plain(text)) is not None


def pages_in(entries: Sequence[Entry]) -> Iterator[tuple[ToolCall, str]]:
    """What pages and searches told, in order, with the calls that asked for it."""
    calls: dict[str, ToolCall] = {}
    for entry in entries:
        match entry:
            case Answered():
                calls.update((call.id, call) for call in entry.calls)
            case ToolResult(ok=True, untrusted=True) if (
                call := calls.get(entry.call_id)
            ) and called_name(call) in LINKS_FROM:
                yield call, entry.content
            case _:
                pass


def is_own(said: Said) -> bool:
    """Whether a person wrote it here themselves."""
    return not said.forwarded and not said.by.startswith(NOBODY)


_SCHEME = re.compile(r"(?<![\w@:/?#&=%.+~-])https?://", re.IGNORECASE)


def bare(address: str) -> str:
    """An address without the scheme that it begins with, and without one slash at its end: people
    leave these out. What stands within it stays, as it could tell something."""
    return re.sub(r"^https?://", "", address.strip(), flags=re.IGNORECASE).removesuffix("/")


def _plain(text: str) -> str:
    """Without the scheme, which people leave out."""
    return _SCHEME.sub("", text)
