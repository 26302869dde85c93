"""Calls to receivers on AWS: which messages go together in one, what becomes of each of them, and roles that do not let
the hub in.

Sources: docs/destinations.md; the API references of SQS, SNS, EventBridge and STS.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from simulation.promises.judgement import SECOND
from simulation.promises.talks.aws_services import ACCOUNT, Got, got, takes, url_of
from simulation.promises.talks.talk import Came, Said, Talk

MOST_OF_A_CALL = 10
SLOW_S = 1.5
"""How long a receiver takes for a call, so that others wait for it."""

MANY = 24
"""Messages that are posted at once."""

ASKED_AGAIN_S = 60
"""A role that did not let the hub in is asked again after so long."""

LATE_S = 75
"""What waits longer than a minute is looked after each minute."""

SECOND_WAIT_S = 300
"""The wait before the third try."""

BAD = 7
"""Which of :data:`MANY` is wrong."""

LARGE = 40_000
MOST_OF_CALLS = {"sqs": 1_024 * 1_024, "sns": 256 * 1_024, "events": 1_000_000}
"""Bytes of all messages of a call."""

MOST_OF_A_MESSAGE = {"sqs": 1_024 * 1_024, "sns": 256 * 1_024, "events": 1_000_000 - 1}
"""Bytes of a message with its attributes; an event has less than a megabyte."""

TIME_BYTES = 14
"""What EventBridge counts for the time of an event."""

MOST_PROCESSES = 4
"""So many environments of a function serve a few messages."""

DUE_TOGETHER_S = 180
"""How long messages wait that are due at once."""

KINDS = ("sqs", "sns", "events")
Entry = tuple[str, str]
"""What becomes of one of several messages, if it is not taken: the service's code, and what it says."""


def webhooks(talk: Talk) -> None:
    """All of it."""
    talk.through(_bounds, _together, _apart, _each_its_own, _each_alone, _large, _in_groups, _closed)


def _size(kind: str, each: Got) -> int:
    """The bytes of a message as its service counts them."""
    if kind == "events":
        texts = (each.named["Source"], each.named["DetailType"], each.body, *each.named["Resources"])
        return sum(len(one.encode()) for one in texts) + TIME_BYTES
    attributes = sum(len(f"{name}String{value}".encode()) for name, value in each.attributes.items())
    return len(each.body.encode()) + attributes


def _bounds(talk: Talk) -> None:
    """Each service gets the largest message that it takes, attributes and all, and one byte more ends at once. An
    endpoint's message has four attributes, and none of the endpoint's own headers.
    """
    came = {kind: talk.listen(f"aws-bounds-{kind}.example", takes(kind)) for kind in KINDS}
    talk.ask("POST", "/app", {"name": "Bounds", "uid": "bounds-on-aws"}, status=201)
    for kind in KINDS:
        url = url_of(kind, f"aws-bounds-{kind}.example")
        own = {} if kind == "events" else {"headers": {"X-Own": "own"}}
        fields = {"url": url, "uid": kind, "channels": [kind], **own}
        talk.ask("POST", "/app/bounds-on-aws/endpoint", fields, status=201)

    def sent(kind: str, length: int) -> tuple[int, str]:
        """Send a text of a length; what becomes of it, and its id."""
        message = {"eventType": "bounds.made", "payload": {"a": length * "x"}, "channels": [kind]}
        message_id = talk.ask("POST", "/app/bounds-on-aws/msg", message, status=202)["id"]
        talk.sleep(8 + talk.put_off_s)
        [row] = talk.ask("GET", f"/app/bounds-on-aws/msg/{message_id}/endpoint")["data"]
        return row["status"], message_id

    for kind in KINDS:
        state, message_id = sent(kind, 1)
        [first] = got(kind, came[kind]) or [Got("")]
        talk.is_so(f"a small one, {kind}", 0, state)
        if kind != "events":
            names = {name for name in first.attributes if name.startswith("webhook-")}
            four = {f"webhook-{name}" for name in ("id", "timestamp", "signature", "event-type")}
            talk.came(f"its attributes, {kind}", (four, message_id), (names, first.attributes.get("webhook-id")))
            talk.came(f"nothing of its own, {kind}", False, any("own" in name.lower() for name in first.attributes))
        room = MOST_OF_A_MESSAGE[kind] - _size(kind, first) + 1
        states = [sent(kind, room + more)[0] for more in (0, 1)]
        talk.is_so(f"the largest, and one more, {kind}", [0, 2], states)
        sizes = [_size(kind, each) for each in got(kind, came[kind])[1:]]
        talk.came(f"what arrives, {kind}", [MOST_OF_A_MESSAGE[kind]], sizes)
    talk.ask("DELETE", "/app/bounds-on-aws", status=204)


