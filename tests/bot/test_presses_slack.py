"""Buttons in Slack, through slack-bolt by socket and by HTTP: pressed by whom, and after what."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.channels.base import MessagePart
from bot.channels.slack.channel import TEXT_CHARS_MAX, SlackChannel
from bot.channels.slack.send import SECTION_CHARS_MAX, marked_blocks, plain_blocks
from bot.lab.slack import FakeSlack, flood, refusal
from bot.lab.slack_delivery import twice
from bot.lab.slack_state import SeenInSlack
from bot.markup.render import slack_parts
from bot.outbox.outbox import REPEATED
from memory.records.rows import Button, ButtonRows
from scheduler.clock.machine import SystemClock
from tests.bot.kit import eventually, slack_settings
from tests.bot.press_kit import ALLOW, CARD, DENY, OUTCOME, ROWS, Question, process
from tests.bot.slack_kit import ANN, BOB, CHANNEL, STRANGER, TEAM, Mode, free_port
from tests.judges.block_kit import judge_block

SHOWN = "May I run *ls -la*?"
PEOPLE = (f"slack:{TEAM}:{ANN}", f"slack:{TEAM}:{BOB}", f"slack:{TEAM}.{CHANNEL}")
ALLOWS, DENIES = "press_1", "press_2"


@pytest.fixture(params=["socket", "http"])
def mode(request: pytest.FixtureRequest) -> Mode:
    found: Mode = request.param
    return found


@pytest.fixture
async def slack() -> AsyncIterator[FakeSlack]:
    async with FakeSlack(retry_scale=0.002, ack_s=1.0) as fake:
        yield fake


@pytest.fixture
def question() -> Question:
    return Question()


@asynccontextmanager
async def channel_of(slack: FakeSlack, port: int = 0) -> AsyncIterator[SlackChannel]:
    settings = slack_settings(
        mode="http" if port else "socket",
        listen=f"127.0.0.1:{port}",
        base_url=slack.api_url,
        send_timeout_s=5,
    )
    home = cast(Any, SimpleNamespace(knows=lambda sender: True))
    async with SlackChannel(settings, clock=SystemClock(), make_home=lambda: home) as channel:
        yield channel


@asynccontextmanager
async def serving(
    folder: Path, slack: FakeSlack, presses: Any, mode: Mode = "socket"
) -> AsyncIterator[Any]:
    """A process that takes events in."""
    port = free_port() if mode == "http" else 0
    async with (
        channel_of(slack, port) as channel,
        process(folder, channel, presses, people=PEOPLE) as opened,
    ):
        serve = asyncio.create_task(channel.serve(opened.door))
        try:
            if port:
                await eventually(lambda: slack.deliver_to(f"http://127.0.0.1:{port}/slack/events"))
            else:
                await eventually(lambda: [one for one in slack.sockets() if not one.leaving])
            yield opened
        finally:
            serve.cancel()
            await asyncio.gather(serve, return_exceptions=True)


def lane(slack: FakeSlack, user: str = ANN) -> str:
    return f"slack:{TEAM}.{slack.direct(user)}"


def card(slack: FakeSlack, channel: str) -> SeenInSlack:
    """The bot's last message in a conversation."""
    return [seen for seen in slack.chat(channel) if seen.is_bot][-1]


def press(slack: FakeSlack, channel: str, action: str = ALLOWS, *, by: str = ANN) -> str:
    return slack.press(action_id=action, channel=channel, ts=card(slack, channel).ts, user=by)


def whispers(slack: FakeSlack, user: str = ANN) -> list[str]:
    return [seen.text for seen in slack.ephemeral(user)]


# --- one press ----------------------------------------------------------------------------------


async def test_a_press_has_its_effect_and_the_one_who_pressed_reads_what_came_of_it(
    tmp_path: Path, slack: FakeSlack, question: Question, mode: Mode
) -> None:
    async with serving(tmp_path, slack, {"ask": question.press}, mode) as bot:
        await bot.card(lane(slack))
        shown = card(slack, slack.direct())
        press(slack, slack.direct())
        await eventually(lambda: whispers(slack))
        events = await bot.events()

    assert shown.text == SHOWN
    section, actions = shown.blocks
    assert section["text"] == {"type": "mrkdwn", "text": SHOWN, "verbatim": True}
    assert [(one["value"], one["style"]) for one in actions["elements"]] == [
        (ALLOW, "primary"),
        (DENY, "danger"),
    ]
    assert (whispers(slack), question.answers) == (["Noted."], [ALLOW])
    assert events == [("command", "button", 0)]
    [pressed] = question.calls
    assert (pressed.address.key, pressed.message_id) == (lane(slack), shown.ts)
    assert pressed.sender == PEOPLE[0]


async def test_in_a_channel_the_person_decides_and_a_stranger_gets_nothing(
    tmp_path: Path, slack: FakeSlack, question: Question, mode: Mode
) -> None:
    slack.add_user(user=STRANGER)
    for user in (BOB, STRANGER):
        slack._workspace.conversation(CHANNEL).members.add(user)
    async with serving(tmp_path, slack, {"ask": question.press}, mode) as bot:
        parent = slack.post(text="look", channel=CHANNEL, user=ANN)
        await slack.settled()
        await bot.card(f"slack:{TEAM}.{CHANNEL}:{parent}")
        shown = slack.thread(CHANNEL, parent)[-1]
        for who, action in ((BOB, ALLOWS), (STRANGER, ALLOWS), (ANN, DENIES)):
            slack.press(action_id=action, channel=CHANNEL, ts=shown.ts, user=who)
            await slack.settled()
        await eventually(lambda: whispers(slack))
        events = await bot.events()

    assert whispers(slack, BOB) == ["Only the owner may answer this."]
    assert whispers(slack, STRANGER) == []
    assert whispers(slack) == ["Noted."]
    assert question.answers == [DENY]
    assert {one.address.thread_id for one in question.calls} == {parent}
    assert [event[:2] for event in events if event[0] != "silent"] == [
        ("command", "button"),
        ("refused", "stranger"),
        ("command", "button"),
    ]


