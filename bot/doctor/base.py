"""Checks of everything that can be wrong, each bounded, side by side: for `hearthbot doctor`.

What is checked stands in `machine`, `home`, `reach` and `stored`. A check changes nothing; a
finding may bring along how to mend it safely.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeVar

from bot.doctor.live import Unreachable
from memory.records.errors import AssistantError, Temporary

T = TypeVar("T")

LIMIT_S = 8.0
"""How long one check may take, unless it says otherwise."""


class FindingLevel(StrEnum):
    """How bad it is. A failure is what keeps the bot, or a part of it, from working."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line. `fix` is a command or a sentence; `mend` does it and says what it did.

    `mend` may raise OSError. It is there only where nothing can be lost by it. `is_shared`: another
    check may have found the same trouble, which is then shown once.
    """

    level: FindingLevel
    text: str
    fix: str = ""
    mend: Callable[[], str] | None = None
    is_shared: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorCheck:
    """One question. `look` may raise AssistantError, whose sentence is then a failure."""

    name: str
    look: Callable[[], Awaitable[Sequence[Finding]]]
    limit_s: float = LIMIT_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A finding of a check, and what was mended."""

    check: str
    finding: Finding
    mended: str = ""


def ok(text: str) -> Finding:
    return Finding(level=FindingLevel.OK, text=text)


def warn(text: str, fix: str, mend: Callable[[], str] | None = None) -> Finding:
    return Finding(level=FindingLevel.WARN, text=text, fix=fix, mend=mend)


def fail(text: str, fix: str, mend: Callable[[], str] | None = None) -> Finding:
    return Finding(level=FindingLevel.FAIL, text=text, fix=fix, mend=mend)


def blocking(
    name: str, look: Callable[[], Iterable[Finding]], *, limit_s: float = LIMIT_S
) -> DoctorCheck:
    """A check that reads files or the like: it gets a thread of its own."""
    return DoctorCheck(name=name, look=lambda: in_thread(look), limit_s=limit_s)


async def run_checks(
    checks: Sequence[DoctorCheck], *, done: Callable[[str], None] = lambda name: None
) -> list[Result]:
    """Run all at the same time; return the results in the order of the checks, the same trouble
    once. `done` hears of each end."""

    async def run(check: DoctorCheck) -> list[Result]:
        try:
            async with asyncio.timeout(check.limit_s):
                found = await check.look()
        except TimeoutError:
            what = f"not known: the check did not finish within {check.limit_s:g} s"
            found = [warn(what, "Try again; if it stays so, the disk or the network is slow.")]
        except AssistantError as error:
            found = [replace(_of_error(error), is_shared=isinstance(error, Unreachable))]
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or type(error).__name__
            found = [fail(f"cannot be checked: {why}", "Look at the file or the disk in question.")]
        done(check.name)
        return [Result(check=check.name, finding=finding) for finding in found]

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(run(check)) for check in checks]
    results = [result for task in tasks for result in task.result()]
    # A platform that cannot be reached would be told once for each check that asks it.
    shared = [one.finding.text if one.finding.is_shared else None for one in results]
    return [
        one for at, one in enumerate(results) if not shared[at] or shared[at] not in shared[:at]
    ]


def mend_all(results: Sequence[Result]) -> list[Result]:
    """Mend what can be mended; what was mended is well, what could not be stays as it is."""
    after = []
    for result in results:
        finding = result.finding
        if finding.mend is None:
            after.append(result)
            continue
        try:
            did = finding.mend()
        except OSError as error:
            text = f"{finding.text}; mending it failed ({error.strerror})"
            after.append(replace(result, finding=replace(finding, text=text)))
        else:
            after.append(replace(result, finding=ok(finding.text), mended=did))
    return after


def is_well(results: Sequence[Result]) -> bool:
    """Return whether nothing failed."""
    return all(result.finding.level is not FindingLevel.FAIL for result in results)


def _of_error(error: AssistantError) -> Finding:
    """Our sentences say what happened, and then what to do."""
    text = str(error)
    for mark in (". ", ": check ", ": set ", ": run "):
        head, found, tail = text.partition(mark)
        if found and tail:
            return fail(head, tail if mark == ". " else f"{found[2:].capitalize()}{tail}")
    if isinstance(error, Temporary):
        return fail(text, "Try again in a few minutes.")
    return fail(text, "docs/troubleshooting.md has more on this.")


async def in_thread(look: Callable[[], Iterable[T]]) -> Sequence[T]:
    """Return what it finds, from a thread that may be left behind: a disk that hangs must not hold
    up the end."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[Sequence[T]] = loop.create_future()

    def settle(found: Sequence[T], error: Exception | None) -> None:
        if outcome.done():
            return
        if error is None:
            outcome.set_result(found)
        else:
            outcome.set_exception(error)

    def work() -> None:
        found: Sequence[T] = ()
        trouble: Exception | None = None
        try:
            found = list(look())
        except (AssistantError, OSError, ValueError) as error:
            trouble = error
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, found, trouble)

    threading.Thread(target=work, name="doctor", daemon=True).start()
    return await outcome
