"""Large pictures through the real libraries, and what the extra `pictures` does not cost."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from PIL import Image

from tests.bot.kit import OWNER, Rig, eventually, rigged
from tests.bot.test_attachments import kept


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with rigged(tmp_path) as made:
        made.set(llm__vision="on")
        yield made


def wide_png() -> bytes:
    file = io.BytesIO()
    Image.linear_gradient("L").resize((2_000, 1_000)).save(file, "PNG")
    return file.getvalue()


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
