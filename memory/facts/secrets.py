"""Whether a text holds a secret: what nobody should find in a memory, a prompt or an export.

Called before a fact is stored. It knows shapes, not values: keys of known services, what is called
a password, card numbers, private keys, addresses with a password in them, and long random words.
Phone numbers, dates, order numbers and ISBNs are no secrets.
"""

from __future__ import annotations

import math
import re
from collections import Counter

from memory.database.rows import storable

TEXT_CHARS_MAX = 20_000
"""What is looked at; nothing longer is stored as one sentence."""

_KEYS = re.compile(
    r"""(?<![A-Za-z0-9])(?:
      sk-(?:ant-|proj-|or-v1-|svcacct-)?[A-Za-z0-9_-]{16,}   # OpenAI, Anthropic, OpenRouter
    | (?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10,}            # Stripe
    | whsec_[A-Za-z0-9]{16,}
    | gh[pousr]_[A-Za-z0-9]{20,} | github_pat_[A-Za-z0-9_]{20,}
    | glpat-[A-Za-z0-9_-]{16,}
    | xox[abeoprs]-[A-Za-z0-9-]{10,} | xapp-\d-[A-Za-z0-9-]{10,}
    | (?:AKIA|ASIA|AROA)[A-Z0-9]{16}
    | AIza[A-Za-z0-9_-]{30,} | ya29\.[A-Za-z0-9_-]{20,}
    | gsk_[A-Za-z0-9]{20,} | hf_[A-Za-z0-9]{20,} | r8_[A-Za-z0-9]{20,} | xai-[A-Za-z0-9]{20,}
    | npm_[A-Za-z0-9]{20,} | pypi-[A-Za-z0-9_-]{20,} | dop_v1_[a-f0-9]{32,}
    | SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,} | key-[a-f0-9]{32}
    | \d{8,10}:[A-Za-z0-9_-]{35}                              # Telegram bots
    | eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*  # JSON web tokens
    | AGE-SECRET-KEY-1[A-Z0-9]{20,}
    )""",
    re.VERBOSE,
)
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY", re.IGNORECASE)
_LOGIN_IN_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@]*:[^\s/@]+@", re.IGNORECASE)
_PASSWORD_IN_SETTINGS = re.compile(
    r"\b(?:password|passwd|pwd|secret|accountkey|sharedaccesskey|access_token|client_secret"
    r"|api_?key|auth_?token)\s*=\s*[^\s;&]{4,}",
    re.IGNORECASE,
)
_CALLED_ONE = re.compile(
    r"""\b(?P<what>pass(?:word|phrase|code|wort)|kennwort|contrase[nñ]a|mot\ de\ passe|pwd|passwd
      | pin(?:\ ?(?:code|number))? | (?:api|secret|access|private|license|recovery|encryption|2fa)
        [\ _-]?(?:key|token|code|phrase)
      | (?:auth|bearer|access|bot)[\ _-]?token | client[\ _-]?secret
      | cvv | cvc | seed\ phrase | (?:door|alarm|safe|gate|unlock)\ code)\b
      (?P<between>[^.:=]{0,40}?)
      (?:\s*[:=]\s*|\s+(?:is|was|are|ist|lautet|es|est|to|as)\s+(?:now\s+|set\s+to\s+)?)
      ["'`“„«]?(?P<value>[^\s"'`”“«»]{3,})""",
    re.IGNORECASE | re.VERBOSE,
)
_ORDINARY = re.compile(
    r"""(?:stored|saved|kept|managed|written|changed|changing|reset|rotated|shared|expired|expiring
      |expires|weak|strong|strength|long|short|secure|safe|unsafe|wrong|right|incorrect|invalid|valid
      |required|needed|missing|lost|forgotten|protected|hidden|known|unknown|due|old|new|good|bad
      |annoying|hard|easy|different|the|same|not|never|always|only|also|in|on|at|by|with|for|from
      |a|an|his|her|their|its|my|your|too|very|being|going|about|based|used|asked|typed|entered
      |supposed|something|someone|somebody|be|have|get|use|change|reset|rotate|store|keep
      |managers?|generated|encrypted|hashed|updated|needing|due|up|out|off|no|yes|now|hers|theirs
      )[.,;!?]*$""",
    re.IGNORECASE | re.VERBOSE,
)
_ALWAYS_TELLING = re.compile(r"pass|kennwort|contrase|mot de|pwd", re.IGNORECASE)
_GROUPED_DIGITS = re.compile(r"(?<![\w.+-])\d(?:[ -]?\d){11,18}(?![\w-])")
_CARD = re.compile(
    r"^(?:4\d{12}(?:\d{3}){0,2}|5[1-5]\d{14}|2[2-7]\d{14}|3[47]\d{13}|3(?:0[0-5]|[68]\d)"
    r"\d{11}|6(?:011|5\d\d|4[4-9]\d)\d{12,15}|35\d{14}|62\d{14,17}|5[06-8]\d{10,17})$"
)
_ISBN = re.compile(r"^97[89]\d{10}$")
_LONG_WORD = re.compile(r"[A-Za-z0-9+/_=-]{20,}")
_UUID = re.compile(r"^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$", re.IGNORECASE)
_HEX = re.compile(r"^[0-9a-f]+$", re.IGNORECASE)
_ADDRESS = re.compile(r"\b(?:https?://|www\.)\S+|\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+|(?<!\S)[~.]?/\S+")
_BITS_MIN = 3.6
"""Of entropy for each character, from which a long mixed word is taken for random."""


