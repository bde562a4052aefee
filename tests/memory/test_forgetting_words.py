"""What is looked for when something is forgotten: found in any form, and taken out."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.erasure.verify import BLANK, PIECE_BYTES, Wording, scan

KEY = "The spare key is under the zinc tub"
FACT = "Ann keeps the spare key under the zinc tub."

PHRASES = st.text(st.sampled_from("ab日 \n\"'é"), max_size=12).map(lambda text: f"{text}abåß")
WORDS = st.text(st.sampled_from("abåß日 .\n\t\"\\[]{}'é"), max_size=40)


# --- words -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "the SPARE key   is under the zinc tub",
        "The spare\nkey is\tunder the zinc tub!",
        "He said: «The spare key is under the zinc tub».",
    ],
)
def test_a_phrase_is_found_in_any_case_and_spacing(text: str) -> None:
    wording = Wording((KEY,))

    assert wording.says(text)
    assert "zinc" not in wording.blanked(text)


def test_a_summary_loses_the_sentence_and_notes_the_line() -> None:
    wording = Wording((FACT,))

    assert wording.without(f"Ann cooks. {FACT} Ben is away.") == "Ann cooks. Ben is away."
    assert wording.without_lines(f"- one\n- {FACT}\r\n- two") == "- one\n- two"


def test_json_within_json_stays_json() -> None:
    wording = Wording(("zinc tub",))
    raw = json.dumps({"calls": [{"arguments": json.dumps({"text": 'a "zinc\ntub"', "n": 1})}]})

    blanked = json.loads(wording.blanked_json(raw))

    assert wording.holds_json(raw)
    assert json.loads(blanked["calls"][0]["arguments"]) == {"text": f'a "{BLANK}"', "n": 1}


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_words_are_found_as_json_escapes_them_and_nothing_else_is_changed(
    levels: int, tmp_path: Path
) -> None:
    wording = Wording(('Ärger mit "Café\nGrün" 🍋',))
    text = 'Ä: ÄRGER mit "Café\nGrün" 🍋'
    for _ in range(levels):
        text = json.dumps(text)
    (tmp_path / "x.json").write_text(f"C:\\new {text} \\u00e4")

    assert wording.says(text)
    assert wording.blanked(f"C:\\new {text}").startswith("C:\\new ")
    assert BLANK in wording.blanked(text)
    assert "caf" not in wording.blanked(text).lower()
    assert scan(tmp_path, ('Ärger mit "Café Grün" 🍋',)).hits != ()


def test_a_long_row_of_backslashes_takes_no_long_look() -> None:
    started = time.monotonic()

    Wording(('Ärger mit "x"', "zinc tub")).says("zinc" + "\\" * 100_000)

    assert time.monotonic() - started < 2


def test_half_written_json_is_blanked_as_text_and_what_is_not_joined_is_left() -> None:
    wording = Wording(("Ægir lives",))

    assert wording.holds_json('{"text": "\\u00c6gir\\nlives here')
    assert wording.blanked_json('{"text": "\\u00c6gir\\nlives here') == '{"text": "[forgotten] here'
    assert not wording.says("Ægir, lives")
    assert not wording.says("Ægirlives")


def test_lines_that_have_it_only_together_go_together() -> None:
    wording = Wording(("red barn",))

    assert wording.without_lines("a\nthe red\nbarn burns\nb\n") == "a\nb\n"
    assert wording.without_lines("a\nthe red\nred barn\nbarn burns\nb\n") == "a\nb\n"


@settings(max_examples=150, deadline=None)
@given(WORDS, PHRASES, WORDS)
def test_what_was_blanked_holds_it_no_longer(before: str, phrase: str, after: str) -> None:
    wording = Wording((phrase,))
    text = f"{before}{phrase}{after}"

    blanked = wording.blanked(text)

    assert wording.says(text)
    assert not wording.says(blanked)
    assert not wording.says(wording.without(text))
    assert not wording.says(wording.without_lines(text))


def shape_of(value: object) -> object:
    """Everything but the texts."""
    if isinstance(value, list):
        return [shape_of(one) for one in value]
    if isinstance(value, dict):
        return {name: shape_of(one) for name, one in value.items()}
    return type(value)


# --- files -------------------------------------------------------------------------------------


def found(tmp_path: Path, data: bytes, *phrases: str) -> bool:
    (tmp_path / "file").write_bytes(data)
    return bool(scan(tmp_path, phrases).hits)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be"])
def test_bytes_are_found_in_any_encoding_and_case(tmp_path: Path, encoding: str) -> None:
    assert found(tmp_path, "…\nÆGIR  lives\there".encode(encoding), "ægir lives here")
    assert not found(tmp_path, "Ægir left".encode(encoding), "ægir lives here")


def test_it_is_found_wherever_pieces_end(tmp_path: Path) -> None:
    rng = random.Random(4)
    for _ in range(6):
        at = PIECE_BYTES - rng.randrange(0, 40)
        data = b"\x00" * at + KEY.replace(" ", "  \n ").encode() + b"\x00" * 50
        assert found(tmp_path, data, KEY)


def test_all_files_are_counted_and_links_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a").write_text(KEY)
    home = tmp_path / "home"
    (home / "deep" / "er").mkdir(parents=True)
    (home / "deep" / "er" / "b").write_bytes(b"12345")
    (home / "c").write_bytes(b"678")
    (home / "link").symlink_to(outside / "a")
    (home / "folder").symlink_to(outside)

    looked = scan(home, [KEY], leaving_out=[home / "c"])

    assert (looked.files, looked.bytes, looked.hits) == (1, 5, ())


# --- written otherwise ---------------------------------------------------------------------------

OTHERWISE = [
    ("heart surgery", "heart-surgery"),
    ("heart-surgery", "heart surgery"),
    ("heart surgery", "heart\u2013surgery"),
    ("heart surgery", "heart\u00a0surgery"),
    ("heart surgery", "heart **surgery**"),
    ("heart surgery", "_heart_ `surgery`"),
    ("O'Brien clinic", "O\u2019Brien clinic"),
    ("O\u2019Brien clinic", "O'Brien clinic"),
    ("L\u00f6wenzahn honig", "Lo\u0308wenzahn honig"),
    ("Straße 12", "STRAßE 12"),
]
MARKS = str.maketrans("", "", "*_`")


@pytest.mark.parametrize(("phrase", "text"), OTHERWISE)
@pytest.mark.parametrize("as_json", [False, True])
def test_the_same_words_are_found_however_they_are_written(
    tmp_path: Path, phrase: str, text: str, as_json: bool
) -> None:
    wording = Wording((phrase,))
    said = f"So: {text}, today."
    said = json.dumps(said) if as_json else said
    (tmp_path / "a.txt").write_text(said, "utf-8")

    assert wording.holds_json(said)
    assert wording.blanked_json(said).strip('"').translate(MARKS) == f"So: {BLANK}, today."
    assert scan(tmp_path, [phrase]).hits


def test_keys_that_a_model_chose_are_blanked_and_those_of_ours_are_not() -> None:
    wording = Wording(("zinc tub",))
    call = json.dumps({"zinc tub": 1, "path": "x"})
    entry = json.dumps({"calls": [{"arguments": call}]})

    assert wording.holds_json(entry)
    assert json.loads(wording.blanked_call(call)) == {BLANK: 1, "path": "x"}
    assert not wording.holds_json(wording.blanked_json(entry))
    assert not wording.holds_json('{"zinc tub": 1}')
