"""Killed at any moment, over and over: each message is answered once, in order, and nothing that
was finished is done again (promises P1)."""

from __future__ import annotations

import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import pytest

from tests.acceptance.rig import Home, Model, Running, StandIn, Telegram, until
from tests.thorough import rounds

MARK = "(may be repeated)"
OWNERS = range(1, 5)
PEOPLE = range(1, 21)
KILLS = rounds(6, 20)
EACH = KILLS // 2
"""Messages of each person, ten of all of them between two kills."""

SENDING = """
select count(*) from outbox_parts where state in ('sending', 'resending') and message_id = ''
"""
UNKNOWN = "select text from outbox where state = 'unknown'"
OPEN = """
select (select count(*) from inbox where ended_ms is null)
    + (select count(*) from turns where ended_ms is null)
    + (select count(*) from outbox where ended_ms is null)
"""


@dataclass(slots=True)
class Found:
    """What the kills met, for the report."""

    kills: int = 0
    in_the_window: int = 0
    streams_cut: int = 0


def kill_and_look(home: Home, running: Running, found: Found) -> None:
    """A kill; then the file as it lies there: whole, and how many sends were under way."""
    running.kill()
    found.kills += 1
    with home.snapshot() as connection:
        assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
        found.in_the_window += connection.execute(SENDING).fetchone()[0]
        (drafts,) = connection.execute("select count(*) from outbox where state = 'draft'")
        found.streams_cut += drafts[0]


def settled(home: Home) -> bool:
    return home.ask_database(OPEN) == [(0,)]


def later(chance: Random) -> Callable[[], object]:
    """At any time."""
    return lambda: time.sleep(chance.uniform(0.2, 1.2))


def at_a(stand_in: StandIn, method: str, *, after: bool, chance: Random) -> Callable[[], object]:
    """Just when a request is under way, before or after it took effect."""

    def wait() -> None:
        hold = {"kind": "hold", "seconds": 0.4, "after": after}
        stand_in.ask("fault", method=method, action=hold, times=3)
        before = stand_in.received(method)
        until(lambda: stand_in.received(method) >= before + chance.randint(1, 3))

    return wait


def moments(telegram: Telegram, model: Model, chance: Random) -> list[Callable[[], object]]:
    """When to kill."""
    return [
        at_a(telegram, "sendMessage", after=True, chance=chance),
        later(chance),
        at_a(model, "chat", after=True, chance=chance),
        later(chance),
        at_a(telegram, "sendMessage", after=False, chance=chance),
        later(chance),
        at_a(telegram, "getUpdates", after=True, chance=chance),
    ]


def words(chat: int, number: int, chance: Random) -> str:
    """One message, unique; an owner's may have tools run."""
    name = f"m-{chat:02d}-{number:02d}"
    if chat not in OWNERS:
        return name
    path = f"list-{chat}.txt"
    read = "read_file " + json.dumps({"path": path})
    edit = "edit_file " + json.dumps({"path": path, "old": "END", "new": f"{name}\nEND"})
    match chance.randrange(4):
        case 0:
            return f"{name}\n!call {read}\n!then {edit}"
        case 1 | 2:
            return f"{name}\n!call {edit}\n!then {read}"
    return name


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.case("CH-01", "HI-09")
def test_each_message_is_answered_once_whatever_is_killed(
    home: Home, telegram: Telegram, model: Model
) -> None:
    chance = Random(20260)
    home.env |= {
        "HEARTHBOT_TURNS__QUEUE": "followup",
        "HEARTHBOT_TELEGRAM__ALLOW_FROM": str(list(PEOPLE)),
    }
    home.approve(*OWNERS, role="owner")
    for chat in OWNERS:
        (home.path / "workspace" / f"list-{chat}.txt").write_text("END\n")
    texts = {c: [words(c, n, chance) for n in range(EACH)] for c in PEOPLE}
    queue = [(chat, texts[chat][n]) for n in range(EACH) for chat in PEOPLE]
    found = Found()
    kinds = moments(telegram, model, chance)

    running = home.start()
    for round_number in range(KILLS):
        for chat, text in queue[round_number * 10 : round_number * 10 + 10]:
            telegram.says(chat, text)
        kinds[round_number % len(kinds)]()
        kill_and_look(home, running, found)
        telegram.behave()
        model.behave()
        running = home.start()
    until(lambda: not telegram.ask("pending") and settled(home), timeout_s=90)
    until(running.serving)
    code = running.end()

    vanished = telegram.vanished("sendMessage")
    unknown = [text for (text,) in home.ask_database(UNKNOWN)]
    doubles = check_replies(telegram.shown, texts, unknown)
    edits = check_tools(home, model, texts)
    ((in_doubt,),) = home.ask_database("select count(*) from steps where output is null")
    print(
        f"\n{found.kills} kills over {len(queue)} messages: {found.in_the_window} sends under way, "
        f"{vanished} of their answers found nobody; {doubles} replies stand twice, marked; "
        f"{len(unknown)} of unknown fate; {in_doubt} edits in doubt, {edits} made"
    )
    assert code == 0
    assert doubles <= found.in_the_window
    assert home.ask_database("pragma integrity_check") == [("ok",)]


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.case("CH-01")
def test_a_streamed_reply_stands_once_whatever_is_killed(
    home: Home, telegram: Telegram, model: Model
) -> None:
    chance = Random(77)
    home.env |= {
        "HEARTHBOT_TURNS__QUEUE": "followup",
        "HEARTHBOT_TELEGRAM__STREAMING": "true",
        "HEARTHBOT_TELEGRAM__STREAM_EVERY_S": "0.1",
        "HEARTHBOT_TELEGRAM__ALLOW_FROM": "[1, 2, 3, 4, 5, 6]",
    }
    model.ask("set", chunk_delay_s=0.03, chunk_size=20)
    home.approve(1)
    for number in range(2):
        for chat in range(1, 7):
            telegram.says(chat, f"!say m-{chat:02d}-{number:02d}\n!long {1300 + 100 * chat}")
    found = Found()

    running = home.start()
    until(lambda: not telegram.ask("pending"))
    methods = ("editMessageText", "sendMessage", "editMessageText", "chat") * 3
    for method in methods[: rounds(4, 12)]:
        wait_for_next(model if method == "chat" else telegram, method, home)
        if method != "sendMessage":
            time.sleep(chance.uniform(0.0, 0.5))
        kill_and_look(home, running, found)
        telegram.behave()
        running = home.start()
    until(lambda: not telegram.ask("pending") and settled(home), timeout_s=90)
    until(running.serving)
    code = running.end()

    edits = telegram.received("editMessageText")
    beside = check_streamed(telegram)
    print(
        f"\n{found.kills} kills over 12 streamed replies ({edits} edits): "
        f"{found.streams_cut} cut while they grew, {found.in_the_window} first sends under way, "
        f"{beside} beginnings and marked copies beside the replies"
    )
    assert code == 0
    assert beside <= found.in_the_window
    assert found.streams_cut


