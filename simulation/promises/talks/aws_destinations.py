"""Receivers on AWS as Svix's clients have them, and by whose keys requests are signed: how a destination is, what a
change leaves as it was, and what arrives.

Sources: docs/destinations.md; Svix's destinations; AWS's Signature Version 4.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from typing import Any
from urllib.parse import quote, unquote

from simulation.promises.talks.aws_services import ACCOUNT, KEY_ID, REGION, got, takes, url_of
from simulation.promises.talks.talk import Came, Talk

KIND = "destinations.made"
APP = "/app/destinations"
DESTINATIONS = f"{APP}/destination"
SECRET, OTHER_SECRET = "wJalrXUtnFEMI/K7MDENG", "another/secret+of/mine"
SERVICES = {"sqs": "sqs", "sns": "sns", "events": "events", "lambda": "lambda", "s3": "s3", "kinesis": "kinesis"}
_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<key>[^/]+)/(?P<day>\d{8})/(?P<region>[^/]+)/(?P<service>[^/]+)/aws4_request, "
    r"SignedHeaders=(?P<names>[a-z0-9;-]+), Signature=(?P<signature>[0-9a-f]{64})"
)


def webhooks(talk: Talk) -> None:
    """All of it."""
    talk.through(_signed, _states, _kept, _buses)


def signed_with(came: Came, host: str, service: str, secret: str) -> bool:
    """Whether a request is signed as a service at a host demands it, with a secret, and at the time that it says."""
    found = _AUTHORIZATION.fullmatch(came.headers.get("authorization", ""))
    if found is None or (found["region"], found["service"]) != (REGION, service):
        return False
    headers, names = {**came.headers, "host": host}, found["names"].split(";")
    # S3 escapes the path that it has read anew, others what came.
    path = quote(unquote(came.path) if service == "s3" else came.path, safe="/~")
    lines = [came.method, path, "&".join(sorted(came.query.split("&"))) if came.query else ""]
    lines += [*(f"{name}:{' '.join(headers.get(name, '').split())}" for name in names), "", found["names"]]
    whole = "\n".join([*lines, hashlib.sha256(came.body).hexdigest()])
    at = headers.get("x-amz-date", "")
    scope = f"{found['day']}/{REGION}/{service}/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", at, scope, hashlib.sha256(whole.encode()).hexdigest()])
    key = f"AWS4{secret}".encode()
    for part in (found["day"], REGION, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), hashlib.sha256)
    right = hmac.digest(key, text.encode(), hashlib.sha256).hex() == found["signature"]
    return right and at.startswith(found["day"]) and {"host", "x-amz-date"} <= {*names}


def _begun(talk: Talk) -> str:
    return str(talk.ask("POST", "/app", {"name": "Destinations", "uid": "destinations"}, status=201)["id"])


def _post(talk: Talk, number: int) -> str:
    body = {"eventType": KIND, "payload": {"n": number}}
    return str(talk.ask("POST", f"{APP}/msg", body, status=202)["id"])


def _config(host: str, **more: str) -> dict[str, str]:
    queue = {"queueUrl": f"https://{host}/{ACCOUNT}/orders", "region": REGION, "accessKeyId": KEY_ID}
    return {**queue, "endpointUrl": f"https://{host}", **more}


def _signed(talk: Talk) -> None:
    """Each service's requests are signed with the key of their URL, or the keys of its role, over what is sent."""
    _begun(talk)
    role = f"arn:aws:iam::{ACCOUNT}:role/signs"
    came = {}
    for kind in SERVICES:
        for name, more in ((kind, {}), (f"{kind}-role", {"role": role})):
            came[name] = talk.listen(f"signs-{name}.example", takes(kind))
            url = url_of(kind, f"signs-{name}.example", **({"qualifier": "live"} if kind == "lambda" else {}), **more)
            talk.ask("POST", f"{APP}/endpoint", {"url": url, "uid": name}, status=201)
    for number in range(2):
        _post(talk, number)
        talk.sleep(15 + talk.put_off_s)
    for name, heard in came.items():
        kind = name.partition("-")[0]
        # The model of STS gives each role this secret.
        secret, other = (SECRET, "secret") if name == kind else ("secret", SECRET)
        host = f"signs-{name}.example"
        found = [[signed_with(each, host, SERVICES[kind], one) for one in (secret, other)] for each in heard]
        talk.came(f"signed, {name}", [[True, False]] * 2, found)
        session = {"x-amz-security-token" in each.headers for each in heard}
        talk.came(f"a session's, {name}", {name != kind}, session)
    talk.ask("DELETE", APP, status=204)


