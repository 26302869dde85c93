"""Calls that succeed at once go a shorter way, and nobody but the CPU notices."""

from __future__ import annotations

import json
import re
import ssl
import threading
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import boto3
import pytest
from tests.hostile.certificates import Authority

from pushhub.base.errors import Unavailable
from pushhub.cloud.calls import ConditionRefused, aws_call
from pushhub.cloud.clients import Clients
from pushhub.cloud.deadline import Deadline
from pushhub.cloud.first_tries import OPERATIONS, FirstTries, tls

KEY = {"pk": {"S": "a"}, "sk": {"S": "b"}}
CLOSED = 0
"""Stands for a connection that is closed instead of an answer."""


@dataclass
class Asked:
    """A request as the service got it."""

    target: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class Service:
    """A service on loopback. It answers each request by the next of its answers, and by the last one from then on."""

    answers: list[Callable[[Asked], tuple[int, bytes, dict[str, str]]]]
    asked: list[Asked] = field(default_factory=list)
    connections: set[Any] = field(default_factory=set)
    url: str = ""

    def answer(self, asked: Asked) -> tuple[int, bytes, dict[str, str]]:
        self.asked.append(asked)
        return self.answers[min(len(self.asked), len(self.answers)) - 1](asked)


@contextmanager
def service(*answers: tuple[int, Any], secure: ssl.SSLContext | None = None) -> Iterator[Service]:
    with served(*(_says(status, said) for status, said in answers), secure=secure) as made:
        yield made


def _says(status: int, said: Any) -> Callable[[Asked], tuple[int, bytes, dict[str, str]]]:
    return lambda _: (status, json.dumps(said).encode(), {})


@contextmanager
def served(
    *answers: Callable[[Asked], tuple[int, bytes, dict[str, str]]], secure: ssl.SSLContext | None = None
) -> Iterator[Service]:
    made = Service(list(answers))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            made.connections.add(self.client_address)
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            target = self.headers["X-Amz-Target"].rpartition(".")[2]
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, said, more = made.answer(Asked(target, self.path, headers, body))
            self.close_connection = status == CLOSED or more.get("X-Then") == "close"
            if status == CLOSED:
                return
            self.send_response(status)
            for name, value in {**more, "Content-Length": str(len(said))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """A client that does not trust it goes away."""

    with Server(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        made.url = f"{'https' if secure else 'http'}://127.0.0.1:{server.server_port}"
        if secure:
            # Its handshakes are for the threads of connections.
            server.socket = secure.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield made
        server.shutdown()


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "none")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    # Between its tries, the SDK waits for up to a second.
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _: None)


@pytest.fixture
def by_the_sdk(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Any]:
    """Makes clients without the shorter way."""

    def client(name: str, url: str) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(FirstTries, "watch", lambda *_: None)
            return Clients().of(name, endpoint_url=url)

    return client


