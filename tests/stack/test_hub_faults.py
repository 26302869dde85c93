"""Functions killed in the middle of deliveries and polls: everything continues, and happens once. (The stack stopped
between two polls: test_restart.py.)
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.stack.hub_endpoint import HubEndpoint
from tests.stack.project import unique, until
from tests.stack.running import RunningStack
from tests.stack.test_hub import Shop

pytestmark = pytest.mark.stack

ORDERS = 8
KILLS = 4
VISIBILITY_S = 15
"""How long SQS hides the orders of a function that died, seconds; 7.5 minutes outside this test."""
WAIT_S = 240.0


@pytest.fixture
def shop(stack: RunningStack) -> Iterator[Shop]:
    made = stack.make_project()
    sqs = stack.aws.sqs()
    urls = [
        stack.outputs[name]
        for name in ("PushQueueUrl", "RetryQueueUrl", "SlowQueueUrl", "PollQueueUrl", "RouteQueueUrl")
    ]
    usual = [sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["VisibilityTimeout"])["Attributes"] for url in urls]
    for url in urls:
        sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": str(VISIBILITY_S)})
    with HubEndpoint() as endpoint:
        yield Shop(stack.base_url, made.project_id, made.token, endpoint)
    for url, attributes in zip(urls, usual, strict=True):
        sqs.set_queue_attributes(QueueUrl=url, Attributes=attributes)


def test_functions_killed_at_any_moment_lose_nothing_and_do_nothing_twice(stack: RunningStack, shop: Shop) -> None:
    # Given a synchronous and an asynchronous service, and orders on their way to both
    shop.map("order:new", "/import")
    shop.map("order:new", "/later")
    numbers = [unique("R") for _ in range(ORDERS)]
    ids = [shop.push("order:new", number=number) for number in numbers]

    # When the functions that deliver are killed again and again
    def killed() -> int:
        return sum(stack.kill_function_workers(function) for function in ("push", "poll"))

    for _ in range(KILLS):
        time.sleep(1.5)
        # (on a busy machine the next run's process may not have started yet)
        until(killed, 60, lambda: "no process of push or poll")
    # Then every order is completed at both
    for message_id in ids:
        until(
            lambda: [each["state"] for each in shop.message(message_id)["children"]] == ["completed"] * 2 or None,  # noqa: B023
            WAIT_S,
            lambda: str(shop.message(message_id)["children"]),  # noqa: B023
        )
    # And everything that the answers asked for happened once for each
    for message_type in ("order:imported", "order:shipped"):
        rows = until(
            lambda: _archived(shop, message_type, ORDERS),  # noqa: B023
            WAIT_S,
            lambda: f"{len(_rows(shop, message_type))} of {ORDERS} {message_type}",  # noqa: B023
        )
        made_for = sorted(shop.message(row["id"])["payload"]["number"] for row in rows)
        assert made_for == sorted(numbers)

    def told() -> list[dict[str, Any]] | None:
        found = [each for each in shop.get("/notifications.json", page=1) if each["subject"].startswith("Imported")]
        return found if len(found) >= ORDERS else None

    notes = until(told, WAIT_S, lambda: f"notifications are missing: {told()}")
    assert sorted(each["subject"] for each in notes) == sorted(f"Imported {number}" for number in numbers)
    assert {each["occurrences"] for each in notes} == {1}


def _rows(shop: Shop, message_type: str) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = shop.get("/queues/archived.json", source="incoming", message=message_type)
    return rows


def _archived(shop: Shop, message_type: str, count: int) -> list[dict[str, str]] | None:
    rows = _rows(shop, message_type)
    assert len(rows) <= count
    return rows if len(rows) == count else None
