"""`hearthbot model` as it is typed: which models there are, whether they answer, fetching one."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

from agent.models.choose import Probe
from agent.models.service import ModelList, ModelService
from bot.lab.model import ScriptedModel
from bot.settings.load import load
from bot.settings.options import configured_models, finder_of
from bot.settings.schema.settings import Settings
from tests.agent.models.hub import Hub, serving
from tests.bot.kit import OWNER, Rig, eventually
from tests.fork_server import plain_env, start

MODEL = b"GGUF" + random.Random(3).randbytes(200_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(slots=True, kw_only=True)
class Desk:
    """A home, a model and a hub; commands are run as processes of their own."""

    env: dict[str, str]
    model: ScriptedModel
    hub: Hub
    home: Path

    async def run(self, *words: str, **env: str) -> Done:
        env = self.env | env
        with start("bot", ["model", *words], env=env, stdout=PIPE, stderr=PIPE, text=True) as one:
            out, err = await asyncio.to_thread(one.communicate, timeout=60)
        return Done(code=one.returncode, out=out, err=err)


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with (
        ScriptedModel() as model,
        serving(ann={"small-GGUF/small-Q4_K_M.gguf": MODEL}) as hub,
    ):
        env = {
            **plain_env(),
            "HOME": str(tmp_path),
            "HEARTHBOT_HOME": str(tmp_path / "home"),
            "HEARTHBOT_LLM__API_BASE": model.api_base,
            "HEARTHBOT_LLM__API_KEY": "lab-key-of-the-test",
            "HEARTHBOT_LLM__MODEL": "openai/gpt-4.1-mini",
            "HEARTHBOT_LLM__FALLBACKS": "openai/spare",
            "HF_ENDPOINT": hub.base_url,
        }
        yield Desk(env=env, model=model, hub=hub, home=tmp_path / "home")


# --- list ----------------------------------------------------------------------------------------


async def test_list_shows_who_answers_with_window_and_price_and_asks_no_model(desk: Desk) -> None:
    done = await desk.run("list", GROQ_API_KEY="a-key-of-groq")

    lines = [line.split("\t") for line in done.out.splitlines()]
    assert lines[0][:4] == ["usual", "openai/gpt-4.1-mini", "1,047,576", "$0.4 in, $1.6 out"]
    assert lines[1][:4] == ["stands in for it", "openai/spare", "128,000", "price unknown"]
    assert ["its key is set", "groq/llama-3.3-70b-versatile"] in [line[:2] for line in lines]
    assert desk.model.requests == []
    assert "key-of" not in done.out + done.err


async def test_all_adds_every_provider_and_the_variable_it_wants(desk: Desk) -> None:
    done = await desk.run("list", "--all")

    assert "provider\tanthropic\tANTHROPIC_API_KEY is not set" in done.out
    assert done.code == 0


async def test_a_model_in_the_settings_that_cannot_be_is_wrong_usage(desk: Desk) -> None:
    done = await desk.run("list", HEARTHBOT_LLM__FALLBACKS="groq/llama-3.3-70b-versatile")

    assert done.code == 2
    assert "GROQ_API_KEY" in done.err


async def test_beside_a_running_bot_list_says_who_rests(rig: Rig, desk: Desk) -> None:
    rig.set(llm__fallbacks="openai/spare")
    rig.model.named_fault("401", times=None, when={"model": "lab-model"})
    async with rig.running(OWNER):
        rig.says("hello")
        await eventually(lambda: rig.wrote(1))
        done = await desk.run("list", "--json", **rig.env, HEARTHBOT_HOME=str(rig.home.path))

    (resting,) = done.json()["resting"]
    assert resting["model"] == "lab-model"
    assert "API key" in resting["why"]
    assert 0 < resting["seconds"] <= 60


async def test_models_of_local_servers_are_listed_some_of_them_unless_all_are_wanted() -> None:
    async def probe(api_base: str) -> list[str]:
        if ":11434" not in api_base:
            return []
        return [*(f"model-{number}" for number in range(20)), "text-embedding", "od\x1bd"]

    settings = Settings()

    some = await listing(settings, {"OPENAI_API_KEY": "k"}, whole=False, probe=probe)
    all_ = await listing(settings, {"OPENAI_API_KEY": "k"}, whole=True, probe=probe)

    def local(found: ModelList) -> list[str]:
        return [row.name for row in found.models if row.use == "local"]

    assert local(some) == [f"ollama/model-{number}" for number in range(8)]
    assert some.more == 12
    assert len(local(all_)) == 20
    assert some.answering == "openai/gpt-4.1-mini"


async def test_a_local_server_that_hangs_holds_the_list_up_for_two_seconds_at_most() -> None:
    async def probe(api_base: str) -> list[str]:
        await asyncio.Event().wait()
        return []

    async with asyncio.timeout(5):
        found = await listing(Settings(), {"OPENAI_API_KEY": "k"}, whole=False, probe=probe)

    assert [row.use for row in found.models] == ["answers"]


# --- test ----------------------------------------------------------------------------------------


async def test_each_configured_model_is_asked_once(desk: Desk) -> None:
    done = await desk.run("test", "--json")

    first, second = done.json()["models"]
    assert done.code == 0
    assert first["name"] == "openai/gpt-4.1-mini"
    assert first["ok"] is True
    assert first["text"].startswith("You said:")
    assert 0 < first["first_s"] <= first["seconds"]
    tokens = first["usage"]
    assert first["dollars"] == pytest.approx(
        tokens["prompt"] * 0.4e-6 + tokens["completion"] * 1.6e-6
    )
    assert second["dollars"] is None
    assert [request["model"] for request in desk.model.requests] == ["gpt-4.1-mini", "spare"]


async def test_one_that_fails_is_told_with_the_reason_and_exit_code_1(desk: Desk) -> None:
    desk.model.named_fault("401", times=None, when={"model": "spare"})

    done = await desk.run("test")

    assert done.code == 1
    assert "✓ openai/gpt-4.1-mini: You said:" in done.out
    assert "first word after" in done.out
    assert "✗ openai/spare: 127.0.0.1" in done.out
    assert "did not accept the API key" in done.out
    assert "lab-key-of-the-test" not in done.out + done.err
    assert len(desk.model.requests) == 2, "nothing is tried again"


async def test_another_model_is_asked_by_its_name(desk: Desk) -> None:
    done = await desk.run("test", "openai/other", "--json")

    assert [one["name"] for one in done.json()["models"]] == ["openai/other"]
    assert desk.model.requests[0]["model"] == "other"


async def test_a_model_that_hangs_is_given_up(desk: Desk) -> None:
    desk.model.named_fault("hold", times=None)

    done = await desk.run("test", "openai/other", HEARTHBOT_LLM__TIMEOUT_S="1")

    assert done.code == 1
    assert "✗ openai/other: " in done.out


# --- pull ----------------------------------------------------------------------------------------


async def test_a_model_is_fetched_and_its_use_is_told(desk: Desk) -> None:
    done = await desk.run("pull", "ann/small-GGUF")

    path = desk.home / "models" / "small-Q4_K_M.gguf"
    assert path.read_bytes() == MODEL
    assert f'model = "embedded:{path}"' in done.out
    assert f"/model embedded:{path}" in done.out
    assert "small-Q4_K_M.gguf: 100 %" in done.err
    assert done.code == 0


async def test_what_pull_prints_for_the_settings_is_accepted(desk: Desk, tmp_path: Path) -> None:
    done = await desk.run("pull", "ann/small-GGUF", "--json")
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "config.toml").write_text(f'[llm]\nmodel = "{done.json()["model"]}"\n')

    settings = load(folder, {})

    found = await listing(settings, {}, whole=False, probe=_nobody)
    assert found.models[0].client == "embedded"


async def listing(
    settings: Settings, env: dict[str, str], *, whole: bool, probe: Probe
) -> ModelList:
    service = ModelService(
        finder_of(settings, env), await configured_models(settings, env), probe=probe
    )
    return await service.listing(whole=whole)


async def _nobody(api_base: str) -> list[str]:
    return []


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("nobody/there",), "HF_TOKEN"),
        (("ann/small-GGUF", "--sha256", "ab" * 32), "The checksum of what came"),
        (("ann/small-GGUF", "--sha256", "12"), "64 hexadecimal digits"),
        (("http://models.example/m.gguf",), "https://"),
    ],
)
async def test_what_cannot_be_fetched_is_told_in_a_sentence(
    desk: Desk, words: tuple[str, ...], why: str
) -> None:
    done = await desk.run("pull", *words)

    assert done.code == 1
    assert why in done.err
    assert "Traceback" not in done.err
    assert not list((desk.home / "models").glob("*"))


async def test_ctrl_c_keeps_what_came_and_says_how_to_go_on(desk: Desk) -> None:
    desk.hub.hold = asyncio.Event()
    process = start("bot", ["model", "pull", "ann/small-GGUF"], env=desk.env, stderr=PIPE)
    part = desk.home / "models" / "small-Q4_K_M.gguf.part"
    await eventually(lambda: part.exists() and part.stat().st_size > 50_000)

    process.send_signal(2)
    with process:
        _, err = await asyncio.to_thread(process.communicate, timeout=30)

    assert process.returncode == 1
    assert "the same command goes on from there" in err.decode()
    desk.hub.hold = None
    assert (await desk.run("pull", "ann/small-GGUF", "--json")).json()["fetched"] < len(MODEL)
