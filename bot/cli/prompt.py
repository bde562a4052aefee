"""`hearthbot prompt`: what goes to the model, part by part. Sends nothing and stores nothing."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bot.app.app import App
from bot.cli.client import ask
from bot.cli.context import exit_for, opened
from bot.commands.prompt_messages import (
    CACHE_WORDS,
    PRICE_UNKNOWN,
    broke_words,
    counted_words,
    cut_words,
    money,
    percent,
)

if TYPE_CHECKING:
    from bot.cli.context import Opened

app = typer.Typer(help="What goes to the model, part by part.", no_args_is_help=True)

Kind = Literal["chat", "heartbeat", "proactive"]
Shown = dict[str, Any]
"""What `bot.commands.prompts` answers; its keys stand there."""

TERMINAL = "console:local"
NOTHING = ("", "")

SHOWN_LINES_MAX = 20
"""Of the diff of one layer, on a terminal."""


@app.callback()
def prompt() -> None:
    """Keeps `show` a word of its own, though it is the only one."""


@app.command("show")
def show(
    chat: Annotated[
        str, typer.Option(help="Of which chat, as telegram:42; else of this terminal's own.")
    ] = TERMINAL,
    message: Annotated[
        str, typer.Option(help="What would be written: some parts depend on it.")
    ] = "",
    turn: Annotated[
        str,
        typer.Option(help="What was sent in a turn: its id, or 1 for the chat's newest, 2 …"),
    ] = "",
    kind: Annotated[Kind, typer.Option(help="What the prompt is for.")] = "chat",
    task: Annotated[
        str, typer.Option(help="The list of a heartbeat (else HEARTBEAT.md), or the instructions.")
    ] = "",
    full: Annotated[bool, typer.Option("--full", help="Print the texts too.")] = False,
    diff: Annotated[
        tuple[str, str],
        typer.Option(metavar="A B", help="From turn A to turn B: ids, 1, 2 … or now."),
    ] = NOTHING,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the prompt that would be sent now, or what was sent in a turn, part by part.

    Sizes are estimated tokens. Nothing is sent, and no model is called.
    """
    _check(chat, message=message, turn=turn, kind=kind, task=task, full=full, diff=diff)
    from agent.prompt.scene import PromptKind

    with exit_for(), opened(log_to_terminal=False) as home:
        if diff != NOTHING:
            answer = asyncio.run(ask(home, App.prompts.compare, chat, *diff))
        else:
            if kind == "heartbeat" and not task and not turn:
                task = _heartbeat_list(home)
            shown = ask(
                home,
                App.prompts.show,
                chat,
                turn=turn,
                message=message,
                kind=PromptKind(kind),
                task=task,
                full=full,
            )
            answer = asyncio.run(shown)
    if as_json:
        typer.echo(json.dumps(answer, ensure_ascii=False))
    elif diff != NOTHING:
        _print_all(diff_lines(answer) if _is_piped() else diff_prose(answer))
    elif _is_piped():
        _print_all(plain_lines(answer))
    else:
        _print_table(answer)
    if full and not as_json:
        _print_all(text_lines(answer))


def _check(
    chat: str,
    *,
    message: str,
    turn: str,
    kind: Kind,
    task: str,
    full: bool,
    diff: tuple[str, str],
) -> None:
    """Options that do not go together are wrong usage."""
    from memory.records.messages import Address

    try:
        Address.parse(chat)
    except ValueError:
        raise typer.BadParameter(
            f"{chat!r} is no chat: it looks like telegram:42, or telegram:-100:7 for a topic",
            param_hint="--chat",
        ) from None
    if (turn or diff != NOTHING) and (message or task or kind != "chat"):
        raise typer.BadParameter(
            "what was sent in a turn is as it was: without --message, --kind and --task"
        )
    if diff != NOTHING and (turn or full):
        raise typer.BadParameter(
            "shows two turns by itself: without --turn and --full", param_hint="--diff"
        )
    if kind == "proactive" and not task:
        raise typer.BadParameter("--kind proactive needs the instructions", param_hint="--task")
    if kind != "chat" and message:
        raise typer.BadParameter("nobody writes there: use --task", param_hint="--message")


def _heartbeat_list(home: Opened) -> str:
    path = home.home.workspace / "HEARTBEAT.md"
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _is_piped() -> bool:
    return not sys.stdout.isatty()


