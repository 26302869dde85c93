"""Which URLs may be targets: tested at registration, with every way to write a forbidden address that is known to have
worked against other software.
"""

from __future__ import annotations

import pytest

from pushhub.egress.guard import AllowedTargets, refusal
from pushhub.egress.lookup import NameLookup

NAMES = {
    "public.example": ["93.184.215.14", "2606:2800:21f:cb07::1"],
    "half.example": ["93.184.215.14", "10.0.0.1"],
    "inside.example": ["10.1.2.3"],
    "loop.example": ["127.0.0.1"],
    "mapped.example": ["::ffff:192.168.0.1"],
    "nat64.example": ["64:ff9b::a9fe:a9fe"],
    "scoped.example": ["fe80::1%eth0"],
    "localhost": ["127.0.0.1", "::1"],
    "xn--bcher-kva.example": ["93.184.215.14"],
}


def lookup() -> NameLookup:
    def resolve(name: str) -> list[str]:
        known = NAMES.get(name.removesuffix("."))
        if known is None:
            raise OSError("unknown name")
        return known

    return NameLookup(resolve)


def refused(url: str, *allowed: str) -> str | None:
    return refusal(url, allowed, lookup=lookup())


@pytest.mark.parametrize(
    "url",
    [
        "http://public.example/",
        "https://public.example",
        "HTTPS://PUBLIC.example:8443/a/b?c=d#e",
        "http://public.example.:80/",
        "http://user:secret@public.example/",
        "http://93.184.215.14/x",
        "http://[2606:2800:21f:cb07::1]:8080/x",
        "http://[::ffff:93.184.215.14]/",
        "http://bücher.example/",
        "http://public.example?a=1",
        "http://public.example/a b/ü?q=\\x",
        "http://public.example/@inside.example/",
        "http://public.example/?u=http://10.0.0.1/",
    ],
)
def test_public_targets_may_be_reached(url: str) -> None:
    assert refused(url) is None


def test_a_name_that_cannot_be_resolved_now_is_not_refused() -> None:
    assert refused("http://not-there.example/") is None


@pytest.mark.parametrize(
    "host",
    [
        # IPv4, by range
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "100.64.0.1",
        "127.0.0.1",
        "127.255.255.254",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.8",
        "192.0.0.170",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.1.1",
        "198.18.0.1",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.255.255.250",
        "240.0.0.1",
        "255.255.255.255",
        # IPv6, by range
        "[::]",
        "[::1]",
        "[::127.0.0.1]",
        "[::8.8.8.8]",
        "[::ffff:127.0.0.1]",
        "[::ffff:a9fe:a9fe]",
        "[0:0:0:0:0:ffff:10.0.0.1]",
        "[64:ff9b::a9fe:a9fe]",
        "[64:ff9b::8.8.8.8]",
        "[64:ff9b:1::a00:1]",
        "[100::1]",
        "[2001::1]",
        "[2001:2::1]",
        "[2001:10::1]",
        "[2001:20::1]",
        "[2001:db8::1]",
        "[2002:7f00:1::]",
        "[2002:808:808::1]",
        "[3fff::1]",
        "[5f00::1]",
        "[fc00::1]",
        "[fd00:ec2::254]",
        "[fe80::1]",
        "[fec0::1]",
        "[ff02::1]",
        "[4000::1]",
    ],
)
def test_addresses_that_are_not_public_are_refused(host: str) -> None:
    reason = refused(f"http://{host}/")
    assert reason is not None
    assert "not allowed" in reason


@pytest.mark.parametrize(
    "name",
    [
        "half.example",
        "inside.example",
        "loop.example",
        "mapped.example",
        "nat64.example",
        "scoped.example",
        "localhost",
    ],
)
def test_names_with_any_address_that_is_not_public_are_refused(name: str) -> None:
    reason = refused(f"http://{name}/")
    assert reason is not None
    assert "resolves to" in reason
    # The tenant does not learn the name's address in the hub's network.
    assert not any(address in reason for address in NAMES[name])


