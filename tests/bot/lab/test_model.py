"""The scripted model, driven over HTTP as its clients do."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from bot.lab.model import ScriptedModel
from bot.lab.model_script import ScriptedCall, prose

Json = dict[str, Any]
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]


@asynccontextmanager
async def both(**settings: Any) -> AsyncIterator[tuple[ScriptedModel, httpx.AsyncClient]]:
    async with (
        ScriptedModel(**settings) as model,
        httpx.AsyncClient(base_url=model.api_base, timeout=5) as http,
    ):
        yield model, http


def user(text: str, *more: Json, **fields: Any) -> Json:
    return {"model": "lab-model", "messages": [{"role": "user", "content": text}, *more], **fields}


async def ask(http: httpx.AsyncClient, body: Json) -> Json:
    response = await http.post("/chat/completions", json=body)
    response.raise_for_status()
    answer: Json = response.json()
    return answer


async def words(http: httpx.AsyncClient, body: Json) -> str:
    return str((await ask(http, body))["choices"][0]["message"]["content"])


async def events(http: httpx.AsyncClient, body: Json) -> list[str]:
    async with http.stream("POST", "/chat/completions", json={**body, "stream": True}) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        lines = [line async for line in response.aiter_lines()]
    return [line.removeprefix("data: ") for line in lines if line]


def asked_calls(answer: Json) -> list[tuple[str, str]]:
    calls = answer["choices"][0]["message"]["tool_calls"]
    return [(one["function"]["name"], one["function"]["arguments"]) for one in calls]


# The script ---------------------------------------------------------------------------------------


async def test_queued_answers_come_in_order_and_then_the_echo() -> None:
    async with both() as (model, http):
        model.say("one")
        model.call("look", {"at": 1}, id="c1")
        model.calls_together(("look", {"at": 2}), ScriptedCall(name="look", arguments="{bro"))

        assert await words(http, user("x")) == "one"
        single = await ask(http, user("x"))
        assert single["choices"][0]["finish_reason"] == "tool_calls"
        assert single["choices"][0]["message"]["tool_calls"][0]["id"] == "c1"
        assert asked_calls(await ask(http, user("x"))) == [("look", '{"at": 2}'), ("look", "{bro")]
        assert await words(http, user("hello")) == "You said: hello"
        assert model.left == 0
        assert [r["messages"][0]["content"] for r in model.requests] == ["x", "x", "x", "hello"]


async def test_an_answer_may_wait_for_the_request_that_it_fits() -> None:
    async with both() as (model, http):
        model.say("cheap", when={"model": "small"})
        model.say("for you", when={"user~": "pear"})

        assert await words(http, user("apple")) == "You said: apple"
        assert await words(http, user("a pear")) == "for you"
        assert await words(http, user("x", model="small")) == "cheap"


async def test_the_last_of_several_messages_is_the_one_that_is_answered() -> None:
    def parts(*texts: str) -> Json:
        return {"role": "user", "content": [{"type": "text", "text": text} for text in texts]}

    async with both() as (_, http):
        refused, context = "!say obeyed once more", "<context>\nIt is Monday.\n</context>"
        note, file = "[The turn before this one failed.]", "[a.md came.]\n!say what a file says"
        asked = {"model": "lab-model", "messages": [parts(refused, context, note, "hello", file)]}
        quoted = {"model": "lab-model", "messages": [parts("old", "[In reply to: «x»]\nnew")]}

        assert await words(http, asked) == "You said: hello"
        assert (await words(http, quoted)).endswith("\nnew")


async def test_the_orders_in_a_text_are_followed_round_by_round() -> None:
    async with both(strict=True) as (_, http):
        text = '!call look {"at": 1}\n!call look {"at": 2}\n!then look {"at": 3}\nplease'
        body = user(text + "\n\n<context>\n!say no\n</context>", tools=TOOLS)

        for round_ in ([1, 2], [3]):
            message = (await ask(http, body))["choices"][0]["message"]
            calls = message["tool_calls"]
            assert [json.loads(c["function"]["arguments"])["at"] for c in calls] == round_
            body["messages"].append(message)
            for one in calls:
                result = {"role": "tool", "tool_call_id": one["id"], "content": "r" * 300}
                body["messages"].append(result)

        assert await words(http, body) == f'done: {"r" * 200} | !call look {{"at": 1}}'


async def test_other_orders_shape_the_answer() -> None:
    async with both() as (_, http):
        parts = [{"type": "text", "text": "hi"}, {"type": "text", "text": "<context>x</context>"}]

        assert await words(http, user("!say all is well\n!wait 0.01")) == "all is well"
        assert await words(http, user("hello\n!wait 0.01")) == "You said: hello"
        assert await words(http, user("!long 5000")) == prose(5000)
        assert await words(http, user(parts)) == "You said: hi"  # type: ignore[arg-type]
        assert "no fault is called" in await words(http, user("!fault unheard"))
        assert len(prose(5000)) == 5000


async def test_an_ordered_fault_strikes_once_for_each_text() -> None:
    async with both() as (_, http):
        statuses = []
        for text in (
            "!fault 500",
            "!fault 500",
            "!fault 429 2\nx",
            "!fault 429 2\nx",
            "!fault 429 2\nx",
        ):
            response = await http.post("/chat/completions", json=user(text))
            statuses.append(response.status_code)

        assert statuses == [500, 200, 429, 429, 200]


# The wire -----------------------------------------------------------------------------------------


async def test_a_stream_has_the_chunks_of_openai() -> None:
    async with both(chunk_size=4) as (model, http):
        model.call("look", {"at": 1}, id="c1", text="Let me")

        *chunks, done = await events(http, user("x", stream_options={"include_usage": True}))

        parsed = [json.loads(chunk) for chunk in chunks]
        deltas = [c["choices"][0]["delta"] for c in parsed if c["choices"]]
        assert done == "[DONE]"
        assert {c["object"] for c in parsed} == {"chat.completion.chunk"}
        assert deltas[0] == {"role": "assistant", "content": "", "refusal": None}
        assert "".join(d.get("content") or "" for d in deltas) == "Let me"
        pieces = [d["tool_calls"][0] for d in deltas if "tool_calls" in d]
        assert pieces[0]["id"] == "c1"
        assert pieces[0]["function"] == {"name": "look", "arguments": ""}
        assert "".join(p["function"]["arguments"] for p in pieces) == '{"at": 1}'
        assert parsed[-2]["choices"][0]["finish_reason"] == "tool_calls"
        assert parsed[-1]["choices"] == []
        assert parsed[-1]["usage"]["total_tokens"] > 0
        assert all(c["usage"] is None for c in parsed[:-1])


def made(call_id: str | None = "c1", **fields: Any) -> Json:
    function = {"name": "look", "arguments": "{}"}
    one = {"id": call_id, "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [one], **fields}


def result(call_id: str = "c1") -> Json:
    return {"role": "tool", "tool_call_id": call_id, "content": "seen"}


@pytest.mark.parametrize(
    "more",
    [
        [made()],
        [made(), {"role": "user", "content": "hello"}, result()],
        [result()],
        [made(), result("c2")],
        [made(), result(), result()],
        [made(call_id=None), result()],
        [{"role": "assistant", "content": None}],
    ],
)
async def test_the_pairing_rules_are_strict_on_demand(more: list[Json]) -> None:
    async with both(strict=True) as (model, http):
        refused = await http.post("/chat/completions", json=user("x", *more))
        proper = [made(), result(), {"role": "assistant", "content": "ok"}]
        taken = await http.post("/chat/completions", json=user("x", *proper))
        model.strict = False
        lenient = await http.post("/chat/completions", json=user("x", *more))

        assert [refused.status_code, taken.status_code, lenient.status_code] == [400, 200, 200]


# Faults -------------------------------------------------------------------------------------------
