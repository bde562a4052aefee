"""The text of a PDF and of a Word file. The one module that knows pypdf; a Word file is read by
what Python brings, as a zip archive with XML in it.

Slow, and a memory hog, for files that are made to be: `agent.files.extract` runs it in a process
that can be ended. Word's XML is streamed, so that nothing is ever held but the text; entities and
document types, which no Word file has, are refused, and nothing that a file names is ever fetched.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from io import BytesIO
from itertools import islice
from typing import TYPE_CHECKING
from xml.parsers import expat
from zipfile import BadZipFile, ZipFile

from agent.files.extract import DecodedText, too_long
from memory.records.errors import DocumentWrong

if TYPE_CHECKING:
    from pypdf import PageObject

PAGES_MAX = 3_000
_LEADERS = re.compile(r"(?:[ \t]?\.){6,}")
"""The dots of a table of contents: they would fill passages, and mean nothing."""
_HYPHENED = re.compile(r"(?<=[^\W\d_])[-\u00ad]\n(?=[^\W\d_A-Z])")
"""A word that goes on in the next line; it could not be found in two pieces."""
_BROKEN = (LookupError, ValueError, TypeError, AttributeError, ArithmeticError, RuntimeError)
"""What the library lets through on a file that breaks the rules, beside its own errors."""


def pdf_text(content: bytes, *, chars_max: int) -> DecodedText:
    """Return its pages one after the other.

    Raises DocumentWrong with what goes on after the file's name; and whatever the library raises
    on a file that is broken all through.
    """
    from pypdf.errors import PyPdfError

    pages = _pages(content)
    if len(pages) > PAGES_MAX:
        raise DocumentWrong(f"has more than {PAGES_MAX:,} pages: save a part of it")
    texts: list[str] = []
    unread, room = 0, chars_max
    for page in pages:
        try:
            text = page.extract_text()
        except (PyPdfError, *_BROKEN):
            unread += 1
            continue
        texts.append(text.strip())
        room -= len(text)
        if room < 0:
            raise too_long(chars_max)
    if unread == len(pages):
        raise DocumentWrong("is damaged: none of its pages could be read")
    note = f"{unread:,} of its {len(pages):,} pages could not be read" if unread else ""
    joined = _HYPHENED.sub("", "\n\n".join(texts))
    return DecodedText(text=_LEADERS.sub(" …", joined), note=note)


def _pages(content: bytes) -> Sequence[PageObject]:
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, LimitReachedError, PyPdfError

    try:
        reader = PdfReader(BytesIO(content))
        # Many are locked against changes only, with an empty password for readers.
        locked = reader.is_encrypted and not reader.decrypt("")
        pages = [] if locked else list(islice(reader.pages, PAGES_MAX + 1))
    except (DependencyError, NotImplementedError) as error:
        raise DocumentWrong("is encrypted in a way that cannot be read here") from error
    except LimitReachedError as error:
        raise DocumentWrong("holds more than is read of one file: save a part of it") from error
    except (PyPdfError, *_BROKEN) as error:
        raise DocumentWrong("is damaged, and cannot be read as a PDF") from error
    if locked:
        raise DocumentWrong("has a password: save a copy without one")
    return pages


# --- Word ---------------------------------------------------------------------------------------

UNPACKED_BYTES_MAX = 100_000_000
_PART_BYTES = 1 << 16
_MAIN = re.compile(r"word/document\d*\.xml")
_NOTES = ("word/footnotes.xml", "word/endnotes.xml")
_WORDS = frozenset(
    {
        "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
        "http://purl.oclc.org/ooxml/wordprocessingml/main",
    }
)
_COMPATIBILITY = "http://schemas.openxmlformats.org/markup-compatibility/2006"
_HEADING = re.compile(r"heading\s?([1-6])", re.IGNORECASE)


def docx_text(content: bytes, *, chars_max: int) -> str:
    """Paragraphs, headings, lists, tables and notes, in reading order.

    Raises DocumentWrong with what goes on after the file's name.
    """
    try:
        with ZipFile(BytesIO(content)) as archive:
            names = archive.namelist()
            main = next((name for name in names if _MAIN.fullmatch(name)), None)
            if main is None:
                raise DocumentWrong(
                    next(why for mark, why in _OTHERS if any(map(mark.match, (*names, ""))))
                )
            text = _DocxText(chars_max)
            for name in (main, *(name for name in _NOTES if name in names)):
                text.add(_unpacked(archive, name))
            return text.whole()
    except expat.ExpatError as error:
        raise DocumentWrong("is damaged: what is in it is no valid XML") from error
    except (
        BadZipFile,
        zlib.error,
        EOFError,
        LookupError,
        ValueError,
        NotImplementedError,
    ) as error:
        raise DocumentWrong("is damaged, and cannot be unpacked") from error
    except RuntimeError as error:  # what zipfile says to a password
        raise DocumentWrong("has a password: save a copy without one") from error


_OTHERS = (
    (re.compile(r"xl/"), "is an Excel file: save its table as CSV"),
    (re.compile(r"ppt/"), "is a PowerPoint file: save it as PDF"),
    (re.compile(r"content\.xml$"), "is an OpenDocument file: save it as .docx or PDF"),
    (re.compile(r""), "is an archive, and no Word file: unpack it first"),
)
"""What another archive is, by a name within it."""


def _unpacked(archive: ZipFile, name: str) -> Iterator[bytes]:
    left = UNPACKED_BYTES_MAX
    with archive.open(name) as file:
        while part := file.read(_PART_BYTES):
            left -= len(part)
            if left < 0:
                raise DocumentWrong(f"unpacks to more than {UNPACKED_BYTES_MAX // 1_000_000} MB")
            yield part


class _DocxText:
    """What the XML says so far. Of cells and text boxes, the inner ones are ended first."""

    def __init__(self, chars_max: int) -> None:
        self._chars_max = self._room = chars_max
        self._blocks: list[list[str]] = [[]]
        self._rows: list[list[str]] = []
        self._paragraphs: list[_DocxParagraph] = []
        self._in_text = False
        self._left_out = 0

    def add(self, parts: Iterator[bytes]) -> None:
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = _refuse_doctype
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        for part in parts:
            parser.Parse(part)
        parser.Parse(b"", True)

    def whole(self) -> str:
        return "\n\n".join(self._blocks[0])

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        space, _, local = name.rpartition(" ")
        if space == _COMPATIBILITY and local == "Fallback":
            self._left_out += 1  # says once more what stands before it
        if self._left_out or space not in _WORDS:
            return
        match local:
            case "p":
                self._paragraphs.append(_DocxParagraph())
            case "tc":
                self._blocks.append([])
            case "tr":
                self._rows.append([])
            case "t":
                self._in_text = True
            case "tab" | "br" | "cr" | "pStyle" | "numPr" if self._paragraphs:
                value = attributes.get(f"{space} val", "")
                self._paragraphs[-1].mark(local, value)

    def _end(self, name: str) -> None:
        space, _, local = name.rpartition(" ")
        if space == _COMPATIBILITY and local == "Fallback":
            self._left_out -= 1
        if self._left_out or space not in _WORDS:
            return
        match local:
            case "t":
                self._in_text = False
            case "p" if self._paragraphs:
                self._block(self._paragraphs.pop().text())
            case "tc" if len(self._blocks) > 1:
                cell = " ".join(" ".join(self._blocks.pop()).split())
                if self._rows:
                    self._rows[-1].append(cell)
            case "tr" if self._rows:
                cells = self._rows.pop()
                self._block(f"| {' | '.join(cells)} |" if any(cells) else "")

    def _characters(self, text: str) -> None:
        if self._in_text and not self._left_out and self._paragraphs:
            self._paragraphs[-1].pieces.append(text)
            self._room -= len(text)
            if self._room < 0:
                raise too_long(self._chars_max)

    def _block(self, text: str) -> None:
        if text.strip():
            self._blocks[-1].append(text)


class _DocxParagraph:
    """One paragraph while it is read."""

    __slots__ = ("_before", "pieces")

    def __init__(self) -> None:
        self._before = ""
        self.pieces: list[str] = []

    def mark(self, what: str, value: str) -> None:
        if what == "pStyle":
            heading = _HEADING.fullmatch(value)
            self._before = f"{'#' * int(heading[1])} " if heading else self._before
        elif what == "numPr":
            self._before = self._before or "- "
        else:
            # A stop of the tabulator also stands in the settings of a paragraph, before its text.
            self.pieces.append("\t" if what == "tab" else "\n")

    def text(self) -> str:
        text = "".join(self.pieces).strip()
        return self._before + text if text else ""


def _refuse_doctype(*_: object) -> None:
    raise DocumentWrong("brings definitions of its own, as no Word file does, and was not read")
