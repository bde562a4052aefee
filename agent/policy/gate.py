"""Whether a call may run now, must be agreed to first, or may not: decided in code, beforehand.

Called by the steps `gate` and `tool` of a turn. A model's wish decides nothing here, and what a
person agreed to is good for exactly one tool with exactly its arguments (SPEC §6, §15).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, assert_never

from pydantic import BaseModel

from agent.policy.approval import (
    Allowed,
    AskFirst,
    NotAllowed,
    Policy,
    asked_about,
    decide,
    digest_of,
    shown,
)
from agent.policy.egress import HANDS_ON, WHOLE, Called, Replay, Told, Unwatched, is_weighed
from agent.policy.links import FETCH
from agent.policy.news import day_of
from agent.policy.presentation import needs_of
from agent.policy.taint import (
    has_said,
    has_seen,
    is_named_now,
    is_once,
    is_said_now,
    is_stated_now,
    taint_start,
)
from agent.tools.arguments import ArgumentsWrong, parse_arguments, schema_of
from agent.tools.discovery import resolved
from agent.tools.tool import Caller, Effect, Needs, Tool
from memory.records.errors import AssistantError, StorageError
from memory.records.messages import Origin, TurnInput
from memory.records.ports import Approvals
from memory.records.rows import NewApproval, Outcome
from memory.records.text import clean
from memory.records.transcript import Answered, Entry, Said, ToolCall
from memory.records.turns import ToolCallState
from memory.stores.conversations import SqliteConversations

TOLD_MUCH = {
    FETCH: "it follows more links of others than would tell nothing by which they are",
    **dict.fromkeys(HANDS_ON, "it hands on more work than this turn may by itself"),
}
NEW_TO_IT = (
    "what it asks for stands in nothing that you wrote just now, and what I remember of you is "
    "part of this conversation"
)

OWN_WORDS = {"remind_me": ("text",), "record_event": ("name", "note")}
"""Tools that only keep something for the person, with the arguments in which that stands."""
LASTING_WORDS = OWN_WORDS | {
    **{"store_fact": ("text",), "append_notes": ("text",)},
}
"""The same, with those whose words become part of later prompts."""

UNASKED_MAX = 20
"""How many calls of one answer may change something without anybody having agreed to them."""

SO_MANY = f"it changes more than {UNASKED_MAX} things in one answer"

GONE = (
    "Not run: what was agreed to is not what is called now. Ask again with the arguments as they "
    "are meant."
)


class ToolsHere(Protocol):
    """The tools that can be called now, and could be before."""

    def get(self, name: str) -> Tool | None:
        """The tool of this name."""
        ...

    @property
    def foreign_count(self) -> int:
        """How many tools all servers have together."""
        ...


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
        self._unwatched = Unwatched()

    async def judge(
        self, wish: Wish, asked: ToolCallState, tools: ToolsHere
    ) -> Passed | Stopped | Waits:
        """`tools` knows those that were called before, too."""
        card, caller = wish.tool.card, wish.caller
        digest = digest_of(card.name, wish.call.arguments)
        if asked.agreed:
            return await self._as_agreed(wish, asked.agreed, digest)
        needs = _needs(wish)
        if isinstance(needs, Stopped):
            return needs
        is_told = await self._tells_news(wish, asked, tools)
        seen = await self._seen(wish, needs, asked)
        if card.name == FETCH and not caller.tainted and not is_told:
            seen.add(needs.target)  # it tells next to nothing, whoever thought of it
        if is_told and caller.tainted and not (card.name == FETCH and not seen):
            news = f"it tells the server {card.server} what it did not know"
            needs = replace(needs, risk=TOLD_MUCH.get(card.name, news))
        always = await self._approvals.is_always(caller.person_id, caller.agent, card.name)
        passed = wish.caller
        if caller.tainted and _is_persons_own(wish, asked, OWN_WORDS):
            caller = passed = replace(caller, tainted=False, described=False)
        elif caller.described and _is_persons_own(wish, asked, LASTING_WORDS):
            caller = replace(caller, described=False)
        verdict = decide(
            self._policy, card, needs, caller, seen=lambda target: target in seen, always=always
        )
        if is_told and isinstance(verdict, Allowed):
            # A server that somebody trusts with what is remembered is asked about once.
            if card.hinted and (always or self._policy.allows(card, caller)):
                return Passed(caller=passed)
            verdict = asked_about(NEW_TO_IT, caller, once_only=not card.hinted)
        match _unless_so_many(verdict, wish, asked):
            case Allowed():
                return Passed(caller=passed)
            case NotAllowed(why=why):
                return Stopped(why=f"{card.name} was not run: {why}")
            case AskFirst() as question:
                approval = _approval(wish, question, await _with_cost(wish, needs), digest)
                await self._approvals.ask(approval)
                return Waits(approval_id=approval.id)
            case _:
                assert_never(verdict)

    async def _as_agreed(self, wish: Wish, approval_id: str, digest: str) -> Passed | Stopped:
        """The answer is looked up, not believed: it has to be a yes to exactly this call."""
        outcome = await self._approvals.outcome(approval_id)
        if outcome not in {Outcome.ONCE, Outcome.ALWAYS}:
            return Stopped(why=GONE)
        if approval_id != _id_of(wish, digest):
            return Stopped(why=GONE)
        return Passed(caller=replace(wish.caller, agreed=True))

    async def _seen(self, wish: Wish, needs: Needs, asked: ToolCallState) -> set[str]:
        """The call's target, if it stands in what was said or read. History is read only where
        that decides anything."""
        caller = wish.caller
        if not (caller.tainted or caller.described) or not needs.target:
            return set()
        names = _names_it(wish)
        if names(_now(asked, is_wary=caller.described), needs.target):
            return {needs.target}
        history = await self._history(caller, asked)
        return {needs.target} if names(history, needs.target) else set()

    async def _tells_news(self, wish: Wish, asked: ToolCallState, tools: ToolsHere) -> bool:
        """Whether somebody learns by a call what nobody meant for them: a server by a tool that
        only reads, as it says itself, or whoever keeps a page."""
        card, caller = wish.tool.card, wish.caller
        remembered = asked.remembered
        if not is_weighed(card.name) or (card.server and not card.hinted):
            return False
        if not (remembered or caller.tainted or caller.described):
            return False
        turn = asked.state.turn
        told = Told(
            history=await self._history(caller, asked),
            turn=_now(asked),
            was_tainted=bool(asked.state.prompt.tainted),
            person_id=caller.person_id,
            today=day_of(turn.message.sent_at_ms),
            is_task=turn.task is not None,
            is_report=turn.report is not None,
            rests_on_memory=remembered or caller.described,
        )
        calls = (call for one in told.turn if isinstance(one, Answered) for call in one.calls)
        before = {call: _read_again(call, tools) for call in calls}
        of = caller.person_id, caller.run_id, told.today
        most = WHOLE if turn.job is None else self._unwatched.left(*of)
        replay = Replay(told, before.get, most=most)
        now = _called(wish.tool, wish.arguments, tools)
        # A long turn of a long conversation takes a tenth of a second.
        passes = await asyncio.to_thread(replay.passes, wish.call.id, now)
        if turn.job is not None:
            self._unwatched.told(*of, replay.spent)
        return not passes

    async def _history(self, caller: Caller, asked: ToolCallState) -> Sequence[Entry]:
        stored = await self._conversations.entries(
            caller.conversation, upto=asked.state.prompt.upto
        )
        since = asked.state.prompt.sent_from or 0
        return [one.entry for one in stored if one.id >= since]


def _needs(wish: Wish) -> Needs | Stopped:
    try:
        return needs_of(wish.tool, wish.arguments, wish.caller)
    except StorageError:
        raise
    except AssistantError as error:
        return Stopped(why=clean(f"{wish.tool.card.name}: {error}"))


async def _with_cost(wish: Wish, needs: Needs) -> Needs:
    """With a row on what it will cost, where that can be told."""
    cost = await wish.tool.cost(wish.arguments, wish.caller)
    return replace(needs, shows=(*needs.shows, cost)) if cost else needs


def _names_it(wish: Wish) -> Callable[[Sequence[Entry], str], bool]:
    """Who may name a target: a page names addresses of pages, and the person a chat of theirs."""
    if wish.tool.card.name == FETCH:
        return has_seen
    return partial(has_said, person_id=wish.caller.person_id)


def _now(asked: ToolCallState, *, is_wary: bool = False) -> Sequence[Entry]:
    """What this turn has said and read; its message alone where it has read nothing of others.
    With `is_wary` the words of a subagent's task count for nothing: a model wrote them."""
    turn = asked.state.turn
    entries = asked.entries or [Said(text=turn.message.text)]
    if is_wary and turn.task is not None:
        return [entry for entry in entries if not isinstance(entry, Said)]
    return entries


