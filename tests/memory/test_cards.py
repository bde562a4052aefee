"""A message that somebody pressed a button under is found by the platform's id, while it asks."""

from __future__ import annotations

from memory.database.connection import Database
from memory.records.rows import Button, NewMessage, OutboxState, OutPart, PartState
from memory.stores.approvals import SqliteCards
from memory.stores.outbox import SqliteOutbox
from tests.memory.kit import LANE

ROWS = ((Button(label="Done", data="job:1:done"),),)


async def test_it_is_found_by_chat_and_id_until_its_buttons_go(database: Database) -> None:
    outbox, cards = SqliteOutbox(database), SqliteCards(database)
    sent = []
    for text, buttons in (("drink tea", ROWS), ("hello", ())):
        row = await outbox.add(NewMessage(lane=LANE, text=text, buttons=buttons))
        part = OutPart(n=0, state=PartState.SENT, message_id=str(70 + row))
        await outbox.plan(row, [part])
        await outbox.mark(row, part, end=OutboxState.SENT)
        sent.append((row, part.message_id))
    (card, card_id), (_, plain_id) = sent

    assert await cards.standing(LANE, card_id) == (card, "drink tea")
    assert await cards.standing("telegram:6", card_id) is None
    assert await cards.standing(LANE, plain_id) is None
    assert await cards.standing(LANE, "unknown") is None

    await outbox.revise(card, "done")
    assert await cards.standing(LANE, card_id) is None
