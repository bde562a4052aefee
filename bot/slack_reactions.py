"""The names by which Slack knows emojis: those that somebody would react with. Called by
`bot.slack`. Any other emoji may be given by its name, those of the workspace too."""

from __future__ import annotations

import re

_NAMES = {
    "👍": "+1", "👎": "-1", "👌": "ok_hand", "👏": "clap", "🙌": "raised_hands", "🙏": "pray",
    "🤝": "handshake", "💪": "muscle", "👋": "wave", "✌": "v", "🤞": "crossed_fingers",
    "👊": "facepunch", "✊": "fist", "☝": "point_up", "👆": "point_up_2", "👇": "point_down",
    "👉": "point_right", "👈": "point_left", "✍": "writing_hand", "🫡": "saluting_face",
    "🫶": "heart_hands", "👀": "eyes", "🧠": "brain", "❤": "heart", "♥": "hearts",
    "🧡": "orange_heart", "💛": "yellow_heart", "💚": "green_heart", "💙": "blue_heart",
    "💜": "purple_heart", "🖤": "black_heart", "🤍": "white_heart", "💔": "broken_heart",
    "💖": "sparkling_heart", "💘": "cupid", "💯": "100", "🔥": "fire", "✨": "sparkles",
    "⭐": "star", "🌟": "star2", "⚡": "zap", "💡": "bulb", "🚀": "rocket", "🎉": "tada",
    "🎊": "confetti_ball", "🥳": "partying_face", "🏆": "trophy", "🥇": "first_place_medal",
    "🎁": "gift", "🎂": "birthday", "🍾": "champagne", "🥂": "clinking_glasses", "☕": "coffee",
    "✅": "white_check_mark", "✔": "heavy_check_mark", "☑": "ballot_box_with_check", "❌": "x",
    "❎": "negative_squared_cross_mark", "🚫": "no_entry_sign", "⛔": "no_entry", "⚠": "warning",
    "❗": "exclamation", "❓": "question", "❔": "grey_question", "➕": "heavy_plus_sign",
    "🆗": "ok", "🆒": "cool", "🆕": "new", "🔴": "red_circle", "🟢": "large_green_circle",
    "🟡": "large_yellow_circle", "🔵": "large_blue_circle", "📌": "pushpin", "📎": "paperclip",
    "📝": "memo", "📅": "date", "📆": "calendar", "📈": "chart_with_upwards_trend",
    "📉": "chart_with_downwards_trend", "📊": "bar_chart", "📁": "file_folder", "📧": "e-mail",
    "🔗": "link", "🔒": "lock", "🔑": "key", "🔍": "mag", "🔎": "mag_right", "🔔": "bell",
    "🔕": "no_bell", "⏰": "alarm_clock", "⏳": "hourglass_flowing_sand", "⌛": "hourglass",
    "🔁": "repeat", "🛠": "hammer_and_wrench", "🔧": "wrench", "🐛": "bug", "🤖": "robot_face",
    "💬": "speech_balloon", "😀": "grinning", "😃": "smiley", "😄": "smile", "😁": "grin",
    "😆": "laughing", "😅": "sweat_smile", "😂": "joy", "🤣": "rolling_on_the_floor_laughing",
    "🙂": "slightly_smiling_face", "🙃": "upside_down_face", "😉": "wink", "😊": "blush",
    "😇": "innocent", "🥰": "smiling_face_with_3_hearts", "😍": "heart_eyes", "🤩": "star-struck",
    "😘": "kissing_heart", "😋": "yum", "😎": "sunglasses", "🤓": "nerd_face",
    "🧐": "face_with_monocle", "🤔": "thinking_face", "🤨": "face_with_raised_eyebrow",
    "😐": "neutral_face", "😏": "smirk", "🙄": "face_with_rolling_eyes", "😬": "grimacing",
    "🤗": "hugging_face", "🤫": "shushing_face", "🤐": "zipper_mouth_face", "😴": "sleeping",
    "🥱": "yawning_face", "😷": "mask", "🤒": "face_with_thermometer", "🤮": "face_vomiting",
    "🤯": "exploding_head", "🥴": "woozy_face", "😮": "open_mouth", "😲": "astonished",
    "😳": "flushed", "🥺": "pleading_face", "😢": "cry", "😭": "sob", "😱": "scream",
    "😨": "fearful", "😞": "disappointed", "😔": "pensive", "🙁": "slightly_frowning_face",
    "😤": "triumph", "😡": "rage", "😠": "angry", "🤬": "face_with_symbols_on_mouth",
    "😈": "smiling_imp", "💀": "skull", "💩": "hankey", "🤡": "clown_face", "👻": "ghost",
    "👾": "space_invader", "🎃": "jack_o_lantern", "🎄": "christmas_tree", "🎅": "santa",
    "☃": "snowman", "🙈": "see_no_evil", "🙉": "hear_no_evil", "🙊": "speak_no_evil",
    "🤷": "shrug", "🤦": "face_palm", "💅": "nail_care", "🦄": "unicorn_face", "🐳": "whale",
    "🕊": "dove_of_peace", "🌚": "new_moon_with_face", "☀": "sunny", "🌧": "rain_cloud",
    "🌈": "rainbow", "🍀": "four_leaf_clover", "🌭": "hotdog", "🍕": "pizza", "🍌": "banana",
    "🍓": "strawberry", "💋": "kiss", "💊": "pill", "🗿": "moyai",
    "🤷\u200d♂": "man-shrugging", "🤷\u200d♀": "woman-shrugging",
    "👨\u200d💻": "male-technologist", "👩\u200d💻": "female-technologist",
}  # fmt: skip
_NAME = re.compile(r":?([a-z0-9_+'-]{1,100})(?:::skin-tone-[2-6])?:?")
_UNSEEN = {0xFE0F: None, 0xFE0E: None} | dict.fromkeys(range(0x1F3FB, 0x1F400))
"""How an emoji is drawn, and the colour of a skin."""


def slack_name(emoji: str) -> str:
    """Slack's name of an emoji, or the name that was given; empty where it is not known."""
    plain = emoji.strip().translate(_UNSEEN)
    if plain in _NAMES:
        return _NAMES[plain]
    named = _NAME.fullmatch(plain.casefold())
    return named[1] if named else ""
