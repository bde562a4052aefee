"""What people ask for every day, done as a model does it: nobody is asked, whatever was read before
and whatever is remembered, but about a server that the owner does not trust: once a conversation.
The other side of the attacks beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.agent.attack_kit import evil_tool
from tests.agent.memory_kit import RememberingCastle
from tests.agent.obedient import ObedientModel

Calls = Sequence[tuple[str, Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class Ask:
    """What a person says and what the model calls; `fresh` begins a new conversation."""

    says: str
    calls: Calls = ()
    fresh: bool = True
    at_once: bool = False
    more: Mapping[str, Any] = field(default_factory=dict)


def fetch(path: str, **more: Any) -> tuple[str, Mapping[str, Any]]:
    return "web_fetch", {"url": f"GOOD{path}", **more}


def search(query: str) -> tuple[str, Mapping[str, Any]]:
    return "web_search", {"query": query}


def read(path: str) -> tuple[str, Mapping[str, Any]]:
    return "read_file", {"path": path}


EVENTS = "evil__events"
MAILS, MAIL, FLIGHTS = "evil__mails", "evil__mail", "evil__flights"
FRIDAY = {"start": "2023-11-17T00:00:00Z", "end": "2023-11-17T23:59:59Z"}

ASKS = (
    Ask("read GOOD/docs to me", [fetch("/docs")]),
    Ask("and the part on loops and on files", [fetch("/docs/loops"), fetch("/docs/files")], False),
    Ask("and what is new?", [fetch("/docs/news")], False),
    Ask("sum up GOOD/docs with all its parts", [
        fetch("/docs"), fetch("/docs/start"), fetch("/docs/loops"), fetch("/docs/files"),
        fetch("/docs/news"),
    ]),
    Ask("read all of GOOD/long", [fetch("/long"), fetch("/long", page=2), fetch("/long", page=3)]),
    Ask("what is new in gardening?", [search("gardening news"), fetch("/hit1"), fetch("/hit3")]),
    Ask("look it up thoroughly", [search("tulips"), *(fetch(f"/hit{n}") for n in range(1, 6))]),
    Ask("and roses?", [search("roses"), fetch("/hit2")], False),
    Ask("when do I meet Bob on Friday?", [(EVENTS, {"person": "Bob", **FRIDAY})]),
    Ask("and Cleo?", [(EVENTS, {"person": "Cleo", **FRIDAY})], False),
    Ask("and Dora on Monday?", [(EVENTS, {
        "person": "Dora", "start": "2023-11-20T00:00:00Z", "end": "2023-11-20T23:59:59Z",
    })], False),
    Ask("am I free for lunch with Emil?", [read("letter.txt"), (EVENTS, {
        "person": "Emil", "start": "2023-11-14T00:00:00Z", "end": "2023-11-14T23:59:59Z",
    })]),
    Ask("what is in my newest mails?", [(MAILS, {}), *(
        (MAIL, {"id": f"m-{n:03}"}) for n in range(1, 6)
    )]),
    Ask("read me the third again", [(MAIL, {"id": "m-003"})], False),
    Ask("find mails of Bob", [(MAILS, {"query": "Bob", "limit": 10, "sort": "asc"})]),
    Ask("and those of Cleo", [(MAILS, {"query": "Cleo", "limit": 10, "sort": "asc"})], False),
    Ask("search flights to Lisbon on Friday", [read("letter.txt"), (FLIGHTS, {
        "to": "Lisbon", "day": "2023-11-17", "adults": 1,
    })]),
    Ask("for two, please", [(FLIGHTS, {"to": "Lisbon", "day": "2023-11-17", "adults": 2})], False),
    Ask("remember that I like tea", [
        ("store_fact", {"text": "Ada likes tea.", "category": "preference"}),
    ]),
    Ask("note: the parcel came", [("append_notes", {"text": "The parcel came."})]),
    Ask("call me Ada B.", [
        ("update_profile", {"path": "name", "value": "Ada B.", "reason": "asked"}),
    ]),
    Ask("what do you know of me?", [
        ("search_memories", {"query": "tea"}), ("get_profile", {}), ("read_notes", {}),
    ]),
    Ask("what about my tea? see GOOD/docs", [
        ("search_memories", {"query": "tea"}), fetch("/docs"), search("tea"), fetch("/hit4"),
    ]),
    Ask("look, lunch at one?", more={"forwarded": "Bob"}),
    Ask("what does he want?", [read("plans.txt")], False),
    Ask("is that true?", [search("lunch")], more={"quote": "Lunch is at one."}),
    Ask("what is in letter.txt?", [("list_dir", {"path": "."}), read("letter.txt")]),
    Ask("write that down in a file", [
        ("write_file", {"path": "sum.txt", "content": "A letter."}),
        ("search_files", {"text": "letter"}),
    ], False),
    Ask("have somebody read GOOD/docs", [("subagent", {"task": "Sum up GOOD/docs."})]),
    Ask("and two more", [
        ("subagent", {"task": "Sum up GOOD/hit1."}), ("subagent", {"task": "Sum up GOOD/hit2."}),
    ], fresh=False, at_once=True),
    Ask("how are you?", [("get_status", {})]),
)  # fmt: skip


def honest_server() -> list[Any]:
    text, number = {"type": "string"}, {"type": "integer"}
    sort = {"type": "string", "enum": ["asc", "desc"]}
    fields: Mapping[str, Mapping[str, Any]] = {
        "events": {"person": text, "start": text, "end": text, "calendar": text},
        "mails": {"query": text, "limit": number, "sort": sort, "folder": text},
        "mail": {"id": text},
        "flights": {"from": text, "to": text, "day": text, "adults": number},
    }
    return [
        evil_tool(name, reads=True, schema={"type": "object", "properties": properties})
        for name, properties in fields.items()
    ]


ASKED_OF_A_STRANGER = {
    "when do I meet Bob on Friday?": [EVENTS],
    "am I free for lunch with Emil?": [EVENTS],
    "what is in my newest mails?": [MAILS, MAIL],
    "find mails of Bob": [MAILS],
    "search flights to Lisbon on Friday": [FLIGHTS],
}
"""The first call of each tool in each conversation, while `trust` is not set."""


@pytest.mark.parametrize(
    ("trust", "expected"), [("true", {}), ('"untrusted"', ASKED_OF_A_STRANGER)]
)
async def test_honest_turns_ask_nobody(
    tmp_path: Path, trust: str, expected: Mapping[str, list[str]]
) -> None:
    castle = RememberingCastle(tmp_path)
    castle.mcp_trust = trust
    castle.put("letter.txt", "Dear Ada, shall we have lunch? Emil")
    castle.put("memory/MEMORY.md", "Ada has a garden.")
    parts = "".join(f"\nGOOD/docs/{part}" for part in ("start", "loops", "files", "news"))
    castle.pages = {"/docs": f"The docs.{parts}", "/long": "A long story. " * 3_000}
    castle.pages |= {f"/docs/{part}": "A part." for part in ("start", "loops", "files", "news")}
    castle.pages |= {f"/hit{n}": "A hit." for n in range(1, 6)}
    hits = [{"title": f"Hit {n}", "url": f"GOOD/hit{n}", "content": "x"} for n in range(1, 6)]
    castle.hits = json.dumps({"results": hits})
    castle.lists(*honest_server())
    castle.answers(mails="\n".join(f"m-{n:03} a mail of somebody" for n in range(1, 21)))
    model = ObedientModel()
    asked: dict[str, list[str]] = {}

    async with castle.attacked(model):
        await castle.remembers("Ada lives in Oslo.")
        for ask in ASKS:
            if ask.fresh:
                await castle.conversations.start_new("telegram:5")
            model.at_once = ask.at_once
            model.begin = [*model.begin, *json.loads(castle.filled(json.dumps(ask.calls)))]
            await castle.submit(castle.filled(ask.says), **ask.more)
            await castle.engine.idle()
            while waiting := await castle.open_cards():
                rows = await castle.rows("select tool from approvals where id = ?", waiting[0])
                asked.setdefault(ask.says, []).append(str(rows[0][0]))
                await castle.tap(waiting[0], "once")

        assert asked == expected
        assert len(ASKS) >= 30
        results = await castle.rows("select body from messages where kind = 'result'")
        failed = [body for (body,) in results if not json.loads(body)["ok"]]
        assert failed == []
        assert len(results) >= sum(len(ask.calls) for ask in ASKS)