ITEM = {
    **KEY,
    "body": {"B": "AAEC/w=="},
    "parts": {"BS": ["AA==", "/w=="]},
    "places": {"M": {"B": {"S": "a map's own name"}, "BS": {"L": [{"B": "AQ=="}]}}},
    "none": {"NULL": True},
    "count": {"N": "12345678901234567890"},
}
CALLS: dict[tuple[str, str], tuple[dict[str, Any], dict[str, Any]]] = {
    ("dynamodb", "GetItem"): ({"TableName": "t", "Key": KEY}, {"Item": ITEM}),
    ("dynamodb", "PutItem"): ({"TableName": "t", "Item": {**KEY, "body": {"B": b"\x00\x01"}}}, {}),
    ("dynamodb", "UpdateItem"): (
        {"TableName": "t", "Key": KEY, "UpdateExpression": "ADD a :b", "ReturnValues": "ALL_NEW"},
        {"Attributes": ITEM},
    ),
    ("dynamodb", "DeleteItem"): ({"TableName": "t", "Key": KEY, "ReturnValues": "ALL_OLD"}, {"Attributes": ITEM}),
    ("dynamodb", "Query"): (
        {"TableName": "t", "KeyConditionExpression": "pk = :a", "Limit": 2},
        {"Items": [ITEM, KEY], "Count": 2, "ScannedCount": 2, "LastEvaluatedKey": KEY},
    ),
    ("dynamodb", "BatchGetItem"): (
        {"RequestItems": {"t": {"Keys": [KEY]}}},
        {"Responses": {"t": [ITEM]}, "UnprocessedKeys": {"t": {"Keys": [KEY], "ConsistentRead": True}}},
    ),
    ("dynamodb", "BatchWriteItem"): (
        {"RequestItems": {"t": [{"PutRequest": {"Item": KEY}}]}},
        {"UnprocessedItems": {"t": [{"PutRequest": {"Item": ITEM}}]}},
    ),
    ("dynamodb", "BatchExecuteStatement"): (
        {"Statements": [{"Statement": "INSERT", "Parameters": [{"B": b"a"}]}]},
        {"Responses": [{"TableName": "t"}, {"Error": {"Code": "DuplicateItem", "Message": "there"}}]},
    ),
    ("dynamodb", "TransactWriteItems"): (
        {"TransactItems": [{"Delete": {"TableName": "t", "Key": KEY}}], "ClientRequestToken": "once"},
        {},
    ),
    ("sqs", "SendMessageBatch"): (
        {"QueueUrl": "http://q/1", "Entries": [{"Id": "0", "MessageBody": "é", "DelaySeconds": 3}]},
        {
            "Successful": [{"Id": "0", "MessageId": "m", "MD5OfMessageBody": "5f"}],
            "Failed": [{"Id": "1", "SenderFault": False, "Code": "InternalError"}],
        },
    ),
    ("sqs", "ReceiveMessage"): (
        {"QueueUrl": "http://q/1", "MaxNumberOfMessages": 10, "WaitTimeSeconds": 1},
        {"Messages": [{"MessageId": "m", "Body": '{"B": "AA=="}', "Attributes": {"SentTimestamp": "17"}}]},
    ),
    ("sqs", "DeleteMessageBatch"): (
        {"QueueUrl": "http://q/1", "Entries": [{"Id": "0", "ReceiptHandle": "h"}]},
        {"Successful": [{"Id": "0"}], "Failed": []},
    ),
    ("sqs", "ChangeMessageVisibilityBatch"): (
        {"QueueUrl": "http://q/1", "Entries": [{"Id": "0", "ReceiptHandle": "h", "VisibilityTimeout": 1}]},
        {"Successful": [{"Id": "0"}], "Failed": []},
    ),
}


def test_each_operation_has_an_example() -> None:
    assert {*CALLS} == {(each, name) for each, names in OPERATIONS.items() for name in names}


@pytest.mark.parametrize(("name", "operation"), CALLS)
def test_a_call_asks_and_answers_as_the_sdk_does(
    name: str, operation: str, by_the_sdk: Callable[[str, str], Any]
) -> None:
    given, said = CALLS[name, operation]
    method = re.sub("(?<!^)([A-Z])", r"_\1", operation).lower()
    with service((200, said)) as at:
        # When a call is made by the SDK alone, and with a shorter way
        theirs = getattr(by_the_sdk(name, at.url), method)(**given)
        ours = getattr(Clients().of(name, endpoint_url=at.url), method)(**given)
    # Then its answer is the same
    metadata = theirs.pop("ResponseMetadata")
    assert metadata["HTTPStatusCode"] == 200
    assert ours == theirs
    # And what the service was asked, but for what the SDK says of its tries
    first, second = at.asked
    assert (first.target, first.path, first.body) == (second.target, second.path, second.body)
    tries = {"amz-sdk-invocation-id", "amz-sdk-request"}
    assert first.headers.keys() - second.headers.keys() <= tries
    differing = {each for each in second.headers if first.headers.get(each) != second.headers[each]}
    assert differing <= {"x-amz-date", "authorization", "user-agent"}
    # (Powertools, where it was imported, adds its own name at the end of what the SDK sends)
    assert first.headers["user-agent"].startswith(second.headers["user-agent"])
    # And both signed the same
    scopes = [re.sub("Signature=.*", "", each.headers["authorization"]) for each in (first, second)]
    assert scopes[0].replace(";amz-sdk-invocation-id;amz-sdk-request", "") == scopes[1]


