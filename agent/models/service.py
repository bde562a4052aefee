"""Which models there are, what they cost, whether they answer, and the clients that ask them.

`configured` finds those of the settings at start; `find` takes what a person typed. Nobody is asked
anything but local servers, and the models that are tried, each once and without the patience that
the router has with one in trouble. A client's library is loaded only when a model of it is asked.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace

from agent.models.catalog import LOCAL, PROVIDERS, PriceTable
from agent.models.choose import Choice, Probe, beside, choose, models_at
from agent.models.client import CallLimits, is_here
from agent.models.embedded import weights
from memory.records.errors import AssistantError, ModelRefused, ModelTimeout, SettingsWrong
from memory.records.ports import Model
from memory.records.section import LlmSettings
from memory.records.text import clean
from memory.records.transcript import ModelRequest, Said, Usage
from memory.records.usage import Price

NAME_CHARS_MAX = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedModel:
    """A model and how to reach it. `name` finds it again, after a restart too."""

    name: str
    choice: Choice

    @property
    def is_local(self) -> bool:
        """Return whether what is said to it stays on this machine."""
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
        """Return what is usual with an agent."""
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
        """Return what a model costs; None where that is not known."""
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


# --- service --------------------------------------------------------------------------------------

PROBE_S = 2.0
LOCAL_SHOWN_MAX = 8
"""Of one local server, unless all are asked for."""

QUESTION = "Say hello in one short sentence."
SYSTEM = "You are a friendly assistant. Answer in one short sentence."
OUTPUT_TOKENS_MAX = 512
"""Room for models that think before they answer; the answer itself has a few."""

CONNECT_S = 10.0
SHOWN_CHARS_MAX = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedModel:
    """One model of a list. `use` is answers, stands in, cheap, local or key, `client` direct,
    litellm or embedded; `window` and `answer_tokens_max` are in tokens (0: not known), `dollars_in`
    and `dollars_out` those of a million tokens (None: not known)."""

    name: str
    use: str
    client: str
    model: str
    window: int
    answer_tokens_max: int
    dollars_in: float | None
    dollars_out: float | None
    about: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedProvider:
    """A provider that a model's name may begin with. `variables` are those for its key, of which
    one `set` will do; empty where it needs none. `model` is the one that answers unless another is
    named."""

    name: str
    title: str
    variables: tuple[str, ...]
    set: bool
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelList:
    """`answering` names the usual model, `why` says in a sentence why it answers; `more` is how
    many models of local servers were left out."""

    answering: str
    why: str
    models: tuple[ListedModel, ...]
    providers: tuple[ListedProvider, ...]
    more: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedModel:
    """The answer of a model to a short question. `error` is empty where it answered; times are
    seconds, `first_s` up to the first word (None: it said none); `dollars` None where the price
    is not known."""

    name: str
    text: str = ""
    error: str = ""
    first_s: float | None = None
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)
    dollars: float | None = None


async def ask_once(choice: Choice, *, limit_s: float) -> TriedModel:
    """Ask a model one short question, without patience. Raises AssistantError."""
    started = time.monotonic()
    first: list[float] = []

    def on_text(piece: str) -> None:
        if piece and not first:
            first.append(time.monotonic() - started)

    request = ModelRequest(
        system=SYSTEM,
        entries=(Said(text=QUESTION),),
        max_output_tokens=choice.traits.output_tokens(OUTPUT_TOKENS_MAX),
    )
    client = client_of(choice, timeout_s=limit_s, connect_timeout_s=min(CONNECT_S, limit_s))
    try:
        async with asyncio.timeout(limit_s), client as model:
            answered = await model.answer(request, on_text=on_text)
    except TimeoutError:
        raise ModelTimeout(f"The model did not answer within {limit_s:g} s.") from None
    text = " ".join(clean(answered.text).split())
    return TriedModel(
        name=choice.model,
        text=text if len(text) <= SHOWN_CHARS_MAX else f"{text[: SHOWN_CHARS_MAX - 1]}…",
        first_s=first[0] if first else None,
        seconds=time.monotonic() - started,
        usage=answered.usage,
    )


class ModelService:
    """Lists and tries models. It needs no running bot."""

    def __init__(
        self, finder: ModelFinder, configured: ConfiguredModels, *, probe: Probe = models_at
    ) -> None:
        self._finder = finder
        self._configured = configured
        self._probe = probe

    async def listing(self, *, whole: bool) -> ModelList:
        """Return the models in the order of their use. Without `whole`, only some models of a local
        server are listed, and only providers whose key is set."""
        local = await self._local()
        found = self._configured
        uses = [(found.main, "answers"), *((one, "stands in") for one in found.fallbacks)]
        if found.cheap is not None:
            uses.append((found.cheap, "cheap"))
        rows = [await self._row(one, use) for one, use in uses]
        known = {row.name for row in rows}
        further, more = [], 0
        for server, names in local.items():
            shown = names if whole else names[:LOCAL_SHOWN_MAX]
            more += len(names) - len(shown)
            further += [(f"{server}/{name}", "local") for name in shown]
        # Local servers are shown by their models.
        listed = [
            ListedProvider(
                name=key,
                title=one.title,
                variables=one.keys,
                set=bool(one.key_set(self._finder.env)),
                model=one.model,
            )
            for key, one in PROVIDERS.items()
            if key not in LOCAL
        ]
        providers = [one for one in listed if whole or one.set]
        further += [
            (f"{one.name}/{one.model}", "key")
            for one in providers
            if one.set and one.variables and one.model
        ]
        for name, use in further:
            row = await self._row(await self._finder.find(name), use)
            rows += [] if row.name in known else [row]
        return ModelList(
            answering=found.main.name,
            why=found.main.choice.why,
            models=tuple(rows),
            providers=tuple(providers),
            more=more,
        )

    async def named(self, name: str) -> Sequence[NamedModel]:
        """Return the model of a name, or all of the settings. Raises SettingsWrong."""
        return [await self._finder.usable(name)] if name.strip() else self._configured.all()

    async def try_one(self, one: NamedModel, *, limit_s: float) -> TriedModel:
        """Ask a model one short question. Raise nothing of ours: what went wrong is in `error`."""
        started = time.monotonic()
        try:
            trial = await ask_once(one.choice, limit_s=limit_s)
        except AssistantError as error:
            return TriedModel(name=one.name, error=str(error), seconds=time.monotonic() - started)
        price = await self._finder.price(one) if trial.usage != Usage() else None
        return replace(
            trial,
            name=one.name,
            error="" if trial.text else "It answered without a word.",
            dollars=price.cost(trial.usage) if price else None,
        )

    async def _row(self, one: NamedModel, use: str) -> ListedModel:
        choice, price = one.choice, await self._finder.price(one)
        rates = price.rates if price else None
        return ListedModel(
            name=clean(one.name),
            use=use,
            client=choice.kind,
            model=clean(choice.model),
            window=choice.traits.window,
            answer_tokens_max=choice.output_tokens_max,
            dollars_in=_a_million(rates.input if rates else None),
            dollars_out=_a_million(rates.output if rates else None),
            about="demo: small talk, no tools" if choice.traits.demo else "",
        )

    async def _local(self) -> Mapping[str, Sequence[str]]:
        """Return the models of each local server that answers."""

        async def names(server: str) -> Sequence[str]:
            try:
                async with asyncio.timeout(PROBE_S):
                    listed = await self._probe(PROVIDERS[server].api_base)
            except TimeoutError:
                return ()
            return [name for name in listed if name.isprintable() and "embed" not in name.lower()]

        found = await asyncio.gather(*(names(server) for server in LOCAL))
        return {server: listed for server, listed in zip(LOCAL, found, strict=True) if listed}


def _a_million(rate: float | None) -> float | None:
    return None if rate is None else round(rate * 1e6, 6)
