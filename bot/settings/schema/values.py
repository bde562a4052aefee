"""What single settings take beyond a plain type, and what is said when they do not fit.

The types at the end are used by the sections in `bot.settings.schema.settings`. A check raises
ValueError, whose text follows "found ...; ".
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, SecretStr

from agent.skills import rules as patterns
from memory.records.section import http_url

# --- reactions ----------------------------------------------------------------------------------
#
# The reactions that Telegram lets a bot set, and which of them is meant by another emoji.
#
# The list is that of ReactionTypeEmoji in the Bot API (10.0); a test holds it against that of the
# library.

_ALLOWED = (
    "👍 👎 ❤ 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 🥱 🥴 😍 🐳 ❤\u200d🔥 🌚 🌭 💯"
    " 🤣 ⚡ 🍌 🏆 💔 🤨 😐 🍓 🍾 💋 🖕 😈 😴 😭 🤓 👻 👨\u200d💻 👀 🎃 🙈 😇 😨 🤝 ✍ 🤗 🫡 🎅 🎄"
    " ☃ 💅 🤪 🗿 🆒 💘 🙉 🦄 😘 💊 🙊 😎 👾 🤷\u200d♂ 🤷 🤷\u200d♀ 😡"
)


REACTIONS = tuple(_ALLOWED.split())


_NEAREST = {
    "✅": "👌", "✔": "👌", "☑": "👌", "🆗": "👌", "👊": "🤝", "🙌": "👏", "🥳": "🎉", "🎊": "🎉",
    "💪": "🔥", "🚀": "🔥", "✨": "🤩", "⭐": "🤩", "🌟": "🤩", "🥇": "🏆", "🏅": "🏆",
    "😂": "🤣", "😆": "😁", "😄": "😁", "😀": "😁", "😃": "😁", "🙂": "😁", "😊": "🤗", "☺": "🤗",
    "😉": "😎", "😅": "😁", "😋": "😁", "😮": "😱", "😯": "😱", "😲": "🤯", "😳": "😱", "😵": "🤯",
    "🥺": "😢", "😞": "😢", "😔": "😢", "😟": "😨", "☹": "😢", "🙁": "😢", "😿": "😢", "😩": "😭",
    "😠": "😡", "😤": "😡", "👿": "😈", "🤢": "🤮", "🧐": "🤔", "❓": "🤔", "🤐": "🙊",
    "♥": "❤", "💙": "❤", "💚": "❤", "💛": "❤", "🧡": "❤", "💜": "❤", "🖤": "❤", "🤍": "❤",
    "💕": "❤", "💖": "💘", "💗": "💘", "💓": "💘", "💞": "💘", "💝": "💘", "😻": "😍", "😚": "😘",
    "📝": "✍", "🖊": "✍", "✏": "✍", "🔍": "👀", "🔎": "👀", "👁": "👀", "⏳": "👀", "⌛": "👀",
    "👋": "🤗", "🫂": "🤗", "🫶": "❤", "💤": "😴", "⛄": "☃", "🐋": "🐳", "🥂": "🍾", "❌": "👎",
    "🚫": "👎", "🫠": "🥴", "🤖": "👾", "💻": "👨\u200d💻", "🧑\u200d💻": "👨\u200d💻",
}  # fmt: skip


_UNSEEN = {0xFE0F: None, 0xFE0E: None} | dict.fromkeys(range(0x1F3FB, 0x1F400))


"""How an emoji is drawn, and the colour of a skin: Telegram's have neither."""


def telegram_reaction(emoji: str) -> str:
    """The reaction for an emoji; empty where there is none that says the same."""
    plain = emoji.strip().translate(_UNSEEN)
    if plain in REACTIONS:
        return plain
    near = _NEAREST.get(plain, "")
    return near if near in REACTIONS else ""