@pytest.mark.parametrize(
    "url",
    [
        "http://2130706433/",
        "http://017700000001/",
        "http://0x7f000001/",
        "http://0x7f.1/",
        "http://0177.0.0.1/",
        "http://127.1/",
        "http://127.0.0.1./",
        "http://127.000.000.001/",
        "http://127.0.0.0x1/",
        "http://256.256.256.256/",
        "http://1.2.3.4.5/",
        "http://0x/",
        # fullwidth and circled digits, ideographic full stop
        "http://\uff11\uff12\uff17.\uff10.\uff10.\uff11/",
        "http://①②⑦.⓪.⓪.①/",
        "http://127。0。0。1/",
        # zone ids, brackets
        "http://[fe80::1%25eth0]/",
        "http://[fe80::1%eth0]/",
        "http://[::1",
        "http://[::1]x/",
        "http://[127.0.0.1]/",
        "http://::1/",
        # percent-encoded hosts
        "http://127%2e0%2e0%2e1/",
        "http://%6c%6f%63%61%6c%68%6f%73%74/",
        "http://public.example%00.inside.example/",
        # userinfo and separators that other parsers read differently
        "http://public.example@inside.example/",
        "http://public.example\\@inside.example/",
        "http://inside.example\\.public.example/",
        "http://a@b@inside.example/",
        "http://public.example:80@inside.example/",
        "http://public.example:80:90/",
        "http:///inside.example/",
        "http:inside.example/",
        "http:/inside.example/",
        "http:\\\\inside.example/",
        "//inside.example/",
        "http://",
        "http://?",
        "http://.",
        "http://inside.example../",
        "http://.inside.example/",
        "http://in side.example/",
        "http://inside.example\t/",
        "http://public.example/\r\nX: y",
        " http://public.example/",
        "http://public.example/ ",
        "http://-public.example/",
        "http://a..b/",
        f"http://{'a' * 64}.example/",
        f"http://{'a.' * 127}example/",
        "http://ex*mple/",
        "http://ex<ample/",
        "http://ａ\u00ad..example/",
        "http://xn--\u00fc/",
        # ports
        "http://public.example:0/",
        "http://public.example:65536/",
        "http://public.example:-1/",
        "http://public.example:8x/",
        "http://public.example:８０/",
        "http://public.example:000080/",
        # schemes
        "ftp://public.example/",
        "file:///etc/passwd",
        "gopher://public.example/",
        "javascript:alert(1)",
        "",
        "public.example",
        "http://public.example/\udc80",
    ],
)
def test_urls_that_can_be_read_in_two_ways_are_refused(url: str) -> None:
    assert refused(url)


@pytest.mark.parametrize(
    "url", ["http://user:hunter2@inside.example/p?token=hunter2", "http://user:hunter2@in\\side/p?token=hunter2"]
)
def test_reasons_tell_no_secrets(url: str) -> None:
    reason = refused(url)
    assert reason
    assert "hunter2" not in reason


@pytest.mark.parametrize(
    ("entry", "url"),
    [
        ("loopback", "http://127.0.0.1:8080/"),
        ("loopback", "http://127.9.9.9/"),
        ("loopback", "http://[::1]/"),
        ("loopback", "http://[::ffff:127.0.0.1]/"),
        ("loopback", "http://localhost:1234/"),
        ("loopback", "http://loop.example/"),
        ("loopback:8080", "http://127.0.0.1:8080/"),
        ("localhost", "http://localhost/"),
        ("LOCALHOST:80", "http://localhost./"),
        ("127.0.0.1", "http://127.0.0.1:9/"),
        ("127.0.0.1:8080", "http://127.0.0.1:8080/"),
        ("127.0.0.1:8080", "http://loop.example:8080/"),
        ("10.0.0.0/8", "http://inside.example/"),
        ("10.0.0.0/8:443", "https://inside.example/"),
        ("10.9.9.9/8", "http://half.example/"),
        ("inside.example", "http://inside.example/"),
        ("inside.example:443", "https://inside.example/"),
        ("::1", "http://[::1]:5/"),
        ("[::1]:5", "http://[::1]:5/"),
        ("fd00::/8", "http://[fd12::1]/"),
        ("[fd00::/8]:80", "http://[fd12::1]/"),
        ("192.168.0.1", "http://mapped.example/"),
    ],
)
def test_the_allow_list_lets_through_what_it_names(entry: str, url: str) -> None:
    assert refused(url)
    assert refused(url, entry) is None


