"""How a model's Markdown reads in Telegram. TDLib, Telegram's own parser, is the judge."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from bot.markup.render import telegram_parts, utf16_length
from tests.judge import telegram_entities, telegram_text

CH_07 = (
    "Set `MY_VAR_NAME` and some_file_name.py, 2 * 3 * 4 = 24, "
    "see [docs](http://h/a_b_(c)) and _unclosed\n```py\nx = 1"
)


def only_markup(text: str) -> str:
    (part,) = telegram_parts(text)
    assert part.source == text
    return part.markup


def shown(text: str) -> str:
    return telegram_text(only_markup(text))


def entities(text: str) -> list[tuple[str, str, str]]:
    return telegram_entities(only_markup(text))


def sentences(length: int, word: str = "prose") -> str:
    sentence = f"Some {word} that goes on. "
    return (sentence * (length // len(sentence) + 1))[:length]


@pytest.mark.case("CH-07")
def test_names_sums_and_links_survive_and_the_plain_text_is_the_original() -> None:
    (part,) = telegram_parts(CH_07)

    assert part.source == CH_07
    assert telegram_text(part.markup) == (
        "Set MY_VAR_NAME and some_file_name.py, 2 * 3 * 4 = 24, "
        "see docs (http://h/a_b_(c)) and _unclosed\nx = 1"
    )
    assert telegram_entities(part.markup) == [
        ("Code", "MY_VAR_NAME", ""),
        ("PreCode", "x = 1", "py"),
    ]


@pytest.mark.case("CH-07")
def test_every_beginning_of_a_streamed_reply_is_accepted() -> None:
    for end in range(1, len(CH_07) + 1):
        (part,) = telegram_parts(CH_07[:end])

        assert part.source == CH_07[:end]
        assert telegram_text(part.markup).strip()


@pytest.mark.case("CH-09")
def test_a_long_reply_is_cut_into_balanced_parts_that_join_to_the_original() -> None:
    prose, code = sentences(1_500), "".join(f"line_{n} = {n}  # <&>\n" for n in range(240))
    end = f"{sentences(600)}**bold {sentences(1_500)}end** {sentences(400)}"
    text = f"{prose}\n\n```python\n{code}```\n\n{end}"
    assert 5_000 <= len(code) <= 5_400

    parts = telegram_parts(text)

    assert "".join(part.source for part in parts) == text
    assert len(parts) == 3
    for part in parts:
        assert utf16_length(telegram_text(part.markup)) <= 4_096
        assert utf16_length(part.source) <= 4_096
    blocks = [
        covered
        for part in parts
        for kind, covered, language in telegram_entities(part.markup)
        if kind == "PreCode" and language == "python"
    ]
    assert len(blocks) == 2
    assert "\n".join(blocks) == code.rstrip("\n")


@pytest.mark.case("CH-09")
def test_bold_that_crosses_a_border_is_closed_and_opened_again() -> None:
    text = sentences(3_000) + "**" + sentences(3_000, "bold") + "end** after"

    first, second = telegram_parts(text)

    assert first.markup.endswith("</b>")
    assert second.markup.startswith("<b>")
    assert [kind for kind, _, _ in telegram_entities(first.markup)] == ["Bold"]
    assert [kind for kind, _, _ in telegram_entities(second.markup)] == ["Bold"]


@pytest.mark.case("CH-09")
@pytest.mark.parametrize(
    "block",
    [
        "```\n" + "code(1)\n" * 400 + "```",
        "```\n" + "if a: b = 1. No more\n" * 150 + "```",
        "one | two\n--- | ---\n" + "One word. | And two more\n" * 125,
    ],
)
def test_a_block_of_code_or_a_table_that_fits_in_one_part_is_not_cut(block: str) -> None:
    text = sentences(1_500) + f"\n\n{block}\n\nafter"

    first, second = telegram_parts(text)

    assert first.source.rstrip() == sentences(1_500).rstrip()
    assert [kind for kind, _, _ in telegram_entities(second.markup)] == ["Pre"]


def test_a_long_line_of_code_in_a_quotation_stays_quoted_code() -> None:
    text = "> ```\n> " + "word " * 60 + "\n> more\n> ```"

    parts = telegram_parts(text, limit=128)

    assert len(parts) > 2
    for part in parts:
        kinds = {kind for kind, _, _ in telegram_entities(part.markup)}
        assert kinds == {"BlockQuote", "Pre"}


def test_parts_end_with_a_paragraph_where_one_ends_late_enough() -> None:
    text = sentences(3_000) + "\n\n" + sentences(3_000)

    first, second = telegram_parts(text)

    assert first.source.rstrip() == sentences(3_000).rstrip()
    assert second.source == sentences(3_000)


def test_a_link_is_not_cut_when_it_fits_in_one_part() -> None:
    label = "words of a label " * 12
    text = "x" * 60 + f"([{label.strip()}](https://x.org))"

    parts = telegram_parts(text, limit=256)

    assert [part.source[:1] for part in parts] == ["x", "["]
    assert telegram_entities(parts[1].markup) == [("TextUrl", label.strip(), "https://x.org/")]


def test_a_part_of_code_keeps_its_indent() -> None:
    text = "```py\n" + "    indented = 1\n" * 30 + "```"

    parts = telegram_parts(text, limit=100)

    assert all(telegram_text(part.markup).startswith("    indented") for part in parts)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# Title *x*", [("Bold", "Title x", ""), ("Italic", "x", "")]),
        ("**b** *i* ~~s~~ `c`", [("Bold", "b", ""), ("Italic", "i", "")]),
        ("||hush||", [("Spoiler", "hush", "")]),
        ("a || b || c", []),
        ("**a `c` b**", [("Bold", "a ", ""), ("Code", "c", ""), ("Bold", " b", "")]),
        ("[`c`](https://x.org)", [("TextUrl", "c", "https://x.org/")]),
        ("[tg](tg://resolve?domain=x)", [("TextUrl", "tg", "tg://resolve?domain=x")]),
        ("![cat](https://x.org/c.png)", [("TextUrl", "cat", "https://x.org/c.png")]),
        ("> a\n>> b\n\nc", [("BlockQuote", "a\nb", "")]),
        ("```c++\nx\n```", [("PreCode", "x", "c++")]),
        ('```"><b>\nx\n```', [("Pre", "x", "")]),
        ("    x = 1", [("Pre", "x = 1", "")]),
    ],
)
def test_markdown_becomes_what_telegram_has(
    text: str, expected: list[tuple[str, str, str]]
) -> None:
    assert entities(text)[: len(expected) or None] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- a\n- b\n  - c\n    1. d\n    2. e", "• a\n• b\n   • c\n      1. d\n      2. e"),
        ("3. a\n4. b", "3. a\n4. b"),
        ("- [ ] to do\n- [x] done", "☐ to do\n☑ done"),
        ("- a\n\n  b", "• a\n\n   b"),
        ("- a\n- ", "• a\n•"),
        ("a\n\n---\n\nb", "a\n\n————————\n\nb"),
        ("one\ntwo  \nthree", "one\ntwo\nthree"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("<b>x</b> &amp; &lt; \\*", "<b>x</b> & < *"),
        ("[x](javascript:alert(1))", "[x](javascript:alert(1))"),
        ("[x](file:///etc/passwd)", "[x](file:///etc/passwd)"),
        ("[me](mailto:a@b.org) <a@b.org>", "me (mailto:a@b.org) a@b.org"),
        ("[https://bank.org](https://evil.org/?d)", "https://bank.org (https://evil.org/?d)"),
        ("[**bank**.org](https://evil.org)", "bank.org (https://evil.org)"),
        ("![bank.org](https://evil.org/i)", "bank.org (https://evil.org/i)"),
        ("[web](http://localhost:80/x)", "web (http://localhost:80/x)"),
        ("[](https://x.org)", "https://x.org"),
        ("[r]: https://x.org\n\nsee [r]", "[r]: https://x.org\n\nsee [r]"),
        ("https://x.org/a_b_c*d*e_f, snake_case_name", None),
        ("see __init__.py, __name__ and a__b__c", None),
        ("**https://x.org/q_**", "https://x.org/q_"),
        ("$a_1 * b_2 * c$ and \\(x_1*y*\\)", None),
        ("$$\na_1 *b* c\n$$", None),
        ("it costs $5, **not** $6", "it costs $5, not $6"),
        ("a\x00b\x1bc\ud83d", "abc\ufffd"),
        ("> ", ">"),
        ("```\n```", "```\n```"),
    ],
)
def test_it_reads_as_it_was_meant(text: str, expected: str | None) -> None:
    assert shown(text) == (text if expected is None else expected)


def test_a_table_becomes_columns_that_line_up_also_in_wide_scripts() -> None:
    text = "| name | n |\n|---|--:|\n| 日本 | `1` |\n| [a](https://x.org) | 🎉 |"

    ((kind, covered, _),) = entities(text)

    assert kind == "Pre"
    assert covered == (
        "name              | n\n"
        "------------------+---\n"
        "日本              | 1\n"
        "a (https://x.org) | 🎉"
    )


def test_an_address_too_long_for_a_link_is_written_out() -> None:
    text = "[x](https://x.org/" + "y" * 3_000 + ")"

    assert shown(text) == text


@pytest.mark.parametrize("text", ["", " ", "\n\n\t", "\x00\x1f", "\u200b\ufeff", "\u3164 \u2800"])
def test_a_blank_text_has_no_parts(text: str) -> None:
    assert telegram_parts(text) == ()


@pytest.mark.parametrize(
    "piece",
    [
        "[[[[",
        "> > > >",
        "****",
        "*a ",
        "![",
        "http://a/(((",
        "a\n-\n",
        "||a",
        "`",
        "<",
        "$a",
        "a\n",
    ],
)
def test_hostile_texts_are_quick(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    began = time.process_time()

    parts = telegram_parts(text)

    assert time.process_time() - began < 30  # 2 s on a quiet machine; it must not be minutes
    assert "".join(part.source for part in parts) == text


def test_the_parser_is_loaded_with_the_first_reply_and_not_before() -> None:
    code = "import sys, bot.markup.render; sys.exit('markdown_it' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
