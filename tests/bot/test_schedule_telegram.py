"""A reminder's buttons in Telegram, from the tap to the edited message."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from bot.channels.base import Pressed
from bot.commands.jobs.commands import JobCommands, TimeQuestions
from bot.commands.jobs.messages import NOT_YOURS
from bot.lab.telegram import FakeTelegram
from bot.outbox.edits import QuestionMessages
from memory.records.jobs import Due
from memory.records.rows import NewMessage, Person
from memory.stores.approvals import SqliteCards
from scheduler.kinds.kinds import reminder_buttons
from tests.bot.kit import MEMBER, OWNER, TOKEN, eventually
from tests.bot.press_kit import Process
from tests.bot.test_presses_telegram import LANE, polling, pressed
from tests.scheduler.jobs_kit import job as new_job
from tests.scheduler.service_kit import BERLIN, Services


@pytest.fixture
async def telegram() -> AsyncIterator[FakeTelegram]:
    async with FakeTelegram(TOKEN) as fake:
        yield fake


class LateDesk:
    """A service that is built once the process has its database."""

    desk: JobCommands

    def build(self, counter: Services, bot: Process) -> None:
        counter.build(bot.database)
        cards = QuestionMessages(bot.outbox, SqliteCards(bot.database))
        questions = TimeQuestions(counter.jobs, cards, clock=counter.clock)
        self.desk = JobCommands(
            counter.jobs,
            counter.events,
            questions,
            cards,
            await_zone=lambda person_id, command: None,
        )

    async def press(self, pressed: Pressed, person: Person) -> str:
        return await self.desk.press(pressed, person)


async def test_a_tap_is_answered_and_the_message_says_what_came_of_it(
    tmp_path: Path, telegram: FakeTelegram
) -> None:
    late, counter = LateDesk(), Services(tmp_path)

    async with polling(tmp_path, telegram, {"job": late.press}) as bot:
        late.build(counter, bot)
        owner = bot.access.owner_id()
        counter.zones[owner] = BERLIN
        job = await counter.store.add(replace(new_job("tea"), person_id=owner), None)
        assert job is not None
        buttons = reminder_buttons(job, Due(slot="2026-11-28T09:00", at_ms=0))
        message = NewMessage(lane=LANE, text="drink tea", buttons=buttons)
        await bot.outbox.post(message)
        await bot.sent()

        others = await pressed(telegram, f"job:{job.id}:done:0", by=MEMBER)
        answer = await pressed(telegram, f"job:{job.id}:done:0")
        again = await pressed(telegram, f"job:{job.id}:done:0")
        await eventually(lambda: telegram.chat(OWNER)[-1].text.endswith("Done."))

    [seen] = telegram.chat(OWNER)
    assert (others, answer, again) == (NOT_YOURS, "Done.", "Done.")
    assert seen.text == "drink tea\n\nDone."
    assert not (seen.markup or {}).get("inline_keyboard")
