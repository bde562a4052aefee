"""The guided set-up: what is asked, in which order, and what is to be saved in the end.

Called by `hearthbot init`. Nothing is changed while it asks; `Plan` holds what will be.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from agent.models.choose import choose
from agent.models.service import ask_once
from bot.doctor.live import with_version
from bot.doctor.live_slack import scopes_missing, socket_address, wanted_scopes, workspace
from bot.doctor.live_telegram import account
from bot.settings.edit import change, decoded
from bot.settings.load import load
from bot.settings.messages import dotted
from bot.settings.schema.settings import CONFIG_NAME, KEYS, Settings
from bot.settings.tree import is_secret
from bot.setup.model import TRY_S, SetupModelStep
from bot.setup.steps import (
    PersonStep,
    Plan,
    SetupState,
    SetupTerminal,
    SlackStep,
    TelegramStep,
)
from memory.records.errors import AssistantError, SettingsWrong

WELCOME = """\
This sets up your assistant. Each answer is tested before it is saved, and all is saved together at
the end; until then Ctrl-C leaves everything as it was. You can run it again at any time."""


def ask_all(tty: SetupTerminal, here: SetupState) -> Plan:
    """Every step, each of which can be skipped."""
    plan = Plan()
    tty.say(WELCOME)
    for step in (SetupModelStep, TelegramStep, SlackStep, PersonStep):
        step(tty, here, plan).run()
    return plan


def summary(plan: Plan) -> Iterator[str]:
    """Yield what will be saved, without a secret."""
    for path, value in plan.changes.items():
        if value is None:
            continue
        shown = "(kept secret)" if is_secret(KEYS[path]) else json.dumps(value, ensure_ascii=False)
        yield f"{dotted(path)} = {shown}"
    if plan.owner is not None:
        yield f"owner: {plan.owner.address}"
    if plan.name:
        yield f"name: {plan.name}"
    if plan.zone:
        yield f"time zone: {plan.zone}"


def checked(file: Path, plan: Plan, env: Mapping[str, str]) -> None:
    """Raises SettingsWrong when the changed file could not be used, with every problem."""
    text = change(decoded(file), plan.changes)
    # In a folder of its own: what would be refused must not stand in the home for a moment.
    with tempfile.TemporaryDirectory(prefix="hearthbot-") as folder:
        trial = Path(folder) / CONFIG_NAME
        trial.touch(mode=0o600)
        trial.write_text(text, "utf-8", newline="")
        try:
            load(Path(folder), env)
        except SettingsWrong as error:
            raise SettingsWrong(str(error).replace(str(trial), str(file))) from None


# --- without asking ------------------------------------------------------------------------------


class NothingToServe(SettingsWrong):
    """Neither Telegram nor Slack has its token."""


async def tested(settings: Settings, env: Mapping[str, str], manifest: Path) -> list[str]:
    """Return what works, a line each, of what is set already. Raises the first thing that does not.

    NothingToServe names the variables that are missing.
    """
    telegram, slack = settings.telegram, settings.slack
    token, bot = telegram.token.get_secret_value(), slack.bot_token.get_secret_value()
    if not token and not bot:
        raise NothingToServe(
            "No channel is set. Missing: HEARTHBOT_TELEGRAM__TOKEN (from @BotFather), or "
            "HEARTHBOT_SLACK__BOT_TOKEN with HEARTHBOT_SLACK__APP_TOKEN."
        )
    lines = []
    if token:
        found = await account(telegram.base_url, token)
        lines.append(f"Telegram: @{found.username}, {found.link}")
    if bot:
        place = await workspace(slack.base_url, bot)
        if missing := wanted_scopes(manifest) - place.scopes:
            raise SettingsWrong(scopes_missing(missing))
        if slack.mode == "socket":
            await socket_address(slack.base_url, slack.app_token.get_secret_value())
        lines.append(f"Slack: @{place.bot} in {place.team}")
    wanted = settings.llm
    try:
        choice = await choose(wanted, env=env)
        trial = await ask_once(choice, limit_s=TRY_S)
    except AssistantError as error:
        if better := await with_version(wanted, env=env, limit_s=TRY_S):
            raise SettingsWrong(
                f"{error} It answers at {better}: set llm.api_base to that."
            ) from None
        raise
    return [
        *lines,
        f"Model: {choice.model} answered after {trial.seconds:.1f} s. {choice.why}",
    ]
