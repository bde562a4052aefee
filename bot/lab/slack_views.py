"""Assistant threads, forms and the home tab in the Slack stand-in.

Called by `bot.lab.slack_api` for each request.
"""

from collections.abc import Callable

from bot.lab.slack_blocks import view_problems
from bot.lab.slack_params import SlackParams
from bot.lab.slack_rules import SlackRules
from bot.lab.slack_state import Json, SlackRefusal, SlackWorkspace

PROMPTS_MAX = 4
LOADING_MESSAGES_MAX = 10


class SlackViews:
    """What the bot shows beside messages."""

    def __init__(self, workspace: SlackWorkspace, rules: SlackRules) -> None:
        self._workspace = workspace
        self._rules = rules
        self.methods: dict[str, Callable[[SlackParams], Json]] = {
            "assistant.threads.setStatus": self._set_status,
            "assistant.threads.setSuggestedPrompts": self._set_prompts,
            "assistant.threads.setTitle": self._set_title,
            "views.open": self._open_view,
            "views.publish": self._publish_view,
            "views.update": self._update_view,
        }

    # Assistant threads --------------------------------------------------------------------------

    def _assistant_thread(self, p: SlackParams) -> tuple[str, str]:
        channel = self._workspace.conversations.get(p.needed("channel_id"))
        if channel is None:
            raise SlackRefusal("channel_not_found")
        thread_ts = p.text("thread_ts")
        if self._workspace.find(channel.id, thread_ts) is None:
            raise SlackRefusal("invalid_thread_ts")
        return channel.id, thread_ts

    def _set_status(self, p: SlackParams) -> Json:
        thread = self._assistant_thread(p)
        loading = p.nested("loading_messages", "invalid_arguments")
        if isinstance(loading, list) and len(loading) > LOADING_MESSAGES_MAX:
            wrong = "no more than 10 items allowed [json-pointer:/loading_messages]"
            raise SlackRefusal("invalid_arguments", messages=[wrong])
        self._workspace.statuses.pop(thread, None)
        if status := p.text("status"):
            self._workspace.statuses[thread] = status
        return {}

    def _set_title(self, p: SlackParams) -> Json:
        thread = self._assistant_thread(p)
        self._workspace.titles[thread] = p.needed("title")
        return {}

    def _set_prompts(self, p: SlackParams) -> Json:
        thread = self._assistant_thread(p)
        prompts = p.objects("prompts")
        whole = all(one.get("title") and one.get("message") for one in prompts)
        if len(prompts) > PROMPTS_MAX or not whole:
            raise SlackRefusal("invalid_arguments", messages=["invalid prompts"])
        self._workspace.prompts[thread] = prompts
        return {}

    # Views --------------------------------------------------------------------------------------

    def _open_view(self, p: SlackParams) -> Json:
        trigger = self._workspace.triggers.get(p.text("trigger_id"))
        if trigger is None:
            raise SlackRefusal("invalid_trigger_id")
        if self._workspace.clock() - trigger.at > self._rules.trigger_lasts_s:
            raise SlackRefusal("expired_trigger_id")
        if trigger.used:
            raise SlackRefusal("exchanged_trigger_id")
        view = self._view(p, ("modal",))
        trigger.used = True
        view["id"] = view["root_view_id"] = self._workspace.next_id("V")
        self._workspace.views[view["id"]] = view
        return {"view": view}

    def _publish_view(self, p: SlackParams) -> Json:
        user = p.needed("user_id")
        if user not in self._workspace.users:
            raise SlackRefusal("user_not_found")
        view = self._view(p, ("home",))
        before = self._workspace.homes.get(user)
        if p.text("hash") and (before is None or before["hash"] != p.text("hash")):
            raise SlackRefusal("hash_conflict")
        view["id"] = before["id"] if before else self._workspace.next_id("V")
        self._workspace.homes[user] = view
        return {"view": view}

    def _update_view(self, p: SlackParams) -> Json:
        before = self._workspace.views.get(p.needed("view_id"))
        if before is None:
            raise SlackRefusal("not_found")
        if p.text("hash") and before["hash"] != p.text("hash"):
            raise SlackRefusal("hash_conflict")
        view = before | self._view(p, ("modal",))
        self._workspace.views[before["id"]] = view
        return {"view": view}

    def _view(self, p: SlackParams, kinds: tuple[str, ...]) -> Json:
        view = p.nested("view", "invalid_arguments")
        if problems := view_problems(view, kinds=kinds):
            raise SlackRefusal("invalid_arguments", messages=problems)
        return stored_view(self._workspace, view)


def stored_view(workspace: SlackWorkspace, view: Json) -> Json:
    """A view with what Slack adds to it."""
    me = workspace.identity
    return {
        "private_metadata": "",
        "callback_id": "",
        "external_id": "",
        **view,
        "team_id": me.team,
        "app_id": me.app,
        "bot_id": me.bot,
        "app_installed_team_id": me.team,
        "state": {"values": {}},
        "hash": workspace.next_id("h"),
    }
