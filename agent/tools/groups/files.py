"""The group `files`: tools over the workspace, and the place where long results are kept."""

from __future__ import annotations

import asyncio
import codecs
import hashlib
import mimetypes
import re
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from fnmatch import fnmatchcase
from itertools import islice
from typing import Annotated

from pydantic import Field

from agent.guards.signs import visible
from agent.tools.edits import ChangedMeanwhile
from agent.tools.tool import Caller, ChangedFile, Effect, FileResult, Needs, Trust, tool
from agent.tools.toolbox import StoredResult
from agent.tools.workspace import RESULTS, FileRead, PathRefused, Workspace, results_folder
from memory.records.erasure import FileChange, Loss, loss_of
from memory.records.errors import Permanent
from memory.records.text import clean, one_line, without_surrogates

# --- former files -------------------------------------------------------------------------------
#
# Files that are protected like facts: notes, and what steers the assistant.
#
# Before a write removes lines from one, its text is stored, so that `/undo` can put it back. The
# person is told if most of it goes: more than half of the lines that are not blank. Called by
# the tools that write files and notes; `memory.stores.traces` is the store.

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


PAGE_CHARS_MAX = 15_000
"""What read_file returns at once: below the cap of results, so that paging needs no copy."""

LINE_CHARS_MAX = 4_000
"""A longer line is shown in pieces that count as lines, so that it can be read in parts."""

KEPT_BYTES_MAX = 2_000_000

SEARCHED_FILES_MAX = 2_000
SEARCHED_BYTES_MAX = 20_000_000
FOUND_LINES_MAX = 100
FOUND_LINE_CHARS_MAX = 200

TOO_LONG = (
    "and the text is too long to be shown whole to the owner, who has to agree to exactly it. "
    "Write it in parts of at most 2,000 characters: the first by write_file, the others by "
    "append_file"
)


class ToolRefused(Permanent):
    """A call that cannot do what it was asked; the text says why, for the model."""


