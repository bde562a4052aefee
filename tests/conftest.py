"""What holds for every test: no configuration of this machine, and no network beyond it."""

from __future__ import annotations

import gc
import ipaddress
import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.thorough import SOAK_ONLY, THOROUGH, rounds

# A busy machine must not decide a test: no example has a deadline.
settings.register_profile(
    "ours",
    deadline=None,
    max_examples=rounds(40, 100),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ours")

WAITING_TESTS = 2
"""Workers beyond the processors: many tests wait, for a process, a pause or a stand-in."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """How many workers `-n auto` starts."""
    return (os.cpu_count() or 1) + WAITING_TESTS


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what only `make soak` runs, unless somebody asked for a test by its name."""
    if THOROUGH or any("::" in argument for argument in config.args):
        return
    left_out = [item for item in items if item.nodeid in SOAK_ONLY]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item.nodeid not in SOAK_ONLY]
    left = {item.nodeid.partition("[")[0] for item in items}
    for item in left_out:
        if "[" in item.nodeid and item.nodeid.partition("[")[0] not in left:
            raise pytest.UsageError(f"tests/soak.txt leaves no variant of {item.nodeid}")


gc.disable()  # while the tests are collected: all of it stays


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Has the tests themselves, a quarter of a million objects, never looked through again."""
    gc.freeze()
    gc.enable()


LOCAL_NAMES = frozenset({"", "localhost", "localhost.localdomain"})

_reached_out: list[str] = []
"""Where this process tried to go since the last test began. An audit hook cannot be removed, so
there is one for the process, and it writes here."""


class ReachedOut(OSError):
    """A test wanted to leave this machine."""


def _is_local(host: object) -> bool:
    if host is None or isinstance(host, bytes):
        return host is None or _is_local(host.decode("ascii", "replace"))
    name = str(host).partition("%")[0].lower()
    if name in LOCAL_NAMES:
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuses connections and name look-ups that would leave this machine."""
    if event == "socket.getaddrinfo":
        host = arguments[0]
    elif event in {"socket.connect", "socket.sendto"} and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    else:  # other events, and the addresses of Unix sockets, which are paths
        return
    if not _is_local(host):
        _reached_out.append(f"{event} {host}")
        raise ReachedOut(f"tests stay on this machine, and this one wanted {host}")


sys.addaudithook(_watch)


@pytest.fixture(autouse=True)
def stays_on_this_machine() -> Iterator[list[str]]:
    """Fails a test that tried to reach another machine, also when the code took it calmly."""
    _reached_out.clear()

    yield _reached_out

    assert _reached_out == [], "a test tried to reach another machine"


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting and no provider's key of whoever runs the tests gets into one."""
    for name in list(os.environ):
        if name.upper().startswith("HEARTHBOT_") or name.upper().endswith("_API_KEY"):
            monkeypatch.delenv(name)
