"""Unhelpful replies, by the lists that are shipped; and helpful ones, which must stay."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.guards.unhelpful import (
    SHORT_CHARS,
    asks_how,
    looks_unhelpful,
)
from tests.checkout import ROOT

SHORT = (ROOT / "prompts" / "unhelpful_short.md").read_text(encoding="utf-8")
ANYWHERE = (ROOT / "prompts" / "unhelpful_any.md").read_text(encoding="utf-8")


def look(reply: str, *, message: str = "") -> bool:
    return looks_unhelpful(reply, SHORT, ANYWHERE, message=message)


@pytest.mark.parametrize(
    "reply",
    [
        *("", "   \n", "\t"),
        "I cannot help with that.",
        "Sorry, I can’t do that.",
        "I'M UNABLE to check the weather.",
        "I do not have access to that.",
        "That is beyond my capabilities.",
        "Das kann ich leider nicht.",
        "Je ne peux pas vous aider.",
        "Lo siento, no puedo hacerlo.",
        "If you need the weather, I cannot get it.",
    ],
)
def test_a_short_refusal_and_an_empty_reply_are_unhelpful(reply: str) -> None:
    assert look(reply)


@pytest.mark.parametrize(
    "reply",
    [
        "I looked at what I have here for this, and I am sorry to say that there is no tool "
        "available for reading your calendar at the moment.",
        "I'd love to help you with this. However, I don’t have a tool that can look into your "
        "mailbox. You could open your mail program and search there for the sender's name.",
        "Thanks for asking! As an AI language model, I have no feelings, and my knowledge of "
        "events of this week is limited, so please consult a trustworthy news source instead.",
        "I wish I could tell you what the weather is like right now. I do not have internet "
        "access\nand so my best advice is a look out of the window.",
        "Leider habe ich hier nachgesehen, aber es ist kein Werkzeug verfügbar, mit dem ich deine "
        "Termine lesen könnte, und deshalb kann ich nichts dazu sagen.",
        "Je suis désolé, mais il n'y a aucun outil disponible pour consulter votre messagerie, et "
        "je vous conseille donc d'ouvrir directement votre application.",
    ],
)
def test_a_reply_that_lacks_the_means_is_unhelpful_at_any_length(reply: str) -> None:
    assert len(reply) > SHORT_CHARS
    assert look(reply, message="What is the weather?")


HELPFUL = {
    "How do I get out of vim?": "Press Esc, then type :q! and Enter.",
    "How do I open a jar without an opener?": "With no tool available, hold the lid under hot "
    "water for half a minute, dry it, and twist it with a rubber glove.",
    "How do I tell my boss that I'm ill?": "Keep it short: “Good morning, I am ill and I cannot "
    "come in today. I'll write again tomorrow.”",
    "How do I fix 'no tool available' in the editor?": 'The message "no tool available" shows '
    "when no formatter is set. Open the settings, search for Formatter and choose one.",
    "How do I say no politely?": "Try this:\n> I'm sorry, I can't make it.\nIt needs no excuse.",
    "How do I check whether I'm online?": "Open a terminal and run `ping -c 3 example.org`. If "
    "you see replies, you are; if there is no tool available called ping, open any web page.",
    "How do I find the error in the log?": "Search it:\n```\ngrep 'I cannot' app.log\n```",
    "How do I make my chatbot answer better?": "Give it tools. A bot that says “I don't have "
    "access to real-time data” needs a search tool and a prompt that tells when to use it.",
    "How can I see my calendar from here?": "I don't have a tool for your calendar, but you can "
    "get there in three steps: 1. Open the calendar's site. 2. Choose Settings, Share. 3. Copy "
    "the private address and give it to me with /connect.",
    "Comment faire une capture d'écran ?": "Appuie sur Windows + Maj + S, puis choisis la zone. "
    "Si aucun outil disponible ne te convient, essaie Greenshot.",
}


@pytest.mark.parametrize(("question", "reply"), HELPFUL.items())
def test_a_helpful_answer_to_how_do_i_is_never_overridden(question: str, reply: str) -> None:
    assert asks_how(question)
    assert not look(reply, message=question)


@pytest.mark.parametrize(
    "reply",
    [
        "Paris.",
        "You cannot park there on Sundays.",
        "Anna said she can't come.",
        "There are three tools available: a hammer, a saw and a drill.",
        "If I cannot reach you, I will write an email.",
        "Je peux t'aider !",
    ],
)
def test_ordinary_short_answers_are_helpful(reply: str) -> None:
    assert not look(reply)


def test_list_a_counts_below_a_hundred_characters_alone() -> None:
    just_short = "I cannot say." + "x" * (SHORT_CHARS - 14)
    just_long = just_short + "x"

    assert (len(just_short), len(just_long)) == (99, 100)
    assert look(just_short)
    assert look(f"  {just_short}\n")
    assert not look(just_long)


def test_a_refusal_of_a_how_to_question_is_still_unhelpful_when_short() -> None:
    assert look("I don't know how that is done.", message="How do I do it?")


@given(st.text(max_size=200))
def test_any_reply_is_survived_and_code_alone_is_never_unhelpful(text: str) -> None:
    look(text, message=text)

    assert not look("```\n" + text.replace("`", "") + "\n```")
