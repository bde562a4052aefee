"""Thousands of changed paths for every tool that takes one: nothing outside the workspace, and
nothing that is closed in it, is read, listed, sent or changed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agent.tools.groups.files import FileTools
from agent.tools.groups.messages import FileToSend, MessageTools, OwnChat, SendableFiles
from agent.tools.workspace import Workspace
from memory.records.messages import PersonId
from tests.agent.tools.given import GROUP, OWNER, by_name, call, no_reaction, run_tool
from tests.agent.tools.path_mutations import path
from tests.thorough import rounds

CALLS = rounds(1_000, 5_000)
ANEW = 100
"""After so many calls the workspace is as at first, so that what they made does not pile up."""

OUTSIDE, CLOSED, NAMED = "words-from-outside", "words-that-are-closed", "a-name-from-outside"
STEERS = ("AGENTS.md", "prompts", "skills")


class Grounds:
    """A home with a workspace in it, and another folder; `check` fails when one was touched."""

    def __init__(self, folder: Path) -> None:
        self.home, self.outside = folder / "home", folder / "outside"
        self.root = self.home / "workspace"
        self.sent: list[FileToSend] = []
        self._put(self.home / "config.toml", OUTSIDE)
        self._put(self.home / "data" / "hearthbot.db", OUTSIDE)
        self._put(self.outside / "secret.txt", OUTSIDE)
        self._put(self.outside / NAMED, OUTSIDE)
        self._put(self.home / "workspace_evil" / "secret.txt", OUTSIDE)
        self._put(self.root / "a.txt", "ours")
        self._put(self.root / "sub" / "b.txt", "ours")
        for name in (".env", "app/.env.local", "memory/people/p2/notes.md"):
            self._put(self.root / name, CLOSED)
        self._put(self.root / "files/results/slack+9/kept.txt", CLOSED)
        for name in ("AGENTS.md", "prompts/base.md", "skills/mine/SKILL.md"):
            self._put(self.root / name, "what steers")
        (self.root / "link_out").symlink_to(self.outside)
        (self.root / "link_home").symlink_to(self.home)
        (self.root / "link_file").symlink_to(self.home / "config.toml")
        (self.root / "link_dangling").symlink_to(self.outside / "made")
        (self.root / "link_loop").symlink_to(self.root / "link_loop")
        (self.root / "sub" / "link_up").symlink_to("../..")
        (self.root / "hard_config.txt").hardlink_to(self.home / "config.toml")
        (self.root / "hard_database").hardlink_to(self.home / "data" / "hearthbot.db")
        self.before = self._stamps()
        workspace = Workspace(self.root, home=self.home)
        files = SendableFiles(workspace, bytes_max=1_000, clean=str)
        tools = by_name(FileTools(workspace), MessageTools(self, files, no_reaction))
        self.tools = {name: tools[name] for name in tools if name not in {"send_message", "react"}}

    async def chats(self, person_id: PersonId) -> Sequence[OwnChat]:
        return [OwnChat(lane="telegram:42")]

    async def send(self, lane: str, text: str, *, untrusted: bool) -> None:
        raise AssertionError("a file goes by send_file")

    async def send_file(
        self, lane: str, file: FileToSend, *, caption: str, untrusted: bool | None
    ) -> None:
        self.sent.append(file)

    def check(self, said: str, about: object) -> None:
        for secret in (OUTSIDE, CLOSED, NAMED):
            assert secret not in said, about
            assert not any(secret.encode() in file.content for file in self.sent), about
        self.sent.clear()

    def check_files(self, about: object) -> None:
        assert self._stamps() == self.before, about

    def _stamps(self) -> dict[str, str]:
        """All that no call may touch: what lies outside, and what is closed or steers inside."""
        inside = (*(".env", "app/.env.local", "memory/people/p2", "files/results/slack+9"), *STEERS)
        tops = [self.outside, *(one for one in self.home.iterdir() if one != self.root)]
        tops += [self.root / name for name in inside]
        files = [file for top in tops for file in ([top] if top.is_file() else top.rglob("*"))]
        return {
            str(file): hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""
            for file in files
        }

    @staticmethod
    def _put(file: Path, text: str) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def arguments(chance: Random, name: str, where: str) -> dict[str, Any]:
    """Whatever else the tool takes beside the path."""
    match name:
        case "write_file" | "append_file":
            return {"path": where, "content": "written by a model"}
        case "edit_file":
            return {"path": where, "old": chance.choice([OUTSIDE, "ours"]), "new": "gone"}
        case "search_files":
            return {"path": where, "text": "words", "names": chance.choice(["*", "*.txt", "../*"])}
        case _:
            return {"path": where}


@pytest.mark.threat("T10")
@pytest.mark.case("SE-09")
@pytest.mark.timeout(600)
async def test_no_changed_path_leads_out_of_the_workspace_or_to_what_is_closed(
    tmp_path: Path,
) -> None:
    chance = Random(20260107)
    reached = 0
    for start in range(0, CALLS, ANEW):
        grounds = Grounds(tmp_path / str(start))
        places = {
            "home": str(grounds.home),
            "outside": str(grounds.outside),
            "root": str(grounds.root),
        }
        for _ in range(ANEW):
            name = chance.choice(list(grounds.tools))
            made = arguments(chance, name, path(chance, places))
            who = chance.choice([OWNER, GROUP])

            told = await run_tool(grounds.tools[name], call(name, made), who)

            grounds.check("" if name == "edit_file" and not told.ok else told.content, (name, made))
            reached += told.ok
        grounds.check_files(f"seed {start}")

    assert reached > CALLS / 50, "some paths have to be good, or nothing was tried"
