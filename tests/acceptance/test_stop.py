"""Asked to stop: soon, cleanly, and nothing is lost by it (promises P2, P15)."""

from __future__ import annotations

import signal
import time
from functools import partial

import pytest

from tests.acceptance.rig import Home, Model, Running, Telegram, until
from tests.acceptance.terminal import CTRL_C, Terminal
from tests.thorough import rounds

STOP_S_MAX = 10.0


def ended_calmly(running: Running, number: int) -> float:
    """Seconds that it took to stop. Nothing about errors was said."""
    began = time.monotonic()
    assert running.end(number, timeout_s=STOP_S_MAX) == 0
    said = running.said()
    assert "Traceback" not in said
    assert '"level": "error"' not in said
    return time.monotonic() - began


def says(running: Running, event: str) -> bool:
    return event in running.said()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.case("CH-01")
def test_a_stop_while_idle_is_quick_and_the_next_start_answers_nothing_again(
    home: Home, telegram: Telegram, model: Model, number: int
) -> None:
    home.approve(7)
    telegram.says(7, "what is 2+2")
    running = home.start()
    until(lambda: telegram.shown(7))
    until(lambda: not telegram.ask("pending"))

    took_s = ended_calmly(running, number)
    telegram.ask("redeliver", update_id=1)
    again = home.start()
    until(lambda: telegram.received("getUpdates") and not telegram.ask("pending"))
    telegram.says(7, "and 3+3")
    until(lambda: len(telegram.shown(7)) >= 2)

    print(f"\nan idle stop took {took_s:.2f} s")
    assert telegram.shown(7) == ["You said: what is 2+2", "You said: and 3+3"]
    assert len(model.user_texts()) == 2
    ended_calmly(again, number)
    assert home.processes() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_turn_that_outlasts_the_stop_is_answered_after_the_next_start(
    home: Home, telegram: Telegram, model: Model, number: int
) -> None:
    home.env["HEARTHBOT_TURNS__DRAIN_S"] = "3"
    home.approve(7)
    model.ask("fault", method="chat", action={"kind": "hold", "seconds": 60, "after": False})
    telegram.says(7, "think long")
    running = home.start()
    until(lambda: model.received("chat"))

    took_s = ended_calmly(running, number)
    shown = telegram.shown(7)
    model.ask("clear_faults")
    again = home.start()
    until(lambda: telegram.shown(7))

    print(f"\na stop in a turn took {took_s:.2f} s")
    assert shown == []
    assert telegram.shown(7) == ["You said: think long"]
    ended_calmly(again, number)
    assert home.processes() == []


def test_a_second_ctrl_c_parks_the_turn_at_once(
    home: Home, telegram: Telegram, model: Model
) -> None:
    home.env["HEARTHBOT_TURNS__DRAIN_S"] = "600"
    home.approve(7)
    model.ask("fault", method="chat", action={"kind": "hold", "seconds": 600, "after": False})
    telegram.says(7, "think long")
    with Terminal(home, "run") as terminal:
        until(lambda: model.received("chat"))
        terminal.type(CTRL_C)
        terminal.expect("Ctrl-C again")
        terminal.type(CTRL_C)

        assert terminal.ends() == 0
        assert "Traceback" not in terminal.text
    model.ask("clear_faults")
    again = home.start()
    until(lambda: telegram.shown(7))

    assert telegram.shown(7) == ["You said: think long"]
    ended_calmly(again, signal.SIGTERM)


def test_a_turn_that_is_soon_over_is_finished_before_the_stop(
    home: Home, telegram: Telegram, model: Model
) -> None:
    home.approve(7)
    telegram.says(7, "!wait 1\nalmost done")
    running = home.start()
    until(lambda: model.received("chat"))

    ended_calmly(running, signal.SIGTERM)

    assert telegram.shown(7) == ["You said: almost done"]


def test_a_stop_while_the_bot_is_still_opening_is_obeyed(home: Home, telegram: Telegram) -> None:
    for pause_s in (0.05, 0.1, 0.15, 0.2, 0.25, 0.3):
        running = home.start()
        time.sleep(pause_s)
        running.process.send_signal(signal.SIGTERM)
        # Python itself takes a moment until it knows any handler; then a signal just ends it.
        assert running.wait() in {0, -signal.SIGTERM}
        assert "Traceback" not in running.said()


def test_a_second_bot_on_the_home_is_refused_with_a_way_out(home: Home) -> None:
    running = home.start()
    until(running.serving)

    second = home.run("run")

    assert second.returncode == 1
    assert f"process {running.pid}" in second.stderr
    assert "Traceback" not in second.stderr
    assert second.stderr.count("\n") == 1
    ended_calmly(running, signal.SIGTERM)


def test_once_works_off_what_waits_and_leaves(home: Home, telegram: Telegram) -> None:
    home.approve(7, 8)
    telegram.says(7, "one")
    telegram.says(8, "two")

    done = home.run("run", "--once")
    idle = home.run("run", "--once")

    assert (done.returncode, idle.returncode) == (0, 0)
    assert telegram.shown(7) == ["You said: one"]
    assert telegram.shown(8) == ["You said: two"]
    assert telegram.ask("pending") == []


@pytest.mark.slow
@pytest.mark.parametrize("online", [True, False])
def test_many_starts_and_stops_leave_nothing_behind(
    home: Home, telegram: Telegram, online: bool
) -> None:
    if not online:
        home.env["HEARTHBOT_TELEGRAM__BASE_URL"] = "http://127.0.0.1:9"
    slowest_s = 0.0
    for _ in range(rounds(5, 30) if online else rounds(3, 10)):
        running = home.start()
        until(partial(says, running, "telegram.connected" if online else "telegram.unreachable"))
        slowest_s = max(slowest_s, ended_calmly(running, signal.SIGTERM))

    print(f"\nslowest stop {'on' if online else 'off'}line: {slowest_s:.2f} s")
    left = sorted(file.name for file in home.database.parent.iterdir())
    assert [name for name in left if "sock" in name or "-wal" in name or "making" in name] == []
    assert home.processes() == []
