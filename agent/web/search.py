"""Search services behind one port: SearXNG, Brave, Tavily, and DuckDuckGo's page without scripts.

Each asks through the guarded client, with the one place that its owner named allowed. Built by
`search_service`; used by the tool web_search. No error repeats a query or a service's own words.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from html.parser import HTMLParser
from typing import Annotated, Literal, Protocol, assert_never
from urllib.parse import parse_qs, urlencode, urlsplit

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
)

from agent.web.addresses import UrlRefused, allowed_hosts, parse_url
from agent.web.article import text_of
from agent.web.client import Fetched, WebClient, WebRequest
from memory.records.errors import AssistantError, AuthRefused, Permanent, RateLimited, Temporary
from memory.records.text import clean

ServiceName = Literal["searxng", "brave", "tavily", "duckduckgo"]

SEARCH_S = 20.0
ANSWER_BYTES_MAX = 2_000_000
TITLE_CHARS_MAX = 200
SNIPPET_CHARS_MAX = 500
DATE_CHARS_MAX = 40
PAGE_CHARS_MAX = 1_000_000

BASE_URLS: dict[ServiceName, str] = {
    "searxng": "",
    "brave": "https://api.search.brave.com/res/v1",
    "tavily": "https://api.tavily.com",
    "duckduckgo": "https://html.duckduckgo.com/html/",
}


class SearchFailed(Temporary):
    """The service did not answer as it should."""


class SearchMisconfigured(Permanent):
    """The service cannot be used with these settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """Which service, where it is (empty: its usual place), and its key where it needs one."""

    service: ServiceName = "duckduckgo"
    base_url: str = ""
    api_key: SecretStr = field(default=SecretStr(""))


_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")


def _plain(chars_max: int) -> BeforeValidator:
    """Plain text of bounded length, empty where a service says null."""

    def plain(text: object) -> object:
        if not isinstance(text, str):
            return "" if text is None else text
        words = " ".join(html.unescape(_TAG.sub("", clean(text[: 20 * chars_max]))).split())
        return words if len(words) <= chars_max else f"{words[: chars_max - 1]}…"

    return BeforeValidator(plain)


class SearchHit(BaseModel):
    """One hit, by the names that SearXNG, Brave and Tavily give its parts. `date` is as the service
    tells it, or empty."""

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)

    title: Annotated[str, _plain(TITLE_CHARS_MAX)] = ""
    url: Annotated[str, AfterValidator(str.strip)]
    snippet: Annotated[str, _plain(SNIPPET_CHARS_MAX)] = Field(
        default="", validation_alias=AliasChoices("content", "description")
    )
    date: Annotated[str, _plain(DATE_CHARS_MAX)] = Field(
        default="", validation_alias=AliasChoices("publishedDate", "published_date", "age")
    )


class SearchService(Protocol):
    """Somebody who searches the web."""

    async def search(self, query: str, count: int) -> Sequence[SearchHit]:
        """At most `count` hits, the best first; empty when nothing was found. Raises
        AssistantError."""


def search_service(options: SearchOptions, client: WebClient) -> SearchService:
    """The service of these options. Raises SearchMisconfigured."""
    base_url = (options.base_url or BASE_URLS[options.service]).strip()
    if not base_url:
        raise SearchMisconfigured("The search service searxng needs its address in web.search_url.")
    line = _HitLine(client, base_url, by_owner=bool(options.base_url.strip()))
    key = options.api_key.get_secret_value().strip()
    match options.service:
        case "searxng":
            return JsonSearch(line, "SearXNG", _asked_of_searxng)
        case "duckduckgo":
            return DuckDuckGo(line)
        case "brave":
            ask = partial(_asked_of_brave, _needed(key, "Brave"))
            return JsonSearch(line, "Brave", ask, _BraveAnswer)
        case "tavily":
            return JsonSearch(line, "Tavily", partial(_asked_of_tavily, _needed(key, "Tavily")))
        case _:
            assert_never(options.service)


