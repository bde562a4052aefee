"""What is put into a conversation of Slack: texts, ephemeral messages and reactions, each by its
call; and what a refusal of one means. Called by `bot.channels.slack.channel`.

Nothing here lets Slack open a link for a preview or look for names: a model may have been led to
write one that tells somebody something, and nobody is called by what it writes.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

import structlog

from bot.channels.base import (
    Delivery,
    DeliveryRefused,
    InDoubt,
    LookedUp,
    MessagePart,
    NotSent,
    Reacted,
    Reaction,
    SentMessage,
    reader_of,
)
from bot.channels.slack.api import (
    BAD_TOKEN,
    Limited,
    NoAnswer,
    SaidNo,
    SlackAnswer,
    SlackTrouble,
    SlackWeb,
)
from bot.channels.slack.files import why_refused
from bot.channels.slack.lookup import TooMuchSaid, metadata
from bot.channels.slack.wire import EventKind, SlackEvent
from bot.channels.wire import text_of
from bot.markup.render import slack_parts
from bot.markup.slack import escaped
from memory.records.messages import Address
from memory.records.ports import Clock
from memory.records.rows import Button, ButtonRows

# --- slack blocks -------------------------------------------------------------------------------
#
# A message with buttons as Slack's blocks: its text in sections, each row of buttons below it.
#
# Called by `bot.channels.slack.channel` and `bot.channels.slack.app_home`. A message without
# buttons has no blocks: its text alone is shown.

Block = dict[str, Any]

SECTION_CHARS_MAX = 2_800
"""Slack takes 3,000; a fence that is closed and opened anew needs room."""

ROW_BUTTONS_MAX = 25
LABEL_CHARS_MAX = 75

_STYLES = {"good": "primary", "bad": "danger"}
_FENCE = "```"


def marked_blocks(part: MessagePart) -> list[Block]:
    """The message with its markup, which is mrkdwn."""
    texts = [part.markup]
    if len(part.markup) > SECTION_CHARS_MAX:
        source = part.source.lstrip("\n")
        if part.markup.startswith(_FENCE) and not source.startswith((_FENCE, "~~~", "|")):
            source = f"{_FENCE}\n{source}"  # it begins in the middle of a block of code
        texts = [one.markup for one in slack_parts(source, limit=SECTION_CHARS_MAX)]
    return [*map(marked, texts), *_actions(part.buttons)]


def plain_blocks(part: MessagePart) -> list[Block]:
    """The same where Slack refuses the markup: what was written, as it is."""
    text = part.source.strip()
    pieces = [text[at : at + SECTION_CHARS_MAX] for at in range(0, len(text), SECTION_CHARS_MAX)]
    shown = [{"type": "plain_text", "text": piece, "emoji": False} for piece in pieces]
    sections = [{"type": "section", "text": one, "expand": True} for one in shown]
    return [*sections, *_actions(part.buttons)]


def marked(text: str) -> Block:
    """Of what is no mark, Slack is to make neither links nor names."""
    shown = {"type": "mrkdwn", "text": text, "verbatim": True}
    return {"type": "section", "text": shown, "expand": True}


def _actions(rows: ButtonRows) -> list[Block]:
    """An action id names a button within its message, and nothing else: the value says what it
    is."""
    found: list[Block] = []
    number = 0
    for row in rows:
        for at in range(0, len(row), ROW_BUTTONS_MAX):
            some = row[at : at + ROW_BUTTONS_MAX]
            elements = [button_block(button, n) for n, button in enumerate(some, number + 1)]
            found.append({"type": "actions", "elements": elements})
            number += len(some)
    return found


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


# --- slack reactions ----------------------------------------------------------------------------
#
# The names by which Slack knows emojis: those that somebody would react with. Called by
# `bot.channels.slack.channel`. Any other emoji may be given by its name, those of the workspace
# too.

_NAMES = {
    "👍": "+1", "👎": "-1", "👌": "ok_hand", "👏": "clap", "🙌": "raised_hands", "🙏": "pray",
    "🤝": "handshake", "💪": "muscle", "👋": "wave", "✌": "v", "🤞": "crossed_fingers",
    "👊": "facepunch", "✊": "fist", "☝": "point_up", "👆": "point_up_2", "👇": "point_down",
    "👉": "point_right", "👈": "point_left", "✍": "writing_hand", "🫡": "saluting_face",
    "🫶": "heart_hands", "👀": "eyes", "🧠": "brain", "❤": "heart", "♥": "hearts",
    "🧡": "orange_heart", "💛": "yellow_heart", "💚": "green_heart", "💙": "blue_heart",
    "💜": "purple_heart", "🖤": "black_heart", "🤍": "white_heart", "💔": "broken_heart",
    "💖": "sparkling_heart", "💘": "cupid", "💯": "100", "🔥": "fire", "✨": "sparkles",
    "⭐": "star", "🌟": "star2", "⚡": "zap", "💡": "bulb", "🚀": "rocket", "🎉": "tada",
    "🎊": "confetti_ball", "🥳": "partying_face", "🏆": "trophy", "🥇": "first_place_medal",
    "🎁": "gift", "🎂": "birthday", "🍾": "champagne", "🥂": "clinking_glasses", "☕": "coffee",
    "✅": "white_check_mark", "✔": "heavy_check_mark", "☑": "ballot_box_with_check", "❌": "x",
    "❎": "negative_squared_cross_mark", "🚫": "no_entry_sign", "⛔": "no_entry", "⚠": "warning",
    "❗": "exclamation", "❓": "question", "❔": "grey_question", "➕": "heavy_plus_sign",
    "🆗": "ok", "🆒": "cool", "🆕": "new", "🔴": "red_circle", "🟢": "large_green_circle",
    "🟡": "large_yellow_circle", "🔵": "large_blue_circle", "📌": "pushpin", "📎": "paperclip",
    "📝": "memo", "📅": "date", "📆": "calendar", "📈": "chart_with_upwards_trend",
    "📉": "chart_with_downwards_trend", "📊": "bar_chart", "📁": "file_folder", "📧": "e-mail",
    "🔗": "link", "🔒": "lock", "🔑": "key", "🔍": "mag", "🔎": "mag_right", "🔔": "bell",
    "🔕": "no_bell", "⏰": "alarm_clock", "⏳": "hourglass_flowing_sand", "⌛": "hourglass",
    "🔁": "repeat", "🛠": "hammer_and_wrench", "🔧": "wrench", "🐛": "bug", "🤖": "robot_face",
    "💬": "speech_balloon", "😀": "grinning", "😃": "smiley", "😄": "smile", "😁": "grin",
    "😆": "laughing", "😅": "sweat_smile", "😂": "joy", "🤣": "rolling_on_the_floor_laughing",
    "🙂": "slightly_smiling_face", "🙃": "upside_down_face", "😉": "wink", "😊": "blush",
    "😇": "innocent", "🥰": "smiling_face_with_3_hearts", "😍": "heart_eyes", "🤩": "star-struck",
    "😘": "kissing_heart", "😋": "yum", "😎": "sunglasses", "🤓": "nerd_face",
    "🧐": "face_with_monocle", "🤔": "thinking_face", "🤨": "face_with_raised_eyebrow",
    "😐": "neutral_face", "😏": "smirk", "🙄": "face_with_rolling_eyes", "😬": "grimacing",
    "🤗": "hugging_face", "🤫": "shushing_face", "🤐": "zipper_mouth_face", "😴": "sleeping",
    "🥱": "yawning_face", "😷": "mask", "🤒": "face_with_thermometer", "🤮": "face_vomiting",
    "🤯": "exploding_head", "🥴": "woozy_face", "😮": "open_mouth", "😲": "astonished",
    "😳": "flushed", "🥺": "pleading_face", "😢": "cry", "😭": "sob", "😱": "scream",
    "😨": "fearful", "😞": "disappointed", "😔": "pensive", "🙁": "slightly_frowning_face",
    "😤": "triumph", "😡": "rage", "😠": "angry", "🤬": "face_with_symbols_on_mouth",
    "😈": "smiling_imp", "💀": "skull", "💩": "hankey", "🤡": "clown_face", "👻": "ghost",
    "👾": "space_invader", "🎃": "jack_o_lantern", "🎄": "christmas_tree", "🎅": "santa",
    "☃": "snowman", "🙈": "see_no_evil", "🙉": "hear_no_evil", "🙊": "speak_no_evil",
    "🤷": "shrug", "🤦": "face_palm", "💅": "nail_care", "🦄": "unicorn_face", "🐳": "whale",
    "🕊": "dove_of_peace", "🌚": "new_moon_with_face", "☀": "sunny", "🌧": "rain_cloud",
    "🌈": "rainbow", "🍀": "four_leaf_clover", "🌭": "hotdog", "🍕": "pizza", "🍌": "banana",
    "🍓": "strawberry", "💋": "kiss", "💊": "pill", "🗿": "moyai",
    "🤷\u200d♂": "man-shrugging", "🤷\u200d♀": "woman-shrugging",
    "👨\u200d💻": "male-technologist", "👩\u200d💻": "female-technologist",
}  # fmt: skip
_NAME = re.compile(r":?([a-z0-9_+'-]{1,100})(?:::skin-tone-[2-6])?:?")
_UNSEEN = {0xFE0F: None, 0xFE0E: None} | dict.fromkeys(range(0x1F3FB, 0x1F400))
"""How an emoji is drawn, and the colour of a skin."""


def slack_name(emoji: str) -> str:
    """Slack's name of an emoji, or the name that was given; empty where it is not known."""
    plain = emoji.strip().translate(_UNSEEN)
    if plain in _NAMES:
        return _NAMES[plain]
    named = _NAME.fullmatch(plain.casefold())
    return named[1] if named else ""


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
) -> SlackAnswer:
    """Return what Slack answered; plain where it refuses the markup. Raises SlackTrouble."""
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
    await web.call("chat.postEphemeral", text=escaped(text.strip()), **_UNREAD, **where)


