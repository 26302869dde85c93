"""Whose is it? Two clients with projects of their own give everything the same names and keys, and each gets what is
its own: nobody sees, changes, acknowledges, repeats or ends what is another project's, application's, or subscriber's.

Sources: each protocol's documents, by which names are those of a project (docs/decisions/projects.md), of an
application (Svix), or of a subscriber.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from simulation.promises.talks.notifications import Connect
from simulation.promises.talks.services import done
from simulation.promises.talks.talk import Came, Talk

SINCE = "2020-01-01T00:00:00Z"
EQUAL = "same"
"""The name of everything."""


def queues(mine: Talk, theirs: Talk) -> None:
    """Queues, subscribers, reservations, acknowledgements and dead letters."""
    mine.through(
        lambda _: _pushes(mine, theirs), lambda _: _between(mine, theirs), lambda _: _reservations(mine, theirs)
    )


def _pushes(mine: Talk, theirs: Talk) -> None:
    came: dict[str, Sequence[Came]] = {}
    ids: dict[str, str] = {}
    for name, talk in (("mine", mine), ("theirs", theirs)):
        subscribers = []
        for each in ("a", "b"):
            came[f"{name}-{each}"] = talk.listen(f"whose-{name}-{each}.example", lambda _: (202, b""))
            subscribers.append({"name": each, "url": f"https://whose-{name}-{each}.example/in"})
        push = {"subscribers": subscribers, "retries": 1, "retries_delay": 40}
        talk.ask("PUT", f"/queues/{EQUAL}", {"queue": {"push": push}})
        message = {"messages": [{"body": name, "push_headers": {"X-Of": name}}]}
        ids[name] = talk.ask("POST", f"/queues/{EQUAL}/messages", message, status=201)["ids"][0]
    mine.sleep(10)
    for name, heard in came.items():
        owner = name.partition("-")[0]
        arrived = [(one.body.decode(), one.headers["x-of"], one.headers["iron-message-id"]) for one in heard]
        mine.came(name, [(owner, owner, ids[owner])], arrived)
    held = {name: each[0].headers["iron-reservation-id"] for name, each in came.items()}
    own, other = f"/queues/{EQUAL}/messages/{ids['mine']}", f"/queues/{EQUAL}/messages/{ids['theirs']}"
    # Another subscriber's reservation, another project's, and another project's message
    for name, reservation in (("a", held["mine-b"]), ("b", held["mine-a"]), ("a", held["theirs-a"])):
        mine.ask("DELETE", own, {"reservation_id": reservation, "subscriber_name": name}, status=403)
    mine.ask("DELETE", other, {"reservation_id": held["theirs-a"], "subscriber_name": "a"}, status=404)
    mine.ask("GET", other, status=404)
    mine.ask("GET", f"{other}/subscribers", status=404)
    mine.ask("GET", f"{other}/attempts", status=404)
    mine.ask("DELETE", other, {}, status=404)
    # One acknowledgement ends one subscriber's delivery, and no other one's
    mine.ask("DELETE", own, {"reservation_id": held["mine-a"], "subscriber_name": "a"}, shows={"msg": "Deleted"})
    mine.sleep(100)
    mine.came("who acknowledged is not asked again", 1, len(came["mine-a"]))
    for name in ("mine-b", "theirs-a", "theirs-b"):
        mine.came(f"{name} is", 2, len(came[name]))
    # What one owner clears, pauses and deletes is there for the other
    theirs.ask("POST", f"/queues/{EQUAL}/pause", {"subscriber": "a"}, shows={"msg": "Paused"})
    theirs.ask("DELETE", f"/queues/{EQUAL}/messages", {}, shows={"msg": "Cleared"})
    mine.ask("GET", own, shows={"message": {"body": "mine"}})
    mine.ask("GET", f"/queues/{EQUAL}", shows=lambda each: _paused(each) == [False, False])
    theirs.ask("GET", f"/queues/{EQUAL}", shows=lambda each: _paused(each) == [True, False])
    theirs.ask("DELETE", f"/queues/{EQUAL}")
    mine.ask("GET", f"/queues/{EQUAL}", shows={"queue": {"name": EQUAL}})
    mine.ask("DELETE", f"/queues/{EQUAL}")


def _between(mine: Talk, theirs: Talk) -> None:
    """A queue pushes to another project's with that one's token, and not to its own of that name."""
    for talk in (mine, theirs):
        talk.ask("PUT", "/queues/given", {})
    for name, token in (("theirs", theirs.token), ("closed", mine.token)):
        one = {"name": "given", "url": f"ironmq://{theirs.project}:{token}@/given"}
        mine.ask("PUT", f"/queues/to-{name}", {"queue": {"push": {"subscribers": [one], "retries": 0}}})
        mine.ask("POST", f"/queues/to-{name}/messages", {"messages": [{"body": name}]}, status=201)
    mine.sleep(30 + mine.put_off_s)
    theirs.ask("POST", "/queues/given/reservations", {"n": 9}, shows={"messages": [{"body": "theirs"}]})
    mine.ask("POST", "/queues/given/reservations", {"n": 9}, shows={"messages": []})
    for talk, names in ((mine, ("to-theirs", "to-closed", "given")), (theirs, ("given",))):
        for name in names:
            talk.ask("DELETE", f"/queues/{name}")


def _paused(answer: Mapping[str, Any]) -> list[bool]:
    return [bool(each.get("paused")) for each in answer["queue"]["push"]["subscribers"]]


def _reservations(mine: Talk, theirs: Talk) -> None:
    dead = {"queue": {"dead_letter": {"queue_name": "letters", "max_reservations": 1}}}
    ids: dict[str, list[str]] = {}
    for name, talk in (("mine", mine), ("theirs", theirs)):
        talk.ask("PUT", "/queues/pulled", dead)
        talk.ask("PUT", "/queues/letters", {})
        bodies = {"messages": [{"body": f"{name} {number}"} for number in range(2)]}
        ids[name] = talk.ask("POST", "/queues/pulled/messages", bodies, status=201)["ids"]
    taken = mine.ask("POST", "/queues/pulled/reservations", {"n": 9, "timeout": 30})["messages"]
    mine.is_so("mine alone", ["mine 0", "mine 1"], [each["body"] for each in taken])
    first, second = (each["reservation_id"] for each in taken)
    path = "/queues/pulled/messages/"
    # Another message's reservation is none, and neither is mine at theirs
    for act in ("touch", "release"):
        mine.ask("POST", f"{path}{ids['mine'][0]}/{act}", {"reservation_id": second}, status=403)
        theirs.ask("POST", f"{path}{ids['mine'][0]}/{act}", {"reservation_id": first}, status=404)
        theirs.ask("POST", f"{path}{ids['theirs'][0]}/{act}", {"reservation_id": first}, status=403)
    mine.ask("DELETE", f"{path}{ids['mine'][0]}", {"reservation_id": second}, status=403)
    theirs.ask("DELETE", f"{path}{ids['mine'][0]}", {"reservation_id": first}, status=404)
    swapped = [{"id": ids["mine"][0], "reservation_id": second}, {"id": ids["mine"][1], "reservation_id": first}]
    mine.ask("DELETE", "/queues/pulled/messages", {"ids": swapped}, status=403)
    mine.ask("DELETE", f"{path}{ids['mine'][0]}", {"reservation_id": first}, shows={"msg": "Deleted"})
    # A reservation that a later one has superseded deletes nothing, and its owner keeps the message
    mine.sleep(32, exactly=True)
    mine.ask("POST", "/queues/pulled/reservations", {}, shows={"messages": []})
    mine.ask("GET", "/queues/letters", shows={"queue": {"size": 1}})
    theirs.ask("GET", "/queues/letters", shows={"queue": {"size": 0}})
    mine.ask("DELETE", f"/queues/letters/messages/{ids['mine'][1]}", {"reservation_id": second}, status=403)
    letter = mine.ask("POST", "/queues/letters/reservations", {"timeout": 5})["messages"][0]
    mine.is_so("the dead letter", {"id": ids["mine"][1], "body": "mine 1"}, letter)
    mine.sleep(7, exactly=True)
    again = mine.ask("POST", "/queues/letters/reservations", {"timeout": 60})["messages"][0]
    one = f"/queues/letters/messages/{ids['mine'][1]}"
    for act in ("touch", "release"):
        mine.ask("POST", f"{one}/{act}", {"reservation_id": letter["reservation_id"]}, status=403)
    mine.ask("DELETE", one, {"reservation_id": letter["reservation_id"]}, status=403)
    mine.ask("GET", one, shows={"message": {"reserved_count": again["reserved_count"]}})
    mine.ask("DELETE", one, {"reservation_id": again["reservation_id"]}, shows={"msg": "Deleted"})
    theirs.ask("GET", "/queues/pulled", shows={"queue": {"size": 2}})
    for talk in (mine, theirs):
        talk.ask("DELETE", "/queues/pulled")
        talk.ask("DELETE", "/queues/letters")


def webhooks(mine: Talk, theirs: Talk) -> None:
    """Applications, endpoints, messages, idempotency and ordering keys, tasks."""
    mine.through(lambda _: _applications(mine, theirs), lambda _: _event_types(mine, theirs))


def _applications(mine: Talk, theirs: Talk) -> None:
    kind = {"name": "whose.made", "description": "d"}
    apps = {"mine": (mine, EQUAL), "other": (mine, "other"), "theirs": (theirs, EQUAL)}
    came: dict[str, Sequence[Came]] = {}
    endpoint_ids: dict[str, str] = {}
    ids: dict[str, list[str]] = {}
    for talk in (mine, theirs):
        talk.ask("POST", "/event-type", kind, status=201)
    heard = _heard({"mine": mine, "theirs": theirs})
    for name, (talk, app) in apps.items():
        talk.ask("POST", "/app", {"name": EQUAL, "uid": app}, status=201)
        came[name] = talk.listen(f"whose-{name}.example", lambda _: (200, b""))
        given = {"url": f"https://whose-{name}.example/", "uid": "one"}
        endpoint_ids[name] = talk.ask("POST", f"/app/{app}/endpoint", given, status=201)["id"]
    for name, (talk, app) in apps.items():
        ids[name] = []
        for number in range(2):
            once = talk.with_headers(idempotency_key=f"key-{number}")
            body = {"eventType": "whose.made", "payload": {"of": name, "n": number}, "orderingKey": "k"}
            for _ in range(2):
                ids[name].append(once.ask("POST", f"/app/{app}/msg", body, status=202)["id"])
            other = {**body, "payload": {"of": "somebody"}}
            once.ask("POST", f"/app/{app}/msg", other, status=422)
    mine.is_so("six messages", 6, len({each for own in ids.values() for each in own}))
    mine.sleep(20)
    owners = {"mine": ["mine", "other"], "theirs": ["theirs"]}
    for name, events in heard.items():
        about = sorted(json.loads(each.body)["data"]["endpointId"] for each in events)
        mine.came(f"of whose endpoints {name} hears", sorted(endpoint_ids[each] for each in owners[name]), about)
    for talk in (mine, theirs):
        talk.ask("DELETE", "/operational-webhook/endpoint/ops", status=204)
    for name, each in came.items():
        got = [(json.loads(one.body), one.headers["webhook-sequence"]) for one in each]
        mine.came(f"what is of {name}", [({"of": name, "n": n}, f"{n + 1}") for n in range(2)], got)
    for app, strange, endpoint in (
        (EQUAL, ids["theirs"][0], endpoint_ids["theirs"]),
        (EQUAL, ids["other"][0], endpoint_ids["other"]),
        ("other", ids["mine"][0], endpoint_ids["mine"]),
    ):
        mine.ask("GET", f"/app/{app}/msg/{strange}", status=404)
        mine.ask("GET", f"/app/{app}/attempt/msg/{strange}", status=404)
        mine.ask("POST", f"/app/{app}/msg/{strange}/endpoint/one/resend", {}, status=404)
        mine.ask("DELETE", f"/app/{app}/msg/{strange}/content", status=404)
        mine.ask("GET", f"/app/{app}/endpoint/{endpoint}", status=404)
        mine.ask("PATCH", f"/app/{app}/endpoint/{endpoint}", {"disabled": True}, status=404)
        mine.ask("GET", f"/app/{app}/endpoint/{endpoint}/secret", status=404)
        mine.ask("DELETE", f"/app/{app}/endpoint/{endpoint}", status=404)
        mine.ask("GET", f"/app/{app}/msg", shows={"data": 2 * [{"eventType": "whose.made"}], "done": True})
    # What is sent again, and what a task sends, goes to one endpoint of one name
    mine.ask("POST", f"/app/{EQUAL}/msg/{ids['mine'][0]}/endpoint/one/resend", {}, status=202)
    replay = {"since": SINCE, "unlimited": True}
    task = mine.ask("POST", "/app/other/endpoint/one/bulk-replay", replay, status=202)["id"]
    theirs.ask("GET", f"/background-task/{task}", status=404)
    theirs.ask("GET", "/background-task", shows={"data": []})
    mine.sleep(120)
    counts = {name: len(each) for name, each in came.items()}
    mine.came("sent again", {"mine": 3, "other": 4, "theirs": 2}, counts)
    # What one erases, switches off and deletes is there for the others
    mine.ask("DELETE", f"/app/{EQUAL}/msg/{ids['mine'][0]}/content", status=204)
    mine.ask("PATCH", f"/app/{EQUAL}/endpoint/one", {"disabled": True}, shows={"disabled": True})
    for talk, app, name in ((mine, "other", "other"), (theirs, EQUAL, "theirs")):
        talk.ask("GET", f"/app/{app}/msg/{ids[name][0]}", shows={"payload": {"of": name}})
        talk.ask("GET", f"/app/{app}/endpoint/one", shows={"disabled": False})
    mine.ask("DELETE", f"/app/{EQUAL}", status=204)
    theirs.ask("GET", f"/app/{EQUAL}", shows={"uid": EQUAL})
    theirs.ask(
        "POST", f"/app/{EQUAL}/msg", {"eventType": "whose.made", "payload": {"of": "theirs", "n": 2}}, status=202
    )
    theirs.sleep(10)
    mine.came("which still get theirs", {"of": "theirs", "n": 2}, json.loads(came["theirs"][-1].body))
    mine.ask("DELETE", "/app/other", status=204)
    theirs.ask("DELETE", f"/app/{EQUAL}", status=204)


def _heard(talks: Mapping[str, Talk]) -> dict[str, Sequence[Came]]:
    """An operational endpoint of each, of one name; what each is told of new endpoints."""
    came: dict[str, Sequence[Came]] = {}
    for name, talk in talks.items():
        host = f"whose-ops-{name}.example"
        came[name] = talk.listen(host, lambda _: (200, b""))
        fields = {"url": f"https://{host}/", "uid": "ops", "eventTypes": ["endpoint.created"]}
        talk.ask("POST", "/operational-webhook/endpoint", fields, status=201)
    return came


def _event_types(mine: Talk, theirs: Talk) -> None:
    """Each project's event type of a name has its own schema, or none."""
    owners = {"a": mine, "b": theirs}
    for name, talk in owners.items():
        fields = {"name": "whose.typed", "description": "d", "schemaEnforcement": "reject"}
        talk.ask("POST", "/event-type", {**fields, "schemas": {"1": {"required": [name]}}}, status=201)
        talk.ask("POST", "/app", {"name": "Typed", "uid": "typed"}, status=201)
    for _ in range(2):
        for name, talk in owners.items():
            for member in owners:
                body = {"eventType": "whose.typed", "payload": {member: 1}}
                talk.ask("POST", "/app/typed/msg", body, status=202 if member == name else 422)
    for talk in owners.values():
        talk.ask("DELETE", "/app/typed", status=204)
        talk.ask("DELETE", "/event-type/whose.typed?expunge=true", status=204)


