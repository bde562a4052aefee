"""Telegram's text rules: strict HTML, UTF-16 lengths, and the entities of what people write.

Called by the Telegram stand-in. It refuses all that the real parser refuses, and forms that one
still takes but the bot never writes, such as a bare `&`; a test compares the two.
"""

import re
from dataclasses import dataclass
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
    "tg-spoiler": "spoiler",
    "blockquote": "blockquote",
}
_ATTRIBUTES = {
    "a": re.compile(r'href="([^"]*)"'),
    "code": re.compile(r'class="language-([^"]*)"'),
    "blockquote": re.compile("(expandable)"),
}
_REFERENCE = re.compile("&(lt|gt|amp|quot);")
_NOTHING = re.compile("()")
_TOKEN = re.compile(
    r"<(?P<close>/)?(?P<tag>[a-z-]+)(?: (?P<attribute>[^<>]*))?>"
    r"|&(?P<name>lt|gt|amp|quot);|(?P<text>[^<&\0]+)"
)
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}
_LINK = re.compile(r"(?:https?|tg|ton|mailto)://?\S+|[^\s/]+\.[^\s/]+\S*", re.IGNORECASE)
_WRITTEN = re.compile(
    # Not within a word or a path: 1/2 and a/b are no commands.
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
    """Return the length in UTF-16 code units, as Telegram counts."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def written_entities(text: str) -> list[dict[str, Any]]:
    """Return the entities that Telegram finds in a person's plain text."""
    found = []
    for match in _WRITTEN.finditer(text):
        kind = str(match.lastgroup)
        offset = units(text[: match.start()])
        found.append({"type": kind, "offset": offset, "length": units(match.group())})
    return found


def trimmed(parsed: Parsed) -> Parsed:
    """Take away the white space at both ends, as Telegram does."""
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
    """Return the text without its tags; raise MarkupError as the real server does."""
    out, at = "", 0
    opened: list[tuple[str, int, str]] = []
    found: list[dict[str, Any]] = []

    def wrong(what: str, more: str = "") -> MarkupError:
        place = len(text[:at].encode("utf-8", "surrogatepass"))
        return MarkupError(f"{what} at byte offset {place}{more}")

    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise wrong("Unclosed start tag")
        tag = token["tag"]
        if token["text"] or token["name"]:
            out += token["text"] or _NAMED[token["name"]]
        elif token["close"]:
            if not opened:
                raise wrong("Unexpected end tag")
            expected, offset, value = opened.pop()
            if tag != expected:
                raise wrong("Unmatched end tag", f', expected "</{expected}>", found "</{tag}>"')
            # An entity without text is dropped in silence, as the real server does.
            if units(out) > offset:
                _close(found, expected, offset, out, value)
        elif tag not in TAGS:
            raise wrong(f'Unsupported start tag "{tag}"')
        else:
            attribute, pattern = token["attribute"] or "", _ATTRIBUTES.get(tag, _NOTHING)
            given = pattern.fullmatch(attribute)
            if attribute and given is None:
                raise wrong(f'Unclosed start tag "{tag}"')
            value = _REFERENCE.sub(lambda m: _NAMED[m[1]], given[1]) if given else ""
            opened.append((tag, units(out), value))
        at = token.end()
    if opened:
        raise MarkupError(f'Can\'t find end tag corresponding to start tag "{opened[-1][0]}"')
    # Only `pre` has a language in the end.
    shown = ({k: v for k, v in e.items() if (e["type"], k) != ("code", "language")} for e in found)
    ordered = sorted(shown, key=lambda e: (e["offset"], -e["length"]))
    return Parsed(text=out, entities=tuple(ordered))


def _close(found: list[dict[str, Any]], tag: str, offset: int, out: str, value: str) -> None:
    """Note the entity that ends here. Code right within `pre` gives that its language."""
    place = {"offset": offset, "length": units(out) - offset}
    entity: dict[str, Any] = {"type": TAGS[tag], **place}
    last = found[-1] if found else {}
    match tag:
        case "a":
            entity["url"] = value or out.encode("utf-16-le")[offset * 2 :].decode("utf-16-le")
            if not _LINK.fullmatch(entity["url"]):
                return
        case "blockquote" if value:
            entity["type"] = "expandable_blockquote"
        case "code" if value:
            entity["language"] = value
        case "pre" if last == {"type": "code", "language": last.get("language"), **place}:
            last["type"] = "pre"
            return
    found.append(entity)
