"""The unmodified ``iron-mq`` client drives the running hub through every method it has (IronMQ v3 section 8.1)."""

from __future__ import annotations

import json
import time
import urllib
import urllib.parse
from collections.abc import Callable
from typing import Any

import pytest
import requests
from iron_mq import IronMQ
from tests.stack.endpoints import Recorder
from tests.stack.project import ProjectClient, unique
from tests.stack.running import RunningStack

pytestmark = pytest.mark.stack


@pytest.fixture
def project(stack: RunningStack) -> ProjectClient:
    return ProjectClient.default(stack)


@pytest.fixture
def client(project: ProjectClient) -> Any:
    """The client, configured as its documentation says."""
    return client_of(project)


def client_of(project: ProjectClient) -> Any:
    parts = urllib.parse.urlsplit(project.base_url)
    return IronMQ(
        host=parts.hostname, port=parts.port, protocol="http", project_id=project.project_id, token=project.token
    )


def refusal(call: Callable[..., object], *arguments: object, **options: object) -> tuple[int, str]:
    """The status and ``msg`` of a refused call."""
    with pytest.raises(requests.HTTPError) as caught:
        call(*arguments, **options)
    response = caught.value.response
    assert response is not None
    assert response.headers["Content-Type"] == "application/json"
    assert int(response.headers["Content-Length"]) > 0
    return response.status_code, response.json()["msg"]


def test_queues_are_made_changed_listed_and_deleted(stack: RunningStack, monkeypatch: pytest.MonkeyPatch) -> None:
    client, prefix = client_of(ProjectClient.another(stack)), "list"
    # When queues are created without settings, with settings, and by posting
    created = client.create_queue(f"{prefix}-b")
    assert created["name"] == f"{prefix}-b"
    assert (created["type"], created["message_timeout"], created["message_expiration"]) == ("pull", 60, 604_800)
    assert not {"size", "total_messages", "push", "alerts"} & created.keys()
    assert client.create_queue(f"{prefix}-a", {"message_timeout": 120})["message_timeout"] == 120
    client.queue(f"{prefix}-c").post("x")
    # Then they are listed in order, in pages, by prefix. The client forgets on Python 3 where urlencode is.
    monkeypatch.setattr(urllib, "urlencode", urllib.parse.urlencode, raising=False)
    names = [f"{prefix}-{letter}" for letter in "abc"]
    assert client.queues(prefix=prefix) == names
    assert client.queues(prefix=prefix, per_page=2) == names[:2]
    assert client.queues(prefix=prefix, per_page=2, previous=names[1]) == names[2:]
    assert client.queues(prefix=prefix, per_page=101) == names
    assert client.queues(prefix=prefix, previous=f"{prefix}-bb") == names[2:]
    assert client.queues() == client.getQueues() == names
    assert client.queues(prefix="lost") == []
    # And they can be changed in both ways, and distinguished
    assert client.update_queue(names[0], {"message_expiration": 3600})["message_expiration"] == 3600
    assert client.queue(names[0]).update({"message_timeout": 90})["message_timeout"] == 90
    info = client.queue(names[0]).info()
    assert (info["message_timeout"], info["message_expiration"], info["size"], info["total_messages"]) == (
        90,
        3600,
        0,
        0,
    )
    assert client.getQueueDetails(names[0]) == info
    assert client.queue(names[0]).id() == info["id"]
    # And deleted, but only once
    for name in names:
        assert client.queue(name).delete_queue() == {"msg": "Deleted"}
        assert refusal(client.queue(name).delete_queue) == (404, "Queue not found")
    assert client.queues(prefix=prefix) == []


def test_a_queue_that_does_not_exist(client: Any) -> None:
    queue = client.queue(unique("nowhere"))
    for call in (queue.info, queue.size, queue.reserve, queue.peek, queue.clear, queue.delete_queue):
        assert refusal(call) == (404, "Queue not found")
    assert refusal(queue.update, {"message_timeout": 60}) == (404, "Queue not found")
    assert refusal(queue.get_message_by_id, "1") == (404, "Queue not found")
    assert refusal(queue.add_subscribers, {"name": "a", "url": "http://127.0.0.1/"}) == (404, "Queue not found")


