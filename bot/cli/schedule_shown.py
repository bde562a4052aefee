"""What `hearthbot schedule` prints: tables for a terminal, lines with tabs for a pipe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from bot.cli.skills_shown import Line
from memory.records.text import clean

if TYPE_CHECKING:
    from rich.console import Console

Answer = dict[str, Any]

WHAT_CHARS = 60
RESULT_CHARS = 120
HEAD_CHARS = 8
TABLE_ROWS_MAX = 200
"""Of a simulation in a terminal; a pipe and --json have all."""

STYLES = {
    "told": "green",
    "held": "yellow",
    "digest": "yellow",
    "dropped": "dim",
    "skipped": "dim",
    "asked": "yellow",
}


def aligned(lines: Iterable[Line]) -> Iterator[Line]:
    """For a terminal: what a row is in a column of its own."""
    for text, look in lines:
        head, tab, rest = text.partition("\t")
        row = f"{head:<{HEAD_CHARS}}{rest.replace(chr(9), '  ')}" if tab else text
        yield row, look


# --- list ----------------------------------------------------------------------------------------


def list_lines(answer: Answer) -> Iterator[Line]:
    """For a pipe: key, next (or paused), state, kind, chat, when, name, what."""
    for job in answer["jobs"]:
        due = job["next"]["at"] if job["next"] else "-" if job["enabled"] else "paused"
        cells = [job["key"], due, job["state"], job["kind"], job["deliver_to"], job["when_words"]]
        yield "\t".join(_flat(cell) for cell in [*cells, job["name"], job["what"]]), ""
    for one in answer["broken"]:
        yield f"j{one['id']}\t-\tcannot be read: {_flat(one['why'])}\t{_flat(one['name'])}", "bad"


def list_table(answer: Answer, console: Console | None = None) -> None:
    """For a terminal."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = console or Console(highlight=False)
    if not answer["jobs"] and not answer["broken"]:
        console.print('No job is kept. hearthbot schedule add "every day at 9" "water the plants"')
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("Job", style="cyan", no_wrap=True)
    table.add_column("Next", no_wrap=True)
    table.add_column("State")
    table.add_column("When")
    table.add_column("Name", overflow="fold")
    table.add_column("What", overflow="fold")
    for job in answer["jobs"]:
        due = _wall(job["next"]["at"]) if job["next"] else "–" if job["enabled"] else _paused(job)
        style = "green" if job["state"] == "on" else "yellow"
        what = _cut(job["what"], WHAT_CHARS)
        table.add_row(
            job["key"],
            due,
            Text(_flat(job["state"]), style=style),
            job["when_words"],
            Text(_flat(job["name"])),
            Text("" if what == job["name"] else what),
        )
    console.print(table)
    for one in answer["broken"]:
        text = f"j{one['id']} ({_flat(one['name'])}) cannot be read: {_flat(one['why'])}"
        console.print(Text(text, style="red"))


def _paused(job: Answer) -> str:
    then = job["once_resumed"]
    return f"paused, then\n{_wall(then['at'])}" if then else "paused"


# --- one job -------------------------------------------------------------------------------------


def read_lines(answer: Answer) -> Iterator[Line]:
    """How a time is read."""
    yield f"read\t{answer['sentence']}\t{answer['zone']}", "head"
    for one in answer["next"]:
        yield f"next\t{one['at']}", ""
    if answer.get("takes"):
        yield f"takes\t{_flat(answer['takes'])}", ""


def show_lines(answer: Answer) -> Iterator[Line]:
    """Everything about one job."""
    yield from _job_lines(answer)
    if answer["enabled"]:
        yield from next_lines(answer["next_runs"])
    elif answer["once_resumed"]:
        yield from next_lines([{**answer["once_resumed"], "fate": "", "note": ""}], head="resumed")
    if answer["trouble"]:
        yield f"trouble\t{_flat(answer['trouble'])}", "bad"
    for run in answer["newest_runs"]:
        late = f", {run['late_s']} s late" if run["late_s"] > 60 else ""
        note = f": {_flat(run['note'])}" if run["note"] else ""
        look = "bad" if run["state"] == "failed" else ""
        yield f"ran\t{run['slot']}\t{run['state']}{late}{note}", look
        if run["result"]:
            yield f"found\t{run['slot']}\t{_cut(run['result'], RESULT_CHARS)}", "dim"


def _job_lines(job: Answer) -> Iterator[Line]:
    yield f"{job['key']}\t{_flat(job['name'])}\t{job['kind']}", "head"
    look = "good" if job["state"] == "on" else "warn"
    yield f"state\t{_flat(job['state'])}", look
    yield f"what\t{_flat(job['what'])}", ""
    yield f"when\t{job['when_words']}", ""
    name = f", for {_flat(job['person_name'])}" if job["person_name"] else ""
    yield f"to\t{job['deliver_to']}{name}", ""
    yield f"rules\t{', '.join(_rules(job))}", ""


def _rules(job: Mapping[str, Any]) -> Iterator[str]:
    within = job["missed_within_s"]
    yield f"missed: {job['missed']}" + (f" within {within // 3600} h" if within else "")
    yield "urgent" if job["urgent"] else f"quiet hours: {job['quiet']}"
    yield f"set by: {job['set_by']}"
    if job["nag_s"]:
        yield f"again every {job['nag_s'] // 60} min until done"
    if job["max_runs"]:
        yield f"{job['max_runs']} runs at most"
    yield f"{job['runs']} runs so far"


