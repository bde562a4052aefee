"""Settings are read once, checked at once, and complained about in one go, without secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from agent.errors import SettingsWrong
from bot.config import KEYS, Settings
from bot.config_example import example_toml
from bot.config_reading import holds_secret, load

TOKEN = "123456:SECRETSECRET"
EXAMPLE = Path(__file__).parents[2] / "config.example.toml"


def loaded(home: Path, toml: str = "", env: Mapping[str, str] | None = None) -> Settings:
    (home / "config.toml").write_text(toml, encoding="utf-8")
    return load(home, env or {})


def complaint(home: Path, toml: str = "", env: Mapping[str, str] | None = None) -> str:
    with pytest.raises(SettingsWrong) as caught:
        loaded(home, toml, env)
    assert caught.value.__context__ is None, "the chained error would hold the input"
    return str(caught.value)


# --- where values come from --------------------------------------------------------------------


def test_without_file_and_environment_there_are_the_defaults(tmp_path: Path) -> None:
    settings = load(tmp_path, {})

    assert settings == Settings()
    assert settings.turns.parallel == 64
    assert settings.agents.default.temperature == 0.4
    assert settings.access.policy == "pairing"


def test_the_environment_wins_over_the_file_and_the_file_over_the_defaults(tmp_path: Path) -> None:
    toml = '[llm]\nmodel = "from-file"\nwindow = 1000\n'

    settings = loaded(tmp_path, toml, {"HEARTHBOT_LLM__MODEL": "from-env"})

    assert settings.llm.model == "from-env"
    assert settings.llm.window == 1000
    assert settings.llm.max_output_tokens == 8192


def test_only_the_environment_that_is_passed_in_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEARTHBOT_LLM__MODEL", "stray")

    assert load(tmp_path, {}).llm.model == ""
    assert Settings().llm.model == ""


def test_each_kind_of_value_can_come_from_the_environment(tmp_path: Path) -> None:
    settings = loaded(
        tmp_path,
        env={
            "HEARTHBOT_TELEGRAM__STREAMING": "false",
            "HEARTHBOT_TELEGRAM__POLL_TIMEOUT_S": "5",
            "HEARTHBOT_TELEGRAM__SEND_TIMEOUT_S": "2.5",
            "HEARTHBOT_TELEGRAM__ALLOW_FROM": "99, telegram:7",
            "HEARTHBOT_AGENTS__DEFAULT__DENIED_TOOLS": '["a*", "b"]',
            "HEARTHBOT_AGENTS__DEFAULT__SYSTEM_PROMPT": "5",
            "HEARTHBOT_TELEGRAM__TOKEN": TOKEN,
            "HEARTHBOT_HOME": "/somewhere",
            "PATH": "/bin",
        },
    )

    assert settings.telegram.streaming is False
    assert settings.telegram.poll_timeout_s == 5
    assert settings.telegram.send_timeout_s == 2.5
    assert settings.telegram.allow_from == (99, 7)
    assert settings.agents.default.denied_tools == ("a*", "b")
    assert settings.agents.default.system_prompt == "5"
    assert settings.telegram.token.get_secret_value() == TOKEN


def test_an_empty_list_in_the_environment_overrules_the_file(tmp_path: Path) -> None:
    toml = "[telegram]\nallow_from = [99]\n"

    settings = loaded(tmp_path, toml, {"HEARTHBOT_TELEGRAM__ALLOW_FROM": ""})

    assert settings.telegram.allow_from == ()


def test_a_byte_order_mark_and_windows_line_ends_are_read(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b'\xef\xbb\xbf[llm]\r\nmodel = "m"\r\n')

    assert load(tmp_path, {}).llm.model == "m"


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError):
        Settings().llm.model = "other"


def test_secrets_are_listed_and_never_printed(tmp_path: Path) -> None:
    settings = loaded(
        tmp_path, f'[telegram]\ntoken = "{TOKEN}"\n', {"HEARTHBOT_LLM__API_KEY": "key-of-mine"}
    )

    assert set(settings.secrets()) == {TOKEN, "key-of-mine"}
    assert Settings().secrets() == ()
    assert "SECRETSECRET" not in f"{settings} {settings!r} {settings.model_dump()}"


# --- what is refused ---------------------------------------------------------------------------


def test_all_problems_are_named_in_one_go_with_source_key_found_and_allowed(
    tmp_path: Path,
) -> None:
    toml = """
        [telegram]
        mode = "webhok"
        poll_timeout_s = "30"
        [turns]
        limit_s = 0
        [agents.default]
        max_steps = true
    """
    env = {"HEARTHBOT_LLM__WINDOW": "big", "HEARTHBOT_LLM__MODLE": "m"}

    text = complaint(tmp_path, toml, env)

    file = tmp_path / "config.toml"
    assert "6 problems" in text
    assert f"{file}: telegram.mode: found 'webhok'; allowed: polling | webhook" in text
    assert f"{file}: telegram.poll_timeout_s: found '30'; allowed: a whole number from 1" in text
    assert f"{file}: turns.limit_s: found 0; allowed: a number above 0" in text
    assert f"{file}: agents.default.max_steps: found True; allowed: a whole number" in text
    assert "variable HEARTHBOT_LLM__WINDOW: llm.window: found 'big'; allowed: a whole" in text
    assert "variable HEARTHBOT_LLM__MODLE: unknown; the nearest is HEARTHBOT_LLM__MODEL" in text


@pytest.mark.case("CF-03")
@pytest.mark.parametrize(
    ("toml", "path", "nearest"),
    [
        ('allow_form = ["5"]', "allow_form", "telegram.allow_from"),
        ('[telegram]\nallow_form = ["5"]', "telegram.allow_form", "telegram.allow_from"),
        ('[channels.telegram]\ntoken = "t"', "channels.telegram.token", "telegram.token"),
        ("[agents]\nmax_steps = 3", "agents.max_steps", "agents.default.max_steps"),
        ("[llm.model]\nname = 3", "llm.model", "text"),
        ("[telegram]\nzzzzzz = 3", "telegram.zzzzzz", "[telegram] takes token, base_url"),
        ("[heartbeat]", "heartbeat", "sections llm, telegram"),
        ('[heartbeat]\nevry = "1h"', "heartbeat.evry", "sections llm, telegram"),
        ("heartbeat = false", "heartbeat", "sections llm, telegram"),
        ('[heartbeat]\nevery = "0m"', "heartbeat.every", "sections llm, telegram"),
    ],
)
def test_an_unknown_key_stops_the_start_with_its_path_and_the_nearest(
    tmp_path: Path, toml: str, path: str, nearest: str
) -> None:
    text = complaint(tmp_path, toml)

    assert "1 problem." in text
    assert f"config.toml: {path}: " in text
    assert nearest in text


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("HEARTHBOT_TELEGRAM_TOKEN", "HEARTHBOT_TELEGRAM__TOKEN"),
        ("HEARTHBOT_telegram__token", "HEARTHBOT_TELEGRAM__TOKEN"),
        ("hearthbot_llm__model", "HEARTHBOT_LLM__MODEL"),
        ("HEARTHBOT_AGENTS__WORK__MAX_STEPS", "HEARTHBOT_AGENTS__DEFAULT__MAX_STEPS"),
    ],
)
def test_a_misspelt_variable_stops_the_start_without_its_value(
    tmp_path: Path, name: str, nearest: str
) -> None:
    text = complaint(tmp_path, env={name: TOKEN})

    assert f"environment variable {name}: unknown; the nearest is {nearest}" in text
    assert "SECRETSECRET" not in text


@pytest.mark.parametrize("key", ["_cli_parse_args", "_env_file", "_build_sources", "self"])
def test_a_key_named_like_an_argument_of_the_library_is_just_unknown(
    tmp_path: Path, key: str
) -> None:
    assert f"{key}: unknown key" in complaint(tmp_path, f"{key} = true\n")


def test_another_agent_is_refused_once_and_in_plain_words(tmp_path: Path) -> None:
    text = complaint(tmp_path, "[agents.work]\ntemperature = 1\nmax_steps = 3\n")

    assert "1 problem." in text
    assert "agents.work: this version serves one agent, agents.default" in text


@pytest.mark.parametrize("toml", ["telegram = 3", 'agents = "x"', "[agents]\ndefault = 1"])
def test_a_value_in_place_of_a_section_is_refused_beside_the_environment_too(
    tmp_path: Path, toml: str
) -> None:
    env = {"HEARTHBOT_TELEGRAM__TOKEN": TOKEN, "HEARTHBOT_AGENTS__DEFAULT__MAX_STEPS": "3"}

    text = complaint(tmp_path, toml, env)

    assert "found a value; allowed: a section, [" in text


@pytest.mark.parametrize(
    ("content", "place", "reason"),
    [
        (b'[llm]\nmodel = "a"\nx = \n', "line 3, column 5", "Invalid value"),
        (b"[llm", "line 1, column 5", "Expected ']'"),
        (b'[llm]\nmodel = """a', "line 2, column 13", "Unterminated string"),
        (b"[llm]\n[llm]\n", "line 2, column 5", "Cannot declare"),
    ],
)
def test_a_syntax_error_is_told_with_line_and_column(
    tmp_path: Path, content: bytes, place: str, reason: str
) -> None:
    text = complaint(tmp_path, content.decode())

    assert re.search(r"config\.toml, line \d+, column \d+: ", text)
    assert place.split(",", maxsplit=1)[0] in text
    assert reason in text


