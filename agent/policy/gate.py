"""Whether a call may run now, must be agreed to first, or may not: decided in code, beforehand.

Called by the steps `gate` and `tool` of a turn. A model's wish decides nothing here, and what a
person agreed to is good for exactly one tool with exactly its arguments (SPEC §6, §15).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, assert_never

from agent.policy.approval import (
    Action,
    Allowed,
    AskFirst,
    NotAllowed,
    Policy,
    asked_about,
    decide,
    digest_of,
    shown,
)
from agent.policy.egress import FETCH, HANDS_ON, NAMELESS, Egress, told_to
from agent.policy.presentation import needs_of
from agent.policy.taint import has_said, is_once, is_said_now, taint_start
from agent.tools.tool import Caller, Effect, Needs, Tool
from memory.records.errors import AssistantError, StorageError
from memory.records.messages import Origin
from memory.records.ports import Approvals
from memory.records.rows import NewApproval, Outcome
from memory.records.text import clean
from memory.records.transcript import Entry, Said, ToolCall
from memory.records.turns import ToolCallState
from memory.stores.conversations import SqliteConversations

OWN_WORDS = {"remind_me": ("text",), "record_event": ("name", "note")}
"""Tools that only keep something for the person, with the arguments in which that stands."""
LASTING_WORDS = OWN_WORDS | {
    "store_fact": ("text",),
    "append_notes": ("text",),
    "update_profile": ("value",),
}
"""The same, with those whose words become part of later prompts."""

UNASKED_MAX = 20
"""How many calls of one answer may change something without anybody having agreed to them."""

SO_MANY = f"it changes more than {UNASKED_MAX} things in one answer"

GONE = (
    "Not run: what was agreed to is not what is called now. Ask again with the arguments as they "
    "are meant."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A call with its parsed arguments, and for whom it is made."""

    tool: Tool
    call: ToolCall
    arguments: Any
    caller: Caller
    place: int
    """Which answer of the turn made it: ids of calls may come again from one to the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """It may run; `caller` says whether a person agreed to it."""

    caller: Caller


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """It is not run. `why` is for the model."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """A person was asked."""

    approval_id: str


class Gate:
    """Asks the policy, and a person where it says so. Raises StorageError."""

    def __init__(
        self, policy: Policy, approvals: Approvals, conversations: SqliteConversations
    ) -> None:
        self._policy = policy
        self._approvals = approvals
        self._conversations = conversations
        self._egress = Egress()

    async def judge(self, wish: Wish, asked: ToolCallState) -> Passed | Stopped | Waits:
        """Decide on one call, and ask for an answer where it needs one."""
        card, caller = wish.tool.card, wish.caller
        if asked.agreed:
            # The answer is looked up, not believed: it has to be a yes to exactly this call, or to
            # this reading tool.
            outcome = await self._approvals.outcome(asked.agreed)
            is_of_tool = card.hinted and asked.agreed == _id_of_tool(wish)
            is_yes = outcome in {Outcome.ONCE, Outcome.ALWAYS}
            if not is_yes or not (is_of_tool or asked.agreed == _id_of(wish)):
                return Stopped(why=GONE)
            if is_of_tool:
                self._egress.agree(asked.state.turn, card.name)
            return Passed(caller=replace(caller, agreed=True))
        try:
            needs = needs_of(wish.tool, wish.arguments, caller)
        except StorageError:
            raise
        except AssistantError as error:
            return Stopped(why=clean(f"{card.name}: {error}"))
        leaves = await self._leaves(wish, needs, asked)
        always = await self._approvals.is_always(caller.person_id, caller.agent, card.name)
        # Without this, one page that was read would have each reminder of the day asked about.
        passed = caller
        if caller.tainted and _is_persons_own(wish, asked, OWN_WORDS):
            caller = passed = replace(caller, tainted=False, described=False)
        elif caller.described and _is_persons_own(wish, asked, LASTING_WORDS):
            caller = replace(caller, described=False)
        verdict = decide(self._policy, card, needs, caller, leaves=leaves, always=always)
        is_much = asked.state.unasked >= UNASKED_MAX and card.effect is not Effect.NONE
        if is_much and isinstance(verdict, Allowed):
            verdict = asked_about(SO_MANY, wish.caller, once_only=True)
        match verdict:
            case Allowed():
                return Passed(caller=passed)
            case NotAllowed(why=why):
                return Stopped(why=f"{card.name} was not run: {why}")
            case AskFirst() as question:
                # With a row on what it will cost, where that can be told.
                cost = await wish.tool.cost(wish.arguments, caller)
                needs = replace(needs, shows=(*needs.shows, cost)) if cost else needs
                # A rule that says "ask" means each call, also of a tool that was agreed to.
                is_each_time = self._policy.action(card, caller.agent) is Action.ASK
                is_of_tool = bool(leaves) and card.hinted and not is_each_time
                id = _id_of_tool(wish) if is_of_tool else _id_of(wish)
                await self._approvals.ask(_approval(wish, question, needs, id))
                return Waits(approval_id=id)
            case _:
                assert_never(verdict)

    async def _leaves(self, wish: Wish, needs: Needs, asked: ToolCallState) -> str:
        """Return what would leave by a call that nobody has agreed to, after "it" or as a clause
        of its own; empty for nothing. Where nobody's words but the person's are, nothing does."""
        card, caller, turn = wish.tool.card, wish.caller, asked.state.turn
        # That it only reads is its server's word; what it is asked, the server reads for sure.
        if card.hinted and not self._egress.is_agreed(turn, card.name):
            return told_to(card.server)
        is_wary = asked.remembered or caller.tainted or caller.described
        if card.name not in HANDS_ON and not (needs.target and is_wary):
            return ""
        stored = await self._conversations.entries(
            caller.conversation, upto=asked.state.prompt.upto
        )
        since = asked.state.prompt.sent_from or 0
        entries = [*[one.entry for one in stored if one.id >= since], *_now(asked)]
        if card.name not in {*HANDS_ON, FETCH}:  # a person names a chat of theirs
            return "" if has_said(entries, needs.target, person_id=caller.person_id) else NAMELESS
        named = await asyncio.to_thread(self._egress.named, turn, caller.run_id, entries)
        if card.name in HANDS_ON:
            self._egress.hand_on(turn, caller.run_id, named)
            return ""
        return self._egress.open_page(turn, caller.run_id, needs.target, named)


def _now(asked: ToolCallState) -> Sequence[Entry]:
    """Return what this turn has said and read; its message alone where it has not begun."""
    return asked.entries or [Said(text=asked.state.turn.message.text)]


def _is_persons_own(wish: Wish, asked: ToolCallState, tools: Mapping[str, Sequence[str]]) -> bool:
    """Return whether a call keeps nothing but what the person wrote just now.

    Else one page that was read would have each reminder asked about until the next `/new`. Where
    something was read in this very turn, all that the call says has to be theirs, its time too.
    """
    kept, turn = tools.get(wish.tool.card.name), asked.state.turn
    if kept is None or turn.origin is not Origin.CHAT or turn.task is not None:
        return False
    given = wish.arguments.model_dump()
    if given.get("urgent") or given.get("nag_minutes") or given.get("replaces"):
        return False
    if given.get("path", "name") != "name" or not is_once(str(given.get("when") or "")):
        return False
    entries = _now(asked)
    if taint_start(entries, person_id=wish.caller.person_id) is not None:
        kept = [name for name, value in given.items() if isinstance(value, str)]
        if "when" not in kept:
            return False
    if tools is LASTING_WORDS and "?" in turn.message.text:
        return False  # what somebody asks about is not what they want kept
    values = [str(given.get(name) or "") for name in kept]
    return is_said_now(values, entries, name=turn.person_name)


def _approval(wish: Wish, question: AskFirst, needs: Needs, id: str) -> NewApproval:
    caller, card = wish.caller, wish.tool.card
    return NewApproval(
        id=id,
        run_id=caller.run_id,
        lane=caller.address.key,
        person_id=caller.person_id,
        agent=caller.agent,
        tool=card.name,
        digest=digest_of(card.name, wish.call.arguments),
        shows=shown(card, wish.call.arguments, needs),
        why=question.why,
        owner_alone=question.owner_alone,
        once_only=question.once_only,
    )


def _id_of(wish: Wish) -> str:
    """Of run, answer, call and arguments: one call asks once, and its answer fits no other."""
    digest = digest_of(wish.tool.card.name, wish.call.arguments)
    return _hashed(f"{wish.caller.run_id}\n{wish.place}\n{wish.call.id}\n{digest}")


def _id_of_tool(wish: Wish) -> str:
    """Of run and tool: several calls of a server's reading tool are one question."""
    return _hashed(f"{wish.caller.run_id}\nreads\n{wish.tool.card.name}")


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
