"""Settings are read once, checked at once, and complained about in one go, without secrets."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, SecretStr

from bot.settings.example import EXAMPLE_NAMES, example_toml
from bot.settings.load import holds_secret, load
from bot.settings.schema.settings import KEYS, KEYS_BY_NAME, Settings
from bot.settings.tree import ANY_NAME, tables_of
from memory.records.errors import SettingsWrong

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


WRONG_IN_TWO_TABLES = """
[telegram]
poll_timeout_s = "y"
[[budget.limits]]
scope = "agent"
of = "nobody"
[[tools.rules]]
agent = "sk-12345678abc"
[agents.work]
max_steps = 0
[[bindings]]
channel = "telegram"
chat_id = "*"
agent = "work"
[[bindings]]
channel = "telegram"
chat_id = "2"
agent = "gone"
"""


def test_what_only_a_look_at_several_tables_shows_is_named_with_the_rest(tmp_path: Path) -> None:
    said = complaint(tmp_path, toml=WRONG_IN_TWO_TABLES)

    for part in (
        "telegram.poll_timeout_s: found 'y'",
        "budget.limits[0].period: found nothing",
        "budget.limits[0].of: there is no agent 'nobody'; there are default, work",
        "tools.rules[0].action: found nothing",
        "tools.rules[0].agent: no agent is called a value that looks like a secret",
        "agents.work.max_steps: found 0",
        "agents.bindings[1]: there is no [agents.gone]; there are default, work",
        "agents.bindings[1] can never be reached",
    ):
        assert part in said
    assert said.count("gone") == 1


@pytest.mark.parametrize(
    "toml",
    [
        "agents = 3\ntools = []\nbudget = 'x'",
        "[budget]\nlimits = [1, 'x', []]\n[tools]\nrules = 7\n[agents]\nwork = 1",
        "[agents]\nbindings = 5\n[agents.'not a name!']\nmax_steps = 'x'",
    ],
)
def test_what_is_no_table_at_all_is_named_and_nothing_more(tmp_path: Path, toml: str) -> None:
    said = complaint(tmp_path, toml=toml)

    assert len(set(said.splitlines())) == len(said.splitlines())
    assert "no agent" not in said


RULE_KEYS = "[[prompt.force_include]]\n"


def rule(toml: str) -> str:
    """A rule of the settings that is whole but for what is given."""
    whole = {"patterns": "patterns = ['a']", "skills": "skills = ['a']"}
    return (
        RULE_KEYS + "\n".join(v for k, v in whole.items() if not toml.startswith(k)) + f"\n{toml}"
    )


def binding(channel: str = "telegram", chat: str = "5", agent: str = "work") -> str:
    return f'[[agents.bindings]]\nchannel = "{channel}"\nchat_id = "{chat}"\nagent = "{agent}"\n'


WORK = "[agents.work]\nmax_steps = 3\n"
WEATHER = "[skills.weather]\n"
WEBHOOK = '[telegram]\nmode = "webhook"\nwebhook_url = "https://bot.example/hook"\n'
HIDDEN = "found a value that is kept secret"

REFUSED = [
    ('[telegram]\nack_reaction = "🦖"', "Telegram has no such reaction"),
    # Names that mean nothing, with the nearest that does.
    ('allow_form = ["5"]', "config.toml: allow_form: unknown key; the nearest is slack.allow_from"),
    (
        '[telegram]\nallow_form = ["5"]',
        "telegram.allow_form: unknown key; the nearest is telegram.",
    ),
    (
        '[channels.telegram]\ntoken = "t"',
        "channels.telegram.token: unknown key; the nearest is tele",
    ),
    ("[agents]\nmax_steps = 3", "the nearest is agents.default.max_steps"),
    ("[llm.model]\nname = 3", "llm.model: found a table; allowed: text"),
    ("[telegram]\nzzzzzz = 3", "telegram.zzzzzz: unknown key; [telegram] takes token, base_url"),
    ("[pulse]", "pulse: unknown key; there are the sections llm, telegram"),
    ("_cli_parse_args = true", "_cli_parse_args: unknown key"),  # the library takes it elsewhere
    # What is no value of its kind.
    ("telegram = 3", "telegram: found a value; allowed: a section, [telegram]"),
    (
        "[agents]\ndefault = 1",
        "agents.default: found a value; allowed: a section, [agents.default]",
    ),
    ('[llm]\nmodel = "a"\nx = \n', "config.toml, line 3, column 5: Invalid value"),
    ("[llm]\n[llm]\n", "config.toml, line 2, column 5: Cannot declare"),
    *(
        (f"[agents.default]\ntemperature = {value}", "temperature: found")
        for value in ("nan", "2.01", '"0.4"')
    ),
    # Agents and what is bound to them.
    (
        WORK + binding(agent="play"),
        "agents.bindings[0]: there is no [agents.play]; there are default",
    ),
    (WORK + binding() + binding(), "agents.bindings[1] can never be reached: agents.bindings[0]"),
    (WORK + binding(chat="*") + binding(), "agents.bindings[1] can never be reached"),
    (WORK + binding(channel="*", chat="*") + binding(), "put it in front of that one"),
    (WORK + binding(chat="-1*") + binding(chat="-10*"), "agents.bindings[1] can never be reached"),
    (WORK + binding(channel="mail"), "allowed: telegram, slack, console, *"),
    (WORK + binding(chat="-100:7"), "the id alone, without the channel and without a topic"),
    ("[agents.Work_1]\nmax_steps = 3", "an agent's name is made of a-z"),
    ('[agents.work]\nbudget = ["cheap"]', "allowed are such as"),
    ('[agents.work]\nbudget = ["0.5 tokens a day"]', "whole numbers"),
    ("[agents.work]\nheartbeat = 2", "allowed: 0 (none), or 5 and more"),
    (
        '[agents.work]\nsystem_prompt = "x"\nsystem_prompt_file = "x.md"',
        "system_prompt and system_prompt_file are both set, and only one can count",
    ),
    (
        WORK + binding() + binding().replace("agents.bindings", "bindings"),
        "bindings: unknown key; bindings belong under agents: write [[agents.bindings]]",
    ),
    # The webhook.
    *(
        (WEBHOOK + f'webhook_secret = "{secret}"', f"webhook_secret: {HIDDEN}; allowed: 1 to 256")
        for secret in ("x" * 257, "ä")
    ),
    *(
        (
            f'[telegram]\nmode = "webhook"\nwebhook_secret = "s"\nwebhook_url = "{url}"',
            "telegram.webhook_url: found",
        )
        for url in ("", "http://bot.example/")
    ),
    *(
        (f'[telegram]\nwebhook_listen = "{listen}"', "allowed: host:port")
        for listen in ("8443", "127.0.0.1:99999", "127.0.0.1:65536")
    ),
    # Rules: lists of tables.
    (rule("patterns = []"), ".patterns: found []; allowed: a list, not empty"),
    (rule("patterns = ['a', 3]"), ".patterns[1]: found 3; allowed: text"),
    (rule("patterns = [' ']"), ".patterns[0]: found ' '; an empty pattern fits every message"),
    (rule("skills = 'a'"), ".skills: found 'a'; allowed: a list"),
    (rule(f"instruction = '{'x' * 4001}'"), "…; allowed: text, up to 4000 characters"),
    (rule("auto_invoke = {}"), ".auto_invoke.tool: found nothing; allowed: text, not empty"),
    (rule("auto_invoke = [{ tool = 3 }]"), ".auto_invoke[0].tool: found 3; allowed: text, not"),
    (
        rule("auto_invoke = { tool = 'a', args = { on = 2026-01-02, x = [nan] } }"),
        "but on is a date, which is to be written as text, x[0] is no finite number",
    ),
    (rule("pattern = ['a']"), ".pattern: unknown key; the nearest is prompt.force_include[0].patt"),
    (
        rule("zzz = 1"),
        ".zzz: unknown key; [[prompt.force_include]] takes patterns, skills, plugins",
    ),
    (
        rule("auto_invoke = { tool = 'a', zzz = {} }"),
        ".auto_invoke.zzz: unknown key; prompt.force_include[0].auto_invoke takes tool, args",
    ),
    (
        rule("auto_invoke = [{ tool = 'a', args = { q = '${QUERY}' } }]"),
        ".auto_invoke[0].args.q: a reference like ${NAME} is not read here; set the environment",
    ),
    *(
        (rule(f"patterns = ['{pattern}']"), f".patterns[0]: found {said}")
        for pattern, said in (
            ("(a", "'(a'; not a regular expression that works: missing ), unterminated subpattern"),
            ("a**", "'a**'; not a regular expression that works: multiple repeat at character 3"),
            ("(a{1000}){1000}", "'(a{1000}){1000}'; not a regular expression that works: "),
        )
    ),
    *(
        (
            rule(f"skills = []\n{nothing}"),
            "a rule needs at least one of skills, plugins, instruction",
        )
        for nothing in ("", 'instruction = " "')
    ),
    ('[prompt.force_include]\npatterns = ["a"]', "found a table; allowed: a list of tables"),
    ("[prompt]\nforce_include = [3]", "prompt.force_include[0]: found 3; allowed: a table"),
    ('[[force_include]]\npatterns = ["a"]', "unknown key; the nearest is prompt.force_include"),
    # Tables by name, whose values are secrets.
    (WEATHER + 'env = "SECRETSECRET"', f"weather.env: {HIDDEN}; allowed: a table"),
    (WEATHER + 'env = { A = { B = "SECRETSECRET" } }', f"weather.env.A: {HIDDEN}"),
    (WEATHER + 'env = { A = "SECRETSECRET\\u0000" }', f"weather.env.A: {HIDDEN}"),
    (WEATHER + 'env = { "A B" = "SECRETSECRET" }', f'env."A B": {HIDDEN}; the name'),
    (
        WEATHER + 'evn = { A = "SECRETSECRET" }',
        "weather.evn: unknown key; the nearest is skills.weat",
    ),
    (WEATHER + 'zzz = "SECRETSECRET"', "weather.zzz: unknown key; [skills.weather] takes env"),
    (WEATHER + 'env = { A = "${KEY}" }', "variable HEARTHBOT_SKILLS__WEATHER__ENV__A instead"),
    ('[skills]\nuser_dri = "x"', "skills.user_dri: unknown key; the nearest is skills.user_dir"),
    ('[skills]\nzzz = "SECRETSECRET"', "[skills] takes user_dir, tables like [skills.NAME]"),
    ("[skills.user_dir]\nenv = {}", "skills.user_dir: found a table; allowed: text"),
    ('[skills]\nuser_dir = "skills"', "skills.user_dir: found 'skills'; allowed: a folder that"),
    ("[skills.my_skill]", "skills.my_skill: found 'my_skill'; a skill's name is"),
    ('[skill.weather.env]\nKEY = "SECRETSECRET"', "the nearest is skills.weather.env.KEY"),
]


@pytest.mark.case("CF-03")
@pytest.mark.parametrize(("toml", "said"), REFUSED, ids=[said[:40] for _, said in REFUSED])
def test_what_cannot_be_meant_stops_the_start_with_its_place_and_what_is_allowed(
    tmp_path: Path, toml: str, said: str
) -> None:
    text = complaint(tmp_path, toml)

    assert "1 problem." in text
    assert said in text
    for secret in ("SECRETSECRET", "12345678"):
        assert secret not in text


RULES = "PROMPT__FORCE_INCLUDE"
REFUSED_VARIABLES = [
    ("TELEGRAM_TOKEN", "SECRETSECRET", "unknown; the nearest is HEARTHBOT_TELEGRAM__TOKEN"),
    ("telegram__token", "SECRETSECRET", "unknown; the nearest is HEARTHBOT_TELEGRAM__TOKEN"),
    ("AGENTS__WORK__MAX_STEP", "3", "unknown; the nearest is HEARTHBOT_AGENTS__WORK__MAX_STEPS"),
    ("TELEGRAM__STREAMING", "yes", "telegram.streaming: found 'yes'; allowed: true or false"),
    (
        "SKILLS__WEATHER__EVN",
        "SECRETSECRET",
        "unknown; the nearest is HEARTHBOT_SKILLS__WEATHER__ENV",
    ),
    (
        "SKILL__WEATHER__ENV__KEY",
        "SECRETSECRET",
        "unknown; the nearest is HEARTHBOT_SKILLS__WEATHER",
    ),
    ("SKILLS__WEATHER__ENV__", "SECRETSECRET", "unknown"),
    ("SKILLS__A.B__ENV__A", "SECRETSECRET", "skills.\"a.b\": found 'a.b'; a skill's name is"),
    ("SKILLS__A__ENV__A.B", "SECRETSECRET", f'skills.a.env."A.B": {HIDDEN}; the name'),
    ("SKILLS__WEATHER__ENV", "SECRETSECRET", "skills.weather.env: not JSON"),
    (RULES, '[{"patterns": ["a"],}]', "prompt.force_include: not JSON: "),
    (RULES, "deploy", "prompt.force_include: not JSON: Expecting value at character 1"),
    (RULES, "[" * 100_000, "prompt.force_include: is nested too deeply"),
    (RULES, "[" + "9" * 5000 + "]", "prompt.force_include: holds a number with too many digits"),
    (
        RULES,
        '[{"patterns": ["("], "skills": ["a"]}]',
        "prompt.force_include[0].patterns[0]: found '('",
    ),
    (
        RULES,
        '[{"patterns": ["a"], "auto_invoke": {"tool": "t", "args": {"a": "\\ud800"}}}]',
        "prompt.force_include[0].auto_invoke.args: found a table; allowed: texts, numbers, true",
    ),
]


@pytest.mark.parametrize(("name", "value", "said"), REFUSED_VARIABLES)
def test_a_variable_that_cannot_be_meant_stops_the_start_by_its_name(
    tmp_path: Path, name: str, value: str, said: str
) -> None:
    text = complaint(tmp_path, env={f"HEARTHBOT_{name}": value})

    assert f"environment variable HEARTHBOT_{name}: {said}" in text
    assert "SECRETSECRET" not in text


@pytest.mark.parametrize("work", ["[agents.work]\n", ""])
def test_bindings_may_stand_at_the_top_too(tmp_path: Path, work: str) -> None:
    toml = binding(agent="work" if work else "default").replace("agents.bindings", "bindings")

    [rule] = loaded(tmp_path, work + toml).agents.rules()

    assert (rule.channel, rule.chat_id) == ("telegram", "5")


def test_a_file_that_is_no_text_or_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b"a = '\xff'")
    with pytest.raises(SettingsWrong, match="is not UTF-8 text"):
        load(tmp_path, {})

    (tmp_path / "config.toml").unlink()
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(SettingsWrong, match="cannot be read: Is a directory"):
        load(tmp_path, {})


# --- secrets in the wrong place ----------------------------------------------------------------


@pytest.mark.case("CF-01")
@pytest.mark.threat("T19")
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
@pytest.mark.parametrize("entry", ["99", '" 99 "', '" telegram:99"'])
def test_a_number_is_the_same_person_however_it_is_written(tmp_path: Path, entry: str) -> None:
    settings = loaded(tmp_path, f"[telegram]\nallow_from = [{entry}]\n")

    assert settings.telegram.allow_from == (99,)


@pytest.mark.case("CF-05", "SE-01")
@pytest.mark.parametrize(
    ("entry", "hint"),
    [
        ('"@name"', "names can change hands"),
        ('"slack:T1:U1"', "names can change hands"),
        ('"９９"', "names can change hands"),
        ('"*"', 'access.policy = "open"'),
        ('""', "lets nobody in"),
        ("0", "a user's number"),
        ("true", "a user's number"),
        ("99.0", "a user's number"),
    ],
)
@pytest.mark.threat("T1")
def test_what_is_no_number_is_refused_with_a_hint(tmp_path: Path, entry: str, hint: str) -> None:
    toml = f"[telegram]\nallow_from = [1, {entry}]\n"
    text = complaint(tmp_path, toml)

    assert "telegram.allow_from[1]: found" in text
    assert hint in text


@pytest.mark.case("SE-03")
@pytest.mark.parametrize("toml", ["", "[telegram]", "[telegram]\nallow_from = []"])
@pytest.mark.threat("T2")
def test_an_empty_or_missing_list_lets_nobody_in(tmp_path: Path, toml: str) -> None:
    settings = loaded(tmp_path, toml)

    assert settings.telegram.allow_from == ()
    assert settings.access.policy == "pairing"


@pytest.mark.case("SE-03")
@pytest.mark.parametrize("value", ['[""]', '""', '"*"', "99", "false", "{}"])
@pytest.mark.threat("T2")
def test_a_list_that_is_none_is_refused_rather_than_read_as_everyone(
    tmp_path: Path, value: str
) -> None:
    assert "telegram.allow_from" in complaint(tmp_path, f"[telegram]\nallow_from = {value}\n")


# --- the webhook -------------------------------------------------------------------------------


@pytest.mark.case("SE-05")
@pytest.mark.parametrize("secret", ["", 'webhook_secret = ""'])
@pytest.mark.threat("T4")
def test_a_webhook_without_a_secret_does_not_start(tmp_path: Path, secret: str) -> None:
    text = complaint(tmp_path, WEBHOOK + secret)

    assert "telegram.webhook_secret: found nothing; webhook mode needs a secret" in text


@pytest.mark.case("SE-05")
@pytest.mark.threat("T4")
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


# --- rules: lists of tables ---------------------------------------------------------------------

RULE = """
    [[prompt.force_include]]
    patterns = ['\\bdeploy\\b', "^ship it"]
    skills = ["code-review"]
    plugins = ["github"]
    instruction = "Ask first."
    auto_invoke = { tool = "search_memories", args = { query = "{{query}}", deep = [1, true] } }