def _slowly(answer: tuple[int, bytes]) -> Said:
    return (*answer, {}, SLOW_S)


def _in_part(kind: str, wrong: Mapping[int, Entry], count: int) -> bytes:
    """What a service says to a call for several of which some are not taken, by their places."""
    if kind == "events":
        entries: list[Any] = [{"EventId": f"e-{each}"} for each in range(count)]
        for place, (code, text) in wrong.items():
            entries[place] = {"ErrorCode": code, "ErrorMessage": text}
        return json.dumps({"FailedEntryCount": len(wrong), "Entries": entries}).encode()
    right = [each for each in range(count) if each not in wrong]
    if kind == "sqs":
        failed = [{"Id": f"{each}", "Code": code, "Message": text} for each, (code, text) in wrong.items()]
        # In another order than asked for, which AWS does not promise to keep.
        taken = [{"Id": f"{each}", "MessageId": "m"} for each in reversed(right)]
        return json.dumps({"Successful": taken, "Failed": failed}).encode()
    done = "".join(f"<member><Id>{each}</Id></member>" for each in reversed(right))
    not_taken = "".join(
        f"<member><Id>{each}</Id><Code>{code}</Code><Message>{text}</Message></member>"
        for each, (code, text) in wrong.items()
    )
    return (
        f"<PublishBatchResult><Successful>{done}</Successful><Failed>{not_taken}</Failed></PublishBatchResult>"
    ).encode()


def _refusal(kind: str, code: str, status: int = 400) -> tuple[int, bytes]:
    """What a service says to a call that it refuses as a whole."""
    if kind == "sns":
        return status, f"<ErrorResponse><Error><Code>{code}</Code></Error></ErrorResponse>".encode()
    return status, json.dumps({"__type": f"com.amazonaws#{code}", "message": "no"}).encode()


def _queue(talk: Talk, name: str, says: Callable[[str, Came], Said]) -> tuple[Talk, dict[str, Sequence[Came]]]:
    """A queue of a name with a subscriber on each service that takes several; who asks about it, and what comes."""
    project = talk.at(f"/3/projects/{talk.project}").with_headers(authorization=f"OAuth {talk.token}")
    came: dict[str, Sequence[Came]] = {}
    for kind in KINDS:
        came[kind] = talk.listen(f"aws-{name}-{kind}.example", partial(says, kind))
    subscribers = [{"name": kind, "url": url_of(kind, f"aws-{name}-{kind}.example")} for kind in KINDS]
    push = {"subscribers": subscribers, "retries": 2, "retries_delay": 10, "error_queue": f"{name}-failed"}
    project.ask("PUT", f"/queues/{name}", {"queue": {"type": "multicast", "push": push}})
    return project, came


def _over(project: Talk, name: str) -> None:
    for each in (name, f"{name}-failed"):
        project.status("DELETE", f"/queues/{each}")


def _post(project: Talk, name: str, bodies: Sequence[str]) -> list[str]:
    messages = [{"body": each} for each in bodies]
    return [*project.ask("POST", f"/queues/{name}/messages", {"messages": messages}, status=201)["ids"]]


def _bodies(kind: str, came: Came) -> list[str]:
    """What each message of a call carries."""
    return [each.body for each in got(kind, [came])]


def _together(talk: Talk) -> None:
    """What comes for a receiver while a call is under way goes in one call, ten messages at most; each arrives once."""
    project, came = _queue(talk, "together", lambda kind, each: _slowly(takes(kind)(each)))
    bodies = [json.dumps({"n": number}) for number in range(MANY)]
    _post(project, "together", bodies)
    talk.sleep(60 + talk.put_off_s)
    for kind, heard in came.items():
        sizes = [len(_bodies(kind, each)) for each in heard]
        talk.came(f"each once, {kind}", sorted(bodies), sorted(body for each in heard for body in _bodies(kind, each)))
        talk.came(f"some together, {kind}", lambda most: 2 <= most <= MOST_OF_A_CALL, max(sizes, default=0))
        ids = [each.attributes["webhook-id"] for each in got(kind, heard)] if kind != "events" else []
        talk.came(f"each with its own id, {kind}", len(ids), len({*ids}))
    project.ask("GET", "/queues/together", shows={"queue": {"total_messages": MANY, "size": 0}})
    _over(project, "together")


