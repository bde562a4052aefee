"""Builds what a turn goes through: the prompt, the models and what their calls may cost, the gate
before tools, and the engine.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from agent.budget.budget import Budget
from agent.budget.circuit_breaker import Brakes
from agent.budget.payment import Payment
from agent.budget.rate_limit import RateLimiter
from agent.files.images import KeptPictures
from agent.models.router import Router
from agent.models.service import client_of
from agent.policy.gate import Gate
from agent.prompt.context import ContextBuilder
from agent.prompt.templates import TextFiles
from agent.subagents.subagents import PeopleDrafts
from agent.tools.discovery import RouteFile
from agent.tools.groups.files import ResultStore
from agent.tools.selection import ToolSelector
from agent.turn.aftermath import Aftermath, FollowUp
from agent.turn.assistant import Assistant
from agent.turn.engine import LocalEngine
from agent.turn.loop import Loop
from agent.turn.steps.begin import BeginStep
from agent.turn.steps.model import ModelStep, ModelStepOptions
from agent.turn.steps.tools import ToolStep
from bot.app.chats import OwnerNotices
from bot.channels.base import around
from bot.commands.trace.prompts import Prompts
from bot.markup.command_text import as_typed
from bot.people.approval_messages import plain
from bot.people.approvals import ApprovalService
from bot.settings.home import shipped
from bot.settings.options import (
    bindings_of,
    brake_options_of,
    budget_options_of,
    configured_models,
    finder_of,
    host_zone,
    paces_of,
    policy_of,
    rules_of,
    selection_options_of,
    tool_limits_of,
)
from memory.records.errors import StorageError, StorageFull
from memory.records.messages import DEFAULT_AGENT
from memory.records.ports import NewRun, TurnEnd
from memory.stores.approvals import SqliteApprovals
from memory.stores.switches import SqliteChosenModels
from memory.stores.traces import SqliteTraces

if TYPE_CHECKING:
    from bot.app.app import App


# --- models -------------------------------------------------------------------------------------


def models_of(app: App) -> Router:
    """Build the models that there are."""
    llm = app.settings.llm
    return Router(
        # Read when the router opens: a server on this machine may have to be looked for.
        partial(configured_models, app.settings, app.env),
        SqliteChosenModels(app.database),
        partial(client_of, timeout_s=llm.timeout_s),
        finder=finder_of(app.settings, app.env),
        clock=app.clock,
        output_tokens_max=llm.max_output_tokens,
        agent_of=bindings_of(app.settings).agent_of,
        channel_around=around,
    )


def budget_of(app: App) -> Budget:
    """Build what is asked before each call to a model."""
    return Budget(
        app.usage_store,
        app.models.price,
        Brakes(brake_options_of(app.settings), app.clock),
        options=budget_options_of(app.settings),
        clock=app.clock,
        host_zone=ZoneInfo(host_zone()),
        tell=OwnerNotices(app.access, app.outbox.say),
    )


def payment_of(app: App) -> Payment:
    """Build what every model call has to pass, those behind the scenes too."""
    # Where no pace is set, no bucket is asked on the way of each call.
    paces = paces_of(app.settings)
    return Payment(budget=app.budget, rates=RateLimiter(paces, app.clock) if paces else None)


# --- prompt -------------------------------------------------------------------------------------


def beginning_of(app: App) -> BeginStep:
    """Build what makes a prompt for the model that answers. Raises SettingsWrong.

    Only the running bot charges for a prompt's parts and sums up a history on the way.
    """
    settings = app.settings
    routes = RouteFile(
        shipped("prompts"), app.home.workspace, read=TextFiles(within=app.home.workspace).read
    )
    # A broken file is told at the start, not in the middle of somebody's turn.
    routes.check()
    gathering = ContextBuilder(
        app.library,
        app.abilities.shelf,
        app.memories.recall,
        clock=app.clock,
        rules=rules_of(settings),
        servers=tuple(
            f"{name}: {server.about}" if server.about else name
            for name, server in settings.mcp.by_name.items()
        ),
        settings=settings.prompt,
        host_zone=host_zone(),
    )
    choosing = ToolSelector(
        app.abilities.toolbox,
        app.abilities.reach,
        SqliteTraces(app.database),
        ranking=app.abilities.ranking,
        routes=routes,
        options=selection_options_of(settings),
    )
    return BeginStep(
        app.conversations,
        gathering,
        app.abilities.toolbox,
        choosing,
        app.models,
        output_tokens_max=settings.llm.max_output_tokens,
        # Looking at a prompt costs nothing, and sums nothing up.
        budget=app.budget if app.is_running else None,
        compactor=app.memories.compactor if app.is_running else None,
    )


def prompts_of(app: App) -> Prompts:
    """Build what shows prompts."""
    return Prompts(
        app.beginning.plan,
        SqliteTraces(app.database),
        app.conversations,
        app.access,
        toolbox=app.abilities.toolbox,
        models=app.models,
        bindings=bindings_of(app.settings),
    )


# --- turns --------------------------------------------------------------------------------------


def approvals_of(app: App) -> ApprovalService:
    """Build what asks people whether a tool may be called."""
    return ApprovalService(
        SqliteApprovals(app.database),
        app.access,
        # The engine is built after the gate, and a press comes later than both.
        lambda key, value: app.engine.signal(key, value),
        deliver=app.outbox.deliver,
        revise=app.outbox.revise,
        clock=app.clock,
        valid_s=app.settings.tools.approval_minutes * 60,
        host_zone=host_zone(),
    )


def assistant_of(app: App) -> Assistant:
    """Build the program that the engine runs."""
    from bot.app.tools import attached_files_of

    settings, drafts = app.settings, PeopleDrafts(app.outbox)
    agents = settings.agents.by_name
    return Assistant(
        begin=app.beginning,
        model=ModelStep(
            app.models,
            app.conversations,
            drafts,
            SqliteTraces(app.database),
            toolbox=app.abilities.toolbox,
            library=app.library,
            options=ModelStepOptions(
                temperature=agents[DEFAULT_AGENT].temperature,
                temperatures={name: agent.temperature for name, agent in agents.items()},
                max_output_tokens=settings.llm.max_output_tokens,
                redact=app.redact,
                pictures=KeptPictures(app.abilities.workspace),
                cheap_model=settings.llm.cheap_model,
            ),
            payment=app.payment,
        ),
        tool=ToolStep(
            app.abilities.toolbox,
            app.abilities.reach,
            drafts,
            Gate(policy_of(settings), app.approvals, app.conversations),
            clock=app.clock,
            keep=ResultStore(app.abilities.workspace),
            limits=tool_limits_of(settings),
            redact=app.redact,
        ),
        loop=Loop(
            app.abilities.toolbox,
            steps_max=agents[DEFAULT_AGENT].max_steps,
            others={name: agent.max_steps for name, agent in agents.items()},
            claims=app.library.texts()["words_claims"],
        ),
        drafts=drafts,
        files=attached_files_of(app),
        typed=lambda text, where: as_typed(text, where.key),
        named=plain,
    )


def aftermath_of(app: App) -> Aftermath:
    """Build what follows from each turn, in this order."""
    asks = FollowUp(name="time zone", run=app.calendar.zones.after_turn)
    return Aftermath([asks, *app.memories.follow_ups(), *app.calendar.schedules.works()])


def engine_of(app: App) -> LocalEngine:
    """Build what runs the turns."""

    def troubled(run: NewRun, trouble: StorageError) -> None:
        if run.message_id and isinstance(trouble, StorageFull):
            app.full_disk.holds_up_chat(run.lane)

    def ended(run: NewRun, end: TurnEnd) -> None:
        # A job has its outcome before what follows an answer, which may take long.
        if end.job is not None:
            app.calendar.schedules.ended(end.job)
        app.aftermath.ended(run, end)

    return LocalEngine(
        app.journal,
        assistant_of(app),
        clock=app.clock,
        deliver=app.outbox.deliver,
        limits=app.settings.turns,
        held=app.budget.hand,
        troubled=troubled,
        ended=ended,
    )
