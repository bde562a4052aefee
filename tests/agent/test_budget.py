"""What a model call may cost is asked before it is made, and held to."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.budget.budget import BudgetOptions
from memory.database.connection import Database
from memory.records.errors import AuthRefused, BrokenAnswer, ModelTimeout, RateLimited, StorageFull
from memory.records.transcript import Usage
from memory.records.usage import BudgetUnit, Level, Pause, Period, Purpose, Scope, Verdict, bounds
from tests.agent.spending_kit import (
    BERLIN,
    CHEAP,
    MODEL,
    STRANGE,
    HandClock,
    Purse,
    charge,
    limit,
    purse,
    purse_on,
)
from tests.thorough import rounds

DOLLAR = 1_000_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "hearthbot.db"


def stored(path: Path, columns: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(f"select {columns} from usage order by id").fetchall()


# --- every call is recorded ----------------------------------------------------------------------


async def test_a_call_is_recorded_with_whose_it_was_its_tokens_and_its_money(path: Path) -> None:
    async with purse(path) as one:
        allowance = await one.ask(charge(run="r1", job="backup"))

        assert allowance.reservation is not None
        await one.budget.after(
            allowance.reservation, Usage(prompt=1_000, completion=100, cached=400)
        )

    # gpt-4.1: $2 a million in, $0.50 from the cache, $8 out.
    columns = "person_id, lane, run_id, job, agent, purpose, model, prompt, completion, cached"
    assert stored(path, columns) == [
        ("p1", "telegram:5", "r1", "backup", "default", "chat", MODEL, 1_000, 100, 400)
    ]
    assert stored(path, "micros, state") == [(600 * 2 + 200 + 800, "counted")]


async def test_a_call_whose_provider_said_nothing_is_recorded_with_its_estimate(
    path: Path,
) -> None:
    async with purse(path) as one:
        allowance = await one.ask(charge(), tokens_in=700, tokens_out=300)

        assert allowance.reservation is not None
        await one.budget.after(allowance.reservation, Usage())

    assert stored(path, "prompt, completion, state") == [(700, 300, "estimated")]


@pytest.mark.parametrize(
    ("error", "rows"),
    [
        (asyncio.CancelledError(), [("estimated",)]),
        (ModelTimeout("no answer"), [("estimated",)]),
        (BrokenAnswer("half an answer"), [("estimated",)]),
        (RateLimited("too many"), []),
        (AuthRefused("wrong key"), []),
    ],
)
async def test_what_may_be_on_the_bill_is_kept_and_what_was_refused_is_not(
    path: Path, error: BaseException, rows: list[tuple[str]]
) -> None:
    async with purse(path) as one:
        allowance = await one.ask(charge())

        assert allowance.reservation is not None
        one.budget.ended(allowance.reservation, error)

    assert stored(path, "state") == rows


async def test_a_model_that_costs_nothing_goes_on_where_no_money_is_left(path: Path) -> None:
    async with purse(path, limit(0, unit=BudgetUnit.MONEY)) as one:
        paid = await one.spend(charge(), 100)
        free = await one.spend(charge(), 100, model="ollama/llama3")

        assert (paid.verdict, free.verdict) == (Verdict.REFUSE, Verdict.GO)
        assert await one.settled() == []


async def test_a_call_is_settled_once_however_often_it_is_said(path: Path) -> None:
    async with purse(path, limit(10_000)) as one:
        allowance = await one.ask(charge())

        assert allowance.reservation is not None
        await one.budget.after(allowance.reservation, Usage(prompt=800))
        await one.budget.after(allowance.reservation, Usage(prompt=800))
        one.budget.failed(allowance.reservation)

        assert (await one.budget.standings(charge()))[0].used == 800


async def test_a_call_that_another_model_answered_costs_what_that_one_takes(path: Path) -> None:
    async with purse(path) as one:
        allowance = await one.ask(charge())

        assert allowance.reservation is not None
        await one.budget.after(allowance.reservation, Usage(prompt=1_000_000), model=CHEAP)

    assert stored(path, "model, micros") == [(CHEAP, 100_000)]


@pytest.mark.parametrize("nonsense", [Usage(prompt=-5, completion=3), Usage(prompt=2, cached=9)])
async def test_nonsense_of_a_provider_is_not_recorded(path: Path, nonsense: Usage) -> None:
    async with purse(path) as one:
        allowance = await one.ask(charge())

        assert allowance.reservation is not None
        call = await one.budget.after(allowance.reservation, nonsense)

        assert call is not None
        assert 0 <= call.usage.cached <= call.usage.prompt


# --- a budget is held to -------------------------------------------------------------------------

WHO = {
    Scope.PERSON: (charge(run="r1", job="j1"), charge("p2", run="r2", job="j2", agent="other")),
    Scope.AGENT: (charge(run="r1", job="j1"), charge("p2", run="r2", job="j2", agent="other")),
    Scope.JOB: (charge(run="r1", job="j1"), charge("p2", run="r2", job="j2", agent="other")),
    Scope.BOT: (charge(run="r1", job="j1"), None),
}


@pytest.mark.parametrize("unit", list(BudgetUnit))
@pytest.mark.parametrize("period", list(Period))
@pytest.mark.parametrize("scope", list(Scope))
async def test_every_kind_of_budget_warns_once_and_then_refuses(
    path: Path, scope: Scope, period: Period, unit: BudgetUnit
) -> None:
    mine, others = WHO[scope]
    amount = 10_000 if unit is BudgetUnit.TOKENS else 20_000  # gpt-4.1: $2 a million in
    async with purse(path, limit(amount, scope=scope, period=period, unit=unit)) as one:
        calls = [await one.spend(mine, 1_000) for _ in range(11)]
        elsewhere = await one.spend(others, 1_000) if others else None
        told = await one.settled()

        assert [call.verdict for call in calls] == [Verdict.GO] * 10 + [Verdict.REFUSE]
        assert "used up" in calls[-1].words
        assert elsewhere is None or elsewhere.verdict is Verdict.GO
        assert len(told) == 1
        assert "80 % used" in told[0].text
        assert told[0].person_id == ("p1" if scope is Scope.PERSON else "")


@pytest.mark.parametrize("period", [Period.DAY, Period.MONTH])
async def test_a_budget_is_free_again_in_its_next_period(path: Path, period: Period) -> None:
    async with purse(path, limit(1_000, period=period)) as one:
        await one.spend(charge(), 1_000)
        refused = await one.spend(charge(), 1)
        assert refused.free_at_ms is not None

        one.clock.set(datetime.fromtimestamp(refused.free_at_ms / 1000 - 1, UTC))
        before = await one.spend(charge(), 1)
        one.clock.move(1)
        after = await one.spend(charge(), 1_000)

        assert (before.verdict, after.verdict) == (Verdict.REFUSE, Verdict.GO)


async def test_a_turn_has_its_budget_anew(path: Path) -> None:
    async with purse(path, limit(1_000, period=Period.TURN)) as one:
        await one.spend(charge(run="r1"), 1_000)

        same = await one.spend(charge(run="r1"), 10)
        following = await one.spend(charge(run="r2"), 10)
        behind_the_scenes = await one.spend(charge(purpose=Purpose.EXTRACTION), 5_000)

        assert same.verdict is Verdict.REFUSE
        assert "with the next message" in same.words
        assert following.verdict is Verdict.GO
        assert behind_the_scenes.verdict is Verdict.GO


async def test_a_budget_of_one_person_stands_in_for_that_of_each(path: Path) -> None:
    async with purse(path, limit(5_000, of="p2"), limit(1_000)) as one:
        verdicts = [(await one.spend(charge(who), 2_000)).verdict for who in ("p1", "p2")]

        assert verdicts == [Verdict.REFUSE, Verdict.GO]


async def test_what_was_spent_still_counts_after_a_restart(path: Path) -> None:
    limits = limit(1_000), limit(1_000, scope=Scope.JOB), limit(1_000, period=Period.TURN)
    async with purse(path, *limits) as one:
        await one.spend(charge(run="r1", job="j1"), 800)

    async with purse(path, *limits) as again:
        standings = await again.budget.standings(charge(run="r1", job="j1"))

        assert [standing.used for standing in standings] == [800, 800, 800]


async def test_a_warning_is_told_once_also_over_a_restart(path: Path) -> None:
    async with purse(path, limit(1_000)) as one:
        await one.spend(charge(), 850)
        first = list(await one.settled())

    async with purse(path, limit(1_000)) as again:
        await again.spend(charge(), 50)
        second = await again.settled()

        assert (len(first), len(second)) == (1, 0)


async def test_a_warning_that_was_not_told_any_more_is_told_at_the_next_start(path: Path) -> None:
    async with purse(path, limit(1_000)) as one:
        await one.spend(charge(), 850)
        assert one.told == []

    async with purse(path, limit(1_000)) as again:
        told = await again.settled()

        assert [notice.person_id for notice in told] == ["p1"]


async def test_money_that_nobody_knows_is_not_counted_but_its_tokens_are(path: Path) -> None:
    async with purse(path, limit(10, unit=BudgetUnit.MONEY), limit(1_000)) as one:
        first = await one.spend(charge(), 900, model=STRANGE)
        second = await one.spend(charge(), 900, model=STRANGE)

        assert (first.verdict, second.verdict) == (Verdict.GO, Verdict.REFUSE)
        assert "tokens" in second.words


# --- the ladder ----------------------------------------------------------------------------------


async def test_the_cheap_model_answers_where_the_usual_one_has_no_room(path: Path) -> None:
    async with purse(path, limit(5_000, unit=BudgetUnit.MONEY)) as one:
        await one.spend(charge(), 2_000)  # $0.004

        allowance = await one.ask(charge(), tokens_in=1_000, tokens_out=100, cheap=CHEAP)

        assert (allowance.verdict, allowance.model) == (Verdict.CHEAP, CHEAP)


async def test_an_answer_is_kept_short_where_little_is_left(path: Path) -> None:
    async with purse(path, limit(5_000)) as one:
        allowance = await one.ask(charge(), tokens_in=1_000, tokens_out=8_192)

        assert allowance.verdict is Verdict.GO
        assert 3_990 <= allowance.tokens_out <= 4_000


async def test_a_prompt_is_lean_once_little_is_left(path: Path) -> None:
    async with purse(path, limit(9_900)) as one:
        before = await one.budget.level(charge())
        await one.spend(charge(), 1_000)
        early = await one.budget.level(charge())
        for _ in range(8):
            await one.spend(charge(), 1_000)
        late = await one.budget.level(charge())

        assert [before, early, late] == [Level.NORMAL, Level.NORMAL, Level.LEAN]


async def test_a_refusal_says_which_budget_how_much_when_and_how_to_raise_it(path: Path) -> None:
    async with purse(path, limit(DOLLAR, unit=BudgetUnit.MONEY)) as one:
        who = charge(zone="Europe/Berlin", is_owner=True)
        await one.spend(who, 490_000)

        refused = await one.ask(who, tokens_in=20_000, tokens_out=100)

        assert refused.words == (
            "Your budget for today has no room for this: $0.98 of $1.00 are used, and it would "
            "take about $0.04. It is free again tomorrow at 00:00 (Europe/Berlin). To raise it, "
            "change [[budget.limits]] in config.toml and restart me. Reminders still come."
        )


async def test_others_than_the_owner_are_told_whom_to_ask(path: Path) -> None:
    async with purse(path, limit(100, scope=Scope.BOT, period=Period.MONTH)) as one:
        await one.spend(charge(), 100)

        refused = await one.spend(charge(), 100)

        assert refused.words == (
            "The budget of the whole bot for this month is used up: 100 tokens of 100 tokens. It "
            "is free again on 1 September at 00:00 (UTC). The owner can raise it. Reminders still "
            "come."
        )


# --- many at once --------------------------------------------------------------------------------


async def test_a_call_waits_for_what_another_may_give_back(path: Path) -> None:
    async with purse(path, limit(10_000)) as one:
        first = await one.ask(charge(), tokens_in=1_000, tokens_out=8_000)
        waiting = asyncio.create_task(one.ask(charge(), tokens_in=2_000, tokens_out=8_000))
        await asyncio.sleep(0.02)
        assert not waiting.done()

        assert first.reservation is not None
        await one.budget.after(first.reservation, Usage(prompt=1_000, completion=200))
        second = await waiting

        assert second.verdict is Verdict.GO


async def test_a_wait_for_others_has_an_end_and_says_so(path: Path) -> None:
    async with purse(path, limit(10_000)) as one:
        await one.ask(charge(), tokens_in=1_000, tokens_out=8_000)
        waiting = asyncio.create_task(one.ask(charge(), tokens_in=2_000, tokens_out=8_000))
        await asyncio.sleep(0.02)

        one.clock.move(31)
        refused = await waiting

        assert refused.verdict is Verdict.REFUSE
        assert "being made right now" in refused.words


class Schedule:
    """Turns at once, each with some calls: some fail, some are given up, none is predictable."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.person, self.agent = f"p{seed}", f"a{seed}"
        self.calls: list[tuple[int, int, int, int]] = []
        tokens = self.dice.randint(2_000, 60_000)
        self.limits = (
            limit(tokens, of=self.person, period=self.dice.choice([Period.DAY, Period.MONTH])),
            limit(tokens * 3, scope=Scope.AGENT, unit=BudgetUnit.MONEY, of=self.agent),
        )

    async def turn(self, one: Purse, number: int) -> None:
        dice = self.dice
        whose = charge(self.person, agent=self.agent, run=f"{self.person}-{number}")
        for _ in range(dice.randint(1, 5)):
            tokens_in, tokens_out = dice.randint(100, 6_000), dice.choice([200, 1_000, 8_192])
            allowance = await one.ask(
                whose, tokens_in=tokens_in, tokens_out=tokens_out, cheap=CHEAP
            )
            for _ in range(dice.randint(0, 4)):
                await asyncio.sleep(0)
            if allowance.reservation is None:
                return
            fate = dice.random()
            if fate < 0.1:
                one.budget.failed(allowance.reservation)
            elif fate < 0.2:
                one.budget.abandoned(allowance.reservation)
            else:
                said = Usage(
                    prompt=round(tokens_in * dice.uniform(0.85, 1.15)),
                    completion=dice.randint(1, allowance.tokens_out),
                )
                call = await one.budget.after(allowance.reservation, said)
                assert call is not None
                asked = allowance.reservation.call
                micros = call.micros or 0, asked.micros or 0
                self.calls.append((call.tokens, asked.guessed, *micros))


