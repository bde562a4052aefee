"""What a person is told of what they used, and what the owner sees and does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agent.budget.circuit_breaker import RESUME, BrakeOptions
from agent.budget.service import UsageService
from bot.cli.usage import lines, print_tables
from bot.commands.command import Tools
from bot.commands.usage import (
    IN_PRIVATE,
    NOT_PAUSED,
    PAUSED_ALREADY,
    names_of,
    pause,
    resume,
    resumed,
    usage,
)
from memory.records.messages import PersonId, Role
from memory.records.rows import Person
from memory.records.transcript import Usage
from memory.records.usage import (
    BudgetUnit,
    Charge,
    Period,
    Purpose,
    Scope,
)
from tests.agent.spending_kit import CHEAP, MODEL, STRANGE, HandClock, Purse, limit, purse
from tests.bot.cli.cli_kit import Group
from tests.bot.command_kit import asks, tools_with

ANNA = Person(id=PersonId("p1"), role=Role.OWNER, name="Anna", time_zone="Europe/Berlin")
BEN = Person(id=PersonId("p2"), role=Role.MEMBER, name="Ben")
GUEST = Person(id=PersonId("p3"), role=Role.GUEST)
LIMITS = (
    limit(1_000_000, unit=BudgetUnit.MONEY),
    limit(400_000, period=Period.MONTH),
    limit(20_000_000, scope=Scope.BOT, period=Period.MONTH, unit=BudgetUnit.MONEY),
)


@dataclass(slots=True, kw_only=True)
class Office:
    """The command over a budget that runs."""

    purse: Purse
    usage: UsageService

    async def use(
        self,
        person: Person,
        usage: Usage,
        *,
        model: str = MODEL,
        purpose: Purpose = Purpose.CHAT,
        job: str = "",
    ) -> None:
        charge = Charge(
            purpose=purpose,
            person_id=person.id,
            lane=f"telegram:{person.id[1:]}",
            agent="default",
            job=job,
            time_zone=person.time_zone,
        )
        allowance = await self.purse.budget.before(
            charge, model=model, tokens_in=usage.prompt, tokens_out=usage.completion
        )
        assert allowance.reservation is not None, allowance.words
        await self.purse.budget.after(allowance.reservation, usage)

    async def told(self, person: Person, *, is_group: bool = False) -> str:
        return await usage(self.tools, asks(person, is_group=is_group))

    @property
    def tools(self) -> Tools:
        return tools_with(usage=self.usage, clock=self.purse.clock)

    async def report(self, **wanted: Any) -> dict[str, Any]:
        return asdict(await self.usage.report(**wanted))

    async def a_month(self) -> None:
        clock = self.purse.clock
        await self.use(BEN, Usage(prompt=30_000, completion=2_000), model=CHEAP)
        clock.set(datetime(2026, 8, 4, 9, 0, tzinfo=UTC))
        await self.use(ANNA, Usage(prompt=50_000, completion=4_000, cached=20_000))
        await self.use(ANNA, Usage(prompt=8_000, completion=200), model=STRANGE)
        await self.use(
            ANNA, Usage(prompt=2_500, completion=40), purpose=Purpose.JOB, job="morning news"
        )


def service(
    one: Purse, people: Sequence[Person], *, host_zone: str = "UTC", **more: Any
) -> UsageService:
    return UsageService(
        one.ledger,
        one.budget,
        lambda: people,
        name_of=names_of(lambda: people),
        clock=one.clock,
        host_zone=host_zone,
        **more,
    )


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[Office]:
    clock = HandClock(datetime(2026, 8, 3, 21, 30, tzinfo=UTC))
    async with purse(
        tmp_path / "bot.db", *LIMITS, clock=clock, brake=BrakeOptions(burst_factor=0)
    ) as one:
        yield Office(purse=one, usage=service(one, (ANNA, BEN, GUEST)))


# --- /usage --------------------------------------------------------------------------------------


async def test_the_owner_sees_their_own_and_everybodys(office: Office) -> None:
    await office.a_month()

    assert await office.told(ANNA) == (
        "**Today**: 3 calls, 64,740 tokens (33 % from a cache), $0.11 and 1 call of unknown price\n"
        "**This month**: 3 calls, 64,740 tokens (33 % from a cache), $0.11 and 1 call of unknown "
        "price\n"
        "\n"
        "This month by model:\n"
        f"- {MODEL}: 56,540 tokens, $0.11\n"
        f"- {STRANGE}: 8,200 tokens, price unknown\n"
        "\n"
        "Budgets:\n"
        "- your budget for today: $0.11 of $1.00 (11 %), free again tomorrow at 00:00 "
        "(Europe/Berlin)\n"
        "- your budget for this month: 64,740 tokens of 400,000 tokens (16 %), free again on 1 "
        "September at 00:00 (Europe/Berlin)\n"
        "- the budget of the whole bot for this month: $0.11 of $20.00 (0.6 %), free again on 1 "
        "September at 00:00 (UTC)\n"
        "\n"
        "**Everybody, this month**: 4 calls, 96,740 tokens (22 % from a cache), $0.11 and 1 call "
        "of unknown price\n"
        "- Anna: 64,740 tokens, $0.11 and 1 call of unknown price\n"
        "- Ben: 32,000 tokens, $0.0038\n"
        "\n"
        "For what:\n"
        "- chat: 94,200 tokens, $0.11 and 1 call of unknown price\n"
        "- job: 2,540 tokens, $0.0053\n"
        "\n"
        "The last hour: 64,740 tokens; at 500,000 I stop and ask you first."
    )


async def test_a_member_sees_nothing_of_others(office: Office) -> None:
    await office.a_month()

    assert await office.told(BEN) == (
        "**Today**: nothing\n"
        "**This month**: 1 call, 32,000 tokens, $0.0038\n"
        f"All by {CHEAP}.\n"
        "\n"
        "Budgets:\n"
        "- your budget for today: $0.00 of $1.00 (0 %), free again tomorrow at 00:00 (UTC)\n"
        "- your budget for this month: 32,000 tokens of 400,000 tokens (8.0 %), free again on 1 "
        "September at 00:00 (UTC)"
    )


async def test_a_guest_is_told_no_money(office: Office) -> None:
    await office.use(GUEST, Usage(prompt=10_000, completion=100))

    said = await office.told(GUEST)

    assert "$" not in said
    assert "10,100 tokens" in said
    assert "your budget for today: 2.1 % used" in said


async def test_in_a_group_nobodys_figures_are_told(office: Office) -> None:
    await office.a_month()

    assert await office.told(ANNA, is_group=True) == IN_PRIVATE


async def test_the_day_is_that_of_who_asks(office: Office) -> None:
    await office.use(ANNA, Usage(prompt=100, completion=1))  # 23:30 in Berlin
    await office.use(BEN, Usage(prompt=100, completion=1))  # 21:30 in UTC
    office.purse.clock.move(3_600)

    assert "**Today**: nothing" in await office.told(ANNA)
    assert "**Today**: 1 call" in await office.told(BEN)


async def test_what_compaction_and_other_work_behind_the_scenes_takes_is_counted_too(
    office: Office,
) -> None:
    for purpose in (Purpose.COMPACTION, Purpose.EXTRACTION, Purpose.INSIGHTS):
        await office.use(ANNA, Usage(prompt=1_000, completion=100), purpose=purpose)

    said = await office.told(ANNA)

    assert "your budget for this month: 3,300 tokens" in said
    assert "- compaction: 1,100 tokens" in said


# --- who is meant ---------------------------------------------------------------------------------


async def test_people_are_named_and_an_id_stands_behind_a_name_that_two_have(
    tmp_path: Path,
) -> None:
    people = (
        Person(id=PersonId("p1"), role=Role.OWNER, addresses=("console:local",)),
        Person(id=PersonId("p2"), role=Role.MEMBER, name="Ben", addresses=("telegram:2",)),
        Person(id=PersonId("p3"), role=Role.MEMBER, name="ben", addresses=("telegram:3",)),
        Person(id=PersonId("p4"), role=Role.MEMBER, addresses=("telegram:4",)),
        Person(id=PersonId("p5"), role=Role.MEMBER, name="Eve"),
    )
    clock = HandClock(datetime(2026, 8, 3, 21, 30, tzinfo=UTC))
    async with purse(tmp_path / "bot.db", limit(10**6), clock=clock) as one:
        office = Office(purse=one, usage=service(one, people[:4]))
        for person in people:
            await office.use(person, Usage(prompt=100))

        said = await office.told(people[0])
        report = await office.report(by=["person"])

    shown = ["Ben (p2)", "ben (p3)", "somebody who was removed (p5)", "telegram:4", "the owner"]
    assert all(f"\n- {name}: " in said for name in shown)
    assert sorted(row["name"] for row in report["by"]["person"]) == shown
    assert sorted(row["key"] for row in report["by"]["person"]) == ["p1", "p2", "p3", "p4", "p5"]
    assert {row["name"] for row in report["budgets"]} == {*shown} - {shown[2]}


# --- /pause and /resume --------------------------------------------------------------------------


async def test_the_owner_pauses_and_resumes(office: Office) -> None:
    paused = await pause(office.tools, asks(ANNA))
    again = await pause(office.tools, asks(ANNA))
    said = await office.told(ANNA)
    going_on = await resume(office.tools, asks(ANNA))

    assert paused.startswith("Paused. I store what is written to me")
    assert again == PAUSED_ALREADY
    assert "⚠️ Paused: by you." in said
    assert going_on.startswith("I go on, with what was written meanwhile")
    assert await resume(office.tools, asks(ANNA)) == NOT_PAUSED


async def test_the_button_under_the_notice_lets_the_bot_go_on(office: Office) -> None:
    await office.use(GUEST, Usage(prompt=395_000), model=STRANGE)
    await office.use(BEN, Usage(prompt=110_000), model=STRANGE)
    notices = await office.purse.settled()
    (brake,) = [notice for notice in notices if notice.buttons]

    assert brake.buttons[0] == RESUME

    said = await resumed(office.usage)

    assert said == "I go on. What was used up to now is no longer held against me."
    await office.use(BEN, Usage(prompt=10), model=STRANGE)


# --- the report ----------------------------------------------------------------------------------


async def test_the_report_has_every_dimension_and_they_agree(office: Office) -> None:
    await office.a_month()

    report = await office.report()

    assert (report["since"], report["until"]) == ("2026-07-06", "2026-08-04")
    assert [row["key"] for row in report["by"]["day"]] == ["2026-08-03", "2026-08-04"]
    assert [row["name"] for row in report["by"]["person"]] == ["Anna", "Ben"]
    assert [row["name"] for row in report["by"]["job"]] == ["no job", "morning news"]
    for rows in report["by"].values():
        for figure in ("calls", "prompt", "completion", "cached", "micros", "unpriced"):
            assert sum(row[figure] for row in rows) == report["total"][figure]
    budgets = {(one["scope"], one["subject"], one["period"]) for one in report["budgets"]}
    assert ("bot", "", "month") in budgets
    assert ("person", "p2", "day") in budgets


async def test_a_day_of_the_change_to_winter_time_is_one_row(tmp_path: Path) -> None:
    clock = HandClock(datetime(2026, 10, 24, 22, 30, tzinfo=UTC))
    async with purse(tmp_path / "bot.db", clock=clock) as one:
        office = Office(purse=one, usage=service(one, (), host_zone="Europe/Berlin"))
        for _ in range(24):
            await office.use(BEN, Usage(prompt=10))
            clock.move(3_600)

        rows = (await office.report())["by"]["day"]

    assert [(row["key"], row["calls"]) for row in rows] == [("2026-10-25", 24)]


# --- hearthbot usage -----------------------------------------------------------------------------


async def test_a_pipe_gets_one_row_a_line(office: Office) -> None:
    await office.a_month()

    found = list(lines(await office.usage.report(by=["day", "model"])))

    assert found[0] == (
        "total\t2026-07-06..2026-08-04\t4\t90500\t20000\t6240\t$0.11 and 1 call of unknown price"
    )
    assert "day\t2026-08-03\t1\t30000\t0\t2000\t$0.0038" in found
    assert f"model\t{STRANGE}\t1\t8000\t0\t200\tprice unknown" in found
    assert "budget\tperson Anna, day\t$0.11 of $1.00\t11 %" in found


async def test_a_terminal_gets_tables(office: Office, capsys: pytest.CaptureFixture[str]) -> None:
    await office.a_month()

    print_tables(await office.usage.report())

    shown = capsys.readouterr().out
    assert "2026-07-06 to 2026-08-04 (UTC): 4 calls, 96,740 tokens" in shown
    assert "morning news" in shown
    assert "$0.11 + ?" in shown
    assert "Calls to models that are in no price table: 1." in shown


async def test_a_name_cannot_steer_a_terminal_or_break_a_row(office: Office) -> None:
    nasty = "x\t9\n\x1b[31mred"
    await office.use(BEN, Usage(prompt=10), purpose=Purpose.JOB, job=nasty)

    found = list(lines(await office.usage.report(by=["job"])))

    assert all("\x1b" not in line and "\n" not in line for line in found)
    assert [line.count("\t") for line in found if line.startswith("job")] == [6]


def test_what_it_does_not_know_is_wrong_usage() -> None:
    assert "it takes day, person, chat" in Group("usage").refused("--by", "weather", code=2)
