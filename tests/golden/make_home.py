"""Makes the home in `tests/golden/home`: the real bot of today, lived in against the stand-ins.

`python -m tests.golden.make_home` writes it anew. Do that only where a home of this version is
wanted: the one that lies there is of an earlier version, and has to open in later ones.
"""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack, closing
from pathlib import Path

from tests.acceptance.rig import Card, Home, Model, Running, Telegram, until
from tests.acceptance.tool_words import ALWAYS, DENY, ONCE, calling, reads, running
from tests.golden.fixture_home import save

ADA, BEN, STRANGER, GROUP = 7, 8, 99, -100

CONFIG = """\
# A few settings that a home may have.
[telegram]
group_policy = "mention"

[history]
messages_max = 60

[[budget.limits]]
scope = "person"
period = "day"
tokens = 900000

[logging]
level = "info"

[agents.work]
system_prompt = "You help with work, briefly."

[skills.tea-time.env]
TEA_KIND = "green"
"""

SKILL = """\
---
name: tea-time
description: Says how long tea has to draw. Use when somebody makes tea.
metadata:
  trigger:
    keywords: [tea]
---
Green tea draws for two minutes, black tea for four.
"""

PLAYBOOK = "Sum up the sums, and name the largest one first.\n"


class Life:
    """A bot on a home, and those who talk to it. Every step waits for what is seen of it."""

    def __init__(self, home: Home, telegram: Telegram) -> None:
        self._home = home
        self._telegram = telegram

    def command(self, *words: str) -> None:
        """Run one command, which has to work."""
        done = self._home.run(*words)
        assert done.returncode == 0, (words, done.stdout, done.stderr)

    def asks(self, chat: int, text: str, *, by: int = 0, name: str = "Ada") -> None:
        """Have a person write, and wait for an answer."""
        before = len(self._telegram.shown(chat))
        self._telegram.ask("message", chat_id=chat, user_id=by or chat, text=text, first_name=name)
        until(
            lambda: len(self._telegram.shown(chat)) > before,
            about=lambda: f"{text!r}: {self._telegram.shown(chat)[-2:]}",
            timeout_s=20,
        )

    def taps(self, chat: int, text: str, button: str, *, then: str) -> None:
        """Have a person write what is asked about, and press a button."""

        def asked() -> list[Card]:
            # Others may wait beside it, such as the one about a stranger.
            return [card for card in self._telegram.cards(chat) if button in card.buttons]

        self._telegram.says(chat, text)
        card = until(asked, about=lambda: text)[-1]
        self._telegram.press(chat, card, button)
        reads(self._telegram, chat, then)
        until(lambda: not asked())


def files(home: Home) -> None:
    """What the owner put there by hand."""
    workspace = home.path / "workspace"
    (workspace / "skills" / "tea-time").mkdir(parents=True, exist_ok=True)
    (home.path / "config.toml").write_text(CONFIG, encoding="utf-8")
    (home.path / "config.toml").chmod(0o600)
    (workspace / "skills" / "tea-time" / "SKILL.md").write_text(SKILL, encoding="utf-8")


def before(life: Life, folder: Path) -> None:
    """Set up on the command line, where no bot runs."""
    life.command("access", "approve", f"telegram:{ADA}")
    life.command("access", "approve", f"telegram:{BEN}", "--role", "member")
    life.command("access", "approve", f"telegram:{GROUP}")
    life.command("skills", "approve", "tea-time", "--yes")
    playbook = folder / "sums.md"
    playbook.write_text(PLAYBOOK, encoding="utf-8")
    about = ("--keywords", "sums", "--description", "Sums up", "--file", str(playbook))
    life.command("skills", "playbook", "set", "sums", *about)


def talk(life: Life) -> None:
    """Turns with tools, facts that are told, corrected and noted, and a conversation that ends."""
    life.asks(ADA, "/timezone Europe/Oslo")
    life.asks(ADA, "Hello, who are you?")
    life.asks(ADA, "/remember I take my tea without milk.")
    life.asks(ADA, "/remember I live in Oslo.")
    life.asks(ADA, "/remember I moved to Bergen.")
    fact = calling("store_fact", say="Keep it", text="Ada has a boat.", category="background")
    life.asks(ADA, fact)
    document = {"name": "Harbour rules", "text": "Boats are tied up at both ends.\n" * 3}
    life.asks(ADA, calling("save_document", say="Keep the rules", **document))
    # Text of a file makes later wishes doubtful: they would be asked about.
    life.asks(ADA, calling("write_file", say="Note the plan", path="plan.md", content="1. Tea.\n"))
    life.asks(ADA, calling("read_file", say="Read the plan", path="plan.md"))
    life.asks(ADA, "/new")
    life.asks(ADA, "How long does tea draw?")
    life.asks(ADA, "Please answer in lines:\n!say First line.")
    life.asks(BEN, "Good morning", name="Ben")
    life.asks(BEN, "/language German", name="Ben")
    life.asks(GROUP, "@hearth_lab_bot where do we meet?", by=BEN, name="Ben")
    life.asks(STRANGER, "May I come in?", name="Cleo")


def orders(life: Life) -> None:
    """Reminders, jobs, quiet hours, and what has to be agreed to."""
    life.taps(ADA, "/remind 3 January 2090 at 10:00 water the fern", "Save", then="Saved as j")
    life.command("schedule", "add", "every Monday at 9", "Look for rain", "--do", "--yes")
    life.command("schedule", "add", "0 8 1 1 *", "New year", "--name", "new-year", "--yes")
    life.command("schedule", "add", "every day at 18:00", "Feed the cat", "--yes")
    life.command("schedule", "pause", "j4")
    life.asks(ADA, "/quiet 22:00-07:00")
    life.taps(ADA, running("echo one", say="run one"), ONCE, then="| run one")
    life.asks(ADA, "/new")
    life.taps(ADA, running("echo two", say="run two"), DENY, then="| run two")
    life.asks(ADA, "/new")
    life.taps(ADA, running("echo three", say="run three"), ALWAYS, then="| run three")


def ended(bot: Running) -> None:
    """Stop it as a person does."""
    assert bot.end() == 0, bot.said()


def main() -> None:
    """Make the home anew."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        telegram = stack.enter_context(closing(Telegram()))
        model = stack.enter_context(closing(Model()))
        home = stack.enter_context(closing(Home(folder, TZ="Europe/Oslo")))
        home.serve_with(telegram, model)
        life = Life(home, telegram)
        life.command("access", "list")
        files(home)
        before(life, folder)
        bot = home.start()
        until(bot.serving)
        talk(life)
        orders(life)
        ended(bot)
        save(home.path, now_ms=int(time.time() * 1000))


if __name__ == "__main__":
    main()
