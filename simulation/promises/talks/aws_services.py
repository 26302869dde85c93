"""Services on AWS, as a talk has them: what each was sent, how it takes everything, and the URL that leads to it.

Sources: docs/destinations.md; the API references of SQS, SNS, EventBridge, Lambda, S3 and Kinesis.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, quote, unquote

from simulation.promises.talks.talk import Came

ACCOUNT, REGION, KEY_ID = "111122223333", "eu-west-1", "AKIAIOSFODNN7EXAMPLE"


@dataclass(frozen=True)
class Got:
    """A message, as a service on AWS gets it.

    Attributes:
        body: What it carries.
        attributes: Its attributes, in order.
        group: Its message group or partition.
        once: Its id for deduplication.
        named: What else it says, by the service's own names.
        count: Of how many of a call it is one.
    """

    body: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    group: str = ""
    once: str = ""
    named: Mapping[str, Any] = field(default_factory=dict)
    count: int = 1


def _of_queue(came: Came) -> Iterator[Got]:
    said = json.loads(came.body)
    entries = said.get("Entries", [said])
    for each in entries:
        attributes = {name: one["StringValue"] for name, one in each["MessageAttributes"].items()}
        group, once = each.get("MessageGroupId", ""), each.get("MessageDeduplicationId", "")
        yield Got(each["MessageBody"], attributes, group, once, {"QueueUrl": said["QueueUrl"]}, len(entries))


def _of_topic(came: Came) -> Iterator[Got]:
    form = dict(parse_qsl(came.body.decode(), keep_blank_values=True))
    places = sorted({each for name in form for each in re.findall(r"^PublishBatchRequestEntries\.member\.\d+\.", name)})
    for place in places or [""]:
        names = sorted(
            (name for name in form if re.fullmatch(rf"{re.escape(place)}MessageAttributes\.entry\.\d+\.Name", name)),
            key=lambda name: int(name.split(".")[-2]),
        )
        attributes = {form[name]: form[name.replace(".Name", ".Value.StringValue")] for name in names}
        group, once = form.get(f"{place}MessageGroupId", ""), form.get(f"{place}MessageDeduplicationId", "")
        yield Got(form[f"{place}Message"], attributes, group, once, {"TopicArn": form["TopicArn"]}, len(places) or 1)


def _of_bus(came: Came) -> Iterator[Got]:
    entries = json.loads(came.body)["Entries"]
    for each in entries:
        yield Got(each["Detail"], named=each, count=len(entries))


def _of_function(came: Came) -> Iterator[Got]:
    said = json.loads(came.body)
    body = base64.b64decode(said["body"]).decode() if said["isBase64Encoded"] else said["body"]
    yield Got(body, said["headers"], named={"function": unquote(came.path), "query": came.query})


def _of_bucket(came: Came) -> Iterator[Got]:
    yield Got(came.body.decode(), named={"key": unquote(came.path), "method": came.method})


def _of_stream(came: Came) -> Iterator[Got]:
    said = json.loads(came.body)
    for each in said["Records"]:
        data = base64.b64decode(each["Data"]).decode()
        yield Got(
            data, group=each["PartitionKey"], named={"StreamName": said["StreamName"]}, count=len(said["Records"])
        )


READ: Mapping[str, Callable[[Came], Iterator[Got]]] = {
    "sqs": _of_queue,
    "sns": _of_topic,
    "events": _of_bus,
    "lambda": _of_function,
    "s3": _of_bucket,
    "kinesis": _of_stream,
}


def got(kind: str, came: Sequence[Came]) -> list[Got]:
    """What a service of a kind was sent."""
    return [one for each in came for one in READ[kind](each)]


def takes(kind: str) -> Callable[[Came], tuple[int, bytes]]:
    """A service of a kind that takes everything which it can take."""

    def answers(came: Came) -> tuple[int, bytes]:
        if kind == "s3" and came.path != quote(unquote(came.path)):
            # It escapes a path anew, and verifies the signature of that.
            return 403, b"<Error><Code>SignatureDoesNotMatch</Code></Error>"
        if kind == "sqs" and not all(each.body for each in READ[kind](came)):
            return 400, b'{"__type": "com.amazonaws.sqs#MissingParameter"}'
        count = len([*READ[kind](came)])
        said: Any = {"MessageId": "m"}
        if kind == "events":
            said = {"FailedEntryCount": 0, "Entries": count * [{"EventId": "e"}]}
        elif kind == "kinesis":
            said = {"FailedRecordCount": 0, "Records": count * [{"SequenceNumber": "1", "ShardId": "0"}]}
        elif kind == "sqs" and came.headers["x-amz-target"].endswith("Batch"):
            said = {"Successful": [{"Id": str(each), "MessageId": "m"} for each in range(count)], "Failed": []}
        elif kind == "sns":
            done = "".join(f"<member><Id>{each}</Id></member>" for each in range(count))
            batch = f"<PublishBatchResult><Successful>{done}</Successful><Failed/></PublishBatchResult>"
            return 200, (batch if b"PublishBatch" in came.body else "<PublishResponse/>").encode()
        return 200, b"" if kind in {"lambda", "s3"} else json.dumps(said).encode()

    return answers


def url_of(kind: str, host: str, *, name: str = "orders", **options: str) -> str:
    """The URL of a service of a kind, which is at a host; with an access key if it names no role."""
    key = "" if "role" in options else f"{KEY_ID}:wJalrXUtnFEMI%2FK7MDENG@"
    named = "&".join(f"{each}={quote(value, safe='')}" for each, value in options.items())
    place = f"endpoint={quote(f'https://{host}', safe='')}"
    return f"{kind}://{key}{REGION}/{ACCOUNT}/{name}?{place}" + (f"&{named}" if named else "")


__all__ = ["ACCOUNT", "KEY_ID", "REGION", "Got", "got", "takes", "url_of"]
