"""Paths that try to leave the workspace, changed by chance: the list of case SE-09 and more."""

from __future__ import annotations

import unicodedata
from random import Random

GOALS = (
    "{home}/config.toml",
    "{home}/data/hearthbot.db",
    "{outside}/secret.txt",
    "{outside}",
    "{home}",
    "../config.toml",
    "../data/hearthbot.db",
    "../../outside/secret.txt",
    "{root}/../config.toml",
    "{root}_evil/secret.txt",
    "/proc/self/cwd",
    "/proc/self/environ",
    "/etc/hostname",
    "~/config.toml",
    "file://{home}/config.toml",
    "link_out/secret.txt",
    "link_home/config.toml",
    "link_file",
    "link_dangling",
    "link_loop/x",
    "sub/link_up/config.toml",
    "hard_config.txt",
    "hard_database",
    ".env",
    "app/.env.local",
    "memory/people/p2/notes.md",
    "files/results/slack+9/kept.txt",
    "AGENTS.md",
    "prompts/base.md",
    "skills/mine/SKILL.md",
)
"""Not to be read, listed or changed; the last three may be read, and are not written unasked."""

HARMLESS = ("a.txt", "sub/b.txt", "sub", ".", "new/c.txt", "deep/er/d.txt")


def path(chance: Random, places: dict[str, str]) -> str:
    """One of these, with up to four changes."""
    found = chance.choice(GOALS if chance.random() < 0.9 else HARMLESS).format(**places)
    for _ in range(chance.randint(0, 4)):
        found = chance.choice(_CHANGES)(chance, found)
    return found


def _doubled(chance: Random, text: str) -> str:
    return text.replace("/", chance.choice(["//", "/./", "/.//", "///"]))


def _in_front(chance: Random, text: str) -> str:
    front = ["./", "sub/../", "link_out/../", "new/../", "/", "//", " ", "a.txt/../", "../", "~/"]
    return chance.choice(front) + text


def _behind(chance: Random, text: str) -> str:
    behind = ["/", "/.", "/..", " ", ".", "\0", "\0.txt", "/../config.toml", "::$DATA", "\n", "%00"]
    return text + chance.choice(behind)


def _percent(chance: Random, text: str) -> str:
    sign = chance.choice(["/", ".", "e"])
    return text.replace(sign, f"%{ord(sign):02{chance.choice('xX')}}", chance.randint(1, 3))


def _lookalike(chance: Random, text: str) -> str:
    one, other = chance.choice(
        [("/", "\u2215"), ("/", "\uff0f"), (".", "\uff0e"), ("..", "\u2025")]
    )
    return text.replace(one, other)


def _wide(chance: Random, text: str) -> str:
    place = chance.randrange(len(text) or 1)
    letter = text[place : place + 1]
    is_plain = "!" <= letter <= "~"
    return text[:place] + (chr(ord(letter) + 0xFEE0) if is_plain else letter) + text[place + 1 :]


def _case(chance: Random, text: str) -> str:
    return chance.choice([text.upper(), text.lower(), text.swapcase(), text.title()])


def _hidden(chance: Random, text: str) -> str:
    place = chance.randrange(len(text) + 1)
    sign = chance.choice(["\u200b", "\u200d", "\u202e", "\ufeff", "\u0301", "\\", "\t", "\x7f"])
    return text[:place] + sign + text[place:]


def _backslashes(chance: Random, text: str) -> str:
    return text.replace("/", "\\", chance.randint(1, 3))


def _decomposed(chance: Random, text: str) -> str:
    return unicodedata.normalize(chance.choice(["NFD", "NFKC"]), text)


def _cut(chance: Random, text: str) -> str:
    place = chance.randrange(len(text) + 1)
    return text[:place] + text[place + 1 :]


def _long(chance: Random, text: str) -> str:
    return chance.choice(["./" * 200 + text, text + "x" * 300, "d/" * 40 + text])


_CHANGES = (
    *(_doubled, _in_front, _behind, _percent, _lookalike, _wide, _case, _hidden, _backslashes),
    *(_decomposed, _cut, _long),
)
