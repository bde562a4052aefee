"""How a text is read in these tests: in Berlin, on a Saturday morning unless said otherwise."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from scheduler.timetext.numbers import Answer, Question, Reading, Refusal
from scheduler.timetext.parse import read

BERLIN = ZoneInfo("Europe/Berlin")
SATURDAY = "2026-11-28T10:17"


def answered(text: str, now: str = SATURDAY, zone: ZoneInfo = BERLIN) -> Answer:
    return read(text, now=datetime.fromisoformat(now).replace(tzinfo=zone), zone=zone)


def due(text: str, now: str = SATURDAY) -> list[str]:
    """The next slots of what is read without a question."""
    answer = answered(text, now)
    assert isinstance(answer, Reading), f"{text}: {answer}"
    return [slot.local for slot in answer.next]


def offered(text: str, now: str = SATURDAY) -> list[str]:
    """The first slot of each reading that is offered with a question."""
    answer = answered(text, now)
    assert isinstance(answer, Question), f"{text}: {answer}"
    return [one.next[0].local for one in answer.options]


def asked(text: str, now: str = SATURDAY) -> str:
    answer = answered(text, now)
    assert isinstance(answer, Question), f"{text}: {answer}"
    return answer.text


def refused(text: str, now: str = SATURDAY) -> str:
    answer = answered(text, now)
    assert isinstance(answer, Refusal), f"{text}: {answer}"
    return answer.why
