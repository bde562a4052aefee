"""Claims of finished actions: which sentences are some, of which kind, and what makes them true.

The sentences are of the product's own making: 60 in which nothing is claimed, 43 that claim.
"""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.claims import BACKED_BY, ClaimKind, ClaimWords, Ledger, asks_to_be_told
from agent.rounds import ledger_of
from agent.tools.tool import Effect
from agent.transcript import Answered, Entry, Said, ToolCall, ToolResult
from tests.checkout import ROOT

WORDS = ClaimWords((ROOT / "prompts" / "words_claims.md").read_text(encoding="utf-8"))

SENT, SCHEDULED, SAVED, DELETED, DONE = ClaimKind

CLAIMS = (
    ("I have already sent the email to Bob.", SENT),
    ("Done! The email went out to Bob.", SENT),
    ("The meeting is scheduled for Monday.", SCHEDULED),
    ("I've sent the mail to Bob.", SENT),
    ("I’ve just emailed Dora the figures.", SENT),
    ("Sure! I have now forwarded it to the whole team.", SENT),
    ("✅ Email sent to bob@example.com.", SENT),
    ("Done, sent it.", SENT),
    ("Sent!", SENT),
    ("Your message has successfully been sent.", SENT),
    ("The invitations have been sent to all five.", SENT),
    ("I posted the update in the channel.", SENT),
    ("Ich habe die E-Mail an Bob gesendet.", SENT),
    ("Die Nachricht habe ich bereits verschickt.", SENT),
    ("Erledigt, die Mail ist raus.", SENT),
    ("J'ai déjà envoyé le message à Paul.", SENT),
    ("Ya he enviado el correo a Ana.", SENT),
    ("I've scheduled the call for 3 pm.", SCHEDULED),
    ("I have booked a table for two at seven.", SCHEDULED),
    ("I've set a reminder for tomorrow at nine.", SCHEDULED),
    ("Reminder set for 5 pm.", SCHEDULED),
    ("All set: your appointment is booked.", SCHEDULED),
    ("The call with Emil is on your calendar.", SCHEDULED),
    ("Ich habe den Termin am Freitag eingetragen.", SCHEDULED),
    ("J'ai programmé un rappel pour demain.", SCHEDULED),
    ("La reunión está programada para el lunes.", SCHEDULED),
    ("I saved your shopping list.", SAVED),
    ("I have already noted that down.", SAVED),
    ("Okay, saved to notes.md.", SAVED),
    ("I've updated your profile.", SAVED),
    ("The file has been created.", SAVED),
    ("Got it, I've added it to the list.", SAVED),
    ("Das habe ich notiert.", SAVED),
    ("J'ai bien enregistré votre adresse.", SAVED),
    ("He guardado la nota.", SAVED),
    ("I have now deleted the old draft file.", DELETED),
    ("I've removed Bob from the list.", DELETED),
    ("Done – the file is gone.", DELETED),
    ("I've cancelled your reminder.", DELETED),
    ("Ich habe die Datei gelöscht.", DELETED),
    ("J'ai supprimé le fichier.", DELETED),
    ("He borrado la tarea.", DELETED),
    ("I've turned off the lights.", DONE),
)

NOTHING_CLAIMED = (
    # What will be, or may be.
    "I will send the email to Bob tomorrow.",
    "I'll save it once you agree.",
    "I'm going to schedule the meeting for Monday.",
    "I can send it for you.",
    "By noon I will have sent it.",
    "When I have saved the file, I'll tell you.",
    "If I have deleted too much, undo it.",
    "The reminder will be set for five.",
    "After I've booked the table you get a message.",
    "Ich werde die Mail an Bob senden.",
    "Sobald ich die Datei gespeichert habe, melde ich mich.",
    "Je vais envoyer le message.",
    "Voy a enviar el correo.",
    "Let me know when the mail has been sent.",
    "I would have sent it, had you asked.",
    # Questions.
    "Have I sent the right file?",
    "Do you mean the mail that I sent? Then say so.",
    "Shall I note that I've booked it?",
    "Should the meeting be scheduled for Monday?",
    "Habe ich die richtige Datei gelöscht?",
    "Which file has been deleted?",
    # Quotes, drafts, examples, code.
    'Write to him: "I have sent the invoice."',
    "You could answer ‘I’ve already sent it’ and leave it there.",
    "You could say 'I've saved the file' then.",
    "Here's a draft:\n\nHi Bob,\n\nI've sent the report to Dora.\n\nAda",
    "Subject: Invoice\n\nDear Bob,\n\nI have emailed the invoice to you.",
    "How about this?\n\nDear Dora,\nI have booked the room.\n\nAda",
    "In English: I have sent the letter.",
    "Translation: The file has been deleted.",
    "> I have sent the mail.\n\nThat is what he wrote.",
    "The log has `i sent the request` in it.",
    "„Ich habe die Mail gesendet“ heißt: it is on its way.",
    "The corrected version: I sent the parcel to Oslo.",
    # Denied.
    "I have not sent the email.",
    "I haven't scheduled anything.",
    "Nothing has been deleted.",
    "I never sent that message.",
    "No mail has been sent.",
    "Ich habe keine Nachricht gesendet.",
    "Je n'ai rien supprimé.",
    "No he enviado nada.",
    "I couldn't tell whether the mail went out.",
    # What was said or done before in this chat, or at another time.
    "I sent you the summary above.",
    "As I said earlier, I've saved it.",
    "Yesterday I sent the email to Bob.",
    "I sent it last week.",
    "I've sent the list in my previous message.",
    "Gestern habe ich die Mail verschickt.",
    "I set a reminder two days ago.",
    # What somebody else did, and how things are.
    "Bob has sent you three mails.",
    "Dora sent the contract, and Emil saved it.",
    "The invoice was sent by Dora.",
    "He said that he has deleted the file.",
    "The invitation has been sent by your sister.",
    "According to his mail I sent the wrong form.",
    "The server saves it and deletes it after a day.",
    "Sent mails are kept in the folder of that name.",
    "A saved file can be sent later.",
    "You have scheduled two calls for Monday.",
    "Ich habe eine Frage: wohin soll sie gesendet werden, wenn sie fertig ist.",
)

