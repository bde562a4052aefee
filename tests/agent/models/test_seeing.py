"""Pictures in a request: parts for a model that sees, words for one that does not."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

import pytest
from aiohttp import web

from agent.models import chat_request
from agent.models.chat_request import UNSEEN, Dialect
from agent.models.choose import beside, choose
from agent.models.litellm import LiteLLM
from memory.records.errors import AssistantError
from memory.records.section import LlmSettings
from memory.records.transcript import Entry, ModelRequest, ModelTraits, Note, Picture, Said
from tests.agent.files_kit import PNG
from tests.agent.web.sites import site

A = Picture(path="a.png", media_type="image/png", width=10, height=10)
B = Picture(path="b.png", media_type="image/png", width=10, height=10)
NOTE = Note(text="Two pictures came.", pictures=(A, B))
URLS = {"a.png": "data:image/png;base64,AA", "b.png": "data:image/png;base64,BB"}


def sent(
    *entries: Entry, vision: bool = True, plain: bool = False, urls: Mapping[str, str] = URLS
) -> Any:
    request = ModelRequest(system="s", entries=entries, pictures=urls)
    traits = ModelTraits(vision=vision)
    body = chat_request.body("m", request, traits=traits, dialect=Dialect(plain=plain))
    return json.loads(body)["messages"][1:]


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def image(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


@pytest.mark.parametrize("plain", [False, True])
def test_a_model_that_sees_gets_them_between_the_note_and_the_words(plain: bool) -> None:
    (message,) = sent(NOTE, Said(text="what?"), plain=plain)

    note = text("[Two pictures came.]")
    shown = [image(URLS["a.png"]), image(URLS["b.png"])]
    assert message == {"role": "user", "content": [note, *shown, text("what?")]}


def test_one_that_does_not_see_is_told_so() -> None:
    (message,) = sent(NOTE, Said(text="what?"), vision=False)

    assert message["content"] == [text("[Two pictures came.]"), text(UNSEEN), text("what?")]


def test_a_picture_that_is_gone_is_named() -> None:
    (message,) = sent(NOTE, urls={**URLS, "a.png": ""})

    words = text("[The picture a.png is not there any more.]")
    assert message["content"] == [text("[Two pictures came.]"), words, image(URLS["b.png"])]


def test_the_text_of_a_file_follows_the_note() -> None:
    (message,) = sent(Note(text="A file came.", content="<untrusted>\nx\n</untrusted>"))

    assert message["content"] == [text("[A file came.]\n<untrusted>\nx\n</untrusted>")]


@pytest.mark.parametrize(
    ("model", "setting", "sees"),
    [
        ("openai/gpt-4o", "auto", True),
        ("openai/gpt-3.5-turbo", "auto", False),
        ("openai/nobody-knows", "auto", False),
        ("openai/nobody-knows", "on", True),
        ("openai/gpt-4o", "off", False),
    ],
)
async def test_who_sees_is_known_or_set(model: str, setting: str, sees: bool) -> None:
    choice = await choose(
        LlmSettings.model_validate({"model": model, "vision": setting}), env={"OPENAI_API_KEY": "k"}
    )

    assert choice.traits.vision is sees


def test_that_the_main_model_sees_says_nothing_of_another_providers() -> None:
    main = LlmSettings(model="openai/gpt-4o", vision="on")

    assert beside(main, "openai/gpt-4.1").vision == "on"
    assert beside(main, "groq/llama").vision == "auto"
    assert beside(LlmSettings(model="openai/gpt-4o", vision="off"), "groq/llama").vision == "off"


# --- through litellm -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["anthropic/claude-haiku-4-5", "gemini/gemini-2.5-flash"])
async def test_each_provider_gets_the_picture_in_its_own_language(name: str) -> None:
    content = b64encode(PNG).decode()
    asked: list[Any] = []

    async def refuse(request: web.Request) -> web.Response:
        asked.append(await request.json())
        return web.json_response({"error": {"type": "x", "message": "enough"}}, status=400)

    request = ModelRequest(
        system="s",
        entries=(Note(text="One came.", pictures=(A,)), Said(text="what?")),
        pictures={"a.png": f"data:image/png;base64,{content}"},
    )
    traits = ModelTraits(vision=True)
    async with (
        site(refuse) as served,
        LiteLLM(name, api_base=served.url, api_key="key", traits=traits) as model,
    ):
        with pytest.raises(AssistantError):
            await model.answer(request, on_text=lambda _: None)

    (sent,) = asked
    parts = sent["messages"][0]["content"] if "messages" in sent else sent["contents"][0]["parts"]
    shown = [part.get("source") or part.get("inline_data") for part in parts]
    (picture,) = [one for one in shown if one]
    assert picture["data"] == content
    assert (picture.get("media_type") or picture.get("mime_type")) == "image/png"
