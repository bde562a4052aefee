"""Checks of what is stored: the database, its backups, messages, replies, and who is the owner."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

from agent.skills.places import PlaceScan, scan
from agent.skills.skill import Severity, SkillPlace
from bot.commands.skills import counted
from bot.doctor.base import Finding, fail, ok, warn
from bot.settings.home import Home
from bot.settings.options import places_of, texts_of
from bot.settings.schema.settings import Settings
from memory.database.checkup import Checkup
from memory.records.errors import SettingsWrong
from memory.records.messages import DEFAULT_AGENT
from memory.records.usage import Pause

BACKUP_AGE_MAX = timedelta(days=2)
WAITS_MAX = timedelta(minutes=15)
"""Longer than any turn may take by itself, retries of the model included."""

LEAVES_MAX = timedelta(hours=1)


def database(home: Home, found: Checkup, *, good_backup: Path | None) -> Iterator[Finding]:
    """Yield whether the file is whole, ours, and of a version that this program knows."""
    file = home.database
    if not found.ours:
        yield fail(f"{file} is not a database of Hearthbot", _put_back(home, good_backup))
    elif found.version > found.newest:
        yield fail(
            f"{file} was written by a newer Hearthbot (step {found.version}; this one knows "
            f"{found.newest})",
            "Start the newer version.",
        )
    elif found.trouble:
        yield fail(f"{file} is damaged: {found.trouble}", _put_back(home, good_backup))
    elif not found.checked:
        yield warn(f"{file} is too large to be checked in a moment", "The daily backup checks it.")
    elif found.version < found.newest:
        yield ok(f"whole; step {found.version}, the next start brings it to {found.newest}")
    else:
        yield ok(f"whole, step {found.version}")


def damaged(home: Home, why: str, *, good_backup: Path | None) -> Finding:
    """The file cannot even be read."""
    return fail(why.partition(". ")[0].rstrip("."), _put_back(home, good_backup))


def backups(home: Home, newest: Path | None, *, now: datetime) -> Iterator[Finding]:
    """Yield whether there is a copy of lately."""
    changed = _changed(home.database)
    if newest is None:
        if now.timestamp() - changed > BACKUP_AGE_MAX.total_seconds():
            yield warn("there is none", "Let the bot run: it makes one each day.")
        else:
            yield ok("none yet; the running bot makes one each day")
        return
    behind = timedelta(seconds=changed - _changed(newest))
    if behind > BACKUP_AGE_MAX:
        yield warn(
            f"the last one, {newest.name}, is {behind.days} days older than the database",
            f"Search {home.log_file} for housekeeping: it says why there is none.",
        )
    else:
        yield ok(f"the last one is {newest.name}")


def inbox(found: Checkup, *, now: datetime, is_running: bool) -> Iterator[Finding]:
    """Yield whether every message that came has come to exactly one end, or is on its way to it."""
    open_ones = found.inbox.get("received", 0) + found.inbox.get("queued", 0)
    if found.crooked:
        yield fail(
            f"{counted(found.crooked, 'message')} in a state that does not fit their end",
            "Please report it: the states are under `--json`. Nothing is lost by it.",
        )
    if found.stranded:
        yield fail(
            f"{waiting(found.stranded)} for a turn that is over",
            "Restart the bot; if it stays so, please report it.",
        )
    # While the bot runs, what is open is being worked on.
    if open_ones and not is_running:
        yield warn(f"{waiting(open_ones)} for the bot", "hearthbot run")
    elif _is_older(found.waiting_since_ms, WAITS_MAX, now):
        yield warn(
            f"a message has waited for more than {WAITS_MAX.seconds // 60} minutes",
            "Look into the log for its turn; /stop in that chat ends it.",
        )
    elif not found.crooked and not found.stranded:
        total = counted(sum(found.inbox.values()), "message")
        yield ok(f"{total}, {open_ones} of them not answered yet")


OVERDUE_MAX = timedelta(minutes=5)


def schedule(found: Checkup, *, now: datetime, is_running: bool) -> Iterator[Finding]:
    """Yield whether jobs run when they are due, and whether any was stopped."""
    stopped, on = found.jobs.get("stopped", 0), found.jobs.get("on", 0)
    if stopped:
        were = (
            "1 job was stopped, as it" if stopped == 1 else f"{stopped} jobs were stopped, as they"
        )
        yield warn(f"{were} kept failing", "hearthbot schedule list")
    if is_running and _is_older(found.next_job_ms, OVERDUE_MAX, now):
        yield warn(
            "a job is overdue",
            'Look into the log for `timetable`, or let the bot go on: hearthbot chat -m "/resume"',
        )
    elif on == 0:
        yield ok("no job is set")
    else:
        yield ok(f"{counted(on, 'job')}, the next {_when(found.next_job_ms, now)}")


def pause(found: Checkup, *, host_zone: tzinfo) -> Iterator[Finding]:
    """Yield whether the owner or the brake has stopped the bot, since when, and how it goes on."""
    for one in found.pauses:
        at = datetime.fromtimestamp(one.since_ms / 1000, host_zone)
        since = f"since {at.day} {at:%b %Y, %H:%M}"
        if one.kind is Pause.HAND:
            text = f"the owner paused the bot, {since}: what is written to it waits"
            yield warn(text, LET_GO_ON)
        else:
            who = "the bot" if one.agent == DEFAULT_AGENT else f"the agent {one.agent}"
            text = f"{who} has stopped asking models, {since}: {one.words}"
            yield warn(text, f"hearthbot usage shows what used it. {LET_GO_ON}")
    if not found.pauses:
        yield ok("not paused")


LET_GO_ON = 'To go on: hearthbot chat -m "/resume"'


def _when(ms: int | None, now: datetime) -> str:
    if ms is None:
        return "at no time"
    left_min = round((ms / 1000 - now.timestamp()) / 60)
    if left_min <= 0:
        return "is due now"
    hours, minutes = divmod(left_min, 60)
    days, hours = divmod(hours, 24)
    return "in " + (
        f"{days} d {hours} h" if days else f"{hours} h {minutes} min" if hours else f"{minutes} min"
    )


def outbox(found: Checkup, *, now: datetime, is_running: bool) -> Iterator[Finding]:
    """Yield whether replies leave, and of how many nobody knows whether they arrived."""
    unknown, ready = found.outbox.get("unknown", 0), found.outbox.get("ready", 0)
    if unknown:
        yield warn(
            f"{counted(unknown, 'reply', 'replies')} given up after a day of trying, but may have "
            "arrived all the same",
            "Look into those chats; docs/reliability.md explains how that happens.",
        )
    if found.failed_today:
        refused = counted(found.failed_today, "reply", "replies")
        yield warn(
            f"{refused} from the last day could not be delivered",
            "You were told of them, five a day of each chat, if there is a chat to reach you in; "
            "outbox.refused and outbox.given_up in the log say why.",
        )
    if ready and not is_running:
        wait = "1 reply waits" if ready == 1 else f"{ready} replies wait"
        yield warn(f"{wait} to be sent", "hearthbot run")
    elif _is_older(found.leaving_since_ms, LEAVES_MAX, now):
        yield warn(
            "a reply has waited for more than an hour to be sent",
            "Check the network; a reply to the terminal waits for `hearthbot chat`.",
        )
    elif not unknown and not found.failed_today:
        yield ok(f"{counted(sum(found.outbox.values()), 'reply', 'replies')}, {ready} on the way")


def owner(found: Checkup) -> Iterator[Finding]:
    """Yield whether somebody may approve others."""
    if not found.owners:
        yield warn(
            "nobody is the owner yet",
            "Write to the bot; then: hearthbot access approve CODE (or hearthbot init)",
        )
    else:
        yield ok(", ".join(found.owners))


def waiting(count: int) -> str:
    """`1 message waits`, `2 messages wait`."""
    return "1 message waits" if count == 1 else f"{count} messages wait"


def _put_back(home: Home, good_backup: Path | None) -> str:
    if good_backup is None:
        return (
            f"There is no good backup. Keep the file, and move {home.database.name}* out of "
            f"{home.data} to begin anew."
        )
    wal = f"{home.database}-wal"
    aside = f"mv {shlex.quote(wal)} {shlex.quote(wal)}.old; " if Path(wal).exists() else ""
    return (
        f"Stop the bot, then: {aside}mv {_q(home.database)} {_q(home.database)}.damaged && "
        f"cp {_q(good_backup)} {_q(home.database)}"
    )


def _is_older(since_ms: int | None, than: timedelta, now: datetime) -> bool:
    return since_ms is not None and now.timestamp() - since_ms / 1000 > than.total_seconds()


def _changed(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0


def _q(path: Path) -> str:
    return shlex.quote(str(path))


# --- doctor texts -------------------------------------------------------------------------------
#
# Checks of the texts that a model reads: prompts, and skills of every place.


def prompts(home: Home, settings: Settings) -> Iterator[Finding]:
    """Every template that is missing or lacks a placeholder: with one, the bot does not start."""
    library = texts_of(home, settings)
    try:
        library.check()
    except SettingsWrong as error:
        for problem in str(error).splitlines():
            yield fail(problem, "Correct that file, or remove it: the shipped one is then used.")
        return
    own = len(list(home.prompts.glob("*.md"))) if home.prompts.is_dir() else 0
    yield ok(f"whole; {own} of your own" if own else "as shipped")


def skills(home: Home, settings: Settings) -> Iterator[Finding]:
    """Yield what is wrong with skills. A broken one is left out and harms no other."""
    places = places_of(home, settings)
    roots = {
        SkillPlace.WORKSPACE: places.workspace,
        SkillPlace.USER: places.user,
        SkillPlace.SHIPPED: places.shipped,
    }
    count = problems = 0
    for place, root in roots.items():
        if root is None:
            continue
        seen = scan(place, root, PlaceScan())
        count += sum(found.reading.skill is not None for found in seen.found.values())
        every = [*seen.problems, *(p for one in seen.found.values() for p in one.reading.problems)]
        for problem in every:
            problems += 1
            report = fail if problem.severity is Severity.ERROR else warn
            shown = f" {problem.skill}" if problem.skill else ""
            yield report(str(problem), f"Correct it; then: hearthbot skills validate{shown}")
    if not problems:
        yield ok(f"{count} can be read")
