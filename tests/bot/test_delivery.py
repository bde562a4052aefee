"""Each answer to a send, for spells from a second to hours: nothing is lost, nothing comes twice
without the mark, the order stays, and the ledger tells the truth."""

from __future__ import annotations

import asyncio
import socket
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from bot.channels.base import Channel
from bot.channels.slack.channel import SlackChannel
from bot.channels.telegram.channel import TelegramChannel
from bot.lab.faults import FaultAction
from bot.lab.slack import FakeSlack
from bot.lab.telegram import FakeTelegram
from bot.outbox.outbox import Outbox
from memory.database.connection import Database
from memory.records.jobs import Cron
from memory.records.messages import Role, RunId
from memory.records.rows import NewMessage, OutRow
from memory.stores.approvals import SqliteApprovals
from memory.stores.jobs import SqliteJobs
from memory.stores.outbox import SqliteOutbox, close_reply
from scheduler.clock.misfire import first_due
from tests.bot.delivery_answers import SLACK, TELEGRAM, WIRE, Act, Answers, Meaning, page
from tests.bot.kit import TOKEN, slack_settings, telegram_settings
from tests.bot.relay import NAME, Relay
from tests.memory.kit import START_MS, StillClock, rows
from tests.memory.test_approvals import question
from tests.scheduler.jobs_kit import job
from tests.thorough import THOROUGH

MARK = "(may be repeated)"
TEXTS = ["the reply", "the reminder", "the card", "the report"]
ANSWER_MS = 600_000
PATIENT_S, IMPATIENT_S = 30.0, 0.2


class SpellClock(StillClock):
    """Time passes while somebody sleeps, and with it the spell. `dies`: the process ends in the
    next pause."""

    def __init__(self) -> None:
        super().__init__()
        self.until_s = 0.0
        self.over: Callable[[], Awaitable[None]] | None = None
        self.dies = False
        self.dead = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)
        if self.dies:
            self.dies = False
            self.dead.set()
            await asyncio.Event().wait()
        self.move(seconds)
        if self.over is not None and self.monotonic() >= self.until_s:
            over, self.over = self.over, None
            await over()


@dataclass(slots=True)
class Platform:
    """A channel of ours before a stand-in, with a way between them that can go wrong."""

    channel: Channel
    fake: FakeTelegram | FakeSlack
    relay: Relay
    method: str
    lane: str

    async def go_wrong(self, act: Act) -> None:
        if isinstance(act, FaultAction):
            self.fake.fault(self.method, action=act, times=None)
        else:
            await self.relay.go_wrong(act)

    async def go_right(self) -> None:
        self.fake.clear_faults()
        self.fake.release()
        await self.relay.go_wrong(None)

    def arrived(self) -> list[str]:
        return [str(message["text"]) for message in self.fake.sent()]


@asynccontextmanager
async def telegram(clock: StillClock, *, limit_s: float) -> AsyncIterator[Platform]:
    async with (
        FakeTelegram(TOKEN) as fake,
        Relay(urlsplit(fake.base_url).port or 0) as relay,
    ):
        settings = telegram_settings(base_url=relay.url, send_timeout_s=limit_s)
        async with TelegramChannel(settings, clock=clock) as channel:
            yield Platform(channel, fake, relay, "sendMessage", "telegram:5")


@asynccontextmanager
async def slack(clock: StillClock, *, limit_s: float) -> AsyncIterator[Platform]:
    async with FakeSlack() as fake, Relay(urlsplit(fake.base_url).port or 0) as relay:
        fake.direct()
        settings = slack_settings(base_url=f"{relay.url}/api/", send_timeout_s=limit_s)
        async with SlackChannel(settings, clock=clock) as channel:
            yield Platform(channel, fake, relay, "chat.postMessage", "slack:T0LAB.D0ANN")


PLATFORMS = {"telegram": telegram, "slack": slack}


