"""The `chat.*` methods of the Slack stand-in: posting, editing, deleting, streaming.

Called by `bot.lab.slack_api` for each request; everything here is done at once, without waiting.
Limits and error names are those of the public reference; what it does not say is marked.
"""

import json
import re
from collections import deque
from collections.abc import Callable
from typing import Any

from bot.lab.slack_blocks import MARKDOWN_CHARS_MAX, block_problems, chars
from bot.lab.slack_events import Events
from bot.lab.slack_params import SlackParams
from bot.lab.slack_rules import SlackRules
from bot.lab.slack_state import (
    Conversation,
    Json,
    SlackMessage,
    SlackRefusal,
    SlackWorkspace,
    Stream,
)

TEXT_CHARS_MAX = 40_000
UPDATE_CHARS_MAX = 4_000
METADATA_BYTES_MAX = 8 * 1024
ATTACHMENTS_MAX = 100
SENT_KEPT = 200_000
_TS = re.compile(r"\d+\.\d+")
_EVENT_TYPE = re.compile(r"[A-Za-z0-9_.:-]{1,255}")
_CHUNKS = frozenset({"markdown_text", "task_update", "plan_update", "blocks"})
_UNFURLING = ("unfurl_links", "unfurl_media")
_CONTENT = ("text", "blocks", "attachments", "markdown_text")


