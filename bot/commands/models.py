"""What `/model` says and does: which model answers in a chat, why, and how to have another one.

It calls no model. Built by `bot.app`, called by `bot.commands.table` and `bot.commands.status`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from agent.models.catalog import FOREIGN, LOCAL, PROVIDERS, PriceTable
from agent.models.choose import Probe, models_at
from agent.models.fallback import Resting
from bot.channels.base import is_root
from bot.commands.model_names import Configured, Named, NameFinder, configured, match
from bot.commands.model_pool import ModelPool, NotOffered, Standing
from bot.rpc import Emit, Operation
from bot.settings.schema.settings import Settings
from memory.records.errors import SettingsWrong
from memory.records.messages import IncomingMessage, Role
from memory.records.rows import Person
from memory.records.text import clean

DEFAULT = "default"
"""What is typed in place of a name to have the usual model again."""

IN_THREADS = "So it does in the threads of this channel that have no model of their own."
SEVERAL_WORDS = (
    "Nothing was changed: a model's name has no spaces, such as `openai/gpt-4.1-mini`. `/model` "
    "alone shows which one answers, and which there are."
)


class ModelDesk:
    """Implements `bot.commands.services.TellsModels`. What it sets is kept for the chat (topic,
    thread): it stays after /new and after a restart, and a turn that runs keeps the model it began
    with."""

    def __init__(self, pool: ModelPool) -> None:
        self._pool = pool

    async def tell(self, message: IncomingMessage, person: Person, wish: str) -> str:
        """Without a wish, how things stand; else it is done, or refused with the reason."""
        if not wish:
            return await self._shown(message, person)
        if not _may_choose(message, person):
            who = "the owner" if message.is_group else "the owner or a member"
            return f"Only {who} can choose the model here. `/model` alone shows which one answers."
        lane = message.address.key
        if wish.casefold() == DEFAULT:
            await self._pool.reset(lane)
            standing = await self._pool.standing(lane)
            if standing.of_channel:
                name = standing.answering.name
                return f"From the next message on, `{name}` answers here: that of the channel."
            usual = standing.answering.name
            return f"From the next message on, `{usual}` answers here: the usual one."
        if _is_several(wish) and match(wish, self._pool.models.all()) is None:
            return SEVERAL_WORDS
        try:
            found = await self._pool.choose(
                lane, wish, any_name=person.role is Role.OWNER, by=person.id
            )
        except NotOffered:
            return f"That model cannot be chosen here. {_offered(self._pool.models.all())}"
        except SettingsWrong as error:
            return f"Nothing was changed, for that model cannot be used. {error}"
        done = self._done(found, lane)
        return f"{done} {IN_THREADS}" if is_root(message) else done

    async def here(self, lane: str) -> list[str]:
        """For /status: who answers in this chat, where it is another one than elsewhere."""
        standing = await self._pool.standing(lane)
        if not standing.chosen and standing.answering.name == self._pool.models.main.name:
            return []
        return [f"Model in this chat: {standing.answering.name} ({_reason(standing)})"]

    def resting(self) -> list[str]:
        """For /status: who is left alone, and why."""
        return [f"Model left alone: {_rest(state)}" for state in self._pool.resting()]

    def _done(self, found: Named, lane: str) -> str:
        lines = [f"From the next message on, `{found.name}` answers here."]
        usual = self._pool.usual(lane)
        stand_ins = self._pool.stand_ins(found, usual)
        if found.name == usual.main.name:
            lines = [f"{lines[0][:-1]}: the usual one."]
        elif found.is_local and not stand_ins:
            lines.append("It runs on this machine, and nothing outside of it stands in for it.")
        if found.choice.traits.demo:
            lines.append("It is the small demo model: it makes small talk and cannot use tools.")
        return " ".join(lines)

    async def _shown(self, message: IncomingMessage, person: Person) -> str:
        standing = await self._pool.standing(message.address.key)
        for_owner = person.role is Role.OWNER and not message.is_group
        paragraphs = [f"`{standing.answering.name}` answers here: {_reason(standing)}."]
        if for_owner:
            paragraphs[0] += f" {standing.answering.choice.why}" if not standing.chosen else ""
        if standing.stand_ins:
            names = ", then ".join(f"`{one.name}`" for one in standing.stand_ins)
            paragraphs.append(f"While it cannot answer, {names} does.")
        else:
            paragraphs.append("Nothing stands in for it while it cannot answer.")
        resting = self._pool.resting()
        if resting:
            told = (_rest(state) if for_owner else state.name for state in resting)
            paragraphs.append("\n".join(["Left alone now:", *(f"- {line}" for line in told)]))
        if _may_choose(message, person):
            paragraphs.append(self._how(person))
        return "\n\n".join(paragraphs)

    def _how(self, person: Person) -> str:
        how = "`/model NAME` has another one answer in this chat, `/model default` the usual one."
        offered = _offered(self._pool.models.all())
        more = " Any other name will do, such as `openai/gpt-4.1-mini`."
        return f"{how} {offered}{more if person.role is Role.OWNER else ''}"


def _may_choose(message: IncomingMessage, person: Person) -> bool:
    """In a group it is everybody's model: the owner decides."""
    if message.is_group:
        return person.role is Role.OWNER
    return person.role is not Role.GUEST


def _is_several(wish: str) -> bool:
    """Whether it is a few words; the path of a model's file may hold spaces."""
    return " " in wish and not wish.casefold().startswith("embedded:")


