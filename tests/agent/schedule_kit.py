"""The tools of the group `schedule` over the real services, and a `Castle` that has them.

Tools that the App has built already are not made again.
"""

from __future__ import annotations

from collections.abc import Callable

from agent.policy.approval import Policy
from agent.skills.skill import Skill, SkillPlace, SkillSet
from agent.tools.groups.memory import PersonContext
from agent.tools.tool import Caller, Tool
from agent.tools.workspace import Workspace
from agent.turn.assistant import Assistant
from bot.app.app import App
from memory.records.messages import ConversationId
from scheduler.jobs.times import ToolCalls
from scheduler.jobs.tools import schedule_tools
from tests.agent.attack_kit import Castle
from tests.agent.memory_kit import RememberingCastle
from tests.agent.obedient import ObedientModel
from tests.scheduler.service_kit import BERLIN, Services


async def skills() -> SkillSet:
    """There is one skill: `news`."""
    place = SkillPlace.SHIPPED
    news = Skill(name="news", description="d", text="t", place=place, location="skills/news")
    return SkillSet(skills=(news,))


def made_tools(
    counter: Services,
    *,
    reached: Callable[[str, Caller], Tool | None] = lambda name, caller: None,
    policy: Policy | None = None,
    off: frozenset[ConversationId] = frozenset(),
) -> tuple[Tool, ...]:
    """All tools of the group; memory is off in the conversations `off`."""

    async def is_private(conversation: ConversationId) -> bool:
        return conversation in off

    return schedule_tools(
        counter.jobs,
        counter.events,
        PersonContext(
            clock=counter.clock,
            name_of=lambda person_id: person_id,
            zone_of=lambda person_id: BERLIN,
            is_private=is_private,
        ),
        ToolCalls(reached, policy=policy or Policy()),
        shelf=skills,
    )


class _Scheduling(Castle):
    """`Castle` with these tools among its own."""

    def _put_together(self, app: App, workspace: Workspace, model: ObedientModel) -> Assistant:
        counter = Services(self.path)
        counter.clock = self.clock
        counter.build(self.database)
        made = made_tools(counter, reached=self.made.reach.tool)
        known = set(self.made.toolbox.names)
        self.extra += [tool for tool in made if tool.card.name not in known]
        return super()._put_together(app, workspace, model)


class BusyCastle(RememberingCastle, _Scheduling):
    """`Castle` with memory and the clock."""