SCHEDULES = rounds(150, 1_000)


async def test_no_schedule_passes_a_budget_by_more_than_the_estimate_error_of_one_call(
    path: Path,
) -> None:
    clock = HandClock()
    worst, used_up, calls = 0.0, 0, 0
    async with Database.open(path, clock=clock) as database:
        for seed in range(SCHEDULES):
            plan = Schedule(seed)
            options = BudgetOptions()
            async with purse_on(database, *plan.limits, clock=clock, options=options) as one:
                turns = plan.dice.randint(2, 8)
                await asyncio.gather(*(plan.turn(one, number) for number in range(turns)))
                whose = charge(plan.person, agent=plan.agent)
                standings = await one.budget.standings(whose)

            assert [standing.held for standing in standings] == [0, 0]
            tokens_error = max((max(0, call[0] - call[1]) for call in plan.calls), default=0)
            micros_error = max((max(0, call[2] - call[3]) for call in plan.calls), default=0)
            for standing, error in zip(standings, (tokens_error, micros_error), strict=True):
                assert standing.used <= standing.limit.amount + error, seed
                worst = max(worst, standing.share - 1)
            used_up += any(standing.share > 0.8 for standing in standings)
            calls += len(plan.calls)
    print(
        f"\n{calls} calls, {used_up} of {SCHEDULES} budgets filled to 80 %; the worst passed by "
        f"{worst:.1%}"
    )
    assert used_up > 0.3 * SCHEDULES, "the schedules have to press on their budgets"