def test_a_file_that_is_no_text_or_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b"a = '\xff'")
    with pytest.raises(SettingsWrong, match="is not UTF-8 text"):
        load(tmp_path, {})

    (tmp_path / "config.toml").unlink()
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(SettingsWrong, match="cannot be read: Is a directory"):
        load(tmp_path, {})


@pytest.mark.parametrize("value", ["nan", "inf", "2.01", "-0.1", "true", '"0.4"'])
def test_numbers_outside_their_bounds_and_values_of_another_type_are_refused(
    tmp_path: Path, value: str
) -> None:
    text = complaint(tmp_path, f"[agents.default]\ntemperature = {value}\n")

    assert "agents.default.temperature: found" in text
    assert "allowed: a number from 0 to 2" in text


@pytest.mark.parametrize("value", ["yes", "", "2", "nul"])
def test_a_variable_that_is_no_truth_value_is_refused(tmp_path: Path, value: str) -> None:
    text = complaint(tmp_path, env={"HEARTHBOT_TELEGRAM__STREAMING": value})

    assert "allowed: true or false" in text


# --- secrets in the wrong place ----------------------------------------------------------------


@pytest.mark.case("CF-01")
def test_a_reference_is_refused_with_the_variable_to_use(tmp_path: Path) -> None:
    toml = """
        [telegram]
        token = "${TG_TOKEN}"
        allow_from = [99, "${ME}"]
        [llm]
        model = "${MODEL:-x}"
        window = "${WINDOW}"
    """

    text = complaint(tmp_path, toml, {"TG_TOKEN": "t0p-s3cret"})

    assert "4 problems" in text
    for key in ("TELEGRAM__TOKEN", "TELEGRAM__ALLOW_FROM", "LLM__MODEL", "LLM__WINDOW"):
        assert f"set the environment variable HEARTHBOT_{key} instead" in text
    assert "t0p-s3cret" not in text


