"""The slash commands in one table, and which one a message gives.

None calls a model. `bot.inbox.commands` runs them.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from bot.commands.command import MEMBERS, OWNER_ALONE, Answer, Command, CommandCall, Tools
from bot.commands.conversation import compact, restore, stop, subagents
from bot.commands.logs import logs
from bot.commands.memory.commands import ended, private
from bot.commands.memory.undo import undo
from bot.commands.models import model
from bot.commands.skills import skills_reply
from bot.commands.trace.prompts import context
from bot.commands.usage import pause, resume, usage
from bot.markup.command_text import NAMES, all_as_typed, as_typed, bare, slash
from memory.records.messages import IncomingMessage, Role

# --- commands of a few lines ----------------------------------------------------------------------


async def show_help(tools: Tools, asked: CommandCall) -> str:
    """Return what can be typed here."""
    before = slash(asked.message.address.key)
    lines = [
        f"{before}{command.name} – {command.help}"
        for command in COMMANDS
        if asked.person.role in command.roles & command.named_to
    ]
    if before.startswith("/hearth"):
        lines += ["", "In a thread, where these do not work, mention me instead: `@hearth /stop`"]
    return "\n".join(["Just write to me. These words act at once:", "", *lines])


async def start_new(tools: Tools, asked: CommandCall) -> str:
    """Open a fresh conversation; the old one is kept, unless memory was off in it."""
    lane = asked.message.address.key
    was_private = await tools.memory.private.is_private(lane)
    await tools.conversations.start_new(lane)
    if was_private:
        return await ended(tools.memory)
    return "A new conversation begins. What was said before is kept, but no longer sent along."


async def show_status(tools: Tools, asked: CommandCall) -> str:
    """Return how the bot is doing."""
    alone = not asked.message.is_group
    lines = await tools.status.lines(
        for_owner=alone and asked.person.role is Role.OWNER,
        lane=asked.message.address.key,
        person_id=asked.person.id if alone else "",
    )
    return "\n".join(lines)


async def list_skills(tools: Tools, asked: CommandCall) -> str:
    """Return what the bot knows how to do here: a few of each kind, behind `all` the whole list."""
    in_full = asked.rest.lower() == "all"
    said = await skills_reply(tools.skills, asked.message, asked.person, in_full=in_full)
    if in_full or not asked.rest:
        return said
    where = asked.message.address.key
    return f"{left_out('skills', asked.rest, where, but='all')}\n\n{said}"


async def show_snippets(tools: Tools, asked: CommandCall) -> str:
    """Texts that can be sent with one tap, and what is wrong with the file they stand in."""
    found = tools.snippets.read()
    lines = [f"- {snippet.icon} {snippet.message}" for snippet in found.snippets]
    said = "\n".join(["Ready to be sent:", "", *lines]) if lines else "There are none."
    wrong = [f"- {problem}" for problem in found.problems]
    if not wrong or asked.message.is_group or asked.person.role is not Role.OWNER:
        return said
    return "\n".join([said, "", "What could not be used:", "", *wrong])


async def approve(tools: Tools, asked: CommandCall) -> str:
    """Answer what waits, or show it."""
    text = await tools.approvals.tell(asked.message, asked.person, asked.rest)
    if text.startswith("**"):
        return text  # one question, which shows exactly what would run
    return all_as_typed(text, asked.message.address.key)


async def pair(tools: Tools, asked: CommandCall) -> str | Answer:
    """Let in who asked, or show them."""
    if asked.rest.strip():
        return await tools.people.pair(asked.rest)
    return await tools.people.who_asks(asked.message)


async def link(tools: Tools, asked: CommandCall) -> str:
    """Join one more address to a person."""
    text = await tools.people.link(asked.person, asked.message, asked.rest)
    # A code is sent from the other address, so it is told how that is typed there.
    return as_typed(text, asked.message.address.channel) if asked.rest else text


# --- the table ----------------------------------------------------------------------------------

PAUSE_NEEDS_NO_WORDS = (
    "Nothing was paused: I cannot pause for a time, or a part. `/pause` alone pauses all until "
    "`/resume`, `/job j12 pause` one job, and `/quiet 22:00-07:00` sets hours in which I do not "
    "speak up by myself."
)
RESUME_NEEDS_NO_WORDS = (
    "Nothing was resumed: `/resume` alone lets all go on, `/job j12 resume` one job."
)
UNDO_NEEDS_NO_WORDS = (
    "Nothing was undone: `/undo` alone takes back what the last answer stored, and "
    "`/memory forget f12` one thing that I know."
)
RESTORE_NEEDS_NO_WORDS = (
    "Nothing was changed: `/restore` alone takes back the last summing-up of this chat."
)

COMMANDS: tuple[Command, ...] = (
    Command(name="help", help="what can be typed here", run=show_help, is_bare=True, offers=True),
    Command(
        name="new",
        help="start a new conversation",
        run=start_new,
        is_bare=True,
        group_roles=MEMBERS,
    ),
    Command(
        name="stop", help="end what is being done in this chat", run=stop, is_bare=True, waits=True
    ),
    Command(name="status", help="how the bot is doing", run=show_status, is_bare=True),
    Command(
        name="model",
        help="which model answers here, and how to change it",
        run=model,
    ),
    Command(
        name="context",
        help="what went to the model last, and how large it was",
        run=context,
        is_bare=True,
    ),
    Command(
        name="why",
        help="why I answered so, or sent it: reply to it with this",
        run=lambda tools, asked: tools.why().tell(asked.message, asked.person, asked.rest),
    ),
    Command(name="skills", help="what I know how to do here", run=list_skills, is_ours=False),
    Command(
        name="snippets",
        help="texts to send with one tap",
        run=show_snippets,
        is_bare=True,
        offers=True,
        is_ours=False,
    ),
    Command(
        name="usage",
        help="what was used, and what it cost",
        run=usage,
        is_bare=True,
    ),
    Command(
        name="compact",
        help="sum up what is older in this chat",
        run=compact,
        is_bare=True,
        group_roles=MEMBERS,
        waits=True,
    ),
    Command(
        name="restore",
        help="take the last summing-up back",
        run=restore,
        instead=RESTORE_NEEDS_NO_WORDS,
        group_roles=MEMBERS,
    ),
    Command(
        name="memory",
        help="what I know of you: see, correct, erase",
        run=lambda tools, asked: tools.memories.tell(asked.message, asked.person, asked.rest),
        waits=True,
    ),
    Command(
        name="remember",
        help="keep something for good",
        run=lambda tools, asked: tools.memories.remember(asked.message, asked.person, asked.rest),
        named_to=MEMBERS,
    ),
    Command(
        name="undo",
        help="take back what the last answer stored",
        run=undo,
        instead=UNDO_NEEDS_NO_WORDS,
    ),
    Command(
        name="private",
        help="a conversation with memory off",
        run=private,
        private=True,
        waits=True,
    ),
    Command(
        name="remind",
        help="remind you of something: `/remind tomorrow at 5 call Bob`",
        run=lambda tools, asked: tools.schedule.remind(asked.message, asked.person, asked.rest),
        roles=MEMBERS,
    ),
    Command(
        name="jobs",
        help="your reminders, jobs and events",
        run=lambda tools, asked: tools.schedule.jobs(asked.message, asked.person),
        is_bare=True,
        roles=MEMBERS,
    ),
    Command(
        name="job",
        help="one job: show, pause, move, run, remove",
        run=lambda tools, asked: tools.schedule.job(asked.message, asked.person, asked.rest),
        roles=MEMBERS,
    ),
    Command(
        name="quiet",
        help="hours in which I do not speak up by myself",
        run=lambda tools, asked: tools.schedule.quiet(asked.message, asked.person, asked.rest),
        roles=MEMBERS,
        private=True,
    ),
    Command(
        name="heartbeat",
        help="whether and when I look at HEARTBEAT.md",
        run=lambda tools, asked: tools.heartbeat.tell(asked.message, asked.person, asked.rest),
        roles=OWNER_ALONE,
        private=True,
    ),
    Command(
        name="agents",
        help="who works for this chat, and how to stop one",
        run=subagents,
    ),
    Command(
        name="approve",
        help="what waits for your yes or no, and how to answer",
        run=approve,
        named_to=MEMBERS,
        is_ours=False,
    ),
    Command(
        name="timezone",
        help="what time it is for you",
        run=lambda tools, asked: tools.people.time_zone(asked.person, asked.rest),
    ),
    Command(
        name="language",
        help="in which language I answer you",
        run=lambda tools, asked: tools.people.language(asked.person, asked.rest),
    ),
    Command(
        name="link",
        help="use a second address as the same person",
        run=link,
        private=True,
        is_ours=False,
    ),
    Command(name="pair", help="who asked to be let in", run=pair, roles=OWNER_ALONE, private=True),
    Command(
        name="access",
        help="who may talk to me",
        run=lambda tools, asked: tools.people.access(asked.rest),
        roles=OWNER_ALONE,
        private=True,
    ),
    Command(
        name="pause",
        help="begin nothing new; what comes in is kept",
        run=pause,
        instead=PAUSE_NEEDS_NO_WORDS,
        roles=OWNER_ALONE,
        private=True,
    ),
    Command(
        name="resume",
        help="go on after a pause",
        run=resume,
        instead=RESUME_NEEDS_NO_WORDS,
        roles=OWNER_ALONE,
        private=True,
    ),
    Command(
        name="logs",
        help="the last lines of my log: `/logs 50`, `/logs errors`",
        run=logs,
        roles=OWNER_ALONE,
        private=True,
    ),
)

ALIASES = {"start": "help", "deny": "approve"}
"""Telegram sends /start at first; and who can approve by a word looks for one that denies."""

BEHIND_ALIASES = {"help": "", "approve": "{} deny"}
"""What stands behind the command in place of what was typed: that behind /start is Telegram's."""


