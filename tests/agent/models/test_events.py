"""The event reader gives the same events however the bytes were cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.models import wire as sse
from agent.models.wire import EventReader, EventTooLarge


def read(*pieces: bytes) -> list[str]:
    reader = EventReader()
    events = [event for piece in pieces for event in reader.feed(piece)]
    return events + reader.end()


# Line ends within data would be several lines; other characters may be anything.
texts = st.text(alphabet=st.characters(exclude_characters="\r\n", codec="utf-8"), min_size=1)


@given(
    wanted=st.lists(st.lists(texts, min_size=1, max_size=3), max_size=5),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    noise=st.sampled_from(["", ": ping", "event: message", "id: 7", "retry: 10", "data"]),
    cuts=st.lists(st.integers(0, 400), max_size=12),
)
def test_events_are_the_same_however_the_bytes_are_cut(
    wanted: list[list[str]], end: str, noise: str, cuts: list[int]
) -> None:
    noise = "" if noise == "data" else noise
    stream = "".join(
        (f"{noise}{end}" if noise else "") + "".join(f"data: {line}{end}" for line in lines) + end
        for lines in wanted
    ).encode()
    places = [0, *sorted(cut for cut in cuts if cut < len(stream)), len(stream)]

    events = read(*(stream[a:b] for a, b in pairwise(places)))

    assert events == ["\n".join(lines) for lines in wanted]


@given(st.lists(st.binary(max_size=40), max_size=10))
def test_no_bytes_make_it_fail(pieces: list[bytes]) -> None:
    for event in read(*pieces):
        assert isinstance(event, str)


def test_a_character_cut_in_two_is_put_together() -> None:
    whole = "data: Grüße 🙂\n\n".encode()

    assert read(*(bytes([byte]) for byte in whole)) == ["Grüße 🙂"]


def test_the_last_event_needs_no_blank_line() -> None:
    assert read(b"data: a\n\ndata: b") == ["a", "b"]


def test_a_byte_order_mark_is_not_part_of_the_first_line() -> None:
    assert read(b"\xef\xbb\xbfdata: a\n\n") == ["a"]


def test_only_one_space_after_the_colon_is_dropped() -> None:
    assert read(b"data:  a\ndata:b\n\n") == [" a\nb"]


def test_an_endless_event_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "EVENT_BYTES_MAX", 10)

    with pytest.raises(EventTooLarge):
        read(b"data: ", b"x" * 20)
