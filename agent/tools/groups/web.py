"""The group `web`: read a page, and search. What comes from there is nobody's word here."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import Field

from agent.tools.tool import Caller, Effect, Needs, Trust, tool
from agent.web.addresses import URL_CHARS_MAX, WebUrl, parse_url, with_scheme
from agent.web.article import Article, PageReader, text_of
from agent.web.client import Fetched, OtherKind, WebClient, WebRequest, named
from agent.web.search import SearchService
from memory.records.errors import AssistantError, Permanent, RateLimited, Temporary
from memory.records.messages import PersonId
from memory.records.ports import Clock
from memory.records.text import clean

PAGE_CHARS_MAX = 15_000
"""Of a page with all that stands around its text (SPEC §6)."""
AROUND_CHARS = 1_300
"""Title, addresses and page numbers take at most so many of them."""
TEXT_CHARS_MAX = 700_000
"""Of a whole text, fifty pages of it."""
URL_SHOWN_CHARS = 400
KEPT_S = 600.0
KEPT_PER_PERSON = 8
KEPT_CHARS_MAX = 8_000_000
QUERY_CHARS_MAX = 400
HITS_MAX = 10

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_TEXT_TYPES = (
    "text/*",
    "application/json",
    "application/*+json",
    "application/x-ndjson",
    "application/xml",
    "application/*+xml",
    "application/yaml",
    "application/x-yaml",
    "application/toml",
    "application/javascript",
)


class WebFailed(Temporary):
    """A page could not be had just now."""


class NoSuchPage(Permanent):
    """There is nothing to read there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebPage:
    """What was read. `url` is where it was found in the end."""

    url: WebUrl
    text: str
    title: str = ""
    published: str = ""
    whole: bool = True


class WebPages:
    """Reads pages. The parts of a text are kept for some minutes, for each person apart; one that
    is shown has at most `page_chars` characters."""

    def __init__(
        self, client: WebClient, clock: Clock, *, page_chars: int = PAGE_CHARS_MAX
    ) -> None:
        self._client = client
        self._text_chars = page_chars - AROUND_CHARS
        self._kept = KeptPages(clock)
        self._reader = PageReader()

    def _web_fetch_needs(self, caller: Caller, url: str, page: int) -> Needs:
        """Its address as it was written, since that is how it can have been seen: an address can
        carry words away. A further part of a text that is at hand asks nobody for anything. Raises
        UrlRefused, and AddressRefused where that needs no look-up."""
        written = with_scheme(url)
        address = parse_url(written)
        self._client.refuse(address)
        is_at_hand = page > 1 and self._kept.get(caller.person_id, address) is not None
        return Needs() if is_at_hand else Needs(target=written)

    @tool(
        "web",
        Effect.NONE,
        trust=Trust.UNTRUSTED,
        needs=_web_fetch_needs,
        status="reading a web page",
    )
    async def web_fetch(
        self,
        caller: Caller,
        url: Annotated[str, Field(max_length=URL_CHARS_MAX, description="http or https address")],
        page: Annotated[
            int, Field(ge=1, le=1_000, description="part of a long text, from 1 on")
        ] = 1,
    ) -> str:
        """Read a web page, or a text or JSON file on the web, as markdown. Long ones come in
        parts: ask for the next with page."""
        address = parse_url(with_scheme(url))
        found = self._kept.get(caller.person_id, address) if page > 1 else None
        if found is None:
            found = await self._read(address)
            self._kept.keep(caller.person_id, address, found)
        return _shown(found, address, page, text_chars=self._text_chars)

    async def _read(self, url: WebUrl) -> WebPage:
        try:
            answer = await self._client.fetch(
                WebRequest(
                    url=str(url),
                    headers={"Accept": "text/html,text/markdown;q=0.9,text/plain;q=0.8,*/*;q=0.5"},
                    types=_TEXT_TYPES,
                )
            )
        except OtherKind as error:
            raise _not_text(url.host, error.content_type) from error
        host = named(answer.url, url)
        if answer.status >= 400:
            raise _failure(answer, host)
        kind = answer.content_type or _guessed(answer.body)
        if not any(fnmatchcase(kind, pattern) for pattern in _TEXT_TYPES):
            raise _not_text(host, kind)
        if kind not in _HTML:
            text = text_of(answer.body, answer.charset, may_name_its_own="xml" in kind)
            head = clean(text[: 2 * TEXT_CHARS_MAX])
            whole = len(text) <= 2 * TEXT_CHARS_MAX
            return _page(answer.url, Article(markdown=head.strip(), whole=whole))
        html = text_of(answer.body, answer.charset)
        return _page(answer.url, await self._reader.article(html, url=str(answer.url)))


def _page(url: WebUrl, found: Article) -> WebPage:
    return WebPage(
        url=url,
        text=found.markdown[:TEXT_CHARS_MAX],
        title=found.title,
        published=found.published,
        whole=found.whole and len(found.markdown) <= TEXT_CHARS_MAX,
    )


def _guessed(body: bytes) -> str:
    """The type of what came without one."""
    head = body[:1_024]
    if b"\x00" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "application/octet-stream"
    if head.startswith(b"%PDF-"):
        return "application/pdf"
    return "text/html" if b"<html" in head.lower() or b"<!doctype" in head.lower() else "text/plain"


_KINDS = (
    ("application/pdf", "a PDF file"),
    ("image/", "an image"),
    ("audio/", "a sound file"),
    ("video/", "a video"),
    ("application/zip", "an archive"),
    ("application/gzip", "an archive"),
    ("application/vnd.openxmlformats", "an office document"),
    ("application/msword", "an office document"),
)


