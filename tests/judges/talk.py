"""One conversation with everything in it, and the models of others that speak in it: aimock and
llmock, each told what to say next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from llmock.pytest_plugin import LLMock

from tests.judges.aimock import Aimock

Arguments = Mapping[str, Any]
Body = Mapping[str, Any]

PIECE_CHARS, PIECE_MS = 100, 20
"""Of what is said slowly: so a long answer is on its way for longer than a draft waits."""

_ROW = "| {n}. | `tea_{n}` | **{n} min** at {c} °C, _some_ sugar | 1 < {n} & {n} > 0 |\n"
_PART = """
### Part {n}: leaves & <water>

1. Warm the *pot*, not the __cup__; see [the notes](https://example.org/tea?a={n}&b=2#top).
   - a nested line with `inline <code>` and ||a secret||
   - 🫖 counted in pairs: 👩‍👩‍👧 {n}
2. > Quoted, ~~struck~~, **bold over
   > two lines**, and then out of it.

```python
def steep(leaves: list[str], *, minutes: int = {n}) -> bool:
    return len(leaves) < 3 and minutes > 2  # "<b>" & ``` inside
```
"""
TEA = "".join(
    [
        "# All about tea\n\n| no. | name | how | rule |\n|---|:--|---|--:|\n",
        *(_ROW.format(n=n, c=70 + n) for n in range(1, 26)),
        *(_PART.format(n=n) for n in range(1, 16)),
        "\nLeft **open, [broken](https://exam ple, `and <i>odd</u>\n\nThat is all about tea.",
    ]
)
"""Longer than two messages, with all that Markdown has and some that it has not."""


class Speaker(Protocol):
    """A model of others that says what it was told, in order, and judges how it is asked."""

    @property
    def api_base(self) -> str: ...

    def says(self, text: str, *, to: str) -> None:
        """The next answer, to the message of Ann's that holds `to`."""

    def calls(self, tool: str, arguments: Arguments, *, then: str, to: str) -> None:
        """The next answer calls a tool; what comes after its result."""

    def refuses(self, status: int, message: str) -> None:
        """The next request is answered by an error."""

    def stumbles(self) -> None:
        """The next request fails in a way that passes."""

    def bodies(self) -> Sequence[Body]:
        """All requests for an answer so far."""

    def accept(self) -> None:
        """AssertionError when one of the requests was not as it should be."""


class AimockSpeaker:
    """It answers nothing that does not fit its script: its strict mode refuses that."""

    def __init__(self, aimock: Aimock, *, slowly: bool) -> None:
        self._aimock = aimock
        self._pace = {"chunkSize": PIECE_CHARS, "latency": PIECE_MS} if slowly else {}
        self._refusals: list[int] = []
        self._calls = 0

    @property
    def api_base(self) -> str:
        return self._aimock.api_base

    def says(self, text: str, *, to: str) -> None:
        self._add({"userMessage": to, "hasToolResult": False}, {"content": text})

    def calls(self, tool: str, arguments: Arguments, *, then: str, to: str) -> None:
        self._calls += 1
        call_id = f"call_judged_{self._calls}"
        call = {"id": call_id, "name": tool, "arguments": dict(arguments)}
        self._add({"userMessage": to, "hasToolResult": False}, {"toolCalls": [call]})
        self._add({"toolCallId": call_id}, {"content": then})

    def refuses(self, status: int, message: str) -> None:
        self._aimock.fails_next(status, message)
        self._refusals.append(status)

    def stumbles(self) -> None:
        self.refuses(503, "Busy")

    def bodies(self) -> Sequence[Body]:
        return self._aimock.bodies()

    def accept(self) -> None:
        refused = [one["response"]["status"] for one in self._aimock.asked()]
        assert [status for status in refused if status != 200] == self._refusals
        assert all(one["path"] == "/v1/chat/completions" for one in self._aimock.asked())

    def _add(self, match: Body, response: Body) -> None:
        match = {"endpoint": "chat", **match}
        self._aimock.answers({"match": match, "response": dict(response), **self._pace})


class LLMockSpeaker:
    """It answers in the order of its script, and grades how the bot bore what went wrong."""

    def __init__(self, llmock: LLMock, *, slowly: bool) -> None:
        self._llmock = llmock.tool_mode("off").pace(1 if slowly else 0)

    @property
    def api_base(self) -> str:
        return self._llmock.base_url()

    def says(self, text: str, *, to: str) -> None:
        self._llmock.reply(text)

    def calls(self, tool: str, arguments: Arguments, *, then: str, to: str) -> None:
        self._llmock.call_tool(tool, dict(arguments)).reply(then)

    def refuses(self, status: int, message: str) -> None:
        self._llmock.fail(status, message=message)

    def stumbles(self) -> None:
        self._llmock.rate_limit(retry_after=0.2)

    def bodies(self) -> Sequence[Body]:
        return [one.body or {} for one in self._llmock.requests]

    def accept(self) -> None:
        self._llmock.assert_resilient(strict=True)
