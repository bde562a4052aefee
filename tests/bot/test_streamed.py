"""What the messages of a reply are to read, in view of those that were begun."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.channels.base import MessagePart
from bot.outbox.drafts import is_to_go, planned
from memory.records.rows import OutPart, PartState

BEGUN = st.builds(
    OutPart,
    n=st.just(0),
    source=st.sampled_from(["", "", "a", "b"]),
    state=st.sampled_from(PartState),
    message_id=st.sampled_from(["", "7", "8"]),
)
STORED = st.lists(BEGUN, max_size=5).map(
    lambda parts: [
        OutPart(n=n, source=p.source, state=p.state, message_id=p.message_id)
        for n, p in enumerate(parts)
    ]
)
WANTED = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=5).map(
    lambda texts: [MessagePart(markup=f"<{text}>", source=text) for text in texts]
)


@given(WANTED, STORED)
def test_every_text_is_planned_and_every_message_that_stands_there_is_used_or_goes(
    wanted: list[MessagePart], stored: list[OutPart]
) -> None:
    parts = planned(wanted, stored)

    assert [part.source for part in parts if part.source] == [part.source for part in wanted]
    assert {part.message_id for part in stored} <= {part.message_id for part in parts} | {""}
    assert [part.n for part in parts] == sorted({part.n for part in parts})
    for part in parts[len(wanted) :]:
        assert is_to_go(part)


@given(WANTED, STORED)
def test_planning_again_changes_nothing(wanted: list[MessagePart], stored: list[OutPart]) -> None:
    once = planned(wanted, stored)

    assert planned(wanted, once) == once


@given(WANTED, STORED)
def test_what_reads_otherwise_is_edited_and_what_was_sent_so_is_left_alone(
    wanted: list[MessagePart], stored: list[OutPart]
) -> None:
    for before, after in zip(stored, planned(wanted, stored), strict=False):
        if not after.source:
            continue
        if before.message_id and before.source != after.source:
            assert after.state is PartState.READY
        else:
            assert after.state is before.state


def test_a_reply_without_words_plans_nothing() -> None:
    assert planned([], [OutPart(n=0, message_id="7")]) == []
