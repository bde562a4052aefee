"""Reasoning control: which messages are worth much thought, by the lists that are shipped."""

from __future__ import annotations

import pytest

from agent.prompt.effort import ReasoningControl, ThinkingRule
from tests.checkout import ROOT

SIMPLE = (ROOT / "prompts" / "words_simple.md").read_text(encoding="utf-8")
ANALYSIS = (ROOT / "prompts" / "words_analysis.md").read_text(encoding="utf-8")
CONTROL = ReasoningControl(simple=SIMPLE, analysis=ANALYSIS)


def rule_of(text: str) -> ThinkingRule:
    return CONTROL.judge(text).rule


@pytest.mark.parametrize(
    "text",
    [
        "hi",
        "  HEY  ",
        "hiiii",
        "Thaaanks!!!",
        "Thank you so much!!",
        "thanks 🙏",
        "¿Qué tal?",
        "wie geht’s?",
        "Ça va ?",
        "👍",
        "…",
        ":)",
        "ＨＥＬＬＯ",
        "good-morning",
    ],
)
def test_a_greeting_or_thanks_alone_is_simple(text: str) -> None:
    found = CONTROL.judge(text)

    assert (found.rule, found.needed, found.is_small_talk) == (ThinkingRule.SIMPLE, False, True)


@pytest.mark.parametrize(
    ("text", "is_small_talk"),
    [
        ("Thank you, Bob!", True),
        ("hi there, good morning", True),
        ("hi, what's the weather?", False),
        ("send it to Anna, thanks", False),
    ],
)
def test_short_messages_that_begin_or_end_so_need_no_thought(
    text: str, is_small_talk: bool
) -> None:
    found = CONTROL.judge(text)

    assert found.rule is ThinkingRule.SIMPLE_AND_SHORT
    assert not found.needed
    assert found.is_small_talk is is_small_talk


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("why", "why"),
        ("ok, explain it to me", "explain"),
        ("How to tie a bow tie?", "how to"),
        ("COMPARING both offers", "comparing"),
        ("what is the difference between tea and chai", "difference between"),
        ("Warum ist das so?", "warum"),
        ("¿Por qué no funciona?", "por qué"),
        ("pros and cons of renting", "pros and cons"),
    ],
)
def test_a_word_of_analysis_asks_for_thought(text: str, word: str) -> None:
    found = CONTROL.judge(text)

    assert (found.rule, found.needed, found.found) == (ThinkingRule.ANALYSIS, True, word)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", ThinkingRule.FEW_WORDS),
        ("2+2", ThinkingRule.FEW_WORDS),
        ("OK, send it", ThinkingRule.FEW_WORDS),
        ("你好", ThinkingRule.FEW_WORDS),
        ("what is the capital of France?", ThinkingRule.LOOKUP),
        ("¿Qué es un tensor de verdad?", ThinkingRule.LOOKUP),
        ("tell me what is in the box", ThinkingRule.NOTHING),
        ("the airplane was late today", ThinkingRule.NOTHING),
        ("今天北京的天气怎么样", ThinkingRule.NOTHING),
    ],
)
def test_other_messages_need_none(text: str, rule: ThinkingRule) -> None:
    found = CONTROL.judge(text)

    assert (found.rule, found.needed, found.is_small_talk) == (rule, False, False)


def test_a_question_of_more_than_fifteen_words_asks_for_thought() -> None:
    fifteen = "could you tell me if the shop near my house is open on the sunday"

    assert rule_of(f"{fifteen}?") is ThinkingRule.NOTHING
    assert rule_of(f"{fifteen} too?") is ThinkingRule.LONG_QUESTION
    assert rule_of(f"{fifteen} too？") is ThinkingRule.LONG_QUESTION
    assert rule_of(f"{fifteen} too") is ThinkingRule.NOTHING
    assert rule_of("what is " + fifteen + "?") is ThinkingRule.LONG_QUESTION
    assert CONTROL.judge(f"{fifteen} too?").needed


def test_chinese_words_are_counted_by_their_characters() -> None:
    assert rule_of("如果明天下雨而且公园因为活动关闭我们还能带孩子们去哪里玩呢你觉得呢？") is (
        ThinkingRule.LONG_QUESTION
    )


def test_the_rules_hit_in_their_order() -> None:
    control = ReasoningControl(simple="hi\nwhy not\n", analysis="why\n")

    rules = [
        control.judge(text).rule
        for text in ("why not", "hi why", "why me", "go on now", "what is it now then")
    ]

    assert rules == [
        ThinkingRule.SIMPLE,
        ThinkingRule.SIMPLE_AND_SHORT,
        ThinkingRule.ANALYSIS,
        ThinkingRule.FEW_WORDS,
        ThinkingRule.LOOKUP,
    ]