def secret_in(text: str) -> str:
    """Return what kind of secret stands in the text, with its article (`a password`); empty if
    none."""
    text = storable(text[:TEXT_CHARS_MAX])
    if _PRIVATE_KEY.search(text):
        return "a private key"
    if _KEYS.search(text):
        return "a key of a service"
    if _LOGIN_IN_ADDRESS.search(text) or _PASSWORD_IN_SETTINGS.search(text):
        return "a password inside of an address or setting"
    if any(_is_card(match[0]) for match in _GROUPED_DIGITS.finditer(text)):
        return "a card number"
    if any(_is_told(match) for match in _CALLED_ONE.finditer(text)):
        return "a password or code"
    # Without addresses and paths: they are long, and told on purpose.
    long_words = _LONG_WORD.findall(_ADDRESS.sub(" ", text))
    if any(_is_random(word.strip("=-_/+")) for word in long_words):
        return "what looks like a key or token"
    return ""


def _is_card(found: str) -> bool:
    digits = re.sub(r"\D", "", found)
    if not _CARD.match(digits) or _ISBN.match(digits):
        return False
    doubled = (int(digit) * (1 + n % 2) for n, digit in enumerate(reversed(digits)))
    return sum(one - 9 if one > 9 else one for one in doubled) % 10 == 0


def _is_told(match: re.Match[str]) -> bool:
    """Return whether a value follows, and not a remark: `is stored in a safe`, `is too short`."""
    value = match["value"].strip(".,;!?)")
    if len(value) < 3 or _ORDINARY.match(value):
        return False
    if any(letter.isdigit() for letter in value):
        return not _LONG_DATE.match(value)
    # A plain word is a password only where it is called one: `a code is sent by mail`.
    return bool(_ALWAYS_TELLING.search(match["what"]))


_LONG_DATE = re.compile(r"^(?:\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4})$")


def _is_random(word: str) -> bool:
    if len(word) < 20 or _UUID.match(word):
        return False
    if all(part.isalpha() or part.isdigit() for part in re.split("[_-]+", word)):
        return False
    if _HEX.match(word) and not word.isdigit():
        return len(word) >= 32 and any(letter.isdigit() for letter in word)
    has = (str.islower, str.isupper, str.isdigit)
    if sum(any(test(letter) for letter in word) for test in has) < 3:
        return False
    longest_plain = max(len(run) for run in re.findall(r"[a-z]+|[A-Z]+|\d+|[^A-Za-z\d]+", word))
    shares = [count / len(word) for count in Counter(word).values()]
    bits = -sum(share * math.log2(share) for share in shares)
    return longest_plain <= 9 and bits >= _BITS_MIN
