"""What is put into a conversation of Slack: texts, whispers and reactions, each by its call; and
what a refusal of one means. Called by `bot.slack`.

Nothing here lets Slack open a link for a preview or look for names: a model may have been led to
write one that tells somebody something, and nobody is called by what it writes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import structlog

from agent.messages import Address
from bot.channel import InDoubt, LookedUp, MessagePart, NotSent, Reacted, Reaction, Refused, Sent
from bot.markup_slack import escaped
from bot.slack_blocks import Block, marked_blocks, plain_blocks, whisper
from bot.slack_lookup import metadata
from bot.slack_reactions import slack_name
from bot.slack_uploads import why_refused
from bot.slack_web import BAD_TOKEN, Heard, Limited, SaidNo, SlackTrouble, SlackWeb

log = structlog.get_logger()

ABOUT_US_S = 20.0
"""Between tries while the token or its scopes are not accepted: the owner can mend that, and then
nothing is lost."""

_NO_MARKUP = frozenset(
    {"invalid_blocks", "invalid_arguments", "invalid_metadata_schema", "msg_too_long", "no_text"}
)
"""Refusals after which the same text may still go out plain, without anything beside it."""

_UNREAD: dict[str, Any] = {"parse": "none", "link_names": False}
"""A text in which Slack looks for nothing."""


async def posted_text(
    web: SlackWeb, method: str, part: MessagePart, where: dict[str, str]
) -> Heard:
    """What Slack answered; plain where it refuses the markup. Raises SlackTrouble."""
    shared: dict[str, Any] = {**_UNREAD}
    if method == "chat.postMessage":
        shared |= {"unfurl_links": False, "unfurl_media": False}
    marked: dict[str, Any] = {"metadata": metadata(part.mark)} if part.mark else {}
    buttons = _blocks(part, marked_blocks)
    try:
        return await web.call(method, text=part.markup, **where, **shared, **marked, **buttons)
    except SaidNo as error:
        if error.error not in _NO_MARKUP:
            raise
        log.warning("slack.markup_refused", why=str(error))
    plain = escaped(part.source.strip())
    if method == "chat.postMessage":
        shared |= {"mrkdwn": False}
    buttons = _blocks(part, plain_blocks)
    return await web.call(method, text=plain, **where, **shared, **buttons)


def _blocks(part: MessagePart, shown: Callable[[MessagePart], list[Block]]) -> dict[str, Any]:
    """Only a message with buttons has blocks, and only an edit that takes them away says so: for
    any other the text alone is shown."""
    if any(part.buttons):
        return {"blocks": shown(part)}
    return {"blocks": []} if part.loses_buttons else {}


async def whispered(web: SlackWeb, to: Address, user: str, text: str) -> None:
    """Said where the address is, to one person alone. Raises SlackTrouble."""
    where = {"channel": channel_of(to), "user": user}
    if to.thread_id is not None:
        where["thread_ts"] = to.thread_id
    await web.call("chat.postEphemeral", text=whisper(text), **_UNREAD, **where)


async def put_reaction(web: SlackWeb, address: Address, message_id: str, emoji: str) -> Reaction:
    """An emoji by Slack's name of it."""
    name = slack_name(emoji)
    if not name:
        return Refused(reason=f"Slack has no emoji {emoji!r}; name one as :thumbsup:")
    try:
        await web.call(
            "reactions.add", channel=channel_of(address), timestamp=message_id, name=name
        )
    except Limited as error:
        return NotSent(reason=str(error), retry_after_s=error.seconds)
    except SaidNo as error:
        if error.error != "already_reacted":
            return Refused(reason=f"Slack does not take this reaction ({error})")
    except SlackTrouble as error:
        return NotSent(reason=str(error))
    return Reacted(shown=f":{name}:")


def channel_of(address: Address) -> str:
    """Slack's id of the conversation, without the workspace's."""
    return address.chat_id.partition(".")[2]


def refused(error: SaidNo) -> NotSent | Refused:
    """What a message comes to that Slack does not take: what the owner can mend is tried again."""
    if error.is_about_us:
        return NotSent(reason=str(error), retry_after_s=ABOUT_US_S)
    return Refused(reason=str(error))


def file_refused(error: SaidNo) -> NotSent | Refused:
    """A scope that is missing holds up the file alone, not what comes after it."""
    if error.error in BAD_TOKEN:
        return NotSent(reason=str(error), retry_after_s=ABOUT_US_S)
    return Refused(reason=why_refused(error))


async def looked_up(search: Awaitable[str | None]) -> LookedUp:
    """What a search for a message of ours says of its fate."""
    try:
        found = await search
    except SaidNo as error:
        return InDoubt(reason=str(error)) if error.is_about_us else Refused(reason=str(error))
    except SlackTrouble as error:
        return InDoubt(reason=str(error))
    return NotSent(reason="it is not there") if found is None else Sent(message_id=found)