async def put_reaction(web: SlackWeb, address: Address, message_id: str, emoji: str) -> Reaction:
    """An emoji by Slack's name of it."""
    name = slack_name(emoji)
    if not name:
        return DeliveryRefused(reason=f"Slack has no emoji {emoji!r}; name one as :thumbsup:")
    try:
        await web.call(
            "reactions.add", channel=channel_of(address), timestamp=message_id, name=name
        )
    except SaidNo as error:
        if error.error != "already_reacted":
            return DeliveryRefused(reason=f"Slack does not take this reaction ({error})")
    except SlackTrouble as error:
        seconds = error.seconds if isinstance(error, Limited) else None
        return NotSent(reason=str(error), retry_after_s=seconds)
    return Reacted(shown=f":{name}:")


def channel_of(address: Address) -> str:
    """Slack's id of the conversation, without the workspace's."""
    return address.chat_id.partition(".")[2]


def fate(error: SlackTrouble) -> NotSent | InDoubt | DeliveryRefused:
    """Return what became of a message whose call did not go well."""
    match error:
        case Limited():
            return NotSent(reason=str(error), retry_after_s=error.seconds)
        case SaidNo() if error.error in ENDS:
            return DeliveryRefused(reason=str(error))
        case SaidNo():
            is_ours = error.is_about_us or error.error in ABOUT_THE_APP
            return NotSent(reason=str(error), is_ours=is_ours)
        case NoAnswer(surely_not=True):
            return NotSent(reason=str(error))
        case _:
            return InDoubt(reason=str(error))


