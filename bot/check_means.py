"""What the cheap checks of the heartbeat act through: the guarded web client, tools that change
nothing, and programs in the sandbox. The owner named them in the settings.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable

from agent.errors import Permanent
from agent.messages import Address, ConversationId, PersonId, Role, RunId
from agent.tools.arguments import ArgumentsWrong, parse_arguments
from agent.tools.exec import Order, Runner
from agent.tools.tool import Caller, Effect
from agent.tools.toolbox import Toolbox
from agent.web.client import WebClient, WebRequest

COMMAND_TIMEOUT_S = 30.0
_EXIT_CODE = re.compile(r"exit code (\d+)")


class CheckNotMade(Permanent):
    """A check cannot be made; the sentence says why."""


class CheckMeans:
    """Fetches, calls and runs for checks. Everything raises AssistantError."""

    def __init__(
        self,
        client: WebClient,
        toolbox: Toolbox,
        runner: Runner,
        *,
        owner: Callable[[], PersonId | None],
    ) -> None:
        self._client = client
        self._toolbox = toolbox
        self._runner = runner
        self._owner = owner

    async def fetch(self, url: str) -> str:
        """The text of a page, as it came."""
        fetched = await self._client.fetch(WebRequest(url=url))
        if fetched.status >= 400:
            raise CheckNotMade(f"the page answered with HTTP status {fetched.status}")
        return fetched.body.decode(fetched.charset or "utf-8", "replace")

    async def call(self, name: str) -> str:
        """What a tool that changes nothing says, called without arguments."""
        await self._toolbox.ready()
        tool = self._toolbox.get(name)
        if tool is None:
            raise CheckNotMade(f"there is no tool {name[:64]!r}")
        if tool.card.effect is not Effect.NONE:
            raise CheckNotMade(f"{name} changes something, so it is no check")
        try:
            arguments = parse_arguments(tool.card.arguments, json.dumps({}))
        except ArgumentsWrong as error:
            raise CheckNotMade(f"{name} cannot be called without arguments: {error}") from error
        return await tool.run(arguments, self._caller())

    async def run(self, command: str) -> int:
        """The exit code of a program, run as `exec` runs one."""
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise CheckNotMade(f"{command[:80]!r} cannot be read: {error}") from error
        order = Order(command=words, folder=self._runner.root, timeout_s=COMMAND_TIMEOUT_S)
        found = _EXIT_CODE.search(await self._runner.run(order, self._caller()))
        if found is None:
            raise CheckNotMade("the program did not end by itself")
        return int(found[1])

    def _caller(self) -> Caller:
        owner = self._owner()
        if owner is None:
            raise CheckNotMade("nobody owns this bot yet")
        return Caller(
            person_id=owner,
            role=Role.OWNER,
            address=Address(channel="job", chat_id="check"),
            conversation=ConversationId("check"),
            run_id=RunId("check"),
            unattended=True,
            agreed=True,
        )
