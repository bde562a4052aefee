"""The group `message`: words and files to the person's own chats alone, and reactions."""

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
from memory.records.messages import Address, PersonId
from memory.records.transcript import ToolResult
from tests.agent.tools.given import GROUP, GUEST, MEMBER, OWNER, by_name, call, run_tool
from tests.agent.tools.given import needs as needs_of

TOKEN = "sesame-opens-it"
OTHER = "telegram:43"


class House:
    """A workspace in a home, and the tools over it. Implements Messenger: keeps what is sent."""

    def __init__(self, path: Path) -> None:
        self.home = path
        self.workspace = path / "workspace"
        self.workspace.mkdir()
        (path / "config.toml").write_text(f'token = "{TOKEN}"')
        self.said: list[tuple[str, str, bool]] = []
        self.sent: list[tuple[str, FileToSend, bool | None]] = []
        self.captions: list[str] = []
        self.reactions: list[tuple[str, str, str]] = []
        files = SendableFiles(
            Workspace(self.workspace),
            bytes_max=1_000,
            clean=lambda text: text.replace(TOKEN, "[redacted]"),
        )
        self.tools = by_name(MessageTools(self, files, self.react))

    async def chats(self, person_id: PersonId) -> Sequence[OwnChat]:
        return [OwnChat(lane="telegram:42"), OwnChat(lane="slack:D1")]

    async def send(self, lane: str, text: str, *, untrusted: bool) -> None:
        self.said.append((lane, text, untrusted))

    async def send_file(
        self, lane: str, file: FileToSend, *, caption: str, untrusted: bool | None
    ) -> None:
        self.sent.append((lane, file, untrusted))
        self.captions.append(caption)

    async def react(self, address: Address, message_id: str, emoji: str) -> str:
        self.reactions.append((address.key, message_id, emoji))
        return emoji

    def put(self, name: str, content: bytes = b"hello") -> None:
        file = self.workspace / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)

    async def use(self, tool: str, who: Caller = OWNER, /, **given: str) -> ToolResult:
        return await run_tool(self.tools[tool], call(tool, given), who)

    async def give(self, path: str, who: Caller = OWNER, /, **more: str) -> ToolResult:
        return await self.use("send_file", who, path=path, **more)

    def needs(self, tool: str, who: Caller = OWNER, /, **given: str) -> Needs:
        return needs_of(self.tools[tool], who, **given)


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


# --- words and files -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chat", "lane"),
    [
        ("", "telegram:42"),
        ("slack", "slack:D1"),
        ("Slack:D1", "slack:D1"),
        (OTHER, "telegram:42"),
        ("-100", "telegram:42"),
    ],
)
async def test_a_chat_that_is_not_the_persons_becomes_the_current_one(
    house: House, chat: str, lane: str
) -> None:
    house.put("a.txt")

    await house.use("send_message", text="hi", chat=chat)
    await house.give("a.txt", caption=" **Here** ", chat=chat)

    assert house.captions == ["**Here**"]
    [(said_to, text, _)], [(sent_to, file, noted)] = house.said, house.sent
    assert (said_to, text) == (lane, "hi")
    assert (sent_to, file.content) == (lane, b"hello")
    # In its own chat the call itself stands in the history.
    assert (noted is not None) == (lane != "telegram:42")


async def test_in_a_group_a_wrong_chat_does_not_become_the_group(house: House) -> None:
    house.put("a.txt")

    wrong = await house.give("a.txt", GROUP, chat=OTHER)
    own = await house.give("a.txt", GROUP, chat="slack")

    assert not wrong.ok
    assert "no private chat 'telegram:43'" in wrong.content
    assert own.ok
    assert [lane for lane, *_ in house.sent] == ["slack:D1"]


def test_another_chat_is_a_target_and_a_file_for_a_group_is_asked_about(house: House) -> None:
    for tool, given in (("send_message", {"text": "hi"}), ("send_file", {"path": "a.txt"})):
        assert house.needs(tool, **given) == Needs()
        assert house.needs(tool, **given, chat="telegram:42") == Needs()
        assert house.needs(tool, **given, chat="slack:D1") == Needs(target="slack:D1")
    for chat in ("", GROUP.address.key):
        asked = house.needs("send_file", GROUP, path="a.txt", chat=chat)
        assert "everybody in this group" in asked.asks
        assert asked.once_only


