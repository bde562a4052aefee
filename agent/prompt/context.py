"""Gathers everything that a prompt may show: files, skills, what is remembered, and the moment.

All reading happens here, before the layers run. Called by the step `begin` and by whoever shows
what would be sent.
"""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

import structlog

from agent.prompt.effort import ReasoningControl, Thinking
from agent.prompt.scene import Instruction, PromptKind, PromptOccasion, Scene
from agent.prompt.templates import PromptLibrary
from agent.skills.library import SkillLibrary
from agent.skills.matcher import Matcher, PlaybookMatch, Relevance, SkillScore, required_tools
from agent.skills.rules import Forced, Rule, RuleBook, RuleHit
from agent.skills.skill import AutoInvoke, Skill, SkillSet
from agent.version import VERSION
from memory.records.facts import Recalled, RecallWanted, place_of
from memory.records.ports import Clock, History, Recall
from memory.records.section import LayersSettings

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptContext:
    """The scene, and what else follows from the message.

    `required_tools` are those that matched playbooks need, `auto_invoke` what is called when the
    reply is of no help, `picked` why each playbook, skill and rule is there.
    """

    scene: Scene
    thinking: Thinking
    required_tools: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    """MCP servers whose tools a force-include rule wants offered."""
    auto_invoke: tuple[AutoInvoke, ...] = ()
    picked: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class _MatchedSkills:
    """The skills of a set that fit a message."""

    listed: tuple[Skill, ...]
    playbooks: tuple[PlaybookMatch, ...] = ()
    relevant: tuple[SkillScore, ...] = ()
    forced: Forced = field(default_factory=Forced)

    def skills(self) -> tuple[Skill, ...]:
        """Those for this message, forced ones first, each once."""
        found = [*self.forced.skills, *(score.skill for score in self.relevant)]
        return tuple({skill.name: skill for skill in found}.values())

    def instructions(self) -> tuple[Instruction, ...]:
        """Return what the rules tell, each text once."""
        told: dict[str, Instruction] = {}
        for hit in self.forced.hits:
            if text := hit.rule.instruction.strip():
                told.setdefault(text, Instruction(text=text, source=_named(hit)))
        return tuple(told.values())

    def picked(self) -> tuple[tuple[str, str], ...]:
        """Why each playbook, skill and rule is there, in words."""
        return (
            *(
                (
                    f"playbook:{match.skill.name}",
                    "keyword " + ", ".join(hit.keyword for hit in match.hits),
                )
                for match in self.playbooks
            ),
            *(
                (f"skill:{one.skill.name}", f"shares {', '.join(one.found)} with the message")
                for one in self.relevant
            ),
            *((_named(hit), f"the pattern {hit.pattern} fits") for hit in self.forced.hits),
        )


def _named(hit: RuleHit) -> str:
    return f"rule:{hit.rule.name or hit.rule.source}"


class _SkillMatchers:
    """The matchers of one set of skills, built once."""

    def __init__(self, shelf: SkillSet, rules: Sequence[Rule]) -> None:
        self.shelf = shelf
        self._listed = tuple(skill for skill in shelf.used if skill.is_listed)
        self._matcher = Matcher(shelf)
        self._relevance = Relevance(shelf)
        self._rules = RuleBook(shelf, rules)

    def matched(self, occasion: PromptOccasion) -> _MatchedSkills:
        """Return what fits; outside a chat nothing is matched, unless it has the full context."""
        if not occasion.matches:
            return _MatchedSkills(self._listed)
        forced = self._rules.forced(occasion.text)
        for problem in forced.problems:
            log.warning("rule.trouble", why=problem)
        return _MatchedSkills(
            self._listed,
            self._matcher.playbooks(occasion.text),
            self._relevance.relevant(occasion.text),
            forced,
        )


@lru_cache(maxsize=2)
def _reasoning(simple: str, analysis: str) -> ReasoningControl:
    """Made anew when a word list changes."""
    return ReasoningControl(simple=simple, analysis=analysis)


