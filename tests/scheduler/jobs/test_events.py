"""Events: when they are, when somebody is reminded, when they are over, and what a prompt says."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any

import pytest

from memory.records.facts import RecallWanted
from memory.records.jobs import JobKind, What
from memory.records.messages import ConversationId, PersonId, Role, RunId
from memory.records.schedule import Event, RecordedEvent, Remind
from scheduler.jobs.events import COMING_MAX, NotAnEvent, UnknownEvent
from tests.scheduler.service_kit import ANN, BY_ANN, BY_BEN, LANE, Services

BOTH = (Remind.BEFORE, Remind.ON)


@pytest.fixture
async def counter(tmp_path: Path) -> AsyncIterator[Services]:
    async with Services(tmp_path).opened() as one:
        yield one


async def note(counter: Services, name: str, when: str = "", **more: Any) -> RecordedEvent:
    draft = replace(Event(person_id=ANN, name=name), **more)
    time = counter.time(when) if when else None
    return await counter.events.record(draft, time, words=when, deliver_to=LANE)


def wanted(counter: Services, **more: Any) -> RecallWanted:
    one = RecallWanted(
        person_id=ANN,
        role=Role.OWNER,
        conversation=ConversationId("c"),
        text="hello",
        now=counter.clock.now(),
    )
    return replace(one, **more)


async def coming(counter: Services, **more: Any) -> list[str]:
    found = await counter.events.coming(wanted(counter, **more))
    return [
        f"{one.id} {'-' if one.when is None else f'{one.when:%a %H:%M}'} {one.text}"
        for one in found
    ]


def due(recorded: RecordedEvent) -> list[str]:
    """The slots of its reminders."""
    return [job.next.slot for job in recorded.reminders if job.next is not None]


@pytest.mark.parametrize(
    ("when", "all_day", "at", "reminders"),
    [
        ("Thursday", True, "2026-06-03T22:00", ["2026-06-03T09:00", "2026-06-04T09:00"]),
        ("2026-06-04", True, "2026-06-03T22:00", ["2026-06-03T09:00", "2026-06-04T09:00"]),
        ("Thursday at 9am", False, "2026-06-04T07:00", ["2026-06-03T09:00", "2026-06-04T08:00"]),
        ("Thursday 15:30", False, "2026-06-04T13:30", ["2026-06-03T09:00", "2026-06-04T14:30"]),
        ("Thursday at 00:30", False, "2026-06-03T22:30", ["2026-06-03T09:00", "2026-06-03T23:30"]),
    ],
)
async def test_a_day_without_a_time_lasts_all_day_and_each_is_reminded_of_in_time(
    counter: Services, when: str, all_day: bool, at: str, reminders: list[str]
) -> None:
    recorded = await note(counter, "Dentist", when, remind=BOTH)

    new = recorded.event
    assert new.at is not None
    assert (new.all_day, f"{new.at.astimezone(UTC):%Y-%m-%dT%H:%M}") == (all_day, at)
    assert due(recorded) == reminders


async def test_a_reminder_whose_time_is_over_is_left_out_and_said(counter: Services) -> None:
    recorded = await note(counter, "Lunch", "today at 12:30", remind=BOTH)

    assert recorded.too_late == (Remind.BEFORE,)
    assert due(recorded) == ["2026-06-01T11:30"]


async def test_a_reminder_says_what_it_is_about(counter: Services) -> None:
    recorded = await note(counter, "Dentist", "Thursday 15:30", remind=BOTH, note="Bring the card")

    assert [job.what.text for job in recorded.reminders] == [
        "Tomorrow: Dentist (Thu 4 Jun 2026, 15:30)\nBring the card",
        "Today: Dentist (Thu 4 Jun 2026, 15:30)\nBring the card",
    ]


async def test_what_is_again_and_again_is_no_event(counter: Services) -> None:
    with pytest.raises(NotAnEvent, match="remind_me"):
        await note(counter, "Standup", "every weekday at 9")


async def test_nothing_reminds_of_what_has_no_date(counter: Services) -> None:
    with pytest.raises(NotAnEvent, match="say when"):
        await note(counter, "Move house", remind=BOTH)

    assert (await note(counter, "Move house")).event.at is None


async def test_an_event_goes_with_its_reminders(counter: Services) -> None:
    kept = await note(counter, "Dinner", "Friday 19:00", remind=BOTH)
    gone = await note(counter, "Dentist", "Thursday 15:30", remind=BOTH)

    for wrong, by in ((gone.event.key, BY_BEN), ("eleven", BY_ANN)):
        with pytest.raises(UnknownEvent):
            await counter.events.remove(wrong, by=by)
    assert await counter.events.remove(gone.event.key, by=BY_ANN) == gone.event

    assert await counter.jobs.of(ANN) == list(kept.reminders)


async def test_past_events_leave_the_prompt_and_those_without_a_date_after_90_days(
    counter: Services,
) -> None:
    for name, when in (("Call", "today at 12:00"), ("Holiday", "tomorrow"), ("Move", "")):
        await note(counter, name, when)
    assert await coming(counter) == [
        "e1 Mon 12:00 Call",
        "e2 Tue 00:00 all day: Holiday",
        "e3 - Move",
    ]

    counter.clock.move(timedelta(hours=4, minutes=1).total_seconds())  # 12:01
    assert await coming(counter) == ["e2 Tue 00:00 all day: Holiday", "e3 - Move"]
    counter.clock.move(timedelta(hours=35, minutes=58).total_seconds())  # Tuesday, 23:59
    assert await coming(counter) == ["e2 Tue 00:00 all day: Holiday", "e3 - Move"]
    counter.clock.move(60)
    assert await coming(counter) == ["e3 - Move"]
    counter.clock.move(timedelta(days=88).total_seconds())
    assert await coming(counter) == ["e3 - Move"]
    counter.clock.move(timedelta(days=1).total_seconds())
    assert await coming(counter) == []


async def test_a_prompt_gets_the_next_week_of_events_and_jobs_in_order(counter: Services) -> None:
    await note(counter, "Dentist", "Thursday 15:30", remind=(Remind.ON,))
    await note(counter, "Far away", "in 8 days at 12:00")
    await counter.want("tomorrow at 5pm", text="call Bob")
    await counter.want("every day at 06:30", text="news", kind=JobKind.AGENT)
    paused = await counter.want("tomorrow at 7pm", text="not now")
    await counter.jobs.pause(paused.key, by=BY_ANN)
    await counter.want("every 30 minutes", kind=JobKind.HEARTBEAT, what=What())

    assert await coming(counter) == [
        "j3 Tue 06:30 job j3: news",
        "j2 Tue 17:00 reminder j2: call Bob",
        "e1 Thu 15:30 Dentist",
    ]


async def test_a_prompt_gets_ten_at_most(counter: Services) -> None:
    for hour in range(10, 23):
        await note(counter, f"at {hour}", f"tomorrow at {hour}:00")

    assert len(await coming(counter)) == COMING_MAX


async def test_in_a_group_and_with_memory_off_a_prompt_gets_nothing(counter: Services) -> None:
    await note(counter, "Dentist", "Thursday 15:30")

    assert await coming(counter, scope="telegram:-100") == []
    assert await coming(counter, memory_off=True) == []
    assert await coming(counter, person_id=PersonId("p2")) == []


async def test_the_same_call_again_makes_neither_event_nor_reminders_anew(
    counter: Services,
) -> None:
    first = await note(counter, "Dentist", "Thursday 15:30", remind=BOTH, run_id=RunId("r#1"))
    counter.clock.move(3)
    again = await note(counter, "Dentist", "Thursday 15:30", remind=BOTH, run_id=RunId("r#1"))

    assert again == first
    assert len(await counter.jobs.of(ANN)) == 2


async def test_events_of_a_group_are_not_those_of_the_person(counter: Services) -> None:
    await note(counter, "Party", "Friday 19:00", scope="telegram:-100")

    assert await coming(counter) == []
    found = await counter.events.ahead(ANN, "telegram:-100")
    assert [one.name for one in found] == ["Party"]
