"""Whole conversations of the real process before the judges: TDLib parses each text that went to
Telegram, Slack's own library each block that went to Slack, aimock and llmock are the model."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import pytest
from llmock.pytest_plugin import LLMock

from bot.commands.table import COMMANDS
from bot.lab.telegram_api import NOT_MODIFIED
from tests.acceptance.rig import SLACK_TEAM, TOKEN, Card, Home, Running, Slack, Telegram, until
from tests.agent.files_kit import JPEG
from tests.judge import judge_requests
from tests.judges.block_kit import judge_calls
from tests.judges.talk import TEA, AimockSpeaker, LLMockSpeaker, Speaker
from tests.thorough import THOROUGH

ANN = 7
SLACK_ANN, CHANNEL = "U0ANN", "C0TEA"
KINDS = {"Bold", "Italic", "Strikethrough", "Code", "Pre", "PreCode", "TextUrl", "Spoiler"}
"""What the long answer has to show of Telegram's entities."""

ALL = set(product(("aimock", "llmock"), ("direct", "litellm"), (True, False)))
USUAL = {("aimock", "litellm", True), ("llmock", "direct", False)}
"""Each judge, each client and each way of sending. `test_bot` has aimock before the direct one."""


@dataclass(slots=True)
class Talk:
    """Ann and the bot in a private chat of Telegram."""

    home: Home
    telegram: Telegram
    model: Speaker
    running: Running

    def ann(self, text: str, *, until_it_reads: str) -> str:
        """Ann writes; the message of the bot with these words."""
        self.telegram.says(ANN, text)
        return self.reads(until_it_reads)

    def reads(self, words: str) -> str:
        """Waits for a message with these words; the last one."""

        def found() -> list[str]:
            return [text for text in self.telegram.shown(ANN) if words in text]

        until(found, about=lambda: f"{words!r} in {self.telegram.shown(ANN)[-3:]}, {self._said()}")
        return found()[-1]

    def presses(self, label: str, *, on: str) -> Card:
        """Presses a button of the card with these words."""

        def found() -> list[Card]:
            cards = self.telegram.cards(ANN)
            return [card for card in cards if on in card.text and label in card.buttons]

        until(found, about=lambda: f"{on!r} in {self.telegram.cards(ANN)}, {self._said()}")
        card = found()[-1]
        self.telegram.press(ANN, card, label)
        return card

    def _said(self) -> str:
        return self.running.said()[-2000:]


@pytest.fixture
def telegram() -> Iterator[Telegram]:
    stand_in = Telegram()
    yield stand_in
    stand_in.close()


@pytest.fixture
def slack() -> Iterator[Slack]:
    stand_in = Slack()
    yield stand_in
    stand_in.close()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path)
    yield made
    made.close()


def speaker(name: str, request: pytest.FixtureRequest, *, slowly: bool) -> Speaker:
    """The model that another project wrote; skips the test where aimock cannot run."""
    if name == "aimock":
        return AimockSpeaker(request.getfixturevalue("aimock"), slowly=slowly)
    return LLMockSpeaker(request.getfixturevalue("llmock"), slowly=slowly)


def serve(home: Home, model: Speaker, *, client: str) -> None:
    home.env |= {
        "HEARTHBOT_LLM__MODEL": "openai/judged",
        "HEARTHBOT_LLM__API_BASE": model.api_base,
        "HEARTHBOT_LLM__API_KEY": "sk-judged",
        "HEARTHBOT_LLM__CLIENT": client,
        "HEARTHBOT_LLM__VISION": "on",
        "HEARTHBOT_MEMORY__INSIGHTS": "false",
        "HEARTHBOT_MEMORY__EXTRACTION__ENABLED": "false",
    }


def serve_telegram(home: Home, telegram: Telegram, *, streaming: bool) -> None:
    home.env |= {
        "HEARTHBOT_TELEGRAM__TOKEN": TOKEN,
        "HEARTHBOT_TELEGRAM__BASE_URL": telegram.url,
        "HEARTHBOT_TELEGRAM__RATE_PER_CHAT": "0",
        "HEARTHBOT_TELEGRAM__RATE_TOTAL": "0",
        "HEARTHBOT_ACCESS__MESSAGES_PER_MINUTE": "0",
        "HEARTHBOT_TELEGRAM__STREAMING": str(streaming).lower(),
        "HEARTHBOT_TELEGRAM__STREAM_EVERY_S": "0.1",
    }


