"""A file that comes with a message, with kills in between: fetched once where it was kept, answered
once in any case."""

from __future__ import annotations

import base64

import pytest

from tests.acceptance.rig import Home, Model, Telegram, until
from tests.agent.files_kit import JPEG

OWNER = 5


@pytest.fixture
def serving(home: Home, telegram: Telegram, model: Model) -> Home:
    home.serve_with(telegram, model, HEARTHBOT_LLM__VISION="on")
    home.approve(OWNER)
    return home


def sends_photo(telegram: Telegram) -> None:
    photo = base64.b64encode(JPEG).decode()
    telegram.ask("message", chat_id=OWNER, photo=photo, caption="what is this?")


def seen_by(model: Model) -> list[bool]:
    """Of each request to the model, whether the picture was in it."""
    url = f"data:image/jpeg;base64,{base64.b64encode(JPEG).decode()}"
    return [url in str(request) for request in model.ask("requests")]


def test_a_file_that_was_kept_is_not_fetched_again_whatever_is_killed(
    serving: Home, telegram: Telegram, model: Model
) -> None:
    telegram.ask("fault", method="file", action={"kind": "hold", "after": True}, times=1)
    running = serving.start()
    sends_photo(telegram)
    until(lambda: telegram.received("file") == 1, about=running.said)
    running.kill()
    telegram.behave()

    model.ask("fault", method="chat", action={"kind": "hold", "after": True}, times=1)
    running = serving.start()
    until(lambda: model.received("chat") == 1, about=running.said)
    running.kill()
    model.behave()

    running = serving.start()
    until(lambda: len(telegram.shown(OWNER)) == 1, about=running.said)
    running.end()

    assert telegram.received("file") == 2  # the first never came
    assert seen_by(model) == [True, True]
    kept = list((serving.path / "workspace" / "files").rglob("photo-*"))
    assert [path.read_bytes() for path in kept] == [JPEG]
    assert len(telegram.shown(OWNER)) == 1
