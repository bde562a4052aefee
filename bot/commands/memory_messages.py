"""What is said about what is remembered: `/memory`, `/remember`, and forgetting with proof.

Markdown, for a phone. What people said stands between quotation marks, with its markup taken away:
in a group it may be anybody's. Used by `bot.commands.memory` and its command.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any

from memory.records.erasure import ForgetStage, FoundPlaces, PlaceKind, Proof
from memory.records.facts import (
    CATEGORIES,
    FactSource,
    Overview,
    Stored,
    StoredFact,
    Storing,
    fact_key,
)
from memory.records.messages import Role
from memory.records.rows import Button, ButtonRows

FORGET, KEEP = "forget", "keep"
PREFIX = "mem"

USE = """\
`/memory list` shows all I know, `/memory list past` what no longer holds
`/memory f12` shows one thing, and where it is from
`/memory search TEXT` looks for something
`/memory edit f12 TEXT` corrects it
`/memory forget f12` (or TEXT, or everything) erases it wherever it stands
`/memory export` gives you all of it
`/remember TEXT` keeps something"""
USE_IN_GROUP = """\
Here I show and change what was said in this group alone; you can change what you said.
`/memory list`, `/memory f12`, `/memory search TEXT`
`/memory edit f12 TEXT`, `/memory forget f12`"""
GUESTS_USE = """\
`/memory list` shows all I know, `/memory list past` what no longer holds
`/memory f12` shows one thing, and where it is from
`/memory search TEXT` looks for something
`/memory forget f12` (or TEXT, or everything) erases it wherever it stands
`/memory export` gives you all of it"""
GUESTS_USE_IN_GROUP = """\
Here I show what was said in this group alone; what you said you can have erased.
`/memory list`, `/memory f12`, `/memory search TEXT`, `/memory forget f12`"""
USE_REMEMBER = "Write what I am to remember behind it: `/remember I take my tea without milk`"
IN_PRIVATE = "That is done in a private chat: write it to me there."
MEMORY_IS_OFF = "Memory is off in this conversation (`/private`), so I keep nothing of it."
NO_GUESTS = "As a guest you can look at what I know of you and have it erased, but not add to it."
NOTHING_KNOWN = "I know nothing yet."
NOTHING_CORRECTED = "Nothing was corrected so far."
USE_EDIT = "Write `/memory edit f12 TEXT`: its number, and how it should read."
NO_SUCH_FACT = "There is no {key} here. `/memory list` shows what there is."
NOTHING_HOLDS_IT = "Nothing of yours that I keep has these words."
ASKED_ABOVE = "Nothing is erased before you press the button above."
FORGETTING = "I am forgetting it; the message above tells how it went."
KEPT = "Kept as it was."
TICKED = "Goes too: “{text}”"
UNTICKED = "Stays: “{text}”"
TOO_OLD = "That question is too old, or was answered. Ask for it again."
NOT_YOUR_QUESTION = "That was not asked of you."
NOWHERE = "nothing of yours in them has it any more"
CANNOT_REACH = (
    "What I cannot reach: what this app keeps of the chat, what the model's provider keeps, and "
    "copies that were made outside of my folder."
)
EXPORT_TOO_LONG = (
    "That is too much for a chat. On my machine `hearthbot memory export --out FILE` writes all of "
    "it; with `--format json` it can be brought in again."
)
IMPORT_ELSEWHERE = "A file is brought in on my machine: `hearthbot memory import FILE`"

FACTS_SHOWN_MAX, NEWEST_SHOWN = 60, 5
TEXT_CHARS = 300
QUOTE_CHARS = 120

_PLURALS: Mapping[PlaceKind, tuple[str, str]] = {
    PlaceKind.FACT: ("fact", "facts"),
    PlaceKind.PROFILE: ("entry of the profile", "entries of the profile"),
    PlaceKind.DOCUMENT: ("passage of a document", "passages of documents"),
    PlaceKind.HISTORY: ("entry of the history", "entries of the history"),
    PlaceKind.SUMMARY: ("summary", "summaries"),
    PlaceKind.INSIGHT: ("set of insights", "sets of insights"),
    PlaceKind.REPLY: ("message that was sent", "messages that were sent"),
    PlaceKind.NOTE: ("hint for the next answer", "hints for the next answer"),
    PlaceKind.TRACE: ("trace of an answer", "traces of answers"),
    PlaceKind.PROMPT: ("kept prompt", "kept prompts"),
    PlaceKind.QUESTION: ("question that was asked", "questions that were asked"),
    PlaceKind.TASK: ("background task", "background tasks"),
    PlaceKind.JOB: ("job or date", "jobs and dates"),
    PlaceKind.INCOMING: ("message that just came", "messages that just came"),
    PlaceKind.FILE: ("file of notes", "files of notes"),
    PlaceKind.FORMER: ("earlier text of a file", "earlier texts of files"),
}
_SEARCHED = {PlaceKind.FACT, PlaceKind.HISTORY, PlaceKind.DOCUMENT}
STAGES: Mapping[ForgetStage, str] = {
    ForgetStage.FACTS: "erasing facts",
    ForgetStage.ROWS: "erasing history, traces and whatever else is in the database",
    ForgetStage.FILES: "erasing notes",
    ForgetStage.INDEX: "building the search anew",
    ForgetStage.ANEW: "writing the database anew",
    ForgetStage.BACKUPS: "making a new backup, removing older ones",
    ForgetStage.SCAN: "looking through every file",
}
_SOURCES = {
    FactSource.MESSAGE: "from what was said",
    FactSource.TOOL: "stored while I answered",
    FactSource.PERSON: "told me by `/remember`",
    FactSource.IMPORT: "from a file",
}


# --- facts -------------------------------------------------------------------------------------


def use(role: Role, *, is_group: bool) -> str:
    """What can be typed about what is remembered, by somebody of this role."""
    if role is Role.GUEST:
        return GUESTS_USE_IN_GROUP if is_group else GUESTS_USE
    return USE_IN_GROUP if is_group else USE


def bare(text: str, *, chars_max: int = TEXT_CHARS) -> str:
    """Somebody's words on one line, without a meaning as markup. A bracket that closes needs no
    escape where none opens, and a pair of escaped ones could be read as the marks of a formula."""
    flat = " ".join(text.split())
    if len(flat) > chars_max:
        flat = flat[:chars_max].rstrip() + " …"
    return _MARKUP.sub(r"\\\1", flat.replace("`", "'"))


_MARKUP = re.compile(r"([\\*_<>~|\[])")


def fact_line(fact: StoredFact, zone: tzinfo | None) -> str:
    """`- f12 “…” (background, 1 Aug 2026)`; in a group with who said it."""
    by = f", said by {bare(fact.speaker)}" if fact.whose.scope and fact.speaker else ""
    until = "" if fact.valid_to_ms is None else f" to {day(fact.valid_to_ms, zone)}"
    when = f"{day(fact.valid_from_ms, zone)}{until}"
    return f"- {fact.key} “{bare(fact.text)}” ({fact.category}, {when}{by})"


def fact_from(fact: StoredFact, zone: tzinfo | None) -> str:
    """Where it is from: `from what was said, 1 Aug 2026: “…”`."""
    quoted = f": “{bare(fact.quote, chars_max=QUOTE_CHARS)}”" if fact.quote else ""
    return f"{_SOURCES[fact.source]}, {day(fact.created_ms, zone)}{quoted}"


def fact_shown(fact: StoredFact, replaced: Sequence[StoredFact], zone: tzinfo | None) -> str:
    """One fact, where it is from, and what it replaced."""
    lines = [f"**{fact.key}** “{bare(fact.text)}”", ""]
    lines.append(f"- {fact.category}; {_SOURCES[fact.source]}, {day(fact.created_ms, zone)}")
    if fact.whose.scope:
        lines.append(f"- belongs to the group {bare(fact.whose.scope)}")
    if fact.speaker:
        lines.append(f"- said by {bare(fact.speaker)}")
    if fact.quote:
        lines.append(f"- in these words: “{bare(fact.quote, chars_max=500)}”")
    if fact.source in {FactSource.MESSAGE, FactSource.TOOL} and fact.confidence < 1:
        lines.append(f"- I am sure of it by {fact.confidence:.0%}")
    if fact.valid_to_ms is not None:
        after = f", replaced by {fact_key(fact.superseded_by)}" if fact.superseded_by else ""
        lines.append(f"- held until {day(fact.valid_to_ms, zone)}{after}")
    times = "once" if fact.uses == 1 else f"{fact.uses} times"
    lines.append("- not used so far" if fact.uses == 0 else f"- used {times}")
    if replaced:
        lines += ["", "In place of:", *(fact_line(one, zone) for one in replaced)]
    return "\n".join(lines)


def facts_text(facts: Sequence[StoredFact], zone: tzinfo | None, *, nothing: str) -> str:
    """A line each, as many as a chat bears; `nothing` where there is none."""
    lines = [fact_line(fact, zone) for fact in facts[:FACTS_SHOWN_MAX]]
    more = len(facts) - FACTS_SHOWN_MAX
    if more > 0:
        lines.append(f"and {more} more: `/memory search TEXT`")
    return "\n".join(lines) or nothing


def overview_blocks(found: Overview, zone: tzinfo | None) -> list[str]:
    """What is known, what was corrected lately, and what is in mind."""
    count = len(found.facts)
    said = ["1 fact" if count == 1 else f"{count:,} facts"]
    if found.profile:
        said.append(f"a profile ({', '.join(map(bare, found.profile))})")
    if found.documents:
        said.append("1 document" if found.documents == 1 else f"{found.documents:,} documents")
    blocks = [f"**What I know**: {', '.join(said)}"]
    if found.facts:
        newest = [fact_line(fact, zone) for fact in found.facts[:NEWEST_SHOWN]]
        blocks.append("\n".join(["The newest:", *newest]))
    if found.corrected:
        lines = [
            f"- {one.old.key} “{bare(one.old.text)}” → {one.new.key} “{bare(one.new.text)}”"
            for one in found.corrected
        ]
        blocks.append("\n".join(["Corrected lately:", *lines]))
    if found.in_mind:
        lines = [f"- {bare(text)}" for text in found.in_mind]
        blocks.append("\n".join(["In mind for this conversation:", *lines]))
    return blocks


def stored_text(stored: Stored) -> str:
    """What became of something that was to be remembered."""
    if stored.outcome is Storing.REFUSED or stored.fact is None:
        return f"I did not keep that. {stored.why}".strip()
    said = f"{stored.fact.key} “{bare(stored.fact.text)}”"
    match stored.outcome:
        case Storing.REFRESHED:
            return f"I knew that already: {said}."
        case Storing.SUPERSEDED if stored.replaced is not None:
            old = f"{stored.replaced.key} “{bare(stored.replaced.text)}”"
            return f"Remembered: {said}. It takes the place of {old}, which I keep as past."
        case _:
            return f"Remembered: {said} ({stored.fact.category})."


# --- forgetting --------------------------------------------------------------------------------


def counted(kind: PlaceKind, count: int) -> str:
    """`3 traces of answers`."""
    one, many = _PLURALS[kind]
    return f"{count:,} {one if count == 1 else many}"


def related_hint(facts: Sequence[StoredFact]) -> str:
    """Facts that may be meant by words that they do not have: they are named, and not taken."""
    if not facts:
        return ""
    keys = " ".join(fact.key for fact in facts)
    lines = [fact_line(fact, None) for fact in facts]
    return "\n".join(["", "", "These may be meant too:", *lines, f"`/memory forget {keys}`"])


def found_text(what: str, found: FoundPlaces, root: Path) -> str:
    """Every place that holds it, before anything is erased."""
    lines = [f"**Forget {what}?** It stands in:", ""]
    lines += [f"- {counted(kind, count)}" for kind, count in found.counts.items()]
    if found.counts.keys() & _SEARCHED:
        lines.append("- the searches over it, and what texts mean to them: they are made anew")
    if found.backups:
        copies = "1 older copy" if found.backups == 1 else f"{found.backups} older copies"
        lines.append(f"- {copies} of the database, which will be replaced by a new one")
    if found.notes:
        lines += ["", f"Lines go from: {_paths(found.notes, root)}"]
    if found.files:
        lines += ["", f"Other files have it, and are left as they are: {_paths(found.files, root)}"]
    if found.similar:
        lines += ["", "These say much the same in other words, and stay unless you tick them:"]
        lines += [f"{n}. “{bare(text)}”" for n, text in enumerate(found.similar, start=1)]
    if PlaceKind.TRACE in found.counts:
        lines += ["", "Answers whose traces go cannot be replayed any more."]
    return "\n".join(lines)


def asked_buttons(token: str, *, similar: int) -> ButtonRows:
    """Forget all of it, or keep it; before that, tick each of what is similar."""
    answers = (
        Button(label="Forget all of it", data=f"{PREFIX}:{token}:{FORGET}", style="bad"),
        Button(label="Keep", data=f"{PREFIX}:{token}:{KEEP}"),
    )
    ticks = tuple(
        Button(label=f"{n} too", data=f"{PREFIX}:{token}:{n}") for n in range(1, similar + 1)
    )
    return (ticks, answers) if ticks else (answers,)


def proof_text(proof: Proof, root: Path, *, for_owner: bool) -> str:
    """How it went, in words; what others said the same is the owner's to know alone."""
    lines = ["**Forgotten**, and looked for:" if proof.ok else "⚠️ **Not forgotten everywhere:**"]
    lines += [""] + [f"- {one}" for one in failures(proof, root)]
    if proof.erased:
        erased = ", ".join(counted(kind, count) for kind, count in proof.erased.items())
        lines.append(f"- erased: {erased}")
    if proof.blanked:
        lines.append(f"- the words were blanked in other files: {_paths(proof.blanked, root)}")
    copies = len(proof.dropped)
    lines.append(
        "- the database is written anew, a new backup made"
        + (f", {copies} older {'copy' if copies == 1 else 'copies'} removed" if copies else "")
    )
    size = f"{proof.files:,} files ({proof.bytes / 1_000_000:,.1f} MB) were looked through"
    lines.append(f"- {size}{f': {NOWHERE}' if proof.ok and not proof.left else ''}")
    if proof.left:
        lines.append(f"- left as they are, for they are files: {_paths(proof.left, root)}")
    if for_owner and (proof.theirs or proof.their_files):
        where = [*proof.theirs, *(_relative(path, root) for path in proof.their_files)]
        lines.append(f"- others said the same, which is theirs, and was left ({', '.join(where)})")
    return "\n".join([*lines, "", CANNOT_REACH])


