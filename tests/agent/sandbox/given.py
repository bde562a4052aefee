"""Which machines the tests of the sandbox run on, and runners over real folders."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from agent.sandbox.bubblewrap import Bubblewrap
from agent.tools.groups.exec import ExecOptions, ExecTools, Runner
from agent.tools.tool import Caller
from tests.agent.tools.given import OWNER

AGREED = replace(OWNER, agreed=True)
KEYS: Mapping[str, str] = {"OPENAI_API_KEY": "sk-test1", "TG_TOKEN": "t-test2"}


def why_no_sandbox() -> str:
    """Empty where programs can be confined, or where HEARTHBOT_REQUIRE_SANDBOX says they must."""
    if os.environ.get("HEARTHBOT_REQUIRE_SANDBOX") == "1":
        return ""
    return Bubblewrap().why_not


WHY = why_no_sandbox()
needs_sandbox = pytest.mark.skipif(bool(WHY), reason=f"no sandbox here: {WHY}")


class Home:
    """A bot's home with a workspace, and files beside it that no program may see."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.workspace = self.home / "workspace"
        self.workspace.mkdir(parents=True)
        (self.home / "config.toml").write_text('token = "canary-config"')
        self.beside = root / "canary"
        self.beside.mkdir()
        (self.beside / "file").write_text("canary-beside")

    def runner(self, *, sandbox: bool = True, **more: object) -> Runner:
        options = more.pop("options", None) or ExecOptions(sandbox=sandbox)
        assert isinstance(options, ExecOptions)
        own = {"PATH": os.environ["PATH"], **KEYS}
        return Runner(self.workspace, home=self.home, options=options, own=own, **more)  # type: ignore[arg-type]

    def write(self, name: str, text: str) -> Path:
        path = self.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


async def ran(
    runner: Runner, *command: str, who: Caller = AGREED, cwd: str = "", **more: object
) -> str:
    """What exec says of a command."""
    return await ExecTools(runner).exec(who, command, cwd, **more)  # type: ignore[arg-type]


def processes_with(mark: str) -> list[int]:
    """Processes of this machine whose command line holds `mark`."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if mark.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found
