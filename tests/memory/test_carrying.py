"""What is remembered, taken out and brought in again: whole, bounded, and never somebody else's."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memory.facts.export import Transfer
from memory.records.erasure import FILE_BYTES_MAX, CarryingRefused
from memory.records.facts import StoredFact, Storing, Whose
from tests.memory.facts_kit import fact as a_fact
from tests.memory.forgetting_kit import (
    ANN,
    BEN,
    CANARY,
    FACT,
    Opened,
    database_of,
    opened_home,
    premises,
    wish,
)
from tests.memory.kit import START_MS, rows

Made = dict[str, Any]


def carrying(opened: Opened, root: Path) -> Transfer:
    return Transfer(opened.database, premises(root))


def written(path: Path, carried: Made) -> Path:
    path.write_text(json.dumps(carried))
    return path


def fact(**values: object) -> Made:
    usual: Made = {
        "id": 7,
        "text": "Ann plays the oboe.",
        "category": "background",
        "valid_from_ms": START_MS,
        "created_ms": START_MS,
    }
    return {**usual, **values}


def a_file(*facts: Made, **more: object) -> Made:
    head = {"format": "hearthbot-memory", "version": 1, "made_ms": START_MS}
    return {**head, "facts": list(facts), **more}


async def moved(opened: Opened) -> None:
    """A correction: a fact, and the one that replaced it."""
    for text in ("Ann lives in Oslo.", "Ann moved to Bergen."):
        new = replace(a_fact(text, Whose(person_id=ANN)), quote="as I said")
        stored = await opened.facts.store(new)
    assert stored.outcome is Storing.SUPERSEDED


async def held(opened: Opened) -> list[str]:
    return [one.text for one in await opened.facts.list(Whose(person_id=ANN))]


async def test_all_of_a_person_is_taken_out_with_what_no_longer_holds(home: Path) -> None:
    async with opened_home(home) as opened:
        await moved(opened)
        await opened.facts.forget(Whose(person_id=ANN), [1])
        carried = await carrying(opened, home).export(ANN, is_owner=True)

    assert [one["text"] for one in carried["facts"]] == [
        "Ann lives in Oslo.",
        "Ann moved to Bergen.",
    ]
    assert carried["facts"][0]["superseded_by"] == carried["facts"][1]["id"]
    assert carried["facts"][0]["quote"] == "as I said"
    assert carried["profile"]["name"] == "Ann"
    assert carried["profile_history"][0]["path"] == "preferences.keys"
    assert [one["name"] for one in carried["documents"]] == ["house.md"]
    assert [one["path"] for one in carried["notes"]] == ["MEMORY.md", "202607/20260731.md"]
    assert carried["forgotten"] == 1
    assert CANARY not in json.dumps(carried)


async def test_taken_out_and_brought_in_elsewhere_it_is_the_same(
    home: Path, tmp_path: Path
) -> None:
    async with opened_home(home) as opened:
        await moved(opened)
        first = await carrying(opened, home).export(ANN, is_owner=True)
    other = tmp_path / "other"

    async with opened_home(other) as opened:
        taken = await carrying(opened, other).load(
            ANN, written(tmp_path / "ann.json", first), is_owner=True
        )
        second = await carrying(opened, other).export(ANN, is_owner=True)
        current = await opened.facts.list(Whose(person_id=ANN))
        past = await opened.facts.past(Whose(person_id=ANN), current[0].id)

    assert (taken.stored, taken.refreshed, taken.refused, taken.left) == (3, 0, [], [])
    assert [one.text for one in past] == ["Ann lives in Oslo."]
    unlike = ("id", "superseded_by", "source")

    def told(carried: Made) -> list[Made]:
        facts = sorted(carried["facts"], key=lambda one: str(one["text"]))
        return [{k: v for k, v in one.items() if k not in unlike} for one in facts]

    assert told(second) == told(first)
    for part in ("profile", "profile_history", "documents", "notes"):
        assert second[part] == first[part], part


async def test_brought_in_twice_it_is_there_once(home: Path, tmp_path: Path) -> None:
    async with opened_home(home) as opened:
        await moved(opened)
        carries = carrying(opened, home)
        before = await carries.export(ANN, is_owner=True)
        file = written(tmp_path / "ann.json", before)

        taken = await carries.load(ANN, file, is_owner=True)

        after = await carries.export(ANN, is_owner=True)
    assert (taken.stored, taken.refreshed) == (0, 3)
    assert len(after["facts"]) == 3
    assert taken.left == []


async def test_what_is_newer_here_is_not_replaced_by_a_file(home: Path, tmp_path: Path) -> None:
    old = fact(text="Ann moved to Bergen.", valid_from_ms=START_MS - 10_000)
    async with opened_home(home) as opened:
        await opened.facts.store(a_fact("Ann lives in Oslo.", Whose(person_id=ANN)))
        await carrying(opened, home).load(
            ANN, written(tmp_path / "f.json", a_file(old)), is_owner=True
        )

        assert await held(opened) == ["Ann lives in Oslo.", FACT]
        (current, _) = await opened.facts.list(Whose(person_id=ANN))
        past: list[StoredFact] = list(await opened.facts.past(Whose(person_id=ANN), current.id))
    assert [one.text for one in past] == ["Ann moved to Bergen."]


async def test_what_was_forgotten_does_not_come_back_by_a_file(home: Path, tmp_path: Path) -> None:
    async with opened_home(home) as opened:
        carries = carrying(opened, home)
        file = written(tmp_path / "ann.json", await carries.export(ANN, is_owner=True))
        await opened.forgetting.forget(wish(facts=(1,)))

        taken = await carries.load(ANN, file, is_owner=True)

        assert await held(opened) == []
    assert [(one.text, one.why) for one in taken.refused] == [(FACT, "it was to be forgotten")]


async def test_secrets_in_a_file_are_refused_one_by_one(home: Path, tmp_path: Path) -> None:
    key = "Ann's key is sk-proj-" + "a1B2c3D4" * 5
    async with opened_home(home) as opened:
        taken = await carrying(opened, home).load(
            ANN, written(tmp_path / "f.json", a_file(fact(text=key), fact(id=8))), is_owner=True
        )

    assert taken.stored == 1
    assert len(taken.refused) == 1


async def test_whatever_a_file_says_it_is_for_the_person_who_asked(
    home: Path, tmp_path: Path
) -> None:
    file = written(tmp_path / "f.json", a_file(fact(), person_id=ANN))
    async with opened_home(home) as opened:
        await carrying(opened, home).load(BEN, file, is_owner=False)

        assert await held(opened) == [FACT]
        assert [one.text for one in await opened.facts.list(Whose(person_id=BEN))] == [
            "Ann plays the oboe."
        ]


async def test_notes_in_a_file_lead_nowhere_else(home: Path, tmp_path: Path) -> None:
    paths = ["../x.md", "people/p_ben/MEMORY.md", "/etc/x.md", "a/b/c.md"]
    notes = [{"path": path, "text": "x"} for path in paths]
    file = written(tmp_path / "f.json", a_file(notes=notes))
    async with opened_home(home) as opened:
        taken = await carrying(opened, home).load(ANN, file, is_owner=True)

    assert (taken.notes, taken.left) == ([], [f"notes {path}" for path in paths])


BROKEN: dict[str, tuple[str | bytes | Made, str]] = {
    "no JSON": ("{\n\n  nothing", "line 3, column 3"),
    "no text": (b"\xff\xfe\x00", "no text in UTF-8"),
    "something else": ([], "not what `hearthbot memory export` writes"),  # type: ignore[dict-item]
    "a later version": ({**a_file(), "version": 2}, "version 2"),
    "a wrong category": (a_file(fact(), fact(id=8, category="x")), r"facts\[1\].category"),
    "an empty text": (a_file(fact(text="")), r"facts\[0\].text"),
    "too long a text": (a_file(fact(text="x" * 501)), r"facts\[0\].text"),
    "a time that is none": (a_file(fact(valid_from_ms=-1)), r"facts\[0\].valid_from_ms"),
    "an unknown field": (a_file(fact(colour="red")), r"facts\[0\].colour"),
    "an id twice": (a_file(fact(), fact()), "the same id"),
    "a circle": (
        a_file(
            fact(id=1, superseded_by=2, valid_to_ms=1), fact(id=2, superseded_by=1, valid_to_ms=1)
        ),
        "replaces itself",
    ),
    "a wrong profile": (a_file(fact(), profile={"languages": 5}), "profile"),
    "nested": ("[" * 100_000, "nested|not what"),
}


async def test_a_broken_file_changes_nothing_and_says_where(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "f.json"
    queries = ("select * from facts", "select * from profiles", "select * from documents")
    async with opened_home(home) as opened:
        before = [rows(database_of(home), query) for query in queries]
        for content, told in BROKEN.values():
            if isinstance(content, bytes):
                file.write_bytes(content)
            else:
                file.write_text(content if isinstance(content, str) else json.dumps(content))

            with pytest.raises(CarryingRefused, match=told):
                await carrying(opened, home).load(ANN, file, is_owner=True)

            assert [rows(database_of(home), query) for query in queries] == before


async def test_a_file_that_is_not_there_or_too_large_is_not_read(
    home: Path, tmp_path: Path
) -> None:
    large = tmp_path / "large.json"
    with large.open("wb") as file:
        file.truncate(FILE_BYTES_MAX + 1)
    async with opened_home(home) as opened:
        for path, told in [(tmp_path / "none.json", "cannot be read"), (large, "at most")]:
            with pytest.raises(CarryingRefused, match=told):
                await carrying(opened, home).load(ANN, path, is_owner=True)
