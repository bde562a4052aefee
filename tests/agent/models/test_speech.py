"""Speech to text through litellm, against a server on loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from agent.models.litellm import Speech
from memory.records.errors import AuthRefused, BrokenAnswer, Overloaded
from tests.agent.files_kit import VOICE


class Ears:
    """Answers as OpenAI's transcription does, and keeps what it was sent."""

    def __init__(self) -> None:
        self.status, self.answer = 200, {"text": "buy milk"}
        self.fields: dict[str, Any] = {}
        self.key = ""
        self.api_base = ""

    async def handle(self, request: web.Request) -> web.Response:
        self.key = request.headers.get("Authorization", "")
        for name, value in (await request.post()).items():
            if isinstance(value, web.FileField):
                self.fields[name] = (value.filename, value.file.read())
            else:
                self.fields[name] = value
        return web.json_response(self.answer, status=self.status)


@asynccontextmanager
async def listening() -> AsyncIterator[Ears]:
    ears = Ears()
    app = web.Application()
    app.router.add_post("/v1/audio/transcriptions", ears.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server: Any = site._server
    ears.api_base = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield ears
    finally:
        await runner.cleanup()


@pytest.fixture
async def ears() -> AsyncIterator[Ears]:
    async with listening() as made:
        yield made


async def test_a_recording_is_sent_under_its_name_and_comes_back_as_text(ears: Ears) -> None:
    speech = Speech("whisper-1", api_base=ears.api_base, api_key="lab-key")

    said = await speech.text("voice-1.ogg", VOICE)

    assert said == "buy milk"
    assert ears.fields["file"] == ("voice-1.ogg", VOICE)
    assert ears.fields["model"] == "whisper-1"
    assert ears.key == "Bearer lab-key"


async def test_what_goes_wrong_is_one_of_our_errors_and_holds_no_key(ears: Ears) -> None:
    speech = Speech("openai/whisper-1", api_base=ears.api_base, api_key="lab-key")
    ears.status, ears.answer = 401, {"error": {"message": "bad key lab-key"}}  # type: ignore[dict-item]

    with pytest.raises(AuthRefused) as refused:
        await speech.text("a.ogg", VOICE)

    assert "lab-key" not in str(refused.value)


async def test_an_answer_without_text_is_broken(ears: Ears) -> None:
    speech = Speech("openai/whisper-1", api_base=ears.api_base, api_key="lab-key")
    ears.answer = {"text": None}  # type: ignore[dict-item]

    with pytest.raises((BrokenAnswer, Overloaded)):
        await speech.text("a.ogg", VOICE)


async def test_a_server_that_is_not_there_cannot_be_reached() -> None:
    speech = Speech("whisper-1", api_base="http://127.0.0.1:9/v1", api_key="k")

    with pytest.raises(Overloaded):
        await speech.text("a.ogg", VOICE)
