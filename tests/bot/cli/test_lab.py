"""The lab's settings: the person's own, with stand-ins in place of all that is elsewhere."""

from __future__ import annotations

from pathlib import Path

from bot.cli.terminal.lab import LAB_MODEL, LAB_TOKEN, rehearsed
from bot.settings.load import load

OWN = """
[llm]
api_base = "http://127.0.0.1:9/v1"
model = "some-model"
fallbacks = ["groq/one"]
cheap_model = "groq/two"
transcription_model = "groq/whisper-large-v3"
[slack]
bot_token = "xoxb-real"
app_token = "xapp-real"
[agents.default]
denied_tools = ["exec"]
max_steps = 3
[agents.work]
model = "work-model"
fallbacks = ["groq/three"]
[[agents.bindings]]
channel = "telegram"
chat_id = "-100"
agent = "work"
[mcp.notes]
command = "notes-server"
[web]
search = "brave"
search_key = "brave-key"
"""


def test_the_lab_has_stand_ins_for_all_that_is_elsewhere_and_the_rest_as_it_is(
    tmp_path: Path,
) -> None:
    tmp_path.joinpath("config.toml").write_text(OWN)

    lab = rehearsed(load(tmp_path, {}), telegram="http://t", model="http://m/v1")

    assert (lab.llm.model, lab.llm.api_base) == (LAB_MODEL, "http://m/v1")
    assert (lab.llm.fallbacks, lab.llm.cheap_model, lab.llm.transcription_model) == ((), "", "")
    assert lab.telegram.base_url == "http://t"
    assert lab.telegram.token.get_secret_value() == LAB_TOKEN
    assert not lab.slack.bot_token.get_secret_value()
    assert not lab.slack.app_token.get_secret_value()
    assert not lab.mcp.by_name
    assert lab.web.search == "off"
    assert {name: (one.model, one.fallbacks) for name, one in lab.agents.by_name.items()} == {
        "default": ("", ()),
        "work": ("", ()),
    }
    assert lab.agents.by_name["default"].denied_tools == ("exec", "web_*")
    assert lab.agents.default.max_steps == 3
    assert lab.agents.bindings[0].agent == "work"
