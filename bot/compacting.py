"""What `/compact` and `/restore` say and do: what of a conversation is sent, what is summed up, and
what is in the archive alone. Built by `bot.app`, called by `bot.commands`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from agent.history import sent_size, since_compaction
from agent.messages import IncomingMessage, Role
from agent.ports import Conversations
from agent.remembering import Compaction, CompactionWanted, Compactor
from agent.sessions import Compactions
from agent.spending import Scope, zone_for
from agent.transcript import Said
from bot.ports import Person

BUSY = (
    "Something is being answered here, so I changed nothing. Say it again once that is done; "
    "`/stop` ends it."
)
NOTHING_TO_RESTORE = "Nothing was summed up here that I could take back."


class CompactingDesk:
    """Answers /compact and /restore."""

    def __init__(
        self,
        compactor: Compactor,
        compactions: Compactions,
        conversations: Conversations,
        *,
        busy: Callable[[str], bool],
        host_zone: str,
    ) -> None:
        """`busy` says whether a turn runs or waits in a lane."""
        self._compactor = compactor
        self._compactions = compactions
        self._conversations = conversations
        self._busy = busy
        self._host_zone = ZoneInfo(host_zone)

    async def compact(self, message: IncomingMessage, person: Person) -> str:
        """Sums up now what is older than the last exchanges, whatever its size."""
        lane = message.address.key
        conversation = await self._conversations.current(lane)
        made = await self._compactor.compact(
            CompactionWanted(
                conversation=conversation,
                lane=lane,
                person_id=person.id,
                is_owner=person.role is Role.OWNER,
                time_zone=person.time_zone,
                forced=True,
            )
        )
        history, _ = since_compaction(await self._conversations.history(conversation))
        messages, tokens = sent_size(history.entries, history.shortened_to)
        exchanges = sum(isinstance(one.entry, Said) for one in history.entries)
        aside = await self._compactions.aside(conversation)
        kept = (
            _counted(exchanges, "exchange") + f" ({messages} messages, about {tokens:,} tokens)"
            if messages
            else "nothing"
        )
        aim = "gain by summing up" if messages else "sum up"
        parts = [
            f"There is nothing to {aim} here yet. What I send along: {kept}."
            if made is None
            else _summed(made, kept)
        ]
        if aside.messages:
            zone = zone_for(Scope.PERSON, person.time_zone, self._host_zone)
            first, last = (
                datetime.fromtimestamp(ms / 1000, UTC).astimezone(zone)
                for ms in (aside.first_ms, aside.last_ms)
            )
            parts.append(
                f"In the archive alone: {_counted(aside.messages, 'message')}, from "
                f"{first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M}. Nothing of it is lost: ask me "
                "about it, and I look it up."
            )
        if made is not None:
            parts.append("`/restore` takes this back.")
        return "\n\n".join(parts)

    async def restore(self, message: IncomingMessage, person: Person) -> str:
        """Takes the last summing-up back."""
        lane = message.address.key
        if self._busy(lane):
            return BUSY
        conversation = await self._conversations.current(lane)
        undone = await self._compactions.undo(conversation)
        if undone is None:
            return NOTHING_TO_RESTORE
        history, _ = since_compaction(await self._conversations.history(conversation))
        messages, tokens = sent_size(history.entries, history.shortened_to)
        before = "the summary before it counts again, and " if history.compaction else ""
        return (
            f"Taken back: {before}from your next message on I send "
            f"{_counted(messages, 'message')} along word for word, about {tokens:,} tokens. They "
            "are summed up again once much more is said, or when they do not fit the model."
        )


def _summed(made: Compaction, kept: str) -> str:
    """What was done, and what is kept in mind."""
    match made.kind:
        case "truncate":
            why = f" ({made.reason})" if made.reason else ""
            how = f"A new topic had begun{why}, so I leave out what was before it."
        case "summarise":
            how = "I summed up what is older."
        case "digest":
            how = f"I listed what is older, without a model to sum it up: {made.reason}"
    saved = max(made.tokens_before - made.tokens_after, 0)
    lines = [
        f"{how} From your next message on that saves about {saved:,} of {made.tokens_before:,} "
        "tokens in each request.",
        f"Word for word I still send {kept}.",
    ]
    if made.summary:
        lines += ["What I keep in mind of the rest:", _quoted(made.summary)]
    return "\n\n".join(lines)


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" if line else ">" for line in text.splitlines())


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
