"""Bytes of a text file as text, and JSON so that it can be read. Pure."""

from __future__ import annotations

import codecs
import json
import re
from dataclasses import dataclass

from agent.errors import DocumentWrong

_LOOKED_AT_BYTES = 8_192
_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_CONTROLS_SHARE_MAX = 0.01
"""Of the bytes of a text in an old encoding: more of them, and it is no text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """A text; `note` says when its encoding was guessed."""

    text: str
    note: str = ""


def decoded(content: bytes) -> Decoded:
    """UTF-8, UTF-16 with its mark, else Windows' own superset of latin-1.

    Raises DocumentWrong for what is no text.
    """
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return Decoded(text=content.decode("utf-16", "replace"))
    if b"\0" in content:
        raise DocumentWrong("is no text file: there are bytes in it that no text has")
    try:
        return Decoded(text=content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        controls = len(_CONTROLS.findall(content[:_LOOKED_AT_BYTES]))
        if controls > _CONTROLS_SHARE_MAX * min(len(content), _LOOKED_AT_BYTES):
            raise DocumentWrong("is no text file: there are bytes in it that no text has") from None
    return Decoded(
        text=content.decode("windows-1252", "replace"),
        note="it is not UTF-8, and was read as windows-1252 (a guess)",
    )


def laid_out(text: str, *, chars_max: int) -> str:
    """JSON with a line for each value; what is no JSON, or too deep, stays as it is.

    Raises DocumentWrong past `chars_max` characters: a deep value grows with every line.
    """
    parts: list[str] = []
    room = chars_max
    try:
        for part in json.JSONEncoder(ensure_ascii=False, indent=1).iterencode(json.loads(text)):
            parts.append(part)
            room -= len(part)
            if room < 0:
                raise too_long(chars_max)
    except (ValueError, RecursionError):
        return text
    return "".join(parts)


def too_long(chars_max: int) -> DocumentWrong:
    """What is said of a file with more text than is read."""
    return DocumentWrong(f"has more than {chars_max:,} characters of text: save a part of it")
