"""How a text is read in these tests: in Berlin, on a Saturday morning unless said otherwise."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from memory.records.schedule import NoTime, TimeAnswer, TimeAsked, TimeRead
from scheduler.clock.recurrence import slot_of
from scheduler.timetext.parse import read

BERLIN = ZoneInfo("Europe/Berlin")
SATURDAY = "2026-11-28T10:17"


def answered(text: str, now: str = SATURDAY, zone: ZoneInfo = BERLIN) -> TimeAnswer:
    return read(text, now=datetime.fromisoformat(now).replace(tzinfo=zone), zone=zone)


def due(text: str, now: str = SATURDAY) -> list[str]:
    """The next slots of what is read without a question."""
    answer = answered(text, now)
    assert isinstance(answer, TimeRead), f"{text}: {answer}"
    return walls(answer)


def walls(time: TimeRead) -> list[str]:
    """The next slots, as the wall clock of its zone shows them."""
    return [slot_of(at, ZoneInfo(time.when.zone)).local for at in time.next]


def offered(text: str, now: str = SATURDAY) -> list[str]:
    """The first slot of each reading that is offered with a question."""
    answer = answered(text, now)
    assert isinstance(answer, TimeAsked), f"{text}: {answer}"
    return [walls(one)[0] for one in answer.options]


def asked(text: str, now: str = SATURDAY) -> str:
    answer = answered(text, now)
    assert isinstance(answer, TimeAsked), f"{text}: {answer}"
    return answer.text


def refused(text: str, now: str = SATURDAY) -> str:
    answer = answered(text, now)
    assert isinstance(answer, NoTime), f"{text}: {answer}"
    return answer.why
