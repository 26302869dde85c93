"""Messages of a queue, or events of a bus, that are not the hub's, as Lambda hands them to the function ``ingest``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pushhub.cloud.settings import Settings
from pushhub.runtime.consuming import SETTINGS, consume

if TYPE_CHECKING:
    from simulation.account import Account

ARNS = {False: "arn:aws:sqs:eu-central-1:123456789012:theirs", True: "arn:aws:sqs:eu-central-1:123456789012:events"}
"""The queue that is consumed, by whether it has events."""

Consumes = Callable[[str, Sequence[Mapping[str, Any]], bool], Collection[str]]
"""Hands over messages as SQS writes them: to a destination, and whether they are events. The ids of those that have to
come again.
"""


@dataclass
class Run:
    """A run of a function, as far as the hub asks."""

    aws_request_id: str = "consuming"

    def get_remaining_time_in_millis(self) -> int:
        """As long as the function may run."""
        return 29_000


def consuming(account: Account) -> Consumes:
    """Hands over messages in an account, whose operator has named their queue."""

    def consumes(to: str, messages: Sequence[Mapping[str, Any]], events: bool) -> Collection[str]:
        named = {"CONSUMED_QUEUE": ARNS[False], "CONSUMED_EVENTS": ARNS[True]}
        named["CONSUMED_EVENTS_TO" if events else "CONSUMED_QUEUE_TO"] = to
        settings = Settings(SETTINGS, named)
        event = {"Records": [{**each, "eventSourceARN": ARNS[events]} for each in messages]}
        ingest = account.functions["ingest"]
        answer = ingest.invoke(event, instead=lambda hub: consume(hub, settings, event, Run()))
        return [each["itemIdentifier"] for each in answer["batchItemFailures"]]

    return consumes
