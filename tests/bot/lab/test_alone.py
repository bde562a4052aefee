"""The stand-ins as processes of their own, driven over HTTP alone."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from telegram import Bot


@asynccontextmanager
async def process(module: str, *options: str) -> AsyncIterator[str]:
    started = await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, "--port", "0", *options, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert started.stdout is not None
        line = await asyncio.wait_for(started.stdout.readline(), 20)
        yield json.loads(line)["url"]
    finally:
        started.terminate()
        await started.communicate()


async def test_telegram_runs_as_a_process() -> None:
    async with (
        process("bot.lab.telegram", "--token", "1:A") as url,
        Bot("1:A", base_url=f"{url}/bot") as bot,
        httpx.AsyncClient(base_url=f"{url}/lab/") as lab,
    ):
        await lab.post("message", json={"chat_id": 1, "text": "hello", "photo": "anBn"})
        (update,) = await bot.get_updates(timeout=5)
        await bot.send_message(1, "hi")

        assert update.effective_message is not None
        assert update.effective_message.photo
        sent = (await lab.get("sent", params={"chat_id": 1})).json()["result"]
        assert [message["text"] for message in sent] == ["hi"]
        assert (await lab.post("redeliver", json={"update_id": 9})).status_code == 400


async def test_the_model_runs_as_a_process() -> None:
    async with (
        process("bot.lab.model", "--strict", "--model", "m") as url,
        httpx.AsyncClient(base_url=url) as http,
    ):
        body = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
        await http.post("/lab/say", json={"text": "scripted"})
        await http.post("/lab/calls_together", json={"calls": [["look", {}], ["look", {}]]})
        await http.post("/lab/named_fault", json={"kind": "429", "skip": 3})
        answers = [await http.post("/v1/chat/completions", json=body) for _ in range(4)]
        requests = (await http.get("/lab/requests")).json()["result"]

        said = [a.json()["choices"][0]["message"] for a in answers[:3]]
        assert said[0]["content"] == "scripted"
        assert len(said[1]["tool_calls"]) == 2
        assert said[2]["content"] == "You said: hello"
        assert answers[3].status_code == 429
        assert len(requests) == 4