def failures(proof: Proof, root: Path) -> list[str]:
    """Where it still stands, or where nobody could look."""
    found = [f"it still stands in {_relative(path, root)}" for path in proof.hits]
    found += [f"it still stands in the table {table}" for table in proof.tables]
    return found + [f"{_relative(path, root)} could not be read" for path in proof.unread]


def _paths(paths: Sequence[Path], root: Path) -> str:
    shown = [f"`{_relative(path, root).replace('`', '')}`" for path in paths[:10]]
    more = len(paths) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def _relative(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


# --- small things ------------------------------------------------------------------------------


def day(at_ms: int, zone: tzinfo | None) -> str:
    """`1 Aug 2026`, on the person's calendar."""
    at = datetime.fromtimestamp(at_ms / 1000, zone or UTC)
    return f"{at.day} {at:%b %Y}"


# --- taking out ---------------------------------------------------------------------------------
#
# What is remembered of a person as Markdown: for reading. The JSON can be brought in again.

Carried = Mapping[str, Any]
"""What is taken out; its form stands in `memory.facts.export`."""

EXPORTED_CHARS = 600


def as_json(carried: Carried) -> str:
    """As it is written to a file: one can read it, too."""
    return json.dumps(carried, ensure_ascii=False, indent=1) + "\n"


def as_markdown(carried: Carried, zone: tzinfo | None) -> str:
    """Facts by category, then what no longer holds, profile, documents and notes."""
    return "\n".join(_exported(carried, zone)) + "\n"


def _exported(carried: Carried, zone: tzinfo | None) -> Iterator[str]:
    yield f"# What Hearthbot remembers ({day(carried['made_ms'], zone)})"
    holding = [fact for fact in carried["facts"] if fact["valid_to_ms"] is None]
    for category in CATEGORIES:
        yield from _exported_facts(category.capitalize(), holding, zone, category=category)
    past = [fact for fact in carried["facts"] if fact["valid_to_ms"] is not None]
    yield from _exported_facts("No longer so", past, zone)
    if carried["profile"]:
        yield from ("", "## Profile", "")
        yield from (f"- {bare(name)}: {_value(one)}" for name, one in carried["profile"].items())
    if carried["documents"]:
        yield from ("", "## Documents", "")
        yield from (
            f"- {bare(one['name'])} ({one['chars']:,} characters, {day(one['saved_ms'], zone)})"
            for one in carried["documents"]
        )
    if carried["notes"]:
        yield from ("", "## Notes", "")
        yield from (f"- {bare(one['path'])}" for one in carried["notes"])
    yield from ("", f"Things that were forgotten, and are not kept: {carried['forgotten']}.")
    yield carried["conversations"]


def _exported_facts(
    heading: str, facts: Sequence[Carried], zone: tzinfo | None, *, category: str = ""
) -> Iterator[str]:
    shown = [fact for fact in facts if category in {"", fact["category"]}]
    if not shown:
        return
    yield from ("", f"## {heading}", "")
    for fact in shown:
        when = day(fact["valid_from_ms"], zone)
        if fact["valid_to_ms"] is not None:
            after = fact["superseded_by"]
            replaced = f", then {fact_key(after)}" if after else ""
            when += f" to {day(fact['valid_to_ms'], zone)}{replaced}"
        where = f", in {bare(fact['scope'])}" if fact["scope"] else ""
        text = bare(fact["text"], chars_max=EXPORTED_CHARS)
        yield f"- {fact_key(fact['id'])} {text} ({when}, by {fact['source']}{where})"
        if fact["quote"]:
            yield f"  - “{bare(fact['quote'], chars_max=EXPORTED_CHARS)}”"


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{bare(str(name))} {_value(one)}" for name, one in value.items())
    if isinstance(value, list):
        return ", ".join(map(_value, value))
    return bare(str(value), chars_max=EXPORTED_CHARS)
