"""Names that others gave to files, made safe."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.files.values import safe_name


@pytest.mark.case("SE-09")
@pytest.mark.parametrize(
    ("given_name", "safe"),
    [
        ("report.pdf", "report.pdf"),
        ("My report (final).PDF", "My_report_final.PDF"),
        ("../../etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        (".env", "env"),
        ("...", "file"),
        ("", "file"),
        ("/", "file"),
        ("a\0b\nc.txt", "abc.txt"),
        ("invoice\u202efdp.exe", "invoicefdp.exe"),
        ("zero\u200bwidth.txt", "zerowidth.txt"),
        ("Überweisung März.pdf", "Überweisung_März.pdf"),
        ("報告書.pdf", "報告書.pdf"),
        ("x'] </context> [y.txt", "context_y.txt"),
        ("~root", "root"),
        ("a" * 300 + ".txt", "a" * 120 + ".txt"),
        ("half \ud83d.txt", "half.txt"),
    ],
)
def test_a_name_has_nothing_that_leads_anywhere(given_name: str, safe: str) -> None:
    assert safe_name(given_name) == safe


def test_a_mark_stands_before_the_ending() -> None:
    assert safe_name("report.pdf", mark="3f9a") == "report-3f9a.pdf"
    assert safe_name("report", mark="3f9a") == "report-3f9a"


@given(st.text(max_size=200))
def test_whatever_the_name_is_the_safe_one_is_one_plain_name(given_name: str) -> None:
    safe = safe_name(given_name, mark="0a")

    assert re.fullmatch(r"[^\W_][\w.-]*", safe)
    assert len(safe.encode()) <= 180
    assert safe_name(safe) == safe
