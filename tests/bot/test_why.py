"""What made an answer, or why something was sent: told to those whom it concerns alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial

from bot.app.app import App
from bot.commands.trace import why_messages as words
from memory.records.facts import FactSource, NewFact, Whose
from memory.records.jobs import At, Due, Job, JobKind, What
from memory.records.messages import PersonId, Role
from tests.bot.kit import GROUP, MEMBER, OWNER, US, Rig, eventually, judge_markup

LATER = datetime(2037, 5, 4, 9, 0, tzinfo=UTC)


def who(bot: App, number: int) -> PersonId:
    person = bot.access.who(f"telegram:{number}")
    assert person is not None
    return person.id


async def asked(rig: Rig, text: str, *, by: int = OWNER, chat: int = 0, reply_to: int = 0) -> str:
    """What the bot says to one message."""
    where = chat or by
    before = len(rig.seen(where))
    more = {"reply_to": reply_to} if reply_to else {}
    rig.says(text, by=by, chat=where, **more)
    await eventually(lambda: len(rig.seen(where)) > before)
    return rig.texts(where)[-1]


async def answered(rig: Rig, bot: App, text: str, **where: int) -> int:
    """The id of the message that answers, once all is stored."""
    await asked(rig, text, **where)
    await rig.quiet(bot)
    return rig.seen(where.get("chat") or where.get("by") or OWNER)[-1].message_id


async def known(
    bot: App, text: str, *, of: int = OWNER, chat: int = 0, quote: str = "", speaker: str = ""
) -> int:
    """A fact that rests on a line."""
    scope = f"telegram:{chat}" if chat else ""
    stored = await bot.memories.facts.store(
        NewFact(
            whose=Whose(person_id=who(bot, of), scope=scope),
            text=text,
            category="preference",
            source=FactSource.MESSAGE,
            quote=quote,
            speaker=speaker,
        )
    )
    assert stored.fact is not None
    return stored.fact.id


def buttons(rig: Rig, chat: int = OWNER) -> list[tuple[str, str]]:
    """Label and data of those under the last message."""
    rows = (rig.seen(chat)[-1].markup or {}).get("inline_keyboard", [])
    return [(one["text"], one["callback_data"]) for row in rows for one in row]


def answers(rig: Rig, count: int) -> bool:
    """Whether so many presses were answered."""
    return len(rig.telegram.answers()) >= count


# --- an answer ----------------------------------------------------------------------------------


async def test_a_plain_answer_is_explained_in_a_few_lines_while_its_trace_is_kept(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        await answered(rig, bot, "Hello!")
        requests = len(rig.model.requests)

        text = await asked(rig, "/why")

        no_facts = buttons(rig)
        later = datetime.now(UTC) + timedelta(days=1)
        await bot.journal.prune(int(later.timestamp() * 1000))
        too_old = await asked(rig, "/why")

        assert len(rig.model.requests) == requests, "no model is asked"
    assert len(text.splitlines()) <= 12
    assert text.startswith("Why this answer: ")
    assert "in-1" in text
    assert "Remembered of you: nothing that fits" in text
    assert "Playbooks and skills: none that fits" in text
    assert "offered (9 always" in text
    assert "none called" in text
    assert "Model: lab-model; answered directly" in text
    assert "1 request, " in text
    assert "price unknown" in text
    assert no_facts == []
    assert too_old == words.EXPIRED


async def test_facts_are_told_with_their_source_until_they_are_forgotten(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        fact_id = await known(bot, "Ann takes her tea without milk", quote="no milk for me, ever")
        first = await answered(rig, bot, "How do I take my tea?")
        text = await asked(rig, "/why")
        shown = buttons(rig)
        await answered(rig, bot, "And how do I take my tea?")
        later = await asked(rig, "/why")
        await bot.memories.facts.forget(Whose(person_id=who(bot, OWNER)), [fact_id])

        forgotten = await asked(rig, "/why", reply_to=first)

    day = datetime.now(UTC)
    assert f"f{fact_id} “Ann takes her tea without milk” (from what was said, {day.day} " in text
    assert "“no milk for me, ever”" in text
    assert "/memory edit f12 TEXT" in text
    assert shown == [(f"Forget f{fact_id}", f"why:f{fact_id}:forget")]
    assert "Told earlier in this conversation:\n• f1 “Ann takes her tea without milk”" in later
    assert f"f{fact_id}: forgotten since" in forgotten
    assert "milk" not in forgotten
    assert buttons(rig) == []
    judge_markup(rig.telegram)


async def test_a_reply_asks_about_the_answer_that_it_replies_to(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        rig.model.call("list_dir", {"path": "."})
        older = await answered(rig, bot, "What is there?")
        await answered(rig, bot, "Thanks!")

        last = await asked(rig, "/why")
        about_older = await asked(rig, "/why", reply_to=older)
        before = await asked(rig, "/why 2")
        own = max(seen.message_id for seen in rig.telegram.chat(OWNER) if not seen.is_bot)
        not_ours = await asked(rig, "/why", reply_to=own)
        of_command = await asked(rig, "/why", reply_to=rig.seen()[-1].message_id)
        too_far = await asked(rig, "/why 9")
        wrong = await asked(rig, "/why oh why")
        await asked(rig, "/new")
        nothing_yet = await asked(rig, "/why")

    assert "list_dir" not in last
    assert 'list_dir {"path": "."}: done in ' in about_older
    assert before == about_older
    assert not_ours.startswith("I find no message of mine")
    assert of_command == words.NO_TURN
    assert too_far.startswith("I have not given so many answers")
    assert nothing_yet == words.NOTHING_YET
    assert wrong.startswith("Send /why as a reply")


async def test_a_stand_in_is_told_and_a_guest_hears_nothing_of_money(rig: Rig) -> None:
    rig.set(llm__fallbacks="openai/spare", llm__timeout_s=1)
    rig.model.named_fault("503", times=None, when={"model": "lab-model"})
    async with rig.running(OWNER, MEMBER, hurry=100) as bot:
        await answered(rig, bot, "one")
        await bot.access.set_role(f"telegram:{MEMBER}", Role.GUEST)
        await answered(rig, bot, "one", by=MEMBER)

        owners = await asked(rig, "/why")
        guests = await asked(rig, "/why", by=MEMBER)

    assert "Model: spare, as openai/lab-model could not answer then" in owners
    assert "/logs in-1 shows what the log has on it" in owners
    assert "spare" in guests
    assert "tokens" in guests
    assert not any(word in guests for word in ("/logs", "price", "$"))


async def test_a_question_that_a_person_answered_is_told_with_who_did(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        rig.model.call("write_file", {"path": "AGENTS.md", "content": "x"})
        rig.says("write it")
        card = await eventually(lambda: [one for one in rig.seen() if one.markup])
        waiting = await asked(rig, "/why")
        rig.telegram.callback(
            chat_id=OWNER,
            message_id=card[0].message_id,
            data=card[0].markup["inline_keyboard"][0][0]["callback_data"],
        )
        await eventually(lambda: "replied" in rig.inbox())
        await rig.quiet(bot)

        text = await asked(rig, "/why")

    assert waiting == words.STILL_MADE
    assert "Asked about:\n• write_file was agreed to once by you, " in text


# --- what is gone -------------------------------------------------------------------------------


async def test_the_button_asks_as_the_command_does_and_then_nothing_is_left_to_tell(
    rig: Rig,
) -> None:
    async with rig.running(OWNER, MEMBER) as bot:
        await known(bot, "Ann takes her tea without milk")
        await answered(rig, bot, "How do I take my tea?")
        await asked(rig, "/why")
        [(_, data)] = buttons(rig)

        rig.telegram.callback(chat_id=OWNER, message_id=rig.seen()[-1].message_id, data=data)
        card = await eventually(
            lambda: [one for one in rig.seen() if one.text.startswith("Forget f1")]
        )
        forget = card[0].markup["inline_keyboard"][0][0]
        rig.telegram.callback(
            chat_id=OWNER, message_id=card[0].message_id, data=forget["callback_data"]
        )
        await eventually(
            lambda: any("Forgotten, and looked for" in text for text in rig.texts()), timeout_s=30
        )
        await rig.quiet(bot)

        text = await asked(rig, "/why")

    assert forget["text"] == "Forget all of it"
    assert text == words.FORGOTTEN


async def test_a_facts_button_is_good_for_nobody_else(rig: Rig) -> None:
    async with rig.running(OWNER, MEMBER) as bot:
        fact_id = await known(bot, "Ann takes her tea without milk")
        await answered(rig, bot, "hello", by=MEMBER)
        await bot.access.approve(f"telegram:{GROUP}")
        await asked(rig, "/status", chat=GROUP)
        data = f"why:f{fact_id}:forget"

        said = []
        for chat, pressed in ((MEMBER, data), (GROUP, data), (MEMBER, "why:x:forget")):
            count = len(rig.telegram.answers())
            rig.telegram.callback(
                chat_id=chat,
                message_id=rig.seen(chat)[-1].message_id,
                data=pressed,
                user_id=MEMBER,
            )
            await eventually(partial(answers, rig, count + 1))
            said.append(rig.telegram.answers()[-1]["text"])
        facts = await bot.memories.facts.list(Whose(person_id=who(bot, OWNER)))

    assert said[0].startswith(f"There is no f{fact_id} here")
    assert said[1] == words.IN_PRIVATE
    assert said[2] == words.TOO_OLD
    assert [fact.id for fact in facts] == [fact_id]


async def test_of_a_private_conversation_no_details_are_written_and_then_it_is_erased(
    rig: Rig,
) -> None:
    async with rig.running(OWNER) as bot:
        await asked(rig, "/private")
        rig.model.call("list_dir", {"path": "marmalade"})
        secret = await answered(rig, bot, "the marmalade is hidden")
        during = await asked(rig, "/why")
        await asked(rig, "/private off")
        await rig.quiet(bot)

        text = await asked(rig, "/why", reply_to=secret)

    assert words.PRIVATE in during
    assert "list_dir: " in during
    assert "marmalade" not in during
    assert text == words.ERASED


# --- others -------------------------------------------------------------------------------------


async def test_in_a_group_nobody_reads_facts_arguments_or_money(rig: Rig) -> None:
    async with rig.running(OWNER, MEMBER) as bot:
        await bot.access.approve(f"telegram:{GROUP}")
        await known(bot, "Ann bakes rye bread", chat=GROUP, speaker="Ann")
        await known(bot, "Bob bakes rye bread too", of=MEMBER, chat=GROUP, speaker="Bob")
        rig.model.call("list_dir", {"path": "."})
        answer = await answered(rig, bot, f"@{US} who bakes rye bread?", chat=GROUP)

        own = await asked(rig, f"/why@{US}", chat=GROUP)
        others = await asked(rig, f"/why@{US}", by=MEMBER, chat=GROUP, reply_to=answer)

    for text in (own, others):
        assert "Remembered of what you said here: 1 fact; others said something too" in text
        assert "list_dir: done" in text
        assert not any(word in text for word in ("rye", "Bob", '"path"', "price", "always"))
    assert buttons(rig, GROUP) == []


async def test_nobody_hears_of_a_message_in_another_chat(rig: Rig) -> None:
    async with rig.running(OWNER, MEMBER) as bot:
        await answered(rig, bot, "hello there", by=MEMBER)
        theirs = await answered(rig, bot, "what is my code?", by=MEMBER)
        # The same number names no message of ours in the owner's own chat.
        await asked(rig, "one")
        await asked(rig, "two")
        mine = [seen.message_id for seen in rig.telegram.chat(OWNER)]
        assert theirs in mine

        text = await asked(rig, "/why", reply_to=theirs)

    assert "in-1 " not in text
    assert "in-2 " not in text


async def test_words_of_others_make_neither_markup_nor_commands(rig: Rig) -> None:
    evil = "Ann likes [a link](https://evil.example) **now** `/memory forget everything` <b>x</b>"
    async with rig.running(OWNER) as bot:
        await known(bot, evil, quote="`/stop` __now__ ||hidden||")
        rig.model.call("list_dir", {"path": "`/stop`", "x`": "**bold** [l](https://evil.example)"})
        await answered(rig, bot, "which link does Ann like now?")

        text = await asked(rig, "/why")

    kinds = {entity["type"] for entity in rig.seen()[-1].entities}
    assert "Ann likes [a link](https://evil.example) **now** '/memory forget everything'" in text
    assert '"**bold** [l](https://evil.example)"' in text
    assert "“'/stop' __now__ ||hidden||”" in text
    assert kinds <= {"bold", "code", "bot_command"}
    code = [
        text[entity["offset"] : entity["offset"] + entity["length"]]
        for entity in rig.seen()[-1].entities
        if entity["type"] == "code"
    ]
    assert not any("everything" in one or "stop" in one for one in code)
    judge_markup(rig.telegram)


# --- by the clock -------------------------------------------------------------------------------


async def reminder(bot: App, *, chat: int = OWNER, kind: JobKind = JobKind.MESSAGE) -> None:
    """One of the owner's that is due in years."""
    at_ms = int(LATER.timestamp() * 1000)
    made = await bot.calendar.schedules.jobs.add(
        Job(
            name="`/stop` tea",
            person_id=who(bot, OWNER),
            kind=kind,
            what=What(text="drink your tea"),
            when=At(moment=LATER, zone="UTC"),
            deliver_to=f"telegram:{chat}",
        ),
        Due(slot="2037-05-04T09:00", at_ms=at_ms),
    )
    assert made is not None


