"""One question to a platform: each answer is a value or a sentence, and none shows a secret."""

from __future__ import annotations

import asyncio
import traceback

import pytest

from agent.models.choose import Choice, choose
from agent.models.service import ask_once
from bot.doctor import reach as doctor_reach
from bot.doctor.base import FindingLevel
from bot.doctor.live import (
    Unreachable,
    ask,
    host_of,
    offers,
    shown_name,
)
from bot.doctor.live_slack import socket_address, workspace
from bot.doctor.live_telegram import PollConflict, account, first_message
from bot.lab.faults import FaultAction, answer, bad_gateway, drop, garble, hold
from bot.lab.model import ScriptedModel
from bot.lab.slack import TOKEN as BOT_TOKEN
from bot.lab.slack import FakeSlack, refusal
from bot.lab.telegram import FakeTelegram
from bot.settings.schema.settings import Settings
from memory.records.errors import AssistantError, BrokenAnswer, SettingsWrong
from memory.records.section import LlmSettings

TOKEN = "123456:TESTTESTTEST"
SECRET = "TESTTESTTEST"


def all_of(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


@pytest.mark.case("SE-13")
@pytest.mark.parametrize(
    "fault",
    [
        drop(),
        bad_gateway(),
        garble(),
        answer(200, "<html>a hotel's page</html>"),
        answer(200, []),
        answer(200, {"ok": True, "result": 5}),
        answer(429, {"ok": False, "parameters": {"retry_after": 3}}),
    ],
)
async def test_trouble_at_telegram_is_a_sentence_without_the_token(fault: FaultAction) -> None:
    async with FakeTelegram(token=TOKEN) as telegram:
        telegram.fault("getMe", action=fault)

        with pytest.raises(Unreachable) as raised:
            await account(telegram.base_url, TOKEN)

    assert str(raised.value).endswith(".")
    assert SECRET not in all_of(raised.value)


async def test_a_server_that_is_silent_is_given_up_in_time() -> None:
    async with FakeTelegram(token=TOKEN) as telegram:
        telegram.fault(action=hold())

        with pytest.raises(Unreachable, match=r"did not answer within 0.2 s"):
            await ask(f"{telegram.base_url}/bot{TOKEN}/getMe", who="Telegram", limit_s=0.2)


@pytest.mark.parametrize("token", ["", "abc", "1:2/../x", "1:2?", "123456:OTHER"])
async def test_a_wrong_token_is_refused(token: str) -> None:
    async with FakeTelegram(token=TOKEN) as telegram:
        with pytest.raises(SettingsWrong, match="@BotFather"):
            await account(telegram.base_url, token)


async def test_the_first_message_is_seen_and_stays_for_the_bot() -> None:
    async with FakeTelegram(token=TOKEN) as telegram:
        telegram.message(chat_id=-100, user_id=5, chat_type="supergroup", text="in a group")
        telegram.message(chat_id=6, text="early")
        telegram.message(chat_id=7, text="hello", first_name="Ann")

        newest = await first_message(telegram.base_url, TOKEN)
        other = await first_message(telegram.base_url, TOKEN, but={"telegram:7"})

        assert (newest.address, newest.first_name) == ("telegram:7", "Ann")
        assert other.address == "telegram:6"
        assert len(telegram.pending()) == 3
        assert all(not {"offset", "allowed_updates"} & set(c.params) for c in telegram.calls())


async def test_odd_updates_are_nobody() -> None:
    async with FakeTelegram(token=TOKEN) as telegram:
        odd = [1, {}, {"message": 5}, {"message": {"chat": {"type": "private"}, "from": 3}}]
        odd += [{"message": {"chat": {"type": "private"}, "from": {"id": True}}}]
        telegram.fault("getUpdates", action=answer(200, {"ok": True, "result": odd}))
        telegram.message(chat_id=7, text="hello")

        found = await first_message(telegram.base_url, TOKEN)

    assert found.address == "telegram:7"


@pytest.mark.parametrize(
    ("description", "words"),
    [
        ("Conflict: can't use getUpdates method while webhook is active", "A webhook is set"),
        ("Conflict: terminated by other getUpdates request", "Another copy"),
    ],
)
async def test_a_conflict_says_with_what(description: str, words: str) -> None:
    async with FakeTelegram(token=TOKEN) as telegram:
        body = {"ok": False, "error_code": 409, "description": description}
        telegram.fault("getUpdates", action=answer(409, body))

        with pytest.raises(PollConflict, match=words):
            await first_message(telegram.base_url, TOKEN)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("invalid_auth", "cut, or of another app"),
        ("token_revoked", "revoked"),
        ("account_inactive", "removed from the workspace"),
        ("something_new", "it said something_new"),
    ],
)
async def test_slack_s_words_become_ours(error: str, words: str) -> None:
    async with FakeSlack() as slack:
        slack.fault("auth.test", action=refusal(error))

        with pytest.raises(SettingsWrong, match=words) as raised:
            await workspace(slack.api_url, BOT_TOKEN)

    assert BOT_TOKEN not in str(raised.value)


