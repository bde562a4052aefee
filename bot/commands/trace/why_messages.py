"""What `/why` says of an answer.

Markdown, for a phone. What others wrote (facts, arguments, results, names) stands there without a
meaning as markup, and never as code: only our own commands are. Used by `bot.commands.trace.why`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from agent.budget.messages import percent
from agent.guards.signs import visible
from agent.trace.explanation import BY_RULE, CUT_BACK, SUMMED_UP, Explained, ExplainedCall
from bot.channels.base import EDIT_FACT
from bot.commands.memory.commands import fact_from
from bot.commands.usage import cost_words
from bot.markup.command_text import bare
from memory.records.facts import StoredFact, fact_key
from memory.records.messages import PersonId
from memory.records.rows import Button, ButtonRows, Outcome
from memory.records.schedule import moment_words
from memory.records.turns import Agreed, TurnRecord
from memory.records.usage import added

PREFIX, FORGET = "why", "forget"
BUTTONS_IN_ROW = 3

USE = (
    "Send `/why` as a reply to a message of mine, or alone for my last answer here; `/why 2` is "
    "for the one before it."
)
NOTHING_YET = "I have answered nothing in this conversation yet, so there is nothing to explain."
NOT_SO_MANY = "I have not given so many answers in this conversation. {use}"
NOT_MINE = "I find no message of mine in what you replied to. {use}"
NO_TURN = (
    "That was no answer of mine but what a command said, a notice, or a message that a tool sent: "
    "more is not recorded of it."
)
STILL_MADE = "That answer is still being made, or waits for a yes or no. Ask again once it is done."
EXPIRED = (
    "What made that answer is no longer recorded: it is kept for some time only (trace.keep_days)."
)
ERASED = (
    "The conversation of that answer was erased, and with it all that was recorded of how it was "
    "made."
)
FORGOTTEN = (
    "Something in that answer was forgotten since, and with it what was recorded of how it was "
    "made."
)
PRIVATE = (
    "Memory is off in this conversation: nothing was remembered, and I write no details of it "
    "here, as they would outlast it."
)
TOO_OLD = "This button no longer does anything."
IN_PRIVATE = "Facts are forgotten in a private chat: `/memory forget f12`"

CHANGE = "`/memory edit f12 TEXT` corrects one, `/memory forget f12` erases it"

ARGUMENTS_CHARS = 100
RESULT_CHARS = 140
NAME_CHARS = 60
FACTS_SHOWN = 10
CALLS_SHOWN = 12

_REASONS = {
    "core": "always",
    "kept": "kept from before",
    "used": "used lately",
    "best": "that fit best",
    "fits": "that fit",
    "route": "by subject",
    "required": "for a playbook",
}
_READ = {
    "about the user": ("your profile", "your profile"),
    "long-term notes": ("your long-term notes", "your long-term notes"),
    "daily notes": ("1 day of your notes", "{} days of your notes"),
    "earlier conversation": ("1 earlier exchange", "{} earlier exchanges"),
    "knowledge": ("1 passage of a document", "{} passages of documents"),
    "insights": ("what I keep in mind for this conversation",) * 2,
    "upcoming": ("1 thing that is coming up", "{} things that are coming up"),
    "previous conversation": ("a summary of what was said before",) * 2,
}
_ACTED = {
    "hint_empty": "an empty answer was asked for again",
    "hint_claim": "an answer claimed something that no tool had done, and was asked for again",
    "hint_written_call": "a call that was written as text was asked for again",
    "hint_malformed": "a call that could not be read was asked for again",
    "hint_reworded": "after more such calls I was asked to put it another way",
    "hint_sum_up": "I was told to come to an end without further tools",
    CUT_BACK: "older messages were left out, as the request was too large",
    SUMMED_UP: "what was said before was summed up, as the request was too large",
    BY_RULE: "a rule of the settings called a tool, as my answer was of no help",
    "": "the answer was asked for again",
}
_ERRORS = {
    "ContextTooLong": "the request was too large",
    "MalformedCall": "the model wrote a call that could not be read",
    "SpendingRefused": "a budget was used up",
    "RateLimited": "the model's service asked for a pause",
    "Overloaded": "the model's service was overloaded",
    "ModelTimeout": "the model took too long",
    "BrokenAnswer": "the model's answer broke off",
    "AuthRefused": "the model's service refused the key",
    "BillingRefused": "the model's service wants to be paid",
    "ContentFiltered": "the model's service held an answer back",
}
_OUTCOMES = {
    Outcome.ONCE: "agreed to once",
    Outcome.ALWAYS: "agreed to for good",
    Outcome.DENIED: "refused",
    Outcome.EXPIRED: "not answered in time",
    None: "not answered yet",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Who reads it, and what may be seen where they do.

    `detailed`: it is their own turn and nobody reads along; `shows_money` besides. `is_owner`: the
    log is theirs to read. `facts` are those that the record names, by id, None for one that is
    forgotten or not to be seen here. `name_of` names a person, `server_of` the MCP server of a
    tool; both empty where there is none. `redact` takes secrets out.
    """

    person_id: PersonId
    zone: tzinfo
    detailed: bool
    shows_money: bool
    is_owner: bool
    facts: Mapping[int, StoredFact | None]
    name_of: Callable[[PersonId], str]
    server_of: Callable[[str], str]
    redact: Callable[[str], str]


