"""Makes docs/pictures/*.svg from real runs of the bot: `python docs/make_pictures.py`.

The bot, its files and its database are the real ones, in a home that is thrown away. Telegram and
the model are the stand-ins of `bot/lab`, so the model's words were written for the picture.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import tempfile
from io import StringIO
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.markdown import Markdown
from rich.padding import Padding
from rich.text import Text

from bot.lab.model import ScriptedModel
from bot.lab.telegram import FakeTelegram

PICTURES = Path(__file__).parent / "pictures"
HEARTHBOT = Path(sys.executable).with_name("hearthbot")
ANN = 4242

# The fonts of the reader, not ones fetched from somewhere.
FORMAT = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL).replace(
    "Fira Code", "ui-monospace, Menlo, Consolas, DejaVu Sans Mono"
)


class Picture:
    """A terminal that is drawn instead of shown."""

    def __init__(self) -> None:
        self._console = Console(record=True, width=84, file=StringIO(), force_terminal=True)

    def typed(self, line: str) -> None:
        """A command in a shell."""
        self._console.print(Text.assemble(("$ ", "green"), (line, "bold")))

    def printed(self, text: str) -> None:
        """What a command printed."""
        self._console.print(Text(text.rstrip()))

    def shell(self, line: str, printed: str) -> None:
        """A command and its output."""
        self.typed(line)
        self.printed(printed)
        self._console.print()

    def said(self, who: str, text: str) -> None:
        """A message in a chat."""
        self._console.print(Text(who, style="bold cyan" if who == "Ann" else "bold yellow"))
        self._console.print(Padding(Markdown(text), (0, 0, 1, 2)))

    def aside(self, text: str) -> None:
        """What happens meanwhile."""
        self._console.print(Text(f"  {text}\n", style="dim italic"))

    def save(self, name: str, title: str) -> None:
        """As SVG; equal runs give equal files."""
        PICTURES.mkdir(exist_ok=True)
        svg = self._console.export_svg(title=title, code_format=FORMAT, unique_id=name)
        lines = (line.rstrip() for line in svg.splitlines())
        (PICTURES / f"{name}.svg").write_text("\n".join(lines) + "\n", encoding="utf-8")


class Scene:
    """A home and the two stand-ins."""

    def __init__(self, home: str, telegram: FakeTelegram, model: ScriptedModel) -> None:
        self.telegram = telegram
        self._read = 0
        self._env = {
            **os.environ,
            "HEARTHBOT_HOME": home,
            "HEARTHBOT_TELEGRAM__TOKEN": telegram.token,
            "HEARTHBOT_TELEGRAM__BASE_URL": telegram.base_url,
            "HEARTHBOT_LLM__API_BASE": model.api_base,
            "HEARTHBOT_LLM__MODEL": "lab-model",
        }

    async def start(self) -> asyncio.subprocess.Process:
        """`hearthbot run`, ready to take messages."""
        polls = len(self.telegram.calls("getUpdates"))
        quiet = subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(
            HEARTHBOT, "run", env=self._env, stdin=quiet, stdout=quiet, stderr=quiet
        )
        await self.telegram.until(
            lambda: len(self.telegram.calls("getUpdates")) > polls, timeout_s=20
        )
        return process

    async def command(self, line: str) -> str:
        """A command of the owner's, and what it printed."""
        process = await asyncio.create_subprocess_exec(
            str(HEARTHBOT), *line.split()[1:], env=self._env, stdout=subprocess.PIPE
        )
        out, _ = await process.communicate()
        return out.decode()

    async def answer(self) -> str:
        """The next message that Ann gets."""

        def texts() -> list[str]:
            return [message.text for message in self.telegram.chat(ANN) if message.is_bot]

        await self.telegram.until(lambda: len(texts()) > self._read, timeout_s=30)
        self._read += 1
        return texts()[self._read - 1]


async def draw(home: str) -> None:
    """A first meeting, a tool, and a kill in the middle of an answer."""
    picture = Picture()
    async with FakeTelegram() as telegram, ScriptedModel() as model:
        scene = Scene(home, telegram, model)

        async def ann_says(text: str) -> None:
            telegram.message(chat_id=ANN, text=text)
            picture.said("Ann", text)

        bot = await scene.start()
        await ann_says("Hello?")
        told = await scene.answer()
        picture.said("Hearthbot", told.replace("\n", "\n\n"))
        code = re.findall(r"code: (\w+)", told)[0]
        line = f"hearthbot access approve {code}"
        picture.shell(line, await scene.command(line))

        model.call(
            "write_file",
            {"path": "files/packing.md", "content": "- passports\n- charger\n- raincoat\n"},
        )
        model.say("Done: `files/packing.md` has **passports, charger, raincoat**.")
        await ann_says("Start a packing list: passports, charger, raincoat")
        picture.said("Hearthbot", await scene.answer())
        line = "cat ~/.hearthbot/workspace/files/packing.md"
        packed = Path(home) / "workspace" / "files" / "packing.md"
        picture.shell(line, packed.read_text(encoding="utf-8"))

        model.say("This answer is never seen.", wait_s=30)
        asked = len(model.requests)
        await ann_says("What is still missing for rain?")
        await model.until(lambda: len(model.requests) > asked, timeout_s=20)
        bot.kill()
        await bot.wait()
        picture.aside("kill -9, while the model is being asked. Ann writes once more:")
        await ann_says("And for the beach?")
        model.say("An umbrella. The raincoat is on the list.")
        model.say("Sun cream and a hat.")
        bot = await scene.start()
        picture.aside("Started again. Both messages are answered, in order, once:")
        picture.said("Hearthbot", await scene.answer())
        picture.said("Hearthbot", await scene.answer())
        bot.terminate()
        await bot.wait()
    picture.save("conversation", "Hearthbot in Telegram")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="hearthbot-picture-") as folder:
        asyncio.run(draw(folder))
