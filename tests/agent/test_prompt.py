"""The assembled prompt: golden files, layers, templates, the persona, and where all of it stands.

A golden file that is out of date is written anew when it is deleted; the test then fails once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from agent.prompt.assemble import assemble
from agent.prompt.layers.instructions import bootstrap
from agent.prompt.templates import (
    PersonaSettings,
    PromptLibrary,
)
from agent.prompt.tokens import estimate_tokens
from bot.settings.home import shipped
from memory.records.errors import SettingsWrong
from memory.records.section import LayersSettings
from memory.records.transcript import ModelTraits
from tests.agent.house import (
    MEMBER,
    MEMBER_IN_GROUP,
    ON_CONSOLE,
    OWNER,
    OWNER_IN_GROUP,
    House,
    Somebody,
    model,
    sent_bytes,
)
from tests.agent.scenes import scene

GOLDEN = Path(__file__).parent / "golden"

WORKSPACE: Mapping[str, str] = {
    "AGENTS.md": "Speak plainly.\n",
    "SOUL.md": "You are curious.\n",
    "USER.md": "Ada likes tea.\n",
    "IDENTITY.md": "",
}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    for name, text in WORKSPACE.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def library(workspace: Path) -> PromptLibrary:
    return PromptLibrary(shipped("prompts"), workspace, PersonaSettings())


# --- the whole -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "by"),
    [
        ("telegram_private_owner", OWNER),
        ("telegram_group_member", MEMBER_IN_GROUP),
        ("console", ON_CONSOLE),
    ],
)
def test_the_assembled_prompt_is_as_reviewed(
    name: str, by: Somebody, library: PromptLibrary
) -> None:
    prompt = assemble(scene(by, library))

    text = f"{prompt.system}\n\n=== after the person's words ===\n\n{prompt.context}\n"
    golden = GOLDEN / f"{name}.txt"
    if not golden.exists():
        golden.write_text(text)
        pytest.fail(f"{golden.name} was not there and has been written: review it")
    assert text == golden.read_text()


async def test_the_first_hello_is_small(house: House) -> None:
    script = model("Hello!")

    async with house.opened(script):
        await house.say("hello")

    request = script.asked[0]
    sent = sent_bytes(request, house)
    assert len(request.tools) == 6
    assert len(sent) <= 10_000
    assert estimate_tokens(sent.decode()) <= 2_500


async def test_a_demo_model_gets_a_tiny_prompt_and_no_tools(house: House) -> None:
    script = model("Hi.", traits=ModelTraits(window=2_048, tools=False, demo=True))
    async with house.opened(script):
        await house.say("hello")

    assert script.asked[0].tools == ()
    assert len(sent_bytes(script.asked[0], house)) < 500


def test_the_system_message_does_not_change_with_the_moment(library: PromptLibrary) -> None:
    now = scene(OWNER, library)
    later = replace(now, now=now.now.replace(hour=23, day=4))

    assert assemble(now).system == assemble(later).system
    assert assemble(now).digest == assemble(later).digest
    assert assemble(now).context != assemble(later).context


async def test_with_turn_layers_in_the_system_message_no_block_is_sent_or_stored(
    house: House,
) -> None:
    house.layers = LayersSettings(turn_layers="system")
    house.host_zone = "UTC"
    script = model("Hello!")
    async with house.opened(script):
        await house.say("hello")

        assert [type(entry).__name__ for entry in await house.entries()] == ["Said", "Answered"]
    assert "## Current Date & Time\nMonday, August 3, 2026, 10:00 (UTC)" in script.asked[0].system


@pytest.mark.case("SE-17")
@pytest.mark.parametrize("by", [OWNER, ON_CONSOLE, MEMBER, OWNER_IN_GROUP, MEMBER_IN_GROUP])
def test_what_is_known_of_the_owner_is_shown_to_the_owner_alone(
    by: Somebody, library: PromptLibrary
) -> None:
    shown = "Ada likes tea." in assemble(scene(by, library)).system

    assert shown == (by in (OWNER, ON_CONSOLE))


def test_a_fixed_language_replaces_the_rule(library: PromptLibrary) -> None:
    fixed = assemble(scene(OWNER, library, fixed_language="Polish")).system

    assert "Reply in Polish." in fixed
    assert library.texts()["language_auto"].strip() not in fixed


def _language(
    by: Somebody, library: PromptLibrary, *, fixed: str = "", own: str = "", hint: str = ""
) -> str:
    """The line under the heading, of a turn with these languages."""
    made = scene(by, library, fixed_language=fixed)
    made = replace(made, turn=replace(made.turn, language=own, language_hint=hint))
    _, _, after = assemble(made).system.partition("## Language and format\n")
    return after.partition(" Write only")[0]


BY_MESSAGE = "Reply in the language of the person's own message."


@pytest.mark.parametrize(
    ("fixed", "own", "hint", "said"),
    [
        ("", "", "", BY_MESSAGE),
        ("", "de", "fr", "Reply in German."),
        ("Polish", "de", "fr", "Reply in German."),
        ("Polish", "", "fr", "Reply in Polish."),
        ("pl", "", "", "Reply in Polish."),
        ("Sorbian", "", "", "Reply in Sorbian."),
        ("Polish", "auto", "", BY_MESSAGE),
        ("", "", "fr", f"{BY_MESSAGE} Where no words of theirs show one, write in French."),
        ("", "auto", "fr", f"{BY_MESSAGE} Where no words of theirs show one, write in French."),
        ("", "no language", "## no code", BY_MESSAGE),
    ],
)
def test_a_persons_own_language_wins_and_a_platforms_word_only_stands_in(
    fixed: str, own: str, hint: str, said: str, library: PromptLibrary
) -> None:
    assert _language(OWNER, library, fixed=fixed, own=own, hint=hint) == said


def test_in_a_group_no_persons_language_counts(library: PromptLibrary) -> None:
    def said(fixed: str) -> str:
        return _language(MEMBER_IN_GROUP, library, fixed=fixed, own="de", hint="fr")

    assert said("") == BY_MESSAGE
    assert said("Polish") == "Reply in Polish."


# --- bootstrap files -----------------------------------------------------------------------------


def test_a_long_bootstrap_file_keeps_its_head_and_tail(library: PromptLibrary) -> None:
    text = "a" * 30_000 + "z" * 30_000

    layer = bootstrap(scene(OWNER, library, bootstrap={"AGENTS.md": text}))

    assert layer is not None
    assert layer.text.startswith("## AGENTS.md\n" + "a" * 14_000 + "\n")
    assert layer.text.endswith("\n" + "z" * 4_000)
    assert "[… 42,000 characters left out …]" in layer.text
    assert len(layer.text) < 20_000


# --- the base chain ------------------------------------------------------------------------------


def test_the_base_is_the_first_of_the_chain_that_has_text(workspace: Path) -> None:
    persona_dir = workspace / "agents" / "default"
    persona_dir.mkdir(parents=True)
    (persona_dir / "instructions.md").write_text("from the persona folder")
    (workspace / "own.md").write_text("from the file")
    (workspace / "blank.md").write_text(" \n")

    def base(**settings: object) -> str:
        persona = PersonaSettings(**settings)  # type: ignore[arg-type]
        return PromptLibrary(shipped("prompts"), workspace, persona).base()[0]

    own, blank = workspace / "own.md", workspace / "blank.md"
    assert base(system_prompt="in words", system_prompt_file=own) == "in words"
    assert base(system_prompt=" ", system_prompt_file=own) == "from the file"
    assert base(system_prompt_file=blank) == "from the persona folder"
    assert base() == "from the persona folder"
    assert base(persona_dir=workspace) == (shipped("prompts") / "system.md").read_text()


def test_a_persona_that_changes_is_read_again(workspace: Path) -> None:
    own = workspace / "own.md"
    own.write_text("first")
    library = PromptLibrary(shipped("prompts"), workspace, PersonaSettings(system_prompt_file=own))

    first = library.base()[0]
    own.write_text("then another")

    assert (first, library.base()[0]) == ("first", "then another")


def test_the_extra_text_follows_the_base_after_a_blank_line(workspace: Path) -> None:
    (workspace / "prompts").mkdir()
    (workspace / "prompts" / "system_extra.md").write_text("And be kind.\n")
    library = PromptLibrary(shipped("prompts"), workspace, PersonaSettings(system_prompt="Base."))

    assert assemble(scene(OWNER, library)).system.startswith("Base.\n\nAnd be kind.\n\n## Acting")


# --- templates -----------------------------------------------------------------------------------


@pytest.fixture
def copies(tmp_path: Path) -> Path:
    """The shipped prompts, where they may be broken."""
    folder = tmp_path / "shipped"
    folder.mkdir()
    for path in shipped("prompts").glob("*.md"):
        (folder / path.name).write_text(path.read_text())
    return folder


def test_the_shipped_templates_pass_their_check(library: PromptLibrary) -> None:
    library.check()


@pytest.mark.parametrize(("name", "text"), [("system", None), ("heartbeat", ""), ("demo", " \n")])
def test_a_template_that_is_missing_or_empty_is_named_with_its_path(
    copies: Path, workspace: Path, name: str, text: str | None
) -> None:
    path = copies / f"{name}.md"
    path.unlink() if text is None else path.write_text(text)

    with pytest.raises(SettingsWrong, match=f"{path}: this prompt is missing or empty"):
        PromptLibrary(copies, workspace, PersonaSettings()).check()


def test_a_template_without_its_placeholder_is_refused(copies: Path, workspace: Path) -> None:
    (copies / "language.md").write_text("Write well. {{FORMAT}}")

    with pytest.raises(SettingsWrong, match=r"language\.md: lacks the placeholder {{LANGUAGE}}"):
        PromptLibrary(copies, workspace, PersonaSettings()).check()


def test_the_workspaces_copy_wins_and_is_the_one_that_is_blamed(workspace: Path) -> None:
    mine = workspace / "prompts" / "acting.md"
    mine.parent.mkdir()
    mine.write_text("Act, do not talk.")
    library = PromptLibrary(shipped("prompts"), workspace, PersonaSettings())

    assert "## Acting\nAct, do not talk." in assemble(scene(OWNER, library)).system
    mine.write_text("")
    with pytest.raises(SettingsWrong, match=f"{mine}: this prompt is missing or empty"):
        library.check()


def test_a_persona_file_that_is_not_there_is_refused(workspace: Path) -> None:
    persona = PersonaSettings(system_prompt_file=workspace / "nowhere.md")

    with pytest.raises(SettingsWrong, match=r"nowhere\.md"):
        PromptLibrary(shipped("prompts"), workspace, persona).check()
