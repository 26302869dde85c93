"""The operator's command line on the running local stack."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest
import requests
from local.place import REPOSITORY
from tests.cli.consumers_door import receiver
from tests.stack.operating import environment_of, pushhub
from tests.stack.running import RunningStack

pytestmark = pytest.mark.stack


def test_an_operator_makes_a_project_and_takes_its_token_back(stack: RunningStack) -> None:
    # Given a project created by an operator, with a working token
    [project] = pushhub(stack, "projects", "make", "operated")
    url = f"{stack.base_url}/3/projects/{project['project']}/queues/first"
    headers = {"Authorization": f"OAuth {project['token']}"}
    assert requests.put(url, json={"queue": {}}, headers=headers, timeout=30).ok
    # When the token is rotated without an overlap
    [token] = pushhub(stack, "tokens", "list", project["project"])
    [new] = pushhub(stack, "tokens", "rotate", project["project"], token["token_id"], "--overlap", "0s")
    # Then the new one works at once
    renewed = {"Authorization": f"OAuth {new['token']}"}
    assert requests.get(url, headers=renewed, timeout=30).status_code == 200


def test_a_listener_that_is_killed_among_five_hundred_goes_on_after_what_it_acknowledged(stack: RunningStack) -> None:
    # Given 500 notifications for a subscriber that has connected once, and a listener that is killed while it forwards
    # them
    project = stack.make_project("listened")
    environment = {
        **os.environ,
        "PUSHHUB_URL": stack.base_url,
        "PUSHHUB_PROJECT": project.project_id,
        "PUSHHUB_TOKEN": project.token,
    }
    headers = {"Authorization": f"Bearer {project.token}"}
    rule = {"context": "tenant", "subscription": "all"}
    assert requests.post(f"{stack.base_url}/notification2/subscriptions", json=rule, headers=headers, timeout=30).ok
    with receiver() as program:
        command = [
            sys.executable,
            "-m",
            "cli",
            "--json",
            "listen",
            "all",
            "--subscriber",
            "me",
            "--forward",
            program.url,
        ]

        def listener() -> subprocess.Popen[str]:
            started = subprocess.Popen(command, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, text=True)
            assert started.stdout is not None
            # A connection that the hub still counts as another's is tried again
            events = (json.loads(line)["event"] for line in started.stdout)
            assert "connected" in events
            return started

        first = listener()
        program.wake_at = 200
        for start in range(0, 500, 100):
            drafts = [{"api": "events", "source": "1", "data": {"n": number}} for number in range(start, start + 100)]
            url = f"{stack.base_url}/notification2/notifications"
            assert requests.post(url, json=drafts, headers=headers, timeout=30).ok
        assert program.seen.wait(120)
        first.kill()
        first.communicate()
        # When another one takes its place, which is refused until the hub knows that the first is gone
        second = listener()
        assert second.stdout is not None
        for line in second.stdout:
            if json.loads(line)["event"] == "acknowledged" and 499 in program.numbers:
                break
        second.send_signal(signal.SIGTERM)
        second.communicate()
    # Then each was forwarded, in order, and none again from before the last acknowledged one
    # (what the first had sent when it was killed may be read a moment later)
    numbers = program.numbers
    forwarded = next((place for place, number in enumerate(numbers) if number != place), 500)
    again = numbers[forwarded:]
    assert forwarded >= 200
    assert again == list(range(again[0] if again else 500, 500))
    assert not again or 0 < again[0] <= forwarded


def test_what_happens_is_shown_while_it_happens(stack: RunningStack) -> None:
    # Given the stack on this machine, which the command line finds on its own
    assert pushhub(stack, "status")[0]["state"] == "ok"
    pushhub(stack, "queues", "create", "tailed", "--push", "copies=ironmq:///tailed-copies")
    [posted] = pushhub(stack, "post", "tailed", "x")
    # When somebody follows the queue
    environment = {**os.environ, **environment_of(stack)}
    command = [sys.executable, "-m", "cli", "--json", "tail", "tailed", "--since", "10m", "--for", "10m"]
    with subprocess.Popen(command, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, text=True) as following:
        assert following.stdout is not None
        kinds: list[str] = []
        for line in following.stdout:
            record = json.loads(line)
            assert record["message_id"] == posted["id"]
            kinds.append(record["kind"])
            if record.get("state") == "delivered":
                break
        following.kill()
    # Then the message is seen accepted and delivered, perhaps not by the first attempt
    assert (kinds[0], {*kinds[1:]}) == ("accepted", {"attempt"})


def test_the_doctor_looks_at_what_was_deployed_and_sends_a_message_round(stack: RunningStack) -> None:
    # Given the stack as CloudFormation describes it, and a project's token
    described = stack.description
    project = stack.make_project("examined")
    environment = {
        **os.environ,
        "AWS_ENDPOINT_URL": described.aws_endpoint_url,
        "AWS_DEFAULT_REGION": described.region,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "PUSHHUB_URL": stack.base_url,
        "PUSHHUB_PROJECT": project.project_id,
        "PUSHHUB_TOKEN": project.token,
    }
    # When it is examined
    command = [sys.executable, "-m", "cli", "--json", "--stack", "pushhub", "deploy", "doctor"]
    run = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    found = {each["check"]: each for each in json.loads(run.stdout)}
    # Then every check was possible, a message made the round trip, and what is not set up here is listed: the report's
    # script, an address for alarms, rights of the root user (which the emulator takes the caller for)
    reported = {name: each["says"] for name, each in found.items() if each["state"] != "ok"}
    # (other tests of this stack may have left something in a dead-letter queue; the emulator has no Service Quotas)
    assert set(reported) - {"dead letters", "quotas"} == {"alarm mail", "report job", "rights"}, found
    assert found["rights"]["state"] == "skipped"
    assert "root user" in reported["rights"]
    assert "make report-upload" in reported["report job"]
    assert {"credentials", "concurrency", "api requests", "table writes", "functions", "alarms", "a message"} < set(
        found
    )
    assert run.returncode == 1
