"""The stand-in for Telegram with people in it, who write again as soon as they are answered.

`python -m tests.bench.crowd` runs it as a process of its own; `/lab/talk` sets the people going.
They live where the messages arrive, so that measuring costs the two cores next to nothing.
"""

import asyncio
import re
from dataclasses import dataclass, field
from typing import Any

from aiohttp.web_request import BaseRequest

from bot.lab.server import Entry, common_options, serve_until_interrupted
from bot.lab.telegram import FakeTelegram
from tests.bench.stage import OWNER

MARK = re.compile(r"\bm(\d+)x(\d+)\b")
"""Stands in every message and comes back in its answer: chat and number."""


@dataclass(slots=True)
class _Person:
    chat: int
    left: int
    number: int = 0
    asked_at: float | None = None


@dataclass(slots=True, kw_only=True)
class _Talk:
    """What is said while `talk` runs, and what came of it. Times are CLOCK_MONOTONIC seconds."""

    text: str
    think_s: float
    people: dict[int, _Person]
    turns: list[tuple[float, float]] = field(default_factory=list)
    strange: list[str] = field(default_factory=list)
    extra: int = 0
    over: asyncio.Event = field(default_factory=asyncio.Event)


class Crowd(FakeTelegram):
    """`FakeTelegram`, and one more order: a number of people who talk."""

    _talk: _Talk | None = None

    async def talk(
        self,
        *,
        chats: int,
        rounds: int,
        text: str = "{mark} how are you today?",
        think_s: float = 0.0,
        first_chat: int = OWNER,
        timeout_s: float = 60.0,
    ) -> dict[str, Any]:
        """Each person writes `rounds` messages, each after the answer to the one before.

        Answers with the times of each turn: when the update was there, and when its reply came.
        `strange` replies bear another mark than they should, `extra` ones answer nothing,
        `lost` messages were not answered in time.
        """
        numbers = range(first_chat, first_chat + chats)
        people = {number: _Person(number, rounds) for number in numbers}
        talk = self._talk = _Talk(text=text, think_s=think_s, people=people)
        began = self._clock()
        for person in people.values():
            self._ask(talk, person)
        try:
            async with asyncio.timeout(timeout_s):
                await talk.over.wait()
        except TimeoutError:
            pass  # what is lost is counted below
        await asyncio.sleep(think_s)
        return {
            "turns": talk.turns,
            "seconds": self._clock() - began - think_s,
            "strange": talk.strange,
            "extra": talk.extra,
            "lost": sum(person.left + (person.asked_at is not None) for person in people.values()),
        }

    def _ask(self, talk: _Talk, person: _Person) -> None:
        person.left -= 1
        person.number += 1
        person.asked_at = self._clock()
        mark = f"m{person.chat}x{person.number}"
        self.message(chat_id=person.chat, text=talk.text.replace("{mark}", mark))

    def _finish(self, entry: Entry, request: BaseRequest, *, status: int) -> None:
        super()._finish(entry, request, status=status)
        if self._talk is not None and entry.method == "sendMessage":
            self._hear(self._talk, entry)

    def _hear(self, talk: _Talk, entry: Entry) -> None:
        """A person reads a reply; the time that counts is that of its arrival."""
        person = talk.people.get(int(entry.params["chat_id"]))
        if person is None or person.asked_at is None:
            talk.extra += 1
            return
        text = str(entry.params.get("text", ""))
        found = MARK.search(text)
        if found is None or found.groups() != (str(person.chat), str(person.number)):
            talk.strange.append(text[:200])
        talk.turns.append((person.asked_at, entry.at))
        person.asked_at = None
        if person.left:
            asyncio.get_running_loop().call_later(talk.think_s, self._ask, talk, person)
        elif not any(p.left or p.asked_at is not None for p in talk.people.values()):
            talk.over.set()


def main() -> None:
    """Run as a process of its own."""
    parser = common_options("The stand-in for Telegram, with people who talk.")
    parser.add_argument("--token", required=True)
    given = parser.parse_args()
    serve_until_interrupted(lambda: Crowd(given.token, port=given.port, log_cap=given.log_cap))


if __name__ == "__main__":
    main()