def _print_all(lines: Iterable[str]) -> None:
    """What others wrote must not be able to steer a terminal."""
    from memory.records.text import clean

    for line in lines:
        typer.echo(clean(line))


# --- piped: a word, then what it is about, parted by tabs ---------------------------------------


def plain_lines(shown: Shown) -> Iterator[str]:
    """One fact a line, for other programs and for reading. Tokens are estimates."""
    yield _tabbed("kind", shown["kind"])
    yield _tabbed("chat", shown["chat"])
    yield _tabbed("turn", shown["turn"] or "now")
    yield _tabbed("model", shown["model"])
    yield _tabbed("tokens", shown["tokens"], percent(shown["fullness"]))
    yield _tabbed("window", shown["window"])
    yield _tabbed("answer", shown["answer_tokens"])
    yield _tabbed("cacheable", shown["cached_tokens"], percent(shown["cacheable"]))
    yield _tabbed("money", *_costs(shown))
    for part in shown["parts"]:
        yield _tabbed(
            "part",
            part["name"],
            part["where"],
            part["tokens"],
            percent(part["share"]),
            "" if part["money"] is None else money(part["money"]),
            part["cache"],
            ", ".join(part["sources"]),
        )
    if shown["first"] or shown["broke"]:
        yield _tabbed("broke", shown["broke"] or "no request before is recorded")
    for name in shown["spared"]:
        yield _tabbed("spared", name, "stands above, not sent again")
    for cut in shown["cuts"]:
        yield _tabbed("cut", cut["layer"], cut["tokens_before"], cut["tokens_after"], "no room")
    for pick in shown["picked"]:
        yield _tabbed("picked", pick["name"], pick["why"])
    for number, asked in enumerate(shown["requests"], 1):
        yield _tabbed("request", number, *_counted(asked))


def _tabbed(*cells: object) -> str:
    """A cell holds neither tab nor line end; empty ones at the end are left out."""
    return "\t".join(" ".join(str(cell).split()) for cell in cells).rstrip("\t")


def _costs(shown: Shown) -> list[str]:
    costs = shown["money"]
    if costs is None:
        return [PRICE_UNKNOWN]
    cells = [money(costs["request"]), f"{money(costs['request_with_cache'])} with cache"]
    if costs["counted"] is not None:
        cells.append(f"{money(costs['counted'])} counted")
    return cells


def _counted(asked: Shown) -> list[object]:
    cells: list[object] = [asked["tokens"], f"{asked['cached_tokens']} cacheable"]
    counted = asked["counted"]
    if counted is not None:
        cells += [f"{counted['prompt']} counted", f"{counted['cached']} cached"]
        cells.append(f"{counted['completion']} answered")
    return [*cells, asked["error"]] if asked["error"] else cells


def text_lines(shown: Shown) -> Iterator[str]:
    """The parts' texts, each below a line that names it and says how long it is."""
    for part in shown["parts"]:
        text = part["text"]
        lines = [] if text is None else text.split("\n")
        size = "not stored any more" if text is None else _lines_of(len(lines))
        yield f"\n===== {part['name']} · {part['where']} · {part['tokens']:,} tokens · {size} ====="
        yield from lines


