"""Makes a file into text in a process of its own, within bounds on time, memory and output.

Whatever a file does, it ends in a text or in one sentence. Called by the tools of knowledge.
"""

from __future__ import annotations

import asyncio
import codecs
import json
import re
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from enum import StrEnum

from agent.sandbox.worker import Worker, bound_itself
from memory.records.errors import DocumentWrong
from memory.records.text import clean

# --- kinds --------------------------------------------------------------------------------------
#
# What kind of file something is: by its content first, then by the ending of its name. Pure.

READABLE = "txt, md, csv, tsv, json, html, pdf and docx"
"""For sentences: what can be read. Any other file is read too where it is plain text."""


class DocumentKind(StrEnum):
    """How a file is read."""

    TEXT = "txt"
    MARKDOWN = "md"
    TABLE = "csv"
    JSON = "json"
    HTML = "html"
    PDF = "pdf"
    WORD = "docx"


_ENDINGS = {
    "md": DocumentKind.MARKDOWN,
    "markdown": DocumentKind.MARKDOWN,
    "csv": DocumentKind.TABLE,
    "tsv": DocumentKind.TABLE,
    "json": DocumentKind.JSON,
    "htm": DocumentKind.HTML,
    "html": DocumentKind.HTML,
    "xhtml": DocumentKind.HTML,
    "pdf": DocumentKind.PDF,
    "docx": DocumentKind.WORD,
}
_PDF = b"%PDF-"
_ZIP = b"PK\x03\x04"
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_PDF_HEAD_BYTES = 1_024
"""Readers look for the mark of a PDF this far into a file."""


def kind_of_name(name: str) -> DocumentKind:
    """By the name alone; what has no ending of its own kind is plain text."""
    stem, _, ending = name.rpartition("/")[2].rpartition(".")
    return _ENDINGS.get(ending.lower() if stem else "", DocumentKind.TEXT)


def kind_of(name: str, content: bytes) -> DocumentKind:
    """Raises DocumentWrong for what cannot be read, with what goes on after the file's name."""
    named = kind_of_name(name)
    if content.lstrip()[: len(_PDF)] == _PDF or (
        named is DocumentKind.PDF and _PDF in content[:_PDF_HEAD_BYTES]
    ):
        return DocumentKind.PDF
    if content.startswith(_ZIP):
        return DocumentKind.WORD
    if content.startswith(_OLE):
        raise DocumentWrong(
            "is an old Office file, or one with a password: save it as .docx or PDF without one"
        )
    if named in {DocumentKind.PDF, DocumentKind.WORD}:
        raise DocumentWrong(f"is no {named} file, whatever its name says")
    return named


# --- plain --------------------------------------------------------------------------------------
#
# Bytes of a text file as text, and JSON so that it can be read. Pure.

