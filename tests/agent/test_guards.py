"""What a person sees of a model's text, in one piece or streamed; and calls that repeat."""

from __future__ import annotations

import random
import time

import pytest

from agent.guards.repetition import RepeatGuard, is_empty
from memory.records.text import VisibleText, visible
from memory.records.transcript import ToolCall, ToolResult
from tests.thorough import rounds

# --- hidden text -------------------------------------------------------------------------------


def streamed(text: str, size: int) -> tuple[list[str], list[str]]:
    """What each feed gave out, the end included, and what stood there after each."""
    stream = VisibleText()
    pieces, states = [], []
    for start in range(0, len(text), size):
        pieces.append(stream.feed(text[start : start + size]))
        states.append(stream.so_far())
    pieces.append(stream.end())
    states.append(stream.so_far())
    return pieces, states


def check_stream(text: str, shown: str, *, hidden: tuple[str, ...] = ()) -> None:
    """The text is seen as `shown`, whole and in pieces of every size, and nothing hidden ever."""
    assert visible(text) == shown
    for size in range(1, 8):
        pieces, states = streamed(text, size)
        assert "".join(pieces).strip() == shown, size
        assert states[-1].strip() == shown, size
        for state in states:
            assert shown.startswith(state.strip()), size
            assert not any(word in state for word in hidden), size


@pytest.mark.case("PR-03")
@pytest.mark.parametrize(
    "text",
    [
        "<think>plan</think>Answer",
        "plan</think>Answer",
        "<THINKING>\nplan\n</THINKING>\n\nAnswer",
        "Answer<think>after",
        "<reasoning type='deep'>plan</reasoning>\nAnswer",
        "< Think >plan</ THINK >Answer",
        "<think>plan<think>plan</think>plan</think>Answer",
        "<think>plan, then `</think>` closes, plan</think>Answer",
        "<think/>Answer",
        "Answer<think",
        'Answer<think x="plan',
        "<think>plan < 3 and <b>plan</b></think>Answer",
    ],
)
def test_thought_is_never_seen(text: str) -> None:
    check_stream(text, "Answer", hidden=("plan", "after", "think", "final"))


@pytest.mark.case("PR-05")
@pytest.mark.parametrize(
    "text",
    [
        "NO_REPLY",
        "no_reply",
        "**HEARTBEAT_OK**",
        "`HEARTBEAT_OK`.",
        "  “Heartbeat_OK”!  \n",
        "<b>HEARTBEAT_OK</b>".replace("<b>", "<").replace("</b>", ">"),
        "__NO_REPLY__",
        "HEARTBEAT\\_OK",
        "# HEARTBEAT_OK\n\nNO_REPLY",
        "```\nHEARTBEAT_OK\n```",
        "> HEARTBEAT_OK\u200b",
        "<think>nothing to do</think>HEARTBEAT_OK",
        "<|im_start|>assistant\nNO_REPLY<|im_end|>",
    ],
)
def test_a_reply_that_is_only_a_control_token_is_nothing(text: str) -> None:
    check_stream(text, "", hidden=("OK", "REPLY", "nothing"))


@pytest.mark.case("PR-05")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Dentist at 10. HEARTBEAT_OK", "Dentist at 10."),
        ("Dentist at 10.\n\n**HEARTBEAT_OK**", "Dentist at 10."),
        ("Dentist at 10 — HEARTBEAT_OK.", "Dentist at 10"),
        ("Dentist at 10! (NO_REPLY)", "Dentist at 10!"),
        ("Dentist at 10. NO_REPLY HEARTBEAT_OK", "Dentist at 10."),
        ("HEARTBEAT_OK Dentist at 10.", "Dentist at 10."),
        ("HEARTBEAT_OK - Dentist at 10.", "Dentist at 10."),
        ("**HEARTBEAT_OK**: **Dentist** at 10.", "**Dentist** at 10."),
        ("HEARTBEAT_OK\n\n- Dentist\n- Bank", "- Dentist\n- Bank"),
        ("```\ncode\n```\nHEARTBEAT_OK", "```\ncode\n```"),
        ("Dentist. <think>x</think>HEARTBEAT_OK", "Dentist."),
    ],
)
def test_a_control_token_at_either_end_is_taken_out(text: str, shown: str) -> None:
    check_stream(text, shown, hidden=("HEARTBEAT", "NO_REPLY"))


