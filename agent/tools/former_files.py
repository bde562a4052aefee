"""Files that are protected like facts: notes, and what steers the assistant.

Before a write removes lines from one, its text is stored, so that `/undo` can put it back. The
person is told if most of it goes: more than half of the lines that are not blank. Called by
the tools that write files and notes; `memory.stores.traces` is the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from agent.guards.repetition import visible
from agent.tools.edits import ChangedMeanwhile
from agent.tools.tool import Caller, ChangedFile
from agent.tools.workspace import FileRead, PathRefused, Workspace
from memory.records.erasure import FileChange, Loss, loss_of
from memory.records.text import one_line

CHANGE_TRIES = 3
"""How often a change is made anew because another program wrote to the file in between."""

SHOWN_MAX, SHOWN_CHARS_MAX = 2, 60
"""How many lost lines the person is shown, and how many characters of each."""
LISTED_CHARS_MAX = 300
"""Limit of the lines to be lost that the card shows."""

Make = Callable[[bytes], bytes | None]


KeepFormer = Callable[[FileChange], Awaitable[str]]
"""Stores what a file said, durably, if the change or an earlier one of the run removes lines. The
text kept is the one before the run's first change; it is returned. Raises StorageError."""

PUTS_BACK = "`/undo` puts it back."


def told(loss: Loss, path: str, *, is_shared: bool) -> str:
    """Return a line of Markdown for the person, without the words if others read along."""
    lines = [f"`{_shown(line)}`" for line in loss.gone[:SHOWN_MAX]]
    if (more := len(loss.gone) - len(lines)) > 0:
        lines.append(f"{more:,} more")
    what = "" if is_shared else f" ({', '.join(lines)})"
    named = path.replace("`", "'")
    return f"`{named}` lost {len(loss.gone):,} of its {loss.of:,} lines{what}. " + PUTS_BACK


def asked(loss: Loss) -> str:
    """Return the row of the card that asks beforehand."""
    listed = "\n".join(loss.gone)
    if len(listed) > LISTED_CHARS_MAX:
        listed = f"{listed[: LISTED_CHARS_MAX - 1]}…"
    share = f"{len(loss.gone):,} of its {loss.of:,} lines"
    return f"Takes away {share}, which an undo puts back:\n{listed}"


class ProtectedFiles:
    """Changes files of the workspace; of protected ones it saves the former text first.

    Raises as `Workspace.write` does, and StorageError; then nothing is written.
    """

    def __init__(self, workspace: Workspace, keep: KeepFormer | None = None) -> None:
        """Without `keep` nothing is kept."""
        self._workspace = workspace
        self._keep = keep

    async def change(
        self, path: str, caller: Caller, make: Make, *, missing: bytes | None = None
    ) -> tuple[bool, ChangedFile]:
        """Replace a file by what `make` makes of its content; return whether it is new, and what a
        protected one lost.

        Nothing is lost that somebody else writes meanwhile: `make` is called again then. Where
        there is no file, it gets `missing`, if that is given. It leaves all as it is by returning
        None or by raising.
        """
        kept = self._workspace.kept(path) if self._keep is not None else ""

        def look() -> tuple[FileRead, bytes | None]:
            found = self._workspace.look(path, caller, missing=missing)
            return found, make(found.content)

        async with self._workspace.changing:
            for _ in range(CHANGE_TRIES):
                found, content = await asyncio.to_thread(look)
                if content is None:
                    return found.status is None, ChangedFile()
                before = becomes = ""
                if self._keep is not None and kept:
                    becomes = content.decode()
                    former = _text(found.content, path)
                    before = await self._keep(
                        FileChange(
                            person_id=caller.person_id,
                            run_id=caller.run_id,
                            path=kept,
                            former=former,
                            becomes=becomes,
                        )
                    )
                with suppress(ChangedMeanwhile):
                    is_new = await asyncio.to_thread(
                        self._workspace.swap, path, caller, content, former=found
                    )
                    if not kept:
                        return is_new, ChangedFile()
                    loss = loss_of(before, becomes)
                    # Whoever just agreed to it has read it on the card.
                    is_news = loss.is_most and (caller.unattended or not caller.agreed)
                    lost = told(loss, kept, is_shared=caller.is_group) if is_news else ""
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
