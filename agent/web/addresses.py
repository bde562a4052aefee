"""What may be reached: web addresses read once and strictly, and the public part of the internet.

Pure. Used by `agent.web.client` before each connection, and by tools that are told an address.
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urljoin

from memory.records.errors import Permanent

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

URL_CHARS_MAX = 4_096
HOST_CHARS_MAX = 253
PORTS: Final = {"http": 80, "https": 443}


class UrlRefused(Permanent):
    """This is no web address, or not one that can mean only one thing."""


class AddressRefused(Permanent):
    """It leads to where only the owner may let the assistant go."""


# --- web addresses -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class WebUrl:
    """A web address with nothing left to interpret. `host` is a name in lower-case ASCII, or an IP
    address without brackets; `path` is encoded, begins with a slash and holds the query."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def origin(self) -> tuple[str, str, int]:
        """Who answers: what was sent to one of these is not meant for another."""
        return self.scheme, self.host, self.port

    @property
    def site(self) -> str:
        """Whose place it is, as near as its name tells: the last two parts of it. Where it has
        none, who answers is told by number and port."""
        is_number = ":" in self.host or self.host.rpartition(".")[2].isdecimal()
        return self.netloc if is_number else ".".join(self.host.split(".")[-2:])

    @property
    def whole(self) -> str:
        """All that is told by asking for it. What people leave out or add without a thought plays
        no part: the scheme, and one slash at the end."""
        return f"{self.netloc}{self.path}".removesuffix("/")

    @property
    def netloc(self) -> str:
        """Host and port as in a URL; the usual port is left out."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.netloc}{self.path}"


_PARTS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^?#]*)(\?[^#]*)?(?:#.*)?")
_BARE = re.compile(r"[\w-]+(?:\.[\w-]+)*\.[^\W\d_]{2,}(?::[0-9]{1,5})?(?:[/?#].*)?")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,20}):")
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f-\xa0\\\u2028\u2029\ud800-\udfff]")
_SAFE_IN_PATH = "/:@!$&'()*+,;=~%[]|?"
_STRAY_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")


def with_scheme(text: str) -> str:
    """As written, without blanks around it; `https://` before what is plainly a host and a path."""
    text = text.strip()
    return f"https://{text}" if _BARE.fullmatch(text) else text


def parse_url(text: str) -> WebUrl:
    """A web address. Raises UrlRefused, with a sentence that never repeats the address: what is
    refused has to stay unread (`agent.policy.taint`)."""
    if len(text) > URL_CHARS_MAX:
        raise UrlRefused(f"The web address is longer than {URL_CHARS_MAX:,} characters.")
    if _FORBIDDEN.search(text):
        raise UrlRefused(
            "The web address holds a blank, a backslash or a control character; write it encoded."
        )
    found = _SCHEME.match(text)
    scheme = found[1].lower() if found else ""
    if scheme not in PORTS:
        raise UrlRefused("Only web addresses that begin with http:// or https:// can be read.")
    parts = _PARTS.fullmatch(text)
    if parts is None:
        raise UrlRefused("That is no web address; it has to look like https://example.com/page.")
    host, port = _host_and_port(parts[2])
    return WebUrl(
        scheme=scheme,
        host=host,
        port=PORTS[scheme] if port is None else port,
        path=_encoded(parts[3] or "/") + _encoded(parts[4] or ""),
    )


def joined(base: WebUrl, location: str) -> WebUrl:
    """Where a redirect of `base` leads. Raises UrlRefused."""
    if _FORBIDDEN.search(location):
        location = quote(location, safe=_SAFE_IN_PATH + "#")
    try:
        return parse_url(urljoin(str(base), location))
    except ValueError as error:
        raise UrlRefused("The redirect leads to what is no web address.") from error


_WRITTEN = re.compile(
    r"https?://[^\s<>\"'`|\\]+|(?<![\w@./-])[\w-]+(?:\.[\w-]+)+(?::\d+)?(?:[/?#][^\s<>\"'`|\\]*)?",
    re.IGNORECASE,
)
_CLOSES = {")": "(", "]": "["}


def addresses_in(text: str) -> Iterator[WebUrl]:
    """Return the web addresses that stand in a text, read just as `parse_url` reads one that is
    asked for. Of one behind which a sentence may end both readings are returned."""
    for match in _WRITTEN.finditer(text):
        written = _closed(match[0])
        for one in dict.fromkeys((written, written.rstrip(".,:;!?*_"))):
            try:
                yield parse_url(with_scheme(one))
            except UrlRefused:
                continue


def _closed(written: str) -> str:
    """Return what stands before a bracket that was opened outside, as that of a Markdown link."""
    opened: list[str] = []
    for place, sign in enumerate(written):
        if sign in _CLOSES.values():
            opened.append(sign)
        elif sign in _CLOSES and (not opened or opened.pop() != _CLOSES[sign]):
            return written[:place]
    return written


def _encoded(part: str) -> str:
    return quote(_STRAY_PERCENT.sub("%25", part), safe=_SAFE_IN_PATH)


def _host_and_port(authority: str) -> tuple[str, int | None]:
    if "@" in authority:
        raise UrlRefused(
            "The web address carries a name or password before its host; leave that out."
        )
    if authority.startswith("["):
        inner, closed, rest = authority[1:].partition("]")
        if not closed:
            raise UrlRefused("The web address has an IPv6 address without its closing bracket.")
        try:
            # A zone, behind a percent sign, names an interface of this machine.
            address = ipaddress.IPv6Address("" if "%" in inner else inner)
        except ValueError as error:
            raise UrlRefused(
                "The web address has no valid IPv6 address in its brackets."
            ) from error
        return str(address), _port(rest)
    host, colon, port = authority.partition(":")
    return parse_host(host), _port(colon + port)


def _port(text: str) -> int | None:
    if text in {"", ":"}:
        return None
    if not re.fullmatch(r":[0-9]{1,5}", text) or not 0 < int(text[1:]) < 65_536:
        raise UrlRefused("The port of the web address is not a number from 1 to 65535.")
    return int(text[1:])


_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMBER_LIKE = re.compile(r"[0-9]+|0x[0-9a-f]*")


def parse_host(text: str) -> str:
    """A host's name in lower-case ASCII, or its IPv4 address in the one usual form.

    Names in other scripts become their `xn--` form. One final dot is dropped. Whatever some
    resolver may take for a number (`127.1`, `0x7f.1`, `2130706433`) is refused. Raises UrlRefused.
    """
    host = text.lower() if text.isascii() else _ascii_name(text)
    host = host.removesuffix(".")
    if len(host) > HOST_CHARS_MAX or not all(map(_LABEL.fullmatch, host.split("."))):
        raise UrlRefused("The web address has no valid host name.")
    if not _NUMBER_LIKE.fullmatch(host.rpartition(".")[2]):
        return host
    try:
        return str(ipaddress.IPv4Address(host))
    except ValueError as error:
        raise UrlRefused(
            "The host of the web address is a number in an unusual form; four decimal numbers "
            "such as 192.0.2.1, or a name, are understood."
        ) from error


def _ascii_name(text: str) -> str:
    """By IDNA 2008. Letters that only look like others, as full-width digits do, are refused: a
    name that changes its meaning on the way is a disguise."""
    import idna

    name = unicodedata.normalize("NFC", text).lower()
    try:
        if unicodedata.normalize("NFKC", name) != name:
            raise UrlRefused("The host of the web address is written in look-alike characters.")
        return idna.encode(name, strict=True).decode("ascii")
    except (idna.IDNAError, UnicodeError) as error:
        raise UrlRefused("The web address has no valid host name.") from error


# --- the public part of the internet -----------------------------------------------------------

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_UNICAST6 = ipaddress.IPv6Network("2000::/3")

_NOT_PUBLIC = tuple(
    ipaddress.ip_network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",  # carriers' NAT; some clouds keep their metadata here
        "127.0.0.0/8",
        "168.63.129.16/32",  # a cloud's own service, at an address that looks public
        "169.254.0.0/16",  # link-local, most clouds' metadata
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",  # benchmarks, and proxies that invent addresses
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "2001::/23",  # Teredo and other special uses
        "2001:db8::/32",
        "2002::/16",  # 6to4 carries any IPv4 address
        "3fff::/20",
    )
)
"""Written out, since what Python counts as global differs between its releases."""


def is_public(address: IPAddress) -> bool:
    """Return whether anybody on the internet may reach it. What embeds another address is only as
    public as that: NAT64 is read, IPv4-mapped, 6to4 and Teredo are refused whatever they hold."""
    if isinstance(address, ipaddress.IPv6Address):
        if address in _NAT64:
            return is_public(ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF))
        if address not in _UNICAST6 or address.scope_id is not None:
            return False
    if not address.is_global or address.is_multicast or address.is_reserved:
        return False
    return not any(address in network for network in _NOT_PUBLIC)


def kind_of(address: IPAddress) -> str:
    """Return what a refused address is, in words for its owner."""
    inner = embedded_in(address) or address
    if inner.is_loopback or inner.is_unspecified:
        return "this machine itself"
    if inner.is_link_local:
        return "a link-local address, where machines keep their metadata"
    if inner.is_multicast:
        return "a multicast address"
    return "a private or reserved address"


def embedded_in(address: IPAddress) -> ipaddress.IPv4Address | None:
    """The IPv4 address that an IPv6 address stands for."""
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else None)


# --- what the owner allows ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _AllowedHost:
    """One entry: a name or a network, at one port or at any."""

    where: str | IPNetwork
    port: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedHosts:
    """Private places that may be reached all the same. Made by `allowed_hosts`."""

    entries: tuple[_AllowedHost, ...] = ()

    def __or__(self, other: AllowedHosts) -> AllowedHosts:
        return AllowedHosts(entries=self.entries + other.entries)

    def allow(self, host: str, port: int, address: IPAddress) -> bool:
        """Return whether `host` may be reached at this address, which is not public.

        An entry that is a name opens private and loopback addresses. Link-local ones, where
        clouds keep keys, are opened by their number alone: who answers for a name is another.
        """
        inner = embedded_in(address) or address
        opened = not (inner.is_link_local or inner.is_multicast or inner.is_unspecified)
        return any(
            (opened and entry.where == host)
            if isinstance(entry.where, str)
            else (address in entry.where or inner in entry.where)
            for entry in self.entries
            if entry.port in {None, port}
        )


def allowed_hosts(entries: Iterable[str]) -> AllowedHosts:
    """Of settings: `nas.local`, `nas.local:8080`, `192.168.1.7`, `[fd00::7]:443`, `10.0.0.0/8`.
    Raises ValueError with a sentence on the first that is none of these."""
    return AllowedHosts(entries=tuple(map(_entry, entries)))


def _entry(text: str) -> _AllowedHost:
    text = text.strip()
    try:
        return _AllowedHost(where=ipaddress.ip_network(text, strict=True))
    except ValueError:
        pass
    try:
        host, port = _host_and_port(text)
    except UrlRefused as error:
        raise ValueError(
            f"{text!r} is no host, host:port or network such as 192.168.1.0/24"
        ) from error
    try:
        return _AllowedHost(where=ipaddress.ip_network(host), port=port)
    except ValueError:
        return _AllowedHost(where=host, port=port)
