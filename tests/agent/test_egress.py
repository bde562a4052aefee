"""Which pages are opened without a question: by who named their address, and how many."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from agent.policy.egress import NAMELESS, TOO_MANY, Egress
from agent.web.addresses import addresses_in, parse_url
from memory.records.messages import (
    Address,
    ConversationId,
    IncomingMessage,
    JobOrder,
    PersonId,
    Report,
    Role,
    RunId,
    Task,
    TurnInput,
)
from memory.records.transcript import Answered, Entry, Said, ToolCall, ToolResult

RUN = RunId("r1")
TURN = TurnInput(
    message=IncomingMessage(
        address=Address(channel="telegram", chat_id="5"), message_id="1", sender_id="5", text="x"
    ),
    conversation=ConversationId("c1"),
    person_id=PersonId("p1"),
    role=Role.OWNER,
)
TASK = replace(
    TURN, task=Task(parent=RUN, call_id="c", conversation=ConversationId("c1"), waits=True)
)
CHILD = RunId("task-1")
JOB = replace(TURN, job=JobOrder(job_id=1, slot="s", name="watch"))


def read(text: str, url: str = "https://a.example/page", tool: str = "web_fetch") -> list[Entry]:
    """A page that was read, or what a search found."""
    call = ToolCall(id="p", name=tool, arguments=json.dumps({"url": url}))
    return [
        Answered(text="", calls=(call,)),
        ToolResult(call_id="p", content=text, untrusted=True),
    ]


def opened(
    egress: Egress,
    url: str,
    entries: Sequence[Entry],
    *,
    turn: TurnInput = TURN,
    run_id: RunId = RUN,
) -> str:
    named = egress.named(turn, run_id, entries)
    return egress.open_page(turn, run_id, url, named)


def links(count: int, site: str = "b.example") -> list[str]:
    return [f"https://{site}/{n}" for n in range(count)]


def refused(egress: Egress, urls: Sequence[str], entries: Sequence[Entry], **more: object) -> int:
    return sum(bool(opened(egress, url, entries, **more)) for url in urls)  # type: ignore[arg-type]


# --- who named it --------------------------------------------------------------------------------

URL = "https://b.example/x?a=1"


@pytest.mark.case("SE-19")
@pytest.mark.parametrize(
    ("entries", "why"),
    [
        ([Said(text=f"see {URL}")], ""),
        ([Said(text="see b.example/x?a=1.")], ""),
        ([Said(text=f"see {URL}", by="p1")], ""),
        ([Said(text=f"see {URL}", by="p2")], NAMELESS),
        ([Said(text=f"see {URL}", forwarded=True)], NAMELESS),
        ([Said(text="see it", quote=URL)], NAMELESS),
        ([Said(text=f"see {URL}", by="task-7")], NAMELESS),
        ([Answered(text=URL)], NAMELESS),
        (read(f"[more]({URL})[less](https://c.example/)"), ""),
        (read(f"1. A hit\n   {URL}\n   b", tool="web_search"), ""),
        (read(URL, tool="read_file"), NAMELESS),
        (read(URL, tool="subagent"), NAMELESS),
        ([replace(one, ok=False) if isinstance(one, ToolResult) else one for one in read(URL)],
         NAMELESS),
    ],
)  # fmt: skip
def test_a_page_is_opened_unasked_where_the_person_a_search_or_a_page_named_it(
    entries: Sequence[Entry], why: str
) -> None:
    assert opened(Egress(), URL, entries) == why


@pytest.mark.case("SE-19")
@pytest.mark.parametrize(
    "url",
    [
        "https://b.example/x?a=1&d=secret",
        "https://b.example/x?a=12",
        "https://b.example/x/secret",
        "https://b.example/X?a=1",
        "https://b.example:8443/x?a=1",
        "https://secret.b.example/x?a=1",
        "https://b.example/x?a=%31",
        "https://b.example/x//?a=1",
        "https://go.example/?to=https://b.example/x?a=1",
    ],
)
def test_an_address_counts_as_a_whole(url: str) -> None:
    entries = [Said(text=f"see {URL} and https://go.example/"), *read(URL)]

    assert opened(Egress(), url, entries) == NAMELESS
    for same in ("http://B.example/x?a=1", "https://b.example:443/x?a=1#part", f"{URL}/"):
        assert not opened(Egress(), same, entries), "that is what is asked for"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see (https://a.example/x), b.example.", {"a.example/x", "b.example"}),
        ("https://en.a.example/Foo_(bar)", {"en.a.example/Foo_(bar)"}),
        ("[Foo](https://en.a.example/Foo_(bar))", {"en.a.example/Foo_(bar)"}),
        ("<https://a.example:8080/x>|https://bücher.example/", {
            "a.example:8080/x", "xn--bcher-kva.example",
        }),
        ("http://127.0.0.1:80/x, mail eve@a.example, no.", {"127.0.0.1/x"}),
    ],
)  # fmt: skip
def test_addresses_are_read_as_the_client_reads_them(text: str, found: set[str]) -> None:
    assert found <= {url.whole for url in addresses_in(text)}
    assert "a.example" not in {url.whole for url in addresses_in(text)}


def test_sites_are_told_by_the_end_of_their_name() -> None:
    assert parse_url("https://a.b.example.org:80/x").site == "example.org"
    assert parse_url("http://127.0.0.1:8080/").site == "127.0.0.1:8080"


# --- how many ------------------------------------------------------------------------------------


def test_three_links_of_a_site_and_eight_pages_of_a_turn_are_opened() -> None:
    egress, urls = Egress(), [*links(5), *links(9, "c.example"), *links(9, "d.example")]
    entries = read(" ".join(urls))

    assert refused(egress, links(5), entries) == 2
    assert refused(egress, links(9, "c.example"), entries) == 6
    assert refused(egress, links(9, "d.example"), entries) == 7
    assert opened(egress, urls[-1], entries) == TOO_MANY
    assert not opened(egress, urls[-1], entries, run_id=RunId("r2")), "the next turn"


def test_of_a_site_that_the_person_named_and_of_a_search_eight_are_opened() -> None:
    said = [Said(text="read b.example"), *read(" ".join(links(20)))]
    found = read(" ".join(links(20)), tool="web_search")

    assert refused(Egress(), links(20), said) == 12
    assert refused(Egress(), links(20), found) == 12


def test_what_the_person_named_counts_for_nothing_the_first_time_in_a_turn() -> None:
    egress, entries = Egress(), [Said(text=" ".join(links(20)))]

    assert refused(egress, links(20), entries) == 0
    assert refused(egress, [f"{url}/" for url in links(20)], entries) == 12
    assert refused(egress, links(20), entries, run_id=RunId("r2")) == 0
    for n in range(60):  # a job that looks each five minutes at what its person named
        assert not opened(egress, links(1)[0], entries, turn=JOB, run_id=RunId(f"j{n}"))


def test_a_site_to_which_redirects_lead_is_counted_as_asked_for() -> None:
    entries: list[Entry] = []
    for n in range(3):
        there = f"https://b.example/{n}"
        entries += read(f"URL: {there}\nRedirected from: https://go{n}.example/\n\nx\n{there}9")

    assert opened(Egress(), "https://b.example/19", entries) == TOO_MANY


# --- with whom it counts -------------------------------------------------------------------------


def test_subagents_know_what_their_parent_knew_and_count_with_it() -> None:
    egress = Egress()
    parent = [Said(text="look at https://s.example/"), *read(" ".join(links(3)))]
    task = [Said(text="read https://s.example/ and https://evil.example/?d=secret", by="p1")]
    egress.hand_on(TURN, RUN, egress.named(TURN, RUN, parent))

    def asked(url: str, *more: Entry) -> str:
        return opened(egress, url, [*task, *more], turn=TASK, run_id=CHILD)

    assert asked("https://evil.example/?d=secret") == NAMELESS
    assert not asked("https://s.example/")
    assert refused(egress, links(2), parent) == 0
    assert not asked(links(3)[2])
    assert asked("https://b.example/z", *read("https://b.example/z")) == TOO_MANY


def test_the_report_of_a_task_follows_no_links() -> None:
    report = replace(TURN, report=Report(child=CHILD, task="x", ok=True))

    assert opened(Egress(), links(1)[0], read(links(1)[0]), turn=report) == TOO_MANY


def test_the_runs_of_a_day_by_the_clock_open_what_five_turns_may() -> None:
    egress = Egress()
    urls = [f"https://s{n}.example/" for n in range(60)]
    entries = read(" ".join(urls))

    for n, url in enumerate(urls):
        why = opened(egress, url, entries, turn=JOB, run_id=RunId(f"job-{n}"))
        assert bool(why) is (n >= 40)
    later = replace(JOB, message=replace(JOB.message, sent_at_ms=86_400_000))
    assert not opened(egress, urls[-1], entries, turn=later)


# --- reading tools of servers --------------------------------------------------------------------


def test_a_yes_to_a_reading_tool_counts_in_its_conversation_and_for_all_runs_of_a_job() -> None:
    egress = Egress()
    egress.agree(TURN, "mail__look")
    egress.agree(JOB, "mail__list")

    assert egress.is_agreed(TASK, "mail__look")
    assert egress.is_agreed(replace(JOB, conversation=ConversationId("c9")), "mail__list")
    for other in (
        replace(TURN, conversation=ConversationId("c2")),
        replace(TURN, person_id=PersonId("p2")),
        replace(TURN, agent="work"),
        JOB,
    ):
        assert not egress.is_agreed(other, "mail__look")
    assert not egress.is_agreed(TURN, "mail__list")