# --- kills ---------------------------------------------------------------------------------------


KILLED = """
import asyncio, sys
from pathlib import Path
from memory.records.transcript import Usage
from tests.agent.spending_kit import charge, limit, purse

async def main():
    async with purse(Path(sys.argv[1]), limit(10_000)) as one:
        settled = await one.ask(charge(), tokens_in=2_000, tokens_out=500)
        written = await one.ask(charge(), tokens_in=3_000, tokens_out=500)
        await one.budget.after(settled.reservation, Usage(prompt=2_000, completion=90))
        sys.stdout.write("now")
        sys.stdout.flush()
        await asyncio.sleep(60)

asyncio.run(main())
"""


async def test_a_kill_between_reserving_and_settling_lets_nothing_pass_unseen(path: Path) -> None:
    path.parent.mkdir(parents=True)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", KILLED, str(path), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert await asyncio.wait_for(process.stdout.readexactly(3), 30) == b"now"
    process.kill()
    await process.communicate()

    async with purse(path, limit(10_000)) as again:
        standing = (await again.budget.standings(charge()))[0]
        refused = await again.spend(charge(), 4_500)

    assert standing.used == 2_500 + 3_500
    assert refused.verdict is Verdict.REFUSE
    assert stored(path, "state") == [("estimated",), ("estimated",)]


