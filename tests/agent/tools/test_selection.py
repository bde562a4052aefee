"""Which tools a request offers, by SPEC §6."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.tools.discovery import Routes, ToolRanking, ToolText, tool_text
from agent.tools.selection import (
    CORE,
    Reason,
    Selection,
    SelectionOptions,
    Situation,
    ToolRoom,
    exactly,
    select,
    temperature,
)
from agent.tools.tool import ToolCard
from memory.records.ports import Ranked
from memory.search.hybrid import FOR_TOOLS, Item, Search
from tests.bench.wishes import WISHES, built_in, card

SHIPPED_ROUTES = Path(__file__).parents[3] / "prompts" / "tool_routes.toml"
TOOLS = built_in()
MANY = [card(name, "core") for name in CORE] + [
    card(f"tool{number:02}", "one of many", group=f"group{number // 10}") for number in range(40)
]


@dataclass(frozen=True, slots=True)
class GivenRanker:
    """A Ranker that knows the answer: cosines by name; those not named are at 0."""

    cosines: dict[str, float]
    names: Sequence[str]

    def rank(self, query: str, *, k: int) -> Sequence[Ranked]:
        all_of_them = [
            Ranked(id=name, score=self.cosines.get(name, 0.0), cosine=self.cosines.get(name, 0.0))
            for name in self.names
        ]
        return sorted(all_of_them, key=lambda one: (-one.score, one.id))[:k]


def ranker(**cosines: float) -> GivenRanker:
    return GivenRanker(cosines, [one.name for one in MANY])


def by_words(texts: Sequence[ToolText]) -> Search:
    items = [Item(id=one.name, title=one.title, text=one.text) for one in texts]
    return Search(items, weights=FOR_TOOLS)


def wish(text: str = "do something", **more: object) -> Situation:
    return replace(Situation(candidates=MANY, text=text), **more)  # type: ignore[arg-type]


def reasons(selection: Selection) -> dict[str, Reason]:
    return {one.name: one.reason for one in selection.picked}


def test_a_greeting_gets_the_core_alone() -> None:
    chosen = select(wish("hello", is_small_talk=True, groups=["group1"]), ranker(tool01=0.9))

    assert chosen.names == CORE
    assert chosen.cosine_best == 0


def test_over_the_cap_the_core_comes_first_then_score_then_name() -> None:
    chosen = select(wish(groups=["group0", "group1", "group2"]), ranker(tool29=0.5, tool28=0.4))

    assert len(chosen.names) == 25
    assert set(chosen.names) == {*CORE, "tool29", "tool28", *(f"tool{n:02}" for n in range(14))}
    assert chosen.left_out == tuple(f"tool{number:02}" for number in range(14, 28))


def test_in_a_small_window_others_than_the_core_and_the_best_have_to_find_room() -> None:
    room = ToolRoom(tokens=16 * 100, size=lambda name: 300 if name == "tool26" else 100)
    cosines = {f"tool{29 - place:02}": 0.9 - place / 100 for place in range(8)}
    wanted = wish(groups=["group0"], current=["tool31"], required=["tool39"])

    chosen = select(wanted, ranker(**cosines), room=room)
    least = select(wanted, ranker(**cosines), room=ToolRoom(tokens=0, size=room.size))
    every = select(wanted, ranker(**cosines))

    best = {f"tool{number}" for number in range(25, 30)}
    assert set(least.names) == {*CORE, "tool31", *best, "tool39"}
    assert set(chosen.names) == set(least.names)
    assert len(every.names) == 26
    roomy = select(wanted, ranker(**cosines), room=ToolRoom(tokens=19 * 100, size=room.size))
    assert set(roomy.names) == {*least.names, "tool24", "tool23"}
    assert "tool22" in roomy.left_out


def test_a_required_tool_that_does_not_exist_is_told_and_one_not_allowed_is_not() -> None:
    known = [one.name for one in MANY] + ["exec"]

    chosen = select(wish(required=["no_such", "exec", "no_such"], known=known), ranker())

    assert chosen.unknown == ("no_such",)
    assert "exec" not in chosen.names


def test_what_was_offered_keeps_its_place_and_what_is_new_comes_behind() -> None:
    first = select(wish(), ranker(tool20=0.9))

    second = select(wish(current=first.names), ranker(tool10=0.9))

    assert second.names == (*first.names, "tool10")
    assert reasons(second)["tool20"] is Reason.KEPT


def test_a_full_set_takes_in_nothing_until_the_next_step() -> None:
    full = select(wish(groups=["group0", "group1"]), ranker())

    same = select(wish(current=full.names), ranker(tool39=0.9))
    afresh = select(wish(current=full.names, is_step=True), ranker(tool39=0.9))

    assert same.names == full.names
    assert same.left_out == ("tool39",)
    assert "tool39" in afresh.names
    assert len(afresh.names) == len(CORE) + 5


def test_at_a_step_the_tools_that_were_used_come_first_but_no_more_than_eight() -> None:
    used = [f"tool{number:02}" for number in range(30, 40)]

    chosen = select(
        wish(is_step=True, used=used, current=(*CORE, *used)), ranker(tool01=0.9, tool38=0.8)
    )

    assert [name for name in chosen.names if reasons(chosen)[name] is Reason.USED] == used[:8]
    assert reasons(chosen)["tool38"] is Reason.BEST
    assert "tool39" not in chosen.names


@pytest.mark.parametrize(
    ("cosine", "configured", "expected"),
    [
        (0.61, 1.0, 0.3),
        (0.61, 0.1, 0.1),
        (0.61, None, 0.3),
        (0.6, 1.0, 1.0),
        (0.0, None, None),
    ],
)
def test_a_very_good_fit_lowers_the_temperature(
    cosine: float, configured: float | None, expected: float | None
) -> None:
    chosen = select(wish(), ranker(tool01=cosine))

    assert temperature(chosen, configured) == expected


def test_a_job_that_names_its_tools_gets_exactly_those() -> None:
    situation = wish()
    chosen = exactly(["tool03", "no_such", "tool01"], situation.candidates, known=situation.known)

    assert chosen.names == ("tool01", "tool03")
    assert chosen.unknown == ("no_such",)


def test_most_wishes_of_people_are_met_by_routes_and_words_alone() -> None:
    words = ToolRanking(by_words).of(TOOLS)
    routes = Routes(SHIPPED_ROUTES.read_text("utf-8"), source="shipped")

    unmet = [
        text
        for text, needed in WISHES
        if not set(needed)
        <= set(
            select(
                Situation(candidates=TOOLS, text=text, groups=routes.match(text).groups), words
            ).names
        )
    ]

    assert len(unmet) <= len(WISHES) // 10


# --- tools as text -----------------------------------------------------------------------------


def test_the_text_of_a_tool_holds_name_description_parameters_and_server() -> None:
    tool = replace(
        card("git__listPull_requests", "Lists them.", repoName="Which repository."),
        server="git",
        server_about="Code hosting.",
    )

    words = tool_text(tool)

    assert words.title == "list Pull requests"
    assert words.text == (
        "list Pull requests. Lists them.. repo Name. Which repository.. git. Code hosting."
    )


# --- for all situations ------------------------------------------------------------------------

NAMES = st.sampled_from([one.name for one in MANY] + ["gone"])


@st.composite
def situations(draw: st.DrawFn) -> tuple[Situation, GivenRanker]:
    cards: list[ToolCard] = draw(st.lists(st.sampled_from(MANY), unique_by=lambda c: c.name))
    situation = Situation(
        candidates=cards,
        text=draw(st.sampled_from(["", "something"])),
        is_small_talk=draw(st.booleans()),
        current=draw(st.lists(NAMES, unique=True, max_size=30)),
        is_step=draw(st.booleans()),
        used=draw(st.lists(NAMES, unique=True, max_size=12)),
        groups=draw(st.lists(st.sampled_from(["group0", "group2", "none"]), unique=True)),
        required=draw(st.lists(NAMES, max_size=3)),
    )
    cosines = draw(st.dictionaries(NAMES, st.floats(-1, 1), max_size=20))
    return situation, GivenRanker(cosines, [one.name for one in MANY])


@given(case=situations())
def test_the_rules_hold_in_every_situation(case: tuple[Situation, GivenRanker]) -> None:
    situation, ranks = case
    options = SelectionOptions()
    allowed = {one.name for one in situation.candidates}

    chosen = select(situation, ranks, options=options)

    names = chosen.names
    kept = [name for name in situation.current if name in allowed]
    assert len(set(names)) == len(names)
    assert set(names) <= allowed
    assert allowed & set(CORE) <= set(names)
    assert allowed & set(situation.required) <= set(names)
    assert select(situation, ranks, options=options) == chosen
    in_place = [name for name in situation.current if name in names]
    assert list(names[: len(in_place)]) == in_place
    if not situation.is_step:
        assert in_place == kept
    bounded = [one for one in chosen.picked if one.reason is not Reason.REQUIRED]
    assert len(bounded) <= max(options.tools_max, len({*kept, *CORE}))