def _offered(models: tuple[Named, ...]) -> str:
    return f"There {'are' if len(models) > 1 else 'is'} {', '.join(f'`{m.name}`' for m in models)}."


def _reason(standing: Standing) -> str:
    if standing.trouble:
        return f"{standing.chosen} was set by `/model`, and cannot be used now: {standing.trouble}"
    if standing.of_channel:
        return "set by `/model` for the channel and its threads"
    return "set by `/model`" if standing.chosen else "the usual one"


def _rest(state: Resting) -> str:
    minutes = max(1, round(state.seconds / 60))
    left = f"{minutes} min" if minutes < 120 else f"{round(minutes / 60)} h"
    return f"{state.name}, for another {left}: {state.why}"


# --- model list ---------------------------------------------------------------------------------
#
# Which models there are: those of the settings, those that this machine has, those of providers
# whose key is set. For `hearthbot model list`; nobody is asked anything but local servers.

PROBE_S = 2.0
LOCAL_SHOWN_MAX = 8
"""Of one local server, unless all are asked for."""

Json = dict[str, Any]


async def listing(
    settings: Settings, env: Mapping[str, str], *, whole: bool, probe: Probe = models_at
) -> Json:
    """The keys of `model list --json`:

    - answering: the name of the usual model; why: a sentence
    - models: name, use (answers, stands in, cheap, local, key), client (direct, litellm,
      embedded), window and answer_tokens_max in tokens (0: not known), dollars_in and dollars_out
      for a million tokens (null: not known), about
    - providers: name, title, variables (for its key; empty where it needs none), set (whether one
      of them is); those that are not set with --all alone
    - more: how many models of local servers were left out

    Raises SettingsWrong where the settings name a model that cannot be.
    """
    found, local = await asyncio.gather(configured(settings, env), _local(probe))
    finder = NameFinder(settings, env)
    rows = [await _row(one, use, finder.prices) for one, use in _uses(found)]
    known = {row["name"] for row in rows}
    more = 0
    for server, names in local.items():
        shown = names if whole else names[:LOCAL_SHOWN_MAX]
        more += len(names) - len(shown)
        for name in shown:
            one = await finder.find(f"{server}/{name}")
            rows.append(await _row(one, "local", finder.prices))
    providers = [one for one in _providers(env) if whole or one["set"]]
    for provider in providers:
        if provider["set"] and provider["variables"] and provider["model"]:
            one = await finder.find(f"{provider['name']}/{provider['model']}")
            rows.append(await _row(one, "key", finder.prices))
    return {
        "answering": found.main.name,
        "why": found.main.choice.why,
        "models": [row for row in rows if row["use"] not in ("local", "key")]
        + [row for row in rows if row["use"] in ("local", "key") and row["name"] not in known],
        "providers": providers,
        "more": more,
    }


def model_operations(pool: ModelPool) -> Mapping[str, Operation]:
    """`models` {}: the models that the running bot leaves alone now, with seconds and reason."""

    async def models(request: Json, emit: Emit) -> Json:
        return {
            "resting": [
                {"model": state.name, "seconds": round(state.seconds), "why": state.why}
                for state in pool.resting()
            ]
        }

    return {"models": models}


def _uses(found: Configured) -> Sequence[tuple[Named, str]]:
    uses = [(found.main, "answers"), *((one, "stands in") for one in found.fallbacks)]
    if found.cheap is not None:
        uses.append((found.cheap, "cheap"))
    return uses


async def _row(one: Named, use: str, prices: PriceTable) -> Json:
    choice = one.choice
    price = await prices.find(choice.priced_as) if choice.priced_as else None
    rates = price.rates if price else None
    return {
        "name": clean(one.name),
        "use": use,
        "client": choice.kind,
        "model": clean(choice.model),
        "window": choice.traits.window,
        "answer_tokens_max": choice.output_tokens_max,
        "dollars_in": _a_million(rates.input if rates else None),
        "dollars_out": _a_million(rates.output if rates else None),
        "about": "demo: small talk, no tools" if choice.traits.demo else "",
    }


def _a_million(rate: float | None) -> float | None:
    return None if rate is None else round(rate * 1e6, 6)


async def _local(probe: Probe) -> dict[str, Sequence[str]]:
    """The models of each local server that answers."""

    async def names(server: str) -> Sequence[str]:
        try:
            async with asyncio.timeout(PROBE_S):
                listed = await probe(PROVIDERS[server].api_base)
        except TimeoutError:
            return ()
        return [name for name in listed if name.isprintable() and "embed" not in name.lower()]

    found = await asyncio.gather(*(names(server) for server in LOCAL))
    return {server: listed for server, listed in zip(LOCAL, found, strict=True) if listed}


def _providers(env: Mapping[str, str]) -> list[Json]:
    """All that a name may begin with; local servers are shown by their models."""
    rows: list[tuple[str, str, tuple[str, ...], str]] = [
        (key, one.title, (one.key,) if one.key else (), one.model)
        for key, one in PROVIDERS.items()
        if key not in LOCAL
    ]
    rows += [(key, one.title, one.keys, one.model) for key, one in FOREIGN.items()]
    return [
        {
            "name": key,
            "title": title,
            "variables": list(variables),
            "set": any(env.get(variable) for variable in variables),
            "model": model,
        }
        for key, title, variables, model in rows
    ]
