"""Bytes of the web as text: by byte order mark, header, the page's own word, and what fits.

Pure. Used by the tools and services that read what was fetched.
"""

from __future__ import annotations

import codecs
import re
from typing import Final

_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_META = re.compile(
    rb"""<meta[^>]{0,300}?charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]{1,40})""", re.IGNORECASE
)
_XML = re.compile(rb"""^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9_.:-]{1,40})""")
_LOOKED_AT_BYTES = 4_096

_WIDER: Final = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "tis-620": "cp874",
}
"""What browsers take for these names: the larger set that pages really use."""

_TEXT: Final = frozenset(
    {"utf-8", "utf-16", "utf-16-le", "utf-16-be", "koi8-r", "koi8-u", "mac-roman", "mac-cyrillic"}
    | {"big5", "big5hkscs", "euc_jp", "iso2022_jp", "gb18030", "cp932", "cp949", "hz", "cp866"}
    | {f"iso8859-{part}" for part in (*range(2, 9), 10, *range(13, 17))}
    | {"cp874", *(f"cp{page}" for page in range(1250, 1259))}
)
"""Python also has codecs that unpack, rotate or execute escapes; those are for nobody outside."""


def text_of(body: bytes, charset: str = "", *, may_name_its_own: bool = True) -> str:
    """The body as text. `charset` is what the header said. Never fails: what fits nothing is read
    as what was said, with marks where it does not fit."""
    for mark, name in _BOMS:
        if body.startswith(mark):
            return body[len(mark) :].decode(name, "replace")
    said = [_known(charset)]
    if may_name_its_own:
        said.append(_known(_own_word(body)))
    candidates = [name for name in (*said, "utf-8") if name]
    for name in candidates:
        try:
            return body.decode(name)
        except UnicodeDecodeError:
            continue
    return body.decode(candidates[0] if candidates[0] != "utf-8" else "cp1252", "replace")


def _own_word(body: bytes) -> str:
    head = body[:_LOOKED_AT_BYTES]
    found = _XML.search(head) or _META.search(head)
    name = found[1].decode("ascii").lower() if found else ""
    return "utf-8" if name.startswith("utf-16") else name  # it was read as ASCII, so it is not


def _known(name: str) -> str:
    try:
        found = codecs.lookup(name.strip()).name if name else ""
    except (LookupError, ValueError):
        return ""
    found = _WIDER.get(found, found)
    return found if found in _TEXT else ""