@pytest.mark.parametrize("steps", [0, 2, 5])
@pytest.mark.parametrize("fate", ["counted", "failed", "open"])
async def test_what_ends_while_an_account_is_added_up_counts_once(
    path: Path, steps: int, fate: str
) -> None:
    async with purse(path, limit(10_000)) as one:
        allowance = await one.ask(charge(zone="Europe/Berlin"), tokens_in=500, tokens_out=100)
        assert allowance.reservation is not None
        adding_up = asyncio.create_task(one.budget.standings(charge(zone="Asia/Tokyo")))
        for _ in range(steps):
            await asyncio.sleep(0)

        if fate == "counted":
            await one.budget.after(allowance.reservation, Usage(prompt=500, completion=7))
        elif fate == "failed":
            one.budget.failed(allowance.reservation)
        await adding_up

        found = (await one.budget.standings(charge(zone="Asia/Tokyo")))[0]
        expected = {"counted": (507, 0), "failed": (0, 0), "open": (0, 601)}
        assert (found.used, found.held) == expected[fate]


async def test_a_call_on_a_budget_is_stored_before_it_begins(path: Path) -> None:
    async with purse(path, limit(10_000)) as one:
        await one.ask(charge(), tokens_in=3_000, tokens_out=500)

        assert stored(path, "prompt, state") == [(3_000, "open")]