def test_text_that_mentions_a_reference_is_left_alone(tmp_path: Path) -> None:
    toml = "[agents.default]\nsystem_prompt = 'Write ${NAME} for a name.'\n"

    assert "${NAME}" in loaded(tmp_path, toml).agents.default.system_prompt


@pytest.mark.parametrize(
    "toml",
    [
        f'telegram = "{TOKEN}"',
        f'[telegram]\ntoken = ["{TOKEN}"]',
        f'[telegram]\ntoken = "{TOKEN} "',
        f'[telegram]\nmode = "{TOKEN}"',
        f'[telegram]\nallow_from = ["{TOKEN}"]',
        f'[telegram]\nbase_url = "x://api.telegram.org/bot{TOKEN}"',
        f'[telegram]\ntoken = {{ value = "{TOKEN}" }}',
        f'[slack]\ntoken = "{TOKEN}"',
        '[telegram]\nmode = "webhook"\nwebhook_secret = "SECRETSECRET!"',
        '[llm]\napi_key = "SECRETSECRET"\nclient = "SECRETSECRET"',
        '[llm]\napi_base = "ftp://me:SECRETSECRET@host/v1"',
        'token = "SECRETSECRET',
    ],
)
def test_no_complaint_shows_a_secret_wherever_it_was_written(tmp_path: Path, toml: str) -> None:
    text = complaint(tmp_path, toml)

    assert "SECRETSECRET" not in text