@pytest.mark.parametrize(
    "text",
    [
        "The word HEARTBEAT_OK ends a quiet run.",
        "HEARTBEAT_OK_COUNT is 3",
        "MY_NO_REPLY",
        "It answers `HEARTBEAT_OK`",
        "In code: `<think>` opens, `</think>` closes.",
        "```html\n<think>plan</think>\n<final>x</final>\n[INST]\n```",
        "~~~~\n```\n</think>\n~~~\n~~~~\nafter",
        "> ```\n> <think>\n> ```",
        "``a ` <think>`` b",
        "```\nunclosed <think> block",
        "a < b and b > c, <thinkpad> and <b>bold</b>",
        "x <| y |> z, a[i], [INSTALL]",
        "Ask the assistant: it knows.",
    ],
)
def test_ordinary_text_and_code_stay_as_they_are(text: str) -> None:
    check_stream(text, text)


@pytest.mark.parametrize(
    "text",
    [
        "<|im_start|>assistant\nAnswer<|im_end|>",
        "<|start_header_id|>assistant<|end_header_id|>\n\nAnswer<|eot_id|>",
        "[INST]Answer[/INST]",
        "<<SYS>><</SYS>>Answer",
        "<｜Assistant｜>Answer<｜end▁of▁sentence｜>",
        "Assistant: Answer",
        "**assistant:** Answer",
    ],
)
def test_role_markers_are_taken_out(text: str) -> None:
    check_stream(text, "Answer", hidden=("ssistant", "model", "INST", "SYS", "im_", "|"))


@pytest.mark.case("PR-03")
def test_thought_that_shows_itself_late_vanishes_from_what_stands_there() -> None:
    plan = "a long plan " * 40

    pieces, states = streamed(f"{plan}</think>Answer", 5)

    assert visible(f"{plan}</think>Answer") == "Answer"
    assert states[-1] == "Answer"
    assert pieces[-1] == "Answer"


