"""Files and reactions out to Slack by the real library against the stand-in: uploaded first, shown
by a second call, looked up in doubt; and the whole way from a model's call to the thread."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bot.channels.base import (
    DeliveryRefused,
    FileOut,
    InDoubt,
    MessagePart,
    NotSent,
    SentMessage,
    Uploaded,
)
from bot.channels.slack.channel import SlackChannel
from bot.channels.slack.send import slack_name
from bot.lab.faults import bad_gateway, drop, hold, reset
from bot.lab.slack import FakeSlack, flood, refusal
from memory.records.messages import Address
from scheduler.clock.machine import SystemClock
from tests.bot.kit import eventually, slack_settings
from tests.bot.slack_kit import ANN, slack_rigged

TEAM = "T0LAB"
DIRECT = Address(channel="slack", chat_id=f"{TEAM}.D0ANN")
BLANK = MessagePart(markup="", source="")
BOLD = MessagePart(markup="*Here*", source="**Here**")
PLAN = FileOut(name="plan.txt", path="files/plan.txt", content=b"the plan")
SHOW, ASK = "files.completeUploadExternal", "files.getUploadURLExternal"


@asynccontextmanager
async def channel(timeout_s: float = 2.0) -> AsyncIterator[tuple[SlackChannel, FakeSlack]]:
    async with FakeSlack() as fake:
        fake.direct()
        settings = slack_settings(base_url=fake.api_url, send_timeout_s=timeout_s)
        async with SlackChannel(settings, clock=SystemClock()) as made:
            yield made, fake


async def uploaded(slack: SlackChannel) -> FileOut:
    found = await slack.upload(DIRECT, PLAN)
    assert isinstance(found, Uploaded)
    return FileOut(name=PLAN.name, path=PLAN.path, content=PLAN.content, ref=found.ref)


# --- kinds -------------------------------------------------------------------------------------


async def test_a_file_is_uploaded_unseen_and_then_shown_with_its_caption() -> None:
    async with channel() as (slack, fake):
        file = await uploaded(slack)
        assert fake.chat("D0ANN") == []

        sent = await slack.send_file(DIRECT, file, BOLD)

        [seen] = fake.chat("D0ANN")
        assert sent == SentMessage(message_id=file.ref)
        assert (seen.files, seen.text, seen.is_bot) == (("plan.txt",), "*Here*", True)
        assert fake.file("plan.txt") == b"the plan"


@pytest.mark.parametrize(
    ("text", "sources"),
    [
        ("", [""]),
        ("Here it is", ["Here it is"]),
        ("See https://evil.example/?d=1", ["", "See https://evil.example/?d=1"]),
        ("See evil.example", ["", "See evil.example"]),
        ("Ask @ann", ["", "Ask @ann"]),
        ("<!channel>", ["", "<!channel>"]),
    ],
)
async def test_a_caption_in_which_slack_would_look_goes_as_a_message(
    text: str, sources: list[str]
) -> None:
    """A message can tell Slack not to open addresses; a caption cannot."""
    async with channel() as (slack, _):
        assert [part.source for part in slack.captioned(text)] == sources


# --- what becomes of it --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "says"),
    [
        ("missing_scope", "adds the scope files:write"),
        ("file_upload_size_restricted", "larger than this workspace allows"),
        ("storage_limit_reached", "no space left"),
        ("some_new_word", "some_new_word"),
    ],
)
async def test_a_refusal_is_the_end_of_a_sentence_and_holds_nothing_up(
    error: str, says: str
) -> None:
    async with channel() as (slack, fake):
        fake.fault(ASK, action=refusal(error))
        fake.fault(SHOW, action=refusal(error))

        at_first = await slack.upload(DIRECT, PLAN)
        later = await slack.send_file(DIRECT, await uploaded(slack), BLANK)

        for outcome in (at_first, later):
            assert isinstance(outcome, DeliveryRefused)
            assert says in outcome.reason


async def test_each_trouble_of_the_showing_is_what_it_is_for_a_message() -> None:
    async with channel(timeout_s=0.3) as (slack, fake):
        for fault, outcome in (
            (flood(7), NotSent),
            (bad_gateway(), InDoubt),
            (hold(), InDoubt),
            (drop(after=True), InDoubt),
            (reset(after=True), InDoubt),
            (refusal("internal_error", after=True), InDoubt),
        ):
            file = await uploaded(slack)
            fake.fault(SHOW, action=fault)
            sent = await slack.send_file(DIRECT, file, BLANK)
            fake.release()
            assert isinstance(sent, outcome), fault


async def test_a_file_in_doubt_is_found_where_it_stands_and_not_where_it_does_not() -> None:
    async with channel() as (slack, fake):
        ts = fake.post(channel="C1", text="x")
        thread = Address(channel="slack", chat_id=f"{TEAM}.C1", thread_id=ts)
        shown, unseen = await uploaded(slack), await uploaded(slack)
        await slack.send_file(DIRECT, shown, BLANK)
        await slack.send_file(thread, unseen, BLANK)

        found = await slack.look_up_file(DIRECT, shown.ref, since_ms=0)
        in_thread = await slack.look_up_file(thread, unseen.ref, since_ms=0)
        elsewhere = await slack.look_up_file(DIRECT, unseen.ref, since_ms=0)
        fake.fault("conversations.history", action=bad_gateway())
        later = await slack.look_up_file(DIRECT, shown.ref, since_ms=0)

        assert found == SentMessage(message_id=fake.chat("D0ANN")[0].ts)
        assert isinstance(in_thread, SentMessage)
        assert isinstance(elsewhere, NotSent)
        assert isinstance(later, InDoubt)


# --- reactions -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("emoji", "name"),
    [
        ("👍", "+1"),
        ("👍🏽", "+1"),
        ("❤️", "heart"),
        ("✅", "white_check_mark"),
        (":party_parrot:", "party_parrot"),
        ("thumbsup", "thumbsup"),
        ("+1::skin-tone-3", "+1"),
        ("🦖", ""),
        ("two words", ""),
        ("", ""),
    ],
)
def test_an_emoji_has_slacks_name_of_it(emoji: str, name: str) -> None:
    assert slack_name(emoji) == name


@pytest.mark.parametrize(
    ("ts", "emoji", "says"),
    [
        ("1.000001", "🦖", "Slack has no emoji '🦖'"),
        ("1.000001", "👍", "Slack does not take this reaction"),
        ("nonsense", "👍", "Slack does not take this reaction"),
    ],
)
async def test_a_reaction_that_is_not_taken_is_a_sentence(ts: str, emoji: str, says: str) -> None:
    async with channel() as (slack, _):
        done = await slack.react(DIRECT, ts, emoji)

        assert isinstance(done, DeliveryRefused)
        assert says in done.reason


# --- the whole way -------------------------------------------------------------------------------


async def test_a_file_in_doubt_that_arrived_is_not_sent_again(tmp_path: Path) -> None:
    async with slack_rigged(tmp_path) as rig:
        rig.model.call("send_file", {"path": "plan.txt"})
        rig.model.say("Sent.")
        rig.slack.fault(SHOW, action=drop(after=True))
        async with rig.serving_slack(ANN, hurry=50) as bot:
            (rig.home.workspace / "plan.txt").write_text("at ten")
            rig.writes("send me the plan")
            await eventually(lambda: len(rig.replies()) == 2)
            await rig.quiet(bot)

            assert sorted(seen.files for seen in rig.replies()) == [(), ("plan.txt",)]
            assert rig.outbox() == ["sent", "sent"]