@pytest.mark.parametrize(
    ("caller", "chat", "untrusted"),
    [
        (OWNER, "", False),
        (OWNER, "slack", False),
        (replace(OWNER, tainted=True), "slack", True),
        (replace(OWNER, described=True), "", False),
        (replace(OWNER, described=True), "slack", True),
        (GROUP, "", True),
        (GROUP, "slack", False),
    ],
)
async def test_what_others_may_have_worded_is_marked_wherever_it_lands(
    house: House, caller: Caller, chat: str, untrusted: bool
) -> None:
    house.put("a.txt")

    await house.use("send_message", caller, text="hi", chat=chat)
    if chat:
        await house.give("a.txt", caller, caption="Mallory is right", chat=chat)

    marks = [mark for *_, mark in (*house.said, *house.sent)]
    assert set(marks) == {untrusted}


# --- which files stay ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "../config.toml",
        "/etc/passwd",
        "files/../../config.toml",
        "link.txt",
        "linked/config.toml",
        "pipe",
        "files",
        "https://evil.example/x",
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

    result = await house.give(path)

    assert not result.ok
    assert not house.sent
    assert TOKEN not in result.content


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (".env", b"A=1"),
        (".git/config", b"x"),
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
        ("large.txt", b"x" * 1_001),
    ],
)
async def test_what_is_hidden_sets_something_or_holds_a_secret_stays(
    house: House, name: str, content: bytes
) -> None:
    """Threat T12."""
    house.put(name, content)

    result = await house.give(name)

    assert not result.ok
    assert not house.sent
    assert result.content.startswith("send_file: ")


async def test_a_secret_in_an_archive_is_found_and_a_broken_archive_is_no_trouble(
    house: House,
) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", f"<w:t>{TOKEN}</w:t>")
    house.put("letter.docx", packed.getvalue())
    house.put("broken.zip", b"PK\x03\x04" + b"x" * 50)

    assert not (await house.give("letter.docx")).ok
    assert (await house.give("broken.zip")).ok


async def test_a_database_stays_whatever_it_is_called(house: House) -> None:
    with closing(sqlite3.connect(house.home / "hearthbot.db")) as database:
        database.execute("create table people (name text)")
        database.commit()
    os.link(house.home / "hearthbot.db", house.workspace / "picture.png")
    house.put("small.bin", b"SQLite format 3\x00")

    for name in ("picture.png", "small.bin"):
        assert not (await house.give(name)).ok
    assert not house.sent


async def test_what_is_closed_to_the_caller_is_not_sent_to_them(house: House) -> None:
    house.put("memory/MEMORY.md", b"the owner's notes")
    house.put("memory/people/p9/MEMORY.md", b"somebody's notes")
    house.put("files/results/telegram+43/x.txt", b"of another chat")

    assert not (await house.give("memory/MEMORY.md", MEMBER)).ok
    assert not (await house.give("memory/MEMORY.md", GROUP)).ok
    assert not (await house.give("memory/people/p9/MEMORY.md")).ok
    assert not (await house.give("files/results/telegram+43/x.txt")).ok
    assert not (await house.give("memory/MEMORY.md", GUEST)).ok
    assert (await house.give("memory/MEMORY.md")).ok


async def test_a_name_hides_nothing(house: House) -> None:
    house.put("plan\u202efdp.exe")
    house.put(f"{'x' * 120}.pdf")

    await house.give("plan\u202efdp.exe")
    await house.give(f"{'x' * 120}.pdf")

    names = [file.name for _, file, _ in house.sent]
    assert names == ["planfdp.exe", f"{'x' * 96}.pdf"]


# --- reactions -----------------------------------------------------------------------------------


async def test_a_reaction_goes_under_the_message_that_is_answered_or_that_is_named(
    house: House,
) -> None:
    who = replace(OWNER, message_id="17")

    first = await house.use("react", who, emoji=" 👍 ")
    await house.use("react", who, emoji="👀", message="12")
    without = await house.use("react", emoji="👍")

    assert first.ok
    assert "👍" in first.content
    assert house.reactions == [("telegram:42", "17", "👍"), ("telegram:42", "12", "👀")]
    assert not without.ok
    assert "none to react to" in without.content
