"""What is remembered, through the real program: kept, corrected, forgotten, learnt, and never told
to anybody else (cases ME-01, ME-07, ME-11; SPEC §9)."""

from __future__ import annotations

from functools import partial
from random import Random

import pytest

from tests.acceptance.memory_words import (
    EXTRACTING,
    EXTRACTS,
    IN_MIND,
    NOTING,
    QUICK,
    REMEMBERED,
    all_of,
    answers,
    asked,
    asks,
    block,
    facts_of,
    found,
    hold,
    holders,
    moment,
    pinned,
    sent,
)
from tests.acceptance.rig import SLACK_TEAM, Card, Home, Model, Slack, Telegram, until
from tests.acceptance.tool_words import calling, reads
from tests.thorough import rounds

ANN, BOB, GROUP = 7, 8, -100
SLACK_ANN = "U0ANN"
FORGET = "Forget all of it"


def keeping(text: str, *, say: str) -> str:
    """A message that has the assistant store a fact."""
    return calling("store_fact", say=say, text=text, category="background")


# --- told, corrected, forgotten ------------------------------------------------------------------


@pytest.mark.case("ME-11")
def test_a_fact_is_remembered_corrected_and_forgotten_for_good(
    home: Home, telegram: Telegram, model: Model
) -> None:
    home.env |= QUICK
    home.approve(ANN)
    bot = home.start()

    asks(telegram, ANN, "/remember I live in Oslo.")
    asks(telegram, ANN, "/new")
    asks(telegram, ANN, "Which city do I live in?")
    first = block(sent(model)[-1], REMEMBERED)
    shown = asks(telegram, ANN, "/memory")
    moved = asks(telegram, ANN, "/remember I moved to Bergen.")
    asks(telegram, ANN, "Which city do I live in now?")
    second = block(sent(model)[-1], REMEMBERED)
    corrected = asks(telegram, ANN, "/memory")
    telegram.says(ANN, "/memory forget f2")
    card = until(lambda: telegram.cards(ANN))[0]
    telegram.press(ANN, card, FORGET)
    proof = reads(telegram, ANN, "looked for")
    asks(telegram, ANN, "In which city do I live?")
    last = sent(model)[-1]
    code = bot.end()

    assert "I live in Oslo." in first
    assert "f1 “I live in Oslo.”" in shown
    assert "takes the place of f1" in moved
    assert "I moved to Bergen." in second
    assert "Oslo" not in second
    assert "f1 “I live in Oslo.” → f2 “I moved to Bergen.”" in corrected
    assert "2 facts" in card.text
    assert "nothing of yours in them has it any more" in proof
    assert not telegram.cards(ANN)
    assert "Bergen" not in last
    assert "Oslo" not in last
    assert code == 0
    assert holders(home, "Bergen") == holders(home, "Oslo") == []


def test_in_slack_a_fact_is_remembered_and_forgotten_by_a_button(
    home: Home, slack: Slack, model: Model
) -> None:
    home.serve_slack(slack, **QUICK)
    home.run("access", "approve", f"slack:{SLACK_TEAM}:{SLACK_ANN}")
    bot = home.start()
    until(lambda: slack.ask("sockets"))
    direct = slack.ask("direct", user=SLACK_ANN)

    def shown() -> list[str]:
        return [post["text"] for post in slack.ask("chat", channel=direct) if post["is_bot"]]

    slack.ask("command", text="remember I keep the key under the tub", user=SLACK_ANN)
    until(lambda: home.ask_database("select 1 from facts"))
    slack.ask("post", text="Where is the key?", user=SLACK_ANN)
    until(lambda: any("You said: Where is the key?" in text for text in shown()))
    first = block(sent(model)[-1], REMEMBERED)
    slack.ask("command", text="memory forget f1", user=SLACK_ANN)
    card = until(lambda: slack.cards(direct))[0]
    slack.press(direct, card, FORGET, by=SLACK_ANN)
    until(lambda: any("looked for" in text for text in shown()), about=lambda: str(shown()))
    code = bot.end()

    assert "I keep the key under the tub" in first
    assert "key under the tub" in card.text
    assert code == 0
    assert holders(home, "under the tub") == []


@pytest.mark.timeout(300)
def test_a_forgetting_that_is_killed_is_finished_at_the_next_start(
    home: Home, telegram: Telegram, model: Model
) -> None:
    chance = Random(20261)
    home.env |= QUICK
    home.approve(ANN)
    for number in range(rounds(2, 12)):
        word = f"quokka{number}x"
        bot = home.start()
        asks(telegram, ANN, f"/remember Vault number {number} opens with {word}.")
        asks(telegram, ANN, f"My sister visits on day {number}.")
        begins_to_forget(home, telegram, word)
        moment(chance.uniform(0, 0.08))
        bot.kill()
        whole = home.ask_database("pragma integrity_check")

        bot = home.start()
        is_gone = partial(lambda word: not holders(home, word), word)
        until(is_gone, about=partial(lambda word: str(holders(home, word)), word))
        asks(telegram, ANN, f"Hello again {number}")
        last = sent(model)[-1]
        code = bot.end()

        assert whole == [("ok",)]
        assert word not in last
        assert f"My sister visits on day {number}." in last
        assert code == 0
        assert holders(home, word) == []


