"""A reply that outgrows one message while it is written: it goes on in further ones, which are all
whole in the end, whatever happens in between."""

from __future__ import annotations

import pytest

from tests.bot.kit import OWNER, Rig, SlowTool, eventually


def plain(chars: int) -> str:
    """So many characters of sentences that read the same with markup and without."""
    sentences = (f"Sentence {n:03} of a long answer is here.\n\n" for n in range(chars // 38))
    return "".join(sentences)[:chars].strip()


SAID = plain(9_000)


@pytest.fixture
def growing(rig: Rig) -> None:
    """A reply of three messages that takes some seconds: a first text is shown after one."""
    rig.set(telegram__stream_every_s=0.1)
    rig.model.chunk_size = 150
    rig.model.chunk_delay_s = 0.06
    rig.model.say(SAID)


def stands_whole(rig: Rig, *, sends: int = 3) -> None:
    """All of it is there, once, in order, and no message more than was sent."""
    sources = [source for (source,) in rig.rows("select source from outbox_parts order by n")]
    assert "".join(sources) == SAID
    assert [text.split() for text in rig.texts()] == [source.split() for source in sources]
    assert len(rig.telegram.sent(OWNER)) == sends
    assert set(rig.parts()) == {"sent"}


def grew(rig: Rig, count: int) -> bool:
    """Whether so many messages stand there while the reply is still written."""
    return len(rig.seen()) >= count and rig.outbox() == ["draft"]


@pytest.mark.usefixtures("growing")
async def test_after_a_kill_all_messages_are_completed_and_none_stands_twice(rig: Rig) -> None:
    known = "select count(*) from outbox_parts where message_id <> ''"
    async with rig.running(OWNER, killed=True):
        rig.says("all of it")
        await eventually(lambda: grew(rig, 2) and rig.rows(known) == [(2,)])

    rig.model.say(SAID)
    async with rig.running() as bot:
        await eventually(lambda: rig.outbox() == ["sent"], timeout_s=60)
        await rig.quiet(bot)

    stands_whole(rig)
    assert rig.inbox() == ["replied"]


async def test_a_status_line_begins_no_message_of_its_own(rig: Rig, slow_tool: SlowTool) -> None:
    rig.set(telegram__stream_every_s=0.1)
    rig.model.chunk_size = 500
    rig.model.chunk_delay_s = 0.15
    full = plain(4_065)
    rig.model.call("wait_here", text=full)
    rig.model.say("Done.")
    async with rig.running(OWNER) as bot:
        rig.says("find it")
        await slow_tool.running.wait()
        await eventually(lambda: rig.texts() and len(rig.texts()[0]) > 4_000)
        before = len(rig.telegram.calls("editMessageText"))
        await eventually(lambda: len(rig.telegram.calls("editMessageText")) >= before)
        assert len(rig.seen()) == 1
        slow_tool.go.set()
        await eventually(lambda: rig.outbox() == ["sent"], timeout_s=60)
        await rig.quiet(bot)

    assert "working" not in "".join(rig.texts())
