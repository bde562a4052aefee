"""What is seen in Slack, and at a terminal. Called by `docs.make_pictures`."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from bot.lab.model_script import ScriptedStep, make_call
from bot.lab.slack import FakeSlack
from docs.pictures.drawing import EDGE, picture
from docs.pictures.lines import MONO_EM, MONO_SIZE
from docs.pictures.processes import COLUMNS, at_a_terminal, surroundings
from docs.pictures.seen import actions, home_blocks, post
from docs.pictures.shapes import Aside, Item, Panel, Shell
from docs.pictures.stage import (
    ANN,
    MONDAY,
    SLACK_ANN,
    TEAM,
    ZONE,
    Stage,
    StageClock,
    slack_env,
    slack_reads,
    staged,
)

WATERING = "- tomatoes: every evening\n- roses: Monday, Thursday\n- herbs: every second day\n"


# --- Slack ---------------------------------------------------------------------------------------

GARDEN, APP = "C0GARDEN", "hearth"
USED = {"prompt_tokens": 3200, "completion_tokens": 60, "total_tokens": 3260}
"""Told by the model, so that the picture does not change with each word of a prompt."""


async def slack(folder: Path) -> str:
    """A question in a channel, `/hearth status`, and the home tab."""
    async with FakeSlack() as fake, staged(folder, **slack_env(fake)) as stage:
        fake.add_user(user=SLACK_ANN)
        fake.add_channel(channel=GARDEN, name="garden")
        clock = StageClock(MONDAY)
        async with stage.serving(clock) as bot:
            await bot.access.approve(f"slack:{TEAM}:{SLACK_ANN}")
            await bot.access.approve(f"slack:{TEAM}.{GARDEN}")
            await fake.until(fake.sockets, timeout_s=20)
            clock.jump_to(MONDAY + timedelta(hours=1, seconds=20))
            thread = await _thread(fake, stage)
            typed = await _typed(fake, stage)
            home = await _home(fake)
    return picture(
        "Hearthbot in Slack: an answer in a thread, slash commands, and the home tab",
        [
            Panel(title="# garden", items=tuple(thread), is_white=True),
            Panel(title="hearth: Messages", items=tuple(typed), is_white=True),
            Panel(title="hearth: Home", items=tuple(home), is_white=True),
        ],
    )


async def _thread(fake: FakeSlack, stage: Stage) -> list[Item]:
    await stage.put("watering.md", WATERING)
    call = make_call("read_file", {"path": "watering.md"})
    stage.model.step(ScriptedStep(calls=(call,), usage=USED))
    text = (
        "Today is Monday, so:\n\n| what | when |\n|---|---|\n| tomatoes | this evening |\n"
        "| roses | this evening |\n| herbs | tomorrow again |\n\nIt all stands in `watering.md`."
    )
    stage.model.step(ScriptedStep(text=text, usage=USED))
    fake.post(text="<@U0LABBOT> what needs water today?", channel=GARDEN, user=SLACK_ANN)
    await slack_reads(fake, GARDEN, "tomatoes")
    fake.command(text="status", channel=GARDEN, user=SLACK_ANN)
    await slack_reads(fake, GARDEN, "Model:")
    question, answer, status = fake.chat(GARDEN)
    return [
        post(question, app=APP),
        post(answer, app=APP, is_reply=True),
        Aside(text="Ann types /hearth status"),
        post(status, app=APP),
    ]


async def _typed(fake: FakeSlack, stage: Stage) -> list[Item]:
    direct = fake.direct(SLACK_ANN)
    stage.model.step(ScriptedStep(text="*Herbs*, and the tomatoes again.", usage=USED))
    fake.post(text="And tomorrow?", user=SLACK_ANN)
    answer = await slack_reads(fake, direct, "Herbs")
    question = fake.chat(direct)[0]
    fake.command(text="remind tomorrow at 7pm water the herbs", user=SLACK_ANN)
    card = await slack_reads(fake, direct, "water the herbs")
    (save,) = (one for one in actions(card) if one["text"]["text"] == "Save")
    fake.press(action_id=save["action_id"], channel=direct, ts=card.ts, user=SLACK_ANN)
    await fake.until(lambda: fake.ephemeral(SLACK_ANN), timeout_s=20)
    (saved,) = fake.ephemeral(SLACK_ANN)
    return [
        post(question, app=APP),
        post(answer, app=APP),
        Aside(text="Ann types /hearth remind tomorrow at 7pm water the herbs"),
        post(card, app=APP, pressed="Save"),
        post(saved, app=APP, only_you=True),
    ]


async def _home(fake: FakeSlack) -> list[Item]:
    fake.open_home(user=SLACK_ANN)
    await fake.until(lambda: fake.home(SLACK_ANN), timeout_s=20)
    view = fake.home(SLACK_ANN)
    assert view is not None
    return list(home_blocks(view))


# --- the command line ----------------------------------------------------------------------------


async def schedule(folder: Path) -> str:
    """What would fire in three days, on the command line of the real process."""
    env = {
        **surroundings(),
        "HEARTHBOT_HOME": str(folder / "home"),
        "HEARTHBOT_TELEGRAM__TOKEN": "123456:TEST",
        "TZ": ZONE,
    }
    for quiet in (
        ("access", "approve", f"telegram:{ANN}"),
        ("schedule", "add", "every weekday at 8", "What is due?", "--do", "--name", "day", "--yes"),
        ("schedule", "add", "every Thursday at 19:00", "put the bins out", "--yes"),
        ("schedule", "add", "0 21 * * *", "take the pill", "--yes"),
    ):
        await at_a_terminal(quiet, env)
    asked = ("schedule", "simulate", "2d", "--from", "2027-08-04T00:00")
    printed = await at_a_terminal(asked, env)
    shell = Shell(heading=" ".join(("hearthbot", *asked)), lines=printed)
    width = int(COLUMNS * MONO_SIZE * MONO_EM) + 2 * EDGE + 24
    panel = Panel(title="What would fire", items=(shell,), width=width)
    return picture("What the schedule would do in two days, told by a command", [panel])