def _is_persons_own(wish: Wish, asked: ToolCallState, words: Mapping[str, Sequence[str]]) -> bool:
    """Whether a call keeps nothing but what the person wrote just now, in a turn that has read
    nothing from outside: what was read turns ago can have chosen none of it.

    Else one page that was read would have each reminder asked about until the next `/new`.
    """
    is_name = words is LASTING_WORDS and wish.tool.card.name == "update_profile"
    kept = ("value",) if is_name else words.get(wish.tool.card.name)
    if kept is None:
        return False
    turn = asked.state.turn
    if turn.origin is not Origin.CHAT or turn.task is not None:
        return False
    entries = _now(asked)
    given = wish.arguments.model_dump()
    if taint_start(entries, person_id=wish.caller.person_id) is not None and not (
        words is OWN_WORDS and _is_all_said(given, entries, turn)
    ):
        return False
    if given.get("urgent") or given.get("nag_minutes") or given.get("replaces"):
        return False
    if not is_once(str(given.get("when") or "")):
        return False
    if words is LASTING_WORDS and "?" in turn.message.text:
        return False  # what somebody asks about is not what they want kept
    values = [str(given.get(name) or "") for name in kept]
    if is_name:
        return given.get("path") == "name" and is_named_now(values[0], entries)
    if words is LASTING_WORDS and wish.tool.card.name not in OWN_WORDS:
        return is_stated_now(values[0], entries, name=turn.person_name)
    return is_said_now(values, entries, name=turn.person_name)


