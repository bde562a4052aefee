"""What may be reached: web addresses in every disguise, and the public part of the internet."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.web.addresses import (
    IPAddress,
    UrlRefused,
    allowed_hosts,
    embedded_in,
    is_public,
    joined,
    parse_host,
    parse_url,
    with_scheme,
)

# --- web addresses -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("https://example.com", "https://example.com/"),
        ("HTTPS://Example.COM:443/A?b=C#d", "https://example.com/A?b=C"),
        ("http://example.com:8080/x", "http://example.com:8080/x"),
        ("http://example.com.:80/", "http://example.com/"),
        ("http://example.com:/", "http://example.com/"),
        ("https://münchen.de/straße?q=ä", "https://xn--mnchen-3ya.de/stra%C3%9Fe?q=%C3%A4"),
        ("https://MÜNCHEN.de/", "https://xn--mnchen-3ya.de/"),
        ("https://例え.jp/", "https://xn--r8jz45g.jp/"),
        ("https://example.com/a%20b%zz", "https://example.com/a%20b%25zz"),
        ("https://example.com?q=1", "https://example.com/?q=1"),
        ("http://[2606:4700::1111]:8080/", "http://[2606:4700::1111]:8080/"),
        ("http://1.1.1.1/", "http://1.1.1.1/"),
    ],
)
def test_a_web_address_is_read_to_one_form(written: str, read: str) -> None:
    url = parse_url(written)

    assert str(url) == read
    assert parse_url(read) == url


@pytest.mark.case("SE-11")
@pytest.mark.parametrize(
    "written",
    [
        "http://0x7f.1/",
        "http://127.1/",
        "http://0/",
        "http://0x/",
        "http://127.0.0.0x1/",
        "http://1.2.3.4.5/",
        "http://①②⑦.0.0.1/",
        "http://１２７.0.0.1/",
        "http://127。0。0。1/",
        "http://ⓛocalhost/",
        "http://user:password@example.com/",
        "http://example.com@127.0.0.1/",
        "http://127.0.0.1\\@example.com/",
        "http://127.0.0.1%00.example.com/",
        "http://example%2ecom/",
        "http://exa mple.com/",
        "http://exam\tple.com/",
        "http://example.com\r\nHost: x/",
        "http://example.com/\ud800",
        "http://[::1/",
        "http://[fe80::1%25eth0]/",
        "http://[::1]x/",
        "http://[127.0.0.1]/",
        "http://[v1.x]/",
        "http://example..com/",
        "http://-example.com/",
        "http:///path",
        "http://",
        "http:example.com",
        "//example.com/",
        "example.com",
        "",
        "file:///etc/hostname",
        "ftp://example.com/",
        "javascript:alert(1)",
        "data:text/html,x",
        "http://example.com:0/",
        "http://example.com:65536/",
        "http://example.com:8०/",
        "http://example.com:80:80/",
        f"http://{'a' * 64}.com/",
        f"http://{'a.' * 140}com/",
        f"http://example.com/{'a' * 5000}",
    ],
)
def test_what_could_mean_two_things_is_no_web_address(written: str) -> None:
    with pytest.raises(UrlRefused) as refused:
        parse_url(written)

    assert str(refused.value).endswith(".")
    assert not (written and written in str(refused.value)), "a refused address is not repeated"


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("https://me:secret@example.com/", "name or password"),
        ("ftp://example.com/", "http:// or https://"),
        ("http://127.1/", "unusual form"),
        ("http://①.example/", "look-alike"),
        ("http://a b/", "blank"),
        ("http://a:99999/", "port"),
        ("http://[::1/", "bracket"),
        ("https:example.com", "https://example.com/page"),
    ],
)
def test_what_is_wrong_with_an_address_is_said(written: str, words: str) -> None:
    with pytest.raises(UrlRefused) as refused:
        parse_url(written)

    assert words in str(refused.value)
    assert "secret" not in str(refused.value)


@given(st.text(max_size=60))
@example("http://a@b")
def test_whatever_is_read_as_a_web_address_says_the_same_to_others(text: str) -> None:
    for written in (text, f"http://{text}", f"https://example.com/{text}"):
        try:
            url = parse_url(written)
        except UrlRefused:
            continue

        parts = urlsplit(str(url))
        assert parts.scheme in {"http", "https"}
        assert (parts.hostname, parts.port or {"http": 80, "https": 443}[parts.scheme]) == (
            url.host,
            url.port,
        )
        assert parts.username is None
        assert str(url).isascii()
        assert parse_url(str(url)) == url


@given(st.integers(0, 2**32 - 1), st.sampled_from(["d", "#x", "#o"]), st.integers(1, 3))
def test_an_ipv4_address_in_an_unusual_form_is_refused(number: int, form: str, parts: int) -> None:
    octets = list(number.to_bytes(4, "big"))
    last = int.from_bytes(bytes(octets[parts - 1 :]), "big")
    written = ".".join(format(part, form) for part in [*octets[: parts - 1], last])
    written = written.replace("0o", "0")

    with pytest.raises(UrlRefused):
        parse_url(f"http://{written}/")


@pytest.mark.parametrize(
    ("location", "leads_to"),
    [
        ("/other?x", "http://example.com/other?x"),
        ("next", "http://example.com/a/next"),
        ("//evil.example/x", "http://evil.example/x"),
        ("https://example.com/a b", "https://example.com/a%20b"),
        ("?p=2", "http://example.com/a/b?p=2"),
        ("/ümlaut", "http://example.com/%C3%BCmlaut"),
    ],
)
def test_a_redirect_is_read_from_where_it_was_said(location: str, leads_to: str) -> None:
    base = parse_url("http://example.com/a/b?p=1")

    assert str(joined(base, location)) == leads_to


@pytest.mark.parametrize("location", ["file:///etc/passwd", "http://a@b/", "http://[::1", "data:,"])
def test_a_redirect_to_what_is_no_web_address_is_refused(location: str) -> None:
    with pytest.raises(UrlRefused):
        joined(parse_url("http://example.com/"), location)


@pytest.mark.parametrize(
    ("written", "completed"),
    [
        ("example.com", "https://example.com"),
        (" example.com/a?b#c ", "https://example.com/a?b#c"),
        ("example.com:8443/a", "https://example.com:8443/a"),
        ("http://example.com", "http://example.com"),
        ("localhost:8080/x", "localhost:8080/x"),
        ("javascript:alert(1)", "javascript:alert(1)"),
        ("mailto:a@example.com", "mailto:a@example.com"),
        ("127.0.0.1/x", "127.0.0.1/x"),
    ],
)
def test_what_is_plainly_a_host_gets_a_scheme(written: str, completed: str) -> None:
    assert with_scheme(written) == completed


# --- the public part of the internet -----------------------------------------------------------


@pytest.mark.case("SE-11")
@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1",
        "127.255.255.254", "168.63.129.16", "169.254.169.254", "172.16.0.1", "172.31.255.255",
        "192.0.0.1", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1",
        "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255",
        "240.0.0.1", "255.255.255.255",
        "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:8.8.8.8",
        "::ffff:0:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::1", "100::1", "2001::1", "2001:0:7f00:1::", "2001:db8::1", "2002:7f00:1::1",
        "2002:808:808::1", "3fff::1", "5f00::1", "fc00::1", "fd00::1", "fd00:ec2::254",
        "fe80::1", "fe80::1%1", "fec0::1", "ff02::1", "4000::1",
    ],
)  # fmt: skip
def test_what_is_not_public_is_known(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "address",
    ["1.1.1.1", "8.8.8.8", "93.184.215.14", "100.63.255.255", "100.128.0.0", "172.32.0.1",
     "198.17.255.255", "198.20.0.0", "223.255.255.255", "2606:4700::1111", "2a00:1450::1",
     "64:ff9b::808:808"],
)  # fmt: skip
def test_what_is_public_is_known(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
"""Reserved, and global: how machines with IPv6 alone reach the rest."""

any_address: st.SearchStrategy[IPAddress] = st.one_of(
    st.ip_addresses(v=4),
    st.ip_addresses(v=6),
    st.sampled_from(["10.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "100.64.0.0/10"]).flatmap(
        lambda network: st.ip_addresses(network=network)
    ),
    st.sampled_from(["fc00::/7", "fe80::/10", "::/96", "64:ff9b::/96", "2002::/16", "2001::/32"])
    .map(ipaddress.IPv6Network)
    .flatmap(lambda network: st.ip_addresses(network=network)),
)


@pytest.mark.case("SE-11")
@given(any_address)
def test_nothing_that_python_knows_to_be_special_is_public(address: IPAddress) -> None:
    special = (
        not address.is_global
        or address.is_multicast
        or (address.is_reserved and address not in NAT64)
        or address.is_loopback
        or address.is_link_local
        or address.is_unspecified
    )

    assert not (special and is_public(address))


@given(st.ip_addresses(v=4))
def test_an_address_inside_another_is_no_more_public_than_alone(inner: IPAddress) -> None:
    number = int(inner)
    forms = [
        ipaddress.IPv6Address(0xFFFF << 32 | number),
        ipaddress.IPv6Address(int(ipaddress.IPv6Address("64:ff9b::")) | number),
        ipaddress.IPv6Address(0x2002 << 112 | number << 80 | 1),
        ipaddress.IPv6Address(0x20010000 << 96 | number ^ 0xFFFFFFFF),
    ]

    for form in forms:
        assert embedded_in(form) == inner
        assert is_public(inner) or not is_public(form)


# --- what the owner allows ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "host", "port", "address", "allowed"),
    [
        ("nas.local", "nas.local", 80, "192.168.1.7", True),
        ("nas.local:8080", "nas.local", 8080, "10.0.0.7", True),
        ("nas.local:8080", "nas.local", 80, "10.0.0.7", False),
        ("nas.local", "evil.example", 80, "192.168.1.7", False),
        ("nas.local", "x.nas.local", 80, "192.168.1.7", False),
        ("nas.local", "nas.local", 80, "127.0.0.1", True),
        ("nas.local", "nas.local", 80, "169.254.169.254", False),
        ("nas.local", "nas.local", 80, "::ffff:169.254.169.254", False),
        ("192.168.1.7", "nas.local", 80, "192.168.1.7", True),
        ("192.168.1.7:80", "192.168.1.7", 81, "192.168.1.7", False),
        ("10.0.0.0/8", "nas.local", 80, "10.200.0.1", True),
        ("10.0.0.0/8", "nas.local", 80, "::ffff:10.200.0.1", True),
        ("198.18.0.0/15", "example.com", 443, "198.18.3.4", True),
        ("fd00::/8", "nas.local", 80, "fd12::1", True),
        ("[fd00::7]:443", "nas.local", 443, "fd00::7", True),
        ("169.254.169.254", "169.254.169.254", 80, "169.254.169.254", True),
    ],
)
def test_an_entry_allows_what_it_says_and_no_more(
    entry: str, host: str, port: int, address: str, *, allowed: bool
) -> None:
    hosts = allowed_hosts([entry])

    assert hosts.allow(host, port, ipaddress.ip_address(address)) is allowed


@pytest.mark.parametrize(
    "entry", ["", "http://nas.local", "nas.local/x", "10.0.0.1/8", "a b", "*.local", "x:99999", "@"]
)
def test_an_entry_that_is_none_is_named(entry: str) -> None:
    with pytest.raises(ValueError, match="is no host"):
        allowed_hosts([entry])


def test_a_name_of_one_word_is_a_host() -> None:
    assert parse_host("searxng") == "searxng"
    assert parse_host("My_Host.") == "my_host"
