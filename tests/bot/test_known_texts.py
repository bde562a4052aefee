"""What is kept in memory only to be quick goes when somebody has something forgotten."""

from __future__ import annotations

from agent.prompt import tokens
from bot.app.memory import drop_known_texts
from memory.records import words
from memory.search.vectors import Embedding

WORDS = "The Gloopstone lies under the oak."


async def test_no_text_is_kept_once_something_was_forgotten() -> None:
    kept = (tokens._known, words._known)
    tokens.estimate_tokens(WORDS)
    words.words(WORDS)
    assert all(one.cache_info().currsize for one in kept)

    await drop_known_texts(Embedding(enabled=False))

    assert not any(one.cache_info().currsize for one in kept)
