"""What a prompt is made of, for `hearthbot prompt show` and `/context`: looks, sends and stores
nothing.

Guests may ask for `/context` too: it is their own conversation, nothing is done and no model
called. But only sizes and names are told to them, as in a group.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from agent.budget.messages import money, percent
from agent.history.window import repair, shorten_before
from agent.models.router import Router
from agent.prompt.assemble import read_back
from agent.prompt.scene import PromptKind, PromptOccasion
from agent.prompt.templates import CHAT
from agent.tools.toolbox import Toolbox
from agent.trace.inspect import (
    Bill,
    PromptDiff,
    PromptView,
    bill,
    conversation_of,
    diff,
    former_of,
    newest_of,
    view_of_plan,
    view_of_trace,
)
from agent.trace.sent import StoredTexts, Where
from agent.turn.agents import Bindings
from agent.turn.steps.plan import PromptPlan
from bot.people.access import ADMITTED, CONSOLE_ADDRESS, Access
from memory.records.errors import Permanent
from memory.records.messages import (
    Address,
    ConversationId,
    IncomingMessage,
    PersonId,
    Role,
    RunId,
    TurnInput,
)
from memory.records.rows import Person, PromptTrace
from memory.records.transcript import Answered, Context, Said
from memory.stores.conversations import SqliteConversations
from memory.stores.traces import SqliteTraces

if TYPE_CHECKING:
    from bot.commands.command import CommandCall, Tools

NOW = "now"
"""In place of a turn: what would be sent now."""

TURNS_LOOKED_AT = 200
"""So far a turn is counted back in a chat, and its former one looked for."""

TURNS_NAMED = 5


class UnknownChat(Permanent):
    """Nobody is known in a chat."""


class UnknownTurn(Permanent):
    """A turn is not there, or no longer recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedPrompt:
    """A prompt, and what it costs by its model; None: the price is not known."""

    view: PromptView
    model: str
    costs: Bill | None


