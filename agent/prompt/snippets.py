"""Quick-insert texts: what a chat offers to send with one tap.

From `prompts/snippets.json`: the workspace's file if there is one that can be read, else the
shipped one. Small and rarely asked for, so they are read each time and never out of date. Read
for `/snippets`, and by channels that show them.
"""

from __future__ import annotations

import json
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG

FILE_NAME = "snippets.json"
SNIPPETS_MAX = 20
CHARS_MAX = {"icon": 8, "message": 300, "tooltip": 300}
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
class SnippetsRead:
    """What is offered at the moment, in the file's order, and what was wrong on the way: sentences
    such as `workspace/prompts/snippets.json, entry 2: what is wrong`.

    `file` is the one that serves; empty when none does.
    """

    snippets: tuple[Snippet, ...] = ()
    problems: tuple[str, ...] = ()
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
        """Return the snippets of the first file that can be read. Never raise, whatever stands
        there.

        An entry that cannot be used is a problem, and the others serve. A file without entries
        is one that serves: so are the shipped ones switched off.
        """
        problems: list[str] = []
        for file, path in self._places:
            try:
                entries = _entries(path)
            except FileNotFoundError:
                continue
            except _UnusableSnippet as wrong:
                problems.append(f"{file}: {wrong}")
                continue
            snippets: list[Snippet] = []
            for number, entry in enumerate(entries, start=1):
                if len(snippets) == SNIPPETS_MAX:
                    left_out = f"left out, as all behind it: there can be {SNIPPETS_MAX}"
                    problems.append(f"{file}, entry {number}: {left_out}")
                    break
                try:
                    snippets.append(_snippet(entry))
                except _UnusableSnippet as wrong:
                    problems.append(f"{file}, entry {number}: {wrong}")
            return SnippetsRead(snippets=tuple(snippets), problems=tuple(problems), file=file)
        return SnippetsRead(problems=tuple(problems))


def _entries(path: Path) -> list[object]:
    """Return what a file lists. Raise FileNotFoundError where there is no file, _UnusableSnippet
    where it cannot be read."""
    try:
        # Asked first, since opening a pipe would wait for somebody to write.
        if not S_ISREG(path.stat().st_mode):
            raise _UnusableSnippet("is not a file")
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
        if len(content) > FILE_BYTES_MAX:
            raise _UnusableSnippet(f"is larger than {FILE_BYTES_MAX:,} bytes")
        listed = json.loads(content.decode("utf-8-sig"))
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError from None
    except OSError as error:
        raise _UnusableSnippet(f"cannot be read: {error.strerror}") from None
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


def _snippet(entry: object) -> Snippet:
    """Read one entry. Keys that mean nothing here are left alone: others may read the file."""
    if not isinstance(entry, dict):
        raise _UnusableSnippet('must look like {"icon": "…", "message": "…"}')
    texts: dict[str, str] = {}
    for name, chars_max in CHARS_MAX.items():
        value = entry.get(name)
        if name == "tooltip" and value in (None, ""):
            texts[name] = texts["message"][:TOOLTIP_CHARS]
            continue
        if value is None:
            raise _UnusableSnippet(f"{name} is missing")
        if not isinstance(value, str):
            raise _UnusableSnippet(f"{name} must be text")
        if not value.strip():
            raise _UnusableSnippet(f"{name} is empty")
        if len(value) > chars_max:
            problem = f"{name} has {len(value):,} characters; there can be {chars_max}"
            raise _UnusableSnippet(problem)
        kept = "\n\t" if name == "message" else ""
        if any(unicodedata.category(char) in ("Cc", "Cs") and char not in kept for char in value):
            raise _UnusableSnippet(f"{name} holds a character that cannot be shown")
        texts[name] = value
    return Snippet(**texts)
