"""Pages are read in a process that ends, whatever the page does."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from agent.sandbox.worker import NoRoom
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


async def test_a_reading_that_is_cancelled_ends_its_process() -> None:
    before = children()

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1.0):
            await PageReader().article(SLOW, url=URL)

    assert children() <= before


async def test_the_process_knows_nothing_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    before = children()  # a fork server of other tests, perhaps
    reading = asyncio.create_task(PageReader(read_s=60.0).article(SLOW, url=URL))
    environment = ""
    while "PYTHONPATH" not in environment and not reading.done():  # until its exec it is ours
        await asyncio.sleep(0.05)
        for child in children() - before:
            environment = Path(f"/proc/{child}/environ").read_text()

    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading

    assert "PYTHONPATH" in environment
    assert "secret" not in environment


async def test_some_pages_at_once_are_all_read() -> None:
    reader = PageReader()

    read = await asyncio.gather(*(reader.article(f"<p>{n}</p>", url=URL) for n in range(6)))

    assert [each.markdown for each in read] == [str(n) for n in range(6)]


async def test_a_process_that_cannot_be_started_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "gone"))

    with pytest.raises(NoRoom, match="try again later"):
        await PageReader().article("<p>x</p>", url=URL)