def begins_to_forget(home: Home, telegram: Telegram, words: str) -> None:
    """Returns as soon as it is under way, or done. Cards of a bot that was killed stay."""
    old = [card.place for card in telegram.cards(ANN)]

    def fresh() -> list[Card]:
        return [card for card in telegram.cards(ANN) if card.place not in old]

    telegram.says(ANN, f"/memory forget {words}")
    (card,) = until(fresh)
    telegram.press(ANN, card, FORGET)
    until(lambda: (home.path / "data" / "forgetting.json").exists() or not fresh())


# --- learnt --------------------------------------------------------------------------------------


def test_what_a_person_said_is_learnt_once_also_after_a_kill(
    home: Home, telegram: Telegram, model: Model
) -> None:
    home.env |= EXTRACTS
    home.approve(ANN)
    home.approve(BOB, role="member")
    hold(model, EXTRACTING)
    bot = home.start()
    model.ask("say", text="So you live in Paris by now.", when={"user": "I live in Oslo."})
    asks(telegram, ANN, "I live in Oslo.")

    bot.kill()
    model.behave()
    before = len(asked(model, EXTRACTING))
    answers(
        model,
        EXTRACTING,
        found(
            ("Ann lives in Oslo.", "I live in Oslo"),
            ("Ann lives in Paris.", "you live in Paris"),
        ),
    )
    bot = home.start()
    until(lambda: facts_of(home))
    until(lambda: home.ask_database("select 1 from idle_timers where not is_open"))
    bot.kill()
    bot = home.start()
    # Whoever has been silent for longer comes first, so Ann was looked at by then.
    answers(model, EXTRACTING, found())
    asks(telegram, BOB, "I am on my way to work.")
    until(lambda: any("on my way to work" in text for text in asked(model, EXTRACTING)))
    looks = [text for text in asked(model, EXTRACTING)[before:] if "I live in Oslo" in text]
    shown = asks(telegram, ANN, "/memory f1")

    assert facts_of(home) == ["Ann lives in Oslo."]
    assert len(looks) == 1
    assert "in these words: “I live in Oslo”" in shown
    assert "'no_quote': 1" in home.log or '"no_quote": 1' in home.log


def test_what_is_said_is_learnt_whatever_somebody_is_called(
    home: Home, telegram: Telegram, model: Model
) -> None:
    name = "U1"  # as ids begin
    home.env |= EXTRACTS
    home.approve(ANN)
    told = f"{name}'s sister lives in Oslo."
    answers(model, EXTRACTING, found((told, "My sister lives in Oslo"), speaker=name))
    home.start()

    telegram.ask("message", chat_id=ANN, text="My sister lives in Oslo.", first_name=name)
    until(lambda: facts_of(home))

    assert facts_of(home) == [told]
    assert told in asks(telegram, ANN, "/memory f1")


@pytest.mark.case("ME-01")
def test_a_broken_answer_leaves_all_to_be_looked_at_later(
    home: Home, telegram: Telegram, model: Model
) -> None:
    home.env |= EXTRACTS
    home.approve(ANN)
    answers(model, EXTRACTING, "Sure, I saved your allergy!", times=2)
    bot = home.start()
    asks(telegram, ANN, "My allergy is penicillin.")

    timer = "select is_open, tries, done_upto, not_before_ms > touched_ms from idle_timers"
    until(lambda: home.ask_database(timer) == [(1, 1, 0, 1)])
    tries = len(asked(model, EXTRACTING))
    learnt = facts_of(home)
    asks(telegram, ANN, calling("search_conversations", say="Look", query="penicillin allergy"))
    searched = telegram.shown(ANN)[-1]
    # Somebody speaks again, so it need not wait any longer.
    answers(model, EXTRACTING, found(("Ann's allergy is penicillin.", "My allergy is penicillin")))
    until(lambda: facts_of(home))
    bot.end()

    assert tries == 2
    assert learnt == []
    assert "My allergy is penicillin." in searched
    assert facts_of(home) == ["Ann's allergy is penicillin."]


# --- whose it is ---------------------------------------------------------------------------------


