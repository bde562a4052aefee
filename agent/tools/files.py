"""The group `files`: tools over the workspace, and the place where long results are kept."""

from __future__ import annotations

import asyncio
import codecs
import hashlib
import mimetypes
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import islice

from pydantic import Field

from agent.policy.presentation import is_whole, values_of
from agent.tools.arguments import Arguments
from agent.tools.former_files import KeepsFormer, KeptFiles, Make
from agent.tools.tool import (
    AboutFile,
    Caller,
    Effect,
    Kept,
    Needs,
    OfFile,
    Tool,
    ToolCard,
    Trust,
)
from agent.tools.workspace import RESULTS, Workspace, results_folder
from memory.records.errors import Permanent
from memory.records.text import clean, without_surrogates

PAGE_CHARS_MAX = 15_000
"""What read_file returns at once: below the cap of results, so that paging needs no copy."""

LINE_CHARS_MAX = 4_000
"""A longer line is shown in pieces that count as lines, so that it can be read in parts."""

KEPT_BYTES_MAX = 2_000_000

TOO_LONG = (
    "and the text is too long to be shown whole to the owner, who has to agree to exactly it. "
    "Write it in parts of at most 2,000 characters: the first by write_file, the others by "
    "append_file"
)


class ToolRefused(Permanent):
    """A call that cannot do what it was asked; the text says why, for the model."""


def file_tools(workspace: Workspace, former: KeepsFormer | None = None) -> tuple[Tool, ...]:
    """All tools of this group. `former` saves what notes and steering files said before."""
    kept = KeptFiles(workspace, former)
    return (
        ReadFile(workspace),
        WriteFile(workspace, kept),
        EditFile(workspace, kept),
        AppendFile(workspace, kept),
        ListDir(workspace),
        SearchFiles(workspace),
    )


# --- read_file ---------------------------------------------------------------------------------


class ReadFileArguments(Arguments):
    """Which lines of which file."""

    path: str
    first_line: int = Field(default=1, ge=1)
    last_line: int | None = Field(default=None, ge=1)


class ReadFile(Tool):
    """Text of a file, page by page."""

    card = ToolCard(
        name="read_file",
        description="Read a text file of the workspace, by lines if it is long.",
        arguments=ReadFileArguments,
        group="files",
        effect=Effect.NONE,
        redo="repeat",
        trust=Trust.UNTRUSTED,
        status="reading a file …",
    )

    def __init__(self, workspace: Workspace, *, page_chars_max: int = PAGE_CHARS_MAX) -> None:
        self._workspace = workspace
        self._page_chars_max = page_chars_max

    async def run(self, arguments: ReadFileArguments, caller: Caller) -> str:
        """The lines, and a note when there are more."""
        return await asyncio.to_thread(self._read, arguments, caller)

    def _read(self, wanted: ReadFileArguments, caller: Caller) -> str:
        content = self._workspace.read(wanted.path, caller)
        text = _decoded(content, wanted.path)
        lines = _lines(clean(text.text))
        if not lines:
            return "(the file is empty)"
        last = min(wanted.last_line or len(lines), len(lines))
        if wanted.first_line > last:
            raise ToolRefused(f"there are no such lines: the file has {len(lines):,}")
        page = list(_page(lines[wanted.first_line - 1 : last], self._page_chars_max))
        notes = []
        if len(page) < len(lines):
            notes.append(_place(wanted.first_line, len(page), len(lines)))
        if any(len(line) > LINE_CHARS_MAX for line in text.text.split("\n")):
            notes.append(f"lines of over {LINE_CHARS_MAX:,} characters are shown in pieces")
        if text.encoding:
            notes.append(f"not UTF-8: read as {text.encoding}")
        return "\n".join([*page, *(f"[{note}]" for note in notes)])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Decoded:
    text: str
    encoding: str = ""
    """Named when it is not UTF-8."""


