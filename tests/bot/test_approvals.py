"""Asking people whether a call may run: where the card goes, who may answer, and what follows."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from agent.policy.presentation import fenced, rows
from bot.channels.base import Pressed
from bot.markup.render import telegram_parts
from bot.outbox.outbox import Outbox
from bot.people import approval_messages as words
from bot.people.access import Access
from bot.people.approvals import VALID_S, ApprovalService, is_shared
from memory.database.connection import Database
from memory.records.errors import StorageError
from memory.records.messages import Address, IncomingMessage, OutboxId, PersonId, Role, RunId
from memory.records.ports import Json, RunStatus, waits_on
from memory.records.rows import NewApproval, OutboxState, Outcome, Person
from memory.stores.approvals import SqliteApprovals
from memory.stores.outbox import SqliteOutbox
from memory.stores.people import SqlitePeople
from memory.stores.turns import SqliteJournal
from tests.fakes import FixedClock
from tests.judge import telegram_entities, telegram_text
from tests.memory.kit import run

ANN = Person(
    id=PersonId("p1"),
    role=Role.OWNER,
    name="Ann",
    addresses=("telegram:1", "console:local"),
    time_zone="Europe/Vienna",
)
BOB = Person(id=PersonId("p2"), role=Role.MEMBER, name="*Bob*", addresses=("telegram:2",))
EVE = Person(id=PersonId("p3"), role=Role.GUEST, addresses=("telegram:3",))
CLEO = Person(id=PersonId("p4"), role=Role.MEMBER, name="Cleo", addresses=("telegram:4",))
GROUP = "telegram:-100"
SECRET = "rm -rf /srv/diary"


class Desk:
    """The real service over a real database and outbox. May be opened again, as after a restart."""

    desk: ApprovalService
    store: SqliteApprovals
    access: Access
    journal: SqliteJournal
    database: Database

    def __init__(self, path: Path) -> None:
        self.path = path / "hearthbot.db"
        self.clock = FixedClock()
        self.clock.hold()
        self.people: tuple[Person, ...] = (ANN, BOB, EVE, CLEO)
        self.valid_s = VALID_S
        self.signalled: list[str] = []
        self.signal_fails = 0

    @asynccontextmanager
    async def opened(self, *, starts: bool = True) -> AsyncIterator[Desk]:
        async with Database.open(self.path, clock=self.clock) as database:
            self.database = database
            people = SqlitePeople(database)
            if not (await people.directory()).people:
                for person in self.people:
                    await people.add_person(person)
            self.access = Access(people, policy="pairing", allowed=(), clock=self.clock)
            await self.access.load()
            self.journal = SqliteJournal(database)
            self.store = SqliteApprovals(database)
            async with (
                Outbox(SqliteOutbox(database), {}, clock=self.clock) as outbox,
                ApprovalService(
                    self.store,
                    self.access,
                    self._signal,
                    deliver=outbox.deliver,
                    revise=outbox.revise,
                    clock=self.clock,
                    valid_s=self.valid_s,
                    host_zone="Europe/London",
                ) as desk,
            ):
                self.desk = desk
                if starts:
                    await desk.start()
                yield self

    async def _signal(self, key: str, value: Json) -> object:
        if self.signal_fails:
            self.signal_fails -= 1
            raise StorageError("no space is left")
        self.signalled.append(f"{key}={value['outcome']}")
        return await self.journal.signal(key, value)

    async def ask(self, asked: NewApproval, *, waits: bool = True) -> None:
        """Asks for a turn, which then waits."""
        await self.journal.submit(run(asked.run_id, lane=asked.lane))
        await self.desk.ask(asked)
        if waits:
            await self.journal.suspend(asked.run_id, waits_on(asked.id))

    async def card_arrives(self, card: int = 1, *, end: OutboxState = OutboxState.SENT) -> None:
        """Ends a card's way, as the outbox does once the platform has taken it."""
        await SqliteOutbox(self.database).mark(OutboxId(card), end=end, reason="blocked")

    async def press(self, person: Person, data: str) -> str:
        pressed = Pressed(
            address=Address.parse(person.addresses[0]),
            message_id="1",
            sender=person.addresses[0],
            data=data,
            press_id="x",
        )
        return await self.desk.press(pressed, person)

    async def approve(self, person: Person, rest: str = "", *, lane: str = "") -> str:
        """What `/approve REST` says, in a private chat if no other is named."""
        message = IncomingMessage(
            address=Address.parse(lane or person.addresses[0]),
            message_id="1",
            sender_id="1",
            is_group=bool(lane) and is_shared(lane),
        )
        return await self.desk.tell(message, person, rest)

    def cards(self) -> list[tuple[str, str, bool]]:
        """What people read by now, in order: address, text, and whether there are buttons."""
        sql = (
            "select lane, coalesce(revision, text), buttons <> '' and revision is null from outbox"
        )
        with closing(sqlite3.connect(self.path)) as connection:
            return [(lane, text, bool(has)) for lane, text, has in connection.execute(sql)]

    def lanes(self) -> list[str]:
        return [lane for lane, _, _ in self.cards()]

    async def status(self, run_id: str) -> RunStatus:
        (found,) = [one for one in await self.journal.unfinished() if one.run.run_id == run_id]
        return found.status

    async def watches(self) -> None:
        """Returns once the watch sleeps until something is over."""
        async with asyncio.timeout(10):
            await self.clock.asleep.wait()

    async def settled(self, *signalled: str) -> None:
        """Lets the watch do what it has woken for."""
        async with asyncio.timeout(10):
            while self.signalled != list(signalled) or await self.store.unsettled():
                await asyncio.sleep(0.001)


