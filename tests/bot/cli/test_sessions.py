"""`hearthbot sessions`, as somebody types it: where no bot runs, and beside one that does."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from bot.cli.sessions import list_sessions
from bot.commands.conversation import SessionService
from bot.settings.home import Home, prepare
from memory.database.connection import Database
from memory.records.transcript import Answered, Context, Entry, Note, Said, ToolCall, ToolResult
from memory.stores.conversations import SqliteConversations
from memory.stores.sessions import SqliteSessions
from scheduler.clock.machine import SystemClock
from tests.bot.cli.cli_kit import Group, alone, beside_a_bot, on_terminal
from tests.memory.history_kit import add_turns, talk
from tests.memory.kit import LANE, run

CALL = ToolCall(id="c", name="read_file", arguments="{}")
FIRST: list[Entry] = [
    Note(text="a note"),
    Said(text="Hello\x1b[31m there", sender="Ada\tB"),
    Context(text="<context>\nblock words\n</context>"),
    Answered(text="", calls=(CALL,)),
    ToolResult(call_id="c", content="long " * 100),
    Answered(text="Hi Ada."),
]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    home = Home(tmp_path / "home")
    monkeypatch.setenv("HEARTHBOT_HOME", str(home.path))
    prepare(home)
    asyncio.run(_filled(home))
    return home


async def _filled(home: Home) -> None:
    async with Database.open(home.database, clock=SystemClock()) as database:
        conversations = SqliteConversations(database, new_id=iter(("c_old", "c_now")).__next__)
        old = await conversations.current(LANE)
        await add_turns(database, old, [FIRST, talk("wöchentlich 你好")])
        now = await conversations.start_new(LANE)
        await add_turns(database, now, [talk("newer")])


SESSIONS = Group("sessions")
said, refused = SESSIONS.said, SESSIONS.refused


@asynccontextmanager
async def opened(home: Home) -> AsyncIterator[Mapping[str, object]]:
    async with Database.open(home.database, clock=SystemClock()) as database:
        yield {"sessions": SessionService(SqliteSessions(database))}


def beside(home: Home) -> AbstractContextManager[None]:
    return beside_a_bot(home, lambda: opened(home))


Beside = Callable[[Home], Any]
both_ways = pytest.mark.parametrize("way", [alone, beside])


@both_ways
def test_they_are_listed_one_a_line_and_as_json(home: Home, way: Beside) -> None:
    with way(home):
        lines = said("list").splitlines()
        answer = json.loads(said("list", "--json"))

    assert [line.split("\t")[0] for line in lines] == ["c_now", "c_old"]
    assert [line.split("\t")[6] for line in lines] == ["open", "closed"]
    assert lines[1].split("\t")[4] == "6"
    now, old = answer["sessions"]
    assert (now["id"], now["lane"], now["closed_ms"]) == ("c_now", LANE, None)
    assert old["messages"] == 6
    assert len(said("list", "--limit", "1").splitlines()) == 1


def listed() -> str:
    return on_terminal(lambda: list_sessions(limit=30, all_lanes=False))


def test_a_terminal_gets_a_table_in_which_nothing_that_was_said_steers_it(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    summed_up(home, "They spoke of \x1b[31mboats [and] 船.")

    shown = listed()

    assert "They spoke of boats [and] 船." in shown
    assert "\x1b" not in shown


def summed_up(home: Home, summary: str) -> None:
    with closing(sqlite3.connect(home.database)) as connection:
        connection.execute(
            "insert into compactions (conversation_id, kind, from_id, sent_from, summary, reason, "
            "messages, tokens_before, tokens_after, made_ms) "
            "values ('c_now', 'summarise', 1, 1, ?, '', 1, 1, 1, 1)",
            (summary,),
        )
        connection.commit()


def test_a_terminal_is_told_that_there_is_none(home: Home) -> None:
    with closing(sqlite3.connect(home.database)) as connection:
        connection.execute("delete from conversations")
        connection.commit()

    assert listed() == "No conversation is kept here yet.\n"


@both_ways
def test_one_is_shown_with_what_was_said_last(home: Home, way: Beside) -> None:
    with way(home):
        whole = said("show", "c_o")
        last = said("show", "c_old", "--limit", "1")
        answer = json.loads(said("show", "c_old", "--json"))

    assert "Ada B: Hello there" in whole
    assert "assistant: [calls read_file]" in whole
    assert "note: a note" in whole
    assert "block words" not in whole
    assert "Hello" not in last
    assert [one["kind"] for one in answer["entries"][:2]] == ["note", "said"]
    assert answer["entries"][-1]["text"] == "Fine."


@pytest.mark.parametrize("words", [("show", "x"), ("export", "x"), ("clear", "x", "--yes")])
def test_an_unknown_id_is_told_with_a_way_out(words: tuple[str, ...]) -> None:
    assert "hearthbot sessions list" in refused(*words)


def test_an_id_that_several_begin_with_is_not_guessed() -> None:
    assert "c_now, c_old" in refused("show", "c_")


def test_all_of_one_is_exported_as_json_and_as_markdown(home: Home) -> None:
    answer = json.loads(said("export", "c_old"))
    text = said("export", "c_old", "--format", "md")

    assert len(answer["entries"]) == 8
    assert answer["entries"][4]["content"] == "long " * 100
    assert answer["entries"][6]["text"] == "wöchentlich 你好"
    assert text.startswith("# Conversation c_old\n")
    assert "Ada B: Hello there" in text
    assert "wöchentlich 你好" in text
    assert "block words" not in text
    assert "--format" in refused("export", "c_old", "--format", "xml", code=2)


def test_a_long_one_is_exported_whole(home: Home) -> None:
    async def fill() -> None:
        async with Database.open(home.database, clock=SystemClock()) as database:
            conversation = await SqliteConversations(database).current(LANE)
            many = [talk(f"q{n}", "x" * 2_000) for n in range(503)]
            await add_turns(database, conversation, many)

    asyncio.run(fill())

    with beside(home):
        answer = json.loads(said("export", "c_now"))

    texts = [one["text"] for one in answer["entries"] if one["kind"] == "said"]
    assert texts == ["newer", *[f"q{n}" for n in range(503)]]


def test_one_is_erased_for_good_and_another_begins(home: Home) -> None:
    told = said("clear", "c_now", "--yes")
    left = json.loads(said("list", "--json"))["sessions"]

    assert told.startswith(f"Erased c_now of {LANE}: 2 messages")
    assert "A new one begins there." in told
    assert [one["id"] for one in left] == ["c_old"]


def test_nothing_is_erased_unasked() -> None:
    assert "--yes" in refused("clear", "c_old", code=2)
    assert len(said("list").splitlines()) == 2


def test_none_is_erased_while_something_is_being_done_there(home: Home) -> None:
    async def begin() -> None:
        from memory.stores.turns import SqliteJournal

        async with Database.open(home.database, clock=SystemClock()) as database:
            await SqliteJournal(database).submit(run("m1"))

    asyncio.run(begin())

    assert "nothing was erased" in refused("clear", "c_old", "--yes")

    assert len(said("list").splitlines()) == 2
