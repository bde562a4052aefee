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
from bot.slack_lookup import TooMuchSaid, metadata
from bot.slack_reactions import slack_name
from bot.slack_uploads import why_refused
from bot.slack_web import BAD_TOKEN, Heard, Limited, SaidNo, SlackTrouble, SlackWeb

log = structlog.get_logger()

ENDS = frozenset(
    {
        *("channel_not_found", "invalid_channel", "is_archived", "is_inactive", "not_in_channel"),
        *("restricted_action", "restricted_action_read_only_channel"),
        *("restricted_action_non_threadable_channel", "restricted_action_thread_locked"),
        *("restricted_action_thread_only_channel", "cannot_reply_to_message"),
        *("posting_to_channel_denied", "slack_connect_blocked_file_type"),
        *("slack_connect_canvas_sharing_blocked", "slack_connect_clip_sharing_blocked"),
        *("slack_connect_file_link_sharing_blocked", "slack_connect_file_upload_sharing_blocked"),
        *("slack_connect_lists_sharing_blocked", "channels_limit_exceeded"),
        *("no_text", "msg_too_long", "msg_blocks_too_long", "invalid_blocks", "block_mismatch"),
        *("invalid_blocks_format", "invalid_attachments", "too_many_attachments"),
        *("attachment_payload_limit_exceeded", "too_many_contact_cards", "invalid_arguments"),
        *("invalid_metadata_format", "invalid_metadata_schema", "metadata_too_large"),
        *("markdown_text_conflict", "missing_file_data", "file_deleted", "file_is_deleted"),
        *("file_not_found", "file_share_limit_reached", "max_file_sharing_exceeded"),
        *("blocked_file_type", "file_type_not_allowed", "file_uploads_disabled"),
        *("file_uploads_except_images_disabled", "file_upload_size_restricted"),
        *("snippet_too_large", "alt_txt_too_large", "unknown_snippet_type", "unknown_subtype"),
        *("missing_argument", "message_not_found", "cant_update_message", "cant_delete_message"),
        *("edit_window_closed", "cant_broadcast_message", "user_not_found"),
        *("user_not_in_channel", "users_not_found", "cannot_dm_bot", "thread_not_found"),
    }
)
"""Errors of Slack after which a message can never be sent there. Any other may pass: its pages warn
that other words come while it is in trouble. From the error tables of
chat.postMessage, chat.postEphemeral, chat.update, chat.delete, files.getUploadURLExternal and
files.completeUploadExternal, docs.slack.dev/reference/methods (copies of 2026-05-13 to 2026-08-01).
"""

ABOUT_THE_APP = frozenset(
    {
        *("accesslimited", "enterprise_is_restricted", "org_login_required"),
        *("team_access_not_granted", "team_added_to_org", "two_factor_setup_required"),
    }
)
"""Errors that Slack gives to every call of this app until somebody mends it. From the errors that
all methods share (copy of 2026-05-26)."""

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
    """Return what Slack's refusal means for a message."""
    if error.error in ENDS:
        return Refused(reason=str(error))
    is_ours = error.is_about_us or error.error in ABOUT_THE_APP
    return NotSent(reason=str(error), is_ours=is_ours)


def file_refused(error: SaidNo) -> NotSent | Refused:
    """Return the same for a file. The person gets a notice in its place, so it holds up nothing
    that comes after it, unless the bot itself is refused."""
    if error.error in BAD_TOKEN or error.error in ABOUT_THE_APP:
        return refused(error)
    return Refused(reason=why_refused(error))


async def looked_up(search: Awaitable[str | None]) -> LookedUp:
    """What a search for a message of ours says of its fate."""
    try:
        found = await search
    except TooMuchSaid as error:
        return Refused(reason=str(error))
    except SaidNo as error:
        # Without the scope to read, nobody can ever look.
        can_wait = error.error not in ENDS and error.error != "missing_scope"
        return InDoubt(reason=str(error)) if can_wait else Refused(reason=str(error))
    except SlackTrouble as error:
        return InDoubt(reason=str(error))
    return NotSent(reason="it is not there") if found is None else Sent(message_id=found)