def _states(talk: Talk) -> None:
    """A destination is retrying while its messages are, and says why, in the list, too; and is well again."""
    _begun(talk)
    says: dict[str, Any] = {"status": 500}

    def answers(came: Came) -> tuple[int, bytes]:
        return (
            takes("sqs")(came) if says["status"] == 200 else (500, b'{"__type": "a#InternalFailure", "message": "no"}')
        )

    came = talk.listen("states-ill.example", answers)
    well = talk.listen("states-well.example", takes("sqs"))
    paths = {}
    for uid in ("ill", "well"):
        config = _config(f"states-{uid}.example", secretAccessKey=SECRET)
        created = talk.ask("POST", DESTINATIONS, {"type": "sqs", "uid": uid, "config": config}, status=201)
        paths[uid] = f"{DESTINATIONS}/{created['id']}"
    talk.sleep(2)
    message_id = _post(talk, 1)
    talk.sleep(15 + talk.put_off_s + talk.gathered_s)
    shown = talk.ask("GET", paths["ill"], shows={"status": "retrying", "failureReason": str})
    whole = talk.ask("GET", paths["well"], shows={"status": "enabled", "batchSize": 1, "maxWaitSecs": 0})
    talk.is_so("nothing is wrong", False, "failureReason" in whole or "nextRetryAt" in whole)
    rows = {each["uid"]: each["status"] for each in talk.ask("GET", DESTINATIONS)["data"]}
    talk.is_so("in the list", {"ill": "retrying", "well": "enabled"}, rows)
    endpoint = f"ep_{shown['id'].removeprefix('sink_')}"
    tries = talk.ask("GET", f"{APP}/attempt/endpoint/{endpoint}")["data"]
    talk.is_so("its attempts", (len(came), {500}), (len(tries), {each["responseStatusCode"] for each in tries}))
    says["status"] = 200
    talk.ask("POST", f"{APP}/msg/{message_id}/endpoint/{endpoint}/resend", status=202)
    talk.sleep(10 + talk.put_off_s)
    whole = talk.ask("GET", paths["ill"], shows={"status": "enabled"})
    talk.is_so("nothing is wrong any more", False, "failureReason" in whole or "nextRetryAt" in whole)
    bodies = [[json.loads(each.body) for each in got("sqs", heard)][-1] for heard in (came, well)]
    envelope = {"payload": {"n": 1}, "eventType": KIND}
    talk.came("in an envelope", [lambda each: each == envelope] * 2, bodies)
    talk.ask("PATCH", paths["well"], {"type": "sqs", "status": "disabled"})
    talk.sleep(2)
    _post(talk, 2)
    talk.sleep(10 + talk.put_off_s)
    talk.came("nothing while it is off", 1, len(well))
    talk.ask("DELETE", APP, status=204)


def _kept(talk: Talk) -> None:
    """What a change leaves out stays, the secret key first of all; what it has takes its place."""
    _begun(talk)
    came = talk.listen("kept-key.example", takes("sqs"))
    config = _config("kept-key.example")
    created = talk.ask(
        "POST", DESTINATIONS, {"type": "sqs", "config": {**config, "secretAccessKey": SECRET}}, status=201
    )
    path = f"{DESTINATIONS}/{created['id']}"
    steps: tuple[tuple[dict[str, Any], str], ...] = (
        ({"metadata": {"a": "b"}}, SECRET),
        ({"config": config, "batchSize": 50, "maxWaitSecs": 9}, SECRET),
        ({"config": {**config, "secretAccessKey": OTHER_SECRET}}, OTHER_SECRET),
        ({"eventTypes": None}, OTHER_SECRET),
    )
    for number, (change, secret) in enumerate(steps):
        shown = talk.ask("PATCH", path, {"type": "sqs", **change}, shows={"batchSize": 1, "maxWaitSecs": 0})
        talk.is_so(f"no secret, {number}", False, secret in json.dumps(shown))
        talk.sleep(2)
        _post(talk, number)
        talk.sleep(8 + talk.put_off_s)
        found = [signed_with(came[-1], "kept-key.example", "sqs", each) for each in (SECRET, OTHER_SECRET)]
        talk.came(f"signed with it, {number}", [secret == SECRET, secret == OTHER_SECRET], found)
    talk.ask("GET", path, shows={"config": config, "metadata": {"a": "b"}})
    talk.came("each once", [*range(len(steps))], [json.loads(each.body)["payload"]["n"] for each in got("sqs", came)])
    talk.ask("DELETE", APP, status=204)


def _buses(talk: Talk) -> None:
    """A bus is told the application as the source, and ``application/json`` as the type unless it is to be another."""
    app = _begun(talk)
    came = talk.listen("kept-bus.example", takes("events"))
    bus = f"arn:aws:events:{REGION}:{ACCOUNT}:event-bus/orders"
    config = {"eventBusName": bus, **_config("kept-bus.example", secretAccessKey=SECRET)}
    del config["queueUrl"]
    created = talk.ask("POST", DESTINATIONS, {"type": "eventBridge", "config": config}, status=201)
    path = f"{DESTINATIONS}/{created['id']}"
    talk.sleep(2)
    for number, name in enumerate(("application/json", "Paid")):
        if number:
            talk.ask("PATCH", path, {"type": "eventBridge", "config": {**config, "detailType": name}})
            talk.sleep(2)
        _post(talk, number)
        talk.sleep(8 + talk.put_off_s)
    found = [(each.named["Source"], each.named["DetailType"], json.loads(each.body)) for each in got("events", came)]
    expected = [
        (f"svix-webhooks-{app}", name, {"payload": {"n": number}, "eventType": KIND})
        for number, name in enumerate(("application/json", "Paid"))
    ]
    talk.came("what it is told", expected, found)
    talk.ask("GET", path, shows={"config": {"detailType": "Paid", "eventBusName": bus}, "batchSize": 1})
    talk.ask("DELETE", APP, status=204)


__all__ = ["signed_with", "webhooks"]
