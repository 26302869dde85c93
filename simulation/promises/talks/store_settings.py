"""Settings of stores of the hub protocol: mappings, parameters, schedulers, integrations. Each comes back as it was
set, stays when another one is changed, is listed, and is gone when it was deleted; and what it does.

Sources: docs/hub-protocol.md, the guides of the Spree Commerce Hub (v5).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from simulation.promises.talks.services import done, mapped, pushed
from simulation.promises.talks.talk import Came, Talk

HIDDEN = "********"
MINUTE = 60
HOUR = 3_600


def through(talk: Talk) -> None:
    """Everything."""
    talk.through(_mapping, _parameters, _scheduler, _skipped, _integration, _signed_up)


def _kept(talk: Talk, kind: str, fields: Mapping[str, Any], others: Mapping[str, Any], **secret: str) -> str:
    """One is made, and each field changed alone: all others stay; it is listed with what it has. Returns its path."""
    created = talk.ask("POST", f"/{kind}s", {kind: {**fields, **secret}}, status=201, shows=fields)
    path = f"/{kind}s/{created['id']}"
    shown = {**fields, "id": created["id"]}
    talk.ask("GET", path, shows=shown)
    for name, value in others.items():
        shown |= {name: value}
        talk.ask("PUT", path, {kind: {name: value}}, shows=shown)
        talk.ask("GET", path, shows=shown)
        talk.is_so(f"{name} in the list", shown, _of_id(talk.ask("GET", f"/{kind}s.json"), shown))
    talk.ask("PUT", path, {kind: {}}, shows=shown)
    read = talk.ask("GET", path)
    talk.ask("PUT", path, {kind: read}, shows=shown)
    talk.ask("GET", path, shows=read)
    return path


def _of_id(rows: Sequence[Mapping[str, Any]], shown: Mapping[str, Any]) -> Mapping[str, Any]:
    return next(each for each in rows if each["id"] == shown["id"])


def _deleted(talk: Talk, *paths: str) -> None:
    for path in paths:
        talk.ask("DELETE", path)
        talk.ask("GET", path, status=404)
        talk.ask("DELETE", path, status=404)


def _mapping(talk: Talk) -> None:
    given = {"name": "kept.key", "value": "v", "data_type": "string"}
    parameter = talk.ask("POST", "/parameters", {"parameter": given}, status=201)["id"]
    options = {"retries_allowed": True, "retry_base": 7, "retry_cap": 77, "max_attempts": 5, "lenient": True}
    fields = {
        "name": "kept.one",
        "url": "https://kept-one.example/in?a=b",
        "messages": ["kept:one", "kept:two"],
        "parameters": [parameter],
        "filters": [{"path": "payload.a", "operator": "gt", "value": "1", "match_rule": "any"}],
        "identifiers": {"n": "payload.n", "m": "payload.m"},
        "search_fields": ["order.number"],
        "options": options,
        "enabled": True,
        "required": False,
    }
    others = {
        "name": "kept.other",
        "messages": ["kept:three"],
        "parameters": [],
        "filters": [{"path": "payload.b", "operator": "present", "value": "", "match_rule": "all"}],
        "identifiers": {},
        "search_fields": [],
        "options": {"retries_allowed": False, "retry_base": 8, "retry_cap": 78, "max_attempts": None, "lenient": False},
        "enabled": False,
        "url": "https://kept-one.example/other",
    }
    path = _kept(talk, "mapping", fields, others, token="hush")
    mapping = talk.ask("PUT", path, {"mapping": {"options": {"retry_base": 9}}}, shows={"options": {"retry_base": 9}})
    # What is required cannot be disabled, nor what is disabled be required
    talk.refused("PUT", path, {"mapping": {"required": True}}, status=422)
    talk.ask("PUT", path, {"mapping": {"required": True, "enabled": True}}, shows={"required": True, "enabled": True})
    talk.refused("PUT", path, {"mapping": {"enabled": False}}, status=422)
    mapping = talk.ask("PUT", path, {"mapping": {"required": False}}, shows={"required": False, "enabled": True})
    talk.is_so("filters in both ways", mapping["filters"], mapping["formatted_filters"])
    bad: dict[str, Any]
    for bad in (
        {"options": {"retry_base": 0.5}},
        {"options": {"retry_cap": 0}},
        {"options": {"max_attempts": 0}},
        {"options": {"max_attempts": "many"}},
        {"filters": [{"path": ""}]},
        {"filters": [{"path": "a", "operator": "match", "value": "(?=a)"}]},
        {"filters": [{"path": "a", "operator": "match", "value": "("}]},
        {"identifiers": {"n": ""}},
        {"identifiers": ["payload.n"]},
        {"search_fields": 4 * ["a"]},
        {"messages": "x" * 201},
        {"enabled": "maybe"},
        {"name": 256 * "n"},
        {"token": 501 * "t"},
    ):
        talk.refused("PUT", path, {"mapping": bad}, status=422, shows={"error": str, "errors": dict})
    talk.ask("GET", path, shows=mapping)
    # What is left out has its documented default; fields may come without a wrapper, and as JSON in a text
    plain = {"name": "kept.plain", "url": "https://kept-one.example/", "token": "t", "messages": ["kept:plain"]}
    filters = [{"path": "payload.a", "operator": "eq", "value": "1", "match_rule": "all"}]
    defaults = {"retries_allowed": True, "retry_base": 30, "retry_cap": 3_600, "max_attempts": None, "lenient": False}
    shown = {
        **{each: plain[each] for each in ("name", "url", "messages")},
        "filters": filters,
        "identifiers": {"n": "payload.n"},
        "options": defaults,
    }
    empty = {"enabled": True, "required": False, "parameters": [], "search_fields": [], "integration_id": None}
    texts = {"filters": json.dumps([{"path": "payload.a", "value": "1"}]), "identifiers": '{"n": "payload.n"}'}
    created = talk.ask("POST", "/mappings", {**plain, **texts}, status=201, shows={**shown, **empty})
    _deleted(talk, f"/mappings/{created['id']}", path, f"/parameters/{parameter}")


def _parameters(talk: Talk) -> None:
    """Values of each type, as they are shown and as services get them; texts are read as their type."""
    came = talk.listen("kept-parameters.example", done)
    values: tuple[tuple[str, Any, Any], ...] = (
        ("string", "7", "7"),
        ("string", "é 🦊", "é 🦊"),
        ("integer", 7, 7),
        ("integer", "-8", -8),
        ("float", 1.5, 1.5),
        ("float", "2.25", 2.25),
        ("boolean", True, True),
        ("boolean", "false", False),
        ("list", [{"a": "b"}], [{"a": "b"}]),
        ("list", '[{"c": 1}]', [{"c": 1}]),
    )
    ids: list[str] = []
    for number, (data_type, value, shown) in enumerate(values):
        given = {"name": f"kept.p{number}", "value": value, "data_type": data_type}
        created = talk.ask("POST", "/parameters", {"parameter": given}, status=201, shows={**given, "value": shown})
        ids.append(created["id"])
        talk.ask("GET", f"/parameters/{created['id']}", shows={**given, "value": shown})
    secret = {"name": "kept.api_key", "value": "hush", "data_type": "string"}
    hidden = talk.ask("POST", "/parameters", {"parameter": secret}, status=201)["id"]
    password = {"name": "kept.word", "value": "hush-too", "data_type": "password"}
    ids += [hidden, talk.ask("POST", "/parameters", {"parameter": password}, status=201)["id"]]
    for each in (hidden, ids[-1]):
        talk.ask("GET", f"/parameters/{each}", shows={"value": HIDDEN})
        talk.ask("PUT", f"/parameters/{each}", {"parameter": {"value": HIDDEN}}, shows={"value": HIDDEN})
    listed = {each["id"]: each["value"] for each in talk.ask("GET", "/parameters.json")}
    expected = dict(zip(ids, [*(shown for *_, shown in values), HIDDEN, HIDDEN], strict=True))
    talk.is_so("all of them", expected, {each: listed.get(each) for each in ids})
    for data_type, value in (
        ("integer", "1.5"),
        ("integer", "1_0"),
        ("float", "nan"),
        ("float", "x"),
        ("boolean", "maybe"),
        ("list", "{"),
        ("other", "x"),
    ):
        bad = {"name": "kept.bad", "value": value, "data_type": data_type}
        talk.refused("POST", "/parameters", {"parameter": bad}, status=422)
    fields = {
        "name": "kept-parameters",
        "url": "https://kept-parameters.example/",
        "token": "t",
        "messages": ["kept:values"],
    }
    mapping = talk.ask("POST", "/mappings", {"mapping": {**fields, "parameters": ids}}, status=201)["id"]
    talk.sleep(61)
    # What a producer calls parameters is not sent
    payload = {"parameters": [{"name": "kept.p0", "value": "mine"}]}
    talk.ask("POST", "/messages", {"message": "kept:values", "payload": payload}, status=201)
    talk.sleep(20)
    sent = {each["name"]: each["value"] for each in json.loads(came[0].body)["payload"]["parameters"]}
    named = {f"kept.p{number}": shown for number, (*_, shown) in enumerate(values)}
    talk.came("parameters", {**named, "kept.api_key": "hush", "kept.word": "hush-too"}, sent)
    talk.is_so("no others", len(values) + 2, len(sent))
    _deleted(talk, f"/mappings/{mapping}", *(f"/parameters/{each}" for each in ids))


def _scheduler(talk: Talk) -> None:
    fields = {"key": "kept:tick", "count": 7, "interval": "hours"}
    path = _kept(talk, "scheduler", fields, {"key": "kept:tock", "count": 8, "interval": "days"})
    for unit, seconds in (("minutes", 60), ("hours", 3_600), ("days", 86_400), ("weeks", 604_800)):
        shown = talk.ask(
            "PUT", path, {"scheduler": {"count": 3, "interval": unit}}, shows={"count": 3, "interval": unit}
        )
        talk.is_so(f"three {unit}", True, abs(_epoch_s(shown["next_at"]) - talk.epoch_s() - 3 * seconds) <= 2 * MINUTE)
    _deleted(talk, path)


def _skipped(talk: Talk) -> None:
    """Schedulers skip their ticks while the project is suspended, all of them, and go on when it is resumed."""
    came = talk.listen("skipped.example", done)
    mapping = mapped(talk, "skipped", ["skipped:tick"])
    # While anything is due later, each minute is looked at
    talk.listen("skipped-waits.example", lambda each: done(each, delay=2 * HOUR))
    waits = mapped(talk, "skipped-waits", ["skipped:wait"])
    talk.sleep(61)
    pushed(talk, "skipped:wait", {})
    scheduler = {"key": "skipped:tick", "count": 3, "interval": "minutes"}
    path = f"/schedulers/{talk.ask('POST', '/schedulers', {'scheduler': scheduler}, status=201)['id']}"
    late = talk.gathered_s + talk.put_off_s
    talk.sleep(7.5 * MINUTE + late, exactly=True)
    before = len(came)
    talk.came("ticks", True, 1 <= before <= 3)
    talk.typed("projects", "suspend", talk.project, shows=[{"suspended": str}])
    talk.sleep(5, exactly=True)
    before = len(came)
    talk.sleep(15 * MINUTE, exactly=True)
    talk.came("none meanwhile", before, len(came))
    talk.ask("PUT", path, {"scheduler": {"count": 4}}, status=403)
    shown = talk.ask("GET", path, shows=scheduler)
    talk.is_so("the next is to come", True, _epoch_s(shown["next_at"]) > talk.epoch_s() - 2 * MINUTE)
    talk.typed("projects", "resume", talk.project, shows=[{"suspended": None}])
    talk.sleep(6.5 * MINUTE + late, exactly=True)
    # What was skipped is not made up for
    talk.came("it goes on", True, before + 1 <= len(came) <= before + 3)
    _deleted(talk, path, mapping, waits)


def _epoch_s(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _integration(talk: Talk) -> None:
    """An endpoint's services, parameters and schedules as it describes them, and how that changes."""
    needs = [{"name": "level", "data_type": "integer"}, {"name": "word", "data_type": "password"}]
    services: list[dict[str, Any]] = [
        {
            "name": "first",
            "path": "/first",
            "requires": {"parameters": needs},
            "recommends": {"messages": ["kept:first"]},
        },
        {
            "name": "second",
            "path": "/second",
            "required": True,
            "recommends": {
                "messages": ["kept:second"],
                "identifiers": {"n": "payload.n"},
                "filters": [{"path": "payload.a", "operator": "eq", "value": "1"}],
                "options": {"retries_allowed": False},
                "schedule": {"count": 2, "interval": "hours"},
            },
        },
    ]
    about = {"display": "Kept", "description": "d", "help": "h", "icon_url": "https://kept-described.example/i.png"}
    described: dict[str, Any] = {"name": "kept", **about, "services": services}
    asked: list[str] = []

    def says(each: Came) -> tuple[int, bytes]:
        asked.append(each.path)
        return (200, json.dumps(described).encode()) if each.path.endswith("endpoint.json") else done(each)

    came = talk.listen("kept-described.example", says)
    fields = {"name": "kept", "url": "https://kept-described.example/base", "token": "t", "category": "custom"}
    shown = {"name": "kept", "url": fields["url"], "category": "custom", "state": "ready", **about}
    created = talk.ask("POST", "/integrations", {"integration": fields}, status=201, shows=shown)
    path = f"/integrations/{created['id']}"
    talk.ask("GET", path, shows={**shown, "services": [{"name": "first"}, {"name": "second"}], "token": HIDDEN})
    talk.ask("GET", "/integrations.json", shows=[shown])
    talk.is_so("what was asked for", "/base/endpoint.json", asked[0])

    def mappings() -> dict[str, Any]:
        rows = talk.ask("GET", "/mappings.json")
        return {each["name"]: each for each in rows if each["integration_id"] == created["id"]}

    of_first = {"url": f"{fields['url']}/first", "messages": ["kept:first"], "enabled": False, "required": False}
    of_second = {
        "url": f"{fields['url']}/second",
        "messages": ["kept:second"],
        "identifiers": {"n": "payload.n"},
        "filters": [{"path": "payload.a", "operator": "eq", "value": "1", "match_rule": "all"}],
        "options": {"retries_allowed": False},
        "enabled": True,
        "required": True,
    }
    talk.is_so("its mappings", {"kept.first": of_first, "kept.second": of_second}, mappings())
    schedulers = talk.ask("GET", "/schedulers.json", shows=[{"count": 2, "interval": "hours"}])
    # One value that is invalid: none is set
    talk.ask("POST", f"{path}/signup", {"parameters": {"word": "w", "level": "x"}, "enabled": ["first"]}, status=422)
    talk.is_so("nothing was enabled", False, mappings()["kept.first"]["enabled"])
    as_form = talk.with_headers(content_type="application/x-www-form-urlencoded")
    as_form.ask("POST", f"{path}/signup", b"parameters%5Blevel%5D=2&parameters%5Bword%5D=w")
    values = {each["name"]: each["value"] for each in talk.ask("GET", "/parameters.json")}
    talk.is_so("also by a form", {"kept.level": 2, "kept.word": HIDDEN}, values)
    talk.ask("POST", f"{path}/signup", {"parameters": {"level": "3", "word": "hush"}, "enabled": ["first"]})
    talk.is_so("enabled", True, mappings()["kept.first"]["enabled"])
    values = {each["name"]: each["value"] for each in talk.ask("GET", "/parameters.json")}
    talk.is_so("values by their types", {"kept.level": 3, "kept.word": HIDDEN}, values)
    own = mappings()["kept.first"]["id"]
    talk.ask("PUT", f"/mappings/{own}", {"mapping": {"options": {"retry_base": 77}, "messages": ["kept:own"]}})
    # It is asked again, and the owner's settings stay
    services.append({"name": "third", "path": "/third", "recommends": {"messages": ["kept:third"]}})
    described["display"] = "Kept anew"
    talk.ask(
        "PUT", path, {"integration": {"category": "shipping"}}, shows={"category": "shipping", "display": "Kept anew"}
    )
    kept = {"id": own, "enabled": True, "messages": ["kept:own"], "options": {"retry_base": 77}}
    talk.is_so(
        "with the new one", {"kept.first": kept, "kept.second": of_second, "kept.third": {"enabled": True}}, mappings()
    )
    talk.sleep(61)
    talk.ask("POST", "/messages", {"message": "kept:own", "payload": {"n": 1}}, status=201)
    talk.ask("POST", "/messages", {"message": "kept:second", "payload": {"n": 1, "a": "1"}}, status=201)
    talk.ask("POST", "/messages", {"message": "kept:second", "payload": {"n": 2, "a": "2"}}, status=201)
    talk.sleep(20)
    talk.came("where to", ["/base/first", "/base/second"], sorted(each.path for each in came if each.body))
    talk.came("by its token", {"t"}, {each.headers["x-augury-token"] for each in came if each.body})
    rows = talk.ask("GET", f"{path}/disable_mappings")
    talk.is_so(
        "what is required stays",
        {"kept.first": False, "kept.second": True, "kept.third": False},
        {each["name"]: each["enabled"] for each in rows},
    )
    rows = talk.ask("GET", f"{path}/enable_mappings")
    talk.is_so("all of them", {True}, {each["enabled"] for each in rows})
    bad: dict[str, Any]
    for bad in ({"name": "Kept"}, {"name": "a b"}, {"url": "x"}, {"name": 101 * "k"}):
        talk.refused("POST", "/integrations", {"integration": {**fields, "name": "kept-other", **bad}}, status=422)
    _deleted(talk, path)
    talk.is_so("no mappings of it", {}, mappings())
    ours = [each["id"] for each in schedulers]
    talk.ask("GET", "/schedulers.json", shows=lambda each: not [row for row in each if row["id"] in ours])
    for each in talk.ask("GET", "/parameters.json"):
        talk.ask("DELETE", f"/parameters/{each['id']}")
    # One that cannot be read is registered, with the reason
    talk.listen("kept-silent.example", lambda _: (500, b"no"))
    pending = {"name": "kept-silent", "url": "https://kept-silent.example", "token": "t", "category": "custom"}
    silent = talk.ask(
        "POST", "/integrations", {"integration": pending}, status=201, shows={"state": "pending", "services": []}
    )
    talk.is_so("a reason", True, bool(silent["error_messages"]))
    _deleted(talk, f"/integrations/{silent['id']}")


