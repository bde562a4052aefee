"""The assistant's pane of Slack: what is offered, what a thread is called, what is done there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bot.channels.slack.api import SlackWeb
from bot.channels.slack.assistant_pane import (
    STALE_S,
    THINKING,
    TITLE_CHARS_MAX,
    WAITING_MAX,
    AssistantPanes,
    title_of,
)
from bot.channels.slack.wire import OpenedPane
from bot.lab.faults import drop, hold
from bot.lab.slack import TOKEN, FakeSlack
from memory.records.messages import Address
from tests.bot.kit import SlowTool, eventually
from tests.bot.slack_kit import ANN, BOB, TEAM, SlackRig, slack_rigged
from tests.fakes import FixedClock

DIRECT = f"D{ANN[1:]}"


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[SlackRig]:
    async with slack_rigged(tmp_path) as made:
        yield made


# --- in a whole bot ------------------------------------------------------------------------------


async def test_the_first_words_are_the_title_of_a_thread_once(rig: SlackRig) -> None:
    async with rig.serving_slack(ANN) as bot:
        thread = rig.slack.start_assistant(user=ANN)
        await eventually(lambda: rig.slack.prompts(DIRECT, thread))
        rig.writes("What is in &lt;notes&gt;?\nAnd more", thread_ts=thread)
        await eventually(lambda: rig.slack.title(DIRECT, thread))
        await eventually(lambda: len(rig.replies()) == 2)  # Slack's own first line is one
        rig.writes("and then?", thread_ts=thread)
        await eventually(lambda: len(rig.replies()) == 3)
        await rig.quiet(bot)

    assert rig.slack.title(DIRECT, thread) == "What is in <notes>? And more"
    assert len(rig.slack.calls("assistant.threads.setTitle")) == 1


@pytest.mark.case("PR-05")
async def test_the_status_says_in_plain_words_what_is_done_and_goes_with_the_answer(
    rig: SlackRig, slow_tool: SlowTool
) -> None:
    rig.model.call("wait_here")
    rig.model.say("Here it is.")
    async with rig.serving_slack(ANN) as bot:
        thread = rig.slack.start_assistant(user=ANN)
        await eventually(lambda: rig.slack.prompts(DIRECT, thread))
        rig.writes("find it", thread_ts=thread)
        await slow_tool.running.wait()
        await eventually(lambda: rig.slack.status(DIRECT, thread) == "is working…")
        slow_tool.go.set()
        await eventually(lambda: "Here it is." in rig.read())
        await rig.quiet(bot)
        assert rig.slack.status(DIRECT, thread) is None

    said = [call.params["status"] for call in rig.slack.calls("assistant.threads.setStatus")]
    assert "wait_here" not in str(said)


# --- alone ---------------------------------------------------------------------------------------


@asynccontextmanager
async def panes_of(clock: FixedClock) -> AsyncIterator[tuple[FakeSlack, AssistantPanes, Address]]:
    """Panes that work, with an open thread of Ann."""
    async with FakeSlack() as slack:
        thread = slack.start_assistant(user=ANN)
        address = Address(channel="slack", chat_id=f"{TEAM}.{DIRECT}", thread_id=thread)
        async with SlackWeb(TOKEN, base_url=slack.api_url, timeout_s=5) as web:
            panes = AssistantPanes(web, clock=clock, offer=lambda _: [("Plan", "Plan my day")])
            working = asyncio.create_task(panes.work())
            try:
                yield slack, panes, address
            finally:
                working.cancel()
                await asyncio.gather(working, return_exceptions=True)


def statuses(slack: FakeSlack) -> list[str]:
    return [call.params["status"] for call in slack.calls("assistant.threads.setStatus")]


async def test_a_status_of_which_nothing_more_is_heard_is_taken_away() -> None:
    clock = FixedClock()
    async with panes_of(clock) as (slack, panes, address):
        began = clock.monotonic()
        clock.hold()
        await panes.typing(address)
        clock.wake()
        await eventually(lambda: statuses(slack) == [THINKING, ""])

    assert clock.monotonic() - began >= STALE_S


async def test_a_status_that_an_answer_overtook_is_taken_away() -> None:
    async with panes_of(FixedClock()) as (slack, panes, address):
        slack.fault("assistant.threads.setStatus", action=hold(after=False))
        saying = asyncio.create_task(panes.typing(address))
        await eventually(lambda: slack.calls("assistant.threads.setStatus"))
        panes.posted(address)
        slack.release()
        await saying

        assert address.thread_id is not None
        assert slack.status(DIRECT, address.thread_id) is None


async def test_elsewhere_nothing_is_asked_of_slack() -> None:
    async with panes_of(FixedClock()) as (slack, panes, address):
        for chat_id, thread in ((f"{TEAM}.C1", "1.1"), (address.chat_id, None)):
            place = Address(channel="slack", chat_id=chat_id, thread_id=thread)
            panes.doing(place, "reading a file …")
            await panes.typing(place)

        assert slack.calls() == []


async def test_what_fails_in_a_pane_is_left_out_and_the_next_thing_is_done() -> None:
    async with panes_of(FixedClock()) as (slack, panes, address):
        assert address.thread_id is not None
        thread = OpenedPane(channel=DIRECT, thread=address.thread_id, sender=f"slack:{TEAM}:{ANN}")
        slack.fault("assistant.threads.setSuggestedPrompts", action=drop())
        for _ in range(2 * WAITING_MAX):
            panes.opened(thread)
        await eventually(lambda: slack.prompts(DIRECT, thread.thread))
        panes.said(DIRECT, thread.thread, "<@U1>  ")
        panes.said(DIRECT, thread.thread, 7)
        panes.said(DIRECT, "1.1", "elsewhere")
        panes.said(DIRECT, thread.thread, "<@U1> tell me")
        await eventually(lambda: slack.title(DIRECT, thread.thread) == "tell me")

    assert len(slack.calls("assistant.threads.setSuggestedPrompts")) <= WAITING_MAX


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Plan my day", "Plan my day"),
        (f"<@{BOB}> a &lt;b&gt; &amp;lt; c", "a <b> &lt; c"),
        ("one " * 60, None),
        ("x" * 200, None),
        ("", ""),
        (None, ""),
    ],
)
def test_a_title_is_short_and_plain(text: str | None, title: str | None) -> None:
    made = title_of(text)

    assert len(made) <= TITLE_CHARS_MAX
    assert made == title if title is not None else made.endswith("…")
