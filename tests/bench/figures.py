"""What was measured, beside the floors of the same run and what DESIGN §10 wants; and its table."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

PRODUCT = "hearthbot"
FLOORS = ("raw", "ptb")
COLUMNS = (PRODUCT, "must", "", *FLOORS, "× ptb", "unit", "note")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One line of the table. `must` is a limit; `at_least` says on which side of it to be."""

    name: str
    unit: str
    values: Mapping[str, float]
    must: float | None = None
    at_least: bool = False
    digits: int = 1
    note: str = ""

    @property
    def holds(self) -> bool | None:
        """Whether the product keeps to `must`, as the table shows it; None if nothing is wanted."""
        value = self.values.get(PRODUCT)
        if self.must is None or value is None:
            return None
        shown = round(value, self.digits)
        return shown >= self.must if self.at_least else shown <= self.must

    @property
    def to_ptb(self) -> float | None:
        """How many times what python-telegram-bot alone takes."""
        floor, value = self.values.get("ptb"), self.values.get(PRODUCT)
        return value / floor if floor and value is not None else None

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "unit": self.unit,
            "values": {who: round(value, 4) for who, value in self.values.items()},
            "must": self.must,
            "at_least": self.at_least,
            "holds": self.holds,
            "to_ptb": None if self.to_ptb is None else round(self.to_ptb, 2),
            "note": self.note,
        }

    def cells(self) -> list[str]:
        """The line as text, in the order of COLUMNS."""
        sign = "≥" if self.at_least else "≤"
        must = "" if self.must is None else f"{sign} {self._number(self.must)}"
        verdict = {True: "ok", False: "MISSED", None: ""}[self.holds]
        ratio = "" if self.to_ptb is None else f"{self.to_ptb:.1f}"
        floors = [self._shown(floor) for floor in FLOORS]
        shown = self._shown(PRODUCT)
        return [self.name, shown, must, verdict, *floors, ratio, self.unit, self.note]

    def _shown(self, who: str) -> str:
        value = self.values.get(who)
        return "" if value is None else self._number(value)

    def _number(self, value: float) -> str:
        return f"{value:,.{self.digits}f}"


@dataclass(slots=True)
class Report:
    """All that was found, in order."""

    figures: list[Figure] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def missed(self) -> list[str]:
        """The names of figures that are not what they must be, and of what gave none."""
        return [figure.name.strip() for figure in self.figures if figure.holds is False] + [
            f"{name} (failed)" for name in self.failed
        ]

    def print_json(self) -> None:
        found = {
            "figures": [figure.as_json() for figure in self.figures],
            "failed": self.failed,
            "remarks": self.remarks,
        }
        print(json.dumps(found, ensure_ascii=False, indent=1))

    def print_table(self) -> None:
        """Print it in columns, numbers to the right."""
        rows = [["", *COLUMNS], *(figure.cells() for figure in self.figures)]
        widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
        texts = {0, 3, len(widths) - 2, len(widths) - 1}
        for row in rows:
            cells = [
                cell.ljust(width) if n in texts else cell.rjust(width)
                for n, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            print("  ".join(cells).rstrip())
        for remark in self.remarks:
            print(remark)
        missed = self.missed()
        print(f"Missed: {', '.join(missed)}" if missed else "All that must hold holds.")
