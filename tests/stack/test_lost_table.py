"""The drill of docs/operations.md, "If the messages table is lost":
the table is lost in the middle of traffic and rebuilt from records.

It has a stack of its own, because others would notice.
"""

from __future__ import annotations

import json
import threading
from base64 import b64encode
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from tests.fakes.large_bodies import large_text
from tests.stack.delivery_report import records_of
from tests.stack.endpoints import Endpoint, Recorder
from tests.stack.operating import pushhub, ran
from tests.stack.project import ProjectClient, until
from tests.stack.running import RunningStack

pytestmark = pytest.mark.stack

QUEUE = "drill"
LARGE = 10_000
SETTLED = {"delivered", "acknowledged", "cancelled"}


@dataclass(kw_only=True)
class Traffic:
    """A producer that keeps posting whatever happens: alternately a message with its body in the bodies bucket and one
    with it in the table.

    Attributes:
        accepted: Bodies of the accepted messages, by id.
        refused: Posts that were not accepted.
    """

    project: ProjectClient
    accepted: dict[str, str] = field(default_factory=dict)
    refused: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        for number in range(2_000):
            if self._stop.wait(0.2):
                return
            body = f"{number} " + (large_text(LARGE) if number % 2 else "small")
            answer = self.project.call("POST", f"/queues/{QUEUE}/messages", {"messages": [{"body": body}]})
            if answer.status_code == 201:
                self.accepted[answer.json()["ids"][0]] = body
            else:
                assert answer.status_code in (500, 503), answer.text
                self.refused += 1

    @contextmanager
    def going(self) -> Iterator[None]:
        """Post in the background."""
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(self.run)
            try:
                yield
            finally:
                self._stop.set()
            running.result(timeout=300)


def out_of_service(own: RunningStack, *, stopped: bool) -> None:
    """The runbook's first and last step: push, poll, errors and wake do not run."""
    functions = own.aws.functions()
    for name in ("Push", "Poll", "Errors"):
        for each in functions.list_event_source_mappings(FunctionName=own.outputs[f"{name}FunctionName"])[
            "EventSourceMappings"
        ]:
            functions.update_event_source_mapping(UUID=each["UUID"], Enabled=not stopped)
    wake = own.outputs["WakeFunctionName"]
    if stopped:
        functions.put_function_concurrency(FunctionName=wake, ReservedConcurrentExecutions=0)
    else:
        functions.delete_function_concurrency(FunctionName=wake)


def lose(own: RunningStack) -> list[dict[str, Any]]:
    """Delete the table; returns what its stream still held.

    AWS lets Lambda read that stream to its end, the emulator forgets it.
    """
    tables: Any = own.aws.dynamodb()
    streams: Any = own.aws.dynamodb_streams()
    name = own.outputs["MessagesTableName"]
    arn = tables.describe_table(TableName=name)["Table"]["LatestStreamArn"]
    tables.update_table(TableName=name, DeletionProtectionEnabled=False)
    tables.delete_table(TableName=name)
    held: list[dict[str, Any]] = []
    for shard in streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
        start = streams.get_shard_iterator(StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON")[
            "ShardIterator"
        ]
        while start:
            page = streams.get_records(ShardIterator=start, Limit=1000)
            held += [{**each, "eventSourceARN": arn} for each in page["Records"]]
            start = page.get("NextShardIterator") if page["Records"] else None
    return held


def replace_table(own: RunningStack) -> None:
    """Make an empty table in its place, which the same functions read."""
    pushhub(own, "deploy", "table", "messages", "--empty")


def states_of(own: RunningStack, project: ProjectClient) -> dict[str, dict[str, str]]:
    """The state of each message's deliveries, according to their newest records."""
    newest: dict[str, dict[str, tuple[int, str]]] = defaultdict(dict)
    for record in records_of(own, project.project_id):
        if record["queue"] == QUEUE and "delivery_id" in record:
            seen = newest[record["message_id"]]
            said = (record["version"], record["state"])
            seen[record["delivery_id"]] = max(said, seen.get(record["delivery_id"], said))
    return {key: {each: state for each, (_, state) in seen.items()} for key, seen in newest.items()}


