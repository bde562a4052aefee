"""Short ways to ask a model in tests."""

from __future__ import annotations

from typing import Any

from memory.records.ports import Model
from memory.records.transcript import Answered, ModelRequest, Said


def request(text: str = "Hello", **fields: Any) -> ModelRequest:
    return ModelRequest(system="You are Hearthbot.", entries=(Said(text=text),), **fields)


class Pieces(list[str]):
    """A TextSink that keeps what it was given."""

    restarts = 0

    def __call__(self, piece: str) -> None:
        self.append(piece)

    def restart(self) -> None:
        self.restarts += 1
        self.clear()


async def ask(model: Model, text: str = "Hello", **fields: Any) -> tuple[Answered, list[str]]:
    pieces = Pieces()
    answer = await model.answer(request(text, **fields), on_text=pieces)
    return answer, pieces