def stores(mine: Talk, theirs: Talk) -> None:
    """Mappings, identities, parameters and messages; types, counts, schedules, integrations."""
    mine.through(lambda _: _mappings(mine, theirs), lambda _: _store_lists(mine, theirs))


def _mappings(mine: Talk, theirs: Talk) -> None:
    came: dict[str, Sequence[Came]] = {}
    mapping_ids: dict[str, list[str]] = {}
    ids: dict[str, str] = {}

    for name, talk in (("mine", mine), ("theirs", theirs)):
        given = {"name": "whose.key", "value": name, "data_type": "string"}
        parameter = talk.ask("POST", "/parameters", {"parameter": given}, status=201)
        parameter = parameter.get("parameter", parameter)
        mapping_ids[name] = []
        for each in ("a", "b"):
            came[f"{name}-{each}"] = talk.listen(f"whose-{name}-{each}.example", done)
            fields: dict[str, Any] = {"name": each, "token": f"{name} {each}"}
            fields |= {"url": f"https://whose-{name}-{each}.example/in", "messages": ["whose:made"]}
            fields |= {"identifiers": {"n": "payload.same"}}
            whole = {**fields, "parameters": [parameter["id"]]}
            answer = talk.ask("POST", "/mappings", {"mapping": whole}, status=201)
            mapping_ids[name].append(str(answer.get("mapping", answer)["id"]))
    mine.sleep(61)
    for name, talk in (("mine", mine), ("theirs", theirs)):
        for number in range(2):
            message = {"message": "whose:made", "payload": {"of": name, "same": 1, "n": number}}
            ids[name] = talk.ask("POST", "/messages", message, status=201)["message_id"]
            talk.sleep(5)
    mine.sleep(20)
    for name, heard in came.items():
        owner, which = name.split("-")
        arrived = [(json.loads(one.body)["payload"], one.headers["x-augury-token"]) for one in heard]
        parameters = [{"name": "whose.key", "value": owner}]
        # Once for each identity of a mapping, whatever others have seen of it
        mine.came(name, [({"of": owner, "n": 0, "parameters": parameters}, f"{owner} {which}")], arrived)
    mine.ask("GET", f"/messages/{ids['theirs']}", status=404)
    mine.ask("PUT", f"/messages/{ids['theirs']}", {"archive": True}, status=404)
    for method, body in (("GET", None), ("PUT", {"mapping": {"enabled": False}}), ("DELETE", None)):
        mine.ask(method, f"/mappings/{mapping_ids['theirs'][0]}", body, status=404)
    theirs.ask(
        "GET", f"/mappings/{mapping_ids['theirs'][0]}", shows=lambda each: each.get("mapping", each)["enabled"] is True
    )
    for name, talk in (("mine", mine), ("theirs", theirs)):
        for each in mapping_ids[name]:
            talk.ask("DELETE", f"/mappings/{each}")


