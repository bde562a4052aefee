"""The group `exec`: runs a program with its arguments, in the sandbox where there is one.

There is no shell between the words and the program, so quotes, globs and variables have no power;
what limits a program is the sandbox, or a person who has read exactly what will run: a command that
is too long for a card is refused. `Runner` is
shared with `run_skill`, so that both keep to the same rules.
"""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

from pydantic import Field

from agent.sandbox.bubblewrap import Bubblewrap, Confinement
from agent.sandbox.environment import confined_environment, open_environment
from agent.sandbox.process import (
    Caught,
    Program,
    Ran,
    RunLimits,
    StopReason,
    run_confined,
    run_open,
)
from agent.skills.matcher import allows_command
from agent.tools.confinement import WorkspaceViews
from agent.tools.tool import COMMAND, Caller, Effect, Needs, Trust, tool
from agent.tools.toolbox import KeepResult, fitted
from agent.tools.workspace import Workspace
from memory.records.errors import Permanent
from memory.records.messages import Role

OUTPUT_CHARS_MAX = 10_000
ENDING_S = 15.0
"""Beyond a program's own time: for what is looked up before it and ended behind it."""
WORDS_MAX = 500

TOO_LONG = (
    "the command, with what it reads from stdin, is too long to be shown whole to whoever has to "
    "agree to it. Write what is long to a file of the workspace, such as run.sh or input.txt, and "
    "run or name that"
)
NO_SANDBOX = "programs are not confined here, so this one can do whatever the bot's account can"


class ProgramNotRun(Permanent):
    """A program that may not run here, or not for this person."""


CommandLimits = Callable[[Caller], Sequence[str] | None]
"""The entries of `allowed-tools` of the skills that are followed in a turn; None sets no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecOptions:
    """What the owner set. `readable` are further folders that confined programs may read;
    `sandbox` False takes even an existing sandbox out of use; `output_chars_max` is what the model
    reads of what one program writes."""

    sandbox: bool = True
    readable: tuple[Path, ...] = ()
    output_chars_max: int = OUTPUT_CHARS_MAX
    limits: RunLimits = field(default_factory=RunLimits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One program to run for somebody. `given` are variables for this process alone, `readable`
    more folders that it may read, and `instead` shows one file in the place of another. It gets as
    long as any program may run, unless `timeout_s` is less."""

    command: Sequence[str]
    folder: Path
    timeout_s: float | None = None
    stdin: str | None = None
    given: Mapping[str, str] = field(default_factory=dict)
    readable: tuple[Path, ...] = ()
    instead: Mapping[Path, Path] = field(default_factory=dict)


class Runner:
    """Runs programs for callers. One for the whole bot; may be called for many turns at once.

    `home` is the folder with settings and database, which no program sees but for the workspace in
    it; `own` are the variables of this process, of which few are passed on.
    """

    def __init__(
        self,
        workspace: Path,
        *,
        home: Path,
        options: ExecOptions | None = None,
        fixed: tuple[Path, ...] = (),
        own: Mapping[str, str] | None = None,
        keep: KeepResult | None = None,
    ) -> None:
        self._options = options or ExecOptions()
        self.root = workspace.resolve()
        self._own = os.environ if own is None else own
        self._keep = keep
        self._bubblewrap = Bubblewrap(is_wanted=self._options.sandbox)
        self._views = WorkspaceViews(
            workspace=self.root, secret=(home,), readable=self._options.readable, fixed=fixed
        )

    def is_confined(self) -> bool:
        """Return whether programs run in a sandbox. The first answer takes some milliseconds."""
        return self._bubblewrap.works()

    @property
    def timeout_s(self) -> float:
        """As long as a call may take: the program, and what is done before and after it."""
        return self._options.limits.timeout_s + ENDING_S

    @property
    def why_open(self) -> str:
        """Why there is no sandbox, for `doctor` and `/status`; empty when there is one."""
        return self._bubblewrap.why_not

    def needs(self, caller: Caller, *, shows: tuple[str, ...]) -> Needs:
        """By SPEC §6: in the sandbox the rules decide, which ask unless the owner set them
        otherwise; elsewhere each call asks, and none runs in a tainted turn.

        What no card can show whole is not run, whatever the rules say: somebody who is asked would
        agree to what they have not read.
        """
        if self.is_confined():
            return Needs(whole=TOO_LONG, shows=shows)
        if caller.tainted:
            return Needs(refused=self._tainted(), whole=TOO_LONG, shows=shows)
        return Needs(asks=NO_SANDBOX, once_only=True, whole=TOO_LONG, shows=shows)

    async def run(self, order: Order, caller: Caller) -> str:
        """Return what the program wrote, with its exit code, in at most `output_chars_max`
        characters.

        That it had to be ended stands there too: an error would be our own words, and what a
        program wrote until then is not. Raises ProgramNotRun, ProgramRefused, ConfinementRefused.
        """
        if caller.role is not Role.OWNER:
            raise ProgramNotRun("only the owner may have programs run")
        most = self._options.limits
        limits = replace(most, timeout_s=min(order.timeout_s or most.timeout_s, most.timeout_s))
        is_confined = await asyncio.to_thread(self.is_confined)
        # The gate asked by `needs`; nothing runs here because somebody forgot to ask it.
        if not is_confined and caller.tainted:
            raise ProgramNotRun(self._tainted())
        if not is_confined and not caller.agreed:
            raise ProgramNotRun(f"{NO_SANDBOX}; a person has to agree first")
        environment = confined_environment if is_confined else open_environment
        program = Program(
            command=order.command,
            folder=order.folder,
            environment={**environment(self.root, self._own), **order.given},
            stdin=None if order.stdin is None else order.stdin.encode(errors="replace"),
        )
        if is_confined:
            ran = await self._confined(program, order, caller, limits)
        else:
            ran = await run_open(program, limits)
        text = report(ran)
        if ran.stopped is StopReason.TIME:
            text = f"stopped: the program did not end within {limits.timeout_s:g} s\n{text}"
        elif ran.stopped is not None:
            text = f"stopped: the program wrote more than {limits.output_bytes:,} bytes\n{text}"
        most_chars = self._options.output_chars_max
        return await fitted(text, caller, chars_max=most_chars, keep=self._keep)

    async def _confined(
        self, program: Program, order: Order, caller: Caller, limits: RunLimits
    ) -> Ran:
        view = self._views.view(caller, more=order.readable, instead=order.instead)
        stack = ExitStack()

        def leave(entered: asyncio.Future[Confinement]) -> None:
            if not entered.cancelled() and entered.exception() is None:
                stack.close()

        # In a thread, as it looks at the disk; to leave it is a few unlinks.
        entering = asyncio.ensure_future(asyncio.to_thread(stack.enter_context, view))
        try:
            confinement = await asyncio.shield(entering)
            return await run_confined(program, confinement, self._bubblewrap, limits)
        finally:
            # Of a call that is cancelled the thread goes on: what it enters is left once it is
            # through.
            if entering.done():
                leave(entering)
            else:
                entering.add_done_callback(leave)

    def _tainted(self) -> str:
        return (
            f"there is no sandbox here ({self.why_open}), and text of others is in this "
            "conversation, so the wish may be theirs. Tell the person; after `/new` it can be "
            "asked for again"
        )