async def test_a_full_disk_loses_no_row_and_refuses_no_call_that_is_on_no_budget(
    path: Path,
) -> None:
    async with purse(path) as one:
        one.ledger.is_full = True
        await one.spend(charge(), 700)
        await one.settled()
        assert stored(path, "prompt") == []

        one.ledger.is_full = False
        one.clock.move(60)
        await one.settled()

        assert stored(path, "prompt, state") == [(700, "counted")]


async def test_a_call_that_cannot_be_reserved_is_not_made_and_holds_nothing(path: Path) -> None:
    async with purse(path, limit(10_000)) as one:
        await one.budget.standings(charge())
        one.ledger.is_full = True

        with pytest.raises(StorageFull):
            await one.ask(charge())

        one.ledger.is_full = False
        assert (await one.budget.standings(charge()))[0].held == 0


# --- days ----------------------------------------------------------------------------------------


def local(text: str, zone: ZoneInfo) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=zone).timestamp() * 1000)


@pytest.mark.parametrize(
    ("zone", "moment", "start", "hours"),
    [
        ("Europe/Berlin", "2026-03-29T12:00", "2026-03-29T00:00", 23),
        ("Europe/Berlin", "2026-10-25T12:00", "2026-10-25T00:00", 25),
        ("Europe/Berlin", "2026-10-25T00:00", "2026-10-25T00:00", 25),
        ("Asia/Kathmandu", "2026-10-25T12:00", "2026-10-25T00:00", 24),
        ("Africa/Cairo", "2026-04-24T12:00", "2026-04-24T01:00", 23),  # midnight does not exist
    ],
)
def test_a_day_is_as_long_as_it_is_where_somebody_lives(
    zone: str, moment: str, start: str, hours: int
) -> None:
    place = ZoneInfo(zone)
    at = datetime.fromisoformat(moment).replace(tzinfo=place)

    start_ms, end_ms = bounds(Period.DAY, at, place)

    assert start_ms == local(start, place)
    assert end_ms - start_ms == hours * 3_600_000


