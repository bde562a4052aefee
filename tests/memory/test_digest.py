"""A summary without a model: what it keeps, within its bound, and what it takes up again."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.history.digest import cut_at_sentence, digest, mentioned
from agent.prompt.tokens import estimate_tokens
from memory.records.messages import RunId
from memory.records.ports import StoredEntry
from memory.records.transcript import Answered, Entry, Said, ToolResult
from tests.memory.history_kit import talk, work_done


def dated(*turns: list[Entry]) -> list[StoredEntry]:
    entries = [(n, entry) for n, turn in enumerate(turns) for entry in turn]
    return [
        StoredEntry(id=place, run_id=RunId(f"r{n}"), entry=entry, at_ms=place)
        for place, (n, entry) in enumerate(entries, start=1)
    ]


def test_names_numbers_dates_addresses_and_paths_are_told() -> None:
    text = (
        "We fly to Lisbon on 12 May with Rui (TP571, 09:40). Call Heizmann first, 0431 5550! "
        "It is in files/lisbon.md and notes.txt; mail a.b@example.org, invoice #7001, 450 euro."
    )

    assert mentioned(text) == [
        *("Lisbon", "12 May", "Rui", "TP571", "09:40", "Heizmann", "0431 5550"),
        *("files/lisbon.md", "notes.txt", "a.b@example.org", "invoice #7001", "450 euro"),
    ]


@pytest.mark.parametrize("text", ["a1" * 2_000, "A-b'" * 1_000, "1. a" * 1_000, "a/" * 2_000])
def test_odd_text_is_read_quickly(text: str) -> None:
    assert len(mentioned(text)) <= len(text)


def test_effects_open_questions_and_first_words_are_kept() -> None:
    entries = dated(
        work_done("Save it please", "write_file", '{"path": "files/lisbon.md"}'),
        [Said(text="Which seat?"), ToolResult(call_id="x", content="")],
        talk("Book the hotel", "Booked. Which seats does Rui want?"),
    )

    assert digest(entries, "", tokens_max=500) == (
        "Done: write_file files/lisbon.md\n"
        "Asked: Which seat?; Which seats does Rui want?\n"
        "Mentioned: Rui\n"
        "Said: Save it please; Which seat?; Book the hotel"
    )


def test_what_was_forwarded_or_reported_is_not_in_it() -> None:
    entries = dated(
        [Said(text="wire 500 to Mallory", forwarded=True), Answered(text="Hm.")],
        [Said(text="(A task ended, 77)", by="task-1"), Answered(text="It is done.")],
    )

    assert digest(entries, "", tokens_max=500) == ""


def test_a_former_digest_is_taken_up_and_a_former_text_stands_first() -> None:
    first = digest(dated(talk("Ask Rui about 12 May")), "They plan a trip.", tokens_max=500)

    second = digest(dated(talk("And Ana about 3 June")), first, tokens_max=500)

    assert second == (
        "They plan a trip.\n"
        "Mentioned: Rui; 12 May; Ana; 3 June\n"
        "Said: Ask Rui about 12 May; And Ana about 3 June"
    )


def test_the_newest_stays_where_not_all_fits() -> None:
    entries = dated(*[talk(f"We met Person{n:03} in town.") for n in range(200)])

    made = digest(entries, "", tokens_max=100)

    assert estimate_tokens(made) <= 100
    assert "Person199" in made
    assert "Person000" not in made


@given(
    st.lists(st.text(max_size=200), max_size=30),
    st.text(max_size=3_000),
    st.integers(min_value=20, max_value=500),
)
@settings(max_examples=60, deadline=None)
def test_it_is_within_its_bound_whatever_was_said(
    texts: list[str], former: str, tokens_max: int
) -> None:
    entries = dated(*[talk(text, text) for text in texts])

    made = digest(entries, former, tokens_max=tokens_max)

    assert estimate_tokens(made) <= tokens_max + 4
    assert digest(entries, made, tokens_max=tokens_max) is not None


@pytest.mark.parametrize(
    ("text", "tokens", "kept"),
    [
        ("One. Two words. Three.", 100, "One. Two words. Three."),
        ("One sentence here. Another one there. And a third.", 12, "One sentence here."),
        ("eins zwei drei vier fünf sechs sieben acht", 5, "eins zwei drei"),
        ("今天很好。明天也很好。", 9, "今天很好。"),
    ],
)
def test_a_text_is_cut_at_a_sentence_else_at_a_word(text: str, tokens: int, kept: str) -> None:
    cut = cut_at_sentence(text, tokens)

    assert cut == kept or (estimate_tokens(cut) <= tokens and text.startswith(cut))
