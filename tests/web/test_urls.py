"""URLs that strangers give: what the sender can never call is refused by every route that takes a URL, in the route's
own dialect. The places are made from the good requests, of which there is one for every route, with every field.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.web.known_good import GOOD, ROUTES, request_to, values_in
from tests.web.shapes import as_bytes, refusal_in_dialect, with_value, world_of

import pushhub
from pushhub.egress.guard import unusable
from pushhub.web.api import Body

NEVER = (
    "http://a..b/",
    "http://127.1:9/",
    "https://0x7f.0.0.1/",
    "https://2130706433/",
    "https://[:::::]",
    "https://[::1",
    "https://[fe80::1%25eth0]/",
    "https://a.example:99999/",
    "https://a.example:0/",
    "https://-a.example/",
    f"https://{'a' * 64}.example/",
    "https://a.example\\@b.example/",
    "https://ex*mple/",
    "https:///nowhere",
    "https://",
    "https://169.254.169.254/latest",
    "https://[fd00:ec2::254]/",
    "https://[::ffff:169.254.169.254]/",
)
"""URLs that no configuration lets the sender call."""

LAYER = Path(pushhub.__file__).parent

SPLIT = {
    "hub/wire/request.py": "resolves an update_url against its mapping's URL, before the check",
    "ironmq/pushing/targets.py": "the hub's own base URL",
    "ironmq/wire/push.py": "ironmq: and ironworker:, whose hosts are checked as https:",
    "notifications/wire/url.py": "notification2:, which stays within the hub",
    "runtime/console.py": "an origin that a browser sends, and nothing is sent to",
    "runtime/mcp.py": "the hub's own base URL",
    "webhooks/endpoints/consent.py": "the hub's own base URL",
    "webhooks/endpoints/signatures.py": "the query of a URL that was checked",
    "webhooks/wire/endpoint.py": "writes it as browsers do, after the check",
}
"""The modules that take a URL apart themselves, and why that is not a second opinion of what can be called."""

NOT_CALLED = {("webhooks.set_oauth", "audience"), ("webhooks.set_operational_oauth", "audience")}
"""Texts that look like URLs, and that nothing is sent to."""


def _url_places() -> Iterator[tuple[str, tuple[Any, ...]]]:
    for name in GOOD:
        if ROUTES[name].body not in {Body.JSON, Body.JSON_OR_FORM}:
            continue
        for path, value in values_in(name):
            called = not path or (name, path[-1]) not in NOT_CALLED
            if isinstance(value, str) and value.startswith(("http://", "https://")) and called:
                yield name, path


PLACES = [*_url_places()]


def test_the_places_are_those_of_all_dialects() -> None:
    found = {name.partition(".")[0] for name, _ in PLACES}
    assert {"ironmq", "hub", "webhooks"} == found
    assert len(PLACES) > 20


def test_whether_a_url_can_be_called_is_decided_in_one_place() -> None:
    # Given the modules of the layer, those that know how to take URLs apart are named above
    found = set()
    for path in LAYER.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "urllib.parse":
                known = {each.name for each in node.names} & {"urlsplit", "urlparse", "urljoin", "SplitResult"}
                found |= {str(path.relative_to(LAYER))} if known else set()
    assert found == {*SPLIT}


@pytest.mark.parametrize("url", NEVER)
def test_these_can_never_be_called(url: str) -> None:
    assert unusable(url)


@pytest.mark.parametrize(
    "url", ["https://a.example/x", "http://10.0.0.5/", "http://[::1]:8080/", "https://bücher.example"]
)
def test_what_an_operator_may_allow_can_be_called(url: str) -> None:
    assert unusable(url) is None


@pytest.mark.parametrize(("name", "path"), PLACES, ids=[f"{name}-{'.'.join(map(str, path))}" for name, path in PLACES])
def test_what_can_never_be_called_is_not_registered(name: str, path: tuple[Any, ...]) -> None:
    # Given a good request, in which one URL is replaced by what no sender can call
    route, api = ROUTES[name], world_of(name)
    names, whole, query = request_to(api, name)
    for url in NEVER:
        # When it is sent
        answer = api.call(route, as_bytes(with_value(whole, path, url)), names=names, query=query)
        # Then it is refused in the dialect
        assert 400 <= answer.status < 500, (url, answer)
        assert refusal_in_dialect(name, answer), (url, answer)
    # And the good one goes well as before
    assert api.call(route, whole, names=names, query=query).status == route.status
