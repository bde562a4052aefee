"""The models in use: which one answers where, what stands in for it, and the clients themselves.

Built by `bot.app`; turns ask it through `memory.records.ports.Models`, commands by the other
methods. The clients of configured models live as long as the pool; further ones are opened when
they are asked for the first time, and the least used one goes when there are too many.
"""

from __future__ import annotations

import asyncio
import random
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

import structlog

from agent.models.choose import Choice
from agent.models.fallback import Fallback, Health, Resting
from agent.models.retry import Patient, TextSink
from agent.turn.agents import Bindings
from bot.channels.base import around
from bot.commands.model_names import Configured, Named, NameFinder, Usual, match
from bot.commands.prompts import Answering
from memory.records.errors import Permanent, SettingsWrong
from memory.records.messages import PersonId
from memory.records.ports import Clock, InUse, Model
from memory.records.request import ModelRequest, ModelTraits
from memory.records.transcript import Answered

log = structlog.get_logger()

FURTHER_MAX = 3
"""Clients of models that are in no setting, open at the same time."""

NAMES_MAX = 200
"""Names that were looked up and are remembered, with what came of it."""


class ChosenModels(Protocol):
    """Which model was chosen for a chat; `memory.stores.switches` is one. Raises StorageError."""

    async def load(self) -> Mapping[str, str]:
        """The name of the model by address."""

    async def put(self, lane: str, model: str, *, by: PersonId) -> None:
        """Stores or replaces the choice of an address."""

    async def remove(self, lane: str) -> None:
        """Back to the usual one."""