class FileTools:
    """Reads, writes and searches the workspace. `former` saves what notes and steering files said
    before."""

    def __init__(
        self,
        workspace: Workspace,
        former: KeepFormer | None = None,
        *,
        page_chars_max: int = PAGE_CHARS_MAX,
    ) -> None:
        self._workspace = workspace
        self._kept = ProtectedFiles(workspace, former)
        self._page_chars_max = page_chars_max

    @tool("files", Effect.NONE, trust=Trust.UNTRUSTED, status="reading a file …")
    def read_file(
        self,
        caller: Caller,
        path: str,
        first_line: Annotated[int, Field(ge=1)] = 1,
        last_line: Annotated[int | None, Field(ge=1)] = None,
    ) -> str:
        """Read a text file of the workspace, by lines if it is long."""
        content = self._workspace.read(path, caller)
        text, encoding = _decoded(content, path)
        lines = _lines(clean(text))
        if not lines:
            return "(the file is empty)"
        last = min(last_line or len(lines), len(lines))
        if first_line > last:
            raise ToolRefused(f"there are no such lines: the file has {len(lines):,}")
        page = list(_page(lines[first_line - 1 : last], self._page_chars_max))
        notes = []
        if len(page) < len(lines):
            shown = first_line + len(page) - 1
            more = f"; go on with first_line={shown + 1}" if shown < len(lines) else ""
            notes.append(f"lines {first_line:,} to {shown:,} of {len(lines):,}{more}")
        if any(len(line) > LINE_CHARS_MAX for line in text.split("\n")):
            notes.append(f"lines of over {LINE_CHARS_MAX:,} characters are shown in pieces")
        if encoding:
            notes.append(f"not UTF-8: read as {encoding}")
        return "\n".join([*page, *(f"[{note}]" for note in notes)])

    def _write_needs(self, caller: Caller, path: str, make: Make | None = None) -> Needs:
        """Writing what steers the assistant is asked about, whatever the rules say (SPEC §6), and
        never more of it than a card can show; writing notes, which stand in later prompts, while
        the wish may be somebody else's. `make` shows what would go if it is most of the file."""
        asks = self._workspace.steering(path, caller)
        shows: tuple[str, ...] = ()
        with suppress(Permanent):  # what cannot be done, the call will say
            loss = None if make is None else self._kept.loss(path, caller, make)
            shows = () if loss is None else (asked(loss),)
        return Needs(
            asks=asks,
            risk=self._workspace.lasting(path),
            whole=f"{asks}, {TOO_LONG}" if asks else "",
            shows=shows,
        )

    def _write_file_needs(self, caller: Caller, path: str, content: str) -> Needs:
        return self._write_needs(caller, path, lambda _: _bytes(content))

    @tool(
        "files",
        Effect.WORKSPACE,
        redo="idempotent",
        needs=_write_file_needs,
        status="writing a file …",
    )
    async def write_file(self, caller: Caller, path: str, content: str) -> str:
        """Create or replace a whole file of the workspace; folders are made."""
        written = _bytes(content)
        if self._workspace.kept(path):
            is_new, of = await self._kept.change(path, caller, lambda _: written, missing=b"")
        else:
            is_new = await asyncio.to_thread(self._workspace.write, path, written, caller)
            of = ChangedFile()
        done = "Created" if is_new else "Replaced"
        return FileResult(f"{done} {path} ({len(written):,} bytes).", of)

    def _edit_file_needs(self, caller: Caller, path: str, old: str, new: str) -> Needs:
        return self._write_needs(caller, path, _Edit(old, new))

    # `once`: run again, it would report a failure that was none.
    @tool(
        "files", Effect.WORKSPACE, redo="once", needs=_edit_file_needs, status="changing a file …"
    )
    async def edit_file(
        self,
        caller: Caller,
        path: str,
        old: Annotated[str, Field(min_length=1, description="exact text; must occur exactly once")],
        new: str,
    ) -> str:
        """Replace one piece of text in a workspace file."""
        edit = _Edit(old, new)
        _, of = await self._kept.change(path, caller, edit)
        return FileResult(f"Edited {path} at line {edit.line:,}.", of)

    def _append_needs(self, caller: Caller, path: str) -> Needs:
        return self._write_needs(caller, path)

    # `once`: run again, it would add twice.
    @tool("files", Effect.WORKSPACE, redo="once", needs=_append_needs, status="writing a file …")
    async def append_file(
        self, caller: Caller, path: str, content: Annotated[str, Field(min_length=1)]
    ) -> str:
        """Add text at the end of a workspace file; it is made if it is not there."""
        size_bytes = 0

        def longer(former: bytes) -> bytes:
            nonlocal size_bytes
            joint = b"" if not former or former.endswith(b"\n") else b"\n"
            whole = former + joint + _bytes(content)
            size_bytes = len(whole)
            return whole

        is_new, of = await self._kept.change(path, caller, longer, missing=b"")
        done = "Created" if is_new else "Added to"
        return FileResult(f"{done} {path} ({size_bytes:,} bytes now).", of)

    @tool("files", Effect.NONE, trust=Trust.UNTRUSTED, status="looking through the files …")
    def list_dir(self, caller: Caller, path: str = ".") -> str:
        """List a workspace folder: names and sizes, folders end in /."""
        listing = self._workspace.entries(path, caller)
        lines = [_entry_line(entry.name, entry.kind, entry.size_bytes) for entry in listing.entries]
        if listing.total > len(lines):
            lines.append(f"[the first {len(lines):,} of {listing.total:,} entries]")
        return "\n".join(lines) or "(the folder is empty)"

    # Plain words, no pattern: a pattern from outside could run for ever.
    @tool("files", Effect.NONE, trust=Trust.UNTRUSTED, status="searching the files …")
    def search_files(
        self,
        caller: Caller,
        text: Annotated[
            str, Field(min_length=1, description="words as they stand in a line; any case")
        ],
        path: str = ".",
        names: Annotated[str, Field(description="file names, such as *.md")] = "*",
    ) -> str:
        """Find lines with a text in the files below a workspace folder."""
        needle = text.casefold()
        lines: list[str] = []
        notes: list[str] = []
        files = 0
        left = SEARCHED_BYTES_MAX
        below = self._workspace.files_below(path, caller)
        for found in below:
            if files >= SEARCHED_FILES_MAX or left <= 0:
                notes.append(f"[not all was searched: the first {files:,} files]")
                break
            if not fnmatchcase(found.rpartition("/")[2].casefold(), names.casefold()):
                continue
            files += 1
            try:
                content = self._workspace.read(found, caller)
                decoded, _ = _decoded(content, found)
            except Permanent:
                continue  # gone meanwhile, too large, or no text
            left -= len(content)
            lines += _found(found, decoded, needle)
            if len(lines) >= FOUND_LINES_MAX:
                notes.append("[there are more: say more of the text]")
                break
        if below.passed_over:
            notes.append(
                f"[folders passed over: {below.passed_over:,}; they are too deep, oddly named or "
                "closed]"
            )
        lines = lines[:FOUND_LINES_MAX] or [f"Not found in {files:,} files."]
        return "\n".join([*lines, *notes])


