"""The guard at the socket: what counts is what a name resolves to when connecting, not earlier."""

from __future__ import annotations

import errno
import socket

import pytest
from tests.egress.guarded_sending import asking, names, sender
from tests.hostile import BEHAVIOURS, HostileEndpoint

from pushhub.base.errors import Unavailable
from pushhub.egress.lookup import NameLookup

pytest_plugins = ("tests.hostile.fixtures",)


class Rebinding:
    """A name that resolves to another address each time."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked = 0

    def __call__(self, name: str) -> list[str]:
        self.asked += 1
        return [self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]]


def test_the_connection_goes_to_the_address_that_was_checked() -> None:
    # Given a name that is 127.0.0.2 when first asked for and 127.0.0.1 ever after, and only 127.0.0.2 is allowed
    rebinding = Rebinding("127.0.0.2", "127.0.0.1")
    with (
        HostileEndpoint(BEHAVIOURS, host="127.0.0.2") as right,
        sender(allowed=["127.0.0.2"], lookup=NameLookup(rebinding)) as sending,
    ):
        # When it is sent to
        answer = sending.send(asking(right.url("healthy", host="rebind.example")))
        # Then it was resolved once, and the request arrived at the checked address
        assert answer.status_code == 200
        assert rebinding.asked == 1
        assert len(right.requests) == 1


def test_a_name_that_turns_to_loopback_is_refused_at_the_next_connection() -> None:
    # Given a name that used to be harmless
    rebinding = Rebinding("127.0.0.2", "127.0.0.1")
    with (
        HostileEndpoint(BEHAVIOURS, host="127.0.0.2") as right,
        sender(allowed=["127.0.0.2"], lookup=NameLookup(rebinding)) as sending,
    ):
        url = right.url("answer_and_close", host="rebind.example")
        assert sending.send(asking(url)).status_code == 200
        # When its connection is gone and a new one would be needed
        right.wait_until_closed()
        answer = sending.send(asking(url))
        # Then the guard checks again
        assert (answer.status_code, answer.error_class, answer.bytes_out) == (0, "refused_by_guard", 0)
        assert answer.message == "rebind.example resolves to a loopback address, which is not allowed"
        assert len(right.requests) == 1


@pytest.mark.parametrize(
    "addresses",
    [
        "127.0.0.1",
        "10.0.0.1",
        "93.184.215.14 127.0.0.1",
        "::1",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "fe80::1%lo",
    ],
)
def test_no_way_to_say_loopback_or_private_reaches_the_endpoint(endpoint: HostileEndpoint, addresses: str) -> None:
    with sender(allowed=(), lookup=names(evil_example=addresses)) as sending:
        answer = sending.send(asking(endpoint.url("healthy", host="evil.example")))
    assert (answer.status_code, answer.error_class, answer.bytes_out) == (0, "refused_by_guard", 0)
    assert endpoint.connections == 0


def test_a_project_s_own_targets_are_its_own(endpoint: HostileEndpoint) -> None:
    # Given a connection that one project may use because loopback is allowed to it
    with sender(allowed=()) as sending:
        assert sending.send(asking(endpoint.url("healthy"), allowed=("loopback",))).status_code == 200
        # When another project sends to the same place
        answer = sending.send(asking(endpoint.url("healthy")))
        # Then the existing connection is not used for it
        assert answer.error_class == "refused_by_guard"
    assert len(endpoint.requests) == 1


def test_a_project_s_list_that_cannot_be_read_opens_nothing(endpoint: HostileEndpoint) -> None:
    with sender() as sending:
        answer = sending.send(asking(endpoint.url("healthy"), allowed=("what is this?",)))
    assert answer.error_class == "refused_by_guard"


def test_a_machine_without_sockets_to_spare_is_not_the_subscriber_s_fault(
    endpoint: HostileEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a process that has reached its limit of open files
    def exhausted(self: socket.socket, address: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr("pushhub.egress.socket.BoundedSocket.connect", exhausted)
    # When a request is to be sent, then no answer is invented
    with sender() as sending, pytest.raises(Unavailable):
        sending.send(asking(endpoint.url("healthy")))