OpenClient = Callable[[Choice], AbstractAsyncContextManager[Model]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Which model answers at an address, and why.

    `chosen` is the name that was set there, empty for the usual one; `trouble` says why that one
    cannot be used now, so that the usual one answers. `stand_ins` are asked next, in order.
    """

    answering: Named
    stand_ins: tuple[Named, ...]
    chosen: str = ""
    trouble: str = ""
    of_channel: bool = False
    """Whether it was set for the channel around this thread, and not here."""


@dataclass(slots=True, kw_only=True)
class _Open:
    """A client and how it is doing. `uses` counts the calls under way."""

    health: Health
    stack: AsyncExitStack
    uses: int = 0


class ModelPool:
    """Implements `memory.records.ports.Models`. An async context manager."""

    def __init__(
        self,
        configure: Callable[[], Awaitable[Configured]],
        chosen: ChosenModels,
        open_client: OpenClient,
        *,
        finder: NameFinder,
        clock: Clock,
        output_tokens_max: int,
        bindings: Bindings | None = None,
    ) -> None:
        """`configure` finds the models of the settings; it is asked when the pool is entered."""
        self._configure = configure
        self._stored = chosen
        self._open_client = open_client
        self._finder = finder
        self._clock = clock
        self._output_tokens_max = output_tokens_max
        self._bindings = bindings or Bindings()
        self._chance = random.Random(secrets.randbits(64))
        self._found: dict[str, Named | SettingsWrong] = {}
        self._chosen: dict[str, str] = {}
        self._opening = asyncio.Lock()
        self._clients: OrderedDict[str, _Open] = OrderedDict()
        self._chains: dict[tuple[str, ...], Fallback | Patient] = {}

    async def __aenter__(self) -> Self:
        self._models = await self._configure()
        self._by_name = {one.name: one for one in self._models.all()}
        self._chosen = dict(await self._stored.load())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
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
        """Which one answers at an address; for this agent, where it is not that of the address."""
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
        return _Asked(self, found, self.stand_ins(found, usual))

    def untold(self) -> Sequence[str]:
        """What the owner has to hear of keys and accounts, a sentence each; told once."""
        told = []
        for client in self._clients.values():
            breaker, name = client.health.breaker, client.health.model.name
            if breaker.take_mended():
                told.append(f"The model `{name}` works again.")
            if refusal := breaker.take_refusal():
                told.append(f"The model `{name}` is not used for now: {refusal}")
        return told

    async def answer(
        self,
        links: Sequence[Named],
        request: ModelRequest,
        *,
        on_text: Callable[[str], None] | TextSink,
    ) -> Answered:
        """Asks the first model, and the further ones where it is in trouble."""
        clients: list[_Open] = []
        try:
            for link in links:
                client = await self._client(link)
                client.uses += 1
                clients.append(client)
            chain = self._chain(tuple(link.name for link in links), clients)
            return await chain.answer(request, on_text=on_text)
        finally:
            for client in clients:
                client.uses -= 1

    async def answering(self, lane: str) -> Answering:
        """The same, for whoever shows a prompt and what it costs."""
        choice = (await self.standing(lane)).answering.choice
        return Answering(
            model=choice.model,
            priced_as=choice.priced_as,
            answer_tokens_max=choice.traits.output_tokens(self._output_tokens_max),
        )

    def priced_as(self, model: str) -> str:
        """The name in the price table of a model that answered."""
        known = [*self._models.all(), *self._found.values()]
        for one in known:
            if isinstance(one, Named) and one.choice.model == model:
                return one.choice.priced_as
        return model

    # --- for commands --------------------------------------------------------------------------

    @property
    def models(self) -> Configured:
        """Those of the settings."""
        return self._models

    def usual(self, lane: str) -> Usual:
        """What answers at an address where nothing else was chosen."""
        return self._models.of(self._bindings.agent_of(lane))

    async def standing(self, lane: str, *, agent: str = "") -> Standing:
        """Who answers at an address, and who stands in. What was set for a channel holds for its
        threads that have none of their own."""
        usual = self._models.of(agent) if agent else self.usual(lane)
        own = self._chosen.get(lane, "")
        chosen = own or self._chosen.get(around(lane), "")
        found = await self._find(chosen) if chosen else usual.main
        trouble = ""
        if isinstance(found, SettingsWrong):
            found, trouble = usual.main, str(found)
        return Standing(
            answering=found,
            stand_ins=self.stand_ins(found, usual),
            chosen=chosen,
            trouble=trouble,
            of_channel=bool(chosen) and not own,
        )

    def stand_ins(self, one: Named, usual: Usual) -> tuple[Named, ...]:
        """What is asked while a model cannot answer.

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

    async def choose(self, lane: str, typed: str, *, any_name: bool, by: PersonId) -> Named:
        """Sets the model of an address. Without `any_name` only configured ones may be had.

        Raises SettingsWrong for a name that cannot work, NotOffered, StorageError.
        """
        found = match(typed, self._models.all())
        if found is None:
            if not any_name:
                raise NotOffered("That model is not among those that can be chosen here.")
            found = await self._finder.usable(typed)
        if found.name == self.usual(lane).main.name and around(lane) not in self._chosen:
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

    def resting(self) -> Sequence[Resting]:
        """The models that are left alone now, and why."""
        now = self._clock.monotonic()
        states = (client.health.resting(now) for client in self._clients.values())
        return [state for state in states if state is not None]

    def open_names(self) -> tuple[str, ...]:
        """The models whose clients are open."""
        return tuple(self._clients)

    # --- names ---------------------------------------------------------------------------------

    async def _find(self, name: str) -> Named | SettingsWrong:
        known = self._by_name.get(name) or self._found.get(name)
        if known is not None:
            return known
        try:
            found: Named | SettingsWrong = await self._finder.find(name)
        except SettingsWrong as error:
            found = error
        self._remember(name, found)
        return found

    def _remember(self, name: str, found: Named | SettingsWrong) -> None:
        if len(self._found) >= NAMES_MAX:
            self._found.clear()
        self._found[name] = found

    # --- clients -------------------------------------------------------------------------------

    async def _client(self, one: Named) -> _Open:
        """Raises SettingsWrong where its address or key cannot be one."""
        async with self._opening:
            known = self._clients.get(one.name)
            if known is not None:
                self._clients.move_to_end(one.name)
                return known
            stack = AsyncExitStack()
            model = await stack.enter_async_context(self._open_client(one.choice))
            opened = self._clients[one.name] = _Open(health=Health(model=model), stack=stack)
            await self._close_one_too_many(keep=opened)
            return opened

    async def _close_one_too_many(self, *, keep: _Open) -> None:
        """The longest unused of the further ones, unless it is at work."""
        further = [name for name in self._clients if name not in self._by_name]
        if len(further) <= FURTHER_MAX:
            return
        for name in further:
            client = self._clients[name]
            if client.uses == 0 and client is not keep:
                del self._clients[name]
                for links in [links for links in self._chains if name in links]:
                    del self._chains[links]
                await client.stack.aclose()
                return

    def _chain(self, links: tuple[str, ...], clients: Sequence[_Open]) -> Fallback | Patient:
        known = self._chains.get(links)
        if known is not None:
            return known
        states = [client.health for client in clients]
        if len(states) == 1:
            chain: Fallback | Patient = Patient(
                states[0].model,
                clock=self._clock,
                chance=self._chance,
                breaker=states[0].breaker,
            )
        else:
            chain = Fallback(states, clock=self._clock, chance=self._chance)
        self._chains[links] = chain
        return chain


class NotOffered(Permanent):
    """A model that only the owner may choose."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A model of the pool as a `Model`: its client is looked up at each call, for another one may
    have taken its place meanwhile."""

    _pool: ModelPool
    _one: Named
    _stand_ins: tuple[Named, ...]

    @property
    def name(self) -> str:
        return self._one.choice.model

    @property
    def traits(self) -> ModelTraits:
        return self._one.choice.traits

    async def answer(
        self, request: ModelRequest, *, on_text: Callable[[str], None] | TextSink
    ) -> Answered:
        return await self._pool.answer((self._one, *self._stand_ins), request, on_text=on_text)
