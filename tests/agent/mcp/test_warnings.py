"""How often a list that keeps changing is read, and what is wrong with it is said."""

from __future__ import annotations

from structlog.testing import capture_logs

from agent.mcp.values import RareWarnings, Timing


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
