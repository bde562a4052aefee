"""People from one chat to another, through the whole bot: who is let in, linked, stopped."""

from __future__ import annotations

import re
from functools import partial

import pytest

from memory.records.messages import Address, Role
from tests.bot.kit import GROUP, MEMBER, OWNER, STRANGER, US, Rig, eventually

GUEST = 7


def code_in(text: str) -> str:
    found = re.search(r"/(?:link|pair) ([A-Z0-9]{8})", text)
    assert found is not None, text
    return found[1]


# --- /link -------------------------------------------------------------------------------------


@pytest.mark.case("SE-17")
async def test_a_stranger_proves_to_be_the_member_and_both_sides_read_it(rig: Rig) -> None:
    async with rig.running(OWNER, MEMBER) as bot:
        rig.says("/link", by=MEMBER)
        await eventually(partial(rig.wrote, 1, chat=MEMBER))
        code = code_in(rig.texts(MEMBER)[0])
        rig.says(f"/link {code}", by=STRANGER)
        await eventually(partial(rig.wrote, 1, chat=STRANGER))
        await eventually(partial(rig.wrote, 2, chat=MEMBER))
        rig.says("hello from here", by=STRANGER)
        await eventually(partial(rig.wrote, 2, chat=STRANGER))
        await rig.quiet(bot)
        person = bot.access.who(f"telegram:{MEMBER}")

    assert rig.texts(MEMBER)[1].startswith(f"telegram:{STRANGER} now belongs to you too.")
    assert rig.texts(STRANGER)[0].startswith(f"telegram:{STRANGER} now belongs to you too, beside")
    assert person is not None
    assert person.addresses == (f"telegram:{MEMBER}", f"telegram:{STRANGER}")
    assert rig.heard() == ["hello from here"], "no transcript is shared"
    assert rig.rows("select distinct person_id from turns") == [(person.id,)]
    assert rig.inbox() == ["command", "command", "replied"]


@pytest.mark.parametrize("stranger", ["/link WRONG222", "/link", "secret words /link {code}"])
async def test_of_a_strangers_other_words_nothing_is_kept_or_done(rig: Rig, stranger: str) -> None:
    async with rig.running(OWNER, MEMBER) as bot:
        rig.says("/link", by=MEMBER)
        await eventually(partial(rig.wrote, 1, chat=MEMBER))
        text = stranger.format(code=code_in(rig.texts(MEMBER)[0]))
        rig.says(text, by=STRANGER)
        await eventually(partial(rig.wrote, 1, chat=STRANGER))
        await rig.quiet(bot)
        assert bot.access.who(f"telegram:{STRANGER}") is None

    assert rig.texts(STRANGER)[0].startswith("This is a private assistant")
    assert b"secret words" not in rig.bytes_on_disk()
    assert b"WRONG222" not in rig.bytes_on_disk()
    assert rig.inbox() == ["command", "refused"]


async def test_a_code_in_a_group_links_nobody(rig: Rig) -> None:
    async with rig.running(OWNER, MEMBER) as bot:
        await bot.access.approve(f"telegram:{GROUP}")
        rig.says(f"/link@{US}", by=MEMBER, chat=GROUP)
        await rig.reads("/link is done in a private chat: write it to me there.", chat=GROUP)
        rig.says("/link", by=MEMBER)
        await eventually(partial(rig.wrote, 1, chat=MEMBER))
        rig.says(f"/link@{US} {code_in(rig.texts(MEMBER)[0])}", by=STRANGER, chat=GROUP)
        await eventually(partial(rig.took, 3))
        await rig.quiet(bot)
        assert bot.access.who(f"telegram:{STRANGER}") is None


async def test_an_edit_into_a_code_links_nobody(rig: Rig) -> None:
    async with rig.running(OWNER, MEMBER) as bot:
        rig.says("/link", by=MEMBER)
        await eventually(partial(rig.wrote, 1, chat=MEMBER))
        number = rig.says("hm", by=STRANGER)
        text = f"/link {code_in(rig.texts(MEMBER)[0])}"
        rig.telegram.edit(chat_id=STRANGER, message_id=number, text=text)
        await eventually(partial(rig.took, 3))
        await rig.quiet(bot)

        assert bot.access.who(f"telegram:{STRANGER}") is None


async def test_a_link_that_was_made_before_a_kill_is_answered_after_it(rig: Rig) -> None:
    async with rig.opened() as bot:
        await bot.access.approve(f"telegram:{OWNER}")
        member = (await bot.access.approve(f"telegram:{MEMBER}")).person
        assert member is not None
        lane = member.addresses[0]
        code = await bot.access.linking.offer(member, sender=lane, chat=Address.parse(lane))
        # As the intake does it, and killed before the event was stored.
        await bot.access.recognise(f"telegram:{STRANGER}", is_group=False, link=code)
        rig.says(f"/link {code}", by=STRANGER)
    async with rig.running() as bot:
        await eventually(partial(rig.wrote, 1, chat=STRANGER))
        await eventually(partial(rig.wrote, 1, chat=MEMBER))
        await rig.quiet(bot)

    assert rig.texts(STRANGER)[0].startswith(f"telegram:{STRANGER} now belongs to you too, beside")
    assert len(rig.texts(MEMBER)) == 1


