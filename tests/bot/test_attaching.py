"""Large pictures through the real libraries, and what the extra `pictures` does not cost."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from PIL import Image

from agent.files.scaler import is_installed
from bot.doctor import machine
from bot.doctor.base import FindingLevel
from tests.bot.kit import OWNER, Rig, eventually, rigged
from tests.bot.slack_kit import ANN, SlackRig, slack_rigged
from tests.bot.test_attachments import kept, pictures, told


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with rigged(tmp_path) as made:
        made.set(llm__vision="on")
        yield made


@pytest.fixture
async def slack(tmp_path: Path) -> AsyncIterator[SlackRig]:
    async with slack_rigged(tmp_path) as made:
        made.set(llm__vision="on", attachments__picture_side="400")
        yield made


def wide_png() -> bytes:
    file = io.BytesIO()
    Image.linear_gradient("L").resize((2_000, 1_000)).save(file, "PNG")
    return file.getvalue()


def size_of(content: bytes) -> tuple[int, int]:
    with Image.open(io.BytesIO(content)) as image:
        return image.size


async def test_the_same_copy_is_sent_with_every_later_request(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        rig.says("look", document=wide_png(), file_name="plan.png", mime_type="image/png")
        await eventually(lambda: rig.wrote(1))
        rig.says("and the colour?")
        await eventually(lambda: rig.wrote(2))
        await rig.quiet(bot)

    first, second = rig.model.requests
    (copy,) = pictures(first)
    assert size_of(copy) == (1_568, 784)
    assert pictures(second) == [copy]
    assert sorted(path.read_bytes() for path in kept(rig)) == sorted([copy, wide_png()])
    assert "2000 by 1000 pixels, made smaller for you (1568 by 784)" in told(rig)


async def test_the_copy_of_a_private_picture_goes_with_it(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        rig.says("/private")
        await eventually(lambda: rig.wrote(1))
        rig.says("look", document=wide_png(), file_name="plan.png", mime_type="image/png")
        await eventually(lambda: rig.wrote(2))
        before = kept(rig)
        rig.says("/private off")
        await eventually(lambda: rig.wrote(3))
        await rig.quiet(bot)

    assert len(before) == 2
    assert kept(rig) == []


async def test_how_large_a_picture_is_shown_is_a_setting(slack: SlackRig) -> None:
    async with slack.serving_slack(ANN) as bot:
        slack.writes("what is this?", files={"plan.png": wide_png()})
        await eventually(lambda: len(slack.replies()) == 1)
        await slack.quiet(bot)

    assert [size_of(one) for one in pictures(slack.model.requests[0])] == [(400, 200)]


def test_the_bot_itself_never_loads_the_library() -> None:
    program = (
        "import asyncio, sys\n"
        "import bot.app, bot.app.tools\n"
        "from agent.files.scaler import PillowScaler\n"
        "content = sys.stdin.buffer.read()\n"
        "made = asyncio.run(PillowScaler().scaled(content, side_max=9, bytes_max=10_000))\n"
        "print(made.width, 'PIL' in sys.modules)\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], input=wide_png(), capture_output=True, check=True
    )

    assert done.stdout.decode().split() == ["9", "False"]


def test_doctor_says_what_becomes_of_large_pictures_and_calls_it_no_fault() -> None:
    (here,) = machine.pictures(1_568)
    (without,) = machine.pictures(1_568, installed=False)

    assert is_installed()
    assert (here.level, without.level) == (FindingLevel.OK, FindingLevel.OK)
    assert "copies of 1,568 pixels a side" in here.text
    assert without.text.endswith("to have them made smaller: pip install 'hearthbot[pictures]'")
