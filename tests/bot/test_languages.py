"""Languages of people, from the platform and by `/language`, as the model reads of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from tests.bot.kit import GROUP, MEMBER, OWNER, US, Rig, eventually
from tests.bot.slack_kit import ANN, CHANNEL, SlackRig, slack_rigged
from tests.bot.slack_kit import US as SLACK_US

HINT = "Where no words of theirs show one, write in "
BY_MESSAGE = "Reply in the language of the person's own message."


@pytest.fixture
async def slack(tmp_path: Path) -> AsyncIterator[SlackRig]:
    async with slack_rigged(tmp_path) as made:
        yield made


def system(rig: Rig, number: int = -1) -> str:
    """The system message of a request to the model."""
    text = rig.model.requests[number]["messages"][0]["content"]
    assert isinstance(text, str)
    return text


async def test_what_telegram_says_of_a_language_stands_in_where_no_message_shows_one(
    rig: Rig,
) -> None:
    (rig.home.workspace / "HEARTBEAT.md").write_text("- [ ] water the plants\n")
    async with rig.running(OWNER) as bot:
        for number, words in enumerate(("hallo", "wie geht es?"), start=1):
            rig.says(words, language_code="de-AT")
            await eventually(partial(rig.wrote, number))
        for command in ("/heartbeat on", "/heartbeat now"):
            rig.says(command, language_code="de-AT")
        await eventually(lambda: len(rig.model.requests) >= 3)
        await rig.quiet(bot)

    assert f"{BY_MESSAGE} {HINT}German." in system(rig, 0)
    assert system(rig, 1) == system(rig, 0), "what comes first stays as it is"
    assert f"{HINT}German." in system(rig, 2)


async def test_a_language_that_was_set_wins_and_survives_a_restart(rig: Rig) -> None:
    rig.set(prompt__language="Polish")
    async with rig.running(OWNER, MEMBER) as bot:
        rig.says("/language deutsch", language_code="fr")
        await eventually(partial(rig.wrote, 1))
        await rig.quiet(bot)
    async with rig.running() as bot:
        rig.says("bonjour", language_code="fr")
        await eventually(partial(rig.wrote, 2))
        rig.says("hello", by=MEMBER)
        await eventually(partial(rig.wrote, 1, chat=MEMBER))
        await rig.quiet(bot)

    assert "Reply in German." in system(rig, 0)
    assert "Reply in Polish." in system(rig, 1), "what is set for everybody"


async def test_in_a_group_nobodys_own_language_is_spoken(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        await bot.access.approve(f"telegram:{GROUP}")
        rig.says("/language deutsch", language_code="fr")
        await eventually(partial(rig.wrote, 1))
        rig.says(f"@{US} hello", chat=GROUP, language_code="fr")
        await eventually(partial(rig.wrote, 1, chat=GROUP))
        await rig.quiet(bot)

    assert f"{BY_MESSAGE} Write only" in system(rig)
    assert "German" not in system(rig)


async def test_what_slack_says_of_a_language_stands_in_and_yields_to_the_one_that_was_set(
    slack: SlackRig,
) -> None:
    slack.slack.add_user(user=ANN, locale="pt-BR")
    async with slack.serving_slack(ANN, chats=(CHANNEL,)) as bot:
        slack.writes("olá")
        await eventually(lambda: len(slack.read()) == 1)
        slack.writes(f"<@{SLACK_US}> olá", channel=CHANNEL)
        await eventually(lambda: len(slack.read(CHANNEL)) == 1)
        slack.slack.command(text="language Deutsh")
        await eventually(lambda: len(slack.read()) == 2)
        slack.slack.command(text="language Deutsch")
        await eventually(lambda: len(slack.read()) == 3)
        slack.writes("olá")
        await eventually(lambda: len(slack.read()) == 4)
        await slack.quiet(bot)
        [person] = bot.access.directory.people

    assert f"{BY_MESSAGE} {HINT}Brazilian Portuguese." in system(slack, 0)
    assert HINT not in system(slack, 1), "others read along in a channel"
    assert slack.read()[1].splitlines()[1] == "`/hearth language German`"
    assert "Reply in German." in system(slack, 2)
    assert (person.language, person.language_hint) == ("de", "pt-br")
