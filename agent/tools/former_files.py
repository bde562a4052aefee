"""Files that are kept like facts: notes, and what steers the assistant.

Whatever a write takes away of one is stored before it is written, so that `/undo` puts it back, and
its person is told when most of it goes: more than half of the lines that are not blank. Called by
the tools that write files and notes; `memory.former_files` implements the store.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from agent.messages import PersonId, RunId
from agent.scene import one_line
from agent.tools.showing import visible
from agent.tools.tool import Caller, OfFile
from agent.tools.workspace import CHANGE_TRIES, PathRefused, Workspace

SHOWN_MAX, SHOWN_CHARS_MAX = 2, 60
"""Lines that went, as the person is reminded of them, and characters of each."""
LISTED_CHARS_MAX = 300
"""Of the lines that will go, on the card that asks."""

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
        """Stores it, durably, if it takes lines away, or if an earlier change of the run did; that
        one's former text then stays the one that is kept. What the file said before all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """The lines that a text loses, `of` so many that are not blank."""

    gone: tuple[str, ...]
    of: int

    @property
    def is_most(self) -> bool:
        """Whether more than half of them go."""
        return len(self.gone) * 2 > self.of

    def told(self, path: str, *, is_shared: bool) -> str:
        """One line of Markdown for the person; where others read along, without the words."""
        lines = [f"`{_shown(line)}`" for line in self.gone[:SHOWN_MAX]]
        if (more := len(self.gone) - len(lines)) > 0:
            lines.append(f"{more:,} more")
        what = "" if is_shared else f" ({', '.join(lines)})"
        named = path.replace("`", "'")
        return f"`{named}` lost {len(self.gone):,} of its {self.of:,} lines{what}. " + PUTS_BACK

    def asked(self) -> str:
        """A row of the card, before it is done."""
        listed = "\n".join(self.gone)
        if len(listed) > LISTED_CHARS_MAX:
            listed = f"{listed[: LISTED_CHARS_MAX - 1]}…"
        share = f"{len(self.gone):,} of its {self.of:,} lines"
        return f"Takes away {share}, which an undo puts back:\n{listed}"


PUTS_BACK = "`/undo` puts it back."


def loss_of(before: str, after: str) -> Loss:
    """By whole lines, wherever they stand: one that is changed is gone."""
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
    """Changes files of the workspace; those that are kept like facts only once that is done.

    Raises as `Workspace.change` does, and StorageError, and then nothing is written.
    """

    def __init__(self, workspace: Workspace, former: KeepsFormer | None = None) -> None:
        """Without `former` nothing is kept."""
        self._workspace = workspace
        self._former = former

    async def change(
        self, path: str, caller: Caller, make: Make, *, missing: bytes | None = None
    ) -> tuple[bool, OfFile]:
        """As `Workspace.change`; with what is to be known of a file that is kept."""
        kept, write = self._workspace.kept(path), self._workspace.change
        if self._former is None or not kept:
            return await asyncio.to_thread(write, path, caller, make, missing=missing), OfFile()
        for _ in range(CHANGE_TRIES):
            look = _Look(make)
            await asyncio.to_thread(write, path, caller, look.see, missing=missing)
            if look.content is None:
                return False, OfFile()
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
                # A card has said so already to whoever agreed to it just now.
                is_news = loss.is_most and (caller.unattended or not caller.agreed)
                lost = loss.told(kept, is_shared=caller.is_group) if is_news else ""
                return is_new, OfFile(path=kept, lost=lost)
        raise PathRefused(f"{path!r} is being changed by another program; nothing was written")

    def loss(self, path: str, caller: Caller, make: Make) -> Loss | None:
        """What a change would take away; None where that is less than most, or is not kept.
        Blocks for a moment. Raises as `change` does."""
        if not self._workspace.kept(path):
            return None
        former = self._workspace.read(path, caller, missing=b"")
        content = make(former)
        if content is None:
            return None
        loss = loss_of(former.decode(errors="replace"), content.decode())
        return loss if loss.is_most else None


class _Moved(Exception):
    """Somebody else wrote to the file since it was looked at."""


class _Look:
    """What a file says, and what it is to say; and the same later, if it still says so."""

    def __init__(self, make: Make) -> None:
        self._make = make
        self.former = b""
        self.content: bytes | None = None

    def see(self, former: bytes) -> None:
        """Changes nothing."""
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
