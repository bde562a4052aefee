"""What the model is asked behind the scenes and answers there, what it was sent, and which files
still hold something."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.acceptance.rig import Home, Model, StandIn, Telegram, until

EXTRACTING = "Find what is worth knowing about the people"
SUMMING = "Find the last topic boundary"
NOTING = "Write the notes that will help"
BEHIND_THE_SCENES = (EXTRACTING, SUMMING, NOTING)

REMEMBERED = "Relevant memories about the user:"
EARLIER = "## Earlier conversation"
IN_MIND = "## Keep in mind"
PREVIOUS = "## Previous Conversation Context"

QUICK = {
    # What is tested here is found by its words; meaning has tests of its own.
    "HEARTHBOT_MEMORY__EMBEDDINGS": "false",
    "HEARTHBOT_MEMORY__EXTRACTION__IDLE_SECONDS": "1",
    "HEARTHBOT_MEMORY__EXTRACTION__MIN_MESSAGES": "2",
}
EXTRACTS = {**QUICK, "HEARTHBOT_MEMORY__EXTRACTION__ENABLED": "true"}
SUMS_UP = {
    **QUICK,
    "HEARTHBOT_HISTORY__MESSAGES_MAX": "8",
    "HEARTHBOT_HISTORY__COMPACT_EVERY_S": "0",
}


def all_of(request: Mapping[str, Any]) -> str:
    """Every text of one request to the model, with what it called itself."""
    return "\n".join(
        f"{text_of(message.get('content'))}\n{json.dumps(message.get('tool_calls') or [])}"
        for message in request["messages"]
    )


def text_of(content: Any) -> str:
    """The text of one message, whatever its shape."""
    if isinstance(content, list):
        return "\n".join(part.get("text", "") for part in content)
    return content or ""


def asked(model: Model, about: str) -> list[str]:
    """What the cheap model was asked, of one kind, in order."""
    return [text for request in model.ask("requests") if about in (text := all_of(request))]


def sent(model: Model) -> list[str]:
    """All requests of conversations, as texts, in order."""
    texts = [all_of(request) for request in model.ask("requests")]
    return [text for text in texts if not any(about in text for about in BEHIND_THE_SCENES)]


def block(text: str, heading: str) -> str:
    """What stands last behind a heading, up to the next one; empty without it."""
    return text.rpartition(heading)[2].partition("\n#")[0] if heading in text else ""


def answers(model: Model, about: str, text: str, *, times: int = 1) -> None:
    """What the cheap model will say to the next questions of one kind."""
    for _ in range(times):
        model.ask("say", text=text, when={"user~": about})


def found(*facts: tuple[str, str], speaker: str = "the user") -> str:
    """An answer with facts: each its sentence and the words that it rests on."""
    made = [
        {
            "text": text,
            "category": "background",
            "certainty": 0.95,
            "speaker": speaker,
            "quote": quote,
            "contradicts": None,
        }
        for text, quote in facts
    ]
    return json.dumps({"facts": made})


def summed(summary: str) -> str:
    """An answer that sums up, and sees one topic."""
    return json.dumps(
        {"boundary_index": -1, "reason": "one topic", "confidence": 0.9, "summary": summary}
    )


def pinned(*pins: str) -> str:
    """An answer with what is to be kept in mind."""
    return json.dumps({"pins": pins, "recommendations": []})


def holders(home: Home, text: str) -> list[str]:
    """Every file below the home that holds a text, in any case, as UTF-8 or UTF-16."""
    forms = [text.lower().encode(code) for code in ("utf-8", "utf-16-le")]
    files = [file for file in home.path.rglob("*") if file.is_file() and not file.is_symlink()]
    return [
        str(file.relative_to(home.path))
        for file in files
        if any(form in _bytes_of(file).lower() for form in forms)
    ]


def _bytes_of(file: Path) -> bytes:
    """Empty for one that has gone meanwhile."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""


def asks(telegram: Telegram, chat: int, text: str, *, group: int = 0) -> str:
    """One message of a person, and the answer to it."""
    place = group or chat
    before = len(telegram.shown(place))
    telegram.ask("message", chat_id=place, user_id=chat, text=text)
    shown = until(
        lambda: telegram.shown(place)[before:], about=lambda: f"an answer to {text!r} in {place}"
    )
    return shown[0]


def hold(stand_in: StandIn, about: str) -> None:
    """Questions of this kind get no answer until the stand-in is to behave."""
    kept = {"kind": "hold", "after": False}
    stand_in.ask("fault", method="chat", action=kept, times=None, when={"user~": about})


def facts_of(home: Home) -> list[str]:
    """The facts that hold, in the order in which they came."""
    rows = home.ask_database("select text from facts where valid_to_ms is null order by id")
    return [text for (text,) in rows]


def moment(seconds: float) -> None:
    """A chance moment goes by: for kills, which have to hit anywhere."""
    time.sleep(seconds)
