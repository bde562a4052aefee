"""The settings of Slack: refused with what is missing and where to find it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.settings.load import load
from bot.settings.schema.settings import Settings
from memory.records.errors import SettingsWrong

TOKENS = 'bot_token = "xoxb-1-abc"\napp_token = "xapp-1-abc"\n'


def loaded(folder: Path, toml: str) -> Settings:
    (folder / "config.toml").write_text(f"[slack]\n{toml}")
    return load(folder, {})


def complaint(folder: Path, toml: str) -> str:
    with pytest.raises(SettingsWrong) as wrong:
        loaded(folder, toml)
    return str(wrong.value)


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ('bot_token = "xapp-1-abc"', "slack.bot_token: found a value that is kept secret; allowed"),
        ('bot_token = "xoxb-1-abc"', "Socket Mode needs the app-level token (xapp-…)"),
        ('bot_token = "xoxb-1"\napp_token = "xoxb-1"', "which begins with xapp-"),
        ('mode = "http"\nbot_token = "xoxb-1"', "or anybody could send forged events"),
        ('mode = "http"\nbot_token = "xoxb-1"\nsigning_secret = " "', "forged events"),
        (TOKENS + 'listen = "3000"', "slack.listen: found '3000'; allowed: host:port"),
        (TOKENS + 'allow_from = ["ann"]', "names can change hands"),
        (TOKENS + 'allow_from = ["*"]', 'set access.policy = "open"'),
        (TOKENS + 'group_policy = "always"', "allowed: mention | all | off"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_is_allowed(
    tmp_path: Path, toml: str, said: str
) -> None:
    assert said in complaint(tmp_path, toml)


@pytest.mark.case("SE-03")
@pytest.mark.parametrize("entry", ['""', '" "'])
def test_an_empty_entry_is_refused_rather_than_read_as_everybody(
    tmp_path: Path, entry: str
) -> None:
    assert "an empty entry lets nobody in" in complaint(tmp_path, f"allow_from = [{entry}]")


def test_a_token_never_stands_in_a_complaint(tmp_path: Path) -> None:
    text = complaint(tmp_path, 'bot_token = "xoxp-SECRETSECRET"\napp_token = "SECRETSECRET"')

    assert "SECRETSECRET" not in text


@pytest.mark.parametrize("entry", ["T01:U02", " slack:T01:W02 "])
def test_a_member_is_named_by_workspace_and_id(tmp_path: Path, entry: str) -> None:
    settings = loaded(tmp_path, f'allow_from = ["{entry}"]').slack

    assert settings.allow_from == (entry.strip().removeprefix("slack:"),)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/api", "http://127.0.0.1:9/api/"])
def test_the_root_of_the_web_api_ends_in_a_slash(tmp_path: Path, url: str) -> None:
    assert loaded(tmp_path, f'base_url = "{url}"').slack.base_url == "http://127.0.0.1:9/api/"
