"""Nothing is lost or skipped over a stop and a start.

These tests have a stack of their own, because others would notice.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import threading
import time
from dataclasses import replace

import pytest
import requests
from local.errors import LocalError
from local.processes import wait_until
from tests.stack.project import until
from tests.stack.running import RunningStack, free_port

from local import emulator
from local import stack as local_stack

pytestmark = pytest.mark.stack


def test_what_was_stored_and_queued_is_there_after_a_restart(own: RunningStack) -> None:
    # Given a pull queue with messages, a second project, and a message that waits in SQS
    second = own.make_project("second")
    bodies = [f"vor dem Neustart {number} – ½" for number in range(20)]
    own.call("POST", "/queues/kept/messages", json={"messages": [{"body": body} for body in bodies]})
    own.aws.sqs().send_message(QueueUrl=own.outputs["PushDeadLettersUrl"], MessageBody="waits")
    before = own.description
    # When the stack is stopped and started
    own.restart()
    # Then nothing was deployed anew, and everything is as it was
    assert own.description == before
    assert "deployed" not in own.said[own.said.index("deployed") + 1 :]
    reserved = own.call("POST", "/queues/kept/reservations", json={"n": 100}).json()["messages"]
    assert [message["body"] for message in reserved] == bodies
    own_queues = f"{own.base_url}/3/projects/{second.project_id}/queues"
    assert requests.get(own_queues, params={"oauth": second.token}, timeout=40).status_code == 200
    waiting = own.aws.sqs().receive_message(QueueUrl=own.outputs["PushDeadLettersUrl"])["Messages"]
    assert [message["Body"] for message in waiting] == ["waits"]


def test_stream_records_are_neither_lost_nor_skipped_over_a_restart(own: RunningStack) -> None:
    # Given a push queue to which messages were posted before a restart
    subscribers = [{"name": "elsewhere", "url": "ironmq:///reached"}]
    push = {"subscribers": subscribers, "retries": 0, "retries_delay": 3}
    own.call("PUT", "/queues/source", json={"queue": {"type": "multicast", "push": push}})
    first, second = [[{"body": f"{part} {number}"} for number in range(12)] for part in ("before", "after")]
    assert own.call("POST", "/queues/source/messages", json={"messages": first}).status_code == 201
    own.restart()
    # When as many are posted after it
    assert own.call("POST", "/queues/source/messages", json={"messages": second}).status_code == 201
    # Then all of them are pushed
    wanted = {message["body"] for message in [*first, *second]}
    reached: set[str] = set()
    deadline = time.monotonic() + 30
    while reached < wanted and time.monotonic() < deadline:
        answer = own.call("POST", "/queues/reached/reservations", json={"n": 100, "timeout": 300, "wait": 2})
        reached |= {message["body"] for message in answer.json().get("messages", [])}
    assert reached == wanted


def test_a_killed_emulator_has_lost_nothing_that_was_accepted_and_delivers_it(own: RunningStack) -> None:
    # Given a push queue, a message whose delivery waits for its next attempt, and a snapshot
    subscribers = [{"name": "elsewhere", "url": "ironmq:///late"}]
    push = {"subscribers": subscribers, "retries": 0, "retries_delay": 3}
    own.call("PUT", "/queues/waits", json={"queue": {"type": "multicast", "push": push}})
    posted = [{"body": f"kept {number}"} for number in range(5)]
    own.call("POST", "/queues/waits/messages", json={"messages": posted})
    own.call("POST", "/queues/pulled/messages", json={"messages": [{"body": "kept"}]})
    assert emulator.save(own.place) == ""
    own.call("POST", "/queues/pulled/messages", json={"messages": [{"body": "accepted after that"}]})
    later = [{"body": f"later {number}"} for number in range(5)]
    own.call("POST", "/queues/waits/messages", json={"messages": later})
    # When the emulator is killed, and the stack is brought up
    pid = emulator.daemon(own.place).pid()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert wait_until(lambda: emulator.daemon(own.place).pid() is None, 10)
    own.said.clear()
    own.up()
    # Then it says so, and nothing is lost
    assert any("NOTE: the emulator ended without saving" in line for line in own.said)
    pulled = own.call("POST", "/queues/pulled/reservations", json={"n": 10}).json()["messages"]
    assert [message["body"] for message in pulled] == ["kept", "accepted after that"]
    # And what had been accepted is delivered, perhaps once more
    reached: set[str] = set()
    deadline = time.monotonic() + 60
    while len(reached) < 10 and time.monotonic() < deadline:
        answer = own.call("POST", "/queues/late/reservations", json={"n": 100, "timeout": 300, "wait": 2})
        reached |= {message["body"] for message in answer.json().get("messages", [])}
    assert reached == {message["body"] for message in [*posted, *later]}


def test_a_stack_whose_state_cannot_be_saved_is_not_stopped(own: RunningStack) -> None:
    # Given a message that no snapshot has, and a disk that takes no snapshot
    own.call("POST", "/queues/unsaved/messages", json={"messages": [{"body": "unsaved"}]})
    root = own.place.state / "emulator"
    root.rename(root.with_name("away"))
    root.write_text("no folder")
    # When it is stopped
    with pytest.raises(LocalError, match="not stopped, because its state cannot be saved"):
        own.down()
    # Then it can be brought up again as if nothing had been
    own.up()
    # And its look at itself names the problem
    (problem,) = local_stack.problems(own.place)
    assert "the state cannot be saved" in problem
    # And once there is room it stops, and the message is kept
    root.unlink()
    root.with_name("away").rename(root)
    own.restart()
    assert local_stack.problems(own.place) == []
    pulled = own.call("POST", "/queues/unsaved/reservations", json={}).json()["messages"]
    assert [message["body"] for message in pulled] == ["unsaved"]


def test_a_process_that_has_ended_is_noticed(own: RunningStack) -> None:
    # Given a stack whose front door has been killed
    pid = int(own.place.pid_file("front-door").read_text().split()[0])
    os.kill(pid, signal.SIGKILL)
    assert wait_until(lambda: not local_stack.is_up(own.place), 10)
    # When it is looked at, then it says so, and what to do
    (problem,) = local_stack.problems(own.place)
    assert "the front door has ended by itself" in problem
    assert "'make up'" in problem
    # And that helps
    own.up()
    assert local_stack.problems(own.place) == []


def test_projects_are_made_again_when_everything_was_lost(own: RunningStack) -> None:
    # Given a stack whose emulator has lost everything
    own.down()
    shutil.rmtree(own.place.state / "emulator")
    # When it is brought up
    own.up()
    # Then it is deployed anew and the old token works
    assert own.call("GET", "/queues").json() == {"queues": []}


def test_saved_work_is_not_brought_up_where_nothing_would_be_delivered(own: RunningStack) -> None:
    # Given a stack that is down, and the same home with another port of the emulator
    own.down()
    elsewhere = replace(own.place, aws_port=free_port())
    # When it is brought up there, then that is refused, with the port that works
    with pytest.raises(LocalError, match=f"PUSHHUB_AWS_PORT={own.place.aws_port} make up"):
        local_stack.up(elsewhere, print)
    assert not local_stack.is_up(own.place)
    # And nothing is spoilt: on its own port it delivers, also with another base URL
    own.place = replace(own.place, port=free_port())
    own.up()
    assert local_stack.problems(own.place) == []


def test_the_running_stack_is_asked_and_not_another_one_of_the_environment(own: RunningStack) -> None:
    # Given a stack that runs, and a server on the ports that this command's environment names
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]

        def listen() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = other.accept()
                    asked.append(connection.recv(1))
                    connection.close()

        threading.Thread(target=listen, daemon=True).start()
        elsewhere = replace(own.place, port=port, aws_port=port)
        # When its status is asked for, then the other server hears nothing, least of all the token
        assert local_stack.problems(elsewhere) == []
        assert asked == []
        # And it is what is stopped and saved
        assert local_stack.down(elsewhere, print)
        other.shutdown(socket.SHUT_RDWR)
    assert asked == []
    own.up()


def test_a_stack_that_accepts_and_delivers_nothing_is_noticed(
    own: RunningStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a stack whose dispatcher looks for queues that are not there
    monkeypatch.setattr("local.delivery_check.ARRIVES_S", 3.0)
    functions, name = own.aws.functions(), own.outputs["DispatchFunctionName"]
    right = functions.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
    wrong = {key: f"{value}-gone" if key.endswith("_QUEUE_URL") else value for key, value in right.items()}
    assert wrong != right
    functions.update_function_configuration(FunctionName=name, Environment={"Variables": wrong})
    local_stack.kill_function_workers(own.place, name)
    # When it is looked at, then it says so, and leaves no queue behind
    before = own.call("GET", "/queues").json()
    (problem,) = local_stack.problems(own.place)
    assert "accepted a message and did not deliver it" in problem
    assert own.call("GET", "/queues").json() == before
    # And once that is mended, all is well
    functions.update_function_configuration(FunctionName=name, Environment={"Variables": right})
    local_stack.kill_function_workers(own.place, name)
    monkeypatch.undo()

    def mended() -> bool | None:
        # Its role does not know these queues either, which was not what failed here. A run that had begun may say so
        # once more.
        (own.place.rights / "refused").unlink(missing_ok=True)
        return local_stack.problems(own.place) == [] or None

    until(mended, 60, lambda: "it is not mended")
    (own.place.rights / "refused").unlink(missing_ok=True)
