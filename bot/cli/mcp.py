"""`hearthbot mcp`: servers that bring tools, how they are, and what of them is offered."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot.app.app import App
from bot.cli.client import ask, call
from bot.cli.context import exit_for, opened
from bot.cli.mcp_shown import waiting_lines
from bot.cli.skills_shown import Line, print_lines

if TYPE_CHECKING:
    pass

app = typer.Typer(help="MCP servers: tools that other programs bring.", no_args_is_help=True)

Answer = dict[str, Any]
"""What `bot.commands.mcp` answers; its keys stand there."""

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Full = Annotated[bool, typer.Option("--full", help="Cut nothing; list unchanged parameters too.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")]

LOOKS = {"up": "good", "down": "bad", "approved": "", "new": "warn", "changed": "warn"}
ABOUT_CHARS = 100


@app.command("list")
def list_servers(as_json: AsJson = False) -> None:
    """Show all servers with their tools: whether each is up, and each offered; if not, why."""
    answer = call(App.mcp.listed)
    if as_json:
        typer.echo(json.dumps(answer, ensure_ascii=False))
    else:
        print_lines(listed_lines(answer))


@app.command("approve")
def approve(
    server: Annotated[str, typer.Argument(help="As `hearthbot mcp list` names it.")],
    tool: Annotated[str, typer.Argument(help="One tool of it; else all that wait.")] = "",
    full: Full = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Let tools be offered that are new or have changed: exactly as they are shown here."""
    with exit_for(), opened(log_to_terminal=False) as home:
        shown = asyncio.run(ask(home, App.mcp.waiting, server, tool))
        if shown["tools"] and not as_json:
            print_lines(waiting_lines(shown, full=full))
            if not yes and sys.stdin.isatty() and sys.stdout.isatty():
                # Nothing is held open while somebody reads: another command may run meanwhile.
                typer.confirm("\nApprove?", abort=True)
        # What was shown is what is approved: if it changes meanwhile, the bot refuses.
        digests = {one["tool"]: one["digest"] for one in shown["tools"]}
        answer = asyncio.run(ask(home, App.mcp.approve, shown["server"], tool, digests))
    if as_json:
        typer.echo(json.dumps(answer, ensure_ascii=False))
    else:
        print_lines([(answer["text"], "good" if answer["tools"] else "")])


# --- what is printed -----------------------------------------------------------------------------


def listed_lines(answer: Answer) -> Iterator[Line]:
    """Servers, and below each its tools."""
    if not answer["servers"]:
        yield "No MCP server is set up. One is by a section [mcp.NAME] in config.toml.", ""
    for server in answer["servers"]:
        about = f" ({server['server']})" if server["server"] else ""
        yield f"{server['name']}{about}: {server['state']}", LOOKS.get(server["health"], "")
        for tool in server["tools"]:
            words = _first_line(tool["description"])
            yield f"  {tool['name']}: {tool['state']}", LOOKS.get(tool["decision"], "dim")
            yield f"      {words}", "dim"
        if server["waiting"]:
            yield f"  Look, and approve: hearthbot mcp approve {server['name']}", ""


def _first_line(text: str) -> str:
    line = next(iter(text.strip().splitlines()), "")
    return line if len(line) <= ABOUT_CHARS else line[: ABOUT_CHARS - 1] + "…"
