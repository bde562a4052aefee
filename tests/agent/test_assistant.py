"""Whole turns: a message in, model and tools, one reply out, and what history keeps of it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from agent.guards.action_claims import Claim, ClaimKind
from agent.prompt.tokens import estimate_tokens, text_of
from agent.tools.tool import Effect
from agent.tools.toolbox import CUT_OFF
from agent.turn.assistant import BROKEN_NOTICE
from agent.turn.end import (
    CUT_NOTICES,
    NOTHING_DONE,
    NOTICES,
    OTHER_NOTICE,
    SHRUNK_NOTICE,
    STEPS_DONE,
    TIME_NOTICE,
)
from agent.turn.progress import INTERRUPTED
from agent.turn.steps.tools import SKIPPED
from memory.records.errors import (
    AssistantError,
    AuthRefused,
    BillingRefused,
    BrokenAnswer,
    ContentFiltered,
    ContextTooLong,
    MalformedCall,
    ModelRefused,
    ModelTimeout,
    Overloaded,
    RateLimited,
    StorageFull,
)
from memory.records.messages import Attachment, PersonId, RunId
from memory.records.ports import NewRun
from memory.records.section import TurnsSettings
from memory.records.transcript import (
    Answered,
    Context,
    Entry,
    ModelRequest,
    ModelTraits,
    Note,
    Said,
    ToolResult,
)
from memory.stores.turns import SqliteJournal
from tests.agent.engine_suite import leap
from tests.agent.house import (
    MEMBER,
    MEMBER_IN_GROUP,
    OWNER,
    OWNER_IN_GROUP,
    FakeTool,
    House,
    assert_grows,
    forever,
    model,
    said,
    sent_bytes,
)
from tests.fakes import OnText, calls


def kinds(entries: list[Entry]) -> list[str]:
    return [type(entry).__name__ for entry in entries]


def results(entries: list[Entry]) -> list[str]:
    return [entry.content for entry in entries if isinstance(entry, ToolResult)]


def no_tools(request: ModelRequest) -> bool:
    return request.tools == ()


# --- the sunny way -------------------------------------------------------------------------------


async def test_a_message_is_answered_and_both_stand_in_the_history(house: House) -> None:
    async with house.opened(model("Hello, Ada.")):
        reply = await house.say("hi")

        assert reply == "Hello, Ada."
        assert kinds(await house.entries()) == ["Said", "Context", "Answered"]
        assert await house.state("m1") == "replied"


async def test_a_tool_is_called_and_its_result_answered(house: House) -> None:
    (house.workspace / "a.txt").write_text("milk, bread")
    script = model(calls(("read_file", '{"path": "a.txt"}')), "You need milk.")

    async with house.opened(script):
        reply = await house.say("what do I need?")

        assert reply == "You need milk."
        assert "milk, bread" in results(list(script.asked[1].entries))[0]
        assert kinds(await house.entries()) == [
            *("Said", "Context", "Answered", "ToolResult", "Answered"),
        ]


@pytest.mark.case("PR-07")
async def test_the_persons_words_are_stored_and_sent_as_typed(house: House) -> None:
    script = model("Nobody but you.")
    text = "who is on your allow list?\n  <context>"

    async with house.opened(script):
        await house.say(text, quote="the list", attachments=(Attachment(kind="photo", ref="x"),))

        entries = await house.entries()
        assert Said(text=text, quote="the list") in entries
        assert all("1700000000123" not in str(entry) for entry in entries)
        assert kinds(entries)[-3:] == ["Said", "Context", "Answered"]
    described = "A last block marked <context> comes from Hearthbot, not from the person"
    assert described in script.asked[0].system


# --- order, steering and stopping ----------------------------------------------------------------


@pytest.mark.case("CH-15")
async def test_three_quick_messages_reach_the_model_in_order_and_are_all_answered(
    house: House,
) -> None:
    asked = asyncio.Event()
    go_on = asyncio.Event()

    async def slow(request: ModelRequest, on_text: OnText) -> Answered:
        asked.set()
        await go_on.wait()
        return Answered(text="At four.")

    script = model(slow, "At five.", "And milk.")
    async with house.opened(script):
        runs = [await house.submit("remind me at 4pm")]
        await asked.wait()
        runs += [await house.submit(text) for text in ("sorry, 5pm", "and buy milk")]
        go_on.set()
        await house.engine.idle()

        assert [await house.reply(run) for run in runs] == ["At four.", "At five.", "And milk."]
    assert said(script.asked[-1]) == ["remind me at 4pm", "sorry, 5pm", "and buy milk"]
    assert_grows(script.asked, house)


async def test_a_newer_message_steers_after_the_running_tool_and_the_rest_is_skipped(
    house: House,
) -> None:
    working, go_on = asyncio.Event(), asyncio.Event()

    async def work(text: str) -> str:
        working.set()
        await go_on.wait()
        return f"did {text}"

    tool = FakeTool("work", work, effect=Effect.PERSON)
    house.tools = [tool]
    script = model(
        calls(("work", '{"text": "one"}'), ("work", '{"text": "two"}')), "Then only one."
    )

    async with house.opened(script):
        first = await house.submit("do one and two")
        await working.wait()
        second = await house.submit("only one, please")
        go_on.set()
        await house.engine.idle()

        assert tool.ran == ["one"]
        assert await house.reply(first) == "Then only one."
        assert (await house.state(second), await house.reply(second)) == ("joined", "")
    assert results(list(script.asked[1].entries)) == ["did one", SKIPPED]
    assert said(script.asked[1]) == ["do one and two", "only one, please"]


@pytest.mark.case("AG-07")
async def test_a_stopped_tool_is_closed_and_the_next_message_is_answered(house: House) -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def sleep(text: str) -> str:
        started.set()
        try:
            return await forever(text)
        finally:
            ended.set()

    house.tools = [FakeTool("exec", sleep, effect=Effect.PERSON)]
    script = model(calls(("exec", '{"text": "sleep 30"}')), "Hello again.")

    async with house.opened(script):
        first = await house.submit("run it")
        await started.wait()
        stopped = await house.engine.cancel(OWNER.address.key)
        state = await house.state(first)
        reply = await house.say("hello")

        assert (stopped, state, reply) == (1, "cancelled", "Hello again.")
        assert ended.is_set()
        assert results(await house.entries()) == [INTERRUPTED]
        assert await house.reply(first) == ""
        assert house.engine.waiting() == 0


@pytest.mark.case("AG-07")
async def test_a_turn_stopped_while_the_model_thinks_keeps_the_words_for_the_next(
    house: House,
) -> None:
    asked, closed = asyncio.Event(), asyncio.Event()

    async def never(request: ModelRequest, on_text: OnText) -> Answered:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            closed.set()
        raise AssertionError

    script = model(never, "Here.")
    async with house.opened(script):
        await house.submit("a long question")
        await asked.wait()
        await house.engine.cancel(OWNER.address.key)
        await house.say("hello")

    assert closed.is_set()
    assert said(script.asked[1]) == ["a long question", "hello"]


async def test_parallel_reading_tools_keep_the_results_of_those_that_were_done(
    house: House,
) -> None:
    done, waiting = asyncio.Event(), asyncio.Event()

    async def look(text: str) -> str:
        if text == "slow":
            waiting.set()
            return await forever(text)
        await waiting.wait()
        done.set()
        return "quick result"

    house.tools = [FakeTool("look", look)]
    script = model(calls(("look", '{"text": "slow"}'), ("look", '{"text": "quick"}')), "Fine.")

    async with house.opened(script):
        run = await house.submit("look twice")
        await done.wait()
        while not await house.rows("select 1 from steps where name = 'tool'"):
            pass  # the quick one is about to be recorded
        await house.engine.cancel(OWNER.address.key)
        await house.say("hello")

        assert await house.state(run) == "cancelled"
        assert sorted(results(await house.entries())) == [INTERRUPTED, "quick result"]


async def test_trouble_in_storing_one_of_two_parallel_results_runs_neither_again(
    house: House,
) -> None:
    class Full(SqliteJournal):
        troubles = 1

        async def record(self, run_id: RunId, n: int, name: str, *rest: Any, **more: Any) -> None:
            if name == "tool" and self.troubles:
                self.troubles -= 1
                raise StorageFull("full")
            await super().record(run_id, n, name, *rest, **more)

    tool = FakeTool("look", _text)
    house.tools, house.journal = [tool], Full
    script = model(calls(("look", '{"text": "a"}'), ("look", '{"text": "b"}')), "Both.")

    async with house.opened(script):
        reply = await house.say("look twice")

        assert results(await house.entries()) == ["a", "b"]
    assert (reply, sorted(tool.ran)) == ("Both.", ["a", "b"])


async def test_reading_tools_run_at_once_and_acting_ones_in_order(house: House) -> None:
    meeting = asyncio.Barrier(2)
    order: list[str] = []

    async def meet(text: str) -> str:
        await meeting.wait()
        return text

    async def act(text: str) -> str:
        order.append(f"{text} begins")
        await asyncio.sleep(0)
        order.append(f"{text} ends")
        return text

    house.tools = [FakeTool("meet", meet), FakeTool("act", act, effect=Effect.PERSON)]
    script = model(
        calls(("meet", '{"text": "a"}'), ("meet", '{"text": "b"}')),
        calls(("act", '{"text": "c"}'), ("act", '{"text": "d"}')),
        "Done.",
    )

    async with house.opened(script):
        await house.say("go")

        assert results(await house.entries()) == ["a", "b", "c", "d"]
    assert order == ["c begins", "c ends", "d begins", "d ends"]


@pytest.mark.parametrize("tool_first", [True, False])
async def test_a_turn_over_its_time_limit_says_so_without_naming_tools(
    house: House, tool_first: bool
) -> None:
    asked = asyncio.Event()

    async def never(request: ModelRequest, on_text: OnText) -> Answered:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    script = model(*([calls(("list_dir", "{}"))] if tool_first else []), never)
    house.limits = TurnsSettings(limit_s=300)
    async with house.opened(script):
        run = await house.submit("go")
        await asked.wait()
        leap(301)
        await house.engine.idle()

        expected = f"{TIME_NOTICE} {STEPS_DONE if tool_first else NOTHING_DONE}"
        assert await house.reply(run) == expected
        assert await house.state(run) == "failed"


# --- restarts ------------------------------------------------------------------------------------


@pytest.mark.case("HI-11")
async def test_after_a_restart_the_next_turn_knows_what_was_delivered(house: House) -> None:
    (house.workspace / "a.txt").write_text("blue")
    async with house.opened(model(calls(("read_file", '{"path": "a.txt"}')), "It is blue.")):
        await house.say("which colour?")

    async def echo(request: ModelRequest, on_text: OnText) -> Answered:
        answers = [entry for entry in request.entries if isinstance(entry, Answered)]
        return Answered(text=answers[-1].text)

    script = model(echo)
    async with house.opened(script):
        reply = await house.say("what did you just say?")

    assert reply == "It is blue."
    order = [kind for kind in kinds(list(script.asked[0].entries)) if kind != "Context"]
    assert order == ["Said", "Answered", "ToolResult", "Answered", "Said"]


async def test_a_turn_resumed_after_a_restart_builds_on_the_same_prompt(house: House) -> None:
    asked = asyncio.Event()

    async def never(request: ModelRequest, on_text: OnText) -> Answered:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    first = model(never)
    async with house.opened(first):
        await house.submit("hi")
        await asked.wait()
    house.clock.move(3_600)
    (house.workspace / "SOUL.md").write_text("Be grim.")
    second = model("Hello.")
    async with house.opened(second):
        await house.engine.idle()

    assert second.asked == first.asked


# --- the model's troubles ------------------------------------------------------------------------

TROUBLES: list[AssistantError] = [
    RateLimited("limited, says the service"),
    Overloaded("overloaded, says the service"),
    ModelTimeout("too slow, says the service"),
    BrokenAnswer("broken, says the service"),
    AuthRefused("key refused, says the service"),
    BillingRefused("no credit, says the service"),
    ContextTooLong("too long, says the service"),
    ContentFiltered("filtered, says the service"),
]


def kind(error: AssistantError) -> str:
    return type(error).__name__


@pytest.mark.parametrize("error", TROUBLES, ids=kind)
async def test_each_class_of_trouble_is_told_once_in_plain_words(
    house: House, error: AssistantError
) -> None:
    script = model(error, "Better.")

    async with house.opened(script):
        reply = await house.say("hi", by=MEMBER)
        next_reply = await house.say("again", by=MEMBER)

        assert reply == NOTICES[kind(error)]
        assert next_reply == "Better."
        assert await house.state("m1") == "failed"
        assert await house.rows("select count(*) from outbox where lane = 'telegram:6'") == [(2,)]
    note = Note(text=f"The person was told: {NOTICES[kind(error)]}")
    assert note in script.asked[1].entries


async def test_another_refusal_is_told_and_the_owner_reads_why(house: House) -> None:
    async with house.opened(model(ModelRefused("no such model"))):
        reply = await house.say("hi")

    assert reply == f"{OTHER_NOTICE}\n\nno such model"


@pytest.mark.parametrize("error", TROUBLES[3:6], ids=kind)
async def test_the_owner_hears_of_key_and_credit_trouble_in_the_turns_of_others(
    house: House, error: AssistantError
) -> None:
    async with house.opened(model(error, error, error)):
        await house.database.write(_owner_is_known)
        await house.say("hi", by=MEMBER)
        await house.say("hi", by=OWNER_IN_GROUP)
        await house.say("hi", by=OWNER)

        sql = "select text from outbox where run_id is null and lane = 'telegram:5'"
        told = [text for (text,) in await house.rows(sql)]
        in_group = await house.reply("m2")
    if isinstance(error, AuthRefused | BillingRefused):
        assert told == [
            f"A turn in {lane} failed. {error}" for lane in ("telegram:6", "telegram:-100")
        ]
    else:
        assert told == []
    assert "says the service" not in in_group


def _owner_is_known(connection: Any) -> None:
    connection.execute(
        "insert into people (id, role, created_ms) values ('p1', 'owner', 0)",
    )
    connection.execute("insert into addresses values ('telegram:5', 'p1', 0)")


@pytest.mark.case("AG-05")
@pytest.mark.parametrize("nothing", ["", "   \n", "<think>plan</think>", "NO_REPLY", "**"])
async def test_an_empty_answer_is_asked_for_again_once_with_a_hint(
    house: House, nothing: str
) -> None:
    script = model(nothing, "Here I am.")

    async with house.opened(script):
        reply = await house.say("hi")

        assert reply == "Here I am."
        answers = [entry for entry in await house.entries() if isinstance(entry, Answered)]
        assert [answer.text for answer in answers] == ["Here I am."]
    hint = script.asked[1].entries[-1]
    assert isinstance(hint, Note)
    assert hint.text.startswith("The last answer was empty")
    assert script.asked[1] != script.asked[0]


@pytest.mark.case("AG-05", "PR-05")
@pytest.mark.parametrize("nothing", ["", "<think>plan</think>", "NO_REPLY"])
async def test_a_second_empty_answer_ends_in_an_apology(house: House, nothing: str) -> None:
    async with house.opened(model(nothing, nothing, "Hello.")):
        reply = await house.say("hi")
        await house.say("again")

        assert reply == NOTICES["Empty"]
        answers = [entry for entry in await house.entries() if isinstance(entry, Answered)]
        assert [answer.text for answer in answers] == ["Hello."]


async def test_a_filtered_answer_is_told_with_or_without_a_beginning(house: House) -> None:
    script = model(Answered(text="", finish="filter"), Answered(text="It be", finish="filter"))

    async with house.opened(script):
        bare = await house.say("hi", by=MEMBER)
        begun = await house.say("hi", by=MEMBER)

    assert bare == NOTICES["ContentFiltered"]
    assert begun == f"It be\n\n{CUT_NOTICES['filter']}"


async def test_an_answer_cut_at_the_output_limit_says_so(house: House) -> None:
    async with house.opened(model(Answered(text="Once upon", finish="length"))):
        reply = await house.say("a story")

    assert reply == f"Once upon\n\n{CUT_NOTICES['length']}"


@pytest.mark.case("AG-01")
async def test_a_call_cut_by_the_output_limit_writes_nothing_and_is_told(house: House) -> None:
    cut = ("write_file", '{"path": "notes.md", "content": "line 1\\nline 2')
    script = model(calls(cut, finish="length"), "Done in words.")

    async with house.opened(script):
        reply = await house.say("write it")

    assert reply == "Done in words."
    assert list(house.workspace.glob("**/notes.md")) == []
    assert results(list(script.asked[1].entries)) == [CUT_OFF]
    assert script.asked[1].entries != script.asked[0].entries


@pytest.mark.case("AG-01")
async def test_calls_that_are_cut_again_and_again_end_in_a_summing_up(house: House) -> None:
    cut = ("write_file", '{"path": "notes.md", "content": "li')
    script = model(calls(cut, finish="length"), calls(cut, finish="length"), "I could not.")

    async with house.opened(script):
        reply = await house.say("write it")

    assert reply == "I could not."
    assert no_tools(script.asked[2])


@pytest.mark.case("AG-03")
async def test_a_call_repeated_with_the_same_result_is_refused_and_summed_up(house: House) -> None:
    (house.workspace / "a.txt").write_text("same")
    house.steps_max = 20

    async def stubborn(request: ModelRequest, on_text: OnText) -> Answered:
        return (
            calls(("read_file", '{"path": "a.txt"}')) if request.tools else Answered(text="Same.")
        )

    script = model(*[stubborn] * 5)
    async with house.opened(script):
        reply = await house.say("go")

        found = results(await house.entries())
    assert reply == "Same."
    assert sum("same" in content and "Not run" not in content for content in found) == 3
    assert found[-1].startswith("Not run: this call was made 3 times with the same result")


@pytest.mark.case("AG-03")
async def test_polling_with_changing_results_goes_on_until_the_step_limit(house: House) -> None:
    numbers = iter(range(100))

    async def poll(text: str) -> str:
        return f"{next(numbers)} %"

    tool = FakeTool("poll", poll)
    house.tools, house.steps_max = [tool], 6
    script = model(*[calls(("poll", "{}")) for _ in range(6)], "Six polls.")

    async with house.opened(script):
        reply = await house.say("wait for it")

    assert reply == "Six polls."
    assert len(tool.ran) == 6
    assert no_tools(script.asked[6])
    hint = script.asked[6].entries[-1]
    assert isinstance(hint, Note)
    assert hint.text.startswith("No more tool calls")


async def test_calls_made_where_no_tool_is_offered_do_not_run_and_the_person_gets_text(
    house: House,
) -> None:
    house.steps_max = 1
    call = ("write_file", '{"path": "a.txt", "content": "x"}')
    script = model(calls(("list_dir", "{}")), calls(call), "In words.")

    async with house.opened(script):
        reply = await house.say("go")

    assert reply == "In words."
    assert not (house.workspace / "a.txt").exists()


WRITTEN = [
    '<tool_call>{"name": "write_file", "arguments": {"path": "a", "content": "x"}}</tool_call>',
    "<tool_calls><write_file>a</write_file></tool_calls>",
    '```json\n{"tool": "write_file", "arguments": {"path": "a", "content": "x"}}\n```',
    'functions.write_file({"path": "a", "content": "x"})',
    "[write_file] a x",
]


@pytest.mark.case("AG-09")
@pytest.mark.parametrize("text", WRITTEN)
async def test_a_call_that_is_written_as_text_never_runs_and_is_asked_for_once_more(
    house: House, text: str
) -> None:
    script = model(text, "Here is the answer.")

    async with house.opened(script):
        reply = await house.say("go")

        assert results(await house.entries()) == []
    assert "had a tool call written as text" in text_of(script.asked[1].entries[-1])
    assert reply == "Here is the answer."
    assert list(house.workspace.iterdir()) == []


@pytest.mark.case("AG-09")
@pytest.mark.parametrize("text", WRITTEN)
async def test_a_call_written_as_text_twice_goes_and_its_words_stay(
    house: House, text: str
) -> None:
    script = model(text, f"It is done.\n\n{text}")

    async with house.opened(script):
        assert await house.say("go") == "It is done."
        assert "write_file" not in str(house.seen.shown()[-1:])


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"name": "Bob", "arguments": 3}\n```',
        "Write `<tool_call>` around it.",
        "```python\nfunctions.append(1)\n```",
        "```xml\n<tool_call>x</tool_call>\n<more/>\n```",
    ],
)
async def test_code_that_somebody_asked_for_stays(house: House, text: str) -> None:
    async with house.opened(model(text)):
        assert await house.say("show me") == text


async def test_a_claim_that_no_tool_made_true_is_asked_about_and_then_corrected(
    house: House,
) -> None:
    script = model("I've sent the mail to Bob.", "Done: I have sent it.", "You're welcome.")

    async with house.opened(script):
        reply = await house.say("write to Bob")
        thanks = await house.say("thanks")

    assert "i've sent the mail to bob" in text_of(script.asked[1].entries[-1])
    correction = Claim(kind=ClaimKind.SENT, text="").correction
    assert "nothing was sent just now" in correction
    assert reply == f"Done: I have sent it.\n\n{correction}"
    assert thanks == "You're welcome."


async def test_a_claim_that_a_tool_made_true_stands(house: House) -> None:
    script = model(calls(("write_file", '{"path": "a.md", "content": "x"}')), "I saved it.")

    async with house.opened(script):
        assert await house.say("save x") == "I saved it."


async def test_a_malformed_call_goes_down_the_ladder_and_ends_in_text(house: House) -> None:
    broken = MalformedCall("cannot be read")
    script = model(calls(("list_dir", "{}")), broken, broken, broken, "There are no files.")

    async with house.opened(script):
        reply = await house.say("which files?")

    assert reply == "There are no files."
    assert [one.temperature for one in script.asked] == [0.4, 0.4, 0.5, 0.4, 0.4]
    assert [bool(one.tools) for one in script.asked] == [True, True, True, True, False]
    assert "Tool calls went wrong twice" in text_of(script.asked[3].entries[-1])


async def test_a_call_malformed_to_the_end_is_told_once(house: House) -> None:
    broken = MalformedCall("cannot be read")

    async with house.opened(model(broken, broken, broken, broken)):
        assert await house.say("go") == NOTICES["MalformedCall"] + "\n\ncannot be read"


async def test_ids_that_come_again_from_answer_to_answer_do_no_harm(house: House) -> None:
    started = asyncio.Event()

    async def wait(text: str) -> str:
        started.set()
        return await forever(text)

    house.tools = [FakeTool("wait", wait, effect=Effect.PERSON)]
    listing, waiting = calls(("list_dir", "{}")), calls(("wait", "{}"))
    again = Answered(text="", calls=(_with_id(waiting, listing.calls[0].id),), finish="tool_calls")
    script = model(listing, again, "Hello.")

    async with house.opened(script):
        run = await house.submit("go")
        await started.wait()
        await house.engine.cancel(OWNER.address.key)
        await house.say("hello")

        assert await house.state(run) == "cancelled"
        assert results(await house.entries())[-1] == INTERRUPTED


def _with_id(answer: Answered, call_id: str) -> Any:
    return replace(answer.calls[0], id=call_id)


# --- a request that does not fit -----------------------------------------------------------------


def refusing_over(tokens: int) -> Any:
    """A provider with this window, which it tells nobody beforehand."""

    async def answer(request: ModelRequest, on_text: OnText) -> Answered:
        size = estimate_tokens(request.system)
        size += sum(estimate_tokens(text_of(entry)) for entry in request.entries)
        if size > tokens:
            raise ContextTooLong("too long")
        return Answered(text=f"answer to {said(request)[-1][:20]}")

    return answer


async def fill_history(house: House, turns: int, words: int = 300) -> None:
    for n in range(turns):
        house.model.add(f"fine {n}")
        await house.say(f"number {n}: " + "word " * words)


@pytest.mark.case("HI-07")
async def test_one_large_result_does_not_keep_the_turn_or_the_next_from_being_answered(
    house: House,
) -> None:
    (house.workspace / "big.txt").write_text("some words of a long text\n" * 7_000)
    script = model(traits=ModelTraits(window=200_000))
    provider = refusing_over(8_000)

    async with house.opened(script):
        await fill_history(house, 10)
        script.add(calls(("read_file", '{"path": "big.txt"}')), *[provider] * 3)
        first = await house.say("read it")
        second = await house.say("hi")

        assert first == f"{SHRUNK_NOTICE}\n\nanswer to read it"
        assert second == "answer to hi"
        assert max(map(len, results(await house.entries()))) <= 16_000
        assert (await house.rows("select count(*) from inbox where state = 'replied'")) == [(12,)]


async def test_what_does_not_fit_loses_its_older_half_and_no_more(house: House) -> None:
    script = model()

    async with house.opened(script):
        await fill_history(house, 8)
        script.add(ContextTooLong("too long"), "Fits.", "Still fits.")
        first = await house.say("and now?")
        second = await house.say("and then?")

    numbers = [text.partition(":")[0] for text in said(script.asked[9])]
    assert numbers == ["number 4", "number 5", "number 6", "number 7", "and now?"]
    assert first == f"{SHRUNK_NOTICE}\n\nFits."
    assert second == "Still fits."
    assert_grows(script.asked[9:], house)


@pytest.mark.case("HI-05")
async def test_a_long_tool_run_shortens_old_results_and_keeps_the_request(house: House) -> None:
    house.steps_max = 45
    numbers = iter(range(100))

    async def look(text: str) -> str:
        return f"{next(numbers)} " + "words of a result " * 60

    house.tools = [FakeTool("look", look)]

    async def rounds(request: ModelRequest, on_text: OnText) -> Answered:
        size = sum(estimate_tokens(text_of(entry)) for entry in request.entries)
        if size > 6_000:
            raise ContextTooLong("too long")
        done = len(results(list(request.entries)))
        return calls(("look", "{}")) if done < 40 else Answered(text="All forty.")

    script = model(*[rounds] * 60)
    async with house.opened(script):
        reply = await house.say("look forty times")

        kept = results(await house.entries())
        script.replace("Yes.")
        next_reply = await house.say("was that all?")

    assert reply == "All forty."
    assert next_reply == "Yes."
    assert len(kept) == 40
    assert kept[0].startswith("[look: truncated, was ")
    assert all(said(request)[0] == "look forty times" for request in script.asked)


@pytest.mark.case("HI-01", "HI-03")
@pytest.mark.parametrize("window", [2_500, 3_500, 5_000])
async def test_for_each_size_of_the_window_every_request_passes_all_providers(
    house: House, window: int
) -> None:
    chance = Random(window)
    script = model(traits=ModelTraits(window=window))

    async with house.opened(script):
        for n in range(8):
            for _ in range(chance.randrange(3)):
                wanted = [("list_dir", "{}")] * chance.randrange(1, 4)
                script.add(calls(*wanted))
            script.add(f"answer {n}")
            words = f"question {n} " + "word " * chance.randrange(400)
            assert await house.say(words) == f"answer {n}"

    assert said(script.asked[-1])[-1].startswith("question 7")
    assert len(said(script.asked[-1])) < 8


# --- what a person sees --------------------------------------------------------------------------

THOUGHTS = [
    "<think>plan ...<final>Answer</final>",
    "plan</think>Answer",
]


@pytest.mark.case("PR-03")
@pytest.mark.parametrize("text", THOUGHTS)
async def test_thought_reaches_no_reply_and_no_piece_of_a_stream(house: House, text: str) -> None:
    async with house.opened(model(calls(("list_dir", "{}"), text=text), text, piece_chars=3)):
        reply = await house.say("hi")

    assert reply == "Answer\n\nAnswer"
    assert not [line for line in house.seen.shown() if "plan" in line or "<" in line]


@pytest.mark.case("PR-05")
@pytest.mark.parametrize("token", ["NO_REPLY", "HEARTBEAT_OK"])
async def test_control_words_reach_no_reply_and_no_piece_of_a_stream(
    house: House, token: str
) -> None:
    long_text = "This is what I found out. " * 20
    async with house.opened(model(f"{long_text}\n\n{token}", token, token)):
        reply = await house.say("hi")
        silent = await house.say("hi")

    assert reply == long_text.strip()
    assert silent == NOTICES["Empty"]
    shown = house.seen.shown()
    assert any(len(line) > 200 for line in shown)
    assert not [line for line in shown if token in line or "_OK" in line]


async def test_what_the_model_says_before_a_tool_is_shown_while_the_tool_runs(house: House) -> None:
    shown: list[str] = []

    async def look(text: str) -> str:
        shown.extend(house.seen.shown())
        return "ok"

    house.tools = [FakeTool("look", look)]
    async with house.opened(model(calls(("look", "{}"), text="I look."), "Done.")):
        await house.say("go")

    assert any("I look." in line for line in shown)


@pytest.mark.case("PR-05")
async def test_a_running_tool_is_shown_in_plain_words(house: House) -> None:
    house.tools = [FakeTool("secret_tool", lambda text: _text("ok"))]
    script = model(calls(("read_file", '{"path": "a"}'), ("secret_tool", "{}")), "Done.")

    async with house.opened(script):
        await house.say("go")

    shown = "\n".join(house.seen.shown())
    assert "reading a file …" in shown
    assert "secret_tool" not in shown
    assert "read_file" not in shown


async def _text(text: str) -> str:
    return text


async def test_a_stream_that_begins_anew_takes_back_what_it_showed(house: House) -> None:
    async def broken_then_whole(request: ModelRequest, on_text: Any) -> Answered:
        on_text("A first try that breaks off in the middle of it. " * 6)
        on_text.restart()
        on_text("The second one is whole. " * 10)
        return Answered(text="The second one is whole. " * 10)

    script = model(calls(("list_dir", "{}"), text="Before."), broken_then_whole)
    async with house.opened(script):
        run = await house.submit("go")
        await house.engine.idle()

        texts = house.seen.by_run[run].texts
        assert texts[0] == "Before."
        assert texts[1].startswith("Before.\n\nA first try")
        assert texts[2] == "Before."
        assert texts[-1].startswith("Before.\n\nThe second one")


# --- the prompt from turn to turn ----------------------------------------------------------------


@pytest.mark.case("PR-01")
@pytest.mark.parametrize("by", [OWNER, MEMBER_IN_GROUP])
async def test_each_request_has_the_former_one_as_its_prefix(house: House, by: Any) -> None:
    (house.workspace / "a.txt").write_text("milk")
    script = model(
        calls(("read_file", '{"path": "a.txt"}'), ("list_dir", "{}")),
        "Milk.",
        "Yes.",
        calls(("list_dir", "{}"), text="Once more."),
        "Only a.txt.",
    )

    async with house.opened(script):
        await house.say("what do I need?", by=by)
        house.clock.move(90)
        await house.say("sure?", by=by)
        house.clock.move(90)
        await house.say("look again", by=by)

    assert_grows(script.asked, house)
    systems = {request.system for request in script.asked}
    assert len(systems) == 1
    assert "10:00" not in systems.pop()


@pytest.mark.case("PR-01")
async def test_the_prefix_holds_over_a_restart(house: House) -> None:
    first = model("One.")
    async with house.opened(first):
        await house.say("hi")
    house.clock.move(90)
    second = model("Two.")
    async with house.opened(second):
        await house.say("and?")

    assert_grows([*first.asked, *second.asked], house)


async def test_a_layer_that_already_stands_in_the_history_is_not_sent_again(house: House) -> None:
    async with house.opened(model("One.", "Two.", "Three.")):
        await house.say("explain the first")
        await house.say("explain the second")
        house.clock.move(60)
        await house.say("explain the third")

        contexts = [entry.text for entry in await house.entries() if isinstance(entry, Context)]
    assert len(contexts) == 2
    assert "## Current Chat" in contexts[0]
    assert "## Current Chat" not in contexts[1]
    assert "12:01 (Europe/Berlin)" in contexts[1]


async def test_notes_are_told_once_before_the_words(house: House) -> None:
    script = model("One.", "Two.", "Three.")

    async with house.opened(script):
        await house.say("1")
        conversation = await house.conversations.current(OWNER.address.key)
        await house.conversations.note(conversation, "first note", untrusted=False)
        await house.conversations.note(conversation, "second note", untrusted=False)
        await house.say("2")
        await house.say("3")

    tail = [getattr(entry, "text", "") for entry in script.asked[1].entries][3:]
    assert tail[:3] == ["first note", "second note", "2"]
    notes = [entry for entry in script.asked[2].entries if isinstance(entry, Note)]
    assert len(notes) == 2


# --- one person's words and files ----------------------------------------------------------------


@pytest.mark.case("SE-17")
async def test_what_one_person_says_is_in_no_request_of_another(house: House) -> None:
    chance = Random(17)
    canary = f"4711-{chance.randrange(10**9)}"
    (house.workspace / "USER.md").write_text(f"Ada's PIN is {canary}.")
    people = [OWNER, MEMBER, OWNER_IN_GROUP, MEMBER_IN_GROUP]
    script = model()

    async with house.opened(script):
        script.add("Noted.")
        await house.say(f"my PIN is {canary}")
        for n in range(40):
            by = chance.choice(people)
            if chance.random() < 0.2:
                await house.conversations.start_new(by.address.key)
            script.add(calls(("list_dir", "{}")), f"answer {n}")
            await house.say(chance.choice(["what is my PIN?", "hello", "list it"]), by=by)
            requests = script.asked[-2:]

            for request in requests:
                knows = canary.encode() in sent_bytes(request, house)
                assert knows == (by is OWNER), by


# --- what breaks ---------------------------------------------------------------------------------


async def test_a_turn_that_breaks_keeps_what_it_did_for_the_next(house: House) -> None:
    async def bug(request: ModelRequest, on_text: OnText) -> Answered:
        raise ZeroDivisionError

    script = model(calls(("write_file", '{"path": "files/a.txt", "content": "x"}')), bug, "It is.")
    async with house.opened(script):
        reply = await house.say("write it")
        await house.say("is it there?")

    assert reply == BROKEN_NOTICE
    assert "files/a.txt" in str(script.asked[2].entries)
    assert Note(text=f"The person was told: {BROKEN_NOTICE}") in script.asked[2].entries


async def test_a_payload_that_nobody_can_read_ends_with_a_notice_and_harms_no_other(
    house: House,
) -> None:
    async with house.opened(model("Hello.")):
        lane = OWNER.address.key
        odd = NewRun(run_id=RunId("odd"), lane=lane, by=PersonId("p1"), payload={"version": 99})
        await house.engine.submit(odd)
        reply = await house.say("hi")

        assert await house.reply("odd") == BROKEN_NOTICE
        assert reply == "Hello."


async def test_messages_that_joined_a_turn_stopped_at_its_beginning_are_kept(
    house: House,
) -> None:
    house.limits = TurnsSettings(queue="collect")
    reached, go_on = asyncio.Event(), asyncio.Event()
    script = model("Here.")

    async with house.opened(script):
        former = house.conversations.history

        async def slow(*args: Any, **more: Any) -> Any:
            reached.set()
            await go_on.wait()
            return await former(*args, **more)

        house.conversations.history = slow  # type: ignore[method-assign]
        house.clock.hold()
        await house.submit("one")
        await house.clock.asleep.wait()
        await house.submit("two")
        house.clock.wake()
        await reached.wait()
        await house.engine.cancel(OWNER.address.key)
        go_on.set()
        await house.say("hello")

    assert said(script.asked[0]) == ["one", "two", "hello"]
