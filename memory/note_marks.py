"""How a note that waits for its turn is stored: its text, and whose words are in it.

The mark stands in front of the text, in the same column, so that neither can be read, moved or
blanked without the other. Called by `memory.conversations` and `memory.journal`.
"""

from __future__ import annotations

from agent.ports import WaitingNote
from memory.stored_text import storable

_OUTSIDE = "\x11\x13"
"""Signs that are part of no word, so that forgetting words leaves them; a text that began with them
would only be trusted less."""


def stored_note(text: str, *, untrusted: bool) -> str:
    """The value of the column."""
    return f"{_OUTSIDE if untrusted else ''}{storable(text)}"


def note_of(note_id: int, stored: str) -> WaitingNote:
    """What `stored_note` made, or a version before it."""
    text = stored.removeprefix(_OUTSIDE)
    return WaitingNote(id=note_id, text=text, untrusted=text != stored)
