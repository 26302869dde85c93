"""What opens something: random secrets are written through every route that takes one, used, and then searched for in
every table, bucket and file of the stack; then the key that sealed them is changed and goes.

It has a stack of its own, because it changes settings of functions and a key goes.
"""

from __future__ import annotations

import gzip
import json
import secrets
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import quote

import boto3
import pytest
import requests
from tests.stack.endpoints import Endpoint, Push, Recorder
from tests.stack.operating import ran
from tests.stack.project import ProjectClient, unique, until
from tests.stack.running import RunningStack

pytestmark = pytest.mark.stack

SECONDS = 240
VAULTS = ("Control", "Push", "Poll")


@pytest.fixture(scope="module")
def recorder() -> Iterator[Recorder]:
    with Recorder() as recorder:
        yield recorder


class Tenant:
    """A tenant whose every setting that may hold a secret holds a random one.

    Attributes:
        secrets: All that were given, by where.
    """

    def __init__(self, stack: RunningStack, recorder: Recorder) -> None:
        self.secrets: dict[str, str] = {}
        self.project = ProjectClient.another(stack)
        self.queue, self.other = unique("orders"), unique("other")
        self.pushed, self.mapped, self.hooked = (recorder.endpoint() for _ in range(3))
        self._stack = stack
        self._queues(recorder)
        self._store(recorder)
        self._webhooks()

    def _secret(self, where: str) -> str:
        self.secrets[where] = f"zQ{secrets.token_hex(16)}"
        return self.secrets[where]

    def _with_user(self, endpoint: Endpoint, where: str) -> str:
        return endpoint.url.replace("://", f"://shop:{self._secret(where)}@")

    def call(self, path: str, body: Any = None, *, method: str = "POST") -> Any:
        """Call the store's API or that of webhooks."""
        token = self.project.token
        headers = {"Authorization": f"Bearer {token}", "X-Augury-Token": token}
        answer = requests.request(method, self._stack.base_url + path, json=body, headers=headers, timeout=60)
        assert answer.status_code < 300, answer.text
        # Sealed or not, nothing that was given is shown again, except what is made for its owner to see.
        shown = {where for where, each in self.secrets.items() if each in answer.text}
        assert shown <= {"integration token", "plain header of an endpoint"}, answer.text
        return answer.json() if answer.content else None

    def _queues(self, recorder: Recorder) -> None:
        another = ProjectClient.another(self._stack)
        self.secrets["ironmq token"] = another.token
        another.make_queue("inbox")
        self.project.make_push(
            self.queue,
            {
                "name": "shop",
                "url": self._with_user(self.pushed, "password of a subscriber"),
                "headers": {
                    "Authorization": f"Bearer {self._secret('header of a subscriber')}",
                    "X-Own": self._secret("own header of a subscriber"),
                },
            },
            {"name": "queue", "url": f"ironmq://{another.project_id}:{another.token}@/inbox"},
        )
        worker = f"ironworker://{another.project_id}:{self._secret('worker token')}@127.0.0.1:9/work"
        for method, name in (("POST", "added"), ("POST", "worker")):
            url = worker if name == "worker" else self._with_user(recorder.endpoint(), "password of an added one")
            added = {"name": name, "url": url, "headers": {"X-Api-Key": self._secret(f"header of {name}")}}
            self.project.take(method, f"/queues/{self.queue}/subscribers", {"subscribers": [added]})
        # Written back as it is shown
        shown = self.project.info(self.queue)["push"]["subscribers"]
        assert not any(each in json.dumps(shown) for each in self.secrets.values())
        self.project.take("PUT", f"/queues/{self.queue}/subscribers", {"subscribers": shown})

    def _store(self, recorder: Recorder) -> None:
        store = f"/api/stores/{self.project.project_id}"
        # Named like one, or of the type
        by_name = self.call(f"{store}/parameters", {"name": "acme.api_key", "value": self._secret("parameter")})
        typed = {"name": "acme.login", "value": self._secret("password"), "data_type": "password"}
        by_type = self.call(f"{store}/parameters", typed)
        mapping = {
            "name": "acme.import",
            "url": self.mapped.url,
            "token": self._secret("mapping token"),
            "messages": ["order:new"],
            "parameters": [by_name["id"], by_type["id"]],
        }
        created = self.call(f"{store}/mappings", {"mapping": mapping})
        self.call(f"{store}/mappings/{created['id']}", {"mapping": {**created, "name": "acme.other"}}, method="PUT")
        integration = {"name": "shop", "url": recorder.endpoint().url, "category": "custom"}
        token = self._secret("integration token")
        registered = self.call(f"{store}/integrations", {"integration": {**integration, "token": token}})
        signed_up = {"parameters": {"secret": self._secret("parameter of a sign-up")}, "enabled": []}
        self.call(f"{store}/integrations/{registered['id']}/signup", signed_up)
        self.call(f"{store}/parameters", method="GET")
        self.store = store

    def _webhooks(self) -> None:
        self.app = self.call("/api/v1/app", {"name": "shop"})["id"]
        endpoint = {
            "url": self._with_user(self.hooked, "password of an endpoint"),
            "headers": {
                "Authorization": self._secret("header of an endpoint"),
                "X-Own": self._secret("plain header of an endpoint"),
            },
        }
        created = self.call(f"/api/v1/app/{self.app}/endpoint", endpoint)
        path = f"/api/v1/app/{self.app}/endpoint/{created['id']}"
        self.call(path, {"url": created["url"], "description": "x"}, method="PUT")
        more = {"headers": {"X-Token": self._secret("changed header of an endpoint")}}
        self.call(f"{path}/headers", more, method="PATCH")
        self.call(f"{path}/headers", method="GET")

    def use(self, body: str) -> None:
        """Have every secret that is sent anywhere sent there, and see that it arrives."""
        counts = [len(each.pushes) for each in (self.pushed, self.mapped, self.hooked)]
        (message,) = self.project.post(self.queue, body)
        self.call(f"{self.store}/messages", {"message": "order:new", "payload": {"number": body}})
        self.call(f"/api/v1/app/{self.app}/msg", {"eventType": "order.new", "payload": {"number": body}})
        known = self.secrets
        pushed = self.pushed.wait(counts[0] + 1, SECONDS)[-1]
        assert _headers(pushed)["authorization"] == f"Bearer {known['header of a subscriber']}"
        assert _headers(pushed)["x-own"] == known["own header of a subscriber"]
        mapped = self.mapped.wait(counts[1] + 1, SECONDS)[-1]
        assert _headers(mapped)["x-augury-token"] == known["mapping token"]
        assert known["parameter"].encode() in mapped.body
        assert known["password"].encode() in mapped.body
        hooked = self.hooked.wait(counts[2] + 1, SECONDS)[-1]
        assert _headers(hooked)["authorization"] == known["header of an endpoint"]
        assert _headers(hooked)["x-own"] == known["plain header of an endpoint"]
        assert _headers(hooked)["x-token"] == known["changed header of an endpoint"]
        # In statuses and attempts they are not shown
        statuses = json.dumps(self.project.statuses(self.queue, message))
        assert not any(each in statuses for each in known.values())
        self.call(f"/api/v1/app/{self.app}/attempt/endpoint/{self._endpoint()}", method="GET")

    def _endpoint(self) -> str:
        listed = self.call(f"/api/v1/app/{self.app}/endpoint", method="GET")
        return str(listed["data"][0]["id"])


