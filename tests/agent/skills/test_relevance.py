"""Which skills without keywords fit a message."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.skills.matcher import Relevance
from agent.skills.skill import SkillSchedule, SkillState
from tests.agent.skills.shelves import shelf, skill

ABOUT = {
    "summarize": "Summarizes a text, page, file or thread: the gist first, then the points that "
    "matter. Use for a summary, TL;DR or recap of a long read.",
    "commit-message": "Writes a conventional commit message for a diff or staged changes in git.",
    "code-review": "Reviews code or a pull request for bugs, security holes and style.",
    "weather": "Gets current weather and forecasts for a location without an API key.",
    "tmux": "Remote-controls tmux sessions for interactive programs by sending keystrokes.",
    "github": "Works with GitHub through the gh program: issues, pull requests, CI runs.",
    "pdf-tools": "Extracts text and tables from PDF files, merges and splits documents, fills "
    "forms.",
    "spreadsheet": "Creates, edits and analyses spreadsheets (xlsx, csv) with formulas and charts.",
    "travel-planner": "Plans trips: flights, hotels, itinerary, packing list and budget.",
    "recipe-finder": "Suggests recipes from ingredients at hand, with a shopping list.",
    "home-assistant": "Controls smart home devices such as lights, thermostat and blinds.",
    "meeting-notes": "Turns a meeting transcript into notes with decisions and action items.",
    "translate": "Translates text between languages and keeps tone and formatting.",
    "habit-tracker": "Tracks daily habits and streaks, and shows progress charts.",
    "invoice-maker": "Creates invoices as PDF from hours worked and client data, with VAT.",
    "release-notes": "Writes release notes and changelog entries from merged pull requests.",
}

FITS = {
    "summarise this article for me please": "summarize",
    "write me a commit message for this diff": "commit-message",
    "can you review the code in src/app.py": "code-review",
    "what's the weather in Berlin tomorrow?": "weather",
    "open a new tmux session": "tmux",
    "list open issues on GitHub": "github",
    "extract the tables from this pdf": "pdf-tools",
    "make a spreadsheet with my expenses": "spreadsheet",
    "plan a trip to Lisbon with flights and hotels": "travel-planner",
    "any recipes for what I can cook with these ingredients?": "recipe-finder",
    "turn off the lights at home": "home-assistant",
    "make notes from this meeting transcript": "meeting-notes",
    "translate this into French": "translate",
    "track my habits": "habit-tracker",
    "create an invoice for client X": "invoice-maker",
    "draft a changelog and release notes": "release-notes",
}


def of_all() -> Relevance:
    return Relevance(shelf(*(skill(name, description=text) for name, text in ABOUT.items())))


@pytest.mark.parametrize(("message", "name"), FITS.items())
def test_a_message_finds_its_skill(message: str, name: str) -> None:
    assert [one.skill.name for one in of_all().relevant(message)][:1] == [name]


@given(st.text(), st.text(), st.text())
def test_a_score_lies_between_none_and_all(name: str, about: str, text: str) -> None:
    relevance = Relevance(shelf(skill(name, description=about), skill("other", description=name)))

    for one in relevance.scores(text):
        assert 0 < one.score <= 1
        assert one.found


def test_only_usable_skills_without_keywords_and_schedule_are_scored() -> None:
    relevance = Relevance(
        shelf(
            skill("weather", state=SkillState.QUARANTINED),
            skill("weather-book", "weather"),
            skill("weather-clock", schedule=SkillSchedule(interval_minutes=5)),
        )
    )

    assert relevance.scores("weather") == ()
