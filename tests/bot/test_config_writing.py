"""Keys are changed in config.toml, and nothing else is."""

from __future__ import annotations

import re
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from bot.settings.edit import BACKUP_ENDING, change, write
from bot.settings.load import load
from memory.records.errors import SettingsWrong
from tests.checkout import ROOT

TOKEN, MODEL = ("telegram", "token"), ("llm", "model")
SECRET = "123456:ABC-DEF"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '[telegram]\ntoken = "T"\n'),
        ("# mine", '# mine\n\n[telegram]\ntoken = "T"\n'),
        ("[telegram]\n", '[telegram]\ntoken = "T"\n'),
        ("[telegram]", '[telegram]\ntoken = "T"\n'),
        ('[telegram]\ntoken="old" # why\n', '[telegram]\ntoken="T" # why\n'),
        (
            "[telegram]\r\nmode = 'polling'\r\n",
            "[telegram]\r\nmode = 'polling'\r\ntoken = \"T\"\r\n",
        ),
        (
            '[telegram]\n#token = ""\n\n# Who may talk.\n[access]\n',
            '[telegram]\n#token = ""\ntoken = "T"\n\n# Who may talk.\n[access]\n',
        ),
        (
            "[telegram]\nmode = 'polling'\n\n# Who may talk.\n[access]\n",
            "[telegram]\nmode = 'polling'\ntoken = \"T\"\n\n# Who may talk.\n[access]\n",
        ),
        ('telegram.token = "old"\n', 'telegram.token = "T"\n'),
        ('telegram = { token = "old" }\n', 'telegram = { token = "T" }\n'),
        ('[telegram]\ntoken = """\nold"""\n', '[telegram]\ntoken = "T"\n'),
    ],
)
@pytest.mark.threat("T19")
def test_only_the_key_changes(before: str, after: str) -> None:
    assert change(before, {TOKEN: "T"}) == after


@pytest.mark.parametrize(
    "form", ["telegram.mode = 'polling'\n", "telegram = { mode = 'polling' }\n"]
)
def test_a_section_in_another_form_gets_its_key_too(form: str) -> None:
    read = tomllib.loads(change(form + "[access]\npolicy = 'open'\n", {TOKEN: "T"}))

    assert read == {"telegram": {"mode": "polling", "token": "T"}, "access": {"policy": "open"}}


def test_what_looks_like_a_section_within_a_text_is_none() -> None:
    before = '[agents.default]\nsystem_prompt = """\n[telegram]\n#token = ""\n"""\n'

    after = change(before, {TOKEN: "T"})

    assert after.startswith(before)
    assert tomllib.loads(after)["telegram"] == {"token": "T"}


def test_a_key_is_taken_out_with_its_line_alone() -> None:
    before = '[llm]\n# my key\napi_key = "k"\nmodel = "m" # best\n'

    assert change(before, {("llm", "api_key"): None}) == '[llm]\n# my key\nmodel = "m" # best\n'
    assert change("[llm]\n", {("llm", "api_key"): None}) == "[llm]\n"


def test_a_key_that_has_the_value_stands_as_it_did() -> None:
    before = "[telegram]\ntoken   =   '123456:ABC-DEF'   # so\n"

    assert change(before, {TOKEN: SECRET}) == before


def test_the_example_with_keys_set_is_the_example_and_those_lines() -> None:
    example = (ROOT / "config.example.toml").read_text()

    after = change(example, {TOKEN: SECRET, MODEL: "openai/gpt-4.1-mini"})

    added = [line for line in after.splitlines() if line not in example.splitlines()]
    lines = after.splitlines()
    assert added == ['model = "openai/gpt-4.1-mini"', f'token = "{SECRET}"']
    assert lines[lines.index(added[0]) - 1] == '#model = ""'
    assert lines[lines.index(added[1]) - 1] == '#token = ""'


def test_a_file_that_is_no_toml_is_left_alone() -> None:
    with pytest.raises(SettingsWrong, match="left alone"):
        change("[telegram\n", {TOKEN: SECRET})


def test_a_value_where_a_section_belongs_is_refused() -> None:
    with pytest.raises(SettingsWrong, match="where the section"):
        change("telegram = 5\n", {TOKEN: SECRET})


@pytest.mark.case("CF-01")
@pytest.mark.threat("T19")
def test_writing_keeps_the_former_file_and_is_for_the_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    before = b"\xef\xbb\xbf# mine\r\n[turns]\r\nqueue = 'collect'\r\n"
    file.write_bytes(before)
    file.chmod(0o644)

    changed, again = write(file, {TOKEN: SECRET}), write(file, {TOKEN: SECRET})

    backup = tmp_path / f"config.toml{BACKUP_ENDING}"
    assert (changed, again) == (True, False)
    assert file.read_bytes().startswith(before)
    assert backup.read_bytes() == before
    assert {stat.S_IMODE(one.stat().st_mode) for one in (file, backup)} == {0o600}
    assert load(tmp_path, {}).telegram.token.get_secret_value() == SECRET
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.toml", "config.toml.bak"]


def test_a_link_to_the_file_stays_one(tmp_path: Path) -> None:
    (tmp_path / "real.toml").write_text("")
    (tmp_path / "config.toml").symlink_to("real.toml")

    write(tmp_path / "config.toml", {MODEL: "embedded"})

    assert (tmp_path / "config.toml").is_symlink()
    assert 'model = "embedded"' in (tmp_path / "real.toml").read_text()


_KEYS = st.sampled_from(["model", "token", "api_key", "mode", "other"])
_TABLES = st.sampled_from(["llm", "telegram", "access", "agents"])
_VALUES = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.integers(-(2**40), 2**40),
    st.booleans(),
)


@given(
    tables=st.dictionaries(_TABLES, st.dictionaries(_KEYS, _VALUES, max_size=4), max_size=4),
    path=st.tuples(_TABLES, _KEYS),
    value=st.one_of(st.none(), _VALUES),
    line_end=st.sampled_from(["\n", "\r\n"]),
)
def test_whatever_is_changed_the_rest_reads_and_stands_as_before(
    tables: dict[str, dict[str, Any]], path: tuple[str, str], value: Any, line_end: str
) -> None:
    before = tomlkit.dumps(tables).replace("\n", line_end)

    after = change(before, {path: value})

    wanted = {name: dict(table) for name, table in tables.items()}
    if value is not None:
        wanted.setdefault(path[0], {})[path[1]] = value
    elif path[0] in wanted:
        wanted[path[0]].pop(path[1], None)
    kept = [line for line in _lines(before) if not line.startswith(f"{path[1]} =")]
    assert tomllib.loads(after) == wanted
    assert all(line in _lines(after) for line in kept)


def _lines(text: str) -> list[str]:
    return re.split(r"\r?\n", text)
