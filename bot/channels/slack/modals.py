"""Forms in Slack, from a person's home or a message to them alone: a new reminder, another wording
of a fact. Called by the intake.

A form is opened at once, for what allows it is good for three seconds, and nothing is lost with one
that does not open. What is filled in becomes the command that says the same, so that it is read,
shown and agreed to as if it had been written.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import Any

import structlog

from bot.channels.base import EDIT_FACT, NEW_REMINDER
from bot.channels.slack.api import SlackTrouble, SlackWeb
from bot.channels.slack.wire import HOME_CHANNEL, EventKind, SlackEvent, SlackPayload, presser
from bot.channels.wire import Json, needed_direct, needed_id, part, text_of

log = structlog.get_logger()

WAITING_MAX = 50
TEXT_CHARS_MAX = 1_000
TIME_CHARS_MAX = 100

REMINDER, FACT = "new_reminder", "edit_fact"
"""The names of the forms."""

_WHAT, _WHEN = "what", "when"
_FACT_KEY = re.compile(r"f[0-9]{1,12}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FormWish:
    """Somebody pressed the button of a form on their home, or in a direct message; `sender` is
    their address. With a key it is about that fact."""

    trigger: str
    channel: str
    sender: str
    key: str = ""


class Forms:
    """Opens forms, one after the other, in `work`."""

    def __init__(self, web: SlackWeb) -> None:
        self._web = web
        self._wishes: asyncio.Queue[FormWish] = asyncio.Queue(WAITING_MAX)

    def wished(self, wish: FormWish) -> None:
        """Returns at once; one too many at a time is left out."""
        if not self._wishes.full():
            self._wishes.put_nowait(wish)

    async def work(self) -> None:
        """Until cancelled."""
        while True:
            wish = await self._wishes.get()
            view = fact_form(wish.channel, wish.key) if wish.key else reminder_form(wish.channel)
            try:
                await self._web.call("views.open", trigger_id=wish.trigger, view=view)
            except SlackTrouble as error:
                log.warning("slack.no_form", why=str(error))


def reminder_form(channel: str) -> dict[str, Any]:
    """Return what to be reminded of, and when; `channel` is the person's direct message."""
    fields = [
        _field(_WHAT, "What", "call Bob", chars_max=TEXT_CHARS_MAX),
        _field(_WHEN, "When", "tomorrow at 5, or every weekday at 8", chars_max=TIME_CHARS_MAX),
        _note("In our chat I show how I read it, and you say yes there."),
    ]
    return _form(REMINDER, channel, "New reminder", "Show me", fields)


def fact_form(channel: str, key: str) -> dict[str, Any]:
    """Return how a fact should read. Its key is the name of the field."""
    fields = [
        _field(key, f"How {key} should read", "I like tea, not coffee", chars_max=TEXT_CHARS_MAX),
        _note("What comes of it I say in our chat."),
    ]
    return _form(FACT, channel, "Correct a fact", "Correct", fields)


def form_wish(payload: Json) -> FormWish | None:
    """Return which form is wished for, if that is what a payload says. Never raises."""
    view, actions = payload.get("view"), payload.get("actions")
    if payload.get("type") != "block_actions":
        return None
    action = actions[0] if isinstance(actions, list) and actions else None
    value = text_of(action, "value") if isinstance(action, dict) else ""
    key = value.removeprefix(EDIT_FACT) if value.startswith(EDIT_FACT) else ""
    if value != NEW_REMINDER and not _FACT_KEY.fullmatch(key):
        return None
    try:
        who = presser(payload)
        return FormWish(
            trigger=text_of(payload, "trigger_id"),
            channel=needed_direct(view, HOME_CHANNEL)
            if isinstance(view, dict)
            else needed_direct(part(payload, "channel"), "id"),
            sender=f"slack:{who.home}:{who.user}",
            key=key,
        )
    except ValueError:
        return None


def filled(payload: Json) -> SlackEvent | None:
    """A form of ours that was sent, as the command that it stands for. Raises ValueError for one
    that claims to be ours and is not."""
    view = payload.get("view")
    if payload.get("type") != "view_submission" or not isinstance(view, dict):
        return None
    name = view.get("callback_id")
    if name not in (REMINDER, FACT):
        return None
    values = part(part(view, "state"), "values")
    if name == REMINDER:
        text = f"remind {_given(values, _WHEN)} {_given(values, _WHAT)}"
    else:
        key = next((str(name) for name in values if _FACT_KEY.fullmatch(str(name))), "")
        text = f"memory edit {key} {_given(values, key)}"
    channel, who = needed_direct(view, HOME_CHANNEL), presser(payload)
    view_id = needed_id(view, "id")
    body = {
        "command": "/hearth",
        "text": text,
        "user_id": who.user,
        "channel_id": channel,
        "trigger_id": view_id,
    }
    return SlackEvent(
        payload=SlackPayload(
            kind=EventKind.COMMAND, team=who.team, home=who.home, us="", body=body
        ),
        event_id=f"form:{view_id}",
        channel=channel,
        sender=who.user,
    )


def _given(values: Json, name: str) -> str:
    """Return what stands in a field, on one line."""
    return " ".join(text_of(part(part(values, name), name), "value").split())


def _plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text, "emoji": True}


def _form(
    name: str, channel: str, title: str, submit: str, blocks: list[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "type": "modal",
        "callback_id": name,
        HOME_CHANNEL: channel,
        "title": _plain(title),
        "submit": _plain(submit),
        "close": _plain("Cancel"),
        "blocks": blocks,
    }


def _note(text: str) -> dict[str, Any]:
    return {"type": "context", "elements": [_plain(text)]}


def _field(name: str, label: str, hint: str, *, chars_max: int) -> dict[str, Any]:
    return {
        "type": "input",
        "block_id": name,
        "label": _plain(label),
        "element": {
            "type": "plain_text_input",
            "action_id": name,
            "max_length": chars_max,
            "placeholder": _plain(hint),
        },
    }
