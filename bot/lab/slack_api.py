"""The Web API of the Slack stand-in: who may call what, how often, and what it answers.

Called by `bot.lab.slack` for each request. Most methods stand in files of their own.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from bot.lab.slack_chat import Chat
from bot.lab.slack_conversations import SlackConversations
from bot.lab.slack_events import Events
from bot.lab.slack_files import SharedFiles
from bot.lab.slack_params import SlackParams
from bot.lab.slack_rules import SlackLimits, SlackRules
from bot.lab.slack_state import Conversation, Json, SlackRefusal, SlackWorkspace, User
from bot.lab.slack_views import SlackViews

_FAMILIES = ("channels", "groups", "mpim", "im")
_FAMILY = {"channel": "channels", "group": "groups", "im": "im", "mpim": "mpim"}
_CONNECT = "apps.connections.open"

# By method: the tier, and the scopes of which one must be there. `*` stands for the family of the
# conversation: channels, groups, im or mpim.
METHODS: dict[str, tuple[int, tuple[str, ...]]] = {
    "api.test": (4, ()),
    "auth.test": (4, ()),
    _CONNECT: (1, ()),
    "assistant.threads.setStatus": (4, ("chat:write", "assistant:write")),
    "assistant.threads.setSuggestedPrompts": (4, ("assistant:write",)),
    "assistant.threads.setTitle": (4, ("assistant:write",)),
    "bots.info": (3, ("users:read",)),
    "chat.appendStream": (4, ("chat:write",)),
    "chat.delete": (3, ("chat:write",)),
    "chat.getPermalink": (4, ()),
    "chat.postEphemeral": (4, ("chat:write",)),
    "chat.postMessage": (4, ("chat:write",)),
    "chat.startStream": (2, ("chat:write",)),
    "chat.stopStream": (2, ("chat:write",)),
    "chat.update": (3, ("chat:write",)),
    "conversations.history": (3, ("*:history",)),
    "conversations.info": (3, ("*:read",)),
    "conversations.join": (3, ("channels:join",)),
    "conversations.list": (2, ("*:read",)),
    "conversations.members": (4, ("*:read",)),
    "conversations.open": (3, ("channels:manage", "groups:write", "im:write", "mpim:write")),
    "conversations.replies": (3, ("*:history",)),
    "files.completeUploadExternal": (4, ("files:write",)),
    "files.delete": (3, ("files:write",)),
    "files.getUploadURLExternal": (4, ("files:write",)),
    "files.info": (4, ("files:read",)),
    "reactions.add": (3, ("reactions:write",)),
    "reactions.remove": (2, ("reactions:write",)),
    "team.info": (3, ("team:read",)),
    "users.info": (4, ("users:read",)),
    "users.list": (2, ("users:read",)),
    "views.open": (4, ()),
    "views.publish": (4, ()),
    "views.update": (4, ()),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """The two tokens of the app."""

    bot: str
    app: str


class WebApi:
    """The methods over one workspace."""

    def __init__(
        self,
        workspace: SlackWorkspace,
        rules: SlackRules,
        events: Events,
        *,
        tokens: Tokens,
        connect: Callable[[], str],
    ) -> None:
        self.chat = Chat(workspace, rules, events)
        self.files = SharedFiles(workspace, self.chat)
        self.conversations = SlackConversations(workspace)
        self.views = SlackViews(workspace, rules)
        self._workspace = workspace
        self._rules = rules
        self._tokens = tokens
        self._limits = SlackLimits(workspace.clock)
        self._handlers: dict[str, Callable[[SlackParams], Json]] = {
            "api.test": lambda p: {"args": dict(p)} if p else {},
            "auth.test": self._auth_test,
            _CONNECT: lambda _: {"url": connect()},
            "bots.info": self._bots_info,
            "team.info": self._team_info,
            "users.info": lambda p: {"user": self._about_user(p.needed("user"), p)},
            "users.list": self._users,
            **self.chat.methods,
            **self.files.methods,
            **self.conversations.methods,
            **self.views.methods,
        }

    def call(self, method: str, params: SlackParams, token: str) -> Json:
        """What the method answers; raises SlackRefusal with Slack's word for what is wrong."""
        if method not in self._handlers:
            raise SlackRefusal("unknown_method", req_method=method)
        tier, scopes = METHODS[method]
        if method != "api.test":
            self._check_token(method, token)
            self._check_scopes(method, scopes, params)
        if wait := self._limits.wait_s(
            method, tier=tier, channel=params.text("channel"), rules=self._rules
        ):
            raise SlackRefusal("ratelimited", status=429, retry_after=wait)
        if "" in params:
            raise SlackRefusal("invalid_json")
        return {"ok": True, **self._handlers[method](params)}

    def scope_headers(self, method: str, token: str) -> dict[str, str]:
        """The headers in which Slack tells the scopes of the token and of the method."""
        has = self._rules.app_scopes if token == self._tokens.app else self._rules.bot_scopes
        wants = [
            scope.replace("*", family)
            for scope in METHODS.get(method, (0, ()))[1]
            for family in (_FAMILIES if "*" in scope else ("",))
        ]
        headers = {"X-OAuth-Scopes": ",".join(sorted(has))}
        return headers | ({"X-Accepted-OAuth-Scopes": ",".join(wants)} if wants else {})

    # Tokens and scopes --------------------------------------------------------------------------

    def _check_token(self, method: str, token: str) -> None:
        if not token:
            raise SlackRefusal("not_authed")
        if token not in {self._tokens.bot, self._tokens.app}:
            raise SlackRefusal("invalid_auth")
        for_app = method == _CONNECT
        if for_app != (token == self._tokens.app) and method != "auth.test":
            raise SlackRefusal("not_allowed_token_type")
        if token == self._tokens.bot and self._rules.token_error is not None:
            raise SlackRefusal(self._rules.token_error)
        if for_app and "connections:write" not in self._rules.app_scopes:
            raise self._missing(["connections:write"], self._rules.app_scopes)

    def _check_scopes(self, method: str, scopes: tuple[str, ...], p: SlackParams) -> None:
        if not scopes:
            return
        wanted: list[str] = []
        for scope in scopes:
            if "*" not in scope:
                wanted.append(scope)
                continue
            found = self._workspace.find_conversation(p.text("channel"))
            families = _FAMILIES if found is None else (_family(found),)
            wanted += [scope.replace("*", family) for family in families]
        if self._rules.bot_scopes.isdisjoint(wanted):
            raise self._missing(wanted, self._rules.bot_scopes)

    def _missing(self, wanted: Iterable[str], has: Iterable[str]) -> SlackRefusal:
        provided = ",".join(sorted(has))
        return SlackRefusal("missing_scope", needed=",".join(wanted), provided=provided)

    # Who is who ---------------------------------------------------------------------------------

    def _auth_test(self, _: SlackParams) -> Json:
        me = self._workspace.identity
        return {
            "url": f"https://{me.domain}.slack.com/",
            "team": me.team_name,
            "user": me.app_name,
            "team_id": me.team,
            "user_id": me.bot_user,
            "bot_id": me.bot,
            "is_enterprise_install": False,
        }

    def _team_info(self, _: SlackParams) -> Json:
        me = self._workspace.identity
        return {"team": {"id": me.team, "name": me.team_name, "domain": me.domain}}

    def _bots_info(self, p: SlackParams) -> Json:
        me = self._workspace.identity
        if p.text("bot") != me.bot:
            raise SlackRefusal("bot_not_found")
        bot = {"id": me.bot, "deleted": False, "name": me.app_name, "updated": 0}
        return {"bot": {**bot, "app_id": me.app, "user_id": me.bot_user, "icons": {}}}

    def _users(self, p: SlackParams) -> Json:
        members = [self._about_user(user_id, p) for user_id in self._workspace.users]
        return {"members": members, "response_metadata": {"next_cursor": ""}}

    def _about_user(self, user_id: str, p: SlackParams) -> Json:
        user = self._workspace.users.get(user_id)
        if user is None:
            raise SlackRefusal("user_not_found")
        about = _user(user, self._workspace.team_of(user_id))
        return about | ({"locale": user.locale} if p.flag("include_locale") else {})


def _family(found: Conversation) -> str:
    return _FAMILY[found.kind]


def _user(user: User, team: str) -> dict[str, Any]:
    return {
        "id": user.id,
        "team_id": team,
        "name": user.name,
        "deleted": user.deleted,
        "real_name": user.real_name,
        "tz": user.tz,
        "tz_label": user.tz_label,
        "tz_offset": user.tz_offset,
        "is_admin": False,
        "is_owner": False,
        "is_bot": user.is_bot,
        "is_app_user": False,
        "is_restricted": False,
        "is_ultra_restricted": False,
        "updated": 0,
        "profile": {
            "title": user.title,
            "real_name": user.real_name,
            "display_name": user.name,
            "real_name_normalized": user.real_name,
            "display_name_normalized": user.name,
            "status_text": "",
            "status_emoji": "",
            "team": team,
        },
    }
