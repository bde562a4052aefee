"""Bytes of the web as text, whatever was said of them."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.web.article import text_of

PAGE = '<html><head><meta charset="{}"><title>{}</title>'


@pytest.mark.parametrize(
    ("text", "charset", "said"),
    [
        ("Grüße – “schön” €", "utf-8", "utf-8"),
        ("Grüße – “schön” €", "cp1252", "iso-8859-1"),
        ("Привет, мир", "cp1251", "windows-1251"),
        ("Привет, мир", "koi8-r", "KOI8-R"),
        ("こんにちは①", "cp932", "Shift_JIS"),
        ("こんにちは", "iso2022_jp", "iso-2022-jp"),
        ("你好，世界㐀", "gb18030", "gb2312"),
        ("안녕하세요 똠", "cp949", "euc-kr"),
        ("İstanbul ğ", "cp1254", "iso-8859-9"),
        ("สวัสดี", "cp874", "tis-620"),
        ("Grüße", "utf-16-le", "utf-16-le"),
    ],
)
def test_text_is_read_by_what_the_header_says(text: str, charset: str, said: str) -> None:
    assert text_of(text.encode(charset), said) == text


@pytest.mark.parametrize(
    ("text", "charset", "said"),
    [
        ("Привет", "cp1251", "windows-1251"),
        ("こんにちは", "cp932", "shift_jis"),
        ("Grüße", "utf-8", "utf-8"),
        ("Grüße", "utf-8", "utf-16"),
    ],
)
def test_text_is_read_by_what_the_page_says(text: str, charset: str, said: str) -> None:
    page = PAGE.format(said, text)

    assert text_of(page.encode(charset)) == page


def test_a_byte_order_mark_wins() -> None:
    for mark, charset in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        assert text_of(mark + "Grüße €".encode(charset), "windows-1251") == "Grüße €"


@pytest.mark.parametrize(
    "said", ["rot13", "hex", "zlib", "bz2", "base64", "idna", "punycode", "unicode_escape",
             "raw_unicode_escape", "utf-7", "undefined", "no-such-charset", "x" * 200, "\x00"]
)  # fmt: skip
def test_a_codec_that_is_no_charset_is_not_run(said: str) -> None:
    assert text_of(b"uryyb \\u0041", said) == "uryyb \\u0041"


def test_what_was_wrongly_called_utf_8_is_still_readable() -> None:
    assert text_of("Grüße aus München".encode("cp1252"), "utf-8") == "Grüße aus München"
    assert text_of(PAGE.format("cp1251", "Привет").encode("cp1251"), "utf-8").endswith(
        "Привет</title>"
    )


def test_a_plain_file_does_not_name_its_own_charset() -> None:
    text = 'On <meta charset="windows-1251"> tags: é'

    assert text_of(text.encode(), may_name_its_own=False) == text


@given(st.binary(max_size=300), st.text(max_size=20))
def test_no_body_and_no_charset_makes_it_fail(body: bytes, said: str) -> None:
    assert isinstance(text_of(body, said), str)