def _decoded(content: bytes, path: str) -> _Decoded:
    """Raises ToolRefused for what is no text."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _Decoded(text=content.decode("utf-16", "replace"), encoding="UTF-16")
    if b"\0" in content[:8_192]:
        kind = mimetypes.guess_type(path)[0] or "unknown type"
        raise ToolRefused(f"this is no text file: {len(content):,} bytes, {kind}")
    try:
        return _Decoded(text=content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        # Windows' own superset of latin-1; the five bytes it leaves open are marked.
        text = content.decode("windows-1252", "replace")
        return _Decoded(text=text, encoding="windows-1252 (a guess)")


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [piece for line in lines for piece in _pieces(line)]


def _pieces(line: str) -> list[str]:
    starts = range(0, len(line), LINE_CHARS_MAX)
    return [line[start : start + LINE_CHARS_MAX] for start in starts] or [""]


def _page(lines: Iterable[str], chars_max: int) -> Iterable[str]:
    """As many lines as fit; the first one always."""
    room = chars_max
    for number, line in enumerate(lines):
        room -= len(line) + 1
        if room < 0 and number > 0:
            return
        yield line


def _place(first: int, count: int, total: int) -> str:
    last = first + count - 1
    more = f"; go on with first_line={last + 1}" if last < total else ""
    return f"lines {first:,} to {last:,} of {total:,}{more}"


# --- write_file --------------------------------------------------------------------------------


class WriteFileArguments(Arguments):
    """A file and all its text."""

    path: str
    content: str


class WriteFile(Tool):
    """Makes or replaces a file as a whole."""

    card = ToolCard(
        name="write_file",
        description="Create or replace a whole file of the workspace; folders are made.",
        arguments=WriteFileArguments,
        group="files",
        effect=Effect.WORKSPACE,
        redo="idempotent",
        trust=Trust.OURS,
        status="writing a file …",
    )

    def __init__(self, workspace: Workspace, kept: KeptFiles) -> None:
        self._workspace = workspace
        self._kept = kept

    def needs(self, arguments: WriteFileArguments, caller: Caller) -> Needs:
        """See Tool."""
        needs = _steering(self._workspace, arguments, caller)
        return _with_loss(needs, self._kept, arguments, caller, lambda _: _content(arguments))

    async def run(self, arguments: WriteFileArguments, caller: Caller) -> str:
        """What was written."""
        content, path = _content(arguments), arguments.path
        if self._workspace.kept(path):
            is_new, of = await self._kept.change(path, caller, lambda _: content, missing=b"")
        else:
            is_new = await asyncio.to_thread(self._workspace.write, path, content, caller)
            of = OfFile()
        done = "Created" if is_new else "Replaced"
        return AboutFile(f"{done} {path} ({len(content):,} bytes).", of)


def _content(arguments: WriteFileArguments) -> bytes:
    return without_surrogates(arguments.content).encode()


# --- edit_file ---------------------------------------------------------------------------------


class EditFileArguments(Arguments):
    """One replacement."""

    path: str
    old: str = Field(min_length=1, description="exact text; must occur exactly once")
    new: str


class EditFile(Tool):
    """Replaces one place of a file. `once`: run again, it would report a failure that was none."""

    card = ToolCard(
        name="edit_file",
        description="Replace one piece of text in a workspace file.",
        arguments=EditFileArguments,
        group="files",
        effect=Effect.WORKSPACE,
        redo="once",
        trust=Trust.OURS,
        status="changing a file …",
    )

    def __init__(self, workspace: Workspace, kept: KeptFiles) -> None:
        self._workspace = workspace
        self._kept = kept

    def needs(self, arguments: EditFileArguments, caller: Caller) -> Needs:
        """See Tool."""
        needs = _steering(self._workspace, arguments, caller)
        return _with_loss(needs, self._kept, arguments, caller, _Edit(arguments))

    async def run(self, arguments: EditFileArguments, caller: Caller) -> str:
        """Where it was changed."""
        edit = _Edit(arguments)
        _, of = await self._kept.change(arguments.path, caller, edit)
        return AboutFile(f"Edited {arguments.path} at line {edit.line:,}.", of)


class _Edit:
    """The replacement, and the line where it was made."""

    def __init__(self, wanted: EditFileArguments) -> None:
        self._wanted = wanted
        self.line = 0

    def __call__(self, content: bytes) -> bytes:
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ToolRefused("the file is not UTF-8 text, so it was not changed") from error
        new = without_surrogates(self._wanted.new)
        whole, self.line = replaced_once(text, self._wanted.old, new)
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


# --- append_file -------------------------------------------------------------------------------


class AppendFileArguments(Arguments):
    """A file, and what comes at its end."""

    path: str
    content: str = Field(min_length=1)


class AppendFile(Tool):
    """Adds to the end of a file, on a line of its own. `once`: run again, it would add twice."""

    card = ToolCard(
        name="append_file",
        description="Add text at the end of a workspace file; it is made if it is not there.",
        arguments=AppendFileArguments,
        group="files",
        effect=Effect.WORKSPACE,
        redo="once",
        trust=Trust.OURS,
        status="writing a file …",
    )

    def __init__(self, workspace: Workspace, kept: KeptFiles) -> None:
        self._workspace = workspace
        self._kept = kept

    def needs(self, arguments: AppendFileArguments, caller: Caller) -> Needs:
        """See Tool."""
        return _steering(self._workspace, arguments, caller)

    async def run(self, arguments: AppendFileArguments, caller: Caller) -> str:
        """How large the file is now."""
        size_bytes = 0

        def longer(former: bytes) -> bytes:
            nonlocal size_bytes
            joint = b"" if not former or former.endswith(b"\n") else b"\n"
            whole = former + joint + without_surrogates(arguments.content).encode()
            size_bytes = len(whole)
            return whole

        is_new, of = await self._kept.change(arguments.path, caller, longer, missing=b"")
        done = "Created" if is_new else "Added to"
        return AboutFile(f"{done} {arguments.path} ({size_bytes:,} bytes now).", of)


Writing = WriteFileArguments | EditFileArguments | AppendFileArguments


def _steering(workspace: Workspace, arguments: Writing, caller: Caller) -> Needs:
    """Writing what steers the assistant is asked about, whatever the rules say (SPEC §6), and never
    more of it than a card can show; writing notes, which stand in later prompts, while the wish may
    be somebody else's."""
    asks = workspace.steering(arguments.path, caller)
    if asks and not is_whole(values_of(arguments)):
        return Needs(refused=f"{asks}, {TOO_LONG}")
    return Needs(asks=asks, risk=workspace.lasting(arguments.path))


