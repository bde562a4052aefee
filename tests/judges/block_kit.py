"""Slack's own library as a judge: its models of blocks and views hold the platform's limits.

They know what Slack publishes, and nothing of our stand-in, which holds the same limits by itself.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from slack_sdk.errors import SlackObjectFormationError
from slack_sdk.models.blocks import Block
from slack_sdk.models.views import View

BLOCKS_MAX = 50
TEXT_CHARS_MAX = 4_000
"""What Slack advises for a message; it cuts one at 40,000."""

LINK = re.compile(r"<(?:https?|mailto|tel):[^<>\s]+(?:\|[^<>]+)?>")
"""All that may stand between angle brackets: whatever else does calls people, or is no address."""


def judge_calls(calls: Iterable[tuple[str, Mapping[str, Any]]]) -> Counter[str]:
    """Judges the messages and views of calls of the Web API, each as its method and parameters;
    how many of each kind there were. AssertionError for what Slack would refuse."""
    judged: Counter[str] = Counter()
    for method, params in calls:
        if "view" in params:
            judge_view(_read(params["view"]))
            judged["view"] += 1
        elif "text" in params or "blocks" in params:
            _judge_text(str(params.get("text") or ""), method)
            blocks = _read(params.get("blocks")) or []
            assert len(blocks) <= BLOCKS_MAX
            for block in blocks:
                judge_block(block)
                judged[block["type"]] += 1
            judged["message"] += 1
    return judged


def judge_block(block: Mapping[str, Any]) -> None:
    """One block of a message; AssertionError with what is wrong and the block."""
    parsed = Block.parse(dict(block))
    assert parsed is not None, f"Slack's library knows no such block: {block}"
    try:
        again = parsed.to_dict()
    except SlackObjectFormationError as wrong:
        raise AssertionError(f"{wrong}: {block}") from wrong
    lost = set(block) - set(again)
    assert not lost, f"fields that Slack's library does not know: {lost} in {block}"


def _judge_text(text: str, method: str) -> None:
    assert 0 < len(text) <= TEXT_CHARS_MAX, (method, text)
    left = LINK.sub("", text)
    assert "<" not in left, (method, text)


def judge_view(view: Mapping[str, Any]) -> None:
    """A home tab or a modal; AssertionError with what is wrong."""
    for block in view["blocks"]:
        judge_block(block)
    try:
        View(**view).to_dict()
    except SlackObjectFormationError as wrong:
        raise AssertionError(f"{wrong}: {view}") from wrong


def words_of(node: Any) -> str:
    """All words of blocks, one line each, as one would read them from top to bottom."""
    if isinstance(node, str):
        return node
    if isinstance(node, dict):
        parts = [words_of(v) for k, v in node.items() if k == "text" or not isinstance(v, str)]
    else:
        parts = [words_of(one) for one in node] if isinstance(node, list | tuple) else []
    return "\n".join(part for part in parts if part)


def _read(value: Any) -> Any:
    """A parameter, which came as JSON text or as what that holds."""
    return json.loads(value) if isinstance(value, str) else value