async def test_an_app_token_in_place_of_a_bot_token_is_told() -> None:
    async with FakeSlack() as slack:
        with pytest.raises(SettingsWrong, match="another kind"):
            await socket_address(slack.api_url, BOT_TOKEN)


# --- the model -----------------------------------------------------------------------------


async def chosen(model: ScriptedModel) -> Choice:
    return await choose(LlmSettings(model="openai/lab-model", api_base=model.api_base), env={})


@pytest.mark.parametrize(("kind", "error"), [("cut", BrokenAnswer), ("429", AssistantError)])
async def test_a_model_in_trouble_is_not_asked_again(
    kind: str, error: type[AssistantError]
) -> None:
    async with ScriptedModel() as model:
        model.named_fault(kind, times=None)

        with pytest.raises(error):
            await ask_once(await chosen(model), limit_s=10)

        assert len(model.requests) == 1


async def test_the_doctor_says_which_address_answers() -> None:
    async with ScriptedModel() as model:
        bare = model.api_base.removesuffix("/v1")
        settings = Settings.model_validate({"llm": {"model": "lab-model", "api_base": bare}})

        [finding] = await doctor_reach.model(settings, {})

    assert finding.level is FindingLevel.FAIL
    assert finding.text.endswith(f"; {model.api_base} does answer")
    assert finding.fix == f'Set api_base = "{model.api_base}" below [llm].'


async def test_what_this_machine_has_is_offered_in_the_order_of_the_bot() -> None:
    async def probe(api_base: str) -> list[str]:
        if "11434" in api_base:
            return ["nomic-embed-text", "qwen3:8b"]
        await asyncio.sleep(60)
        return ["never"]

    env = {"OPENAI_API_KEY": "sk-1", "ANTHROPIC_API_KEY": "sk-2", "GROQ_API_KEY": ""}

    found = await offers(env, probe=probe)

    assert [offer.model.partition("/")[0] for offer in found] == ["openai", "anthropic", "ollama"]
    assert found[2].title == "qwen3:8b of Ollama on this machine"
    assert all("sk-" not in offer.title for offer in found)


# --- words of others ------------------------------------------------------------------------------


def test_names_are_one_short_line_without_control_codes() -> None:
    assert shown_name("A\x1b[2Jnn\n", None, 5, "(@ann)") == "Ann (@ann)"
    assert len(shown_name("x" * 1000)) == 60


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://user:pw@api.example:8443/bot1:x/getMe?a", "api.example:8443"),
        ("http://[::1", "that address"),
        ("nonsense", "that address"),
    ],
)
def test_of_an_address_only_the_host_is_shown(url: str, host: str) -> None:
    assert host_of(url) == host