def _store_lists(mine: Talk, theirs: Talk) -> None:
    """What two stores have with equal names is listed and counted in each, and gone in one alone."""
    talks = {"mine": mine, "theirs": theirs}
    services = [{"name": "one", "path": "/one", "recommends": {"messages": ["whose:service"]}}]
    described = json.dumps({"name": EQUAL, "services": services}).encode()
    paths: dict[str, dict[str, str]] = {}
    for name, talk in talks.items():
        came = talk.listen(f"whose-{name}.example", lambda _: (200, described))
        talk.ask("POST", "/messages", {"message": "whose:nobody", "payload": {"of": name}}, status=201)
        fields: dict[str, dict[str, Any]] = {
            "scheduler": {"key": "whose:tick", "count": 3, "interval": "weeks"},
            "parameter": {"name": "whose.other", "value": name, "data_type": "string"},
            "integration": {"name": EQUAL, "url": f"https://whose-{name}.example", "token": "t", "category": "custom"},
        }
        created = {kind: talk.ask("POST", f"/{kind}s", {kind: each}, status=201)["id"] for kind, each in fields.items()}
        paths[name] = {kind: f"/{kind}s/{each}" for kind, each in created.items()}
        talk.came("its description was asked for", 1, len(came))
    mine.sleep(30 + mine.put_off_s)

    def listed(talk: Talk) -> list[list[str]]:
        own = ((each, talk.ask("GET", f"/{each}.json")) for each in ("schedulers", "integrations", "mappings"))
        by = {"schedulers": "key", "integrations": "name", "mappings": "name"}
        return [sorted(each[by[kind]] for each in rows) for kind, rows in own]

    for talk in talks.values():
        types = talk.ask("GET", "/available_messages.json")
        talk.is_so("each type that it has had", [True, True], ["whose:made" in types, "whose:nobody" in types])
        talk.is_so("each has its own", [["whose:tick"], [EQUAL], [f"{EQUAL}.one"]], listed(talk))
        found = talk.ask("GET", "/queues/archived.json?source=incoming&message=whose:nobody")
        talk.is_so("one message", 1, len(found))
    counts = [talk.ask("GET", "/queues")["archived"] for talk in talks.values()]
    mine.ask("POST", "/messages", {"message": "whose:nobody", "payload": {}}, status=201)
    mine.sleep(20 + mine.put_off_s)
    now = [talk.ask("GET", "/queues")["archived"] for talk in talks.values()]
    mine.is_so("one more in one", [counts[0] + 1, counts[1]], now)
    for path in paths["theirs"].values():
        mine.ask("GET", path, status=404)
        mine.ask("DELETE", path, status=404)
    # A store of somebody else is refused like a wrong token, as is one that does not exist
    for project in (theirs.project, f"{mine.project}0"):
        mine.at(f"/api/stores/{project}").ask("GET", "/mappings", status=401)
    for path in paths["mine"].values():
        mine.ask("DELETE", path)
    mine.is_so("none left", [[], [], []], listed(mine))
    theirs.is_so("all of theirs", [["whose:tick"], [EQUAL], [f"{EQUAL}.one"]], listed(theirs))
    theirs.ask("GET", paths["theirs"]["parameter"], shows={"value": "theirs"})
    for path in paths["theirs"].values():
        theirs.ask("DELETE", path)