# --- an answer ----------------------------------------------------------------------------------


def answer_text(record: TurnRecord, found: Explained, reader: Reader) -> str:
    """Return what a turn was made of."""
    blocks = [
        f"**Why this answer**: {moment(record.started_ms, reader.zone)}, `{record.run_id}`",
        *([PRIVATE] if record.is_private else _remembered(found, reader)),
        _picked(found, reader),
        _tools(found, reader),
        _agreed(record.agreed, reader),
        _model(record, found, reader),
        _on_the_way(record, found, reader),
    ]
    return "\n\n".join(block for block in blocks if block)


def fact_buttons(facts: Sequence[StoredFact], *, with_forms: bool) -> ButtonRows:
    """To forget each that still holds, and to correct it where the platform has forms: elsewhere
    words have to be written, as the text says."""
    forget = [
        Button(label=f"Forget {fact.key}", data=f"{PREFIX}:{fact.key}:{FORGET}", style="bad")
        for fact in facts[:FACTS_SHOWN]
    ]
    if not with_forms:
        rows = range(0, len(forget), BUTTONS_IN_ROW)
        return tuple(tuple(forget[at : at + BUTTONS_IN_ROW]) for at in rows)
    correct = [
        Button(label=f"Correct {fact.key}", data=f"{EDIT_FACT}{fact.key}")
        for fact in facts[:FACTS_SHOWN]
    ]
    return tuple(zip(correct, forget, strict=True))


def _remembered(found: Explained, reader: Reader) -> list[str]:
    """Facts that were shown now, those that stood there from earlier turns, and what else."""
    if not reader.detailed:
        # In a group, and to others: how many of one's own, and no words.
        seen = [fact.whose.person_id for fact in reader.facts.values() if fact is not None]
        own = seen.count(reader.person_id)
        more = "; others said something too" if own < len(seen) else ""
        return [f"Remembered of what you said here: {_count(own, 'fact')}{more}"]
    blocks = ["Remembered of you: nothing that fits"]
    if found.facts:
        blocks = [f"Remembered of you ({CHANGE}):\n{_facts(found.facts, reader)}"]
    if found.facts_before:
        told = _facts(found.facts_before, reader)
        blocks.append(f"Told earlier in this conversation:\n{told}")
    read = [
        (one if count == 1 else many).format(count)
        for name, count in found.read.items()
        if name in _READ
        for one, many in (_READ[name],)
    ]
    return [*blocks, f"Read as well: {', '.join(read)}"] if read else blocks


def _facts(ids: Sequence[int], reader: Reader) -> str:
    lines = []
    for fact_id in ids[:FACTS_SHOWN]:
        key, fact = fact_key(fact_id), reader.facts.get(fact_id)
        if fact is None:
            lines.append(f"- {key}: forgotten since")
            continue
        after = ""
        if fact.valid_to_ms is not None:
            new = f" by {fact_key(fact.superseded_by)}" if fact.superseded_by else ""
            after = f"; corrected since{new}"
        lines.append(f"- {key} “{bare(fact.text)}” ({fact_from(fact, reader.zone)}{after})")
    if len(ids) > FACTS_SHOWN:
        lines.append(f"- and {len(ids) - FACTS_SHOWN} more")
    return "\n".join(lines)


def _picked(found: Explained, reader: Reader) -> str:
    if not found.picked:
        return "Playbooks and skills: none that fits"
    if not reader.detailed:
        return f"Playbooks and skills: {', '.join(_named(name) for name, _ in found.picked)}"
    lines = [f"- {_named(name)}: {bare(why)}" for name, why in found.picked]
    return "\n".join(["Playbooks and skills:", *lines])


def _named(picked: str) -> str:
    """Return `the playbook email-triage`, of how the record names it: `playbook:email-triage`."""
    kind, parted, name = picked.partition(":")
    return bare(f"the {kind} {name}" if parted and name else picked, chars_max=NAME_CHARS)


# --- tools --------------------------------------------------------------------------------------


