"""Who must agree to a call before it is run, and what they are shown of it (SPEC §4, §6, §15).

Pure: called by `agent.policy.gate` for every call. A model's words decide nothing here.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase

from agent.policy.presentation import as_called, fenced, rows
from agent.tools.tool import Caller, Effect, Needs, ToolCard, may_call
from memory.records.messages import Role

EXEC = "exec"
OWNERS_GROUPS = frozenset({EXEC, "skills", "hardware"})
"""What these change concerns everybody: only the owner may wish for it, and agree to it."""


class Action(StrEnum):
    """What a rule says of a call."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRule:
    """One rule of the owner. `tools` and `agent` are globs, no tools meaning all; `effect` None
    means any. It gives nobody more than their role does."""

    action: Action
    tools: tuple[str, ...] = ()
    effect: Effect | None = None
    agent: str = "*"

    def fits(self, card: ToolCard, agent: str) -> bool:
        """Return whether it speaks of this tool, called by this agent."""
        return (
            (not self.tools or any(fnmatchcase(card.name, glob) for glob in self.tools))
            and self.effect in {None, card.effect}
            and fnmatchcase(agent, self.agent)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The owner's rules: the first that fits wins over the defaults.

    `tainted_groups` and `tainted_tools` are asked about in a tainted turn although they act on the
    person's own things: what they do lasts, and acts later (jobs, skills, facts that become part
    of every prompt).
    """

    rules: tuple[PolicyRule, ...] = ()
    members_approve_outside: bool = False
    tainted_groups: frozenset[str] = frozenset({"schedule", "skills"})
    tainted_tools: frozenset[str] = frozenset(
        {"store_fact", "update_fact", "update_profile", "append_notes"}
    )

    def action(self, card: ToolCard, agent: str) -> Action | None:
        """Return what the first rule that fits says."""
        return next((rule.action for rule in self.rules if rule.fits(card, agent)), None)

    def allows(self, card: ToolCard, caller: Caller) -> bool:
        """Return whether a rule spares this caller a question: others than the owner have their own
        tap (SPEC §4)."""
        return caller.role is Role.OWNER and self.action(card, caller.agent) is Action.ALLOW


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """It may run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskFirst:
    """A person has to agree: whose turn it is, or with `owner_alone` the owner. `why` is a plain
    sentence for them. `once_only`: "always" is no choice."""

    why: str
    owner_alone: bool = False
    once_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NotAllowed:
    """It may not run, whoever agrees. `why` goes on after "was not run: ", for the model."""

    why: str


ACTS_LATER, FOR_GOOD = "it sets something up that acts later", "it is remembered for good"
ENDING = frozenset({"remove_job", "run_job"})
"""Of the tools about jobs those that leave nothing behind."""

Verdict = Allowed | AskFirst | NotAllowed


def decide(
    policy: Policy,
    card: ToolCard,
    needs: Needs,
    caller: Caller,
    *,
    leaves: str,
    always: bool,
) -> Verdict:
    """Return what becomes of one call. `leaves` is what somebody would learn by it who was not
    meant (`agent.policy.egress`), empty for nothing; `always` whether it was agreed to for good.

    The order is the rule: what nobody may agree to, then what is asked about whatever the owner's
    rules allow, then the rules, then the defaults. An unattended run is judged alike: it waits.
    """
    action = policy.action(card, caller.agent)
    if why := _refusal(policy, card, caller, action) or needs.refused:
        return NotAllowed(why=why)
    # These come before the rules: an `allow` was written for the owner's own wishes.
    if reasons := _pressing(policy, card, needs, caller, leaves):
        return _asked(card, needs, caller, reasons, once_only=True)
    if reason := _usual(policy, card, needs, caller, action, leaves):
        # Who was a member when they said "always" may be a guest by now.
        if always and not needs.once_only and caller.role is not Role.GUEST:
            return Allowed()
        return _asked(card, needs, caller, [reason], once_only=needs.once_only)
    return Allowed()


def digest_of(tool: str, arguments: str) -> str:
    """Return what an answer is good for: this tool with these arguments, however their JSON is
    spaced and ordered."""
    try:
        read = json.dumps(json.loads(arguments, strict=False), sort_keys=True)
        kind = "json"
    except (ValueError, RecursionError):
        read, kind = arguments, "text"
    whole = json.dumps([tool, kind, read])
    return hashlib.sha256(whole.encode("ascii")).hexdigest()


