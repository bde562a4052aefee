"""The straight line of a message through the whole bot, and what may go wrong on its way."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from bot.lab.faults import hold
from bot.lab.telegram import refuse_markup
from bot.outbox import drafts
from bot.outbox.outbox import REPEATED
from tests.bot.kit import MEMBER, OWNER, Rig, eventually, heard


async def test_a_message_is_answered_once_and_everything_is_ended(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drafts, "TYPING_AFTER_S", 60.0)  # a moment, on however busy a machine
    rig.model.say("Four.")

    async with rig.running(OWNER) as bot:
        rig.says("what is 2+2")
        await rig.reads("Four.")
        await rig.quiet(bot)

    assert rig.heard() == ["what is 2+2"]
    assert (rig.inbox(), rig.outbox(), rig.parts()) == (["replied"], ["sent"], ["sent"])
    assert rig.telegram.actions() == [], "nobody would see a typing action of a moment"


@pytest.mark.case("CH-01")
async def test_an_update_that_comes_again_after_a_restart_changes_nothing(rig: Rig) -> None:
    rig.telegram.change(next_update_id=100)
    async with rig.running(OWNER) as bot:
        rig.says("what is 2+2")
        await rig.reads("You said: what is 2+2")
        await rig.quiet(bot)

    rig.telegram.redeliver(100)
    async with rig.running() as bot:
        rig.says("and now?")
        await rig.reads("You said: what is 2+2", "You said: and now?")
        await rig.quiet(bot)

    assert len(rig.model.requests) == 2
    assert rig.rows("select source, event_id from inbox") == [
        ("telegram:123456", "100"),
        ("telegram:123456", "101"),
    ]


@pytest.mark.case("CH-03")
async def test_what_was_sent_while_the_bot_was_down_reaches_the_model_in_order(rig: Rig) -> None:
    rig.set(turns__queue="followup")
    async with rig.running(OWNER):
        pass
    for text in "abcdef":
        rig.says(text)

    async with rig.running() as bot:
        await rig.reads(*(f"You said: {text}" for text in "abcdef"))
        await rig.quiet(bot)

    assert rig.heard() == list("abcdef")
    for call in rig.telegram.calls():
        assert call.params.get("drop_pending_updates") in {None, "False", "false"}
        assert int(call.params.get("offset", 0)) >= 0


# --- a send whose fate is unknown --------------------------------------------------------------


@pytest.mark.case("CH-05")
async def test_a_send_that_timed_out_is_repeated_once_and_marked(rig: Rig) -> None:
    rig.set(telegram__send_timeout_s=0.3)
    rig.telegram.fault("sendMessage", action=hold(after=True))
    states: list[str] = []

    async with rig.running(OWNER) as bot:
        rig.says("hello")

        def saw_the_second() -> bool:
            states.extend(rig.parts())
            return rig.wrote(2)

        await eventually(saw_the_second)
        await rig.quiet(bot)
    async with rig.running() as bot:
        rig.says("/status")
        await eventually(lambda: len(rig.texts()) == 3)

    assert rig.texts()[:2] == ["You said: hello", "You said: hello\n\n(may be repeated)"]
    assert {"sending", "doubtful"} <= set(states)
    assert rig.outbox() == ["sent", "sent"]
    rig.telegram.release()


@pytest.mark.case("CH-05")
async def test_a_kill_after_delivery_leads_to_one_marked_copy(rig: Rig) -> None:
    rig.telegram.fault("sendMessage", action=hold(after=True))
    async with rig.running(OWNER, killed=True):
        rig.says("hello")
        await eventually(lambda: rig.texts() and rig.parts() == ["sending"])

    for _ in range(2):
        async with rig.running() as bot:
            await rig.reads("You said: hello", "You said: hello" + REPEATED)
            await rig.quiet(bot)

    assert len(rig.model.requests) == 1
    rig.telegram.release()


async def test_who_blocked_the_bot_ends_the_reply_and_nothing_more(rig: Rig) -> None:
    async with rig.running(OWNER, MEMBER) as bot:
        rig.telegram.blocked.add(MEMBER)
        rig.says("hello", by=MEMBER)
        await eventually(lambda: rig.outbox()[:1] == ["failed"])
        rig.says("and you?")
        await eventually(lambda: len(rig.texts()) == 2)
        await rig.quiet(bot)

    notice, answer = sorted(rig.texts(), key=lambda text: text.startswith("You said"))
    assert answer == "You said: and you?"
    assert notice.startswith("Not delivered")
    assert "You said: hello" not in notice, "a member's words are theirs alone"
    assert len([call for call in rig.telegram.calls("sendMessage") if call.status == 403]) == 1
    [(reason,)] = rig.rows("select reason from outbox where state = 'failed'")
    assert "blocked" in reason


# --- text that is hard to send -----------------------------------------------------------------


@pytest.mark.case("CH-07")
async def test_refused_markup_goes_out_as_the_plain_text(rig: Rig) -> None:
    said = (
        "Set `MY_VAR_NAME` and some_file_name.py, 2 * 3 * 4 = 24, see [docs](http://h/a_b_(c)) and"
        " _unclosed\n```py\nx = 1"
    )
    rig.model.say(said)
    rig.telegram.fault("sendMessage", action=refuse_markup(), times=None)

    async with rig.running(OWNER) as bot:
        rig.says("how?")
        await rig.reads(said)
        await rig.quiet(bot)


# --- several messages --------------------------------------------------------------------------


@pytest.mark.case("CH-15")
async def test_quick_messages_are_one_turn_at_a_time_and_all_are_heard(rig: Rig) -> None:
    rig.model.delay_s = 0.3
    running = most = 0

    async def reply(request: dict[str, object]) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.2)
        running -= 1
        return f"Heard: {heard(request)[-1]}"

    rig.model.reply = reply
    said = ["remind me at 4pm", "sorry, 5pm", "and buy milk"]

    async with rig.running(OWNER) as bot:
        for number, text in enumerate(said, 1):
            rig.says(text)
            await eventually(partial(rig.took, number))
        await rig.reads(*(f"Heard: {text}" for text in said))
        await rig.quiet(bot)

    assert most == 1
    assert rig.heard() == said


@pytest.mark.case("SE-17")
async def test_two_people_never_share_a_conversation(rig: Rig) -> None:
    async with rig.running(OWNER, MEMBER) as bot:
        rig.says("my PIN is 4711")
        await rig.reads("You said: my PIN is 4711")
        rig.says("/new", by=MEMBER)
        rig.says("/stop", by=MEMBER)
        rig.says("what is my PIN?", by=MEMBER)
        await eventually(lambda: "You said: what is my PIN?" in rig.texts(MEMBER))
        await rig.quiet(bot)
        assert "4711" not in str(rig.model.requests[-1])
        rig.says("what was it?")
        await eventually(lambda: len(rig.texts()) == 2)

    assert rig.heard() == ["my PIN is 4711", "what was it?"]


@pytest.mark.case("HI-11")
async def test_what_was_delivered_before_a_kill_is_known_after_it(rig: Rig) -> None:
    (rig.home.workspace / "note.txt").write_text("seven apples")
    rig.model.call("read_file", {"path": "note.txt"})
    rig.model.say("There are seven apples.")
    async with rig.running(OWNER, killed=True):
        rig.says("how many?")
        await rig.reads("There are seven apples.")

    async with rig.running() as bot:
        rig.says("what did you just say?")
        await eventually(lambda: "what did you just say?" in rig.heard())
        await rig.quiet(bot)

    roles = [message["role"] for message in rig.model.requests[-1]["messages"]]
    assert [role for role in roles if role != "system"] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    assert "There are seven apples." in str(rig.model.requests[-1]["messages"][-2])
    assert rig.texts()[0] == "There are seven apples."


async def test_a_secret_in_a_reply_never_reaches_the_chat(rig: Rig) -> None:
    rig.model.say("The key is lab-key-of-the-test, said the model.")

    async with rig.running(OWNER) as bot:
        rig.says("what is your key?")
        await rig.reads("The key is [redacted], said the model.")
        await rig.quiet(bot)

    assert "lab-key-of-the-test" not in "".join(rig.texts())
