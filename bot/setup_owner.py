"""Finds the owner in the set-up: whoever writes first, and is confirmed on the terminal."""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine
from typing import Any

from agent.errors import AssistantError
from bot.live_telegram import Newcomer
from bot.setup_desk import Desk, Plan, Situation

Listen = Callable[[Collection[str]], Coroutine[Any, Any, Newcomer]]
"""Waits for a message in private, of somebody who is not among these addresses."""

LATER = (
    "Later, write to the bot: it answers with a code, and `hearthbot access approve CODE` makes "
    "you the owner."
)


def find_owner(
    desk: Desk, here: Situation, plan: Plan, *, channel: str, how: str, listen: Listen
) -> None:
    """Adds the owner to the plan, unless there is one or nobody writes.

    What they write is not kept here; it waits at the platform, and the bot answers it once it runs.
    """
    known = [address for address in here.owners if address.startswith(f"{channel}:")]
    if known:
        desk.say(f"The owner there is {known[0]}.")
        return
    if here.owners and any(not one.startswith("console:") for one in here.owners):
        desk.say(
            f"The owner is {here.owners[0]}. Your address here is added with /link, in a chat."
        )
        return
    if plan.owner is not None:
        desk.say(f"The owner is {plan.owner.address}. Your address here is added with /link later.")
        return
    if here.is_running:
        desk.say(f"The running bot takes its messages, so they cannot be seen here. {LATER}")
        return
    desk.say(f"{how} That makes you the owner.")
    refused: set[str] = set()
    while True:
        try:
            found = desk.live_or_enter(
                "Waiting for your message (Enter: skip this)", listen(frozenset(refused))
            )
        except AssistantError as error:
            desk.bad(f"{error} {LATER}")
            return
        if found is None:
            desk.say(LATER)
            return
        if desk.confirm(f"{found.name} wrote, {found.address}. Is that you?"):
            plan.owner = found
            desk.good(f"{found.address} will be the owner.")
            return
        refused.add(found.address)
