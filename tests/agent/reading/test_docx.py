"""Word files: their text in reading order, and the ways in which they are made to harm."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.files.extract import FileReader
from agent.files.formats import docx_text
from memory.records.errors import DocumentWrong
from tests.agent.reading.made import archive, document, docx, paragraph, unpacks_to


def read(content: bytes, *, chars_max: int = 100_000) -> str:
    return docx_text(content, chars_max=chars_max)


def cell(*texts: str) -> str:
    return f"<w:tc>{''.join(paragraph(text) for text in texts)}</w:tc>"


def test_headings_paragraphs_and_lists_are_read_in_their_order() -> None:
    body = (
        paragraph("Lease", style="Heading1")
        + paragraph("Rent is ", "1,200 &amp; heating.")
        + paragraph("Keys: two", listed=True)
        + paragraph("")
    )

    assert read(docx(body)) == "# Lease\n\nRent is 1,200 & heating.\n\n- Keys: two"


def test_breaks_and_stops_within_a_paragraph_are_kept() -> None:
    body = "<w:p><w:r><w:t>a</w:t><w:br/><w:t>b</w:t><w:tab/><w:t>c</w:t></w:r></w:p>"

    assert read(docx(body)) == "a\nb\tc"


def test_a_table_is_a_line_for_each_row() -> None:
    rows = (
        f"<w:tr>{cell('Item')}{cell('Price')}</w:tr><w:tr>{cell('Tea', 'green')}{cell('')}</w:tr>"
    )

    assert read(docx(f"<w:tbl>{rows}</w:tbl>")) == "| Item | Price |\n\n| Tea green |  |"


def test_a_table_within_a_table_is_read_once() -> None:
    inner = f"<w:tbl><w:tr>{cell('in')}</w:tr></w:tbl>"
    outer = f"<w:tbl><w:tr><w:tc>{inner}</w:tc>{cell('out')}</w:tr></w:tbl>"

    assert read(docx(outer)).count("in") == 1


def test_a_text_box_that_is_written_twice_is_read_once() -> None:
    box = f"<w:txbxContent>{paragraph('boxed')}</w:txbxContent>"
    body = (
        "<w:p><w:r><mc:AlternateContent>"
        f"<mc:Choice>{box}</mc:Choice><mc:Fallback>{box}</mc:Fallback>"
        "</mc:AlternateContent><w:t>around</w:t></w:r></w:p>"
    )

    assert read(docx(body)) == "boxed\n\naround"


def test_what_was_deleted_and_what_fields_compute_is_left_out() -> None:
    body = (
        "<w:p><w:r><w:delText>gone</w:delText><w:instrText>PAGE</w:instrText>"
        "<w:t>stays</w:t></w:r></w:p>"
    )

    assert read(docx(body)) == "stays"


def test_footnotes_follow_the_text() -> None:
    content = archive(
        {
            "word/footnotes.xml": document(paragraph("a note")),
            "word/document.xml": document(paragraph("text")),
        }
    )

    assert read(content) == "text\n\na note"


@pytest.mark.parametrize("target", ["file:///etc/hostname", "http://127.0.0.1:9/x"])
def test_entities_from_outside_are_refused_before_anything_is_fetched(target: str) -> None:
    before = f'<!DOCTYPE d [<!ENTITY e SYSTEM "{target}">]>'

    with pytest.raises(DocumentWrong, match="definitions of its own"):
        read(docx("<w:p><w:r><w:t>&e;</w:t></w:r></w:p>", before=before))


def test_entities_that_grow_without_end_are_refused() -> None:
    lines = "".join(f'<!ENTITY a{n + 1} "{f"&a{n};" * 10}">' for n in range(12))
    before = f'<!DOCTYPE d [<!ENTITY a0 "lol">{lines}]>'

    with pytest.raises(DocumentWrong, match="definitions of its own"):
        read(docx("<w:p><w:r><w:t>&a12;</w:t></w:r></w:p>", before=before))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"PK\x03\x04 and nothing", "damaged"),
        (docx(paragraph("x"))[:-30], "damaged"),
        (archive({"word/document.xml": "<w:p>"}), "no valid XML"),
        (archive({"word/document.xml": ""}), "no valid XML"),
        (docx("&nosuch;"), "no valid XML"),
        (archive({"word/document.xml": '<?xml version="1.0" encoding="UTX-8"?><a/>'}), "damaged"),
    ],
)
def test_a_broken_file_ends_in_a_sentence(content: bytes, said: str) -> None:
    with pytest.raises(DocumentWrong, match=said):
        read(content)


def test_a_part_with_a_password_is_refused() -> None:
    locked = bytearray(docx(paragraph("x")))
    locked[6] |= 1
    central = locked.rindex(b"PK\x01\x02")
    locked[central + 8] |= 1

    with pytest.raises(DocumentWrong, match="has a password"):
        read(bytes(locked))


async def test_a_bomb_ends_in_a_sentence() -> None:
    bomb = unpacks_to("<w:p><w:r><w:t>|</w:t></w:r></w:p>", bytes_unpacked=50_000_000)

    with pytest.raises(DocumentWrong, match="more than 2,000,000 characters"):
        await FileReader().read("bomb.docx", bomb)


def test_what_unpacks_to_too_much_is_given_up() -> None:
    bomb = unpacks_to(f"|{paragraph('x')}", bytes_unpacked=101_000_000)

    with pytest.raises(DocumentWrong, match="unpacks to more than 100 MB"):
        read(bomb)


def test_tags_within_tags_without_end_do_no_harm() -> None:
    deep = "<w:p><w:r><w:t>" * 30_000 + "x" + "</w:t></w:r></w:p>" * 30_000

    assert read(docx(deep)) == "x"


def test_nothing_is_written_where_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    read(archive({"../evil": "x", "word/document.xml": document(paragraph("x"))}))

    assert list(tmp_path.iterdir()) == []