_LOOKED_AT_BYTES = 8_192
_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_CONTROLS_SHARE_MAX = 0.01
"""Of the bytes of a text in an old encoding: more of them, and it is no text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedText:
    """A text; `note` says when its encoding was guessed."""

    text: str
    note: str = ""


def decoded(content: bytes) -> DecodedText:
    """UTF-8, UTF-16 with its mark, else Windows' own superset of latin-1.

    Raises DocumentWrong for what is no text.
    """
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return DecodedText(text=content.decode("utf-16", "replace"))
    if b"\0" in content:
        raise DocumentWrong("is no text file: there are bytes in it that no text has")
    try:
        return DecodedText(text=content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        controls = len(_CONTROLS.findall(content[:_LOOKED_AT_BYTES]))
        if controls > _CONTROLS_SHARE_MAX * min(len(content), _LOOKED_AT_BYTES):
            raise DocumentWrong("is no text file: there are bytes in it that no text has") from None
    return DecodedText(
        text=content.decode("windows-1252", "replace"),
        note="it is not UTF-8, and was read as windows-1252 (a guess)",
    )


def too_long(chars_max: int) -> DocumentWrong:
    """Return what is said of a file with more text than is read."""
    return DocumentWrong(f"has more than {chars_max:,} characters of text: save a part of it")


CHARS_MAX = 2_000_000
BYTES_MAX = 20_000_000
READ_S = 40.0
CPU_S = 35
MEMORY_BYTES = 1_000_000_000
AT_ONCE = 2

_GAP = re.compile(r"(?:\n[ \t]*){2,}\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileText:
    """A file as text. `kind` is how it was read, `note` what should be known about that."""

    text: str
    kind: str
    note: str = ""


class FileReader:
    """Reads files, two at once. `read_s` is the limit of one, in seconds."""

    def __init__(self, *, chars_max: int = CHARS_MAX, read_s: float = READ_S) -> None:
        self._chars_max = chars_max
        # Escaped as JSON, a character has twelve bytes at most.
        bytes_max = 12 * chars_max + 10_000
        self._worker = Worker(__name__, read_s=read_s, answer_bytes_max=bytes_max, at_once=AT_ONCE)

    async def read(self, name: str, content: bytes) -> FileText:
        """Return the text of a file of this name. Raises DocumentWrong with a sentence, and
        NoRoom."""
        shown = shown_name(name)
        if len(content) > BYTES_MAX:
            raise DocumentWrong(
                f"{shown} has {len(content):,} bytes (at most {BYTES_MAX:,} are read)."
            )
        head = json.dumps({"name": name, "chars_max": self._chars_max}).encode()
        sorry = f"{shown} could not be read, since {{why}}; try again later."
        try:
            answer = await self._worker.answer(head + b"\n" + content, sorry=sorry)
            said = await asyncio.to_thread(json.loads, answer)  # it may have megabytes
            why = said.pop("why", "")
            found = None if why else FileText(**said)
        except TimeoutError as error:
            raise DocumentWrong(
                f"{shown} takes too long to read: it is very large, or made to be slow. Save a "
                "part of it."
            ) from error
        except (ValueError, TypeError) as error:  # it ended without a word
            raise DocumentWrong(
                f"{shown} could not be read: it is damaged, or needs too much time or memory."
            ) from error
        if found is None:
            raise DocumentWrong(f"{shown} {why}.")
        return found


def shown_name(name: str) -> str:
    """A file's name for a sentence."""
    return repr(name if len(name) <= 120 else "…" + name[-119:])


# --- in the process ------------------------------------------------------------------------------


def main() -> None:
    """The process: a line of JSON and a file on standard input, its text on standard output."""
    bound_itself(cpu_s=CPU_S, memory_bytes=MEMORY_BYTES)
    asked = json.loads(sys.stdin.buffer.readline())
    try:
        content = sys.stdin.buffer.read()
        answer = asdict(file_text(asked["name"], content, chars_max=asked["chars_max"]))
    except DocumentWrong as error:
        answer = {"why": str(error)}
    except MemoryError:
        answer = {"why": "needs too much memory to be read"}
    sys.stdout.buffer.write(json.dumps(answer).encode())


def file_text(name: str, content: bytes, *, chars_max: int = CHARS_MAX) -> FileText:
    """The text, here and now. Raises DocumentWrong with what goes on after the file's name; and
    whatever a library raises on what nobody foresaw."""
    kind = kind_of(name, content)
    match kind:
        case DocumentKind.PDF:
            from agent.files.formats import pdf_text

            read = pdf_text(content, chars_max=chars_max)
        case DocumentKind.WORD:
            from agent.files.formats import docx_text

            read = DecodedText(text=docx_text(content, chars_max=chars_max))
        case DocumentKind.HTML:
            from agent.web.article import NotReadable, article, text_of

            decoded(content)  # a picture under this name is refused
            try:
                page = article(text_of(content), url="")
            except NotReadable as error:
                raise DocumentWrong("cannot be read as a web page") from error
            note = "" if page.whole else "it is so long that its end was left out"
            title = f"# {page.title}\n\n" if page.title else ""
            read = DecodedText(text=f"{title}{page.markdown}", note=note)
        case DocumentKind.JSON:
            read = decoded(content)
            # A line for each value; what is no JSON, or too deep, stays as it is. A deep value
            # grows with every line, so it is laid out no further than it may be read.
            with suppress(ValueError, RecursionError):
                shown, encoder = "", json.JSONEncoder(ensure_ascii=False, indent=1)
                for part in encoder.iterencode(json.loads(read.text)):
                    shown += part
                    if len(shown) > chars_max:
                        raise too_long(chars_max)
                read = replace(read, text=shown)
        case DocumentKind.TEXT | DocumentKind.MARKDOWN | DocumentKind.TABLE:
            read = decoded(content)
    text = _GAP.sub("\n\n", clean(read.text)).strip()
    if not text:
        of_pages = ": it may hold pictures of pages alone" if kind is DocumentKind.PDF else ""
        raise DocumentWrong(f"has no text in it{of_pages}")
    if len(text) > chars_max:
        raise too_long(chars_max)
    return FileText(text=text, kind=kind.value, note=read.note)
