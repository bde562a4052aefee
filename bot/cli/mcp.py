"""`hearthbot mcp`: servers that bring tools, how they are, and what of them is offered."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot.cli.mcp_shown import waiting_lines
from bot.cli.opening import exit_for, opened
from bot.cli.skills_shown import Line, print_lines
from memory.records.errors import Permanent

if TYPE_CHECKING:
    from bot.cli.opening import Opened

app = typer.Typer(help="MCP servers: tools that other programs bring.", no_args_is_help=True)

Answer = dict[str, Any]
"""What `bot.commands.mcp` answers; its keys stand there."""

Ask = Callable[..., Awaitable[Answer]]

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Full = Annotated[bool, typer.Option("--full", help="Cut nothing; list unchanged parameters too.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")]

LOOKS = {"up": "good", "down": "bad", "approved": "", "new": "warn", "changed": "warn"}
ABOUT_CHARS = 100


@app.command("list")
def list_servers(as_json: AsJson = False) -> None:
    """Show all servers with their tools: whether each is up, and each offered; if not, why."""
    with exit_for(), opened(log_to_terminal=False) as home:
        answer = asyncio.run(_listed(home))
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
        shown = asyncio.run(_waiting(home, server, tool))
        if shown["tools"] and not as_json:
            print_lines(waiting_lines(shown, full=full))
            if not yes and sys.stdin.isatty() and sys.stdout.isatty():
                # Nothing is held open while somebody reads: another command may run meanwhile.
                typer.confirm("\nApprove?", abort=True)
        answer = asyncio.run(_approved(home, tool, shown))
    if as_json:
        typer.echo(json.dumps(answer, ensure_ascii=False))
    else:
        print_lines([(answer["text"], "good" if answer["tools"] else "")])


async def _listed(home: Opened) -> Answer:
    async with _desk(home) as ask:
        return await ask("mcp.list")


async def _waiting(home: Opened, server: str, tool: str) -> Answer:
    """What waits, each tool whole."""
    async with _desk(home) as ask:
        shown = await ask("mcp.waiting", server=server, tool=tool)
        shown["tools"] = [
            one if one["is_whole"] else await _whole(ask, server, one) for one in shown["tools"]
        ]
    return shown


async def _whole(ask: Ask, server: str, row: Answer) -> Answer:
    """A tool of which there was no room in the answer about all. Raises Permanent."""
    alone = await ask("mcp.waiting", server=server, tool=row["tool"])
    for one in alone["tools"]:
        if one["tool"] == row["tool"] and one["is_whole"]:
            return dict(one)
    raise Permanent(f"{row['name']} has changed just now: look again")


async def _approved(home: Opened, tool: str, shown: Answer) -> Answer:
    """What was shown is what is approved: if it changes meanwhile, the bot refuses."""
    digests = {one["tool"]: one["digest"] for one in shown["tools"]}
    async with _desk(home) as ask:
        return await ask("mcp.approve", server=shown["server"], tool=tool, digests=digests)


def _desk(home: Opened) -> AbstractAsyncContextManager[Ask]:
    """Asks the running bot; where none runs, servers that are started for the moment."""
    from bot.cli.asking import asker
    from bot.commands.mcp import mcp_operations

    return asker(home, lambda app: mcp_operations(app.mcp))


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
