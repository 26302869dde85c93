"""``pushhub shovel``: every message of a pull queue comes to another server, whatever fails or is killed."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from cli.messages.shovelling import End, Shovel
from tests.cli.conftest import Typed
from tests.cli.served_hub import TOKEN, ServedHub, serving
from tests.engine.world import PROJECT

ROOT = Path(__file__).parents[2]


def fill(hub: ServedHub, queue: str, bodies: list[str]) -> None:
    for first in range(0, len(bodies), 100):
        messages = [{"body": each} for each in bodies[first : first + 100]]
        status, _ = answered(hub, "POST", f"/queues/{queue}/messages", {"messages": messages})
        assert status == 201


def answered(hub: ServedHub, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    content = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
    answer = hub.answer(method, f"/3/projects/{PROJECT}{path}", {"Authorization": f"OAuth {TOKEN}"}, content)
    assert answer is not None
    return answer[0], json.loads(answer[1])


def inside(hub: ServedHub, queue: str) -> list[bytes]:
    world = hub.worlds["ironmq"].world
    found = world.config.queue(PROJECT, queue)
    if found is None:
        return []
    return [each.message.body for each in world.pull.peek(PROJECT, found.pull_uid, count=20_000, now=world.clock.now())]


def taken(hub: ServedHub, queue: str) -> Counter[bytes]:
    """The bodies in a queue, large ones too; they are reserved."""
    found: Counter[bytes] = Counter()
    while messages := answered(hub, "POST", f"/queues/{queue}/reservations", {"n": 100})[1]["messages"]:
        for each in messages:
            exact = each.get("body_base64")
            found[base64.b64decode(exact) if exact else each["body"].encode()] += 1
    return found


def words(there: ServedHub, queue: str = "orders", way: str = "--from") -> list[str]:
    return ["shovel", queue, way, there.base_url, "--project", PROJECT, "--token", TOKEN]


def test_all_messages_of_a_queue_move_here_byte_for_byte(hub: ServedHub, typed: Typed) -> None:
    # Given a queue elsewhere with text, large bodies and bytes that are no text
    with serving() as there:
        bodies = ["plain", 'quo"ted \n \u00fc \U0001f6f0 \x00', "x" * 300_000, "y" * 250_000] * 3
        bodies += [str(each) for each in range(230)]
        fill(there, "orders", bodies)
        for raw in (b"\xff\xfe", b"\x80" * 9):
            assert answered(there, "POST", "/queues/orders/webhook", raw)[0] == 201
        # When it is moved
        [shown] = typed.json(*words(there))
        # Then everything is here, once, and nothing there
        expected = Counter([*(each.encode() for each in bodies), b"\xff\xfe", b"\x80" * 9])
        assert taken(hub, "orders") == expected
        assert inside(there, "orders") == []
        assert (shown["moved"], shown["maybe twice"]) == (len(bodies) + 2, 0)
        # And a second run finds nothing to do
        assert typed.json(*words(there))[0]["moved"] == 0


def test_they_move_to_another_server_and_queue_as_well(hub: ServedHub, typed: Typed) -> None:
    fill(hub, "orders", ["a", "b"])
    with serving() as there:
        typed(*words(there, way="--to"), "--queue-there", "bestellungen")
        assert sorted(inside(there, "bestellungen")) == [b"a", b"b"]
    assert inside(hub, "orders") == []


def test_a_dry_run_says_how_many_there_are(hub: ServedHub, typed: Typed) -> None:
    with serving() as there:
        fill(there, "orders", ["a", "b"])
        assert typed.json(*words(there), "--dry-run")[0]["would move"] == 2
        assert typed.json(*words(there, "none"), "--dry-run")[0]["would move"] == 0
        assert len(inside(there, "orders")) == 2


class Held:
    """A server that holds one of its answers back, so that its caller can be killed just then.

    Args:
        server: The server.
        method: Of the request.
        place: How the request's path ends.
        number: Which of these requests.
        done: Whether it is carried out before it is held.
    """

    def __init__(self, server: ServedHub, method: str, place: str, number: int, *, done: bool) -> None:
        self.reached, self.released = threading.Event(), threading.Event()
        self._server, self._answer = server, server.answer
        self._wanted, self._left, self._done = (method, place), number, done
        server.answer = self._held  # type: ignore[method-assign]

    def _held(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes] | None:
        if method != self._wanted[0] or not target.endswith(self._wanted[1]):
            return self._answer(method, target, headers, body)
        self._left -= 1
        if self._left:
            return self._answer(method, target, headers, body)
        answer = self._answer(method, target, headers, body) if self._done else None
        self.reached.set()
        assert self.released.wait(60)
        return answer

    def end(self) -> None:
        self._server.answer = self._answer  # type: ignore[method-assign]
        self.released.set()


def test_killed_in_the_middle_it_loses_nothing(hub: ServedHub) -> None:
    # Given 5,000 messages, and a command that is killed again and again while it moves them: after it reserved some,
    # before and after it posted them, before and after it deleted them
    with serving() as there:
        bodies = [f"message {number}" for number in range(5_000)]
        fill(there, "orders", bodies)
        command = [sys.executable, "-m", "cli", *words(there)]
        environment = {**os.environ, **hub.environment, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
        for server, method, place, number, done in (
            (there, "POST", "/reservations", 4, True),
            (hub, "POST", "/messages", 5, False),
            (hub, "POST", "/messages", 6, True),
            (there, "DELETE", "/messages", 7, False),
            (there, "DELETE", "/messages", 8, True),
        ):
            held = Held(server, method, place, number, done=done)
            killed = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL)
            assert held.reached.wait(60)
            killed.send_signal(signal.SIGKILL)
            assert killed.wait(90) == -signal.SIGKILL
            held.end()
        # When what was reserved has come back, and it is run to its end
        there.worlds["ironmq"].world.clock.advance(ms=601_000)
        subprocess.run(command, cwd=ROOT, env=environment, check=True, timeout=120, capture_output=True)
        # Then nothing is left there, all are here, and twice those alone that were posted and not yet deleted
        assert inside(there, "orders") == []
        came = Counter(inside(hub, "orders"))
        assert came.keys() == {each.encode() for each in bodies}
        assert sum(came.values()) == len(bodies) + 200


def shovel(there: ServedHub, hub: ServedHub, said: list[str], waited: list[float]) -> Shovel:
    from cli.rest import Rest  # noqa: PLC0415 (as the command does)

    return Shovel(
        source=End(rest=Rest(there.base_url, PROJECT, TOKEN), queue="orders"),
        target=End(rest=Rest(hub.base_url, PROJECT, TOKEN), queue="orders"),
        say=said.append,
        sleep=waited.append,
    )


POST = f"/3/projects/{PROJECT}/queues/orders/messages"


def test_a_server_that_is_busy_is_asked_again_and_later(hub: ServedHub) -> None:
    said: list[str] = []
    waited: list[float] = []
    with serving() as there:
        fill(there, "orders", ["a"])
        hub.answers["POST", POST] = (503, b'{"msg": "busy"}')
        work = shovel(there, hub, said, waited)
        with pytest.raises(Exception, match="503"):
            list(work.run())
        assert waited == [1.0, 2.0, 4.0, 8.0, 16.0]
        # What was not moved was given back
        del hub.answers["POST", POST]
        assert list(work.run()) == [1]


def test_a_target_that_refuses_leaves_everything_where_it_is(hub: ServedHub, typed: Typed) -> None:
    with serving() as there:
        fill(there, "orders", ["a", "b"])
        hub.answers["POST", POST] = (403, b'{"msg": "no"}')
        typed(*words(there), code=1)
        assert sorted(inside(there, "orders")) == [b"a", b"b"]
        assert answered(there, "POST", "/queues/orders/reservations", {"n": 9})[1]["messages"]


def test_messages_that_cannot_be_deleted_are_told(hub: ServedHub, typed: Typed) -> None:
    with serving() as there:
        fill(there, "orders", ["a"])
        there.answers["DELETE", POST] = (400, b'{"msg": "reservation ended"}')
        [shown] = typed.json(*words(there))
        assert (shown["moved"], shown["maybe twice"]) == (1, 1)
        assert "will come twice" in typed.errors


@pytest.mark.parametrize(
    "answer",
    [
        *(b"[]", b"{}", b'{"messages": 7}', b'{"messages": [7]}', b'{"messages": [{"id": 1}]}'),
        b'{"messages": [{"id": "1", "reservation_id": "r", "body": "x", "body_base64": "%%"}]}',
    ],
)
def test_a_server_that_answers_nonsense_is_told_and_moves_nothing(hub: ServedHub, typed: Typed, answer: bytes) -> None:
    with serving() as there:
        there.answers["POST", f"/3/projects/{PROJECT}/queues/orders/reservations"] = (200, answer)
        typed(*words(there), code=1)
    assert inside(hub, "orders") == []


def test_wrong_usage_is_told(hub: ServedHub, typed: Typed) -> None:
    own = ["--project", PROJECT, "--token", TOKEN]
    typed("shovel", "q", *own, code=2)
    typed("shovel", "q", "--from", hub.base_url, "--to", hub.base_url, *own, code=2)
    typed("shovel", "q", "--from", "ftp://x", *own, code=2)
    typed("shovel", "q", "--from", hub.base_url, *own, code=2)


@pytest.mark.parametrize("answer", [b'{"messages": [{"id": "\\ud800"}]}', b'{"messages": NaN}', b"[" * 100_000])
def test_an_answer_that_is_no_json_is_one_line(hub: ServedHub, typed: Typed, answer: bytes) -> None:
    """Given a server that answers half a surrogate pair, NaN or brackets without end, then that is said in a line."""
    with serving() as there:
        there.instead = (200, answer)
        typed(*words(there), code=1)
        said = typed.errors.strip()
    assert said.startswith("Error: the hub's answer cannot be understood: it ")
    assert "\n" not in said
    assert not hub.writes
