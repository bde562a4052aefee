"""Logs: structlog and the standard library through one pipe, with every secret cut out on the way.

`set_up` is called once by the command line. `Redactor` also serves whoever sends text to people.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import stat
import sys
import threading
import urllib.parse
import weakref
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO

import structlog

from bot.settings.schema.settings import LoggingSettings, Settings

SECRET_CHARS_MIN = 6
"""A shorter value would be found in half of all words."""
REDACTED = "[redacted]"
LOG_FILE_BYTES_MAX = 5_000_000
LOG_FILES_MAX = 3
LOG_LOOK_CHARS = 65_536
"""So much may be written between two looks at how large the file is."""
NOISY_LOGGERS = ("httpx", "httpcore", "telegram", "aiohttp", "apscheduler")
"""They log every request, addresses with tokens in them included, or each look at the clock, and
are heard from WARNING on."""

EventDict = MutableMapping[str, Any]


PROVIDER_KEYS_END = "_API_KEY"
"""Environment variables of providers end so: their values are secrets too."""


def secrets_of(settings: Settings, env: Mapping[str, str]) -> tuple[str, ...]:
    """Everything that must never be shown: of the settings, and providers' keys."""
    keys = [value for name, value in env.items() if name.endswith(PROVIDER_KEYS_END) and value]
    return (*settings.secrets(), *keys)


class Redactor:
    """Cuts secrets out of text, by value: also as parts of addresses and of quoted text."""

    def __init__(self, secrets: Sequence[str]) -> None:
        forms = {form for secret in secrets for form in _forms(secret.strip())}
        # The longest first, so that a secret goes before the part of it that is one too.
        ordered = sorted(forms, key=lambda form: (-len(form), form))
        self._pattern = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    def clean(self, text: str) -> str:
        """The text with `[redacted]` in place of each secret."""
        return self._pattern.sub(REDACTED, text) if self._pattern else text

    def clean_value(self, value: Any) -> Any:
        """The same for the texts inside of mappings, lists and tuples."""
        if isinstance(value, str):
            return self.clean(value)
        if isinstance(value, Mapping):
            return {self.clean_value(key): self.clean_value(item) for key, item in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self.clean_value(item) for item in value]
        return value


def _forms(secret: str) -> Iterator[str]:
    """The ways a secret is written: as it is and escaped; of a bot token also what follows the
    colon."""
    telegram = re.fullmatch(r"[0-9]+:(.+)", secret)
    for text in (secret, telegram[1] if telegram else ""):
        if len(text) < SECRET_CHARS_MIN:
            continue
        quoted = {urllib.parse.quote(text), urllib.parse.quote(text, safe="")}
        quoted.add(urllib.parse.quote_plus(text))
        yield from (text, *quoted)
        yield from (re.sub("%..", lambda code: code[0].lower(), form) for form in quoted)
        yield from (json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1])
        yield repr(text)[1:-1]


