"""Install a skill into the workspace: from a folder or archive, or as written by the assistant.

It is made ready beside its place, checked, and moved there as a whole; nothing of it is run. First
`prepare_…`, then the caller records the quarantine with the digest, then `place`: so that a kill
in between never leaves a skill that nobody knows to be new. All of this blocks: use a thread.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import NamedTemporaryFile

from agent.skills.archives import InstallRefused, NewFolder, unpack
from agent.skills.parser import FILE_BYTES_MAX, Unreadable, cleaned
from agent.skills.places import SKILL_FILE, Stamp, digest, read_file, shown, stamps
from agent.skills.reader import SkillFile, is_name, read_skill
from agent.skills.skill import Severity, Skill, SkillRefused
from agent.skills.suspicious import findings, findings_below
from memory.records.errors import Permanent, StorageFull, StorageReadOnly

_READY = ".ready-"
_OLD = ".old-"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledSkill:
    """A skill that is in, or ready to be. `warnings` are for the owner to read before approving."""

    name: str
    digest: str
    files: tuple[str, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A checked skill that waits beside its place. Ends with `place` or `discard`.

    `ready` is a folder that becomes `final`, or a SKILL.md that takes the place of another.
    """

    installed: InstalledSkill
    skill: Skill
    ready: Path
    final: Path
    waiting_in: Path
    may_replace: bool = False

    def place(self) -> InstalledSkill:
        """Move it in as a whole. Raise InstallRefused, StorageFull, StorageReadOnly."""
        with _storage_in_words(self.final):
            if self.ready.is_file():
                self.ready.replace(self.final)
            else:
                _check_free(self.final, may_replace=self.may_replace)
                self._move_folder()
        self.discard()
        return self.installed

    def discard(self) -> None:
        """Leave no trace of it. Without effect after `place`."""
        _remove(self.waiting_in)

    def _move_folder(self) -> None:
        if not os.path.lexists(self.final):
            self.ready.rename(self.final)
            return
        old = self.final.with_name(f"{_OLD}{self.final.name}.{secrets.token_hex(4)}")
        self.final.rename(old)
        try:
            self.ready.rename(self.final)
        except OSError:
            old.rename(self.final)
            raise
        _remove(old)


def prepare_install(source: Path, target: Path, *, replace: bool = False) -> Prepared:
    """Makes a skill ready from a folder or an archive; `target` is the workspace's `skills`.

    Raises InstallRefused for whatever is wrong with it, StorageFull and StorageReadOnly.
    """
    with _waiting_room(target) as room:
        folder = room / "skill"
        folder.mkdir(mode=0o700)
        try:
            unpack(source, NewFolder(folder))
        except FileNotFoundError as error:
            raise InstallRefused(f"there is nothing at {source}") from error
        except PermissionError as error:
            raise InstallRefused(f"{source} cannot be read: {error.strerror}") from error
        root = _root(folder)
        called = source.name.split(".")[0] if root == folder else root.name
        data = read_file(str(root / SKILL_FILE), bytes_max=FILE_BYTES_MAX)
        skill, odd = _skill_in(data, called)
        final = target / skill.name
        _check_free(final, may_replace=replace)
        files = _files(root)
        return Prepared(
            installed=InstalledSkill(
                name=skill.name,
                digest=digest(str(root), files),
                files=tuple(stamp[0] for stamp in files),
                warnings=(*odd, *findings_below(str(root), files)),
            ),
            skill=skill,
            ready=root,
            final=final,
            waiting_in=room,
            may_replace=replace,
        )


def prepare_new(target: Path, name: str, text: str) -> Prepared:
    """Make a new skill ready from the text of its SKILL.md. Raise as `prepare_install`."""
    skill, odd, data = _written(name, text)
    with _waiting_room(target) as room:
        _check_free(target / name, may_replace=False)
        folder = room / "skill"
        folder.mkdir(mode=0o700)
        _write(folder / SKILL_FILE, data)
        pinned = digest(str(folder), _files(folder))
        return Prepared(
            installed=InstalledSkill(name=name, digest=pinned, files=(SKILL_FILE,), warnings=odd),
            skill=skill,
            ready=folder,
            final=target / name,
            waiting_in=room,
        )


