"""What the messages of a row are to read, in view of those that stand there already. Called by
`bot.sending`: a streamed reply has begun some of them, and an edit makes each whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bot.channel import MessagePart
from bot.ports import OutboxState, OutPart, PartState

REPEATED = "\n\n(may be repeated)"
"""Ends the second copy of a message whose first fate is unknown."""


def planned(wanted: Sequence[MessagePart], stored: Sequence[OutPart]) -> list[OutPart]:
    """The parts, each with what became of its message so far; may be planned again.

    Where fewer are wanted than stand there, those beyond follow without words: they are to go.
    One whose fate is unknown cannot go; nothing is known of it but that it may be there.
    """
    known = {part.n: part for part in stored}
    parts = [
        _with_fate(OutPart(n=n, markup=part.markup, source=part.source), known.get(n))
        for n, part in enumerate(wanted)
    ]
    beyond = [part for part in stored if part.n >= len(wanted) and part.message_id]
    return [*parts, *(replace(part, markup="", source="") for part in beyond)] if parts else []


def is_to_go(part: OutPart) -> bool:
    """Whether the message of this part is one too many."""
    return not part.source and bool(part.message_id)


def ending(parts: Sequence[OutPart]) -> OutboxState:
    """What a row is whose parts are all done."""
    states = {part.state for part in parts}
    if PartState.FAILED in states:
        return OutboxState.FAILED
    return OutboxState.UNKNOWN if PartState.UNKNOWN in states else OutboxState.SENT


def as_tried(message: MessagePart, part: OutPart) -> MessagePart:
    """The second copy says that it may be one."""
    if part.state is not PartState.RESENDING:
        return message
    return replace(
        message,
        markup=(message.markup.rstrip() + REPEATED).lstrip(),
        source=(message.source.rstrip() + REPEATED).lstrip(),
    )


def _with_fate(part: OutPart, before: OutPart | None) -> OutPart:
    if before is None:
        return part
    # What was sent whole stays so; what was begun is to be made whole.
    is_begun = before.message_id and before.source != part.source
    state = PartState.READY if is_begun else before.state
    return replace(part, state=state, message_id=before.message_id, ref=before.ref)
