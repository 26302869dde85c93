"""Files and ports of a local stack."""

from __future__ import annotations

from pathlib import Path

import pytest
from local.deploy.deployer import parameters
from local.errors import LocalError
from local.place import REPOSITORY, Place

from pushhub.egress.guard import refusal


def test_without_variables_everything_is_in_the_repository() -> None:
    # Given no variables, when the place is looked up
    place = Place.from_environment({})
    # Then it is the documented one
    assert (place.base_url, place.aws_endpoint_url) == ("http://127.0.0.1:8377", "http://127.0.0.1:4577")
    assert place.home == REPOSITORY / ".pushhub"
    assert place.template == REPOSITORY / "template.yaml"


def test_variables_move_it(tmp_path: Path) -> None:
    # Given variables
    environ = {
        "PUSHHUB_HOME": str(tmp_path / "other home"),
        "PUSHHUB_PORT": "18590",
        "PUSHHUB_AWS_PORT": "18591",
        "PUSHHUB_TEMPLATE": str(tmp_path / "t.yaml"),
        "PUSHHUB_EMULATOR": "",
    }
    # When the place is looked up
    place = Place.from_environment(environ)
    # Then it is there, and an empty variable counts as none
    assert (place.port, place.aws_port) == (18590, 18591)
    assert place.state == tmp_path / "other home" / "state"
    assert place.template == tmp_path / "t.yaml"
    assert place.emulator_python == REPOSITORY / ".venv-ministack" / "bin" / "python"


@pytest.mark.parametrize("port", ["0", "65536", "-1", "eight", "80 ", "8.0", "٨٣٧٧٧٧"])
def test_a_port_that_is_none_is_named(port: str) -> None:
    # Given a port that cannot be one, when the place is looked up, then the message names variable and value
    with pytest.raises(LocalError, match=r"^PUSHHUB_PORT is .*: it must be a port number"):
        Place.from_environment({"PUSHHUB_PORT": port})


def test_targets_in_the_local_network_are_let_through_on_demand_but_never_the_emulator() -> None:
    # Given a network that the person at this machine allows
    place = Place.from_environment(
        {"PUSHHUB_ALLOWED_TARGETS": "192.168.1.0/24, printer.local:8080", "PUSHHUB_AWS_PORT": "5001"}
    )
    # When the stack is deployed
    allowed = parameters(place)["AllowedTargets"].split(",")
    # Then subscribers may be there and on loopback, and nowhere on the emulator's port
    for url, refused in {
        "http://192.168.1.20/": None,
        "http://127.0.0.1:9/": None,
        "http://192.168.2.1/": "192.168.2.1 is a private address, which is not allowed",
        "http://127.0.0.1:5001/": "127.0.0.1:5001 is not open to subscribers",
        "http://[::1]:5001/": "::1:5001 is not open to subscribers",
        "http://192.168.1.20:5001/": "192.168.1.20:5001 is not open to subscribers",
    }.items():
        assert refusal(url, allowed) == refused


def test_an_allowed_target_that_is_none_is_named() -> None:
    # Given nonsense, when the stack is deployed, then the message names variable and value
    place = Place.from_environment({"PUSHHUB_ALLOWED_TARGETS": "http://printer/"})
    with pytest.raises(LocalError, match="PUSHHUB_ALLOWED_TARGETS: not an allowed target: 'http://printer/'"):
        parameters(place)


def test_parameters_of_the_template_are_written_as_for_a_shell() -> None:
    given = {
        "PUSHHUB_PARAMETERS": "ConsumedQueueArn=arn:aws:sqs:us-east-1:000000000000:q 'ConsumedQueueTo=p/queues/a b'"
    }
    wanted = {"ConsumedQueueArn": "arn:aws:sqs:us-east-1:000000000000:q", "ConsumedQueueTo": "p/queues/a b"}
    place = Place.from_environment(given)
    assert parameters(place).items() >= {**wanted, "LogRetentionDays": "1"}.items()


@pytest.mark.parametrize("text", ["ConsumedQueueArn", "=x", "'A=b"])
def test_parameters_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(LocalError, match="PUSHHUB_PARAMETERS"):
        Place.from_environment({"PUSHHUB_PARAMETERS": text})