TELLING = (
    ("When is the meeting?", "The meeting is scheduled for Monday."),
    ("what did Bob write", "The email went out to Bob, he says."),
    ("Is the table booked", "Yes, the table is booked for seven."),
    ("Tell me about Monday.", "The call with Emil is on your calendar at ten."),
    ("wann ist das Treffen", "Der Termin steht: Montag um zehn."),
    ("Was ist mit der Datei?", "Die Datei ist gespeichert."),
    ("Was my file deleted?", "Yes, it has been deleted."),
    ("Translate: die Mail ist raus", "The mail went out."),
)


@pytest.mark.parametrize(("reply", "kind"), CLAIMS)
def test_a_claim_is_found_with_its_kind(reply: str, kind: ClaimKind) -> None:
    found = WORDS.unbacked(reply, Ledger())

    assert found is not None
    assert found.kind is kind
    assert WORDS.unbacked(reply, Ledger(done=frozenset({kind}))) is None


@pytest.mark.parametrize("reply", NOTHING_CLAIMED)
def test_nothing_is_claimed(reply: str) -> None:
    assert WORDS.unbacked(reply, Ledger()) is None


def test_the_figures_of_the_sentences_hold() -> None:
    assert len(set(NOTHING_CLAIMED)) >= 60
    assert len(set(CLAIMS)) >= 40


@pytest.mark.parametrize(("message", "reply"), TELLING)
def test_an_answer_about_how_things_are_claims_nothing(message: str, reply: str) -> None:
    assert WORDS.unbacked(reply, ledger_of([Said(text=message)])) is None


@pytest.mark.parametrize(
    "message",
    ["Schedule a meeting on Monday", "Can you mail Bob?", "write to Bob please", "Termin Montag!"],
)
def test_who_wants_something_done_does_not_ask_to_be_told(message: str) -> None:
    assert not asks_to_be_told(message)


def test_what_was_read_may_be_told() -> None:
    reply = "The meeting is scheduled for Monday."

    assert WORDS.unbacked(reply, ledger_of(turn("list_events", effect=Effect.NONE))) is None
    assert WORDS.unbacked("I've scheduled it.", ledger_of(turn("list_events", effect=Effect.NONE)))


@pytest.mark.parametrize(
    ("tool", "kinds"),
    [
        ("send_message", {SENT}),
        ("remind_me", {SCHEDULED, SAVED}),
        ("record_event", {SCHEDULED, SAVED}),
        ("store_fact", {SAVED}),
        ("forget_fact", {DELETED}),
        ("remove_job", {DELETED}),
        ("mail__send", {SENT, SCHEDULED, SAVED, DELETED}),
        ("exec", {SENT, SCHEDULED, SAVED, DELETED}),
        ("subagent", {SENT, SCHEDULED, SAVED, DELETED}),
    ],
)
def test_an_effect_makes_claims_of_its_kinds_true(tool: str, kinds: set[ClaimKind]) -> None:
    done = ledger_of(turn(tool, effect=Effect.PERSON)).done

    assert done - {DONE} == kinds
    assert DONE in done


def test_a_call_that_failed_makes_nothing_true() -> None:
    assert ledger_of(turn("send_message", effect=Effect.PERSON, ok=False)).done == frozenset()


def test_a_tool_that_was_found_and_called_counts_by_its_own_name() -> None:
    call = ToolCall(id="1", name="tool_call", arguments='{"name": "store_fact", "arguments": {}}')
    entries: list[Entry] = [
        Answered(text="", calls=(call,)),
        ToolResult(call_id="1", content="", effect="x"),
    ]

    assert ledger_of(entries).done == BACKED_BY["store_fact"]


def test_a_stored_fact_does_not_send_a_mail() -> None:
    ledger = ledger_of(turn("store_fact", effect=Effect.PERSON))

    found = WORDS.unbacked("I've saved that. I've also sent the mail to Bob.", ledger)

    assert found is not None
    assert found.text == "i've also sent the mail to bob"
    assert "nothing was sent just now" in found.correction


def test_a_list_without_sections_is_about_anything() -> None:
    found = ClaimWords("i fed the cat").unbacked("I fed the cat.", Ledger())

    assert found is not None
    assert found.kind is DONE


@given(st.text(max_size=300))
def test_any_reply_is_looked_at(reply: str) -> None:
    found = WORDS.unbacked(reply, Ledger())

    assert found is None or found.text


@pytest.mark.parametrize(
    "piece",
    [
        *("'", "'a ", "draft: ", "\nDear x", "done, ", "“", "> a\n", "\n---\n", "by "),
        *("ich habe ", "ich habe gesendet ", "wir, ich habe. ", "habe gesendet, ", "draft "),
    ],
)
def test_a_long_reply_is_looked_at_in_little_time(piece: str) -> None:
    begin = time.monotonic()

    WORDS.unbacked(piece * (60_000 // len(piece)), Ledger())

    assert time.monotonic() - begin < 5  # a hang guard


def turn(tool: str, *, effect: Effect, ok: bool = True) -> list[Entry]:
    call = ToolCall(id="1", name=tool, arguments="{}")
    changed = effect.value if ok and effect is not Effect.NONE else ""
    return [
        Said(text="do it"),
        Answered(text="", calls=(call,)),
        ToolResult(call_id="1", content="x", ok=ok, effect=changed),
    ]