@pytest.fixture
def house(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def question(
    *,
    person: Person = ANN,
    lane: str = "",
    owner_alone: bool = True,
    once_only: bool = False,
    approval_id: str = "3fa9c1d2e4b5a697",
    tool: str = "exec",
) -> NewApproval:
    return NewApproval(
        id=approval_id,
        run_id=RunId(f"run-{approval_id}"),
        lane=lane or person.addresses[0],
        person_id=person.id,
        agent="default",
        tool=tool,
        digest="d",
        shows=fenced([SECRET]),
        why="It runs a program.",
        owner_alone=owner_alone,
        once_only=once_only,
    )


def data(word: str, asked: NewApproval | None = None) -> str:
    return f"ok:{(asked or question()).id}:{word}"


# --- the card ----------------------------------------------------------------------------------


async def test_a_card_says_what_exactly_why_for_whom_and_until_when(house: Desk) -> None:
    async with house.opened():
        await house.ask(question())

        ((lane, text, has_buttons),) = house.cards()

    assert lane == "telegram:1"
    assert has_buttons
    assert text.split("\n\n") == [
        "**May I run a program?**",
        f"```\n{SECRET}\n```",
        "Why I ask: It runs a program.",
        "It came up in what you asked. Answer within 10 minutes; without an answer it is not done.",
    ]


async def test_the_owner_reads_in_whose_turn_it_came_up_and_no_name_makes_markup(
    house: Desk,
) -> None:
    async with house.opened():
        await house.ask(question(person=BOB))

        (card, notice) = house.cards()

    assert card[0] == "telegram:1"
    assert "It came up in a turn of Bob (telegram:2)." in card[1]
    assert notice == (
        "telegram:2",
        "I have asked the owner in private whether I may run a program; this waits for 10 minutes.",
        False,
    )


PLACES = [
    (ANN, "telegram:1", True, "telegram:1", ""),
    (ANN, "console:local", True, "console:local", ""),
    (ANN, "slack:T0AB.D0CD:12.3", True, "slack:T0AB.D0CD:12.3", ""),
    (ANN, GROUP, False, GROUP, ""),
    (ANN, GROUP, True, "telegram:1", GROUP),
    (ANN, "slack:T0AB.C0CD:12.3", True, "telegram:1", "slack:T0AB.C0CD:12.3"),
    (ANN, "matrix:7", True, "telegram:1", "matrix:7"),
    (BOB, "telegram:2", False, "telegram:2", ""),
    (BOB, "telegram:2", True, "telegram:1", "telegram:2"),
    (BOB, GROUP, True, "telegram:1", GROUP),
]
"""Whose turn, where it is, whether the owner alone may answer; where the card goes, and a line."""


@pytest.mark.case("SE-04")
@pytest.mark.parametrize(("person", "lane", "owner_alone", "card", "line"), PLACES, ids=str)
async def test_a_card_goes_where_whoever_may_answer_reads_and_nobody_else_has_to(
    house: Desk, person: Person, lane: str, owner_alone: bool, card: str, line: str
) -> None:
    async with house.opened():
        await house.ask(question(person=person, lane=lane, owner_alone=owner_alone))

        found = house.cards()

    assert [one[0] for one in found] == [card, *([line] if line else [])]
    for place, text, has_buttons in found:
        is_card = place == card
        assert has_buttons is is_card
        assert (SECRET in text) is is_card
        assert ("runs a program" in text) is is_card


async def test_without_a_private_chat_of_the_owner_the_terminal_is_named_and_works(
    house: Desk,
) -> None:
    house.people = (replace(ANN, addresses=("console:local",)), BOB)
    async with house.opened():
        await house.ask(question(person=BOB))

        ((lane, text, _),) = house.cards()
        assert lane == "telegram:2"
        assert "They can answer with `/approve` in the terminal" in text
        assert SECRET not in text
        assert SECRET in await house.approve(ANN, "3fa9c1")
        assert await house.approve(ANN, "3fa9c1 once") == "Allowed once by Ann at 12:00."
        assert await house.status("run-3fa9c1d2e4b5a697") is RunStatus.QUEUED


async def test_of_two_owners_the_one_whose_turn_it_is_is_asked(house: Desk) -> None:
    second = replace(CLEO, role=Role.OWNER)
    house.people = (ANN, second)
    async with house.opened():
        await house.ask(question(person=second, lane=GROUP))

        assert house.lanes() == ["telegram:4", GROUP]


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("mail__send", "use `send` of `mail`"),
        ("strange-tool", "use `strange-tool`"),
        ("__x", "use `__x`"),
        ("**x** [y](http://z)", "use a tool"),
    ],
)
def test_other_tools_are_called_by_their_names_without_markup(tool: str, said: str) -> None:
    assert words.plain(tool) == said