# --- which one a message gives ------------------------------------------------------------------

ALIKE = 0.75
"""From here on two words are so alike that one may be meant by the other, of 1."""

LETTERS_MAX = 32
"""No command is longer by far."""

_ALONE = re.compile(rf"/([A-Za-z0-9_]{{1,{LETTERS_MAX}}})(?:@[A-Za-z0-9_]+)?\s*")


def lone_word(text: str) -> str:
    """Return the word of a text that is one word after a slash; empty for any other text."""
    found = _ALONE.fullmatch(text)
    return found[1] if found is not None else ""


def nearest(word: str, names: Collection[str]) -> str:
    """Return the name that was probably meant; empty where none is near."""
    from difflib import get_close_matches  # rarely needed, and a start loads what stands above

    return next(iter(get_close_matches(word.lower(), names, n=1, cutoff=ALIKE)), "")


def unknown_text(word: str, where: str, names: Collection[str]) -> str:
    """Return what is answered to a word that is no command. `where` is an address, as for
    `slash`."""
    before = slash(where)
    meant = nearest(word, names)
    hint = f" Did you mean `{before}{meant}`?" if meant else ""
    text = f"There is no `{before}{word}`.{hint} `{before}help` lists them."
    if before == "/" or before.startswith("@"):
        return text
    return f"{text} What is meant for me is written without `{before.strip()}`."


