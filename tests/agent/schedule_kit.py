"""The tools of the group `schedule` over the real clerk, and a `Castle` that has them.

Tools that the App has built already are not made again.
"""

from __future__ import annotations

from collections.abc import Callable

from agent.policy.approval import Policy
from agent.tools.jobs import Abilities
from agent.tools.profile import PersonContext
from agent.tools.schedule import schedule_tools
from agent.tools.tool import Caller, Tool
from agent.tools.workspace import Workspace
from agent.turn.assistant import Assistant
from bot.app import App
from memory.records.errors import Permanent
from memory.records.messages import ConversationId
from tests.agent.attack_kit import Castle
from tests.agent.memory_kit import RememberingCastle
from tests.agent.obedient import ObedientModel
from tests.scheduler.clerk_kit import BERLIN, Counter


async def usable_skill(name: str) -> object:
    """There is one skill: `news`."""
    if name != "news":
        raise Permanent(f"there is no skill {name!r}")
    return name


def made_tools(
    counter: Counter,
    *,
    reached: Callable[[str, Caller], Tool | None] = lambda name, caller: None,
    policy: Policy | None = None,
    off: frozenset[ConversationId] = frozenset(),
) -> tuple[Tool, ...]:
    """All tools of the group; memory is off in the conversations `off`."""

    async def is_private(conversation: ConversationId) -> bool:
        return conversation in off

    return schedule_tools(
        counter.clerk,
        counter.agenda,
        PersonContext(
            clock=counter.clock,
            name_of=lambda person_id: person_id,
            zone_of=lambda person_id: BERLIN,
            is_private=is_private,
        ),
        Abilities(reached=reached, skill=usable_skill, policy=policy or Policy()),
    )


class _Scheduling(Castle):
    """`Castle` with these tools among its own."""

    def _put_together(self, app: App, workspace: Workspace, model: ObedientModel) -> Assistant:
        counter = Counter(self.path)
        counter.clock = self.clock
        counter.build(self.database)
        made = made_tools(counter, reached=self.made.reach.tool)
        known = set(self.made.toolbox.names)
        self.extra += [tool for tool in made if tool.card.name not in known]
        return super()._put_together(app, workspace, model)


class BusyCastle(RememberingCastle, _Scheduling):
    """`Castle` with memory and the clock."""
