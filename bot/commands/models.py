"""What `/model` says and does: which model answers in a chat, why, and how to have another one.

It calls no model. Built by `bot.app`, called by `bot.commands.table` and `bot.commands.status`.
"""

from __future__ import annotations

from agent.models.health import RestingModel
from agent.models.names import NamedModel, match
from agent.models.router import ModelStanding, NotOffered, Router
from bot.channels.base import is_root
from memory.records.errors import SettingsWrong
from memory.records.messages import IncomingMessage, Role
from memory.records.rows import Person

DEFAULT = "default"
"""What is typed in place of a name to have the usual model again."""

IN_THREADS = "So it does in the threads of this channel that have no model of their own."
SEVERAL_WORDS = (
    "Nothing was changed: a model's name has no spaces, such as `openai/gpt-4.1-mini`. `/model` "
    "alone shows which one answers, and which there are."
)


class ModelCommand:
    """`/model`. What it sets is kept for the chat (topic,
    thread): it stays after /new and after a restart, and a turn that runs keeps the model it began
    with."""

    def __init__(self, router: Router) -> None:
        self._router = router

    async def tell(self, message: IncomingMessage, person: Person, wish: str) -> str:
        """Without a wish, how things stand; else it is done, or refused with the reason."""
        if not wish:
            return await self._shown(message, person)
        if not _may_choose(message, person):
            who = "the owner" if message.is_group else "the owner or a member"
            return f"Only {who} can choose the model here. `/model` alone shows which one answers."
        lane = message.address.key
        if wish.casefold() == DEFAULT:
            await self._router.reset(lane)
            standing = await self._router.standing(lane)
            if standing.of_channel:
                name = standing.answering.name
                return f"From the next message on, `{name}` answers here: that of the channel."
            usual = standing.answering.name
            return f"From the next message on, `{usual}` answers here: the usual one."
        # The path of a model's file may hold spaces.
        is_path = wish.casefold().startswith("embedded:")
        if " " in wish and not is_path and match(wish, self._router.models.all()) is None:
            return SEVERAL_WORDS
        try:
            found = await self._router.choose(
                lane, wish, any_name=person.role is Role.OWNER, by=person.id
            )
        except NotOffered:
            return f"That model cannot be chosen here. {_offered(self._router.models.all())}"
        except SettingsWrong as error:
            return f"Nothing was changed, for that model cannot be used. {error}"
        done = self._done(found, lane)
        return f"{done} {IN_THREADS}" if is_root(message) else done

    async def here(self, lane: str) -> list[str]:
        """For /status: who answers in this chat, where it is another one than elsewhere."""
        standing = await self._router.standing(lane)
        if not standing.chosen and standing.answering.name == self._router.models.main.name:
            return []
        return [f"Model in this chat: {standing.answering.name} ({_reason(standing)})"]

    async def resting(self) -> list[str]:
        """For /status: who is left alone, and why."""
        return [f"Model left alone: {_rest(state)}" for state in await self._router.resting()]

    def _done(self, found: NamedModel, lane: str) -> str:
        lines = [f"From the next message on, `{found.name}` answers here."]
        usual = self._router.usual(lane)
        stand_ins = self._router.stand_ins(found, usual)
        if found.name == usual.main.name:
            lines = [f"{lines[0][:-1]}: the usual one."]
        elif found.is_local and not stand_ins:
            lines.append("It runs on this machine, and nothing outside of it stands in for it.")
        if found.choice.traits.demo:
            lines.append("It is the small demo model: it makes small talk and cannot use tools.")
        return " ".join(lines)

    async def _shown(self, message: IncomingMessage, person: Person) -> str:
        standing = await self._router.standing(message.address.key)
        for_owner = person.role is Role.OWNER and not message.is_group
        paragraphs = [f"`{standing.answering.name}` answers here: {_reason(standing)}."]
        if for_owner:
            paragraphs[0] += f" {standing.answering.choice.why}" if not standing.chosen else ""
        if standing.stand_ins:
            names = ", then ".join(f"`{one.name}`" for one in standing.stand_ins)
            paragraphs.append(f"While it cannot answer, {names} does.")
        else:
            paragraphs.append("Nothing stands in for it while it cannot answer.")
        resting = await self._router.resting()
        if resting:
            told = (_rest(state) if for_owner else state.name for state in resting)
            paragraphs.append("\n".join(["Left alone now:", *(f"- {line}" for line in told)]))
        if _may_choose(message, person):
            paragraphs.append(self._how(person))
        return "\n\n".join(paragraphs)

    def _how(self, person: Person) -> str:
        how = "`/model NAME` has another one answer in this chat, `/model default` the usual one."
        offered = _offered(self._router.models.all())
        more = " Any other name will do, such as `openai/gpt-4.1-mini`."
        return f"{how} {offered}{more if person.role is Role.OWNER else ''}"


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