@pytest.mark.parametrize(
    ("entry", "url"),
    [
        ("127.0.0.1:8080", "http://127.0.0.1:8081/"),
        ("127.0.0.1", "http://127.0.0.2/"),
        ("loopback:8080", "http://localhost/"),
        ("10.0.0.0/8:443", "http://inside.example/"),
        ("inside.example:443", "http://inside.example/"),
        ("inside.example", "http://10.1.2.3/"),
        ("example", "http://inside.example/"),
        ("public.example", "http://half.example/"),
        ("127.0.0.1", "http://localhost/"),
        ("93.184.215.14", "http://half.example/"),
        # A name must not open the hub itself to whoever controls that name's DNS.
        ("loop.example", "http://loop.example/"),
    ],
)
def test_the_allow_list_lets_through_nothing_else(entry: str, url: str) -> None:
    assert refused(url, entry)


@pytest.mark.parametrize("entry", ["0.0.0.0/0", "169.254.0.0/16", "169.254.169.254", "169.254.169.254:80"])
def test_instance_metadata_stays_forbidden(entry: str) -> None:
    assert refused("http://169.254.169.254/latest/meta-data/", entry, "::/0")
    assert refused("http://[::ffff:169.254.169.254]/", entry, "::/0")
    assert refused("http://[64:ff9b::a9fe:a9fe]/", entry, "::/0")
    assert refused("http://[2002:a9fe:a9fe::]/", entry, "::/0")
    assert refused("http://[fd00:ec2::254]/", entry, "::/0")


def test_the_lambda_runtime_api_stays_forbidden(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a Lambda environment whose Runtime API is on 127.0.0.1:9001, and the widest allow-list
    monkeypatch.setenv("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:9001")
    everything = ("loopback", "localhost", "0.0.0.0/0", "::/0", "127.0.0.1:9001")
    # Then none of its names is let through, and other ports are
    for host in ("127.0.0.1", "127.0.0.2", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]"):
        assert "Lambda Runtime API" in (
            refused(f"http://{host}:9001/2018-06-01/runtime/invocation/next", *everything) or ""
        )
        assert refused(f"http://{host}:9002/", *everything) is None


def test_the_lambda_runtime_api_stays_forbidden_on_an_address_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_LAMBDA_RUNTIME_API", "10.1.2.3:9001")
    assert refused("http://inside.example:9001/", "10.0.0.0/8", "inside.example")
    assert refused("http://inside.example/", "10.0.0.0/8") is None


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.9.9.9", "localhost", "[::1]", "[::ffff:127.0.0.1]", "inside.example"]
)
def test_what_is_closed_stays_closed_whatever_else_is_let_through(host: str) -> None:
    # Given the widest allow-list, and one port that is closed everywhere
    everything = ("loopback", "localhost", "inside.example", "0.0.0.0/0", "::/0", f"{host}:4577")
    closed = ("!0.0.0.0/0:4577", "![::/0]:4577")
    for allowed in ((*closed, *everything), (*everything, *closed)):
        # Then it cannot be reached, and other ports are open
        assert "not open" in (refused(f"http://{host}:4577/", *allowed) or "")
        assert refused(f"http://{host}:4578/", *allowed) is None
    assert refused(f"http://{host}:4577/", *everything) is None


@pytest.mark.parametrize(
    "entry",
    [
        "!",
        "!!a",
        "! a",
        "",
        " ",
        "http://a/",
        "a/b",
        "a b",
        "10.0.0.0/33",
        "a:99999",
        "a:b",
        "*",
        "a@b",
        "a?b",
        "[::1",
        "[a]:80:90",
    ],
)
def test_allow_lists_that_cannot_be_read_are_an_error(entry: str) -> None:
    with pytest.raises(ValueError, match="not an allowed target"):
        AllowedTargets.parse([entry])
