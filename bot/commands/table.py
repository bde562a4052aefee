"""The slash commands, one function each, in one table. None calls a model.

Which one a message gives is found by `bot.commands.given`; `bot.inbox.commands` calls it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from bot.commands import messages as words
from bot.commands.conversation import stop
from bot.commands.services import Answer, CommandCall, Tools
from bot.commands.skills import skills_reply
from bot.commands.typed import all_as_typed, slash
from bot.commands.typed import as_typed as typed_there
from memory.records.messages import Role

EVERYBODY = frozenset(Role)
MEMBERS = frozenset({Role.OWNER, Role.MEMBER})
OWNER_ALONE = frozenset({Role.OWNER})


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One row of the table. One that `waits` runs beside what comes in after it.

    `roles` may use it, in groups `group_roles` of them; what is `private` shows or changes what
    is nobody else's business, and is answered in a private chat alone.
    """

    name: str
    help: str
    run: Callable[[Tools, CommandCall], Awaitable[str | Answer]]
    offers: bool = False
    """Whether the answer comes with the quick-insert texts, in a private chat."""
    roles: frozenset[Role] = field(default=EVERYBODY)
    group_roles: frozenset[Role] = field(default=EVERYBODY)
    private: bool = False
    waits: bool = False
    is_ours: bool = True
    """Whether commands that stand in the answer are there to be typed where it is read."""
    named_to: frozenset[Role] = field(default=EVERYBODY)
    """Of those who may use it, to whom /help names it: to others it only says that they may not."""
    is_bare: bool = False
    """Whether it takes no words: those behind it are named in front of the answer."""
    instead: str = ""
    """What is said to words behind it, and nothing done: they ask for something else than it
    does."""


async def show_help(tools: Tools, asked: CommandCall) -> str:
    """What can be typed here."""
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
    """Opens a fresh conversation; the old one is kept, unless memory was off in it."""
    lane = asked.message.address.key
    was_private = await tools.private.is_private(lane)
    await tools.conversations.start_new(lane)
    if was_private:
        return await tools.private.ended()
    return "A new conversation begins. What was said before is kept, but no longer sent along."


async def status(tools: Tools, asked: CommandCall) -> str:
    """How the bot is doing."""
    alone = not asked.message.is_group
    lines = await tools.status.lines(
        for_owner=alone and asked.person.role is Role.OWNER,
        lane=asked.message.address.key,
        person_id=asked.person.id if alone else "",
    )
    return "\n".join(lines)


async def model(tools: Tools, asked: CommandCall) -> str:
    """Which model answers here, and another one."""
    return await tools.models.tell(asked.message, asked.person, asked.rest)


async def context(tools: Tools, asked: CommandCall) -> str:
    """What the last prompt of this conversation was made of."""
    return await tools.context.tell(asked.message, asked.person)


async def why(tools: Tools, asked: CommandCall) -> Answer:
    """What made an answer, or why something was sent."""
    return await tools.why.tell(asked.message, asked.person, asked.rest)


async def skills(tools: Tools, asked: CommandCall) -> str:
    """What the bot knows how to do here: a few of each kind, behind `all` the whole list."""
    in_full = asked.rest.lower() == "all"
    said = await skills_reply(tools.skills, asked.message, asked.person, in_full=in_full)
    if in_full or not asked.rest:
        return said
    where = asked.message.address.key
    return f"{words.left_out('skills', asked.rest, where, but='all')}\n\n{said}"


async def snippets(tools: Tools, asked: CommandCall) -> str:
    """Texts that can be sent with one tap, and what is wrong with the file they stand in."""
    found = tools.snippets.read()
    lines = [f"- {snippet.icon} {snippet.message}" for snippet in found.snippets]
    said = "\n".join(["Ready to be sent:", "", *lines]) if lines else "There are none."
    wrong = [f"- {problem}" for problem in found.problems]
    if not wrong or asked.message.is_group or asked.person.role is not Role.OWNER:
        return said
    return "\n".join([said, "", "What could not be used:", "", *wrong])


async def compact(tools: Tools, asked: CommandCall) -> str:
    """Sums up now what is older."""
    return await tools.compacting.compact(asked.message, asked.person)


async def restore(tools: Tools, asked: CommandCall) -> str:
    """Takes the last summing-up back."""
    return await tools.compacting.restore(asked.message, asked.person)


async def memory(tools: Tools, asked: CommandCall) -> str:
    """What is remembered: seen, corrected, erased."""
    return await tools.memory.tell(asked.message, asked.person, asked.rest)


async def remember(tools: Tools, asked: CommandCall) -> str:
    """One more fact."""
    return await tools.memory.remember(asked.message, asked.person, asked.rest)


async def undo(tools: Tools, asked: CommandCall) -> str:
    """Back to what was stored before the last answer."""
    return await tools.undo.tell(asked.message, asked.person)


async def private(tools: Tools, asked: CommandCall) -> str:
    """A conversation that is erased at its end."""
    return await tools.private.tell(asked.message, asked.person, asked.rest)


async def remind(tools: Tools, asked: CommandCall) -> str:
    """Something to be reminded of."""
    return await tools.schedule.remind(asked.message, asked.person, asked.rest)


async def jobs(tools: Tools, asked: CommandCall) -> str:
    """What will happen by the clock."""
    return await tools.schedule.jobs(asked.message, asked.person)


async def job(tools: Tools, asked: CommandCall) -> str:
    """One job: shown, and changed."""
    return await tools.schedule.job(asked.message, asked.person, asked.rest)


