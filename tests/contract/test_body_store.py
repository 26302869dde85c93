"""What every body store does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.contract.samples import NOW, PROJECT

from pushhub.base.errors import MessageNotFound
from pushhub.engine.ports import BodyStore


def test_the_bodies_of_a_post_come_back_byte_by_byte(body_store: BodyStore) -> None:
    # Given the bodies of one post: text, bytes that are no text, nothing, and a large one
    bodies = ["Grüße".encode(), bytes(range(256)), b"", b"x" * 4_194_304]
    refs = body_store.put(PROJECT, bodies, NOW)
    # Then they lie in one object and each is read alone
    assert len({ref.key for ref in refs}) == 1
    assert [ref.length for ref in refs] == [len(body) for body in bodies]
    assert [body_store.get(ref) for ref in refs] == bodies


def test_two_posts_do_not_share_an_object(body_store: BodyStore) -> None:
    (one,) = body_store.put(PROJECT, [b"one"], NOW)
    (two,) = body_store.put(PROJECT, [b"two"], NOW)
    assert one.key != two.key
    assert (body_store.get(one), body_store.get(two)) == (b"one", b"two")


def test_a_body_that_is_gone_is_not_found(body_store: BodyStore) -> None:
    (ref,) = body_store.put(PROJECT, [b"one"], NOW)
    with pytest.raises(MessageNotFound):
        body_store.get(replace(ref, key=ref.key + "x"))