def test_the_signature_covers_what_others_have_added(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a function of AWS, by whose trace Lambda recognizes endless recursion
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "push")
    monkeypatch.setenv("_X_AMZN_TRACE_ID", "Root=1-2-3")
    with service((200, {})) as at:
        Clients().of("sqs", endpoint_url=at.url).delete_message_batch(QueueUrl="http://q/1", Entries=[])
    # Then its calls carry that
    assert at.asked[0].headers["x-amzn-trace-id"] == "Root=1-2-3"


def test_a_refused_condition_is_told_as_by_the_sdk_after_one_request() -> None:
    # Given a write whose condition is not met
    refusal = {"__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException", "Item": ITEM}
    with service((400, refusal)) as at:
        client = Clients().of("dynamodb", endpoint_url=at.url)
        with pytest.raises(ConditionRefused) as refused, aws_call("dynamodb:PutItem"):
            client.put_item(TableName="t", Item=KEY)
        # Then the stored item comes with the refusal, its bytes read
        assert refused.value.stored["body"] == {"B": b"\x00\x01\x02\xff"}
        assert len(at.asked) == 1
        # And the next call has nothing of it
        at.answers = [_says(200, {})]
        assert client.put_item(TableName="t", Item=KEY) == {}


@pytest.mark.parametrize(
    "first",
    [
        (500, {"__type": "InternalServerError"}),
        (400, {"__type": "ProvisionedThroughputExceededException"}),
        (CLOSED, None),
    ],
)
def test_what_passes_is_tried_again_by_the_sdk(first: tuple[int, Any]) -> None:
    # Given a service that fails once
    with service(first, (200, {"Item": ITEM})) as at:
        found = Clients().of("dynamodb", endpoint_url=at.url).get_item(TableName="t", Key=KEY)["Item"]
    # Then the second try is answered
    assert found["body"] == {"B": b"\x00\x01\x02\xff"}
    assert len(at.asked) == 2


@pytest.mark.parametrize("answer", [(503, {}), (CLOSED, None)])
def test_a_call_is_tried_four_times_in_all(answer: tuple[int, Any]) -> None:
    with service(answer) as at:
        client = Clients().of("dynamodb", endpoint_url=at.url)
        with pytest.raises(Unavailable), aws_call("dynamodb:GetItem"):
            client.get_item(TableName="t", Key=KEY)
    assert len(at.asked) == 4


def test_a_service_that_is_not_there_is_unavailable() -> None:
    with service((200, {})) as gone:
        pass
    client = Clients().of("dynamodb", endpoint_url=gone.url)
    with pytest.raises(Unavailable, match="EndpointConnectionError"), aws_call("dynamodb:GetItem"):
        client.get_item(TableName="t", Key=KEY)


def test_an_answer_that_differs_from_its_checksum_is_asked_for_again() -> None:
    # Given an answer that was damaged on its way
    whole = b'{"Item": {"pk": {"S": "a"}}}'
    checksum = {"x-amz-crc32": str(zlib.crc32(whole))}
    with served(lambda _: (200, whole.replace(b'"a"', b'"b"'), checksum), lambda _: (200, whole, checksum)) as at:
        found = Clients().of("dynamodb", endpoint_url=at.url).get_item(TableName="t", Key=KEY)
    assert found["Item"] == {"pk": {"S": "a"}}
    assert len(at.asked) == 2


