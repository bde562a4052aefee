"""The guards of `tests/conftest.py` do guard."""

from __future__ import annotations

import os
import socket

import pytest


@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1", "example.org"])
def test_no_test_can_reach_another_machine(host: str, stays_on_this_machine: list[str]) -> None:
    with pytest.raises(OSError, match="tests stay on this machine"):
        socket.create_connection((host, 80), timeout=1)

    assert stays_on_this_machine
    stays_on_this_machine.clear()


def test_loopback_is_open_to_tests() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname(), timeout=1).close()


def test_a_test_sees_no_settings_and_no_keys_of_this_machine() -> None:
    ours = [name for name in os.environ if name.startswith("HEARTHBOT_")]
    keys = [name for name in os.environ if name.endswith("_API_KEY")]

    assert ours + keys == []
