"""Which command a message gives, if any. Called by the intake and by Slack."""

from __future__ import annotations

import re

from bot.commands import messages as words
from bot.commands.services import CommandCall, Tools
from bot.commands.table import ALIASES, BEHIND_ALIASES, COMMANDS, NAMES, Command
from bot.commands.typed import slash
from memory.records.messages import IncomingMessage


async def no_command(tools: Tools, asked: CommandCall) -> str:
    """Says that there is no such command, and which one was probably meant."""
    names = [command.name for command in COMMANDS if asked.person.role in command.roles]
    return words.unknown_text(asked.rest, asked.message.address.key, [*names, *ALIASES])


NO_COMMAND = Command(name="unknown", help="", run=no_command, is_ours=False)
"""Stands for each word that is no command and is answered all the same."""

_WORD = re.compile(r"/([A-Za-z0-9_]+)(?:@[A-Za-z0-9_]+)?(?:\s(.*))?", re.DOTALL)


def find(text: str) -> tuple[Command, str] | None:
    """The command that a text asks for, and the rest of it; unknown slash words are None.

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
    """The command that a message gives; NO_COMMAND with the word that was typed, for one that is
    nearly one or, where commands stand behind a word of ours, any. Other texts are None."""
    found = find(message.text)
    if found is not None or message.attachments or (message.is_group and not message.mentions_bot):
        return found
    word = words.lone_word(message.text)
    if word and (slash(message.address.channel) != "/" or words.nearest(word, NAMES | {*ALIASES})):
        return NO_COMMAND, word
    return None
