"""Models by the names under which settings, people and recorded turns know them.

`configured` reads those of the settings at start; `find` takes what a person typed. Neither asks
a provider anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from agent.models.catalog import PriceTable
from agent.models.choose import Choice, Wanted, beside, choose, is_here
from agent.models.embedded import weights
from bot.settings.options import wanted_of
from bot.settings.schema.settings import Settings
from memory.records.errors import ModelRefused, SettingsWrong

NAME_CHARS_MAX = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A model and how to reach it. `name` finds it again, after a restart too."""

    name: str
    choice: Choice

    @property
    def is_local(self) -> bool:
        """Whether what is said to it stays on this machine."""
        return self.choice.kind == "embedded" or is_here(self.choice.api_base)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usual:
    """The model that answers for an agent, and its stand-ins in order."""

    main: Named
    fallbacks: tuple[Named, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Configured:
    """The models of the settings: the usual one, its stand-ins in order, and the cheap one; and
    those of agents that have their own, by the agents' names."""

    main: Named
    fallbacks: tuple[Named, ...] = ()
    cheap: Named | None = None
    agents: Mapping[str, Usual] = field(default_factory=dict)

    def all(self) -> tuple[Named, ...]:
        """Each once, the usual one first."""
        cheap = (self.cheap,) if self.cheap else ()
        own = [one for usual in self.agents.values() for one in (usual.main, *usual.fallbacks)]
        models = (self.main, *self.fallbacks, *cheap, *own)
        return tuple({one.name: one for one in models}.values())

    def of(self, agent: str) -> Usual:
        """What is usual with an agent."""
        found = self.agents.get(agent)
        return found or Usual(main=self.main, fallbacks=self.fallbacks)

    def keys(self) -> tuple[str, ...]:
        """The keys in use: what must never be shown."""
        return tuple(one.choice.api_key for one in self.all() if one.choice.api_key)


async def configured(settings: Settings, env: Mapping[str, str]) -> Configured:
    """What the settings name, found. Raises SettingsWrong, with what to do."""
    llm, finder = settings.llm, NameFinder(settings, env)
    chosen = await choose(finder.wanted, env=env, prices=finder.prices)
    usual = Named(name=llm.model.strip() or chosen.priced_as or chosen.model, choice=chosen)
    fallbacks = tuple([await finder.usable(name) for name in llm.fallbacks])
    agents: dict[str, Usual] = {}
    for name, agent in settings.agents.by_name.items():
        if agent.model.strip() or agent.fallbacks:
            try:
                own = [await finder.usable(one) for one in agent.fallbacks]
                main = await finder.usable(agent.model) if agent.model.strip() else usual
            except SettingsWrong as error:
                said = str(error).replace("llm.model =", "the model")
                raise SettingsWrong(f"[agents.{name}]: {said}") from error
            agents[name] = Usual(main=main, fallbacks=tuple(own) or fallbacks)
    return Configured(
        main=usual,
        fallbacks=fallbacks,
        cheap=await finder.usable(llm.cheap_model) if llm.cheap_model.strip() else None,
        agents=agents,
    )


class NameFinder:
    """Finds the model of a name, as it stands beside the main one of the settings."""

    def __init__(self, settings: Settings, env: Mapping[str, str]) -> None:
        self.wanted: Wanted = wanted_of(settings)
        self.prices = PriceTable()
        self._env = env

    async def usable(self, name: str) -> Named:
        """Raises SettingsWrong for a name that cannot work. Whether its server answers, and takes
        the key, is not asked."""
        found = await self.find(name)
        if found.choice.kind == "embedded":
            try:
                weights(found.choice.model)
            except ModelRefused as error:
                raise SettingsWrong(str(error)) from error
        return found

    async def find(self, name: str) -> Named:
        """The same, but a file need not be there: whoever set it up to keep what is said on this
        machine shall hear that it is gone, and not be answered by another model."""
        name = name.strip()
        if not name or len(name) > NAME_CHARS_MAX or not name.isprintable():
            raise SettingsWrong("A model's name is one line, such as openai/gpt-4.1-mini.")
        choice = await choose(beside(self.wanted, name), env=self._env, prices=self.prices)
        return Named(name=name, choice=choice)


def match(typed: str, models: tuple[Named, ...]) -> Named | None:
    """The one that is meant: by its name, or what stands behind its provider's, if one alone."""
    wanted = typed.strip().casefold()
    if not wanted:
        return None
    for one in models:
        if wanted == one.name.casefold():
            return one
    found = [one for one in models if wanted in _short_names(one)]
    return found[0] if len(found) == 1 else None


def _short_names(one: Named) -> Iterator[str]:
    for name in (one.name, one.choice.model):
        yield name.casefold()
        yield name.partition("/")[2].casefold()
