"""The stack itself: one base URL, projects apart, safe to bring up again."""

from __future__ import annotations

import json
import stat

import pytest
import requests
from local.errors import LocalError
from local.place import Place
from tests.stack.running import RunningStack

from local import stack as local_stack

pytestmark = pytest.mark.stack


def test_a_message_posted_to_the_base_url_comes_back_byte_for_byte(stack: RunningStack) -> None:
    # Given a body that is not ASCII
    body = "Zażółć gęślą jaźń \U0001f6f0\r\n\t\x00"
    # When it is posted to a queue whose name needs encoding, and reserved
    posted = stack.call("POST", "/queues/r%C3%BCck%20lauf%2B/messages", json={"messages": [{"body": body}]})
    reserved = stack.call("POST", "/queues/r%C3%BCck%20lauf%2B/reservations", json={})
    # Then it is the same
    assert posted.status_code == 201
    assert [message["body"] for message in reserved.json()["messages"]] == [body]


def test_local_json_describes_the_running_stack_and_is_private(stack: RunningStack) -> None:
    # Given a running stack, when its description is read
    content = json.loads(stack.place.description.read_text())
    # Then scripts find what they need, and other users can read nothing
    assert (content["base_url"], content["project_id"], content["token"]) == (
        stack.base_url,
        stack.project_id,
        stack.token,
    )
    assert content["outputs"]["MessagesTableName"]
    assert stat.S_IMODE(stack.place.description.stat().st_mode) == 0o600
    # And the token itself is not kept
    kept = stack.aws.dynamodb().scan(TableName=content["outputs"]["ConfigTableName"])["Items"]
    assert any(each["sk"]["S"].startswith("TOKEN#") for each in kept)
    assert stack.token not in json.dumps(kept, default=str)


def test_a_token_of_one_project_sees_nothing_of_another(stack: RunningStack) -> None:
    # Given a second project
    other = stack.make_project()
    # When its token is used for the first one's queues
    url = f"{stack.base_url}/3/projects/{stack.project_id}/queues"
    answer = requests.get(url, headers={"Authorization": f"OAuth {other.token}"}, timeout=40)
    # Then it is refused, while it serves its own
    own = requests.get(url.replace(stack.project_id, other.project_id), params={"oauth": other.token}, timeout=40)
    assert answer.status_code == 401
    assert (own.status_code, own.json()) == (200, {"queues": []})


def test_bringing_up_what_is_up_changes_nothing(stack: RunningStack) -> None:
    # Given a running stack
    before = stack.description
    stack.said.clear()
    # When it is brought up again
    stack.up()
    # Then nothing is started or deployed
    assert stack.description == before
    assert stack.said == []


def test_a_running_stack_is_not_moved_to_other_ports(stack: RunningStack) -> None:
    # Given the files of a running stack, when it is to come up on another port
    elsewhere = Place(
        home=stack.place.home, port=1, aws_port=stack.place.aws_port, emulator_python=stack.place.emulator_python
    )
    # Then that is refused in one line
    with pytest.raises(LocalError, match=r"runs already, on http://127\.0\.0\.1:"):
        local_stack.up(elsewhere, print)
