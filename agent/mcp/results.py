"""What a server answered, as text for the model; what is no text is kept as a file.

Files go to where long results of the chat are kept. Links are told and never opened (case TO-13).
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import json
import mimetypes
from collections.abc import Sequence
from typing import Any

from agent.errors import AssistantError
from agent.mcp.values import BlobPart, LinkPart, Part, ServerRefused, ServerResult, TextPart
from agent.text import clean
from agent.tools.tool import Caller
from agent.tools.workspace import RESULTS, Workspace, results_folder

FILE_BYTES_MAX = 20_000_000
FILES_MAX = 20
PARTS_MAX = 500
MIME_CHARS_MAX = 60
WORD_CHARS_MAX = 500
FAILED = "the server says that it failed, without a reason"


class ResultReader:
    """Makes a text of a result. Raises ServerRefused with that text where it is an error."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    async def text(self, result: ServerResult, caller: Caller) -> str:
        """Empty when the server said nothing."""
        said = [await self._said(part, caller) for part in _bounded(result.parts)]
        if len(result.parts) > PARTS_MAX:
            said.append(f"[{len(result.parts) - PARTS_MAX} more parts were left out]")
        if result.structured is not None and not _is_told(result.structured, said):
            said.append(_json(result.structured))
        text = "\n\n".join(one for one in said if one)
        if result.is_error:
            raise ServerRefused(text.strip() or FAILED)
        return text

    async def _said(self, part: Part, caller: Caller) -> str:
        match part:
            case TextPart(text=text, uri=uri):
                return f"[{_word(uri)}]\n{text}" if uri else text
            case LinkPart(uri=uri, name=name, mime=mime):
                about = ", ".join(_word(one) for one in (name, mime) if one)
                return f"[a link, not opened: {_word(uri)}{f' ({about})' if about else ''}]"
            case BlobPart():
                return await self._kept(part, caller)

    async def _kept(self, part: BlobPart, caller: Caller) -> str:
        mime = _word(part.mime)[:MIME_CHARS_MAX] or "a file"
        about = f"{mime} from {_word(part.uri)}" if part.uri else mime
        if len(part.data) > FILE_BYTES_MAX * 4 // 3 + 4:
            return f"[{about}: too large to be kept (at most {FILE_BYTES_MAX:,} bytes)]"
        try:
            path, size = await asyncio.to_thread(self._write, part, caller)
        except (binascii.Error, ValueError):
            return f"[{about}: its content cannot be read]"
        except AssistantError as error:
            return f"[{about}: it could not be kept, {error}]"
        return f"[{about}, {size:,} bytes, kept as {path}]"

    def _write(self, part: BlobPart, caller: Caller) -> tuple[str, int]:
        """The same content gets the same name, so that a repeated call adds nothing."""
        content = base64.b64decode(part.data, validate=True)
        digest = hashlib.sha256(content).hexdigest()[:16]
        path = "/".join((*RESULTS, results_folder(caller), f"{digest}{_suffix(part.mime)}"))
        self._workspace.write(path, content, caller, bytes_max=FILE_BYTES_MAX)
        return path, len(content)


_SUFFIXES = {"audio/wav": ".wav", "audio/ogg": ".ogg", "image/webp": ".webp"}
"""What not every machine knows."""


def _suffix(mime: str) -> str:
    kind = mime.partition(";")[0].strip().lower()
    return _SUFFIXES.get(kind) or mimetypes.guess_extension(kind) or ".bin"


def _bounded(parts: Sequence[Part]) -> list[Part]:
    """The first parts, and of files fewer than of words."""
    kept: list[Part] = []
    files = 0
    for part in parts[:PARTS_MAX]:
        files += isinstance(part, BlobPart)
        if isinstance(part, BlobPart) and files > FILES_MAX:
            kept.append(TextPart(text=f"[one more file, {_word(part.mime)}, was not kept]"))
        else:
            kept.append(part)
    return kept


def _is_told(structured: Any, said: Sequence[str]) -> bool:
    """Whether the text is the same value: most servers send it twice."""
    for text in said:
        try:
            if json.loads(text) in (structured, _only(structured)):
                return True
        except (ValueError, RecursionError):
            if text == _only(structured):
                return True
    return False


def _only(structured: Any) -> Any:
    """What the one field holds in which a bare value is wrapped."""
    if isinstance(structured, dict) and len(structured) == 1:
        return next(iter(structured.values()))
    return structured


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):
        return "[structured content that is nested too deep]"


def _word(text: str) -> str:
    return " ".join(clean(text).split())[:WORD_CHARS_MAX]
