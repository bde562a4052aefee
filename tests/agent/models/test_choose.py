"""Which model is taken, and what is said about it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from pydantic import SecretStr

from agent.models.catalog import PriceTable
from agent.models.choose import Choice, beside, choose
from memory.records.errors import SettingsWrong
from memory.records.section import LlmSettings

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


def wish(**fields: object) -> LlmSettings:
    return LlmSettings.model_validate(fields)


async def choice(model: str = "", probe: Local | None = None, **env: str) -> Choice:
    return await choose(wish(model=model), env=env, probe=probe or Local())


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
        ("vllm/a/b", "http://127.0.0.1:8000/v1", "a/b", ""),
    ],
)
async def test_a_provider_prefix_gives_address_and_key(
    name: str, api_base: str, model: str, env: str
) -> None:
    variables = {env: "k-env"} if env else {}

    found = await choose(wish(model=name), env=variables, probe=Local())

    assert (found.kind, found.api_base, found.model) == ("direct", api_base, model)
    assert found.api_key == ("k-env" if env else "")
    assert "llm.model" in found.why


async def test_a_plain_name_goes_to_the_address_that_is_set() -> None:
    wanted = wish(model="anthropic/x", api_base="http://10.0.0.5:8080/v1", api_key="k")

    found = await choose(wanted, env={}, probe=Local())

    assert (found.model, found.api_base, found.api_key) == ("anthropic/x", wanted.api_base, "k")


async def test_an_address_that_is_none_is_left_to_the_client_to_refuse() -> None:
    found = await choose(wish(model="own", api_base="http://[::1"), env={}, probe=Local())

    assert (found.kind, found.api_base) == ("direct", "http://[::1")


async def test_settings_win_over_the_environment() -> None:
    wanted = wish(model="openai/gpt-4o", api_base="http://proxy.test/v1", api_key="mine")

    found = await choose(wanted, env={"OPENAI_API_KEY": "theirs"}, probe=Local())

    assert (found.model, found.api_base, found.api_key) == ("gpt-4o", wanted.api_base, "mine")


async def test_an_address_without_a_name_takes_the_first_model_that_is_listed() -> None:
    found = await choose(wish(api_base="http://10.0.0.5/v1"), env={}, probe=Local())

    assert found.model == "listed"


@pytest.mark.parametrize(
    ("name", "model", "variables"),
    [
        ("anthropic/claude-haiku-4-5", "anthropic/claude-haiku-4-5", ["ANTHROPIC_API_KEY"]),
        ("claude-haiku-4-5", "anthropic/claude-haiku-4-5", ["ANTHROPIC_API_KEY"]),
        ("gemini-2.5-flash", "gemini/gemini-2.5-flash", ["GOOGLE_API_KEY"]),
        ("azure/deployed", "azure/deployed", ["AZURE_API_KEY", "AZURE_API_BASE"]),
        ("perplexity/sonar", "perplexity/sonar", []),
        ("cerebras/llama3.1-8b", "cerebras/llama3.1-8b", ["CEREBRAS_API_KEY"]),
    ],
)
async def test_a_provider_with_a_language_of_its_own_is_reached_through_litellm(
    name: str, model: str, variables: list[str]
) -> None:
    env = {variable: f"of {variable}" for variable in variables}

    found = await choose(wish(model=name), env=env, probe=Local())

    assert (found.kind, found.model, found.priced_as) == ("litellm", model, model)
    assert found.api_key == (f"of {variables[0]}" if variables else "")
    assert found.api_base == env.get("AZURE_API_BASE", "")
    assert "litellm" in found.why
    assert "llm.model" in found.why


@pytest.mark.parametrize(
    "name",
    ["anthropic/claude-x", "claude-x", "azure/x", "perplexity/x"],
)
async def test_the_direct_client_alone_cannot_reach_them_and_says_so_with_a_way_out(
    name: str,
) -> None:
    wanted = wish(model=name, client="direct")

    with pytest.raises(SettingsWrong, match=r'"direct" cannot speak to .*"auto".*openrouter/'):
        await choose(wanted, env={"ANTHROPIC_API_KEY": "k"}, probe=Local())


@pytest.mark.parametrize(
    ("name", "lacks"),
    [
        ("anthropic/claude-x", "ANTHROPIC_API_KEY"),
        ("groq/llama", "GROQ_API_KEY"),
        ("azure/deployed", "AZURE_API_KEY"),
        ("bedrock/anthropic.claude-x", "boto3"),
        ("vertex_ai/gemini-x", r"google\.auth"),
    ],
)
async def test_what_a_provider_lacks_is_named(name: str, lacks: str) -> None:
    with pytest.raises(SettingsWrong, match=lacks):
        await choice(name)


async def test_azure_needs_an_address_besides_its_key() -> None:
    with pytest.raises(SettingsWrong, match="AZURE_API_BASE"):
        await choice("azure/deployed", AZURE_API_KEY="k")

    wanted = wish(model="azure/deployed", api_base="https://me.openai.azure.com", api_key="k")
    found = await choose(wanted, env={}, probe=Local())

    assert (found.kind, found.api_base, found.api_key) == ("litellm", wanted.api_base, "k")


@pytest.mark.parametrize(
    ("wanted", "model", "api_base"),
    [
        (wish(model="openai/gpt-4o", api_key="k"), "openai/gpt-4o", ""),
        (wish(model="ollama/llama3"), "openai/llama3", OLLAMA),
        (
            wish(model="own", api_base="http://10.0.0.5/v1"),
            "openai/own",
            "http://10.0.0.5/v1",
        ),
        (
            wish(model="anthropic/claude-x", api_base="http://10.0.0.5"),
            "anthropic/claude-x",
            "http://10.0.0.5",
        ),
    ],
)
async def test_litellm_can_be_wanted_for_all(
    wanted: LlmSettings, model: str, api_base: str
) -> None:
    found = await choose(wanted.model_copy(update={"client": "litellm"}), env={}, probe=Local())

    assert (found.kind, found.model, found.api_base) == ("litellm", model, api_base)
    assert found.api_key == wanted.api_key.get_secret_value()


@pytest.mark.parametrize("name", ["something", "who/knows"])
async def test_a_name_that_nobody_knows_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(SettingsWrong, match=r"names no provider.*groq"):
        await choice(name)


@pytest.mark.parametrize("name", ["cohere/command-r", "cohere_chat/command-r", "command-r"])
async def test_a_provider_that_litellm_cannot_read_is_refused_with_a_way_out(name: str) -> None:
    with pytest.raises(SettingsWrong, match=r"Cohere.*openrouter/cohere/command-r.*llm\.api_base"):
        await choice(name, COHERE_API_KEY="k")


async def test_keys_in_the_environment_come_first_in_a_fixed_order() -> None:
    probe = Local(ollama=["llama3"])

    one = await choice(probe=probe, XAI_API_KEY="x", GROQ_API_KEY="g")
    two = await choice(probe=probe, OPENAI_API_KEY="o", GROQ_API_KEY="g")

    assert one.api_key == "g"
    assert "GROQ_API_KEY" in one.why
    assert two.api_key == "o"
    assert not probe.asked


async def test_a_key_of_a_provider_behind_litellm_counts_after_the_others() -> None:
    probe = Local(ollama=["llama3"])

    alone = await choice(probe=probe, ANTHROPIC_API_KEY="a", GEMINI_API_KEY="g")
    both = await choice(probe=probe, ANTHROPIC_API_KEY="a", XAI_API_KEY="x")
    direct = await choose(
        wish(client="direct"), env={"ANTHROPIC_API_KEY": "a"}, probe=Local(ollama=["llama3"])
    )

    assert (alone.kind, alone.api_key) == ("litellm", "a")
    assert "ANTHROPIC_API_KEY" in alone.why
    assert both.kind == "direct"
    assert direct.model == "llama3"
    assert not probe.asked


@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"])
async def test_a_model_that_is_picked_has_a_window_and_a_price(variable: str) -> None:
    found = await choose(wish(), env={variable: "k"}, probe=Local())

    price = await PriceTable().find(found.priced_as)

    assert price is not None
    assert price.rates.input
    assert found.traits.window == price.window >= 200_000
    assert found.output_tokens_max == price.output_max >= 8_192


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

    found = await asyncio.wait_for(choose(wish(), env={}, probe=probe), 10)

    assert found.api_base == LM_STUDIO


async def test_a_key_is_never_shown() -> None:
    found = await choice("openai/gpt-4o", OPENAI_API_KEY="sk-secret")

    assert "sk-secret" not in repr(found) + found.why
    assert "sk-secret" not in repr(wish(api_key="sk-secret"))


async def test_the_window_can_be_set() -> None:
    wanted = wish(model="openrouter/gpt-4o-mini", api_key="k", window=5_000)

    assert (await choose(wanted, env={}, probe=Local())).traits.window == 5_000


@pytest.mark.parametrize(
    ("wanted", "window", "effort"),
    [
        (wish(model="openai/gpt-4.1-mini"), 1_047_576, False),
        (wish(model="openai/gpt-5"), 272_000, True),
        (wish(model="gpt-4"), 8_192, False),
        (wish(model="mistral/mistral-small-latest"), 131_072, False),
        (wish(model="anthropic/claude-haiku-4-5"), 200_000, True),
        (wish(model="xai/grok-3-mini"), 131_072, False),
        (wish(model="openai/unheard-of"), 128_000, False),
        (wish(model="gpt-4.1", api_base="http://10.0.0.5/v1"), 1_047_576, False),
        (wish(model="gpt-4.1", api_base="http://localhost:99/v1"), 8_192, False),
        (wish(model="ollama/llama3"), 8_192, False),
    ],
)
async def test_window_and_effort_are_those_of_the_price_table(
    wanted: LlmSettings, window: int, effort: bool
) -> None:
    found = await choose(
        wanted.model_copy(update={"api_key": SecretStr("k")}), env={}, probe=Local()
    )

    assert (found.traits.window, found.traits.effort) == (window, effort)


async def test_a_broken_price_table_leaves_a_usual_window(tmp_path: Path) -> None:
    wanted = wish(model="openai/gpt-4.1-mini", api_key="k")

    found = await choose(wanted, env={}, prices=PriceTable(tmp_path / "none.json"))

    assert found.traits.window == 128_000
    assert found.output_tokens_max == 0


@pytest.mark.parametrize(
    ("main", "other", "keeps"),
    [
        (wish(model="openai/gpt-4.1", api_key="k"), "openai/gpt-4.1-mini", True),
        (wish(model="gpt-4.1", api_key="k"), "openai/gpt-4.1-mini", True),
        (wish(model="openai/gpt-4.1", api_key="k"), "anthropic/claude-x", False),
        (wish(model="claude-x", api_key="k"), "gpt-4.1", False),
        (wish(model="big", api_base="http://b/v1", api_key="k", window=9), "small", True),
        (wish(model="big", api_base="http://b/v1", api_key="k", window=9), "groq/x", False),
        (
            wish(model="big", api_base="http://b/v1", api_key="k", window=9),
            "embedded",
            False,
        ),
        (wish(model="perplexity/sonar", api_key="k"), "cerebras/x", False),
    ],
)
def test_another_model_takes_address_and_key_of_the_main_one_only_where_they_are_its_own(
    main: LlmSettings, other: str, keeps: bool
) -> None:
    found = beside(main, other)

    assert found.model == other
    if keeps:
        assert (found.api_base, found.api_key) == (main.api_base, main.api_key)
        assert found.window == main.window
    else:
        assert (found.api_base, found.api_key, found.window) == ("", SecretStr(""), 0)
