"""Nothing is lost or skipped over a stop and a start, whatever was under way.

A stop and a start take as much CPU as twenty other tests, so one serves them all. Each test leaves the stack running
and in order: another file's may follow on it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest
import requests
from local.emulator import lifecycle
from local.errors import LocalError
from local.processes import wait_until
from tests.hostile import Peer
from tests.stack.endpoints import Push, Recorder
from tests.stack.hub_endpoint import HubEndpoint
from tests.stack.notification_tenant import SECONDS, Stored, Tenant, frame
from tests.stack.project import ProjectClient, unique, until
from tests.stack.running import RunningStack, free_port
from tests.stack.test_hub import Shop
from websockets.sync.client import connect

from local import stack as local_stack

pytestmark = pytest.mark.stack

PATIENCE_S = 240.0
"""How long something may take on a busy machine, seconds."""
UNHURRIED_S = 20
"""A ``retries_delay`` for subscribers that acknowledge: calls to the hub take a second or two on a busy machine."""


@dataclass(frozen=True)
class World:
    """What a scenario needs.

    Attributes:
        stack: The stack that is stopped and started.
        recorder: Endpoints.
        endpoint: One of the hub protocol.
        started: Set when it is about to be started again.
    """

    stack: RunningStack
    recorder: Recorder
    endpoint: HubEndpoint
    started: threading.Event


Scenario = Callable[[World], Iterator[None]]
"""Prepares something, yields while the stack is stopped and started, and looks at what has become of it."""


def what_is_stored(world: World) -> Iterator[None]:
    stack = world.stack
    # Given a pull queue with messages, a second project, and a message that waits in SQS
    second = stack.make_project(unique("second"))
    queue = unique("kept")
    bodies = [f"vor dem Neustart {number} – ½" for number in range(20)]
    stack.call("POST", f"/queues/{queue}/messages", json={"messages": [{"body": body} for body in bodies]})
    stack.aws.sqs().send_message(QueueUrl=stack.outputs["PushDeadLettersUrl"], MessageBody="waits")
    before = stack.description
    stack.said.clear()
    yield
    # Then nothing was deployed anew, and everything is as it was
    assert stack.description == before
    assert "deployed" not in stack.said
    reserved = stack.call("POST", f"/queues/{queue}/reservations", json={"n": 100}).json()["messages"]
    assert [message["body"] for message in reserved] == bodies
    own_queues = f"{stack.base_url}/3/projects/{second.project_id}/queues"
    assert requests.get(own_queues, params={"oauth": second.token}, timeout=40).status_code == 200
    sqs, url = stack.aws.sqs(), stack.outputs["PushDeadLettersUrl"]

    def waits() -> bool:
        # (other tests may have left something in that queue)
        received = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=60)
        return "waits" in [message["Body"] for message in received.get("Messages", ())]

    until(waits, PATIENCE_S, lambda: "what waited is gone")


def records_of_streams(world: World) -> Iterator[None]:
    # Given a push queue to which messages were posted before a restart
    project, queue, reached = ProjectClient.default(world.stack), unique("source"), unique("reached")
    project.make_push(queue, f"ironmq:///{reached}", retries=0)
    first, second = ([f"{part} {number}" for number in range(12)] for part in ("before", "after"))
    project.post(queue, *first)
    yield
    # When as many are posted after it, then all of them are pushed
    project.post(queue, *second)
    came = project.wait_messages(reached, len(first) + len(second), PATIENCE_S)
    assert {each["body"] for each in came} == {*first, *second}


def pushes_between_two_tries(world: World) -> Iterator[None]:
    # Given messages in every stage: delivered, acknowledged, reserved, failed, delayed, or soon exhausted
    project, queue, recorder = ProjectClient.default(world.stack), unique("restart"), world.recorder
    answers: list[requests.Response] = []

    def recovers(peer: Peer, _push: Push) -> bool:
        return peer.answer(status="200 OK" if world.started.is_set() else "500 Down")

    def acknowledges_late(peer: Peer, push: Push) -> bool:
        if world.started.is_set():
            answers.append(push.acknowledge())
        return peer.answer(status="202 Accepted")

    healthy, flaky = recorder.endpoint(), recorder.endpoint(recovers)
    acknowledged, reserved = recorder.endpoint(202), recorder.endpoint(acknowledges_late)
    project.make_push(queue, healthy, flaky, acknowledged, reserved, retries=100, retries_delay=UNHURRIED_S)
    failing, dead, errors = unique("failing"), recorder.endpoint(500), unique("restart-errors")
    project.make_push(failing, dead, retries=3, error_queue=errors)
    late, delayed = recorder.endpoint(), unique("delayed")
    project.make_push(delayed, late)
    [late_id] = project.post(delayed, "late", delay=8)
    [message_id], [failing_id] = project.post(queue, "½ x"), project.post(failing, "y")
    # Acknowledged once its answer has counted as a try, which an acknowledgement does not wait for
    [pushed] = acknowledged.wait()
    project.wait_codes(queue, message_id, [200, 500, 202, 202], seconds=PATIENCE_S)
    assert pushed.acknowledge().status_code == 200
    before = project.wait_codes(queue, message_id, [200, 500, 200, 202], seconds=PATIENCE_S)
    dead.wait()
    yield
    # Then it continues where it was: each subscriber gets exactly the tries it was to get
    final = project.wait_codes(queue, message_id, [200, 200, 200, 200], seconds=PATIENCE_S)
    assert [final[0], final[2]] == [before[0], before[2]]
    assert answers[-1].status_code == 200
    project.wait_codes(failing, failing_id, [500], [4], seconds=PATIENCE_S)
    # And the error is reported once, the delayed message arrives, and everything posted before can be read
    [error] = project.wait_messages(errors, 1, PATIENCE_S)
    assert json.loads(error["body"])["subscribers"][0]["url"] == dead.url
    assert late.wait(seconds=PATIENCE_S)[0].message_id == late_id
    assert project.message(queue, message_id)["body"] == "½ x"
    # And nothing more comes until what is accepted now, for longer than a subscriber waits for its next try, is there
    project.post(delayed, "last", delay=UNHURRIED_S + 1)
    until(lambda: late.pushes[-1].body == b"last", PATIENCE_S, lambda: "the last message did not come")
    assert [len(each.pushes) for each in (healthy, acknowledged)] == [1, 1]
    # (a push whose answer the stop did not wait for is made again without counting)
    tries = project.tries(queue, message_id)
    assert len(flaky.pushes) - tries[1] in (0, 1)
    assert len(reserved.pushes) - tries[3] in (0, 1)
    assert len(dead.pushes) - 4 in (0, 1)
    assert len(late.pushes) - 2 in (0, 1)
    assert project.total(errors) == 1


def backlogs_of_consumers(world: World) -> Iterator[None]:
    # Given a consumer of three notifications, of which the second one is acknowledged
    tenant = Tenant(world.stack)
    tenant.subscribe()
    token, stored = tenant.token(), Stored(world.stack, tenant)
    with connect(tenant.url(token), open_timeout=SECONDS) as consumer:
        tenant.publish(0, 1, 2)
        frames = [frame(consumer.recv(SECONDS)) for _ in range(3)]
        consumer.send(frames[1].ack_id)
        [here] = stored.connected("app")
        until(lambda: stored.acknowledged(here) == 1 or None, PATIENCE_S, lambda: "not noted")
        yield
    # Then the next one is sent the others, and what is published after the start
    with connect(tenant.url(token), open_timeout=SECONDS) as again:
        tenant.publish(3)
        assert [frame(again.recv(SECONDS)).n for _ in range(3)] == [0, 2, 3]


def polls_of_services(world: World) -> Iterator[None]:
    # Given a message that a service has accepted for later
    project, endpoint = world.stack.make_project(), world.endpoint
    shop = Shop(world.stack.base_url, project.project_id, project.token, endpoint)
    shop.map("order:new", "/later")
    number = unique("R")
    message_id = shop.push("order:new", number=number)

    # (and the hub has read that it has)
    def accepted() -> bool:
        [copy] = shop.message(message_id)["children"] or [{}]
        return bool(endpoint.of("/later", number=number)) and bool(copy and shop.message(copy["id"]).get("last_answer"))

    until(accepted, PATIENCE_S, lambda: f"it was not posted: {shop.message(message_id)}")
    yield
    # Then it is polled to the end, and was posted once
    shop.copies(message_id, ["completed"])
    assert len(endpoint.of("/later", number=number)) == 1
    # (a poll whose answer the stop did not wait for is made again)
    assert len(endpoint.of(f"/status/{number}")) in (2, 3)


SCENARIOS: dict[str, Scenario] = {
    each.__name__: each
    for each in (what_is_stored, records_of_streams, backlogs_of_consumers, pushes_between_two_tries, polls_of_services)
}
"""The last ones are those that go on soonest."""


@pytest.fixture(scope="module")
def over_a_stop(stack: RunningStack) -> Iterator[dict[str, Iterator[None]]]:
    """Every scenario, when the stack has been stopped and started."""
    with Recorder() as recorder, HubEndpoint() as endpoint:
        world = World(stack, recorder, endpoint, threading.Event())
        scenarios = {name: scenario(world) for name, scenario in SCENARIOS.items()}
        for each in scenarios.values():
            next(each)
        stack.down()
        world.started.set()
        stack.up()
        yield scenarios


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_what_was_under_way_goes_on_after_a_stop_and_a_start(
    over_a_stop: dict[str, Iterator[None]], scenario: str
) -> None:
    assert next(over_a_stop[scenario], "its end") == "its end"


def in_order(stack: RunningStack) -> None:
    """The stack finds nothing wrong with itself: on a busy machine perhaps not before its functions have started."""
    found: list[str] = []

    def nothing_wrong() -> bool | None:
        found[:] = local_stack.problems(stack.place)
        return not found or None

    until(nothing_wrong, 300, lambda: str(found))


def test_a_killed_emulator_has_lost_nothing_that_was_accepted_and_delivers_it(stack: RunningStack) -> None:
    # Given a push queue, a message whose delivery waits for its next attempt, and a snapshot
    subscribers = [{"name": "elsewhere", "url": "ironmq:///late"}]
    push = {"subscribers": subscribers, "retries": 0, "retries_delay": 3}
    project = ProjectClient.default(stack)
    project.take("PUT", "/queues/waits", {"queue": {"type": "multicast", "push": push}})
    posted = [f"kept {number}" for number in range(5)]
    project.post("waits", *posted)
    project.post("pulled", "kept")
    assert lifecycle.save(stack.place) == ""
    project.post("pulled", "accepted after that")
    later = [f"later {number}" for number in range(5)]
    project.post("waits", *later)
    # When the emulator is killed
    pid = lifecycle.daemon(stack.place).pid()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert wait_until(lambda: lifecycle.daemon(stack.place).pid() is None, 60)
    # Then a client that calls meanwhile gets a 500 in JSON
    answer = stack.call("GET", "/queues")
    assert (answer.status_code, answer.json()["msg"]) == (500, "Internal Server Error")
    token = stack.token
    stack.said.clear()
    stack.up()
    # And it says so when it is brought up, and nothing is lost, least of all the token
    assert stack.token == token
    assert any("NOTE: the emulator ended without saving" in line for line in stack.said)
    assert [message["body"] for message in project.reserve("pulled", n=10)] == ["kept", "accepted after that"]
    # And what had been accepted is delivered, perhaps once more
    reached: set[str] = set()

    def all_reached() -> bool:
        reached.update(message["body"] for message in project.reserve("late", timeout=3600))
        return len(reached) >= 10

    until(all_reached, PATIENCE_S, lambda: f"only {reached} arrived")
    assert reached == {*posted, *later}


@contextlib.contextmanager
def listening() -> Iterator[tuple[int, list[bytes]]]:
    """A server that answers nothing: its port, and what it was sent."""
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def listen() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    asked.append(connection.recv(1))
                    connection.close()

        threading.Thread(target=listen, daemon=True).start()
        yield server.getsockname()[1], asked
        server.shutdown(socket.SHUT_RDWR)


def test_a_stack_is_stopped_when_all_is_saved_and_brought_up_where_its_work_is_delivered(stack: RunningStack) -> None:
    # Given a message that no snapshot has, and a disk that takes no snapshot
    ProjectClient.default(stack).post("unsaved", "unsaved")
    root = stack.place.state / "emulator"
    root.rename(root.with_name("away"))
    root.write_text("no folder")
    # When it is stopped, then it is not, and can be brought up again as if nothing had been
    with pytest.raises(LocalError, match="not stopped, because its state cannot be saved"):
        stack.down()
    stack.up()
    # And its look at itself names the problem
    # (on a busy machine perhaps not alone)
    problems = local_stack.problems(stack.place)
    assert any("the state cannot be saved" in each for each in problems), problems
    root.unlink()
    root.with_name("away").rename(root)
    # And once there is room, and the environment of a command names the ports of another server
    with listening() as (port, asked):
        elsewhere = replace(stack.place, port=port, aws_port=port)
        # Then it is this stack that is saved and stopped, and the other server hears nothing, least of all the token
        assert local_stack.down(elsewhere, print)
        assert asked == []
    # When it is brought up with another port of the emulator, then that is refused, with the port that works
    elsewhere = replace(stack.place, aws_port=free_port())
    with pytest.raises(LocalError, match=f"PUSHHUB_AWS_PORT={stack.place.aws_port} make up"):
        local_stack.up(elsewhere, print)
    assert not local_stack.is_up(stack.place)
    # And nothing is spoilt: on its own port it delivers, also with another base URL, and the message is kept
    stack.place = replace(stack.place, port=free_port())
    stack.up()
    in_order(stack)
    pulled = ProjectClient.default(stack).reserve("unsaved")
    assert [message["body"] for message in pulled] == ["unsaved"]


def test_a_process_that_has_ended_is_noticed(stack: RunningStack) -> None:
    # Given a stack whose front door has been killed
    pid = int(stack.place.pid_file("front-door").read_text().split()[0])
    os.kill(pid, signal.SIGKILL)
    assert wait_until(lambda: not local_stack.is_up(stack.place), 60)
    # When it is looked at, then it says so, and what to do
    problems = local_stack.problems(stack.place)
    assert any("the front door has ended by itself" in each and "'make up'" in each for each in problems), problems
    # And that helps
    stack.up()
    in_order(stack)


def test_a_stack_that_accepts_and_delivers_nothing_is_noticed(
    stack: RunningStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a stack that was refused nothing, whose dispatcher looks for queues that are not there
    in_order(stack)
    monkeypatch.setattr("local.delivery_check.ARRIVES_S", 3.0)
    functions, name = stack.aws.functions(), stack.outputs["DispatchFunctionName"]
    right = functions.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
    wrong = {key: f"{value}-gone" if key.endswith("_QUEUE_URL") else value for key, value in right.items()}
    assert wrong != right
    functions.update_function_configuration(FunctionName=name, Environment={"Variables": wrong})
    local_stack.kill_function_workers(stack.place, name)
    # When it is looked at, then it says so, and leaves no queue behind
    problems = local_stack.problems(stack.place)
    assert any("accepted a message and did not deliver it" in each for each in problems), problems
    assert stack.call("GET", "/queues?prefix=status-").json() == {"queues": []}
    # And once that is mended, all is well
    functions.update_function_configuration(FunctionName=name, Environment={"Variables": right})
    local_stack.kill_function_workers(stack.place, name)
    monkeypatch.undo()

    def mended() -> bool | None:
        # Its role does not know these queues either, which was not what failed here. A run that had begun may say so
        # once more.
        (stack.place.rights / "refused").unlink(missing_ok=True)
        return local_stack.problems(stack.place) == [] or None

    until(mended, 300, lambda: "it is not mended")
    (stack.place.rights / "refused").unlink(missing_ok=True)
