"""A message with buttons as Slack's blocks: its text in sections, each row of buttons below it.

Called by `bot.slack` and `bot.slack_home`. A message without buttons has no blocks: its text alone
is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent.stored import Button, ButtonRows
from bot.channel import MessagePart
from bot.markup import slack_parts
from bot.markup_slack import escaped

Block = dict[str, Any]

SECTION_CHARS_MAX = 2_800
"""Slack takes 3,000; a fence that is closed and opened anew needs room."""

ROW_BUTTONS_MAX = 25
LABEL_CHARS_MAX = 75

_STYLES = {"good": "primary", "bad": "danger"}
_FENCE = "```"


def marked_blocks(part: MessagePart) -> list[Block]:
    """The message with its markup, which is mrkdwn."""
    texts = _sections(part.markup)
    if not texts:
        texts = [one.markup for one in slack_parts(part.source, limit=SECTION_CHARS_MAX)]
    return [*map(marked, texts), *_actions(part.buttons)]


def plain_blocks(part: MessagePart) -> list[Block]:
    """The same where Slack refuses the markup: what was written, as it is."""
    text = part.source.strip()
    pieces = [text[at : at + SECTION_CHARS_MAX] for at in range(0, len(text), SECTION_CHARS_MAX)]
    shown = [_section({"type": "plain_text", "text": piece, "emoji": False}) for piece in pieces]
    return [*shown, *_actions(part.buttons)]


def marked(text: str) -> Block:
    """Of what is no mark, Slack is to make neither links nor names."""
    return _section({"type": "mrkdwn", "text": text, "verbatim": True})


def _section(text: Block) -> Block:
    return {"type": "section", "text": text, "expand": True}


def _sections(markup: str) -> list[str]:
    """Cut at line ends, which no mark but a fence reaches across; empty for a line too long."""
    if len(markup) <= SECTION_CHARS_MAX:
        return [markup]
    pieces: list[str] = []
    piece, fenced = "", False
    for line in markup.split("\n"):
        if len(line) > SECTION_CHARS_MAX - 2 * len(_FENCE) - 2:
            return []
        longer = f"{piece}\n{line}" if piece else line
        closing = f"\n{_FENCE}" if fenced else ""
        if len(longer) + len(_FENCE) + 1 > SECTION_CHARS_MAX:
            pieces.append(piece + closing)
            longer = f"{_FENCE}\n{line}" if fenced else line
        piece = longer
        fenced ^= line.count(_FENCE) % 2 == 1
    return [one for one in [*pieces, piece] if one.strip()]


def _actions(rows: ButtonRows) -> list[Block]:
    """An action id names a button within its message, and nothing else: the value says what it
    is."""
    found: list[Block] = []
    number = 0
    for row in rows:
        for at in range(0, len(row), ROW_BUTTONS_MAX):
            some = row[at : at + ROW_BUTTONS_MAX]
            elements = _elements(some, first=number + 1)
            found.append({"type": "actions", "elements": elements})
            number += len(some)
    return found


def _elements(buttons: Sequence[Button], *, first: int) -> list[Block]:
    return [button_block(button, number) for number, button in enumerate(buttons, first)]


def button_block(button: Button, number: int) -> Block:
    """One that can be pressed; `number` tells it from those beside it."""
    style = {"style": _STYLES[button.style]} if button.style else {}
    label = button.label.strip()
    if len(label) > LABEL_CHARS_MAX:
        label = label[: LABEL_CHARS_MAX - 1].rstrip() + "…"
    return {
        "type": "button",
        "text": {"type": "plain_text", "text": label, "emoji": True},
        "action_id": f"press_{number}",
        "value": button.data,
        **style,
    }


def whisper(text: str) -> str:
    """A sentence for one person, as it is."""
    return escaped(text.strip())