"""


def test_a_rule_is_read_with_all_that_it_can_hold(tmp_path: Path) -> None:
    (rule,) = loaded(tmp_path, RULE).prompt.force_include

    assert rule.patterns == (r"\bdeploy\b", "^ship it")
    assert rule.skills == ("code-review",)
    assert rule.plugins == ("github",)
    assert rule.instruction == "Ask first."
    assert [call.tool for call in rule.auto_invoke] == ["search_memories"]
    assert rule.auto_invoke[0].args == {"query": "{{query}}", "deep": [1, True]}


def test_tools_to_invoke_may_be_one_table_or_several(tmp_path: Path) -> None:
    toml = """
        [[prompt.force_include]]
        patterns = ["a"]
        [[prompt.force_include.auto_invoke]]
        tool = "one"
        [[prompt.force_include.auto_invoke]]
        tool = "two"
        args.deep.er = 1.5
    """

    (rule,) = loaded(tmp_path, toml).prompt.force_include

    assert [(call.tool, call.args) for call in rule.auto_invoke] == [
        ("one", {}),
        ("two", {"deep": {"er": 1.5}}),
    ]


def test_rules_from_the_environment_are_json_and_replace_those_of_the_file(tmp_path: Path) -> None:
    written = '[{"patterns": ["b"], "auto_invoke": {"tool": "t", "args": {"a": [null, {"b": 1}]}}}]'

    settings = loaded(tmp_path, RULE, {"HEARTHBOT_PROMPT__FORCE_INCLUDE": written})

    (rule,) = settings.prompt.force_include
    assert rule.patterns == ("b",)
    assert rule.auto_invoke[0].args == {"a": [None, {"b": 1}]}


# --- tables by name ----------------------------------------------------------------------------


def test_a_skill_gets_the_variables_of_its_table(tmp_path: Path) -> None:
    toml = """
        [skills]
        user_dir = "~/.agents/skills"
        [skills.weather.env]
        WEATHER_API_KEY = "SECRETSECRET"
        [skills.x-2]
        env = { lower_case = "" }
    """

    skills = loaded(tmp_path, toml).skills

    assert skills.user_dir == "~/.agents/skills"
    assert {name: dict(skill.env) for name, skill in skills.by_name.items()} == {
        "weather": {"WEATHER_API_KEY": SecretStr("SECRETSECRET")},
        "x-2": {"lower_case": SecretStr("")},
    }


def test_a_skills_variables_can_come_from_the_environment_one_by_one_or_as_json(
    tmp_path: Path,
) -> None:
    toml = '[skills.my-skill.env]\nKEPT = "file"\nONE = "file"\n'

    skills = loaded(
        tmp_path,
        toml,
        {
            "HEARTHBOT_SKILLS__MY_SKILL__ENV__ONE": "env",
            "HEARTHBOT_SKILLS__MY_SKILL__ENV__two__2": "env",
            "HEARTHBOT_SKILLS__OTHER__ENV__B": "alone",
            "HEARTHBOT_SKILLS__OTHER__ENV": '{"A": "json", "B": "json"}',
        },
    ).skills

    plain = {
        name: {key: value.get_secret_value() for key, value in skill.env.items()}
        for name, skill in skills.by_name.items()
    }
    assert plain == {
        "my-skill": {"KEPT": "file", "ONE": "env", "two__2": "env"},
        "other": {"A": "json", "B": "alone"},
    }


def test_a_skills_key_is_a_secret_everywhere(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"

    settings = loaded(tmp_path, '[skills.weather.env]\nKEY = "SECRETSECRET"\n')

    assert settings.secrets() == ("SECRETSECRET",)
    assert holds_secret(file)
    shown = f"{settings} {settings!r} {settings.model_dump()} {settings.skills.by_name}"
    assert "SECRETSECRET" not in shown
    file.write_text("[skills.weather.env]\n")
    assert not holds_secret(file)


# --- new keys ----------------------------------------------------------------------------------


def test_what_is_too_deep_or_too_long_to_read_is_told(tmp_path: Path) -> None:
    assert "nested too deeply" in complaint(tmp_path, "a = " + "[" * 100 + "]" * 100)
    assert "too many digits" in complaint(tmp_path, "[llm]\nwindow = " + "9" * 5000)


# --- the example -------------------------------------------------------------------------------


def test_the_example_file_equals_the_model() -> None:
    assert EXAMPLE.read_text(encoding="utf-8") == example_toml(), (
        "renew it: python -m bot.settings.example > config.example.toml"
    )


def tables(model_keys: Mapping[tuple[str, ...], Any]) -> Iterator[type[BaseModel]]:
    return (table for field in model_keys.values() if (table := tables_of(field)))


def test_the_example_shows_every_table_that_can_be_added_with_every_key(tmp_path: Path) -> None:
    text = example_toml()
    indented = re.sub(r"^#(?=  )", "", text, flags=re.MULTILINE)

    settings = loaded(tmp_path, indented)

    (rule,) = settings.prompt.force_include
    assert all(getattr(rule, name) for name in type(rule).model_fields)
    assert rule.auto_invoke[0].args == {"query": "{{query}}"}
    assert set(settings.skills.by_name) == {"weather"}
    assert settings.skills.by_name["weather"].env
    for path in KEYS_BY_NAME:
        assert path[: path.index(ANY_NAME)] in EXAMPLE_NAMES
        assert f"\n#  {path[-1]} = " in text
    for table in tables(KEYS):
        for name, field in table.model_fields.items():
            assert f"\n#  {name} = " in text
            assert field.description, name


def test_every_rule_and_skill_of_the_example_can_be_taken_over_by_hand(tmp_path: Path) -> None:
    text = example_toml()
    everything = re.sub(r"^#(?=[a-z]|  )", "", text, flags=re.MULTILINE)
    without = re.sub(
        r"^(force_include|rules|limits|rates|bindings) = \[\]\n", "", everything, flags=re.M
    )

    settings = loaded(tmp_path, without)

    assert len(settings.prompt.force_include) == len(settings.tools.rules) == 1
    assert len(settings.budget.limits) == len(settings.budget.rates) == 1
    assert [*settings.mcp.by_name] == ["memory"]
    assert [*settings.agents.by_name] == ["default", "work"]
    assert settings.history == Settings().history


# --- whatever is written -----------------------------------------------------------------------

_values: st.SearchStrategy[Any] = st.one_of(
    st.text(max_size=20),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.lists(st.text(), max_size=2),
)

_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["patterns", "skills", "instruction", "auto_invoke", "tool", "args"])
            | st.text(max_size=5),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
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


@given(value=_json | st.lists(_json, max_size=2))
def test_any_json_either_is_rules_or_is_refused_by_name(value: object) -> None:
    name = "HEARTHBOT_PROMPT__FORCE_INCLUDE"

    said = _refusal(Path("no-such-home"), {name: json.dumps(value)})

    assert said is None or f"environment variable {name}: prompt.force_include" in said


@given(name=st.text(max_size=12), value=_json)
def test_whatever_a_skills_table_holds_its_values_are_never_shown(name: str, value: object) -> None:
    secret = "SECRETSECRET"
    env = json.dumps({name: value, "KEY": [secret], "OTHER": {"deep": secret}})

    said = _refusal(Path("no-such-home"), {"HEARTHBOT_SKILLS__WEATHER__ENV": env})

    assert said is not None
    assert secret not in said
    assert "skills.weather.env.KEY: found a value that is kept secret" in said


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
