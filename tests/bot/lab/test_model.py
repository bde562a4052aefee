"""The scripted model, driven over HTTP as its clients do."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from bot.lab.model import ScriptedModel
from bot.lab.model_script import ScriptedCall, ScriptedStep, call, prose, say

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


async def test_a_rule_answers_when_nothing_is_queued() -> None:
    async def rule(request: Json) -> list[ScriptedStep | str]:
        return [call("look"), f"saw {len(request['messages'])}"]

    async with both() as (model, http):
        model.reply = rule

        assert asked_calls(await ask(http, user("x"))) == [("look", "{}")]
        assert await words(http, user("x")) == "saw 1"
        model.reply = lambda _: say("now sync")
        assert await words(http, user("x")) == "now sync"


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


async def test_models_are_listed_and_a_key_may_be_required() -> None:
    async with both(models=["a", "b"], api_key="k") as (_, http):
        refused = await http.post("/chat/completions", json=user("x"))
        http.headers["Authorization"] = "Bearer k"
        listed = (await http.get("/models")).json()

        assert refused.status_code == 401
        assert refused.json()["error"]["code"] == "invalid_api_key"
        assert [row["id"] for row in listed["data"]] == ["a", "b"]
        assert await words(http, user("x")) == "You said: x"


async def test_a_request_above_the_window_is_refused() -> None:
    async with both(context_limit_tokens=100) as (_, http):
        response = await http.post("/chat/completions", json=user("x" * 404))

        assert response.status_code == 400
        assert response.json()["error"]["code"] == "context_length_exceeded"
        assert (await http.post("/chat/completions", json=user("x" * 400))).status_code == 200


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


@pytest.mark.parametrize(
    ("kind", "status", "code"),
    [
        ("429", 429, "rate_limit_exceeded"),
        ("insufficient_quota", 429, "insufficient_quota"),
        ("402", 402, "insufficient_quota"),
        ("401", 401, "invalid_api_key"),
        ("500", 500, None),
        ("529", 529, None),
        ("context", 400, "context_length_exceeded"),
    ],
)
async def test_refusals_have_the_error_body_of_openai(
    kind: str, status: int, code: str | None
) -> None:
    async with both() as (model, http):
        model.say("kept")
        model.named_fault(kind)

        response = await http.post("/chat/completions", json=user("x"))

        assert (response.status_code, response.json()["error"]["code"]) == (status, code)
        assert response.headers.get("Retry-After") == ("1" if kind == "429" else None)
        assert await words(http, user("x")) == "kept"


@pytest.mark.parametrize("streamed", [False, True])
async def test_answers_are_deformed_on_demand(streamed: bool) -> None:
    async with both(chunk_size=1000) as (model, http):

        async def deformed(kind: str) -> Json:
            model.call("look", {"path": "notes.md"})
            model.named_fault(kind)
            if not streamed:
                answer = await ask(http, user("x"))
                return {**answer["choices"][0], **answer["choices"][0]["message"]}
            joined: Json = {"content": None, "tool_calls": {}}
            for chunk in (await events(http, user("x")))[:-1]:
                (choice,) = json.loads(chunk)["choices"]
                joined["finish_reason"] = choice["finish_reason"]
                for one in choice["delta"].pop("tool_calls", ()):
                    at = joined["tool_calls"].setdefault(one["index"], one)
                    at["function"]["arguments"] = one["function"]["arguments"]
                joined |= {k: v for k, v in choice["delta"].items() if v}
            joined["tool_calls"] = list(joined["tool_calls"].values())
            return joined

        empty = await deformed("empty")
        thought = await deformed("reasoning_only")
        length = await deformed("length")
        broken = await deformed("bad_arguments")
        double = await deformed("double_id")
        missing = await deformed("missing_id")
        filtered = await deformed("content_filter")

        assert (empty["content"] or "", empty["finish_reason"]) == ("", "stop")
        assert not empty.get("tool_calls")
        assert thought["reasoning_content"]
        assert not thought["content"]
        assert length["finish_reason"] == "length"
        assert length["tool_calls"][0]["function"]["arguments"] == '{"path": "'
        with pytest.raises(ValueError):
            json.loads(broken["tool_calls"][0]["function"]["arguments"])
        assert len({one["id"] for one in double["tool_calls"]}) == 1
        assert len(double["tool_calls"]) == 2
        assert not missing["tool_calls"][0].get("id")
        assert filtered["finish_reason"] == "content_filter"


async def test_a_stream_can_be_cut_or_reset_or_garbled() -> None:
    async with both(chunk_size=1) as (model, http):
        model.named_fault("cut", chunks=3)
        model.named_fault("bad_chunk", chunks=2)
        model.named_fault("stream_reset", chunks=2)
        model.named_fault("no_usage")

        cut = await events(http, user("x"))
        garbled = await events(http, user("x"))
        with pytest.raises(httpx.TransportError):
            await events(http, user("x"))
        whole = await events(http, user("x", stream_options={"include_usage": True}))

        assert len(cut) == 3
        assert "[DONE]" not in cut
        with pytest.raises(ValueError):
            json.loads(garbled[-1])
        assert not any("usage" in chunk for chunk in whole)


async def test_a_stalled_stream_says_no_more_until_the_client_leaves() -> None:
    async with both(chunk_size=1) as (model, http):
        model.named_fault("stall", chunks=2)
        two = asyncio.Event()
        listening = asyncio.create_task(listen(http, [], two))

        await two.wait()
        listening.cancel()

        await model.until(lambda: model.calls("chat")[0].client_there is False)


async def listen(http: httpx.AsyncClient, got: list[str], two: asyncio.Event | None = None) -> None:
    body = user("x", stream=True)
    async with http.stream("POST", "/chat/completions", json=body) as response:
        async for line in response.aiter_lines():
            got.append(line)
            if two is not None and len([line for line in got if line]) == 2:
                two.set()
