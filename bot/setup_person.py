"""The step of the set-up about the owner: name, time zone, language of replies."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from agent.languages import AUTO, read_language
from bot.setup_desk import Desk, Plan, Situation
from bot.zones import read_zone

LANGUAGE = ("prompt", "language")
LANGUAGE_CHARS_MAX = 50


@dataclass(frozen=True, slots=True)
class PersonStep:
    """Asks about the owner and adds it to the plan."""

    desk: Desk
    here: Situation
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