async def quiet(tools: Tools, asked: CommandCall) -> str:
    """Hours in which nothing is said unasked."""
    return await tools.schedule.quiet(asked.message, asked.person, asked.rest)


async def heartbeat(tools: Tools, asked: CommandCall) -> str:
    """The regular look at the list."""
    return await tools.heartbeat.tell(asked.message, asked.person, asked.rest)


async def usage(tools: Tools, asked: CommandCall) -> str:
    """What was used, and what is left."""
    return await tools.usage.tell(asked.message, asked.person)


async def pause(tools: Tools, asked: CommandCall) -> str:
    """Nothing new is begun until it is resumed."""
    return await tools.usage.pause(asked.person)


async def resume(tools: Tools, asked: CommandCall) -> str:
    """Goes on after a pause, the owner's or the brake's."""
    return await tools.usage.resume(asked.person)


async def agents(tools: Tools, asked: CommandCall) -> str:
    """Who works for this chat, and how to stop one."""
    return await tools.agents.tell(asked.message, asked.person, asked.rest)


async def approve(tools: Tools, asked: CommandCall) -> str:
    """What waits for an answer, and the answer."""
    text = await tools.approvals.tell(asked.message, asked.person, asked.rest)
    if text.startswith("**"):
        return text  # one question, which shows exactly what would run
    return all_as_typed(text, asked.message.address.key, NAMES)


async def pair(tools: Tools, asked: CommandCall) -> str | Answer:
    """Who asked to be let in."""
    if asked.rest.strip():
        return await tools.people.pair(asked.rest)
    offer = await tools.people.who_asks(asked.message)
    return Answer(text=offer.text, buttons=offer.buttons)


async def access(tools: Tools, asked: CommandCall) -> str:
    """Who may talk to the bot."""
    return await tools.people.access(asked.rest)


async def logs(tools: Tools, asked: CommandCall) -> str:
    """What the bot noted of itself lately."""
    return await tools.logs.tell(asked.person, asked.rest)


async def link(tools: Tools, asked: CommandCall) -> str:
    """One more address for a person."""
    text = await tools.people.link(asked.person, asked.message, asked.rest)
    # A code is sent from the other address, so it is told how that is typed there.
    return as_typed(text, asked.message.address.channel) if asked.rest else text


async def time_zone(tools: Tools, asked: CommandCall) -> str:
    """What time it is for a person."""
    return await tools.people.time_zone(asked.person, asked.rest)


async def language(tools: Tools, asked: CommandCall) -> str:
    """In which language a person is answered."""
    return await tools.people.language(asked.person, asked.rest)


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
    Command(name="status", help="how the bot is doing", run=status, is_bare=True),
    Command(name="model", help="which model answers here, and how to change it", run=model),
    Command(
        name="context",
        help="what went to the model last, and how large it was",
        run=context,
        is_bare=True,
    ),
    Command(name="why", help="why I answered so, or sent it: reply to it with this", run=why),
    Command(name="skills", help="what I know how to do here", run=skills, is_ours=False),
    Command(
        name="snippets",
        help="texts to send with one tap",
        run=snippets,
        is_bare=True,
        offers=True,
        is_ours=False,
    ),
    Command(name="usage", help="what was used, and what it cost", run=usage, is_bare=True),
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
        instead=words.RESTORE_NEEDS_NO_WORDS,
        group_roles=MEMBERS,
    ),
    Command(name="memory", help="what I know of you: see, correct, erase", run=memory, waits=True),
    Command(
        name="remember",
        help="keep something for good",
        run=remember,
        named_to=MEMBERS,
    ),
    Command(
        name="undo",
        help="take back what the last answer stored",
        run=undo,
        instead=words.UNDO_NEEDS_NO_WORDS,
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
        run=remind,
        roles=MEMBERS,
    ),
    Command(
        name="jobs", help="your reminders, jobs and events", run=jobs, is_bare=True, roles=MEMBERS
    ),
    Command(name="job", help="one job: show, pause, move, run, remove", run=job, roles=MEMBERS),
    Command(
        name="quiet",
        help="hours in which I do not speak up by myself",
        run=quiet,
        roles=MEMBERS,
        private=True,
    ),
    Command(
        name="heartbeat",
        help="whether and when I look at HEARTBEAT.md",
        run=heartbeat,
        roles=OWNER_ALONE,
        private=True,
    ),
    Command(name="agents", help="who works for this chat, and how to stop one", run=agents),
    Command(
        name="approve",
        help="what waits for your yes or no, and how to answer",
        run=approve,
        named_to=MEMBERS,
        is_ours=False,
    ),
    Command(name="timezone", help="what time it is for you", run=time_zone),
    Command(name="language", help="in which language I answer you", run=language),
    Command(
        name="link",
        help="use a second address as the same person",
        run=link,
        private=True,
        is_ours=False,
    ),
    Command(name="pair", help="who asked to be let in", run=pair, roles=OWNER_ALONE, private=True),
    Command(name="access", help="who may talk to me", run=access, roles=OWNER_ALONE, private=True),
    Command(
        name="pause",
        help="begin nothing new; what comes in is kept",
        run=pause,
        instead=words.PAUSE_NEEDS_NO_WORDS,
        roles=OWNER_ALONE,
        private=True,
    ),
    Command(
        name="resume",
        help="go on after a pause",
        run=resume,
        instead=words.RESUME_NEEDS_NO_WORDS,
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

NAMES = frozenset(command.name for command in COMMANDS)


def as_typed(text: str, where: str) -> str:
    """Words of ours with the commands in them as they are typed on a channel
    (`bot.commands.typed`), which is named by itself or by an address of it."""
    return typed_there(text, where, NAMES)
