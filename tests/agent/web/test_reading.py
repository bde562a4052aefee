"""Pages are read in a process that ends, whatever the page does."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from agent.web.article import Article, PageReader, TooTangled

URL = "https://paper.example/"
SLOW = "<p " + " ".join(f"a{n}=1" for n in range(250_000)) + ">x"
"""A page that would keep the library busy for a long time."""


def children() -> set[str]:
    me = os.getpid()
    return set(Path(f"/proc/{me}/task/{me}/children").read_text().split())


async def test_a_page_is_read_as_it_would_be_here() -> None:
    read = await PageReader().article("<title>Ä</title><p>Ö <a href=/x>ü</a> \ud800</p>", url=URL)

    assert read == Article(markdown="Ö [ü](https://paper.example/x) \ufffd", title="Ä")


async def test_a_page_that_takes_too_long_is_given_up_and_its_process_ended() -> None:
    before = children()
    started = time.monotonic()

    with pytest.raises(TooTangled, match="could not be read in time"):
        await PageReader(read_s=1.0).article(SLOW, url=URL)

    assert time.monotonic() - started < 10
    assert children() <= before
