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

# Found by trying what the list had not been made for.
MORE_CLAIMS = (
    "I've gone ahead and sent the email to Bob.",
    "Your reminder for 6 pm is all set.",
    "I went ahead and booked the flight.",
    "Email to Bob: sent.",
    "All done! Bob has been notified.",
    "I've sent Bob an email.",
    "I've put the dentist on your calendar for Tuesday.",
    "Your meeting with Dora has been scheduled for Tuesday at 10.",
    "I have taken milk off your shopping list.",
    "I've made a note of that.",
    "Noted! I've added eggs to your shopping list.",
    "I've cleared your to-do list.",
    "Your calendar event has been created.",
    "I created the event for Monday at 9.",
    "I've remembered that you like tea.",
    "The note was deleted.",
    "I have successfully saved your preferences to memory.",
    "Message delivered to Emil.",
    "I've replied to Dora's mail.",
    "I've created a reminder to call Bob at 5.",
    "I've moved the file to the archive.",
    "I've scheduled a job that runs every morning.",
    "The email has been successfully sent to the team.",
    "Ich hab die Mail an Bob geschickt.",
    "Die E-Mail an Bob wurde verschickt.",
    "Der Termin wurde angelegt.",
    "Erinnerung gesetzt für 17 Uhr.",
    "J'ai bien envoyé votre message.",
    "Le rendez-vous a été enregistré.",
    "El recordatorio ha sido creado.",
    "He programado la reunión para el lunes.",
    "I've set up the meeting for Monday at 3.",
    "I've set your alarm for 7.",
    "Your file was saved as notes.txt.",
    "I've noted your preference.",
    "I have deleted all three files.",
    "I've successfully cancelled the meeting.",
    "I just messaged Dora for you.",
    "I've submitted the form.",
    "Okay! I just sent Bob a quick email about Friday.",
    "The email to Dora has been sent.",
    "Your email was successfully delivered to Bob.",
    "I've let Bob know that you'll be late.",
    "I've shared the document with your team.",
    "Message to Emil sent ✅",
    "I've written to Dora and asked for the figures.",
    "Your flight is booked for Tuesday.",
    "I've reserved a room for two nights.",
    "The dentist appointment is now scheduled for 3 May.",
    "I have set a daily reminder at 8.",
    "I'll remind you at 5 - the reminder is set.",
    "I've blocked two hours in your calendar.",
    "I've stored this in memory.",
    "I've saved that for you.",
    "Your notes have been updated.",
    "I've recorded the expense.",
    'I\'ve added "milk" to your list.',
    "I have removed the reminder.",
    "The old files have been deleted.",
    "I've wiped your notes.",
    "Ich habe dir eine Erinnerung für morgen eingerichtet.",
    "Ich habe Bob eine Nachricht geschickt.",
    "Deine Notiz ist gespeichert.",
    "Le message est bien parti.",
    "He creado el recordatorio.",
    "He enviado el mensaje a Bob.",
    "I have paid the invoice.",
    "Done. I deleted it.",
    "I have forwarded Dora's mail to Emil.",
)

MORE_HONEST = (
    "I can draft the email, but sending it is up to you.",
    "Bob sent the contract on Tuesday.",
    "The newest mail is from Dora; she sent the slides.",
    "Your last mail to Bob says that you booked the hotel.",
    "Here are the mails that were sent to you this week.",
    "To schedule a meeting, tell me the day.",
    "I'd be happy to set a reminder for you.",
    "You asked me to send it, but I have no mail tool.",
    "The file that Bob saved is called plan.txt.",
    "Would you like me to delete it?",
    "Files are deleted after thirty days.",
    "I have three reminders for you.",
    "The summary I sent you is in this conversation.",
    "As in the list I sent you, the first step is tea.",
    "Emails that have been sent can't be recalled.",
    "I have sent-mail search, but nothing matched.",
    "The bank has cancelled the card, it says.",
    "The concert has been cancelled because of rain, the page says.",
    "She has booked a table, her mail says.",
    "The train has been cancelled.",
    "Napoleon sent the army to Moscow.",
    "Once the message is sent, you'll see a tick.",
    "It should be saved automatically.",
    "Want me to note that down?",
    "You've already saved 300 euros this month.",
    "I was about to delete it; shall I?",
    "I need your OK before the mail is sent.",
    "The mail is ready to be sent.",
    "Your draft has been prepared; nothing went out.",
    "In the story, the hero says: I have sent the dragon away.",
    "Tell him you have sent the parcel.",
    "Please confirm, then I send it.",
    "I sent you an overview at the start.",
    "I've sent my answer as text here, since files do not work.",
    "Ich kann die Mail senden, sobald du zustimmst.",
    "Bob hat die Datei gelöscht.",
    "Soll ich den Termin eintragen?",
    "Die Rechnung wurde von Dora verschickt.",
    "Paul a envoyé le message hier.",
    "Ana ha enviado el contrato.",
    "The backup is saved in /var by the program.",
    "Your settings are stored in config.toml.",
    "Scheduled jobs are listed with /jobs.",
    "I removed the duplicates from the text you pasted: a, b, c.",
    "I deleted the second sentence of your paragraph, as you asked: here it is.",
    "I've removed the passive voice from your text.",
    "I've added the missing comma.",
    "I've updated the paragraph below.",
    "The mail that you sent on Monday has no attachment.",
    "I have read the mails: Bob has booked the room.",
    "Shall I go ahead and send it?",
    "Dora wrote that she had deleted the folder.",
    "Nothing is scheduled for Monday.",
    "I'm not able to send mails from here.",
    "You can find what you saved under notes/.",
    "To delete a reminder, type /jobs.",
    "I've got it, and will send it as soon as you agree.",
    "Maybe I sent it twice; let me look.",
    "I've shortened the second paragraph.",
    "I have listed the files that were deleted by the sync.",
    "Bob says he has sent the money.",
    "The parcel was sent from Oslo two days ago.",
    "I've set out three options for you.",
    "I have noted three problems with the plan.",
    "I've removed all adjectives from the sentence.",
    "It looks as if the mail has been sent by Dora.",
    "I've added up the numbers: 42.",
    "I posted nothing.",
    "I scheduled nothing.",
    "As I wrote, I've saved nothing yet.",
    "Who has sent the message?",
    "I have forgotten nothing.",
    "The saved file has 3 lines.",
    "Reminder: the meeting was moved by Emil.",
    "I've created a plan in three steps.",
    "I've booked nothing so far; which day suits you?",
    "Der Brief, den ich gesendet habe, ist alt.",
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


@pytest.mark.parametrize("reply", MORE_CLAIMS)
def test_a_claim_is_found(reply: str) -> None:
    assert WORDS.unbacked(reply, Ledger()) is not None


@pytest.mark.parametrize("reply", NOTHING_CLAIMED + MORE_HONEST)
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

    assert time.monotonic() - begin < 60  # a hang guard: a busy machine takes five


def turn(tool: str, *, effect: Effect, ok: bool = True) -> list[Entry]:
    call = ToolCall(id="1", name=tool, arguments="{}")
    changed = effect.value if ok and effect is not Effect.NONE else ""
    return [
        Said(text="do it"),
        Answered(text="", calls=(call,)),
        ToolResult(call_id="1", content="x", ok=ok, effect=changed),
    ]
