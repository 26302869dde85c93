"""The good requests from which others are made are good, and have every field that is read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.web.described import violation
from tests.web.known_good import GOOD, ROUTES, request_to
from tests.web.shapes import places, world_of

import pushhub


def test_there_is_a_good_request_for_every_route_and_none_for_anything_else() -> None:
    assert set(GOOD) == set(ROUTES)


@pytest.mark.parametrize("name", GOOD)
def test_a_good_request_goes_well_and_is_answered_in_the_described_shape(name: str) -> None:
    api = world_of(name)
    names, body, query = request_to(api, name)
    answer = api.call(ROUTES[name], body, names=names, query=query)
    assert answer.status == ROUTES[name].status, answer
    assert violation(name, answer) is None


READERS = {
    "ironmq": ("messages", "queues", "subscribers", "alerts", "span_settings"),
    "hub": ("objects", "mapping"),
    "notifications": ("publish", "requests", "subscriptions"),
}
"""The modules that read request bodies, by protocol."""
READ = re.compile(
    r"""(?:\b(?:text|integer|boolean|section|listed|number_in_query)\(\w+,\ |"""
    r"""(?:fields|given|source|entry|query)\.(?:text|whole|flag|number|texts|section|sections|raw|get)\()"(\w+)\""""
)


def keys(value: Any) -> Iterator[str]:
    """Every key in a JSON value."""
    for path in places(value):
        yield from (each for each in path if isinstance(each, str))


@pytest.mark.parametrize("protocol", READERS)
def test_the_good_requests_have_every_field_that_is_read(protocol: str) -> None:
    package = Path(pushhub.__file__).parent / protocol / "wire"
    read = {name for module in READERS[protocol] for name in READ.findall((package / f"{module}.py").read_text())}
    assert len(read) > 10
    sent: set[str] = set()
    for name, good in GOOD.items():
        if name.startswith(f"{protocol}."):
            sent |= {*keys(good.body), *good.query}
    # What only the preparation of a request knows, and what belongs to the handshake of a WebSocket
    sent |= {"reservation_id", "consumer"}
    assert read - sent == set()
