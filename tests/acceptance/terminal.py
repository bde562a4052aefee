"""A person at a terminal: the program behind a real pseudo terminal, typed to and read from."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
from types import TracebackType
from typing import Self

from tests.acceptance.rig import LONG_S, Home, until

ROWS, COLUMNS = 40, 100

ENTER, CTRL_C, CTRL_D, UP = "\r", "\x03", "\x04", "\x1b[A"

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[()][A-Z0-9]|\x1b[=>78]|\r")


_MOVE = re.compile(r"\x1b\[([0-9;?]*)([@-~])|\x1b\].*?(?:\x07|\x1b\\)|\x1b[()].|\x1b.", re.DOTALL)


def seen(raw: str, *, rows: int, columns: int) -> str:
    """What such a window shows, and what has left it at the top, which no move reaches any more.

    Knows the moves that our screen and the line editor make; other control codes show nothing.
    """
    lines, row, column = [""], 0, 0
    at = 0
    while at < len(raw):
        top = max(len(lines) - rows, 0)
        move = _MOVE.match(raw, at)
        if move is not None:
            at = move.end()
            many = int(move[1]) if (move[1] or "").isdecimal() else 0
            match move[2]:
                case "A":
                    row = max(row - max(many, 1), top)
                case "B":
                    row = min(row + max(many, 1), len(lines) - 1)
                case "C":
                    column = min(column + max(many, 1), columns - 1)
                case "D":
                    column = max(column - max(many, 1), 0)
                case "K":
                    lines[row] = lines[row][:column] if many == 0 else ""
                case "J" if many == 0:
                    lines[row] = lines[row][:column]
                    lines[row + 1 :] = [""] * len(lines[row + 1 :])
            continue
        char, at = raw[at], at + 1
        if char == "\r":
            column = 0
        elif char == "\n" or (char >= " " and column == columns):
            row += 1
            lines += [""] * (row - len(lines) + 1)
            column = 0
        if char >= " ":
            lines[row] = lines[row].ljust(column)[:column] + char + lines[row][column + 1 :]
            column += 1
    return "\n".join(line.rstrip() for line in lines)


class Terminal:
    """`hearthbot ARGUMENTS` in a window of its own."""

    def __init__(self, home: Home, *arguments: str) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.modes_before = termios.tcgetattr(theirs)
        self._theirs = theirs
        self._raw = b""
        self._read_to = 0
        self.process = home.process(
            arguments,
            env={**home.env, "PROMPT_TOOLKIT_NO_CPR": "1"},  # it would ask where the cursor is
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(LONG_S)
        os.close(self._ours)
        os.close(self._theirs)

    @property
    def text(self) -> str:
        """All that was shown so far, without colours and cursor moves."""
        self._read()
        return _CONTROL.sub("", self._raw.decode("utf-8", "replace"))

    @property
    def raw(self) -> str:
        """The same with them."""
        self._read()
        return self._raw.decode("utf-8", "replace")

    @property
    def screen(self) -> str:
        """What a person sees who scrolls up to the beginning."""
        return seen(self.raw, rows=ROWS, columns=COLUMNS)

    def type(self, keys: str) -> None:
        """Keys, as a person presses them."""
        os.write(self._ours, keys.encode())

    def expect(self, words: str) -> None:
        """Waits until the words appear after those that were expected last."""
        until(
            lambda: words in self.text[self._read_to :],
            about=lambda: f"{words!r} in {self.text[self._read_to :]!r}",
        )
        self._read_to += self.text[self._read_to :].index(words) + len(words)

    def ends(self) -> int:
        """Waits for its exit code, reading on."""

        def over() -> bool:
            self._read()
            return self.process.poll() is not None

        until(over)
        return self.process.returncode

    def modes(self) -> list[object]:
        """How the terminal is set: echo, lines, signals."""
        return list(termios.tcgetattr(self._theirs))

    def hang_up(self) -> None:
        """The window is closed by force."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(LONG_S)

    def _read(self) -> None:
        while select.select([self._ours], [], [], 0)[0]:
            self._raw += os.read(self._ours, 65_536)
