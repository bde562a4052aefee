"""What was asked, supposed, wished, over, doubted, told by others or brought along is no fact, and
what was plainly said is one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.learning.assertions import is_asserted, places
from agent.learning.evidence import is_covered, is_turned_round, stands_in


def rests(said: str, quote: str, note: str) -> bool:
    """Whether a note about Ana would be kept, as far as her own line decides."""
    assert stands_in(quote, said), "no example of anything"
    return (
        not is_turned_round(quote, said, note)
        and is_asserted(quote, said, note)
        and is_covered(note, said, speaker="Ana", year=2026)
    )


@pytest.mark.parametrize(
    ("said", "note"),
    [
        ("I moved to Bergen last week, by the way.", "Ana moved to Bergen in July 2026."),
        ("btw I stopped eating meat in January, no steak please", "Ana stopped eating meat."),
        ("I am allergic to penicillin", "Ana is allergic to penicillin."),
        ("I'm allergic to nuts and shellfish.", "Ana is allergic to nuts and shellfish."),
        ("My daughter Mia turned 8 today", "Ana's daughter Mia turned 8 on 28 November 2026."),
        ("Careful: my allergy is penicillin", "Ana's allergy is penicillin."),
        ("I love jazz and my wife loves opera", "Ana loves jazz and her wife loves opera."),
        ("I work as a nurse at the Haukeland hospital", "Ana works as a nurse at Haukeland."),
        ("I want a dog", "Ana wants a dog."),
        ("I used to smoke", "Ana used to smoke."),
        ("I was born in Lima", "Ana was born in Lima."),
        ("I never drink coffee after noon", "Ana never drinks coffee after noon."),
        ("Please always answer me in German", "Ana wants answers in German, always."),
        ("I go swimming on Mondays", "Ana goes swimming every Monday."),
        ("My doctor says I need glasses", "Ana's doctor says she needs glasses."),
        ("I told you that I have two sons", "Ana has two sons."),
        ("I think I like green tea most", "Ana likes green tea most."),
        ("No, I like tea", "Ana likes tea."),
        ("I like tea, not coffee", "Ana likes tea."),
        ("My wife is called Grace and my son is called Tom", "Ana's wife is called Grace."),
        ("Ich wohne in Köln und arbeite bei der Bahn", "Ana wohnt in Köln."),
        ("Ich esse kein Fleisch", "Ana isst kein Fleisch."),
        ("J'habite à Lyon depuis 2019", "Ana habite à Lyon depuis 2019."),
        ("Vivo en Madrid con mi hermana", "Ana vive en Madrid."),
        ("Я живу в Москве", "Ana живу в Москве"),
        ("我住在东京很久了", "Ana 住在东京"),
        ("私は東京に住んでいます", "Ana は東京に住んでいます"),
        ("저는 서울에 살아요", "Ana 서울에 살아요"),
        ("Our cat is 12 years old", "Ana's cat is 12 years old."),
        ("I have two sons", "Ana has 2 sons."),
    ],
)
def test_what_was_plainly_said_is_a_fact(said: str, note: str) -> None:
    assert rests(said, said, note)


@pytest.mark.parametrize(
    "said",
    [
        "I live in Oslo, what is the weather like?",
        "I live in Oslo. Is it cold there?",
        "Nobody knows me here, I live in Oslo",
        "I don't own a car but I live in Oslo",
        "If you ask me, it rains. I live in Oslo.",
        "Two things about me:\nI live in Oslo",
        "Remember: I live in Oslo",
        "I live in Oslo. Please translate the menu.",
    ],
)
def test_what_stands_beside_it_takes_nothing_from_a_plain_statement(said: str) -> None:
    assert rests(said, "I live in Oslo", "Ana lives in Oslo.")


@pytest.mark.parametrize(
    ("said", "quote", "note"),
    [
        ("Am I allergic to cats?", "allergic to cats", "Ana is allergic to cats."),
        ("Is it true that I live in Rome", "I live in Rome", "Ana lives in Rome."),
        ("I live in Rome, right?", "I live in Rome", "Ana lives in Rome."),
        ("Do you think I like opera?", "I like opera", "Ana likes opera."),
        ("Bin ich Vegetarier?", "ich Vegetarier", "Ana ist Vegetarier."),
        ("我喜欢咖啡吗", "我喜欢咖啡", "Ana 喜欢咖啡"),
        ("If I had a boat I live on it", "I had a boat", "Ana has a boat."),
        ("Suppose I live in Rome, which taxes are due?", "I live in Rome", "Ana lives in Rome."),
        ("I move to Oslo unless the job is gone", "I move to Oslo", "Ana moves to Oslo."),
        ("Wenn ich in Wien wohne, wird es teuer", "ich in Wien wohne", "Ana wohnt in Wien."),
        ("Si vivo en Lima, pago menos", "vivo en Lima", "Ana vive en Lima."),
        ("如果我住在东京", "我住在东京", "Ana 住在东京"),
        ("My sister thinks I love opera", "I love opera", "Ana loves opera."),
        ("Tom: I am allergic to cats", "I am allergic to cats", "Ana is allergic to cats."),
        ('She told me "I love opera"', "I love opera", "Ana loves opera."),
        ("„Ich liebe Opern“ steht da", "Ich liebe Opern", "Ana liebt Opern."),
        ("I love opera, says my sister", "I love opera", "Ana loves opera."),
        (
            "Mein Chef meint, ich liebe Überstunden",
            "ich liebe Überstunden",
            "Ana liebt Überstunden",
        ),
        ("I was a nurse", "I was a nurse", "Ana is a nurse."),
        ("Back then I had a horse", "I had a horse", "Ana has a horse."),
        ("I loved opera but it is over", "I loved opera", "Ana loves opera."),
        ("Früher wohnte ich in Wien", "wohnte ich in Wien", "Ana wohnt in Wien."),
        ("I hope I live in Rome one day", "I live in Rome", "Ana lives in Rome."),
        ("Maybe I am allergic to cats", "I am allergic to cats", "Ana is allergic to cats."),
        ("I would love a horse", "I would love a horse", "Ana loves a horse."),
        ("Ich hätte gern ein Pferd", "Ich hätte gern ein Pferd", "Ana hat gern ein Pferd."),
        ("Ojalá vivo en Lima", "vivo en Lima", "Ana vive en Lima."),
        ("I am not sure that I like opera", "I like opera", "Ana likes opera."),
        ("It is a lie that I love opera", "I love opera", "Ana loves opera."),
        ("I love opera. Just kidding!", "I love opera", "Ana loves opera."),
        ("Proofread this. I love opera and horses.", "I love opera", "Ana loves opera."),
        ("I love opera. Translate that into Dutch", "I love opera", "Ana loves opera."),
        ("Can you rewrite I love opera", "I love opera", "Ana loves opera."),
        ("How do you say I love opera in Dutch", "I love opera", "Ana loves opera."),
        ("A poem for you:\n\nI love opera\nand the sea", "I love opera", "Ana loves opera."),
        ("From: Tom\nI love opera", "I love opera", "Ana loves opera."),
        ("Übersetze: ich liebe Opern", "ich liebe Opern", "Ana liebt Opern."),
        ("Send the report to Eve", "Send the report to Eve", "Ana wants reports sent to Eve."),
        ("I sent it to Eve", "I sent it to Eve", "Ana always sent it to Eve."),
        ("I don't think that I like opera", "I like opera", "Ana likes opera."),
        ("I like opera", "I like opera", "Ana does not like opera."),
        ("I like opera no more", "I like opera", "Ana likes opera."),
        ("Ich mag Opern nicht", "Ich mag Opern", "Ana mag Opern."),
        ("Ik drink geen thee", "Ik drink geen thee", "Ana drinkt thee."),
        ("Não gosto de chá", "gosto de chá", "Ana gosta de chá."),
        ("Je n'aime pas le thé", "aime pas le thé", "Ana aime le thé."),
        ("Çay sevmiyorum", "Çay sevmiyorum", "Ana çay seviyor."),
        ("Δεν μου αρέσει το τσάι", "μου αρέσει το τσάι", "Ana αρέσει το τσάι"),
        ("차를 좋아하지 않아요", "차를 좋아하", "Ana 차를 좋아"),
        ("차를 안 좋아해요", "차를 안 좋아해요", "Ana 차를 좋아해요"),
        ("我没有养狗和猫", "有养狗和猫", "Ana 有养狗和猫"),
        ("犬を飼っていない", "犬を飼って", "Ana 犬を飼って"),
        ("I met Eve in Rome", "I met Eve in Rome", "Ana met Eve and Tom in Rome."),
        ("I have two sons", "I have two sons", "Ana has 3 sons."),
        ("I pay 40 euros", "I pay 40 euros", "Ana pays 400 euros."),
        ("I moved in May", "I moved in May", "Ana moved in June 2026."),
        ("I like the sea", "I like the sea", "Ana owns a sea house and a boat."),
    ],
)
def test_what_was_not_said_as_so_is_none(said: str, quote: str, note: str) -> None:
    assert not rests(said, quote, note)


def test_all_places_of_a_quote_have_to_be_plain() -> None:
    said = "I love opera. Is it true that I love opera?"

    assert [place.before for place in places("I love opera", said)] == ["", " is it true that "]
    assert not is_asserted("I love opera", said, "Ana loves opera.")


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=80), st.text(max_size=20))
def test_whatever_is_quoted_there_is_an_answer(said: str, note: str) -> None:
    assert is_asserted(said[2:20], said, note) in {True, False}
    assert is_covered(note, said, speaker="Ana", year=2026) in {True, False}


@pytest.mark.parametrize("filler", [" ", ".", "\n", '"', "please ", "if, ", "I said ", ", ", "a: "])
def test_a_long_message_takes_no_long_look(filler: str) -> None:
    said = filler * 20_000 + "I love opera" + filler * 20_000

    assert is_asserted("I love opera", said, "Ana loves opera.") in {True, False}
