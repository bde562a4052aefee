"""Somebody without a time zone is asked about this machine's: once, and through the whole bot."""

from __future__ import annotations

import re

import pytest

from bot.people.zone_question import NOT_YOURS
from memory.database.connection import Database
from memory.records.messages import Role
from memory.stores.people import SqliteAssumedZones
from scheduler.clock.machine import SystemClock
from tests.bot.kit import GROUP, MEMBER, OWNER, US, Rig, eventually

QUESTION = re.compile(
    r"Is it \d\d:\d\d where you are\? I take Europe/Berlin, this machine's zone, for you\.\n"
    r"/timezone CITY if not\."
)


@pytest.fixture(autouse=True)
def _in_berlin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")


def asked(rig: Rig, chat: int = OWNER) -> list[str]:
    """The questions in a chat, and what they became."""
    return [text for text in rig.texts(chat) if "this machine's zone" in text]


def zone_of(rig: Rig, number: int = OWNER) -> str:
    """What is stored of a person."""
    sql = "select time_zone from people join addresses on id = person_id where address = ?"
    [(zone,)] = rig.rows(sql, f"telegram:{number}")
    return str(zone)


async def taps(
    rig: Rig, label: str, *, chat: int = OWNER, by: int | None = None, text: str = ""
) -> str:
    """Presses the newest button of this label in a chat; what is answered. `text` is in the
    message."""
    before = len(rig.telegram.answers())
    for message in reversed(rig.seen(chat)):
        for row in (message.markup or {}).get("inline_keyboard", ()):
            for button in row:
                if button["text"] == label and text in message.text:
                    rig.telegram.callback(
                        chat_id=chat,
                        message_id=message.message_id,
                        data=button["callback_data"],
                        user_id=chat if by is None else by,
                    )
                    await eventually(lambda: len(rig.telegram.answers()) > before)
                    return str(rig.telegram.answers()[-1]["text"])
    raise AssertionError(f"no button {label!r} in {rig.texts(chat)}")


async def reminded(rig: Rig, words: str, *, chat: int = OWNER) -> None:
    """A reminder that was typed and saved."""
    rig.says(f"/remind {words}", by=chat)
    await eventually(lambda: any("Save" in str(one.markup) for one in rig.seen(chat)))
    said = await taps(rig, "Save", chat=chat)
    assert said.startswith("Saved as j"), said


async def test_the_first_reminder_at_a_time_of_the_day_asks_after_the_answer_and_yes_is_kept(
    rig: Rig,
) -> None:
    async with rig.running(OWNER) as bot:
        await reminded(rig, "in 10 minutes look at the oven")
        await rig.quiet(bot)
        unasked = asked(rig)
        await reminded(rig, "tomorrow at 9 call Bob")
        await rig.quiet(bot)
        last = rig.texts()[-1]
        said = await taps(rig, "Yes")
        again = zone_of(rig)
        await rig.quiet(bot)
        await reminded(rig, "every day at 8 stand up")
        await rig.quiet(bot)

    assert unasked == []
    assert QUESTION.fullmatch(last)
    assert (said, again) == ("Your time zone is Europe/Berlin.", "Europe/Berlin")
    assert asked(rig) == [f"{last}\n\nYour time zone is Europe/Berlin."]
    assert rig.rows("select * from assumed_times") == []
    assert rig.model.requests == []


