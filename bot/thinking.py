"""Puts together what thinks: the models, what each of their calls must pass, and the assistant that
the engine runs. Called by `bot.assembly` and whoever needs the models alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from agent.asking import Asking, AskingOptions, Payment
from agent.assistant import Assistant
from agent.attached import AttachedFiles
from agent.buckets import RateBuckets
from agent.budget import Budget
from agent.doing import Doing
from agent.gate import Gate
from agent.loop import Loop
from agent.messages import DEFAULT_AGENT
from agent.pictures import KeptPictures
from agent.ports import Drafts, Models
from agent.tools.files import KeptResults
from bot.approval_words import plain
from bot.approvals import ApprovalDesk
from bot.commands import as_typed
from bot.model_names import Configured, NameFinder
from bot.model_pool import ModelPool
from bot.models import client_of
from bot.options import bindings_of, tool_limits_of
from bot.options_tools import paces_of, policy_of
from bot.parts import Abilities, Prompting, Stores
from bot.place import Workplace
from memory.database import Database
from memory.models import SqliteChosenModels


def pool_of(place: Workplace, models: Configured, database: Database) -> ModelPool:
    """The models that there are."""
    llm = place.settings.llm
    return ModelPool(
        models,
        SqliteChosenModels(database),
        partial(client_of, timeout_s=llm.timeout_s),
        finder=NameFinder(place.settings, place.env),
        clock=place.clock,
        output_tokens_max=llm.max_output_tokens,
        bindings=bindings_of(place.settings),
    )


def payment_of(place: Workplace, budget: Budget) -> Payment:
    """What every model call has to pass, those behind the scenes too."""
    paces = paces_of(place.settings)
    return Payment(budget=budget, rates=RateBuckets(paces, place.clock) if paces else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """What stands between a model's wish and the world."""

    approvals: ApprovalDesk
    payment: Payment
    redact: Callable[[str], str]


def assistant_of(
    place: Workplace,
    models: Models,
    drafts: Drafts,
    stores: Stores,
    abilities: Abilities,
    prompting: Prompting,
    checks: Checks,
    *,
    files: AttachedFiles,
) -> Assistant:
    """The program that the engine runs."""
    settings, tools = place.settings, abilities.tools
    agents = settings.agents.by_name
    return Assistant(
        begin=prompting.beginning,
        model=Asking(
            models,
            stores.conversations,
            drafts,
            stores.traces,
            toolbox=tools.toolbox,
            library=prompting.library,
            options=AskingOptions(
                temperature=agents[DEFAULT_AGENT].temperature,
                temperatures={name: agent.temperature for name, agent in agents.items()},
                max_output_tokens=settings.llm.max_output_tokens,
                redact=checks.redact,
                pictures=KeptPictures(abilities.workspace),
                cheap_model=settings.llm.cheap_model,
            ),
            payment=checks.payment,
        ),
        tool=Doing(
            tools.toolbox,
            tools.reach,
            drafts,
            Gate(policy_of(settings), checks.approvals, stores.conversations),
            clock=place.clock,
            keep=KeptResults(abilities.workspace),
            limits=tool_limits_of(settings),
            redact=checks.redact,
        ),
        loop=Loop(
            tools.toolbox,
            steps_max=agents[DEFAULT_AGENT].max_steps,
            others={name: agent.max_steps for name, agent in agents.items()},
            claims=prompting.library.texts()["words_claims"],
        ),
        drafts=drafts,
        files=files,
        typed=lambda text, where: as_typed(text, where.key),
        named=plain,
    )
