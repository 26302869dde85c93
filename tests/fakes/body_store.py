"""Claim-checked bodies in memory."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from pushhub.base.errors import MessageNotFound
from pushhub.engine.model.message import BodyRef


class FakeBodyStore:
    """Keeps one bytes object for each post.

    Attributes:
        objects: By key; tests may remove one to play the bucket's lifecycle rule.
        erased: Bodies that were erased.
    """

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.erased: set[BodyRef] = set()
        self._numbers = itertools.count(1)

    def put(self, project_id: str, bodies: Sequence[bytes], now: int) -> list[BodyRef]:
        key = f"bodies/{project_id}/{now}/{next(self._numbers)}"
        self.objects[key] = b"".join(bodies)
        ends = list(itertools.accumulate(len(body) for body in bodies))
        return [
            BodyRef(key=key, offset=end - len(body), length=len(body)) for body, end in zip(bodies, ends, strict=True)
        ]

    def get(self, ref: BodyRef) -> bytes:
        if ref.key not in self.objects or ref in self.erased:
            raise MessageNotFound
        return self.objects[ref.key][ref.offset : ref.offset + ref.length]

    def erase(self, ref: BodyRef) -> None:
        if ref.key in self.objects:
            bodies = bytearray(self.objects[ref.key])
            bodies[ref.offset : ref.offset + ref.length] = bytes(ref.length)
            self.objects[ref.key] = bytes(bodies)
            self.erased.add(ref)
