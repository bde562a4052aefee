"""What is said of an answer and of what came by the clock, as it is read."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from agent.trace.explanation import Explained, ExplainedCall, Thought
from bot.commands.trace.why import clock_text
from bot.commands.trace.why_messages import Reader, answer_text, fact_buttons
from memory.records.facts import FactSource, StoredFact, Whose
from memory.records.jobs import Job, JobKind, SetBy
from memory.records.messages import PersonId, RunId
from memory.records.turns import Behind, DueSlot, TurnRecord
from memory.records.usage import UsageSum
from tests.scheduler.jobs_kit import job as new_job

ME, BOB = PersonId("p1"), PersonId("p2")
AT_MS = int(datetime(2026, 12, 1, 16, 0, tzinfo=UTC).timestamp() * 1000)
TURN = TurnRecord(run_id=RunId("in-1"), person_id=ME, started_ms=AT_MS, ended_ms=AT_MS)
FOUND = Explained(
    facts=(),
    facts_before=(),
    read={},
    picked=(),
    offered={"core": 9},
    calls=(),
    thought=Thought(usual="big", answered="big"),
    requests=1,
)


def spent(model: str, *, cached: int = 0, micros: int = 0, unpriced: int = 0) -> UsageSum:
    return UsageSum(
        model=model,
        calls=1,
        prompt=1_000,
        completion=50,
        cached=cached,
        micros=micros,
        unpriced=unpriced,
    )


def fact(number: int, *, corrected_by: int | None = None) -> StoredFact:
    return StoredFact(
        id=number,
        whose=Whose(person_id=ME),
        text=f"fact {number}",
        category="preference",
        source=FactSource.PERSON,
        confidence=1.0,
        valid_from_ms=AT_MS,
        created_ms=AT_MS,
        valid_to_ms=None if corrected_by is None else AT_MS,
        superseded_by=corrected_by,
    )


def seen(*facts: StoredFact, server: str = "") -> Reader:
    return Reader(
        person_id=ME,
        zone=UTC,
        detailed=True,
        shows_money=True,
        is_owner=True,
        facts={one.id: one for one in facts},
        name_of=lambda person_id: {"p1": "Ann", "p2": "*Bob*"}.get(person_id, ""),
        server_of=lambda name: server,
        redact=lambda text: text.replace("hunter2", "[redacted]"),
    )


READER = seen()


def lines(
    found: Explained = FOUND, record: TurnRecord = TURN, reader: Reader = READER
) -> list[str]:
    return answer_text(record, found, reader).splitlines()


def test_what_it_took_is_one_line() -> None:
    record = replace(
        TURN, spent=(spent("big", cached=500, micros=1_200), spent("small")), subagents=2
    )

    assert lines(record=record)[-1] == (
        "1 request and those of 2 subagents, 2,100 tokens, 25 % of what was sent from a cache, "
        "$0.0012"
    )
    assert lines()[-1] == "1 request; tokens were not counted"


def test_why_another_model_answered_is_told() -> None:
    cheaper = replace(FOUND, thought=Thought(usual="big", answered="small", cheaper="small"))

    assert "Model: small, as a budget was near its end" in lines(cheaper)


def test_a_fact_that_was_corrected_says_by_which_and_long_lists_end() -> None:
    facts = [fact(1, corrected_by=99), *(fact(n) for n in range(2, 13))]
    found = replace(FOUND, facts=tuple(one.id for one in facts))

    said = lines(found, reader=seen(*facts))

    assert "- f1 “fact 1” (told me by `/remember`, 1 Dec 2026; corrected since by f99)" in said
    assert "- f10 “fact 10” (told me by `/remember`, 1 Dec 2026)" in said
    assert "- and 2 more" in said


def test_buttons_stand_in_rows_and_with_forms_in_pairs() -> None:
    facts = [fact(number) for number in range(1, 5)]

    plain = fact_buttons(facts, with_forms=False)
    forms = fact_buttons(facts[:1], with_forms=True)

    assert [[one.label for one in row] for row in plain] == [
        ["Forget f1", "Forget f2", "Forget f3"],
        ["Forget f4"],
    ]
    assert [[one.data for one in row] for row in forms] == [["form:fact:f1", "why:f1:forget"]]


def test_calls_name_their_server_and_hide_secrets_and_marks() -> None:
    call = ExplainedCall(
        name="`/stop`\u202e",
        arguments='{"key": "hunter2", "list": ["a"], "long": "' + "xy" * 100,
        content="*no*",
        ok=False,
        took_ms=65_000,
        by_rule=True,
    )
    found = replace(FOUND, calls=(call,) * 13)

    said = lines(found, reader=seen(server="my_server"))

    assert said[6:8] == [
        "Tools: 9 offered (9 always), 13 called:",
        "- '/stop'‹U+202E› of the MCP server my\\_server "
        '{"key": "\\[redacted]", "list": \\["a"], "long": "' + "xy" * 27 + " …: "
        "not done in 1 min 5 s: \\*no\\*, called by a rule",
    ]
    assert "- and 1 more call" in said


def test_what_happened_more_than_once_is_said_once() -> None:
    errors = (
        "RateLimited",
        "RateLimited",
        "Overloaded",
        "Overloaded",
        "Overloaded",
        "ModelTimeout",
    )

    said = lines(replace(FOUND, errors=errors))

    assert said[said.index("On the way:") + 1 :] == [
        "- the model's service asked for a pause, twice",
        "- the model's service was overloaded, 3 times",
        "- the model took too long",
        "- `/logs in-1` shows what the log has on it",
    ]


# --- by the clock -------------------------------------------------------------------------------


def kept(number: int, *, person: PersonId = ME, kind: JobKind = JobKind.MESSAGE) -> Job:
    new = replace(new_job(f"tea {number}", person=person, kind=kind), set_by=SetBy.BOT)
    return replace(new, id=number)


def clock(*slots: DueSlot, jobs: tuple[Job, ...] = (), reader: Reader = READER) -> str:
    found: dict[int, Job | None] = {slot.job_id: None for slot in slots}
    found |= {job.id: job for job in jobs}
    return clock_text(Behind(sent_ms=AT_MS, slots=slots), found, reader)


def test_a_due_time_is_told_with_its_job_and_how_late_it_was() -> None:
    slot = DueSlot(job_id=1, due_ms=AT_MS, late_s=190)

    assert clock(slot, jobs=(kept(1),)) == (
        "**Why this was sent**: a reminder of yours, j1 “tea 1”, due Tue 1 Dec 2026, 16:00, 3 min "
        "late; it runs `0 9 * * *` (UTC), set up by me. `/job j1` shows and changes it."
    )
    assert clock(slot) == (
        "**Why this was sent**: a job that is not there any more, due Tue 1 Dec 2026, 16:00, 3 min "
        "late"
    )


def test_of_others_jobs_neither_name_nor_rule_is_told() -> None:
    slot = DueSlot(job_id=1, due_ms=AT_MS)

    assert clock(slot, jobs=(kept(1, person=BOB, kind=JobKind.SKILL),)) == (
        "**Why this was sent**: a scheduled skill of \\*Bob\\* (j1), due Tue 1 Dec 2026, 16:00"
    )


def test_a_digest_names_all_that_it_gathers_up_to_a_bound() -> None:
    slots = [DueSlot(job_id=number, due_ms=AT_MS) for number in range(1, 13)]
    in_group = replace(READER, detailed=False)

    said = clock(*slots, jobs=tuple(kept(n) for n in range(1, 13)), reader=in_group).splitlines()

    assert said[0] == "**Why this was sent**: it gathers what had to wait."
    assert said[1] == "- a reminder of yours (j1), due Tue 1 Dec 2026, 16:00"
    assert said[-1] == "- and 2 more"
