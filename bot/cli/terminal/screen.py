"""What a conversation looks like in a terminal: with colours and a spinner, or plain when piped."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from bot.markup.runs import poses

if TYPE_CHECKING:
    from markdown_it.token import Token
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
    from rich.live import Live

Event = dict[str, Any]

UNASKED_QUIET_S = 0.5
"""A message that comes unasked may still be written: it is shown after so long without a change."""


class Screen(Protocol):
    """Shows what the bot does. Events are those of `bot.channels.console`."""

    def attached(self, event: Event) -> None:
        """The bot is there; the event says which model answers, and why."""

    def greet(self) -> None:
        """Before the first line is typed."""

    def show(self, event: Event) -> None:
        """A message, an edit of one, or what is being done."""

    def drop(self, message_id: str) -> None:
        """This message is not to be left on the screen."""

    def settle(self) -> None:
        """What was shown is complete."""

    def busy(self) -> AbstractContextManager[None]:
        """While an answer is being made."""


class PlainScreen:
    """Text alone, each message once: fit for a pipe or a file.

    `notes` takes what is no answer; without it that goes unsaid.
    """

    def __init__(self, out: TextIO, notes: TextIO | None = None) -> None:
        self._out = out
        self._notes = notes
        self._texts: dict[str, str] = {}

    def attached(self, event: Event) -> None:
        """Which model answers, and why, beside the answers: a pipe gets those alone."""
        if self._notes is not None:
            self._notes.write(f"Hearthbot · {event['model']}\n{event['why']}\n")
            self._notes.flush()

    def greet(self) -> None:
        """Nothing."""

    def show(self, event: Event) -> None:
        """Keep the latest text of each message."""
        if event["kind"] in {"message", "edit"}:
            self._texts[event["id"]] = event["text"]

    def drop(self, message_id: str) -> None:
        """Forget it."""
        self._texts.pop(message_id, None)

    def settle(self) -> None:
        """Print the finished messages."""
        for text in self._texts.values():
            self._out.write(text + "\n")
        self._texts.clear()
        self._out.flush()

    @contextmanager
    def busy(self) -> Iterator[None]:
        """No spinner."""
        yield


class RichScreen:
    """A live terminal: text appears as it is written, then as rendered Markdown."""

    def __init__(self, console: Console | None = None) -> None:
        from rich.console import Console

        self._console = console or Console()
        self._texts: dict[str, str] = {}
        self._doing = ""
        self._live: Live | None = None
        self._unasked: asyncio.TimerHandle | None = None

    def attached(self, event: Event) -> None:
        """Which model answers, and why."""
        from rich.text import Text

        self._console.print(Text.assemble(("Hearthbot", "bold"), f" · {event['model']}"))
        self._console.print(Text(event["why"], "dim"))

    def greet(self) -> None:
        """How to get about."""
        self._console.print("[dim]/help shows the commands, /quit leaves, Ctrl-C stops.[/dim]\n")

    def show(self, event: Event) -> None:
        """Live while busy. What comes unasked is shown once it no longer grows."""
        match event["kind"]:
            case "message" | "edit":
                self._texts[event["id"]] = event["text"]
            case "doing":
                self._doing = event["text"]
        if self._live is not None:
            self._live.update(self._view(), refresh=event["kind"] == "doing")
        elif self._texts:
            if self._unasked is not None:
                self._unasked.cancel()
            loop = asyncio.get_running_loop()
            self._unasked = loop.call_later(UNASKED_QUIET_S, self._settle_unasked)

    def drop(self, message_id: str) -> None:
        """Forget it."""
        self._texts.pop(message_id, None)

    def settle(self) -> None:
        """Leave the finished messages on the screen."""
        if self._texts:
            self._console.print(_rendered(self._texts.values()))
        self._texts.clear()
        self._doing = ""

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Show a spinner until the first text, then the text as it grows."""
        from rich.live import Live

        live = Live(self._view(), console=self._console, transient=True, refresh_per_second=12)
        with live:
            self._live = live
            try:
                yield
            finally:
                self._live = None

    def _settle_unasked(self) -> None:
        if self._live is None:
            self.settle()

    def _view(self) -> RenderableType:
        from rich.spinner import Spinner
        from rich.text import Text

        if not self._texts:
            return Spinner("dots", text=Text(self._doing or "thinking", "dim"))
        whole = "\n\n".join(self._texts.values())
        # So many lines; code whose beginning is cut off stays code.
        lines = whole.splitlines()
        cut, kept = lines[: -self._console.height], lines[-self._console.height :]
        fences = [line for line in cut if _is_fence(line)]
        return _Bottom(_rendered(["\n".join([fences[-1], *kept] if len(fences) % 2 else kept)]))


class _Bottom:
    """The last rows of something, as many as the window can take back.

    What grows taller than the window would show its beginning; and the rows that have left it at
    the top cannot be wiped any more, so that they would stand above the finished text.
    """

    def __init__(self, whole: RenderableType) -> None:
        self._whole = whole

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.segment import Segment

        rows = console.render_lines(self._whole, options, pad=False)
        # The library begins one more row below it before it wipes.
        for row in rows[-max(options.size.height - 2, 1) :]:
            yield from row
            yield Segment.line()


def _rendered(texts: Iterable[str]) -> RenderableType:
    """Return Markdown of which nothing vanishes: the library's own reading drops `<name>`, as HTML,
    and `[name]: what it is`, as the address of a link."""
    from markdown_it import MarkdownIt
    from rich.console import Group
    from rich.markdown import Markdown
    from rich.padding import Padding

    parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
    parser.disable("reference")
    shown = []
    for text in texts:
        one = Markdown("")
        one.markup = _with_breaks(text)
        one.parsed = parser.parse(one.markup)
        for token in one.parsed:
            if token.children:
                token.children = _written_out(token.children)
        shown.append(Padding(one, (0, 0, 1, 0)))
    return Group(*shown)


def _written_out(tokens: Sequence[Token]) -> list[Token]:
    """Return them with no link whose words name another host: where it leads follows the words."""
    from markdown_it.token import Token

    out: list[Token] = []
    opened: list[int] = []
    for token in tokens:
        out.append(token)
        match token.type:
            case "link_open":
                opened.append(len(out) - 1)
            case "link_close" if opened:
                begin = opened.pop()
                url = str(out[begin].attrs.get("href", ""))
                if poses("".join(one.content for one in out[begin:]), url):
                    out[begin], out[-1] = Token("text", "", 0), Token("text", "", 0)
                    out[-1].content = f" ({url})"
            case "image":
                url = str(token.attrs.get("src", ""))
                if poses(token.content, url):
                    out[-1] = Token("text", "", 0, content=f"{token.content} ({url})")
    return out


def _with_breaks(text: str) -> str:
    """Keep the line breaks that Markdown would join, as chats do; code stays as it is."""
    lines: list[str] = []
    fenced = False
    for line in text.splitlines():
        is_fence = _is_fence(line)
        fenced = fenced != is_fence
        lines.append(line if fenced or is_fence or not line.strip() else f"{line}  ")
    return "\n".join(lines)


def _is_fence(line: str) -> bool:
    """Return whether code begins or ends with it."""
    return line.lstrip().startswith(("```", "~~~"))
