"""The reactions that Telegram lets a bot set, and which of them is meant by another emoji.

The list is that of ReactionTypeEmoji in the Bot API (10.0); a test holds it against the library's.
"""

from __future__ import annotations

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