# --- /pair and /access -------------------------------------------------------------------------


async def test_the_owner_lets_somebody_in_from_the_phone(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        rig.says("hello", by=STRANGER)
        await eventually(partial(rig.wrote, 1, chat=STRANGER))
        await eventually(partial(rig.wrote, 1))  # the owner is asked
        [code] = re.findall(r"\b[A-Z0-9]{8}\b", rig.texts(STRANGER)[0])
        rig.says(f"/pair {code} guest")
        await eventually(partial(rig.wrote, 2))
        rig.says("hello again", by=STRANGER)
        await eventually(partial(rig.wrote, 2, chat=STRANGER))
        rig.says(f"/access remove telegram:{STRANGER}")
        await eventually(partial(rig.wrote, 3))
        rig.says("and now?", by=STRANGER)
        await eventually(partial(rig.took, 5))
        await rig.quiet(bot)

    assert rig.texts()[1] == f"telegram:{STRANGER} is now guest."
    assert rig.texts(STRANGER)[1] == "You said: hello again"
    assert rig.inbox()[-1] == "refused"
    assert b"and now?" not in rig.bytes_on_disk()


@pytest.mark.parametrize("text", ["/pair", "/access", "/access remove telegram:5"])
async def test_in_a_group_and_to_others_people_are_not_shown(rig: Rig, text: str) -> None:
    word = text.split(maxsplit=1)[0]
    async with rig.running(OWNER, MEMBER) as bot:
        await bot.access.approve(f"telegram:{GROUP}")
        rig.says(text.replace(word, f"{word}@{US}"), chat=GROUP)
        await rig.reads(f"{word} is done in a private chat: write it to me there.", chat=GROUP)
        rig.says(text, by=MEMBER)
        await rig.reads(f"{word} is for the owner.", chat=MEMBER)
        await rig.quiet(bot)

    assert rig.model.requests == []
    assert rig.inbox() == ["command", "command"]


async def test_what_runs_for_somebody_who_is_removed_goes_on_to_its_end(rig: Rig) -> None:
    rig.model.say("done", wait_s=0.5)
    async with rig.running(OWNER, MEMBER) as bot:
        rig.says("hello", by=MEMBER)
        await eventually(lambda: len(rig.model.requests) == 1)
        rig.says(f"/access remove telegram:{MEMBER}")
        await eventually(partial(rig.wrote, 1))
        rig.says("more", by=MEMBER)
        await eventually(lambda: "done" in rig.texts(MEMBER))
        await rig.quiet(bot)

    assert len(rig.model.requests) == 1
    assert sorted(rig.inbox()) == ["command", "refused", "replied"]


# --- a guest in a group ------------------------------------------------------------------------


async def test_a_guest_in_a_group_stops_what_they_asked_for_and_nothing_else(rig: Rig) -> None:
    rig.set(turns__queue="followup")
    rig.model.say("for the owner", wait_s=0.5)
    async with rig.running(OWNER) as bot:
        await bot.access.approve(f"telegram:{GROUP}")
        await bot.access.approve(f"telegram:{GUEST}", role=Role.GUEST)
        rig.says(f"@{US} one", chat=GROUP)
        await eventually(lambda: len(rig.model.requests) == 1)
        rig.says(f"/stop@{US}", by=GUEST, chat=GROUP)
        await rig.reads("Nothing of yours was running.", chat=GROUP)
        rig.says(f"@{US} two", by=GUEST, chat=GROUP)
        rig.says(f"/stop@{US}", by=GUEST, chat=GROUP)
        await rig.reads("Nothing of yours was running.", "Stopped.", "for the owner", chat=GROUP)
        await rig.quiet(bot)

    assert rig.inbox() == ["replied", "command", "cancelled", "command"]


async def test_a_guest_ends_no_conversation_that_others_have(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        await bot.access.approve(f"telegram:{GROUP}")
        await bot.access.approve(f"telegram:{GUEST}", role=Role.GUEST)
        rig.says(f"@{US} one", chat=GROUP)
        await eventually(partial(rig.wrote, 1, chat=GROUP))
        rig.says(f"/new@{US}", by=GUEST, chat=GROUP)
        await eventually(partial(rig.wrote, 2, chat=GROUP))
        await rig.quiet(bot)

    assert "is for the owner and members" in rig.texts(GROUP)[1]
    assert rig.rows("select count(*) from conversations") == [(1,)]
