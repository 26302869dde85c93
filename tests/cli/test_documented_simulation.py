"""The example of docs/policy-simulator.md: it shows the actual output, and its request is valid."""

from __future__ import annotations

import json
import re
import shlex

from local.place import REPOSITORY
from tests.cli.conftest import Typed

from pushhub.ironmq.wire.policies import parse_replay, parse_simulation

PAGE = (REPOSITORY / "docs/policy-simulator.md").read_text()


def test_the_command_prints_what_the_page_shows(typed: Typed) -> None:
    command, shown = re.search(r"```\n\$ pushhub ([^\n]+)\n```\n.*?\n```\n(.*?)```", PAGE, re.DOTALL).groups()  # type: ignore[union-attr]
    # The policy's own figures; if a rule changes, they change, and the page has to change too
    assert typed(*shlex.split(command)).rstrip() == shown.rstrip()


def test_the_request_on_the_page_can_be_simulated(typed: Typed) -> None:
    request, replaying = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    assert len(parse_simulation(json.loads(request)).plan.endpoint.windows) == 2
    assert typed.json("simulate", "policy", "--request", "-", given=request.encode())["forecast"]["accepted"] == 45_000
    # And the one with a replay can be read, but only the hub can run it
    asked = parse_replay(json.loads(replaying))
    assert asked is not None
    assert (asked.queue, asked.subscriber, asked.until - asked.since) == ("webhooks/app_1", "ep_2", 12 * 3_600_000)
    typed("simulate", "policy", "--request", "-", given=replaying.encode(), code=2)
    assert "--ask-hub" in typed.errors


def test_every_field_of_a_request_is_on_the_page(typed: Typed) -> None:
    plan = typed.json("simulate", "policy", "--outage", "1m")["plan"]
    for name in plan:
        assert f"`{name}" in PAGE or name == "policy", name
