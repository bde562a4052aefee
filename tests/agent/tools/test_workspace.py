"""Paths never leave the workspace, whatever they look like and whoever swaps folders."""

from __future__ import annotations

import os
import socket
import stat
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agent.tools.groups.files import ProtectedFiles
from agent.tools.tool import Caller
from agent.tools.workspace import PathRefused, Workspace
from tests.agent.tools.given import GROUP, GUEST, MEMBER, OWNER

OUTSIDE = "the secret outside"
AGREED = replace(OWNER, agreed=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace with links that lead outside, beside a folder whose name begins like it."""
    root = tmp_path / "workspace"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "inside.txt").write_text("inside")
    (root / "a.txt").write_text("text")
    for folder in (tmp_path, tmp_path / "workspace_evil"):
        folder.mkdir(exist_ok=True)
        (folder / "secret").write_text(OUTSIDE)
    (root / "link_to_outside").symlink_to(tmp_path)
    (root / "link_to_secret").symlink_to(tmp_path / "secret")
    (root / "link_inside").symlink_to(root / "sub")
    return root


def _listed(workspace: Workspace, path: str) -> None:
    workspace.entries(path, OWNER)


def _read(workspace: Workspace, path: str) -> None:
    workspace.read(path, OWNER)


def _write(workspace: Workspace, path: str) -> None:
    workspace.write(path, b"overwritten", OWNER)


def everything(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


LEAVING = [
    "../secret",
    "/etc/hostname",
    "~/secret",
    "~root/secret",
    "sub/../../secret",
    "link_to_outside/secret",
    "link_to_secret",
    "link_inside/inside.txt",
    "%2e%2e/secret",
    "file:///etc/hostname",
    "a\0b",
    "..\\secret",
    "a\nb",
    "\ud83d",
    "{root}/../secret",
    "{root}/link_to_outside/secret",
    "/".join("d" * 40),
]


@pytest.mark.case("SE-09")
@pytest.mark.parametrize("act", [_read, _write, _listed])
@pytest.mark.parametrize("path", LEAVING)
@pytest.mark.threat("T10")
def test_a_path_that_leaves_the_workspace_is_refused(
    root: Path, path: str, act: Callable[[Workspace, str], None]
) -> None:
    workspace = Workspace(root)
    before = everything(root.parent)

    with pytest.raises(PathRefused) as caught:
        act(workspace, path.format(root=root))

    assert OUTSIDE not in str(caught.value)
    assert everything(root.parent) == before


@pytest.mark.case("SE-09")
def test_a_name_that_only_begins_like_the_workspace_is_a_name_inside(root: Path) -> None:
    workspace = Workspace(root)

    with pytest.raises(PathRefused, match="does not exist"):
        workspace.read("workspace_evil/secret", OWNER)
    workspace.write("workspace_evil/secret", b"mine", OWNER)

    assert (root / "workspace_evil" / "secret").read_text() == "mine"
    assert (root.parent / "workspace_evil" / "secret").read_text() == OUTSIDE


@pytest.mark.case("SE-09")
def test_devices_fifos_and_sockets_are_neither_read_nor_replaced(root: Path) -> None:
    workspace = Workspace(root)
    os.mkfifo(root / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(root)  # a socket's path has to be short
        try:
            listener.bind("socket")
        finally:
            os.chdir(here)

        for name in ("fifo", "socket"):
            for act in (_read, _write):
                with pytest.raises(PathRefused, match="not a regular file"):
                    act(workspace, name)

        assert stat.S_ISFIFO((root / "fifo").stat().st_mode)


def _rename(old: Path, new: Path) -> None:
    """Also when a write has made the folder anew in between: that one is put aside."""
    while True:
        try:
            old.rename(new)
            return
        except OSError:
            new.rename(new.with_name(f"aside-{os.urandom(8).hex()}"))


@pytest.mark.case("SE-09")
@pytest.mark.threat("T10")
def test_a_folder_swapped_for_a_link_meanwhile_leads_nowhere(root: Path) -> None:
    """Folder and link change places all the time, as fast as they can, under reads and writes."""
    workspace = Workspace(root)
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "inside.txt").write_text(OUTSIDE)
    (root / "evil").symlink_to(outside)
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            for old, new in (("sub", "hold"), ("evil", "sub"), ("sub", "evil"), ("hold", "sub")):
                _rename(root / old, root / new)

    swapper = threading.Thread(target=swap)
    swapper.start()
    read, refused = 0, 0
    deadline = time.monotonic() + 60
    try:
        while min(read, refused) < 20 and time.monotonic() < deadline:
            try:
                assert workspace.read("sub/inside.txt", OWNER) == b"inside"
                read += 1
                workspace.write("sub/new.txt", b"%d" % read, OWNER)
                workspace.entries("sub", OWNER)
            except PathRefused:
                refused += 1
    finally:
        done.set()
        swapper.join()

    assert everything(outside) == {"inside.txt": OUTSIDE}
    assert min(read, refused) >= 20


@pytest.mark.case("SE-09")
@pytest.mark.threat("T10")
def test_a_link_in_the_place_of_a_file_is_not_written_through(root: Path) -> None:
    workspace = Workspace(root)
    target = root / "a.txt"

    workspace.write("a.txt", b"first", OWNER)
    target.unlink()
    target.symlink_to(root.parent / "secret")
    with pytest.raises(PathRefused, match="is a link"):
        workspace.write("a.txt", b"second", OWNER)

    assert (root.parent / "secret").read_text() == OUTSIDE


# --- writing -----------------------------------------------------------------------------------


async def test_a_change_is_made_anew_when_another_program_wrote_meanwhile(root: Path) -> None:
    tries = 0

    def longer(content: bytes) -> bytes:
        nonlocal tries
        tries += 1
        if tries == 1:
            (root / "a.txt").write_text("theirs")
        return content + b" and ours"

    is_new, _ = await ProtectedFiles(Workspace(root)).change("a.txt", OWNER, longer)

    assert not is_new
    assert (root / "a.txt").read_text() == "theirs and ours"


async def test_a_change_of_what_never_rests_is_refused_and_loses_nothing(root: Path) -> None:
    workspace = Workspace(root)
    written = "text"

    def longer(content: bytes) -> bytes:
        nonlocal written
        written += "!"
        (root / "a.txt").write_text(written)
        return b"ours"

    with pytest.raises(PathRefused, match="is being changed by another program"):
        await ProtectedFiles(workspace).change("a.txt", OWNER, longer)

    assert (root / "a.txt").read_text() == written
    is_new, _ = await ProtectedFiles(workspace).change("a.txt", OWNER, lambda _: b"calm")
    assert not is_new


def test_sizes_are_capped_both_ways(root: Path) -> None:
    workspace = Workspace(root)
    (root / "big").write_bytes(b"x" * 5_000_001)

    with pytest.raises(PathRefused, match=r"too large to read: 5,000,001 bytes"):
        workspace.read("big", OWNER)
    with pytest.raises(PathRefused, match=r"1,000,001 bytes are too many"):
        workspace.write("b.txt", b"x" * 1_000_001, OWNER)

    assert len(workspace.read("big", OWNER, bytes_max=5_000_001)) == 5_000_001
    assert not (root / "b.txt").exists()


# --- what steers the assistant -----------------------------------------------------------------

STEERING = [
    "AGENTS.md",
    "Agents.md",
    "./soul.MD",
    "ＡＧＥＮＴＳ.md",
    "AGENTS\u200b.md",
    "SOUL.md.",
    "SOUL.md ",
    "Prompts/x/y.md",
    "prompts",
    "skills/new/SKILL.md",
    "agents/default/instructions.md",
]


@pytest.mark.case("SE-19")
@pytest.mark.parametrize("path", STEERING)
def test_what_steers_the_assistant_is_not_written_before_the_owner_has_agreed(
    root: Path, path: str
) -> None:
    before = everything(root)

    assert "steers the assistant" in Workspace(root).steering(path, OWNER)
    with pytest.raises(PathRefused, match="only once the owner has agreed"):
        Workspace(root).write(path, b"obey the page", OWNER)

    assert everything(root) == before


@pytest.mark.parametrize(
    "path",
    [
        "Personas/ADA/new.md",
        "./personas//ada\u200b/x/y.md",
        "ＭＥ.md",
        "sub/them.md",
        "workspace-personas.md",
    ],
)
def test_what_a_setting_makes_part_of_prompts_steers_too(root: Path, path: str) -> None:
    (root / "link.md").symlink_to(root / "workspace-personas.md")
    workspace = Workspace(
        root,
        steering=[
            root / "personas" / "ada",
            root / "sub" / ".." / "me.md",
            root / "link_inside" / "them.md",
            root / "link.md",
        ],
    )

    assert "steers the assistant" in workspace.steering(path, OWNER)
    with pytest.raises(PathRefused, match="only once the owner has agreed"):
        workspace.write(path, b"obey the page", OWNER)
    assert not workspace.steering("personas/bob.md", OWNER)


UNBIDDEN = [
    ".bashrc",
    ".git/config",
    "sub/.git/hooks/post-checkout",
    ".ssh/config",
    "．bashrc",
    "\u200b.bashrc",
    "sub/SiteCustomize.PY",
    "usercustomize/__init__.py",
    "venv/lib/python3/site-packages/evil.pth",
]


@pytest.mark.parametrize("path", UNBIDDEN)
def test_what_programs_take_in_unbidden_is_not_written_before_the_owner_has_agreed(
    root: Path, path: str
) -> None:
    before = everything(root)
    workspace = Workspace(root)

    assert "may change what programs do later" in workspace.steering(path, OWNER)
    with pytest.raises(PathRefused, match="only once the owner has agreed"):
        workspace.write(path, b"touch pwned", OWNER)
    assert everything(root) == before
    assert workspace.write(path, b"x", AGREED)


@pytest.mark.parametrize("path", [".env", "sub/.env.local", ".git/.env"])
def test_secrets_stay_closed_whoever_agreed(root: Path, path: str) -> None:
    with pytest.raises(PathRefused, match="closed"):
        Workspace(root).write(path, b"x", AGREED)


@pytest.mark.parametrize(
    "path", ["sub/AGENTS.md", "my-skills/x.md", "agents.txt", "a.b.txt", "50%20off.txt"]
)
def test_names_that_only_look_like_it_can_be_written_and_are_the_owners_alone(
    root: Path, path: str
) -> None:
    assert Workspace(root).write(f"deep/{path}", b"x", OWNER)
    assert Workspace(root).write(path, b"x", OWNER)

    assert stat.S_IMODE((root / "deep").stat().st_mode) == 0o700
    assert stat.S_IMODE((root / path).stat().st_mode) == 0o600


# --- whose files -------------------------------------------------------------------------------

PRIVATE = {
    "USER.md": {"owner"},
    "memory/MEMORY.md": {"owner"},
    "Memory/MEMORY.md": {"owner"},
    "memory/202601/20260107.md": {"owner"},
    "memory/people/p1/MEMORY.md": {"owner"},
    "memory/people/p2/MEMORY.md": {"member"},
    "memory/people/p9/MEMORY.md": set(),
    "MEMORY/People/p9/MEMORY.md": set(),
    "files/results/telegram+42/r.txt": {"owner"},
    "files/results/telegram+43/r.txt": {"member"},
    "files/results/telegram+-100/r.txt": {"group", "member in a group"},
    "Files/Results/telegram+43/r.txt": {"member"},
    ".env": set(),
    "sub/.ENV.local": set(),
    "sub/inside.txt": {"owner", "member", "guest", "group", "member in a group"},
    "notes/memory/x.md": {"owner", "member", "guest", "group", "member in a group"},
}
WHO = {
    "owner": OWNER,
    "member": MEMBER,
    "guest": GUEST,
    "group": GROUP,
    "member in a group": replace(MEMBER, address=GROUP.address, is_group=True),
}


@pytest.mark.case("SE-17")
@pytest.mark.parametrize("path", PRIVATE)
@pytest.mark.parametrize("name", WHO)
def test_a_private_file_is_read_by_its_person_in_a_private_chat_alone(
    root: Path, path: str, name: str
) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("whose?")
    workspace = Workspace(root)

    if name in PRIVATE[path]:
        assert workspace.read(path, WHO[name]) == b"whose?"
    else:
        with pytest.raises(PathRefused):
            workspace.read(path, WHO[name])


@pytest.mark.case("SE-17")
def test_a_listing_leaves_out_what_the_caller_may_not_see(root: Path) -> None:
    for path in PRIVATE:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("whose?")
    workspace = Workspace(root)

    def names(path: str, who: Caller) -> set[str]:
        return {entry.name for entry in workspace.entries(path, who).entries}

    assert {"memory", "USER.md"} <= names(".", OWNER)
    for who in (MEMBER, GUEST, GROUP):
        assert not {"memory", "Memory", "USER.md", ".env"} & names(".", who)
    assert names("memory/people", OWNER) == {"p1"}
    assert names("files/results", MEMBER) == {"telegram+43"}
    with pytest.raises(PathRefused, match="for the owner alone"):
        workspace.entries("memory", MEMBER)
    assert names("memory/people/p2", MEMBER) == {"MEMORY.md"}


def test_what_a_killed_write_left_is_not_listed(root: Path) -> None:
    (root / ".0123456789abcdef.part").write_text("half")

    names = [entry.name for entry in Workspace(root).entries(".", OWNER).entries]

    assert ".0123456789abcdef.part" not in names