def left_out(name: str, rest: str, where: str, *, but: str = "") -> str:
    """Return what stands in front of the answer of a command that takes no words `but` one."""
    said = bare(rest, chars_max=60)
    no_words = f"no words after it but `{but}`" if but else "no words after it"
    return f"`{slash(where)}{name}` takes {no_words}, so I left out “{said}”."


async def no_command(tools: Tools, asked: CommandCall) -> str:
    """Say that there is no such command, and which one was probably meant."""
    # Nobody is pointed to a command that they may not use.
    names = [command.name for command in COMMANDS if asked.person.role in command.roles]
    return unknown_text(asked.rest, asked.message.address.key, [*names, *ALIASES])


NO_COMMAND = Command(name="unknown", help="", run=no_command, is_ours=False)
"""Stands for each word that is no command and is answered all the same."""

_WORD = re.compile(r"/([A-Za-z0-9_]+)(?:@[A-Za-z0-9_]+)?(?:\s(.*))?", re.DOTALL)


def find(text: str) -> tuple[Command, str] | None:
    """Return the command that a text asks for, and the rest of it; unknown slash words are None.

    `/stop@our_bot` counts; the channel has left out what is meant for other bots.
    """
    found = _WORD.fullmatch(text)
    if found is None:
        return None
    name, rest = found[1].lower(), (found[2] or "").strip()
    wanted = ALIASES.get(name, name)
    for command in COMMANDS:
        if command.name == wanted:
            behind = BEHIND_ALIASES[wanted] if name in ALIASES else "{}"
            return command, behind.format(rest).strip()
    return None


def given(message: IncomingMessage) -> tuple[Command, str] | None:
    """Return the command that a message gives; None for other texts.

    A word that is none is answered by NO_COMMAND if it is nearly one, since a mistyped `/remind`
    would else become a conversation; where commands stand behind a word of ours, any lone word is.
    """
    found = find(message.text)
    if found is not None or message.attachments or (message.is_group and not message.mentions_bot):
        return found
    if slash(message.address.channel) != "/":
        word = lone_word(message.text)
        return (NO_COMMAND, word) if word else None
    mistyped = _WORD.fullmatch(message.text)
    if mistyped is not None and nearest(mistyped[1], NAMES | {*ALIASES}):
        return NO_COMMAND, mistyped[1]
    return None
