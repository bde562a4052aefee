"""What a platform can answer to a send, how a stand-in acts it out, and what it means.

`tests/bot/test_delivery.py` acts out each row in spells of seconds to hours, and compares the table
in docs/reliability.md with these rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from bot.lab import slack, telegram
from bot.lab.faults import FaultAction, answer, bad_gateway, drop, garble, hold, reset

Wire = Literal["refused", "half-open", "reset at once", "no such name"]
"""What goes wrong below HTTP; acted out by `tests.bot.relay`."""

Act = FaultAction | Wire


class Meaning(Enum):
    """What becomes of the message."""

    ENDS = "ends"
    AGAIN = "again"
    OURS = "again, without an end"
    DOUBT = "again, marked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """One row of the table, with the ways in which it is acted out."""

    what: str
    meaning: Meaning
    why: str
    source: str
    acts: tuple[Act, ...]
    is_slow: bool = False
    """The client has to wait for its own limit."""


RFC = "RFC 9110 §15"
API = "tdlib/telegram-bot-api 2026-05-07"
NGINX = "nginx 2026-04-08, ngx_http_upstream.c"

ENDS, AGAIN, OURS, DOUBT = Meaning.ENDS, Meaning.AGAIN, Meaning.OURS, Meaning.DOUBT


def _wire() -> tuple[Answers, ...]:
    return (
        Answers(
            what="connection refused, no such name, no connection in time, a failed TLS handshake",
            meaning=AGAIN,
            why="no byte of the request has left",
            source="RFC 9293, RFC 8446",
            acts=("refused", "no such name"),
        ),
        Answers(
            what="connection reset or closed before, within or after the answer",
            meaning=DOUBT,
            why="the method may have run; nobody says so",
            source="python-telegram-bot issue 1045; slack-api-specs issue 10",
            acts=("reset at once", drop(), drop(after=True), reset(), reset(after=True), garble()),
        ),
        Answers(
            what="no answer in time, a half-open connection",
            meaning=DOUBT,
            why="the method runs on without its client",
            source=f"{API}, HttpConnection.cpp",
            acts=("half-open", hold(after=True)),
            is_slow=True,
        ),
        Answers(
            what="2xx with a body that is not the platform's",
            meaning=DOUBT,
            why="somebody on the way spoke, before or after the platform did",
            source="python-telegram-bot issue 891",
            acts=(answer(200, "<html>log in</html>"), answer(200, "<html></html>", after=True)),
        ),
        Answers(
            what="3xx or 4xx with a body that is not the platform's",
            meaning=AGAIN,
            why="a proxy or a log-in page passed nothing on",
            source=f"{RFC}.4, §15.5",
            acts=tuple(
                answer(status, f"<html>{status}</html>")
                for status in (302, 307, 400, 401, 403, 404, 407, 408, 421, 451)
            ),
        ),
    )


def _telegram(*refusals: tuple[int, str]) -> tuple[FaultAction, ...]:
    return tuple(telegram.refusal(status, words) for status, words in refusals)


def _bad(*words: str) -> tuple[FaultAction, ...]:
    return _telegram(*((400, f"Bad Request: {one}") for one in words))


TELEGRAM: tuple[Answers, ...] = (
    Answers(
        what="400 with a reason of the message",
        meaning=ENDS,
        why="the same words fail the same way; markup that is refused was tried plain before",
        source=f"{API}, Client.cpp",
        acts=_bad(
            "message text is empty",
            "message is too long",
            "BUTTON_DATA_INVALID",
            "message to be replied not found",
            "SOMETHING_NEW_INVALID",
        ),
    ),
    Answers(
        what="400 with a reason of the chat",
        meaning=ENDS,
        why="there is no such chat or topic, or the bot may not write there",
        source=f"{API}, Client.cpp; core.telegram.org/method/messages.sendMessage",
        acts=_bad(
            "chat not found",
            "message thread not found",
            "TOPIC_CLOSED",
            "not enough rights to send text messages to the chat",
            "CHAT_WRITE_FORBIDDEN",
            "PEER_ID_INVALID",
        ),
    ),
    Answers(
        what="403",
        meaning=ENDS,
        why="the person or the group has shut the bot out",
        source=f"{API}, Client.cpp",
        acts=_telegram(
            (403, "Forbidden: bot was blocked by the user"),
            (403, "Forbidden: user is deactivated"),
            (403, "Forbidden: bot was kicked from the supergroup chat"),
        ),
    ),
    Answers(
        what="500 “sent message was immediately deleted”",
        meaning=ENDS,
        why="somebody in the chat deletes each copy",
        source=f"{API}, Client.cpp, delete_message",
        acts=_telegram(
            (
                500,
                "Internal Server Error: sent message was immediately deleted and can't be returned",
            ),
        ),
    ),
    Answers(
        what="401, 404, 400 “Logged out” or of a frozen account",
        meaning=OURS,
        why="it is about the bot, and seen by mistake too; the owner can mend it",
        source=f"{API}, ClientManager.cpp, get_closing_error; issue 77",
        acts=_telegram(
            (401, "Unauthorized"),
            (401, "Unauthorized: invalid token specified"),
            (404, "Not Found"),
            (400, "Logged out"),
            (400, "Bad Request: FROZEN_METHOD_INVALID"),
        ),
    ),
    Answers(
        what="409, 420, 421, 429 and any other 4xx of Telegram's",
        meaning=AGAIN,
        why="refused before anything was done; a pause that Telegram names is kept",
        source=f"{API}, Client.cpp, Query.cpp",
        acts=(
            telegram.flood(7),
            *_telegram(
                (409, "Conflict: terminated by setWebhook request"),
                (420, "FLOOD_WAIT_7"),
                (421, "Misdirected Request: unallowed token specified"),
                (429, "Too Many Requests"),
                (418, "a status of tomorrow"),
            ),
        ),
    ),
    Answers(
        what="400 of an upload, a limit or a part that is not ready",
        meaning=AGAIN,
        why="TDLib makes a 400 of each inner failure; what was asked for was not begun",
        source="tdlib/td 2026-07-17, FileManager.cpp, on_upload_error_impl",
        acts=_bad(
            "too Many Requests: retry after 7",
            "failed to upload file",
            "PHOTO_SAVE_FILE_INVALID",
            "FILE_PART_0_MISSING",
            "MSG_WAIT_FAILED",
        ),
    ),
    Answers(
        what="400 of parts that did not answer each other",
        meaning=DOUBT,
        why="an inner failure with a code of its own; what it did is not known",
        source="tdlib/td 2026-07-17, NetQueryDispatcher.cpp",
        acts=_bad("timeout", "bad Gateway", "request aborted", "dispatchTtlError"),
    ),
    Answers(
        what="500, 502, 504 and any other 5xx",
        meaning=DOUBT,
        why="Telegram fails sends that are under way with it, and a gateway's page looks the same "
        "before and after",
        source=f"{API}, Client.cpp, on_closed; {NGINX}",
        acts=(
            *_telegram(
                (500, "Internal Server Error: restart"),
                (500, "Internal Server Error: request aborted"),
                (502, "Bad Gateway"),
            ),
            telegram.refusal(500, "Internal Server Error: restart", after=True),
            bad_gateway(),
            bad_gateway(after=True),
            answer(504, "<html>504 Gateway Time-out</html>", after=True),
            answer(520, "<html>520</html>"),
            answer(524, "<html>524</html>", after=True),
        ),
    ),
    Answers(
        what="501, 503, 505, 511, 521, 522, 523, 525, 526",
        meaning=AGAIN,
        why="a gateway that says it passed nothing on",
        source=f"{RFC}.6, RFC 6585 §6; Cloudflare 5xx pages",
        acts=tuple(
            answer(status, f"<html>{status}</html>")
            for status in (501, 503, 505, 511, 521, 522, 523, 525, 526)
        ),
    ),
)


METHODS = "docs.slack.dev/reference/methods, copies of 2026-05 to 2026-08"


def _slack(*words: str) -> tuple[FaultAction, ...]:
    return tuple(slack.refusal(word) for word in words)


SLACK: tuple[Answers, ...] = (
    Answers(
        what="a word about the channel: `channel_not_found`, `is_archived`, `restricted_action` …",
        meaning=ENDS,
        why="there is no such channel, or the app may not write there",
        source=METHODS,
        acts=_slack(
            "channel_not_found",
            "not_in_channel",
            "is_archived",
            "restricted_action",
            "cannot_reply_to_message",
        ),
    ),
    Answers(
        what="a word about the message: `msg_too_long`, `invalid_blocks`, `no_text` …",
        meaning=ENDS,
        why="the same message fails the same way; markup that is refused was tried plain before",
        source=METHODS,
        acts=_slack("msg_blocks_too_long", "too_many_attachments", "metadata_too_large"),
    ),
    Answers(
        what="a word about the token, a scope or the app: `invalid_auth`, `missing_scope` …",
        meaning=OURS,
        why="it is about the app; the owner can mend it",
        source=METHODS,
        acts=_slack(
            "invalid_auth",
            "account_inactive",
            "token_revoked",
            "missing_scope",
            "team_added_to_org",
            "accesslimited",
        ),
    ),
    Answers(
        what="429, `ratelimited`, and any word that is in no list",
        meaning=AGAIN,
        why="refused; Slack's pages warn of other words in times of trouble",
        source=f"{METHODS}; docs.slack.dev/apis/web-api/rate-limits",
        acts=(
            slack.flood(7),
            *_slack(
                "ratelimited",
                "message_limit_exceeded",
                "ekm_access_denied",
                "invalid_form_data",
                "a_word_of_tomorrow",
            ),
        ),
    ),
    Answers(
        what="`internal_error`, `fatal_error`, `service_unavailable`, `request_timeout`",
        meaning=DOUBT,
        why="Slack says that part of it may have been done",
        source="docs.slack.dev, errors of all methods, copy of 2026-05-26",
        acts=(
            *_slack("internal_error", "fatal_error", "service_unavailable", "request_timeout"),
            slack.refusal("internal_error", after=True),
        ),
    ),
    Answers(
        what="5xx",
        meaning=DOUBT,
        why="Slack does not say what ran",
        source="slackapi/node-slack-sdk 2026-08-21, WebClient.ts",
        acts=(
            bad_gateway(),
            bad_gateway(after=True),
            *(answer(status, f"<html>{status}</html>") for status in (500, 503, 504)),
            answer(500, "<html>500</html>", after=True),
        ),
    ),
)

WIRE = _wire()


def page() -> Iterator[str]:
    """The tables of docs/reliability.md, line by line."""
    for title, rows in (("Either platform", WIRE), ("Telegram", TELEGRAM), ("Slack", SLACK)):
        yield f"| {title} | the message | because | source |"
        yield "|---|---|---|---|"
        for row in rows:
            yield f"| {row.what} | {row.meaning.value} | {row.why} | {row.source} |"
        yield ""
