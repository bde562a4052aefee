"""The search engine as the tools want it: indexed by name, title and words of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from agent.ports import Ranker


class Described(Protocol):
    """What is known of a thing in words."""

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def text(self) -> str: ...


def ranker_maker(
    *, meanings: bool = True, embedding: object = None
) -> Callable[[Sequence[Described]], Ranker]:
    """Makes rankers that share their embeddings, which are loaded when the first is made.

    `meanings` False: words alone. `embedding` is one that others use too (`memory.embedding`): its
    table takes 70 MB.
    """
    shared: list[object] = [embedding] if meanings and embedding is not None else []

    def make(things: Sequence[Described]) -> Ranker:
        # Numbers and vectors take 100 ms and more to load: not before they are needed.
        from memory.embedding import Embedding
        from memory.search import FOR_TOOLS, Item, Search

        if not shared:
            shared.append(Embedding(enabled=meanings))
        embedding = shared[0]
        assert isinstance(embedding, Embedding)
        items = [Item(id=one.name, title=one.title, text=one.text) for one in things]
        return Search(items, embedding=embedding, weights=FOR_TOOLS)

    return make
