"""What each part gets of the settings: the few values that it needs, as its own type.

Called by `bot.app`, so that the wiring reads as a list of objects.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from agent.beginning import PromptOptions
from agent.bindings import Bindings
from agent.gathering import GatheringOptions
from agent.library import Library, PersonaSettings
from agent.messages import DEFAULT_AGENT
from agent.models.choose import Wanted
from agent.prompt import Placement
from agent.skills.places import Places
from agent.skills.rules import Rule
from agent.skills.skill import AutoInvoke
from agent.subagents import SubagentLimits
from agent.tools.reach import ReachOptions
from agent.tools.tool import ToolLimits
from agent.turns import EngineLimits
from bot.config import Settings, SlackSettings, TelegramSettings
from bot.home import Home, shipped
from bot.pace import Rates


def personas_of(home: Home, settings: Settings) -> Mapping[str, PersonaSettings]:
    """The first links of the base chain, by agent."""
    return {
        name: PersonaSettings(
            system_prompt=agent.system_prompt,
            system_prompt_file=_path(home, agent.system_prompt_file),
            persona_dir=_path(home, agent.persona_dir),
        )
        for name, agent in settings.agents.by_name.items()
    }


def steering_of(home: Home, settings: Settings) -> tuple[Path, ...]:
    """Files and folders that are made part of prompts by a setting, wherever they lie: the personas
    of all agents, and the skills of the account."""
    found = [_path(home, settings.skills.user_dir)]
    for persona in personas_of(home, settings).values():
        found.append(persona.system_prompt_file)
        if persona.persona_dir is not None:
            # The file too: a folder that is the workspace itself would be all of it.
            found += [persona.persona_dir, persona.persona_dir / "instructions.md"]
    return tuple(path for path in found if path is not None)


def texts_of(home: Home, settings: Settings) -> Library:
    """The texts of prompts, not checked yet."""
    personas = dict(personas_of(home, settings))
    return Library(shipped("prompts"), home.workspace, personas.pop(DEFAULT_AGENT), personas)


def bindings_of(settings: Settings) -> Bindings:
    """Which agent answers where."""
    return Bindings(settings.agents.rules())


def wanted_of(settings: Settings) -> Wanted:
    """Which model is wished for."""
    llm = settings.llm
    return Wanted(
        model=llm.model,
        api_base=llm.api_base,
        api_key=llm.api_key.get_secret_value(),
        window=llm.window,
        client=llm.client,
        vision=llm.vision,
    )


def limits_of(settings: Settings) -> EngineLimits:
    """Of the turn engine."""
    turns = settings.turns
    return EngineLimits(
        parallel=turns.parallel,
        queue=turns.queue,
        collect_s=turns.collect_s,
        turn_s=turns.limit_s,
    )


def tool_limits_of(settings: Settings) -> ToolLimits:
    """Of one tool call."""
    return ToolLimits(
        timeout_s=settings.tools.timeout_s, result_chars_max=settings.tools.result_chars_max
    )


def prompt_options_of(settings: Settings) -> PromptOptions:
    """Where layers go, and how large a prompt may be."""
    return PromptOptions(
        placement=Placement(
            turn_layers=settings.prompt.turn_layers,
            instruction=settings.prompt.instruction_position,
        ),
        messages_max=settings.history.messages_max,
        tokens_max=settings.history.tokens_max,
        prompt_tokens_max=settings.prompt.max_tokens,
        max_output_tokens=settings.llm.max_output_tokens,
    )


def reach_of(settings: Settings) -> Mapping[str, ReachOptions]:
    """Which tools a run may have, by agent."""
    return {
        name: ReachOptions(
            allowed=agent.allowed_tools,
            denied=agent.denied_tools,
            members_approve_outside=settings.tools.members_approve_outside,
        )
        for name, agent in settings.agents.by_name.items()
    }


def subagent_limits_of(settings: Settings) -> SubagentLimits:
    """Of work that is handed on."""
    tasks = settings.subagents
    return SubagentLimits(
        at_once=tasks.at_once,
        minutes=tasks.minutes,
        steps_max=tasks.steps,
        tokens_max=tasks.tokens,
    )


def gathering_options_of(settings: Settings) -> GatheringOptions:
    """What a prompt shows."""
    prompt = settings.prompt
    return GatheringOptions(
        language="" if prompt.language == "auto" else prompt.language,
        bootstrap_chars_max=prompt.bootstrap_chars_max,
        host_zone=host_zone(),
        skills_listed=prompt.skills_listed,
        daily_notes=prompt.daily_notes,
        reminder_turns=prompt.reminder_turns,
    )


def places_of(home: Home, settings: Settings) -> Places:
    """Where skills are looked for."""
    return Places(
        workspace=home.workspace / "skills",
        shipped=shipped("skills"),
        user=_path(home, settings.skills.user_dir),
    )


def rules_of(settings: Settings) -> tuple[Rule, ...]:
    """The force-include rules."""
    return tuple(
        Rule(
            source=f"prompt.force_include[{number}]",
            patterns=rule.patterns,
            skills=rule.skills,
            plugins=rule.plugins,
            instruction=rule.instruction,
            auto_invoke=tuple(
                AutoInvoke(tool=wish.tool, args=wish.args) for wish in rule.auto_invoke
            ),
        )
        for number, rule in enumerate(settings.prompt.force_include)
    )


def rates_of(telegram: TelegramSettings) -> Rates:
    """How fast Telegram may be sent to."""
    return Rates(
        per_chat=telegram.rate_per_chat,
        per_group_minute=telegram.rate_per_group_minute,
        total=telegram.rate_total,
    )


def host_zone() -> str:
    """The IANA name of this machine's zone; UTC where it has none. A change of it counts from the
    next start on, as one of the settings does."""
    return _host_zone(os.environ.get("TZ", "").lstrip(":"))


@cache
def _host_zone(name: str) -> str:
    link = Path("/etc/localtime")
    candidates = [name] if name else []
    if link.is_symlink():
        candidates.append(str(link.resolve()).partition("zoneinfo/")[2])
    for candidate in candidates:
        try:
            return ZoneInfo(candidate).key
        except (ZoneInfoNotFoundError, ValueError):
            continue
    return "UTC"


def _path(home: Home, text: str) -> Path | None:
    """A path of the settings; a relative one begins at the workspace."""
    return home.workspace / Path(text).expanduser() if text.strip() else None


def slack_rates_of(slack: SlackSettings) -> Rates:
    """The limits on sending."""
    return Rates(per_chat=slack.rate_per_chat, per_group_minute=0, total=slack.rate_total)


def allowed_of(settings: Settings) -> list[str]:
    """The addresses that are always let in."""
    return [
        *(f"telegram:{number}" for number in settings.telegram.allow_from),
        *(f"slack:{member}" for member in settings.slack.allow_from),
    ]