class Chat:
    """What the bot does to messages."""

    def __init__(self, workspace: SlackWorkspace, rules: SlackRules, events: Events) -> None:
        self._workspace = workspace
        self._rules = rules
        self._events = events
        self.sent: deque[Json] = deque(maxlen=SENT_KEPT)
        self.previewed: deque[Json] = deque(maxlen=SENT_KEPT)
        self.methods: dict[str, Callable[[SlackParams], Json]] = {
            "chat.postMessage": self._post_message,
            "chat.postEphemeral": self._post_ephemeral,
            "chat.update": self._update,
            "chat.delete": self._delete,
            "chat.startStream": self._start_stream,
            "chat.appendStream": self._append_stream,
            "chat.stopStream": self._stop_stream,
            "chat.getPermalink": self._permalink,
        }

    # Posting ------------------------------------------------------------------------------------

    def post(
        self, conversation: Conversation, content: Json, *, thread_ts: str | None = None
    ) -> SlackMessage:
        """A message of the bot, and its echo; also for files and answers to commands."""
        message = self._bot_message() | content
        if thread_ts is not None:
            message["thread_ts"] = thread_ts
        metadata = message.pop("metadata", None)
        kept = self._workspace.keep(conversation.id, message, is_bot=True)
        kept.metadata = metadata
        if thread_ts is not None:
            self._workspace.statuses.pop((conversation.id, thread_ts), None)
        self.sent.append({**message, "channel": conversation.id, "metadata": metadata})
        self._events.posted(kept)
        return kept

    def writable(self, named: str) -> Conversation:
        """Where the bot may post: a conversation by id or name, or the person to write to."""
        if not named:
            raise SlackRefusal("invalid_arguments", messages=["missing required field: channel"])
        me = self._workspace.identity.bot_user
        if named[0] in "UW" and named in self._workspace.users and named != me:
            return self._workspace.direct(named)
        found = self._workspace.find_conversation(named)
        inside = found is not None and me in found.members
        if found is None or (found.private and not inside):
            raise SlackRefusal("channel_not_found")
        if found.is_archived:
            raise SlackRefusal("is_archived")
        if not inside and "chat:write.public" not in self._rules.bot_scopes:
            raise SlackRefusal("not_in_channel")
        return found

    def thread(self, conversation: Conversation, p: SlackParams) -> str | None:
        """The ts of the parent under which a reply will stand; None: in the conversation."""
        given = p.get("thread_ts")
        if not given:
            return None
        if not _TS.fullmatch(str(given)):
            wrong = f"{given} is not a valid thread_ts"
            raise SlackRefusal("invalid_thread_ts", messages=[wrong])
        parent = self._workspace.parent_of(conversation.id, str(given))
        if parent is None and self._rules.missing_thread == "refuse":
            raise SlackRefusal("thread_not_found")
        return parent.ts if parent is not None else None

    def _post_message(self, p: SlackParams) -> Json:
        conversation = self.writable(p.text("channel"))
        thread_ts = self.thread(conversation, p)
        content = self._content(p)
        truncated = len(content["text"]) > TEXT_CHARS_MAX
        content["text"] = content["text"][:TEXT_CHARS_MAX]
        if (metadata := self._metadata(p)) is not None:
            content["metadata"] = metadata
        if thread_ts is not None and p.flag("reply_broadcast"):
            content["subtype"] = "thread_broadcast"
        kept = self.post(conversation, content, thread_ts=thread_ts)
        if not all(p.text(name).lower() in {"false", "0"} for name in _UNFURLING):
            self.previewed.append({"channel": conversation.id, "text": content["text"]})
        answer: Json = {"channel": conversation.id, "ts": kept.ts, "message": self._shown(kept)}
        if truncated:
            warned = "message_truncated"
            answer |= {"warning": warned, "response_metadata": {"warnings": [warned]}}
        return answer

    def _post_ephemeral(self, p: SlackParams) -> Json:
        conversation = self.writable(p.text("channel"))
        user = p.needed("user")
        if user not in conversation.members:
            raise SlackRefusal("user_not_in_channel")
        content = self._content(p)
        if len(content["text"]) > TEXT_CHARS_MAX:
            raise SlackRefusal("msg_too_long")
        if thread_ts := self.thread(conversation, p):
            content["thread_ts"] = thread_ts
        seen = self._workspace.whisper(conversation.id, user, self._bot_message() | content)
        return {"message_ts": seen.ts}

    # Changing -----------------------------------------------------------------------------------

    def _update(self, p: SlackParams) -> Json:
        kept = self._own(p, "cant_update_message")
        conversation = self._workspace.conversations[kept.channel]
        window = self._rules.edit_window_s
        if conversation.is_archived:
            raise SlackRefusal("is_inactive")
        if kept.stream is not None:
            raise SlackRefusal("streaming_state_conflict")
        if window is not None and self._workspace.wall() - float(kept.ts) > window:
            raise SlackRefusal("edit_window_closed")
        if len(p.text("text")) > UPDATE_CHARS_MAX:
            raise SlackRefusal("msg_too_long")
        content = self._content(p)
        metadata = self._metadata(p)
        self.change(kept, content, text_given=bool(p.text("text") or p.text("markdown_text")))
        if metadata is not None:
            kept.metadata = metadata or None
        shown = self._shown(kept)
        return {
            "channel": kept.channel,
            "ts": kept.ts,
            "text": shown.get("text", ""),
            "message": shown,
        }

    def change(self, kept: SlackMessage, content: Json, *, text_given: bool = True) -> None:
        """Give a message of the bot new content; a new text alone takes its blocks away."""
        previous = self._workspace.shown(kept)
        message = {**kept.message}
        if "blocks" not in content and text_given:
            message.pop("blocks", None)
        message |= content if text_given else {k: v for k, v in content.items() if k != "text"}
        me = self._workspace.identity.bot_user
        message["edited"] = {"user": me, "ts": self._workspace.next_ts()}
        kept.message = message
        kept.edits += 1
        self._events.changed(kept, previous)

    def remove(self, kept: SlackMessage) -> None:
        """Take a message away, and tell the app."""
        previous = self._workspace.shown(kept)
        self._workspace.delete(kept)
        self._events.deleted(kept, previous)

    def _delete(self, p: SlackParams) -> Json:
        kept = self._own(p, "cant_delete_message")
        self.remove(kept)
        return {"channel": kept.channel, "ts": kept.ts}

    def _permalink(self, p: SlackParams) -> Json:
        conversation = self.writable(p.text("channel"))
        ts = p.text("message_ts")
        if self._workspace.find(conversation.id, ts) is None:
            raise SlackRefusal("message_not_found")
        domain = self._workspace.identity.domain
        path = f"archives/{conversation.id}/p{ts.replace('.', '')}"
        return {"channel": conversation.id, "permalink": f"https://{domain}.slack.com/{path}"}

    # Streaming ----------------------------------------------------------------------------------

    def _start_stream(self, p: SlackParams) -> Json:
        conversation = self.writable(p.text("channel"))
        p.needed("thread_ts")
        thread_ts = self.thread(conversation, p)
        if thread_ts is None:
            raise SlackRefusal("invalid_thread_ts")
        if conversation.kind != "im":
            for name in ("recipient_team_id", "recipient_user_id"):
                if not p.text(name):
                    raise SlackRefusal(f"missing_{name}")
            if p.text("recipient_user_id") not in self._workspace.users:
                raise SlackRefusal("user_not_found")
        stream = Stream(begun_at=self._workspace.clock())
        text, blocks = self._streamed(stream, p)
        content: Json = {"text": text} | ({"blocks": blocks} if blocks else {})
        kept = self.post(conversation, content, thread_ts=thread_ts)
        kept.stream = stream
        return {"channel": conversation.id, "ts": kept.ts}

    def _append_stream(self, p: SlackParams) -> Json:
        kept, stream = self._streaming(p)
        if p.get("markdown_text") is None and p.get("chunks") is None:
            raise SlackRefusal("markdown_text_or_chunks_required")
        self._grow(kept, stream, p)
        return {"channel": kept.channel, "ts": kept.ts}

    def _stop_stream(self, p: SlackParams) -> Json:
        kept, stream = self._streaming(p)
        blocks = self._blocks(p)
        metadata = self._metadata(p)
        previous = self._workspace.shown(kept)
        self._grow(kept, stream, p)
        if blocks:
            kept.message["blocks"] = [*kept.message.get("blocks", []), *blocks]
        if metadata:
            kept.metadata = metadata
        kept.stream = None
        kept.edits += 1
        self._events.changed(kept, previous)
        return {"channel": kept.channel, "ts": kept.ts, "message": self._shown(kept)}

    def _streaming(self, p: SlackParams) -> tuple[SlackMessage, Stream]:
        kept = self._own(p, "message_not_owned_by_app")
        stream = kept.stream
        lasts = self._rules.stream_lasts_s
        age = self._workspace.clock() - stream.begun_at if stream is not None else 0.0
        if lasts is not None and age > lasts:
            stream = kept.stream = None
        if stream is None:
            raise SlackRefusal("message_not_in_streaming_state")
        if stream.stopped_by_user:
            raise SlackRefusal("stopped_by_user")
        return kept, stream

    def _grow(self, kept: SlackMessage, stream: Stream, p: SlackParams) -> None:
        text, blocks = self._streamed(stream, p)
        kept.message["text"] = str(kept.message.get("text", "")) + text
        if blocks:
            kept.message["blocks"] = [*kept.message.get("blocks", []), *blocks]

    def _streamed(self, stream: Stream, p: SlackParams) -> tuple[str, list[Json]]:
        """The text and the blocks that a call adds; the form must be that of the first one."""
        markdown, chunks = p.get("markdown_text"), p.nested("chunks", "invalid_chunks")
        if markdown is not None and chunks:
            raise SlackRefusal("cannot_provide_both_markdown_text_and_chunks")
        mode = "markdown_text" if markdown is not None else "chunks" if chunks else None
        if mode is None:
            return "", []
        if stream.mode not in {None, mode}:
            raise SlackRefusal("streaming_mode_mismatch")
        stream.mode = mode
        if mode == "markdown_text":
            chunks = [{"type": "markdown_text", "text": markdown}]
        text: list[str] = []
        blocks: list[Json] = []
        for chunk in chunks if isinstance(chunks, list) else [chunks]:
            if not isinstance(chunk, dict) or chunk.get("type") not in _CHUNKS:
                raise SlackRefusal("invalid_chunks")
            match chunk["type"]:
                case "markdown_text":
                    text.append(_checked_markdown(chunk.get("text")))
                case "task_update":
                    stream.tasks[str(chunk.get("id"))] = chunk
                case "blocks":
                    blocks += _checked_blocks(chunk.get("blocks"), self._rules)
        return "".join(text), blocks

    # Parts --------------------------------------------------------------------------------------

    def _own(self, p: SlackParams, otherwise: str) -> SlackMessage:
        channel, ts = p.needed("channel"), p.needed("ts")
        conversation = self._workspace.conversations.get(channel)
        if conversation is None:
            raise SlackRefusal("channel_not_found")
        kept = self._workspace.find(channel, ts)
        if kept is None or kept.tombstone:
            raise SlackRefusal("message_not_found")
        if kept.message.get("user") != self._workspace.identity.bot_user:
            raise SlackRefusal(otherwise)
        return kept

    def _content(self, p: SlackParams) -> Json:
        blocks = self._blocks(p)
        attachments = p.nested("attachments", "invalid_attachments")
        text = p.text("text")
        if markdown := p.text("markdown_text"):
            if text or blocks:
                raise SlackRefusal("markdown_text_conflict")
            text = _checked_markdown(markdown)
        if not text and not blocks and not attachments:
            raise SlackRefusal("no_text")
        if isinstance(attachments, list) and len(attachments) > ATTACHMENTS_MAX:
            raise SlackRefusal("too_many_attachments")
        content: Json = {"text": text}
        if blocks is not None:
            content["blocks"] = blocks
        if attachments:
            content["attachments"] = attachments
        return content

    def _blocks(self, p: SlackParams) -> list[Json] | None:
        blocks = p.nested("blocks", "invalid_blocks_format")
        if blocks is None:
            return None
        return _checked_blocks(blocks, self._rules)

    def _metadata(self, p: SlackParams) -> Json | None:
        metadata = p.nested("metadata", "invalid_metadata_format")
        if metadata is None:
            return None
        if metadata == {}:
            return {}
        if not isinstance(metadata, dict):
            raise SlackRefusal("invalid_metadata_format")
        kind, payload = metadata.get("event_type"), metadata.get("event_payload")
        named = isinstance(kind, str) and _EVENT_TYPE.fullmatch(kind)
        if not named or not isinstance(payload, dict):
            raise SlackRefusal("invalid_metadata_schema")
        if len(json.dumps(metadata)) > METADATA_BYTES_MAX:
            raise SlackRefusal("metadata_too_large")
        return {"event_type": kind, "event_payload": payload}

    def _bot_message(self) -> Json:
        me = self._workspace.identity
        return {
            "user": me.bot_user,
            "type": "message",
            "ts": self._workspace.next_ts(),
            "bot_id": me.bot,
            "app_id": me.app,
            "team": me.team,
            "bot_profile": {
                "id": me.bot,
                "app_id": me.app,
                "user_id": me.bot_user,
                "name": me.app_name,
                "deleted": False,
                "team_id": me.team,
            },
        }

    def _shown(self, kept: SlackMessage) -> Json:
        return self._workspace.shown(kept, metadata=True)


def _checked_markdown(text: Any) -> str:
    if not isinstance(text, str):
        raise SlackRefusal("invalid_chunks")
    if len(text) > MARKDOWN_CHARS_MAX:
        raise SlackRefusal("msg_too_long")
    return text


def _checked_blocks(blocks: Any, rules: SlackRules) -> list[Json]:
    if not isinstance(blocks, list):
        raise SlackRefusal("invalid_blocks_format")
    if problems := block_problems(blocks):
        raise SlackRefusal("invalid_blocks", messages=problems, errors=problems)
    if chars(blocks) > rules.blocks_chars_max:
        raise SlackRefusal("msg_blocks_too_long")
    return [{"block_id": f"lab{index}", **block} for index, block in enumerate(blocks)]