def _headers(push: Push) -> dict[str, str]:
    return {name.lower(): value for name, value in push.headers.items()}


def forms(secret: str) -> set[bytes]:
    """A secret in every form that something stored may have it in."""
    found = {secret.encode(), quote(secret).encode(), secret.encode().hex().encode()}
    for shift in range(3):
        # In the middle of a longer text, base64 depends on the place
        padded = b"x" * shift + secret.encode()
        for encode in (b64encode, urlsafe_b64encode):
            found.add(encode(padded)[4 if shift else 0 :].rstrip(b"=")[:-2])
    return found


def stored(stack: RunningStack) -> Iterator[tuple[str, bytes]]:
    """Everything in tables, buckets and files of a stack, with where it is."""
    dynamodb, s3 = stack.aws.dynamodb(), stack.aws.s3()
    for table in dynamodb.list_tables()["TableNames"]:
        for scanned in dynamodb.get_paginator("scan").paginate(TableName=table):
            for item in scanned["Items"]:
                yield table, repr(item).encode()
    for bucket in s3.list_buckets()["Buckets"]:
        for listed in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket["Name"]):
            for each in listed.get("Contents", []):
                content = s3.get_object(Bucket=bucket["Name"], Key=each["Key"])["Body"].read()
                yield f"{bucket['Name']}/{each['Key']}", _unpacked(content)
    for path in stack.place.home.rglob("*"):
        # The tokens of projects are there for those who use the stack. A file that is replaced is gone for a moment.
        if path.is_file() and path not in (stack.place.projects, stack.place.home / "local.json"):
            with suppress(FileNotFoundError):
                yield str(path), _unpacked(path.read_bytes())


