"""Web API of the Slack stand-in: the methods that the bot calls, with their scopes and limits.

Called by `bot.lab.slack` for each request; everything here is done at once, without waiting.
Limits and error names are those of the public reference. Whether blocks are whole in each detail
is judged in the tests by Slack's own library; here only what is cut or counted is refused.
"""

import base64
import json
import re
import uuid
from collections import deque
from collections.abc import Callable, Iterable

from bot.lab.faults import Buckets
from bot.lab.server import NOT_JSON
from bot.lab.slack_events import Events
from bot.lab.slack_state import (
    APP,
    BOT,
    BOT_NAME,
    BOT_USER,
    CONNECT,
    DOMAIN,
    FAMILIES,
    TEAM,
    Conversation,
    Json,
    SlackFile,
    SlackMessage,
    SlackParams,
    SlackRefusal,
    SlackRules,
    SlackWorkspace,
    check_blocks,
)

TEXT_CHARS_MAX = 40_000
UPDATE_CHARS_MAX = 4_000
MESSAGE_BLOCKS_MAX, VIEW_BLOCKS_MAX = 50, 100
METADATA_BYTES_MAX = 8 * 1024
UPLOAD_BYTES_MAX = 1024 * 1024 * 1024
PROMPTS_MAX = 4
PAGE_MAX = 999
TRIGGER_LASTS_S = 3.0
RESPONSE_URL_USES, RESPONSE_URL_S = 5, 1800.0
SENT_KEPT = 200_000
_TS = re.compile(r"\d+\.\d+")
_EVENT_TYPE = re.compile(r"[A-Za-z0-9_.:-]{1,255}")


Act = Callable[["WebApi", SlackParams], Json]
METHODS: dict[str, tuple[int, tuple[str, ...], Act]] = {}
"""By name: requests a minute that Slack allows at least, the scopes of which one must be there,
and what it does."""


def method(name: str, per_minute: int, *scopes: str) -> Callable[[Act], Act]:
    """Make a function the method of this name. In a scope `*` stands for the family of the
    conversation: channels, groups, im or mpim."""

    def register(act: Act) -> Act:
        METHODS[name] = per_minute, scopes, act
        return act

    return register