def _needed(key: str, name: str) -> str:
    if not key:
        raise SearchMisconfigured(f"The search service {name} needs a key in web.search_key.")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise SearchMisconfigured(
            f"The key of the search service {name} in web.search_key holds characters "
            "that no key has."
        )
    return key


class _HitLine:
    """The way to one service. A place that the owner set may be a private one; a usual place that
    a name server leads astray may not. Raises SearchMisconfigured."""

    def __init__(self, client: WebClient, base_url: str, *, by_owner: bool) -> None:
        try:
            url = parse_url(base_url)
        except UrlRefused as error:
            raise SearchMisconfigured(f"web.search_url: {error}") from error
        self._client = client
        self._base = str(url).rstrip("/")
        host = f"[{url.host}]" if ":" in url.host else url.host
        self._also = allowed_hosts([f"{host}:{url.port}"] if by_owner else [])

    async def ask(self, request: WebRequest, *, name: str) -> Fetched:
        """The service's answer; `request.url` is what follows its address. Raises AssistantError
        in the service's name for whatever is no success."""
        whole = replace(
            request,
            url=self._base + request.url,
            also=self._also,
            bytes_max=ANSWER_BYTES_MAX,
            total_s=SEARCH_S,
        )
        answer = await self._client.fetch(whole)
        if answer.status != 200:
            raise _failure(answer, name)
        return answer


def _failure(answer: Fetched, name: str) -> AssistantError:
    match answer.status:
        case 401 | 403 | 422 if name == "SearXNG":
            return SearchMisconfigured(
                "SearXNG refuses to answer in JSON; its owner has to add json to search.formats "
                "in its settings.yml."
            )
        case 401 | 403 | 422:
            return AuthRefused(
                f"The search service {name} does not accept the key; the owner has to check "
                "web.search_key."
            )
        case 402 | 432 | 433:
            return AuthRefused(f"The search service {name} has no searches left on its plan.")
        case 429:
            return RateLimited(
                f"The search service {name} asks for a pause; search again later.",
                retry_after_s=answer.retry_after_s,
            )
        case status if status >= 500:
            return SearchFailed(f"The search service {name} has trouble of its own ({status}).")
        case status:
            return SearchFailed(f"The search service {name} answered {status}, not with hits.")


# --- services with an API ------------------------------------------------------------------------


class _Hits(BaseModel):
    results: list[SearchHit] = []


class _FullAnswer(BaseModel):
    results: list[SearchHit]

    @property
    def hits(self) -> list[SearchHit]:
        return self.results


class _BraveAnswer(BaseModel):
    """Without hits it has no part about the web, or an empty one."""

    web: _Hits | None = None

    @property
    def hits(self) -> list[SearchHit]:
        return self.web.results if self.web else []


class JsonSearch:
    """A service that answers in JSON: one's own SearXNG, Brave's index, or Tavily, which is made
    for assistants. `request` says how one is asked."""

    def __init__(
        self,
        line: _HitLine,
        name: str,
        request: Callable[[str, int], WebRequest],
        answer: type[_FullAnswer | _BraveAnswer] = _FullAnswer,
    ) -> None:
        self._line = line
        self._name = name
        self._request = request
        self._answer = answer

    async def search(self, query: str, count: int) -> Sequence[SearchHit]:
        answer = await self._line.ask(self._request(query, count), name=self._name)
        try:
            found = self._answer.model_validate_json(answer.body)
        except ValidationError as error:
            raise SearchFailed(
                f"What the search service {self._name} answered cannot be read; check "
                "web.search_url."
            ) from error
        return _usable(found.hits, count)


def _asked_of_searxng(query: str, count: int) -> WebRequest:
    return WebRequest(url=f"/search?{urlencode({'q': query, 'format': 'json'})}")


def _asked_of_brave(key: str, query: str, count: int) -> WebRequest:
    asked = urlencode({"q": query, "count": count, "text_decorations": "false"})
    return WebRequest(
        url=f"/web/search?{asked}",
        headers={"Accept": "application/json"},
        secrets={"X-Subscription-Token": key},
    )


