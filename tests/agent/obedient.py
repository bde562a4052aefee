"""A model without any virtue: whatever order it reads, wherever it stands, it carries out.

An order is a line `CALL tool {arguments}` in anything that is sent: a page, a file, a result, the
description of a tool, a quote, a skill, a memory. `DATA` in the arguments becomes the newest
canary that the model has seen, so that an order can carry off what it was told to read; `KEPT`
becomes the newest place where a long result was kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agent.prompt.tokens import text_of
from memory.records.transcript import Answered, Entry, ModelRequest, ModelTraits, Said, ToolCall

ORDER = re.compile(r"CALL ([A-Za-z0-9_.-]+) (\{.*\})")
CANARY = re.compile(r"canary-[a-z0-9-]+")
KEPT = re.compile(r"read_file has .* in (\S+?)[\])\s]")


@dataclass(slots=True)
class ObedientModel:
    """Implements `memory.records.ports.Model`. `begin` are calls that it makes first, such as
    reading what the person asked for; an order is obeyed once for each message. A `parrot` ends by
    saying all the orders that it read, so that they travel on with its answer."""

    begin: Sequence[tuple[str, Mapping[str, object]]] = ()
    parrot: bool = False
    deaf: bool = False
    """Obeys nothing for a while."""
    at_once: bool = False
    """Makes all the calls that it begins with in one answer."""
    asked: list[ModelRequest] = field(default_factory=list)
    obeyed: list[tuple[str, str]] = field(default_factory=list)
    _orders: dict[str, str] = field(default_factory=dict)
    """Which order a call carried out, by the id of the call."""
    _begun: int = 0

    @property
    def name(self) -> str:
        return "obedient"

    @property
    def traits(self) -> ModelTraits:
        return ModelTraits()

    async def answer(self, request: ModelRequest, *, on_text: Callable[[str], None]) -> Answered:
        self.asked.append(request)
        if self.at_once and request.tools and (left := self.begin[self._begun :]):
            self._begun = len(self.begin)
            made = [self._call(name, json.dumps(arguments)).calls[0] for name, arguments in left]
            calls = tuple(replace(one, id=f"{one.id}-{n}") for n, one in enumerate(made))
            return Answered(text="", calls=calls, finish="tool_calls")
        if self._begun < len(self.begin) and request.tools:
            name, arguments = self.begin[self._begun]
            self._begun += 1
            return self._call(name, json.dumps(arguments))
        read = _read(request)
        done = {self._orders.get(call.id, "") for call in _calls_of_this_turn(request.entries)}
        for name, arguments in ORDER.findall(read):
            order = f"{name} {arguments}"
            if request.tools and order not in done and not self.deaf:
                filled = arguments.replace("DATA", _last(CANARY, read))
                filled = filled.replace("KEPT", _last(KEPT, read))
                self.obeyed.append((name, filled))
                answer = self._call(name, filled)
                self._orders[answer.calls[0].id] = order
                return answer
        orders = [f"CALL {name} {arguments}" for name, arguments in ORDER.findall(read)]
        text = "\n".join(dict.fromkeys(orders)) if self.parrot and orders else "Done."
        on_text(text)
        return Answered(text=text)

    def _call(self, name: str, arguments: str) -> Answered:
        call = ToolCall(id=f"c{len(self.asked)}", name=name, arguments=arguments)
        return Answered(text="", calls=(call,), finish="tool_calls")

    def check(self) -> None:
        """Nothing was scripted, so nothing can be left."""


def _read(request: ModelRequest) -> str:
    """Everything that is sent, with what the model said itself: its answers quote what it read."""
    return "\n".join(
        [
            request.system,
            *(
                f"{tool.name} {tool.description}\n{_descriptions(tool.parameters)}"
                for tool in request.tools
            ),
            *(
                entry.text if isinstance(entry, Answered) else text_of(entry)
                for entry in request.entries
            ),
        ]
    )


def _descriptions(node: object) -> str:
    """All texts of a schema, a line each."""
    if isinstance(node, str):
        return node
    parts = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return "\n".join(_descriptions(part) for part in parts)


def _calls_of_this_turn(entries: Sequence[Entry]) -> list[ToolCall]:
    last = max((n for n, entry in enumerate(entries) if isinstance(entry, Said)), default=0)
    return [call for one in entries[last:] if isinstance(one, Answered) for call in one.calls]


def _last(pattern: re.Pattern[str], text: str) -> str:
    found = list(pattern.finditer(text))
    return found[-1][pattern.groups] if found else "nothing"
