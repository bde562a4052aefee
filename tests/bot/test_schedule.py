"""What people do with their jobs in a chat: nothing is saved unseen, nothing is done twice, and
nobody answers for somebody else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent.events import OccasionWish
from agent.jobbook import TimeRead
from agent.messages import OutboxId
from agent.scheduled import Due, Job, JobKind, Missed, NewJob, SetBy, SlotState
from agent.stored import BUTTON_BYTES_MAX, NewMessage
from bot import schedule_words as words
from bot.schedule import later
from scheduler.timetable import MissedRun
from tests.bot.schedule_kit import BENNY, Place
from tests.scheduler.clerk_kit import ANN, BERLIN, GROUP, LANE
from tests.scheduler.jobs_kit import job as new_job

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


async def test_what_comes_again_and_again_shows_three_runs(place: Place) -> None:
    await place.remind("every weekday at 8:30 stand up")

    assert "Mon 1 Jun 2026, 08:30; Tue 2 Jun 2026, 08:30; Wed 3 Jun 2026" in await place.last()
    await place.tap("Save")
    assert await place.kept() == ["j1 stand up 2026-06-01T08:30"]


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
    (job,) = await place.counter.clerk.of(ANN)
    assert job.new.deliver_to == GROUP


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

    assert r"\*\*call\*\* \[Bob\]" in await place.last()
    await place.tap("Save")
    (job,) = await place.counter.clerk.of(ANN)
    assert job.new.what.text == "**call** [Bob](https://x.example)"


@pytest.mark.parametrize("data", ["job:new:t1:7", "job:new:t1:x", "job:new:t1:-1", "job:x", "job:"])
async def test_what_a_client_makes_up_does_nothing(place: Place, data: str) -> None:
    await place.remind("tomorrow at 5 call Bob")

    assert await place.press(data) == words.UNKNOWN
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


def rings(place: Place) -> int:
    return sum(text.startswith("drink tea") for text in place.counter.texts())


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


async def test_a_message_of_what_came_again_and_again_does_not_end_what_comes_once_now(
    place: Place,
) -> None:
    await rung(place, "every day at 12:00")
    [(card, _, _)] = await place.cards()
    done = await data_of(place, card, "Done")
    await place.job("j1 move 20 june at 9:00")
    await place.tap("Save")

    assert "stays" in await place.press(done, card=card)
    assert await place.kept() == ["j1 drink tea 2026-06-20T09:00"]


async def test_a_button_that_names_no_date_is_for_the_reminder_as_it_stands(place: Place) -> None:
    await place.counter.want("today at 12:00", text="pills", nag_s=600)
    await place.counter.to(NOON)
    await place.arrives()

    assert await place.press("job:1:done") == "Done."
    assert await place.kept() == []


async def test_two_taps_on_later_make_one_more_reminder(place: Place) -> None:
    job = await rung(place, "every day at 12:00")
    (card,) = [one for one, _, _ in await place.cards()]

    first = await place.press(f"job:{job.id}:10m", card=card)
    place.counter.clock.move(5)
    again = await place.press(f"job:{job.id}:10m", card=card)

    assert first == again
    assert len(await place.kept()) == 2


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
    await place.counter.clerk.remove(await place.counter.clerk.find(ANN, job.key))

    assert await place.tap("Done") == words.GONE
    assert await place.labels() == []


@pytest.mark.parametrize(
    "data",
    [
        *("job:1:dance", "job:1:run", "job:1:skip", "job:x:done", "job:²:done"),
        *("job:1:done:x", "job:1:10m:-5", "job:1:1d:²", f"job:1:done:{'9' * 12}"),
    ],
)
async def test_no_made_up_press_does_anything(place: Place, data: str) -> None:
    await rung(place)

    assert await place.press(data) == words.UNKNOWN
    assert "Done" in await place.labels()


def test_tomorrow_is_the_same_time_on_the_wall() -> None:
    before_the_change = datetime(2026, 10, 24, 10, 0, tzinfo=UTC)  # 12:00 in Berlin

    assert later(before_the_change, "1d", BERLIN) == datetime(2026, 10, 25, 11, 0, tzinfo=UTC)


def test_the_data_of_buttons_fits_for_the_longest_slot() -> None:
    longest = missed("tea", SlotState.ASKED, number=10**9)
    object.__setattr__(longest, "last", Due(slot="2026-06-02T17:00:00/2 again 30", at_ms=0))

    (card,) = words.missed_cards(LANE, [longest], BERLIN)

    assert all(len(button.data) <= BUTTON_BYTES_MAX for button in card.buttons[0])


# --- /jobs and /job --------------------------------------------------------------------------


async def test_jobs_are_listed_with_events_behind(place: Place) -> None:
    assert await place.jobs() == words.NO_JOBS
    await place.counter.want("tomorrow at 5pm", text="call Bob")
    paused = await place.counter.want("every day at 12:00", text="news", kind=JobKind.AGENT)
    await place.counter.clerk.pause(paused)
    await note(place, "Dentist", "Thursday 15:30")

    assert await place.jobs() == (
        "Jobs (Europe/Berlin):\n"
        "- j2 news (instructions): paused: by hand\n"
        "- j1 call Bob (reminder): Tue 2 Jun 2026, 17:00\n\n"
        "Events:\n"
        "- e1 Dentist: Thu 4 Jun 2026, 15:30\n\n"
        "`/job j12` shows one, and what can be done with it."
    )
    assert await place.jobs(person=BENNY) == words.NO_JOBS
    assert await place.jobs(lane=GROUP) == words.NO_JOBS


async def note(place: Place, name: str, when: str) -> None:
    time = place.counter.clerk.read(ANN, when)
    assert isinstance(time, TimeRead)
    await place.counter.agenda.record(
        OccasionWish(person_id=ANN, name=name, when=when, time=time, deliver_to=LANE)
    )


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


async def test_only_its_person_pauses_a_job(place: Place) -> None:
    await place.counter.want("every day at 12:00", text="drink tea")
    await place.job("j1")

    assert await place.tap("Pause", person=BENNY) == words.NOT_YOURS
    assert await place.kept() == ["j1 drink tea 2026-06-01T12:00"]
    assert await place.labels() == ["Pause"]


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
    await place.job("j1 text call  Ann\nand Ben")
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


# --- /heartbeat ------------------------------------------------------------------------------


async def test_the_heartbeat_says_how_it_stands(place: Place) -> None:
    assert await place.beat() == words.HEARTBEAT_NOT_YET
    await beating(place)
    await place.counter.beats.beat("default", "skipped", "HEARTBEAT.md holds nothing to look at")

    said = await place.beat()

    assert "is on (by the settings): every 30 min" in said
    assert "Next: Mon 1 Jun 2026, 08:30" in said
    assert "skipped: HEARTBEAT.md holds nothing to look at" in said


async def beating(place: Place) -> Job:
    return await place.counter.want(
        "every 30 minutes",
        text="",
        kind=JobKind.HEARTBEAT,
        set_by=SetBy.BOT,
        name="heartbeat",
    )


async def test_the_heartbeat_is_switched_and_stays_so(place: Place) -> None:
    await beating(place)

    assert await place.beat("off") == words.HEARTBEAT_OFF
    assert await place.counter.switches.is_on("heartbeat") is False
    assert "by hand" in await place.beat("on")
    assert await place.counter.switches.is_on("heartbeat") is True
    assert place.ensured == 2


async def test_the_heartbeat_is_run_now(place: Place) -> None:
    assert await place.beat("now") == words.HEARTBEAT_NOT_YET
    await beating(place)

    assert "I look at HEARTBEAT.md now" in await place.beat("now")
    assert place.counter.taken == ["heartbeat"]
    await place.counter.beats.beat("default", "skipped", "nothing to look at")
    place.counter.clock.move(1)
    assert await place.beat("now") == "No model was asked: nothing to look at."


async def test_why_shows_the_last_ten(place: Place) -> None:
    assert await place.beat("why") == words.HEARTBEAT_NOTHING
    for n in range(12):
        await place.counter.beats.beat("default", "told", f"number {n}.")

    said = await place.beat("why")

    assert said.count("told") == 10
    assert "number 11." in said
    assert "number 1." not in said
    assert await place.beat("dance") == words.HEARTBEAT_USE


async def test_without_a_heartbeat_in_the_settings_none_is_switched_on(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.every_minutes = 0
    async with place.opened():
        for word in ("", "on", "now"):
            assert await place.beat(word) == words.HEARTBEAT_NEVER
        assert await place.counter.switches.is_on("heartbeat") is None


# --- unasked ---------------------------------------------------------------------------------


def missed(name: str, done: SlotState, *, count: int = 1, number: int = 1) -> MissedRun:
    kept = replace(a_job(name, number), new=new_job(name, missed=Missed.ONCE))
    first = Due(slot="2026-05-31T12:00", at_ms=int(NOON.timestamp() - 86_400) * 1000)
    last = Due(slot="2026-06-01T12:00", at_ms=int(NOON.timestamp()) * 1000)
    return MissedRun(
        job=kept, count=count, first=last if count == 1 else first, last=last, done=done
    )


def a_job(name: str, number: int, **more: object) -> Job:
    new: NewJob = new_job(name, **more)  # type: ignore[arg-type]
    return Job(id=number, new=new, next=None, enabled=True)


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
    beat = missed("heartbeat", SlotState.SKIPPED)
    object.__setattr__(beat, "job", a_job("heartbeat", 9, kind=JobKind.HEARTBEAT))

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
    await place.counter.want("every day at 12:00", kind=JobKind.AGENT, missed=Missed.ASK)
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
    (fresh,) = await place.counter.clerk.of(ANN)
    assert (fresh.enabled, fresh.failures, fresh.paused) == (True, 0, "")
