"""The checkout that the project-wide tests look at: its files, and the commands of its pages."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent

PACKAGES = ("bot", "agent", "memory", "scheduler")

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def tracked() -> list[Path]:
    """Every file that a clone has, and those that are about to be added."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    files = [ROOT / name for name in listed.stdout.split("\0") if name]
    return [file for file in files if file.is_file()]


def modules() -> set[str]:
    """The modules of the product, as paths; a package's own `__init__.py` goes without saying."""
    return {
        str(file.relative_to(ROOT))
        for package in PACKAGES
        for file in (ROOT / package).rglob("*.py")
        if file.name != "__init__.py"
    }
