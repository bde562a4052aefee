"""Unhelpful replies, by the lists that are shipped; and helpful ones, which must stay."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.guards.unhelpful import (
    SHORT_CHARS,
    asks_how,
    looks_unhelpful,
)
from memory.records.words import read_list
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
        "I don't know.",
        "I do not have access to that.",
        "Unfortunately, I couldn't find anything about it.",
        "I have no information on your bookings.",
        "That is beyond my capabilities.",
        "Das kann ich leider nicht.",
        "Ich habe keinen Zugriff darauf.",
        "Je ne peux pas vous aider.",
        "Désolé, je n’ai pas accès à ces données.",
        "Lo siento, no puedo hacerlo.",
        "No tengo acceso a esos datos.",
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
        "That's a great question! Unfortunately I don't have access to real-time data, so the "
        "current price of gold is something that you would have to look up on a financial site.",
        "I'd love to help you with this. However, I don’t have a tool that can look into your "
        "mailbox. You could open your mail program and search there for the sender's name.",
        "Thanks for asking! As an AI language model, I have no feelings, and my knowledge of "
        "events of this week is limited, so please consult a trustworthy news source instead.",
        "I can't browse the web, so I'm not in a position to say which shops are open today; a "
        "quick search with the name of your town will show you the opening hours.",
        "I wish I could tell you what the weather is like right now. I do not have internet "
        "access\nand so my best advice is a look out of the window.",
        "Leider habe ich hier nachgesehen, aber es ist kein Werkzeug verfügbar, mit dem ich deine "
        "Termine lesen könnte, und deshalb kann ich nichts dazu sagen.",
        "Je suis désolé, mais il n'y a aucun outil disponible pour consulter votre messagerie, et "
        "je vous conseille donc d'ouvrir directement votre application.",
        "Lo siento mucho, pero no tengo ninguna herramienta para consultar el tiempo en tu ciudad, "
        "así que te recomiendo mirar una página especializada.",
    ],
)
def test_a_reply_that_lacks_the_means_is_unhelpful_at_any_length(reply: str) -> None:
    assert len(reply) > SHORT_CHARS
    assert look(reply, message="What is the weather?")


HELPFUL = {
    "How do I undo the last commit?": "Run `git reset --soft HEAD~1`. Your changes stay staged, "
    "and only the commit is taken back.",
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
    "How do I cancel my order?": "Open Orders, choose it and tap Cancel. Once it has been shipped "
    "you cannot cancel it any more, but you can send it back.",
    "How do I make my chatbot answer better?": "Give it tools. A bot that says “I don't have "
    "access to real-time data” needs a search tool and a prompt that tells when to use it.",
    "How do I reset my router?": "Hold the small button at the back for ten seconds. If you can't "
    "find it, look for the word Reset beside the sockets.",
    "How do I descale a kettle?": "Fill it half with water and half with vinegar, boil, wait an "
    "hour, rinse twice. I can't promise that it will shine, but the scale will be gone.",
    "How can I see my calendar from here?": "I don't have a tool for your calendar, but you can "
    "get there in three steps: 1. Open the calendar's site. 2. Choose Settings, Share. 3. Copy "
    "the private address and give it to me with /connect.",
    "Wie kann ich eine Datei umbenennen?": "Klicke sie einmal an, drücke F2, tippe den neuen "
    "Namen und drücke Enter. Wenn das nicht geht, ist sie noch geöffnet.",
    "Comment faire une capture d'écran ?": "Appuie sur Windows + Maj + S, puis choisis la zone. "
    "Si aucun outil disponible ne te convient, essaie Greenshot.",
    "¿Cómo puedo vaciar la papelera?": "Haz clic derecho en la papelera y elige Vaciar. Si no "
    "puedes, cierra antes los archivos abiertos.",
}


@pytest.mark.parametrize(("question", "reply"), HELPFUL.items())
def test_a_helpful_answer_to_how_do_i_is_never_overridden(question: str, reply: str) -> None:
    assert asks_how(question)
    assert not look(reply, message=question)


@pytest.mark.parametrize(
    ("question", "reply"),
    [one for one in HELPFUL.items() if "calendar" not in one[0]],
)
def test_most_are_seen_to_be_helpful_without_the_question(question: str, reply: str) -> None:
    assert question
    assert not look(reply)


@pytest.mark.parametrize(
    "reply",
    [
        "Paris.",
        "You cannot park there on Sundays.",
        "Anna said she can't come.",
        "Done: I have noted it.",
        "Unfortunately the shop closes at six.",
        "There are three tools available: a hammer, a saw and a drill.",
        "If I cannot reach you, I will write an email.",
        "Je peux t'aider !",
        "👍",
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


def test_phrases_are_whole_words() -> None:
    assert not looks_unhelpful("Hi cannoted", "i cannot", "no tool")
    assert not looks_unhelpful("There are no tools", "i cannot", "no tool")
    assert looks_unhelpful("There is NO  tool!", "i cannot", "no tool")


def test_a_refusal_of_a_how_to_question_is_still_unhelpful_when_short() -> None:
    assert look("I don't know how that is done.", message="How do I do it?")


def test_empty_lists_leave_the_empty_reply() -> None:
    assert not looks_unhelpful("I cannot.", "", "# nothing\n")
    assert looks_unhelpful(" ", "", "")


def test_the_shipped_lists_have_no_entry_twice() -> None:
    for text in (SHORT, ANYWHERE):
        entries = read_list(text)
        assert len(entries) == len(set(entries)) > 50


def test_a_long_reply_is_looked_at_in_milliseconds() -> None:
    begun = time.process_time()

    for piece in ('"', "`", "```", "> x\n", "if i, no tool ", "“", "word "):
        look(piece * (20_000 // len(piece)))

    assert time.process_time() - begun < 20


@given(st.text(max_size=200))
def test_any_reply_is_survived_and_code_alone_is_never_unhelpful(text: str) -> None:
    look(text, message=text)

    assert not look("```\n" + text.replace("`", "") + "\n```")