# --- a process that ends --------------------------------------------------------------------------


async def test_a_double_tap_is_heard_twice_and_a_delivery_that_comes_twice_once(
    tmp_path: Path, slack: FakeSlack, question: Question, mode: Mode
) -> None:
    async with serving(tmp_path, slack, {"ask": question.press}, mode) as bot:
        await bot.card(lane(slack))
        slack.fault(action=twice(), times=1)
        press(slack, slack.direct())
        press(slack, slack.direct())
        await slack.settled()
        await eventually(lambda: len(whispers(slack)) == 2)
        await bot.door.idle()
        events = await bot.events()

    assert sorted(whispers(slack)) == ["Noted.", "This was answered already."]
    assert question.answers == [ALLOW]
    assert events == [("command", "button", 0)] * 2


async def test_what_is_kept_of_a_press_lets_nobody_write_in_our_name(
    tmp_path: Path, slack: FakeSlack, question: Question
) -> None:
    async with (
        channel_of(slack) as channel,
        process(tmp_path, channel, {}, people=PEOPLE) as bot,
    ):
        await bot.card(lane(slack))
        delivery = slack.delivery(press(slack, slack.direct()))
        await channel._intake(bot.door).receive(delivery.payload)
        kept = await bot.database.read(
            lambda c: c.execute("select payload from inbox").fetchone()[0]
        )

    assert ALLOW in kept
    for secret in ("response_url", "trigger_id", "token", "ls -la"):
        assert secret not in kept


# --- the card becomes its outcome -----------------------------------------------------------------


async def test_a_card_becomes_its_outcome_and_loses_its_buttons(
    tmp_path: Path, slack: FakeSlack
) -> None:
    async with serving(tmp_path, slack, {}) as bot:
        outbox_id = await bot.card(lane(slack))
        slack.fault("chat.update", action=flood(1), times=1)
        await bot.revised(outbox_id)
        await bot.revised(outbox_id)

    [seen] = slack.chat(slack.direct())
    assert (seen.text, list(seen.blocks), seen.edits) == (OUTCOME, [], 1)
    with pytest.raises(LookupError):
        press(slack, slack.direct())


@pytest.mark.parametrize("error", ["invalid_blocks", "msg_too_long"])
async def test_where_markup_is_refused_the_buttons_stay(
    tmp_path: Path, slack: FakeSlack, error: str
) -> None:
    async with serving(tmp_path, slack, {}) as bot:
        slack.fault("chat.postMessage", action=refusal(error), times=1)
        await bot.card(lane(slack))

    [seen] = slack.chat(slack.direct())
    section, actions = seen.blocks
    assert seen.text == CARD
    assert section["text"]["type"] == "plain_text"
    assert len(actions["elements"]) == 2


# --- what goes over the wire ----------------------------------------------------------------------


LABELS = st.text(min_size=1, max_size=120).filter(str.strip)
WORDS = st.sampled_from(
    ["word", "**bold** text", "`code`", "\n", "\n\n", "```\n", "x" * 900, "- a "]
)


@given(
    st.lists(WORDS, max_size=40), st.lists(st.lists(LABELS, min_size=1, max_size=30), max_size=2)
)
def test_blocks_are_what_slack_takes_and_lose_nothing(
    words: list[str], rows: list[list[str]]
) -> None:
    buttons: ButtonRows = tuple(
        tuple(Button(label=label, data=f"a:{n}", style="good") for n, label in enumerate(row))
        for row in rows
    )

    for part in slack_parts(" ".join(words), limit=TEXT_CHARS_MAX):
        message = MessagePart(
            markup=part.markup + REPEATED, source=part.source + REPEATED, buttons=buttons
        )
        for blocks in (marked_blocks(message), plain_blocks(message)):
            for block in blocks:
                judge_block(block)
            texts = [one["text"]["text"] for one in blocks if one["type"] == "section"]
            assert all(len(text) <= SECTION_CHARS_MAX for text in texts)
            assert blocks[0]["text"]["type"] == "plain_text" or all(
                text.count("```") % 2 == 0 for text in texts
            )
            shown = "".join(texts)
            assert shown.count("word") == part.source.count("word")
            assert shown.count("x") == part.source.count("x")
            pressed = [e for one in blocks if one["type"] == "actions" for e in one["elements"]]
            assert len({one["action_id"] for one in pressed}) == sum(map(len, rows))


def test_a_fence_that_is_cut_is_closed_and_opened_anew() -> None:
    code = "\n".join(f"line {number} of the program" for number in range(150))
    [part] = slack_parts(f"```\n{code}\n```", limit=TEXT_CHARS_MAX)

    blocks = marked_blocks(MessagePart(markup=part.markup, source=part.source, buttons=ROWS))

    texts = [one["text"]["text"] for one in blocks[:-1]]
    assert len(texts) == 2
    assert all(text.startswith("```") and text.endswith("```") for text in texts)
    assert "\n".join(text.strip("`\n") for text in texts) == code
