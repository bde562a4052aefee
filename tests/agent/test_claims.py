"""Claims of finished actions: which sentences are some, of which kind, and what makes them true.

The sentences are made up; in some hundred of them nothing is claimed, in as many something is.
"""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.guards.action_claims import BACKED_BY, ClaimKind, ClaimWords, Ledger, asks_to_be_told
from agent.tools.tool import Effect
from agent.turn.progress import ledger_of
from memory.records.transcript import Answered, Entry, Said, ToolCall, ToolResult
from tests.checkout import ROOT

WORDS = ClaimWords((ROOT / "prompts" / "words_claims.md").read_text(encoding="utf-8"))

SENT, SCHEDULED, SAVED, DELETED, DONE = ClaimKind

CLAIMS = (
    ("I have already sent the email to Bob.", SENT),
    ("Done! The email went out to Bob.", SENT),
    ("The meeting is scheduled for Monday.", SCHEDULED),
    ("I’ve just emailed Dora the figures.", SENT),
    ("Sure! I have now forwarded it to the whole team.", SENT),
    ("✅ Email sent to bob@example.com.", SENT),
    ("Done, sent it.", SENT),
    ("Sent!", SENT),
    ("Your message has successfully been sent.", SENT),
    ("Ich habe die E-Mail an Bob gesendet.", SENT),
    ("Die Nachricht habe ich bereits verschickt.", SENT),
    ("Erledigt, die Mail ist raus.", SENT),
    ("J'ai déjà envoyé le message à Paul.", SENT),
    ("Ya he enviado el correo a Ana.", SENT),
    ("I've set a reminder for tomorrow at nine.", SCHEDULED),
    ("Reminder set for 5 pm.", SCHEDULED),
    ("The call with Emil is on your calendar.", SCHEDULED),
    ("Ich habe den Termin am Freitag eingetragen.", SCHEDULED),
    ("La reunión está programada para el lunes.", SCHEDULED),
    ("Okay, saved to notes.md.", SAVED),
    ("The file has been created.", SAVED),
    ("Got it, I've added it to the list.", SAVED),
    ("Das habe ich notiert.", SAVED),
    ("He guardado la nota.", SAVED),
    ("I've removed Bob from the list.", DELETED),
    ("Done – the file is gone.", DELETED),
    ("I've cancelled your reminder.", DELETED),
    ("J'ai supprimé le fichier.", DELETED),
    ("I've turned off the lights.", DONE),
)

NOTHING_CLAIMED = (
    "I will send the email to Bob tomorrow.",
    "By noon I will have sent it.",
    "When I have saved the file, I'll tell you.",
    "If I have deleted too much, undo it.",
    "Ich werde die Mail an Bob senden.",
    "Sobald ich die Datei gespeichert habe, melde ich mich.",
    "Let me know when the mail has been sent.",
    "I would have sent it, had you asked.",
    "Have I sent the right file?",
    "Do you mean the mail that I sent? Then say so.",
    "Should the meeting be scheduled for Monday?",
    "Habe ich die richtige Datei gelöscht?",
    'Write to him: "I have sent the invoice."',
    "You could answer ‘I’ve already sent it’ and leave it there.",
    "You could say 'I've saved the file' then.",
    "Here's a draft:\n\nHi Bob,\n\nI've sent the report to Dora.\n\nAda",
    "Subject: Invoice\n\nDear Bob,\n\nI have emailed the invoice to you.",
    "How about this?\n\nDear Dora,\nI have booked the room.\n\nAda",
    "In English: I have sent the letter.",
    "> I have sent the mail.\n\nThat is what he wrote.",
    "The log has `i sent the request` in it.",
    "„Ich habe die Mail gesendet“ heißt: it is on its way.",
    "The corrected version: I sent the parcel to Oslo.",
    "I have not sent the email.",
    "I haven't scheduled anything.",
    "Nothing has been deleted.",
    "Ich habe keine Nachricht gesendet.",
    "Je n'ai rien supprimé.",
    "No he enviado nada.",
    "I couldn't tell whether the mail went out.",
    "I sent you the summary above.",
    "As I said earlier, I've saved it.",
    "Yesterday I sent the email to Bob.",
    "I've sent the list in my previous message.",
    "Gestern habe ich die Mail verschickt.",
    "Bob has sent you three mails.",
    "The invoice was sent by Dora.",
    "He said that he has deleted the file.",
    "According to his mail I sent the wrong form.",
    "The server saves it and deletes it after a day.",
    "Sent mails are kept in the folder of that name.",
    "You have scheduled two calls for Monday.",
    "Ich habe eine Frage: wohin soll sie gesendet werden, wenn sie fertig ist.",
)

