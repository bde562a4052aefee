"""The models in use: which one answers where, what stands in for it, and the clients themselves.

Turns ask for a model by address or by name, commands choose one. The clients of configured models
live as long as the router; further ones are opened when they are asked for the first time, and the
least used one goes when there are too many.
"""

from __future__ import annotations

import asyncio
import random
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Self

import structlog

from agent.models.choose import Choice
from agent.models.fallback import ModelChain
from agent.models.health import ModelHealth, RestingModel
from agent.models.service import AgentModels, ConfiguredModels, ModelFinder, NamedModel, match
from memory.records.errors import Permanent, SettingsWrong
from memory.records.messages import DEFAULT_AGENT, PersonId
from memory.records.ports import Clock, InUse, Model
from memory.records.transcript import ModelTraits, Usage
from memory.records.usage import Price
from memory.stores.switches import SqliteChosenModels

log = structlog.get_logger()

FURTHER_MAX = 3
"""Clients of models that are in no setting, open at the same time."""

NAMES_MAX = 200
"""Names that were looked up and are remembered, with what came of it."""


OpenClient = Callable[[Choice], AbstractAsyncContextManager[Model]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStanding:
    """Which model answers at an address, and why.

    `chosen` is the name that was set there, empty for the usual one; `trouble` says why that one
    cannot be used now, so that the usual one answers. `stand_ins` are asked next, in order.
    """

    answering: NamedModel
    stand_ins: tuple[NamedModel, ...]
    chosen: str = ""
    trouble: str = ""
    of_channel: bool = False
    """Whether it was set for the channel around this thread, and not here."""


@dataclass(slots=True, kw_only=True)
class _Open:
    """A client and how it is doing. `uses` counts the calls under way."""

    health: ModelHealth
    stack: AsyncExitStack
    uses: int = 0


class Router:
    """Says which model answers where, and asks it. An async context manager."""

    def __init__(
        self,
        configure: Callable[[], Awaitable[ConfiguredModels]],
        chosen: SqliteChosenModels,
        open_client: OpenClient,
        *,
        finder: ModelFinder,
        clock: Clock,
        output_tokens_max: int,
        agent_of: Callable[[str], str] = lambda lane: DEFAULT_AGENT,
        channel_around: Callable[[str], str] = lambda lane: "",
    ) -> None:
        """`configure` finds the models of the settings; it is asked when the router is entered.
        `agent_of` is the agent of an address, `channel_around` the address of the channel around
        a thread, empty for none. No answer has more than `output_tokens_max` tokens."""
        self._configure = configure
        self._stored = chosen
        self._open_client = open_client
        self._finder = finder
        self._clock = clock
        self.output_tokens_max = output_tokens_max
        self._agent_of = agent_of
        self._channel_around = channel_around
        self._chance = random.Random(secrets.randbits(64))
        self._found: dict[str, NamedModel | SettingsWrong] = {}
        self._chosen: dict[str, str] = {}
        self._opening = asyncio.Lock()
        self._clients: OrderedDict[str, _Open] = OrderedDict()

    async def __aenter__(self) -> Self:
        self._models = await self._configure()
        self._by_name = {one.name: one for one in self._models.all()}
        self._chosen = dict(await self._stored.load())
        return self

    async def __aexit__(self, *raised: object) -> None:
        async with AsyncExitStack() as stack:
            for client in self._clients.values():
                stack.push_async_callback(client.stack.aclose)
            self._clients.clear()

    async def open(self) -> None:
        """The clients of the configured models. Raises SettingsWrong where one cannot be."""
        for one in self._models.all():
            await self._client(one)

    # --- for turns -----------------------------------------------------------------------------

    async def at(self, lane: str, *, agent: str = "") -> InUse:
        """Return which one answers at an address; for this agent, where it is not that of the
        address."""
        standing = await self.standing(lane, agent=agent)
        return InUse(name=standing.answering.name, traits=standing.answering.choice.traits)

    async def named(self, name: str, *, agent: str = "") -> Model:
        """That one, with what stands in for it with this agent; the usual one where the name is of
        none."""
        usual = self._models.of(agent)
        found = await self._find(name) if name else usual.main
        if isinstance(found, SettingsWrong):
            log.warning("model.gone", model=name, why=str(found))
            found = usual.main
        links = (found, *self.stand_ins(found, usual))
        return _RoutedModel(self, links, clock=self._clock, chance=self._chance)

    def untold(self) -> Sequence[str]:
        """Return what the owner has to hear of keys and accounts, a sentence each; told once."""
        told = []
        for client in self._clients.values():
            breaker, name = client.health.breaker, client.health.model.name
            if breaker.take_mended():
                told.append(f"The model `{name}` works again.")
            if refusal := breaker.take_refusal():
                told.append(f"The model `{name}` is not used for now: {refusal}")
        return told

    @asynccontextmanager
    async def using(self, links: Sequence[NamedModel]) -> AsyncIterator[Sequence[ModelHealth]]:
        """Clients of these models, which stay open inside."""
        clients: list[_Open] = []
        try:
            for link in links:
                client = await self._client(link)
                client.uses += 1
                clients.append(client)
            yield [client.health for client in clients]
        finally:
            for client in clients:
                client.uses -= 1

    async def price(self, model: str) -> Price | None:
        """Return what a model that answered, or answers here, costs; None: the table does not know
        it."""
        known = [*self._models.all(), *self._found.values()]
        for one in known:
            if isinstance(one, NamedModel) and one.choice.model == model:
                return await self._finder.price(one)
        return await self._finder.prices.find(model) if model else None

    async def price_at(self, lane: str) -> Price | None:
        """Return what the model at an address costs."""
        return await self._finder.price((await self.standing(lane)).answering)

    async def dollars(self, lane: str, usage: Usage) -> float | None:
        """Return what a call at an address costs; None where the price is not known."""
        price = await self.price_at(lane)
        return None if price is None else price.cost(usage)

    # --- for commands --------------------------------------------------------------------------

    @property
    def models(self) -> ConfiguredModels:
        """Those of the settings."""
        return self._models

    def usual(self, lane: str) -> AgentModels:
        """Return what answers at an address where nothing else was chosen."""
        return self._models.of(self._agent_of(lane))

    async def standing(self, lane: str, *, agent: str = "") -> ModelStanding:
        """Who answers at an address, and who stands in. What was set for a channel holds for its
        threads that have none of their own."""
        usual = self._models.of(agent) if agent else self.usual(lane)
        own = self._chosen.get(lane, "")
        chosen = own or self._chosen.get(self._channel_around(lane), "")
        found = await self._find(chosen) if chosen else usual.main
        trouble = ""
        if isinstance(found, SettingsWrong):
            found, trouble = usual.main, str(found)
        return ModelStanding(
            answering=found,
            stand_ins=self.stand_ins(found, usual),
            chosen=chosen,
            trouble=trouble,
            of_channel=bool(chosen) and not own,
        )

    def stand_ins(self, one: NamedModel, usual: AgentModels) -> tuple[NamedModel, ...]:
        """Return what is asked while a model cannot answer.

        Of the usual one: the fallbacks. Of another one: the usual one and the fallbacks, where
        there are any; and nothing that leaves this machine where it was chosen to stay here.
        """
        main, fallbacks = usual.main, usual.fallbacks
        if one.name == main.name:
            return tuple(other for other in fallbacks if other.name != one.name)
        if not fallbacks:
            return ()
        others = {other.name: other for other in (main, *fallbacks) if other.name != one.name}
        return tuple(other for other in others.values() if other.is_local or not one.is_local)

    async def choose(self, lane: str, typed: str, *, any_name: bool, by: PersonId) -> NamedModel:
        """Sets the model of an address. Without `any_name` only configured ones may be had.

        Raises SettingsWrong for a name that cannot work, NotOffered, StorageError.
        """
        found = match(typed, self._models.all())
        if found is None:
            if not any_name:
                raise NotOffered("That model is not among those that can be chosen here.")
            found = await self._finder.usable(typed)
        if (
            found.name == self.usual(lane).main.name
            and self._channel_around(lane) not in self._chosen
        ):
            await self.reset(lane)
            return found
        await self._client(found)
        await self._stored.put(lane, found.name, by=by)
        self._chosen[lane] = found.name
        self._remember(found.name, found)
        return found

    async def reset(self, lane: str) -> None:
        """Back to the usual one. Raises StorageError."""
        await self._stored.remove(lane)
        self._chosen.pop(lane, None)

    async def resting(self) -> Sequence[RestingModel]:
        """The models that are left alone now, and why."""
        now = self._clock.monotonic()
        states = (client.health.resting(now) for client in self._clients.values())
        return [state for state in states if state is not None]

    def open_names(self) -> tuple[str, ...]:
        """The models whose clients are open."""
        return tuple(self._clients)

    # --- names ---------------------------------------------------------------------------------

    async def _find(self, name: str) -> NamedModel | SettingsWrong:
        known = self._by_name.get(name) or self._found.get(name)
        if known is not None:
            return known
        try:
            found: NamedModel | SettingsWrong = await self._finder.find(name)
        except SettingsWrong as error:
            found = error
        self._remember(name, found)
        return found

    def _remember(self, name: str, found: NamedModel | SettingsWrong) -> None:
        if len(self._found) >= NAMES_MAX:
            self._found.clear()
        self._found[name] = found

    # --- clients -------------------------------------------------------------------------------

    async def _client(self, one: NamedModel) -> _Open:
        """Raises SettingsWrong where its address or key cannot be one."""
        async with self._opening:
            known = self._clients.get(one.name)
            if known is not None:
                self._clients.move_to_end(one.name)
                return known
            stack = AsyncExitStack()
            model = await stack.enter_async_context(self._open_client(one.choice))
            opened = self._clients[one.name] = _Open(health=ModelHealth(model=model), stack=stack)
            # Of further ones the longest unused goes, unless it is at work.
            further = [name for name in self._clients if name not in self._by_name]
            idle = [n for n in further if self._clients[n].uses == 0 and n != one.name]
            if len(further) > FURTHER_MAX and idle:
                await self._clients.pop(idle[0]).stack.aclose()
            return opened


class NotOffered(Permanent):
    """A model that only the owner may choose."""


class _RoutedModel(ModelChain):
    """Models of the router as one: their clients are looked up at each call, for others may have
    taken their place meanwhile."""

    def __init__(
        self, router: Router, links: Sequence[NamedModel], *, clock: Clock, chance: random.Random
    ) -> None:
        super().__init__((), clock=clock, chance=chance)
        self._router = router
        self._links = links

    @property
    def name(self) -> str:
        return self._links[0].choice.model

    @property
    def traits(self) -> ModelTraits:
        return self._links[0].choice.traits

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[None]:
        async with self._router.using(self._links) as states:
            self._states = [*states]
            yield