hostile = st.lists(
    st.characters()
    | st.sampled_from("*_`[]()<>~|#$!\\\n\u202e")
    | st.sampled_from(["https://e.example/", "[a](https://e.example)", "**b**", "```\n", "__c__"])
).map("".join)


@given(why=hostile, value=hostile)
def test_what_stands_in_a_card_can_look_like_nothing_else(why: str, value: str) -> None:
    asked = replace(question(), why=why, shows=fenced(rows({"text": value})))
    text = words.card_text(asked, person=BOB, reader=ANN, is_shared=False, answer="by 12:10")

    parts = telegram_parts(text)

    entities = [entity for part in parts for entity in telegram_entities(part.markup)]
    shown = "".join(telegram_text(part.markup) for part in parts)
    assert shown.startswith("May I run a program?")
    assert {kind for kind, _, _ in entities} <= {"Bold", "Pre", "Code", "PreCode"}
    assert [text for kind, text, _ in entities if kind == "Bold"] == ["May I run a program?"]


# --- who may answer ----------------------------------------------------------------------------

ANSWERING = [
    (ANN, True, {ANN.id}),
    (BOB, True, {ANN.id}),
    (ANN, False, {ANN.id}),
    (BOB, False, {BOB.id}),
    (EVE, False, set[PersonId]()),
]
"""Whose turn, whether the owner alone may answer, and whose answer counts."""


@pytest.mark.case("SE-04", "SE-24")
@pytest.mark.parametrize(("asker", "owner_alone", "may"), ANSWERING, ids=str)
@pytest.mark.parametrize("presser", [ANN, BOB, EVE, CLEO], ids=lambda person: person.id)
@pytest.mark.threat("T3")
async def test_an_answer_counts_from_those_alone_whose_it_is_however_it_comes(
    tmp_path: Path,
    asker: Person,
    owner_alone: bool,
    may: set[PersonId],
    presser: Person,
) -> None:
    for way, lane, word in (("button", GROUP, "always"), ("command", "", "deny")):
        (tmp_path / way).mkdir()
        house = Desk(tmp_path / way)
        asked = question(person=asker, lane=lane, owner_alone=owner_alone)
        async with house.opened():
            await house.ask(asked)
            before = house.cards()

            if way == "button":
                said = await house.press(presser, data(word))
            else:
                said = await house.approve(presser, f"{asked.id} {word}")

            outcome = await house.desk.outcome(asked.id)
            if presser.id in may:
                assert outcome is words.ANSWERS[word]
                assert house.signalled == [f"approval:{asked.id}={outcome}"]
            else:
                assert outcome is None
                assert said in {
                    *(words.OWNER_ALONE, words.NO_GUESTS),
                    *(words.others_only(person) for person in (ANN, BOB, EVE)),
                }
                assert house.signalled == []
                assert house.cards() == before
                assert await house.status(asked.run_id) is RunStatus.SUSPENDED


