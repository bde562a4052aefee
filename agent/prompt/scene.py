"""Everything that the layers of a prompt may look at, gathered before they run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum

from agent.skills.skill import Skill
from memory.records.facts import Recalled
from memory.records.messages import TurnInput


class PromptKind(StrEnum):
    """What a prompt is for (SPEC §5, kinds of prompt)."""

    CHAT = "chat"
    HEARTBEAT = "heartbeat"
    PROACTIVE = "proactive"
    """A cron skill or an agent job: nobody is there."""
    SUBAGENT = "subagent"


@dataclass(frozen=True, slots=True, kw_only=True)
class DailyNote:
    """The notes of one day."""

    day: date
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """What a force-include rule tells the model for this request; `source` names the rule."""

    text: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """The moment, the place and the texts. `now` is aware and in the person's zone.

    `texts` maps template names (`system`, `acting`, ...) to their words, workspace copies first.
    `bootstrap` maps file names of the workspace to their content. `base` is the persona text that
    the base chain chose. `fixed_language` is empty when the reply follows the person's language.
    `task` is the list of a heartbeat, or the instructions of a run that nobody watches. `listed`
    are the skills that the prompt names (`unlisted` more there are), `relevant` those that fit the
    message, `playbooks` those whose keywords stand in it. `servers` names what is plugged in, one
    line each. `notes` and `daily_notes` are this person's files. `direct` says that the message
    wants no thinking, `reminder_due` that it is time for `prompts/reminder.md`.
    """

    now: datetime
    zone: str
    turn: TurnInput
    base: str
    base_source: str
    texts: Mapping[str, str]
    bootstrap: Mapping[str, str]
    bootstrap_chars_max: int = 20_000
    fixed_language: str = ""
    version: str = ""
    system: str = ""
    kind: PromptKind = PromptKind.CHAT
    task: str = ""
    full_context: bool = False
    listed: tuple[Skill, ...] = ()
    unlisted: int = 0
    relevant: tuple[Skill, ...] = ()
    playbooks: tuple[Skill, ...] = ()
    instructions: tuple[Instruction, ...] = ()
    servers: tuple[str, ...] = ()
    notes: str = ""
    notes_source: str = ""
    daily_notes: tuple[DailyNote, ...] = ()
    recalled: Recalled = field(default_factory=Recalled)
    direct: bool = False
    reminder_due: bool = False


def fill(template: str, **values: str) -> str:
    """Replaces `{{NAME}}` placeholders; text that a value brings is not looked at again."""
    pieces = template.split("{{")
    filled = [pieces[0]]
    for piece in pieces[1:]:
        name, closed, rest = piece.partition("}}")
        filled.append(values[name] + rest if closed and name in values else "{{" + piece)
    return "".join(filled)
