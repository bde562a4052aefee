"""The stand-ins as processes of their own, driven over HTTP alone."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest


@asynccontextmanager
async def process(module: str, *options: str) -> AsyncIterator[httpx.AsyncClient]:
    started = await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, "--port", "0", *options, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert started.stdout is not None
        url = json.loads(await asyncio.wait_for(started.stdout.readline(), 20))["url"]
        async with httpx.AsyncClient(base_url=url) as http:
            yield http
    finally:
        started.terminate()
        await started.communicate()


PERSON_WRITES: dict[str, dict[str, Any]] = {
    "bot.lab.telegram": {"message": {"chat_id": 1, "text": "hello", "photo": "anBn"}},
    "bot.lab.slack": {"post": {"channel": "C1", "text": "hello", "files": {"a.txt": "YQ=="}}},
    "bot.lab.model": {"say": {"text": "hello"}},
}
THEN: dict[str, tuple[str, dict[str, Any], str]] = {
    "bot.lab.telegram": ("chat", {"chat_id": 1}, "hello"),
    "bot.lab.slack": ("shown", {"channel": "C1"}, "U0ANN: 📎 a.txt\n  hello"),
    "bot.lab.model": ("left", {}, "1"),
}
OPTIONS = {
    "bot.lab.telegram": ("--token", "1:A", "--limits"),
    "bot.lab.slack": ("--app-token", "xapp-1", "--retry-scale", "0.01"),
    "bot.lab.model": ("--strict", "--model", "m"),
}


@pytest.mark.parametrize("module", OPTIONS)
async def test_a_stand_in_runs_as_a_process(module: str) -> None:
    async with process(module, *OPTIONS[module]) as http:
        for operation, asked in PERSON_WRITES[module].items():
            assert (await http.post(f"/lab/{operation}", json=asked)).status_code == 200
        operation, asked, shown = THEN[module]
        seen = (await http.get(f"/lab/{operation}", params=asked)).json()["result"]
        wrong = [
            await http.post("/lab/set", json={"nonsense": 1}),
            await http.post("/lab/no-such", json={}),
        ]

        assert shown in str(seen)
        assert [answer.status_code for answer in wrong] == [400, 404]