async def test_who_was_made_less_than_they_were_cannot_agree_to_what_they_asked_before(
    house: Desk,
) -> None:
    house.people = (ANN, replace(CLEO, role=Role.OWNER))
    asked = question(person=CLEO, owner_alone=False)
    async with house.opened():
        await house.ask(asked)
        await house.access.set_role("telegram:4", Role.MEMBER)
        now = house.access.who("telegram:4")
        assert now is not None

        assert await house.press(now, data("once")) == words.OTHER_ROLE
        assert await house.desk.outcome(asked.id) is None


async def test_where_always_is_no_choice_a_forged_button_does_not_make_it_one(house: Desk) -> None:
    async with house.opened():
        await house.ask(question(once_only=True))

        offered = [one.label for row in words.buttons(question(once_only=True)) for one in row]
        assert offered == ["Allow once", "Deny"]
        assert await house.press(ANN, data("always")) == words.NOT_ALWAYS
        assert await house.approve(ANN, "3fa9c1 always") == words.NOT_ALWAYS
        assert await house.desk.outcome(question().id) is None


@pytest.mark.parametrize(
    "forged",
    [
        "ok::once",
        "ok:3fa9c1d2e4b5a697:expired",
        "ok:3fa9c1d2e4b5a697:once:once",
        "ok:3fa9c1:once",
        "no:3fa9c1d2e4b5a697:once",
        "",
    ],
)
async def test_what_is_no_button_of_ours_answers_nothing(house: Desk, forged: str) -> None:
    async with house.opened():
        await house.ask(question())

        assert await house.press(ANN, forged) == words.UNKNOWN
        assert await house.desk.outcome(question().id) is None


# --- what follows ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "said", "outcome"),
    [
        ("once", "Allowed once by Ann at 12:02.", Outcome.ONCE),
        ("always", "Allowed by Ann at 12:02, and from now on without asking.", Outcome.ALWAYS),
        ("deny", "Denied by Ann at 12:02: not run.", Outcome.DENIED),
    ],
)
async def test_an_answer_wakes_the_turn_and_the_card_says_what_came_of_it(
    house: Desk, word: str, said: str, outcome: Outcome
) -> None:
    async with house.opened():
        await house.ask(question())
        house.clock.move(120)

        told = await house.press(ANN, data(word))

        assert told.startswith(said)
        assert house.cards() == [
            ("telegram:1", f"**{said}**\n\nRun a program:\n\n```\n{SECRET}\n```", False)
        ]
        key = waits_on(question().id)
        assert await house.journal.signalled(key) == {"outcome": outcome.value}
        assert await house.status(question().run_id) is RunStatus.QUEUED
        assert await house.desk.outcome(question().id) is outcome
        assert await house.desk.is_always(ANN.id, "default", "exec") is (word == "always")
        assert await house.store.unsettled() == []


async def test_a_second_answer_changes_nothing_and_is_told_what_holds(house: Desk) -> None:
    second = replace(CLEO, role=Role.OWNER)
    house.people = (ANN, second)
    async with house.opened():
        await house.ask(question())
        await house.desk.ask(question())

        first = await house.press(ANN, data("deny"))
        again = await house.press(ANN, data("deny"))
        other = await house.press(second, data("always"))

        assert house.lanes() == ["telegram:1"], "asked once"
        assert first == again == "Denied by Ann at 12:00: not run."
        assert other.startswith(f"{words.BEFORE} Denied by Ann")
        assert house.signalled == ["approval:3fa9c1d2e4b5a697=denied"]
        assert not await house.desk.is_always(ANN.id, "default", "exec")


async def test_a_kill_between_the_answer_and_what_follows_is_made_up_for_at_the_start(
    house: Desk,
) -> None:
    async with house.opened():
        await house.ask(question())
        await house.store.decide(question().id, Outcome.ALWAYS, by=ANN.id)
    assert house.signalled == []

    async with house.opened():
        assert house.signalled == ["approval:3fa9c1d2e4b5a697=always"]
        assert await house.status(question().run_id) is RunStatus.QUEUED
        assert house.cards()[0][1].startswith("**Allowed by Ann at 12:00")


