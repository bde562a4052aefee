"""What no committed file may hold, and what every one must."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from bot.settings.load import dotted
from bot.settings.schema.settings import KEYS
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


# --- names in prose ----------------------------------------------------------------------------

DOTTED = re.compile(r"`((?:bot|agent|memory|scheduler|tests)(?:\.\w+)+)(?:\(\))?`")


def test_every_dotted_name_in_prose_is_one_of_the_code(texts: dict[str, str]) -> None:
    """`agent.turn.engine.LocalEngine` in a docstring, a comment or a page. Settings are written
    alike, and so are names that stand in the code as a text: events of the log, a file."""
    prose = {name: text for name, text in texts.items() if name.endswith((".py", ".md"))}
    del prose["CHANGELOG.md"]  # tells of what was
    named = {
        (where, found[1])
        for where, text in prose.items()
        for found in DOTTED.finditer(text)
        if found[1] not in {dotted(key) for key in KEYS}
    }
    code = [text for name, text in prose.items() if name.endswith(".py")]
    unknown = {(where, name) for where, name in named if not _is_defined(name.split("."))}

    assert len(named) > 200
    assert [one for one in unknown if not any(f'"{one[1]}"' in text for text in code)] == []


def _is_defined(names: Sequence[str]) -> bool:
    """Whether a folder, a module, something in a module or a member of that is named so."""
    place = ROOT
    while names and (place / names[0]).is_dir():
        place, names = place / names[0], names[1:]
    if not names:
        return True
    module = place / f"{names[0]}.py"
    if not module.is_file():
        return False
    scope: ast.Module | ast.ClassDef = _parsed(module)
    for number, name in enumerate(names[1:]):
        # What a module holds stands at its top; a member may also be set in a method.
        inside = scope.body if number == 0 else ast.walk(scope)
        found = next((one for one in inside if name in _names_of(one)), None)
        if not isinstance(found, ast.ClassDef):
            return found is not None and number == len(names) - 2
        scope = found
    return True


@cache
def _parsed(module: Path) -> ast.Module:
    return ast.parse(module.read_text(encoding="utf-8"))


def _names_of(node: ast.AST) -> list[str]:
    match node:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return [name]
        case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
            return [ast.unparse(target).removeprefix("self.")]
        case _:
            return []