def next_lines(rows: list[Answer], *, head: str = "next") -> Iterator[Line]:
    """Due times, with what quiet hours and clocks do to them."""
    for one in rows:
        yield "\t".join([head, one["at"], *_effects(one)]), ""


def _effects(one: Mapping[str, Any]) -> Iterator[str]:
    from bot.commands.job_messages import FATES

    if one["fate"] not in {"", "told"}:
        told = f" ({_wall(one['told'])})" if one["told"] else ""
        yield f"{FATES[one['fate']]}{told}"
    if one["note"]:
        yield one["note"]


# --- a test --------------------------------------------------------------------------------------


def test_lines(answer: Answer) -> Iterator[Line]:
    """What a run would be."""
    from bot.commands.job_messages import pace_words

    yield from _job_lines(answer["job"])
    if answer["trouble"]:
        yield f"It would not run: {_flat(answer['trouble'])}", "bad"
        return
    yield from next_lines(answer["next_runs"])
    shift = answer["shift"]
    if shift:
        yield f"clocks\tare changed at {shift['at']}", "warn"
        yield from next_lines(shift["runs"])
    if not answer["asks"]:
        yield "It asks no model: what stands above is sent, or called, as it is.", ""
        return
    yield f"model\t{_flat(answer['model'])}, about {answer['tokens']:,} tokens to begin with", ""
    yield f"tools\t{_flat(', '.join(answer['tools'])) or 'none'}", ""
    yield f"cost\t{pace_words(answer['cost'])}", ""
    for part in ("system", "user"):
        yield f"--- {part}", "head"
        yield answer["prompt"][part], ""
    yield from _heard_lines(answer["heard"])


def _heard_lines(heard: Answer | None) -> Iterator[Line]:
    from bot.commands.job_messages import cost_words

    if heard is None:
        yield "--- nothing was sent and no tool ran; --with-model asks the model too", "dim"
        return
    yield "--- what the model says", "head"
    for wish in heard["wishes"]:
        yield f"wanted, and not run\t{_flat(wish['tool'])}\t{_flat(wish['arguments'])}", "warn"
    yield heard["text"] or "(no words)", ""
    yield f"--- {cost_words(heard['dollars'], heard['tokens'])}; nothing else happened", "dim"


# --- a simulation --------------------------------------------------------------------------------


def simulate_lines(answer: Answer) -> Iterator[Line]:
    """For a pipe: moment, job, name, fate, when it is told, tokens, dollars, note; then the sum."""
    for run in answer["runs"]:
        dollars = "?" if run["dollars"] is None else f"{run['dollars']:.6f}"
        cells = [run["at"], run["job"], run["name"], run["fate"], run["told"] or "-"]
        yield "\t".join(_flat(c) for c in [*cells, str(run["tokens"]), dollars, _note(run)]), ""
    yield "\t".join(["total", *_total(answer)]), ""
    for one in answer["troubles"]:
        yield f"trouble\t{one['job']}\t{_flat(one['why'])}", "bad"


def simulate_table(answer: Answer, console: Console | None = None) -> None:
    """For a terminal."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from bot.commands.job_messages import cost_words

    console = console or Console(highlight=False)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("When", style="cyan", no_wrap=True)
    table.add_column("Job", overflow="fold")
    table.add_column("What becomes of it")
    table.add_column("Cost", justify="right", style="green")
    for run in answer["runs"][:TABLE_ROWS_MAX]:
        fate = Text(" · ".join(_fate(run)), style=STYLES[run["fate"]])
        cost = cost_words(run["dollars"], run["tokens"]) if run["tokens"] else ""
        table.add_row(_wall(run["at"]), Text(f"{run['job']} {_flat(run['name'])}"), fate, cost)
    if answer["runs"]:
        console.print(table)
    more = len(answer["runs"]) - TABLE_ROWS_MAX
    if more > 0:
        console.print(f"… and {more:,} more; --json has all", style="dim")
    console.print(Text("In all: " + ", ".join(_total(answer)), style="bold"))
    for one in answer["troubles"]:
        console.print(Text(f"{one['job']}: {_flat(one['why'])}", style="red"))


def _total(answer: Answer) -> Iterator[str]:
    from bot.commands.prompt_messages import money

    total = answer["total"]
    yield f"{total['runs']:,} runs{' and more' if answer['is_cut'] else ''}"
    yield f"{total['calls']:,} model calls"
    yield f"{total['tokens']:,} tokens"
    yield f"about {money(total['dollars'])}"
    if total["unpriced"]:
        yield f"{total['unpriced']:,} runs of unknown price"


def _fate(run: Mapping[str, Any]) -> Iterator[str]:
    from bot.commands.job_messages import FATES

    told = run["told"] if run["told"] != run["at"] else None
    yield FATES[run["fate"]] + (f", {_wall(told)}" if told else "")
    if note := _note(run):
        yield note


def _note(run: Mapping[str, Any]) -> str:
    missed = f"for {run['missed']} that were missed" if run["missed"] > 1 else ""
    return "; ".join(part for part in (missed, run["note"]) if part)


def _wall(iso: str) -> str:
    """Mon 1 Jun 09:00 +0200."""
    at = datetime.fromisoformat(iso)
    return f"{at:%a} {at.day} {at:%b %H:%M %z}"


def _cut(text: str, most: int) -> str:
    flat = _flat(text)
    return flat if len(flat) <= most else f"{flat[: most - 1]}…"


def _flat(text: str) -> str:
    """What others wrote must not be able to steer a terminal, nor break a row."""
    return " ".join(clean(text).split())