def test_messages_are_posted_reserved_and_deleted_in_order(client: Any) -> None:
    queue = client.queue(unique("order"))
    # When one message, several, and one with settings are posted
    first = queue.post("first – ½")
    assert first["msg"] == "Messages put on queue."
    [first_id] = first["ids"]
    rest = queue.post("second", {"body": "third"}, {"body": ""}, {"body": "late", "delay": 600})["ids"]
    assert all(identifier.isdigit() and len(identifier) == 19 for identifier in [first_id, *rest])
    assert client.postMessage(queue.name, ["sixth"])["msg"] == "Messages put on queue."
    # Then all are counted, and read without being reserved
    assert (queue.size(), queue.total_messages()) == (6, 6)
    assert [each["body"] for each in queue.peek()["messages"]] == ["first – ½"]
    peeked = queue.peek(10)["messages"]
    assert [each["body"] for each in peeked] == ["first – ½", "second", "third", "", "sixth"]
    assert set(peeked[0]) == {"id", "body", "reserved_count"}
    # And reserved from the front
    [reserved] = queue.reserve()["messages"]
    assert (reserved["id"], reserved["body"], reserved["reserved_count"]) == (first_id, "first – ½", 1)
    assert len(reserved["reservation_id"]) == 32
    [again] = queue.get()["messages"]
    assert again["body"] == "second"
    batch = queue.reserve(max=10, timeout=60, wait=1)["messages"]
    assert [each["body"] for each in batch] == ["third", "", "sixth"]
    assert client.getMessage(queue.name, max=5) == {"messages": []}
    # And a reserved message can only be deleted with its reservation
    assert refusal(queue.delete, first_id) == (400, "A reservation_id is required")
    assert refusal(client.deleteMessage, queue.name, first_id)[0] == 400
    assert refusal(queue.delete, first_id, "0" * 32)[0] == 403
    assert queue.delete(first_id, reserved["reservation_id"]) == {"msg": "Deleted"}
    assert refusal(queue.delete, first_id, reserved["reservation_id"]) == (404, "Message not found")
    assert queue.delete_multiple(messages={"messages": batch}) == {"msg": "Deleted"}
    assert queue.size() == 2
    # And a free one without
    assert queue.delete(rest[3]) == {"msg": "Deleted"}
    assert refusal(queue.get_message_by_id, rest[3]) == (404, "Message not found")
    assert (queue.size(), queue.total_messages()) == (1, 6)


def test_several_messages_are_deleted_at_once_or_none(client: Any) -> None:
    queue = client.queue(unique("several"))
    ids = queue.post("a", "b", "c")["ids"]
    [reserved] = queue.reserve()["messages"]
    # When one of those to delete is reserved, nothing is deleted
    assert refusal(queue.delete_multiple, ids=ids)[0] == 400
    wrong = {"messages": [{"id": reserved["id"], "reservation_id": "0" * 32}]}
    assert refusal(queue.delete_multiple, messages=wrong)[0] == 403
    assert queue.size() == 3
    assert queue.delete_multiple(ids=ids[1:]) == {"msg": "Deleted"}
    assert queue.size() == 1
    with pytest.raises(Exception, match="at least one parameter"):
        queue.delete_multiple()


def test_a_popped_message_is_gone(client: Any) -> None:
    queue = client.queue(unique("pop"))
    [message_id] = queue.post("x")["ids"]
    [popped] = queue.reserve(delete=True)["messages"]
    assert (popped["id"], popped["body"]) == (message_id, "x")
    assert queue.size() == 0
    assert refusal(queue.get_message_by_id, message_id) == (404, "Message not found")


def test_a_message_is_touched_twice_and_released(client: Any) -> None:
    queue = client.queue(unique("touch"))
    [message_id] = queue.post("x")["ids"]
    [reserved] = queue.reserve(timeout=300)["messages"]
    # When it is touched, it gets a new reservation each time
    first = queue.touch(message_id, reserved["reservation_id"])
    second = queue.touch(message_id, first["reservation_id"], timeout=400)
    assert (first["msg"], second["msg"]) == ("Touched", "Touched")
    ids = [reserved["reservation_id"], first["reservation_id"], second["reservation_id"]]
    assert len(set(ids)) == 3
    for old in ids[:2]:
        assert refusal(queue.touch, message_id, old)[0] == 403
        assert refusal(queue.release, message_id, old)[0] == 403
        assert refusal(queue.delete, message_id, old)[0] == 403
    assert queue.get_message_by_id(message_id)["reserved_count"] == 3
    # And when it is released with a delay, it is not available at once, but after that
    released_at = time.monotonic()
    assert queue.release(message_id, ids[2], delay=2) == {"msg": "Released"}
    [back] = queue.reserve(wait=20)["messages"]
    assert time.monotonic() - released_at >= 2 - 0.05
    assert (back["id"], back["reserved_count"]) == (message_id, 4)
    assert queue.release(message_id, back["reservation_id"]) == {"msg": "Released"}
    assert queue.peek()["messages"][0]["id"] == message_id