# --- Telegram ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("judge", "client", "streaming"),
    [
        pytest.param(*one, marks=[pytest.mark.node] if one[0] == "aimock" else [])
        for one in sorted(ALL if THOROUGH else USUAL)
    ],
)
def test_a_whole_conversation_in_telegram_is_accepted_by_all_judges(
    home: Home,
    telegram: Telegram,
    request: pytest.FixtureRequest,
    judge: str,
    client: str,
    streaming: bool,
) -> None:
    model = speaker(judge, request, slowly=streaming)
    serve(home, model, client=client)
    serve_telegram(home, telegram, streaming=streaming)
    running = home.start()
    until(running.serving)
    talk = Talk(home=home, telegram=telegram, model=model, running=running)

    meets(talk)
    asks_for_a_reminder(talk)
    reads_a_long_answer(talk, streaming=streaming)
    is_sent_a_file(talk)
    allows_a_program(talk)
    sends_a_picture_and_corrects_its_words(talk)
    hears_of_trouble(talk)
    types_every_command(talk)
    due = talk.presses("Done", on="drink water")
    talk.reads("Done.")

    assert running.end() == 0
    assert "Traceback" not in running.said()
    assert due.text == "drink water & <b>tea</b>"
    model.accept()
    sent = telegram.ask("log")
    refused = [one["response"]["description"] for one in sent if (one["status"] or 200) >= 400]
    assert set(refused) <= {NOT_MODIFIED}, "an edit may be repeated, and nothing else is wrong"
    judged = judge_requests((one["method"], one["params"]) for one in sent)
    print(f"\n{judge}, {client}, streaming {streaming}: {judged}")
    assert judged.marked > len(COMMANDS) + 10
    assert {f"textEntityType{kind}" for kind in KINDS} <= set(judged.kinds)


def meets(talk: Talk) -> None:
    code = talk.ann("Hello?", until_it_reads="code")
    found = re.search(r"code: (\w+)", code)
    assert found, code
    done = talk.home.run("access", "approve", found[1])
    assert done.returncode == 0, done.stderr
    talk.model.says("Hello, **Ann**. What shall we do?", to="Hello again")
    talk.ann("Hello again", until_it_reads="Hello, Ann.")


def asks_for_a_reminder(talk: Talk) -> None:
    talk.ann("/remind in 4 seconds drink water & <b>tea</b>", until_it_reads="drink water")
    talk.presses("Save", on="drink water")
    talk.reads("Saved as j")


def reads_a_long_answer(talk: Talk, *, streaming: bool) -> None:
    before = talk.telegram.received("editMessageText")
    shown = len(talk.telegram.shown(ANN))
    talk.model.says(TEA, to="about tea")
    talk.ann("Tell me all about tea", until_it_reads="That is all about tea.")
    parts = talk.telegram.shown(ANN)[shown:]
    edits = talk.telegram.received("editMessageText") - before

    assert len(parts) >= 3
    assert bool(edits) == streaming


def is_sent_a_file(talk: Talk) -> None:
    (talk.home.path / "workspace" / "tea.md").write_text("# Tea\n\n- green\n")
    arguments = {"path": "tea.md", "caption": "The **list**: `tea.md` <of> you & me"}
    talk.model.calls("send_file", arguments, then="There _it_ is.", to="Send me the list")
    talk.ann("Send me the list", until_it_reads="There it is.")
    talk.reads("The list: tea.md <of> you & me")


def allows_a_program(talk: Talk) -> None:
    arguments = {"command": ["sh", "-c", "echo '<b>*steeping*</b>' && true"]}
    talk.model.calls("exec", arguments, then="It *steeps*: `<b>`.", to="Put the kettle on")
    talk.telegram.says(ANN, "Put the kettle on")
    talk.presses("Allow once", on="May I run a program?")
    talk.reads("It steeps: <b>.")
    assert "steeping" in str(talk.model.bodies()[-1]["messages"][-1]["content"])


def sends_a_picture_and_corrects_its_words(talk: Talk) -> None:
    talk.model.says("A **kettle**.", to="What is on it")
    picture = base64.b64encode(JPEG).decode()
    talk.telegram.ask("message", chat_id=ANN, photo=picture, caption="What is on it?")
    talk.reads("A kettle.")
    assert "data:image/jpeg;base64," in str(talk.model.bodies()[-1]["messages"])

    asked = [one for one in talk.telegram.ask("chat", chat_id=ANN) if not one["is_bot"]][-1]
    number = asked["message_id"]
    talk.telegram.ask("edit", chat_id=ANN, message_id=number, caption="What is under it?")
    talk.model.says("A *stove*, then.", to="And now")
    talk.ann("And now?", until_it_reads="A stove, then.")
    assert "What is under it?" in str(talk.model.bodies()[-1]["messages"])


def hears_of_trouble(talk: Talk) -> None:
    """What passes is not heard of, and what lasts is told once."""
    talk.model.stumbles()
    talk.model.says("Awake __now__.", to="Are you awake")
    talk.ann("Are you awake?", until_it_reads="Awake now.")
    talk.model.refuses(401, "Incorrect API key provided")
    talk.ann("Are you well?", until_it_reads="does not accept my key")


def types_every_command(talk: Talk) -> None:
    """Ends with what undoes a pause, which is in the list."""
    talk.ann("/remember I like <b>tea</b>, *green* & `hot`", until_it_reads="green")
    before = len(talk.telegram.ask("sent", chat_id=ANN))
    for command in COMMANDS:
        talk.telegram.says(ANN, f"/{command.name}")
    until(lambda: len(talk.telegram.ask("sent", chat_id=ANN)) >= before + len(COMMANDS))


