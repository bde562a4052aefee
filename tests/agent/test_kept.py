"""What is found out about an entry is kept with it, and goes with it."""

from __future__ import annotations

import gc
import weakref

from agent.prompt.prefix_cache import entry_parts
from agent.prompt.tokens import tokens_of
from agent.turn.steps.plan import as_sent
from memory.records.transcript import Said


def test_words_that_nobody_holds_any_more_are_gone_at_once() -> None:
    class Traced(str):
        """A text that one can see going."""

        __slots__ = ("__weakref__",)

    words = Traced("The Gloopstone lies under the oak. " * 50)
    entry, trace = Said(text=words), weakref.ref(words)
    entry_parts([entry])
    tokens_of(entry)
    as_sent(entry)
    gc.disable()
    try:
        del entry, words

        assert trace() is None
    finally:
        gc.enable()
