"""From nothing to the first answer, and how fast."""

from __future__ import annotations

import re
import time
from pathlib import Path

from tests.acceptance.rig import Home, Telegram, until


def cpu_s(pid: int) -> float:
    """CPU seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def memory_mb(pid: int, kind: str = "VmRSS") -> float:
    found = re.search(rf"{kind}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1]) / 1024


def test_the_first_message_is_answered(home: Home, telegram: Telegram) -> None:
    home.approve(7)
    home.loads_anew = True
    telegram.says(7, "hello")
    began = time.monotonic()

    running = home.start()
    until(lambda: telegram.received("getUpdates"))
    polling_s = time.monotonic() - began
    (reply,) = until(lambda: telegram.shown(7))
    reply_s = time.monotonic() - began
    time.sleep(0.5)

    print(
        f"\nstart -> polling {polling_s:.2f} s, -> reply {reply_s:.2f} s, "
        f"CPU {cpu_s(running.pid):.2f} s, RSS {memory_mb(running.pid):.0f} MB "
        f"(peak {memory_mb(running.pid, 'VmHWM'):.0f})"
    )
    assert reply == "You said: hello"
    assert running.end() == 0


def test_what_serving_telegram_does_not_need_is_not_loaded(home: Home) -> None:
    home.env["PYTHONPROFILEIMPORTTIME"] = "1"

    done = home.run("run", "--once")

    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    unneeded = {
        "rich.segment",
        "prompt_toolkit",
        "telegram.ext",
        "litellm",
        "aiohttp",
        "apscheduler",
    }
    assert done.returncode == 0
    assert "telegram._bot" in loaded
    assert loaded & (unneeded | {"slack_bolt", "pygments.lexers", "xllamacpp", "pytest"}) == set()
