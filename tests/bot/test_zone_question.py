"""Somebody without a time zone is asked for it before the first thing that hangs on their clock is
saved, and nothing is saved on a guess."""

from __future__ import annotations

import re

import pytest

from bot.people.zone_question import NOT_YOURS
from memory.records.messages import Role
from tests.bot.kit import GROUP, MEMBER, OWNER, US, Rig, eventually

QUESTION = re.compile(r"Is it \d\d:\d\d \(Europe/Berlin\) where you are\? /timezone CITY if not\.")


@pytest.fixture(autouse=True)
def _in_berlin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")


def asked(rig: Rig, chat: int = OWNER) -> list[str]:
    """The cards in a chat, and what they became."""
    return [text for text in rig.texts(chat) if "where you are" in text]


def zone_of(rig: Rig, number: int = OWNER) -> str:
    """What is stored of a person."""
    sql = "select time_zone from people join addresses on id = person_id where address = ?"
    [(zone,)] = rig.rows(sql, f"telegram:{number}")
    return str(zone)


def jobs(rig: Rig) -> int:
    return len(rig.rows("select id from jobs where kind <> 'heartbeat'"))


async def taps(rig: Rig, label: str, *, chat: int = OWNER, by: int | None = None) -> str:
    """Press the newest button of this label in a chat; return what is answered."""
    before = len(rig.telegram.answers())
    for message in reversed(rig.seen(chat)):
        for row in (message.markup or {}).get("inline_keyboard", ()):
            for button in row:
                if button["text"] == label:
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
    """Type a reminder, and save it."""
    rig.says(f"/remind {words}", by=chat)
    await eventually(lambda: any("Save" in str(one.markup) for one in rig.seen(chat)))
    said = await taps(rig, "Save", chat=chat)
    assert said.startswith("Saved as j"), said


async def test_the_zone_is_asked_before_the_first_time_of_the_day_is_saved(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        await reminded(rig, "in 10 minutes look at the oven")
        await rig.quiet(bot)
        unasked = asked(rig)
        rig.says("/remind tomorrow at 9 call Bob")
        await eventually(lambda: asked(rig))
        await rig.quiet(bot)
        refusal, card = rig.texts()[-2:]
        kept = jobs(rig)
        said = await taps(rig, "Yes")
        await rig.quiet(bot)
        saved = await taps(rig, "Save")
        await rig.quiet(bot)

    assert unasked == []
    assert "In which time zone are you?" in refusal
    assert "Nothing is saved yet" in refusal
    assert QUESTION.fullmatch(card)
    assert said == "Your time zone is Europe/Berlin."
    assert saved.startswith("Saved as j2. Next:"), "the command needs not be written again"
    assert (kept, jobs(rig), zone_of(rig)) == (1, 2, "Europe/Berlin")
    assert asked(rig) == [f"{card}\n\n{said}"]


async def test_nobody_has_to_answer_the_card(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        rig.says("/remind tomorrow at 9 call Bob")
        await eventually(lambda: len(asked(rig)) == 1)
        await rig.quiet(bot)
        rig.says("/remind tomorrow at 9 call Bob")
        await eventually(lambda: len(asked(rig)) == 2)
        await rig.quiet(bot)
        other = await taps(rig, "Other")
        rig.says("/timezone Tokyo")
        await eventually(lambda: "Remind you here: call Bob" in str(rig.texts()))
        await rig.quiet(bot)
        await taps(rig, "Save")
        late = await taps(rig, "Yes")
        await rig.quiet(bot)

    assert "/timezone Berlin" in other
    assert late == "You have set Asia/Tokyo since, and that stays."
    [(when,)] = rig.rows("select runs_when from jobs")
    assert "Asia/Tokyo" in when


async def test_a_model_is_refused_with_what_to_ask(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        rig.model.call("remind_me", {"text": "call Bob", "when": "tomorrow at 9"})
        rig.model.say("Where do you live?")
        rig.says("remind me to call Bob tomorrow at 9")
        await eventually(lambda: asked(rig))
        rig.model.call("record_event", {"name": "Dentist", "when": "in 3 days at 10:00"})
        rig.model.say("Where do you live?")
        rig.says("dentist in 3 days at 10")
        await eventually(lambda: len(asked(rig)) == 2)
        await rig.quiet(bot)

    assert rig.texts()[0] == "Where do you live?"
    assert "nothing was saved; ask the person: In which time zone" in str(rig.model.requests[1])
    assert (jobs(rig), rig.rows("select * from events")) == (0, [])


async def test_quiet_hours_are_asked_for_too(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        rig.says("/quiet off")
        await eventually(lambda: rig.wrote(1))
        rig.says("/quiet 22:00-07:00")
        await eventually(lambda: asked(rig))
        await rig.quiet(bot)

    assert "No quiet hours were set." in rig.texts()[1]
    assert len(rig.texts()) == 3


async def test_nobody_else_answers_for_a_person(rig: Rig) -> None:
    async with rig.running(OWNER, MEMBER) as bot:
        rig.says("/remind tomorrow at 9 call Bob")
        await eventually(lambda: asked(rig))
        await rig.quiet(bot)
        said = await taps(rig, "Yes", by=MEMBER)
        await rig.quiet(bot)

    assert said == NOT_YOURS
    assert (zone_of(rig), zone_of(rig, MEMBER)) == ("", "")


async def test_the_card_comes_in_private_alone_and_to_nobody_with_a_zone_or_a_guest(
    rig: Rig,
) -> None:
    async with rig.running(OWNER, MEMBER, 7) as bot:
        await bot.access.approve(f"telegram:{GROUP}")
        await bot.access.set_role("telegram:7", Role.GUEST)
        owner = bot.access.who(f"telegram:{OWNER}")
        assert owner is not None
        await bot.access.set_time_zone(owner, "Europe/Berlin")
        await reminded(rig, "tomorrow at 9 call Bob")
        rig.says(f"/remind@{US} tomorrow at 9 call Bob", by=MEMBER, chat=GROUP)
        await eventually(lambda: rig.seen(GROUP))
        rig.says("/remind tomorrow at 9 call Bob", by=7)
        await rig.quiet(bot)
        in_group = asked(rig, GROUP)
        rig.says("/status", by=MEMBER)
        await eventually(lambda: asked(rig, MEMBER))
        await rig.quiet(bot)

    assert "In which time zone are you?" in rig.texts(GROUP)[-1]
    assert (in_group, asked(rig), asked(rig, 7)) == ([], [], [])
    assert jobs(rig) == 1
