"""Killed while files are on their way: each arrives as it was when it was sent, once, or a second
time with the mark where nobody could know (promises P1)."""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from typing import Any

import pytest

from tests.acceptance.rig import Home, Model, Telegram, until
from tests.thorough import rounds

MARK = "(may be repeated)"
OWNER = 1
OPEN = "select count(*) from outbox where ended_ms is null"


def order(number: int) -> str:
    call = {"path": f"plan-{number}.txt", "caption": f"plan {number}"}
    return f"m-{number}\n!call send_file {json.dumps(call)}"


def more_came(telegram: Telegram, than: int) -> bool:
    return telegram.received("sendDocument") > than


def files(telegram: Telegram) -> list[dict[str, Any]]:
    return [one for one in telegram.ask("chat", chat_id=OWNER) if one["file_id"]]


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.case("CH-01", "CH-05")
def test_each_file_arrives_once_whatever_is_killed(
    home: Home, telegram: Telegram, model: Model
) -> None:
    home.approve(OWNER, role="owner")
    workspace = home.path / "workspace"
    kills = rounds(3, 12)

    running = home.start()
    for number in range(kills):
        plan = workspace / f"plan-{number}.txt"
        plan.write_text(f"the plan of number {number}")
        hold = {"kind": "hold", "seconds": 0.4, "after": bool(number % 2)}
        telegram.ask("fault", method="sendDocument", action=hold, times=3)
        before = telegram.received("sendDocument")
        telegram.says(OWNER, order(number))
        until(partial(more_came, telegram, before))
        running.kill()
        plan.unlink()  # what is on its way is a copy
        telegram.behave()
        running = home.start()
        until(lambda: home.ask_database(OPEN) == [(0,)], about=lambda: home.log[-3_000:])
    until(running.serving)
    code = running.end()

    shown = files(telegram)
    captions = Counter(one["text"] for one in shown)
    for number in range(kills):
        assert captions[f"plan {number}"] == 1
        assert captions[f"plan {number}\n\n{MARK}"] <= 1
    assert len(captions) <= 2 * kills, "and no other"
    assert {one["file_name"] for one in shown} == {f"plan-{n}.txt" for n in range(kills)}
    numbers = [int(one["text"].split()[1]) for one in shown]
    assert numbers == sorted(numbers), "in their order"
    assert not list((home.path / "data" / "outgoing").iterdir())
    assert code == 0
    print(f"\n{kills} kills: {len(shown) - kills} files stand twice, marked")
