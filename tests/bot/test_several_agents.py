"""Several agents through the whole bot: each with its chats, its words, its model, its tools, its
budget and its list; the memory is the person's and shared."""

from __future__ import annotations

from typing import Any

import pytest

from bot.app.jobs import beat_minutes
from bot.settings.load import load
from tests.bot.kit import GROUP, OWNER, Rig, eventually

TOML = """
[agents.work]
system_prompt = "You are the office clerk."
model = "openai/work-model"
temperature = 0.1
max_steps = 2
denied_tools = ["web_*"]
heartbeat = 30

[[agents.bindings]]
channel = "telegram"
chat_id = "5"
agent = "work"

[agents.default]
system_prompt = "You are at home."
"""


def settings(rig: Rig, toml: str = TOML) -> None:
    rig.home.config.write_text(toml)
    rig.home.config.chmod(0o600)


def system(request: dict[str, Any]) -> str:
    return str(request["messages"][0]["content"])


def offered(request: dict[str, Any]) -> set[str]:
    return {tool["function"]["name"] for tool in request.get("tools", ())}


@pytest.mark.parametrize(
    ("toml", "minutes"),
    [
        ("", 30),
        ("[agents.default]\nheartbeat = 10", 10),
        ("[heartbeat]\nevery_minutes = 0\n[agents.default]\nheartbeat = 10", 10),
        ("[heartbeat]\nenabled = false\n[agents.default]\nheartbeat = 10", 0),
    ],
)
def test_the_heartbeat_of_default_may_be_set_with_the_agent(
    rig: Rig, toml: str, minutes: int
) -> None:
    settings(rig, toml)

    assert beat_minutes(load(rig.home.path, {}), "default") == minutes


async def test_each_agent_answers_in_its_chats_as_it_is_set_up(rig: Rig) -> None:
    settings(rig)
    async with rig.running(OWNER) as bot:
        rig.says("please look up the weather in the web", by=OWNER)
        await eventually(lambda: rig.wrote(1))
        await rig.quiet(bot)
        await bot.access.approve(f"telegram:{GROUP}")
        rig.says("@hearth_lab_bot look up the weather in the web", chat=GROUP)
        await eventually(lambda: rig.wrote(1, chat=GROUP))

    work, home = rig.model.requests
    assert "You are the office clerk." in system(work)
    assert "You are at home." in system(home)
    assert (work["model"], home["model"]) == ("work-model", "lab-model")
    assert (work["temperature"], home["temperature"]) == (0.1, 0.4)
    assert not {name for name in offered(work) if name.startswith("web_")}
    assert {name for name in offered(home) if name.startswith("web_")}


async def test_status_and_model_say_which_agent_and_model_answer_here(rig: Rig) -> None:
    settings(rig)
    async with rig.running(OWNER):
        rig.says("/status")
        await eventually(lambda: rig.wrote(1))
        rig.says("/model")
        await eventually(lambda: rig.wrote(2))
        rig.says("/model openai/lab-model")
        await eventually(lambda: rig.wrote(3))
        rig.says("/model default")
        await eventually(lambda: rig.wrote(4))

    status, model, chosen, back = rig.texts()
    assert "Agent in this chat: work" in status
    assert "Model in this chat: openai/work-model" in status
    assert "openai/work-model answers here: the usual one." in model
    assert "openai/lab-model answers here" in chosen
    assert "openai/work-model answers here: the usual one." in back


async def test_what_an_agent_costs_is_its_own_and_bounded_by_its_budget(rig: Rig) -> None:
    settings(rig, TOML.replace("heartbeat = 30", 'budget = ["10 tokens a day"]'))
    async with rig.running(OWNER) as bot:
        rig.says("hello")
        await eventually(lambda: rig.wrote(1))
        await rig.quiet(bot)

    assert rig.model.requests == []
    assert "budget" in rig.texts()[0]


async def test_an_agent_looks_at_its_own_list(rig: Rig) -> None:
    settings(rig)
    listed = rig.home.workspace / "agents" / "work" / "HEARTBEAT.md"
    listed.parent.mkdir(parents=True)
    listed.write_text("- see whether the printer is on\n")
    async with rig.running(OWNER) as bot:
        rig.says("hello")
        await eventually(lambda: rig.wrote(1))
        await rig.quiet(bot)
        rig.says("/heartbeat on")
        await eventually(lambda: rig.wrote(2))
        rig.says("/heartbeat now work")
        await eventually(lambda: len(rig.model.requests) == 2)
        await rig.quiet(bot)

    assert "The heartbeat of the agent work is on" in rig.texts()[1]
    assert "agents/work/HEARTBEAT.md" in rig.texts()[1]
    beat = rig.model.requests[-1]
    assert "see whether the printer is on" in str(beat["messages"])
    assert "You are the office clerk." in system(beat)
    agents = {row[0] for row in rig.rows("select agent from usage")}
    assert agents == {"work"}


async def test_a_fact_that_was_told_to_one_agent_is_known_to_the_other(rig: Rig) -> None:
    settings(rig)
    rig.model.call("store_fact", {"text": "Ann plays the cello.", "category": "background"})
    async with rig.running(OWNER) as bot:
        rig.says("remember that Ann plays the cello", by=OWNER)
        await eventually(lambda: rig.wrote(1))
        await rig.quiet(bot)
    settings(rig, TOML.replace('chat_id = "5"', 'chat_id = "6"'))
    async with rig.running(OWNER):
        rig.says("/new")
        await eventually(lambda: rig.wrote(2))
        rig.says("which instrument does Ann play, the cello?")
        await eventually(lambda: rig.wrote(3))

    last = rig.model.requests[-1]
    assert "You are at home." in system(last)
    assert "Ann plays the cello." in str(last["messages"])
