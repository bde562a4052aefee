"""Every file ends in its text or in one sentence, whatever it does."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from agent.files.extract import BYTES_MAX, FileReader, FileText, file_text
from agent.sandbox.worker import NoRoom
from memory.records.errors import DocumentWrong
from tests.agent.reading import made


def children() -> set[str]:
    me = os.getpid()
    return set(Path(f"/proc/{me}/task/{me}/children").read_text().split())


def why(name: str, content: bytes, *, chars_max: int = 2_000_000) -> str:
    with pytest.raises(DocumentWrong) as refused:
        file_text(name, content, chars_max=chars_max)
    return str(refused.value)


# --- in a process of its own ---------------------------------------------------------------------


async def test_a_file_is_read_in_a_process_as_it_would_be_here() -> None:
    read = await FileReader().read("a/note.md", "# Ä\r\n\r\n\r\n\r\nb".encode())

    assert read == FileText(text="# Ä\n\nb", kind="md")


async def test_several_files_at_once_are_all_read() -> None:
    reader = FileReader()

    read = await asyncio.gather(*(reader.read("a.txt", str(n).encode()) for n in range(5)))

    assert [each.text for each in read] == list("01234")


async def test_why_a_file_cannot_be_read_is_one_sentence_with_its_name() -> None:
    with pytest.raises(
        DocumentWrong, match=r"^'tax\.pdf' is no pdf file, whatever its name says\.$"
    ):
        await FileReader().read("tax.pdf", b"hello")


async def test_a_file_that_is_too_large_is_not_looked_at() -> None:
    with pytest.raises(DocumentWrong, match="20,000,001 bytes"):
        await FileReader().read("a.txt", bytes(BYTES_MAX + 1))


async def test_a_file_that_takes_too_long_is_given_up_and_its_process_ended() -> None:
    before = children()
    slow = b"<p " + b" ".join(b"a%d=1" % n for n in range(250_000)) + b">x"

    with pytest.raises(DocumentWrong, match="takes too long to read"):
        await FileReader(read_s=0.5).read("slow.html", slow)

    assert children() <= before


async def test_a_process_that_dies_or_answers_too_much_is_said_as_a_damaged_file() -> None:
    """Here: a broken PDF on which the library raises something that nobody foresaw."""
    broken = made.pdf("x").replace(b"/Kids [4 0 R]", b"/Kids (nothing")

    with pytest.raises(DocumentWrong, match=r"damaged"):
        await FileReader().read("broken.pdf", broken)


async def test_a_pdf_of_a_million_pages_ends_in_a_sentence() -> None:
    """All of them are one page, named again and again: 6 MB."""
    many = made.pdf("x", times=1_000_000)

    with pytest.raises(DocumentWrong, match="save a part of it"):
        await FileReader().read("many.pdf", many)


async def test_a_process_that_cannot_be_started_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "gone"))

    with pytest.raises(NoRoom, match="try again later"):
        await FileReader().read("a.txt", b"x")


# --- plain text ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "note"),
    [
        ("naïve €".encode(), ""),
        ("naïve €".encode("utf-8-sig"), ""),
        ("naïve €".encode("utf-16"), ""),
        (b"\xfe\xff" + "naïve €".encode("utf-16-be"), ""),
        ("naïve €".encode("windows-1252"), "windows-1252 (a guess)"),
    ],
)
def test_text_is_read_in_the_encodings_that_people_have(content: bytes, note: str) -> None:
    read = file_text("a.txt", content)

    assert read.text == "naïve €"
    assert note in read.note


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.json", "a.html", "a", "a.toml", ".env"])
@pytest.mark.parametrize("content", [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", b"\xff\x01\x02\x03\x04\x05"])
def test_what_is_no_text_is_refused_whatever_it_is_called(name: str, content: bytes) -> None:
    assert "is no text file" in why(name, content)


@pytest.mark.parametrize("content", [b"", b" \n\t ", b"\xef\xbb\xbf", b"\x1b[0m"])
def test_a_file_without_text_is_refused(content: bytes) -> None:
    assert why("a.txt", content) == "has no text in it"


def test_too_much_text_is_refused_rather_than_cut() -> None:
    assert "more than 10 characters" in why("a.txt", b"x" * 11, chars_max=10)
    assert file_text("a.txt", b"x" * 10, chars_max=10).text == "x" * 10


def test_terminal_codes_and_control_characters_are_left_out() -> None:
    assert file_text("a.log", b"a\x1b[31mred\x07\x08").text == "ared"


def test_a_table_stays_its_lines() -> None:
    read = file_text("a.csv", b'name,price\r\n"a, b",2\r\n')

    assert read == FileText(text='name,price\n"a, b",2', kind="csv")


def test_json_gets_a_line_for_each_value_and_stays_as_it_is_where_it_is_none() -> None:
    assert file_text("a.json", '{"ä":[1,2]}'.encode()).text == '{\n "ä": [\n  1,\n  2\n ]\n}'
    assert file_text("a.json", b'{"a":1}\n{"a":2}').text == '{"a":1}\n{"a":2}'
    assert file_text("a.json", b"[" * 50_000).text == "[" * 50_000


def test_json_that_would_grow_without_end_is_refused() -> None:
    deep = b"[" * 400 + b",".join(b"[1,1]" for _ in range(2_000)) + b"]" * 400

    assert "more than 100,000 characters" in why("a.json", deep, chars_max=100_000)


def test_a_web_page_becomes_markdown_with_its_title() -> None:
    page = b"<title>Tea</title><script>x()</script><h2>Kinds</h2><p>green &amp; black</p>"

    assert file_text("a.html", page).text == "# Tea\n\n## Kinds\n\ngreen & black"


# --- what a name says and what is in the file ----------------------------------------------------


def test_a_file_is_what_is_in_it() -> None:
    assert file_text("a.txt", made.pdf("Hello")).kind == "pdf"
    assert file_text("a.bin", made.docx(made.paragraph("Hello"))).kind == "docx"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.docx", b"hello", "is no docx file"),
        ("a.pdf", b"<html>", "is no pdf file"),
        ("a.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1...", "old Office file"),
        ("a.xlsx", made.archive({"xl/workbook.xml": "x"}), "Excel"),
        ("a.pptx", made.archive({"ppt/x.xml": "x"}), "PowerPoint"),
        ("a.odt", made.archive({"content.xml": "x"}), "OpenDocument"),
        ("a.zip", made.archive({"a.txt": "x"}), "archive"),
    ],
)
def test_what_cannot_be_read_says_what_it_is(name: str, content: bytes, said: str) -> None:
    assert said in why(name, content)
