"""Quick-insert texts: two places, bad entries skipped and named, no file that can break it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.prompt.snippets import FILE_BYTES_MAX, SNIPPETS_MAX, Snippet, Snippets, SnippetsRead
from tests.checkout import ROOT

GOOD = {"icon": "☀️", "message": "What is on today?"}
OWN = "workspace/prompts/snippets.json"
SHIPPED = "prompts/snippets.json"


class Home:
    """A folder of shipped prompts and a workspace."""

    def __init__(self, path: Path) -> None:
        self.shipped = path / "shipped" / "snippets.json"
        self.own = path / "workspace" / "prompts" / "snippets.json"
        for file in (self.shipped, self.own):
            file.parent.mkdir(parents=True, exist_ok=True)
        self.snippets = Snippets(shipped=path / "shipped", workspace=path / "workspace")

    def read(self) -> SnippetsRead:
        return self.snippets.read()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def write(file: Path, *entries: Any) -> None:
    file.write_text(json.dumps(entries, ensure_ascii=False), encoding="utf-8")


def messages(read: SnippetsRead) -> list[str]:
    return [snippet.message for snippet in read.snippets]


# --- where they come from ----------------------------------------------------------------------


def test_without_a_file_there_are_none_and_nothing_is_wrong(home: Home) -> None:
    assert home.read() == SnippetsRead()


def test_the_shipped_file_serves_while_the_workspace_has_none(home: Home) -> None:
    write(home.shipped, GOOD)

    read = home.read()

    assert read.file == SHIPPED
    assert read.snippets == (
        Snippet(icon="☀️", message="What is on today?", tooltip="What is on today?"),
    )


def test_the_workspaces_file_wins_as_a_whole(home: Home) -> None:
    write(home.shipped, GOOD, GOOD)
    write(home.own, {**GOOD, "message": "mine"})

    read = home.read()

    assert (messages(read), read.file) == (["mine"], OWN)


def test_an_empty_list_in_the_workspace_switches_the_shipped_ones_off(home: Home) -> None:
    write(home.shipped, GOOD)
    write(home.own)

    assert home.read() == SnippetsRead(file=OWN)


def test_a_byte_order_mark_is_no_obstacle(home: Home) -> None:
    home.own.write_bytes(b"\xef\xbb\xbf" + json.dumps([GOOD]).encode())

    assert messages(home.read()) == ["What is on today?"]


# --- tooltips ----------------------------------------------------------------------------------


def test_a_tooltip_is_the_beginning_of_the_message_unless_given(home: Home) -> None:
    long = "x" * 40 + "y" * 40
    write(
        home.own,
        {"icon": "a", "message": long},
        {"icon": "b", "message": long, "tooltip": "short"},
        {"icon": "c", "message": long, "tooltip": ""},
        {"icon": "d", "message": long, "tooltip": None},
    )

    tooltips = [snippet.tooltip for snippet in home.read().snippets]

    assert tooltips == [long[:50], "short", long[:50], long[:50]]


# --- what is wrong -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"message": "m"}, "icon is missing"),
        ({"icon": "i"}, "message is missing"),
        ({"icon": None, "message": "m"}, "icon is missing"),
        ({"icon": "i", "message": 5}, "message must be text"),
        ({"icon": " ", "message": "m"}, "icon is empty"),
        ({"icon": "123456789", "message": "m"}, "icon has 9 characters; there can be 8"),
        ({"icon": "i", "message": "m", "tooltip": 5}, "tooltip must be text"),
        ({"icon": "i\n", "message": "m"}, "icon holds a character that cannot be shown"),
        ({"icon": "i", "message": "a\x00b"}, "message holds a character that cannot be shown"),
        ("text", "must look like"),
    ],
)
def test_a_bad_entry_is_named_with_its_number_and_the_rest_serve(
    home: Home, entry: Any, why: str
) -> None:
    write(home.shipped, {**GOOD, "message": "shipped"})
    write(home.own, GOOD, entry, {**GOOD, "message": "last"})

    read = home.read()

    assert messages(read) == ["What is on today?", "last"]
    (problem,) = read.problems
    assert problem.startswith(f"{OWN}, entry 2: {why}")


def test_of_too_many_the_first_good_ones_serve(home: Home) -> None:
    many = [{**GOOD, "message": f"m{number}"} for number in range(30)]
    write(home.own, "bad", *many)

    read = home.read()

    assert messages(read) == [f"m{number}" for number in range(SNIPPETS_MAX)]
    first, last = read.problems
    assert first.startswith(f"{OWN}, entry 1: ")
    assert last == f"{OWN}, entry 22: left out, as all behind it: there can be 20"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b'[{"icon": "i",\n "message" "m"}]', "is not JSON: Expecting ':' delimiter (line 2, col"),
        (b"[" * 10_000, "is not JSON"),
        (b"[" + b"9" * 5000 + b"]", "is not JSON that can be read"),
        (b'[{"icon": "\xe9", "message": "m"}]', "is not UTF-8 text (byte 12)"),
        (b"{}", "must be a list"),
        (b" " * (FILE_BYTES_MAX + 1), "is larger than 65,536 bytes"),
    ],
)
def test_a_file_that_cannot_be_parsed_is_named_and_the_next_place_serves(
    home: Home, content: bytes, why: str
) -> None:
    write(home.shipped, GOOD)
    home.own.write_bytes(content)

    read = home.read()

    assert read.file == SHIPPED
    assert messages(read) == ["What is on today?"]
    (problem,) = read.problems
    assert problem.startswith(f"{OWN}: {why}")


def test_what_is_no_file_is_told_and_not_waited_for(home: Home) -> None:
    write(home.shipped, GOOD)
    os.mkfifo(home.own)
    pipe = home.read()
    home.own.unlink()
    home.own.mkdir()

    folder = home.read()

    for read in (pipe, folder):
        assert list(read.problems) == [f"{OWN}: is not a file"]
        assert messages(read) == ["What is on today?"]


# --- whatever stands there ---------------------------------------------------------------------

_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["icon", "message", "tooltip"]) | st.text(max_size=3), inner, max_size=4
        )
    ),
    max_leaves=20,
)


@given(content=st.binary(max_size=200) | _json.map(lambda value: json.dumps(value).encode()))
def test_no_bytes_ever_raise_and_what_comes_out_keeps_the_bounds(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    home = Home(tmp_path_factory.getbasetemp())
    write(home.shipped, GOOD)
    home.own.write_bytes(content)

    read = Snippets(shipped=home.shipped.parent, workspace=home.own.parent.parent).read()

    assert read.file in (OWN, SHIPPED)
    assert len(read.snippets) <= SNIPPETS_MAX
    for snippet in read.snippets:
        assert 0 < len(snippet.icon) <= 8
        assert 0 < len(snippet.message) <= 300
        assert snippet.tooltip
        f"{snippet}".encode()


# --- what is shipped ---------------------------------------------------------------------------


def test_the_shipped_snippets_are_all_usable() -> None:
    read = Snippets(shipped=ROOT / "prompts", workspace=ROOT / "no-such-workspace").read()

    assert read.problems == ()
    assert len(read.snippets) == 7
    assert len(set(messages(read))) == 7