async def fill(database: Database, lane: str) -> None:
    """Puts one message of each kind on its way: what a turn says, what the clock says, a question,
    what a job found."""
    reply = NewMessage(lane=lane, text=TEXTS[0])
    await database.write(lambda c: close_reply(c, RunId("r1"), reply, now_ms=START_MS))
    outbox, jobs = SqliteOutbox(database), SqliteJobs(database)
    for name in (TEXTS[1], TEXTS[3]):
        if name == TEXTS[3]:
            await SqliteApprovals(database).add(
                question(),
                role=Role.OWNER,
                expires_ms=START_MS + ANSWER_MS,
                card=NewMessage(lane=lane, text=TEXTS[2]),
            )
        new = job(name, when=Cron(expression="0 9 * * *", zone="UTC"))
        made = await jobs.add(new, first_due(new.when, after=StillClock().now()))
        assert made is not None
        row = await outbox.add(NewMessage(lane=lane, text=name))
        await database.write(partial(_told, made.id, row))


def _told(job_id: int, row: int, connection: sqlite3.Connection) -> None:
    """The ledger as it stands once the message of a slot is stored."""
    connection.execute(
        "insert into job_runs (job_id, slot, due_ms, state, outbox_id, taken_ms, ended_ms)"
        " values (?, 's', 0, 'told', ?, 0, 0)",
        (job_id, row),
    )


@dataclass(slots=True)
class Run:
    """What came of a spell."""

    arrived: list[str]
    states: list[str]
    ledger: list[tuple[object, ...]]
    approval: tuple[object, ...]
    given_up: list[str]
    now_ms: int
    was_paused: bool
    is_paused: bool


async def act_out(
    platform: str, act: Act, path: Path, *, spell_s: float, is_slow: bool, restarts: bool = False
) -> Run:
    """Has a platform answer so for a spell, in which all is on its way; the bot may be killed."""
    clock, given_up = SpellClock(), list[str]()
    was_paused = False
    file = path / f"{spell_s}-{restarts}.db"

    async def undelivered(row: OutRow, why: str) -> None:
        given_up.append(row.text)

    async with (
        Database.open(file, clock=clock) as database,
        PLATFORMS[platform](clock, limit_s=IMPATIENT_S if is_slow else PATIENT_S) as place,
    ):
        await fill(database, place.lane)
        await place.go_wrong(act)
        is_paused = False

        async def over() -> None:
            nonlocal was_paused
            was_paused = bool(outbox.troubles())
            await place.go_right()

        clock.until_s, clock.over, clock.dies = spell_s, over, restarts
        for _ in range(2 if restarts else 1):
            outbox = Outbox(
                SqliteOutbox(database),
                {place.channel.name: place.channel},
                clock=clock,
                chance=lambda: 1.0,
                undelivered=undelivered,
            )
            async with outbox:
                await outbox.start()
                idle = asyncio.create_task(outbox.idle())
                dead = asyncio.create_task(clock.dead.wait())
                async with asyncio.timeout(100):
                    await asyncio.wait([idle, dead], return_when=asyncio.FIRST_COMPLETED)
                clock.dead.clear()
                idle.cancel()
                dead.cancel()
                is_paused = bool(outbox.troubles())
        await place.go_right()
        arrived = place.arrived()
        now_ms = database.now_ms()
    return Run(
        arrived=arrived,
        states=[str(row[0]) for row in rows(file, "select state from outbox order by id")],
        ledger=rows(file, "select state, note from job_runs order by job_id"),
        approval=rows(file, "select state, expires_ms from approvals")[0],
        given_up=given_up,
        now_ms=now_ms,
        was_paused=was_paused,
        is_paused=is_paused,
    )


def holds(run: Run, meaning: Meaning) -> None:
    """What has to be true whatever happened on the way."""
    plain = [text.removesuffix(MARK).strip() for text in run.arrived]
    if meaning is Meaning.ENDS:
        assert plain == []
        assert run.states == ["failed"] * 4
        assert run.given_up == TEXTS
        assert all(
            state == "failed" and str(note).startswith("not delivered: ")
            for state, note in run.ledger
        )
        assert run.approval == ("open", run.now_ms), "the turn that asks goes on at once"
        return
    assert run.states == ["sent"] * 4, "nothing is lost"
    assert run.given_up == []
    assert list(dict.fromkeys(plain)) == TEXTS, "all came, in order"
    assert plain == sorted(plain, key=TEXTS.index), "nothing overtook anything"
    unmarked = [text for text in run.arrived if MARK not in text]
    assert len(unmarked) == len(set(unmarked)), "nothing comes twice without the mark"
    if meaning is not Meaning.DOUBT:
        assert run.arrived == TEXTS, "what surely did not arrive carries no mark"
    assert run.ledger == [("told", "")] * 2
    assert run.approval[0] == "open"
    assert int(str(run.approval[1])) <= run.now_ms + ANSWER_MS
    assert run.is_paused is False


