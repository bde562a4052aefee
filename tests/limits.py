"""Hold the figures of the code's shape within limits: two tables of `pyproject.toml`.

`[tool.hearthbot.limits]` has what a figure may be at most, `[tool.hearthbot.floors]` what it has to
be at least, each under the figure's own name and with the reason of a raise in the same line.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

Figures = Mapping[str, float]

COMMAND = "python -m tests.structure"

LISTS = {
    "sloc.tests": "tests",
    "modules": "modules",
    "modules.small": "small",
    "modules.large": "large",
    "modules.in the fullest folder": "folders",
    "modules named by a gerund": "gerunds",
    "functions over 60 lines, %": "long",
    "private helpers used once, %": "helpers",
    "code lines per function": "helpers",
    "classes": "classes",
    "class names used twice": "names",
    "protocols": "protocols",
    "protocols with one implementation": "protocols",
    "twin records": "twins",
    "signatures with untyped JSON": "untyped",
    "attributes set on another's part": "setters",
}
"""What to list where a figure is out of its limits; for a size, the modules."""

UNLIMITED = {"functions", "function lines, median", "function lines, p90"}
"""Figures that say something only beside others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    name: str
    value: float
    floor: bool = False

    def excess(self, figure: float) -> float:
        """Return how far a figure is out of the limit; less than 0 is room left."""
        return round(self.value - figure if self.floor else figure - self.value, 2)


@dataclass(frozen=True, slots=True)
class Limits:
    rows: tuple[Limit, ...]

    @classmethod
    def read(cls, root: Path) -> Limits:
        """Read the tables of a project."""
        text = (root / "pyproject.toml").read_text(encoding="utf-8")
        tables = tomllib.loads(text)["tool"]["hearthbot"]
        return cls.of(tables["limits"], tables["floors"])

    @classmethod
    def of(cls, limits: Figures, floors: Figures) -> Limits:
        return cls(
            (
                *(Limit(name=name, value=value) for name, value in limits.items()),
                *(Limit(name=name, value=value, floor=True) for name, value in floors.items()),
            )
        )

    def complaints(self, figures: Figures) -> list[str]:
        """Return all that is wrong, a line each."""
        return [*self.passed(figures), *self.loose(figures), *self.unmatched(figures)]

    def passed(self, figures: Figures) -> list[str]:
        """Return a line on each figure that is out of its limit."""
        return [
            f"{row.name}: {figures[row.name]:,} is {row.excess(figures[row.name]):,}"
            f" {'under its floor' if row.floor else 'over its limit'} of {row.value:,}"
            + _see(row.name)
            for row in self._matched(figures)
            if row.excess(figures[row.name]) > 0
        ]

    def loose(self, figures: Figures) -> list[str]:
        """Return a line on each limit that leaves more room than `slack` allows."""
        return [
            f"{row.name}: {figures[row.name]:,} leaves {-row.excess(figures[row.name]):,} to"
            f" {row.value:,}: {'raise the floor' if row.floor else 'lower the limit'},"
            f" `{COMMAND} --tighten`"
            for row in self._matched(figures)
            if -row.excess(figures[row.name]) > slack(row.name, figures[row.name])
        ]

    def unmatched(self, figures: Figures) -> list[str]:
        """Return a line on each figure without a limit, and on each limit without a figure."""
        limited = {row.name for row in self.rows}
        return [
            *(f"{name}: has no limit" for name in figures if name not in limited | UNLIMITED),
            *(f"{name}: has a limit and no figure" for name in limited - figures.keys()),
        ]

    def _matched(self, figures: Figures) -> Iterable[Limit]:
        return (row for row in self.rows if row.name in figures)


def slack(name: str, figure: float) -> float:
    """Return the room that a figure may have: 2 %, and no less than a small change takes."""
    least = 50 if name.startswith("sloc") else 3 if isinstance(figure, int) else 0.5
    return max(least, 0.02 * figure)


def _see(name: str) -> str:
    what = LISTS.get(name, "modules" if name.startswith("sloc") else None)
    return f"; see `{COMMAND} --list {what}`" if what else ""


def table(figures: Figures, limits: Limits) -> str:
    """Return the figures one below the other, each beside its limit."""
    beside = {
        row.name: f"  at {'least' if row.floor else 'most'} {row.value:,}" for row in limits.rows
    }
    return "\n".join(
        f"{name:34s} {figure:>9,}{beside.get(name, '')}" for name, figure in figures.items()
    )


ROW = re.compile(r'^"(?P<name>[^"]+)" = (?P<value>[\d.]+)(?P<reason>.*)$', re.MULTILINE)


def tightened(project: str, figures: Figures) -> str:
    """Return the text of `pyproject.toml` with less room: limits lowered, floors raised.

    A figure without a limit gets one, a limit without a figure goes, and reasons stay. What is out
    of its limit stays out: raising is done by hand.
    """
    limits, floors = _rows(project, "limits"), _rows(project, "floors")
    new_limits, new_floors = [], []
    for name, figure in figures.items():
        if name in floors:
            value, reason = floors[name]
            new_floors.append(f'"{name}" = {max(figure, value)}{reason}')
        elif name not in UNLIMITED:
            value, reason = limits.get(name, (figure, ""))
            new_limits.append(f'"{name}" = {min(figure, value)}{reason}')
    return _with_rows(_with_rows(project, "limits", new_limits), "floors", new_floors)


def _rows(project: str, name: str) -> dict[str, tuple[float, str]]:
    """Return each value of a table, and what stands behind it in its line."""
    _, _, rest = project.partition(f"[tool.hearthbot.{name}]\n")
    rows = ROW.finditer(rest.partition("\n\n")[0])
    return {
        row["name"]: (
            float(row["value"]) if "." in row["value"] else int(row["value"]),
            row["reason"],
        )
        for row in rows
    }


def _with_rows(project: str, name: str, rows: Iterable[str]) -> str:
    head, title, rest = project.partition(f"[tool.hearthbot.{name}]\n")
    _, gap, tail = rest.partition("\n\n")
    return head + title + "\n".join(rows) + (gap or "\n") + tail
