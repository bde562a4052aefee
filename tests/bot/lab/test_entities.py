"""The stand-in's markup rules, compared with Telegram's own parser."""

import json
from typing import Any

import pytest
import tdjson
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.lab.entities import MarkupError, Parsed, parse_html, trimmed, units, written_entities

TAGS = (
    "<b> </b> <i> </i> <u> </u> </> <x> <a|href='http://e.com/'> </a> <pre> </pre> <code> </code>"
    ' <code|class="language-py"> <a|href="http://e.com/?a=1&amp;b=2"> <blockquote> </blockquote>'
    " <blockquote|expandable> <tg-spoiler> </tg-spoiler> <b|a=é> <B </B|>"
)
OTHERS = "< > & é 😀 word &lt; &amp; &quot; &#65; \" ' = /"
PIECES = [*TAGS.split(), *OTHERS.split()]
TD_NAMES = {"preCode": "pre", "textUrl": "text_link", "mentionName": "text_link"}


def judged(text: str) -> dict[str, Any]:
    tdjson.td_execute(b'{"@type": "setLogVerbosityLevel", "new_verbosity_level": 0}')
    mode = {"@type": "textParseModeHTML"}
    request = {"@type": "parseTextEntities", "text": text, "parse_mode": mode}
    answer: dict[str, Any] = json.loads(tdjson.td_execute(json.dumps(request).encode()) or b"")
    return answer


@settings(max_examples=1500, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=10))
def test_what_is_taken_the_real_parser_takes_and_reads_alike(pieces: list[str]) -> None:
    text = "".join(pieces).replace("|", " ")
    try:
        ours = parse_html(text).text
    except MarkupError:
        return

    assert judged(text).get("text") == ours


@pytest.mark.parametrize("text", ["<b>", "</b>", "<x>a</x>", "a <b>b</i>", "é<b>b</b></i>"])
def test_refusals_are_in_the_words_of_the_real_parser(text: str) -> None:
    with pytest.raises(MarkupError) as wrong:
        parse_html(text)

    assert judged(text)["message"] == f"Can't parse entities: {wrong.value}"


def test_what_the_bot_never_writes_is_refused_although_the_real_parser_takes_it() -> None:
    for text in ("a & b", "&#65;", "<a href=x.de>x</a>"):
        with pytest.raises(MarkupError):
            parse_html(text)


@pytest.mark.parametrize(
    "text",
    [
        "<b>a<i>b</i></b> <s>c</s>",
        "😀 <u>é😀</u> <tg-spoiler>x</tg-spoiler>",
        '<pre><code class="language-py">x = 1</code></pre>',
        '<code class="language-py">x</code>',
        '<a href="http://example.com/?a=1&amp;b=2">link</a>',
        "<blockquote expandable>q</blockquote><blockquote>r</blockquote>",
    ],
)
def test_entities_are_those_of_the_real_parser(text: str) -> None:
    parsed = parse_html(text)

    snake = {"expandableBlockQuote": "expandable_blockquote", "blockQuote": "blockquote"}
    real = []
    for entity in judged(text)["entities"]:
        kind = entity["type"]["@type"].removeprefix("textEntityType")
        kind = kind[0].lower() + kind[1:]
        kind = TD_NAMES.get(kind, snake.get(kind, kind))
        value = entity["type"].get("url") or entity["type"].get("language")
        real.append((kind, entity["offset"], entity["length"], value))
    ours = [
        (e["type"], e["offset"], e["length"], e.get("url") or e.get("language"))
        for e in parsed.entities
    ]
    assert ours == real


def test_commands_and_mentions_are_found_with_utf16_offsets() -> None:
    found = written_entities("😀 /remind@hearth_bot me, @ann_b http://e.com/x and 1/2")

    assert [(e["type"], e["offset"], e["length"]) for e in found] == [
        ("bot_command", 3, 18),
        ("mention", 26, 6),
        ("url", 33, 14),
    ]


@given(st.text())
def test_length_is_counted_as_telegram_counts(text: str) -> None:
    assert units(text) == sum(2 if ord(char) > 0xFFFF else 1 for char in text)


def test_outer_space_is_trimmed_and_entities_move_along() -> None:
    parsed = parse_html("  <b> x </b> ")

    assert trimmed(parsed) == Parsed(
        text="x", entities=({"type": "bold", "offset": 0, "length": 1},)
    )