class WebApi:
    """The methods over one workspace."""

    def __init__(
        self,
        workspace: SlackWorkspace,
        rules: SlackRules,
        events: Events,
        *,
        token: str,
        app_token: str,
        root: Callable[[], str],
        tickets: set[str],
    ) -> None:
        self.sent: deque[Json] = deque(maxlen=SENT_KEPT)
        self.previewed: deque[Json] = deque(maxlen=SENT_KEPT)
        self._workspace = workspace
        self._rules = rules
        self._events = events
        self._token, self._app_token = token, app_token
        self._root = root
        self._tickets = tickets
        self._buckets = Buckets(workspace.clock)

    def call(self, method: str, params: SlackParams) -> Json:
        """Return what the method answers; raise SlackRefusal with Slack's word for what is
        wrong."""
        if method not in METHODS:
            raise SlackRefusal("unknown_method", req_method=method)
        rules, (per_minute, scopes, act) = self._rules, METHODS[method]
        token = params.token
        if not token:
            raise SlackRefusal("not_authed")
        if token not in {self._token, self._app_token}:
            raise SlackRefusal("invalid_auth")
        # auth.test takes either token; that is how an app finds out which one it has.
        if (method == CONNECT) != (token == self._app_token) and method != "auth.test":
            raise SlackRefusal("not_allowed_token_type")
        if token == self._token and rules.token_error is not None:
            raise SlackRefusal(rules.token_error)
        if method == CONNECT:
            self._check_scopes(["connections:write"], rules.app_scopes)
        elif scopes:
            found = self._workspace.conversations.get(params.text("channel"))
            families = FAMILIES.values() if found is None else [FAMILIES[found.kind]]
            wanted = [s.replace("*", f) for s in scopes for f in (families if "*" in s else [""])]
            self._check_scopes(wanted, rules.bot_scopes)
        bucket: tuple[object, float, float] = (method, per_minute / 60, per_minute)
        if method == "chat.postMessage":
            bucket = (params.text("channel"), 1.0, 3.0)
        if rules.limits and (wait_s := self._buckets.wait_s([bucket])):
            raise SlackRefusal("ratelimited", status=429, retry_after=wait_s)
        if NOT_JSON in params:
            raise SlackRefusal("invalid_json")
        return {"ok": True, **act(self, params)}

    def scope_headers(self, token: str) -> dict[str, str]:
        """The header in which Slack tells the scopes of a token."""
        rules = self._rules
        has = rules.app_scopes if token == self._app_token else rules.bot_scopes
        return {"X-OAuth-Scopes": ",".join(sorted(has))}

    def _check_scopes(self, wanted: Iterable[str], has: set[str]) -> None:
        if has.isdisjoint(wanted):
            provided = ",".join(sorted(has))
            raise SlackRefusal("missing_scope", needed=",".join(wanted), provided=provided)

    # Messages -----------------------------------------------------------------------------------

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
        # A reply takes the status line away, without a call of the bot.
        self._workspace.statuses.pop((conversation.id, str(thread_ts)), None)
        self.sent.append({**message, "channel": conversation.id, "metadata": metadata})
        self._events.posted(kept)
        return kept

    def change(self, kept: SlackMessage, content: Json) -> None:
        """Give a message of the bot new content; its old blocks go."""
        previous = self._workspace.shown(kept)
        message = {name: value for name, value in kept.message.items() if name != "blocks"}
        edited = {"user": BOT_USER, "ts": self._workspace.next_ts()}
        kept.message = message | content | {"edited": edited}
        kept.metadata = kept.message.pop("metadata", kept.metadata)
        kept.edits += 1
        self._events.changed(kept, previous)

    def remove(self, kept: SlackMessage) -> None:
        """Take a message away, and tell the app."""
        previous = self._workspace.shown(kept)
        del self._workspace.messages[kept.channel][kept.ts]
        self._events.deleted(kept, previous)

    def respond(self, path: str, params: SlackParams) -> None:
        """An answer to a response URL; raise SlackRefusal when it is used up."""
        url = self._workspace.response_urls[path]
        if self._workspace.clock() - url.at > RESPONSE_URL_S:
            raise SlackRefusal("expired_url", status=404)
        if url.uses >= RESPONSE_URL_USES:
            raise SlackRefusal("used_url", status=404)
        if not (params.get("text") or params.get("blocks")):
            raise SlackRefusal("no_text", status=400)
        self.answer(url.channel, url.user, params)
        url.uses += 1

    def answer(self, channel: str, user: str, said: Json) -> None:
        """What answers a command: seen by the one who typed it, if it does not wish otherwise."""
        content: Json = {"text": str(said.get("text", ""))}
        if "blocks" in said:
            content["blocks"] = said["blocks"]
        if said.get("response_type") == "in_channel":
            place = self._workspace.conversation(channel)
            self.post(place, content, thread_ts=said.get("thread_ts"))
        else:
            whispered = self._bot_message() | content
            whispered |= {"user": said["user"]} if "user" in said else {}
            self._workspace.whisper(channel, user, whispered)

    @method("chat.postMessage", 100, "chat:write")
    def post_message(self, p: SlackParams) -> Json:
        conversation = self._writable(p.needed("channel"))
        thread_ts = self._thread(conversation, p)
        content = self._content(p)
        content["text"] = content["text"][:TEXT_CHARS_MAX]
        kept = self.post(conversation, content, thread_ts=thread_ts)
        if not all(
            p.text(f"unfurl_{what}").lower() in {"false", "0"} for what in ("links", "media")
        ):
            self.previewed.append({"channel": conversation.id, "text": content["text"]})
        shown = self._workspace.shown(kept, metadata=True)
        return {"channel": conversation.id, "ts": kept.ts, "message": shown}

    @method("chat.postEphemeral", 100, "chat:write")
    def post_ephemeral(self, p: SlackParams) -> Json:
        conversation = self._writable(p.needed("channel"))
        user = p.needed("user")
        if user not in conversation.members:
            raise SlackRefusal("user_not_in_channel")
        content = self._content(p)
        if len(content["text"]) > TEXT_CHARS_MAX:
            raise SlackRefusal("msg_too_long")
        if thread_ts := self._thread(conversation, p):
            content["thread_ts"] = thread_ts
        seen = self._workspace.whisper(conversation.id, user, self._bot_message() | content)
        return {"message_ts": seen.ts}

    @method("chat.update", 50, "chat:write")
    def update(self, p: SlackParams) -> Json:
        kept = self._own(p, "cant_update_message")
        if self._workspace.conversations[kept.channel].is_archived:
            raise SlackRefusal("is_inactive")
        if len(p.text("text")) > UPDATE_CHARS_MAX:
            raise SlackRefusal("msg_too_long")
        self.change(kept, self._content(p))
        shown = self._workspace.shown(kept, metadata=True)
        return {"channel": kept.channel, "ts": kept.ts, "text": shown["text"], "message": shown}

    @method("chat.delete", 50, "chat:write")
    def delete(self, p: SlackParams) -> Json:
        kept = self._own(p, "cant_delete_message")
        self.remove(kept)
        return {"channel": kept.channel, "ts": kept.ts}

    @method("reactions.add", 50, "reactions:write")
    def react(self, p: SlackParams) -> Json:
        name = p.needed("name").strip(":")
        if not re.fullmatch(r"[\w+-]+", name):
            raise SlackRefusal("invalid_name")
        found = self._inside(p)
        if found.is_archived:
            raise SlackRefusal("is_archived")
        kept = self._workspace.find(found.id, p.text("timestamp"))
        if kept is None:
            raise SlackRefusal("message_not_found")
        users = kept.reactions.setdefault(name, [])
        if BOT_USER in users:
            raise SlackRefusal("already_reacted")
        users.append(BOT_USER)
        return {}

    # Reading ------------------------------------------------------------------------------------

    @method("conversations.history", 50, "*:history")
    def history(self, p: SlackParams) -> Json:
        there = self._workspace.messages.get(self._inside(p).id, {}).values()
        return self._page([kept for kept in there if not kept.is_reply][::-1], p, default=100)

    @method("conversations.replies", 50, "*:history")
    def replies(self, p: SlackParams) -> Json:
        found = self._inside(p)
        parent = self._workspace.parent_of(found.id, p.text("ts"))
        if parent is None:
            raise SlackRefusal("thread_not_found")
        replies = self._workspace.replies(found.id, parent.ts)
        return self._page(replies, p, default=1000, parent=parent)

    def _page(
        self,
        kept: list[SlackMessage],
        p: SlackParams,
        *,
        default: int,
        parent: SlackMessage | None = None,
    ) -> Json:
        """The messages since `oldest` from the cursor on; a thread's parent comes in any case."""
        try:
            oldest = float(p.text("oldest") or 0)
            cursor = base64.b64decode(p.text("cursor"), validate=True).decode()
        except ValueError:
            raise SlackRefusal("invalid_cursor") from None
        kept = [one for one in kept if float(one.ts) > oldest]
        kept = kept if parent is None else [parent, *kept]
        limit = min(max(1, p.number("limit", default)), max(default, PAGE_MAX))
        start = next((i for i, one in enumerate(kept) if one.ts == cursor), 0)
        page, rest = kept[start : start + limit], kept[start + limit :]
        all_metadata = p.flag("include_all_metadata")
        shown = [self._workspace.shown(one, metadata=all_metadata) for one in page]
        after = base64.b64encode(rest[0].ts.encode()).decode() if rest else ""
        more = {"response_metadata": {"next_cursor": after}} if rest else {}
        return {"messages": shown, "has_more": bool(rest), **more}

    @method(CONNECT, 1)
    def connect(self, _: SlackParams) -> Json:
        self._tickets.add(ticket := str(uuid.uuid4()))
        root = self._root().replace("http", "ws", 1)
        return {"url": f"{root}/link/?ticket={ticket}&app_id={APP}"}

    @method("auth.test", 100)
    def auth_test(self, _: SlackParams) -> Json:
        who = {"team_id": TEAM, "user_id": BOT_USER, "bot_id": BOT, "user": BOT_NAME}
        where = {"url": f"https://{DOMAIN}.slack.com/", "team": "Lab"}
        return {**where, **who, "is_enterprise_install": False}

    @method("users.info", 100, "users:read")
    def user_info(self, p: SlackParams) -> Json:
        user = self._workspace.users.get(p.needed("user"))
        if user is None:
            raise SlackRefusal("user_not_found")
        more = {"locale": user.locale} if p.flag("include_locale") else {}
        return {"user": user.shown() | more}

    # Files --------------------------------------------------------------------------------------

    def about_file(self, file: SlackFile) -> Json:
        """A file as the Web API shows it."""
        url = self._root() + file.path
        return {
            "id": file.id,
            "created": file.created,
            "name": file.name,
            "title": file.title,
            "mimetype": file.mime_type,
            "filetype": file.name.rpartition(".")[2] if "." in file.name else "text",
            "user": file.user,
            "size": len(file.data or b""),
            "mode": "hosted",
            "is_external": False,
            "file_access": "visible",
            "url_private": url,
            "url_private_download": url,
        }

    @method("files.getUploadURLExternal", 100, "files:write")
    def upload_url(self, p: SlackParams) -> Json:
        name, length = p.needed("filename"), p.number("length", 0)
        if length <= 0:
            raise SlackRefusal("missing_argument")
        if length > UPLOAD_BYTES_MAX:
            raise SlackRefusal("file_upload_size_restricted")
        file = self._workspace.add_file(name, user=BOT_USER, data=None, length=length)
        return {"upload_url": f"{self._root()}/upload/v1/{file.id}", "file_id": file.id}

    @method("files.completeUploadExternal", 100, "files:write")
    def complete_upload(self, p: SlackParams) -> Json:
        files = []
        for asked in p.parsed("files", "invalid_arguments") or ():
            file = self._workspace.files.get(str(asked.get("id")))
            if file is None or file.data is None:
                raise SlackRefusal("file_not_found")
            file.title = str(asked.get("title") or file.name)
            files.append(self.about_file(file))
        place = self._writable(p.needed("channel_id"))
        content: Json = {"text": p.text("initial_comment"), "subtype": "file_share", "files": files}
        self.post(place, content, thread_ts=self._thread(place, p))
        return {"files": files}

    @method("files.info", 100, "files:read")
    def file_info(self, p: SlackParams) -> Json:
        file = self._workspace.files.get(p.needed("file"))
        if file is None:
            raise SlackRefusal("file_not_found")
        return {"file": self.about_file(file), "comments": []}

    def _assistant_thread(self, p: SlackParams) -> tuple[str, str]:
        channel, thread_ts = p.needed("channel_id"), p.text("thread_ts")
        if channel not in self._workspace.conversations:
            raise SlackRefusal("channel_not_found")
        if self._workspace.find(channel, thread_ts) is None:
            raise SlackRefusal("invalid_thread_ts")
        return channel, thread_ts

    @method("assistant.threads.setStatus", 100, "chat:write", "assistant:write")
    def set_status(self, p: SlackParams) -> Json:
        thread = self._assistant_thread(p)
        self._workspace.statuses.pop(thread, None)
        if status := p.text("status"):
            self._workspace.statuses[thread] = status
        return {}

    @method("assistant.threads.setTitle", 100, "assistant:write")
    def set_title(self, p: SlackParams) -> Json:
        self._workspace.titles[self._assistant_thread(p)] = p.needed("title")
        return {}

    @method("assistant.threads.setSuggestedPrompts", 100, "assistant:write")
    def set_prompts(self, p: SlackParams) -> Json:
        thread, prompts = self._assistant_thread(p), p.parsed("prompts", "invalid_arguments")
        whole = isinstance(prompts, list) and 0 < len(prompts) <= PROMPTS_MAX
        if not whole or not all(one.get("title") and one.get("message") for one in prompts):
            raise SlackRefusal("invalid_arguments", messages=["invalid prompts"])
        self._workspace.prompts[thread] = prompts
        return {}

    @method("views.open", 100)
    def open_view(self, p: SlackParams) -> Json:
        at = self._workspace.triggers.get(p.text("trigger_id"))
        if at is None:
            raise SlackRefusal("invalid_trigger_id")
        if self._workspace.clock() - at > TRIGGER_LASTS_S:
            raise SlackRefusal("expired_trigger_id")
        view = self._view(p, "modal", self._workspace.next_id("V"))
        del self._workspace.triggers[p.text("trigger_id")]  # good for one view
        self._workspace.views[view["id"]] = view
        return {"view": view}

    @method("views.publish", 100)
    def publish_view(self, p: SlackParams) -> Json:
        user = p.needed("user_id")
        if user not in self._workspace.users:
            raise SlackRefusal("user_not_found")
        before = self._workspace.homes.get(user)
        view = self._view(p, "home", before["id"] if before else self._workspace.next_id("V"))
        self._workspace.homes[user] = view
        return {"view": view}

    def _view(self, p: SlackParams, kind: str, view_id: str) -> Json:
        view = p.parsed("view", "invalid_arguments")
        if not isinstance(view, dict) or view.get("type") != kind:
            wrong = f"must be one of: {kind} [json-pointer:/view/type]"
            raise SlackRefusal("invalid_arguments", messages=[wrong])
        check_blocks(view.get("blocks"), most=VIEW_BLOCKS_MAX)
        return self._workspace.stored_view(view, view_id)

    # Parts --------------------------------------------------------------------------------------

    def _inside(self, p: SlackParams) -> Conversation:
        found = self._workspace.conversations.get(p.needed("channel"))
        if found is None or (found.kind != "channel" and BOT_USER not in found.members):
            raise SlackRefusal("channel_not_found")
        if BOT_USER not in found.members:
            raise SlackRefusal("not_in_channel")
        return found

    def _writable(self, named: str) -> Conversation:
        """Where the bot may post: a conversation, or the person to write to."""
        if named in self._workspace.users and named != BOT_USER:
            return self._workspace.direct(named)
        found = self._inside(SlackParams(channel=named))
        if found.is_archived:
            raise SlackRefusal("is_archived")
        return found

    def _thread(self, conversation: Conversation, p: SlackParams) -> str | None:
        """The ts of the parent under which a reply will stand. Slack posts a reply to a message
        that is gone into the channel, without a word."""
        given = p.get("thread_ts")
        if not given:
            return None
        if not _TS.fullmatch(str(given)):
            raise SlackRefusal("invalid_thread_ts")
        parent = self._workspace.parent_of(conversation.id, str(given))
        return parent.ts if parent is not None else None

    def _own(self, p: SlackParams, otherwise: str) -> SlackMessage:
        channel = p.needed("channel")
        if channel not in self._workspace.conversations:
            raise SlackRefusal("channel_not_found")
        kept = self._workspace.find(channel, p.needed("ts"))
        if kept is None:
            raise SlackRefusal("message_not_found")
        if kept.message.get("user") != BOT_USER:
            raise SlackRefusal(otherwise)
        return kept

    def _content(self, p: SlackParams) -> Json:
        content: Json = {"text": p.text("text")}
        blocks = p.parsed("blocks", "invalid_blocks_format")
        if not content["text"] and not blocks:
            raise SlackRefusal("no_text")
        if blocks is not None:
            check_blocks(blocks, most=MESSAGE_BLOCKS_MAX)
            content["blocks"] = [{"block_id": f"lab{i}", **one} for i, one in enumerate(blocks)]
        metadata = p.parsed("metadata", "invalid_metadata_format")
        if metadata is not None:
            kind = metadata.get("event_type") if isinstance(metadata, dict) else None
            if not isinstance(kind, str) or not _EVENT_TYPE.fullmatch(kind):
                raise SlackRefusal("invalid_metadata_schema")
            if len(json.dumps(metadata)) > METADATA_BYTES_MAX:
                raise SlackRefusal("metadata_too_large")
            content["metadata"] = metadata
        return content

    def _bot_message(self) -> Json:
        mine = {"id": BOT, "app_id": APP, "user_id": BOT_USER, "name": BOT_NAME, "team_id": TEAM}
        return {
            "user": BOT_USER,
            "type": "message",
            "ts": self._workspace.next_ts(),
            "bot_id": BOT,
            "app_id": APP,
            "team": TEAM,
            "bot_profile": mine,
        }
