"""What is said when a person is asked whether a call may run, and once they have answered.

Markdown, for a phone; used by `bot.people.approvals`. Nothing that a model or a stranger wrote gets
here but in the rows of a code block (`agent.policy.presentation`), or on one line with its markup
taken away.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo

from agent.guards.repetition import visible
from bot.people.register import plain_name, shown
from memory.records.messages import Role
from memory.records.rows import (
    Button,
    ButtonRows,
    Grant,
    NewApproval,
    Outcome,
    Person,
    StoredApproval,
)

CODE_CHARS = 6
"""Of an id, as they are typed."""

TOOLS = {
    "exec": "run a program",
    "run_skill": "run a script of a skill",
    "write_file": "write a file",
    "append_file": "add to a file",
    "edit_file": "change a file",
    "create_skill": "write a skill",
    "update_skill": "change a skill",
    "web_fetch": "open a web page",
    "web_search": "search the web",
    "send_message": "send a message",
    "send_file": "send a file",
    "react": "react to a message",
    "remind_me": "set a reminder",
    "record_event": "note an event",
    "schedule_job": "schedule a job",
    "update_job": "change a job",
    "remove_job": "remove a job",
    "run_job": "run a job now",
    "store_fact": "remember something for good",
    "update_fact": "change what I remember",
    "forget_fact": "forget something",
    "update_profile": "change a profile",
    "append_notes": "add to the notes",
    "save_document": "keep a document",
    "remove_document": "remove a document",
    "spawn": "begin a task in the background",
    "subagent": "hand over a part of the work",
    "i2c": "use a device on this machine's I²C bus",
    "spi": "use a device on this machine's SPI bus",
}
"""What a person reads in place of a tool's name, behind "May I"."""

ONCE, ALWAYS, DENY = "once", "always", "deny"
ANSWERS = {ONCE: Outcome.ONCE, ALWAYS: Outcome.ALWAYS, DENY: Outcome.DENIED}
"""The words of buttons and of `/approve`."""

UNKNOWN = "That question is not known here (any more). /approve shows what is open."
BEFORE = "It was answered before."
NOT_ALWAYS = "This is asked about each time: only once, or deny."
OWNER_ALONE = "Only the owner can answer this."
NO_GUESTS = "As a guest you cannot agree to this."
OTHER_ROLE = "Your role has changed since this was asked. Ask me for it again."
IN_PRIVATE = "What is open is shown in a private chat: write `/approve` to me there."
USE = """\
`/approve` shows what waits for you, and what is allowed for good
`/approve CODE` shows one question
`/approve CODE once` (or deny, or always where that is offered) answers it
`/approve revoke TOOL` takes back what was allowed for good"""

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_MARKUP = re.compile(r"([\\*_<>~|])")
_PLAINER = str.maketrans("`[]", "'()")


def card_text(
    asked: NewApproval,
    *,
    person: Person | None,
    reader: Person | None,
    is_shared: bool,
    answer: str,
) -> str:
    """Return the question, with what would be done. `person` is whose turn it is, `reader` who
    alone reads it; the `answer` is due "within 10 minutes" (of its arrival), or "by 12:10".

    A model may have been talked into it: nobody is said to want it.
    """
    if person is None:
        whose = "It came up in a turn of somebody who is not here any more."
    elif is_shared:
        name = plain_name(person) or "the person who wrote to me"
        whose = f"It came up in what {name} asked; nobody else can answer."
    elif reader is not None and reader.id == person.id:
        whose = "It came up in what you asked."
    else:
        whose = f"It came up in a turn of {shown(person)}."
    # A few signs are replaced: no escape takes their meaning away here.
    why = _MARKUP.sub(r"\\\1", visible(asked.why).translate(_PLAINER))
    return "\n\n".join(
        (
            f"**May I {plain(asked.tool)}?**",
            asked.shows,
            f"Why I ask: {why}",
            f"{whose} Answer {answer}; without an answer it is not done.",
        )
    )


def buttons(asked: NewApproval) -> ButtonRows:
    """Once, always where that is a choice, and no."""

    def data(word: str) -> str:
        return f"ok:{asked.id}:{word}"

    once = Button(label="Allow once", data=data(ONCE), style="good")
    deny = Button(label="Deny", data=data(DENY), style="bad")
    if asked.once_only:
        return ((once, deny),)
    return ((once, deny), (Button(label="Always for this tool", data=data(ALWAYS)),))


def decided_text(approval: StoredApproval, *, by: Person | None, at: str) -> str:
    """Return what a card reads once it is decided; what it was about stays in it."""
    asked = approval.asked
    about = plain(asked.tool)
    return "\n\n".join(
        (f"**{_outcome(approval, by, at)}**", f"{about[:1].upper()}{about[1:]}:", asked.shows)
    )


