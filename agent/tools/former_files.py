"""Files that are protected like facts: notes, and what steers the assistant.

Before a write removes lines from one, its text is stored, so that `/undo` can put it back. The
person is told if most of it goes: more than half of the lines that are not blank. Called by
the tools that write files and notes; `memory.stores.undo` implements the store.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from agent.policy.presentation import visible
from agent.prompt.scene import one_line
from agent.tools.tool import Caller, ChangedFile
from agent.tools.workspace import CHANGE_TRIES, PathRefused, Workspace
from memory.records.messages import PersonId, RunId

SHOWN_MAX, SHOWN_CHARS_MAX = 2, 60
"""How many lost lines the person is shown, and how many characters of each."""
LISTED_CHARS_MAX = 300
"""Limit of the lines to be lost that the card shows."""

Make = Callable[[bytes], bytes | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """A file's text before a write, and after it. `path` is below the workspace."""

    person_id: PersonId
    run_id: RunId
    path: str
    former: str
    becomes: str


class KeepsFormer(Protocol):
    """Keeps what files said before. Raises StorageError."""

    async def keep(self, change: FileChange) -> str:
        """Store it, durably, if it or an earlier change of the run removes lines. The text kept is
        the one before the run's first change. Return what the file said then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """The lines that a text loses, `of` so many that are not blank."""

    gone: tuple[str, ...]
    of: int

    @property
    def is_most(self) -> bool:
        """Whether more than half of the lines go."""
        return len(self.gone) * 2 > self.of

    def told(self, path: str, *, is_shared: bool) -> str:
        """Return a line of Markdown for the person, without the words if others read along."""
        lines = [f"`{_shown(line)}`" for line in self.gone[:SHOWN_MAX]]
        if (more := len(self.gone) - len(lines)) > 0:
            lines.append(f"{more:,} more")
        what = "" if is_shared else f" ({', '.join(lines)})"
        named = path.replace("`", "'")
        return f"`{named}` lost {len(self.gone):,} of its {self.of:,} lines{what}. " + PUTS_BACK

    def asked(self) -> str:
        """Return the row of the card that asks beforehand."""
        listed = "\n".join(self.gone)
        if len(listed) > LISTED_CHARS_MAX:
            listed = f"{listed[: LISTED_CHARS_MAX - 1]}…"
        share = f"{len(self.gone):,} of its {self.of:,} lines"
        return f"Takes away {share}, which an undo puts back:\n{listed}"


PUTS_BACK = "`/undo` puts it back."


def loss_of(before: str, after: str) -> Loss:
    """Compare whole lines, wherever they stand: a line that was changed counts as gone."""
    left = Counter(line.strip() for line in after.splitlines())
    lines = [line.strip() for line in before.splitlines() if line.strip()]
    gone = []
    for line in lines:
        if left[line]:
            left[line] -= 1
        else:
            gone.append(line)
    return Loss(gone=tuple(gone), of=len(lines))


class KeptFiles:
    """Changes files of the workspace; of protected ones it saves the former text first.

    Raises as `Workspace.change` does, and StorageError; then nothing is written.
    """

    def __init__(self, workspace: Workspace, former: KeepsFormer | None = None) -> None:
        """Without `former` nothing is kept."""
        self._workspace = workspace
        self._former = former

    async def change(
        self, path: str, caller: Caller, make: Make, *, missing: bytes | None = None
    ) -> tuple[bool, ChangedFile]:
        """Change a file like `Workspace.change`; return also what a protected one lost."""
        kept, write = self._workspace.kept(path), self._workspace.change
        if self._former is None or not kept:
            return await asyncio.to_thread(
                write, path, caller, make, missing=missing
            ), ChangedFile()
        for _ in range(CHANGE_TRIES):
            look = _Look(make)
            await asyncio.to_thread(write, path, caller, look.see, missing=missing)
            if look.content is None:
                return False, ChangedFile()
            change = FileChange(
                person_id=caller.person_id,
                run_id=caller.run_id,
                path=kept,
                former=_text(look.former, path),
                becomes=look.content.decode(),
            )
            before = await self._former.keep(change)
            with suppress(_Moved):
                is_new = await asyncio.to_thread(write, path, caller, look.swap, missing=missing)
                loss = loss_of(before, change.becomes)
                # Whoever just agreed to it has read it on the card.
                is_news = loss.is_most and (caller.unattended or not caller.agreed)
                lost = loss.told(kept, is_shared=caller.is_group) if is_news else ""
                return is_new, ChangedFile(path=kept, lost=lost)
        raise PathRefused(f"{path!r} is being changed by another program; nothing was written")

    def loss(self, path: str, caller: Caller, make: Make) -> Loss | None:
        """Return what a change would remove; None if that is not most of the file, or the file is
        not protected. Blocks for a moment. Raises as `change` does."""
        if not self._workspace.kept(path):
            return None
        former = self._workspace.read(path, caller, missing=b"")
        content = make(former)
        if content is None:
            return None
        loss = loss_of(former.decode(errors="replace"), content.decode())
        return loss if loss.is_most else None


class _Moved(Exception):
    """Somebody else has written to the file since it was looked at."""


class _Look:
    """Reads a file and works out its new text; later writes that, if the file is unchanged."""

    def __init__(self, make: Make) -> None:
        self._make = make
        self.former = b""
        self.content: bytes | None = None

    def see(self, former: bytes) -> None:
        """Work out the new text; change nothing."""
        self.former, self.content = former, self._make(former)

    def swap(self, former: bytes) -> bytes | None:
        if former != self.former:
            raise _Moved
        return self.content


def _text(content: bytes, path: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise PathRefused(
            f"{path!r} is not UTF-8 text, so nothing was written: what it says now could not be "
            "saved first. The person can save it as UTF-8, or move it away"
        ) from error


def _shown(line: str) -> str:
    return one_line(visible(line), chars_max=SHOWN_CHARS_MAX).replace("`", "'").strip()
