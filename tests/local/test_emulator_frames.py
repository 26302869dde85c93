"""Frames are read while the function is at work, and acknowledgements that wait are handed on together."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Coroutine
from typing import Any

from local.emulator.frames import FRAME_LIMIT, WAITING_LIMIT, Frames, SpacedTurns


def ack(number: int) -> str:
    return base64.b64encode(number.to_bytes(11)).decode()


def text(frame: str) -> dict[str, Any]:
    return {"type": "websocket.receive", "text": frame, "bytes": None}


END = {"type": "websocket.disconnect", "code": 1001}


class Socket:
    """What a client sends."""

    def __init__(self, *messages: dict[str, Any]) -> None:
        self.coming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.send(*messages)

    def send(self, *messages: dict[str, Any]) -> None:
        for each in messages:
            self.coming.put_nowait(each)


def play(play: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(play, 90))


def test_what_gathered_while_the_function_was_at_work_is_one_frame() -> None:
    async def given() -> None:
        socket = Socket({"type": "websocket.connect"}, text(ack(0)))
        frames = Frames(socket.coming.get, SpacedTurns(0))
        assert (await frames.next())["type"] == "websocket.connect"
        assert (await frames.next())["text"] == ack(0)
        # When the function is at work, all that comes is read, the end too
        socket.send(*(text(ack(number)) for number in range(1, 1000)), END)
        while not socket.coming.empty():
            await asyncio.sleep(0)
        # Then its next run gets all of it, and then the end
        assert (await frames.next())["text"].split("\n") == [ack(number) for number in range(1, 1000)]
        assert await frames.next() == END
        await frames.end()

    play(given())


def test_other_frames_stay_alone_and_in_their_place() -> None:
    async def given() -> None:
        several = f"{ack(5)}\n{ack(6)}"
        rest = [ack(3), "unsubscribe_subscriber", ack(4), several, "", ack(7)]
        socket = Socket(text(ack(1)), *map(text, rest), END)
        frames = Frames(socket.coming.get, SpacedTurns(0))
        got = [(await frames.next())["text"]]
        while (message := await frames.next())["type"] != "websocket.disconnect":
            got.append(message["text"])
        assert got in ([ack(1), *rest], [f"{ack(1)}\n{ack(3)}", *rest[1:]])
        await frames.end()

    play(given())


def test_a_call_that_is_cancelled_takes_nothing_away() -> None:
    async def given() -> None:
        socket = Socket(text(ack(1)))
        frames = Frames(socket.coming.get, SpacedTurns(3600))
        await frames._turns.next()
        # Given a call that waits for its turn and is cancelled
        waiting = asyncio.create_task(frames.next())
        while not socket.coming.empty():
            await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting})
        # Then the next has what it would have had
        frames._turns = SpacedTurns(0)
        assert (await frames.next())["text"] == ack(1)
        await frames.end()

    play(given())


def test_no_frame_is_larger_than_api_gateway_s_and_a_flood_waits_in_the_socket() -> None:
    async def given() -> None:
        count = 2 * WAITING_LIMIT // 16
        socket = Socket(*(text(ack(number)) for number in range(count)), END)
        frames = Frames(socket.coming.get, SpacedTurns(0))
        got: list[str] = []
        while (message := await frames.next())["type"] != "websocket.disconnect":
            assert len(message["text"]) <= FRAME_LIMIT
            got += message["text"].split("\n")
            for _ in range(10):
                await asyncio.sleep(0)
            assert frames._size <= WAITING_LIMIT + FRAME_LIMIT
        assert got == [ack(number) for number in range(count)]
        await frames.end()

    play(given())


def test_acknowledgements_of_many_come_no_faster_than_they_are_worked_off_and_none_is_lost() -> None:
    async def given() -> None:
        # Given many consumers that acknowledge one notification after the other, all at once
        turns, handed_on = SpacedTurns(0.05), list[str]()
        sockets = [Socket() for _ in range(10)]

        async def work_off(socket: Socket) -> None:
            frames = Frames(socket.coming.get, turns)
            while (message := await frames.next())["type"] != "websocket.disconnect":
                handed_on.append(message["text"])
            await frames.end()

        began = time.monotonic()
        at_work = [asyncio.create_task(work_off(each)) for each in sockets]
        for number in range(400):
            sockets[number % 10].send(text(ack(number)))
            await asyncio.sleep(0.001)
        for each in sockets:
            each.send(END)
        await asyncio.gather(*at_work)
        # Then all are handed on, in no more frames than there was time for
        assert {each for frame in handed_on for each in frame.split("\n")} == {ack(number) for number in range(400)}
        assert len(handed_on) <= (time.monotonic() - began) / 0.05 + 1

    play(given())
