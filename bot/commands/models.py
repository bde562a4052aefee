"""What `/model` says and does: which model answers in a chat, why, and how to have another one.

It calls no model. What it sets is kept for the chat (topic, thread): it stays after /new and after
a restart, and a turn that runs keeps the model it began with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.models.health import RestingModel
from agent.models.router import ModelStanding, NotOffered, Router
from agent.models.service import NamedModel, match
from bot.channels.base import is_root
from memory.records.errors import SettingsWrong
from memory.records.messages import IncomingMessage, Role
from memory.records.rows import Person

if TYPE_CHECKING:
    from bot.commands.command import CommandCall, Tools

DEFAULT = "default"
"""What is typed in place of a name to have the usual model again."""

IN_THREADS = "So it does in the threads of this channel that have no model of their own."
SEVERAL_WORDS = (
    "Nothing was changed: a model's name has no spaces, such as `openai/gpt-4.1-mini`. `/model` "
    "alone shows which one answers, and which there are."
)


async def model(tools: Tools, asked: CommandCall) -> str:
    """Without a wish, say how things stand; else do it, or refuse it with the reason."""
    router, message, person, wish = tools.models, asked.message, asked.person, asked.rest
    if not wish:
        return await _standing_text(router, message, person)
    if not _may_choose(message, person):
        who = "the owner" if message.is_group else "the owner or a member"
        return f"Only {who} can choose the model here. `/model` alone shows which one answers."
    lane = message.address.key
    if wish.casefold() == DEFAULT:
        await router.reset(lane)
        # A thread without a model of its own has that of its channel again.
        standing = await router.standing(lane)
        which = "that of the channel" if standing.of_channel else "the usual one"
        return f"From the next message on, `{standing.answering.name}` answers here: {which}."
    # The path of a model's file may hold spaces.
    is_path = wish.casefold().startswith("embedded:")
    if " " in wish and not is_path and match(wish, router.models.all()) is None:
        return SEVERAL_WORDS
    try:
        found = await router.choose(lane, wish, any_name=person.role is Role.OWNER, by=person.id)
    except NotOffered:
        return f"That model cannot be chosen here. {_offered(router.models.all())}"
    except SettingsWrong as error:
        return f"Nothing was changed, for that model cannot be used. {error}"
    usual = router.usual(lane)
    done = f"From the next message on, `{found.name}` answers here."
    if found.name == usual.main.name:
        done = f"{done[:-1]}: the usual one."
    elif found.is_local and not router.stand_ins(found, usual):
        done += " It runs on this machine, and nothing outside of it stands in for it."
    if found.choice.traits.demo:
        done += " It is the small demo model: it makes small talk and cannot use tools."
    return f"{done} {IN_THREADS}" if is_root(message) else done


async def model_here(router: Router, lane: str) -> list[str]:
    """Return for /status who answers in this chat, where it is another one than elsewhere."""
    standing = await router.standing(lane)
    if not standing.chosen and standing.answering.name == router.models.main.name:
        return []
    return [f"Model in this chat: {standing.answering.name} ({_reason(standing)})"]


async def resting_lines(router: Router) -> list[str]:
    """Return for /status who is left alone, and why."""
    return [f"Model left alone: {_rest(state)}" for state in await router.resting()]


async def _standing_text(router: Router, message: IncomingMessage, person: Person) -> str:
    standing = await router.standing(message.address.key)
    for_owner = person.role is Role.OWNER and not message.is_group
    paragraphs = [f"`{standing.answering.name}` answers here: {_reason(standing)}."]
    if for_owner and not standing.chosen:
        paragraphs[0] += f" {standing.answering.choice.why}"
    if standing.stand_ins:
        names = ", then ".join(f"`{one.name}`" for one in standing.stand_ins)
        paragraphs.append(f"While it cannot answer, {names} does.")
    else:
        paragraphs.append("Nothing stands in for it while it cannot answer.")
    if resting := await router.resting():
        told = (_rest(state) if for_owner else state.name for state in resting)
        paragraphs.append("\n".join(["Left alone now:", *(f"- {line}" for line in told)]))
    if _may_choose(message, person):
        how = "`/model NAME` has another one answer in this chat, `/model default` the usual one."
        more = " Any other name will do, such as `openai/gpt-4.1-mini`."
        more = more if person.role is Role.OWNER else ""
        paragraphs.append(f"{how} {_offered(router.models.all())}{more}")
    return "\n\n".join(paragraphs)


def _may_choose(message: IncomingMessage, person: Person) -> bool:
    """In a group it is everybody's model: the owner decides."""
    if message.is_group:
        return person.role is Role.OWNER
    return person.role is not Role.GUEST


def _offered(models: tuple[NamedModel, ...]) -> str:
    return f"There {'are' if len(models) > 1 else 'is'} {', '.join(f'`{m.name}`' for m in models)}."


def _reason(standing: ModelStanding) -> str:
    if standing.trouble:
        return f"{standing.chosen} was set by `/model`, and cannot be used now: {standing.trouble}"
    if standing.of_channel:
        return "set by `/model` for the channel and its threads"
    return "set by `/model`" if standing.chosen else "the usual one"


def _rest(state: RestingModel) -> str:
    minutes = max(1, round(state.seconds / 60))
    left = f"{minutes} min" if minutes < 120 else f"{round(minutes / 60)} h"
    return f"{state.name}, for another {left}: {state.why}"
