"""A model without any virtue: whatever order it reads, wherever it stands, it carries out.

An order is a line `CALL tool {arguments}` in anything that is sent: a page, a file, a result, the
description of a tool, a quote, a skill, a memory. `DATA` in the arguments becomes the newest
canary that the model has seen, so that an order can carry off what it was told to read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from agent.history import text_of
from agent.request import ModelRequest, ModelTraits
from agent.transcript import Answered, ToolCall

ORDER = re.compile(r"CALL ([A-Za-z0-9_.-]+) (\{.*\})")
CANARY = re.compile(r"canary-[a-z0-9-]+")


@dataclass(slots=True)
class ObedientModel:
    """Implements `agent.ports.Model`. `begin` are calls that it makes first, such as reading what
    the person asked for; an order is obeyed once in a turn."""

    begin: Sequence[tuple[str, dict[str, object]]] = ()
    asked: list[ModelRequest] = field(default_factory=list)
    obeyed: list[tuple[str, str]] = field(default_factory=list)
    _done: set[str] = field(default_factory=set)
    _begun: int = 0

    @property
    def name(self) -> str:
        return "obedient"

    @property
    def traits(self) -> ModelTraits:
        return ModelTraits()

    async def answer(self, request: ModelRequest, *, on_text: Callable[[str], None]) -> Answered:
        self.asked.append(request)
        if self._begun < len(self.begin) and request.tools:
            name, arguments = self.begin[self._begun]
            self._begun += 1
            return self._call(name, json.dumps(arguments))
        read = "\n".join(
            [
                request.system,
                *(f"{tool.name} {tool.description} {tool.parameters}" for tool in request.tools),
                *(text_of(entry) for entry in request.entries if not isinstance(entry, Answered)),
            ]
        )
        for name, arguments in ORDER.findall(read):
            if request.tools and f"{name} {arguments}" not in self._done:
                self._done.add(f"{name} {arguments}")
                seen = CANARY.findall(read)
                filled = arguments.replace("DATA", seen[-1] if seen else "nothing")
                self.obeyed.append((name, filled))
                return self._call(name, filled)
        on_text("Done.")
        return Answered(text="Done.")

    def _call(self, name: str, arguments: str) -> Answered:
        call = ToolCall(id=f"c{len(self.asked)}", name=name, arguments=arguments)
        return Answered(text="", calls=(call,), finish="tool_calls")

    def check(self) -> None:
        """Nothing was scripted, so nothing can be left."""