class ContextBuilder:
    """Builds scenes. Raises StorageError when what is remembered cannot be read."""

    def __init__(
        self,
        library: PromptLibrary,
        skills: SkillLibrary,
        recall: Recall,
        *,
        clock: Clock,
        rules: Sequence[Rule] = (),
        servers: Sequence[str] = (),
        settings: LayersSettings,
        host_zone: str,
    ) -> None:
        self._library = library
        self._skills = skills
        self._recall = recall
        self._clock = clock
        self._rules = tuple(rules)
        self._servers = tuple(servers)
        self.settings = settings
        self._host_zone = host_zone
        self._of_shelf: _SkillMatchers | None = None

    async def gather(self, occasion: PromptOccasion, history: History) -> PromptContext:
        """Everything for one prompt. `history` is what is sent along."""
        zone = occasion.turn.time_zone or self._host_zone
        now = self._clock.now().astimezone(ZoneInfo(zone))
        texts = self._library.texts()
        try:
            async with asyncio.TaskGroup() as group:
                recalling = group.create_task(self._recalled(occasion, history, now))
                # It asks its parts, and these ask the database, which looks for what is remembered
                # while all else is put together.
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                # The matchers are built again only when the set is another one.
                shelf = await self._skills.current()
                if self._of_shelf is None or self._of_shelf.shelf is not shelf:
                    self._of_shelf = _SkillMatchers(shelf, self._rules)
                matched = self._of_shelf.matched(occasion)
                control = _reasoning(texts["words_simple"], texts["words_analysis"])
                thinking = control.judge(occasion.text)
                scene = self._scene(occasion, now=now, zone=zone)
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None
        every = self.settings.reminder_turns
        is_chat = occasion.kind is PromptKind.CHAT
        is_time = every > 0 and history.turns > 0 and history.turns % every == 0
        scene = replace(
            scene,
            recalled=recalling.result(),
            texts=texts,
            listed=matched.listed[: self.settings.skills_listed],
            unlisted=max(0, len(matched.listed) - self.settings.skills_listed),
            playbooks=tuple(match.skill for match in matched.playbooks),
            relevant=matched.skills(),
            instructions=matched.instructions(),
            direct=is_chat and not thinking.needed,
            reminder_due=is_chat and is_time,
        )
        return PromptContext(
            scene=scene,
            thinking=thinking,
            required_tools=required_tools(matched.playbooks),
            plugins=matched.forced.plugins,
            auto_invoke=matched.forced.auto_invokes,
            picked=matched.picked(),
        )

    def _scene(self, occasion: PromptOccasion, *, now: datetime, zone: str) -> Scene:
        """The person, the place and the moment."""
        settings, turn = self.settings, occasion.turn
        base, base_source = self._library.base(turn.agent)
        notes, notes_source = self._library.notes(turn)
        return Scene(
            now=now,
            zone=zone,
            turn=turn,
            base=base,
            base_source=base_source,
            texts={},
            bootstrap=self._library.bootstrap(turn),
            bootstrap_chars_max=settings.bootstrap_chars_max,
            fixed_language="" if settings.language == "auto" else settings.language,
            version=VERSION,
            system=platform.system(),
            kind=occasion.kind,
            task=occasion.task,
            full_context=occasion.full_context,
            servers=self._servers,
            notes=notes,
            notes_source=notes_source,
            daily_notes=self._library.daily_notes(turn, now.date(), days=settings.daily_notes),
        )

    async def _recalled(
        self, occasion: PromptOccasion, history: History, now: datetime
    ) -> Recalled:
        turn = occasion.turn
        if occasion.kind is PromptKind.SUBAGENT:
            return Recalled()  # its prompt shows nothing of it
        return await self._recall.recall(
            RecallWanted(
                person_id=turn.person_id,
                role=turn.role,
                conversation=turn.conversation,
                text=occasion.text,
                now=now,
                scope=place_of(turn.message.address) if turn.message.is_group else "",
                place=place_of(turn.message.address),
                history_from=history.entries[0].id if history.entries else 0,
                memory_off=history.is_private,
            )
        )
