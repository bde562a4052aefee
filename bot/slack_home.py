"""Homes in Slack: published when they are opened, and after a press on them.

Called by the intake and the channel, which never wait for it. Slack keeps what was published last,
so one that is opened often is written once for all that came meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

import structlog

from agent.errors import AssistantError
from agent.messages import Address
from agent.ports import Clock
from bot.channel import HomeLine, HomeSection, TellsHome
from bot.markup import slack_parts
from bot.outage import Outage
from bot.slack_blocks import ROW_BUTTONS_MAX, SECTION_CHARS_MAX, Block, button_block, marked
from bot.slack_raw import HOME_CHANNEL
from bot.slack_web import Limited, SlackTrouble, SlackWeb

log = structlog.get_logger()

EVERY_S = 0.75
"""Between two writings: Slack allows a hundred a minute in a workspace. Whoever opens theirs again
and again waits behind all others each time."""

STRANGERS_EVERY_S = 3_600.0
"""Between two writings for one stranger: the page is the one answer that they get (SPEC §4)."""

WAITING_MAX = 500
"""Homes that wait to be written. One more is left out: it is written when it is opened again."""

BLOCKS_MAX = 100
TITLE_CHARS_MAX = 150
SAID_CHARS_MAX = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wish:
    """A home that is to be written. `said` is what came of the press on it."""

    chat_id: str
    said: str = ""


class Homes:
    """Writes homes, one after the other, in `work`."""

    def __init__(self, web: SlackWeb, tells: TellsHome, *, clock: Clock) -> None:
        self._web = web
        self._tells = tells
        self._clock = clock
        self._wishes: dict[str, _Wish] = {}
        self._strangers: dict[str, float] = {}
        """When the page of a stranger was last wished for, on the monotonic clock."""
        self._some = asyncio.Event()
        self._outage = Outage("slack.no_home", clock)

    def knows(self, sender: str) -> bool:
        """Whether this address is somebody's who is let in."""
        return self._tells.knows(sender)

    def opened(self, sender: str, chat_id: str) -> None:
        """Somebody who is let in looks at their home. Returns at once."""
        self._strangers.pop(sender, None)
        self._look(sender, chat_id)

    def opened_by_stranger(self, sender: str, chat_id: str) -> None:
        """The same of a stranger: once an hour, for Slack keeps what they read. Of more strangers
        than can wait, none is written. Returns at once."""
        now_s = self._clock.monotonic()
        if now_s - self._strangers.get(sender, -STRANGERS_EVERY_S) < STRANGERS_EVERY_S:
            return
        self._strangers = {
            one: at_s for one, at_s in self._strangers.items() if now_s - at_s < STRANGERS_EVERY_S
        }
        if len(self._strangers) < WAITING_MAX:
            self._strangers[sender] = now_s
            self._look(sender, chat_id)

    def _look(self, sender: str, chat_id: str) -> None:
        before = self._wishes.get(sender)
        self._wish(sender, _Wish(chat_id=chat_id) if before is None else before)

    def pressed(self, sender: str, chat_id: str, said: str) -> None:
        """Somebody pressed a button on their home, and is told this. Returns at once."""
        self._wish(sender, _Wish(chat_id=chat_id, said=said))

    def _wish(self, sender: str, wish: _Wish) -> None:
        if sender not in self._wishes and len(self._wishes) >= WAITING_MAX:
            log.debug("slack.home_left_out", waiting=WAITING_MAX)
            return
        self._wishes[sender] = wish
        self._some.set()

    async def work(self) -> None:
        """Until cancelled. What goes wrong is told once, and harms nothing else."""
        while True:
            await self._some.wait()
            sender = next(iter(self._wishes))
            wish = self._wishes.pop(sender)
            if not self._wishes:
                self._some.clear()
            try:
                await self._write(sender, wish)
                self._outage.over()
            except Limited as limit:
                self._outage.tell(str(limit))
                self._wish(sender, self._wishes.get(sender, wish))
                await self._clock.sleep(limit.seconds)
            except (AssistantError, SlackTrouble) as trouble:
                self._strangers.pop(sender, None)  # nothing was written, so the next look counts
                self._outage.tell(str(trouble))
            await self._clock.sleep(EVERY_S)

    async def _write(self, sender: str, wish: _Wish) -> None:
        lane = Address(channel="slack", chat_id=wish.chat_id).key
        shown = await self._tells.sections(sender, lane)
        view = {
            "type": "home",
            "blocks": home_blocks(shown, said=wish.said),
            HOME_CHANNEL: wish.chat_id.partition(".")[2],
        }
        user = sender.rpartition(":")[2]
        await self._web.call("views.publish", user_id=user, view=view)


def home_blocks(sections: Sequence[HomeSection], *, said: str = "") -> list[Block]:
    """At most as many blocks as Slack takes; what is beyond is left out, and that is said."""
    numbers = count(1)
    found: list[Block] = []
    if said.strip():
        found += [_text(said[:SAID_CHARS_MAX]), {"type": "divider"}]
    for one in sections:
        if one.title.strip():
            found.append(_header(one.title.strip()))
        found += _lines(one.lines, numbers)
    if len(found) <= BLOCKS_MAX:
        return found
    return [*found[: BLOCKS_MAX - 1], _text("… and more than fits here.")]


def _lines(lines: Sequence[HomeLine], numbers: count[int]) -> list[Block]:
    """A line with buttons is a block of its own; the others are one text, cut where it is long."""
    found: list[Block] = []
    plain: list[str] = []
    for line in lines:
        if not line.buttons:
            plain.append(line.text)
            continue
        found += _texts(plain)
        plain = []
        found += _with_buttons(line, [button_block(one, next(numbers)) for one in line.buttons])
    return [*found, *_texts(plain)]


def _with_buttons(line: HomeLine, buttons: list[Block]) -> list[Block]:
    """A single button stands beside its text, several below it."""
    texts = _texts([line.text])
    if len(buttons) == 1 and texts:
        return [*texts[:-1], {**texts[-1], "accessory": buttons[0]}]
    return [*texts, {"type": "actions", "elements": buttons[:ROW_BUTTONS_MAX]}]


def _texts(lines: Sequence[str]) -> list[Block]:
    parts = slack_parts("\n".join(lines), limit=SECTION_CHARS_MAX)
    return [marked(part.markup) for part in parts]


def _text(line: str) -> Block:
    """Words of ours or of a desk, as Markdown; the first part is all that there is room for."""
    parts = slack_parts(line, limit=SECTION_CHARS_MAX)
    return marked(parts[0].markup if parts else "…")


def _header(title: str) -> Block:
    text = {"type": "plain_text", "text": title[:TITLE_CHARS_MAX], "emoji": True}
    return {"type": "header", "text": text}
