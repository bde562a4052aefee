"""The step of the set-up for Telegram: the token, tested, and the owner by a first message."""

from __future__ import annotations

from dataclasses import dataclass

from bot.doctor.live_telegram import BotAccount, account, first_message
from bot.setup.person import find_owner
from bot.setup.terminal import Plan, SetupState, SetupTerminal
from memory.records.errors import AssistantError

TOKEN = ("telegram", "token")

HOW = """\
1. In Telegram, open https://t.me/BotFather and press Start.
2. Send /newbot. It asks for a name, then for a username that ends in bot.
3. It answers with a token like 123456:ABC-DEF. Copy all of it."""


@dataclass(frozen=True, slots=True)
class TelegramStep:
    """Asks for the token and adds it to the plan."""

    desk: SetupTerminal
    here: SetupState
    plan: Plan

    def run(self) -> None:
        """Until Telegram accepts a token, or the person goes on without."""
        self.desk.title("Telegram")
        token = self.here.settings.telegram.token.get_secret_value()
        found = self._accepted(token) if token else None
        if names := self.here.by_environment(TOKEN):
            self.desk.say(f"The token is from the environment ({names[0]}) and stays there.")
        else:
            token, found = self._asked(token, found)
        if found is not None:
            self._find_owner(token, found)

    def _asked(self, token: str, found: BotAccount | None) -> tuple[str, BotAccount | None]:
        desk, before, was = self.desk, token, found
        if not before:
            desk.say(HOW)
        while True:
            way = "Enter keeps the one that is set" if before else "Enter: without Telegram"
            typed = desk.ask_secret(f"Token, not shown while you paste it ({way})").strip()
            if not typed:
                return before, was
            found = self._accepted(typed)
            if found is not None:
                if typed != before:
                    self.plan.changes[TOKEN] = typed
                return typed, found

    def _accepted(self, token: str) -> BotAccount | None:
        base_url = self.here.settings.telegram.base_url
        try:
            found = self.desk.live("Asking Telegram", account(base_url, token))
        except AssistantError as error:
            self.desk.bad(str(error))
            return None
        self.desk.good(f"This is {found.name} (@{found.username}): {found.link}")
        return found

    def _find_owner(self, token: str, found: BotAccount) -> None:
        base_url = self.here.settings.telegram.base_url
        find_owner(
            self.desk,
            self.here,
            self.plan,
            channel="telegram",
            how=f"Now open {found.link}, press Start, and write anything to it.",
            listen=lambda but: first_message(base_url, token, but=but),
        )
