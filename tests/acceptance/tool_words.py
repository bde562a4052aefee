"""What people write to have the scripted model call tools, and what they then find."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.acceptance.rig import Card, Home, Model, Slack, Telegram, until

ONCE, ALWAYS, DENY = "Allow once", "Always for this tool", "Deny"
UNKNOWN = "Unknown: the program stopped while this call ran"
EFFECTS = "canary.txt"


def calling(tool: str, *, say: str, **arguments: Any) -> str:
    """A message that has one tool called; its first line is `say`, which the answer repeats."""
    return f"{say}\n!call {tool} {json.dumps(arguments)}"


def running(script: str, *, say: str) -> str:
    """A message that has a program run, which is asked about."""
    return calling("exec", say=say, command=["sh", "-c", script])


def leaves_a_mark(name: str, *, then: str = "true") -> str:
    """A script whose every run is seen afterwards."""
    return f"echo {name} >> {EFFECTS}; {then}"


def effects(home: Home) -> list[str]:
    """The marks of all runs, in order."""
    file = home.path / "workspace" / EFFECTS
    return file.read_text().split() if file.exists() else []


def only_card(stand_in: Telegram, chat: int) -> Card:
    """Waits for a question with buttons; there is one."""
    until(lambda: stand_in.cards(chat), about=lambda: f"a card in {stand_in.shown(chat)}")
    (card,) = stand_in.cards(chat)
    return card


def slack_card(slack: Slack, channel: str) -> Card:
    """The same in Slack."""
    until(lambda: slack.cards(channel))
    (card,) = slack.cards(channel)
    return card


def reads(stand_in: Telegram, chat: int, words: str) -> str:
    """Waits for a message of the bot with these words; the last such one."""

    def found() -> list[str]:
        return [text for text in stand_in.shown(chat) if words in text]

    until(found, about=lambda: f"{words!r} in {stand_in.shown(chat)}")
    return found()[-1]


def told(model: Model) -> dict[str, list[str]]:
    """What the model was told of each call, over all requests, each wording once."""
    results: dict[str, list[str]] = {}
    for request in model.ask("requests"):
        for message in request["messages"]:
            if message["role"] == "tool":
                said = results.setdefault(message["tool_call_id"], [])
                if message["content"] not in said:
                    said.append(message["content"])
    return results


def commands_of(pid: int) -> dict[int, str]:
    """All processes below one, with their command lines; zombies have an empty one."""
    parents: dict[int, list[int]] = {}
    lines: dict[int, str] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text()
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
        except OSError:
            continue
        child = int(folder.name)
        parents.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(child)
        lines[child] = line
    found: dict[int, str] = {}
    waiting = [pid]
    while waiting:
        for child in parents.get(waiting.pop(), ()):
            found[child] = lines[child]
            waiting.append(child)
    return found


def command_of(pid: int) -> str:
    """The command line of a process; empty for one that has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def alive_with(mark: str) -> list[str]:
    """Command lines of all processes of the machine that hold a mark."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if mark in line:
            found.append(line)
    return found
