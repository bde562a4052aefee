"""What is seen in Telegram: a first meeting and a kill, an answer that grows and a card, a reminder
and a heartbeat. Called by `docs.make_pictures`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from aiohttp import web

from bot.lab.model import ScriptedModel
from bot.lab.telegram import FakeTelegram
from bot.lab.telegram_state import SeenInTelegram
from docs.pictures.drawing import picture
from docs.pictures.processes import Process
from docs.pictures.seen import bubble
from docs.pictures.shapes import Aside, Bubble, Item, Panel, Shell
from docs.pictures.stage import (
    MONDAY,
    ZONE,
    AnnInTelegram,
    Stage,
    StageClock,
    staged,
    telegram_env,
)

CODE = "K7QMH2WX"
"""Shown for the one that a run made by chance."""

LIST = "- In the evening: is rain coming? The washing may be out.\n"


# --- a first meeting, a tool, and a kill: the real process ---------------------------------------


async def conversation(folder: Path) -> str:
    """A first meeting, a tool at work, and a kill in the middle of an answer."""
    home = folder / "home"
    async with FakeTelegram() as telegram, ScriptedModel() as model:
        process, ann = Process(home, telegram, model), AnnInTelegram(telegram)
        bot = await process.start()
        ann.says("Hello?")
        code = re.findall(r"code: (\w+)", (await ann.reads("code")).text)[0]
        met: list[Item] = [_bubble(seen, {code: CODE}) for seen in ann.sees()]
        met.append(_shell(await process.command(f"hearthbot access approve {code}"), {code: CODE}))

        model.call(
            "write_file",
            {"path": "files/packing.md", "content": "- passports\n- charger\n- raincoat\n"},
        )
        model.say("Done: `files/packing.md` has **passports, charger, raincoat**.")
        before = len(ann.sees())
        ann.says("Start a packing list: passports, charger, raincoat")
        await ann.reads("Done:")
        packed = home / "workspace" / "files" / "packing.md"
        content = await asyncio.to_thread(packed.read_text, "utf-8")
        used: list[Item] = [bubble(seen) for seen in ann.sees()[before:]]
        used.append(_file("workspace/files/packing.md", content))

        killed = await _killed(process, bot, ann, model)
    return picture(
        "A first meeting in Telegram, a tool at work, and a kill in the middle of an answer",
        [
            Panel(title="A first meeting", items=tuple(met)),
            Panel(title="A tool at work", items=tuple(used)),
            Panel(title="Killed in the middle of an answer", items=tuple(killed)),
        ],
    )


async def _killed(
    process: Process,
    bot: asyncio.subprocess.Process,
    ann: AnnInTelegram,
    model: ScriptedModel,
) -> list[Item]:
    model.say("This answer is never seen.", wait_s=30)
    asked, before = len(model.requests), len(ann.sees())
    ann.says("What is still missing for rain?")
    await model.until(lambda: len(model.requests) > asked, timeout_s=20)
    bot.kill()
    await bot.wait()
    ann.says("And for the beach?")
    one, two = (bubble(seen) for seen in ann.sees()[before:])
    model.say("An umbrella. The raincoat is on the list.")
    model.say("Sun cream and a hat.")
    bot = await process.start()
    await ann.reads("Sun cream")
    answers = [bubble(seen) for seen in ann.sees()[before + 2 :]]
    bot.terminate()
    await bot.wait()
    return [
        one,
        Aside(text="kill -9, while the model is being asked", alarm=True),
        two,
        Aside(text="Started again: both are answered, in order, once"),
        *answers,
    ]


# --- an answer that grows, and a card ------------------------------------------------------------


@asynccontextmanager
async def _forecast(go: asyncio.Event) -> AsyncIterator[str]:
    """A page of the web, on loopback, that comes when it is let go; its address."""

    async def page(_: web.BaseRequest) -> web.Response:
        await go.wait()
        return web.Response(text="Thursday: sun until three, then rain.", content_type="text/plain")

    runner = web.ServerRunner(web.Server(page))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def approval(folder: Path) -> str:
    """An answer that grows while a tool runs, a card with buttons, and what its tap did."""
    go = asyncio.Event()

    def shown(seen: list[SeenInTelegram], *, pressed: str = "") -> tuple[Item, ...]:
        return tuple(_bubble(one, {f"http://{host}": "weather.example"}, pressed) for one in seen)

    async with FakeTelegram() as telegram, _forecast(go) as host:
        env = telegram_env(telegram) | {"HEARTHBOT_WEB__ALLOWED_HOSTS": host}
        async with staged(folder, **env) as stage, stage.serving(StageClock(MONDAY)) as bot:
            ann = AnnInTelegram(telegram)
            await bot.access.approve(await _code_for(ann))
            await _in_her_zone(ann)
            before = len(ann.sees())
            _script_the_picnic(stage, host)
            ann.says(f"Will it rain on Thursday? See http://{host}/forecast and watch it for me.")
            await ann.reads("reading a web page")
            grows = ann.sees()[before:]
            go.set()
            await ann.reads("May I")
            await ann.no_longer_reads("reading a web page")
            asks = ann.sees()[before:]
            await ann.presses("Allow once", on="May I")
            await ann.reads("from now on")
            done = ann.sees()[before:]
    return picture(
        "An answer grows in Telegram, a card asks before something is changed, and a tap allows it",
        [
            Panel(title="While it works", items=shown(grows)),
            Panel(title="It asks before it acts", items=shown(asks, pressed="Allow once")),
            Panel(title="After the tap", items=shown(done)),
        ],
    )


ANNOUNCED = (
    "I open the page that you named and look for Thursday hour by hour: a picnic at noon is "
    "another thing than one at four. Then I put it on the list of what I look at by myself, so "
    "that you hear of it when it changes, and of nothing else."
)
"""Longer than what is held back of each answer until it is clear that it is no hidden thought."""


def _script_the_picnic(stage: Stage, host: str) -> None:
    model = stage.model
    model.call(
        "web_fetch",
        {"url": f"http://{host}/forecast"},
        text=ANNOUNCED,
    )
    model.call(
        "write_file",
        {"path": "HEARTBEAT.md", "content": "- Thursday: rain after three?\n"},
    )
    model.say(
        "**Sun until three, then rain.** So rather noon than four o'clock.\n\n"
        "I look at it again from now on, and write to you if it changes."
    )


# --- what comes by itself ------------------------------------------------------------------------


async def evening(folder: Path) -> str:
    """A reminder, and what the heartbeat finds in an evening."""
    async with FakeTelegram() as telegram, staged(folder, **telegram_env(telegram)) as stage:
        clock = StageClock(MONDAY)
        async with stage.serving(clock) as bot:
            ann = AnnInTelegram(telegram)
            await bot.access.approve(await _code_for(ann))
            await _in_her_zone(ann)
            reminded = await _reminder(ann, clock)
            looked = await _heartbeat(stage, ann, clock)
    return picture(
        "What comes by itself: a reminder, and a heartbeat that speaks up once",
        [
            Panel(title="A reminder", items=tuple(reminded)),
            Panel(title="The heartbeat", items=tuple(looked)),
        ],
    )


async def _reminder(ann: AnnInTelegram, clock: StageClock) -> list[Item]:
    before = len(ann.sees())
    ann.says("/remind tomorrow at 5pm call Bob about the boat")
    asked = await ann.reads("call Bob")
    items: list[Item] = [bubble(ann.sees()[before]), bubble(asked, pressed="Save")]
    await ann.presses("Save", on="call Bob")
    await ann.reads("Saved as")
    clock.jump_to(MONDAY + timedelta(hours=22, minutes=30))
    due = await ann.reads_card("call Bob", button="Done")
    items += [Aside(text="Tuesday, 17:00"), bubble(due, pressed="Done")]
    await ann.presses("Done", on="call Bob")
    await ann.reads("Done.")
    return items


async def _heartbeat(stage: Stage, ann: AnnInTelegram, clock: StageClock) -> list[Item]:
    await stage.put("HEARTBEAT.md", LIST)
    before = len(ann.sees())
    stage.model.say(
        "Rain from about nine tonight. If the washing is still out, now is a good time."
    )
    stage.model.say("HEARTBEAT_OK")
    clock.jump_to(MONDAY + timedelta(hours=24, minutes=1))
    await ann.reads("Rain from")
    clock.jump_to(MONDAY + timedelta(hours=24, minutes=31))
    await stage.model.until(lambda: not stage.model.left, timeout_s=20)
    told = [bubble(seen) for seen in ann.sees()[before:]]
    return [
        _file("workspace/HEARTBEAT.md", LIST),
        Aside(text="Tuesday, 18:30: a look at the list"),
        *told,
        Aside(text="Half an hour later: nothing new, so not a word"),
    ]


# --- shared --------------------------------------------------------------------------------------


async def _code_for(ann: AnnInTelegram) -> str:
    """What lets Ann in, as she is met for the first time."""
    ann.says("Hello?")
    told = await ann.reads("code")
    return str(re.findall(r"code: (\w+)", told.text)[0])


async def _in_her_zone(ann: AnnInTelegram) -> None:
    ann.says(f"/timezone {ZONE}")
    await ann.reads(f"Your time zone is {ZONE}")


def _file(name: str, content: str) -> Shell:
    return Shell(heading=name, lines=tuple(content.rstrip().splitlines()), is_file=True)


def _shell(shell: Shell, put_right: Mapping[str, str]) -> Shell:
    lines = tuple(_put_right(line, put_right) for line in shell.lines)
    return replace(shell, heading=_put_right(shell.heading, put_right), lines=lines)


def _bubble(seen: SeenInTelegram, put_right: Mapping[str, str], pressed: str = "") -> Bubble:
    return bubble(replace(seen, text=_put_right(seen.text, put_right)), pressed=pressed)


def _put_right(text: str, put_right: Mapping[str, str]) -> str:
    for found, shown in put_right.items():
        text = text.replace(found, shown)
    return text
