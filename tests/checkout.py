"""The checkout that the project-wide tests look at: its files, and the commands of its pages."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent

PACKAGES = ("bot", "agent", "memory", "scheduler")

LEFTOVERS = {".pyc", ".db", ".whl"}

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def tracked() -> list[Path]:
    """Every file that a clone has, and those that are about to be added.

    Where there is no git, or it will not look (another user's checkout), what lies there counts.
    """
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (FileNotFoundError, subprocess.CalledProcessError):
        return [file for file in _walked(ROOT) if file.is_file()]
    files = [ROOT / name for name in listed.stdout.split("\0") if name]
    return [file for file in files if file.is_file()]


def _walked(folder: Path) -> Iterator[Path]:
    for entry in sorted(folder.iterdir()):
        if entry.is_dir() and not entry.is_symlink():
            if entry.name == ".ci" or not entry.name.startswith((".", "__")):
                yield from _walked(entry)
        elif not entry.name.startswith(".") and entry.suffix not in LEFTOVERS:
            yield entry