async def test_after_a_reminder_it_says_why_that_was_sent(rig: Rig) -> None:
    rig.set(heartbeat__enabled="false")  # whose job would be the first
    async with rig.running(OWNER) as bot:
        await answered(rig, bot, "Hello!")
        await reminder(bot)
        rig.says("/job j1 run")
        due = await eventually(lambda: [m for m in rig.seen() if "drink your tea" in m.text])
        await rig.quiet(bot)

        last = await asked(rig, "/why")
        replied = await asked(rig, "/why", reply_to=due[0].message_id)
        await asked(rig, "/job j1 remove")
        removed = await asked(rig, "/why", reply_to=due[0].message_id)

    assert last.startswith("Why this was sent: a reminder of yours, j1 “'/stop' tea”, due ")
    assert "it runs once, Mon 4 May 2037, 09:00, set up by its person" in last
    assert "/job j1 shows and changes it" in last
    assert replied == last
    assert removed.startswith("Why this was sent: by the clock, by a job that is not there")
    assert "by the job j1 ('/stop' tea)" in removed


async def test_a_job_that_asked_a_model_is_explained_with_its_turn(rig: Rig) -> None:
    rig.set(heartbeat__enabled="false")  # whose job would be the first
    async with rig.running(OWNER) as bot:
        await answered(rig, bot, "Hello!")
        await reminder(bot, kind=JobKind.AGENT)
        rig.model.say("Your tea is getting cold, and it is the good one.")
        rig.says("/job j1 run")
        await eventually(lambda: any("getting cold" in text for text in rig.texts()))
        await rig.quiet(bot)

        text = await asked(rig, "/why")

    assert text.startswith("Why this was sent: a job of yours, j1 ")
    assert "Why this answer: " in text
    assert "Model: lab-model" in text
