"""`hearthbot mcp`: servers that bring tools, how they are, and what of them is offered."""

from __future__ import annotations

import json
from collections.abc import Mapping
from difflib import unified_diff
from textwrap import wrap
from typing import Annotated, Any

import typer

from bot.app.app import App
from bot.cli import render as out
from bot.cli.client import call
from memory.records.text import seen

app = typer.Typer(help="MCP servers: tools that other programs bring.", no_args_is_help=True)

Full = Annotated[bool, typer.Option("--full", help="Cut nothing; list unchanged parameters too.")]

LOOKS = {"up": "good", "down": "bad", "approved": "", "new": "warn", "changed": "warn"}
ABOUT_CHARS = 100


@app.command("list")
def list_servers(as_json: out.AsJson = False) -> None:
    """Show all servers with their tools: whether each is up, and each offered; if not, why."""
    found = call(App.mcp.listed)
    out.render(found, listed_lines(found), as_json=as_json)


@app.command("approve")
def approve(
    server: Annotated[str, typer.Argument(help="As `hearthbot mcp list` names it.")],
    tool: Annotated[str, typer.Argument(help="One tool of it; else all that wait.")] = "",
    full: Full = False,
    yes: out.Yes = False,
    as_json: out.AsJson = False,
) -> None:
    """Let tools be offered that are new or have changed: exactly as they are shown here."""
    shown = call(App.mcp.waiting, server, tool)
    if shown["tools"] and not as_json:
        out.print_lines(waiting_lines(shown, full=full))
        if not yes:
            out.confirm("\nApprove?")
    # What was shown is what is approved: if it changes meanwhile, the bot refuses.
    digests = {one["tool"]: one["digest"] for one in shown["tools"]}
    done = call(App.mcp.approve, shown["server"], tool, digests)
    out.render(done, [(done["text"], "good" if done["tools"] else "")], as_json=as_json)


# --- what is printed -----------------------------------------------------------------------------


def listed_lines(answer: out.Json) -> out.Lines:
    """Servers, and below each its tools."""
    if not answer["servers"]:
        yield "No MCP server is set up. One is by a section [mcp.NAME] in config.toml.", ""
    for server in answer["servers"]:
        called = f" ({server['server']})" if server["server"] else ""
        yield f"{server['name']}{called}: {server['state']}", LOOKS.get(server["health"], "")
        for tool in server["tools"]:
            about = next(iter(tool["description"].strip().splitlines()), "")
            yield f"  {tool['name']}: {tool['state']}", LOOKS.get(tool["decision"], "dim")
            cut = about if len(about) <= ABOUT_CHARS else f"{about[: ABOUT_CHARS - 1]}…"
            yield f"      {cut}", "dim"
        if server["waiting"]:
            yield f"  Look, and approve: hearthbot mcp approve {server['name']}", ""


# --- what waits, all that the model reads of it --------------------------------------------------

WIDTH = 96
LINES_MAX = 60
"""Of the parameters of a new tool, without --full; of a change nothing is ever cut."""


def waiting_lines(found: out.Json, *, full: bool = False) -> out.Lines:
    """Return what an approval would let in: of a changed tool what is different (`-` was, `+` is).
    With `full` nothing is cut, and what has not changed is listed too."""
    for tool in found["tools"]:
        yield f"{tool['name']}: {tool['state']}", "head"
        now = [*_about(tool["description"]), *_parameters(tool["parameters"])]
        if tool["decision"] == "changed":
            yield from _changed_lines(tool, now)
        if tool["decision"] != "changed" or full:
            shown = now if full else now[:LINES_MAX]
            yield from ((f"    {line}", "") for line in shown)
            if more := len(now) - len(shown):
                yield f"    … {more:,} lines more: see --full", "warn"
        yield "", ""
    yield found["approving"], ""


def _changed_lines(tool: out.Json, now: list[str]) -> out.Lines:
    was = _about(seen(tool["former"]))
    if tool["former_parameters"] is None:
        yield "  What was shown of its parameters was not kept. Now it is:", "dim"
        yield from ((f"    {line}", "") for line in now)
        return
    was += _parameters(tool["former_parameters"])
    if was == now:
        yield "  The change is in what its server says of its effect, or is not shown.", "dim"
    for line in list(unified_diff(was, now, lineterm="", n=1))[2:]:
        yield f"    {line}", "" if line.startswith(" ") else "warn"


def _about(description: str) -> list[str]:
    return [part for line in description.splitlines() for part in _wrapped(line)]


def _parameters(schema: Mapping[str, Any]) -> list[str]:
    """Return all that the schema says. Long texts are wrapped, so that a change at their end is a
    line of its own."""
    text = json.dumps(schema, ensure_ascii=False, indent=2)
    return ["parameters:", *(part for line in text.splitlines() for part in _wrapped(line))]


def _wrapped(line: str) -> list[str]:
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return wrap(line, WIDTH, subsequent_indent=indent, drop_whitespace=False) or [""]
