"""The pages tell the truth: links, keys, lists, the map, quoted messages, and every command."""

from __future__ import annotations

import ast
import re
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel, SecretStr

from bot import commands
from bot.config import KEYS, SECTIONS, Settings
from bot.config_example import example_toml
from bot.config_reading import dotted, load
from tests.checkout import PACKAGES, PAGES, ROOT, modules

README = (ROOT / "README.md").read_text(encoding="utf-8")

page_by_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of a page in one language, those within lists included."""
    text = page.read_text(encoding="utf-8")
    found = re.finditer(rf"^( *)```{language}\n(.*?)^\1```$", text, re.MULTILINE | re.DOTALL)
    return [textwrap.dedent(block[2]) for block in found]


def prose(page: Path) -> str:
    """A page without its fenced blocks."""
    return re.sub(
        r"^ *```.*?^ *```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )


# --- links -------------------------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    """The headings of a page as a link names them."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    words = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.strip().replace(" ", "-") for heading in words}


@page_by_page
def test_every_link_within_the_project_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", prose(page))
    inside = [link for link in links if not re.match(r"https?://", link)]

    for link in inside:
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_every_page_is_reached_from_the_readme() -> None:
    linked = set(re.findall(r"\]\(docs/([a-z_]+\.md)", README))

    assert {page.name for page in PAGES[1:]} == linked


# --- settings ----------------------------------------------------------------------------------

KEY_NAMES = {dotted(path) for path in KEYS}

VARIABLES = {"HEARTHBOT_HOME", *("HEARTHBOT_" + "__".join(path).upper() for path in KEYS)}


@page_by_page
def test_every_setting_that_a_page_names_exists(page: Path) -> None:
    sections = "|".join(re.escape(dotted(path)) for path in SECTIONS)
    named = re.findall(
        rf"`((?:{sections})\.[a-z_]+)(?: = [^`]*)?`", page.read_text(encoding="utf-8")
    )

    assert {name for name in named if not name.endswith(".py")} <= KEY_NAMES


@page_by_page
def test_every_variable_that_a_page_names_exists(page: Path) -> None:
    named = re.findall(r"\bHEARTHBOT_[A-Z_]*[A-Z]", page.read_text(encoding="utf-8"))

    assert set(named) <= VARIABLES | {"HEARTHBOT_SECTION__KEY", "HEARTHBOT_THOROUGH"}


@page_by_page
def test_every_piece_of_configuration_that_a_page_shows_is_accepted(
    page: Path, tmp_path: Path
) -> None:
    for number, block in enumerate(blocks(page, "toml")):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "config.toml").write_text(block, encoding="utf-8")
        load(folder, {})


def test_the_example_shows_every_key_with_its_default() -> None:
    uncommented = re.sub(r"^#(?=[a-z_]+ = )", "", example_toml(), flags=re.MULTILINE)

    shown = tomllib.loads(uncommented)

    assert shown == plain(Settings())


def plain(value: object) -> object:
    """Settings as a TOML file would hold them."""
    match value:
        case BaseModel():
            return {name: plain(getattr(value, name)) for name in type(value).model_fields}
        case SecretStr():
            return value.get_secret_value()
        case tuple():
            return list(value)
        case _:
            return value


# --- lists -------------------------------------------------------------------------------------


def test_the_readme_lists_exactly_the_commands_that_there_are() -> None:
    listed = re.findall(r"^\| `/([a-z]+)` \| (.+?) \|$", README, re.MULTILINE)

    assert listed == [(command.name, command.help) for command in commands.COMMANDS]


def mapped() -> set[str]:
    """The modules in the README's map: a tree of names, two blanks a level, words after two."""
    _, _, after = README.partition("## The map")
    tree = after.partition("```text\n")[2].partition("```")[0]
    found: set[str] = set()
    folders: list[str] = []
    for line in tree.splitlines():
        if not line.strip() or line.startswith(" " * 16):  # a line that goes on
            continue
        depth = (len(line) - len(line.lstrip())) // 2
        names = re.split(r" {2,}", line.strip())[0].split()
        folders[depth:] = [names[0].rstrip("/")] if names[0].endswith("/") else []
        found |= {"/".join([*folders[:depth], name]) for name in names if name.endswith(".py")}
    return found


def test_the_map_shows_every_module_and_no_other() -> None:
    shown = {path for path in mapped() if path.partition("/")[0] in PACKAGES}

    assert sorted(modules() - shown) == [], "not in the README's map"
    assert sorted(shown - modules()) == [], "in the README's map, and gone"


# --- quoted messages ---------------------------------------------------------------------------


def sentences_of_the_code() -> str:
    """All texts in the code and the prompts, pieces that follow each other joined."""
    files = [file for package in PACKAGES for file in (ROOT / package).rglob("*.py")]
    texts = [text for file in files for text in _texts(ast.parse(file.read_text("utf-8")))]
    return "\n".join(texts)


def _texts(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield " ".join(node.value.split())
        elif isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
            yield " ".join("".join(map(str, parts)).split())


def test_every_message_that_troubleshooting_explains_is_one_that_the_bot_gives() -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    said = sentences_of_the_code()
    quoted = re.findall(r"^### (.+)$", page, re.MULTILINE)

    pieces = [piece.strip() for heading in quoted for piece in heading.split("…")]

    assert len(quoted) > 10
    assert [piece for piece in pieces if piece and piece not in said] == []
