"""The demonstration of ``make run`` on a running stack, with a part of its messages."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from local.__main__ import demonstration_project
from local.demo import demonstration
from tests.stack.running import RunningStack

pytestmark = [pytest.mark.stack, pytest.mark.slow]


def test_it_shows_what_every_subscriber_got_and_what_is_in_the_error_queue(stack: RunningStack, tmp_path: Path) -> None:
    # Given the first eighteen messages
    messages = tmp_path / "messages.jsonl"
    lines = demonstration.MESSAGES.read_text(encoding="utf-8").split("\n")
    messages.write_text("\n".join(lines[:18]) + "\n", encoding="utf-8")
    said: list[str] = []
    # When the part about queues is shown with them
    asyncio.run(demonstration.show_queue(stack.description, said.append, messages=messages))
    # Then the table tells what happened
    text = "\n".join(said)
    cells = {line.split()[0]: re.split(r"  +", line) for line in text.splitlines() if line}
    assert cells["healthy"][2] == "18 of 18"
    assert int(cells["flaky"][3]) > 18
    for name in ("flaky", "later"):
        assert int(cells[name][2].split()[0]) + int(cells[name][4]) >= 18
    assert (cells["dead"][2], cells["dead"][4]) == ("0 of 18", "18")
    assert int(cells["dead"][3]) >= 18 * 3
    assert re.search(r"The error queue demo-\w+-errors holds", text)
    assert "byte for byte" in text


def test_it_shows_an_order_that_two_services_work_on(stack: RunningStack) -> None:
    said: list[str] = []
    # When the part about stores is shown twice, as when a user runs it again
    for _ in range(2):
        asyncio.run(demonstration.show_order(stack.description, said.append))
    # Then it checked on its own what the services made of the order
    assert said.count("Both services are done. Their answers led to: email:sent, shipment:confirm.") == 2


def test_it_shows_a_consumer_that_loses_its_connection_and_gets_exactly_the_rest(stack: RunningStack) -> None:
    said: list[str] = []
    # When the part about notifications is shown twice, as when a user runs it again
    for _ in range(2):
        asyncio.run(demonstration.show_consumer(stack.description, said.append))
    # Then it checked on its own what the consumer got after reconnecting
    assert said.count("Back again it received 7: 1, 3, 5, 6, 7, 8, 9.") == 2
    assert said[-1] == "Checked: exactly the rest, in order, and then silence."


def test_it_works_in_a_project_of_its_own(stack: RunningStack) -> None:
    # Given the project of the demonstration: another than the user's, and the same the next time
    own = demonstration_project(stack.description, stack.place)
    assert own.project_id != stack.description.project_id
    assert demonstration_project(stack.description, stack.place) == own
    # When the part about webhooks is shown there, then its token opens what it made
    said: list[str] = []
    asyncio.run(demonstration.show_webhook(own, said.append))
    assert said[-1].startswith("Checked: the signature fits")
