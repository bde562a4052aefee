"""What a finished turn shows about what helps next, by rules alone: its material, and notes of it.

Called by `agent.learning.insights`: the material is also what a model's notes are held against.
Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from agent.guards.loose_json import called_name
from agent.learning.evidence import is_carried, keys
from agent.prompt.templates import harmless
from memory.facts.secrets import secret_in
from memory.records.messages import PersonId
from memory.records.ports import TurnEnd
from memory.records.text import clean, one_line
from memory.records.transcript import Answered, Said, ToolCall, ToolResult
from memory.records.words import fold, is_unbordered, unbordered_runs, words
from memory.stores.lines import own_words

NOTES_MAX, NOTE_CHARS_MAX = 3, 150
"""Of each kind, and characters of one (SPEC §9)."""
REASON_CHARS_MAX, OUTSIDE_REASON_CHARS_MAX = 110, 60
"""Of an error that is quoted; an error that somebody else wrote says less."""
SAID_CHARS_MAX, FOREIGN_CHARS_MAX = 20_000, 60_000
"""Of what the person wrote, and of what others did, that is looked at."""
USES_MAX = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """One call and what came of it. `trouble` is why it failed, shortened; empty if it did not."""

    name: str
    arguments: str
    trouble: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What of a turn notes may be made of: what the person wrote, how tools fared, and what was
    said by others (`foreign`: the reply, and texts that tools brought in)."""

    said: str
    reply: str
    uses: tuple[ToolUse, ...]
    foreign: tuple[str, ...] = ()

    @property
    def words(self) -> int:
        """Of the person; characters of scripts without blanks count in twos."""
        folded = fold(self.said)
        return len(words(folded)) + sum(len(run) + 1 for run in unbordered_runs(folded)) // 2

    def carries_pin(self, note: str, kept: Sequence[str]) -> bool:
        """Whether the person said it: what a page or the reply says must not steer."""
        if note in kept:
            return True
        own = "\n".join([self.said, *kept])
        foreign = _keys_of([self.reply, *self.foreign])
        return is_carried(note, by=self.said, own=own, foreign=foreign, names=())

    def carries_recommendation(self, note: str, kept: Sequence[str]) -> bool:
        """Whether it is about a tool that ran, and made of what is known of it here."""
        if note in kept:
            return True
        if not any(fold(use.name) in fold(note) for use in self.uses):
            return False
        known = [self.said, *(f"{use.name} {use.arguments} {use.trouble}" for use in self.uses)]
        known_text = "\n".join([*known, *kept])
        foreign = _keys_of(self.foreign)
        return is_carried(note, by=known_text, own=known_text, foreign=foreign, names=())


def material_of(end: TurnEnd, *, person_id: PersonId) -> Material:
    """Of a finished turn. Forwarded and quoted text is not said, nor what others said meanwhile."""
    said: list[str] = []
    foreign: list[str] = []
    uses: list[ToolUse] = []
    calls: dict[str, ToolCall] = {}
    for entry in end.turn.entries:
        match entry:
            case Said(by=by) if by in {"", person_id} and (text := own_words(entry)):
                said.append(text)
            case Said() | ToolResult(untrusted=True):
                foreign.append(entry.text if isinstance(entry, Said) else entry.content)
            case Answered():
                calls.update((call.id, call) for call in entry.calls)
            case _:
                pass
        if isinstance(entry, ToolResult) and (call := calls.get(entry.call_id)) is not None:
            uses.append(_use(call, entry))
    return Material(
        said="\n".join(said)[:SAID_CHARS_MAX],
        reply=end.reply,
        uses=tuple(uses[-USES_MAX:]),
        foreign=tuple(foreign),
    )


def tidy(note: str) -> str:
    """A note as it may be kept and shown: one harmless line; empty when it holds a secret."""
    text = one_line(harmless(clean(note).strip().lstrip("-*• ")), chars_max=NOTE_CHARS_MAX)
    return "" if secret_in(text) else text


def pins_by_rules(said: str) -> list[str]:
    """The person's own sentences in which they name a need, a wish or a bound."""
    found = (tidy(sentence) for sentence in _sentences(said) if _NEED.search(fold(sentence)))
    return list(islice(dict.fromkeys(note for note in found if note), NOTES_MAX))


def recommendations_by_rules(uses: Sequence[ToolUse]) -> list[str]:
    """What failed, and why; the newest first."""
    failed = (tidy(f"{use.name} failed: {use.trouble}") for use in reversed(uses) if use.trouble)
    return list(islice(dict.fromkeys(note for note in failed if note), NOTES_MAX))


def _use(call: ToolCall, result: ToolResult) -> ToolUse:
    chars_max = OUTSIDE_REASON_CHARS_MAX if result.untrusted else REASON_CHARS_MAX
    why = one_line(harmless(clean(result.content[:2_000])), chars_max=chars_max)
    return ToolUse(
        name=one_line(clean(called_name(call)), chars_max=64),
        arguments=one_line(clean(call.arguments[:400]), chars_max=120),
        trouble="" if result.ok else why or "no reason was given",
    )


def _keys_of(texts: Sequence[str]) -> set[str]:
    found: set[str] = set()
    room = FOREIGN_CHARS_MAX
    for text in texts:
        found |= keys(text[:room])
        room -= min(len(text), room)
    return found


_SENTENCE = re.compile(r"[^.!?;\n。！？]*(?:\.(?=\S)[^.!?;\n。！？]*)*[.!?;。！？]?")
SENTENCE_CHARS_MAX = 400


def _sentences(text: str) -> Iterator[str]:
    """Statements: a question names no need ("Must I bring a passport?")."""
    for match in _SENTENCE.finditer(text):
        sentence = match.group().strip()
        is_question = sentence.endswith(("?", "？"))
        if sentence and not is_question and len(sentence) <= SENTENCE_CHARS_MAX:
            yield sentence if is_unbordered(sentence) else sentence.rstrip(".;")


_NEED = re.compile(
    r"""\b(?:must(?:n't)? | need(?:s|ed)? | require[sd]? | have\ to | has\ to | prefer(?:s|red)?
      | rather\ than | instead\ of | only | without | except | avoid | never | always
      | no\ more\ than | at\ (?:most|least) | budget | deadline | limit | max(?:imum)?
      | allergic | vegetarian | vegan
      | (?:by|before|until|till|after)\ (?:noon|midnight|tonight|tomorrow|\d{1,2}(?::\d\d)?
        | (?:mon|tues|wednes|thurs|fri|satur|sun)day)
      | muss | müssen | brauche | bevorzuge | lieber | nur | ohne | höchstens | spätestens
      | bis\ \d{1,2} | dois | préfère | sans | seulement | debo | necesito | prefiero | sin | solo
      )(?!\w)""",
    re.VERBOSE,
)
"""In a folded sentence: it names a need, a wish or a bound."""
