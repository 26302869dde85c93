"""What a call of the SDK needs of IAM: actions, resources and condition keys, by the Service Authorization Reference.

Standard library only: the emulator's functions load it too. A call that is not known here is an error, so that none
goes by unseen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any

from .policies import Context, Need

Parameters = Mapping[str, Any]

OF_QUEUES = {
    "SendMessage": "SendMessage",
    "SendMessageBatch": "SendMessage",
    "ReceiveMessage": "ReceiveMessage",
    "DeleteMessage": "DeleteMessage",
    "DeleteMessageBatch": "DeleteMessage",
    "ChangeMessageVisibility": "ChangeMessageVisibility",
    "ChangeMessageVisibilityBatch": "ChangeMessageVisibility",
    "GetQueueAttributes": "GetQueueAttributes",
}
"""Actions of operations on queues: the one on a message allows the one on several."""
OF_TABLES = {"GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query", "Scan"}
OF_OBJECTS = {"GetObject": "GetObject", "PutObject": "PutObject", "DeleteObject": "DeleteObject"}
OF_BUCKETS = {"ListObjectsV2": "ListBucket", "HeadBucket": "ListBucket"}
OF_QUERIES = {"StartQueryExecution", "GetQueryExecution", "GetQueryResults"}
IN_A_TRANSACTION = {
    "Put": "PutItem",
    "Update": "UpdateItem",
    "Delete": "DeleteItem",
    "ConditionCheck": "ConditionCheckItem",
}
OF_CONNECTIONS = {"PostToConnection": "POST", "GetConnection": "GET", "DeleteConnection": "DELETE"}
"""The method of each operation, which is part of the resource of ``execute-api:ManageConnections``."""

_EXPRESSIONS = ("ProjectionExpression", "FilterExpression", "ConditionExpression", "UpdateExpression")
_NAME = re.compile(r"(?<![:\w#])#?[A-Za-z_]\w*")
_WORDS = {
    *("AND", "OR", "NOT", "IN", "BETWEEN", "SET", "REMOVE", "ADD", "DELETE", "size", "contains", "begins_with"),
    *("attribute_exists", "attribute_not_exists", "attribute_type", "list_append", "if_not_exists"),
}
_EQUALS = re.compile(r"^\s*\(?\s*[#\w]+\s*=\s*(:\w+)")
_INSERTED = re.compile(r'INSERT INTO "([^"]+)" VALUE \{(.*)\}')


class UnknownCall(ValueError):
    """What a call needs is not written down here."""


@dataclass(frozen=True)
class AccountPlace:
    """Where the resources are.

    Attributes:
        region: Of the resources that have one.
        account: Of the resources that have one.
        api: The id of the WebSocket API.
        workgroup: Athena's, which calls about a query do not name.
    """

    region: str
    account: str
    api: str = ""
    workgroup: str = ""

    def arn(self, service: str, name: str) -> str:
        """The ARN of something in this account and region."""
        return f"arn:aws:{service}:{self.region}:{self.account}:{name}"

    def table(self, name: str, index: str = "") -> str:
        """The ARN of a table, or of one of its indexes."""
        return self.arn("dynamodb", f"table/{name}" + (f"/index/{index}" if index else ""))

    def queue(self, url: str) -> str:
        """The ARN of a queue."""
        return self.arn("sqs", url.rpartition("/")[2])

    def key(self, key_id: str) -> str:
        """The ARN of a KMS key, given its id or its ARN."""
        return key_id if key_id.startswith("arn:") else self.arn("kms", f"key/{key_id}")

    def function(self, name: str) -> str:
        """The ARN of a function, given its name or its ARN."""
        return name if name.startswith("arn:") else self.arn("lambda", f"function:{name}")


def needs(service: str, operation: str, given: Parameters, place: AccountPlace) -> list[Need]:
    """What a call needs before it is made.

    Args:
        service: As boto3 names it.
        operation: As AWS writes it: ``PutItem``.
        given: Its parameters.

    Raises:
        UnknownCall: It is not known.
    """
    known = _SERVICES.get(service)
    found = list(known(operation, given, place)) if known else []
    if not found and (service, operation) not in _BY_ANSWER:
        raise UnknownCall(f"{service}:{operation}")
    return found


def needs_of_answer(
    service: str, operation: str, given: Parameters, answer: Parameters, place: AccountPlace
) -> list[Need]:
    """What a call needs that is known by its answer alone.

    A ciphertext knows its key; and who may not list a bucket is not told that an object is missing.

    Args:
        answer: What came, or the response of the error.
    """
    if service == "kms" and operation == "Decrypt" and "KeyId" in answer:
        return [Need("kms:Decrypt", place.key(answer["KeyId"]), _sealing(given))]
    if service == "s3" and operation == "GetObject" and answer.get("Error", {}).get("Code") == "NoSuchKey":
        return [Need("s3:ListBucket", f"arn:aws:s3:::{given['Bucket']}")]
    return []


_BY_ANSWER = {("kms", "Decrypt")}


def _dynamodb(operation: str, given: Parameters, place: AccountPlace) -> Iterator[Need]:
    if operation in OF_TABLES:
        context = _of_items(operation, given)
        yield Need(f"dynamodb:{operation}", place.table(given["TableName"], given.get("IndexName", "")), context)
    elif operation in {"BatchGetItem", "BatchWriteItem"}:
        for table, asked in given["RequestItems"].items():
            items = asked["Keys"] if operation == "BatchGetItem" else [_written(each) for each in asked]
            yield Need(f"dynamodb:{operation}", place.table(table), _of_keys(items))
    elif operation == "TransactWriteItems":
        for ((kind, write),) in (each.items() for each in given["TransactItems"]):
            action = IN_A_TRANSACTION[kind]
            yield Need(f"dynamodb:{action}", place.table(write["TableName"]), _of_items(action, write))
    elif operation == "BatchExecuteStatement":
        for each in given["Statements"]:
            inserted = _INSERTED.fullmatch(each["Statement"])
            if inserted is None:
                raise UnknownCall(each["Statement"])
            names = re.findall("'([^']+)': \\?", inserted[2])
            item = dict(zip(names, each["Parameters"], strict=True))
            yield Need("dynamodb:PartiQLInsert", place.table(inserted[1]), _of_keys([item]))


def _written(request: Parameters) -> Any:
    return request["PutRequest"]["Item"] if "PutRequest" in request else request["DeleteRequest"]["Key"]


def _of_keys(items: Sequence[Parameters]) -> Context:
    leading = tuple(_text(each["pk"]) for each in items)
    return {"dynamodb:leadingkeys": leading, "dynamodb:attributes": tuple({name for each in items for name in each})}


def _of_items(operation: str, given: Parameters) -> Context:
    """``dynamodb:LeadingKeys`` (a scan has none), ``dynamodb:Attributes`` and, of what reads, ``dynamodb:Select``."""
    context: dict[str, str | tuple[str, ...]] = {"dynamodb:attributes": tuple(sorted(_attributes(given)))}
    item = given.get("Key") or given.get("Item")
    if item:
        context["dynamodb:leadingkeys"] = (_text(item["pk"]),)
    elif operation == "Query":
        found = _EQUALS.match(given["KeyConditionExpression"])
        if found is None:
            raise UnknownCall(given["KeyConditionExpression"])
        context["dynamodb:leadingkeys"] = (_text(given["ExpressionAttributeValues"][found[1]]),)
    if operation in {"GetItem", "Query", "Scan"}:
        asked = "SPECIFIC_ATTRIBUTES" if "ProjectionExpression" in given else "ALL_ATTRIBUTES"
        context["dynamodb:select"] = given.get("Select", asked)
    return context


def _attributes(given: Parameters) -> set[str]:
    names = given.get("ExpressionAttributeNames", {})
    expressions = (given.get(each, "") for each in (*_EXPRESSIONS, "KeyConditionExpression"))
    used = chain.from_iterable(_names_in(each) for each in expressions if each)
    return {names.get(each, each) for each in used} | {*given.get("Key", ())} | {*given.get("Item", ())}


@lru_cache(maxsize=10_000)
def _names_in(expression: str) -> frozenset[str]:
    return frozenset(_NAME.findall(expression)) - _WORDS


def _text(value: Any) -> str:
    return str(value.get("S", value.get("N", "")) if isinstance(value, Mapping) else value)


def _sqs(operation: str, given: Parameters, place: AccountPlace) -> Iterator[Need]:
    if operation in OF_QUEUES:
        yield Need(f"sqs:{OF_QUEUES[operation]}", place.queue(given["QueueUrl"]))
    elif operation == "ListQueues":
        # It takes no resource, so only a right on every one grants it.
        yield Need("sqs:ListQueues", place.arn("sqs", "*"))


def _s3(operation: str, given: Parameters, place: AccountPlace) -> Iterator[Need]:  # noqa: ARG001 (a bucket has no account in its ARN)
    if operation in OF_OBJECTS:
        context = {"s3:if-none-match": given["IfNoneMatch"]} if "IfNoneMatch" in given else {}
        yield Need(f"s3:{OF_OBJECTS[operation]}", f"arn:aws:s3:::{given['Bucket']}/{given['Key']}", context)
    elif operation in OF_BUCKETS:
        context = {"s3:prefix": given["Prefix"]} if "Prefix" in given else {}
        yield Need(f"s3:{OF_BUCKETS[operation]}", f"arn:aws:s3:::{given['Bucket']}", context)


def _kms(operation: str, given: Parameters, place: AccountPlace) -> Iterator[Need]:
    if operation == "GenerateDataKey":
        yield Need("kms:GenerateDataKey", place.key(given["KeyId"]), _sealing(given))


def _sealing(given: Parameters) -> Context:
    context = given.get("EncryptionContext", {})
    return {f"kms:encryptioncontext:{name.lower()}": value for name, value in context.items()}


def _lambda(operation: str, given: Parameters, place: AccountPlace) -> Iterator[Need]:
    if operation == "Invoke":
        yield Need("lambda:InvokeFunction", place.function(given["FunctionName"]))


def _connections(operation: str, given: Parameters, place: AccountPlace) -> Iterator[Need]:
    if operation in OF_CONNECTIONS:
        path = f"{place.api}/live/{OF_CONNECTIONS[operation]}/@connections/{given['ConnectionId']}"
        yield Need("execute-api:ManageConnections", place.arn("execute-api", path))


def _glue(operation: str, given: Parameters, place: AccountPlace) -> Iterator[Need]:
    if operation == "StartJobRun":
        yield Need("glue:StartJobRun", place.arn("glue", f"job/{given['JobName']}"))


def _athena(operation: str, given: Parameters, place: AccountPlace) -> Iterator[Need]:
    if operation in OF_QUERIES:
        yield Need(f"athena:{operation}", place.arn("athena", f"workgroup/{given.get('WorkGroup', place.workgroup)}"))


def _events(operation: str, given: Parameters, place: AccountPlace) -> Iterator[Need]:
    for each in given["Entries"] if operation == "PutEvents" else ():
        yield Need("events:PutEvents", place.arn("events", "event-bus/default"), {"events:source": each["Source"]})


def _sts(operation: str, given: Parameters, place: AccountPlace) -> Iterator[Need]:  # noqa: ARG001 (a role names its account)
    if operation == "AssumeRole":
        role = given["RoleArn"]
        yield Need("sts:AssumeRole", role, {"aws:resourceaccount": role.split(":")[4]})


_SERVICES: dict[str, Callable[[str, Parameters, AccountPlace], Iterator[Need]]] = {
    "dynamodb": _dynamodb,
    "sqs": _sqs,
    "s3": _s3,
    "kms": _kms,
    "lambda": _lambda,
    "apigatewaymanagementapi": _connections,
    "glue": _glue,
    "athena": _athena,
    "events": _events,
    "sts": _sts,
}


def needs_of_mapping(mapping: Mapping[str, Any]) -> list[Need]:
    """What Lambda does with a function's role for an event source mapping."""
    source = mapping["EventSourceArn"]
    of_queues = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes")
    of_streams = ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams")
    actions = of_queues if ":sqs:" in source else [f"dynamodb:{each}" for each in of_streams]
    found = [Need(each, source) for each in actions]
    failures = mapping.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination")
    return [*found, *([Need("sqs:SendMessage", failures)] if failures else [])]


_OTHERWISE = {"s3": "AccessDenied", "sqs": "AccessDenied"}


def refusal(service: str, need: Need, caller: str) -> dict[str, str]:
    """The ``Error`` of AWS's answer to a call that is refused."""
    return {
        "Code": _OTHERWISE.get(service, "AccessDeniedException"),
        "Message": (
            f"User: {caller} is not authorized to perform: {need.action} on resource: {need.resource} because no "
            f"identity-based policy allows the {need.action} action"
        ),
    }