def _signed_up(talk: Talk) -> None:
    """A sign-up enables just the services that it names, with the schedule that they recommend. When the endpoint
    moves, its mappings move with it, and nothing else of them changes; while it cannot be read, nothing does.
    """

    def service(name: str, **more: Any) -> dict[str, Any]:
        needs = {"requires": {"parameters": [{"name": f"{name}_key"}]}}
        schedule = {"count": 3, "interval": "weeks"}
        return {
            "name": name,
            "path": f"/{name}",
            "recommends": {"messages": [f"signed:{name}"], "schedule": schedule},
            **needs,
            **more,
        }

    described = json.dumps(
        {"name": "signed", "services": [service("one"), service("two"), service("free", requires={})]}
    )
    came = {
        host: talk.listen(f"signed-{host}.example", lambda each: done(each) if each.body else (200, described.encode()))
        for host in ("here", "there")
    }
    talk.listen("signed-ill.example", lambda _: (503, b"no"))
    fields = {"name": "signed", "url": "https://signed-here.example/a", "token": "old", "category": "custom"}
    path = f"/integrations/{talk.ask('POST', '/integrations', {'integration': fields}, status=201)['id']}"

    def shown() -> dict[str, tuple[str, bool]]:
        rows = talk.ask("GET", "/mappings.json")
        return {each["name"]: (each["url"], each["enabled"]) for each in rows if each["name"].startswith("signed.")}

    def at(base: str, **enabled: bool) -> dict[str, tuple[str, bool]]:
        return {f"signed.{name}": (f"{base}/{name}", on) for name, on in enabled.items()}

    talk.is_so("at first", at(fields["url"], one=False, two=False, free=True), shown())
    sign_up = {"parameters": {"one_key": "hush", "two_key": "hush too"}, "enabled": ["one"]}
    talk.ask("POST", f"{path}/signup", sign_up)
    talk.is_so("one of them", at(fields["url"], one=True, two=False, free=False), shown())
    keys = sorted(each["key"] for each in talk.ask("GET", "/schedulers.json"))
    talk.is_so("its schedule", ["signed:free", "signed:one"], keys)
    # What is sent back hidden stays
    talk.ask("POST", f"{path}/signup", {"parameters": {"one_key": HIDDEN}, "enabled": ["one"]})
    own = {"mapping": {"messages": ["signed:one", "signed:own"], "options": {"retry_base": 77}}}
    [one] = [each["id"] for each in talk.ask("GET", "/mappings.json") if each["name"] == "signed.one"]
    kept = talk.ask("PUT", f"/mappings/{one}", own, shows=own["mapping"])
    ill = {"url": "https://signed-ill.example", "token": "ill"}
    talk.ask("PUT", path, {"integration": ill}, shows=lambda each: bool(each["error_messages"]))
    names = {each: name for each, (_, name) in shown().items()}
    talk.is_so("enabled as before", {"signed.one": True, "signed.two": False, "signed.free": False}, names)
    moved = {"url": "https://signed-there.example/b", "token": "new"}
    talk.ask("PUT", path, {"integration": moved}, shows={"url": moved["url"], "state": "ready", "error_messages": None})
    talk.is_so("moved", at(moved["url"], one=True, two=False, free=False), shown())
    talk.ask("GET", f"/mappings/{one}", shows={**kept, "url": f"{moved['url']}/one"})
    talk.sleep(61)
    talk.ask("POST", "/messages", {"message": "signed:own", "payload": {}}, status=201)
    talk.sleep(20 + talk.put_off_s)
    sent = {
        host: [
            (each.path, each.headers["x-augury-token"], json.loads(each.body)["payload"]) for each in heard if each.body
        ]
        for host, heard in came.items()
    }
    parameters = {"parameters": [{"name": "signed.one_key", "value": "hush"}]}
    talk.came("where it is now", {"here": [], "there": [("/b/one", "new", parameters)]}, sent)
    _deleted(talk, path)
    talk.is_so("gone with it", {}, shown())
    talk.ask("GET", "/schedulers.json", shows=lambda rows: not [each for each in rows if "signed:" in each["key"]])
    for each in talk.ask("GET", "/parameters.json"):
        talk.ask("DELETE", f"/parameters/{each['id']}")


__all__ = ["through"]
