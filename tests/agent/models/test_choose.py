"""Which model is taken, and what is said about it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from agent.errors import SettingsWrong
from agent.models.choose import Choice, Wanted, choose, models_at, window_of

OLLAMA = "http://127.0.0.1:11434/v1"
LM_STUDIO = "http://127.0.0.1:1234/v1"


class Local:
    """A machine on which these servers answer."""

    def __init__(self, **servers: Sequence[str]) -> None:
        self.servers = {OLLAMA: servers.get("ollama", ()), LM_STUDIO: servers.get("lm", ())}
        self.asked: list[str] = []

    async def __call__(self, api_base: str) -> Sequence[str]:
        self.asked.append(api_base)
        return self.servers.get(api_base, ("listed",))


async def choice(model: str = "", probe: Local | None = None, **env: str) -> Choice:
    return await choose(Wanted(model=model), env=env, probe=probe or Local())


@pytest.mark.parametrize(
    ("name", "api_base", "model", "env"),
    [
        ("openai/gpt-4o", "https://api.openai.com/v1", "gpt-4o", "OPENAI_API_KEY"),
        (
            "openrouter/anthropic/claude-x",
            "https://openrouter.ai/api/v1",
            "anthropic/claude-x",
            "OPENROUTER_API_KEY",
        ),
        ("groq/llama-3.3", "https://api.groq.com/openai/v1", "llama-3.3", "GROQ_API_KEY"),
        ("mistral/large", "https://api.mistral.ai/v1", "large", "MISTRAL_API_KEY"),
        ("deepseek/chat", "https://api.deepseek.com/v1", "chat", "DEEPSEEK_API_KEY"),
        ("xai/grok", "https://api.x.ai/v1", "grok", "XAI_API_KEY"),
        ("together_ai/a/b", "https://api.together.xyz/v1", "a/b", "TOGETHERAI_API_KEY"),
        ("fireworks_ai/x", "https://api.fireworks.ai/inference/v1", "x", "FIREWORKS_AI_API_KEY"),
        ("gpt-4o", "https://api.openai.com/v1", "gpt-4o", "OPENAI_API_KEY"),
        ("ollama/llama3", OLLAMA, "llama3", ""),
        ("lm_studio/x", LM_STUDIO, "x", ""),
        ("vllm/a/b", "http://127.0.0.1:8000/v1", "a/b", ""),
        ("hosted_vllm/a/b", "http://127.0.0.1:8000/v1", "a/b", ""),
    ],
)
async def test_a_provider_prefix_gives_address_and_key(
    name: str, api_base: str, model: str, env: str
) -> None:
    variables = {env: "k-env"} if env else {}

    found = await choose(Wanted(model=name), env=variables, probe=Local())

    assert (found.kind, found.api_base, found.model) == ("direct", api_base, model)
    assert found.api_key == ("k-env" if env else "")
    assert "llm.model" in found.why


async def test_a_plain_name_goes_to_the_address_that_is_set() -> None:
    wanted = Wanted(model="anthropic/x", api_base="http://10.0.0.5:8080/v1", api_key="k")

    found = await choose(wanted, env={}, probe=Local())

    assert (found.model, found.api_base, found.api_key) == ("anthropic/x", wanted.api_base, "k")


async def test_settings_win_over_the_environment() -> None:
    wanted = Wanted(model="openai/gpt-4o", api_base="http://proxy.test/v1", api_key="mine")

    found = await choose(wanted, env={"OPENAI_API_KEY": "theirs"}, probe=Local())

    assert (found.model, found.api_base, found.api_key) == ("gpt-4o", wanted.api_base, "mine")


async def test_an_address_without_a_name_takes_the_first_model_that_is_listed() -> None:
    found = await choose(Wanted(api_base="http://10.0.0.5/v1"), env={}, probe=Local())

    assert found.model == "listed"


@pytest.mark.parametrize("name", ["anthropic/claude-x", "gemini/gemini-x", "claude-x", "azure/x"])
async def test_who_is_out_of_reach_is_said_with_a_way_out(name: str) -> None:
    with pytest.raises(SettingsWrong, match=r"direct client cannot speak to .*openrouter/"):
        await choice(name, ANTHROPIC_API_KEY="k")


@pytest.mark.parametrize("name", ["something", "who/knows"])
async def test_a_name_that_nobody_knows_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(SettingsWrong, match=r"names no provider.*groq"):
        await choice(name)


async def test_a_missing_key_names_its_variable() -> None:
    with pytest.raises(SettingsWrong, match="GROQ_API_KEY"):
        await choice("groq/llama")


async def test_keys_in_the_environment_come_first_in_a_fixed_order() -> None:
    probe = Local(ollama=["llama3"])

    one = await choice(probe=probe, XAI_API_KEY="x", GROQ_API_KEY="g")
    two = await choice(probe=probe, OPENAI_API_KEY="o", GROQ_API_KEY="g")

    assert one.api_key == "g"
    assert "GROQ_API_KEY" in one.why
    assert two.api_key == "o"
    assert not probe.asked


async def test_a_local_server_comes_next_and_models_that_cannot_talk_are_left_out() -> None:
    both = await choice(probe=Local(ollama=["nomic-embed-text", "llama3.2"], lm=["qwen"]))
    only_lm = await choice(probe=Local(ollama=["nomic-embed-text"], lm=["qwen"]))

    assert (both.model, both.api_base) == ("llama3.2", OLLAMA)
    assert (only_lm.model, only_lm.api_base) == ("qwen", LM_STUDIO)
    assert "Ollama" in both.why
    assert both.traits.window == 8_192


async def test_the_embedded_model_is_the_last_choice() -> None:
    found = await choice()

    assert (found.kind, found.model) == ("embedded", "embedded")
    assert found.traits.demo
    assert not found.traits.tools
    assert "llm.model" in found.why


async def test_a_file_may_be_the_embedded_model() -> None:
    found = await choice("embedded:/models/own.gguf")

    assert (found.kind, found.model) == ("embedded", "embedded:/models/own.gguf")
    assert found.traits.tools
    assert not found.traits.demo


async def test_a_server_that_never_answers_does_not_hold_up_the_start() -> None:
    async def probe(api_base: str) -> Sequence[str]:
        if api_base == OLLAMA:
            await asyncio.Event().wait()
        return ["qwen"]

    found = await asyncio.wait_for(choose(Wanted(), env={}, probe=probe), 10)

    assert found.api_base == LM_STUDIO


async def test_the_real_probe_finds_nobody_where_nobody_listens() -> None:
    assert list(await models_at("http://127.0.0.1:9/v1")) == []


async def test_a_key_is_never_shown() -> None:
    found = await choice("openai/gpt-4o", OPENAI_API_KEY="sk-secret")

    assert "sk-secret" not in repr(found) + found.why
    assert "sk-secret" not in repr(Wanted(api_key="sk-secret"))


@pytest.mark.parametrize(
    ("name", "window"),
    [
        ("gpt-4o-mini", 128_000),
        ("openai/gpt-4.1-mini", 1_047_576),
        ("gpt-5", 400_000),
        ("llama3-70b", 8_192),
        ("llama-3.3-70b-versatile", 128_000),
        ("unheard-of", 128_000),
    ],
)
async def test_the_window_is_known_by_name_and_can_be_set(name: str, window: int) -> None:
    wanted = Wanted(model=f"openrouter/{name}", api_key="k", window=5_000)

    found = await choose(wanted, env={}, probe=Local())

    assert window_of(name) == window
    assert found.traits.window == 5_000
