"""Files and ports of a local stack."""

from __future__ import annotations

from pathlib import Path

import pytest
from local.errors import LocalError
from local.place import REPOSITORY, Place


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