def _apart(talk: Talk) -> None:
    """Messages of two applications never go in one call, though their endpoints' URLs are equal to the last letter and
    they are due at once: each is sent with keys that were got for its application.
    """
    role, apps = f"arn:aws:iam::{ACCOUNT}:role/shared", ("apart-one", "apart-two")
    came: dict[str, Sequence[Came]] = {}
    for kind in KINDS:
        says = partial(lambda kind, each: _slowly(takes(kind)(each)), kind)
        came[kind] = talk.listen(f"aws-apart-{kind}.example", says)
    for app in apps:
        talk.ask("POST", "/app", {"name": app, "uid": app}, status=201)
        for kind in KINDS:
            url = url_of(kind, f"aws-apart-{kind}.example", role=role)
            talk.ask("POST", f"/app/{app}/endpoint", {"url": url, "uid": kind}, status=201)
    ids = [talk.ask("GET", f"/app/{app}/external-id")["externalId"] for app in apps]
    talk.is_so("an external id each", 2, len({*ids}))
    talk.sleep(2)
    due = datetime.fromtimestamp(talk.epoch_s() + DUE_TOGETHER_S, UTC).isoformat()
    for number in range(MANY):
        for app in apps:
            message = {"eventType": "apart.made", "payload": {"of": app, "n": number}, "deliverAt": due}
            talk.ask("POST", f"/app/{app}/msg", message, status=202)
    talk.sleep(DUE_TOGETHER_S + 120 + talk.put_off_s + talk.gathered_s)
    for kind, heard in came.items():
        calls = [([json.loads(each)["of"] for each in _bodies(kind, one)], _key_of(one)) for one in heard]
        expected = dict.fromkeys(apps, MANY)
        talk.came(f"each once, {kind}", expected, dict(Counter(of for owners, _ in calls for of in owners)))
        talk.came(f"of one application in a call, {kind}", {1}, {len({*owners}) for owners, _ in calls})
        one, two = ({key for owners, key in calls if app in owners} for app in apps)
        talk.came(f"no key for both, {kind}", set(), one & two)
    together = max(len(_bodies(kind, one)) for kind, heard in came.items() for one in heard)
    talk.came("some together", lambda most: 2 <= most <= MOST_OF_A_CALL, together)
    for app in apps:
        talk.ask("DELETE", f"/app/{app}", status=204)


def _key_of(came: Came) -> str:
    """The id of the access key that a request was signed with."""
    return came.headers["authorization"].partition("Credential=")[2].partition("/")[0]


def _each_its_own(talk: Talk) -> None:
    """Of several in one call each has its own outcome: what is taken does not come again, what failed is tried again,
    and what will never be taken ends.
    """
    lasting = {"sqs": "InvalidMessageContents", "sns": "InvalidParameter", "events": "MalformedDetail"}
    failed: Counter[tuple[str, str]] = Counter()

    def says(kind: str, came: Came) -> Said:
        bodies, wrong = _bodies(kind, came), dict[int, Entry]()
        for place, body in enumerate(bodies):
            about = json.loads(body)["is"]
            if about == "late" and not failed[kind, body]:
                failed[kind, body] += 1
                wrong[place] = ("InternalFailure", "not now")
            elif about == "bad":
                wrong[place] = (lasting[kind], "never")
        if not wrong:
            return _slowly(takes(kind)(came))
        if kind == "events" or len(bodies) > 1:
            return _slowly((200, _in_part(kind, wrong, len(bodies))))
        return _slowly(_refusal(kind, wrong[0][0], 500 if wrong[0][0] == "InternalFailure" else 400))

    project, came = _queue(talk, "outcomes", says)
    kinds = [("bad", "late", "well")[number % 3] if number else "well" for number in range(MANY)]
    bodies = [json.dumps({"n": number, "is": each}) for number, each in enumerate(kinds)]
    ids = _post(project, "outcomes", bodies)
    talk.sleep(90 + talk.put_off_s + 2 * talk.gathered_s)
    tries = {"bad": 1, "late": 2, "well": 1}
    for kind, heard in came.items():
        counted = Counter(body for each in heard for body in _bodies(kind, each))
        expected = {body: tries[about] for body, about in zip(bodies, kinds, strict=True)}
        talk.came(f"so often each, {kind}", lambda each, expected=expected: each == expected, dict(counted))
        talk.came(f"some together, {kind}", True, max(len(_bodies(kind, each)) for each in heard) > 1)
    ended = {"bad": "exhausted", "late": "delivered", "well": "delivered"}
    for message_id, about in [*zip(ids, kinds, strict=True)][:3]:
        rows = project.ask("GET", f"/queues/outcomes/messages/{message_id}/attempts")["attempts"]
        numbers = Counter(each["subscriber_name"] for each in rows)
        talk.is_so(f"attempts of what is {about}", dict.fromkeys(KINDS, tries[about]), dict(numbers))
        states = project.ask("GET", f"/queues/outcomes/messages/{message_id}/subscribers")["subscribers"]
        talk.is_so(f"what becomes of what is {about}", {ended[about]}, {each["state"] for each in states})
    _over(project, "outcomes")