def shown(card: ToolCard, arguments: str, needs: Needs) -> str:
    """Return what will run, exactly, as a Markdown code block for the person who is asked.

    Nothing in it is invisible. No value ends the block or begins a row of it: a value stays behind
    the words of ours, or the name, with which its row begins, and what it says there is its own. A
    long one is cut in its middle, with its length said outside of it; where nothing may be left out
    (programs, and what steers the assistant), the tool refuses a call that `is_whole` does not fit.
    """
    return fenced(rows(as_called(card, arguments), says=needs.shows))


# --- the parts of a decision -------------------------------------------------------------------


def _refusal(policy: Policy, card: ToolCard, caller: Caller, action: Action | None) -> str:
    """Return why not even a tap helps; empty when nothing is against it."""
    role = caller.role
    is_members = (
        role is Role.MEMBER and card.effect is Effect.OUTSIDE and policy.members_approve_outside
    )
    may_wish = not _is_owners(card) and (may_call(role, card.effect) or is_members)
    if role is not Role.OWNER and not may_wish:
        if card.group == EXEC:
            return "only the owner may have programs run."
        return f"a {role} may not have this done here; only the owner may."
    return "the owner's rules forbid it." if action is Action.DENY else ""


def _is_owners(card: ToolCard) -> bool:
    """Return whether the owner alone may wish for it and agree to it. Looking at things is
    nobody's."""
    if card.group == EXEC:
        return True
    return card.group in OWNERS_GROUPS and card.effect is not Effect.NONE


def _pressing(
    policy: Policy, card: ToolCard, needs: Needs, caller: Caller, leaves: str
) -> list[str]:
    """Why it is asked about whatever the rules allow, and whatever was agreed to before."""
    reasons = [needs.asks] if needs.asks else []
    if not reasons and card.group == "skills" and card.effect in {Effect.WORKSPACE, Effect.PERSON}:
        reasons.append("it changes what I know how to do")
    if caller.tainted and (risk := _risk(policy, card, needs) or leaves):
        reasons.append(
            f"{risk}, and text from others is in this conversation, so the wish may be theirs"
        )
    return reasons


def _risk(policy: Policy, card: ToolCard, needs: Needs) -> str:
    """Return what could be somebody else's wish in a tainted turn; empty for what does no harm.

    Handing work to a subagent is no such thing: it takes the taint along, so each of its own calls
    is judged as here.
    """
    if card.group == EXEC:
        return "it runs a program"
    if card.effect is Effect.OUTSIDE:
        return "it acts outside"
    return _lasting(policy, card) or needs.risk


def _usual(
    policy: Policy, card: ToolCard, needs: Needs, caller: Caller, action: Action | None, leaves: str
) -> str:
    """Return why it is asked about by the rules, or by the defaults where none fits."""
    if action is Action.ASK:
        return "the rules here say that it is asked about"
    if action is Action.ALLOW and caller.role is Role.OWNER:
        return ""
    if card.group == EXEC:
        return "it runs a program"
    if card.effect is Effect.OUTSIDE:
        return "it acts outside, where it may not be possible to undo"
    if caller.described:
        # What leaves nothing behind that acts later needs no question here.
        is_harmless = card.name in ENDING and card.name not in policy.tainted_tools
        risk = needs.risk or ("" if is_harmless else _lasting(policy, card))
        if risk:
            others = "names or descriptions that others chose are part of this conversation"
            return f"{risk}, and {others}"
    if leaves and card.effect is Effect.NONE:
        return f"{leaves}, and what I remember of you may be part of that"
    return ""


def _lasting(policy: Policy, card: ToolCard) -> str:
    """Return what stays of it; empty for nothing."""
    if card.group in policy.tainted_groups and card.effect is not Effect.NONE:
        return ACTS_LATER
    return FOR_GOOD if card.name in policy.tainted_tools else ""


def asked_about(reason: str, caller: Caller, *, once_only: bool) -> AskFirst | NotAllowed:
    """Asked about, of whose turn it is, whatever the defaults allow."""
    if caller.role is Role.GUEST:
        return NotAllowed(why="somebody has to agree to it first, and a guest cannot.")
    return AskFirst(why=_sentence(reason), once_only=once_only)


def _asked(
    card: ToolCard, needs: Needs, caller: Caller, reasons: list[str], *, once_only: bool
) -> AskFirst | NotAllowed:
    if caller.role is Role.GUEST:
        return NotAllowed(why="somebody has to agree to it first, and a guest cannot.")
    return AskFirst(
        why=" ".join(_sentence(reason) for reason in reasons),
        owner_alone=(bool(needs.asks) and not needs.is_own) or _is_owners(card),
        once_only=once_only,
    )


def _sentence(reason: str) -> str:
    text = " ".join(reason.split())
    return f"{text[:1].upper()}{text[1:]}" + ("" if text.endswith((".", "!", "?")) else ".")
