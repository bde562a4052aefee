"""A file that comes with a message, with kills in between: fetched once where it was kept, answered
once in any case. And a photo of a phone: it reaches the model smaller and upright."""

from __future__ import annotations

import base64
import io
import random
import re

import pytest
from PIL import Image

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


PLACE = b"59.9139 N 10.7522 E"


def phone_photo() -> bytes:
    """12 megapixels as a phone saves them: lying on its side, noted which side is up, and where
    it was. Its left half is bright, so upright it is bright above."""
    grain = Image.frombytes("L", (500, 375), random.Random(1).randbytes(500 * 375))
    noisy = grain.resize((4_000, 3_000), Image.Resampling.BICUBIC).point(lambda value: value / 4)
    noisy.paste(noisy.crop((0, 0, 2_000, 3_000)).point(lambda value: value + 180), (0, 0))
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[0x010E] = PLACE.decode()
    file = io.BytesIO()
    noisy.convert("RGB").save(file, "JPEG", quality=100, subsampling=0, exif=exif.tobytes())
    return file.getvalue()


def pictures_in(request: object) -> list[bytes]:
    found = re.findall(r"data:image/jpeg;base64,([A-Za-z0-9+/=]+)", str(request))
    return [base64.b64decode(one) for one in found]


def test_a_photo_of_a_phone_is_seen_smaller_and_upright_also_after_a_kill(
    serving: Home, telegram: Telegram, model: Model
) -> None:
    photo = phone_photo()
    assert len(photo) > 4_000_000
    model.ask("fault", method="chat", action={"kind": "hold", "after": True}, times=1)
    running = serving.start()
    content = base64.b64encode(photo).decode()
    telegram.ask(
        "message",
        chat_id=OWNER,
        document=content,
        file_name="IMG_1.jpg",
        mime_type="image/jpeg",
        caption="what is this?",
    )
    until(lambda: model.received("chat") == 1, about=running.said)
    running.kill()
    model.behave()

    running = serving.start()
    until(lambda: len(telegram.shown(OWNER)) == 1, about=running.said)
    running.end()

    before, after = (pictures_in(request) for request in model.ask("requests"))
    assert before == after
    (seen,) = after
    assert len(seen) < 3_750_000
    assert PLACE not in seen
    with Image.open(io.BytesIO(seen)) as image:
        assert image.size == (1_176, 1_568)
        above, below = (image.convert("L").getpixel((600, y)) for y in (300, 1_300))
    assert isinstance(above, int)
    assert isinstance(below, int)
    assert above > 150 > below
    kept = sorted((serving.path / "workspace" / "files").rglob("IMG_1-*"))
    assert [path.read_bytes() for path in kept] == [photo, seen]