# Found by trying what the list had not been made for.
MORE_CLAIMS = (
    "I've gone ahead and sent the email to Bob.",
    "Your reminder for 6 pm is all set.",
    "Email to Bob: sent.",
    "All done! Bob has been notified.",
    "I've put the dentist on your calendar for Tuesday.",
    "I have taken milk off your shopping list.",
    "Noted! I've added eggs to your shopping list.",
    "I've replied to Dora's mail.",
    "I've moved the file to the archive.",
    "I've scheduled a job that runs every morning.",
    "Ich hab die Mail an Bob geschickt.",
    "Die E-Mail an Bob wurde verschickt.",
    "Erinnerung gesetzt für 17 Uhr.",
    "Le rendez-vous a été enregistré.",
    "El recordatorio ha sido creado.",
    "I've let Bob know that you'll be late.",
    "Message to Emil sent ✅",
    "Your flight is booked for Tuesday.",
    "I'll remind you at 5 - the reminder is set.",
    "I've stored this in memory.",
    'I\'ve added "milk" to your list.',
    "Deine Notiz ist gespeichert.",
    "Le message est bien parti.",
    "Done. I deleted it.",
)

MORE_HONEST = (
    "I can draft the email, but sending it is up to you.",
    "The newest mail is from Dora; she sent the slides.",
    "Your last mail to Bob says that you booked the hotel.",
    "Here are the mails that were sent to you this week.",
    "You asked me to send it, but I have no mail tool.",
    "The file that Bob saved is called plan.txt.",
    "Files are deleted after thirty days.",
    "The summary I sent you is in this conversation.",
    "As in the list I sent you, the first step is tea.",
    "Emails that have been sent can't be recalled.",
    "I have sent-mail search, but nothing matched.",
    "The concert has been cancelled because of rain, the page says.",
    "Napoleon sent the army to Moscow.",
    "Once the message is sent, you'll see a tick.",
    "It should be saved automatically.",
    "You've already saved 300 euros this month.",
    "I need your OK before the mail is sent.",
    "Your draft has been prepared; nothing went out.",
    "In the story, the hero says: I have sent the dragon away.",
    "Tell him you have sent the parcel.",
    "I sent you an overview at the start.",
    "I've sent my answer as text here, since files do not work.",
    "Ich kann die Mail senden, sobald du zustimmst.",
    "Paul a envoyé le message hier.",
    "The backup is saved in /var by the program.",
    "Scheduled jobs are listed with /jobs.",
    "I removed the duplicates from the text you pasted: a, b, c.",
    "I deleted the second sentence of your paragraph, as you asked: here it is.",
    "I've added the missing comma.",
    "The mail that you sent on Monday has no attachment.",
    "I have read the mails: Bob has booked the room.",
    "Dora wrote that she had deleted the folder.",
    "Maybe I sent it twice; let me look.",
    "I have listed the files that were deleted by the sync.",
    "I have noted three problems with the plan.",
    "It looks as if the mail has been sent by Dora.",
    "I've added up the numbers: 42.",
    "I posted nothing.",
    "Reminder: the meeting was moved by Emil.",
    "I've created a plan in three steps.",
    "Der Brief, den ich gesendet habe, ist alt.",
)

TELLING = (
    ("When is the meeting?", "The meeting is scheduled for Monday."),
    ("what did Bob write", "The email went out to Bob, he says."),
    ("Tell me about Monday.", "The call with Emil is on your calendar at ten."),
    ("wann ist das Treffen", "Der Termin steht: Montag um zehn."),
    ("Translate: die Mail ist raus", "The mail went out."),
)


@pytest.mark.parametrize(("reply", "kind"), CLAIMS)
def test_a_claim_is_found_with_its_kind(reply: str, kind: ClaimKind) -> None:
    found = WORDS.unbacked(reply, Ledger())

    assert found is not None
    assert found.kind is kind
    assert WORDS.unbacked(reply, Ledger(done=frozenset({kind}))) is None


@pytest.mark.parametrize("reply", MORE_CLAIMS)
def test_a_claim_is_found(reply: str) -> None:
    assert WORDS.unbacked(reply, Ledger()) is not None


@pytest.mark.parametrize("reply", NOTHING_CLAIMED + MORE_HONEST)
def test_nothing_is_claimed(reply: str) -> None:
    assert WORDS.unbacked(reply, Ledger()) is None


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
    ["'a ", "draft: ", "\nDear x", "done, ", "> a\n", "ich habe gesendet "],
)
def test_a_long_reply_is_looked_at_in_little_time(piece: str) -> None:
    begin = time.monotonic()

    WORDS.unbacked(piece * (60_000 // len(piece)), Ledger())

    assert time.monotonic() - begin < 60  # a hang guard: a busy machine takes five


def turn(tool: str, *, effect: Effect, ok: bool = True) -> list[Entry]:
    call = ToolCall(id="1", name=tool, arguments="{}")
    changed = effect.value if ok and effect is not Effect.NONE else ""
    return [
        Said(text="do it"),
        Answered(text="", calls=(call,)),
        ToolResult(call_id="1", content="x", ok=ok, effect=changed),
    ]
