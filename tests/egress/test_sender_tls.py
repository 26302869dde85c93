"""TLS: the name is checked although the connection goes to an address, and every handshake ends in time."""

from __future__ import annotations

import pytest
from tests.egress.guarded_sending import asking, names, sender
from tests.hostile import BEHAVIOURS, Authority, HostileEndpoint

pytest_plugins = ("tests.hostile.fixtures",)

LOOKUP = names(good_example="127.0.0.1", bad_example="127.0.0.1")


def test_the_certificate_is_checked_against_the_name(authority: Authority) -> None:
    # Given a server that has a certificate for good.example and records the name it is called by
    called: list[str | None] = []
    context = authority.server("good.example")
    context.sni_callback = lambda _socket, name, _context: called.append(name)
    with (
        HostileEndpoint(BEHAVIOURS, tls=context) as endpoint,
        sender(lookup=LOOKUP, ca_file=authority.ca_file) as sending,
    ):
        # When it is called by that name, twice
        for _ in range(2):
            answer = sending.send(asking(endpoint.url("healthy", host="good.example."), body=bytes(300_000)))
            assert (answer.status_code, answer.body) == (200, b"fine")
        # Then that name was in the handshake and in Host, and one connection did for both
        assert called == ["good.example"]
        assert dict(endpoint.requests[0].headers)["Host"] == f"good.example:{endpoint.port}"
        assert len(endpoint.requests[1].body) == 300_000
        assert endpoint.connections == 1
        # And another name for the same address is refused
        answer = sending.send(asking(endpoint.url("healthy", host="bad.example")))
        assert (answer.error_class, answer.bytes_out) == ("tls", 0)
        assert "not valid for 'bad.example'" in answer.message


def test_an_address_may_have_a_certificate(authority: Authority) -> None:
    with (
        HostileEndpoint(BEHAVIOURS, tls=authority.server("127.0.0.1")) as endpoint,
        sender(ca_file=authority.ca_file) as sending,
    ):
        assert sending.send(asking(endpoint.url("healthy"))).status_code == 200


@pytest.mark.parametrize(
    ("expired", "trusted", "reason"),
    [(True, True, "expired"), (False, False, "self-signed"), (True, False, "self-signed")],
)
def test_bad_certificates_are_refused(authority: Authority, expired: bool, trusted: bool, reason: str) -> None:
    context = authority.server("good.example", expired=expired, trusted=trusted)
    with (
        HostileEndpoint(BEHAVIOURS, tls=context) as endpoint,
        sender(lookup=LOOKUP, ca_file=authority.ca_file) as sending,
    ):
        answer = sending.send(asking(endpoint.url("healthy?token=secret", host="good.example")))
        assert (answer.status_code, answer.error_class, answer.bytes_out) == (0, "tls", 0)
        assert answer.message.startswith("The certificate of good.example is not valid:")
        assert reason in answer.message
        assert endpoint.requests == []


def test_an_unknown_authority_is_refused(authority: Authority) -> None:
    # Given a sender that trusts only the public authorities
    with (
        HostileEndpoint(BEHAVIOURS, tls=authority.server("good.example")) as endpoint,
        sender(lookup=LOOKUP) as sending,
    ):
        assert sending.send(asking(endpoint.url("healthy", host="good.example"))).error_class == "tls"
        assert endpoint.requests == []


@pytest.mark.parametrize(
    ("path", "error_class", "status"),
    [
        ("drip_head", "timeout", 0),
        ("drip_body", "timeout", 0),
        ("hang", "timeout", 0),
        ("close", "reset", 0),
        ("reset", "reset", 0),
        ("short_body", "bad_response", 0),
        ("endless_head", "too_large", 0),
        ("endless_body", "", 200),
        ("close_second", "reset", 0),
    ],
)
def test_hostile_endpoints_are_no_better_over_tls(
    authority: Authority, path: str, error_class: str, status: int
) -> None:
    with (
        HostileEndpoint(BEHAVIOURS, tls=authority.server("good.example")) as endpoint,
        sender(lookup=LOOKUP, ca_file=authority.ca_file) as sending,
    ):
        url = endpoint.url(path, host="good.example")
        # Only the calls that are to time out get little time: a handshake may take long on a busy machine.
        timeout_s = 0.25 if error_class == "timeout" else 20
        # A second one on the connection of the first, where that is kept.
        sending.send(asking(url, timeout_s=timeout_s))
        answer = sending.send(asking(url, timeout_s=timeout_s))
        assert (answer.error_class, answer.status_code) == (error_class, status)


def test_a_handshake_that_hangs_ends_at_the_deadline(endpoint: HostileEndpoint) -> None:
    # Given a server that accepts and says nothing, and time enough to resolve its name on a loaded machine
    with sender() as sending:
        answer = sending.send(asking(f"https://127.0.0.1:{endpoint.port}/", timeout_s=2))
    assert (answer.error_class, answer.bytes_out) == ("timeout", 0)
    assert "TLS handshake" in answer.message


def test_a_server_that_speaks_no_tls_is_told() -> None:
    with HostileEndpoint(BEHAVIOURS, greeting=b"HTTP/1.1 400 Bad Request\r\n\r\n") as endpoint, sender() as sending:
        answer = sending.send(asking(f"https://127.0.0.1:{endpoint.port}/"))
    assert (answer.error_class, answer.bytes_out) == ("tls", 0)
    assert answer.message.startswith("TLS handshake with 127.0.0.1 failed:")
