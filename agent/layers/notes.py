"""Short facts that join a conversation as notes, and hints for one more try.

They stand in the history as they were sent. Called by the loop and by the steps of a turn.
"""

from __future__ import annotations

from collections.abc import Mapping

from agent.messages import IncomingMessage
from agent.scene import fill, one_line

STOPPED = "The person ended this turn with /stop."


def came_along(message: IncomingMessage) -> str:
    """What came with a message and was not opened; empty when it was words alone."""
    if not message.attachments:
        return ""
    kinds = ", ".join(attachment.kind for attachment in message.attachments)
    return f"With the next message came, not opened: {kinds}."


def was_told(notice: str) -> str:
    """What the person read in place of an answer."""
    return f"The person was told: {notice}"


def hint(texts: Mapping[str, str], name: str, detail: str = "") -> str:
    """What the last answer lacked (`empty`, `claim`, `written_call`, `malformed`, `reworded`), or
    that it is the last one (`sum_up`); `detail` is what the answer said."""
    if not name:
        return ""
    return fill(texts[f"hint_{name}"].strip(), DETAIL=one_line(detail, chars_max=300))
