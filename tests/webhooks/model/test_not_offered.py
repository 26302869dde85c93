"""What Svix's cloud has and this hub has not is named to whoever asks for it."""

from __future__ import annotations

import pytest
from tests.webhooks.world import WebhooksWorld

from pushhub.webhooks.model.not_offered import NOT_OFFERED, not_offered


@pytest.mark.parametrize(
    ("method", "path", "named"),
    [
        ("POST", "/app/a/destination/d/force-retry", "destinations"),
        ("GET", "/app/a/destination/d/next-event", "destinations"),
        ("GET", "/app/a/integration/i/key", "an integration's key"),
    ],
)
def test_a_feature_that_only_svix_has_is_named(method: str, path: str, named: str) -> None:
    answer = WebhooksWorld().call(method, path)
    assert (answer.status, answer.body["code"]) == (501, "not_implemented")
    assert answer.body["detail"].startswith("This hub does not offer")
    assert named in answer.body["detail"]


@pytest.mark.parametrize("path", ["/streams", "/app/a/destinations", "/connectors/x", "/app/a/endpoint/e/transform"])
def test_a_path_that_nobody_has_is_only_not_found(path: str) -> None:
    assert WebhooksWorld().call("GET", path).body == {"code": "not_found", "detail": "Not found"}


def test_each_feature_is_found_where_it_begins_and_below() -> None:
    for where, name in NOT_OFFERED:
        path = "/" + "/".join(where).replace("*", "x")
        assert not_offered(path) == not_offered(f"{path}/more/") == name
        assert not_offered(path.rsplit("/", 1)[0]) is None
