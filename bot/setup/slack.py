"""The step of the set-up for Slack: the app from its manifest, its tokens and their scopes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bot.doctor.live_slack import (
    first_message,
    scopes_missing,
    socket_address,
    wanted_scopes,
    workspace,
)
from bot.settings.tree import KeyPath
from bot.setup.person import find_owner
from bot.setup.terminal import Plan, SetupState, SetupTerminal
from memory.records.errors import AssistantError

BOT, APP = ("slack", "bot_token"), ("slack", "app_token")
SIGNING = ("slack", "signing_secret")

HOW = """\
1. Open https://api.slack.com/apps, press Create New App, then From a manifest, and choose your
   workspace.
2. Paste all of this file in place of what stands there, then press Next and Create:
   {manifest}
3. Press Install to Workspace, then Allow.
4. Under OAuth & Permissions, copy the Bot User OAuth Token. It begins with xoxb-."""

HOW_APP = """\
Under Basic Information, App-Level Tokens, press Generate Token and Scopes. Give it any name, add
the scope connections:write, press Generate, and copy the token. It begins with xapp-."""

HOW_SIGNING = "Under Basic Information, App Credentials, copy the Signing Secret."


@dataclass(frozen=True, slots=True)
class SlackStep:
    """Asks for the tokens and adds them to the plan."""

    desk: SetupTerminal
    here: SetupState
    plan: Plan

    def run(self) -> None:
        """Until Slack accepts the tokens, or the person goes on without."""
        desk, slack = self.desk, self.here.settings.slack
        desk.title("Slack")
        before = slack.bot_token.get_secret_value()
        if not before:
            if not desk.confirm("Do you want it in Slack, too?", default=False):
                return
            desk.say(HOW.format(manifest=self.here.manifest))
        bot = self._token(BOT, "Bot token (xoxb-…)", before, self._bot_accepted)
        if not bot:
            return
        if slack.mode == "http":
            self._signing_secret()
            return
        before_app = slack.app_token.get_secret_value()
        if not before_app:
            desk.say(HOW_APP)
        app = self._token(APP, "App-level token (xapp-…)", before_app, self._app_accepted)
        if not app:
            self.plan.changes.pop(BOT, None)
            desk.say("Without it Slack cannot be served, so nothing of Slack is saved.")
            return
        self._find_owner(bot, app)

    def _token(
        self, path: KeyPath, question: str, before: str, accepted: Callable[[str], bool]
    ) -> str:
        """A token that Slack accepts; empty when the person goes on without."""
        desk = self.desk
        works = bool(before) and accepted(before)
        if names := self.here.by_environment(path):
            desk.say(f"It is from the environment ({names[0]}) and stays there.")
            return before if works else ""
        way = "Enter keeps the one that is set" if before else "Enter: without Slack"
        while True:
            typed = desk.ask_secret(f"{question}, not shown while you paste it ({way})").strip()
            if not typed:
                return before
            if accepted(typed):
                if typed != before:
                    self.plan.changes[path] = typed
                return typed

    def _bot_accepted(self, token: str) -> bool:
        work = workspace(self.here.settings.slack.base_url, token)
        try:
            found = self.desk.live("Asking Slack", work)
        except AssistantError as error:
            self.desk.bad(str(error))
            return False
        missing = wanted_scopes(self.here.manifest) - found.scopes
        if missing:
            self.desk.bad(scopes_missing(missing))
            return False
        self.desk.good(f"This is @{found.bot} in {found.team}: {found.url}")
        return True

    def _app_accepted(self, token: str) -> bool:
        work = socket_address(self.here.settings.slack.base_url, token)
        try:
            self.desk.live("Asking Slack", work)
        except AssistantError as error:
            self.desk.bad(str(error))
            return False
        self.desk.good("Slack would open a socket for it.")
        return True

    def _signing_secret(self) -> None:
        desk = self.desk
        if self.here.by_environment(SIGNING):
            return
        has_one = bool(self.here.settings.slack.signing_secret.get_secret_value())
        desk.say(f"slack.mode is http. {HOW_SIGNING} It cannot be tested from here.")
        way = "Enter keeps the one that is set" if has_one else "Enter: later"
        typed = desk.ask_secret(f"Signing secret, not shown while you paste it ({way})").strip()
        if typed:
            self.plan.changes[SIGNING] = typed

    def _find_owner(self, bot: str, app: str) -> None:
        base_url = self.here.settings.slack.base_url
        find_owner(
            self.desk,
            self.here,
            self.plan,
            channel="slack",
            how="Now open the app in Slack (Apps, in the sidebar) and send it a message.",
            listen=lambda but: first_message(base_url, bot_token=bot, app_token=app, but=but),
        )
