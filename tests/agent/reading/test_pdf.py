"""PDF files: their text, and the ways in which they are broken or made to harm."""

from __future__ import annotations

import pytest

from agent.files.extract import FileReader
from agent.files.formats import PAGES_MAX, pdf_text
from memory.records.errors import DocumentWrong
from tests.agent.reading import made


def read(content: bytes, *, chars_max: int = 100_000) -> str:
    return pdf_text(content, chars_max=chars_max).text


def test_pages_are_read_in_their_order() -> None:
    text = read(made.pdf("First line\nsecond line", "Page two"))

    assert text == "First line\nsecond line\n\nPage two"


def test_a_word_that_goes_on_in_the_next_line_is_joined() -> None:
    assert read(made.pdf("a trans-\nport, A-\nB")) == "a transport, A-\nB"


def test_the_dots_of_a_table_of_contents_are_one() -> None:
    assert read(made.pdf("Preface . . . . . . . . . 7\nIndex ........ 9...")) == (
        "Preface … 7\nIndex … 9..."
    )


@pytest.mark.parametrize(
    ("well", "broken"), [(b"/Filter /Standard", b"/Filter /StandArd"), (b"/V 2", b"/V 9")]
)
def test_an_encryption_that_nobody_knows_is_said(well: bytes, broken: bytes) -> None:
    locked = made.locked_pdf("x", password="")
    assert well in locked

    with pytest.raises(DocumentWrong, match="encrypted in a way"):
        read(locked.replace(well, broken))


def test_a_broken_table_of_objects_is_found_anew() -> None:
    broken = made.pdf("Still here").replace(b"0000000009 00000 n", b"9999999999 00000 n")

    assert read(broken) == "Still here"


@pytest.mark.parametrize("keep", [20, 200, 400])
def test_a_file_that_was_cut_short_ends_in_a_sentence(keep: int) -> None:
    with pytest.raises(DocumentWrong, match="damaged"):
        read(made.pdf("x", "y")[:keep])


def test_a_file_with_a_password_is_refused_and_one_that_readers_may_open_is_read() -> None:
    with pytest.raises(DocumentWrong, match="has a password"):
        read(made.locked_pdf("secret", password="1234"))

    assert read(made.locked_pdf("open", password="")) == "open"


@pytest.mark.parametrize(
    ("well", "broken"),
    [(b"(two) Tj", b"(two] Tj"), (b"(two) Tj", b"[two Tj "), (b"/Length 43", b"/Filter /Nope")],
)
def test_pages_that_cannot_be_read_are_counted(well: bytes, broken: bytes) -> None:
    whole = made.pdf("one", "two")
    place = whole.rindex(well)

    found = pdf_text(whole[:place] + broken + whole[place + len(well) :], chars_max=1_000)

    assert (found.text, found.note) == ("one", "1 of its 2 pages could not be read")


def test_where_no_page_can_be_read_it_is_said() -> None:
    with pytest.raises(DocumentWrong, match="none of its pages"):
        read(made.pdf("two").replace(b"(two) Tj", b"(two] Tj"))


def test_too_many_pages_are_refused() -> None:
    with pytest.raises(DocumentWrong, match=f"more than {PAGES_MAX:,} pages"):
        read(made.pdf("x", times=PAGES_MAX + 1))


def test_more_text_than_is_wanted_is_refused() -> None:
    with pytest.raises(DocumentWrong, match="more than 10 characters"):
        read(made.pdf("long enough for that"), chars_max=10)


async def test_a_bomb_ends_in_a_sentence() -> None:
    with pytest.raises(DocumentWrong, match="damaged"):
        await FileReader().read("bomb.pdf", made.pdf_bomb(bytes_unpacked=100_000_000))