class Logs:
    """The logging that is in force, until it is closed (or the `with` block ends)."""

    def __init__(self, redactor: Redactor, handlers: Sequence[logging.Handler]) -> None:
        self.redactor = redactor
        self._handlers = handlers
        self._root = logging.getLogger()
        # Replaced, not joined: a handler from elsewhere would write what was not cleaned.
        self._handlers_before = self._root.handlers[:]
        self._levels_before = {name: logging.getLogger(name).level for name in NOISY_LOGGERS}
        self._root_level_before = self._root.level
        self._hooks_before = (sys.excepthook, threading.excepthook, sys.unraisablehook)
        self._was_configured = structlog.is_configured()
        self._structlog_before = structlog.get_config()

    def start(self, level: int) -> None:
        """Puts everything in force."""
        self._root.handlers[:] = self._handlers
        self._root.setLevel(level)
        for name in NOISY_LOGGERS:
            logging.getLogger(name).setLevel(logging.WARNING)
        logging.captureWarnings(True)
        sys.excepthook = _log_crash
        threading.excepthook = _log_thread_crash
        sys.unraisablehook = _log_unraisable

    def crashed(self, error: BaseException) -> None:
        """Writes the traceback of what ends the program: to the file, so that the terminal shows
        one sentence alone; without a file, to the stream."""
        files = [one for one in self._handlers if isinstance(one, _FileHandler)]
        self._root.handlers[:] = files or self._handlers
        # Each part that looks after its tasks wraps what one of them raised, and of the tenth group
        # within another the library prints nothing more.
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        _log.critical("crashed", exc_info=error)
        self._root.handlers[:] = self._handlers

    def close(self) -> None:
        """Flushes and closes the log file, and puts back what was before."""
        sys.excepthook, threading.excepthook, sys.unraisablehook = self._hooks_before
        logging.captureWarnings(False)
        for name, level in self._levels_before.items():
            logging.getLogger(name).setLevel(level)
        self._root.setLevel(self._root_level_before)
        self._root.handlers[:] = self._handlers_before
        for handler in self._handlers:
            # What a full disk did not take is lost; that is no reason to fail at the very end.
            with contextlib.suppress(OSError):
                handler.close()
        structlog.reset_defaults()
        if self._was_configured:
            structlog.configure(**self._structlog_before)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def set_up(
    settings: LoggingSettings, *, secrets: Sequence[str], stream: TextIO, file: Path | None
) -> Logs:
    """Sends all logs, warnings and uncaught errors to `stream` and, as JSON, to `file`.

    What asyncio reports goes the same way: its default handler logs. A log file that cannot be
    opened costs a warning, not the start.
    """
    redactor = Redactor(secrets)
    level = logging.getLevelNamesMapping()[settings.level.upper()]
    on_terminal = stream.isatty()
    as_console = settings.format == "console" or (settings.format == "auto" and on_terminal)
    to_stream = _StreamHandler(stream)
    as_json = _Formatter(redactor, structlog.processors.JSONRenderer(ensure_ascii=False))
    to_stream.setFormatter(
        _Formatter(
            redactor,
            structlog.dev.ConsoleRenderer(
                colors=on_terminal, exception_formatter=structlog.dev.plain_traceback
            ),
        )
        if as_console
        else as_json
    )
    to_file, trouble = _file_handler(file, as_json)
    logs = Logs(redactor, [to_stream, *to_file])
    structlog.configure(
        processors=[*_PROCESSORS, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    logs.start(level)
    if trouble:
        _log.warning("log_file_unusable", file=str(file), reason=trouble)
    return logs


_log = structlog.get_logger(__name__)

_PROCESSORS: tuple[structlog.typing.Processor, ...] = (
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.StackInfoRenderer(),
    # The plain traceback: the pretty ones show local variables, secrets included.
    structlog.processors.format_exc_info,
)
"""What structlog's lines and those of the standard library have in common."""


class _Formatter(structlog.stdlib.ProcessorFormatter):
    """Cleans the values, where they are not escaped yet, and then the finished line."""

    def __init__(self, redactor: Redactor, renderer: structlog.typing.Processor) -> None:
        def clean(logger: object, method: str, event: EventDict) -> EventDict:
            return {key: redactor.clean_value(value) for key, value in event.items()}

        super().__init__(
            processors=[self.remove_processors_meta, clean, renderer],
            foreign_pre_chain=[structlog.stdlib.ExtraAdder(), *_PROCESSORS],
        )
        self._redactor = redactor
        self._made: tuple[weakref.ref[logging.LogRecord], str] | None = None

    def format(self, record: logging.LogRecord) -> str:
        # Both handlers share one formatter where both write JSON, and a file's handler asks twice:
        # the line is made once. It is kept here: on the record it would be one of the "extra"
        # values, which the other formatter writes.
        made = self._made
        if made is not None and made[0]() is record:
            return made[1]
        line = self._redactor.clean(super().format(record))
        self._made = (weakref.ref(record), line)
        return line


class _CarefulHandler(logging.Handler):
    """The library's own complaint would print the line's raw arguments; and when the disk is
    full, it would do so for each line."""

    _complained = False

    def handleError(self, record: logging.LogRecord) -> None:
        if self._complained or sys.stderr is None:
            return
        self._complained = True
        kind = sys.exc_info()[0]
        reason = kind.__name__ if kind else "unknown"
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(f"A log line of {record.name} could not be written ({reason}).\n")


class _StreamHandler(_CarefulHandler, logging.StreamHandler[TextIO]):
    pass


class _FileHandler(_CarefulHandler, RotatingFileHandler):
    """Looks at the file's size once in a while: the library does it, with four calls of the system,
    before each line."""

    _unseen_chars = LOG_LOOK_CHARS

    def shouldRollover(self, record: logging.LogRecord) -> int:
        self._unseen_chars += len(self.format(record))
        if self._unseen_chars < LOG_LOOK_CHARS:
            return 0
        self._unseen_chars = 0
        return int(super().shouldRollover(record))

    def _open(self) -> TextIOWrapper:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        descriptor = os.open(self.baseFilename, flags, 0o600)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):  # not where it is /dev/null
            os.fchmod(descriptor, 0o600)
        return os.fdopen(descriptor, "a", encoding=self.encoding, errors=self.errors)


def _file_handler(
    file: Path | None, formatter: logging.Formatter
) -> tuple[list[logging.Handler], str]:
    """The handler, and why there is none."""
    if file is None:
        return [], ""
    try:
        handler = _FileHandler(
            file,
            maxBytes=LOG_FILE_BYTES_MAX,
            backupCount=LOG_FILES_MAX - 1,
            encoding="utf-8",
            errors="backslashreplace",
        )
    except OSError as error:
        return [], error.strerror or "unknown"
    handler.setFormatter(formatter)
    return [handler], ""


# --- errors that nobody caught -----------------------------------------------------------------


def _log_crash(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    if issubclass(kind, KeyboardInterrupt):
        # Its traceback may go on with the error that was being handled, address and all.
        _log.warning("interrupted")
        return
    _log.critical("crashed", exc_info=(kind, error, traceback))


def _log_thread_crash(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is not None and not isinstance(args.exc_value, SystemExit):
        exc_info = (args.exc_type, args.exc_value, args.exc_traceback)
        _log.critical("thread_crashed", exc_info=exc_info)


def _log_unraisable(args: sys.UnraisableHookArgs) -> None:
    if args.exc_value is not None:
        exc_info = (args.exc_type, args.exc_value, args.exc_traceback)
        _log.error("error_in_cleanup", where=repr(args.object), exc_info=exc_info)