def _lines_of(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"


def diff_lines(shown: Shown) -> Iterator[str]:
    """Two requests, one fact a line."""
    yield _tabbed("from", shown["before"]["turn"] or "now", shown["before"]["tokens"])
    yield _tabbed("to", shown["after"]["turn"] or "now", shown["after"]["tokens"])
    yield _tabbed("tokens", f"{shown['tokens']:+}")
    yield _tabbed("history", f"{shown['history_tokens']:+}")
    for layer in shown["layers"]:
        yield _tabbed(
            "layer",
            layer["change"],
            layer["name"],
            layer["where"],
            layer["tokens_before"],
            layer["tokens_after"],
        )
        for line in _diffed(layer):
            yield f"diff\t{line}"
    for change in ("came", "went"):
        for name in shown[f"tools_{change}"]:
            yield _tabbed("tool", change, name)
    if shown["first"] or shown["broke"]:
        yield _tabbed("broke", shown["broke"] or "no request before is recorded")


def _diffed(layer: Shown) -> list[str]:
    return ["(a text is not stored any more)"] if layer["diff"] is None else layer["diff"]


# --- on a terminal -----------------------------------------------------------------------------


def diff_prose(shown: Shown) -> Iterator[str]:
    """Two requests, to read."""
    before, after = shown["before"], shown["after"]
    yield (
        f"From {before['turn'] or 'now'} ({before['tokens']:,} tokens) to "
        f"{after['turn'] or 'what would be sent now'} ({after['tokens']:,}): "
        f"{shown['tokens']:+,} tokens, the history {shown['history_tokens']:+,}."
    )
    for layer in shown["layers"]:
        yield f"\n{layer['name']} ({layer['where']}) {_became(layer)}"
        lines = _diffed(layer)
        yield from (f"    {line}" for line in lines[:SHOWN_LINES_MAX])
        if len(lines) > SHOWN_LINES_MAX:
            yield f"    … {len(lines) - SHOWN_LINES_MAX} lines more (--json shows them)"
    for change in ("came", "went"):
        if shown[f"tools_{change}"]:
            yield f"\nTools that {change}: {', '.join(shown[f'tools_{change}'])}"
    if not shown["layers"]:
        yield "No layer changed."
    yield ""
    yield broke_words(shown["broke"], is_first=shown["first"])


def _became(layer: Shown) -> str:
    before, after = f"{layer['tokens_before']:,}", f"{layer['tokens_after']:,}"
    match layer["change"]:
        case "came":
            return f"came: {after} tokens"
        case "went":
            return f"went: it had {before} tokens"
        case "spared":
            return f"is not sent again: its {before} tokens stand in the history"
        case _:
            return f"changed: {before} → {after} tokens"


def prose_lines(shown: Shown) -> Iterator[str]:
    """What stands below the table."""
    yield (
        f"{shown['tokens']:,} tokens (estimated) of a window of {shown['window']:,}: "
        f"{percent(shown['fullness'])}. Room for an answer: {shown['answer_tokens']:,}."
    )
    costs = shown["money"]
    if costs is None:
        yield f"The price of {shown['model']} is not in the table, so no money is shown."
    else:
        cache = f", with the cache {money(costs['request_with_cache'])}"
        yield (
            f"Before any answer it costs {money(costs['request'])}"
            f"{cache if shown['cached_tokens'] else ''} ({shown['model']})."
        )
    for asked in shown["requests"][:1]:
        if counted := asked["counted"]:
            yield counted_words(shown["tokens"], counted["prompt"], counted["cached"])
    if len(shown["requests"]) > 1:
        yield f"The turn made {len(shown['requests'])} requests; this is the first (--json: all)."
    if costs is not None and costs["counted"] is not None:
        yield f"All requests of the turn cost {money(costs['counted'])}, answers included."
    follows = [part["name"] for part in shown["parts"] if part["where"] == "block"]
    cacheable = f"A cache can serve {percent(shown['cacheable'])} of it. "
    yield ("" if shown["first"] else cacheable) + broke_words(
        shown["broke"], is_first=shown["first"], follows=follows
    )
    if shown["spared"]:
        yield f"Not sent again, for it stands in the history: {', '.join(shown['spared'])}"
    for cut in shown["cuts"]:
        yield "Cut: " + cut_words(cut["layer"], cut["tokens_before"], cut["tokens_after"])
    for pick in shown["picked"]:
        yield f"Picked: {pick['name']} ({pick['why']})"
    yield ""
    for state in dict.fromkeys(part["cache"] for part in shown["parts"]):
        yield f"{state:<8} {CACHE_WORDS[state]}"


def _print_table(shown: Shown) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from memory.records.text import clean

    when = f"sent in turn {shown['turn']}" if shown["turn"] else "that would be sent now"
    title = f"The {shown['kind']} prompt {when}, {shown['chat']}"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("Part", "Where"):
        table.add_column(heading, no_wrap=True)
    for heading in ("Tokens", "Share", "US$"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("Cache", no_wrap=True)
    table.add_column("Source", overflow="fold")
    for part in shown["parts"]:
        cells = (
            part["name"],
            part["where"],
            f"{part['tokens']:,}",
            percent(part["share"]),
            "?" if part["money"] is None else money(part["money"]),
            part["cache"],
            "\n".join(part["sources"]),
        )
        table.add_row(*(Text(clean(cell)) for cell in cells))
    Console().print(table)
    _print_all(prose_lines(shown))
