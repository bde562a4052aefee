"""Killed at any moment, over and over, while people write in Telegram and in Slack: each message is
answered once, in order, and in Slack no reply stands twice, for what is in doubt is looked up."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from random import Random
from typing import Literal

import pytest

from tests.acceptance.rig import SLACK_TEAM, Home, Model, Slack, Telegram, until
from tests.acceptance.test_kills import (
    EACH,
    KILLS,
    MARK,
    OWNERS,
    PEOPLE,
    UNKNOWN,
    Found,
    at_a,
    check_replies,
    check_tools,
    kill_and_look,
    later,
    settled,
    words,
)

CHANNEL = "C0KILLS"
THREADS = range(31, 41)


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def moments(
    telegram: Telegram, slack: Slack, model: Model, chance: Random
) -> list[Callable[[], object]]:
    """When to kill: also while a post to Slack is under way, or its sockets change."""
    by_chance = later(chance)

    def in_a_refresh() -> None:
        slack.ask("refresh", after_s=0.3)
        by_chance()

    return [
        at_a(slack, "chat.postMessage", after=True, chance=chance),
        by_chance,
        at_a(telegram, "sendMessage", after=True, chance=chance),
        at_a(slack, "chat.postMessage", after=False, chance=chance),
        in_a_refresh,
        at_a(model, "chat", after=True, chance=chance),
        by_chance,
    ]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.case("CH-01", "CH-19")
@pytest.mark.parametrize("mode", ["socket", "http"])
def test_both_platforms_are_answered_once_whatever_is_killed(
    home: Home, telegram: Telegram, model: Model, slack: Slack, mode: Literal["socket", "http"]
) -> None:
    chance = Random(2026)
    listen = free_address() if mode == "http" else ""
    writers = {thread: f"U0P{thread}" for thread in THREADS}
    home.serve_slack(slack, listen=listen)
    home.env |= {
        "HEARTHBOT_TURNS__QUEUE": "followup",
        "HEARTHBOT_TELEGRAM__ALLOW_FROM": str(list(PEOPLE)),
        "HEARTHBOT_SLACK__ALLOW_FROM": ",".join(f"{SLACK_TEAM}:{w}" for w in writers.values()),
    }
    home.approve(*OWNERS, role="owner")
    admitted = home.run("access", "approve", f"slack:{SLACK_TEAM}.{CHANNEL}")
    assert admitted.returncode == 0, admitted.stderr
    for chat in OWNERS:
        (home.path / "workspace" / f"list-{chat}.txt").write_text("END\n")
    texts = {chat: [words(chat, n, chance) for n in range(EACH)] for chat in PEOPLE}
    asked = {thread: [f"m-{thread}-{n:02d}" for n in range(EACH)] for thread in THREADS}
    queue = [(chat, texts[chat][n]) for n in range(EACH) for chat in PEOPLE]
    posts = [(thread, asked[thread][n]) for n in range(EACH) for thread in THREADS]
    opened: dict[int, str] = {}
    found = Found()
    kinds = moments(telegram, slack, model, chance)

    running = home.start()
    if listen:
        until(lambda: slack.ask("deliver_to", url=f"http://{listen}/slack/events"))
    for number in range(KILLS):
        for chat, text in queue[number * 10 : number * 10 + 10]:
            telegram.says(chat, text)
        for thread, text in posts[number * 5 : number * 5 + 5]:
            ts = slack.says(CHANNEL, text, by=writers[thread], thread=opened.get(thread))
            opened.setdefault(thread, ts)
        kinds[number % len(kinds)]()
        kill_and_look(home, running, found)
        for stand_in in (telegram, slack, model):
            stand_in.behave()
        running = home.start()

    def all_done() -> bool:
        waiting = telegram.ask("pending") or slack.ask("pending")
        return not waiting and settled(home)

    until(all_done, timeout_s=120)
    until(running.serving)
    code = running.end()

    unknown = [text for (text,) in home.ask_database(UNKNOWN)]
    doubles = check_replies(telegram.shown, texts, unknown)
    check_replies(lambda thread: in_order(slack.shown(CHANNEL, opened[thread])), asked, [])
    shown = [text for thread in THREADS for text in slack.shown(CHANNEL, opened[thread])]
    edits = check_tools(home, model, texts)
    looked_up = slack.received("conversations.replies")
    print(
        f"\n{mode}: {found.kills} kills over {len(queue)} messages in Telegram and {len(posts)} in "
        f"Slack: {found.in_the_window} sends under way, {slack.vanished('chat.postMessage')} of "
        f"Slack's answers found nobody, {looked_up} look-ups; {doubles} replies in Telegram stand "
        f"twice, marked; {len(unknown)} of unknown fate; {edits} edits made"
    )
    assert code == 0
    assert slack.ask("lost") == []
    assert len(shown) == len(posts), "in Slack each reply stands once"
    assert not [text for text in shown if MARK in text]
    assert doubles <= found.in_the_window
    assert home.ask_database("pragma integrity_check") == [("ok",)]


def in_order(shown: list[str]) -> list[str]:
    """Slack promises no order of what it brings again, so replies are compared in that of the
    questions."""
    return sorted(shown, key=lambda text: re.findall(r"m-\d\d-\d\d", text)[-1:])
