"""The pages tell the truth: links, keys, lists, quoted messages, pictures, and every command."""

from __future__ import annotations

import ast
import asyncio
import re
import textwrap
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr

import agent.tools.groups.files
from agent.tools.arguments import parse_arguments
from agent.tools.groups.files import FileTools
from agent.tools.tool import Caller, tools_of
from agent.tools.workspace import Workspace
from bot.commands import table as commands
from bot.settings.example import example_toml
from bot.settings.load import dotted, load
from bot.settings.schema.settings import KEYS, SECTIONS, Settings
from docs.make_pictures import PICTURES, SCENES, make
from docs.make_table import shown, table
from memory.records.messages import Address, ConversationId, PersonId, Role, RunId
from tests.checkout import PACKAGES, PAGES, ROOT
from tests.thorough import THOROUGH

README = (ROOT / "README.md").read_text(encoding="utf-8")
README_BYTES_MAX = 8_192

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


# --- the glossary --------------------------------------------------------------------------------


def test_every_term_of_the_glossary_stands_in_what_it_links_to() -> None:
    page = ROOT / "docs" / "glossary.md"
    rows = re.findall(r"^\| \[([^\]]+)\]\(([^)]+)\) \|", page.read_text("utf-8"), re.MULTILINE)
    terms = [term for term, _ in rows]

    missing = [
        term
        for term, link in rows
        if not re.search(rf"\b{_folded(term)}", _folded(_all_in((page.parent / link).resolve())))
    ]

    assert len(terms) > 50
    assert terms == sorted(terms)
    assert missing == []


def _folded(text: str) -> str:
    """Hyphens, underscores and ends of lines are spaces, so that `quiet_hours` is "quiet hours"."""
    return re.sub(r"[\s_#-]+", " ", text.lower())


def _all_in(place: Path) -> str:
    """What stands in a file, or in the modules of a folder."""
    files = sorted(place.rglob("*.py")) if place.is_dir() else [place]
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


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


def test_a_page_lists_exactly_the_commands_that_there_are() -> None:
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `/([a-z]+)` \| (.+?) \|$", page, re.MULTILINE)

    assert listed == [(command.name, command.help) for command in commands.COMMANDS]


def test_the_readme_is_short_enough_to_be_read() -> None:
    assert len(README.encode()) <= README_BYTES_MAX


def test_the_table_of_sub_packages_says_what_the_packages_say() -> None:
    assert shown() == table(), "`python -m docs.make_table` writes it anew"


# --- recipes -------------------------------------------------------------------------------------


async def test_the_tool_that_the_architecture_shows_is_one(tmp_path: Path) -> None:
    shown, _ = blocks(ROOT / "docs" / "architecture.md", "python")
    names: dict[str, Any] = {**vars(agent.tools.groups.files), "Kept": FileTools}
    exec(shown.replace("class FileTools:", "class FileTools(Kept):"), names)
    (tmp_path / "notes.md").write_text("one two three", encoding="utf-8")

    tools = {made.card.name: made for made in tools_of(names["FileTools"](Workspace(tmp_path)))}
    made = tools["count_words"]
    arguments = parse_arguments(made.card.arguments, '{"path": "notes.md"}')

    assert made.card.description == "Count the words of a workspace file."
    assert await made.run(arguments, CALLER) == "3 words"


def test_the_slash_command_that_the_architecture_shows_is_one_of_the_table() -> None:
    _, shown = blocks(ROOT / "docs" / "architecture.md", "python")
    code = Path(commands.__file__).read_text(encoding="utf-8")

    function, _, row = shown.partition("\n\n\n")

    assert function in code
    assert re.findall(r"^    Command.+\n", row, re.MULTILINE)[0] in code


def test_every_class_that_the_architecture_names_is_in_the_code() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([A-Z][a-z]+\w*)(?:\.(\w+))?`", page))
    files = [file for package in PACKAGES for file in (ROOT / package).rglob("*.py")]
    code = "\n".join(file.read_text(encoding="utf-8") for file in files)
    defined = set(re.findall(r"^\s*(?:class|def|async def) (\w+)", code, re.MULTILINE))

    assert len(named) > 20
    assert {name for pair in named for name in pair if name} - {"None"} <= defined


CALLER = Caller(
    person_id=PersonId("p1"),
    role=Role.OWNER,
    address=Address(channel="telegram", chat_id="5"),
    conversation=ConversationId("c1"),
    run_id=RunId("r1"),
)

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


# --- pictures ----------------------------------------------------------------------------------

SVG = "{http://www.w3.org/2000/svg}"
PICTURE_BYTES_MAX = 40_000

each_picture = pytest.mark.parametrize("name", sorted(SCENES))


def test_each_picture_that_is_made_is_on_a_page_and_no_other_is() -> None:
    shown = {
        Path(found[1]).name: found[0]
        for page in PAGES
        for found in re.findall(r"!\[([^\]]*)\]\(([^)]+\.svg)\)", page.read_text(encoding="utf-8"))
    }

    assert set(shown) == {f"{name}.svg" for name in SCENES}
    assert {file.name for file in PICTURES.glob("*.svg")} == set(shown)
    assert all(len(words) > 10 for words in shown.values()), "each is told in words too"


@each_picture
def test_a_picture_is_light_and_stands_alone(name: str) -> None:
    svg = (PICTURES / f"{name}.svg").read_text(encoding="utf-8")

    assert len(svg.encode()) < PICTURE_BYTES_MAX
    for fetched in ("http", "url(", "href", "@import", "<image", "<script", "@font-face"):
        assert fetched not in svg.replace('xmlns="http://www.w3.org/2000/svg"', ""), fetched


@each_picture
def test_a_picture_tells_in_words_all_that_it_shows(name: str) -> None:
    drawn = ET.parse(PICTURES / f"{name}.svg").getroot()
    told = "".join((drawn.findtext(f"{SVG}desc") or "").split())

    texts = ["".join(one.itertext()) for one in drawn.iter(f"{SVG}text")]
    missing = [text for text in texts if _only_words(text) not in told]

    assert drawn.get("role") == "img"
    assert len(drawn.findtext(f"{SVG}title") or "") > 20
    assert set(missing) <= {"A", "H", "hearth  APP", "Ann"}, "faces and names of writers"


def _only_words(text: str) -> str:
    return "".join(text.removeprefix("$ ").split())


@pytest.mark.parametrize("name", sorted(SCENES) if THOROUGH else ["approval"])
def test_a_picture_is_what_a_run_of_the_bot_says(name: str) -> None:
    drawn = asyncio.run(make(name))

    kept = (PICTURES / f"{name}.svg").read_text(encoding="utf-8")
    assert drawn == kept, f"the bot says other words now: python -m docs.make_pictures {name}"