def test_a_file_with_a_secret_is_known_as_such(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"

    assert not holds_secret(file)
    file.write_text('[llm]\nmodel = "m"\n[telegram]\ntoken = ""\n')
    assert not holds_secret(file)
    file.write_text(f'[telegram]\ntoken = "{TOKEN}"\n')
    assert holds_secret(file)
    file.write_text(f'[telegram]\ntoken = "{TOKEN}\n')
    assert holds_secret(file), "what cannot be read may hold one"


# --- who is let in -----------------------------------------------------------------------------


@pytest.mark.case("CF-05", "SE-01")
@pytest.mark.parametrize("entry", ["99", '"99"', '" 99 "', '"telegram:99"', '" telegram:99"'])
def test_a_number_is_the_same_person_however_it_is_written(tmp_path: Path, entry: str) -> None:
    settings = loaded(tmp_path, f"[telegram]\nallow_from = [{entry}]\n")

    assert settings.telegram.allow_from == (99,)


@pytest.mark.case("CF-05", "SE-01")
@pytest.mark.parametrize(
    ("entry", "hint"),
    [
        ('"@name"', "names can change hands"),
        ('"name"', "names can change hands"),
        ('"slack:T1:U1"', "names can change hands"),
        ('"99 "', ""),
        ('"９９"', "names can change hands"),
        ('"*"', 'access.policy = "open"'),
        ('""', "lets nobody in"),
        ('"  "', "lets nobody in"),
        ("0", "a user's number"),
        ("-5", "a user's number"),
        ("true", "a user's number"),
        ("99.0", "a user's number"),
        ("[99]", "a user's number"),
    ],
)
def test_what_is_no_number_is_refused_with_a_hint(tmp_path: Path, entry: str, hint: str) -> None:
    toml = f"[telegram]\nallow_from = [1, {entry}]\n"
    if not hint:
        assert loaded(tmp_path, toml).telegram.allow_from == (1, 99)
        return

    text = complaint(tmp_path, toml)

    assert "telegram.allow_from[1]: found" in text
    assert hint in text


@pytest.mark.case("SE-03")
@pytest.mark.parametrize("toml", ["", "[telegram]", "[telegram]\nallow_from = []"])
def test_an_empty_or_missing_list_lets_nobody_in(tmp_path: Path, toml: str) -> None:
    settings = loaded(tmp_path, toml)

    assert settings.telegram.allow_from == ()
    assert settings.access.policy == "pairing"


@pytest.mark.case("SE-03")
@pytest.mark.parametrize("value", ['[""]', '""', '"*"', "99", "false", "{}"])
def test_a_list_that_is_none_is_refused_rather_than_read_as_everyone(
    tmp_path: Path, value: str
) -> None:
    assert "telegram.allow_from" in complaint(tmp_path, f"[telegram]\nallow_from = {value}\n")


# --- the webhook -------------------------------------------------------------------------------

WEBHOOK = '[telegram]\nmode = "webhook"\nwebhook_url = "https://bot.example/hook"\n'


@pytest.mark.case("SE-05")
@pytest.mark.parametrize("secret", ["", 'webhook_secret = ""'])
def test_a_webhook_without_a_secret_does_not_start(tmp_path: Path, secret: str) -> None:
    text = complaint(tmp_path, WEBHOOK + secret)

    assert "telegram.webhook_secret: found nothing; webhook mode needs a secret" in text


@pytest.mark.case("SE-05")
def test_a_webhook_without_a_secret_does_not_start_by_environment_either(tmp_path: Path) -> None:
    env = {
        "HEARTHBOT_TELEGRAM__MODE": "webhook",
        "HEARTHBOT_TELEGRAM__WEBHOOK_URL": "https://bot.example/hook",
        "HEARTHBOT_TELEGRAM__WEBHOOK_SECRET": "",
    }

    text = complaint(tmp_path, '[telegram]\nwebhook_secret = "s"\n', env)

    assert "variable HEARTHBOT_TELEGRAM__WEBHOOK_SECRET: telegram.webhook_secret: found" in text


@pytest.mark.case("SE-05")
@pytest.mark.parametrize("secret", ["s", "A-Z_09", "x" * 256])
def test_a_webhook_with_a_secret_starts(tmp_path: Path, secret: str) -> None:
    settings = loaded(tmp_path, WEBHOOK + f'webhook_secret = "{secret}"\n')

    assert settings.telegram.webhook_secret.get_secret_value() == secret


@pytest.mark.parametrize("secret", ["x" * 257, "a b", "ä", "a\\n"])
def test_a_secret_that_telegram_would_not_take_is_refused(tmp_path: Path, secret: str) -> None:
    text = complaint(tmp_path, WEBHOOK + f'webhook_secret = "{secret}"\n')

    assert "telegram.webhook_secret: found a value that is kept secret; allowed: 1 to 256" in text


@pytest.mark.parametrize("url", ["", "http://bot.example/", "https://", "bot.example"])
def test_a_webhook_needs_an_https_address(tmp_path: Path, url: str) -> None:
    toml = f'[telegram]\nmode = "webhook"\nwebhook_secret = "s"\nwebhook_url = "{url}"\n'

    assert "telegram.webhook_url: found" in complaint(tmp_path, toml)


@pytest.mark.parametrize("listen", ["8443", "127.0.0.1", "127.0.0.1:99999", "a b:1", ":80"])
def test_an_address_to_listen_on_is_host_and_port(tmp_path: Path, listen: str) -> None:
    text = complaint(tmp_path, f'[telegram]\nwebhook_listen = "{listen}"\n')

    assert "allowed: host:port" in text


def test_the_end_of_an_address_does_not_matter(tmp_path: Path) -> None:
    settings = loaded(tmp_path, '[telegram]\nbase_url = "http://127.0.0.1:8081/"\n')

    assert settings.telegram.base_url == "http://127.0.0.1:8081"


# --- the example -------------------------------------------------------------------------------


def test_the_example_file_equals_the_model() -> None:
    assert EXAMPLE.read_text(encoding="utf-8") == example_toml(), (
        "renew it: python -m bot.config_example > config.example.toml"
    )


def test_the_example_names_and_explains_every_key() -> None:
    text = example_toml()

    for path, field in KEYS.items():
        assert f"\n#{path[-1]} = " in text
        assert field.description, path
    assert max(len(line) for line in text.splitlines()) <= 100


def test_the_example_loads_as_it_is_and_with_everything_uncommented(tmp_path: Path) -> None:
    text = example_toml()
    uncommented = re.sub(r"^#(?=[a-z])", "", text, flags=re.MULTILINE)

    assert uncommented.count("\n") == text.count("\n")
    assert loaded(tmp_path, text) == Settings()
    assert loaded(tmp_path, uncommented) == Settings()


# --- whatever is written -----------------------------------------------------------------------

_values: st.SearchStrategy[Any] = st.one_of(
    st.text(max_size=20),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.lists(st.text(), max_size=2),
)


@given(path=st.sampled_from(list(KEYS)), text=st.text(max_size=30))
def test_any_variable_either_loads_or_is_refused_by_name(path: tuple[str, ...], text: str) -> None:
    name = "HEARTHBOT_" + "__".join(path).upper()

    said = _refusal(Path("no-such-home"), {name: text})

    assert said is None or name in said or ".webhook_" in said


@given(path=st.sampled_from(list(KEYS)), value=_values)
def test_any_value_either_loads_or_is_refused_by_key(
    tmp_path_factory: pytest.TempPathFactory, path: tuple[str, ...], value: object
) -> None:
    home = tmp_path_factory.getbasetemp()
    section, key = ".".join(path[:-1]), path[-1]
    (home / "config.toml").write_text(f"[{section}]\n{key} = {_toml(value)}\n")

    said = _refusal(home, {})

    assert said is None or f"{section}.{key}" in said or ".webhook_" in said


def _refusal(home: Path, env: Mapping[str, str]) -> str | None:
    try:
        load(home, env)
    except SettingsWrong as error:
        return str(error)
    return None


def _toml(value: object) -> str:
    if isinstance(value, str):
        return '"' + "".join(f"\\U{ord(char):08X}" for char in value) + '"'
    if isinstance(value, list):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return str(value).lower()
