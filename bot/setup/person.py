"""Finds the owner in the set-up: whoever writes first, and is confirmed on the terminal."""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from bot.doctor.live_telegram import Newcomer
from bot.people.timezone import read_zone
from bot.setup.terminal import Plan, SetupState, SetupTerminal
from memory.records.errors import AssistantError
from memory.records.languages import AUTO, read_language

Listen = Callable[[Collection[str]], Coroutine[Any, Any, Newcomer]]
"""Waits for a message in private, of somebody who is not among these addresses."""

LATER = (
    "Later, write to the bot: it answers with a code, and `hearthbot access approve CODE` makes "
    "you the owner."
)


def find_owner(
    desk: SetupTerminal, here: SetupState, plan: Plan, *, channel: str, how: str, listen: Listen
) -> None:
    """Adds the owner to the plan, unless there is one or nobody writes.

    What they write is not kept here; it waits at the platform, and the bot answers it once it runs.
    """
    known = [address for address in here.owners if address.startswith(f"{channel}:")]
    if known:
        desk.say(f"The owner there is {known[0]}.")
        return
    if here.owners and any(not one.startswith("console:") for one in here.owners):
        desk.say(
            f"The owner is {here.owners[0]}. Your address here is added with /link, in a chat."
        )
        return
    if plan.owner is not None:
        desk.say(f"The owner is {plan.owner.address}. Your address here is added with /link later.")
        return
    if here.is_running:
        desk.say(f"The running bot takes its messages, so they cannot be seen here. {LATER}")
        return
    desk.say(f"{how} That makes you the owner.")
    refused: set[str] = set()
    while True:
        try:
            found = desk.live_or_enter(
                "Waiting for your message (Enter: skip this)", listen(frozenset(refused))
            )
        except AssistantError as error:
            desk.bad(f"{error} {LATER}")
            return
        if found is None:
            desk.say(LATER)
            return
        if desk.confirm(f"{found.name} wrote, {found.address}. Is that you?"):
            plan.owner = found
            desk.good(f"{found.address} will be the owner.")
            return
        refused.add(found.address)


# --- setup person -------------------------------------------------------------------------------
#
# The step of the set-up about the owner: name, time zone, language of replies.

LANGUAGE = ("prompt", "language")
LANGUAGE_CHARS_MAX = 50


@dataclass(frozen=True, slots=True)
class PersonStep:
    """Asks about the owner and adds it to the plan."""

    desk: SetupTerminal
    here: SetupState
    plan: Plan

    def run(self) -> None:
        """Name and zone where there is somebody to keep them for; the language always."""
        self.desk.title("You")
        if self.plan.owner is None and not self.here.owners:
            self.desk.say("Nobody is the owner yet, so a name and a zone come later.")
        elif self.here.is_running:
            self.desk.say("The bot runs, so it is the one to tell: /timezone, in a chat with it.")
        else:
            self._name()
            self._zone()
        self._language()

    def _name(self) -> None:
        given = self.plan.owner.first_name if self.plan.owner else ""
        kept = "" if given else " (Enter: as it is)"
        self.plan.name = self.desk.ask(f"What should it call you?{kept}", default=given)

    def _zone(self) -> None:
        default = self.here.zone if self.plan.owner else ""
        kept = "" if default else " (Enter: as it is)"
        while True:
            typed = self.desk.ask(
                f"Your time zone, or a large city near you?{kept}", default=default
            )
            read = read_zone(typed, now=datetime.now(UTC))
            if read.zone or not typed:
                self.plan.zone = read.zone
                return
            near = " or ".join(read.suggestions)
            hint = f"Did you mean {near}?" if near else "One is called Europe/Berlin."
            self.desk.bad(f"No single time zone is meant by {typed}. {hint}")

    def _language(self) -> None:
        if names := self.here.by_environment(LANGUAGE):
            self.desk.say(f"The language is set by the environment ({names[0]}).")
            return
        now = self.here.settings.prompt.language
        self.desk.say(f"Language of its replies, for everybody; {AUTO} is the one of the message.")
        typed = self.desk.ask("Language?", default=now).strip()[:LANGUAGE_CHARS_MAX]
        # "deutsch" and "de" mean one that has a name; what is not known may be one all the same.
        if (known := read_language(typed).language) is not None:
            typed = known.english
        if typed and typed != now:
            self.plan.changes[LANGUAGE] = typed