def _with_loss(
    needs: Needs, kept: KeptFiles, arguments: Writing, caller: Caller, make: Make
) -> Needs:
    """Add a row on the card if most of a file would go. What cannot be done, `run` will say."""
    try:
        loss = None if needs.refused else kept.loss(arguments.path, caller, make)
    except Permanent:
        return needs
    return needs if loss is None else replace(needs, shows=(*needs.shows, loss.asked()))


# --- list_dir ----------------------------------------------------------------------------------


class ListDirArguments(Arguments):
    """A folder."""

    path: str = "."


class ListDir(Tool):
    """Names and sizes in a folder."""

    card = ToolCard(
        name="list_dir",
        description="List a workspace folder: names and sizes, folders end in /.",
        arguments=ListDirArguments,
        group="files",
        effect=Effect.NONE,
        redo="repeat",
        trust=Trust.UNTRUSTED,
        status="looking through the files …",
    )

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    async def run(self, arguments: ListDirArguments, caller: Caller) -> str:
        """One line an entry, and a note when there are more."""
        listing = await asyncio.to_thread(self._workspace.entries, arguments.path, caller)
        lines = [_entry_line(entry.name, entry.kind, entry.size_bytes) for entry in listing.entries]
        if listing.total > len(lines):
            lines.append(f"[the first {len(lines):,} of {listing.total:,} entries]")
        return "\n".join(lines) or "(the folder is empty)"


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


# --- search_files ------------------------------------------------------------------------------