def _person_number(value: object) -> int:
    """A Telegram user id, however it was written. Never a name."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**19:
        return value
    text = value.strip() if isinstance(value, str) else ""
    if number := re.fullmatch(r"(?:telegram:)?([1-9][0-9]{0,18})", text):
        return int(number[1])
    if isinstance(value, str) and not text:
        raise ValueError("an empty entry lets nobody in; remove it")
    if text == "*":
        raise ValueError(
            'an entry is a user\'s number; to let everyone in, set access.policy = "open"'
        )
    raise ValueError(
        "an entry is a user's number, such as 99 or telegram:99: "
        "names can change hands, the number cannot"
    )


def _slack_member(value: object) -> str:
    """A member of a Slack workspace: the workspace's id and the member's. Never a name."""
    text = value.strip() if isinstance(value, str) else ""
    if member := re.fullmatch(r"(?:slack:)?([TE][A-Z0-9]{1,30}:[UW][A-Z0-9]{1,30})", text):
        return member[1]
    if isinstance(value, str) and not text:
        raise ValueError("an empty entry lets nobody in; remove it")
    if text == "*":
        raise ValueError('an entry is one member; to let everyone in, set access.policy = "open"')
    raise ValueError(
        "an entry is the workspace's id and the member's, such as T012AB3CD:U045EF6GH: "
        "names can change hands, the ids cannot"
    )


def matching(pattern: str, otherwise: str) -> AfterValidator:
    """Return a check that a whole text fits a pattern; `otherwise` is said where it does not."""
    form = re.compile(pattern)

    def check(value: str) -> str:
        if not form.fullmatch(value):
            raise ValueError(otherwise)
        return value

    return AfterValidator(check)


def at_least_or_none(least: int, *, none: str) -> AfterValidator:
    """Return a check that a number is 0, which is called `none`, or not too small."""

    def check(value: int) -> int:
        if 0 < value < least:
            raise ValueError(f"allowed: 0 ({none}), or {least} and more")
        return value

    return AfterValidator(check)


def _listen_on(value: str) -> str:
    parts = re.fullmatch(r"(?:\[[0-9A-Fa-f:.]+\]|[^\s:/]+):([0-9]{1,5})", value)
    if parts is None or int(parts[1]) > 65535:
        raise ValueError("allowed: host:port, such as 127.0.0.1:8443")
    return value


def _pattern(value: str) -> str:
    """A regular expression as it will be used: what the search cannot take is told at start."""
    if not value.strip():
        raise ValueError("an empty pattern fits every message; if that is meant, write .*")
    try:
        patterns.Pattern(value)
    except patterns.PatternWrong as wrong:
        at = f" at character {wrong.position}" if wrong.position else ""
        raise ValueError(f"not a regular expression that works: {wrong.text}{at}") from None
    return value


def _variable_value(value: SecretStr) -> SecretStr:
    if "\0" in value.get_secret_value():
        raise ValueError("no variable can hold the character with the number 0")
    return value


def listed(value: object) -> object:
    """One table where a list of tables may stand."""
    return (value,) if isinstance(value, dict) else value


def _ack_reaction(value: str) -> str:
    """One of Telegram's reactions, or the nearest to it."""
    if value.strip() and not telegram_reaction(value):
        raise ValueError(f"Telegram has no such reaction; it has {' '.join(REACTIONS)}")
    return telegram_reaction(value)


def _json_table(value: dict[str, Any]) -> dict[str, Any]:
    """Arguments of a tool: what JSON can hold, which is less than TOML can."""
    if wrong := ", ".join(_not_json(value)):
        raise ValueError(f"allowed: texts, numbers, true, false, lists and tables, but {wrong}")
    return value


def _not_json(value: object, place: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _not_json(item, f"{place}.{name}" if place else name)
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _not_json(item, f"{place}[{at}]")
    elif isinstance(value, float) and not math.isfinite(value):
        yield f"{place} is no finite number"
    elif isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value):
        yield f"{place} holds half a character"
    elif not isinstance(value, str | int | float | None):
        yield f"{place} is a {type(value).__name__}, which is to be written as text"


AckReaction = Annotated[str, AfterValidator(_ack_reaction)]
PersonNumber = Annotated[int, BeforeValidator(_person_number)]
SlackMember = Annotated[str, BeforeValidator(_slack_member)]
ListenOn = Annotated[str, AfterValidator(_listen_on)]
Pattern = Annotated[str, AfterValidator(_pattern)]
AgentName = Annotated[
    str,
    matching(
        "(?!bindings$)[a-z0-9]{1,30}(-[a-z0-9]{1,30}){0,3}",
        "an agent's name is made of a-z, 0-9 and single -, 30 at most in a row",
    ),
]
SkillName = Annotated[
    str,
    matching(
        "(?=.{1,64}$)[a-z0-9]+(-[a-z0-9]+)*",
        "a skill's name is up to 64 of a-z, 0-9 and single hyphens, as its folder",
    ),
]
ServerName = Annotated[
    str,
    matching(
        "[a-z0-9]{1,30}([_-][a-z0-9]{1,30}){0,3}",
        "a server's name is made of a-z, 0-9, single - and _, 30 at most in a row",
    ),
]
VariableName = Annotated[
    str,
    matching("[A-Za-z_][A-Za-z0-9_]*", "the name of a variable is made of A-Z, a-z, 0-9 and _"),
]
VariableValue = Annotated[SecretStr, AfterValidator(_variable_value)]
JsonTable = Annotated[Mapping[str, Any], BeforeValidator(_json_table)]
ApiRoot = Annotated[str, AfterValidator(lambda url: f"{http_url(url)}/")]
Folder = Annotated[str, matching("(?s:((/|~/).*)?)", "allowed: a folder that begins with / or ~/")]