def _not_text(host: str, kind: str) -> NoSuchPage:
    """The kind in our own words: a content type can hold anything."""
    words = next((words for start, words in _KINDS if kind.startswith(start)), "a binary file")
    return NoSuchPage(
        f"{host} sent {words}, of which web_fetch cannot read the text. Look for a page that "
        "says the same, or ask for the file as an attachment."
    )


def _failure(answer: Fetched, host: str) -> AssistantError:
    status = answer.status
    match status:
        case 401 | 407:
            return NoSuchPage(f"{host} shows this page only to those who log in ({status}).")
        case 403 | 451:
            return NoSuchPage(f"{host} refuses to show this page ({status}).")
        case 404 | 410:
            return NoSuchPage(f"{host} has no such page ({status}); check the address, or search.")
        case 429:
            return RateLimited(
                f"{host} asks for a pause (429); try later, or another source.",
                retry_after_s=answer.retry_after_s,
            )
        case _ if status >= 500:
            return WebFailed(f"{host} has trouble of its own ({status}); try later.")
        case _:
            return NoSuchPage(f"{host} answered {status}, not with a page.")


# --- parts of a text ---------------------------------------------------------------------------


def parts_of(text: str, *, chars_max: int = PAGE_CHARS_MAX - AROUND_CHARS) -> list[str]:
    """A text in parts that join to itself, each within the limit. It is cut between paragraphs
    where one ends in the last third of a part, else between lines, words, or anywhere."""
    parts: list[str] = []
    start = 0
    while len(text) - start > chars_max:
        end = _cut(text, start, start + chars_max)
        parts.append(text[start:end])
        start = end
    return [*parts, text[start:]]


def _cut(text: str, start: int, end: int) -> int:
    earliest = end - (end - start) // 3
    for border in ("\n\n", "\n", " "):
        found = text.rfind(border, earliest, end - len(border) + 1)
        if found >= 0:
            return found + len(border)
    return end


def _shown(page: WebPage, asked: WebUrl, number: int, *, text_chars: int) -> str:
    parts = parts_of(page.text, chars_max=text_chars)
    count = len(parts)
    if number > count:
        raise NoSuchPage(
            f"This text has {count} {'page' if count == 1 else 'pages'}; there is no page {number}."
        )
    head = [f"Title: {page.title}"] if page.title else []
    head.append(f"URL: {_short(page.url)}")
    if page.url != asked:
        head.append(f"Redirected from: {_short(asked)}")
    if page.published:
        head.append(f"Published: {page.published}")
    if count > 1:
        head.append(f"Page {number} of {count}")
    foot: list[str] = []
    if number < count:
        more = f"For the next, call web_fetch with page={number + 1}."
        foot = ["", f"[Page {number} of {count}. {more}]"]
    elif not page.whole:
        foot = ["", "[The end of this very long page was not read.]"]
    return "\n".join([*head, "", parts[number - 1].strip("\n") or _EMPTY, *foot])


_EMPTY = "(No text was found on it. It may be made of pictures, or be filled in by scripts.)"


def _short(url: WebUrl) -> str:
    text = str(url)
    return text if len(text) <= URL_SHOWN_CHARS else f"{text[: URL_SHOWN_CHARS - 1]}…"


# --- pages that are kept -----------------------------------------------------------------------


class KeptPages:
    """The last pages of each person, for some minutes; never more than a bounded amount."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pages: dict[tuple[PersonId, WebUrl], tuple[float, WebPage]] = {}

    def get(self, person_id: PersonId, url: WebUrl) -> WebPage | None:
        """Return the page as this person last got it, if that was not long ago."""
        until, page = self._pages.get((person_id, url), (0.0, None))
        return page if until > self._clock.monotonic() else None

    def keep(self, person_id: PersonId, url: WebUrl, page: WebPage) -> None:
        """Keep it in place of what was kept before; the oldest go when there are too many."""
        now, key = self._clock.monotonic(), (person_id, url)
        # In the order in which they end: one that is kept anew goes to the end.
        kept = {one: page for one, page in self._pages.items() if page[0] > now and one != key}
        kept[key] = (now + KEPT_S, page)
        for old in [one for one in kept if one[0] == person_id][:-KEPT_PER_PERSON]:
            del kept[old]
        while len(kept) > 1 and sum(len(one.text) for _, one in kept.values()) > KEPT_CHARS_MAX:
            del kept[next(iter(kept))]
        self._pages = kept


class WebSearch:
    """Searches with the service that the owner chose."""

    def __init__(self, service: SearchService) -> None:
        self._service = service

    # What was looked for is not repeated in the result: an address in a query would else count as
    # one that was seen.
    @tool("web", Effect.NONE, trust=Trust.UNTRUSTED, status="searching the web")
    async def web_search(
        self,
        caller: Caller,
        query: Annotated[str, Field(min_length=1, max_length=QUERY_CHARS_MAX)],
        count: Annotated[int, Field(ge=1, le=HITS_MAX)] = 5,
    ) -> str:
        """Search the web. Gives titles, addresses and snippets; read a page with web_fetch."""
        words = " ".join(query.split())
        if not words:
            raise NoSuchPage("The query is empty; say what to look for.")
        found = await self._service.search(words, count)
        if not found:
            return "Nothing was found. Try other or fewer words."
        hits = []
        for number, hit in enumerate(found, start=1):
            dated = f" ({hit.date})" if hit.date else ""
            lines = [f"{number}. {hit.title}{dated}", f"   {hit.url}"]
            hits.append("\n".join([*lines, f"   {hit.snippet}"] if hit.snippet else lines))
        return "\n\n".join(hits)