@given(
    st.datetimes(min_value=datetime(2020, 1, 1), max_value=datetime(2035, 1, 1)),
    st.sampled_from(
        ["UTC", "Europe/Berlin", "America/Santiago", "Australia/Lord_Howe", "Asia/Gaza"]
    ),
    st.sampled_from([Period.DAY, Period.MONTH]),
)
def test_periods_follow_each_other_without_gap_or_overlap(
    moment: datetime, name: str, period: Period
) -> None:
    zone, at = ZoneInfo(name), moment.replace(tzinfo=UTC)

    start_ms, end_ms = bounds(period, at, zone)
    following = bounds(period, datetime.fromtimestamp(end_ms / 1000, UTC), zone)
    last = bounds(period, datetime.fromtimestamp((end_ms - 1) / 1000, UTC), zone)

    assert start_ms <= int(at.timestamp() * 1000) < end_ms
    assert following[0] == end_ms
    assert last == (start_ms, end_ms)


async def test_the_day_of_a_person_begins_at_their_own_midnight(path: Path) -> None:
    clock = HandClock(datetime(2026, 8, 3, 23, 30, tzinfo=BERLIN).astimezone(UTC))
    async with purse(path, limit(1_000), limit(1_500, scope=Scope.BOT), clock=clock) as one:
        who = charge(zone="Europe/Berlin")
        await one.spend(who, 1_000)
        before = await one.spend(who, 400)
        clock.move(1_800)
        after = await one.spend(who, 400)
        too_much_for_the_bot = await one.spend(who, 400)

        verdicts = [call.verdict for call in (before, after, too_much_for_the_bot)]
        assert verdicts == [Verdict.REFUSE, Verdict.GO, Verdict.REFUSE]
        assert "whole bot" in too_much_for_the_bot.words


async def test_a_person_who_moves_has_what_was_spent_on_the_new_day_too(path: Path) -> None:
    async with purse(path, limit(10_000)) as one:
        await one.budget.standings(charge(zone="Asia/Tokyo"))
        await one.spend(charge(zone="Europe/Berlin"), 700)

        there = await one.budget.standings(charge(zone="Asia/Tokyo"))

        assert there[0].used == 700


# --- what it costs -------------------------------------------------------------------------------


# --- standing still ------------------------------------------------------------------------------


async def test_the_pause_of_the_owner_outlasts_a_restart(path: Path) -> None:
    async with purse(path) as one:
        assert await one.budget.pause()
        assert not await one.budget.pause()

    async with purse(path) as again:
        assert again.budget.hand.paused is not None
        waiting = asyncio.create_task(again.budget.hand.over())
        await asyncio.sleep(0)
        assert not waiting.done()

        lifted = await again.budget.resume()
        await asyncio.wait_for(waiting, 1)

        assert lifted == {Pause.HAND}

    async with purse(path) as third:
        assert third.budget.hand.paused is None