def wait_for_next(stand_in: Telegram | Model, method: str, home: Home) -> None:
    """Until one more request of this kind came; a first send then waits for its answer."""
    before = stand_in.received(method)
    if method == "sendMessage":
        stand_in.ask("fault", method=method, action={"kind": "hold", "seconds": 0.5, "after": True})
    until(lambda: stand_in.received(method) > before or settled(home))


def check_streamed(telegram: Telegram) -> int:
    """Each reply stands whole and in order. Returns how many copies and beginnings stand beside.

    A send that was under way at a kill is a doubt, and worth one more copy, which is marked. Of a
    reply that was still growing a beginning stays behind: nobody knows its number, so nobody can
    complete it.
    """
    beside = 0
    for chat in range(1, 7):
        shown = telegram.shown(chat)
        wanted = [f"m-{chat:02d}-00", f"m-{chat:02d}-01"]
        assert list(dict.fromkeys(_name(text) for text in shown)) == wanted, shown
        longest = max(len(_bare(text)) for text in shown)
        for name in wanted:
            mine = [text for text in shown if _name(text) == name]
            assert len(_bare(mine[-1])) == longest, "the last copy is whole"
            assert all(MARK in text for text in mine[1:]), mine
            beside += len(mine) - 1
        ends = {_bare(text).partition("\n")[2] for text in shown if len(_bare(text)) == longest}
        assert len(ends) == 1, "all whole copies say the same"
    return beside


def _bare(text: str) -> str:
    return text.removesuffix(MARK).rstrip()


def check_replies(
    shown_in: Callable[[int], list[str]], texts: dict[int, list[str]], unknown: list[str]
) -> int:
    """One reply to each message, in order. Returns how many stand a second time, marked."""
    doubles = 0
    for chat, asked in texts.items():
        shown = shown_in(chat)
        names = [_name(text) for text in shown]
        wanted = [_name(text) for text in asked]
        lost = set(wanted) - set(names) - {_name(text) for text in unknown}
        assert not lost, f"not answered: {lost}; shown: {shown}"
        assert list(dict.fromkeys(names)) == [n for n in wanted if n in names], shown
        for name, times in Counter(names).items():
            mine = [text for text in shown if _name(text) == name]
            # Each kill in the middle of a send is a doubt, and worth one more copy.
            assert all(MARK in text for text in mine[1:]), mine
            doubles += times - 1
    return doubles


def check_tools(home: Home, model: Model, texts: dict[int, list[str]]) -> int:
    """No edit was made twice, and each was made or is in doubt. Returns how many were made."""
    results = tool_results(model)
    for call, contents in results.items():
        assert len(contents) == 1, f"{call} ran twice: {contents}"
    doubtful = sum(content.startswith("Unknown") for (content,) in results.values())
    made = wanted = 0
    for chat in OWNERS:
        lines = (home.path / "workspace" / f"list-{chat}.txt").read_text().split()
        assert lines[-1] == "END"
        assert len(lines) == len(set(lines)), f"made twice: {lines}"
        made += len(lines) - 1
        wanted += sum("edit_file" in text for text in texts[chat])
    assert wanted - doubtful <= made <= wanted
    return made


def tool_results(model: Model) -> dict[str, set[str]]:
    """What the model was told of each call, over all its requests."""
    results: defaultdict[str, set[str]] = defaultdict(set)
    for request in model.ask("requests"):
        for message in request["messages"]:
            if message["role"] == "tool":
                results[message["tool_call_id"]].add(message["content"])
    return results


def _name(text: str) -> str:
    found = re.findall(r"m-\d\d-\d\d", text)
    assert found, f"a reply to nothing that was asked: {text!r}"
    return str(found[-1])
