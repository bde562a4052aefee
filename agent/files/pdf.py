"""The text of a PDF. The one module that knows pypdf.

Slow, and a memory hog, for files that are made to be: `agent.files.extract` runs it in a process
that can be ended.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from io import BytesIO
from itertools import islice
from typing import TYPE_CHECKING

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
    """Its pages one after the other.

    Raises DocumentWrong with what goes on after the file's name; and whatever the library raises
    on a file that is broken all through.
    """
    pages = _pages(content)
    if len(pages) > PAGES_MAX:
        raise DocumentWrong(f"has more than {PAGES_MAX:,} pages: save a part of it")
    texts: list[str] = []
    unread, room = 0, chars_max
    for page in pages:
        text = _page_text(page)
        if text is None:
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


def _page_text(page: PageObject) -> str | None:
    from pypdf.errors import PyPdfError

    try:
        return page.extract_text()
    except (PyPdfError, *_BROKEN):
        return None