def bodies_at(endpoint: Endpoint) -> set[str]:
    return {each.body.decode() for each in list(endpoint.pushes)}


def as_lambda_has_it(value: object) -> object:
    """A time or bytes of a stream record, in the format of an event."""
    return b64encode(value).decode() if isinstance(value, bytes) else cast("datetime", value).timestamp()


def hand_over(own: RunningStack, held: list[dict[str, Any]]) -> None:
    """Let the records function read what the lost table's stream still held; reading it twice is harmless."""
    text = json.dumps({"Records": held}, default=as_lambda_has_it)
    answer = own.aws.functions().invoke(FunctionName=own.outputs["RecordsFunctionName"], Payload=text.encode())
    said = json.load(answer["Payload"])
    assert "FunctionError" not in answer, said


def rebuilt(own: RunningStack) -> set[str]:
    """Rebuild the table; returns the messages whose bodies are lost."""
    # (the messages may be from before midnight)
    since = (datetime.now(UTC) - timedelta(days=1)).date().isoformat()
    done = ran(own, "--json", "rebuild", "--since", since)
    assert done.code == 1, done.errors
    return {each["message"] for each in json.loads(done.printed) if each["not known"].startswith("its body")}


def drill(own: RunningStack, traffic: Traffic, sick: Endpoint) -> set[str]:
    """Lose the table and follow the runbook; returns the messages that are given up."""
    sick.wait(6)
    until(lambda: len(traffic.accepted) >= 10, 120, lambda: f"{len(traffic.accepted)} were accepted")
    # When the table is lost
    out_of_service(own, stopped=True)
    accepted = len(traffic.accepted)
    held = lose(own)
    until(lambda: traffic.refused, 120, lambda: "no post was refused without a table")
    hand_over(own, held)
    # And an empty one takes its place
    replace_table(own)
    until(lambda: len(traffic.accepted) > accepted + 3, 180, lambda: "no post was taken again")
    # And everything that can be recovered is rebuilt
    given_up = rebuilt(own)
    out_of_service(own, stopped=False)
    return given_up


def arrive(owed: set[str], endpoint: Endpoint) -> None:
    """Wait until all of them have arrived."""
    until(lambda: owed <= bodies_at(endpoint) or None, 240, lambda: f"{len(owed - bodies_at(endpoint))} did not come")


def shown(own: RunningStack, traffic: Traffic, given_up: set[str], well: Endpoint, sick: Endpoint) -> None:
    """Then everything accepted arrives at both, except the messages listed because their bodies were in the table."""
    named = {traffic.accepted[each] for each in given_up}
    assert len(named) >= 3
    assert not [each for each in named if len(each) > LARGE]
    owed = set(traffic.accepted.values()) - named
    arrive(owed, sick)
    arrive(owed, well)

    # And the records show the end of every accepted message
    def unsettled() -> list[str]:
        seen = states_of(own, traffic.project)
        return [key for key in traffic.accepted if len(seen.get(key, ())) < 2 or not set(seen[key].values()) <= SETTLED]

    until(lambda: not unsettled() or None, 240, lambda: f"open by their records: {unsettled()}")


def test_traffic_goes_on_after_the_messages_table_was_lost(own: RunningStack) -> None:
    # Given a subscriber that accepts everything, one that is down, and traffic
    mended = threading.Event()
    project = ProjectClient.default(own)
    traffic = Traffic(project=project)
    with Recorder() as recorder:
        well = recorder.endpoint()
        sick = recorder.endpoint(lambda peer, _: peer.answer(status="200 OK" if mended.is_set() else "503 Down"))
        project.make_push(QUEUE, well, sick, retries=100)
        with traffic.going():
            given_up = drill(own, traffic, sick)
            mended.set()
        shown(own, traffic, given_up, well, sick)