async def test_what_was_over_while_the_bot_was_off_is_closed_at_the_start(house: Desk) -> None:
    async with house.opened():
        await house.ask(question())
        await house.card_arrives()
    house.clock.move(86_400)

    async with house.opened():
        assert house.signalled == ["approval:3fa9c1d2e4b5a697=expired"]
        assert house.cards()[0][1].startswith("**Expired: not run.**")


async def test_a_tap_just_after_the_time_runs_nothing_also_while_the_watch_sleeps(
    house: Desk,
) -> None:
    async with house.opened():
        await house.ask(question())
        await house.card_arrives()
        house.clock.move(600)

        told = await house.press(ANN, data("always"))

        assert told.startswith("Expired: not run.")
        assert house.signalled == ["approval:3fa9c1d2e4b5a697=expired"]
        assert not await house.desk.is_always(ANN.id, "default", "exec")


async def test_the_time_to_answer_runs_from_the_arrival_of_the_card(house: Desk) -> None:
    async with house.opened():
        await house.ask(question())
        house.clock.move(1_800)  # the platform was away
        assert await house.store.expire() == 0

        await house.card_arrives()
        house.clock.move(599)
        told = await house.press(ANN, data("once"))

        assert not told.startswith("Expired")
        assert house.signalled == ["approval:3fa9c1d2e4b5a697=once"]


async def test_a_card_that_can_never_arrive_holds_no_turn_up(house: Desk) -> None:
    async with house.opened():
        await house.ask(question())
        await house.watches()

        await house.card_arrives(end=OutboxState.FAILED)
        house.clock.wake()
        await house.settled("approval:3fa9c1d2e4b5a697=expired")

        assert await house.status(question().run_id) is RunStatus.QUEUED


async def test_trouble_with_the_storage_after_an_answer_is_made_up_for(house: Desk) -> None:
    house.signal_fails = 1
    async with house.opened():
        await house.ask(question())
        with capture_logs() as logs:
            told = await house.press(ANN, data("once"))
        house.clock.wake()
        await house.settled("approval:3fa9c1d2e4b5a697=once")

        assert told == "Allowed once by Ann at 12:00."
        assert house.signalled == ["approval:3fa9c1d2e4b5a697=once"]
        assert house.cards()[0][1].startswith("**Allowed once by Ann at 12:00.**")
    assert [entry["event"] for entry in logs if entry["log_level"] == "error"] == [
        "approval.unsettled"
    ]


async def test_what_would_run_is_in_no_log_line(house: Desk) -> None:
    with capture_logs() as logs:
        async with house.opened():
            await house.ask(question())
            await house.press(BOB, data("once"))
            await house.press(ANN, data("once"))

    assert {"approval.asked", "approval.decided", "approval.not_theirs"} <= {
        entry["event"] for entry in logs
    }
    assert SECRET not in str(logs)


# --- restarts ----------------------------------------------------------------------------------


async def test_between_any_two_steps_the_bot_may_be_restarted(house: Desk) -> None:
    asked = question()
    async with house.opened():
        await house.ask(asked)
    house.clock.move(300)
    async with house.opened():
        assert await house.desk.outcome(asked.id) is None
        await house.press(ANN, data("once"))
    async with house.opened():
        assert await house.desk.outcome(asked.id) is Outcome.ONCE
        assert await house.press(ANN, data("once")) == "Allowed once by Ann at 12:05."
    async with house.opened():
        pass

    assert house.signalled == ["approval:3fa9c1d2e4b5a697=once"], "told once, not at each start"
    assert len(house.cards()) == 1


# --- /approve ----------------------------------------------------------------------------------


