"""The socket of a bot that has a few parts alone."""

from __future__ import annotations

from collections.abc import Mapping

from bot.app.app import App
from bot.rpc import Operation, call_method


def offered(**parts: object) -> Mapping[str, Operation]:
    """What a `ControlServer` offers of these parts, by their names on an App."""
    app = App.__new__(App)
    vars(app).update(parts)
    return {"call": lambda request, emit: call_method(app, request, emit)}
