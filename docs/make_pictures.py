"""Makes docs/pictures/*.svg from real runs of the bot: `python -m docs.make_pictures`, or with the
names of some of them.

The bot, its files and its database are the real ones, in a home that is thrown away. Telegram,
Slack and the model are the stand-ins of `bot/lab`, so the model's words were written for the
pictures; where times are shown the clock was set. What differs from run to run (a code, a port) is
put right before it is drawn, so a second run gives the same pictures.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from docs.pictures.elsewhere import schedule, slack
from docs.pictures.in_telegram import approval, conversation, evening

PICTURES = Path(__file__).parent / "pictures"

Scene = Callable[[Path], Awaitable[str]]
SCENES: Mapping[str, Scene] = {
    "conversation": conversation,
    "approval": approval,
    "evening": evening,
    "slack": slack,
    "schedule": schedule,
}


async def make(name: str) -> str:
    """The picture of this name, from a run in a folder that is thrown away."""
    with tempfile.TemporaryDirectory(prefix="hearthbot-picture-") as folder:
        return await SCENES[name](Path(folder))


def main() -> None:
    for name in sys.argv[1:] or SCENES:
        svg = asyncio.run(make(name))
        (PICTURES / f"{name}.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
