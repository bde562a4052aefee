"""What stands in a chat of the stand-ins, as it is drawn: Telegram's entities and Slack's mrkdwn
become looks. Called by `docs.make_pictures`."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from typing import Any

from bot.lab.slack_state import SeenInSlack as SlackSeen
from bot.lab.telegram_state import SeenInTelegram
from docs.pictures.shapes import Block, Bubble, Button, Paragraph, Post, Rows, Span, Text

Json = Mapping[str, Any]

_LOOKS = {"bold": "b", "italic": "i", "code": "c", "text_link": "l", "strikethrough": "s"}
_STYLES = {"success": "good", "primary": "good", "danger": "bad"}
_MRKDWN = re.compile(
    r"`(?P<c>[^`\n]+)`|(?<!\w)\*(?P<b>[^*\n]+)\*|(?<!\w)_(?P<i>[^_\n]+)_"
    r"|<(?:https?:[^|>]+\|)?(?P<l>[^>\n]+)>"
)


def bubble(seen: SeenInTelegram, *, pressed: str = "") -> Bubble:
    """A message in Telegram; `pressed` is the button that Ann is about to tap."""
    rows = (seen.markup or {}).get("inline_keyboard", ())
    shown = tuple(tuple(_button(one, one["text"], pressed) for one in row) for row in rows)
    return Bubble(text=_marked(seen.text, seen.entities), is_bot=seen.is_bot, rows=shown)


def post(
    seen: SlackSeen,
    *,
    app: str,
    is_reply: bool = False,
    only_you: bool = False,
    pressed: str = "",
) -> Post:
    """A message in Slack, of the app of this name or of Ann's; `only_you` is seen by her alone."""
    text = mrkdwn(html.unescape(re.sub(r"<@\w+>", f"@{app}", seen.text)))
    if only_you:
        text = (Paragraph(spans=(Span(text="Only visible to you", look="q"),)), *text)
    return Post(
        who=app if seen.is_bot else "Ann",
        text=text,
        is_bot=seen.is_bot,
        is_reply=is_reply,
        rows=_rows(seen.blocks, pressed),
    )


def actions(seen: SlackSeen) -> list[Json]:
    """The buttons of a message in Slack, as Slack keeps them."""
    rows = [block["elements"] for block in seen.blocks if block["type"] == "actions"]
    return [button for row in rows for button in row]


def home_blocks(view: Json) -> tuple[Block, ...]:
    """A home tab."""
    return tuple(_block(block) for block in view["blocks"] if block["type"] != "divider")


def mrkdwn(text: str) -> Text:
    """Slack's markup, as far as our messages use it."""
    lines: list[Paragraph] = []
    for number, part in enumerate(text.split("```")):
        if number % 2:
            pieces = part.strip("\n").split("\n")
            lines += [Paragraph(spans=(Span(text=one),), mono=True) for one in pieces]
        else:
            kept = part.strip("\n") if number or "```" in text else part
            lines += [Paragraph(spans=_spans(one)) for one in kept.split("\n") if kept]
    return tuple(lines)


def _spans(line: str) -> tuple[Span, ...]:
    spans, at = [], 0
    for found in _MRKDWN.finditer(line):
        spans.append(Span(text=line[at : found.start()]))
        look = found.lastgroup or ""
        spans.append(Span(text=found[look], look=look))
        at = found.end()
    spans.append(Span(text=line[at:]))
    return tuple(span for span in spans if span.text) or (Span(text=""),)


def _block(block: Json) -> Block:
    rows = _rows([block], "")
    if "accessory" in block:
        button = block["accessory"]
        rows = ((_button(button, button["text"]["text"], ""),),)
    words = block["text"]["text"] if "text" in block else ""
    is_header = block["type"] == "header"
    return Block(text=mrkdwn(html.unescape(words)) if words else (), is_header=is_header, rows=rows)


def _rows(blocks: Sequence[Json], pressed: str) -> Rows:
    rows = [block["elements"] for block in blocks if block["type"] == "actions"]
    return tuple(tuple(_button(one, one["text"]["text"], pressed) for one in row) for row in rows)


def _button(button: Json, text: str, pressed: str) -> Button:
    look = _STYLES.get(button.get("style", ""), "")
    return Button(text=text, look=look, pressed=text == pressed)


def _marked(text: str, entities: Sequence[Json]) -> Text:
    """Telegram's text, whose entities count in UTF-16 units."""
    units = text.encode("utf-16-le")
    edges = {0, len(units) // 2}
    for entity in entities:
        edges |= {entity["offset"], entity["offset"] + entity["length"]}
    lines: list[Paragraph] = []
    open_line: list[Span] = []
    for start, end in zip(sorted(edges), sorted(edges)[1:], strict=False):
        piece = units[start * 2 : end * 2].decode("utf-16-le")
        kinds = {one["type"] for one in entities if _covers(one, start)}
        if "pre" in kinds:
            if open_line:
                lines.append(Paragraph(spans=tuple(open_line)))
                open_line = []
            rows = piece.rstrip("\n").split("\n")
            lines += [Paragraph(spans=(Span(text=row),), mono=True) for row in rows]
            continue
        if lines and lines[-1].mono and not open_line:
            piece = piece.removeprefix("\n")
        look = "".join(sorted({_LOOKS[kind] for kind in kinds & set(_LOOKS)}))
        first, *more = piece.split("\n")
        open_line += [Span(text=first, look=look)] if first else []
        for line in more:
            lines.append(Paragraph(spans=tuple(open_line) or (Span(text=""),)))
            open_line = [Span(text=line, look=look)] if line else []
    return (*lines, Paragraph(spans=tuple(open_line))) if open_line else tuple(lines)


def _covers(entity: Json, at: int) -> bool:
    return bool(entity["offset"] <= at < entity["offset"] + entity["length"])
