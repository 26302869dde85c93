"""The guarded sender with hostile endpoints: every request ends as an answer, in time and in bounded memory."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.egress.guarded_sending import asking, sender
from tests.hostile import BEHAVIOURS, HostileEndpoint, Peer, unaccepting_port

from pushhub.egress.lookup import NameLookup
from pushhub.egress.sender import GuardedSender

pytest_plugins = ("tests.hostile.fixtures",)


@pytest.fixture
def sending() -> Iterator[GuardedSender]:
    with sender() as created:
        yield created


@pytest.mark.parametrize("path", ["hang", "hang_in_head", "hang_in_body", "drip_head", "drip_body", "hang_second"])
def test_slow_answers_end_at_the_deadline(sending: GuardedSender, endpoint: HostileEndpoint, path: str) -> None:
    if path == "hang_second":
        sending.send(asking(endpoint.url(path)))
    started = time.monotonic()
    answer = sending.send(asking(endpoint.url(path), timeout_s=1, answer_limit=65_536))
    took = time.monotonic() - started
    assert (answer.status_code, answer.error_class, answer.bytes_out) == (0, "timeout", 5)
    assert answer.message == "No complete answer within 1 s"
    # (the endpoint would take half a minute)
    assert 0.99 < took < 20


def test_an_endpoint_that_reads_nothing_ends_at_the_deadline() -> None:
    # Given an endpoint that accepts the connection and then reads nothing of a body larger than the buffers
    def never_read(peer: Peer) -> None:
        peer.stopping.wait(30)

    with HostileEndpoint({"idle": never_read}, before_body=frozenset({"idle"})) as endpoint, sender() as sending:
        started = time.monotonic()
        answer = sending.send(asking(endpoint.url("idle"), body=bytes(32 * 1024 * 1024), timeout_s=1))
        assert answer.error_class == "timeout"
        assert time.monotonic() - started < 20


def test_a_connection_that_is_never_accepted_ends_at_the_deadline(sending: GuardedSender) -> None:
    with unaccepting_port() as port:
        started = time.monotonic()
        answer = sending.send(asking(f"http://127.0.0.1:{port}/", timeout_s=1))
    assert (answer.error_class, answer.bytes_out) == ("timeout", 0)
    assert "did not accept a connection in time" in answer.message
    assert time.monotonic() - started < 20


def test_an_address_that_does_not_answer_leaves_time_for_the_next(endpoint: HostileEndpoint) -> None:
    # Given a name with an address that never accepts before the one that does
    lookup = NameLookup(lambda name: ["127.0.0.9", "127.0.0.1"])
    with unaccepting_port("127.0.0.9", endpoint.port), sender(lookup=lookup) as sending:
        # When a request is sent to it, then each address gets half of the time
        started = time.monotonic()
        answer = sending.send(asking(endpoint.url("healthy", host="two.example"), timeout_s=6))
        assert time.monotonic() - started > 2.95
    assert answer.status_code == 200


def test_a_name_whose_servers_never_answer_ends_at_the_deadline() -> None:
    def hang(name: str) -> list[str]:
        time.sleep(0.9)
        return []

    with sender(lookup=NameLookup(hang)) as sending:
        started = time.monotonic()
        answer = sending.send(asking("http://slow.example/", timeout_s=0.2))
        assert time.monotonic() - started < 20
    assert (answer.error_class, answer.bytes_out) == ("timeout", 0)
    assert "slow.example was not resolved in time" in answer.message


def test_an_unknown_name_is_told() -> None:
    def unknown(name: str) -> list[str]:
        raise OSError(-2, "Name or service not known")

    with sender(lookup=NameLookup(unknown)) as sending:
        answer = sending.send(asking("http://nowhere.example/secret?token=x"))
    assert (answer.status_code, answer.error_class, answer.bytes_out) == (0, "dns", 0)
    assert answer.message == "nowhere.example cannot be resolved: Name or service not known"


def test_a_closed_port_is_told(sending: GuardedSender) -> None:
    with HostileEndpoint(BEHAVIOURS) as gone:
        pass
    answer = sending.send(asking(f"http://127.0.0.1:{gone.port}/secret?token=x"))
    assert (answer.status_code, answer.error_class, answer.bytes_out) == (0, "connect", 0)
    assert answer.message == "No connection to 127.0.0.1: Connection refused"


@pytest.mark.parametrize("path", ["endless_body", "endless_chunks"])
def test_endless_bodies_are_cut_at_the_limit(sending: GuardedSender, endpoint: HostileEndpoint, path: str) -> None:
    # When an answer of any length is limited to 1,000 bytes
    answer = sending.send(asking(endpoint.url(path), answer_limit=1000))
    # Then that much is kept, the status counts, and the connection is not reused
    assert (answer.status_code, answer.error_class, answer.body, answer.bytes_in) == (200, "", b"x" * 1000, 1000)
    sending.send(asking(endpoint.url("healthy")))
    assert endpoint.connections == 2


@pytest.mark.parametrize(
    ("limit", "body", "connections"), [(3, b"fin", 2), (4, b"fine", 1), (5, b"fine", 1), (0, b"", 2)]
)
def test_the_limit_is_exact(
    sending: GuardedSender, endpoint: HostileEndpoint, limit: int, body: bytes, connections: int
) -> None:
    assert sending.send(asking(endpoint.url("healthy"), answer_limit=limit)).body == body
    sending.send(asking(endpoint.url("healthy")))
    assert endpoint.connections == connections


@pytest.mark.parametrize(
    ("path", "error_class"),
    [
        ("endless_head", "too_large"),
        ("endless_interim", "too_large"),
        ("endless_chunk_extensions", "too_large"),
        ("endless_trailers", "too_large"),
        ("many_headers", "too_large"),
        ("big_header", "too_large"),
        ("short_body", "bad_response"),
        ("cut_chunk", "bad_response"),
        ("bad_chunk_size", "bad_response"),
        ("negative_chunk", "bad_response"),
        ("negative_length", "bad_response"),
        ("length_no_number", "bad_response"),
        ("garbage", "bad_response"),
        ("garbage_status", "bad_response"),
        ("other_version", "bad_response"),
        ("close", "reset"),
        ("reset", "reset"),
        ("reset_in_body", "reset"),
    ],
)
def test_broken_answers_are_told_apart(
    sending: GuardedSender, endpoint: HostileEndpoint, path: str, error_class: str
) -> None:
    answer = sending.send(asking(endpoint.url(f"{path}?token=secret")))
    assert (answer.status_code, answer.error_class, answer.bytes_out) == (0, error_class, 5)
    assert answer.message
    assert "secret" not in answer.message
    # Then the sender works as before, with a new connection
    assert sending.send(asking(endpoint.url("healthy"))).body == b"fine"
    assert endpoint.connections == 2


def test_a_reason_phrase_is_told_as_it_was_sent(sending: GuardedSender, endpoint: HostileEndpoint) -> None:
    assert sending.send(asking(endpoint.url("reason_utf8"))).message == "Überlastet – später"
    endpoint.wait_until_closed()
    assert sending.send(asking(endpoint.url("reason_latin1"))).message == "Überlastet"


def test_interim_answers_are_passed_over(sending: GuardedSender, endpoint: HostileEndpoint) -> None:
    answer = sending.send(asking(endpoint.url("interim")))
    assert (answer.status_code, answer.body) == (200, b"fine")
    assert "link" not in answer.headers


def test_a_switch_of_protocols_is_a_failure_and_ends_the_connection(
    sending: GuardedSender, endpoint: HostileEndpoint
) -> None:
    assert sending.send(asking(endpoint.url("switch_protocols"))).status_code == 101
    sending.send(asking(endpoint.url("healthy")))
    assert endpoint.connections == 2


def test_an_answer_before_the_body_was_read_counts(sending: GuardedSender, endpoint: HostileEndpoint) -> None:
    answer = sending.send(asking(endpoint.url("refuse_early"), body=bytes(8 * 1024 * 1024)))
    assert (answer.status_code, answer.message) == (413, "Content Too Large")


def test_the_reason_is_one_printable_line(sending: GuardedSender, endpoint: HostileEndpoint) -> None:
    answer = sending.send(asking(endpoint.url("hostile_reason")))
    assert answer.message.startswith("Over [31m there x")
    assert len(answer.message) == 200


def test_logs_tell_no_secrets_of_the_url(sending: GuardedSender, caplog: pytest.LogCaptureFixture) -> None:
    # Given an endpoint whose headers are malformed in a way that HTTP libraries like to log
    def malformed(peer: Peer) -> None:
        peer.send(b"HTTP/1.1 200 OK\r\nno colon here\r\nContent-Length: 0\r\n\r\n")

    caplog.set_level("DEBUG")
    with HostileEndpoint({"malformed": malformed}) as endpoint:
        sending.send(asking(endpoint.url("malformed?token=secret", host="user:secret@127.0.0.1")))
    assert "secret" not in caplog.text


@pytest.fixture(scope="module")
def fuzzed() -> Iterator[HostileEndpoint]:
    with HostileEndpoint({}) as started:
        yield started


@settings(max_examples=75, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    head=st.one_of(
        st.binary(max_size=200),
        st.lists(
            st.one_of(
                st.sampled_from(
                    [
                        b"Transfer-Encoding: chunked",
                        b"Content-Length: 3",
                        b"Content-Length: 99",
                        b"Content-Type: multipart/mixed; boundary=x",
                        b"Content-Type: message/rfc822",
                        b"Content-Type: message/delivery-status",
                        b"Connection: keep-alive",
                        b" folded",
                        b"--x",
                        b"HTTP/1.1 100 Continue",
                        b"",
                    ]
                ),
                st.binary(max_size=30),
            ),
            max_size=8,
        ).map(lambda lines: b"\r\n".join([b"HTTP/1.1 200 OK", *lines, b"", b""])),
    ),
    body=st.one_of(
        st.binary(max_size=100), st.sampled_from([b"3\r\nabc\r\n0\r\n\r\n", b"-3\r\nabc", b"fffffffff\r\nabc"])
    ),
)
def test_whatever_comes_is_an_answer(fuzzed: HostileEndpoint, head: bytes, body: bytes) -> None:
    # Given an endpoint that sends any bytes and closes
    fuzzed.behaviours["anything"] = lambda peer: peer.send(head + body)
    # When it is called, then the call ends as an answer: no exception, no warning
    with sender() as sending:
        answer = sending.send(asking(fuzzed.url("anything"), timeout_s=2))
    assert answer.error_class or answer.status_code
    assert len(answer.message) <= 200