def test_a_long_text_is_shown_while_it_comes() -> None:
    text = "A sentence of the answer. " * 40

    _, states = streamed(text, 7)

    assert len(states[len(states) // 2]) > len(text) // 2 - 20
    assert states[3] == ""


FRAGMENTS = [
    "<think>",
    "</think>",
    "<final>",
    "</final>",
    "<thinking\ta=1>",
    "</\tReasoning>",
    "<think/>",
    "<",
    "</",
    "<thi",
    ">",
    "`",
    "``",
    "```",
    "~~~",
    "```py\n",
    "\n```\n",
    "\n",
    "\n\n",
    "HEARTBEAT_OK",
    "NO_REPLY",
    "heartbeat\\_ok",
    "**",
    "_",
    ".",
    ",",
    "-",
    "!",
    "|",
    "<|im_start|>assistant\n",
    "<|im_start|>",
    "<|eot_id|>",
    "[INST]",
    "[/INST]",
    "<<SYS>>",
    "[",
    "<start_of_turn>model\n",
    "Assistant:",
    "plan",
    "Answer",
    "x",
    "H",
    "N",
    "é",
    "\u200b",
]


def test_pieces_of_any_size_show_the_same_as_the_whole() -> None:
    rng = random.Random(3)
    words = [*(part.replace("\t", " ") for part in FRAGMENTS), " ", "word " * 60]
    for _ in range(rounds(1_000, 4_000)):
        text = "".join(rng.choice(words) for _ in range(rng.randint(1, 9)))
        stream = VisibleText()
        given, rest = "", text
        while rest:
            size = rng.randint(1, 12)
            given = _after(stream, given, rest[:size])
            rest = rest[size:]
        end = stream.end()
        given = given + end if stream.so_far() == given + end else stream.so_far()

        assert stream.so_far() == given
        assert stream.so_far().strip() == visible(text), text


def _after(stream: VisibleText, given: str, piece: str) -> str:
    """What stands there now: more of the same, or anew from a late `</think>`."""
    more = stream.feed(piece)
    now = stream.so_far()
    assert now in {given + more, more}
    return now


@pytest.mark.parametrize(
    "text",
    ["`" * 10_000, "- " * 5_000, "<" * 10_000, "\n" * 10_000, "a` " * 4_000, " <think" * 2_000],
)
def test_odd_text_takes_no_longer_than_other_text(text: str) -> None:
    began = time.process_time()

    visible(text)
    streamed(text, 4)

    assert time.process_time() - began < 5


# --- empty answers -----------------------------------------------------------------------------


@pytest.mark.case("AG-05")
@pytest.mark.parametrize(
    "text", ["", " \n\t", "\u200b\ufeff", "**", "```\n```", "> ", "---", "\u3164"]
)
def test_nothing_that_a_person_could_see_is_empty(text: str) -> None:
    assert is_empty(text)


@pytest.mark.parametrize("text", ["ok", "…", "👍", "7", "**a**", "?", "好"])
def test_whatever_can_be_seen_is_not_empty(text: str) -> None:
    assert not is_empty(text)


# --- calls that repeat themselves --------------------------------------------------------------


class Turn:
    """Asks and shows the guard one call after the other, the way the loop does."""

    def __init__(self) -> None:
        self.guard = RepeatGuard()
        self._number = 0

    def runs(self, name: str, result: str, arguments: str = "{}") -> bool:
        self._number += 1
        call = ToolCall(id=f"c{self._number}", name=name, arguments=arguments)
        note = self.guard.refusal(call)
        self.guard.saw(call, ToolResult(call_id=call.id, content=note or result, ok=note is None))
        return note is None


@pytest.mark.case("AG-03")
def test_the_same_call_with_the_same_result_runs_three_times() -> None:
    turn = Turn()

    ran = [turn.runs("read_file", "text", '{"path": "a.txt"}') for _ in range(5)]

    assert ran == [True, True, True, False, False]
    assert turn.guard.should_sum_up


@pytest.mark.case("AG-03")
def test_polling_goes_on_while_the_result_changes() -> None:
    turn = Turn()

    ran = [turn.runs("status", f"{number} %") for number in range(50)]

    assert all(ran)
    assert not turn.guard.should_sum_up


def test_order_and_blanks_in_arguments_do_not_hide_a_repetition() -> None:
    turn = Turn()
    ways = ['{"a": 1, "b": 2}', '{"b":2,"a":1}', '{ "a":1, "b":2 }', '{"a":1,"b":2}']

    assert [turn.runs("t", "x", arguments) for arguments in ways] == [True, True, True, False]


@pytest.mark.case("AG-03")
def test_two_calls_that_take_turns_are_stopped_after_two_periods() -> None:
    turn = Turn()

    ran = [turn.runs(name, name) for name in ["a", "b", "a", "b", "a"]]

    assert ran == [True, True, True, True, False]


@pytest.mark.parametrize(
    "steps",
    [
        [("a", "1"), ("b", "1"), ("a", "2"), ("b", "1"), ("a", "3")],
        [("a", "1"), ("b", "1"), ("a", "1"), ("b", "1"), ("c", "1")],
        [("a", "1"), ("b", "1"), ("c", "1"), ("a", "1"), ("b", "1")],
    ],
)
def test_turns_that_get_somewhere_are_not_stopped(steps: list[tuple[str, str]]) -> None:
    turn = Turn()

    assert all(turn.runs(name, result) for name, result in steps)


@pytest.mark.case("AG-03")
def test_equal_calls_of_one_answer_are_counted_before_any_has_a_result() -> None:
    guard = RepeatGuard()
    calls = [ToolCall(id=f"c{number}", name="t", arguments="{}") for number in range(5)]

    notes = [guard.refusal(call) for call in calls]

    assert [note is None for note in notes] == [True, True, True, False, False]
    assert "Do not repeat it" in (notes[-1] or "")
