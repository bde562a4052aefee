"""Quick-insert texts: what a chat offers to send with one tap.

From `prompts/snippets.json`: the workspace's file if there is one that can be read, else the
shipped one. Small and rarely asked for, so they are read each time and never out of date. Read
for `/snippets`, and by channels that show them.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG

FILE_NAME = "snippets.json"
SNIPPETS_MAX = 20
ICON_CHARS_MAX = 8
MESSAGE_CHARS_MAX = 300
TOOLTIP_CHARS_MAX = 300
TOOLTIP_CHARS = 50
"""Characters of the message that serve as tooltip where none is given."""
FILE_BYTES_MAX = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """A text with a picture: `message` is what is sent, as it was written."""

    icon: str
    message: str
    tooltip: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SnippetProblem:
    """Something wrong with a file. `entry` counts from 1; 0 means the file as a whole."""

    file: str
    text: str
    entry: int = 0

    def __str__(self) -> str:
        """`workspace/prompts/snippets.json, entry 2: what is wrong`."""
        place = f"{self.file}, entry {self.entry}" if self.entry else self.file
        return f"{place}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SnippetsRead:
    """What is offered at the moment, in the file's order, and what was wrong on the way.

    `file` is the one that serves; empty when none does.
    """

    snippets: tuple[Snippet, ...] = ()
    problems: tuple[SnippetProblem, ...] = ()
    file: str = ""


class _UnusableSnippet(Exception):
    """A file, or an entry of it, that cannot be used; the text says why."""


class Snippets:
    """The two places where snippets stand."""

    def __init__(self, *, shipped: Path, workspace: Path) -> None:
        """`shipped` is the folder of the shipped prompts, `workspace` that of the assistant."""
        self._places = (
            (f"workspace/prompts/{FILE_NAME}", workspace / "prompts" / FILE_NAME),
            (f"prompts/{FILE_NAME}", shipped / FILE_NAME),
        )

    def read(self) -> SnippetsRead:
        """The snippets of the first file that can be read. Never raises, whatever stands there.

        An entry that cannot be used is a problem, and the others serve. A file without entries
        is one that serves: so are the shipped ones switched off.
        """
        problems: list[SnippetProblem] = []
        for file, path in self._places:
            try:
                entries = _entries(path)
            except _UnusableSnippet as wrong:
                problems.append(SnippetProblem(file=file, text=str(wrong)))
                continue
            if entries is not None:
                found, wrong_entries = _usable(entries, file)
                return SnippetsRead(snippets=found, problems=(*problems, *wrong_entries), file=file)
        return SnippetsRead(problems=tuple(problems))


def _entries(path: Path) -> Sequence[object] | None:
    """What a file lists, None where there is no file. Raises _Unusable."""
    content = _content(path)
    if content is None:
        return None
    try:
        listed = json.loads(content.decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise _UnusableSnippet(f"is not JSON: {error.msg} ({place})") from None
    except UnicodeDecodeError as error:
        raise _UnusableSnippet(f"is not UTF-8 text (byte {error.start + 1})") from None
    except (ValueError, RecursionError):
        raise _UnusableSnippet("is not JSON that can be read: too deep, or a huge number") from None
    if not isinstance(listed, list):
        raise _UnusableSnippet('must be a list: [{"icon": "…", "message": "…"}, …]')
    return listed


def _content(path: Path) -> bytes | None:
    try:
        # Asked first, since opening a pipe would wait for somebody to write.
        if not S_ISREG(path.stat().st_mode):
            raise _UnusableSnippet("is not a file")
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _UnusableSnippet(f"cannot be read: {error.strerror}") from None
    if len(content) > FILE_BYTES_MAX:
        raise _UnusableSnippet(f"is larger than {FILE_BYTES_MAX:,} bytes")
    return content


def _usable(
    entries: Sequence[object], file: str
) -> tuple[tuple[Snippet, ...], tuple[SnippetProblem, ...]]:
    snippets: list[Snippet] = []
    problems: list[SnippetProblem] = []
    for number, entry in enumerate(entries, start=1):
        if len(snippets) == SNIPPETS_MAX:
            text = f"left out, as all behind it: there can be {SNIPPETS_MAX}"
            problems.append(SnippetProblem(file=file, entry=number, text=text))
            break
        try:
            snippets.append(_snippet(entry))
        except _UnusableSnippet as wrong:
            problems.append(SnippetProblem(file=file, entry=number, text=str(wrong)))
    return tuple(snippets), tuple(problems)


def _snippet(entry: object) -> Snippet:
    """Raises _Unusable. Keys that mean nothing here are left alone: others may read the file."""
    if not isinstance(entry, dict):
        raise _UnusableSnippet('must look like {"icon": "…", "message": "…"}')
    icon = _text_of(entry, "icon", chars_max=ICON_CHARS_MAX)
    message = _text_of(entry, "message", chars_max=MESSAGE_CHARS_MAX, lines=True)
    if entry.get("tooltip") in (None, ""):
        return Snippet(icon=icon, message=message, tooltip=message[:TOOLTIP_CHARS])
    tooltip = _text_of(entry, "tooltip", chars_max=TOOLTIP_CHARS_MAX)
    return Snippet(icon=icon, message=message, tooltip=tooltip)


def _text_of(entry: dict[str, object], name: str, *, chars_max: int, lines: bool = False) -> str:
    value = entry.get(name)
    if value is None:
        raise _UnusableSnippet(f"{name} is missing")
    if not isinstance(value, str):
        raise _UnusableSnippet(f"{name} must be text")
    if not value.strip():
        raise _UnusableSnippet(f"{name} is empty")
    if len(value) > chars_max:
        raise _UnusableSnippet(f"{name} has {len(value):,} characters; there can be {chars_max}")
    kept = "\n\t" if lines else ""
    if any(unicodedata.category(char) in ("Cc", "Cs") and char not in kept for char in value):
        raise _UnusableSnippet(f"{name} holds a character that cannot be shown")
    return value