class Prompts:
    """Finds what would be sent, and what was. Raises StorageError."""

    def __init__(
        self,
        plan: Callable[[PromptOccasion], Awaitable[PromptPlan]],
        traces: SqliteTraces,
        conversations: SqliteConversations,
        access: Access,
        *,
        toolbox: Toolbox,
        models: Router,
        bindings: Bindings | None = None,
    ) -> None:
        self._plan = plan
        self._traces = traces
        self._conversations = conversations
        self._access = access
        self._toolbox = toolbox
        self._models = models
        self._bindings = bindings or Bindings()

    # --- looked at -------------------------------------------------------------------------------

    async def now(
        self, chat: str, *, text: str = "", kind: PromptKind = PromptKind.CHAT, task: str = ""
    ) -> PromptView:
        """Return what would be sent for a message in this chat, or for a task. Raise
        UnknownChat."""
        traces = await self._traces.prompts(chat, limit=TURNS_LOOKED_AT)
        turn = await self._turn_now(chat, text, traces, kind)
        plan = await self._plan(PromptOccasion(turn=turn, kind=kind, task=task))
        # A task stands alone: no request of a chat is the one before it.
        former = newest_of(turn.conversation, traces) if kind is PromptKind.CHAT else None
        return view_of_plan(plan, former=former, answer_tokens_max=await self._answer_max(chat))

    async def turn(self, wanted: str, *, chat: str) -> PromptView:
        """Return what was sent in a turn: its id, or 1 for the newest of the chat, 2 for the one
        before.

        Raises UnknownTurn, NotRecorded.
        """
        trace = await self._trace(wanted, chat)
        around = await self._traces.prompts(trace.lane, limit=TURNS_LOOKED_AT)
        return view_of_trace(
            trace,
            former=former_of(trace, around),
            answer_tokens_max=await self._answer_max(trace.lane),
            known=await self._known(trace),
        )

    async def last(self, chat: str) -> PromptView | None:
        """Return the last one of the conversation that is open in a chat; None when nothing was
        sent."""
        conversation = await self._conversations.current(chat)
        traces = await self._traces.prompts(chat, limit=TURNS_LOOKED_AT)
        trace = newest_of(conversation, traces)
        if trace is None:
            return None
        return view_of_trace(
            trace,
            former=former_of(trace, traces),
            answer_tokens_max=await self._answer_max(chat),
        )

    async def billed(self, view: PromptView) -> tuple[str, Bill | None]:
        """Return the model of a view and what it costs there; None when its price is not known."""
        answered = next((asked.model for asked in view.requests if asked.model), "")
        usual = (await self._models.standing(view.lane)).answering.choice.model
        model = answered or usual
        price = await (
            self._models.price_at(view.lane) if model == usual else self._models.price(model)
        )
        return model, None if price is None else bill(view, price.cost)

    # --- for the command line -----------------------------------------------------------------

    async def show(
        self,
        chat: str,
        *,
        turn: str = "",
        message: str = "",
        kind: PromptKind = PromptKind.CHAT,
        task: str = "",
    ) -> PricedPrompt:
        """Return what would be sent now, or was sent in a turn. Raise UnknownChat, UnknownTurn,
        NotRecorded, StorageError."""
        if turn:
            view = await self.turn(turn, chat=chat)
        else:
            view = await self.now(chat, text=message, kind=kind, task=task)
        model, costs = await self.billed(view)
        return PricedPrompt(view=view, model=model, costs=costs)

    async def compare(self, chat: str, before: str, after: str) -> PromptDiff:
        """Return how two prompts differ; each is a turn, or `now`. Raise as `show` does."""
        first, second = [
            await (self.now(chat) if wanted == NOW else self.turn(wanted, chat=chat))
            for wanted in (before, after)
        ]
        return diff(first, second)

    async def _answer_max(self, lane: str) -> int:
        traits = (await self._models.standing(lane)).answering.choice.traits
        return traits.output_tokens(self._models.output_tokens_max)

    # --- turns that were -------------------------------------------------------------------------

    async def _trace(self, wanted: str, chat: str) -> PromptTrace:
        traces = await self._traces.prompts(chat, limit=TURNS_LOOKED_AT)
        if wanted.isascii() and wanted.isdigit():
            back, found = int(wanted), len(traces)
            if 0 < back <= found:
                return traces[back - 1]
            if not traces:
                raise UnknownTurn(
                    f"Nothing was sent to the model in {chat} yet, as far as is recorded."
                )
            turns = "turn is" if found == 1 else "turns are"
            raise UnknownTurn(
                f"Only {found} {turns} recorded in {chat}, so there is no turn {back} back from "
                "the end."
            )
        trace = await self._traces.prompt(RunId(wanted))
        if trace is not None:
            return trace
        others = ", ".join(trace.run_id for trace in traces[:TURNS_NAMED])
        advice = f"those of {chat} begin with {others}" if others else f"{chat} has none"
        for conversation in {conversation_of(trace) for trace in traces[:TURNS_NAMED]}:
            history = await self._conversations.history(ConversationId(conversation))
            if any(one.run_id == wanted for one in history.entries):
                raise UnknownTurn(
                    f"What was sent in the turn {wanted} is no longer recorded (trace.keep_days); "
                    f"of the turns that are, {advice}."
                )
        raise UnknownTurn(
            f"No turn {wanted!r} is recorded: there is none, it has not begun, or it is too long "
            f"ago (trace.keep_days); of the turns that are, {advice}."
        )

    async def _known(self, trace: PromptTrace) -> StoredTexts:
        """Return what is still stored of a turn's texts; what is not, is left out."""
        begin = trace.begin
        conversation = ConversationId(conversation_of(trace))
        stored = (await self._conversations.history(conversation)).entries
        upto, since = begin.get("upto", 0), begin.get("sent_from") or 0
        sent = [one for one in stored if since <= one.id <= upto]
        # What a turn added to the history before its first answer is what it asked with.
        added = (one.entry for one in stored if one.run_id == trace.run_id)
        asked_with = takewhile(lambda entry: not isinstance(entry, Answered), added)
        return StoredTexts(
            system=await self._conversations.text(begin.get("system", "")) or "",
            tools=self._toolbox.named(begin.get("tools", ())),
            history=repair(shorten_before(sent, begin.get("shortened_to", 0))),
            turn=tuple(asked_with),
        )

    # --- a turn that is not ----------------------------------------------------------------------

    async def _turn_now(
        self, chat: str, text: str, traces: Sequence[PromptTrace], kind: PromptKind
    ) -> TurnInput:
        address = Address.parse(chat)
        person = self._person(address, traces)
        # Where nothing was ever sent, asking for the conversation would open one.
        conversation = ConversationId("")
        if traces and kind is PromptKind.CHAT:
            conversation = await self._conversations.current(chat)
        history = await self._conversations.history(conversation)
        # Names of chats and people are kept nowhere but in what was sent.
        entries = [one.entry for one in history.entries]
        blocks = [entry.text for entry in entries if isinstance(entry, Context)]
        lines = read_back(blocks).get(CHAT, "").split("\n")
        told = dict(line.split(": ", 1) for line in lines if ": " in line)
        speakers = [entry.sender for entry in entries if isinstance(entry, Said) and entry.sender]
        chats = self._access.directory.chats
        is_admitted = chats.get(f"{address.channel}:{address.chat_id}") == ADMITTED
        is_group = is_admitted or any(line.startswith("group chat") for line in lines)
        name = next(reversed(speakers), "") if is_group else told.get("user", "")
        return TurnInput(
            message=IncomingMessage(
                address=address,
                message_id="",
                sender_id=address.chat_id,
                sender_name=name,
                text=text,
                is_group=is_group,
                chat_title=told.get("title", ""),
            ),
            conversation=conversation,
            person_id=person.id,
            role=person.role,
            person_name=person.name,
            time_zone=person.time_zone,
            language=person.language,
            language_hint=person.language_hint,
            agent=self._bindings.agent_at(address),
        )

    def _person(self, address: Address, traces: Sequence[PromptTrace]) -> Person:
        """Return who would speak: who spoke last, else whose chat it is; in a group else the
        owner."""
        people = self._access.directory.people
        by_id = {person.id: person for person in people}
        if traces and traces[0].person_id in by_id:
            return by_id[traces[0].person_id]
        known = self._access.who(f"{address.channel}:{address.chat_id}")
        if known is not None:
            return known
        owner = next((person for person in people if person.role is Role.OWNER), None)
        if f"{address.channel}:{address.chat_id}" == CONSOLE_ADDRESS:
            # Whoever is at this terminal becomes the owner with their first word.
            return owner or Person(id=PersonId(""), role=Role.OWNER)
        if owner is not None and self._access.is_admitted(address):
            return owner
        raise UnknownChat(
            f"Nobody is known in the chat {address.key}, so nothing would be sent there; "
            "`hearthbot access list` shows the chats and people that are."
        )


