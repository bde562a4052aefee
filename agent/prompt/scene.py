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
class PromptOccasion:
    """An occasion on which a prompt is made. `task` is the list of a heartbeat, or the instructions
    of a run that nobody watches."""

    turn: TurnInput
    kind: PromptKind = PromptKind.CHAT
    task: str = ""
    full_context: bool = False

    @classmethod
    def of(cls, turn: TurnInput) -> PromptOccasion:
        """Return that of a turn."""
        text, job = turn.message.text, turn.job
        if turn.task is not None:
            return cls(turn=turn, kind=PromptKind.SUBAGENT, task=text)
        if job is None:
            return cls(turn=turn)
        kind = PromptKind.HEARTBEAT if job.is_heartbeat else PromptKind.PROACTIVE
        return cls(turn=turn, kind=kind, task=text, full_context=job.full_context)

    @property
    def text(self) -> str:
        """Return what it is about, for matching and recall."""
        if self.turn.report is not None:
            return self.turn.report.task
        return self.turn.message.text if self.kind is PromptKind.CHAT else self.task

    @property
    def matches(self) -> bool:
        """Return whether playbooks and force-include rules look at it (SPEC §5). Not at words of
        ours."""
        if self.turn.report is not None:
            return False
        return self.kind is PromptKind.CHAT or self.full_context


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene(PromptOccasion):
    """An occasion with its moment, place and texts. `now` is aware and in the person's zone.

    `texts` maps template names (`system`, `acting`, ...) to their words, workspace copies first.
    `bootstrap` maps file names of the workspace to their content. `base` is the persona text that
    the base chain chose. `fixed_language` is empty when the reply follows the person's language.
    `listed` are the skills that the prompt names (`unlisted` more there are), `relevant` those that
    fit the message, `playbooks` those whose keywords stand in it. `servers` names what is plugged
    in, one line each. `notes` and `daily_notes` are this person's files. `direct` says that the
    message wants no thinking, `reminder_due` that it is time for `prompts/reminder.md`.
    """

    now: datetime
    zone: str
    base: str
    base_source: str
    texts: Mapping[str, str]
    bootstrap: Mapping[str, str]
    bootstrap_chars_max: int = 20_000
    fixed_language: str = ""
    version: str = ""
    system: str = ""
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
