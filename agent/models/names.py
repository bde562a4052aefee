"""Models by the names under which settings, people and recorded turns know them, and their clients.

`configured` finds those of the settings at start; `find` takes what a person typed. Neither asks a
provider anything. A client's library is loaded only when a model of it is asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from agent.models.catalog import PriceTable
from agent.models.choose import Choice, beside, choose
from agent.models.client import CallLimits, is_here
from agent.models.embedded import weights
from memory.records.errors import ModelRefused, SettingsWrong
from memory.records.ports import Model
from memory.records.section import LlmSettings
from memory.records.usage import Price

NAME_CHARS_MAX = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedModel:
    """A model and how to reach it. `name` finds it again, after a restart too."""

    name: str
    choice: Choice

    @property
    def is_local(self) -> bool:
        """Whether what is said to it stays on this machine."""
        return self.choice.kind == "embedded" or is_here(self.choice.api_base)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentModels:
    """The model that answers for an agent, and its stand-ins in order."""

    main: NamedModel
    fallbacks: tuple[NamedModel, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredModels:
    """The models of the settings: the usual one, its stand-ins in order, and the cheap one; and
    those of agents that have their own, by the agents' names."""

    main: NamedModel
    fallbacks: tuple[NamedModel, ...] = ()
    cheap: NamedModel | None = None
    agents: Mapping[str, AgentModels] = field(default_factory=dict)

    def all(self) -> tuple[NamedModel, ...]:
        """Each once, the usual one first."""
        cheap = (self.cheap,) if self.cheap else ()
        own = [one for usual in self.agents.values() for one in (usual.main, *usual.fallbacks)]
        models = (self.main, *self.fallbacks, *cheap, *own)
        return tuple({one.name: one for one in models}.values())

    def of(self, agent: str) -> AgentModels:
        """What is usual with an agent."""
        found = self.agents.get(agent)
        return found or AgentModels(main=self.main, fallbacks=self.fallbacks)

    def keys(self) -> tuple[str, ...]:
        """The keys in use: what must never be shown."""
        return tuple(one.choice.api_key for one in self.all() if one.choice.api_key)


async def configured(
    finder: ModelFinder,
    *,
    fallbacks: Sequence[str],
    cheap: str,
    agents: Mapping[str, tuple[str, Sequence[str]]],
) -> ConfiguredModels:
    """Find what the settings name; of `agents` the model, empty for the usual one, and its
    fallbacks. Raises SettingsWrong, with what to do."""
    chosen = await choose(finder.main, env=finder.env, prices=finder.prices)
    name = finder.main.model.strip() or chosen.priced_as or chosen.model
    usual = NamedModel(name=name, choice=chosen)
    stand_ins = tuple([await finder.usable(one) for one in fallbacks])
    of_agents: dict[str, AgentModels] = {}
    for agent, (model, own_fallbacks) in agents.items():
        if model.strip() or own_fallbacks:
            try:
                own = [await finder.usable(one) for one in own_fallbacks]
                main = await finder.usable(model) if model.strip() else usual
            except SettingsWrong as error:
                said = str(error).replace("llm.model =", "the model")
                raise SettingsWrong(f"[agents.{agent}]: {said}") from error
            of_agents[agent] = AgentModels(main=main, fallbacks=tuple(own) or stand_ins)
    return ConfiguredModels(
        main=usual,
        fallbacks=stand_ins,
        cheap=await finder.usable(cheap) if cheap.strip() else None,
        agents=of_agents,
    )


class ModelFinder:
    """Finds the model of a name, as it stands beside the main one of the settings."""

    def __init__(self, main: LlmSettings, env: Mapping[str, str]) -> None:
        self.main = main
        self.env = env
        self.prices = PriceTable()

    async def usable(self, name: str) -> NamedModel:
        """Raises SettingsWrong for a name that cannot work. Whether its server answers, and takes
        the key, is not asked."""
        found = await self.find(name)
        if found.choice.kind == "embedded":
            try:
                weights(found.choice.model)
            except ModelRefused as error:
                raise SettingsWrong(str(error)) from error
        return found

    async def find(self, name: str) -> NamedModel:
        """The same, but a file need not be there: whoever set it up to keep what is said on this
        machine shall hear that it is gone, and not be answered by another model."""
        name = name.strip()
        if not name or len(name) > NAME_CHARS_MAX or not name.isprintable():
            raise SettingsWrong("A model's name is one line, such as openai/gpt-4.1-mini.")
        choice = await choose(beside(self.main, name), env=self.env, prices=self.prices)
        return NamedModel(name=name, choice=choice)

    async def price(self, one: NamedModel) -> Price | None:
        """What a model costs; None where that is not known."""
        name = one.choice.priced_as
        return await self.prices.find(name) if name else None


def match(typed: str, models: tuple[NamedModel, ...]) -> NamedModel | None:
    """The one that is meant: by its name, or what stands behind its provider's, if one alone."""
    wanted = typed.strip().casefold()
    if not wanted:
        return None
    for one in models:
        if wanted == one.name.casefold():
            return one
    found = [
        one
        for one in models
        for name in (one.name.casefold(), one.choice.model.casefold())
        if wanted in (name, name.partition("/")[2])
    ]
    return found[0] if len({one.name for one in found}) == 1 else None


def client_of(
    choice: Choice, *, timeout_s: float, connect_timeout_s: float = 10.0
) -> AbstractAsyncContextManager[Model]:
    """A client that asks once a call; it connects on first use."""
    limits = CallLimits(timeout_s=timeout_s, connect_timeout_s=connect_timeout_s)
    if choice.kind == "embedded":
        from agent.models.embedded import Embedded

        return Embedded(choice.model, window=choice.traits.window, limits=limits)
    if choice.kind == "litellm":
        from agent.models.litellm import LiteLLM

        return LiteLLM(
            choice.model,
            api_base=choice.api_base,
            api_key=choice.api_key,
            traits=choice.traits,
            limits=limits,
            output_tokens_max=choice.output_tokens_max,
        )
    from agent.models.openai_compatible import OpenAICompatible

    return OpenAICompatible(
        choice.model,
        api_base=choice.api_base,
        api_key=choice.api_key,
        traits=choice.traits,
        dialect=choice.dialect,
        limits=limits,
    )
