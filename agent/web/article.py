"""A page's HTML as markdown: its text with headings, lists, tables, code and links, without menus.

The one module that knows the library for it. Pure, and slow for pages that are made to be slow:
`agent.web.article` runs it in a process that can be ended.
"""

from __future__ import annotations

import codecs
import json
import re
import sys
from dataclasses import asdict, dataclass
from datetime import date
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from agent.sandbox.worker import Worker, bound_itself
from memory.records.errors import Permanent, Temporary
from memory.records.text import clean, without_surrogates

if TYPE_CHECKING:
    from html_to_markdown import ConversionOptions


HTML_CHARS_MAX = 3_000_000
TAGS_MAX = 60_000
"""Opening tags that are read of a page. Some of them cost time with the square of their depth:
60,000 in one another were two seconds, four times as many a minute."""
HEAD_CHARS = 200_000
TITLE_CHARS_MAX = 300
THIN_CHARS = 200
"""A page with less text than this is read again with everything that was left out."""

_UNWANTED = (
    "[role=navigation]",
    "[role=banner]",
    "[role=search]",
    "[role=dialog]",
    ".cookie-banner",
    ".cookie-consent",
    ".cookie-notice",
    "#cookie-banner",
    "#cookie-consent",
    "#onetrust-consent-sdk",
    "#CybotCookiebotDialog",
    ".advert",
    ".advertisement",
    ".related-articles",
    ".share-buttons",
    ".social-share",
    ".newsletter-signup",
    ".breadcrumbs",
    ".sphinxsidebar",
    ".headerlink",
    ".mw-editsection",
    ".skip-link",
    ".sr-only",
    ".visually-hidden",
)
"""Classes and ids that mean but one thing on a page. What is only probably noise stays: a text
that lacks its point is worse than one with a line too many."""
_NO_LINKS = ('a[href^="javascript:"]', 'a[href^="data:"]')


class NotReadable(Permanent):
    """The page cannot be made into text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Article:
    """A page as text. `published` is an ISO date, or empty; `whole` is False where the page was
    too large to be read to its end."""

    markdown: str
    title: str = ""
    published: str = ""
    whole: bool = True


_OPENING = re.compile(r"<[A-Za-z]")


def article(html: str, *, url: str) -> Article:
    """The text of a page; links are made absolute by `url`. Raises NotReadable."""
    html = without_surrogates(html.replace("\x00", ""))
    read = html[:HTML_CHARS_MAX]
    too_many = next(islice(_OPENING.finditer(read), TAGS_MAX, None), None)
    read = read if too_many is None else read[: too_many.start()]
    markdown = _markdown(read, url, _UNWANTED, drop_forms=True)
    if len(markdown) < THIN_CHARS:
        # Some sites put all of a page into a form, or its text into what looks like a menu.
        everything = _markdown(read, url, (), drop_forms=False)
        if _weight(everything) > 2 * _weight(markdown) + THIN_CHARS // 4:
            markdown = everything
    title, published = _head(read)
    return Article(
        markdown=markdown,
        title=" ".join(clean(title).split())[:TITLE_CHARS_MAX],
        published=published,
        whole=len(read) >= len(html),
    )


def _weight(markdown: str) -> int:
    """Characters of text; where a link leads is no text."""
    return len(re.sub(r"\]\([^)\n]*\)", "]", markdown))


def _markdown(html: str, url: str, unwanted: tuple[str, ...], *, drop_forms: bool) -> str:
    from html_to_markdown import ConversionOptions, PreprocessingOptions

    options = ConversionOptions(
        extract_metadata=False,
        base_url=url,
        bullets="-",
        autolinks=False,
        skip_images=True,
        exclude_selectors=[*unwanted, *_NO_LINKS],
        compact_tables=True,
        preprocessing=PreprocessingOptions(
            enabled=True,
            preset="aggressive" if drop_forms else "minimal",
            remove_navigation=drop_forms,
            remove_forms=drop_forms,
        ),
    )
    return re.sub(r"\n{3,}", "\n\n", clean(_converted(html, options).content or "")).strip()


def _converted(html: str, options: ConversionOptions) -> Any:
    """The library's result. It raises errors of many classes, and none has a base of its own."""
    import html_to_markdown

    try:
        return html_to_markdown.convert(html, options)
    except (html_to_markdown.exceptions.ConversionError, ValueError, RuntimeError) as error:
        raise NotReadable("The page could not be made into text.") from error


# --- title and date ----------------------------------------------------------------------------

_DATES = (
    "article.published.time",
    "published.time",
    "datepublished",
    "date",
    "dc.date",
    "dc.date.issued",
    "date.issued",
    "dcterms.created",
    "parsely.pub.date",
    "pubdate",
    "publishdate",
    "citation.publication.date",
)
"""Names of meta tags, whatever stands between their words."""


def _head(html: str) -> tuple[str, str]:
    """Title and date of publication, each empty where the page does not tell."""
    from html_to_markdown import ConversionOptions

    found = _converted(html[:HEAD_CHARS], ConversionOptions(extract_metadata=True)).metadata
    document = found.document
    tags = {re.sub("[-_:]", ".", name.lower()): text for name, text in document.meta_tags.items()}
    social = {name.lower(): text for name, text in document.open_graph.items()}
    title = social.get("title") or document.title or ""
    dates = (*(tags.get(name, "") for name in _DATES), *_LINKED_DATE.findall(html[:HEAD_CHARS]))
    return title, next((day for day in map(_date, dates) if day), "")


