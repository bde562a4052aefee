"""What a conversation looks like in a terminal: with colours and a spinner, or plain when piped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TextIO

Event = dict[str, Any]


class Screen(Protocol):
    """Shows what the bot does. Events are those of `bot.console`."""

    def attached(self, event: Event) -> None:
        """The bot is there; the event says which model answers, and why."""

    def greet(self) -> None:
        """Before the first line is typed."""

    def show(self, event: Event) -> None:
        """A message, an edit of one, or a sign of work."""

    def settle(self) -> None:
        """What was shown is complete."""

    @contextmanager
    def busy(self) -> Iterator[None]:
        """While an answer is being made."""


class PlainScreen:
    """Text alone, each message once: fit for a pipe or a file."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._texts: dict[str, str] = {}

    def attached(self, event: Event) -> None:
        """Nothing: a pipe gets the answers alone."""

    def greet(self) -> None:
        """Nothing."""

    def show(self, event: Event) -> None:
        """Keeps the latest text of each message."""
        if event["kind"] in {"message", "edit"}:
            self._texts[event["id"]] = event["text"]

    def settle(self) -> None:
        """Prints the finished messages."""
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

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console()
        self._texts: dict[str, str] = {}
        self._live: Any = None

    def attached(self, event: Event) -> None:
        """Which model answers, and why."""
        self._console.print(f"[bold]Hearthbot[/bold] · {event['model']}", highlight=False)
        self._console.print(f"[dim]{event['why']}[/dim]", highlight=False)

    def greet(self) -> None:
        """How to get about."""
        self._console.print("[dim]/help shows the commands, /quit leaves, Ctrl-C stops.[/dim]\n")

    def show(self, event: Event) -> None:
        """Live while busy; at once when a message comes unasked."""
        if event["kind"] in {"message", "edit"}:
            self._texts[event["id"]] = event["text"]
        if self._live is not None:
            self._live.update(self._view())
        elif event["kind"] == "message":
            self.settle()

    def settle(self) -> None:
        """Leaves the finished messages on the screen."""
        if self._texts:
            self._console.print(self._messages())
        self._texts.clear()

    @contextmanager
    def busy(self) -> Iterator[None]:
        """A spinner until the first text, then the text as it grows."""
        from rich.live import Live

        with Live(
            self._view(), console=self._console, transient=True, refresh_per_second=12
        ) as self._live:
            yield
        self._live = None

    def _view(self) -> Any:
        from rich.spinner import Spinner

        return self._messages() if self._texts else Spinner("dots", text="[dim]thinking[/dim]")

    def _messages(self) -> Any:
        from rich.console import Group
        from rich.markdown import Markdown
        from rich.padding import Padding

        return Group(*(Padding(Markdown(text), (0, 0, 1, 0)) for text in self._texts.values()))
