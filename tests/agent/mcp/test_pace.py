"""How often a list that keeps changing is read, and what is wrong with it is said."""

from __future__ import annotations

from structlog.testing import capture_logs

from agent.mcp.values import RareWarnings, RereadBackoff, Timing


def test_while_changes_keep_coming_the_pauses_double_up_to_a_minute() -> None:
    pace, now = RereadBackoff(Timing()), 100.0
    waits = []

    for _ in range(9):
        waits.append(max(0.0, pace.wait_s(now)))
        now += waits[-1]
        pace.read(now)

    assert waits == [0, 1, 2, 4, 8, 16, 32, 60, 60]


def test_after_a_quiet_time_a_change_is_read_at_once_and_the_next_one_soon() -> None:
    pace = RereadBackoff(Timing())
    for now in (0.0, 1.0, 3.0, 7.0):
        pace.read(now)

    assert pace.wait_s(7.0) == 8
    assert pace.wait_s(200.0) < 0
    pace.read(200.0)
    assert pace.wait_s(200.0) == 1


def test_a_warning_is_said_once_a_minute_each_kind_for_itself() -> None:
    warnings = RareWarnings("odd", Timing())

    with capture_logs() as logs:
        for now in (0.0, 30.0, 59.0, 60.0):
            warnings.warn("mcp.one", now=now, tools=[now])
        warnings.warn("mcp.other", now=60.0)

    assert [(one["event"], one.get("tools")) for one in logs] == [
        ("mcp.one", [0.0]),
        ("mcp.one", [60.0]),
        ("mcp.other", None),
    ]
    assert {one["server"] for one in logs} == {"odd"}
