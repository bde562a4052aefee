"""Documents are cut where they would be cut by hand, and nothing of them is lost."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from memory.search.documents import OVERLAP_CHARS, PASSAGE_CHARS, passages, table_passages


def test_a_passage_ends_with_a_paragraph_if_one_ends_near() -> None:
    first, second = "word " * 140, "next " * 140

    assert next(iter(passages(f"{first.strip()}.\n\n{second}"))) == f"{first.strip()}."


TEXTS = st.text(alphabet=st.sampled_from("ab .!\n日。"), max_size=300).map(lambda text: text * 12)


@settings(max_examples=80, deadline=None)
@given(text=TEXTS)
def test_nothing_is_lost_and_every_passage_fits(text: str) -> None:
    found = list(passages(text))

    assert all(0 < len(passage) <= PASSAGE_CHARS for passage in found)
    assert len(found) <= 1 + len(text) // 500
    place = 0
    for passage in found:
        start = text.index(passage, max(place - OVERLAP_CHARS - PASSAGE_CHARS, 0))
        assert start <= place or not text[place:start].strip()
        place = max(place, start + len(passage))
    assert not text[place:].strip()


def test_a_table_repeats_its_first_line_and_cuts_between_rows() -> None:
    rows = [f"item {n},{n * 3},in stock" for n in range(120)]

    found = list(table_passages("name,price,state\n" + "\n".join(rows)))

    assert len(found) > 2
    assert all(passage.startswith("name,price,state\n") for passage in found)
    assert all(len(passage) <= PASSAGE_CHARS for passage in found)
    assert [row for passage in found for row in passage.split("\n")[1:]] == rows


@settings(max_examples=60, deadline=None)
@given(text=st.text(alphabet=st.sampled_from("ab,\n"), max_size=200).map(lambda text: text * 9))
def test_no_row_of_a_table_is_lost(text: str) -> None:
    found = list(table_passages(text))

    assert all(0 < len(passage) <= PASSAGE_CHARS for passage in found)
    kept = re.sub(r"\s", "", "".join(found))
    assert len(kept) >= len(re.sub(r"\s", "", text))