def _each_alone(talk: Talk) -> None:
    """If a whole call is refused as if a message of it was wrong, each is tried alone: none of the others suffers."""
    codes = {"sqs": "InvalidParameterValue", "sns": "InvalidParameter", "events": "ValidationException"}

    def says(kind: str, came: Came) -> Said:
        bad = any(json.loads(each)["is"] == "bad" for each in _bodies(kind, came))
        return _slowly(_refusal(kind, codes[kind]) if bad else takes(kind)(came))

    project, came = _queue(talk, "alone", says)
    bodies = [json.dumps({"n": number, "is": "bad" if number == BAD else "well"}) for number in range(MANY)]
    ids = _post(project, "alone", bodies)
    talk.sleep(90 + talk.put_off_s + 2 * talk.gathered_s)
    for kind, heard in came.items():
        calls = [_bodies(kind, each) for each in heard]
        taken = Counter(body for each in calls if bodies[BAD] not in each for body in each)
        expected = {body: 1 for body in bodies if body != bodies[BAD]}
        talk.came(f"all others, once, {kind}", lambda each, expected=expected: each == expected, dict(taken))
        alone = sum(each == [bodies[BAD]] for each in calls)
        talk.came(f"the wrong one alone, once, {kind}", 1, alone)
    for place, state in ((BAD, "exhausted"), (BAD - 1, "delivered"), (BAD + 1, "delivered")):
        states = project.ask("GET", f"/queues/alone/messages/{ids[place]}/subscribers")["subscribers"]
        talk.is_so(f"what becomes of number {place}", {state}, {each["state"] for each in states})
    _over(project, "alone")


