"""Convert the settings into the values that parts of `agent` take.

Called by `bot.app`.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from agent.budget.budget import BudgetOptions
from agent.budget.circuit_breaker import BrakeOptions
from agent.budget.rate_limit import RateLimit
from agent.mcp.values import ServerOptions, ServerStart
from agent.models.service import ConfiguredModels, ModelFinder, configured
from agent.policy.approval import Action, Policy, PolicyRule
from agent.prompt.templates import PersonaSettings, PromptLibrary
from agent.sandbox.process import RunLimits
from agent.skills.places import SkillFolders
from agent.skills.rules import Rule
from agent.skills.skill import AutoInvoke
from agent.tools.groups.exec import ExecOptions
from agent.tools.selection import SelectionOptions
from agent.tools.tool import Effect, Trust
from agent.tools.toolbox import ReachOptions, ToolLimits
from agent.turn.agents import Bindings
from agent.web.addresses import AllowedHosts, allowed_hosts
from agent.web.search import SearchOptions
from bot.settings.home import Home, shipped
from bot.settings.schema.sections import budget_of
from bot.settings.schema.settings import Settings
from bot.settings.schema.tools import BudgetLimitSettings, McpServerSettings
from memory.records.messages import DEFAULT_AGENT
from memory.records.usage import BudgetUnit, Limit, Period, Scope


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


def texts_of(home: Home, settings: Settings) -> PromptLibrary:
    """The texts of prompts, not checked yet."""
    personas = dict(personas_of(home, settings))
    return PromptLibrary(shipped("prompts"), home.workspace, personas.pop(DEFAULT_AGENT), personas)


def bindings_of(settings: Settings) -> Bindings:
    """Return which agent answers where."""
    return Bindings(settings.agents.rules())


def finder_of(settings: Settings, env: Mapping[str, str]) -> ModelFinder:
    """Find models beside that of the settings."""
    return ModelFinder(settings.llm, env)


async def configured_models(settings: Settings, env: Mapping[str, str]) -> ConfiguredModels:
    """Find the models of the settings. Raises SettingsWrong, with what to do."""
    return await configured(
        finder_of(settings, env),
        fallbacks=settings.llm.fallbacks,
        cheap=settings.llm.cheap_model,
        agents={
            name: (agent.model, agent.fallbacks) for name, agent in settings.agents.by_name.items()
        },
    )


def tool_limits_of(settings: Settings) -> ToolLimits:
    """Of one tool call."""
    return ToolLimits(
        timeout_s=settings.tools.timeout_s, result_chars_max=settings.tools.result_chars_max
    )


def reach_of(settings: Settings) -> Mapping[str, ReachOptions]:
    """Return which tools a run may have, by agent."""
    return {
        name: ReachOptions(
            allowed=agent.allowed_tools,
            denied=agent.denied_tools,
            members_approve_outside=settings.tools.members_approve_outside,
        )
        for name, agent in settings.agents.by_name.items()
    }


def places_of(home: Home, settings: Settings) -> SkillFolders:
    """Where skills are looked for."""
    return SkillFolders(
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


def allowed_of(settings: Settings) -> list[str]:
    """The addresses that are always let in."""
    return [
        *(f"telegram:{number}" for number in settings.telegram.allow_from),
        *(f"slack:{member}" for member in settings.slack.allow_from),
    ]


MICROS = 1_000_000
MB = 1024**2


def policy_of(settings: Settings) -> Policy:
    """Who must agree to what."""
    return Policy(
        rules=tuple(
            PolicyRule(
                action=Action(rule.action),
                tools=rule.tools,
                effect=None if rule.effect == "any" else Effect(rule.effect),
                agent=rule.agent,
            )
            for rule in settings.tools.rules
        ),
        members_approve_outside=settings.tools.members_approve_outside,
    )


def selection_options_of(settings: Settings) -> SelectionOptions:
    """Return how many tools a request offers."""
    tools = settings.tools
    return SelectionOptions(
        tools_max=tools.offered_max,
        best_always=tools.offered_best,
        best_max=tools.offered_fitting,
        cosine_min=tools.offered_cosine,
        used_max=tools.offered_used,
        used_turns=tools.offered_turns,
        cosine_sure=tools.sure_cosine,
    )


def file_bytes_max_of(settings: Settings) -> int:
    """Of a file that the assistant sends."""
    return settings.tools.send_file_mb * MB


def exec_options_of(settings: Settings) -> ExecOptions:
    """Return how programs run."""
    program = settings.exec
    return ExecOptions(
        sandbox=program.sandbox,
        readable=tuple(Path(folder).expanduser() for folder in program.readable),
        output_chars_max=program.output_chars,
        limits=RunLimits(
            timeout_s=program.timeout_s,
            memory_bytes=program.memory_mb * MB,
            file_bytes=program.file_mb * MB,
        ),
    )


def allowed_hosts_of(settings: Settings) -> AllowedHosts:
    """Private places that may be fetched. Raises ValueError on what is no place."""
    return allowed_hosts(settings.web.allowed_hosts)


def search_options_of(settings: Settings) -> SearchOptions | None:
    """Who searches the web; None: nobody."""
    web = settings.web
    if web.search == "off":
        return None
    return SearchOptions(service=web.search, base_url=web.search_url, api_key=web.search_key)


def matching_nothing(settings: Settings, names: Collection[str]) -> Iterator[tuple[str, str]]:
    """Patterns for tools that match none of these names, each with the key under which it stands:
    a misspelt denial denies nothing. Those of servers, which are not known yet, are left out."""
    lists = [
        (f"agents.{name}.{key}", patterns)
        for name, agent in settings.agents.by_name.items()
        for key, patterns in (
            ("allowed_tools", agent.allowed_tools),
            ("denied_tools", agent.denied_tools),
        )
    ]
    for n, rule in enumerate(settings.tools.rules):
        lists.append((f"tools.rules[{n}].tools", rule.tools))
    for key, patterns in lists:
        for pattern in patterns:
            if "__" not in pattern and not any(fnmatchcase(name, pattern) for name in names):
                yield key, pattern


def servers_of(settings: Settings) -> tuple[ServerOptions, ...]:
    """The MCP servers."""
    return tuple(_server(name, server) for name, server in settings.mcp.by_name.items())


def _server(name: str, server: McpServerSettings) -> ServerOptions:
    return ServerOptions(
        name=name,
        command=server.command,
        args=server.args,
        env={key: value.get_secret_value() for key, value in server.env.items()},
        url=server.url,
        headers={key: value.get_secret_value() for key, value in server.headers.items()},
        about=server.about,
        tools=server.tools,
        read_only=server.read_only,
        outside=server.outside,
        trust=Trust.OURS if server.trust == "ours" else Trust.UNTRUSTED,
        is_trusted=server.trust in {True, "ours"},
        timeout_s=server.timeout_s,
        refresh_s=server.refresh_minutes * 60,
        start=ServerStart(server.start),
    )


def budget_options_of(settings: Settings) -> BudgetOptions:
    """Return what model calls may cost."""
    budget = settings.budget
    limits = [_limit(limit) for limit in budget.limits]
    limits += [
        _agents_limit(name, text)
        for name, agent in settings.agents.by_name.items()
        for text in agent.budget
    ]
    return BudgetOptions(limits=tuple(limits), warn_share=budget.warn_share)


def _agents_limit(agent: str, text: str) -> Limit:
    amount, unit, period = budget_of(text)
    return Limit(
        scope=Scope.AGENT,
        period=Period(period),
        unit=BudgetUnit.MONEY if unit == "usd" else BudgetUnit.TOKENS,
        amount=round(amount * MICROS) if unit == "usd" else int(amount),
        of=agent,
    )


def _limit(limit: BudgetLimitSettings) -> Limit:
    return Limit(
        scope=Scope(limit.scope),
        period=Period(limit.period),
        unit=BudgetUnit.MONEY if limit.usd else BudgetUnit.TOKENS,
        amount=round(limit.usd * MICROS) or limit.tokens,
        of=limit.of,
    )


def brake_options_of(settings: Settings) -> BrakeOptions:
    """When something is wrong."""
    budget = settings.budget
    return BrakeOptions(
        enabled=budget.brake,
        hour_tokens_max=budget.brake_hour_tokens,
        burst_factor=budget.brake_factor,
    )


def paces_of(settings: Settings) -> dict[str, RateLimit]:
    """Return how often models may be called."""
    return {
        rate.model: RateLimit(
            requests_per_minute=rate.requests_per_minute, tokens_per_minute=rate.tokens_per_minute
        )
        for rate in settings.budget.rates
    }
