"""What commands tell, to whom, and what they say to words that they do not know."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from agent.messages import Role
from bot.app import Bot
from scheduler.missing import first_due
from tests.bot.kit import MEMBER, OWNER, Rig, eventually
from tests.scheduler.jobs_kit import job as new_job


async def wants(bot: Bot, name: str, *, by: int) -> None:
    """A reminder of theirs, each day."""
    person = bot.access.who(f"telegram:{by}")
    assert person is not None
    new = replace(new_job(name), person_id=person.id, deliver_to=f"telegram:{by}")
    assert await bot.schedules.jobs.add(new, first_due(new.when, after=bot.clock.now()))


async def test_a_status_names_nobodys_jobs_but_those_of_who_asks(rig: Rig) -> None:
    rig.model.calls_together(("get_status", {}))
    async with rig.running(OWNER, MEMBER) as bot:
        await wants(bot, "see the doctor", by=MEMBER)
        await wants(bot, "water the plants", by=OWNER)
        rig.says("/status")
        await eventually(partial(rig.wrote, 1))
        rig.says("/status", by=MEMBER)
        await eventually(partial(rig.wrote, 1, chat=MEMBER))
        machine = "\n".join(await bot.status.lines(for_owner=True))
        rig.says("how are you?")
        await eventually(partial(rig.wrote, 2))
        await rig.quiet(bot)

    for told in (rig.texts()[0], machine, str(rig.model.requests[-1]["messages"][-1])):
        assert "water the plants" in told
        assert "doctor" not in told
        assert "Other people's jobs that wait for their time: 1" in told
    assert "plants" not in rig.texts(MEMBER)[0]


async def test_where_several_own_the_bot_each_reads_of_their_own_jobs(rig: Rig) -> None:
    async with rig.running(OWNER, MEMBER) as bot:
        await wants(bot, "see the doctor", by=MEMBER)
        await wants(bot, "water the plants", by=OWNER)
        await bot.access.set_role(f"telegram:{MEMBER}", Role.OWNER)
        second = "\n".join(await bot.status.lines(for_owner=True, lane=f"telegram:{MEMBER}"))
        unknown = "\n".join(await bot.status.lines(for_owner=True))

    assert "doctor" in second
    assert "plants" not in second
    assert "doctor" not in unknown
    assert "plants" not in unknown


async def test_the_heartbeat_is_there_as_soon_as_the_owner_is_known(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        rig.says("/heartbeat")
        await eventually(partial(rig.wrote, 1))
        await rig.quiet(bot)

    assert "every 30 min I look" in rig.texts()[0]


async def test_the_first_message_of_the_owner_makes_the_heartbeat(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        rig.says("hello")
        await rig.reads("You said: hello")
        await rig.quiet(bot)
        await eventually(lambda: rig.rows("select name from jobs") == [("heartbeat",)])
