"""A page's HTML as markdown: its text with headings, lists, tables, code and links, without menus.

The one module that knows the library for it. Pure, and slow for pages that are made to be slow:
`agent.web.reading` runs it in a process that can be ended.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from agent.errors import Permanent
from agent.text import clean, without_surrogates

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


def article(html: str, *, url: str) -> Article:
    """The text of a page; links are made absolute by `url`. Raises NotReadable."""
    html = without_surrogates(html.replace("\x00", ""))
    read = _bounded(html)
    markdown = _markdown(read, url, _UNWANTED, drop_forms=True)
    if len(markdown) < THIN_CHARS:
        # Some sites put all of a page into a form, or its text into what looks like a menu.
        everything = _markdown(read, url, (), drop_forms=False)
        if _weight(everything) > 2 * _weight(markdown) + THIN_CHARS // 4:
            markdown = everything
    title, published = _head(read)
    return Article(
        markdown=markdown,
        title=_line(title)[:TITLE_CHARS_MAX],
        published=published,
        whole=len(read) >= len(html),
    )


_OPENING = re.compile(r"<[A-Za-z]")


def _bounded(html: str) -> str:
    html = html[:HTML_CHARS_MAX]
    for count, tag in enumerate(_OPENING.finditer(html)):
        if count == TAGS_MAX:
            return html[: tag.start()]
    return html


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
    linked = [_linked_date(part.raw_json) for part in found.structured_data]
    dates = (*(tags.get(name, "") for name in _DATES), *linked)
    return title, next((date for date in map(_date, dates) if date), "")


_DATE_PUBLISHED = "datePublished"


def _linked_date(text: str) -> str:
    """Of JSON-LD: that of the first thing which has one."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    things = data if isinstance(data, list) else [data]
    for thing in things[:20]:
        if isinstance(thing, Mapping):
            graph = thing.get("@graph")
            inner = graph if isinstance(graph, list) else []
            for each in (thing, *inner[:20]):
                if isinstance(each, Mapping) and isinstance(each.get(_DATE_PUBLISHED), str):
                    return str(each[_DATE_PUBLISHED])
    return ""


def _date(text: str) -> str:
    """The day, as an ISO date; empty where it is none. Nothing else of it is kept."""
    found = re.match(r"\s*(\d{4})[-/](\d{1,2})[-/](\d{1,2})(?!\d)", text)
    try:
        return f"{datetime(*map(int, found.groups())):%Y-%m-%d}" if found else ""  # type: ignore[arg-type]  # noqa: DTZ001
    except ValueError:
        return ""


def _line(text: str) -> str:
    return " ".join(clean(text).split())
