"""How files that came with a message are called: in sentences, and in the workspace.

Pure; called by `agent.files.attachments`.
"""

from __future__ import annotations

import hashlib

from agent.files.sniff import safe_name
from memory.records.messages import Attachment, TurnInput

_ENDINGS = {
    "photo": ".jpg",
    "sticker": ".webp",
    "voice": ".ogg",
    "audio": ".mp3",
    "video": ".mp4",
    "video_note": ".mp4",
    "animation": ".mp4",
}
"""Of files that come without a name."""

_CALLED = {"photo": "picture", "voice": "voice note", "video_note": "video message"}


def file_name(turn: TurnInput, number: int, attachment: Attachment) -> str:
    """The name under which the file is kept, the `number`th of its message.

    It follows from the message and the file alone, so that it is the same after a restart; nobody
    who does not know the platform's own id of the file could have put another one there."""
    message = turn.message
    key = (message.address.key, message.message_id, str(number), attachment.ref)
    mark = hashlib.sha256("\n".join(key).encode("utf-8", "replace")).hexdigest()[:10]
    given = attachment.name or f"{attachment.kind}{_ENDINGS.get(attachment.kind, '')}"
    return safe_name(given, mark=mark)


def called(attachment: Attachment) -> str:
    """What came, in words: `a voice note of 12 seconds`, `the document 'report.pdf'`."""
    kind = _CALLED.get(attachment.kind, attachment.kind.replace("_", " "))
    length = f" of {attachment.seconds} seconds" if attachment.seconds else ""
    if attachment.name:
        return f"the {kind} '{safe_name(attachment.name)}'{length}"
    return f"{'an' if kind[:1] in 'aeio' else 'a'} {kind}{length}"


def size_of(size_bytes: int) -> str:
    """For a sentence: `231 kB`."""
    if size_bytes < 10_000:
        return f"{size_bytes:,} bytes"
    return f"{size_bytes / 1_000:,.0f} kB" if size_bytes < 1e6 else f"{size_bytes / 1e6:,.1f} MB"
