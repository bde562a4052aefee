"""What a prompt is made of, for `hearthbot prompt show` and `/context`: looks, sends and stores
nothing. Built by `bot.app`.

The answers are JSON objects, documented at `view_as_json` and `diff_as_json`; texts come as events
{"part": number, "text": piece}, for a whole prompt may be longer than a line of the socket.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass

from agent.history.window import repair, shorten_before
from agent.models.router import Router
from agent.prompt.assemble import read_back
from agent.prompt.context import PromptOccasion
from agent.prompt.scene import PromptKind
from agent.prompt.templates import CHAT
from agent.tools.toolbox import Toolbox
from agent.trace.difference import LayerChange, PromptDiff, diff
from agent.trace.inspect import (
    Bill,
    PromptView,
    bill,
    conversation_of,
    former_of,
    newest_of,
    view_of_plan,
    view_of_trace,
)
from agent.trace.sent import PromptRow, StoredTexts
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
from memory.records.ports import History, Json, StoredEntry
from memory.records.rows import Person, PromptTrace
from memory.records.transcript import Answered, Context, Entry, Said
from memory.stores.conversations import SqliteConversations
from memory.stores.traces import SqliteTraces

NOW = "now"
"""In place of a turn: what would be sent now."""

TURNS_LOOKED_AT = 200
"""So far a turn is counted back in a chat, and its former one looked for."""

TURNS_NAMED = 5


class UnknownChat(Permanent):
    """Nobody is known in a chat."""


class UnknownTurn(Permanent):
    """A turn is not there, or no longer recorded."""


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
        """What would be sent for a message in this chat, or for a task. Raises UnknownChat."""
        traces = await self._traces.prompts(chat, limit=TURNS_LOOKED_AT)
        turn = await self._turn_now(chat, text, traces, kind)
        plan = await self._plan(PromptOccasion(turn=turn, kind=kind, task=task))
        former = newest_of(turn.conversation, traces) if kind is PromptKind.CHAT else None
        return view_of_plan(plan, former=former, answer_tokens_max=await self._answer_max(chat))

    async def turn(self, wanted: str, *, chat: str) -> PromptView:
        """What was sent in a turn: its id, or 1 for the newest of the chat, 2 for the one before.

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

    async def either(self, wanted: str, *, chat: str) -> PromptView:
        """A turn, or what would be sent now."""
        return await (self.now(chat) if wanted == NOW else self.turn(wanted, chat=chat))

    async def last(self, chat: str) -> PromptView | None:
        """The last one of the conversation that is open in a chat; None when nothing was sent."""
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
        """The model of a view and what it costs there; None when its price is not known."""
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
        full: bool = False,
    ) -> Json:
        """Return what would be sent now, or was sent in a turn, as `view_as_json` describes; with
        the texts if `full`. Raise UnknownChat, UnknownTurn, NotRecorded, StorageError."""
        if turn:
            view = await self.turn(turn, chat=chat)
        else:
            view = await self.now(chat, text=message, kind=kind, task=task)
        model, costs = await self.billed(view)
        shown = view_as_json(view, costs, model=model)
        if full:
            for part, row in zip(shown["parts"], view.rows, strict=True):
                part["text"] = row.text
        return shown

    async def compare(self, chat: str, before: str, after: str) -> Json:
        """Return how two prompts differ, as `diff_as_json` describes; each is a turn, or `now`.
        Raise as `show` does."""
        first = await self.either(before, chat=chat)
        return diff_as_json(diff(first, await self.either(after, chat=chat)))

    async def _answer_max(self, lane: str) -> int:
        traits = (await self._models.standing(lane)).answering.choice.traits
        return traits.output_tokens(self._models.output_tokens_max)

    # --- turns that were -------------------------------------------------------------------------

    async def _trace(self, wanted: str, chat: str) -> PromptTrace:
        if wanted.isascii() and wanted.isdigit():
            back = int(wanted)
            traces = await self._traces.prompts(chat, limit=min(back, TURNS_LOOKED_AT))
            if back < 1 or len(traces) < back:
                raise UnknownTurn(_too_far(chat, back, len(traces)))
            return traces[back - 1]
        trace = await self._traces.prompt(RunId(wanted))
        if trace is None:
            raise UnknownTurn(await self._not_there(wanted, chat))
        return trace

    async def _not_there(self, wanted: str, chat: str) -> str:
        traces = await self._traces.prompts(chat, limit=TURNS_NAMED)
        others = ", ".join(trace.run_id for trace in traces)
        advice = f"those of {chat} begin with {others}" if others else f"{chat} has none"
        for conversation in {conversation_of(trace) for trace in traces}:
            history = await self._conversations.history(ConversationId(conversation))
            if any(one.run_id == wanted for one in history.entries):
                return (
                    f"What was sent in the turn {wanted} is no longer recorded (trace.keep_days); "
                    f"of the turns that are, {advice}."
                )
        return (
            f"No turn {wanted!r} is recorded: there is none, it has not begun, or it is too long "
            f"ago (trace.keep_days); of the turns that are, {advice}."
        )

    async def _known(self, trace: PromptTrace) -> StoredTexts:
        """What is still stored of a turn's texts; what is not, is left out."""
        begin = trace.begin
        conversation = ConversationId(conversation_of(trace))
        stored = (await self._conversations.history(conversation)).entries
        upto, since = begin.get("upto", 0), begin.get("sent_from") or 0
        sent = [one for one in stored if since <= one.id <= upto]
        return StoredTexts(
            system=await self._conversations.text(begin.get("system", "")) or "",
            tools=self._toolbox.named(begin.get("tools", ())),
            history=repair(shorten_before(sent, begin.get("shortened_to", 0))),
            turn=_asked_with(stored, trace.run_id),
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
        place = _place(history)
        is_group = self._is_group(address) or place.is_group
        return TurnInput(
            message=IncomingMessage(
                address=address,
                message_id="",
                sender_id=address.chat_id,
                sender_name=_last_speaker(history) if is_group else place.user,
                text=text,
                is_group=is_group,
                chat_title=place.title,
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
        """Who would speak: who spoke last, else whose chat it is; in a group else the owner."""
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

    def _is_group(self, address: Address) -> bool:
        chats = self._access.directory.chats
        return chats.get(f"{address.channel}:{address.chat_id}") == ADMITTED


def _too_far(chat: str, back: int, found: int) -> str:
    if not found:
        return f"Nothing was sent to the model in {chat} yet, as far as is recorded."
    turns = "turn is" if found == 1 else "turns are"
    return f"Only {found} {turns} recorded in {chat}, so there is no turn {back} back from the end."


def _asked_with(stored: Sequence[StoredEntry], run_id: RunId) -> tuple[Entry, ...]:
    """What a turn added to the history before its first answer."""
    found: list[Entry] = []
    for one in stored:
        if one.run_id != run_id:
            continue
        if isinstance(one.entry, Answered):
            break
        found.append(one.entry)
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class _KnownChat:
    """What the history says of the chat; names are kept nowhere else."""

    user: str = ""
    title: str = ""
    is_group: bool = False


def _place(history: History) -> _KnownChat:
    blocks = [one.entry.text for one in history.entries if isinstance(one.entry, Context)]
    lines = read_back(blocks).get(CHAT, "").split("\n")
    pairs = dict(line.split(": ", 1) for line in lines if ": " in line)
    return _KnownChat(
        user=pairs.get("user", ""),
        title=pairs.get("title", ""),
        is_group=any(line.startswith("group chat") for line in lines),
    )


def _last_speaker(history: History) -> str:
    said = (one.entry for one in reversed(history.entries) if isinstance(one.entry, Said))
    return next((entry.sender for entry in said if entry.sender), "")


# --- for other commands --------------------------------------------------------------------------


def view_as_json(view: PromptView, costs: Bill | None, *, model: str) -> Json:
    """The keys of `prompt show --json`:

    - kind, chat, turn (null: would be sent now), started_ms, model
    - tokens, window, fullness (share of the window, 0 to 1), answer_tokens (room for an answer)
    - cached_tokens, cacheable (share, 0 to 1), first (no request before is recorded), broke
    - money: null when the price is unknown, else in US dollars request, request_with_cache,
      counted (all requests of the turn with their answers, null: not known)
    - parts, as sent: name, where, tokens, share, money, cache, cached_tokens, sources, known
      (whether its text is), and with --full text (null: not known)
    - tools, spared, cuts (layer, tokens_before, tokens_after), picked (name, why)
    - requests of a turn: tokens, cached_tokens, changed, model, error, counted (prompt, completion,
      cached; null: the provider did not say)
    """
    each = costs.rows if costs else [None] * len(view.rows)
    return {
        "kind": view.kind,
        "chat": view.lane,
        "turn": view.turn or None,
        "started_ms": view.started_ms or None,
        "model": model,
        "tokens": view.tokens,
        "window": view.window,
        "fullness": round(view.fullness, 6),
        "answer_tokens": view.answer_tokens,
        "cached_tokens": view.cached_tokens,
        "cacheable": round(view.cacheable, 6),
        "first": view.is_first,
        "broke": view.broke,
        "money": costs
        and {
            "request": costs.whole,
            "request_with_cache": costs.with_cache,
            "counted": costs.counted,
        },
        "parts": [
            _row_as_json(row, view.tokens, dollars)
            for row, dollars in zip(view.rows, each, strict=True)
        ],
        "tools": list(view.tools),
        "spared": list(view.spared),
        "cuts": [asdict(cut) for cut in view.cuts],
        "picked": [{"name": name, "why": why} for name, why in view.picked],
        "requests": [
            {
                "tokens": asked.tokens,
                "cached_tokens": asked.kept_tokens,
                "changed": asked.changed,
                "model": asked.model,
                "error": asked.error,
                "counted": None if asked.usage is None else asdict(asked.usage),
            }
            for asked in view.requests
        ],
    }


def _row_as_json(row: PromptRow, whole: int, dollars: float | None) -> Json:
    return {
        "name": row.name,
        "where": row.where.value,
        "tokens": row.tokens,
        "share": round(row.tokens / whole, 6) if whole else 0.0,
        "money": dollars,
        "cache": row.cache.value,
        "cached_tokens": row.cached_tokens,
        "sources": list(row.sources),
        "known": row.text is not None,
    }


def diff_as_json(found: PromptDiff) -> Json:
    """The keys of `prompt show --diff A B --json`:

    - before, after: turn (null: would be sent now), chat, tokens
    - tokens, history_tokens: by how much request and history grew
    - layers: name, where, change (came, went, changed, spared), tokens_before, tokens_after, diff
      (lines of a unified diff; null where a text is not known any more)
    - tools_came, tools_went, broke (what broke the prefix of `after`, empty for nothing)
    - first (no request before `after` is recorded)
    """
    return {
        "before": _side(found.before),
        "after": _side(found.after),
        "tokens": found.tokens,
        "history_tokens": found.history_tokens,
        "layers": [_change_as_json(change) for change in found.layers],
        "tools_came": list(found.tools_came),
        "tools_went": list(found.tools_went),
        "broke": found.broke,
        "first": found.after.is_first,
    }


def _side(view: PromptView) -> Json:
    return {"turn": view.turn or None, "chat": view.lane, "tokens": view.tokens}


def _change_as_json(change: LayerChange) -> Json:
    return {
        "name": change.name,
        "where": change.where.value,
        "change": change.change.value,
        "tokens_before": change.tokens_before,
        "tokens_after": change.tokens_after,
        "diff": None if change.lines is None else list(change.lines),
    }