def answer_text(approval: StoredApproval, *, by: Person | None, at: str) -> str:
    """For whoever answered, or came too late: short and without markup, as what pops up when a
    button was pressed has none."""
    said = _outcome(approval, by, at)
    if approval.outcome is Outcome.ALWAYS:
        return f"{said} /approve revoke {approval.asked.tool} takes it back."
    if approval.outcome is Outcome.EXPIRED:
        return f"{said} If you still want it, ask me for it again."
    return said


def others_only(person: Person | None) -> str:
    """For somebody who pressed a button that is not theirs."""
    name = plain_name(person) if person is not None else ""
    return f"Only {name or 'the person who asked for it'} can answer this."


def notice_text(asked: NewApproval, *, minutes: str, is_asked: bool) -> str:
    """For the chat of the turn, where the question itself is not shown."""
    what = plain(asked.tool)
    if is_asked:
        return f"I have asked the owner in private whether I may {what}; this waits for {minutes}."
    return (
        f"Only the owner can agree that I {what}, and I have no private chat with them. They can "
        f"answer with `/approve` in the terminal, for {minutes}."
    )


def overview(open_ones: Sequence[tuple[StoredApproval, str]], grants: Sequence[Grant]) -> str:
    """Return what waits for a person, each with its line, and what they allowed for good."""
    blocks = []
    if open_ones:
        lines = [f"- `{one.id[:CODE_CHARS]}`: {line}" for one, line in open_ones]
        first = open_ones[0][0]
        code, others = first.id[:CODE_CHARS], "deny" if first.asked.once_only else "always, deny"
        blocks += ["\n".join(["Waiting for your answer:", "", *lines])]
        blocks += [f"`/approve {code}` shows it, `/approve {code} once` (or {others}) answers."]
    if grants:
        lines = []
        for grant in grants:
            is_plain = grant.agent == "default" or not _NAME.fullmatch(grant.agent)
            agent = "" if is_plain else f" (agent `{grant.agent}`)"
            lines.append(f"- `{grant.tool}`: {plain(grant.tool)}{agent}")
        blocks += ["\n".join(["Allowed for good:", "", *lines])]
        blocks += ["`/approve revoke TOOL` takes it back."]
    return "\n\n".join(blocks) or "Nothing waits for your answer, and nothing is allowed for good."


def which(word: str) -> str:
    """For somebody who answered without saying what."""
    return f"Say which one, with its code: `/approve CODE {word}`"


def open_line(asked: NewApproval, *, person: Person | None, until: str) -> str:
    """One line of that list."""
    whose = f", for {shown(person)}" if person is not None else ""
    return f"{plain(asked.tool)}{whose}, until {until}"


def revoked_text(tool: str, *, count: int) -> str:
    """Return what became of a wish to take something back."""
    if not count:
        return "Nothing of that name is allowed for good. `/approve` shows what is."
    return f"Taken back: {plain(tool)}. From now on I ask again."


def plain(tool: str) -> str:
    """Return what a tool does, in plain words that go on after "May I"; else its name."""
    known = TOOLS.get(tool)
    if known is not None:
        return known
    if not _NAME.fullmatch(tool):
        return "use a tool"
    server, parted, name = tool.partition("__")
    return f"use `{name}` of `{server}`" if parted and server and name else f"use `{tool}`"


def spelled(ms: int, zone: tzinfo, *, now_ms: int) -> str:
    """A time of day as one says it, with the day where it is not today."""
    then = datetime.fromtimestamp(ms / 1000, UTC).astimezone(zone)
    today = datetime.fromtimestamp(now_ms / 1000, UTC).astimezone(zone).date()
    if then.date() == today:
        return f"{then:%H:%M}"
    return f"{then:%H:%M} on {then.day} {then:%b}"


def minutes_of(seconds: float) -> str:
    """Return how long something waits: `10 minutes`."""
    minutes = max(round(seconds / 60), 1)
    return "1 minute" if minutes == 1 else f"{minutes} minutes"


# --- inside ------------------------------------------------------------------------------------


def _outcome(approval: StoredApproval, by: Person | None, at: str) -> str:
    who = "the owner"
    if by is not None and (plain_name(by) or by.role is not Role.OWNER):
        who = plain_name(by) or "the person who asked"
    match approval.outcome:
        case Outcome.ONCE:
            return f"Allowed once by {who} at {at}."
        case Outcome.ALWAYS:
            return f"Allowed by {who} at {at}, and from now on without asking."
        case Outcome.DENIED:
            return f"Denied by {who} at {at}: not run."
        case Outcome.EXPIRED if approval.decided_ms < approval.expires_ms:
            return "Not run: this was stopped before anybody answered."
        case Outcome.EXPIRED:
            return "Expired: not run."
        case None:
            return "Nobody has answered yet."