def _tools(found: Explained, reader: Reader) -> str:
    offered = sum(found.offered.values())
    if not offered and not found.calls:
        return "Tools: none offered"
    reasons = ", ".join(
        f"{count} {_REASONS[reason]}"
        for reason, count in found.offered.items()
        if reason in _REASONS
    )
    head = f"Tools: {offered} offered"
    if reader.detailed and reasons:
        head += f" ({reasons})"
    if not found.calls:
        return f"{head}, none called"
    lines = [_call(call, reader) for call in found.calls[:CALLS_SHOWN]]
    if len(found.calls) > CALLS_SHOWN:
        lines.append(f"- and {_count(len(found.calls) - CALLS_SHOWN, 'more call')}")
    return "\n".join([f"{head}, {len(found.calls)} called:", *lines])


def _call(call: ExplainedCall, reader: Reader) -> str:
    name = bare(visible(call.name), chars_max=NAME_CHARS) or "a tool without a name"
    server = reader.server_of(call.name)
    if server:
        name += f" of the MCP server {bare(server, chars_max=NAME_CHARS)}"
    if reader.detailed and (given := _shortened(call.arguments, reader, ARGUMENTS_CHARS)) != "{}":
        name += f" {given}"
    said = "done" if call.ok else "not done"
    if call.took_ms is not None:
        said += f" in {_seconds(call.took_ms)}"
    if not call.ok and reader.detailed:
        said += f": {_shortened(call.content, reader, RESULT_CHARS)}"
    return f"- {name}: {said}{', called by a rule' if call.by_rule else ''}"


def _shortened(text: str, reader: Reader, chars_max: int) -> str:
    """Cut before it is made safe: long texts take their time."""
    return bare(visible(reader.redact(text)[: 4 * chars_max]), chars_max=chars_max)


def _agreed(agreed: Sequence[Agreed], reader: Reader) -> str:
    lines = []
    for one in agreed:
        by = ""
        if one.by is not None:
            name = bare(reader.name_of(one.by), chars_max=NAME_CHARS) or "somebody"
            by = " by you" if one.by == reader.person_id else f" by {name}"
        at = f", {moment(one.at_ms, reader.zone)}" if one.at_ms else ""
        tool = bare(visible(one.tool), chars_max=NAME_CHARS)
        lines.append(f"- {tool} was {_OUTCOMES[one.outcome]}{by}{at}")
    return "\n".join(["Asked about:", *lines]) if lines else ""


# --- the model ----------------------------------------------------------------------------------


def _model(record: TurnRecord, found: Explained, reader: Reader) -> str:
    thought = found.thought
    line = f"Model: {bare(thought.answered) or 'none was asked'}"
    if thought.stand_in:
        line = f"Model: {bare(thought.stand_in)}, as {bare(thought.usual)} could not answer then"
    elif thought.cheaper:
        line = f"Model: {bare(thought.cheaper)}, as a budget was near its end"
    if thought.direct:
        line += "; answered directly, as the message wants no long thought"
    requests = _count(found.requests, "request")
    if record.subagents:
        requests += f" and those of {_count(record.subagents, 'subagent')}"
    used = added(record.spent)
    if not used.tokens:
        return f"{line}\n{requests}; tokens were not counted"
    is_cached = used.prompt and used.cached
    cached = f"{percent(used.cached / used.prompt)} of what was sent" if is_cached else "none"
    said = f"{line}\n{requests}, {used.tokens:,} tokens, {cached} from a cache"
    return f"{said}, {cost_words(used)}" if reader.shows_money else said


def _on_the_way(record: TurnRecord, found: Explained, reader: Reader) -> str:
    happened = [*(_ERRORS.get(kind, "a request failed") for kind in found.errors)]
    happened += [_ACTED.get(name, _ACTED[""]) for name in found.acted]
    often = {1: "", 2: ", twice"}
    lines = [
        f"- {one}{often.get(count, f', {count:,} times')}"
        for one, count in Counter(happened).items()
    ]
    is_odd = bool(lines or found.thought.stand_in)
    if is_odd and reader.is_owner and reader.detailed:
        lines.append(f"- `/logs {record.run_id}` shows what the log has on it")
    return "\n".join(["On the way:", *lines]) if lines else ""


# --- small things -------------------------------------------------------------------------------


def moment(at_ms: int, zone: tzinfo) -> str:
    """Return `Tue 1 Dec 2026, 17:00`, on the wall of a zone."""
    return moment_words(datetime.fromtimestamp(at_ms / 1000, UTC), zone)


def _seconds(ms: int) -> str:
    if ms < 60_000:
        return f"{ms} ms" if ms < 1_000 else f"{ms / 1000:.1f} s"
    return f"{ms // 60_000} min {ms // 1000 % 60} s"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what if number == 1 else f'{what}s'}"
