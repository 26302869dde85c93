"""Settings of queues, subscribers and alerts of IronMQ v3: each comes back as it was set, stays when another one is
changed, and is reset as documented.

Sources: docs/ironmq.md, and Iron.io's documents of queues, push queues, dead letters and alerts.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from simulation.promises.talks.talk import Came, Talk, differs

HIDDEN = "********"


def pull(talk: Talk) -> None:
    """Settings of pull queues, and of a project's alerts."""
    talk.through(_pull_queue, _misspelt, _alerts)


def push(talk: Talk) -> None:
    """Settings of push queues and their subscribers."""
    talk.through(_push_queue, _subscribers, _secret_headers, _secrets_of_several)


def _alert(kind: str, direction: str, trigger: int, **more: Any) -> dict[str, Any]:
    return {"type": kind, "direction": direction, "trigger": trigger, "queue": f"told-{kind}", **more}


def _changes(others: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Requests that change one setting each; of ``push`` one of its own."""
    for name, value in others.items():
        if name == "push":
            yield from ({"push": {each: change}} for each, change in value.items())
        else:
            yield {name: value}


def _kept(talk: Talk, path: str, whole: Mapping[str, Any], others: Mapping[str, Any]) -> None:
    """Each setting of a queue, changed alone: all others stay as they were, and so does everything without a change.

    Args:
        path: Of the queue.
        whole: All its settings.
        others: Another value for each of them; of ``push`` for each of its own.
    """
    shown: dict[str, Any] = {**whole}
    for given in _changes(others):
        planned = {**shown, **_within(shown, given)}
        for method in ("PUT", "PATCH"):
            talk.ask(method, path, {"queue": given, "dry_run": True}, shows=_shows(planned))
        talk.ask("GET", path, shows=_shows(shown))
        shown = planned
        talk.ask("PATCH", path, {"queue": given}, shows=_shows(shown))
        talk.ask("GET", path, shows=_shows(shown))
    nothing = {"name": "", "size": 0, "total_messages": 0, "message_timeout": 0, "message_expiration": 0, "type": None}
    for empty in ({}, nothing, *([{"push": {}}, {"push": {"subscribers": None}}] if "push" in whole else [])):
        talk.ask("PATCH", path, {"queue": empty}, shows=_shows(shown))
        talk.ask("PUT", path, {"queue": empty}, shows=_shows(shown))
    read = talk.ask("GET", path)["queue"]
    talk.ask("PUT", path, {"queue": read}, shows=_shows(shown))
    talk.ask("GET", path, shows={"queue": read})


def _shows(expected: Mapping[str, Any]) -> Callable[[Any], bool]:
    """Whether a queue is shown with these settings; what is false need not be shown, nor what is another one's name."""

    def so(answer: Any) -> bool:
        queue = {**answer["queue"]}
        if "push" in queue:
            queue["push"] = {"eager": False, **queue["push"]}
        return not differs(expected, queue)

    return so


def _within(shown: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    return {"push": {**shown["push"], **given["push"]}} if "push" in given else dict(given)


def _pull_queue(talk: Talk) -> None:
    path = "/queues/kept"
    whole = {
        "message_timeout": 77,
        "message_expiration": 7_777,
        "dead_letter": {"queue_name": "kept-dead", "max_reservations": 7},
        "alerts": [_alert("fixed", "asc", 3, snooze=60), _alert("progressive", "desc", 2)],
        "search_fields": ["order.id", "header:X-A"],
    }
    talk.ask("PUT", path, {"queue": whole, "dry_run": True}, shows={"queue": whole})
    talk.ask("GET", path, status=404)
    talk.ask("PUT", path, {"queue": whole}, shows={"queue": {"name": "kept", "type": "pull", **whole}})
    others = {
        "message_timeout": 78,
        "message_expiration": 7_778,
        "dead_letter": {"queue_name": "kept-other", "max_reservations": 8},
        "alerts": [_alert("fixed", "desc", 4, snooze=0)],
        "search_fields": ["order.number"],
    }
    _kept(talk, path, whole, others)
    # A dead letter queue of which only one member is given
    talk.ask(
        "PATCH",
        path,
        {"queue": {"dead_letter": {"queue_name": "kept-third"}}},
        shows={"queue": {"dead_letter": {"queue_name": "kept-third"}}},
    )
    nothing: dict[str, Any] = {"dead_letter": {"queue_name": ""}, "alerts": [], "search_fields": []}
    for name, empty in nothing.items():
        talk.ask("PATCH", path, {"queue": {name: empty}}, shows=lambda each, name=name: not each["queue"].get(name))
        talk.ask("GET", path, shows=lambda each, name=name: not each["queue"].get(name))
    talk.ask("GET", path, shows={"queue": {"message_timeout": 78, "message_expiration": 7_778}})
    talk.ask("DELETE", path)
    # What was deleted leaves nothing to the next of its name
    created = talk.ask("PUT", path, {}, shows={"queue": {"message_timeout": 60, "message_expiration": 604_800}})[
        "queue"
    ]
    talk.is_so(
        "no settings of before", [], [each for each in ("dead_letter", "alerts", "search_fields") if created.get(each)]
    )
    dead = {"queue_name": "kept-dead"}
    talk.ask(
        "PATCH",
        path,
        {"queue": {"dead_letter": dead}},
        shows={"queue": {"dead_letter": {**dead, "max_reservations": 10}}},
    )
    [alert] = talk.ask("PATCH", path, {"queue": {"alerts": [{"type": "fixed", "trigger": 1, "queue": "told"}]}})[
        "queue"
    ]["alerts"]
    talk.is_so("what is left out of an alert", {"direction": "asc"}, alert)
    bad: dict[str, Any]
    for bad in (
        {"dead_letter": {"queue_name": "kept-dead", "max_reservations": -1}},
        {"dead_letter": {"max_reservations": 5, "queue_name": 7}},
        {"dead_letter": []},
        {"alerts": [_alert("fixed", "up", 1)]},
        {"alerts": [_alert("fixed", "asc", 1, snooze=-1)]},
        {"alerts": [{"type": "fixed", "trigger": 1}]},
        {"alerts": {}},
        {"search_fields": "order.id"},
        {"search_fields": [""]},
        {"push": {"subscribers": []}},
    ):
        talk.refused("PATCH", path, {"queue": bad})
    talk.ask("GET", path, shows={"queue": {"dead_letter": {**dead, "max_reservations": 10}, "alerts": [alert]}})
    talk.ask("DELETE", path)


def _misspelt(talk: Talk) -> None:
    """A misspelt setting is no error: the answer says which one may have been meant, and so does the command."""
    answer = talk.answered("PUT", "/queues/misspelt", {"queue": {"message_timout": 5}})
    talk.is_so(
        "what may have been meant",
        (200, True),
        (answer.status, "message_timeout" in answer.headers.get("pushhub-warning", "")),
    )
    answer = talk.answered("PUT", "/queues/misspelt", {"queue": {"message_timeout": 5}})
    talk.is_so("nothing is misspelt", (200, None), (answer.status, answer.headers.get("pushhub-warning")))
    talk.ask("DELETE", "/queues/misspelt")


def _alerts(talk: Talk) -> None:
    """Alerts of a project: each field comes back, one is changed as a whole, and a test is sent."""
    heard = talk.listen("kept-told.example", lambda _: (200, b""))
    url = "https://kept-told.example/in?a=b"
    for queue, subscriber in (("kept", "shop"), ("other", "crm")):
        subscribers = [{"name": subscriber, "url": f"https://kept-{subscriber}.example/in"}]
        talk.ask("PUT", f"/queues/{queue}", {"queue": {"push": {"subscribers": subscribers}}})
    of_one = {"queue": "kept", "subscriber": "shop", "url": url, "format": "json"}
    whole = {"name": "Kept", "measure": "failure_rate", "threshold": 50, "minutes": 20, **of_one}
    [path] = _created(talk, whole)
    least = {"name": "Least", "measure": "oldest_waiting", "threshold": 600, "queue": "kept", "url": url}
    [other] = _created(talk, least)
    for change in (
        {"name": "Other"},
        {"measure": "given_up"},
        {"threshold": 7},
        {"minutes": 5},
        {"queue": "other", "subscriber": "crm"},
        {"format": "slack"},
        {"url": f"{url}&b=c"},
    ):
        whole |= change
        talk.ask("PUT", path, {"alert": whole}, shows={"alert": {**whole, "state": "quiet"}})
        kept = {path: whole, other: {**least, "format": "json", "minutes": 15}}
        found = {f"/alerts/{each['id']}": each for each in talk.ask("GET", "/alerts")["alerts"]}
        talk.is_so("both alerts", kept, found)
    bad: dict[str, Any]
    for bad in (
        {"measure": "failure_rate", "threshold": 101},
        {"measure": "oldest_waiting", "queue": ""},
        {"format": "xml"},
        {"url": "ftp://kept-told.example/"},
        {"url": ""},
    ):
        talk.refused("PUT", path, {"alert": {**whole, **bad}})
        talk.refused("POST", "/alerts", {"alert": {**whole, **bad}})
    for each in ("json", "slack"):
        talk.ask("PUT", path, {"alert": {**whole, "format": each}})
        talk.ask("POST", f"{path}/test", {})
    talk.sleep(30 + talk.put_off_s)
    for method in ("PUT", "DELETE"):
        talk.ask(method, "/alerts/none", {"alert": whole}, status=404)
    talk.ask("POST", "/alerts/none/test", {}, status=404)
    sent = sorted((json.loads(each.body) for each in heard), key=len)
    in_json = {"state": "test", "alert": {"name": "Other"}, "at": str, "text": str, "project": str}
    talk.came("a test in each format", [{"text": lambda each: "Other" in each}, in_json], sent)
    talk.came("Slack gets a text alone", {"text"}, {*sent[0]})
    for each in (path, other):
        talk.ask("DELETE", each)
        talk.ask("DELETE", each, status=404)
    for queue in ("kept", "other"):
        talk.ask("DELETE", f"/queues/{queue}")


def _created(talk: Talk, *alerts: Mapping[str, Any]) -> list[str]:
    """The paths of alerts that are made."""
    shown = [talk.ask("POST", "/alerts", {"alert": each}, status=201, shows={"alert": each}) for each in alerts]
    return [f"/alerts/{each['alert']['id']}" for each in shown]


def _push_queue(talk: Talk) -> None:
    path = "/queues/kept-push"
    first, second = ({"name": each, "url": f"https://kept-{each}.example/in?x=1"} for each in ("a", "b"))
    push = {
        "subscribers": [first, second],
        "retries": 7,
        "retries_delay": 77,
        "error_queue": "kept-errors",
        "eager": True,
    }
    whole = {"message_timeout": 77, "message_expiration": 7_777, "push": push, "search_fields": ["header:X-A"]}
    talk.ask("PUT", path, {"queue": {**whole, "type": "unicast"}}, shows={"queue": {**whole, "type": "unicast"}})
    talk.ask("DELETE", path)
    talk.ask("PUT", path, {"queue": whole}, shows={"queue": {"name": "kept-push", "type": "multicast", **whole}})
    others = {
        "message_timeout": 78,
        "message_expiration": 7_778,
        "search_fields": ["order.id"],
        "push": {
            "retries": 0,
            "retries_delay": 78,
            "error_queue": "kept-others",
            "eager": False,
            "subscribers": [second, first],
        },
    }
    _kept(talk, path, whole, others)
    talk.ask("PATCH", path, {"queue": {"push": {"error_queue": ""}}}, shows={"queue": {"push": {"error_queue": ""}}})
    talk.ask("GET", path, shows={"queue": {"push": {"error_queue": "", "retries_delay": 78}}})
    talk.ask("DELETE", path)


def _subscribers(talk: Talk) -> None:
    """Names may repeat, and one is renamed by its URL; it is removed by its name, its URL, or both."""
    urls = [f"https://kept-{number}.example/in" for number in range(3)]
    path = "/queues/kept-several"

    def named(*names: str) -> list[dict[str, Any]]:
        return [{"name": name, "url": url} for name, url in zip(names, urls, strict=False)]

    def shows(*names: str) -> None:
        talk.ask("GET", path, shows={"queue": {"push": {"subscribers": named(*names)}}})

    talk.ask("PUT", path, {"queue": {"push": {"subscribers": named("same", "same", "other")}}})
    shows("same", "same", "other")
    talk.ask("PUT", f"{path}/subscribers", {"subscribers": named("same", "renamed", "other")})
    shows("same", "renamed", "other")
    talk.ask("POST", f"{path}/subscribers", {"subscribers": [{"name": "renamed", "url": urls[1], "timeout": 17}]})
    talk.ask("GET", path, shows={"queue": {"push": {"subscribers": [{}, {"name": "renamed", "timeout": 17}, {}]}}})
    talk.ask("DELETE", f"{path}/subscribers", {"subscribers": [{"url": urls[2]}]}, shows={"msg": "Updated"})
    shows("same", "renamed")
    talk.ask("PUT", f"{path}/subscribers", {"subscribers": named("same", "same", "same")})
    talk.ask("DELETE", f"{path}/subscribers", {"subscribers": [{"name": "same", "url": urls[2]}]})
    shows("same", "same")
    talk.ask("DELETE", path)


def _secret_headers(talk: Talk) -> None:
    """Values of headers are never shown again; stars mean the stored one, at the same host alone."""
    hosts = ("kept-here.example", "kept-there.example")
    came: dict[str, Sequence[Came]] = {each: talk.listen(each, lambda _: (200, b"")) for each in hosts}
    shown = {"content-type": "text/csv", "user-agent": "kept", "accept": "text/x"}
    given = {"X-Key": "hush", "Content-Type": "text/csv", "User-Agent": "kept", "Accept": "text/x"}
    path = "/queues/kept-secret"

    def subscriber(host: str, **more: Any) -> dict[str, Any]:
        return {"name": "s", "url": f"https://{host}/in", **more}

    def posted(number: int) -> Came:
        talk.ask("POST", f"{path}/messages", {"messages": [{"body": f"{number}"}]}, status=201)
        talk.sleep(10 + talk.put_off_s)
        return next(each for some in came.values() for each in some if each.body == f"{number}".encode())

    talk.ask("PUT", path, {"queue": {"push": {"subscribers": [subscriber(hosts[0], headers=given, timeout=17)]}}})
    read = talk.ask("GET", path)["queue"]["push"]["subscribers"][0]
    talk.is_so("what is shown", {"timeout": 17, "headers": {**given, "X-Key": HIDDEN}}, read)
    talk.came("what is sent", {**shown, "x-key": "hush"}, posted(1).headers)
    read["headers"] |= {"X-More": "m"}
    talk.ask("POST", f"{path}/subscribers", {"subscribers": [read]})
    talk.sleep(2)
    talk.came("what was sent back", {**shown, "x-key": "hush", "x-more": "m"}, posted(2).headers)
    talk.status("POST", f"{path}/subscribers", {"subscribers": [{**read, "url": f"https://{hosts[1]}/in"}]})
    talk.sleep(2)
    moved = posted(3)
    talk.came("not to another host", True, moved in came[hosts[0]] or moved.headers.get("x-key") != "hush")
    talk.ask("PUT", f"{path}/subscribers", {"subscribers": [subscriber(hosts[0], headers={"X-Key": "new"})]})
    talk.sleep(2)
    last = posted(4).headers
    talk.came("headers of its own", ("new", None), (last["x-key"], last.get("x-more")))
    talk.ask("DELETE", path)


def _secrets_of_several(talk: Talk) -> None:
    """Several subscribers at one host, whose secrets are shown alike, and two of which are called alike: each keeps its
    own when they are sent back as they are shown, in whatever order, all of them or one alone.
    """
    came = talk.listen("kept-alike.example", lambda _: (200, b""))
    path = "/queues/kept-alike"
    places = (("one", "/in"), ("two", "/in"), ("two", "/other"))
    several = [
        {"name": name, "url": f"https://u{n}:p{n}@kept-alike.example{place}", "headers": {"X-Key": f"hush-{n}"}}
        for n, (name, place) in enumerate(places)
    ]
    opens = {
        (name, place): (f"Basic {base64.b64encode(f'u{n}:p{n}'.encode()).decode()}", f"hush-{n}")
        for n, (name, place) in enumerate(places)
    }
    talk.ask("PUT", path, {"queue": {"push": {"subscribers": several}}})
    shown = talk.ask("GET", path)["queue"]["push"]["subscribers"]
    talk.is_so("nothing of them", False, "hush" in json.dumps(shown) or "p1@" in json.dumps(shown))
    changes: Sequence[tuple[str, list[dict[str, Any]]]] = (
        ("PUT", shown[::-1]),
        ("POST", [{**shown[1], "timeout": 20}]),
        ("POST", [shown[2], shown[0]]),
    )
    for number, (method, sent) in enumerate(changes):
        talk.ask(method, f"{path}/subscribers", {"subscribers": sent}, shows={"msg": "Updated"})
        talk.sleep(2)
        before = len(came)
        talk.ask("POST", f"{path}/messages", {"messages": [{"body": f"{number}"}]}, status=201)
        talk.sleep(10 + talk.put_off_s)
        got = {
            (each.headers["iron-subscriber-name"], each.path): (
                each.headers.get("authorization"),
                each.headers.get("x-key"),
            )
            for each in came[before:]
        }
        talk.came(f"each with its own, {number}", (opens, len(places)), (got, len(came) - before))
    # One alone is removed by how it is shown
    talk.ask("DELETE", f"{path}/subscribers", {"subscribers": [{"name": "two", "url": shown[2]["url"]}]})
    left = talk.ask("GET", path)["queue"]["push"]["subscribers"]
    talk.is_so("those that are left", ["one", "two"], sorted(each["name"] for each in left))
    talk.is_so("at the one place", {"/in"}, {each["url"].rpartition("example")[2] for each in left})
    talk.ask("DELETE", path)


__all__ = ["pull", "push"]
