"""What differs between two requests: layers that came, went or changed, tools, and the history.

Pure; called by `bot.commands.trace.prompts` for `hearthbot prompt show --diff`.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import unified_diff
from enum import StrEnum
from itertools import islice

from agent.trace.inspect import PromptView
from agent.trace.sent import HISTORY, PromptRow, Where

DIFF_LINES_MAX = 200
LINE_CHARS_MAX = 1_000


class Change(StrEnum):
    """What became of a layer."""

    CAME = "came"
    WENT = "went"
    CHANGED = "changed"
    SPARED = "spared"
    """It was sent before, stands in the history since, and is not sent again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerChange:
    """One layer. `lines` is the unified diff of its text, None where one of the two is not known
    any more; it is bounded, and says so."""

    name: str
    where: Where
    change: Change
    tokens_before: int
    tokens_after: int
    lines: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptDiff:
    """From one request to another. `history_tokens` is by how much the history grew, `broke` what
    broke the prefix of the second one."""

    before: PromptView
    after: PromptView
    layers: tuple[LayerChange, ...]
    tools_came: tuple[str, ...]
    tools_went: tuple[str, ...]
    history_tokens: int
    tokens: int
    broke: str

    @property
    def is_empty(self) -> bool:
        """Whether layers and tools are the same."""
        return not (self.layers or self.tools_came or self.tools_went)


def diff(before: PromptView, after: PromptView) -> PromptDiff:
    """Compare `before` with `after`, in the order of `after`; what went stands at the end."""
    gone = [row for row in _layers(before) if after.row(row.name) is None]
    return PromptDiff(
        before=before,
        after=after,
        layers=tuple(
            change
            for row in (*_layers(after), *gone)
            if (change := _change(row, before.row(row.name), after)) is not None
        ),
        tools_came=tuple(name for name in after.tools if name not in before.tools),
        tools_went=tuple(name for name in before.tools if name not in after.tools),
        history_tokens=_history(after) - _history(before),
        tokens=after.tokens - before.tokens,
        broke=after.broke,
    )


def _layers(view: PromptView) -> list[PromptRow]:
    return [row for row in view.rows if row.where in {Where.SYSTEM, Where.BLOCK}]


def _history(view: PromptView) -> int:
    row = view.row(HISTORY)
    return row.tokens if row else 0


def _change(row: PromptRow, old: PromptRow | None, after: PromptView) -> LayerChange | None:
    new = after.row(row.name)
    if new is None:
        change = Change.SPARED if row.name in after.spared else Change.WENT
    elif old is None:
        change = Change.CAME
    elif old.digest == new.digest:
        return None
    else:
        change = Change.CHANGED
    is_spared = change is Change.SPARED
    return LayerChange(
        name=row.name,
        where=row.where,
        change=change,
        tokens_before=old.tokens if old else 0,
        tokens_after=new.tokens if new else 0,
        lines=() if is_spared else _lines(old.text if old else "", new.text if new else ""),
    )


def _lines(before: str | None, after: str | None) -> tuple[str, ...] | None:
    """A unified diff without its two lines of file names."""
    if before is None or after is None:
        return None
    lines = list(
        islice(
            unified_diff(before.splitlines(), after.splitlines(), n=1, lineterm=""),
            2,
            DIFF_LINES_MAX + 3,
        )
    )
    if len(lines) > DIFF_LINES_MAX:
        lines[DIFF_LINES_MAX:] = ["… and more"]
    return tuple(
        (line if len(line) <= LINE_CHARS_MAX else f"{line[:LINE_CHARS_MAX]}…") for line in lines
    )