def _unpacked(content: bytes) -> bytes:
    return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content


def assert_found_nowhere(stack: RunningStack, given: dict[str, str]) -> None:
    wanted = {where: forms(each) for where, each in given.items()}
    found: set[tuple[str, str]] = set()
    searched = 0
    for place, content in stored(stack):
        searched += 1
        found |= {(where, place) for where, each in wanted.items() if any(form in content for form in each)}
    assert searched > 50
    assert not found


def seal_with(stack: RunningStack, key: str) -> None:
    """What a deployment with another ``KmsKeyArn`` changes for the functions, their roles and the command."""
    functions = stack.aws.functions()
    iam: Any = boto3.client("iam", **stack.client_arguments)
    allowed = {"Effect": "Allow", "Action": ["kms:GenerateDataKey", "kms:Decrypt"], "Resource": key}
    for name in VAULTS:
        function = stack.outputs[f"{name}FunctionName"]
        deployed = functions.get_function_configuration(FunctionName=function)
        variables = deployed["Environment"]["Variables"]
        iam.put_role_policy(
            RoleName=deployed["Role"].rpartition("/")[2],
            PolicyName="present-key",
            PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [allowed]}),
        )
        functions.update_function_configuration(
            FunctionName=function, Environment={"Variables": variables | {"VAULT_KEY": key}}
        )
        stack.kill_function_workers(name.lower())
    described = stack.place.home / "local.json"
    content = json.loads(described.read_text())
    content["outputs"]["VaultKeyArn"] = key
    described.write_text(json.dumps(content))


def test_secrets_are_found_nowhere_and_survive_a_change_of_key(own: RunningStack, recorder: Recorder) -> None:
    # Given secrets in every setting that takes one, all of which have been used
    tenant = Tenant(own, recorder)
    tenant.use("first")
    records = own.outputs["RecordsBucketName"]
    s3 = own.aws.s3()
    until(lambda: s3.list_objects_v2(Bucket=records, Prefix="records/").get("Contents"), SECONDS, lambda: "no records")
    # Then none is found in any table, bucket or file, in any form
    assert_found_nowhere(own, tenant.secrets)
    # When another key seals from now on, then what the first one sealed opens
    kms: Any = boto3.client("kms", **own.client_arguments)
    former = own.outputs["VaultKeyArn"]
    present = kms.create_key()["KeyMetadata"]["Arn"]
    seal_with(own, present)
    tenant.use("second")
    # When everything is sealed anew, in a dry run first, then nothing needs the former key
    dry = ran(own, "reseal", "--dry-run")
    assert dry.code == 1, dry.errors
    assert former in dry.printed
    assert present not in dry.printed
    done = ran(own, "reseal")
    assert done.code == 0, done.errors
    assert former in done.errors
    again = ran(own, "reseal")
    assert again.code == 0, again.errors
    assert "sealed anew: 0" in again.errors
    assert former not in again.printed
    # And it may go
    kms.disable_key(KeyId=former)
    for name in VAULTS:
        own.kill_function_workers(name.lower())
    tenant.use("third")
    assert_found_nowhere(own, tenant.secrets)