def fate_of_file(error: SlackTrouble) -> NotSent | InDoubt | DeliveryRefused:
    """Return the same for a file. The person gets a notice in its place, so it holds up nothing
    that comes after it, unless the bot itself is refused."""
    if isinstance(error, SaidNo) and error.error not in BAD_TOKEN | ABOUT_THE_APP:
        return DeliveryRefused(reason=why_refused(error))
    return fate(error)


async def looked_up(search: Awaitable[str | None]) -> LookedUp:
    """Return what a search for a message of ours says of its fate."""
    try:
        found = await search
    except TooMuchSaid as error:
        return DeliveryRefused(reason=str(error))
    except SaidNo as error:
        # Without the scope to read, nobody can ever look.
        can_wait = error.error not in ENDS and error.error != "missing_scope"
        return InDoubt(reason=str(error)) if can_wait else DeliveryRefused(reason=str(error))
    except SlackTrouble as error:
        return InDoubt(reason=str(error))
    return NotSent(reason="it is not there") if found is None else SentMessage(message_id=found)


# --- slack asides -------------------------------------------------------------------------------
#
# Answers that one person alone sees in a channel of Slack. Called by `bot.channels.slack.channel`.
#
# Slack gives an address with each command, under which it can be answered so, five times within
# thirty minutes. Whoever has it writes in our name, so it is kept in memory alone: after a restart,
# or once it is used up, the person is answered by a whisper, and where that cannot be, directly.