def test_connections_are_used_again_unless_the_service_has_closed_them() -> None:
    # Given a service that closes its connection after the third answer, without a word
    said: list[Callable[[Asked], tuple[int, bytes, dict[str, str]]]] = [lambda _: (200, b"{}", {})] * 2
    said += [lambda _: (200, b"{}", {"X-Then": "close"}), lambda _: (200, b"{}", {})]
    with served(*said) as at:
        client = Clients().of("dynamodb", endpoint_url=at.url)
        for _ in range(3):
            client.put_item(TableName="t", Item=KEY)
        assert len(at.connections) == 1
        # Then the next call has another one, whether it sees that or is told so by the answer that does not come
        client.put_item(TableName="t", Item=KEY)
    assert len(at.connections) == 2


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Authority]:
    """Whom the SDK trusts."""
    made = Authority(tmp_path)
    monkeypatch.setenv("AWS_CA_BUNDLE", made.ca_file)
    tls.cache_clear()
    yield made
    tls.cache_clear()


def test_connections_are_secure_and_used_again(authority: Authority) -> None:
    # Given a service with a certificate of an authority that the SDK trusts
    with service((200, {"Item": ITEM}), secure=authority.server("127.0.0.1")) as at:
        client = Clients().of("dynamodb", endpoint_url=at.url)
        # When it is called three times, then it answers on one connection
        for _ in range(3):
            assert client.get_item(TableName="t", Key=KEY)["Item"]["body"] == {"B": b"\x00\x01\x02\xff"}
    assert len(at.asked) == 3
    assert len(at.connections) == 1


@pytest.mark.parametrize(("host", "trusted"), [("127.0.0.1", False), ("other.example", True)])
def test_a_service_with_another_certificate_is_told_nothing(authority: Authority, host: str, trusted: bool) -> None:
    with service((200, {"Item": KEY}), secure=authority.server(host, trusted=trusted)) as at:
        client = Clients().of("dynamodb", endpoint_url=at.url)
        with pytest.raises(Unavailable), aws_call("dynamodb:GetItem"):
            client.get_item(TableName="t", Key=KEY)
    assert at.asked == []


def test_threads_get_their_own_answers() -> None:
    # Given a service that answers with the key it was asked for, and threads that share a client
    with served(lambda asked: (200, json.dumps({"Item": asked.body["Key"]}).encode(), {})) as at:
        client = Clients().of("dynamodb", endpoint_url=at.url)

        def ask(number: int) -> bool:
            key = {"pk": {"S": str(number)}, "sk": {"S": "x"}}
            return bool(client.get_item(TableName="t", Key=key)["Item"] == key)

        with ThreadPoolExecutor(8) as pool:
            # Then each reads its own item
            assert all(pool.map(ask, range(200)))


def test_with_little_time_left_a_call_goes_the_way_of_hurried_ones() -> None:
    until = Deadline(lambda: 0.0)
    with service((200, {"Item": KEY})) as at:
        client = Clients(until).of("dynamodb", endpoint_url=at.url)
        with until.within(6):
            answer = client.get_item(TableName="t", Key=KEY)
    # (it is the SDK that adds these)
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 200
    assert answer["Item"] == KEY


def test_behind_a_proxy_calls_go_through_it(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a proxy
    with service((200, {"Item": KEY})) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        answer = Clients().of("dynamodb", endpoint_url="http://tables.example").get_item(TableName="t", Key=KEY)
    # Then it is asked for the service's address
    assert answer["Item"] == KEY
    assert proxy.asked[0].path == "http://tables.example/"


def test_other_clients_are_left_alone() -> None:
    with service((200, {"QueueUrls": ["http://q/1"]})) as at:
        # An operation whose answers may hold more than plain JSON, and a client that was made elsewhere
        answer = Clients().of("sqs", endpoint_url=at.url).list_queues()
        assert "ResponseMetadata" in answer
        assert "ResponseMetadata" in boto3.client("sqs", endpoint_url=at.url).delete_message_batch(
            QueueUrl="http://q/1", Entries=[]
        )
