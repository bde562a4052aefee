"""Homes in Slack: whose they are, what stands on them, and that they are in nobody's way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.app.app import App
from bot.channels.slack.api import NoAnswer
from bot.channels.slack.app_home import (
    BLOCKS_MAX,
    STRANGERS_EVERY_S,
    HomeLine,
    HomeSection,
    HomeWriter,
    home_blocks,
)
from bot.lab.slack_delivery import lose_ack, twice
from memory.records.jobs import Asker, Job, What
from memory.records.rows import Button
from tests.bot.kit import eventually
from tests.bot.slack_kit import ANN, BOB, STRANGER, TEAM, Mode, SlackRig, slack_rigged
from tests.judges.block_kit import judge_view, words_of
from tests.memory.kit import StillClock

HURRY = 20


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[SlackRig]:
    async with slack_rigged(tmp_path) as made:
        made.slack.add_user(user=BOB, tz="America/New_York")
        yield made


def shown(rig: SlackRig, user: str = ANN) -> str:
    """What a person reads on their home; empty where there is none."""
    home = rig.slack.home(user)
    return "" if home is None else words_of(home["blocks"])


def published(rig: SlackRig, user: str = ANN) -> list[Any]:
    return [call for call in rig.slack.calls("views.publish") if call.params["user_id"] == user]


async def opens(rig: SlackRig, user: str = ANN) -> str:
    """A person opens their home, and reads what is published then."""
    before = rig.slack.home(user)
    rig.slack.open_home(user=user)
    await eventually(lambda: rig.slack.home(user) is not before)
    return shown(rig, user)


def is_new(rig: SlackRig, before: Any) -> bool:
    return rig.slack.home() is not before


def buttons(rig: SlackRig, user: str = ANN) -> dict[str, str]:
    """Action ids by the label of their button; of equal labels the last."""
    home = rig.slack.home(user)
    assert home is not None
    found = [b["accessory"] for b in home["blocks"] if "accessory" in b]
    found += [e for b in home["blocks"] if b["type"] == "actions" for e in b["elements"]]
    return {one["text"]["text"]: one["action_id"] for one in found}


async def reminded(
    bot: App, rig: SlackRig, text: str, *, by: str = ANN, when: str = "tomorrow at 5 pm"
) -> Job:
    """A person has a reminder for their direct message, as if they had saved it there."""
    person = bot.access.who(f"slack:{TEAM}:{by}")
    assert person is not None
    lane = f"slack:{TEAM}.{rig.slack.direct(by)}"
    bot.calendar.schedules.chats.heard(person.id, lane)
    jobs = bot.calendar.jobs
    when_ = jobs.times.require(person.id, when).when
    draft = Job(person_id=person.id, what=What(text=text), when=when_, deliver_to=lane)
    return await jobs.add(draft, by=Asker(person_id=person.id))


# --- what it shows -------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["socket", "http"])
async def test_a_home_tells_what_comes_what_is_known_and_what_it_cost(
    tmp_path: Path, mode: Mode
) -> None:
    async with slack_rigged(tmp_path, mode) as rig:
        async with rig.serving_slack(ANN, hurry=HURRY) as bot:
            await reminded(bot, rig, "call Bob")
            rig.slack.command(text="remember I take my tea without milk")
            rig.slack.command(text="quiet 22:00-07:00")
            rig.writes("hi")
            await eventually(lambda: len(rig.replies()) == 3)
            await rig.quiet(bot)
            home = await opens(rig)
            await rig.quiet(bot)

        assert "call Bob (reminder): " in home
        assert "1 fact about you, the newest:" in home
        assert "tea without milk" in home
        assert "`/hearth memory`" in home
        assert "*Today*: " in home
        assert "tokens" in home
        assert "*Model*: openai/lab-model" in home
        assert "22:00-07:00" in home
        assert "*Waiting for your yes or no*: 0" in home
        assert "Done" in buttons(rig)
        reasons = rig.rows("select state, payload from inbox where reason = 'home opened'")
        assert reasons == [("silent", None)]
        assert [call for call in rig.slack.calls() if call.fault] == []


async def test_nobodys_home_shows_what_is_anothers(rig: SlackRig) -> None:
    async with rig.serving_slack(ANN, BOB, hurry=HURRY) as bot:
        for who, word in ((ANN, "canaryann"), (BOB, "canarybob")):
            await reminded(bot, rig, f"{word}job", by=who)
            rig.slack.command(text=f"remember I like {word}fact", user=who)
        await rig.quiet(bot)
        homes = {who: await opens(rig, who) for who in (ANN, BOB)}
        await rig.quiet(bot)

    assert "canaryannjob" in homes[ANN]
    assert "canaryannfact" in homes[ANN]
    assert "canarybob" not in homes[ANN]
    assert "canarybobjob" in homes[BOB]
    assert "canarybobfact" in homes[BOB]
    assert "canaryann" not in homes[BOB]
    assert "as the owner" in homes[ANN]
    assert "as the owner" not in homes[BOB]
    assert "America/New_York" in homes[BOB]


async def test_what_people_write_has_no_meaning_as_markup(rig: SlackRig) -> None:
    async with rig.serving_slack(ANN, hurry=HURRY) as bot:
        await reminded(bot, rig, "*loud* <!channel> [x](http://evil.example) `code`")
        rig.slack.command(text="remember I know &lt;!channel&gt; and &lt;@U0EVE&gt; *well*")
        await rig.quiet(bot)
        home = await opens(rig)
        await rig.quiet(bot)

    for code in ("<!", "<@", "<#", "|"):
        assert code not in home
    assert "*loud*" not in home
    assert "*well*" not in home
    assert "`code`" not in home


# --- strangers and guests ------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["pairing", "allowlist", "open"])
async def test_a_stranger_reads_one_sentence_and_stays_one(rig: SlackRig, policy: str) -> None:
    rig.set(access__policy=policy)
    rig.slack.add_user(user=STRANGER, real_name="Mallory Canary")
    async with rig.serving_slack(ANN, hurry=HURRY) as bot:
        home = await opens(rig, STRANGER)
        await rig.quiet(bot)
        known = [person.addresses for person in bot.access.directory.people]
        asking = (await bot.access.overview())["asking"]

    assert home.startswith("I do not know you yet: ")
    assert "\n" not in home
    assert known == [(f"slack:T0LAB:{ANN}",)]
    assert asking == []
    assert rig.rows("select lane, payload, state, reason from inbox") == [
        ("", None, "refused", "stranger")
    ]
    assert rig.replies(to=STRANGER) == []
    assert rig.slack.calls("users.info") == []
    assert b"Mallory" not in rig.bytes_on_disk()


class Pages:
    """Both sides of homes: whom they are written for, and what stands on them. Slack refuses the
    first so many."""

    def __init__(self, refused: int = 0) -> None:
        self.written: list[str] = []
        self._refused = refused

    async def call(self, method: str, *, user_id: str, **view: Any) -> None:
        self.written.append(user_id)
        if len(self.written) <= self._refused:
            raise NoAnswer("Slack is away")

    def knows(self, sender: str) -> bool:
        return False

    async def sections(self, sender: str, lane: str) -> list[HomeSection]:
        return [HomeSection(lines=(HomeLine(text="We have not met."),))]


@pytest.mark.parametrize("refused", [0, 1])
async def test_a_stranger_is_written_to_again_after_an_hour(refused: int) -> None:
    clock, pages = StillClock(), Pages(refused)
    homes = HomeWriter(cast(Any, pages), cast(Any, pages), clock=clock)
    working = asyncio.create_task(homes.work())

    async def look(sender: str = "slack:T:U1") -> list[str]:
        before = len(pages.written)
        homes.opened_by_stranger(sender, "T.D1")
        homes.opened_by_stranger(f"{sender}X", "T.D2")
        await eventually(lambda: pages.written[-1:] == [f"{sender.rpartition(':')[2]}X"])
        return pages.written[before:]

    if refused:
        assert await look() == ["U1", "U1X"]
    homes.opened_by_stranger("slack:T:U1", "T.D1")
    homes.opened_by_stranger("slack:T:U1", "T.D1")
    await look("slack:T:U2")
    assert pages.written.count("U1") == refused + 1
    clock.move(STRANGERS_EVERY_S)
    homes.opened_by_stranger("slack:T:U1", "T.D1")
    await look("slack:T:U3")
    assert pages.written.count("U1") == refused + 2
    working.cancel()


async def test_a_guest_reads_one_sentence(rig: SlackRig) -> None:
    rig.set(access__policy="open")
    async with rig.serving_slack(ANN, hurry=HURRY) as bot:
        rig.writes("hello", by=BOB)
        await rig.shows("You said: hello", to=BOB)
        home = await opens(rig, BOB)
        await rig.quiet(bot)

    assert home.startswith("You are a guest here: ")
    assert "\n" not in home


# --- buttons -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["socket", "http"])
async def test_a_press_on_a_home_is_acted_on_and_shown_there(tmp_path: Path, mode: Mode) -> None:
    async with slack_rigged(tmp_path, mode) as rig:
        async with rig.serving_slack(ANN, hurry=HURRY) as bot:
            await reminded(bot, rig, "call Bob")
            await reminded(bot, rig, "call Eve")
            await opens(rig)
            for _ in range(2):
                before = rig.slack.home()
                rig.slack.press(action_id=buttons(rig)["Done"])
                await eventually(partial(is_new, rig, before))
                await rig.quiet(bot)
            home = shown(rig)

        assert home.startswith("Done.\n")
        assert "(reminder)" not in home
        assert rig.slack.ephemeral() == []
        assert rig.rows("select count(*) from inbox where reason = 'button'") == [(2,)]


async def test_a_press_counts_for_whoever_pressed(rig: SlackRig) -> None:
    async with rig.serving_slack(ANN, BOB, hurry=HURRY) as bot:
        await reminded(bot, rig, "call Bob")
        await opens(rig)
        await opens(rig, BOB)
        delivery = rig.slack.delivery(rig.slack.press(action_id=buttons(rig)["Done"], user=ANN))
        await eventually(lambda: shown(rig).startswith("Done."))
        job = await reminded(bot, rig, "call Eve")
        action = {**delivery.payload["actions"][0], "value": f"job:{job.id}:done"}
        forged = {
            **delivery.payload,
            "user": {"id": BOB},
            "view": rig.slack.home(BOB),
            "actions": [{**action, "action_ts": "99.1"}],
        }
        rig.slack._deliveries.deliver("interactive", forged)
        await eventually(lambda: shown(rig, BOB).startswith("Only the person"))
        home_of_ann = await opens(rig)
        await rig.quiet(bot)

    assert "call Eve" in home_of_ann


# --- trouble -------------------------------------------------------------------------------------


async def test_who_was_let_in_or_removed_sees_so_and_presses_nothing_any_more(
    rig: SlackRig,
) -> None:
    async with rig.serving_slack(ANN, hurry=HURRY) as bot:
        before = await opens(rig, BOB)
        await bot.access.approve(f"slack:{TEAM}:{BOB}")
        await reminded(bot, rig, "call Bob", by=BOB)
        within = await opens(rig, BOB)
        await bot.access.remove(f"slack:{TEAM}:{BOB}")
        rig.slack.press(action_id=buttons(rig, BOB)["Done"], user=BOB)
        await rig.quiet(bot)
        pressed = rig.rows("select state, reason from inbox order by id desc limit 1")
        after = await opens(rig, BOB)
        await rig.quiet(bot)

    assert before == after
    assert "What I know of you" in within
    assert pressed == [("refused", "stranger")]


@pytest.mark.parametrize(
    ("who", "fault"), [(ANN, twice()), (STRANGER, lose_ack())], ids=["twice", "lost ack"]
)
async def test_an_opening_that_comes_again_is_published_once(
    rig: SlackRig, fault: Any, who: str
) -> None:
    rig.slack.add_user(user=STRANGER)
    async with rig.serving_slack(ANN, hurry=HURRY) as bot:
        rig.slack.fault("event", action=fault, times=1)
        await opens(rig, who)
        await rig.quiet(bot)
        rig.writes("hi")
        await rig.shows("You said: hi")
        await rig.quiet(bot)

    assert len(published(rig, who)) == 1
    assert len(rig.inbox()) == 2


# --- blocks --------------------------------------------------------------------------------------

LINES = st.builds(
    HomeLine,
    text=st.text(max_size=60) | st.sampled_from(["x" * 9_000, "**b** <!here>", "```\n", ""]),
    buttons=st.lists(
        st.just(Button(label="Done", data="job:1:done", style="good")), max_size=3
    ).map(tuple),
)
SECTIONS = st.builds(
    HomeSection, title=st.text(max_size=200), lines=st.lists(LINES, max_size=40).map(tuple)
)


@given(st.lists(SECTIONS, max_size=8), st.text(max_size=900))
def test_blocks_are_what_slack_takes(sections: list[HomeSection], said: str) -> None:
    blocks = home_blocks(sections, said=said)

    view = {"type": "home", "blocks": blocks, "private_metadata": "D1"}
    if blocks:  # a home is never without any
        judge_view(view)
    assert "<!" not in words_of([b for b in blocks if b["type"] == "section"])


def test_what_does_not_fit_is_said_to_be_left_out() -> None:
    done = Button(label="Done", data="job:1:done")
    lines = tuple(HomeLine(text=f"- {n}", buttons=(done,)) for n in range(150))

    blocks = home_blocks([HomeSection(title="Next", lines=lines)])

    assert len(blocks) == BLOCKS_MAX
    assert blocks[-1]["text"]["text"] == "… and more than fits here."
