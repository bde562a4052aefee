"""The tool send_file: from the workspace alone, without secrets, to chats of the person alone."""

from __future__ import annotations

import io
import os
import sqlite3
import zipfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from agent.tools.groups.messages import FileToSend, MessageTools, OwnChat, SendableFiles
from agent.tools.tool import Caller, Needs
from agent.tools.workspace import Workspace
from memory.records.messages import PersonId
from memory.records.transcript import ToolResult
from tests.agent.tools.given import (
    GROUP,
    GUEST,
    MEMBER,
    OWNER,
    by_name,
    call,
    no_reaction,
    run_tool,
)
from tests.agent.tools.given import (
    needs as needs_of,
)

TOKEN = "sesame-opens-it"
OTHER = "telegram:43"


class KeptFiles:
    """A Messenger for files."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, FileToSend, str, bool]] = []
        self.noted: list[bool | None] = []

    async def chats(self, person_id: PersonId) -> Sequence[OwnChat]:
        return [OwnChat(lane="telegram:42"), OwnChat(lane="slack:D1")]

    async def send(self, lane: str, text: str, *, untrusted: bool) -> None:
        raise AssertionError("a file goes by send_file")

    async def send_file(
        self, lane: str, file: FileToSend, *, caption: str, untrusted: bool | None
    ) -> None:
        self.sent.append((lane, file, caption, untrusted is not None))
        self.noted.append(untrusted)


class House:
    """A workspace in a home, and the tool over it."""

    def __init__(self, path: Path) -> None:
        self.home = path
        self.workspace = path / "workspace"
        self.workspace.mkdir()
        (path / "config.toml").write_text(f'token = "{TOKEN}"')
        self.kept = KeptFiles()
        files = SendableFiles(
            Workspace(self.workspace),
            bytes_max=1_000,
            clean=lambda text: text.replace(TOKEN, "[redacted]"),
        )
        self.tool = by_name(MessageTools(self.kept, files, no_reaction))["send_file"]

    def put(self, name: str, content: bytes = b"hello") -> None:
        file = self.workspace / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)

    async def send(self, path: str, who: Caller = OWNER, **more: str) -> ToolResult:
        return await run_tool(self.tool, call("send_file", {"path": path, **more}), who)


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


async def test_a_file_is_sent_as_it_is_with_its_caption(house: House) -> None:
    house.put("files/plan.txt", b"the plan")

    result = await house.send("files/plan.txt", caption=" **Here** ")

    file = FileToSend(path="files/plan.txt", name="plan.txt", content=b"the plan")
    assert house.kept.sent == [("telegram:42", file, "**Here**", False)]
    assert result.ok
    assert result.content == "plan.txt (8 bytes) is on its way to this chat."
    assert result.effect == "person"


@pytest.mark.parametrize(
    ("chat", "lane"),
    [
        ("", "telegram:42"),
        ("slack", "slack:D1"),
        ("Slack:D1", "slack:D1"),
        (OTHER, "telegram:42"),
        ("-100", "telegram:42"),
        ("bob", "telegram:42"),
    ],
)
async def test_a_chat_that_is_not_the_persons_becomes_the_current_one(
    house: House, chat: str, lane: str
) -> None:
    house.put("a.txt")

    await house.send("a.txt", chat=chat)

    [(where, _, _, noted)] = house.kept.sent
    assert where == lane
    assert noted == (lane != "telegram:42"), "in its own chat the call stands in the history"


async def test_in_a_group_a_wrong_chat_does_not_become_the_group(house: House) -> None:
    house.put("a.txt")

    wrong = await house.send("a.txt", GROUP, chat=OTHER)
    own = await house.send("a.txt", GROUP, chat="slack")

    assert not wrong.ok
    assert "no private chat 'telegram:43'" in wrong.content
    assert own.ok
    assert [where for where, *_ in house.kept.sent] == ["slack:D1"]


def test_a_group_is_asked_about_and_another_chat_is_a_target(house: House) -> None:
    def needs(who: Caller, chat: str = "") -> Needs:
        return needs_of(house.tool, who, path="a.txt", chat=chat)

    assert needs(OWNER) == Needs()
    assert needs(OWNER, "telegram:42") == Needs()
    assert needs(OWNER, "slack") == Needs(target="slack")
    for chat in ("", GROUP.address.key):
        asked = needs(GROUP, chat)
        assert "everybody in this group" in asked.asks
        assert asked.once_only


@pytest.mark.parametrize(
    "path",
    [
        "../config.toml",
        "/etc/passwd",
        "~/config.toml",
        "files/../../config.toml",
        "%2e%2e/config.toml",
        "link.txt",
        "linked/config.toml",
        "pipe",
        "files",
        "missing.txt",
        "https://evil.example/x",
        "",
        ".",
    ],
)
@pytest.mark.case("SE-09")
@pytest.mark.threat("T10")
async def test_nothing_outside_the_workspace_and_no_link_is_sent(house: House, path: str) -> None:
    """Threat T10."""
    house.put("files/a.txt")
    (house.workspace / "link.txt").symlink_to(house.home / "config.toml")
    (house.workspace / "linked").symlink_to(house.home)
    os.mkfifo(house.workspace / "pipe")

    result = await house.send(path)

    assert not result.ok
    assert not house.kept.sent
    assert TOKEN not in result.content


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (".env", b"A=1"),
        (".git/config", b"x"),
        ("files/.hidden", b"x"),
        ("config.toml", b"x = 1"),
        ("Config.TOML", b"x = 1"),
        ("keys/id_ed25519", b"x"),
        ("server.pem", b"x"),
        ("data.sqlite3", b"x"),
        ("notes.txt", f"the door: {TOKEN}!".encode()),
        ("notes-16.txt", f"the door: {TOKEN}!".encode("utf-16")),
        (f"{TOKEN}.txt", b"x"),
        ("blob.bin", b"\xff\xfe\xfd" + TOKEN.encode()),
        ("key.txt", b"x\n-----BEGIN OPENSSH" + b" PRIVATE KEY-----\n"),
        ("empty.txt", b""),
    ],
)
async def test_what_is_hidden_sets_something_or_holds_a_secret_stays(
    house: House, name: str, content: bytes
) -> None:
    """Threat T12."""
    house.put(name, content)

    result = await house.send(name)

    assert not result.ok
    assert not house.kept.sent
    assert result.content.startswith("send_file: ")


async def test_a_secret_in_an_archive_is_found_and_a_broken_archive_is_no_trouble(
    house: House,
) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", f"<w:t>{TOKEN}</w:t>")
    house.put("letter.docx", packed.getvalue())
    house.put("broken.zip", b"PK\x03\x04" + b"x" * 50)

    assert not (await house.send("letter.docx")).ok
    assert (await house.send("broken.zip")).ok


async def test_a_database_stays_whatever_it_is_called(house: House) -> None:
    with closing(sqlite3.connect(house.home / "hearthbot.db")) as database:
        database.execute("create table people (name text)")
        database.commit()
    os.link(house.home / "hearthbot.db", house.workspace / "picture.png")
    house.put("small.bin", b"SQLite format 3\x00")

    for name in ("picture.png", "small.bin"):
        assert not (await house.send(name)).ok
    assert not house.kept.sent


async def test_what_is_closed_to_the_caller_is_not_sent_to_them(house: House) -> None:
    house.put("memory/MEMORY.md", b"the owner's notes")
    house.put("memory/people/p9/MEMORY.md", b"somebody's notes")
    house.put("files/results/telegram+43/x.txt", b"of another chat")

    assert not (await house.send("memory/MEMORY.md", MEMBER)).ok
    assert not (await house.send("memory/MEMORY.md", GROUP)).ok
    assert not (await house.send("memory/people/p9/MEMORY.md")).ok
    assert not (await house.send("files/results/telegram+43/x.txt")).ok
    assert not (await house.send("memory/MEMORY.md", GUEST)).ok
    assert (await house.send("memory/MEMORY.md")).ok


async def test_a_name_hides_nothing(house: House) -> None:
    house.put("plan\u202efdp.exe")
    house.put(f"{'x' * 120}.pdf")

    await house.send("plan\u202efdp.exe")
    await house.send(f"{'x' * 120}.pdf")

    names = [file.name for _, file, _, _ in house.kept.sent]
    assert names == ["planfdp.exe", f"{'x' * 96}.pdf"]


async def test_a_file_that_is_too_large_is_told_with_both_sizes(house: House) -> None:
    house.put("big.bin", b"x" * 1_001)

    assert "1,001 bytes (at most 1,000)" in (await house.send("big.bin")).content


async def test_an_agreed_call_gets_no_further_than_another(house: House) -> None:
    house.put(".env", b"A=1")

    assert not (await house.send(".env", replace(OWNER, agreed=True))).ok


@pytest.mark.parametrize("is_tainted", [False, True])
async def test_a_caption_that_others_may_have_worded_is_marked_in_the_other_chat(
    house: House, *, is_tainted: bool
) -> None:
    house.put("plan.txt")
    who = replace(OWNER, tainted=is_tainted)

    await house.send("plan.txt", who, caption="Mallory is right", chat="slack")

    assert house.kept.noted == [is_tainted]
