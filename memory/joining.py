"""What the bot says unasked joins the history of the chat it is said in, so that it can be answered
there. Called inside the transactions that send it.
"""

from __future__ import annotations

import sqlite3

from agent.transcript import Answered, Note, kind_of, to_json
from memory.conversations import random_id
from memory.stored_text import dump

_CURRENT = "select id from conversations where lane = ? and closed_ms is null"
_OPEN = "insert into conversations (id, lane, created_ms) values (?, ?, ?)"
_ADD = """
insert into messages (conversation_id, run_id, kind, body, created_ms) values (?, ?, ?, ?, ?)
"""


def join_history(
    connection: sqlite3.Connection,
    lane: str,
    *,
    run_id: str,
    note: str,
    text: str,
    tainted: bool,
    now_ms: int,
) -> None:
    """Adds a note on how it came, and the words as the assistant's own. `tainted`: they may rest on
    text from outside, and whoever answers them acts on that."""
    row = connection.execute(_CURRENT, (lane,)).fetchone()
    if row is None:
        row = (random_id(),)
        connection.execute(_OPEN, (*row, lane, now_ms))
    for entry in (Note(text=note, untrusted=tainted), Answered(text=text)):
        values = (row[0], run_id, kind_of(entry), dump(to_json(entry)), now_ms)
        connection.execute(_ADD, values)