def prepare_change(target: Path, name: str, text: str) -> Prepared:
    """The same for a skill that is there: SKILL.md is replaced as a whole, other files stay."""
    skill, odd, data = _written(name, text)
    folder = target / name
    if folder.is_symlink() or not (folder / SKILL_FILE).is_file():
        raise InstallRefused(f"there is no skill {name} in the workspace: create it first")
    with _waiting_room(target) as room:
        _write(room / SKILL_FILE, data)
        files = _files(folder)
        return Prepared(
            installed=InstalledSkill(
                name=name,
                digest=digest(str(folder), files, instead={SKILL_FILE: data}),
                files=tuple(stamp[0] for stamp in files),
                warnings=odd,
            ),
            skill=skill,
            ready=room / SKILL_FILE,
            final=folder / SKILL_FILE,
            waiting_in=room,
        )


def remove_skill(target: Path, name: str) -> bool:
    """Takes a skill of the workspace away, with all its files; False if there is none."""
    folder = target / name
    if not is_name(name) or not os.path.lexists(folder):
        return False
    with _storage_in_words(folder):
        gone = target / f"{_READY}{secrets.token_hex(8)}"
        folder.rename(gone)
        _remove(gone)
    return True


def sweep(target: Path) -> None:
    """Clears away what a kill has left behind, and puts back a skill that was being replaced.

    To be called at start, when nothing is being installed.
    """
    for left in sorted(target.glob(f"{_OLD}*")):
        final = target / left.name.removeprefix(_OLD).rpartition(".")[0]
        if os.path.lexists(final):
            _remove(left)
        else:
            left.rename(final)
    for left in target.glob(f"{_READY}*"):
        _remove(left)


# --- making ready ------------------------------------------------------------------------------


@contextmanager
def _waiting_room(target: Path) -> Iterator[Path]:
    """A hidden folder beside the place; removed if what is done in it fails."""
    with _storage_in_words(target), ExitStack() as undo:
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
        room = Path(tempfile.mkdtemp(prefix=_READY, dir=target))
        undo.callback(_remove, room)
        yield room
        undo.pop_all()


def _root(folder: Path) -> Path:
    """Where SKILL.md is: at the top, or in the only folder that has one."""
    if (folder / SKILL_FILE).is_file():
        return folder
    found = sorted(path.parent for path in folder.glob(f"*/{SKILL_FILE}"))
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(path.name for path in found[:10])
        raise InstallRefused(f"it holds {len(found)} skills ({names}): install one at a time")
    raise InstallRefused(f"there is no {SKILL_FILE} at its top, or in a folder at its top")


def _skill_in(data: bytes, called: str) -> tuple[Skill, tuple[str, ...]]:
    """The skill and what is odd about it; refused with every error, each with its line."""
    reading = read_skill(data, SkillFile(folder_name=called))
    if reading.skill is None:
        wrong = [p for p in reading.problems if p.severity is Severity.ERROR]
        raise InstallRefused("\n".join(map(str, wrong)))
    # Read again as it will stand: in a folder of its own name.
    again = read_skill(data, SkillFile(folder_name=reading.skill.name))
    return again.skill or reading.skill, tuple(map(str, again.problems))


def _written(name: str, text: str) -> tuple[Skill, tuple[str, ...], bytes]:
    """A skill whose text was written here, what is odd about it, and the bytes of its file."""
    if not is_name(name):
        raise InstallRefused(f"{shown(name[:80])} is no name for a skill: use a-z, 0-9 and hyphens")
    data = text.encode("utf-8", "replace")
    skill, odd = _skill_in(data, name)
    if skill.name != name:
        raise InstallRefused(f"the text says name: {skill.name}, and not {name}")
    return skill, (*odd, *findings(SKILL_FILE, data)), data


def _files(folder: Path) -> tuple[Stamp, ...]:
    try:
        return stamps(str(folder))
    except Unreadable as error:
        raise InstallRefused(f"{folder.name}: {error}") from error


def _check_free(final: Path, *, may_replace: bool) -> None:
    """Also where the file system does not know upper from lower case."""
    for path in final.parent.iterdir():
        if path.name.casefold() == final.name and not (may_replace and path.name == final.name):
            raise InstallRefused(f"there is a skill {shown(path.name)} in the workspace already")


