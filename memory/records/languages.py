"""The languages that people can be written to in: by code, English name, or their own name.

Only a language of this table ever becomes a word of a prompt, whoever named it: a person by
`/language`, or a platform that says what its app is set to. Read by `bot.commands.people`,
`bot.people.access`, and the layer that says which language to reply in.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from dataclasses import dataclass
from functools import cache

AUTO = "auto"
"""In place of a code: the language of each message."""

NAME_CHARS_MAX = 40
SUGGESTIONS_MAX = 4

_TABLE = """
af Afrikaans
am Amharic, አማርኛ
ar Arabic, العربية
az Azerbaijani, Azərbaycanca
be Belarusian, Беларуская
bg Bulgarian, Български
bn Bengali, বাংলা, Bangla
bs Bosnian, Bosanski
ca Catalan, Català, Valencian
cs Czech, Čeština
cy Welsh, Cymraeg
da Danish, Dansk
de German, Deutsch
el Greek, Ελληνικά
en English
eo Esperanto
es Spanish, Español, Castellano, Castilian
et Estonian, Eesti
eu Basque, Euskara
fa Persian, فارسی, Farsi
fi Finnish, Suomi
fil Filipino, Filipino, Tagalog
fr French, Français
ga Irish, Gaeilge
gd Scottish Gaelic, Gàidhlig
gl Galician, Galego
gsw Swiss German, Schwiizerdütsch, Schweizerdeutsch
gu Gujarati, ગુજરાતી
ha Hausa
he Hebrew, עברית
hi Hindi, हिन्दी
hr Croatian, Hrvatski
ht Haitian Creole, Kreyòl ayisyen
hu Hungarian, Magyar
hy Armenian, Հայերեն
id Indonesian, Bahasa Indonesia
ig Igbo
is Icelandic, Íslenska
it Italian, Italiano
ja Japanese, 日本語, Nihongo
ka Georgian, ქართული
kk Kazakh, Қазақша
km Khmer, ខ្មែរ
kn Kannada, ಕನ್ನಡ
ko Korean, 한국어
ku Kurdish, Kurdî
ky Kyrgyz, Кыргызча
la Latin, Latina
lb Luxembourgish, Lëtzebuergesch
lo Lao, ລາວ
lt Lithuanian, Lietuvių
lv Latvian, Latviešu
mk Macedonian, Македонски
ml Malayalam, മലയാളം
mn Mongolian, Монгол
mr Marathi, मराठी
ms Malay, Bahasa Melayu
mt Maltese, Malti
my Burmese, မြန်မာ
nb Norwegian, Norsk, Bokmål, Norwegian Bokmål
ne Nepali, नेपाली
nl Dutch, Nederlands, Flemish
nn Norwegian Nynorsk, Nynorsk
pa Punjabi, ਪੰਜਾਬੀ
pl Polish, Polski
ps Pashto, پښتو
pt Portuguese, Português
pt-br Brazilian Portuguese, Português do Brasil
ro Romanian, Română, Moldovan
ru Russian, Русский
si Sinhala, සිංහල
sk Slovak, Slovenčina
sl Slovenian, Slovenščina, Slovene
so Somali, Soomaali
sq Albanian, Shqip
sr Serbian, Српски, Srpski
sv Swedish, Svenska
sw Swahili, Kiswahili
ta Tamil, தமிழ்
te Telugu, తెలుగు
tg Tajik, Тоҷикӣ
th Thai, ไทย
tk Turkmen, Türkmençe
tr Turkish, Türkçe
uk Ukrainian, Українська
ur Urdu, اردو
uz Uzbek, Oʻzbekcha
vi Vietnamese, Tiếng Việt
yi Yiddish, ייִדיש
yo Yoruba, Yorùbá
zh Chinese, 中文, Mandarin, Simplified Chinese, 简体中文
zh-hant Traditional Chinese, 繁體中文
zu Zulu, isiZulu
"""
"""A code (ISO 639, in small letters), the English name, the language's own name, other names."""

_OTHER_CODES = {
    "in": "id",
    "iw": "he",
    "no": "nb",
    "tl": "fil",
    "zh-hk": "zh-hant",
    "zh-mo": "zh-hant",
    "zh-tw": "zh-hant",
}
"""What platforms write for some of them."""

_CODE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8}){0,3}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """One of the table. `english` is how a prompt names it; `own` may be the same."""

    code: str
    english: str
    own: str

    @property
    def shown(self) -> str:
        """For people: "German (Deutsch)"."""
        return self.english if self.own == self.english else f"{self.english} ({self.own})"


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageRead:
    """`language` where it is clear, else what may have been meant."""

    language: Language | None = None
    suggestions: tuple[Language, ...] = ()


def read_language(text: str) -> LanguageRead:
    """The language that somebody names, in whatever case and with or without accents."""
    said = _folded(text[: NAME_CHARS_MAX + 1])
    if not said or len(said) > NAME_CHARS_MAX:
        return LanguageRead()
    named = _names().get(said) or language_of(text.strip())
    if named is not None:
        return LanguageRead(language=named)
    near = difflib.get_close_matches(said, _names(), n=2 * SUGGESTIONS_MAX, cutoff=0.7)
    found = dict.fromkeys(_names()[name] for name in near)
    return LanguageRead(suggestions=tuple(found)[:SUGGESTIONS_MAX])


def language_of(code: str) -> Language | None:
    """The language of a code as platforms write it: `de`, `de-DE`, `pt_BR`, `zh-Hant-TW`. None for
    one that is not in the table, and for what is no code."""
    if not _CODE.fullmatch(code):
        return None
    parts = code.lower().replace("_", "-").split("-")
    for count in range(len(parts), 0, -1):
        part = "-".join(parts[:count])
        if (found := _languages().get(_OTHER_CODES.get(part, part))) is not None:
            return found
    return None


def language_name(code: str) -> str:
    """Return how a prompt names the language of a code; empty for none, and for AUTO."""
    found = language_of(code)
    return found.english if found is not None else ""


@cache
def _languages() -> dict[str, Language]:
    return {language.code: language for language, _ in _rows()}


@cache
def _names() -> dict[str, Language]:
    """Every name, folded, and every code that is no name of another."""
    found = {_folded(code): language for code, language in _languages().items()}
    return found | {_folded(name): language for language, names in _rows() for name in names}


@cache
def _rows() -> tuple[tuple[Language, tuple[str, ...]], ...]:
    rows = []
    for line in _TABLE.strip().splitlines():
        code, _, rest = line.partition(" ")
        names = tuple(rest.split(", "))
        rows.append((Language(code=code, english=names[0], own=names[:2][-1]), names))
    return tuple(rows)


def _folded(text: str) -> str:
    """Without accents, case, and the difference between space and underscore. Marks that are part
    of a script, as in Hindi, go on both sides alike."""
    apart = unicodedata.normalize("NFKD", text.strip()).casefold()
    plain = "".join(letter for letter in apart if not unicodedata.combining(letter))
    return re.sub(r"[\s_]+", " ", plain)
