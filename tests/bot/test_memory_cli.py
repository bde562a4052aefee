"""`hearthbot memory`, as somebody types it: where no bot runs, and beside one that does."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path

import pytest

from bot.people.access import Access
from bot.settings.home import Home, prepare
from memory.stores.people import SqlitePeople
from tests.bot.cli.cli_kit import Group, alone, beside_a_bot
from tests.bot.memory_kit import opened_chat
from tests.memory.forgetting_kit import (
    ANN,
    BEN,
    FACT,
    SECRET,
    TRACES_OF_IT,
    changed,
    files_with,
    lived_in,
)

Place = Callable[[Home], AbstractContextManager[None]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("made")


@pytest.fixture
def home(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    home = Home(lived_in(made, tmp_path / "home"))
    monkeypatch.setenv("HEARTHBOT_HOME", str(home.path))
    monkeypatch.setenv("HEARTHBOT_MEMORY__EMBEDDINGS", "false")
    prepare(home)
    return home


MEMORY = Group("memory")
said, answer, refused = MEMORY.said, MEMORY.answer, MEMORY.refused


def texts(*words: str) -> list[str]:
    return [fact["text"] for fact in answer(*words)["facts"]]


def beside(home: Home) -> AbstractContextManager[None]:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Mapping[str, object]]:
        async with opened_chat(home.path) as chat:
            access = Access(
                SqlitePeople(chat.opened.database),
                policy="pairing",
                allowed=(),
                clock=chat.clock,
            )
            await access.load()
            memory = chat.memory
            yield {
                "access": access,
                "memory": memory,
                "facts": memory.facts,
                "forgetting": memory.forgetting,
                "transfer": memory.transfer,
            }

    return beside_a_bot(home, opened)


@pytest.fixture(params=[alone, beside])
def place(request: pytest.FixtureRequest) -> Place:
    found: Place = request.param
    return found


def test_facts_are_listed_shown_searched_and_corrected(home: Home, place: Place) -> None:
    with place(home):
        assert said("list") == f"f1\tbackground\t2026-08-01\t\t\tmessage\t{FACT}\n"
        assert SECRET in said("show", "f1")
        assert texts("search", "spare key") == [FACT]
        edited = answer("edit", "f1", "Ann keeps the key with Sue.")
        assert (edited["outcome"], edited["replaced"]["key"]) == ("superseded", "f1")
        assert texts("list") == ["Ann keeps the key with Sue."]
        assert texts("list", "--past") == [FACT]
        shown = answer("show", "f2")
        assert [one["key"] for one in shown["past"]] == ["f1"]


def test_what_was_known_on_a_day_is_shown(home: Home) -> None:
    day = 86_400_000
    changed(home.path, "update facts set valid_to_ms = valid_from_ms + ?", 3 * day)

    assert texts("list") == []
    assert texts("list", "--as-of", "2026-08-01") == [FACT]
    assert texts("list", "--as-of", "2026-08-03T12:00:00+00:00") == [FACT]
    assert texts("list", "--as-of", "2026-07-31") == []
    assert texts("list", "--as-of", "2026-08-05") == []


def test_forgetting_shows_each_place_and_proves_it(home: Home, place: Place) -> None:
    with place(home):
        told = said("forget", "f1", "--yes")
    assert "workspace/memory/MEMORY.md" in told
    assert "- erased: 1 fact" in told
    assert "Forgotten, and looked for:" in told
    assert files_with(home.path, *TRACES_OF_IT) == []


def test_forgetting_as_json_is_the_proof_alone(home: Home) -> None:
    proof = answer("forget", "zinc", "tub", "--yes")

    assert proof["ok"]
    assert proof["erased"]["facts"] == 1
    assert proof["hits"] == []
    assert proof["files"] > 5


def test_what_still_stands_somewhere_is_a_failure(home: Home) -> None:
    (home.logs / "old.log").write_text(SECRET)

    told = MEMORY.typed("forget", "f1", "--yes").stdout

    assert "Not forgotten everywhere:" in told
    assert "logs/old.log" in told


def test_other_files_are_named_and_blanked_when_asked(home: Home) -> None:
    letter = home.workspace / "letter.txt"
    letter.write_text(f"Dear Sue, {SECRET}.")

    assert "workspace/letter.txt" in said("forget", "f1", "--yes")
    assert letter.read_text() == f"Dear Sue, {SECRET}."
    blanked = said("forget", SECRET, "--yes", "--files")
    assert "- the words were blanked in other files: workspace/letter.txt" in blanked
    assert "files of notes" not in blanked
    assert letter.read_text() == "Dear Sue, [forgotten]."


def test_what_cannot_be_erased_right_now_is_refused_before_anybody_is_asked(
    home: Home,
) -> None:
    changed(home.path, "update turns set ended_ms = null where rowid = 1")

    assert "is waited for" in " ".join(refused("forget", "f1", "--yes").split())

    assert texts("list") == [FACT]


def test_nobody_to_ask_needs_a_yes(home: Home) -> None:
    assert "add --yes" in refused("forget", "f1", code=2)
    assert texts("list") == [FACT]


def test_what_is_not_there_is_said(home: Home) -> None:
    assert "no fact 'f9'" in refused("forget", "f9", "--yes")
    assert "no fact 'x'" in refused("show", "x")
    assert "nobody is called that" in refused("list", "--person", "Zoe")
    assert "Nothing of this person" in said("forget", "velvet trombone", "--yes")
    assert "too short" in refused("forget", "abc", "--yes")
    assert said("search", "velvet trombone", "--person", BEN) == ""


@pytest.mark.parametrize(
    "wrong",
    [
        ["list", "--as-of", "yesterday"],
        ["list", "--as-of", "2026-08-01", "--past"],
        ["search", " "],
        ["edit", "f1", " "],
        ["export", "--format", "pdf"],
        ["import", "nowhere.json"],
        ["forget"],
    ],
)
def test_wrong_usage_is_said_and_opens_nothing(home: Home, wrong: list[str]) -> None:
    refused(*wrong, code=2)


def test_all_is_taken_out_and_brought_in(home: Home, place: Place, tmp_path: Path) -> None:
    out = tmp_path / "ann.json"
    with place(home):
        assert "1 facts, 1 documents, 2 notes" in said("export", "--out", str(out))
        assert "there already" in refused("export", "--out", str(out))
        printed = json.loads(said("export"))
        reading = said("export", "--format", "md")
        taken = answer("import", str(out))
        broken = tmp_path / "broken.json"
        broken.write_text("{\n oops")
        assert "line 2, column 2" in refused("import", str(broken))

    assert out.stat().st_mode & 0o777 == 0o600
    assert printed["facts"] == json.loads(out.read_text())["facts"]
    assert reading.startswith("# What Hearthbot remembers")
    assert (taken["stored"], taken["refreshed"]) == (0, 1)


def test_a_person_is_named_by_id_address_or_name(home: Home) -> None:
    for name in (ANN, "telegram:5", "ann", ""):
        assert texts("list", "--person", name) == [FACT]
    assert texts("list", "--person", "Ben") == []


def test_who_is_meant_is_told_by_name_and_by_the_id_only_where_two_have_it(home: Home) -> None:
    changed(home.path, f"update people set name = '' where id = '{ANN}'")

    nameless = said("forget", "f1", "--person", ANN, "--yes")
    unknown = refused("list", "--person", "Zoe")
    changed(home.path, "update people set name = 'Kim'")
    doubted = refused("list", "--person", "Kim")

    assert "What is kept of the owner, and" in nameless
    assert "There are: the owner, Ben." in " ".join(unknown.split())
    assert ANN not in nameless + unknown
    assert f"Kim ({ANN}), Kim ({BEN})" in " ".join(doubted.split())


def test_without_an_owner_it_says_how_to_get_one(home: Home) -> None:
    changed(home.path, "update people set role = 'member'")

    told = refused("list")

    assert "Talk with it here (`hearthbot chat`)" in told
    assert "`hearthbot init`" in told


# --- somebody who was removed ------------------------------------------------------------------


def test_what_is_kept_of_somebody_who_was_removed_is_shown_and_forgotten(
    home: Home,
) -> None:
    changed(
        home.path,
        """
        insert into facts (person_id, scope, text, category, confidence, source, valid_from_ms,
            created_ms) values ('p_gone', 'telegram:-100', 'Tim is getting divorced.',
            'background', 1.0, 'message', 1, 1)
        """,
    )
    assert texts("list", "--person", "p_gone") == ["Tim is getting divorced."]
    assert answer("forget", "everything", "--person", "p_gone", "--yes")["ok"]
    assert "nobody is called that" in refused("list", "--person", "p_gone")
    assert texts("list") == [FACT]
    assert files_with(home.path, "divorced") == []


def test_an_id_that_leads_elsewhere_is_nobody(home: Home) -> None:
    assert "nobody is called that" in refused("list", "--person", "../people")
