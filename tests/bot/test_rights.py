"""Who may use which command where: a table written by hand. A command without a row fails."""

from __future__ import annotations

import pytest

from bot.commands.command import Command
from bot.commands.table import COMMANDS
from bot.inbox.commands import refusal
from memory.records.messages import Role

TABLE = """
             private chat             group
command      owner  member guest      owner   member  guest
help         yes    yes    yes        yes     yes     yes
new          yes    yes    yes        yes     yes     members
stop         yes    yes    yes        yes     yes     yes
status       yes    yes    yes        yes     yes     yes
model        yes    yes    yes        yes     yes     yes
context      yes    yes    yes        yes     yes     yes
why          yes    yes    yes        yes     yes     yes
skills       yes    yes    yes        yes     yes     yes
snippets     yes    yes    yes        yes     yes     yes
usage        yes    yes    yes        yes     yes     yes
compact      yes    yes    yes        yes     yes     members
restore      yes    yes    yes        yes     yes     members
memory       yes    yes    yes        yes     yes     yes
remember     yes    yes    yes        yes     yes     yes
undo         yes    yes    yes        yes     yes     yes
private      yes    yes    yes        alone   alone   alone
remind       yes    yes    both       yes     yes     both
jobs         yes    yes    both       yes     yes     both
job          yes    yes    both       yes     yes     both
quiet        yes    yes    both       alone   alone   both
heartbeat    yes    owner  owner      alone   owner   owner
agents       yes    yes    yes        yes     yes     yes
approve      yes    yes    yes        yes     yes     yes
timezone     yes    yes    yes        yes     yes     yes
language     yes    yes    yes        yes     yes     yes
link         yes    yes    yes        alone   alone   alone
pair         yes    owner  owner      alone   owner   owner
access       yes    owner  owner      alone   owner   owner
pause        yes    owner  owner      alone   owner   owner
resume       yes    owner  owner      alone   owner   owner
logs         yes    owner  owner      alone   owner   owner
"""
"""yes: it is done. owner: only the owner may. alone: only in a private chat. members: a guest may
not, because in a group it takes something from everybody: the conversation that all have. SPEC §4
gives a guest chat and effect none. What a command then says or does depends on who asks where:
`/status`, `/model`, `/context` and `/skills` have tests of their own for that, and a guest's /stop
in a group ends what they asked for themselves (test_people_line).
"""

SAID = {
    "yes": "",
    "owner": "/{name} is for the owner.",
    "both": "/{name} is for the owner and members.",
    "alone": "/{name} is done in a private chat: write it to me there.",
    "members": "In a group /{name} is for the owner and members, because it concerns everybody "
    "here.",
}

PLACES = [(role, is_group) for is_group in (False, True) for role in Role]


def rows() -> dict[str, list[str]]:
    """The cells of each command, in the order of PLACES."""
    lines = [line.split() for line in TABLE.strip().splitlines()[2:]]
    return {name: cells for name, *cells in lines}


def test_every_command_has_a_row() -> None:
    assert {command.name for command in COMMANDS} - set(rows()) == set()
    assert all(len(cells) == len(PLACES) for cells in rows().values())


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
@pytest.mark.threat("T3")
def test_each_command_is_done_for_whom_and_where_the_table_says(command: Command) -> None:
    cells = rows()[command.name]

    for (role, is_group), cell in zip(PLACES, cells, strict=True):
        said = refusal(command, role=role, is_group=is_group)
        assert said == SAID[cell].format(name=command.name), (role, is_group)
