"""Makes a page into text in a process of its own, which is ended when it takes too long.

Some pages keep the library busy for minutes (200,000 attributes on one tag were six seconds, and
cost grows with the square). The process of `agent.apart` has an empty environment and bounds on
time and memory, so that a page can harm neither the bot nor what it holds.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import asdict

from agent.apart import Bounds, answer_of, bound_itself
from agent.errors import Temporary
from agent.text import without_surrogates
from agent.web.article import HTML_CHARS_MAX, Article, NotReadable, article

READ_S = 15.0
CPU_S = 12
MEMORY_BYTES = 2_000_000_000
AT_ONCE = 2
ANSWER_BYTES_MAX = 64_000_000


class TooTangled(Temporary):
    """The page could not be read in time."""


class NoRoom(Temporary):
    """The process could not be started."""


class PageReader:
    """Reads pages, a few at once. `read_s` is the limit of one, in seconds."""

    def __init__(self, *, read_s: float = READ_S) -> None:
        self._read_s = read_s
        self._bounds = Bounds(read_s=read_s, answer_bytes_max=ANSWER_BYTES_MAX)
        self._places = asyncio.Semaphore(AT_ONCE)

    async def article(self, html: str, *, url: str) -> Article:
        """The text of a page. Raises TooTangled, NoRoom, NotReadable."""
        html = without_surrogates(html[: HTML_CHARS_MAX + 1])
        asked = json.dumps({"html": html, "url": url}, ensure_ascii=False).encode()
        try:
            async with asyncio.timeout(2 * self._read_s), self._places:
                answer = await answer_of(__name__, asked, self._bounds)
        except TimeoutError as error:
            raise TooTangled(
                "The page is so tangled that its text could not be read in time; look for another "
                "page that says the same."
            ) from error
        except OSError as error:
            raise NoRoom(
                "The page could not be read, since this machine has no room for another process "
                "now; try again later."
            ) from error
        try:
            return Article(**json.loads(answer))
        except (ValueError, TypeError) as error:  # it ended without a word
            raise NotReadable("The page could not be made into text.") from error


def main() -> None:
    """The process: a page on standard input, its text on standard output, both as JSON."""
    bound_itself(cpu_s=CPU_S, memory_bytes=MEMORY_BYTES)
    asked = json.loads(sys.stdin.buffer.read())
    found = article(asked["html"], url=asked["url"])
    sys.stdout.buffer.write(json.dumps(asdict(found)).encode())