def topics(mine: Talk, theirs: Talk, connect: Connect) -> None:
    """Subscriptions, subscribers, tokens, acknowledgements and idempotency keys."""
    mine.through(lambda _: _topics(mine, theirs, connect))


def _topics(mine: Talk, theirs: Talk, connect: Connect) -> None:
    rule = {"context": "tenant", "subscription": "whoseTopic", "subscriptionFilter": {"apis": ["events"]}}
    talks = {"mine": mine, "theirs": theirs}
    subscription_ids = {
        name: talk.ask("POST", "/subscriptions", rule, status=201)["id"] for name, talk in talks.items()
    }
    used: dict[str, str] = {}
    sides: dict[str, Any] = {}
    for name, talk in talks.items():
        for subscriber in ("a", "b"):
            wanted = {"subscription": "whoseTopic", "subscriber": subscriber}
            used[f"{name}-{subscriber}"] = str(talk.ask("POST", "/token", wanted)["token"])
    for name, token in used.items():
        sides[name] = connect({"token": token})
        mine.is_so(f"{name} is let in", 200, sides[name].status)
    mine.sleep(5)
    for name, talk in talks.items():
        once = talk.with_headers(idempotency_key="whose")
        body = {"api": "events", "source": "1", "data": {"of": name, "type": "t"}}
        for _ in range(2):
            once.ask("POST", "/notifications", body, status=201)
        talk.sleep(5)

    def got(name: str) -> list[str]:
        return [json.loads(each.partition("\n\n")[2])["of"] for each in sides[name].frames]

    for name in used:
        mine.came(name, [name.partition("-")[0]], got(name))
    # An acknowledgement is one subscriber's, of one topic: the others get theirs again
    sides["mine-a"].send(sides["mine-a"].frames[0].partition("\n")[0])
    mine.sleep(5)
    waits = [{"subscriber": "a", "unacknowledged": 0}, {"subscriber": "b", "unacknowledged": 1}]
    mine.ask("GET", "/subscribers?subscription=whoseTopic", shows=lambda each: _by_name(each) == waits)
    both = [{**each, "unacknowledged": 1} for each in waits]
    theirs.ask("GET", "/subscribers?subscription=whoseTopic", shows=lambda each: _by_name(each) == both)
    mine.ask("GET", f"/subscriptions/{subscription_ids['theirs']}", status=404)
    mine.ask("DELETE", f"/subscriptions/{subscription_ids['theirs']}", status=404)
    for name in ("theirs-a", "theirs-b"):
        sides[name].close()
        theirs.ask("POST", f"/unsubscribe?token={used[name]}", shows={"result": "DONE"})
    mine.ask("GET", "/subscribers?subscription=whoseTopic", shows=lambda each: _by_name(each) == waits)
    theirs.ask("DELETE", f"/subscriptions/{subscription_ids['theirs']}", status=204)
    body = {"api": "events", "source": "1", "data": {"of": "mine", "type": "t"}}
    mine.ask("POST", "/notifications", body, status=201)
    mine.sleep(5)
    mine.came("mine goes on", ["mine", "mine"], got("mine-b"))
    for name in ("mine-a", "mine-b"):
        sides[name].close()
        mine.ask("POST", f"/unsubscribe?token={used[name]}", shows={"result": "DONE"})
    mine.ask("DELETE", f"/subscriptions/{subscription_ids['mine']}", status=204)


def _by_name(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = [{name: each[name] for name in ("subscriber", "unacknowledged")} for each in answer["subscribers"]]
    return sorted(found, key=lambda each: str(each["subscriber"]))


__all__ = ["queues", "stores", "topics", "webhooks"]
