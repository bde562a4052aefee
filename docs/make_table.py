"""Writes the table of sub-packages in docs/architecture.md: `python -m docs.make_table`.

A row is what the `__init__` of a package says: the first paragraph what it is for, the second what
it must never do.
"""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "architecture.md"
PACKAGES = ("bot", "scheduler", "agent", "memory")
HEAD = "| package | what it is for | what it must never do |\n|---|---|---|\n"


def table() -> str:
    """Return the rows of all packages, each below its parent."""
    folders = [
        file.parent.relative_to(ROOT)
        for package in PACKAGES
        for file in sorted((ROOT / package).rglob("__init__.py"))
    ]
    return HEAD + "".join(_row(folder) for folder in folders)


def _row(folder: Path) -> str:
    said = ast.get_docstring(ast.parse((ROOT / folder / "__init__.py").read_text("utf-8"))) or ""
    cells = [" ".join(paragraph.split()) for paragraph in said.split("\n\n")]
    return f"| [{folder}](../{folder}) | {' | '.join(cells)} |\n"


def shown() -> str:
    """Return the rows that the page shows."""
    page = PAGE.read_text(encoding="utf-8")
    _, head, rest = page.partition(HEAD)
    return head + rest.partition("\n\n")[0] + "\n"


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(text.replace(shown(), table()), encoding="utf-8")