def _decoded(content: bytes, path: str) -> tuple[str, str]:
    """Return the text, and its encoding where that is not UTF-8. Raise ToolRefused for what is no
    text."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16", "replace"), "UTF-16"
    if b"\0" in content[:8_192]:
        kind = mimetypes.guess_type(path)[0] or "unknown type"
        raise ToolRefused(f"this is no text file: {len(content):,} bytes, {kind}")
    try:
        return content.decode("utf-8-sig"), ""
    except UnicodeDecodeError:
        # Windows' own superset of latin-1; the five bytes it leaves open are marked.
        return content.decode("windows-1252", "replace"), "windows-1252 (a guess)"


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [
        line[start : start + LINE_CHARS_MAX]
        for line in lines
        for start in range(0, len(line) or 1, LINE_CHARS_MAX)
    ]


def _page(lines: Iterable[str], chars_max: int) -> Iterable[str]:
    """As many lines as fit; the first one always."""
    room = chars_max
    for number, line in enumerate(lines):
        room -= len(line) + 1
        if room < 0 and number > 0:
            return
        yield line


def _bytes(text: str) -> bytes:
    return without_surrogates(text).encode()


class _Edit:
    """The replacement, and the line where it was made."""

    def __init__(self, old: str, new: str) -> None:
        self._old, self._new = old, new
        self.line = 0

    def __call__(self, content: bytes) -> bytes:
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ToolRefused("the file is not UTF-8 text, so it was not changed") from error
        whole, self.line = replaced_once(text, self._old, without_surrogates(self._new))
        return whole.encode()


def replaced_once(text: str, old: str, new: str) -> tuple[str, int]:
    """The text with its only `old` replaced, and the line of that place. Line ends are the file's.

    A model sees and writes `\\n`, so `old` matches `\\r\\n` too and `new` takes over what the file
    mostly has. Raises ToolRefused unless `old` occurs exactly once, overlaps counted.
    """
    pattern = r"\r?\n".join(re.escape(line) for line in old.replace("\r\n", "\n").split("\n"))
    places = list(islice(re.finditer(f"(?=({pattern}))", text), 2))
    if not places:
        raise ToolRefused("the old text does not occur in the file; read it again. Not changed")
    if len(places) > 1:
        raise ToolRefused("the old text occurs more than once; give more of it. Not changed")
    start, end = places[0].span(1)
    new = new.replace("\r\n", "\n")
    if text.count("\r\n") * 2 > text.count("\n"):
        new = new.replace("\n", "\r\n")
    return text[:start] + new + text[end:], text.count("\n", 0, start) + 1


def _entry_line(name: str, kind: str, size_bytes: int) -> str:
    shown = clean(name).replace("\n", "?")
    match kind:
        case "folder":
            return f"{shown}/"
        case "file":
            return f"{shown} ({size_bytes:,} bytes)"
        case "link":
            return f"{shown} (a link: not followed)"
        case _:
            return f"{shown} (not a regular file)"


def _found(path: str, text: str, needle: str) -> Iterable[str]:
    for number, line in enumerate(text.split("\n"), start=1):
        place = line.casefold().find(needle)
        if place < 0:
            continue
        start = max(0, min(place - FOUND_LINE_CHARS_MAX // 2, len(line) - FOUND_LINE_CHARS_MAX))
        shown = line[start : start + FOUND_LINE_CHARS_MAX].strip()
        yield f"{path}:{number:,}: {clean(shown)}"


# --- long results ------------------------------------------------------------------------------


class ResultStore:
    """KeepResult, on files: each chat reads its own (`files/results/telegram+42/…`).

    A file is named after its run and its text, so that the same long result of two calls gives
    the same words to the model, and a call that repeats itself is still found out (case AG-03).
    """

    def __init__(self, workspace: Workspace, *, bytes_max: int = KEPT_BYTES_MAX) -> None:
        self._workspace = workspace
        self._bytes_max = bytes_max

    async def __call__(self, text: str, caller: Caller) -> StoredResult:
        """Writes the text, or as much of it as may be kept."""
        return await asyncio.to_thread(self._keep, text, caller)

    def _keep(self, text: str, caller: Caller) -> StoredResult:
        content = text.encode()
        whole = len(content) <= self._bytes_max
        if not whole:
            content = content[: self._bytes_max].decode(errors="ignore").encode()
        digest = hashlib.sha256(content).hexdigest()[:12]
        run = re.sub(r"[^A-Za-z0-9-]", "_", caller.run_id)[:64]
        path = "/".join((*RESULTS, results_folder(caller), f"{run}-{digest}.txt"))
        self._workspace.write(path, content, caller, bytes_max=self._bytes_max)
        return StoredResult(path=path, whole=whole)