def _asked_of_tavily(key: str, query: str, count: int) -> WebRequest:
    return WebRequest(
        url="/search",
        method="POST",
        headers={"Content-Type": "application/json"},
        secrets={"Authorization": f"Bearer {key}"},
        body=json.dumps({"query": query, "max_results": count}).encode(),
    )


# --- DuckDuckGo --------------------------------------------------------------------------------


class DuckDuckGo:
    """The page for browsers without scripts. Needs no key, and turns away who asks too often."""

    def __init__(self, line: _HitLine) -> None:
        self._line = line

    async def search(self, query: str, count: int) -> Sequence[SearchHit]:
        asked = urlencode({"q": query})
        try:
            answer = await self._line.ask(WebRequest(url=f"/?{asked}"), name="DuckDuckGo")
        except (AuthRefused, SearchFailed) as error:
            raise _turned_away() from error
        page = text_of(answer.body, answer.charset)[:PAGE_CHARS_MAX]
        reader = _DuckDuckGoPage()
        reader.feed(page)
        reader.close()
        if not reader.hits and reader.is_challenge:
            raise _turned_away()
        if not reader.hits and not reader.says_nothing:
            raise SearchFailed("DuckDuckGo answered with a page that is not its list of hits.")
        return _usable(reader.hits, count)


def _turned_away() -> RateLimited:
    """It shows a test for humans with status 200, 202 or 403, to whom it takes for a program."""
    return RateLimited(
        "DuckDuckGo turns automatic searches away for now; search again later, or the owner can "
        "set another service in web.search."
    )


class _DuckDuckGoPage(HTMLParser):
    """Reads hits off the page: `result__a` is a title with its link, `result__snippet` its text,
    within a `result`; those that are also `result--ad` were paid for."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.hits: list[SearchHit] = []
        self.is_challenge = False
        self.says_nothing = False
        self._is_ad = False
        self._reading = ""
        self._link = ""
        self._title: list[str] = []
        self._snippet: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        classes = values.get("class", "").split()
        self.is_challenge |= any(name.startswith("anomaly") for name in classes)
        self.says_nothing |= "no-results" in classes
        if tag == "div" and "result" in classes:
            self._take()
            self._is_ad = "result--ad" in classes
        if "result__a" in classes:
            self._reading, self._link = "title", values.get("href", "")
        elif "result__snippet" in classes:
            self._reading = "snippet"

    def handle_endtag(self, tag: str) -> None:
        if tag in {"a", "h2", "div"}:
            self._reading = ""

    def handle_data(self, data: str) -> None:
        if self._reading == "title":
            self._title.append(data)
        elif self._reading == "snippet":
            self._snippet.append(data)

    def close(self) -> None:
        super().close()
        self._take()

    def _take(self) -> None:
        if self._link and not self._is_ad:
            # Links go through a counter that has the real one as `uddg`.
            url = self._link
            try:
                parts = urlsplit(url)
                wanted = parse_qs(parts.query, max_num_fields=20).get("uddg")
                url = wanted[0] if wanted and parts.path.startswith("/l/") else url
            except ValueError:
                url = ""
            title, snippet = "".join(self._title), "".join(self._snippet)
            self.hits.append(SearchHit(title=title, url=url, snippet=snippet))
        self._link, self._title, self._snippet, self._reading = "", [], [], ""


def _usable(hits: Iterable[SearchHit], count: int) -> list[SearchHit]:
    """Those that lead to a web page, each once; one without a title is called by its address."""
    taken: dict[str, SearchHit] = {}
    for hit in hits:
        try:
            parse_url(hit.url)
        except UrlRefused:
            continue
        taken.setdefault(hit.url, hit if hit.title else hit.model_copy(update={"title": hit.url}))
        if len(taken) == count:
            break
    return list(taken.values())
