"""A home as text files, so that a change of it can be read: a dump of its database, and its files.

`save` writes a home that was closed as such files; `lay` makes a home of them again.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

FOLDER = Path(__file__).parent / "home"
DUMP = "hearthbot.sql"
FILES = "files"
DATABASE = Path("data") / "hearthbot.db"

# All that a file has beside its tables. How it gives pages back can be set before anything else is
# written, alone.
PRAGMAS = ("auto_vacuum", "application_id", "user_version", "journal_mode")
BEFORE_TABLES = ("auto_vacuum", "application_id")

MADE = "-- made at, in milliseconds: "
YEAR_MS = 366 * 86_400_000

LEFT_OUT = ("*.lock", "*.log", "*.db*", "*.sock", "backups", ".bin", "__pycache__")


# --- database -----------------------------------------------------------------------------------


def schema_of(connection: sqlite3.Connection) -> Iterator[str]:
    """Yield what makes the tables, by kind and name, without those that SQLite makes itself."""
    own = _tables(connection, "shadow")
    rows = connection.execute(
        "select type, name, tbl_name, sql from sqlite_schema where sql is not null "
        "order by case type when 'table' then 0 else 1 end, type, name"
    )
    for _, name, table, sql in rows.fetchall():
        if table not in own and not name.startswith("sqlite_"):
            yield f"{sql};"


def pragmas_of(connection: sqlite3.Connection) -> Mapping[str, str | int]:
    """Return what is set for a file as a whole."""
    return {name: connection.execute(f"pragma {name}").fetchone()[0] for name in PRAGMAS}


def _tables(connection: sqlite3.Connection, kind: str) -> list[str]:
    rows = connection.execute("select name, type from pragma_table_list order by name").fetchall()
    return [name for name, type_ in rows if type_ == kind and not name.startswith("sqlite_schema")]


def dump(connection: sqlite3.Connection) -> Iterator[str]:
    """Yield statements that make the same file again, a row each line."""
    pragmas = pragmas_of(connection)
    for name in BEFORE_TABLES:
        yield f"pragma {name} = {pragmas[name]};"
    made = list(schema_of(connection))
    # The key that is referred to may stand in a later line.
    yield "pragma foreign_keys = off;"
    yield "begin;"
    yield from (sql for sql in made if _makes_table(sql))
    for table in (*_tables(connection, "shadow"), *_tables(connection, "table")):
        if table not in {"sqlite_sequence", "sqlite_stat1", "sqlite_stat4"}:
            yield from _rows(connection, table)
    yield from _rows(connection, "sqlite_sequence")
    yield from (sql for sql in made if not _makes_table(sql))
    yield "commit;"
    for name in (one for one in PRAGMAS if one not in BEFORE_TABLES):
        yield f"pragma {name} = {pragmas[name]};"


def _makes_table(sql: str) -> bool:
    return re.match(r"create (virtual )?table", sql, re.IGNORECASE) is not None


def _rows(connection: sqlite3.Connection, table: str) -> Iterator[str]:
    columns = [row[1] for row in connection.execute(f'pragma table_info("{table}")')]
    values = "|| ', ' ||".join(f'quote("{column}")' for column in columns)
    lines = connection.execute(f'select {values} from "{table}" order by 1').fetchall()
    if lines or table in _tables(connection, "shadow"):
        # What a search index begins with stands there as soon as it is made.
        yield f'delete from "{table}";'
    yield from (f'insert into "{table}" values ({_on_one_line(line)});' for (line,) in lines)


def _on_one_line(values: str) -> str:
    """Write line ends within texts as SQL, so that each row is a line."""
    return values.replace("\n", "'||char(10)||'").replace("\r", "'||char(13)||'")


# --- home ---------------------------------------------------------------------------------------


def save(home: Path, *, now_ms: int, to: Path = FOLDER) -> None:
    """Write a home that no bot has open as text files, in place of what was there."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(home, to / FILES, ignore=shutil.ignore_patterns(*LEFT_OUT))
    with closing(sqlite3.connect(home / DATABASE)) as connection:
        text = "\n".join(dump(connection))
    (to / DUMP).write_text(f"{MADE}{now_ms}\n{text}\n", encoding="utf-8")


def lay(home: Path, *, saved: Path = FOLDER, made_ms: int | None = None) -> None:
    """Make the home of the text files, with the rights that the program gives its files.

    With `made_ms` it was made then: its times move along, but for those far ahead.
    """
    shutil.copytree(saved / FILES, home)
    text = (saved / DUMP).read_text(encoding="utf-8")
    if made_ms is not None:
        text = _moved(text, to_ms=made_ms)
    path = home / DATABASE
    path.parent.mkdir(exist_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(text)
    for file in (home, *home.rglob("*")):
        file.chmod(0o700 if file.is_dir() else 0o600)


def _moved(text: str, *, to_ms: int) -> str:
    made = int(text.partition("\n")[0].removeprefix(MADE))

    def moved(found: re.Match[str]) -> str:
        at = int(found[0])
        return str(at - made + to_ms) if abs(at - made) < YEAR_MS else found[0]

    return re.sub(r"\b[0-9]{13}\b", moved, text)
