"""``********`` stands for a stored value, and is never a secret itself: sent in place of every secret and header of
every good request.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.web.known_good import GOOD, ROUTES, request_to, values_in
from tests.web.shapes import as_bytes, refusal_in_dialect, with_value, world_of

from pushhub.base.credentials import MASK, named_like_a_secret
from pushhub.web.api import Body

_PUBLIC = frozenset({"secretId", "secret_id"})
"""Named like secrets, and sent in clear by the standard: the id of a key."""

_IN_HEADERS = frozenset({"headers", "extra_headers", "extraHeaders"})


def _secrets() -> Iterator[tuple[str, tuple[Any, ...]]]:
    for name in GOOD:
        if ROUTES[name].body not in {Body.JSON, Body.JSON_OR_FORM}:
            continue
        for path, value in values_in(name):
            texts = [each for each in path if isinstance(each, str)]
            secret = texts and (named_like_a_secret(texts[-1]) or not _IN_HEADERS.isdisjoint(texts[:-1]))
            if isinstance(value, str) and secret and path[-1] not in _PUBLIC:
                yield name, path


PLACES = [*_secrets()]


def test_there_are_secrets_in_requests_of_all_dialects_that_keep_any() -> None:
    assert {name.partition(".")[0] for name, _ in PLACES} >= {"ironmq", "hub", "webhooks"}
    assert len(PLACES) > 30


@pytest.mark.parametrize(("name", "path"), PLACES, ids=[f"{name}-{'.'.join(map(str, path))}" for name, path in PLACES])
def test_a_mask_is_never_stored_as_a_secret(name: str, path: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a good request, with the mask in place of one secret
    route, api = ROUTES[name], world_of(name)
    names, whole, query = request_to(api, name)
    sealed: list[bytes] = []
    vault = api.world.ports.vault
    seal = vault.seal

    def noted(project_id: str, content: bytes) -> bytes:
        sealed.append(content)
        return bytes(seal(project_id, content))

    monkeypatch.setattr(vault, "seal", noted)
    # When it is sent, where nothing or something is stored
    answer = api.call(route, as_bytes(with_value(whole, path, MASK)), names=names, query=query)
    # Then it is refused, or means what is stored
    assert answer.status == route.status or refusal_in_dialect(name, answer), answer
    assert not any(MASK.encode() in each for each in sealed), sealed
