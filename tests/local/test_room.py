"""What would not fit on the disk is refused before it is accepted, in the words of its protocol."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from aiohttp import web
from local.front_door import http_door
from local.place import HOST
from local.state import snapshots
from local.state.disk_space import FLOOR_BYTES, LOOK_AGAIN_S, Room, adds
from tests.local.upstream import Upstream, exchange, serving


class Disk:
    """A disk with so much room, and a clock."""

    def __init__(self, free: int) -> None:
        self.free = free
        self.now = 0.0

    def room(self, state: Path) -> Room:
        return Room(state, free=lambda _: self.free, now=lambda: self.now)


def answer(disk: Disk, state: Path, *requests: tuple[str, str]) -> list[tuple[int, dict[str, str]]]:
    """Status and body of each request's answer; the hub itself would answer 200."""

    async def run() -> list[bytes]:
        upstream = Upstream()
        async with serving(upstream):
            runner = http_door.runner(upstream.url, room=disk.room(state))
            await runner.setup()
            try:
                await web.TCPSite(runner, HOST, 0).start()
                head = "{} {} HTTP/1.1\r\nHost: hub\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{{}}"
                port = runner.addresses[0][1]
                return [await exchange(port, head.format(*each).encode()) for each in requests]
            finally:
                await runner.cleanup()

    return [(int(each.split()[1]), json.loads(each.partition(b"\r\n\r\n")[2])) for each in asyncio.run(run())]


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        ("/3/projects/p/queues/q/messages", {"message", "msg"}),
        ("/3/projects/p/queues/q/webhook", {"message", "msg"}),
        ("/api/v1/app/a/msg", {"code", "detail"}),
        ("/api/stores/s/messages", {"error"}),
        ("/notification2/subscriptions", {"error", "message", "info"}),
    ],
)
def test_a_full_disk_refuses_posts_in_the_protocols_shape(tmp_path: Path, path: str, keys: set[str]) -> None:
    # Given a disk with a byte less than is needed
    # When something is posted
    ((status, body),) = answer(Disk(FLOOR_BYTES - 1), tmp_path, ("POST", path))
    # Then it is refused for want of room, in words that clients of the protocol look for
    assert status == 507
    assert body.keys() == keys
    assert any("disk" in text for text in body.values())


def test_what_frees_room_or_reads_goes_on(tmp_path: Path) -> None:
    # Given a full disk, when messages are looked at, taken and removed
    queue = "/3/projects/p/queues/q"
    requests = [
        ("GET", queue),
        ("POST", f"{queue}/reservations"),
        ("POST", f"{queue}/messages/1/release"),
        ("DELETE", f"{queue}/messages/1"),
        ("DELETE", f"{queue}/messages"),
    ]
    # Then nothing stands in the way
    assert [status for status, _ in answer(Disk(0), tmp_path, *requests)] == [200] * 5


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_whatever_may_add_counts(method: str) -> None:
    assert adds(method, "/3/projects/p/queues/reservations/messages")


def test_with_room_posts_are_handed_on(tmp_path: Path) -> None:
    assert answer(Disk(FLOOR_BYTES), tmp_path, ("POST", "/3/projects/p/queues/q/messages"))[0][0] == 200


def test_the_larger_the_state_the_more_room_is_needed(tmp_path: Path) -> None:
    # Given a state of a megabyte
    def write(folder: Path) -> None:
        (folder / "a.json").write_bytes(b"x" * 1_000_000)

    snapshots.save(tmp_path / "emulator", write, taken_at=1.0, final=False)
    # Then there must be room for it twice
    assert not Disk(FLOOR_BYTES + 1_999_999).room(tmp_path).left()
    assert Disk(FLOOR_BYTES + 2_000_000).room(tmp_path).left()


def test_it_is_noticed_when_there_is_room_again(tmp_path: Path) -> None:
    # Given a full disk
    disk = Disk(0)
    room = disk.room(tmp_path)
    assert not room.left()
    # When there is room again, and a moment has passed
    disk.free = FLOOR_BYTES
    assert not room.left()
    disk.now += LOOK_AGAIN_S
    # Then it is seen
    assert room.left()


def test_a_disk_that_cannot_be_looked_at_counts_as_full(tmp_path: Path) -> None:
    assert not Room(tmp_path / "gone").left()
