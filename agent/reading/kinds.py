"""What kind of file something is: by its content first, then by the ending of its name. Pure."""

from __future__ import annotations

from enum import StrEnum

from agent.errors import DocumentWrong

READABLE = "txt, md, csv, tsv, json, html, pdf and docx"
"""For sentences: what can be read. Any other file is read too where it is plain text."""


class Kind(StrEnum):
    """How a file is read."""

    TEXT = "txt"
    MARKDOWN = "md"
    TABLE = "csv"
    JSON = "json"
    HTML = "html"
    PDF = "pdf"
    WORD = "docx"


_ENDINGS = {
    "md": Kind.MARKDOWN,
    "markdown": Kind.MARKDOWN,
    "csv": Kind.TABLE,
    "tsv": Kind.TABLE,
    "json": Kind.JSON,
    "htm": Kind.HTML,
    "html": Kind.HTML,
    "xhtml": Kind.HTML,
    "pdf": Kind.PDF,
    "docx": Kind.WORD,
}
_PDF = b"%PDF-"
_ZIP = b"PK\x03\x04"
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_PDF_HEAD_BYTES = 1_024
"""Readers look for the mark of a PDF this far into a file."""


def ending_of(name: str) -> str:
    """The ending without its dot, in small letters: `pdf`; empty where a name has none."""
    stem, dot, ending = name.rpartition("/")[2].rpartition(".")
    return ending.lower() if dot and stem else ""


def kind_of_name(name: str) -> Kind:
    """By the name alone; what has no ending of its own kind is plain text."""
    return _ENDINGS.get(ending_of(name), Kind.TEXT)


def kind_of(name: str, content: bytes) -> Kind:
    """Raises DocumentWrong for what cannot be read, with what goes on after the file's name."""
    named = kind_of_name(name)
    if content.lstrip()[: len(_PDF)] == _PDF or (
        named is Kind.PDF and _PDF in content[:_PDF_HEAD_BYTES]
    ):
        return Kind.PDF
    if content.startswith(_ZIP):
        return Kind.WORD
    if content.startswith(_OLE):
        raise DocumentWrong(
            "is an old Office file, or one with a password: save it as .docx or PDF without one"
        )
    if named in {Kind.PDF, Kind.WORD}:
        raise DocumentWrong(f"is no {named} file, whatever its name says")
    return named
