"""A model in trouble, through the whole bot: who answers then, what a person and the owner read.

Every turn ends with one message and a bounded number of requests (SPEC §8.3)."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial

import pytest

from agent.models.health import REFUSALS_MAX
from agent.models.litellm import LiteLLM
from agent.models.wire import BYTES_A_TOKEN
from bot.app.app import App
from bot.lab.faults import answer as answers
from bot.lab.model import ScriptedModel
from bot.lab.model_script import call
from memory.records.jobs import At, Due, Job, JobKind, What
from memory.records.messages import PersonId, Role
from scheduler.clock.outcomes import FAILURES_MAX
from tests.agent.models.asking import ask
from tests.bot.kit import MEMBER, OWNER, Rig, eventually

pytestmark = pytest.mark.filterwarnings(
    # litellm's own, in what it does with each chunk that holds usage.
    "ignore:Accessing the 'model_:DeprecationWarning"
)

CLIENTS = ["direct", "litellm"]

MAIN, SPARE = "lab-model", "spare"

REQUESTS_MAX = 4
"""For one answer, by model: docs/models.md says so."""

HURRY = 100
"""Pauses between tries are so many times shorter; what a model takes is not."""

TURN_S = 60.0
"""Only a hang takes longer."""

NO_END = ("hold", "stall")
"""Faults that a time limit ends. Where it is short, a busy machine could meet it by itself."""

EMPTY = ["empty", "reasoning_only"]

NOTICES = {
    "429": "asks for a pause",
    "500": "cannot be reached or is overloaded",
    "502": "cannot be reached or is overloaded",
    "503": "cannot be reached or is overloaded",
    "529": "cannot be reached or is overloaded",
    "drop": "cannot be reached or is overloaded",
    "reset": "cannot be reached or is overloaded",
    "hold": "took too long to answer",
    "stall": "took too long to answer",
    "cut": "broke off on its way",
    "stream_reset": "broke off on its way",
    "bad_chunk": "broke off on its way",
    "401": "does not accept my key",
    "402": "has no credit left",
    "insufficient_quota": "has no credit left",
    "400": "refused the request",
    "content_filter": "content filter",
    "context": "more text than the model can take",
    "empty": "returned nothing, twice",
    "reasoning_only": "returned nothing, twice",
}


@pytest.fixture(autouse=True)
async def litellm_is_loaded() -> None:
    """Its import takes seconds, and the model calls here have one."""
    if "litellm" not in sys.modules:
        async with (
            ScriptedModel() as model,
            LiteLLM("openai/first", api_base=model.api_base, api_key="a-key") as client,
        ):
            await ask(client)


def ready(rig: Rig, client: str, kind: str = "", *, fallbacks: Sequence[str] = (SPARE,)) -> None:
    rig.set(
        llm__client=client,
        llm__timeout_s=2 if kind in NO_END else 30,
        llm__fallbacks=",".join(f"openai/{name}" for name in fallbacks),
    )


def counts(rig: Rig) -> Counter[str]:
    """How often each model was asked; litellm may send the provider's prefix along."""
    return Counter(request["model"].rpartition("/")[2] for request in rig.model.requests)


async def one_answer(rig: Rig, text: str, *, by: int = OWNER) -> str:
    """What came back for a message, which has to be exactly one message."""
    before = len(rig.seen(by))
    rig.says(text, by=by)
    took = len(rig.inbox())
    await eventually(lambda: len(rig.seen(by)) > before, timeout_s=TURN_S)
    await eventually(lambda: len(rig.inbox()) > took or rig.inbox()[-1] != "queued")
    await eventually(lambda: set(rig.inbox()) <= {"replied", "failed", "command"})
    assert len(rig.seen(by)) == before + 1
    return rig.texts(by)[-1]


# --- the table -----------------------------------------------------------------------------------