def _large(talk: Talk) -> None:
    """A call has no more bytes than the service takes, and what is large arrives all the same."""
    project, came = _queue(talk, "large", lambda kind, each: _slowly(takes(kind)(each)))
    bodies = [json.dumps({"n": number, "text": LARGE * "x"}) for number in range(MANY)]
    _post(project, "large", bodies)
    talk.sleep(60 + talk.put_off_s)
    for kind, heard in came.items():
        calls = [_bodies(kind, each) for each in heard]
        talk.came(f"each once, {kind}", sorted(bodies), sorted(body for each in calls for body in each))
        most = MOST_OF_CALLS[kind]
        talk.came(f"no more than it takes, {kind}", True, max(sum(map(len, each)) for each in calls) <= most)
    together = max(len(_bodies("sns", each)) for each in came["sns"])
    talk.came("some together", lambda most: 2 <= most <= MOST_OF_CALLS["sns"] // LARGE, together)
    project.ask("GET", "/queues/large", shows={"queue": {"total_messages": len(bodies), "size": 0}})
    _over(project, "large")


def _in_groups(talk: Talk) -> None:
    """Two messages of a group are never under way at once, and each group keeps its order, though others fail."""
    under_way: Counter[str] = Counter()
    overlaps, failed = list[str](), set[str]()

    def says(came: Came) -> Said:
        found = got("sqs", [came])
        begun = [each.group for each in found]
        overlaps.extend(each for each in begun if begun.count(each) > 1)
        wrong = {
            place: ("InternalFailure", "not now")
            for place, each in enumerate(found)
            if json.loads(each.body)["n"] == 2 and each.body not in failed
        }
        failed.update(found[place].body for place in wrong)
        under_way.update(begun)
        if not wrong:
            return _slowly(takes("sqs")(came))
        return _slowly(
            (200, _in_part("sqs", wrong, len(found))) if len(found) > 1 else _refusal("sqs", "Internal", 500)
        )

    came = talk.listen("aws-groups.example", says)
    project = talk.at(f"/3/projects/{talk.project}").with_headers(authorization=f"OAuth {talk.token}")
    subscribers = [{"name": "fifo", "url": url_of("sqs", "aws-groups.example", name="orders.fifo")}]
    push = {"subscribers": subscribers, "retries": 5, "retries_delay": 10}
    project.ask("PUT", "/queues/groups", {"queue": {"type": "multicast", "push": push}})
    keyed = [(key, number) for number in range(4) for key in "abc"]
    messages = [{"body": json.dumps({"k": key, "n": number}), "ordering_key": key} for key, number in keyed]
    project.ask("POST", "/queues/groups/messages", {"messages": messages}, status=201)
    talk.sleep(150 + talk.put_off_s + 4 * talk.gathered_s)
    talk.came("one of a group in a call", [], overlaps)
    found = [(each.group, json.loads(each.body)["n"]) for each in got("sqs", came)]
    for key in "abc":
        talk.came(f"in order, {key}", [0, 1, 2, 2, 3], [number for group, number in found if group == key])
    talk.came("no pause of a call's length is left out", len(found), sum(under_way.values()))
    project.ask("GET", "/queues/groups", shows={"queue": {"total_messages": len(keyed), "size": 0}})
    _over(project, "groups")


def _closed(talk: Talk) -> None:
    """A role that does not let the hub in is asked again a minute later, by one try for all that wait; nothing is sent
    meanwhile, which is no failure of the receiver, and no other role waits.
    """
    roles = {name: f"arn:aws:iam::{ACCOUNT}:role/{name}" for name in ("closed", "open")}
    came = {name: talk.listen(f"aws-{name}.example", takes("sqs")) for name in roles}
    talk.ask("POST", "/app", {"name": "Roles", "uid": "roles"}, status=201)
    talk.lets_in(roles["closed"], False)
    for name, role in roles.items():
        url = url_of("sqs", f"aws-{name}.example", role=role)
        talk.ask("POST", "/app/roles/endpoint", {"url": url, "uid": name}, status=201)
    talk.sleep(2)
    message = {"eventType": "roles.made", "payload": {"n": 1}}
    ids = [talk.ask("POST", "/app/roles/msg", message, status=202)["id"] for _ in range(3)]
    talk.sleep(10 + talk.put_off_s)
    talk.came("the other's alone", [0, 3], [len(each) for each in came.values()])
    refused: list[float] = []
    for each in ids:
        rows = talk.ask("GET", f"/app/roles/attempt/msg/{each}")["data"]
        failed = [row for row in rows if "aws-closed" in row["url"]]
        why = {(row["responseStatusCode"], "credentials" in row["response"]) for row in failed}
        talk.is_so("why", {(0, True)}, why)
        refused += [talk.moment(row["timestamp"]) for row in failed]
    began = min(refused)
    lasts = (talk.now() - began) / SECOND
    # Each process asks for itself
    most = MOST_PROCESSES * (1 + lasts // ASKED_AGAIN_S)
    talk.is_so("asked once for all", lambda count: 1 <= count <= most, talk.lets_in(roles["closed"], True))
    talk.sleep(max(0, ASKED_AGAIN_S - 5 - lasts), exactly=True)
    if lasts < ASKED_AGAIN_S - 5:
        talk.came("not yet", [], came["closed"])
    # A try by a process that had been refused later uses up one more wait
    for wait in (60, SECOND_WAIT_S * 1.2):
        if len(came["closed"]) < len(ids):
            talk.sleep(wait + LATE_S + talk.put_off_s + talk.gathered_s)
    talk.came("all of them", len(ids), len(came["closed"]))
    first = (min(each.at for each in came["closed"]) - began) / SECOND
    talk.came("a minute later", lambda each: each >= ASKED_AGAIN_S - 2, first)
    for each in ids:
        rows = talk.ask("GET", f"/app/roles/msg/{each}/endpoint")["data"]
        talk.is_so("all have arrived", {0}, {row["status"] for row in rows})
    talk.ask("DELETE", "/app/roles", status=204)


__all__ = ["webhooks"]
