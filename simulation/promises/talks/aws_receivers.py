"""Receivers on AWS: what arrives at each kind, in which group, with which attributes; what is unfit for one, what it
refuses, and whose keys are shown.

Sources: docs/destinations.md; the API references of SQS, SNS, EventBridge, Lambda, S3 and Kinesis.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from simulation.promises.judgement import SECOND
from simulation.promises.talks.aws_services import ACCOUNT, KEY_ID, REGION, Got, got, takes, url_of
from simulation.promises.talks.talk import Came, Talk
from simulation.promises.talks.webhooks import is_signed

KIND = "receivers.made"
APP = "/app/on-aws"
KINDS = ("sqs", "sns", "events", "lambda", "s3", "kinesis")
EXACT = b'{ "n":1.10, "a" : "\\u00e9" }'
MOST_ATTRIBUTES = 10
MOST_OF_A_TOPIC = 256 * 1_024
MOST_OF_A_GROUP = 128
MOST_PROCESSES = 4
"""So many environments of a function, each with keys of its own, serve a message every five seconds."""


def webhooks(talk: Talk) -> None:
    """All of it."""
    talk.through(_arrived, _enveloped, _attributes, _grouped, _unfit, _refused, _in_roles, _of_queues)


def _application(talk: Talk, **urls: str) -> None:
    """An application with endpoints by their uids."""
    talk.ask("POST", "/app", {"name": "On AWS", "uid": "on-aws"}, status=201)
    for uid, url in urls.items():
        talk.ask("POST", f"{APP}/endpoint", {"url": url, "uid": uid}, status=201)


def _post(talk: Talk, payload: Any = None, **more: Any) -> str:
    body = {"eventType": KIND, "payload": {} if payload is None else payload, **more}
    return str(talk.ask("POST", f"{APP}/msg", body, status=202)["id"])


def _state(talk: Talk, message_id: str) -> dict[str, tuple[int, Any]]:
    """What became of a message at each endpoint: its status, and when it is tried next."""
    rows = talk.ask("GET", f"{APP}/msg/{message_id}/endpoint")["data"]
    return {each["uid"]: (each["status"], each["nextAttempt"]) for each in rows}


def _arrived(talk: Talk) -> None:
    """Each kind gets the very bytes; queues, topics and functions with a signature, the others without."""
    hosts = {kind: f"aws-{kind}.example" for kind in KINDS}
    came = {kind: talk.listen(host, takes(kind)) for kind, host in hosts.items()}
    more = {"lambda": {"qualifier": "live"}, "s3": {"prefix": "in/"}}
    _application(talk, **{kind: url_of(kind, host, **more.get(kind, {})) for kind, host in hosts.items()})
    body = b'{"eventType":"' + KIND.encode() + b'","payload":' + EXACT + b"}"
    message_id = talk.ask("POST", f"{APP}/msg", body, status=202)["id"]
    talk.sleep(15 + talk.put_off_s)
    for kind, heard in came.items():
        [one] = got(kind, heard) or [Got("nothing")]
        talk.came(f"once, to {kind}", 1, len(heard))
        talk.came(f"exactly, to {kind}", EXACT.decode(), one.body)
        service = f"Credential={KEY_ID}/"
        signed = heard[0].headers["authorization"] if heard else ""
        talk.came(
            f"by its key, to {kind}", (True, True), (service in signed, f"/{REGION}/{kind}/aws4_request" in signed)
        )
        talk.came(f"no secret, to {kind}", False, "wJalr" in json.dumps([*heard[0].headers.items()]))
        if kind in {"sqs", "sns", "lambda"}:
            key = talk.ask("GET", f"{APP}/endpoint/{kind}/secret")["key"]
            talk.came(f"its id, to {kind}", message_id, one.attributes.get("webhook-id"))
            talk.came(f"signed, to {kind}", True, is_signed(Came(0, one.attributes, one.body.encode()), key))
            talk.came(f"its type, to {kind}", KIND, one.attributes.get("webhook-event-type"))
        if kind in {"sqs", "sns"}:
            talk.came(f"no group, to {kind}", ("", ""), (one.group, one.once))
    place = f"{REGION}:{ACCOUNT}:"
    named = {
        "sqs": {"QueueUrl": lambda url: url.endswith(f"/{ACCOUNT}/orders")},
        "sns": {"TopicArn": f"arn:aws:sns:{place}orders"},
        "events": {
            "Source": "pushhub",
            "DetailType": KIND,
            "EventBusName": f"arn:aws:events:{place}event-bus/orders",
            "Resources": [message_id],
        },
        "lambda": {
            "function": f"/2015-03-31/functions/arn:aws:lambda:{place}function:orders/invocations",
            "query": "Qualifier=live",
        },
        "s3": {"method": "PUT", "key": lambda key: key.startswith("/orders/in/ep_") and key.endswith(f"/{message_id}")},
        "kinesis": {"StreamName": "orders"},
    }
    for kind, expected in named.items():
        talk.came(f"where it goes, {kind}", [expected], [each.named for each in got(kind, came[kind])])
    talk.is_so("delivered", dict.fromkeys(KINDS, (0, None)), _state(talk, message_id))
    for kind in KINDS:
        shown = talk.ask("GET", f"{APP}/endpoint/{kind}")["url"]
        talk.is_so("its key is not shown", (False, True), ("wJalr" in shown.partition("?")[0], "********" in shown))
        if kind in {"events", "s3", "kinesis"}:
            refused = {"headers": {"X-Own": "1"}}
            talk.ask("PUT", f"{APP}/endpoint/{kind}/headers", refused, status=422)
    talk.ask("DELETE", APP, status=204)


def _enveloped(talk: Talk) -> None:
    """An envelope has the payload and its type, and no signature; a bus may be told of another source and type."""
    kinds = ("sqs", "sns", "events")
    hosts = {kind: f"aws-wrapped-{kind}.example" for kind in kinds}
    came = {kind: talk.listen(host, takes(kind)) for kind, host in hosts.items()}
    named = talk.listen("aws-named.example", takes("events"))
    urls = {kind: url_of(kind, host, body="envelope") for kind, host in hosts.items()}
    more = {"source": "shop", "detailType": "Order paid"}
    _application(talk, named=url_of("events", "aws-named.example", **more), **urls)
    message_id = _post(talk, {"n": 1})
    talk.sleep(15 + talk.put_off_s)
    for kind, heard in came.items():
        [one] = got(kind, heard) or [Got("{}")]
        talk.came(
            f"the envelope, {kind}", lambda each: each == {"payload": {"n": 1}, "eventType": KIND}, json.loads(one.body)
        )
        talk.came(f"no signature, {kind}", False, "webhook-signature" in one.attributes)
    talk.came(
        "as it is told",
        [({"Source": "shop", "DetailType": "Order paid"}, {"n": 1})],
        [(each.named, json.loads(each.body)) for each in got("events", named)],
    )
    talk.is_so("delivered", dict.fromkeys((*kinds, "named"), (0, None)), _state(talk, message_id))
    talk.ask("DELETE", APP, status=204)


def _attributes(talk: Talk) -> None:
    """At most ten attributes, the id among them; what does not fit is in one that is called ``headers``."""
    own: dict[str, dict[str, str]] = {
        "few": {"X-Sub": "few"},
        "many": {f"X-Sub-{number}": "many" for number in range(8)},
    }
    named = {f"{kind}-{size}": (kind, own[size]) for kind in ("sqs", "sns") for size in own}
    came = {name: talk.listen(f"aws-of-{name}.example", takes(kind)) for name, (kind, _) in named.items()}
    project = talk.at(f"/3/projects/{talk.project}").with_headers(authorization=f"OAuth {talk.token}")
    subscribers = [
        {"name": name, "url": url_of(kind, f"aws-of-{name}.example"), "headers": headers}
        for name, (kind, headers) in named.items()
    ]
    project.ask("PUT", "/queues/many", {"queue": {"type": "multicast", "push": {"subscribers": subscribers}}})
    pushed = {f"X-Own-{number}": "own" for number in range(4)}
    message = {"body": "{}", "push_headers": pushed}
    ids = project.ask("POST", "/queues/many/messages", {"messages": [message]}, status=201)["ids"]
    talk.sleep(15 + talk.put_off_s)
    for name, (kind, headers) in named.items():
        [one] = got(kind, came[name]) or [Got("nothing")]
        many = name.endswith("many")
        least, most = (MOST_ATTRIBUTES, MOST_ATTRIBUTES) if many else (5, MOST_ATTRIBUTES - 1)
        talk.came(f"so many, {name}", True, least <= len(one.attributes) <= most)
        talk.came(f"the id among them, {name}", ids[0], one.attributes.get("webhook-id"))
        talk.came(f"only if they are too many, {name}", many, "headers" in one.attributes)
        rest = json.loads(one.attributes.get("headers", "{}"))
        talk.came(f"none twice, {name}", set(), rest.keys() & one.attributes.keys())
        whole = {each.lower(): value for each, value in {**rest, **one.attributes}.items()}
        sent = {each.lower(): value for each, value in {**headers, **pushed}.items()}
        talk.came(f"all of them, {name}", sent, whole)
    project.ask("GET", "/queues/many", shows={"queue": {"total_messages": 1}})
    project.ask("DELETE", "/queues/many")


def _grouped(talk: Talk) -> None:
    """In a FIFO queue or topic a key is a group, and what has none its own; a repeated try has the same id, and what is
    sent again by hand, or to another subscriber, another one.
    """
    fails = {"left": 1}

    def at_first(came: Came) -> tuple[int, bytes]:
        if fails["left"]:
            fails["left"] -= 1
            return 500, b'{"__type": "InternalFailure"}'
        return takes("sqs")(came)

    hosts = {"once": at_first, "again": takes("sqs"), "topic": takes("sns")}
    came = {uid: talk.listen(f"aws-fifo-{uid}.example", say) for uid, say in hosts.items()}
    kinds = {uid: "sns" if uid == "topic" else "sqs" for uid in hosts}
    _application(
        talk, **{uid: url_of(kind, f"aws-fifo-{uid}.example", name="orders.fifo") for uid, kind in kinds.items()}
    )
    long, other = MOST_OF_A_GROUP * "k" + "1", MOST_OF_A_GROUP * "k" + "2"
    keys = ("a", "a", "b", MOST_OF_A_GROUP * "m", long, long, other, None, None)
    ids = []
    for number, key in enumerate(keys):
        ids.append(_post(talk, {"n": number}, **({} if key is None else {"orderingKey": key})))
        talk.sleep(2, exactly=True)
    talk.sleep(30 + talk.put_off_s)
    for uid, heard in came.items():
        first: dict[int, Got] = {}
        tries: dict[int, list[str]] = {}
        for each in got(kinds[uid], heard):
            number = json.loads(each.body)["n"]
            first.setdefault(number, each)
            tries.setdefault(number, []).append(each.once)
        groups = [first[number].group if number in first else None for number in range(len(keys))]
        talk.came(f"their keys, {uid}", ["a", "a", "b", MOST_OF_A_GROUP * "m"], groups[:4])
        same = (
            groups[4] == groups[5],
            groups[4] == groups[6],
            all(len(each or "") <= MOST_OF_A_GROUP for each in groups),
        )
        talk.came(f"a digest of a long one, {uid}", (True, False, True), same)
        alone = {*groups[7:]}
        talk.came(f"a group of its own, {uid}", (2, set()), (len(alone), alone & {*groups[:7], ""}))
        talk.came(f"one id for all tries, {uid}", {1}, {len({*each}) for each in tries.values()})
        talk.came(f"each another, {uid}", len(keys), len({each[0] for each in tries.values()}))
    talk.came("tried again", True, len(got("sqs", came["once"])) > len(keys))
    by_uid = {uid: [{each.once for each in got(kinds[uid], heard)}] for uid, heard in came.items()}
    talk.came("each subscriber's own", set(), by_uid["once"][0] & by_uid["again"][0])
    talk.is_so("delivered", dict.fromkeys(kinds, (0, None)), _state(talk, ids[-1]))
    before = len(came["again"])
    talk.ask("POST", f"{APP}/msg/{ids[0]}/endpoint/again/resend", status=202)
    talk.sleep(10)
    [resent] = got("sqs", came["again"][before:]) or [Got("nothing")]
    talk.came(
        "sent again, it arrives",
        (ids[0], False),
        (resent.attributes.get("webhook-id"), resent.once in by_uid["again"][0]),
    )
    talk.ask("DELETE", APP, status=204)


def _unfit(talk: Talk) -> None:
    """What a service cannot take ends at once, and nothing is sent; the others get it."""
    kinds = {"sqs": "sqs", "sns": "sns", "events": "events", "lambda": "lambda", "named": "events"}
    came = {uid: talk.listen(f"aws-unfit-{uid}.example", takes(kind)) for uid, kind in kinds.items()}
    more = {"named": {"detailType": "short"}}
    _application(
        talk, **{uid: url_of(kind, f"aws-unfit-{uid}.example", **more.get(uid, {})) for uid, kind in kinds.items()}
    )
    long = 129 * "t"
    sent: tuple[tuple[str, Mapping[str, Any], set[str]], ...] = (
        ("no character", {"transformationsParams": {"rawPayload": "a\ufffeb"}}, {"sqs", "sns"}),
        ("as large as a topic's", {"payload": {"a": MOST_OF_A_TOPIC * "x"}}, {"sns"}),
        ("a long type", {"eventType": long}, {"events"}),
        ("fit for all", {}, set()),
    )
    for about, fields, unfit in sent:
        before = {uid: len(heard) for uid, heard in came.items()}
        message_id = _post(talk, **{"payload": {"n": 1}, **fields})
        talk.sleep(20 + talk.put_off_s)
        state = _state(talk, message_id)
        for uid, heard in came.items():
            if about == "no character" and uid in {"events", "named"}:
                continue
            ended, count = ((2, None), 0) if uid in unfit else ((0, None), 1)
            talk.is_so(f"{about} at {uid}", ended, state[uid])
            talk.came(f"{about} at {uid}", count, len(heard) - before[uid])
    talk.ask("DELETE", APP, status=204)


def _refused(talk: Talk) -> None:
    """What a service says is wrong with a message ends it after one try; anything else is tried again, and where it is
    asked too often no sooner than five seconds later.
    """

    def says(kind: str, status: int, code: str) -> tuple[int, bytes]:
        if kind == "sns":
            return status, f"<ErrorResponse><Error><Code>{code}</Code></Error></ErrorResponse>".encode()
        if kind == "events" and status == 200:
            wrong = {"ErrorCode": code, "ErrorMessage": "no"}
            return 200, json.dumps({"FailedEntryCount": 1, "Entries": [wrong]}).encode()
        return status, json.dumps({"__type": f"com.amazonaws#{code}", "message": "no"}).encode()

    answers: Mapping[str, tuple[str, int, str, bool]] = {
        "wrong": ("sqs", 400, "InvalidMessageContents", True),
        "malformed": ("events", 200, "MalformedDetail", True),
        "throttled": ("sqs", 400, "ThrottlingException", False),
        "busy": ("sns", 400, "Throttled", False),
        "denied": ("sqs", 403, "AccessDeniedException", False),
        "none": ("sqs", 400, "QueueDoesNotExist", False),
        "broken": ("events", 200, "InternalFailure", False),
        "down": ("kinesis", 500, "InternalFailure", False),
        "fails": ("lambda", 200, "", False),
    }
    calls: dict[str, list[Came]] = {}
    urls = {}
    for uid, (kind, status, code, _) in answers.items():

        def say(each: Came, kind: str = kind, status: int = status, code: str = code, uid: str = uid) -> Any:
            calls.setdefault(uid, []).append(each)
            if len(calls[uid]) > 1:
                return takes(kind)(each)
            if kind == "lambda":
                return 200, b'{"errorMessage": "no"}', {"x-amz-function-error": "Unhandled"}
            return says(kind, status, code)

        talk.listen(f"aws-says-{uid}.example", say)
        urls[uid] = url_of(kind, f"aws-says-{uid}.example")
    _application(talk, **urls)
    message_id = _post(talk, {"n": 1})
    talk.sleep(40 + talk.put_off_s)
    state = _state(talk, message_id)
    for uid, (*_, lasting) in answers.items():
        heard = calls.get(uid, [])
        talk.is_so(f"{uid}, in the end", (2, None) if lasting else (0, None), state[uid])
        talk.came(f"{uid}, so often", 1 if lasting else 2, len(heard))
        gaps = [(after.at - before.at) / SECOND for before, after in pairwise(heard)]
        least = 4.9 if uid in {"throttled", "busy"} else 3.9
        talk.came(f"{uid}, no sooner", [] if lasting else [lambda gap, least=least: least <= gap <= 30], gaps)
    talk.ask("DELETE", APP, status=204)


def _in_roles(talk: Talk) -> None:
    """The keys of a role serve for 55 minutes; when they are refused, others do within the same try; each project and
    application has an external id of its own, and roles of the hub's own account are refused.
    """
    refused: set[str] = set()

    def says(came: Came) -> tuple[int, bytes]:
        key = came.headers["authorization"].partition("Credential=")[2].partition("/")[0]
        if key in refused:
            return 400, b'{"__type": "com.amazonaws#ExpiredTokenException", "message": "no"}'
        return takes("sqs")(came)

    came = talk.listen("aws-role.example", says)
    role = f"arn:aws:iam::{ACCOUNT}:role/hub"
    _application(talk, role=url_of("sqs", "aws-role.example", role=role))

    def key_of(each: Came) -> str:
        return each.headers["authorization"].partition("Credential=")[2].partition("/")[0]

    waits = 10 * (5,)
    for wait in (*waits, 56 * 60, 5):
        _post(talk, {"n": 1})
        talk.sleep(wait, exactly=True)
    keys = [key_of(each) for each in came]
    talk.came("one for many", (len(waits) + 2, True), (len(keys), len({*keys[: len(waits)]}) <= MOST_PROCESSES))
    talk.came("for most of an hour", set(), {*keys[: len(waits)]} & {*keys[len(waits) + 1 :]})
    talk.came("with their session", {True}, {"x-amz-security-token" in each.headers for each in came})
    refused |= {*keys}
    one = _post(talk, {"n": 2})
    talk.sleep(20 + talk.put_off_s)
    new = [key_of(each) in refused for each in came[len(keys) :]]
    talk.came("others at once", [*((len(new) - 1) * [True]), False], new)
    talk.came("no more than once", lambda count: 1 <= count <= 2, len(new))
    talk.ask("GET", f"{APP}/attempt/msg/{one}", shows={"data": [{"status": 0}]})
    talk.ask("POST", "/app", {"name": "Other", "uid": "other-on-aws"}, status=201)
    own = [talk.ask("GET", f"{path}/external-id") for path in (APP, APP, "/app/other-on-aws")]
    project = talk.at(f"/3/projects/{talk.project}").with_headers(authorization=f"OAuth {talk.token}")
    ids = [*(each["externalId"] for each in own), project.ask("GET", "/external-id")["external_id"]]
    talk.is_so("whose they are", (True, 3), (ids[0] == ids[1], len({*ids})))
    hubs = own[0]["principal"].split(":")[4]
    url = url_of("sqs", "aws-role.example", role=f"arn:aws:iam::{hubs}:role/hub")
    talk.ask("POST", f"{APP}/endpoint", {"url": url}, status=422)
    talk.ask("POST", f"{APP}/endpoint", {"url": f"sqs://{REGION}/{ACCOUNT}/orders"}, status=422)
    for path in (APP, "/app/other-on-aws"):
        talk.ask("DELETE", path, status=204)


def _of_queues(talk: Talk) -> None:
    """A queue's subscribers get any text: a bus wraps what is no object, and is told of the queue as its type."""
    kinds = {"bus": "events", "queue": "sqs", "function": "lambda", "shards": "kinesis"}
    came = {name: talk.listen(f"aws-of-{name}.example", takes(kind)) for name, kind in kinds.items()}
    project = talk.at(f"/3/projects/{talk.project}").with_headers(authorization=f"OAuth {talk.token}")
    subscribers = [{"name": name, "url": url_of(kind, f"aws-of-{name}.example")} for name, kind in kinds.items()]
    project.ask("PUT", "/queues/on-aws", {"queue": {"type": "multicast", "push": {"subscribers": subscribers}}})
    bodies = ('{"a": 1.0}', "text é", "[1]")
    ids = []
    for body in bodies:
        ids += project.ask("POST", "/queues/on-aws/messages", {"messages": [{"body": body}]}, status=201)["ids"]
        talk.sleep(3, exactly=True)
    talk.sleep(20 + talk.put_off_s)
    for name in ("queue", "function", "shards"):
        talk.came(f"as posted, {name}", [*bodies], [each.body for each in got(kinds[name], came[name])])
    bus = got("events", came["bus"])
    details = [{"a": 1.0}, {"payload": "text é"}, {"payload": [1]}]
    talk.came("what is no object is wrapped", details, [json.loads(each.body) for each in bus])
    talk.came("an object is as it was", bodies[0], bus[0].body if bus else "")
    talk.came(
        "of which queue", {("pushhub", "on-aws")}, {(each.named["Source"], each.named["DetailType"]) for each in bus}
    )
    talk.came("which messages", ids, [each.named["Resources"][0] for each in bus])
    talk.came("by their ids", ids, [each.attributes.get("webhook-id") for each in got("sqs", came["queue"])])
    signed = {"signing": {"secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}}
    for name, more in (("bus", signed), ("bus", {"headers": {"X-A": "1"}})):
        wrong = {"name": f"no-{name}", "url": url_of("events", "aws-of-bus.example"), **more}
        project.ask("POST", "/queues/on-aws/subscribers", {"subscribers": [wrong]}, status=400)
    project.ask("DELETE", "/queues/on-aws")


__all__ = ["webhooks"]
