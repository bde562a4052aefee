"""What people do with their jobs in a chat: nothing is saved unseen, nothing is done twice, and
nobody answers for somebody else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.commands.jobs import messages as words
from memory.records.jobs import Due, Job, JobKind, MisfirePolicy, Misfires, SlotState
from memory.records.rows import BUTTON_BYTES_MAX, NewMessage
from memory.records.schedule import Event
from tests.bot.schedule_kit import BENNY, Place, beating, rings
from tests.scheduler.jobs_kit import job as new_job
from tests.scheduler.service_kit import ANN, BERLIN, BY_ANN, GROUP, LANE

NOON = datetime(2026, 6, 1, 10, 0, tzinfo=UTC)


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with Place(tmp_path).opened() as one:
        yield one


# --- /jobs and /job --------------------------------------------------------------------------


async def test_jobs_are_listed_with_events_behind(place: Place) -> None:
    assert await place.jobs() == words.NO_JOBS
    await place.counter.want("tomorrow at 5pm", text="call Bob")
    paused = await place.counter.want("every day at 12:00", text="news", kind=JobKind.AGENT)
    await place.counter.jobs.pause(paused.key, by=BY_ANN)
    await note(place, "Dentist", "Thursday 15:30")

    assert await place.jobs() == (
        "Jobs (Europe/Berlin):\n"
        "- j2 news (instructions): paused: by hand; resumed now, next Mon 1 Jun 2026, 12:00\n"
        "- j1 call Bob (reminder): Tue 2 Jun 2026, 17:00\n\n"
        "Events:\n"
        "- e1 Dentist: Thu 4 Jun 2026, 15:30\n\n"
        "`/job j12` shows one, and what can be done with it."
    )
    assert await place.jobs(person=BENNY) == words.NO_JOBS
    assert await place.jobs(lane=GROUP) == words.NO_JOBS


async def test_what_stood_still_over_its_time_says_that_it_would_come_at_once(place: Place) -> None:
    once = await place.counter.want("tomorrow at 5pm", text="call Bob")
    await place.counter.jobs.pause(once.key, by=BY_ANN)
    place.counter.clock.move(timedelta(days=3).total_seconds())

    assert "Paused: by hand; resumed now, next Thu 4 Jun 2026, 08:00" in (
        await place.job("j1") + await place.last()
    )


async def note(place: Place, name: str, when: str) -> None:
    draft, time = Event(person_id=ANN, name=name), place.counter.time(when)
    await place.counter.events.record(draft, time, words=when, deliver_to=LANE)


@pytest.mark.case("SC-15")
async def test_a_job_that_cannot_be_read_is_listed_by_its_name(place: Place) -> None:
    await place.counter.want("tomorrow at 5pm", text="call Bob")
    await place.counter.want("tomorrow at 6pm", text="broken one")
    await place.counter.database.write(
        lambda c: c.execute("update jobs set runs_when = 'null' where name = 'broken one'")
    )

    said = await place.jobs()

    assert "j1 call Bob" in said
    assert "j2 broken one" in said
    assert "cannot be read" in said


async def test_one_job_is_shown_with_its_last_runs(place: Place) -> None:
    await place.counter.want("every day at 12:00", text="drink tea", urgent=True)
    await place.counter.to(NOON)

    said = await place.job("j1")
    shown = await place.last()

    assert shown == (
        "**j1 drink tea**\n"
        "Says: drink tea\n"
        "When: `0 12 * * *` (Europe/Berlin)\n"
        "Next: Tue 2 Jun 2026, 12:00; Wed 3 Jun 2026, 12:00; Thu 4 Jun 2026, 12:00 "
        "(Europe/Berlin)\n"
        "Goes to: this chat\n"
        "Also in quiet hours\n\n"
        "Last runs:\n"
        "- Mon 1 Jun 2026, 12:00: told"
    )
    assert "`/job j1 pause`" in said
    assert await place.job("drink") == said, "by how its name begins too"
    assert await place.last() == shown


async def test_what_comes_again_and_again_is_paused_and_let_go_on_with_a_tap(place: Place) -> None:
    await place.counter.want("every day at 12:00", text="drink tea")
    await place.job("j1")
    assert await place.labels() == ["Pause"]

    said = await place.tap("Pause")

    assert said == "j1 drink tea stands still. `/job j1 resume` lets it go on."
    assert (await place.last()).endswith(f"Goes to: this chat\n\n{said}")
    await place.counter.to(NOON + timedelta(days=2))
    assert rings(place) == 0
    await place.job("j1")
    assert await place.labels() == ["Go on"]
    assert (await place.tap("Go on")).startswith("It goes on. Next: Thu 4 Jun 2026, 12:00")
    await place.counter.to(NOON + timedelta(days=3))
    assert rings(place) == 1


async def test_what_comes_once_and_a_heartbeat_are_shown_without_a_button(place: Place) -> None:
    await place.counter.want("tomorrow at 5pm", text="call Bob")
    await beating(place)

    assert "`/job j1 pause`" in await place.job("j1")
    assert "Looks at HEARTBEAT.md" in await place.job("j2")
    assert await place.cards() == []


async def test_a_job_is_paused_resumed_reworded_run_and_removed(place: Place) -> None:
    await place.counter.want("tomorrow at 5pm", text="call Bob")

    assert "Paused: by hand" in await place.job("j1 pause")
    assert "Next: Tue 2 Jun 2026, 17:00" in await place.job("j1 RESUME")
    assert "Says: call Ann and Ben\nNext: " in await place.job("j1 text call  Ann\nand Ben")
    assert await place.job("j1 run") == "j1 call Bob was begun."
    assert place.counter.texts() == ["call  Ann\nand Ben"]
    assert await place.job("j1 remove") == "Removed j1 call Bob."
    assert "no job 'j1'" in await place.job("j1")


async def test_another_time_is_shown_before_it_is_saved(place: Place) -> None:
    await place.counter.want("tomorrow at 5pm", text="call Bob")

    assert await place.job("j1 move friday at 10") == words.ASKED_ABOVE
    assert (await place.last()).startswith("Move j1 **call Bob**\nWhen: once, on Friday 5 June")
    assert await place.kept() == ["j1 call Bob 2026-06-02T17:00"]
    await place.tap("Save")
    assert await place.kept() == ["j1 call Bob 2026-06-05T10:00"]


@pytest.mark.parametrize("text", ["", "j1 dance", "j1 move", "j1 text"])
async def test_what_cannot_be_understood_is_answered_with_how_it_can(
    place: Place, text: str
) -> None:
    await place.counter.want("tomorrow at 5pm")

    assert "/job j1" in await place.job(text)


@pytest.mark.parametrize("text", ["j1", "j1 remove", "j1 text x", "j1 move tomorrow"])
async def test_nobody_reaches_the_job_of_somebody_else(place: Place, text: str) -> None:
    await place.counter.want("tomorrow at 5pm")

    assert "no job 'j1'" in await place.job(text, person=BENNY)
    assert "not for this group" in await place.job(text, lane=GROUP)
    assert await place.kept() == ["j1 call Bob 2026-06-02T17:00"]


async def test_an_event_is_removed_by_its_key(place: Place) -> None:
    await note(place, "Dentist", "Thursday 15:30")

    assert "remove" in await place.job("e1")
    assert "no event e1" in await place.job("e1 remove", person=BENNY)
    assert await place.job("e1 remove") == "Removed the event e1 Dentist: Thu 4 Jun 2026, 15:30."
    assert "no event e1" in await place.job("e1 remove")


# --- /quiet ----------------------------------------------------------------------------------


async def test_quiet_hours_are_shown_set_and_ended(place: Place) -> None:
    assert await place.quiet() == words.QUIET_NONE
    assert "22:00-07:00 (Europe/Berlin)" in await place.quiet("22-7")
    assert "22:00-07:00" in await place.quiet()
    assert await place.quiet(person=BENNY) == words.QUIET_NONE
    assert words.QUIET_USE in await place.quiet("at night")
    assert await place.quiet("off") == words.QUIET_ENDED
    assert await place.quiet() == words.QUIET_NONE


# --- unasked ---------------------------------------------------------------------------------


def missed(name: str, done: SlotState, *, count: int = 1, number: int = 1) -> tuple[Job, Misfires]:
    first = Due(slot="2026-05-31T12:00", at_ms=int(NOON.timestamp() - 86_400) * 1000)
    last = Due(slot="2026-06-01T12:00", at_ms=int(NOON.timestamp()) * 1000)
    begin = last if count == 1 else first
    dues = Misfires(job_id=number, count=count, first=begin, last=last, done=done)
    return a_job(name, number), dues


def a_job(name: str, number: int, **more: Any) -> Job:
    return replace(new_job(name, **more), id=number)


def test_one_card_says_what_was_missed_and_what_was_done_about_each() -> None:
    (card,) = words.missed_cards(
        LANE,
        [
            missed("tea", SlotState.TAKEN),
            missed("news", SlotState.TAKEN, count=3, number=2),
            missed("late", SlotState.SKIPPED, number=3),
        ],
        BERLIN,
    )

    assert card == NewMessage(
        lane=LANE,
        text=(
            "While I was off, this came due (Europe/Berlin):\n"
            "- j1 tea: Mon 1 Jun 2026, 12:00. Made up for now.\n"
            "- j2 news: 3 times, from Sun 31 May 2026, 12:00 to Mon 1 Jun 2026, 12:00. Made up "
            "for once.\n"
            "- j3 late: Mon 1 Jun 2026, 12:00. Left out."
        ),
    )


def test_the_data_of_buttons_fits_for_the_longest_slot() -> None:
    kept, dues = missed("tea", SlotState.ASKED, number=10**9)
    last = Due(slot="2026-06-02T17:00:00/2 again 30", at_ms=0)

    (card,) = words.missed_cards(LANE, [(kept, replace(dues, last=last))], BERLIN)

    assert all(len(button.data) <= BUTTON_BYTES_MAX for button in card.buttons[0])


def test_what_is_asked_about_has_buttons_each_on_a_card_of_its_own() -> None:
    one = words.missed_cards(LANE, [missed("tea", SlotState.ASKED)], BERLIN)
    two = words.missed_cards(
        LANE, [missed("tea", SlotState.ASKED), missed("news", SlotState.ASKED, number=2)], BERLIN
    )

    assert [[b.data for row in card.buttons for b in row] for card in one] == [
        ["job:1:run:2026-06-01T12:00", "job:1:skip:2026-06-01T12:00"]
    ]
    assert [len(card.buttons) for card in two] == [0, 1, 1]


def test_of_heartbeats_nothing_is_said() -> None:
    beat = a_job("heartbeat", 9, kind=JobKind.HEARTBEAT), missed("", SlotState.SKIPPED)[1]

    assert words.missed_cards(LANE, [beat], BERLIN) == ()
    assert words.missed_cards(LANE, [], BERLIN) == ()


def test_of_very_many_the_first_are_told() -> None:
    many = [missed(f"job {n}", SlotState.ASKED, number=n) for n in range(1, 200)]

    cards = words.missed_cards(LANE, many, BERLIN)

    assert "… and 179 more: `/jobs`" in cards[0].text
    assert len(cards) == 1 + words.ASKED_MAX


@pytest.mark.parametrize(
    ("word", "said", "taken"), [("run", "Begun now.", ["call Bob"]), ("skip", "Left out.", [])]
)
async def test_a_missed_run_is_answered_once(
    place: Place, word: str, said: str, taken: list[str]
) -> None:
    await place.counter.want("every day at 12:00", kind=JobKind.AGENT, missed=MisfirePolicy.ASK)
    await place.counter.to(NOON + timedelta(hours=2))
    ((_, runs),) = place.counter.missed
    (message,) = words.missed_cards(LANE, runs, BERLIN)
    card = await place.chats.post(message)

    data = f"job:1:{word}:2026-06-01T12:00"
    assert await place.press(data, card=card, person=BENNY) == words.NOT_YOURS
    assert await place.press(data, card=card) == said
    assert await place.press(data, card=card) == said
    shown = {one: (text, buttons) for one, text, buttons in await place.cards()}
    assert shown[card] == (f"{message.text}\n\n{said}", [])
    assert place.counter.taken == taken


async def test_a_job_that_was_stopped_goes_on_with_a_tap(place: Place) -> None:
    job = await place.counter.want("every day at 12:00", kind=JobKind.AGENT)
    why = "it failed 5 times in a row: no key"
    await place.counter.store.failed(job.id, failures=5, not_before_ms=0, paused=why)
    await place.chats.post(words.stopped_card(LANE, job, why))

    assert f"I stopped the job j1 **call Bob**: {why}" in await place.last()
    assert (await place.tap("Go on")).startswith("It goes on. Next: Mon 1 Jun 2026, 12:00")
    (fresh,) = await place.counter.jobs.of(ANN)
    assert (fresh.enabled, fresh.failures, fresh.paused) == (True, 0, "")