def cases(*tables: Sequence[Answers]) -> list[Any]:
    """Each row's acts, by names that a person can read."""
    return [
        pytest.param(row, act, id=f"{row.what[:40]}-{n}")
        for table in tables
        for row in table
        for n, act in enumerate(row.acts if THOROUGH else row.acts[:2])
    ]


def spells(row: Answers) -> Sequence[float]:
    """Seconds; what needs real time is tried for less."""
    if row.is_slow:
        return (1, 10, 60) if THOROUGH else (10,)
    return (1, 10, 60, 7_200) if THOROUGH else (7_200,)


async def spells_of(
    platform: str, row: Answers, act: Act, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        if act == "no such name":
            patched.setattr(socket, "getaddrinfo", _unknown(socket.getaddrinfo))
        for spell_s in spells(row):
            run = await act_out(platform, act, path, spell_s=spell_s, is_slow=row.is_slow)
            holds(run, row.meaning)
            assert run.was_paused is (row.meaning is Meaning.OURS)
    if row.meaning is not Meaning.ENDS:
        run = await act_out(platform, act, path, spell_s=3, is_slow=row.is_slow, restarts=True)
        holds(run, row.meaning)


def _unknown(real: Callable[..., Any]) -> Callable[..., Any]:
    """A name that is not known the first time that it is asked for; the relay is shut besides."""
    asked = 0

    def look_up(host: Any, *more: Any, **named: Any) -> Any:
        nonlocal asked
        if host in {NAME, NAME.encode()} and (asked := asked + 1) <= 2:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return real(host, *more, **named)

    return look_up


@pytest.mark.case("CH-05")
@pytest.mark.parametrize(("row", "act"), cases(WIRE, TELEGRAM))
async def test_telegram_answers_so_for_a_while(
    row: Answers, act: Act, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await spells_of("telegram", row, act, tmp_path, monkeypatch)


@pytest.mark.parametrize(("row", "act"), cases(WIRE, SLACK))
async def test_slack_answers_so_for_a_while(
    row: Answers, act: Act, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await spells_of("slack", row, act, tmp_path, monkeypatch)


async def test_what_was_tried_for_a_day_is_given_up_and_told(tmp_path: Path) -> None:
    (act,) = (row.acts[3] for row in TELEGRAM if row.what.startswith("501"))

    run = await act_out("telegram", act, tmp_path, spell_s=200_000, is_slow=False)

    assert run.arrived == []
    assert run.states == ["failed"] * 4
    assert run.given_up == TEXTS
    assert 86_400 <= (run.now_ms - START_MS) / 1000 < 90_000, "those behind it waited as long"


async def test_what_the_owner_can_mend_is_never_given_up(tmp_path: Path) -> None:
    (act,) = (row.acts[0] for row in TELEGRAM if row.what.startswith("401"))

    run = await act_out("telegram", act, tmp_path, spell_s=200_000, is_slow=False)

    holds(run, Meaning.OURS)


async def test_a_day_of_doubt_ends_as_unknown(tmp_path: Path) -> None:
    (act,) = (row.acts[0] for row in TELEGRAM if row.what.startswith("500,"))

    run = await act_out("telegram", act, tmp_path, spell_s=200_000, is_slow=False)

    assert run.states == ["unknown"] * 4
    assert run.given_up == TEXTS
    assert [str(note).partition(":")[0] for _, note in run.ledger] == ["perhaps not delivered"] * 2


def test_the_page_says_what_these_rows_say() -> None:
    text = (Path(__file__).parents[2] / "docs/reliability.md").read_text()

    assert "\n".join(page()).strip() in text
