"""What holds of a reply cut for Telegram, whatever the model wrote. TDLib is the judge."""

from __future__ import annotations

import string

from hypothesis import example, given, settings
from hypothesis import strategies as st

from bot.markup.render import RenderedPart, telegram_parts, utf16_length
from tests.judge import telegram_entities, telegram_text
from tests.thorough import rounds

# Space that Telegram takes away at the ends of a message, and what leaves no ink.
UNSEEN = (
    string.whitespace
    + "".join(map(chr, [*range(0x20), *range(0x7F, 0xA1), 0xAD, 0x1680, 0xFEFF]))
    + "".join(map(chr, [*range(0x2000, 0x2010), *range(0x2028, 0x2030), *range(0x205F, 0x2070)]))
    + "\u3000\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u2800\u3164\uffa0"
)
FRAGMENTS = [
    *[
        "a",
        "*",
        "**",
        "***",
        "_",
        "__",
        "`",
        "``",
        "~~",
        "||",
        "|",
        "[",
        "]",
        "(",
        ")",
        "![",
        "<",
        ">",
        "#",
        "\\",
        "$",
        "$$",
        "&",
        ":",
        ";",
        "-",
        "+",
        ".",
        "!",
        "?",
        "~",
        "^",
        "=",
        "{",
        "}",
    ],
    *[" ", "  ", "\n", "\n\n", "\t", "\r\n", "\r", "    ", "\n> ", "\n>> ", "\n- ", "\n  - "],
    *["\n1. ", "\n   1) ", "\n# ", "\n###### ", "\n```\n", "\n```py\n", "\n~~~\n", "\n---\n"],
    *["\n===\n", "\n| a | b |\n|---|:-:|\n| c | d\\|e |\n", "\n|x|\n|-|\n", "\n- [ ] ", "\n- [x] "],
    *[
        "**bold**",
        "*it*",
        "_it_",
        "__b__",
        "~~gone~~",
        "||hush||",
        "`code`",
        "``a ` b``",
        "***x***",
    ],
    *["[docs](http://h/a_b_(c))", "[a **b** c](https://x.org/?q=1&r=<2>)", "[x](javascript:a)"],
    *["[a.org](https://e.org)", "www.a.org"],
    *["![i](https://x.org/i.png)", "[](https://e.org)", "[]()", "<https://x.org>", "<me@x.org>"],
    *["https://x.org/a_b_c*d*?q=(1)", "http://localhost:80/", "www.x.org", "__init__.py", "a_b_c"],
    *["[r]: https://x.org 'title'\n", "[r]", "<b>html</b>", "<pre>", "</code>", "<!-- c -->"],
    *["&amp;", "&#65;", "&nbsp;", "&lt;b&gt;", "$x_1 * y_2$", "$$a*b*$$", "\\(a_b_c\\)", "\\["],
    *["日本語", "한국어。", "مرحبا", "\u202eRTL\u202c", "👩‍👩‍👧‍👦", "👍🏽", "🇩🇪🇫🇷", "e\u0301", "❤️"],
    *["\x00", "\x01", "\x0b", "\x85", "\u2028", "\u200b", "\ufeff", "\ud83d", "\udc00", "\u3164"],
    *[
        "word " * 9,
        "Sentence one. Sentence two! ",
        "x" * 70,
        "🎉" * 40,
        "-" * 40,
        " " * 90,
        "\n" * 90,
    ],
    *["https://x.org/" + "y" * 90, "[t](https://x.org/" + "z" * 90 + ")", "&" * 30, "\u0301" * 80],
    *["\n```\n" + "line of code\n" * 9 + "```\n", "> " * 9, "- " * 9, "*a **b " * 5, "> > > >"],
]
nasty = st.lists(st.sampled_from(FRAGMENTS), max_size=40).map("".join)
limits = st.sampled_from([64, 100, 200, 4096])


def seen(text: str) -> str:
    return "".join(char for char in text if char not in UNSEEN)


def has_gap(text: str, limit: int) -> bool:
    """Whether so much white space stands together that it may not count in a source."""
    run = 0
    for char in text:
        run = run + 1 if char in UNSEEN else 0
        if run >= limit // 4:
            return True
    return False


def check(text: str, limit: int) -> tuple[RenderedPart, ...]:
    parts = telegram_parts(text, limit=limit)
    assert "".join(part.source for part in parts) == (text if parts else "")
    assert bool(parts) == bool(seen(text))
    for part in parts:
        shown = telegram_text(part.markup)
        assert seen(shown), part
        assert utf16_length(shown) <= limit
        source = part.source.strip(UNSEEN) if has_gap(text, limit) else part.source
        assert utf16_length(source) <= limit
        assert len(part.markup) <= 16_000
        assert len(telegram_entities(part.markup)) <= 100
    return parts


def without_drawing(text: str) -> str:
    """A row of a table that is too long is shown as written, without the lines drawn here."""
    return "".join(char for char in text if char not in "|-+—•☐☑")


def is_within(short: str, long: str) -> bool:
    rest = iter(long)
    return all(char in rest for char in short)


@given(nasty, limits)
@settings(deadline=None, max_examples=rounds(100, 400))
@example("a" + " " * 500 + "b", 64)
@example("[x](https://x.org/" + "y" * 300 + ") tail", 64)
@example("\u200b" * 300 + "a" + "\u200b" * 300, 64)
@example("```\n" + "\n" * 300 + "a\n```", 64)
@example("|a|\n|-|\n|" + "cell " * 100 + "|", 64)
@example("-" * 500, 64)
@example("# " + "word " * 100, 64)
@example("a" + "\u0301" * 300, 64)
def test_parts_join_to_the_text_and_each_is_accepted_and_fits(text: str, limit: int) -> None:
    check(text, limit)


@given(nasty, limits)
@settings(deadline=None, max_examples=rounds(75, 300))
def test_nothing_visible_is_lost_at_the_borders_of_parts(text: str, limit: int) -> None:
    whole = telegram_parts(text, limit=10**6)

    parts = telegram_parts(text, limit=limit)

    before = seen("".join(telegram_text(part.markup) for part in whole))
    after = seen("".join(telegram_text(part.markup) for part in parts))
    if limit >= 200:  # in smaller parts an address may not fit, and then its link is written out
        assert is_within(without_drawing(before), after)
    if limit == 4096:
        assert before == after


@given(st.text(max_size=300), limits)
@settings(deadline=None, max_examples=rounds(50, 200))
def test_any_text_at_all_can_be_sent(text: str, limit: int) -> None:
    check(text, limit)


@given(nasty, st.integers(0, 400))
@settings(deadline=None, max_examples=rounds(50, 100))
def test_a_streamed_beginning_of_a_reply_can_be_sent(text: str, end: int) -> None:
    check(text[:end], 4096)


@given(st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=6).map("".join))
@settings(deadline=None, max_examples=rounds(30, 60))
def test_long_replies_are_cut_to_the_real_limit(text: str) -> None:
    check((text + " ") * (9_000 // len(text + " ")), 4096)
