"""Which links wear another address than the one they lead to."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.markup.render import slack_parts, telegram_parts
from bot.markup.runs import poses


@pytest.mark.parametrize(
    ("label", "url"),
    [
        ("https://bank.org", "https://evil.org/?d=bank.org"),
        ("bank.org", "https://evil.org/bank.org"),
        ("Log in at www.Bank.org now", "https://evil.org"),
        ("bank.org and evil.org", "https://evil.org"),
        ("https://bank.org/", "https://bank.org.evil.org/"),
        ("bank.org", "https://bank.org@evil.org/"),
        ("evil.org", "https://bank.org\\@evil.org/"),
        ("ba\u200bnk.org", "https://evil.org"),
        ("bank\uff0eorg", "https://evil.org"),
        ("gro.\u202eknab", "https://evil.org"),
        ("192.168.0.1", "https://evil.org"),
        ("http://localhost:80", "https://evil.org"),
        ("http://[::1]/", "https://evil.org"),
        ("me@bank.org", "https://evil.org"),
        ("me@bank.org", "mailto:you@bank.org"),
        ("bank.org", "mailto:you@evil.org"),
        ("https://t.me/bank", "tg://resolve?domain=evil"),
        ("bank.org", "https://[evil"),
    ],
)
@pytest.mark.threat("T12")
def test_words_that_name_another_host_pose(label: str, url: str) -> None:
    assert poses(label, url)


@pytest.mark.parametrize(
    ("label", "url"),
    [
        ("Read more", "https://evil.org"),
        ("", "https://x.org"),
        ("https://x.org/a", "https://x.org/b?c#d"),
        ("X.org", "https://www.x.org:443/"),
        ("(https://www.x.org.)", "http://x.org"),
        ("münchen.de", "https://xn--mnchen-3ya.de/"),
        ("http://[::1]/", "http://[::1]:80/"),
        ("notes.txt, 3.11 and e.g. this", "https://x.org/notes.txt"),
        ("me@x.org", "mailto:Me@x.org?subject=a"),
        ("Write to me", "mailto:me@x.org"),
        ("Costs 1.50 EUR", "https://x.org"),
    ],
)
def test_other_words_do_not(label: str, url: str) -> None:
    assert not poses(label, url)


@settings(max_examples=100)
@given(st.text(), st.text())
def test_no_words_and_no_address_break_it(label: str, url: str) -> None:
    poses(label, url)


def test_long_words_take_no_long_time() -> None:
    began = time.monotonic()
    for piece in ("a", "a.", "a-", "://", "a://", "a@", "1.1.1.1.", "https://a@"):
        poses(piece * 20_000, "https://x.org")

    assert time.monotonic() - began < 10, "a hang"


@pytest.mark.threat("T12")
def test_no_channel_hides_where_such_a_link_leads() -> None:
    text = "See [https://bank.org](https://evil.org/?d=1) and [docs](https://x.org/docs)."
    (telegram,) = telegram_parts(text)
    (slack,) = slack_parts(text)

    assert "https://bank.org (https://evil.org/?d=1)" in telegram.markup
    assert telegram.markup.count("<a ") == 1
    assert "<https://bank.org> (https://evil.org/?d=1)" in slack.markup
    assert "<https://x.org/docs|docs>" in slack.markup