# --- /context ----------------------------------------------------------------------------------

CACHE_WORDS = {
    "cached": "stands in the request before, so that a provider's cache can serve it",
    "partly": "its older part can be served by the cache",
    "behind": "unchanged, but behind a part that changed: read anew",
    "changed": "stood in the request before with another text",
    "new": "was not in the request before",
}
"""What each cache state means."""

BIGGEST = 5
"""Parts that are named one by one."""


NOTHING_RECORDED = (
    "Nothing is recorded of what went to the model in this conversation. It is noted with each "
    "answer, and kept for some time (trace.keep_days)."
)


async def context(tools: Tools, asked: CommandCall) -> str:
    """Say what the last prompt of this conversation was made of, in a few lines."""
    message, person = asked.message, asked.person
    view = await tools.prompts.last(message.address.key)
    if view is None:
        return NOTHING_RECORDED
    _, costs = await tools.prompts.billed(view)
    own = not message.is_group and view.person_id == person.id
    return context_text(view, costs, detailed=own and person.role is not Role.GUEST)


def context_text(view: PromptView, costs: Bill | None, *, detailed: bool) -> str:
    """Return short lines for a phone. Without `detailed` names and sizes alone: in a group, and for
    guests, nobody is told what things are from, why they were picked, or what they cost."""
    rows = [(row.name, row.tokens) for row in sorted(view.rows, key=lambda row: -row.tokens)]
    if rest := rows[BIGGEST:]:
        parts = "1 smaller part" if len(rest) == 1 else f"{len(rest)} smaller parts"
        rows = [*rows[:BIGGEST], (parts, sum(tokens for _, tokens in rest))]
    paragraphs = [
        f"**{view.tokens:,} tokens went to the model** (estimated), "
        f"{percent(view.fullness)} of what it can take ({view.window:,}).",
        "\n".join(
            f"- {name}: {tokens:,} ({percent(tokens / view.tokens)})" for name, tokens in rows
        ),
        _cache_text(view, detailed=detailed),
    ]
    cut = []
    for one in view.cuts:
        after = f"→ {one.tokens_after:,} tokens" if one.tokens_after else "tokens, left out"
        cut.append(f"- {one.layer} {one.tokens_before:,} {after}: no room")
    if cut:
        paragraphs.append("\n".join(["Cut:", *cut]))
    if detailed and view.picked:
        picked = [f"- {name}: {why}" for name, why in view.picked]
        paragraphs.append("\n".join(["Picked for this message:", *picked]))
    if detailed:
        paragraphs.append(_cost_text(view, costs))
    return "\n\n".join(paragraphs)


def _cache_text(view: PromptView, *, detailed: bool) -> str:
    """Return what a cache can serve, and what became of the prefix."""
    if view.is_first:
        return "No request before it is recorded in this conversation, so nothing is cached yet."
    served = f"A cache can serve {percent(view.cacheable)} of it."
    if view.broke:
        broke = view.broke if detailed else view.broke.partition(":")[0]
        return f"{served} What broke the prefix: {broke}."
    behind = ""
    if follows := [row.name for row in view.rows if row.where is Where.BLOCK]:
        they, are, s = ("it", "is", "s") if len(follows) == 1 else ("they", "are", "")
        behind = f" ({', '.join(follows)} {are} not in the prefix: {they} follow{s})"
    return f"{served} Nothing broke the prefix{behind}."


def _cost_text(view: PromptView, costs: Bill | None) -> str:
    """Return the provider's own count beside ours, and what it cost."""
    lines = []
    if usage := view.usage:
        served = f"{usage.cached:,} of them" if usage.cached else "none"
        lines.append(
            f"The provider counted {usage.prompt:,} tokens, {served} from its cache (estimated "
            f"here: {view.tokens:,})."
        )
    if costs is None:
        lines.append("What it cost is not known: the model is in no price table.")
    elif costs.counted is not None:
        answers = "its answer" if len(view.requests) == 1 else f"{len(view.requests)} requests"
        lines.append(f"It cost {money(costs.counted)} with {answers}.")
    else:
        lines.append(
            f"It costs about {money(costs.whole)}, with a cache {money(costs.with_cache)}."
        )
    return "\n".join(lines)