GOOD_FOR_S = 1_800.0 - 30.0
"""Slack takes answers for thirty minutes; one that is on its way should come in time."""
USES_MAX = 5
KEPT_MAX = 1_000

CHARS_MAX = 4_000
"""Of a message that is edited nowhere else either; one that is full is sent without a word about
where it belongs."""

SEEN_ONCE = "aside"
"""In place of a message's id: nobody can change what only one person saw, or look for it."""

DIRECTLY = "_This answers a command of yours in a channel, where I cannot reach you alone._\n\n"

_TEXT_ALONE: dict[str, Any] = {
    "response_type": "ephemeral",
    "replace_original": False,
    "unfurl_links": False,
    "unfurl_media": False,
}


@dataclass(slots=True)
class _CommandUrl:
    """Where a command can be answered, and how often still."""

    chat_id: str
    user: str
    url: str
    until_s: float
    left: int = USES_MAX


class EphemeralMessages:
    """Says things to one person of a channel."""

    def __init__(self, web: SlackWeb, *, base_url: str, clock: Clock) -> None:
        self._web = web
        self._host = urlsplit(base_url).hostname or ""
        self._clock = clock
        self._urls: deque[_CommandUrl] = deque(maxlen=KEPT_MAX)

    def heard(self, found: SlackEvent, payload: Mapping[str, Any]) -> None:
        """Keeps where a command of somebody who is let in can be answered. Before it is acted
        on."""
        url = text_of(payload, "response_url")
        is_command = found.payload.kind is EventKind.COMMAND
        if not is_command or not found.is_group or not self._is_slacks(url):
            return
        until_s = self._clock.monotonic() + GOOD_FOR_S
        kept = _CommandUrl(chat_id=found.chat_id, user=found.sender, url=url, until_s=until_s)
        self._urls.append(kept)

    async def say(self, address: Address, part: MessagePart) -> Delivery:
        """One message to the reader of a place of `bot.channels.base`, by the best way that
        works."""
        try:
            if await self._answered(address, part) or await self._whispered(address, part):
                return SentMessage(message_id=SEEN_ONCE)
            return await self._directly(address, part)
        except SlackTrouble as error:
            return fate(error)

    async def _answered(self, address: Address, part: MessagePart) -> bool:
        """Under the last address that came with a command of this person's in this channel and is
        good still; the others are forgotten. Raises Limited, NoAnswer."""
        now_s = self._clock.monotonic()
        good = [kept for kept in self._urls if kept.left > 0 and kept.until_s > now_s]
        self._urls = deque(good, maxlen=KEPT_MAX)
        place = (address.chat_id, reader_of(address))
        for kept in reversed([one for one in good if (one.chat_id, one.user) == place]):
            kept.left -= 1
            try:
                await self._web.respond(kept.url, text=part.markup, **_TEXT_ALONE)
            except SaidNo as error:
                log.info("slack.aside_refused", why=str(error))
                kept.left = 0
            else:
                return True
        return False

    async def _whispered(self, address: Address, part: MessagePart) -> bool:
        """Only members of a channel can be whispered to, and only where we are one. Raises
        SlackTrouble."""
        where = {"channel": channel_of(address), "user": reader_of(address)}
        try:
            await posted_text(self._web, "chat.postEphemeral", replace(part, mark=""), where)
        except SaidNo as error:
            if error.is_about_us:
                raise
            log.info("slack.aside_refused", why=str(error))
            return False
        return True

    async def _directly(self, address: Address, part: MessagePart) -> Delivery:
        """In the person's own chat with us. Raises SlackTrouble."""
        told = replace(part, mark="")
        if len(part.markup) + len(DIRECTLY) <= CHARS_MAX:
            told = replace(
                told, markup=f"{DIRECTLY}{part.markup}", source=f"{DIRECTLY}{part.source}"
            )
        await posted_text(self._web, "chat.postMessage", told, {"channel": reader_of(address)})
        return SentMessage(message_id=SEEN_ONCE)

    def _is_slacks(self, url: str) -> bool:
        """Return whether an address is on Slack's own side, wherever its Web API is."""
        try:
            parts = urlsplit(url)
            host = parts.hostname or ""
        except ValueError:
            return False
        if host == self._host:
            return parts.scheme in {"http", "https"}
        return parts.scheme == "https" and host.endswith(f".{self._host}")
