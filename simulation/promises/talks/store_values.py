"""What services of stores are sent, byte by byte, and what is never sent: payloads of children, numbers as they were
written, names that occur twice, others' parameters, signatures, hops, and tokens that stay with their host.

Sources: docs/hub-protocol.md ("Routes", "Decisions", "Secrets"); Standard Webhooks for signatures.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

from simulation.promises.talks.services import copies, done, mapped, pushed
from simulation.promises.talks.talk import Came, Talk
from simulation.promises.talks.webhooks import OTHER_SECRET, is_signed

MINUTE = 60
HIDDEN = "********"
MOST_HOPS = 50
SECRETS = tuple("whsec_" + base64.b64encode(bytes(range(first, first + 24))).decode() for first in (60, 90))
WRITTEN = '{"total": 19.90, "big": 12345678901234567890, "e": 1e3, "none": null, "text": "\\u00e9", "list": [1.50, {}]}'


def through(talk: Talk) -> None:
    """Everything."""
    talk.through(_children, _repeated, _invalid, _numbers, _never_sent, _masked, _signed, _rounds, _searched)


def _parameter(talk: Talk, name: str, value: str, data_type: str) -> str:
    """A parameter whose value is written so; its id."""
    body = f'{{"parameter": {{"name": "{name}", "value": {value}, "data_type": "{data_type}"}}}}'
    return str(talk.ask("POST", "/parameters", body.encode(), status=201)["id"])


def _payload(came: Came) -> Any:
    return json.loads(came.body)["payload"]


def _removed(talk: Talk, paths: Sequence[str]) -> None:
    for each in paths:
        talk.ask("DELETE", each)


def _children(talk: Talk) -> None:
    """Payloads of messages that an answer asks for are sent as they were written, to each of two services."""

    def parent(came: Came) -> tuple[int, bytes]:
        children = ", ".join(
            f'{{"message": "values:{kind}", "payload": {WRITTEN}, "further": [2.50]}}' for kind in ("first", "second")
        )
        return 200, f'{{"message_id": "{json.loads(came.body)["message_id"]}", "messages": [{children}]}}'.encode()

    talk.listen("values-parent.example", parent)
    came = {name: talk.listen(f"values-{name}.example", done) for name in ("one", "other")}
    mappings = [mapped(talk, "values-parent", ["values:parent"])]
    mappings += [mapped(talk, f"values-{name}", ["values:first", "values:second"]) for name in came]
    talk.sleep(MINUTE + 1)
    message_id = pushed(talk, "values:parent", {"total": 1})
    talk.sleep(30 + talk.put_off_s)
    for name, heard in came.items():
        kinds = sorted(json.loads(each.body)["message"] for each in heard)
        talk.came(f"both of them, to {name}", ["values:first", "values:second"], kinds)
        talk.came("as it was written", [True, True], [f'"payload":{WRITTEN}' in _closed(each) for each in heard])
    [copy] = copies(talk, message_id)
    kinds = sorted((each["message"], each["state"]) for each in copy["children"])
    talk.is_so("its children", [("values:first", "completed"), ("values:second", "completed")], kinds)
    for each in copies(talk, copy["id"]):
        shown = {"parent_id": copy["id"], "payload": json.loads(WRITTEN), "extra": {"further": [2.5]}}
        talk.is_so("a child", {**shown, "source": "incoming", "mapping_id": None}, each)
    _removed(talk, mappings)


def _closed(came: Came) -> str:
    """What came, without spaces between the name and the payload."""
    return came.body.decode().replace('"payload": ', '"payload":')


def _repeated(talk: Talk) -> None:
    """Of members with the same name the last counts, and a payload is written anew; in values given as text they are
    refused.
    """
    came = talk.listen("values-twice.example", done)
    mapping = mapped(talk, "values-twice", ["values:twice"])
    talk.sleep(MINUTE + 1)
    payloads = '"payload": {"n": 0}, "payload": {"a": 1, "n": 2, "a": 3}'
    twice = f'{{"message": "values:none", "message": "values:twice", {payloads}}}'
    posted = talk.ask(
        "POST", "/messages", twice.encode(), status=201, shows={"message": "values:twice", "payload": {"a": 3}}
    )
    talk.is_so("both names of its id", posted["message_id"], posted["id"])
    talk.is_so("the second of its creation", True, abs(int(posted["id"][:8], 16) - talk.epoch_s()) <= 2)
    talk.sleep(20)
    talk.came("the last of each name", [{"a": 3, "n": 2}], [_payload(each) for each in came])
    talk.came("and once", [1], [each.body.count(b'"a"') for each in came])
    given = {"name": "values.twice", "value": '[{"a": 1, "a": 2}]', "data_type": "list"}
    talk.refused("POST", "/parameters", {"parameter": given}, status=422)
    for field, text in (("identifiers", '{"n": "payload.n", "n": "payload.m"}'), ("options", '{"a": 1, "a": 2}')):
        talk.refused("PUT", mapping, {"mapping": {field: text}}, status=422)
    talk.ask("DELETE", mapping)


def _invalid(talk: Talk) -> None:
    """What is no JSON is refused in a body as in an answer, which then has failed; what is misspelt with its place."""
    wrong = {
        "nan": "NaN",
        "large": "1e999",
        "half": '"\\ud800"',
        "deep": 100 * "[" + 100 * "]",
        "ends": "[1",
    }
    misspelt = {"half", "ends"}
    for name, text in wrong.items():
        body = f'{{"message": "values:none",\n"payload": {{"a": {text}}}}}'
        said = json.dumps(talk.ask("POST", "/messages", body.encode(), status=422, shows={"error": str})["errors"])
        talk.is_so(f"where {name} is wrong", name in misspelt, "line 2, column " in said)

    def answers(came: Came) -> tuple[int, bytes]:
        text = wrong.get(_payload(came)["of"], "1")
        return 200, f'{{"message_id": "{json.loads(came.body)["message_id"]}", "more": {text}}}'.encode()

    came = talk.listen("values-invalid.example", answers)
    mapping = mapped(talk, "values-invalid", ["values:invalid"], options={"retries_allowed": False})
    talk.sleep(MINUTE + 1)
    ids = {name: pushed(talk, "values:invalid", {"of": name}) for name in (*wrong, "right")}
    talk.sleep(30 + talk.put_off_s)
    for name, message_id in ids.items():
        [copy] = copies(talk, message_id)
        if name == "right":
            talk.is_so(name, {"state": "completed", "result": {"more": 1}}, copy)
        else:
            error = {"last_error": lambda each: each.startswith("Invalid response: ")}
            talk.is_so(name, {"state": "parked", **error}, copy)
            talk.ask("PUT", f"/messages/{copy['id']}", {"archive": True})
    talk.came("once each", len(ids), len(came))
    talk.ask("DELETE", mapping)


def _numbers(talk: Talk) -> None:
    """Numbers in parameters are sent as they were written, but for what JSON does not allow and an integer ``-0``; both
    those that their owner set and those that a service returned.
    """
    written = (
        ("float", "19.90", "19.90"),
        ("float", '"2.50"', "2.50"),
        ("float", '".5"', "0.5"),
        ("integer", "12345678901234567890", "12345678901234567890"),
        ("integer", '"007"', "7"),
        ("integer", '"-0"', "0"),
        ("list", "[1.10]", "[1.10]"),
        ("list", '"[3.30]"', "[3.30]"),
    )
    ids = [_parameter(talk, f"values.n{place}", value, kind) for place, (kind, value, _) in enumerate(written)]
    sent = {f"values.n{place}": value for place, (*_, value) in enumerate(written)}
    returned = '[{"name": "values.returned", "value": 4.40}, {"name": "values.n0", "value": 29.90}]'

    def answers(came: Came) -> tuple[int, bytes]:
        return 200, f'{{"message_id": "{json.loads(came.body)["message_id"]}", "parameters": {returned}}}'.encode()

    came = talk.listen("values-numbers.example", answers)
    mapping = mapped(talk, "values-numbers", ["values:numbers"], parameters=ids)
    talk.sleep(MINUTE + 1)
    for _ in range(2):
        pushed(talk, "values:numbers", {})
        talk.sleep(20 + talk.put_off_s)
    later = sent | {"values.n0": "29.90", "values.returned": "4.40"}
    for about, expected, each in zip(("first", "as returned"), (sent, later), came, strict=True):
        values = json.loads(each.body, parse_float=str, parse_int=str)["payload"]["parameters"]
        own = {
            one["name"]: one["value"] if isinstance(one["value"], str) else json.dumps(one["value"]) for one in values
        }
        texts = {name: value.replace('"', "") for name, value in own.items()}
        talk.came(f"numbers, {about}", expected, texts)
        talk.came("and no others", sorted(expected), sorted(texts))
    talk.ask(
        "GET", "/parameters.json", shows=lambda each: {"values.returned", "values.n0"} <= {row["name"] for row in each}
    )
    _removed(talk, [mapping, *(f"/parameters/{each['id']}" for each in talk.ask("GET", "/parameters.json"))])


def _never_sent(talk: Talk) -> None:
    """``parameters`` of a producer's payload, and of a parent's that a service has copied, are not sent: neither where
    a mapping has none nor where it has its own.
    """
    own = _parameter(talk, "values.own", '"mine"', "string")
    hushed = _parameter(talk, "values.hushed", '"hush"', "string")

    def copied(came: Came) -> tuple[int, bytes]:
        return done(came, messages=[{"message": "values:copied", "payload": _payload(came)}])

    parent = talk.listen("values-copies.example", copied)
    plain = talk.listen("values-plain.example", done)
    owning = talk.listen("values-owning.example", done)
    mappings = [
        mapped(talk, "values-copies", ["values:asked"], parameters=[hushed]),
        mapped(talk, "values-plain", ["values:asked", "values:copied"]),
        mapped(talk, "values-owning", ["values:asked", "values:copied"], parameters=[own]),
    ]
    talk.sleep(MINUTE + 1)
    body = (
        b'{"message": "values:asked", "payload": {"total": 19.90, "parameters": [{"name": "x", "value": 1}], "z": {}}}'
    )
    talk.ask("POST", "/messages", body, status=201)
    talk.sleep(30 + talk.put_off_s)
    payload = {"total": 19.9, "z": {}}
    talk.came(
        "its own",
        [{**payload, "parameters": [{"name": "values.hushed", "value": "hush"}]}],
        list(map(_payload, parent)),
    )
    with_own = {**payload, "parameters": [{"name": "values.own", "value": "mine"}]}
    talk.came("its own, both times", [with_own] * 2, list(map(_payload, owning)))
    talk.came("none", [sorted(payload)] * 2, [sorted(_payload(each)) for each in plain])
    talk.came("as written", [True, True], [b"19.90" in each[0].body for each in (plain, owning)])
    _removed(talk, [*mappings, f"/parameters/{own}", f"/parameters/{hushed}"])


def _masked(talk: Talk) -> None:
    """A token is not shown; ``********`` means the stored one for the same scheme, host and port, none elsewhere."""
    came = {name: talk.listen(f"values-token-{name}.example", done) for name in ("one", "two")}
    other = talk.listen("values-elsewhere.example", done)
    mappings = {
        name: mapped(talk, f"values-token-{name}", ["values:token"], token=f"hush {name}") for name in ("one", "two")
    }
    for name, mapping in mappings.items():
        shown = talk.ask("GET", mapping, shows={"token": HIDDEN})
        for url in (
            "https://values-elsewhere.example/in",
            f"https://values-token-{name}.example:8443/in",
            f"http://values-token-{name}.example/in",
            f"https://a.values-token-{name}.example/in",
        ):
            talk.refused("PUT", mapping, {"mapping": {"url": url, "token": HIDDEN}}, status=422)
            talk.refused("PUT", mapping, {"mapping": {**shown, "url": url}}, status=422)
        talk.ask("GET", mapping, shows=shown)
        moved = {"url": f"https://values-token-{name}.example/moved", "token": HIDDEN}
        talk.ask("PUT", mapping, {"mapping": moved}, shows=moved)
    talk.refused(
        "POST",
        "/mappings",
        {
            "name": "values-none",
            "url": "https://values-elsewhere.example/",
            "token": HIDDEN,
            "messages": ["values:token"],
        },
        status=422,
    )
    talk.sleep(MINUTE + 1)
    pushed(talk, "values:token", {"n": 1})
    talk.sleep(20 + talk.put_off_s)
    for name, heard in came.items():
        sent = [(each.path, each.headers["x-augury-token"]) for each in heard]
        talk.came("each its own", [("/moved", f"hush {name}")], sent)
    [row, *_] = talk.ask("GET", "/queues/archived.json?message=values:token")
    views = (f"/messages/{row['id']}", "/mappings", "/mappings.json", "/queues/archived")
    talk.is_so("shown nowhere", [False] * 4, ["hush" in json.dumps(talk.ask("GET", each)) for each in views])
    talk.ask("PUT", mappings["two"], {"mapping": {"url": "https://values-elsewhere.example/in", "token": "new"}})
    talk.sleep(MINUTE + 1)
    pushed(talk, "values:token", {"n": 2})
    talk.sleep(20 + talk.put_off_s)
    talk.came("a new one elsewhere", ["new"], [each.headers["x-augury-token"] for each in other])
    _removed(talk, [*mappings.values()])
    # An integration shows its token once
    fields = {"name": "valued", "url": "https://values-valued.example", "token": "hush", "category": "custom"}
    services = [{"name": "one", "path": "/one", "recommends": {"messages": ["values:token"]}}]
    talk.listen("values-valued.example", lambda _: (200, json.dumps({"name": "valued", "services": services}).encode()))
    created = talk.ask("POST", "/integrations", {"integration": fields}, status=201, shows={"token": "hush"})
    path = f"/integrations/{created['id']}"
    talk.ask("GET", path, shows={"token": HIDDEN})
    talk.is_so("listed", [HIDDEN], [each["token"] for each in talk.ask("GET", "/integrations.json")])
    for url in ("https://values-elsewhere.example", "https://values-valued.example:8443"):
        talk.refused("PUT", path, {"integration": {"url": url, "token": HIDDEN}}, status=422)
    talk.ask("PUT", path, {"integration": {"token": HIDDEN}}, shows={"token": HIDDEN, "url": fields["url"]})
    talk.ask("DELETE", path)


def _signed(talk: Talk) -> None:
    """Requests of a mapping with a secret are signed with it, also retries and polls, and no others; the id that is
    signed is the message's.
    """

    def answers() -> Any:
        said = iter(((500, {}), (200, {"delay": 1, "update_url": "/poll"})))

        def answer(came: Came) -> tuple[int, bytes]:
            status, more = next(said, (200, {}))
            return status, done(came, **more)[1]

        return answer

    secrets: Mapping[str, Any] = {"one": SECRETS[0], "two": SECRETS[1], "none": None}
    came = {name: talk.listen(f"values-signed-{name}.example", answers()) for name in secrets}
    mappings = []
    for name, secret in secrets.items():
        more = {"signing": {"secret": secret}} if secret else {}
        options = {"retry_base": 10, "retry_cap": 10}
        mappings.append(mapped(talk, f"values-signed-{name}", ["values:signed"], options=options, **more))
    talk.ask("GET", mappings[0], shows=lambda each: SECRETS[0] not in json.dumps(each))
    talk.sleep(MINUTE + 1)
    pushed(talk, "values:signed", {"n": 1})
    talk.sleep(4 * MINUTE + 3 * talk.gathered_s + talk.put_off_s)
    for name, secret in secrets.items():
        heard = came[name]
        talk.came(f"three requests to {name}", ["/in", "/in", "/poll"], [each.path for each in heard])
        if secret is None:
            talk.came("not signed", [False] * 3, ["webhook-signature" in each.headers for each in heard])
            continue
        ids = [each.headers["webhook-id"] == json.loads(each.body)["message_id"] for each in heard]
        talk.came("the message's id", [True] * 3, ids)
        talk.came("signed", [True] * 3, [is_signed(each, secret) for each in heard])
        talk.came("with no other's", [False] * 3, [is_signed(each, OTHER_SECRET) for each in heard])
    _removed(talk, mappings)


def _rounds(talk: Talk) -> None:
    """A mapping that leads back to the store, and passes on how many led to a message, ends with 508."""
    answered: list[int] = []

    def back(came: Came) -> tuple[int, bytes]:
        again = talk.with_headers(pushhub_hops=came.headers["pushhub-hops"])
        answered.append(again.status("POST", "/messages", {"message": "values:round", "payload": {}}))
        return done(came)

    came = talk.listen("values-round.example", back)
    alone = talk.listen("values-alone.example", done)
    mappings = [mapped(talk, "values-round", ["values:round"]), mapped(talk, "values-alone", ["values:alone"])]
    talk.sleep(MINUTE + 1)
    pushed(talk, "values:alone", {})
    near = talk.with_headers(pushhub_hops=str(MOST_HOPS - 3))
    near.ask("POST", "/messages", {"message": "values:round", "payload": {}}, status=201)
    talk.with_headers(pushhub_hops=str(MOST_HOPS)).refused(
        "POST", "/messages", {"message": "values:round", "payload": {}}, status=508
    )
    talk.sleep(MINUTE + 3 * talk.gathered_s + 3 * talk.put_off_s)
    talk.came("what was posted led to the first", ["1"], [each.headers["pushhub-hops"] for each in alone])
    hops = [str(number) for number in range(MOST_HOPS - 2, MOST_HOPS + 1)]
    talk.came("one more each time", hops, [each.headers["pushhub-hops"] for each in came])
    talk.is_so("until there are too many", [201, 201, 508], answered)
    _removed(talk, mappings)


def _searched(talk: Talk) -> None:
    """The copies for a mapping are found by the values of the fields that it names, at once, and only by them."""
    talk.listen("values-found.example", done)
    mapping = mapped(talk, "values-found", ["values:found"], search_fields=["order.number", "order.who"])
    talk.sleep(MINUTE + 1)
    ids = [
        pushed(talk, "values:found", {"order": {"number": number, "who": "ann", "more": "else"}})
        for number in ("V-1", "V-2")
    ]
    talk.sleep(30 + talk.put_off_s)
    sent = [copies(talk, each)[0]["id"] for each in ids]
    search = talk.at(f"/3/projects/{talk.project}").with_headers(authorization=f"OAuth {talk.token}")

    def found(value: str) -> list[tuple[str, str]]:
        rows = search.ask("GET", f"/search?value={value}")["found"]
        return sorted((each["field"], each["deliveries"][0]["subscriber_name"]) for each in rows if each["field"])

    talk.is_so("by one value", [("order.number", "values-found")], found("V-1"))
    talk.is_so("by a value that both have", [("order.who", "values-found")] * len(sent), found("ann"))
    talk.is_so("by another's", [], found("V-3"))
    talk.ask("DELETE", mapping)


__all__ = ["through"]
