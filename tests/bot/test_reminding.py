"""`/remind` and the buttons of reminders: shown before they are saved, and done once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.commands.jobs import messages as words
from memory.records.jobs import Job
from memory.records.messages import OutboxId
from scheduler.jobs.rules import later
from tests.bot.schedule_kit import BENNY, Place, rings
from tests.scheduler.service_kit import ANN, BERLIN, BY_ANN, GROUP

NOON = datetime(2026, 6, 1, 10, 0, tzinfo=UTC)


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with Place(tmp_path).opened() as one:
        yield one


# --- /remind ---------------------------------------------------------------------------------


async def test_a_reminder_is_shown_as_it_was_read_before_it_is_saved(place: Place) -> None:
    said = await place.remind("tomorrow at 5 call Bob")

    assert said == words.ASKED_ABOVE
    assert await place.last() == (
        "Remind you here: **call Bob**\n"
        "When: once, on Tuesday 2 June 2026 at 17:00\n"
        "Next: Tue 2 Jun 2026, 17:00 (Europe/Berlin)"
    )
    assert await place.labels() == ["Save", "No"]
    assert await place.kept() == []

    assert await place.tap("Save") == "Saved as j1. Next: Tue 2 Jun 2026, 17:00 (Europe/Berlin)"
    assert await place.kept() == ["j1 call Bob 2026-06-02T17:00"]
    assert (await place.last()).endswith("Saved as j1. Next: Tue 2 Jun 2026, 17:00 (Europe/Berlin)")
    assert await place.labels() == []


async def test_no_saves_nothing(place: Place) -> None:
    await place.remind("tomorrow at 5 call Bob")

    assert await place.tap("No") == "Not saved."
    assert await place.kept() == []
    assert await place.labels() == []


async def test_a_second_tap_saves_nothing_anew_and_is_told_the_same(place: Place) -> None:
    await place.remind("tomorrow at 5 call Bob")

    first = await place.press("job:new:t1:0")
    again = await place.press("job:new:t1:0")
    other = await place.press("job:new:t1:no")

    assert first == again == other
    assert len(await place.kept()) == 1


async def test_of_several_readings_one_is_chosen(place: Place) -> None:
    await place.remind("every day at 6:30 water the plants")

    assert await place.labels() == ["every day at 06:30", "every day at 18:30", "No"]
    await place.tap("every day at 18:30")
    assert await place.kept() == ["j1 water the plants 2026-06-01T18:30"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", words.REMIND_USE),
        ("call Bob", words.NO_TIME),
        ("tomorrow at 5", words.NO_TEXT),
        ("yesterday at 9 call Bob", "That is over"),
    ],
)
async def test_what_is_missing_is_said_and_nothing_is_asked(
    place: Place, text: str, said: str
) -> None:
    assert said in await place.remind(text)
    assert await place.cards() == []


async def test_only_who_asked_answers(place: Place) -> None:
    await place.remind("tomorrow at 5 call Bob", lane=GROUP)

    assert await place.tap("Save", person=BENNY, lane=GROUP) == words.NOT_YOURS
    assert await place.labels() == ["Save", "No"]
    await place.tap("Save", lane=GROUP)
    (job,) = await place.counter.jobs.of(ANN)
    assert job.deliver_to == GROUP


async def test_a_question_is_forgotten_after_ten_minutes_and_says_so(place: Place) -> None:
    await place.remind("tomorrow at 5 call Bob")
    place.counter.clock.move(601)

    assert await place.tap("Save") == words.FORGOTTEN
    assert (await place.last()).endswith(words.FORGOTTEN)
    assert await place.kept() == []


async def test_a_restart_forgets_a_question_and_says_so(tmp_path: Path) -> None:
    place = Place(tmp_path)
    async with place.opened():
        await place.remind("tomorrow at 5 call Bob")
    async with place.opened():
        assert await place.tap("Save") == words.FORGOTTEN
        assert (await place.last()).endswith(words.FORGOTTEN)
        assert await place.kept() == []


async def test_a_press_that_comes_again_after_a_kill_says_that_it_is_saved(tmp_path: Path) -> None:
    place = Place(tmp_path)
    async with place.opened():
        await place.remind("tomorrow at 5 call Bob")
        await place.tap("Save")
    async with place.opened():
        assert await place.press("job:new:t1:0") == "Saved as j1."
        assert len(await place.kept()) == 1


async def test_a_time_that_passes_while_somebody_thinks_is_not_saved(place: Place) -> None:
    await place.remind("in 5 minutes tea")
    place.counter.clock.move(400)

    assert await place.tap("Save") == "Not saved: That time is over."
    assert await place.kept() == []


async def test_words_of_a_person_are_no_markup(place: Place) -> None:
    await place.remind("tomorrow at 5 **call** [Bob](https://x.example)")

    assert r"\*\*call\*\* \[Bob]" in await place.last()
    await place.tap("Save")
    (job,) = await place.counter.jobs.of(ANN)
    assert job.what.text == "**call** [Bob](https://x.example)"


@pytest.mark.parametrize("choice", ["7", "x", "-1"])
async def test_a_choice_that_was_not_offered_does_nothing(place: Place, choice: str) -> None:
    await place.remind("tomorrow at 5 call Bob")

    assert await place.press(f"job:new:t1:{choice}") == words.UNKNOWN
    assert await place.kept() == []
    assert await place.labels() == ["Save", "No"]


# --- a reminder's buttons --------------------------------------------------------------------


async def rung(place: Place, when: str = "today at 12:00") -> Job:
    """A reminder that was just sent."""
    job = await place.counter.want(when, text="drink tea")
    await place.counter.to(NOON)
    await place.arrives()
    return job


async def test_done_is_shown_and_ends_a_reminder_that_nags(place: Place) -> None:
    await place.counter.want("today at 12:00", text="pills", nag_s=600)
    await place.counter.to(NOON)
    await place.arrives()

    assert await place.tap("Done") == "Done."
    assert await place.last() == "pills\n\nDone."
    assert await place.labels() == []
    await place.counter.to(NOON + timedelta(hours=1))
    assert len(place.counter.texts()) == 1


@pytest.mark.parametrize(
    ("label", "at"),
    [
        ("in 10 min", "Mon 1 Jun 2026, 12:10"),
        ("in 1 h", "Mon 1 Jun 2026, 13:00"),
        ("tomorrow", "Tue 2 Jun 2026, 12:00"),
    ],
)
async def test_later_is_shown_and_comes_once(place: Place, label: str, at: str) -> None:
    await rung(place)

    assert await place.tap(label) == f"Again {at}."
    assert await place.last() == f"drink tea\n\nAgain {at}."
    for hours in (0.2, 1, 24, 25, 50):
        await place.counter.to(NOON + timedelta(hours=hours))
    assert [text[:9] for text in place.counter.texts()] == ["drink tea", "drink tea"]


async def moved(place: Place, *, nag_s: int | None = None) -> tuple[Job, OutboxId]:
    """A reminder that was sent, and got another date behind that; with the message."""
    job = await place.counter.want("today at 12:00", text="drink tea", nag_s=nag_s)
    await place.counter.to(NOON)
    card = await place.arrives()
    await place.job(f"{job.key} move 20 june at 9:00")
    await place.tap("Save")
    return job, card


async def data_of(place: Place, card: OutboxId, label: str) -> str:
    [data] = [
        button.data
        for one, _, buttons in await place.cards()
        for button in buttons
        if (one, button.label) == (card, label)
    ]
    return data


@pytest.mark.parametrize("nag_s", [None, 600])
async def test_done_on_the_message_of_an_old_date_leaves_the_new_one(
    place: Place, nag_s: int | None
) -> None:
    _, card = await moved(place, nag_s=nag_s)

    said = await place.press(await data_of(place, card, "Done"), card=card)

    assert said == (
        "That was for Mon 1 Jun 2026, 12:00; the next one is Sat 20 Jun 2026, 09:00 and stays."
    )
    assert await place.kept() == ["j1 drink tea 2026-06-20T09:00"]
    await place.counter.to(NOON + timedelta(hours=2))
    assert rings(place) == 1, "nothing nags meanwhile"
    await place.counter.to(datetime(2026, 6, 20, 7, 0, tzinfo=UTC))
    await place.arrives()
    assert await place.tap("Done") == "Done."
    assert await place.kept() == []


async def test_later_on_the_message_of_an_old_date_makes_one_more_reminder(place: Place) -> None:
    _, card = await moved(place)
    data = await data_of(place, card, "in 1 h")

    said = await place.press(data, card=card)
    again = await place.press(data, card=card)

    assert said == again
    assert said.startswith("Again Mon 1 Jun 2026, 13:00. That was for Mon 1 Jun 2026, 12:00;")
    assert await place.kept() == [
        "j2 drink tea 2 2026-06-01T13:00",
        "j1 drink tea 2026-06-20T09:00",
    ]
    await place.counter.to(NOON + timedelta(hours=1))
    await place.arrives()
    assert await place.tap("Done") == "Done."
    assert await place.kept() == ["j1 drink tea 2026-06-20T09:00"]


async def test_a_button_that_names_no_date_is_for_the_reminder_as_it_stands(place: Place) -> None:
    await place.counter.want("today at 12:00", text="pills", nag_s=600)
    await place.counter.to(NOON)
    await place.arrives()

    assert await place.press("job:1:done") == "Done."
    assert await place.kept() == []


async def test_a_press_on_later_that_comes_again_after_a_kill_makes_one(tmp_path: Path) -> None:
    place = Place(tmp_path)
    async with place.opened():
        job = await rung(place, "every day at 12:00")
        (card,) = [one for one, _, _ in await place.cards()]
        await place.press(f"job:{job.id}:10m", card=card)
    async with place.opened():
        await place.press(f"job:{job.id}:10m", card=card)
        assert len(await place.kept()) == 2


async def test_others_get_a_sentence_and_change_nothing(place: Place) -> None:
    await rung(place)

    assert await place.tap("Done", person=BENNY) == words.NOT_YOURS
    assert "Done" in await place.labels()
    assert await place.last() == "drink tea"


async def test_a_button_of_a_job_that_is_gone_says_so(place: Place) -> None:
    job = await rung(place)
    await place.counter.jobs.remove(job.key, by=BY_ANN)

    assert await place.tap("Done") == words.GONE
    assert await place.labels() == []


@pytest.mark.parametrize(
    "data",
    [
        *("job:1:dance", "job:1:run", "job:1:skip", "job:x:done", "job:²:done"),
        *("job:1:done:x", "job:1:10m:-5", "job:1:1d:²", f"job:1:done:{'9' * 12}"),
        *("job:x", "job:"),
    ],
)
async def test_no_made_up_press_does_anything(place: Place, data: str) -> None:
    await rung(place)

    assert await place.press(data) == words.UNKNOWN
    assert "Done" in await place.labels()


def test_tomorrow_is_the_same_time_on_the_wall() -> None:
    before_the_change = datetime(2026, 10, 24, 10, 0, tzinfo=UTC)  # 12:00 in Berlin

    assert later(before_the_change, "1d", BERLIN) == datetime(2026, 10, 25, 11, 0, tzinfo=UTC)
