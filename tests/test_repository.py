"""What no committed file may hold, and what every one must."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.checkout import PACKAGES, ROOT, tracked

TEXT_ENDINGS = {".py", ".md", ".toml", ".txt", ".sql", ".svg", ".yaml", ".yml", ".json", ".sh", ""}

REGISTRY = re.compile(
    # Not written out: no file names such a host, this one included.
    r"(?:py[p]i\.org|python[h]osted\.org|npm[j]s\.(?:org|com)|registry\.[a-z]|/simple/"
    r"|(?:extra-)?index-url\s*[= ]\s*http)"
)
"""Addresses of package servers: whoever installs brings their own, and the lock has hashes."""

MACHINE = re.compile(r"(?<![\w.~-])/(?:root|work|Users|home/(?!(?:you|bot)\b)[a-z]\w*)/")
"""Paths of somebody's own machine."""


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """All text files, by their path in the checkout. This one names what it looks for."""
    files = [file for file in tracked() if file.suffix in TEXT_ENDINGS and file != Path(__file__)]
    return {str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in files}


def lines_with(pattern: re.Pattern[str], texts: dict[str, str]) -> list[str]:
    """Where a pattern occurs, as one would click on it."""
    return [
        f"{name}:{number}: {line.strip()[:100]}"
        for name, text in texts.items()
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]


def test_no_file_names_a_package_server(texts: dict[str, str]) -> None:
    assert lines_with(REGISTRY, texts) == []


def test_no_file_names_a_path_of_somebodys_machine(texts: dict[str, str]) -> None:
    assert lines_with(MACHINE, texts) == []


def test_no_file_holds_a_key_or_a_conflict_mark(texts: dict[str, str]) -> None:
    key = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----|^(?:<{7}|>{7}) ")

    assert lines_with(key, texts) == []


def test_every_text_file_ends_with_one_line_end(texts: dict[str, str]) -> None:
    loose = [name for name, text in texts.items() if text and not re.search(r"[^\n]\n\Z", text)]

    assert [name for name in loose if not name.endswith("HEARTBEAT.md")] == []


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        str(file.relative_to(ROOT))
        for package in (*PACKAGES, "docs")
        for file in (ROOT / package).rglob("*.py")
        if not file.read_text(encoding="utf-8").lstrip().startswith(('"""', 'r"""'))
    ]

    assert silent == []


def test_a_packages_init_holds_a_docstring_and_no_code() -> None:
    for package in PACKAGES:
        for file in (ROOT / package).rglob("__init__.py"):
            assert re.fullmatch(r'"""[^"]+"""\n', file.read_text(encoding="utf-8")), file