@pytest.mark.case("ME-07")
def test_nothing_of_one_chat_is_in_a_request_of_another(
    home: Home, telegram: Telegram, model: Model
) -> None:
    home.env |= {**EXTRACTS, "HEARTHBOT_MEMORY__INSIGHTS": "true"}
    home.approve(ANN)
    home.approve(BOB, role="member")
    home.approve(GROUP)
    secrets = {
        ANN: ("81000", "Kvist"),
        BOB: ("44500", "Lindgren"),
        GROUP: ("70700", "Okonkwo"),
    }
    home.start()
    for place, (salary, therapist) in secrets.items():
        person = ANN if place == GROUP else place
        group = GROUP if place == GROUP else 0
        called = "@hearth_lab_bot " if group else ""
        said = f"{called}my salary is {salary} and my therapist is Dr {therapist}"
        quote = f"my therapist is Dr {therapist}"
        learnt = found(
            (f"Ann's therapist is Dr {therapist}.", quote), speaker="Ann" if group else "the user"
        )
        model.ask("say", text=learnt, when={"user~": f": {said.removeprefix(called)}"})
        model.ask("say", text="Understood.", when={"user": said})
        asks(telegram, person, said, group=group)
        asks(telegram, person, f"{called}/remember My salary is {salary}", group=group)
    until(lambda: len(asked(model, EXTRACTING)) >= len(secrets))

    questions = {
        "What salary and therapist do I have?": "",
        calling("search_memories", say="salary", query="my salary and therapist"): "",
        calling("search_conversations", say="therapist", query="my salary and therapist"): "",
        calling("list_facts", say="all of it"): "",
    }
    for person, group in ((BOB, 0), (ANN, GROUP), (BOB, GROUP), (ANN, 0)):
        for question in questions:
            called = "@hearth_lab_bot " if group else ""
            asks(telegram, person, called + question, group=group)

    requests = [all_of(request) for request in model.ask("requests")]
    seen = [
        {place for place, words in secrets.items() if any(word in text for word in words)}
        for text in requests
    ]
    assert {place for places in seen for place in places} == set(secrets)
    assert [text for text, places in zip(requests, seen, strict=True) if len(places) > 1] == []
    for place, words in secrets.items():
        others = [word for other in secrets if other != place for word in secrets[other]]
        shown = "\n".join(telegram.shown(place))
        assert all(word in shown for word in words[:1])
        assert not any(word in shown for word in others)


@pytest.mark.parametrize("killed", ["before its end", "at its end"])
def test_a_private_conversation_recalls_and_leaves_nothing(
    home: Home, telegram: Telegram, model: Model, killed: str
) -> None:
    home.env |= {**EXTRACTS, "HEARTHBOT_MEMORY__INSIGHTS": "true"}
    home.approve(ANN)
    bot = home.start()
    asks(telegram, ANN, "/remember I live in Oslo.")
    asks(telegram, ANN, "/private")
    before = len(model.ask("requests"))
    asks(telegram, ANN, "Which city do I live in? I need it before noon, says quokka.")
    asks(telegram, ANN, keeping("Ann's cat is called quokka.", say="Keep"))
    asks(telegram, ANN, calling("search_memories", say="Look", query="city where I live"))
    refused = telegram.shown(ANN)[-2:]

    if killed == "before its end":
        bot.kill()
        bot = home.start()
    shown = len(telegram.shown(ANN))
    telegram.says(ANN, "/private off")
    if killed == "at its end":
        until(lambda: home.ask_database("select 1 from inbox where payload like '%private off%'"))
        moment(Random(20262).uniform(0, 0.1))
        bot.kill()
        bot = home.start()
    # After a kill an answer from before may come once more, and that the end is done already.
    over = ("usual one begins", "Memory is on here")
    until(lambda: any(words in "\n".join(telegram.shown(ANN)[shown:]) for words in over))
    until(lambda: not holders(home, "quokka"), about=lambda: str(holders(home, "quokka")))
    requests = model.ask("requests")[before:]
    so_far = len(sent(model))
    asks(telegram, ANN, "Which city do I live in?")
    after = until(lambda: sent(model)[so_far:])[-1]
    code = bot.end()

    texts = [all_of(request) for request in requests]
    assert len(sent(model)) >= 3
    assert not any("Oslo" in text or REMEMBERED in text for text in texts)
    assert not any(about in text for text in texts for about in (EXTRACTING, NOTING))
    assert all("memory is off" in text.lower() for text in refused), refused
    assert facts_of(home) == ["I live in Oslo."]
    assert "I live in Oslo." in block(after, REMEMBERED)
    assert "quokka" not in after
    assert code == 0
    assert holders(home, "quokka") == []


# --- insights ------------------------------------------------------------------------------------


def test_what_is_needed_just_now_is_kept_in_mind(
    home: Home, telegram: Telegram, model: Model
) -> None:
    home.env |= {**QUICK, "HEARTHBOT_MEMORY__INSIGHTS": "true"}
    home.approve(ANN)
    home.start()
    answers(model, NOTING, pinned("Wants trains only, no flights."))
    asks(telegram, ANN, calling("list_dir", say="I want trains only, no flights", path="."))
    until(lambda: home.ask_database("select 1 from insights where pins like '%trains%'"))
    asks(telegram, ANN, "Which trains go north?")
    kept = block(sent(model)[-1], IN_MIND)
    calls = len(asked(model, NOTING))

    answers(model, NOTING, "I noted that!")
    asks(telegram, ANN, calling("list_dir", say="I must arrive before 12:00", path="."))
    until(lambda: home.ask_database("select 1 from insights where pins like '%before 12:00%'"))
    asks(telegram, ANN, "Do I arrive before 12:00?")
    by_rules = block(sent(model)[-1], IN_MIND)
    used = asks(telegram, ANN, "/usage")

    assert calls == 1
    assert "Wants trains only, no flights." in kept
    assert "I must arrive before 12:00" in by_rules
    assert "insights" in used.partition("For what:")[2]
