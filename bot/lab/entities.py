"""Telegram's text rules: strict HTML, UTF-16 lengths, and the entities of what people write.

Called by the Telegram stand-in. The HTML rules and error texts follow the real parser; a test
compares the two.
"""

import re
from dataclasses import dataclass, field
from typing import Any

TAGS = {
    "b": "bold",
    "strong": "bold",
    "i": "italic",
    "em": "italic",
    "u": "underline",
    "ins": "underline",
    "s": "strikethrough",
    "strike": "strikethrough",
    "del": "strikethrough",
    "code": "code",
    "pre": "pre",
    "a": "text_link",
    "span": "spoiler",
    "tg-spoiler": "spoiler",
    "tg-emoji": "custom_emoji",
    "blockquote": "blockquote",
}
_ATTRIBUTE = {"a": "href", "code": "class", "span": "class", "tg-emoji": "emoji-id"}
_PREFIX = {"code": "language-", "span": "tg-"}
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}
_SPACE = " \t\r\n\v\0"
_REFERENCE = re.compile(r"&(?:#(?:x(?P<hex>[0-9a-fA-F]+)|(?P<dec>[0-9]+))|(?P<name>[a-zA-Z]+));?")
_LINK = re.compile(r"(?:https?|tg|ton|mailto)://?\S+|[^\s/]+\.[^\s/]+\S*", re.IGNORECASE)
_WRITTEN = re.compile(
    r"(?<![\w/@])(?:(?P<bot_command>/\w{1,64}(?:@\w{3,32})?)|(?P<mention>@\w{3,32})"
    r"|(?P<url>https?://[^\s<>]+))"
)


class MarkupError(Exception):
    """The text is not what Telegram takes; the message is the server's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """Text as a person sees it, and its entities with UTF-16 offsets."""

    text: str
    entities: tuple[dict[str, Any], ...] = ()


def units(text: str) -> int:
    """The length in UTF-16 code units, as Telegram counts."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def written_entities(text: str) -> list[dict[str, Any]]:
    """The entities that Telegram finds in a person's plain text."""
    found = []
    for match in _WRITTEN.finditer(text):
        kind = str(match.lastgroup)
        offset = units(text[: match.start()])
        found.append({"type": kind, "offset": offset, "length": units(match.group())})
    return found


def trimmed(parsed: Parsed) -> Parsed:
    """Without the white space at both ends, which Telegram takes away."""
    text = parsed.text.strip()
    if text == parsed.text:
        return parsed
    lead = units(parsed.text) - units(parsed.text.lstrip())
    end = units(text)
    kept = []
    for entity in parsed.entities:
        start = max(0, entity["offset"] - lead)
        stop = min(end, entity["offset"] - lead + entity["length"])
        if stop > start:
            kept.append({**entity, "offset": start, "length": stop - start})
    return Parsed(text=text, entities=tuple(kept))


def parse_html(text: str) -> Parsed:
    """The text without its tags; raises MarkupError as the real server does."""
    if "<" not in text and "&" not in text:
        return Parsed(text=text)
    return _EntityReader(text).read()


@dataclass(slots=True)
class _OpenEntity:
    tag: str
    offset: int
    argument: str