def test_a_queue_is_cleared(client: Any) -> None:
    queue = client.queue(unique("clear"))
    queue.post(*(f"message {number}" for number in range(100)))
    queue.reserve(max=50)
    assert queue.size() == 100
    assert queue.clear() == {"msg": "Cleared"}
    assert (queue.size(), queue.peek(100)["messages"]) == (0, [])
    queue.post("after")
    assert client.clearQueue(queue.name) == {"msg": "Cleared"}
    assert queue.size() == 0


def test_subscribers_and_push_statuses(client: Any, project: ProjectClient) -> None:
    queue = client.queue(unique("push"))
    with Recorder() as recorder:
        a, b, c = recorder.endpoint(), recorder.endpoint(202), recorder.endpoint()
        # Given a push queue
        push = {"subscribers": [{"name": "a", "url": a.url}], "retries": 2, "retries_delay": 600}
        created = client.create_queue(queue.name, {"push": push})
        assert created["type"] == "multicast"
        assert created["push"] == {**push, "error_queue": ""}
        # When subscribers are added, changed by name, replaced and removed
        assert queue.add_subscribers({"name": "b", "url": a.url}, {"name": "c", "url": c.url}) == {"msg": "Updated"}
        assert queue.add_subscribers({"name": "b", "url": b.url, "headers": {"X-A": "1"}}) == {"msg": "Updated"}
        assert [(each["name"], each["url"]) for each in queue.info()["push"]["subscribers"]] == [
            ("a", a.url),
            ("b", b.url),
            ("c", c.url),
        ]
        assert queue.remove_subscribers("c") == {"msg": "Updated"}
        status, msg = refusal(queue.remove_subscribers, "a", "b")
        assert status == 400
        assert "Push queues must have at least one subscriber" in msg
        assert queue.replace_subscribers({"name": "a", "url": a.url}, {"name": "b", "url": b.url}) == {"msg": "Updated"}
        # Then a message is pushed to them
        [message_id] = queue.post("x")["ids"]
        at_once = queue.get_message_push_statuses(message_id)["subscribers"]
        assert [each["subscriber_name"] for each in at_once] == ["a", "b"]
        a.wait()
        [reserved] = b.wait()
        pushed = project.wait_codes(queue.name, message_id, [200, 202], [1, 1])
        assert queue.get_message_push_statuses(message_id)["subscribers"] == pushed
        assert [each["retries_remaining"] for each in pushed] == [2, 2]
        # And the subscriber that answered 202 acknowledges with the client's own method
        reservation = reserved.reservation
        assert refusal(queue.delete, message_id, "0" * 32, "b")[0] == 403
        assert refusal(queue.delete, message_id, reservation["reservation_id"], "a")[0] == 403
        assert queue.delete(message_id, reservation["reservation_id"], "b") == {"msg": "Deleted"}
        statuses = queue.get_message_push_statuses(message_id)["subscribers"]
        assert [each["status_code"] for each in statuses] == [200, 200]
        assert queue.get_message_by_id(message_id)["push_statuses"] == statuses
        # And a push queue cannot be reserved from, nor can its type change
        assert refusal(queue.reserve)[0] == 400
        assert refusal(queue.update, {"type": "unicast"})[0] == 403
        assert queue.update({"type": "multicast", "push": {"retries": 5}})["push"]["retries"] == 5


def test_alerts(client: Any) -> None:
    # Given a queue with an alert
    queue, alarms = client.queue(unique("watched")), client.queue(unique("alarms"))
    client.create_queue(queue.name)
    rising = {"type": "fixed", "trigger": 2, "direction": "asc", "queue": alarms.name, "snooze": 0}
    falling = {"type": "fixed", "trigger": 1, "direction": "desc", "queue": alarms.name, "snooze": 0}
    [added] = queue.add_alerts(rising)["alerts"]
    assert {name: value for name, value in added.items() if name != "id"} == rising
    # When it is replaced by two, and the size crosses the first one's trigger
    assert len(queue.update_alerts(rising, falling)["alerts"]) == 2
    status, msg = refusal(queue.update_alerts, rising, rising)
    assert (status, msg) == (400, "At least one new alert duplicates current queue alerts.")
    queue.post("a", "b")
    # Then the target queue gets the alert
    [alarm] = alarms.reserve(wait=30)["messages"]
    answer = json.loads(alarm["body"])
    assert (answer["source_queue"], answer["queue_size"], answer["alert_direction"]) == (queue.name, 2, "asc")
    # And the old way to remove alerts does not exist, the new one does
    assert refusal(queue.remove_alerts)[0] == 404
    assert "alerts" not in queue.update_alerts()
    # And push queues have no alerts
    push = {"subscribers": [{"name": "a", "url": "ironmq:///elsewhere"}]}
    status, msg = refusal(client.create_queue, unique("push"), {"push": push, "alerts": [rising]})
    assert (status, msg) == (400, "Push queues do not support alerts.")
