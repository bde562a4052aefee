"""`hearthbot prompt`: what goes to the model, part by part. Sends nothing and stores nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from agent.budget.messages import PRICE_UNKNOWN, money, percent
from bot.app.app import App
from bot.cli import render as out
from bot.cli.client import Bot, run
from bot.commands.skills import counted

if TYPE_CHECKING:
    from agent.trace.inspect import PromptDiff, PromptView
    from bot.commands.trace.prompts import PricedPrompt

app = typer.Typer(help="What goes to the model, part by part.", no_args_is_help=True)

Kind = Literal["chat", "heartbeat", "proactive"]
TERMINAL = "console:local"
NOTHING = ("", "")


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
    as_json: out.AsJson = False,
) -> None:
    """Show the prompt that would be sent now, or what was sent in a turn, part by part.

    Sizes are estimated tokens. Nothing is sent, and no model is called.
    """
    # Before anything is opened: what cannot be asked makes no home.
    _check(chat, message=message, turn=turn, kind=kind, task=task, full=full, diff=diff)
    from agent.prompt.scene import PromptKind

    async def shown(bot: Bot) -> out.Json:
        if diff != NOTHING:
            return diff_json(await bot.call(App.prompts.compare, chat, *diff))
        said = task
        if kind == "heartbeat" and not task and not turn:
            with suppress(OSError):
                path = bot.home.home.workspace / "HEARTBEAT.md"
                said = path.read_text(encoding="utf-8", errors="replace")
        found = await bot.call(
            App.prompts.show,
            chat,
            turn=turn,
            message=message,
            kind=PromptKind(kind),
            task=said,
        )
        return prompt_json(found, full=full)

    answer = run(shown)
    if as_json:
        out.print_json(answer)
        return
    if diff != NOTHING:
        _print_all(diff_lines(answer))
        return
    is_terminal = out.is_terminal()
    if is_terminal:
        _print_table(answer)
    _print_all(plain_lines(answer, with_parts=not is_terminal))
    if is_terminal:
        from bot.commands.trace.prompts import CACHE_WORDS

        states = dict.fromkeys(part["cache"] for part in answer["parts"])
        _print_all(f"{state}\t{CACHE_WORDS[state]}" for state in states)
    if full:
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


def _print_all(lines: Iterable[str]) -> None:
    out.print_lines((line, "") for line in lines)


# --- JSON ---------------------------------------------------------------------------------------


def prompt_json(found: PricedPrompt, *, full: bool) -> out.Json:
    """Return a prompt for JSON; the keys that are not out.fields of the record:

    - chat, turn (null: would be sent now), first (no request before is recorded)
    - money: null when the price is unknown, else in US dollars request, request_with_cache,
      counted (all requests of the turn with their answers, null: not known)
    - parts, as sent: share and money of it, known (whether its text is), and if `full` text
    - picked (name, why); requests of a turn, each with what the provider counted
    """
    view, costs = found.view, found.costs
    dollars: Sequence[float | None] = costs.rows if costs else [None] * len(view.rows)
    parts = [
        {
            **out.fields(row, "name", "where", "tokens", "cache", "cached_tokens", "sources"),
            "share": round(row.tokens / view.tokens, 6) if view.tokens else 0.0,
            "money": each,
            "known": row.text is not None,
            **({"text": row.text} if full else {}),
        }
        for row, each in zip(view.rows, dollars, strict=True)
    ]
    requests = [
        {
            **out.fields(asked, "tokens", "changed", "model", "error"),
            "cached_tokens": asked.kept_tokens,
            "counted": None if asked.usage is None else asdict(asked.usage),
        }
        for asked in view.requests
    ]
    return {
        **out.fields(view, "kind", "tokens", "window", "answer_tokens", "cached_tokens", "broke"),
        **out.fields(view, "tools", "spared"),
        "chat": view.lane,
        "turn": view.turn or None,
        "started_ms": view.started_ms or None,
        "model": found.model,
        "fullness": round(view.fullness, 6),
        "cacheable": round(view.cacheable, 6),
        "first": view.is_first,
        "money": costs
        and {
            "request": costs.whole,
            "request_with_cache": costs.with_cache,
            "counted": costs.counted,
        },
        "parts": parts,
        "cuts": [asdict(cut) for cut in view.cuts],
        "picked": [{"name": name, "why": why} for name, why in view.picked],
        "requests": requests,
    }


def diff_json(found: PromptDiff) -> out.Json:
    """Return how two prompts differ, for JSON. `diff` of a layer has the lines of a unified diff;
    null where a text is not known any more."""

    def side(view: PromptView) -> out.Json:
        return {"turn": view.turn or None, "chat": view.lane, "tokens": view.tokens}

    names = ("name", "where", "change", "tokens_before", "tokens_after")
    return {
        **out.fields(found, "tokens", "history_tokens", "tools_came", "tools_went", "broke"),
        "before": side(found.before),
        "after": side(found.after),
        "layers": [{**out.fields(one, *names), "diff": one.lines} for one in found.layers],
        "first": found.after.is_first,
    }


# --- lines: a word, then what it is about, parted by tabs ---------------------------------------


def plain_lines(shown: out.Json, *, with_parts: bool = True) -> Iterator[str]:
    """Yield one fact a line, for other programs and for reading. Tokens are estimates."""
    yield _tabbed("kind", shown["kind"])
    yield _tabbed("chat", shown["chat"])
    yield _tabbed("turn", shown["turn"] or "now")
    yield _tabbed("model", shown["model"])
    yield _tabbed("tokens", shown["tokens"], percent(shown["fullness"]))
    yield _tabbed("window", shown["window"])
    yield _tabbed("answer", shown["answer_tokens"])
    yield _tabbed("cacheable", shown["cached_tokens"], percent(shown["cacheable"]))
    costs = shown["money"]
    if costs is None:
        yield _tabbed("money", PRICE_UNKNOWN)
    else:
        with_cache = f"{money(costs['request_with_cache'])} with cache"
        counted_cost = costs["counted"]
        counted_words = "" if counted_cost is None else f"{money(counted_cost)} counted"
        yield _tabbed("money", money(costs["request"]), with_cache, counted_words)
    for part in shown["parts"] if with_parts else ():
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
        cells: list[object] = [asked["tokens"], f"{asked['cached_tokens']} cacheable"]
        if (used := asked["counted"]) is not None:
            cells += [f"{used['prompt']} counted", f"{used['cached']} cached"]
            cells.append(f"{used['completion']} answered")
        yield _tabbed("request", number, *cells, asked["error"] or "")


def _tabbed(*cells: object) -> str:
    """Return a row whose cells hold neither tab nor line end, without empty ones at its end."""
    return "\t".join(" ".join(str(cell).split()) for cell in cells).rstrip("\t")


def text_lines(shown: out.Json) -> Iterator[str]:
    """Return the parts' texts, each below a line that names it and says how long it is."""
    for part in shown["parts"]:
        text = part["text"]
        lines = [] if text is None else text.split("\n")
        size = "not stored any more" if text is None else counted(len(lines), "line")
        yield f"\n===== {part['name']} · {part['where']} · {part['tokens']:,} tokens · {size} ====="
        yield from lines


def diff_lines(shown: out.Json) -> Iterator[str]:
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
        lost = ["(a text is not stored any more)"]
        yield from (f"diff\t{line}" for line in (lost if layer["diff"] is None else layer["diff"]))
    for change in ("came", "went"):
        for name in shown[f"tools_{change}"]:
            yield _tabbed("tool", change, name)
    if shown["first"] or shown["broke"]:
        yield _tabbed("broke", shown["broke"] or "no request before is recorded")


def _print_table(shown: out.Json) -> None:
    when = f"sent in turn {shown['turn']}" if shown["turn"] else "that would be sent now"
    title = f"The {shown['kind']} prompt {when}, {shown['chat']}"
    columns: out.Columns[out.Json] = {
        "Part": lambda one: one["name"],
        "Where": lambda one: one["where"],
        "Tokens": lambda one: one["tokens"],
        "Share": lambda one: percent(one["share"]),
        "US$": lambda one: "?" if one["money"] is None else money(one["money"]),
        "Cache": lambda one: one["cache"],
        "Source": lambda one: "\n".join(one["sources"]),
    }
    out.print_rows(shown["parts"], columns, title=title)
