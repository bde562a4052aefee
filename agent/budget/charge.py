"""On whose account a turn's model calls go. Called by the steps `begin` and `model`."""

from __future__ import annotations

from memory.records.messages import Role, RunId, TurnInput
from memory.records.usage import Charge, Purpose


def charge_of(run_id: RunId, turn: TurnInput) -> Charge:
    """A subagent's calls go on the person's account, and on a turn's budget of its own."""
    return Charge(
        purpose=_purpose(turn),
        person_id=turn.person_id,
        is_owner=turn.role is Role.OWNER,
        lane=turn.message.address.key,
        conversation=turn.conversation,
        run_id=run_id,
        job="" if turn.job is None else turn.job.name,
        agent=turn.agent,
        time_zone=turn.time_zone,
    )


def _purpose(turn: TurnInput) -> Purpose:
    if turn.task is not None:
        return Purpose.SUBAGENT
    if turn.job is None:
        return Purpose.CHAT
    return Purpose.HEARTBEAT if turn.job.is_heartbeat else Purpose.JOB