@pytest.mark.case("CO-05")
@pytest.mark.parametrize(
    ("client", "kind"),
    [
        *(("direct", kind) for kind in ("429", "503", "drop", "hold", "cut", "401", "402")),
        *(("litellm", kind) for kind in ("500", "stall", "bad_chunk", "insufficient_quota")),
    ],
)
async def test_a_fallback_answers_while_the_main_model_is_in_trouble(
    rig: Rig, client: str, kind: str
) -> None:
    ready(rig, client, kind)
    rig.model.named_fault(kind, times=None, when={"model": MAIN})
    async with rig.running(OWNER, hurry=HURRY) as bot:
        first = await one_answer(rig, "one")
        asked = counts(rig)
        second = await one_answer(rig, "two")
        await rig.quiet(bot)

    assert first.startswith("You said: one\n\n(Answered by ")
    assert second == "You said: two", "told once, and the main model rests"
    assert 1 <= asked[MAIN] <= REQUESTS_MAX
    assert asked[SPARE] == 1
    assert counts(rig) == asked + Counter({SPARE: 1})


@pytest.mark.case("CO-05")
@pytest.mark.parametrize(("kind", "client"), [*zip(NOTICES, CLIENTS * 10, strict=True)])
async def test_where_no_model_answers_the_turn_ends_with_one_notice_and_the_next_is_fine(
    rig: Rig, client: str, kind: str
) -> None:
    ready(rig, client, kind)
    fault = rig.model.named_fault(kind, times=None)
    # A pause that a server asks for is measured by the real clock.
    async with rig.running(OWNER, hurry=1 if kind == "429" else HURRY) as bot:
        notice = await one_answer(rig, "one")
        asked = counts(rig)
        fault.times = 0
        after = await one_answer(rig, "two")
        await rig.quiet(bot)

    assert NOTICES[kind] in notice
    assert "lab-key-of-the-test" not in notice
    rounds = 2 if kind in EMPTY else 1
    assert all(count <= REQUESTS_MAX * rounds for count in asked.values())
    assert after.startswith("You said: ")
    assert "two" in str(rig.model.requests[-1]["messages"][-1])
    assert rig.inbox() == ["failed", "replied"]


async def test_an_answer_that_broke_off_in_the_middle_is_replaced_by_the_whole_of_another(
    rig: Rig,
) -> None:
    ready(rig, "direct")
    rig.model.named_fault("cut", chunks=3, times=None, when={"model": MAIN})
    async with rig.running(OWNER, hurry=HURRY) as bot:
        answer = await one_answer(rig, "one " * 40)
        await rig.quiet(bot)

    assert answer.count("You said:") == 1


async def test_nobody_is_asked_before_the_pause_is_over_that_a_server_asked_for(rig: Rig) -> None:
    ready(rig, "direct")
    pause = answers(429, {"error": {"message": "slow"}}, headers={"Retry-After": "40"})
    rig.model.fault("chat", action=pause, times=None)
    async with rig.running(OWNER, hurry=HURRY) as bot:
        first = await one_answer(rig, "one")
        second = await one_answer(rig, "two")
        await rig.quiet(bot)

    assert "asks for a pause" in first
    assert "No model can be asked now." in second
    assert counts(rig) == {MAIN: 1, SPARE: 1}, "each once, in two turns"


# --- what a person reads -------------------------------------------------------------------------


async def test_who_answered_is_told_once_for_a_conversation_and_again_after_a_change(
    rig: Rig,
) -> None:
    ready(rig, "direct", fallbacks=["spare", "last"])
    main = rig.model.named_fault("401", times=None, when={"model": MAIN})
    async with rig.running(OWNER, MEMBER, hurry=HURRY):
        await one_answer(rig, "one", by=MEMBER)
        again = await one_answer(rig, "two", by=MEMBER)
        rig.model.named_fault("401", times=None, when={"model": SPARE})
        changed = await one_answer(rig, "three", by=MEMBER)
        rig.says("/new", by=MEMBER)
        await eventually(partial(rig.wrote, 4, chat=MEMBER))
        anew = await one_answer(rig, "four", by=MEMBER)

    assert again == "You said: two"
    assert changed == ("You said: three\n\n(Answered by last, as lab-model cannot answer now.)")
    assert anew.endswith("(Answered by last, as lab-model cannot answer now.)")
    assert main.hits == 1


async def test_who_answered_is_not_told_again_after_a_restart(rig: Rig) -> None:
    ready(rig, "direct")
    rig.model.named_fault("503", times=None, when={"model": MAIN})
    async with rig.running(OWNER, hurry=HURRY):
        await one_answer(rig, "one")

    async with rig.running(hurry=HURRY):
        assert await one_answer(rig, "two") == "You said: two"

    assert "Answered by" not in str(rig.model.requests[-1]), "it is not part of the history"