# --- exec --------------------------------------------------------------------------------------


class ExecTools:
    """Runs one program in the workspace."""

    def __init__(self, runner: Runner, limits: CommandLimits | None = None) -> None:
        self._runner = runner
        self._limits = limits

    def _exec_needs(self, caller: Caller, command: tuple[str, ...], cwd: str) -> Needs:
        """Shows the command line as a person would type it, and where it runs."""
        if why := self._forbidden(command, caller):
            return Needs(refused=why)
        return self._runner.needs(caller, shows=shown_command(command, cwd))

    @tool(
        "exec",
        Effect.OUTSIDE,
        redo="once",
        trust=Trust.UNTRUSTED,
        needs=_exec_needs,
        status="runs a program",
    )
    async def exec(
        self,
        caller: Caller,
        command: Annotated[
            tuple[str, ...],
            Field(min_length=1, max_length=WORDS_MAX, description='e.g. ["wc", "-l", "notes.txt"]'),
        ],
        cwd: Annotated[str, Field(description="folder in the workspace")] = "",
        timeout_s: Annotated[
            float | None, Field(gt=0, description="if it is to end sooner")
        ] = None,
        stdin: str | None = None,
    ) -> str:
        """Run a program in the workspace folder, without a shell: words are passed as they are. As
        a rule it has no network, and sees nothing but the workspace."""
        if why := self._forbidden(command, caller):
            raise ProgramNotRun(why)
        folder = await asyncio.to_thread(folder_in, self._runner.root, cwd, caller)
        order = Order(command=command, folder=folder, timeout_s=timeout_s, stdin=stdin)
        return await self._runner.run(order, caller)

    def _forbidden(self, command: Sequence[str], caller: Caller) -> str:
        entries = None if self._limits is None else self._limits(caller)
        if allows_command(entries, command):
            return ""
        return (
            "the skill that is being followed allows no such command "
            f"(its allowed-tools: {', '.join(entries or ()) or 'none'})"
        )


def folder_in(root: Path, cwd: str, caller: Caller) -> Path:
    """A folder of the workspace that the caller may see. Raises PathRefused. Blocks."""
    path = cwd.strip() or "."
    Workspace(root).entries(path, caller, entries_max=1)
    return (root / path).resolve()


def shown_command(command: Sequence[str], cwd: str) -> tuple[str, ...]:
    """Rows for a person: the command line, quoted, so that each word can be told from the next, and
    where it runs."""
    line, folder = f"{COMMAND}{shlex.join(command)}", cwd.strip()
    return (line, f"(in {folder})") if folder not in {"", "."} else (line,)


# --- what a program wrote ----------------------------------------------------------------------


def report(ran: Ran) -> str:
    """Exit code first, then what was written, each stream under its own name."""
    is_signal = 128 < ran.exit_code < 128 + 65
    by_signal = f" (ended by signal {ran.exit_code - 128})" if is_signal else ""
    lines = [f"exit code {ran.exit_code}{by_signal}"]
    streams = (("stdout", ran.stdout), ("stderr", ran.stderr))
    for name, caught in streams:
        if caught.total:
            lines += [f"--- {name} ---", _text(caught)]
    if len(lines) == 1:
        lines.append("(no output)")
    return "\n".join(lines)


def _text(caught: Caught) -> str:
    sample = bytes(caught.head[:4096])
    unreadable = sample.decode(errors="replace").count("\ufffd")
    if b"\0" in sample or unreadable > max(len(sample) // 10, 1):
        return f"(binary data, {caught.total:,} bytes, not shown: have it written to a file)"
    if not caught.left_out:
        return (caught.head + caught.tail).decode(errors="replace").rstrip("\n")
    head = caught.head.decode(errors="ignore")
    tail = caught.tail.decode(errors="ignore").rstrip("\n")
    return f"{head}\n[… {caught.left_out:,} bytes were not kept …]\n{tail}"