_LINKED_DATE = re.compile(r'"datePublished"\s*:\s*"([^"]{8,40})"')
"""Of JSON-LD, whatever it is about."""


def _date(text: str) -> str:
    """The day, as an ISO date; empty where it is none. Nothing else of it is kept."""
    found = re.match(r"\s*(\d{4})[-/](\d{1,2})[-/](\d{1,2})(?!\d)", text)
    try:
        return date(int(found[1]), int(found[2]), int(found[3])).isoformat() if found else ""
    except ValueError:
        return ""


# --- charsets -----------------------------------------------------------------------------------
#
# Bytes of the web as text: by byte order mark, header, the page's own word, and what fits.
#
# Pure. Used by the tools and services that read what was fetched.

_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_META = re.compile(
    rb"""<meta[^>]{0,300}?charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]{1,40})""", re.IGNORECASE
)
_XML = re.compile(rb"""^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9_.:-]{1,40})""")
_LOOKED_AT_BYTES = 4_096

_WIDER: Final = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "tis-620": "cp874",
}
"""What browsers take for these names: the larger set that pages really use."""

_TEXT: Final = frozenset(
    {"utf-8", "utf-16", "utf-16-le", "utf-16-be", "koi8-r", "koi8-u", "mac-roman", "mac-cyrillic"}
    | {"big5", "big5hkscs", "euc_jp", "iso2022_jp", "gb18030", "cp932", "cp949", "hz", "cp866"}
    | {f"iso8859-{part}" for part in (*range(2, 9), 10, *range(13, 17))}
    | {"cp874", *(f"cp{page}" for page in range(1250, 1259))}
)
"""Python also has codecs that unpack, rotate or execute escapes; those are for nobody outside."""


def text_of(body: bytes, charset: str = "", *, may_name_its_own: bool = True) -> str:
    """The body as text. `charset` is what the header said. Never fails: what fits nothing is read
    as what was said, with marks where it does not fit."""
    for mark, name in _BOMS:
        if body.startswith(mark):
            return body[len(mark) :].decode(name, "replace")
    said = [_known(charset)]
    if may_name_its_own:
        head = body[:_LOOKED_AT_BYTES]
        found = _XML.search(head) or _META.search(head)
        word = found[1].decode("ascii").lower() if found else ""
        # It was read as ASCII, so it is not UTF-16, whatever it says.
        said.append("utf-8" if word.startswith("utf-16") else _known(word))
    candidates = [name for name in (*said, "utf-8") if name]
    for name in candidates:
        try:
            return body.decode(name)
        except UnicodeDecodeError:
            continue
    return body.decode(candidates[0] if candidates[0] != "utf-8" else "cp1252", "replace")


def _known(name: str) -> str:
    try:
        found = codecs.lookup(name.strip()).name if name else ""
    except (LookupError, ValueError):
        return ""
    found = _WIDER.get(found, found)
    return found if found in _TEXT else ""


# --- reading ------------------------------------------------------------------------------------
#
# Makes a page into text in a process of its own, which is ended when it takes too long.
#
# Some pages keep the library busy for minutes (200,000 attributes on one tag were six seconds, and
# cost grows with the square). The process of `agent.sandbox.worker` has an empty environment and
# bounds on time and memory, so that a page can harm neither the bot nor what it holds.

READ_S = 15.0
CPU_S = 12
MEMORY_BYTES = 2_000_000_000
AT_ONCE = 2
ANSWER_BYTES_MAX = 64_000_000


class TooTangled(Temporary):
    """The page could not be read in time."""


class PageReader:
    """Reads pages, a few at once. `read_s` is the limit of one, in seconds."""

    def __init__(self, *, read_s: float = READ_S) -> None:
        self._worker = Worker(
            __name__, read_s=read_s, answer_bytes_max=ANSWER_BYTES_MAX, at_once=AT_ONCE
        )

    async def article(self, html: str, *, url: str) -> Article:
        """Return the text of a page. Raises TooTangled, NoRoom, NotReadable."""
        html = without_surrogates(html[: HTML_CHARS_MAX + 1])
        asked = json.dumps({"html": html, "url": url}, ensure_ascii=False).encode()
        sorry = "The page could not be read, since {why}; try again later."
        try:
            return Article(**json.loads(await self._worker.answer(asked, sorry=sorry)))
        except TimeoutError as error:
            raise TooTangled(
                "The page is so tangled that its text could not be read in time; look for another "
                "page that says the same."
            ) from error
        except (ValueError, TypeError) as error:  # it ended without a word
            raise NotReadable("The page could not be made into text.") from error


def main() -> None:
    """The process: a page on standard input, its text on standard output, both as JSON."""
    bound_itself(cpu_s=CPU_S, memory_bytes=MEMORY_BYTES)
    asked = json.loads(sys.stdin.buffer.read())
    found = article(asked["html"], url=asked["url"])
    sys.stdout.buffer.write(json.dumps(asdict(found)).encode())