def _write(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        path.chmod(0o600)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _remove(path: Path) -> None:
    if path.is_symlink() or path.is_file():
        path.unlink()
    else:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _storage_in_words(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise StorageFull("the disk is full; the skill was not put in its place") from error
        if error.errno in {errno.EROFS, errno.EACCES, errno.EPERM}:
            raise StorageReadOnly(f"{path} cannot be written: {error.strerror}") from error
        what = error.filename or path
        raise InstallRefused(f"{what} cannot be used: {error.strerror}") from error


# --- writer -------------------------------------------------------------------------------------
#
# Write a SKILL.md as text: anew, or changed without losing what else its front matter says.

FORMER = ".former"
_FRONT = re.compile(r"\s*---+[ \t]*\n(?P<front>.*?\n)(?:---+|\.\.\.)[ \t]*(?:\n|$)", re.DOTALL)
_DESCRIPTION = re.compile(
    r"""^(?P<quote>["']?)description(?P=quote)[ \t]*:.*(?:\n(?:[ \t].*|[ \t]*(?=\n)))*""",
    re.IGNORECASE | re.MULTILINE,
)


class NotRewritable(Permanent):
    """The file cannot be changed without the risk of losing something that it says."""


def skill_text(name: str, description: str, instructions: str) -> str:
    """A new SKILL.md."""
    body = cleaned(instructions).strip()
    return f"---\nname: {name}\ndescription: {_quoted(description)}\n---\n\n{body}\n"


def playbook_text(playbook: Skill) -> str:
    """A stored playbook as a SKILL.md."""
    keywords = json.dumps(playbook.keywords, ensure_ascii=False)
    lines = [
        "---",
        f"name: {playbook.name}",
        f"description: {_quoted(playbook.description)}",
        "metadata:",
        f"  keywords: {keywords}",
        f"  priority: {playbook.priority}",
        "---",
        "",
        playbook.text,
        "",
    ]
    return "\n".join(lines)


def changed_text(
    former: str, *, description: str | None = None, instructions: str | None = None
) -> str:
    """The same SKILL.md with another description or other instructions; None leaves it.

    Raises NotRewritable when anything else in it would read differently afterwards.
    """
    former = cleaned(former.replace("\r\n", "\n").replace("\r", "\n"))
    found = _FRONT.match(former)
    if found is None:
        raise NotRewritable("it has no front matter that a tool could keep")
    front, body = found["front"], former[found.end() :].strip()
    if description is not None:
        line = f"description: {_quoted(description)}"
        front, count = _DESCRIPTION.subn(lambda match: line, front)
        front = front if count else f"{line}\n{front}"
    if instructions is not None:
        body = cleaned(instructions).strip()
    text = f"---\n{front}---\n\n{body}\n"
    if _all_else(text) != _all_else(former):
        raise NotRewritable("its front matter is written in a way that a tool cannot keep")
    return text


def _all_else(text: str) -> object:
    """All that a file says, but for description and instructions."""
    reading = read_skill(text.encode("utf-8", "replace"), SkillFile(folder_name="skill"))
    if reading.skill is None:
        # What is wrong is told by who reads it next; a former file that is broken is not changed.
        return None
    return replace(reading.skill, description="", text=""), reading.requires


def _quoted(text: str) -> str:
    """One line that YAML reads back as it is, whatever colons and quotes are in it."""
    return json.dumps(" ".join(cleaned(text).split()), ensure_ascii=False)


def write_former(skills: Path, skill: Skill) -> None:
    """Keep the text of a skill in use that is replaced or deleted, in `.former`. Raise
    SkillRefused."""
    folder = skills / FORMER
    try:
        if skill.folder is None:
            text = playbook_text(skill).encode("utf-8", "replace")
        else:
            text = read_file(str(skill.folder / SKILL_FILE), bytes_max=FILE_BYTES_MAX)
    except OSError as error:
        raise SkillRefused(
            f"{skill.location} cannot be read ({error.strerror}), and is left as it is"
        ) from error
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=folder, delete=False) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(file.name).replace(folder / f"{skill.name}.md")
    except OSError as error:
        raise SkillRefused(
            f"the former text of {skill.name} cannot be kept in {folder} ({error.strerror}), so "
            "nothing was changed"
        ) from error
