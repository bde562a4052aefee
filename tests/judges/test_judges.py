"""The judges themselves see what is wrong; else their consent would mean nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.judge import judge_requests
from tests.judges.block_kit import judge_calls

HTML = {"parse_mode": "HTML"}


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("sendMessage", {"text": "<b>open", **HTML}),
        ("editMessageText", {"text": "<b><i>crossed</b></i>", **HTML}),
        ("sendMessage", {"text": "<table></table>", **HTML}),
        ("sendMessage", {"text": "<b>" + "x" * 4097 + "</b>", **HTML}),
        ("sendMessage", {"text": "🫖" * 2049}),
        ("sendDocument", {"caption": "x" * 1025, **HTML}),
        ("sendMessage", {"text": "*bold*", "parse_mode": "MarkdownV2"}),
        ("sendMessage", {"text": " <b> </b> ", **HTML}),
    ],
)
def test_what_telegram_would_refuse_is_not_accepted(method: str, params: dict[str, Any]) -> None:
    with pytest.raises(AssertionError):
        judge_requests([(method, params)])


def test_what_telegram_takes_is_counted() -> None:
    judged = judge_requests(
        [
            ("sendMessage", {"text": "<b>" + "&lt;" * 4096 + "</b>", **HTML}),
            ("sendPhoto", {"photo": "…"}),
            ("sendMessage", {"text": "plain < words"}),
            ("getUpdates", {}),
        ]
    )

    assert (judged.marked, judged.plain) == (1, 1)
    assert judged.kinds == {"textEntityTypeBold": 1}


SECTION = {"type": "section", "text": {"type": "mrkdwn", "text": "words"}}
BUTTON = {"type": "button", "action_id": "a", "text": {"type": "plain_text", "text": "Press"}}


@pytest.mark.parametrize(
    "params",
    [
        {"text": ""},
        {"text": "x" * 4001},
        {"text": "all of you: <!channel>"},
        {"text": "1 < 2"},
        {"text": "x", "blocks": [SECTION] * 51},
        {"text": "x", "blocks": [{"type": "section"}]},
        {"text": "x", "blocks": [{"type": "sction", "text": SECTION["text"]}]},
        {"text": "x", "blocks": [SECTION | {"txt": "?"}]},
        {"text": "x", "blocks": [SECTION | {"text": {"type": "mrkdwn", "text": "x" * 3001}}]},
        {"text": "x", "blocks": [{"type": "actions", "elements": [BUTTON] * 26}]},
        {"view": {"type": "home", "blocks": [SECTION] * 101}},
        {
            "view": {
                "type": "modal",
                "title": {"type": "plain_text", "text": "x" * 25},
                "blocks": [],
            }
        },
    ],
)
def test_what_slack_would_refuse_is_not_accepted(params: dict[str, Any]) -> None:
    with pytest.raises(AssertionError):
        judge_calls([("chat.postMessage", params)])


def test_what_slack_takes_is_counted() -> None:
    judged = judge_calls(
        [
            ("chat.postMessage", {"text": "see <https://example.org/?a=1|here>"}),
            ("chat.update", {"text": "a card", "blocks": [SECTION, {"type": "divider"}]}),
            ("views.publish", {"view": {"type": "home", "blocks": [SECTION]}}),
            ("auth.test", {}),
        ]
    )

    assert judged == {"message": 2, "section": 1, "divider": 1, "view": 1}