async def test_a_restart_asks_nobody_again_and_its_button_still_works(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        await reminded(rig, "tomorrow at 9 call Bob")
        await rig.quiet(bot)

    async with rig.running() as bot:
        await reminded(rig, "every day at 8 stand up")
        await rig.quiet(bot)
        [question] = asked(rig)
        said = await taps(rig, "Yes")
        await rig.quiet(bot)

    assert QUESTION.fullmatch(question)
    assert said == "Your time zone is Europe/Berlin."
    assert zone_of(rig) == "Europe/Berlin"


async def test_a_question_that_a_kill_kept_from_being_asked_is_asked_at_the_next_start(
    rig: Rig,
) -> None:
    async with rig.opened() as bot:
        await bot.access.approve(f"telegram:{OWNER}")
        person = bot.access.owner_id()
        assert person is not None
    async with Database.open(rig.home.database, clock=SystemClock()) as database:
        lane = f"telegram:{OWNER}"
        await SqliteAssumedZones(database).want(person, lane=lane, zone="Europe/Berlin")

    for _ in range(2):
        async with rig.running() as bot:
            await eventually(lambda: asked(rig))
            await rig.quiet(bot)

    assert len(asked(rig)) == 1


async def test_what_the_model_sets_up_asks_after_its_answer(rig: Rig) -> None:
    async with rig.running(OWNER, MEMBER) as bot:
        rig.model.call("remind_me", {"text": "call Bob", "when": "tomorrow at 9"})
        rig.model.say("I shall remind you.")
        rig.says("remind me to call Bob tomorrow at 9")
        await eventually(lambda: asked(rig))
        rig.model.call("record_event", {"name": "Dentist", "when": "in 3 days at 10:00"})
        rig.model.say("Noted.")
        rig.says("dentist in 3 days at 10", by=MEMBER)
        await eventually(lambda: asked(rig, MEMBER))
        await rig.quiet(bot)

    assert rig.texts()[0] == "I shall remind you."
    assert QUESTION.fullmatch(rig.texts()[1])
    assert rig.texts(MEMBER)[0] == "Noted."
    assert len(rig.model.requests) == 4


async def test_quiet_hours_ask_too(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        rig.says("/quiet off")
        await eventually(lambda: rig.wrote(1))
        rig.says("/quiet 22:00-07:00")
        await eventually(lambda: asked(rig))
        await rig.quiet(bot)

    assert rig.texts()[1].startswith("Quiet hours: 22:00-07:00")
    assert len(rig.texts()) == 3


async def test_another_zone_moves_what_was_set_up_before_at_a_tap(rig: Rig) -> None:
    async with rig.running(OWNER, MEMBER) as bot:
        await reminded(rig, "every day at 8 stand up", chat=MEMBER)
        await reminded(rig, "in 3 hours look at the oven", chat=MEMBER)
        await rig.quiet(bot)
        rig.says("/timezone Tokyo", by=MEMBER)
        await eventually(lambda: "Your time zone is Asia/Tokyo" in rig.texts(MEMBER)[-1])
        offer = rig.texts(MEMBER)[-1]
        await rig.quiet(bot)
        [question] = asked(rig, MEMBER)
        foreign = await taps(rig, "Move to Asia/Tokyo", chat=MEMBER, by=OWNER)
        said = await taps(rig, "Move to Asia/Tokyo", chat=MEMBER)
        await rig.quiet(bot)
        rig.says("/timezone", by=MEMBER)
        await eventually(lambda: "To change it" in rig.texts(MEMBER)[-1])
        await rig.quiet(bot)

    assert "• j1 stand up: " in offer
    assert "08:00" in offer
    assert "j2" not in offer
    assert question.endswith("You have set Asia/Tokyo.")
    assert (foreign, said) == (NOT_YOURS, "Moved: j1.")
    [(when,)] = rig.rows("select runs_when from jobs where id = 1")
    assert '"zone":"Asia/Tokyo"' in when.replace(" ", "")
    assert "Set up by" not in rig.texts(MEMBER)[-1]


async def test_a_press_after_another_zone_was_set_changes_nothing(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        await reminded(rig, "tomorrow at 9 call Bob")
        await rig.quiet(bot)
        [card] = [one for one in rig.seen() if QUESTION.fullmatch(one.text)]
        rig.says("/timezone Tokyo")
        await eventually(lambda: "Your time zone is Asia/Tokyo" in rig.texts()[-1])
        await rig.quiet(bot)
        person = bot.access.owner_id()
        before = len(rig.telegram.answers())
        rig.telegram.callback(
            chat_id=OWNER, message_id=card.message_id, data=f"zone:yes:{person}", user_id=OWNER
        )
        await eventually(lambda: len(rig.telegram.answers()) > before)
        said = rig.telegram.answers()[-1]["text"]
        await rig.quiet(bot)

    assert said == "You have set Asia/Tokyo since, and that stays."
    assert zone_of(rig) == "Asia/Tokyo"


async def test_nobody_else_answers_for_a_person(rig: Rig) -> None:
    async with rig.running(OWNER, MEMBER) as bot:
        await reminded(rig, "tomorrow at 9 call Bob")
        await rig.quiet(bot)
        said = await taps(rig, "Yes", by=MEMBER)
        await rig.quiet(bot)

    assert said == NOT_YOURS
    assert (zone_of(rig), zone_of(rig, MEMBER)) == ("", "")
    assert len(asked(rig)) == 1
    assert QUESTION.fullmatch(asked(rig)[0])


async def test_neither_a_group_nor_who_has_a_zone_nor_a_guest_is_asked(rig: Rig) -> None:
    async with rig.running(OWNER, MEMBER, 7) as bot:
        await bot.access.approve(f"telegram:{GROUP}")
        await bot.access.set_role("telegram:7", Role.GUEST)
        owner = bot.access.who(f"telegram:{OWNER}")
        assert owner is not None
        await bot.access.set_time_zone(owner, "Europe/Berlin")
        await reminded(rig, "tomorrow at 9 call Bob")
        rig.says(f"/remind@{US} tomorrow at 9 call Bob", by=MEMBER, chat=GROUP)
        await eventually(lambda: rig.seen(GROUP))
        await taps(rig, "Save", chat=GROUP, by=MEMBER)
        rig.says("/remind tomorrow at 9 call Bob", by=7)
        rig.says("/timezone Tokyo", by=MEMBER, chat=GROUP)
        await eventually(lambda: "Asia/Tokyo" in rig.texts(GROUP)[-1])
        await rig.quiet(bot)

    assert rig.rows("select * from zone_questions") == []
    assert "call Bob" not in rig.texts(GROUP)[-1]
    assert "`" not in rig.texts(GROUP)[-1]
    assert "in a private chat shows them" in rig.texts(GROUP)[-1]
