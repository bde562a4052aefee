"""What the parts about tools and cost get of the settings. Called by `bot.app` and `bot.parts`."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from agent.brake import BrakeOptions
from agent.buckets import Pace
from agent.budget import BudgetOptions
from agent.mcp.values import ServerOptions, Start
from agent.sandbox.running import Limits
from agent.spending import Limit, Period, Scope, Unit
from agent.tools.exec import ExecOptions
from agent.tools.policy import Action, Policy, PolicyRule
from agent.tools.selection import SelectionOptions
from agent.tools.tool import Effect, Trust
from agent.web.addresses import AllowedHosts, allowed_hosts
from agent.web.search import SearchOptions
from bot.config import Settings
from bot.config_agents import budget_of
from bot.config_tools import BudgetLimitSettings, McpServerSettings

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
    """How many tools a request offers."""
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
    """How programs run."""
    program = settings.exec
    return ExecOptions(
        sandbox=program.sandbox,
        readable=tuple(Path(folder).expanduser() for folder in program.readable),
        output_chars_max=program.output_chars,
        limits=Limits(
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
        trust=Trust(server.trust),
        timeout_s=server.timeout_s,
        refresh_s=server.refresh_minutes * 60,
        start=Start(server.start),
    )


def budget_options_of(settings: Settings) -> BudgetOptions:
    """What model calls may cost."""
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
        unit=Unit.MONEY if unit == "usd" else Unit.TOKENS,
        amount=round(amount * MICROS) if unit == "usd" else int(amount),
        of=agent,
    )


def _limit(limit: BudgetLimitSettings) -> Limit:
    return Limit(
        scope=Scope(limit.scope),
        period=Period(limit.period),
        unit=Unit.MONEY if limit.usd else Unit.TOKENS,
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


def paces_of(settings: Settings) -> dict[str, Pace]:
    """How often models may be called."""
    return {
        rate.model: Pace(
            requests_per_minute=rate.requests_per_minute, tokens_per_minute=rate.tokens_per_minute
        )
        for rate in settings.budget.rates
    }