async def test_a_model_that_was_set_for_the_chat_is_the_usual_one_there(rig: Rig) -> None:
    ready(rig, "direct")
    rig.model.named_fault("503", times=None, when={"model": "other"})
    async with rig.running(OWNER, hurry=HURRY):
        rig.says("/model openai/other")
        await eventually(partial(rig.wrote, 1))
        answer = await one_answer(rig, "one")

    assert answer.endswith("(Answered by lab-model, as other cannot answer now.)")


# --- what the owner reads ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "words", "client"), [("401", "API key", "direct"), ("402", "credit", "litellm")]
)
async def test_the_owner_hears_once_of_a_refused_key_though_a_fallback_answered(
    rig: Rig, client: str, kind: str, words: str
) -> None:
    ready(rig, client, kind)
    rig.model.named_fault(kind, times=None, when={"model": MAIN})
    async with rig.running(OWNER, MEMBER, hurry=HURRY) as bot:
        await one_answer(rig, "one", by=MEMBER)
        await eventually(partial(rig.wrote, 1))
        await one_answer(rig, "two", by=MEMBER)
        await one_answer(rig, "three")
        await rig.quiet(bot)

    told, own = rig.texts(OWNER)
    assert told.startswith("The model")
    assert "is not used for now" in told
    assert words in told
    assert own.startswith("You said: three")
    assert "left out" not in own
    assert words not in "".join(rig.texts(MEMBER)), "members cannot do anything about it"


async def test_in_the_owners_own_chat_it_stands_under_the_answer(rig: Rig) -> None:
    ready(rig, "direct")
    rig.model.named_fault("401", times=None, when={"model": MAIN})
    async with rig.running(OWNER, hurry=HURRY) as bot:
        answer = await one_answer(rig, "one")
        await rig.quiet(bot)

    said, answered_by, why = answer.split("\n\n")
    assert said == "You said: one"
    assert answered_by == "(Answered by spare, as lab-model cannot answer now.)"
    assert why.startswith("(The model lab-model is not used for now: 127.0.0.1")
    assert len(rig.seen()) == 1


async def test_a_guest_reads_an_honest_notice_and_the_owner_the_reason(rig: Rig) -> None:
    ready(rig, "direct", fallbacks=())
    rig.model.named_fault("401", times=None)
    async with rig.running(OWNER, hurry=HURRY) as bot:
        await bot.access.approve("telegram:7", role=Role.GUEST)
        notice = await one_answer(rig, "one", by=7)
        await eventually(partial(rig.wrote, 1))
        await rig.quiet(bot)

    assert notice == ("The model service does not accept my key. The owner has to set a valid one.")
    assert "A turn in telegram:7 failed." in rig.texts(OWNER)[0]


# --- many at once --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["503", "cut"])
async def test_a_moments_trouble_with_eight_in_flight_leaves_no_message_unanswered(
    rig: Rig, kind: str
) -> None:
    people = [OWNER, *range(11, 18)]
    ready(rig, "direct", kind, fallbacks=())
    for person in people:
        rig.model.named_fault(kind, times=1, when={"user~": f"from {person}"})
    async with rig.running(*people, hurry=1) as bot:
        for person in people:
            rig.says(f"from {person}", by=person)
        for person in people:
            await eventually(partial(rig.wrote, 1, chat=person), timeout_s=TURN_S)
        await rig.quiet(bot)

    for person in people:
        assert rig.texts(person) == [f"You said: from {person}"]
    assert len(rig.model.requests) == 2 * len(people)


# --- until somebody has seen to it ---------------------------------------------------------------