SEARCHED_FILES_MAX = 2_000
SEARCHED_BYTES_MAX = 20_000_000
FOUND_LINES_MAX = 100
FOUND_LINE_CHARS_MAX = 200


class SearchFilesArguments(Arguments):
    """Which words, in which files."""

    text: str = Field(min_length=1, description="words as they stand in a line; any case")
    path: str = "."
    names: str = Field(default="*", description="file names, such as *.md")


class SearchFiles(Tool):
    """Lines that hold a text, in the files below a folder. Plain words, no pattern: a pattern from
    outside could run for ever."""

    card = ToolCard(
        name="search_files",
        description="Find lines with a text in the files below a workspace folder.",
        arguments=SearchFilesArguments,
        group="files",
        effect=Effect.NONE,
        redo="repeat",
        trust=Trust.UNTRUSTED,
        status="searching the files …",
    )

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    async def run(self, arguments: SearchFilesArguments, caller: Caller) -> str:
        """One line a find: file, line number, line."""
        return await asyncio.to_thread(self._search, arguments, caller)

    def _search(self, wanted: SearchFilesArguments, caller: Caller) -> str:
        needle = wanted.text.casefold()
        lines: list[str] = []
        notes: list[str] = []
        files = 0
        left = SEARCHED_BYTES_MAX
        below = self._workspace.files_below(wanted.path, caller)
        for path in below:
            if files >= SEARCHED_FILES_MAX or left <= 0:
                notes.append(f"[not all was searched: the first {files:,} files]")
                break
            if not fnmatchcase(path.rpartition("/")[2].casefold(), wanted.names.casefold()):
                continue
            files += 1
            try:
                content = self._workspace.read(path, caller)
                text = _decoded(content, path).text
            except Permanent:
                continue  # gone meanwhile, too large, or no text
            left -= len(content)
            lines += _found(path, text, needle)
            if len(lines) >= FOUND_LINES_MAX:
                notes.append("[there are more: say more of the text]")
                break
        if below.passed_over:
            notes.append(
                f"[folders passed over: {below.passed_over:,}; they are too deep, oddly named or "
                "closed]"
            )
        found = lines[:FOUND_LINES_MAX] or [f"Not found in {files:,} files."]
        return "\n".join([*found, *notes])


def _found(path: str, text: str, needle: str) -> Iterable[str]:
    for number, line in enumerate(text.split("\n"), start=1):
        place = line.casefold().find(needle)
        if place < 0:
            continue
        start = max(0, min(place - FOUND_LINE_CHARS_MAX // 2, len(line) - FOUND_LINE_CHARS_MAX))
        shown = line[start : start + FOUND_LINE_CHARS_MAX].strip()
        yield f"{path}:{number:,}: {clean(shown)}"


# --- long results ------------------------------------------------------------------------------


class KeptResults:
    """KeepWhole, on files: each chat reads its own (`files/results/telegram+42/…`).

    A file is named after its run and its text, so that the same long result of two calls gives
    the same words to the model, and a call that repeats itself is still found out (case AG-03).
    """

    def __init__(self, workspace: Workspace, *, bytes_max: int = KEPT_BYTES_MAX) -> None:
        self._workspace = workspace
        self._bytes_max = bytes_max

    async def __call__(self, text: str, caller: Caller) -> Kept:
        """Writes the text, or as much of it as may be kept."""
        return await asyncio.to_thread(self._keep, text, caller)

    def _keep(self, text: str, caller: Caller) -> Kept:
        content = text.encode()
        whole = len(content) <= self._bytes_max
        if not whole:
            content = content[: self._bytes_max].decode(errors="ignore").encode()
        digest = hashlib.sha256(content).hexdigest()[:12]
        run = re.sub(r"[^A-Za-z0-9-]", "_", caller.run_id)[:64]
        path = "/".join((*RESULTS, results_folder(caller), f"{run}-{digest}.txt"))
        self._workspace.write(path, content, caller, bytes_max=self._bytes_max)
        return Kept(path=path, whole=whole)
