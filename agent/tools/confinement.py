"""What a program may see of the workspace on somebody's behalf: the file tools' rules, as mounts.

Called by `exec` and `run_skill`. A program is given a view in which what is closed to its caller is
covered, and what steers the assistant cannot be changed. Functions block: call them in a thread.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from agent.sandbox.bubblewrap import Confinement
from agent.sandbox.environment import Placeholders
from agent.tools.edits import ENTRIES_MAX as BESIDE_MAX
from agent.tools.edits import FileId, TooMuchBeside, id_of, many_named
from agent.tools.tool import Caller
from agent.tools.workspace import (
    RESULTS,
    STEERING_FILES,
    STEERING_FOLDERS,
    closed_to,
    results_folder,
    steers,
)
from memory.records.errors import Permanent

ENTRIES_MAX = 200_000
"""Files and folders of a workspace that are looked through for secrets."""
COVERED_MAX = 1_000

_FILES = tuple(f"{name.removesuffix('.md').upper()}.md" for name in sorted(STEERING_FILES))
_ANYWHERE = "-"
"""A folder about which there is no rule: what is closed in it is closed for its own name."""
_MEMORY = "memory"
_PEOPLE = (_MEMORY, "people")


class ConfinementRefused(Permanent):
    """The workspace cannot be shown to a program safely; the text says why."""


@dataclass(slots=True, kw_only=True)
class WorkspaceViews:
    """Makes the view of the workspace that one caller's program gets.

    `readable` are folders that programs may read besides the workspace, `secret` ones that they
    never see (the home with settings and database), and `fixed` files or folders of the workspace
    that steer the assistant by a setting (a persona).
    """

    workspace: Path
    secret: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    fixed: tuple[Path, ...] = ()
    _placeholders: Placeholders = field(default_factory=Placeholders)

    @contextmanager
    def view(
        self,
        caller: Caller,
        *,
        more: Sequence[Path] = (),
        instead: Mapping[Path, Path] | None = None,
    ) -> Iterator[Confinement]:
        """Holds while the program runs; `more` may be read too, such as a skill's own folder, and
        `instead` shows one file in the place of another.

        Raises ConfinementRefused.
        """
        root = self.workspace.resolve()
        files = [root / name for name in _FILES]
        folders = [root / name for name in (*sorted(STEERING_FOLDERS), _MEMORY, RESULTS[0])]
        folders += [root.joinpath(*_PEOPLE), root.joinpath(*RESULTS)]
        try:
            self._placeholders.hold(files=files, folders=folders)
        except OSError as error:
            raise ConfinementRefused(
                f"the workspace cannot be prepared for a program ({error.strerror}): "
                "see that its folders can be written"
            ) from error
        try:
            confinement = _confinement(self, root, caller, more)
            yield replace(confinement, instead=instead)
        finally:
            self._placeholders.release()


def _confinement(
    views: WorkspaceViews, root: Path, caller: Caller, more: Sequence[Path]
) -> Confinement:
    memory, people = root / _MEMORY, root.joinpath(*_PEOPLE)
    results = root.joinpath(*RESULTS)
    own_results = results / results_folder(caller)
    names = _names(root)
    open_names = [name for name in names if not closed_to(caller, (name,))]
    fixed = [root / name for name in open_names if steers((name,))]
    fixed += [path.resolve() for path in views.fixed if path.exists()]
    covered = [
        root / name
        for name in names
        if name not in open_names and not _may_hold_secrets(name, caller)
    ]
    covered += [*_secrets(views, root, caller), results]
    opened_fixed: list[Path] = []
    if not closed_to(caller, (_MEMORY,)):
        # Notes are part of prompts: a link put there by a program would be followed.
        fixed.append(memory)
        covered.append(people)
        opened_fixed += _plain_folder(people / caller.person_id)
    for path in (*fixed, *covered):
        _check_no_link(path, root)
    # Where it does not, a file that is covered could be reached by another spelling.
    if os.path.lexists(root / _FILES[0].swapcase()) and _FILES[0].swapcase() not in _names(root):
        raise ConfinementRefused(
            "the workspace lies on a file system that ignores case, where a program cannot be kept "
            "from single files: move it to another one"
        )
    opened = _plain_folder(own_results)
    return Confinement(
        workspace=root,
        readable=_existing((*views.readable, *more), root),
        secret=_existing(views.secret, root),
        pinned=(root / RESULTS[0],),
        fixed=tuple(path for path in fixed if path.exists() and path not in covered),
        covered=tuple(_outermost(covered, but=(*opened, *opened_fixed))),
        opened=tuple(opened),
        opened_fixed=tuple(opened_fixed),
    )


def _secrets(views: WorkspaceViews, root: Path, caller: Caller) -> list[Path]:
    """Everything called `.env`, wherever it lies, and every second name of a file that is secret.
    Raises ConfinementRefused when there is too much to look through, for what was not looked at is
    not covered."""
    beside = _beside(views, root)
    numbers = {number for _, number in beside}
    found: list[Path] = []
    waiting, seen = [str(root)], 0
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    seen += 1
                    if _may_hold_secrets(entry.name, caller):
                        if not entry.is_symlink():
                            found.append(Path(entry.path))
                    elif entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif entry.inode() in numbers and _is_any_of(entry, beside):
                        found.append(Path(entry.path))
        except OSError:
            continue  # Gone meanwhile, or closed to us and so to the program.
        if seen > ENTRIES_MAX or len(found) > COVERED_MAX:
            raise ConfinementRefused(
                f"the workspace has more than {ENTRIES_MAX:,} files, or {COVERED_MAX:,} named "
                ".env: it is too large to be shown to a program safely; move some elsewhere"
            )
    return found


def _beside(views: WorkspaceViews, root: Path) -> frozenset[FileId]:
    try:
        found = [many_named(secret.resolve(), root) for secret in views.secret]
    except TooMuchBeside as error:
        raise ConfinementRefused(
            f"the home has more than {BESIDE_MAX:,} files beside the workspace: it is too large to "
            "be kept from a program safely; move some elsewhere"
        ) from error
    return frozenset().union(*found)


def _is_any_of(entry: os.DirEntry[str], files: frozenset[FileId]) -> bool:
    """Numbers alone say little: each device has its own."""
    status = entry.stat(follow_symlinks=False)
    return stat.S_ISREG(status.st_mode) and id_of(status) in files


def _may_hold_secrets(name: str, caller: Caller) -> bool:
    """By the same rule as the file tools, which is slow: most names are passed over at once."""
    if name.isascii() and "env" not in name.casefold():
        return False
    return bool(closed_to(caller, (_ANYWHERE, name)))


def _names(root: Path) -> list[str]:
    try:
        return sorted(os.listdir(root))  # noqa: PTH208 - names are what is compared
    except OSError as error:
        raise ConfinementRefused(f"the workspace cannot be read ({error.strerror})") from error


def _check_no_link(path: Path, root: Path) -> None:
    """A mount lies over what a link leads to, and the link itself could be exchanged."""
    inner = path
    while inner != root and inner.is_relative_to(root):
        if stat.S_ISLNK(inner.lstat().st_mode):
            raise ConfinementRefused(
                f"{inner.relative_to(root)} in the workspace is a link, which a program could "
                "exchange: put the file or folder itself in its place"
            )
        inner = inner.parent


def _outermost(covered: Sequence[Path], *, but: Sequence[Path]) -> Iterator[Path]:
    """Without those that lie below another one, as long as that is not opened again above them."""
    folders = set(covered)
    for path in covered:
        above = [outer for outer in path.parents if outer in folders]
        if not above or any(path.is_relative_to(inner) for inner in but):
            yield path


def _plain_folder(path: Path) -> list[Path]:
    return [path] if path.is_dir() and not path.is_symlink() else []


def _existing(paths: Sequence[Path], root: Path) -> tuple[Path, ...]:
    """Each once, without links, the outer ones first; those in the workspace are seen anyway."""
    resolved = {path.expanduser().resolve() for path in paths}
    kept = (path for path in resolved if path.exists() and not path.is_relative_to(root))
    return tuple(sorted(kept))