async def test_a_refused_account_is_asked_once_a_minute_and_jobs_go_on_when_it_is_mended(
    rig: Rig,
) -> None:
    kind = "402"
    ready(rig, "direct", kind, fallbacks=())
    fault = rig.model.named_fault(kind, times=None)
    async with rig.running(OWNER, MEMBER, hurry=HURRY) as bot:
        notices = {await one_answer(rig, f"message {n}", by=MEMBER) for n in range(8)}
        asked = len(rig.model.requests)
        job = await a_job(rig, bot, "Look at the backups.")
        for _ in range(FAILURES_MAX + 2):
            rig.clock.move(await eventually(partial(put_off_s, bot, job)))
        await eventually(partial(put_off_s, bot, job))
        tried = len(rig.model.requests)
        rig.model.clear_faults()
        rig.clock.move(await eventually(partial(put_off_s, bot, job)))
        result = "You said: Look at the backups."
        await eventually(lambda: any(result in text for text in rig.texts(OWNER)))
        await one_answer(rig, "thanks", by=MEMBER)
        await rig.quiet(bot)
        kept = await bot.calendar.schedules.jobs.get(job.id)

    assert fault is not None
    assert len(notices) == 1
    assert NOTICES[kind] in notices.pop()
    assert asked == REFUSALS_MAX
    assert tried - asked <= FAILURES_MAX + 3, "one request each time that the job was due"
    told = rig.texts(OWNER)
    assert sum("failed. " in text for text in told) == 1
    assert sum("works again" in text for text in told) == 1
    assert kept is not None
    assert (kept.enabled, kept.failures, kept.paused) == (True, 0, "")


async def a_job(rig: Rig, bot: App, text: str) -> Job:
    """Instructions of the owner that are due now, once."""
    ((owner,),) = rig.rows("select id from people where role = 'owner'")
    at = bot.clock.now()
    new = Job(
        name="backups",
        person_id=PersonId(owner),
        kind=JobKind.AGENT,
        what=What(text=text),
        when=At(moment=at, zone="UTC"),
        deliver_to=f"telegram:{OWNER}",
    )
    due = Due(slot=f"{at:%Y-%m-%dT%H:%M:%S}", at_ms=int(at.timestamp() * 1000))
    job = await bot.calendar.schedules.jobs.add(new, due)
    assert job is not None
    return job


async def put_off_s(bot: App, job: Job) -> float:
    """In how many seconds its next run is due; 0 while one is due or runs."""
    kept = await bot.calendar.schedules.jobs.get(job.id)
    assert kept is not None
    if kept.next is None:
        return 0.0
    return max(kept.next.at_ms / 1000 - bot.clock.now().timestamp(), 0.0)


# --- calls that cannot be read -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("client", "arguments"),
    [("direct", '{"path":'), ("litellm", "[1]"), ("direct", '{"paht": 1}')],
)
async def test_a_malformed_call_is_told_to_the_model_which_may_mend_it(
    rig: Rig, client: str, arguments: str
) -> None:
    ready(rig, client)
    rig.model.step(call("read_file", arguments))
    rig.model.say("I could not read that.")

    async with rig.running(OWNER, hurry=HURRY) as bot:
        rig.says("read my notes")
        await rig.reads("I could not read that.")
        await rig.quiet(bot)

    assert len(rig.model.requests) == 2
    assert rig.model.requests[-1]["messages"][-1]["role"] == "tool"


async def test_a_model_that_only_calls_malformed_is_stopped_with_one_message(rig: Rig) -> None:
    ready(rig, "litellm")
    rig.model.reply = lambda asked: call("read_file", '{"path":') if asked.get("tools") else "No."

    async with rig.running(OWNER, hurry=HURRY) as bot:
        await one_answer(rig, "read my notes")
        asked = len(rig.model.requests)
        rig.model.reply = None
        rig.model.say("Well again.")
        after = await one_answer(rig, "and now?")
        await rig.quiet(bot)

    assert after == "Well again."
    assert asked <= 9, "eight steps, and one to sum up"


# --- an answer without an end --------------------------------------------------------------------


async def test_an_answer_that_goes_on_past_the_limit_is_cut_with_a_notice(
    rig: Rig,
) -> None:
    ready(rig, "direct", fallbacks=())
    rig.set(llm__max_output_tokens=256)
    rig.model.say("word " * 40_000)
    async with rig.running(OWNER, hurry=HURRY) as bot:
        rig.says("say something")
        await eventually(lambda: "Cut at the output limit" in "".join(rig.texts()))
        await rig.quiet(bot)
        rig.model.say("Hello again.")
        rig.says("and now?")
        await eventually(lambda: "Hello again." in rig.texts()[-1])
        await rig.quiet(bot)

    words = "".join(rig.texts()).count("word")
    assert 0 < words <= 256 * BYTES_A_TOKEN / len("word ")
    assert len(rig.model.requests) == 2