def _is_all_said(given: Mapping[str, Any], entries: Sequence[Entry], turn: TurnInput) -> bool:
    """Whether each text of a call stands in the message, its time too: then what was read in this
    turn chose next to nothing of it."""
    texts = [text for text in given.values() if isinstance(text, str) and text]
    return bool(given.get("when")) and is_said_now(texts, entries, name=turn.person_name)


def _called(tool: Tool, arguments: Any, tools: ToolsHere) -> Called:
    card = tool.card
    return Called(
        name=card.name,
        arguments=arguments.model_dump() if isinstance(arguments, BaseModel) else arguments,
        schema=schema_of(card.arguments) if card.hinted else None,
        kin=tools.foreign_count if card.hinted else 1,
    )


def _read_again(call: ToolCall, tools: ToolsHere) -> Called | None:
    """A call of before, read as it was then, so that none is counted otherwise than it was run."""
    try:
        meant = resolved(call)
        tool = tools.get(meant.name)
        if tool is None:
            return None
        return _called(tool, parse_arguments(tool.card.arguments, meant.arguments), tools)
    except ArgumentsWrong:
        return None


def _unless_so_many(
    verdict: Allowed | NotAllowed | AskFirst, wish: Wish, asked: ToolCallState
) -> Allowed | NotAllowed | AskFirst:
    """Ask about a change once one answer has made that many unasked ones."""
    is_much = asked.state.unasked >= UNASKED_MAX and wish.tool.card.effect is not Effect.NONE
    if is_much and isinstance(verdict, Allowed):
        return asked_about(SO_MANY, wish.caller, once_only=True)
    return verdict


def _approval(wish: Wish, verdict: AskFirst, needs: Needs, digest: str) -> NewApproval:
    caller = wish.caller
    return NewApproval(
        id=_id_of(wish, digest),
        run_id=caller.run_id,
        lane=caller.address.key,
        person_id=caller.person_id,
        agent=caller.agent,
        tool=wish.tool.card.name,
        digest=digest,
        shows=shown(wish.tool.card, wish.call.arguments, needs),
        why=verdict.why,
        owner_alone=verdict.owner_alone,
        once_only=verdict.once_only,
    )


def _id_of(wish: Wish, digest: str) -> str:
    """Of run, answer, call and arguments: one call asks once, and its answer fits no other."""
    of = f"{wish.caller.run_id}\n{wish.place}\n{wish.call.id}\n{digest}"
    return hashlib.sha256(of.encode("utf-8", "replace")).hexdigest()[:16]