@dataclass(slots=True)
class _EntityReader:
    """One pass over the markup; `_at` is the place, a NUL stands at the end."""

    source: str
    _at: int = 0
    _offset: int = 0
    _out: list[str] = field(default_factory=list)
    _open: list[_OpenEntity] = field(default_factory=list)
    _found: list[dict[str, Any]] = field(default_factory=list)

    def read(self) -> Parsed:
        source = self.source = self.source.replace("\0", "") + "\0"
        while (char := source[self._at]) != "\0":
            if char == "&" and (decoded := self._reference()):
                self._put(decoded)
            elif char != "<":
                self._put(char)
                self._at += 1
            elif source[self._at + 1] == "/":
                self._close_tag()
            else:
                self._open_tag()
        if self._open:
            tag = self._open[-1].tag
            raise MarkupError(f'Can\'t find end tag corresponding to start tag "{tag}"')
        return self._result()

    def _result(self) -> Parsed:
        text = "".join(self._out)
        if any(0xD800 <= ord(char) < 0xE000 for char in text):
            raise MarkupError(
                "Text contains invalid Unicode characters after decoding HTML entities,"
                " check for unmatched surrogate code units"
            )
        for entity in self._found:
            if entity["type"] == "code":
                entity.pop("language", None)
        ordered = sorted(self._found, key=lambda e: (e["offset"], -e["length"]))
        return Parsed(text=text, entities=tuple(ordered))

    def _put(self, text: str) -> None:
        self._out.append(text)
        self._offset += 2 if ord(text) > 0xFFFF else 1

    def _reference(self) -> str | None:
        match = _REFERENCE.match(self.source, self._at)
        if match is None:
            return None
        if match["name"]:
            char = _NAMED.get(match["name"])
        else:
            code = int(match["hex"], 16) if match["hex"] else int(match["dec"])
            fits = 0 < code < 0x10FFFF and match.end() - self._at < 10
            char = chr(code) if fits else None
        if char is not None:
            self._at = match.end()
        return char

    def _open_tag(self) -> None:
        begin = self._at
        self._at += 1
        tag = self._word(_SPACE + ">").lower()
        if self._char == "\0":
            raise self._wrong("Unclosed start tag", begin)
        if tag not in TAGS:
            raise self._wrong(f'Unsupported start tag "{tag}"', begin)
        argument = ""
        while self._char != ">":
            argument = self._attribute(tag, begin) or argument
        if tag == "span" and argument != "spoiler":
            raise self._wrong('Tag "span" must have class "tg-spoiler"', begin)
        self._at += 1
        self._open.append(_OpenEntity(tag, self._offset, argument))

    def _attribute(self, tag: str, begin: int) -> str:
        self._skip_space()
        if self._char == ">":
            return ""
        name = self._word(_SPACE + "=>/\"'").lower()
        if not name:
            raise self._wrong(f'Empty attribute name in the tag "{tag}"', begin)
        self._skip_space()
        value = ""
        if self._char == "=":
            self._at += 1
            self._skip_space()
            if self._char != "\0":
                value = self._value(begin)
        elif self._char != "\0":
            return "1" if (tag, name) == ("blockquote", "expandable") else ""
        if self._char == "\0":
            raise self._wrong(f'Unclosed start tag "{tag}"', begin)
        if (tag, name) == ("blockquote", "expandable"):
            return "1"
        prefix = _PREFIX.get(tag, "")
        if _ATTRIBUTE.get(tag) == name and value.startswith(prefix):
            return value[len(prefix) :]
        return ""

    def _value(self, begin: int) -> str:
        quote = self._char
        if quote not in "'\"":
            start = self._at
            while self._char.isascii() and (self._char.isalnum() or self._char in ".-"):
                self._at += 1
            if self._char not in _SPACE + ">":
                raise self._wrong("Unexpected end of name token", start)
            value = self.source[start : self._at].lower()
        else:
            self._at += 1
            value = self._quoted(quote)
        if self._char == "\0":
            raise self._wrong("Unclosed start tag", begin)
        return value

    def _quoted(self, quote: str) -> str:
        value: list[str] = []
        while self._char not in {quote, "\0"}:
            decoded = self._reference() if self._char == "&" else None
            if decoded is None:
                decoded = self._char
                self._at += 1
            value.append(decoded)
        if self._char == quote:
            self._at += 1
        return "".join(value)

    def _close_tag(self) -> None:
        begin = self._at
        if not self._open:
            raise self._wrong("Unexpected end tag", begin)
        self._at += 2
        found = self._word(_SPACE + ">").lower()
        self._skip_space()
        if self._char != ">":
            raise self._wrong("Unclosed end tag", begin)
        opened = self._open.pop()
        if found and found != opened.tag:
            expected = f'expected "</{opened.tag}>", found "</{found}>"'
            raise self._wrong("Unmatched end tag", begin, expected)
        self._at += 1
        if self._offset > opened.offset:
            self._entity(opened)

    def _entity(self, opened: _OpenEntity) -> None:
        place = {"offset": opened.offset, "length": self._offset - opened.offset}
        entity: dict[str, Any] = {"type": TAGS[opened.tag], **place}
        last = self._found[-1] if self._found else {}
        same = all(last.get(key) == value for key, value in place.items())
        match opened.tag:
            case "a":
                shown = _utf16_slice("".join(self._out), opened.offset)
                url = opened.argument or shown
                if not _LINK.fullmatch(url):
                    return
                entity["url"] = url
            case "tg-emoji":
                if not opened.argument.isdigit():
                    raise MarkupError("Invalid custom emoji identifier specified")
                entity["custom_emoji_id"] = opened.argument
            case "blockquote" if opened.argument:
                entity["type"] = "expandable_blockquote"
            case "code" if opened.argument:
                entity["language"] = opened.argument
                if same and last["type"] == "pre":
                    last["language"] = opened.argument
                    return
            case "pre" if same and last["type"] == "code" and "language" in last:
                last["type"] = "pre"
                return
        self._found.append(entity)

    @property
    def _char(self) -> str:
        return self.source[self._at]

    def _word(self, stop: str) -> str:
        start = self._at
        while self._char not in stop:
            self._at += 1
        return self.source[start : self._at]

    def _skip_space(self) -> None:
        while self._char != "\0" and self._char in _SPACE:
            self._at += 1

    def _wrong(self, what: str, at: int, more: str = "") -> MarkupError:
        place = len(self.source[:at].encode("utf-8", "surrogatepass"))
        return MarkupError(f"{what} at byte offset {place}" + (f", {more}" if more else ""))


def _utf16_slice(text: str, start: int) -> str:
    return text.encode("utf-16-le", "surrogatepass")[start * 2 :].decode("utf-16-le", "replace")
