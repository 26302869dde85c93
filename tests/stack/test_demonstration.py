"""The demonstration of ``make run`` on a running stack, with a part of its messages."""

from __future__ import annotations

import asyncio
import io
import re
from pathlib import Path

import pytest
from local.__main__ import demonstration_project
from local.demonstration import flow, notification_flow, webhook_flow
from tests.stack.running import RunningStack

pytestmark = [pytest.mark.stack, pytest.mark.slow]


def test_it_shows_what_every_subscriber_got_and_what_is_in_the_error_queue(stack: RunningStack, tmp_path: Path) -> None:
    # Given the first eighteen messages
    messages = tmp_path / "messages.jsonl"
    lines = flow.MESSAGES.read_text(encoding="utf-8").split("\n")
    messages.write_text("\n".join(lines[:18]) + "\n", encoding="utf-8")
    said: list[str] = []
    # When the main job is shown with them
    progress = io.StringIO()
    asyncio.run(flow.run(stack.description, said.append, messages=messages, stream=progress))
    # Then the table tells what happened
    text = "\n".join(said)
    cells = {line.split()[0]: re.split(r"  +", line) for line in text.splitlines() if line}
    assert cells["healthy"][2] == "18 of 18"
    assert int(cells["flaky"][3]) >= 18
    for name in ("flaky", "later"):
        assert int(cells[name][2].split()[0]) + int(cells[name][4]) == 18
    assert cells["dead"][2:] == ["0 of 18", str(18 * 3), "18"]
    assert "Error queue demo-1-errors: " in text
    assert "byte for byte" in text
    assert "healthy 18/18" in progress.getvalue()


def test_it_shows_a_consumer_that_loses_its_connection_and_gets_exactly_the_rest(stack: RunningStack) -> None:
    said: list[str] = []
    # When the part about notifications is shown twice, as when a user runs it again
    for _ in range(2):
        asyncio.run(notification_flow.run(stack.description, said.append))
    # Then it checked on its own what the consumer got after reconnecting
    assert said.count("It received 12 notifications and acknowledged 7: 0, 2, 4, 6, 8, 10, 1.") == 2
    rest = ", ".join(str(number) for number in (3, 5, 7, 9, *range(11, 20)))
    assert said.count(f"Back again it received 13: {rest}.") == 2
    assert said[-1] == "Checked: exactly the rest, in order, and then silence."


def test_it_shows_a_webhook_whose_signature_fits(stack: RunningStack) -> None:
    said: list[str] = []
    # When the part about webhooks is shown twice, as when a user runs it again
    for _ in range(2):
        asyncio.run(webhook_flow.run(stack.description, said.append))
    # Then it checked the signatures on its own
    assert sum("It was delivered with webhook-signature: v1," in each for each in said) == 2
    assert sum(each.startswith("Checked: the signature fits, and fits no other body.") for each in said) == 2


def test_it_works_in_a_project_of_its_own(stack: RunningStack) -> None:
    # Given the project of the demonstration: another than the user's, and the same the next time
    own = demonstration_project(stack.description, stack.place)
    assert own.project_id != stack.description.project_id
    assert demonstration_project(stack.description, stack.place) == own
    # When the part about webhooks is shown there, then its token opens what it made
    said: list[str] = []
    asyncio.run(webhook_flow.run(own, said.append))
    assert said[-1].startswith("Checked: the signature fits")
