"""Who may have what done, where, and after whose words: every tool there is, by a table that was
written by hand. A new tool fails here until it has a row."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agent.policy.approval import AskFirst, NotAllowed, Policy, decide
from agent.policy.presentation import needs_of
from agent.tools.arguments import parse_arguments
from agent.tools.tool import Caller, Needs
from memory.records.messages import Address, ConversationId, PersonId, Role, RunId
from tests.agent.attack_kit import Castle
from tests.agent.obedient import ObedientModel
from tests.agent.sandbox.given import needs_sandbox
from tests.agent.schedule_kit import BusyCastle

CALLS: Mapping[str, Mapping[str, Any]] = {
    "read_file": {"path": "a.txt"},
    "write_file": {"path": "a.txt", "content": "x"},
    "edit_file": {"path": "a.txt", "old": "x", "new": "y"},
    "append_file": {"path": "a.txt", "content": "x"},
    "search_files": {"text": "x"},
    "send_message": {"text": "x", "chat": "slack"},
    "send_file": {"path": "a.txt", "chat": "slack"},
    "react": {"emoji": "👍"},
    "read_skill": {"name": "x"},
    "create_skill": {"name": "x", "description": "x", "instructions": "x"},
    "update_skill": {"name": "x"},
    "subagent": {"task": "x"},
    "spawn": {"task": "x"},
    "web_fetch": {"url": "https://new.example/"},
    "web_search": {"query": "x"},
    "exec": {"command": ["id"]},
    "run_skill": {"skill": "x"},
    "tool_list": {"group": "web"},
    "tool_search": {"query": "x"},
    "tool_describe": {"name": "exec"},
    "tool_call": {"name": "exec"},
    "i2c": {"action": "detect"},
    "spi": {"action": "list"},
    "store_fact": {"text": "x", "category": "pattern"},
    "search_memories": {"query": "x"},
    "update_fact": {"id": "f1", "text": "x"},
    "forget_fact": {"id": "f1"},
    "search_conversations": {"query": "x"},
    "append_notes": {"text": "x"},
    "update_profile": {"path": "name", "value": "x", "reason": "x"},
    "remind_me": {"text": "x", "when": "in 2 hours"},
    "record_event": {"name": "x", "when": "in 2 hours"},
    "schedule_job": {"when": "every day at 12:00", "instructions": "x"},
    "update_job": {"id": "j1", "text": "x"},
    "remove_job": {"id": "j1"},
    "run_job": {"id": "j1"},
    "evil__post": {"text": "x"},
    "evil__lookup": {"text": "x"},
}

# Columns: owner, member, guest in a conversation of their own words; the same three once words of
# others are in it. "run"; "ask" whose turn it is; "OWN" ask the owner alone; "no" whoever agrees.
TABLE = """
read_file        run run run   run run run
list_dir         run run run   run run run
search_files     run run run   run run run
write_file       run no  no    run no  no
edit_file        run no  no    run no  no
append_file      run no  no    run no  no
send_message     run run no    ask ask no
send_file        run run no    ask ask no
react            run run no    run run no
get_status       run run run   run run run
nothing_to_report no no no no no no
list_skills      run run run   run run run
read_skill       run run run   run run run
create_skill     OWN no  no    OWN no  no
update_skill     OWN no  no    OWN no  no
run_skill        OWN no  no    OWN no  no
subagent         run run no    run run no
spawn            run run no    run run no
web_fetch        run run run   ask ask no
web_search       run run run   run run run
exec             OWN no  no    OWN no  no
tool_categories  run run run   run run run
tool_list        run run run   run run run
tool_search      run run run   run run run
tool_describe    run run run   run run run
tool_call        run run run   run run run
i2c              OWN no  no    OWN no  no
spi              OWN no  no    OWN no  no
store_fact       run run no    ask ask no
search_memories  run run run   run run run
list_facts       run run run   run run run
update_fact      run run no    ask ask no
forget_fact      run run no    ask ask no
search_conversations run run run run run run
read_notes       run run run   run run run
append_notes     run run no    ask ask no
get_profile      run run run   run run run
update_profile   run run no    ask ask no
remind_me        run run no    ask ask no
record_event     run run no    ask ask no
list_events      run run run   run run run
schedule_job     OWN ask no    OWN ask no
list_jobs        run run run   run run run
update_job       run run no    ask ask no
remove_job       run run no    ask ask no
run_job          run run no    ask ask no
evil__post       ask no  no    ask no  no
evil__lookup     ask ask no    ask ask no
"""
"""The same in a group, but for what is closed there. Besides, USER.md, notes and skills are closed
in files (tests of those)."""

CLOSED_IN_GROUPS = {"read_notes", "append_notes", "get_profile", "update_profile"}

ASKS_OWNER_IN_GROUPS = {"schedule_job"}
"""What a member has in their own chat is theirs to agree to; in a group it concerns others."""

ROWS = {words[0]: words[1:] for words in map(str.split, TABLE.strip().splitlines())}
ROLES = (Role.OWNER, Role.MEMBER, Role.GUEST)
MAY_BE_ABSENT = {"i2c", "spi"}
"""Offered only where the machine has such buses."""


def rows(*, is_group: bool) -> Mapping[str, list[str]]:
    """What is expected of each tool that is always there."""
    return {
        name: _in_group(name, row) if is_group else row
        for name, row in ROWS.items()
        if name not in MAY_BE_ABSENT
    }


def _in_group(name: str, row: list[str]) -> list[str]:
    if name in CLOSED_IN_GROUPS:
        return ["no"] * 6
    return (
        ["OWN" if word == "ask" else word for word in row] if name in ASKS_OWNER_IN_GROUPS else row
    )


def caller(role: Role, *, is_group: bool, tainted: bool) -> Caller:
    chat = "-100" if is_group else "5"
    return Caller(
        person_id=PersonId("p1"),
        role=role,
        address=Address(channel="telegram", chat_id=chat),
        conversation=ConversationId("c"),
        run_id=RunId("r"),
        is_group=is_group,
        tainted=tainted,
    )


@needs_sandbox
@pytest.mark.parametrize("is_group", [False, True], ids=["private", "group"])
@pytest.mark.threat("T3", "T24")
async def test_every_tool_does_for_everybody_what_the_table_says(
    tmp_path: Path, is_group: bool
) -> None:
    castle = BusyCastle(tmp_path)
    castle.put("a.txt", "x")

    async with castle.attacked(ObedientModel()):
        there = {name: _row(castle, name, is_group=is_group) for name in castle.tool_names}

    assert rows(is_group=is_group) == {
        name: row for name, row in there.items() if name not in MAY_BE_ABSENT
    }
    assert all(there[name] == ROWS[name] for name in MAY_BE_ABSENT & there.keys())


def _row(castle: Castle, name: str, *, is_group: bool) -> list[str]:
    return [
        _cell(castle, name, caller(role, is_group=is_group, tainted=tainted))
        for tainted in (False, True)
        for role in ROLES
    ]


def _cell(castle: Castle, name: str, who: Caller) -> str:
    tool = castle.made.reach.tool(name, who)
    if tool is None:
        return "no"
    card = tool.card
    needs = Needs()
    if name in CALLS or not card.spec().parameters.get("required"):
        text = json.dumps(CALLS.get(name, {}))
        needs = needs_of(tool, parse_arguments(card.arguments, text), who)
    is_told = card.hinted or (who.tainted and needs.target)  # as `agent.policy.gate` finds
    leaves = "somebody learns something" if is_told else ""
    verdict = decide(Policy(), card, needs, who, leaves=leaves, always=False)
    match verdict:
        case AskFirst(owner_alone=owner_alone):
            return "OWN" if owner_alone else "ask"
        case NotAllowed():
            return "no"
        case _:
            return "run"