# --- Slack ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class SlackTalk:
    """Ann and the bot: in a direct message and in threads of a channel."""

    home: Home
    slack: Slack
    model: Speaker
    running: Running
    direct: str = ""

    def reads(self, words: str, *, channel: str) -> str:
        """Waits for a message with these words; the last one."""

        def found() -> list[str]:
            posts = self.slack.ask("chat", channel=channel)
            return [post["text"] for post in posts if post["is_bot"] and words in post["text"]]

        until(found, about=lambda: f"{words!r} in {self.slack.ask('shown', channel=channel)}")
        return found()[-1]

    def presses(self, label: str, *, on: str, channel: str) -> None:
        """Presses a button of the card with these words."""

        def found() -> list[Card]:
            cards = self.slack.cards(channel)
            return [card for card in cards if on in card.text and label in card.buttons]

        until(found, about=lambda: f"{on!r} in {self.slack.ask('shown', channel=channel)}")
        self.slack.press(channel, found()[-1], label, by=SLACK_ANN)

    def told(self) -> int:
        """How many messages Ann was sent, those that she alone sees included."""
        alone = self.slack.ask("ephemeral", user=SLACK_ANN)
        return len(alone) + len(self.slack.ask("sent", channel=self.direct))


def test_a_whole_conversation_in_slack_is_accepted_by_all_judges(
    home: Home, slack: Slack, llmock: LLMock
) -> None:
    model = LLMockSpeaker(llmock, slowly=True)
    serve(home, model, client="direct")
    home.serve_slack(
        slack, HEARTHBOT_SLACK__STREAMING="true", HEARTHBOT_SLACK__STREAM_EVERY_S="0.1"
    )
    for address in (f"{SLACK_TEAM}:{SLACK_ANN}", f"{SLACK_TEAM}.{CHANNEL}"):
        assert home.run("access", "approve", f"slack:{address}").returncode == 0
    running = home.start()
    until(partial(serves_slack, running))
    direct = slack.ask("direct", user=SLACK_ANN)
    talk = SlackTalk(home=home, slack=slack, model=model, running=running, direct=direct)

    thread = reads_in_a_thread(talk)
    sends_and_is_sent_files(talk)
    allows_in_private_what_a_thread_asks_for(talk, thread)
    types_every_command_there(talk)
    slack.ask("open_home", user=SLACK_ANN)
    until(lambda: slack.ask("home", user=SLACK_ANN))

    assert running.end() == 0
    assert "Traceback" not in running.said()
    model.accept()
    sent = slack.ask("log")
    wrong = [one["response"] for one in sent if one["fault"]]
    assert wrong == []
    judged = judge_calls((one["method"], one["params"]) for one in sent)
    print(f"\nSlack: {judged}")
    assert judged["message"] > len(COMMANDS) + 10
    assert judged["view"] > 0
    assert {"actions", "section"} <= set(judged)


def serves_slack(running: Running) -> bool:
    assert running.process.poll() is None, running.said()[-2000:]
    return "slack.connected" in running.said()


def reads_in_a_thread(talk: SlackTalk) -> str:
    """The ts of the thread."""
    talk.model.says(TEA, to="about tea")
    thread = talk.slack.says(CHANNEL, "Tell me all about tea", by=SLACK_ANN)
    talk.reads("That is all about tea.", channel=CHANNEL)
    assert len(talk.slack.shown(CHANNEL, thread)) >= 3
    assert talk.slack.received("chat.update") > 0
    return thread


def allows_in_private_what_a_thread_asks_for(talk: SlackTalk, thread: str) -> None:
    """Others read along in the thread, so the card is in the owner's own chat."""
    arguments = {"command": ["sh", "-c", "echo '<!channel> *steeping*'"]}
    talk.model.calls("exec", arguments, then="It *steeps*: `<!here>`.", to="Put the kettle on")
    talk.slack.says(CHANNEL, "Put the kettle on", by=SLACK_ANN, thread=thread)
    talk.presses("Allow once", on="May I run a program?", channel=talk.direct)
    talk.reads("steeps", channel=CHANNEL)


def sends_and_is_sent_files(talk: SlackTalk) -> None:
    (talk.home.path / "workspace" / "tea.md").write_text("# Tea\n\n- green\n")
    talk.model.calls(
        "send_file", {"path": "tea.md", "caption": "The **list**"}, then="There _it_ is.", to="list"
    )
    talk.slack.ask("post", text="Send me the list", user=SLACK_ANN)
    talk.reads("it", channel=talk.direct)
    talk.model.says("A **kettle**.", to="What is on it")
    picture = base64.b64encode(JPEG).decode()
    talk.slack.ask("post", text="What is on it?", user=SLACK_ANN, files={"kettle.jpg": picture})
    talk.reads("kettle", channel=talk.direct)


def types_every_command_there(talk: SlackTalk) -> None:
    talk.slack.ask("command", text="remind in 2 seconds drink <b>tea</b>", user=SLACK_ANN)
    talk.presses("Save", on="drink", channel=talk.direct)
    before = talk.told()
    for command in COMMANDS:
        talk.slack.ask("command", text=command.name, user=SLACK_ANN)
    until(lambda: talk.told() >= before + len(COMMANDS))
    talk.presses("Done", on="drink", channel=talk.direct)
    talk.reads("Done.", channel=talk.direct)