async def test_the_list_shows_what_one_may_answer_and_what_is_allowed_for_good(
    house: Desk,
) -> None:
    mine = question(person=BOB, owner_alone=False, approval_id="aaaa1111", tool="mail__send")
    async with house.opened():
        await house.ask(question(approval_id="bbbb1111"))
        await house.ask(question(person=BOB, approval_id="cccc1111"))
        await house.ask(mine)
        await house.press(ANN, data("always", question(approval_id="bbbb1111")))

        owners = await house.approve(ANN)
        members = await house.approve(BOB)

    assert owners == (
        "Waiting for your answer:\n\n"
        "- `cccc11`: run a program, for Bob (telegram:2), until 12:10\n\n"
        "`/approve cccc11` shows it, `/approve cccc11 once` (or always, deny) answers.\n\n"
        "Allowed for good:\n\n"
        "- `exec`: run a program\n\n"
        "`/approve revoke TOOL` takes it back."
    )
    assert "`aaaa11`: use `send` of `mail`, until 11:10" in members
    assert "exec" not in members
    assert "cccc11" not in members


async def test_an_answer_to_nothing_in_particular_lists_what_waits(house: Desk) -> None:
    word = "Once"
    async with house.opened():
        nothing = await house.approve(ANN, word)
        await house.ask(question(approval_id="bbbb1111"))

        listed = await house.approve(ANN, word)
        others = await house.approve(BOB, word)
        in_group = await house.approve(ANN, word, lane=GROUP)
        still = await house.approve(ANN)

    assert listed == (f"Say which one, with its code: `/approve CODE {word.lower()}`\n\n{still}")
    assert "`bbbb11`: run a program, until 12:10" in listed
    assert nothing == others == "Nothing waits for your answer, and nothing is allowed for good."
    assert in_group == words.IN_PRIVATE


async def test_one_question_is_shown_to_those_alone_who_may_answer_it(house: Desk) -> None:
    async with house.opened():
        await house.ask(question(person=BOB))

        assert SECRET in await house.approve(ANN, "3FA9")
        assert await house.approve(BOB, "3fa9c1") == words.UNKNOWN
        assert await house.approve(ANN, "3fa") == words.UNKNOWN
        assert await house.approve(ANN, "") != words.UNKNOWN


async def test_a_code_that_could_mean_two_answers_nothing(house: Desk) -> None:
    async with house.opened():
        await house.ask(question(approval_id="aaaa1111"))
        await house.ask(question(approval_id="aaaa2222"))

        assert await house.approve(ANN, "aaaa once") == words.UNKNOWN
        assert await house.approve(ANN, "aaaa2 once") == "Allowed once by Ann at 12:00."
        assert await house.desk.outcome("aaaa1111") is None


async def test_what_is_over_is_listed_no_more(house: Desk) -> None:
    async with house.opened():
        await house.ask(question())
        house.clock.move(600)

        assert await house.approve(ANN) == (
            "Nothing waits for your answer, and nothing is allowed for good."
        )
        assert await house.approve(ANN, "3fa9c1") == words.UNKNOWN


async def test_in_a_group_answers_are_taken_and_nothing_is_shown(house: Desk) -> None:
    asked = question(lane=GROUP, owner_alone=False)
    async with house.opened():
        await house.ask(asked)

        for rest in ("", "3fa9c1", "revoke exec", "a b c"):
            assert await house.approve(ANN, rest, lane=GROUP) == words.IN_PRIVATE
        assert await house.approve(ANN, "3fa9c1 deny", lane=GROUP) == (
            "Denied by Ann at 12:00: not run."
        )


async def test_whoever_presses_in_slack_reads_the_way_back_as_it_is_typed_there(
    house: Desk,
) -> None:
    async with house.opened():
        await house.ask(question())
        told = await house.press(replace(ANN, addresses=("slack:T0LAB:U0ANN",)), data("always"))

    assert told.endswith("/hearth approve revoke exec takes it back.")


async def test_what_was_allowed_for_good_is_taken_back_by_whose_it_is(house: Desk) -> None:
    async with house.opened():
        await house.ask(question())
        told = await house.press(ANN, data("always"))
        assert told.endswith("/approve revoke exec takes it back.")

        assert await house.approve(BOB, "revoke exec") == words.revoked_text("exec", count=0)
        assert await house.desk.is_always(ANN.id, "default", "exec")
        assert await house.approve(ANN, "revoke exec") == (
            "Taken back: run a program. From now on I ask again."
        )
    async with house.opened():
        assert not await house.desk.is_always(ANN.id, "default", "exec")


@pytest.mark.parametrize("rest", ["revoke", "3fa9c1 perhaps"])
async def test_what_is_not_understood_shows_how(house: Desk, rest: str) -> None:
    async with house.opened():
        assert await house.approve(ANN, rest) == words.USE
