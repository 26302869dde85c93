"""Code of endpoints: what it gets and may change, what a receiver gets of it, what is refused, and what fails.

Sources: docs/transformations.md and Svix's transformations as its clients write them. A run of code may take too long,
or end with its process, at any time: so simulations are asked for again, and deliveries are waited for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from simulation.promises.talks.talk import Came, Talk
from simulation.promises.talks.webhooks import is_signed

KIND = "coded.made"
APP, PATH = "/app/coded", "/app/coded/endpoint/one"
CODE = f"{PATH}/transformation"
HOST = "talk-code.example"
MOST_TRIES = 8


def webhooks(talk: Talk) -> None:
    """All that code does to messages."""
    talk.through(_begun, _shown, _simulated, _delivered, _failing, _elsewhere, _over)


def _begun(talk: Talk) -> None:
    talk.ask("POST", "/event-type", {"name": KIND, "description": "d"}, status=201)
    talk.ask("POST", "/app", {"name": "Coded", "uid": "coded"}, status=201)
    talk.ask(
        "POST", f"{APP}/endpoint", {"url": f"https://{HOST}/in", "uid": "one", "headers": {"X-Own": "1"}}, status=201
    )


def _over(talk: Talk) -> None:
    talk.ask("DELETE", APP, status=204)
    talk.ask("DELETE", f"/event-type/{KIND}?expunge=true", status=204)


def simulated(talk: Talk, path: str, body: Mapping[str, Any], *, status: int = 200, shows: Any = ...) -> Any:
    """What code is said to make of something; asked again while the run itself fails."""
    for _ in range(MOST_TRIES):
        answer = talk.answered("POST", f"{path}/simulate", body)
        if answer.status == status:
            break
    talk.is_so(f"{str(body)[:160]}: its status", status, answer.status)
    talk.is_so(f"{str(body)[:160]}: what is made of it", shows, answer.body)
    return answer.body


def arrived(talk: Talk, came: Sequence[Came], count: int) -> Came:
    """Wait until so many have come, and not so long that the next try comes, too; the last one."""
    for wait in (5, 10, *20 * (30,), *30 * (300,)):
        talk.sleep(wait)
        if len(came) >= count:
            break
    talk.came("so many", count, len(came))
    return came[-1]


def _shown(talk: Talk) -> None:
    """What is stored of it, in part and whole."""
    talk.ask("GET", CODE, shows={"code": None, "enabled": False, "variables": {}})
    code = "function handler(webhook) { return webhook }"
    for fields, shows in (
        ({"code": code}, {"code": code, "enabled": False, "language": "javascript"}),
        ({"enabled": True}, {"code": code, "enabled": True}),
        ({"enabled": False}, {"code": code, "enabled": False}),
        (
            {"variables": {"KEY": "value", "B": "c"}},
            {"variables": {"KEY": "********", "B": "********"}, "enabled": False},
        ),
        (
            {"language": "jsonata", "code": '{"payload": payload}'},
            {"language": "jsonata", "code": '{"payload": payload}'},
        ),
        ({"enabled": True}, {"enabled": True, "variables": {"KEY": "********"}}),
        ({"variables": {"KEY": "********"}}, {"variables": lambda each: each == {"KEY": "********"}}),
        ({"variables": {}}, {"variables": lambda each: each == {}}),
        ({"code": None, "enabled": False}, {"code": None, "enabled": False}),
    ):
        talk.ask("PATCH", CODE, fields, status=204)
        talk.ask("GET", CODE, shows=shows)
    for size, status in ((9, 422), (51_201, 422), (51_200, 204)):
        text = "function handler(w){return w}//"
        sized = text[:size] if size < len(text) else text + (size - len(text)) * "x"
        talk.ask("PATCH", CODE, {"code": sized, "language": "javascript"}, status=status)
    names = {f"n{number}": "v" for number in range(101)}
    bad: Mapping[str, Any]
    for bad in (
        {"variables": names},
        {"variables": {"a": 16_400 * "v"}},
        {"variables": {"a": 7}},
        {"variables": []},
        {"language": "cobol"},
        {"enabled": "yes"},
        {"code": 7},
    ):
        talk.ask("PATCH", CODE, bad, status=422)
    talk.ask("PATCH", CODE, {"code": None, "variables": {}}, status=204)


def _returns(text: str) -> str:
    return f"function handler(webhook) {{ {text} }}"


SIMULATED: tuple[tuple[str, Mapping[str, Any]], ...] = (
    (_returns("return {}"), {"payload": {"id": 7}, "method": "POST", "url": f"https://{HOST}/in", "cancel": False}),
    (_returns("webhook.payload.more = webhook.eventType; return webhook"), {"payload": {"id": 7, "more": KIND}}),
    (_returns("webhook.method = 'PUT'; return webhook"), {"method": "PUT"}),
    (_returns("webhook.method = 'PATCH'; return webhook"), {"method": "PATCH"}),
    (_returns("webhook.url += '/more'; return webhook"), {"url": f"https://{HOST}/in/more"}),
    (_returns("webhook.headers = { 'X-Kind': webhook.eventType }; return webhook"), {"headers": {"X-Kind": KIND}}),
    (_returns("webhook.cancel = true; return webhook"), {"cancel": True}),
    (
        _returns("return { payload: webhook.env.KEY + Object.keys(webhook.transformationsParams).length }"),
        {"payload": "value0"},
    ),
    (
        _returns("return { payload: [webhook.headers === undefined, webhook.cancel === undefined] }"),
        {"payload": [True, True]},
    ),
    ("async function handler(webhook) { return { payload: await Promise.resolve({ a: 1 }) } }", {"payload": {"a": 1}}),
    (_returns("return { payload: [12345678901234567890, 1.0] }"), {"payload": [12345678901234567000, 1]}),
)
UNFIT = (
    *(_returns(f"webhook.method = '{each}'; return webhook") for each in ("GET", "DELETE", "post")),
    *(
        _returns(f"webhook.url = '{each}'; return webhook")
        for each in ("ftp://a.example/", "x", "http://169.254.169.254/")
    ),
    *(
        _returns(f"webhook.headers = {{ '{each}': 'x' }}; return webhook")
        for each in ("webhook-id", "Content-Length", "a b")
    ),
    _returns("const h = {}; for (let n = 0; n < 51; n++) h['x-' + n] = 'v'; return { headers: h }"),
    _returns("return 7"),
    _returns("return null"),
    _returns("throw new Error('no')"),
    _returns("let a = 1; for (let n = 0; n < 101; n++) a = { a }; return { payload: a }"),
    _returns("return { payload: 'x'.repeat(1048577) }"),
    "this is no code at all (",
    "const other = 1; // no handler",
)


def _simulated(talk: Talk) -> None:
    """What code makes of a payload, without a message; what could not be sent."""
    tried = {"eventType": KIND, "payload": {"id": 7}, "variables": {"KEY": "value"}}

    def same(expected: Any) -> Any:
        return lambda text: (text if isinstance(expected, str) else json.loads(text)) == expected

    for code, shows in SIMULATED:
        expected = {name: same(each) if name == "payload" else each for name, each in shows.items()}
        simulated(talk, CODE, {**tried, "code": code}, shows=expected)
    jsonata = {"code": '{"payload": {"sum": $sum(payload.items.price), "kind": eventType}}', "language": "jsonata"}
    prices = {"items": [{"price": 1}, {"price": 2.5}]}
    summed = {"payload": same({"sum": 3.5, "kind": KIND})}
    simulated(talk, CODE, {**tried, **jsonata, "payload": prices}, shows=summed)
    for code in UNFIT:
        simulated(talk, CODE, {**tried, "code": code}, status=422)
    for bad in ({}, {**tried}, {**tried, "code": 9 * "c"}, {**tried, "code": CODES["other"], "eventType": ""}):
        talk.ask("POST", f"{CODE}/simulate", bad, status=422)
    talk.ask("GET", CODE, shows={"code": None})


CODES = {
    "other": _returns(
        "webhook.payload = { id: webhook.payload.id, at: Date.now(), by: Math.random() }; return webhook"
    ),
    "text": _returns(
        "webhook.headers = { 'Content-Type': 'text/plain', 'X-Own': webhook.env.KEY };"
        "webhook.payload = 'só: ' + webhook.payload.id; return webhook"
    ),
    "cancel": _returns("return { cancel: webhook.payload.id > 1 }"),
}


def _post(talk: Talk, number: int) -> str:
    body = {"eventType": KIND, "payload": {"id": number, "rest": 1}}
    return str(talk.ask("POST", f"{APP}/msg", body, status=202)["id"])


def _delivered(talk: Talk) -> None:
    """What arrives is what the code bodies, signed; the same at each try; what is shown is what was posted."""
    says = {"status": 500}
    came = talk.listen(HOST, lambda _: (says["status"], b""))
    key = talk.ask("GET", f"{PATH}/secret")["key"]
    talk.ask("PATCH", CODE, {"code": CODES["other"], "enabled": True, "language": "javascript"}, status=204)
    talk.sleep(2)
    one = _post(talk, 1)
    arrived(talk, came, 2)
    bodies = [json.loads(each.body) for each in came]
    talk.came("the same at each try", 1, len({json.dumps(each) for each in bodies}))
    talk.came("what code made", {"id": 1, "at": int, "by": float}, bodies[0])
    accepted = talk.ask("GET", f"{APP}/msg/{one}", shows={"payload": lambda each: each == {"id": 1, "rest": 1}})
    talk.came(
        "at the time of its acceptance", True, abs(bodies[0]["at"] / 1000 - talk.epoch_s()) < 90_000 and bool(accepted)
    )
    talk.came("signed", len(came) * [True], [is_signed(each, key) for each in came])
    talk.came("its own headers", {"1"}, {each.headers.get("x-own") for each in came})
    says["status"] = 200
    talk.ask("PATCH", CODE, {"code": CODES["text"], "variables": {"KEY": "value"}}, status=204)
    talk.sleep(2)
    two, before = _post(talk, 2), len(came)
    arrived(talk, came, before + 1)
    last = next(each for each in came if each.headers["webhook-id"] == two)
    sent = (last.body.decode(), last.headers["content-type"], last.headers.get("x-own"))
    talk.came("a text, and a header that replaces its own", ("só: 2", "text/plain", "value"), sent)
    talk.came("signed as it is sent", True, is_signed(last, key))
    talk.ask("PATCH", CODE, {"enabled": False}, status=204)
    talk.sleep(2)
    three, before = _post(talk, 3), len(came)
    arrived(talk, came, before + 1)
    talk.came(
        "without code",
        {"id": 3, "rest": 1},
        json.loads(next(each for each in came if each.headers["webhook-id"] == three).body),
    )


def _failing(talk: Talk) -> None:
    """What code cancels is sent to nobody; what fails is tried again, and sent when the code is mended."""
    came = talk.listen(HOST, lambda _: (200, b""))
    talk.ask("PATCH", CODE, {"code": CODES["cancel"], "enabled": True, "variables": {"KEY": "hidden"}}, status=204)
    talk.sleep(2)
    first, second = _post(talk, 1), _post(talk, 2)
    talk.sleep(10_000)
    mine = [json.loads(each.body) for each in came if each.headers["webhook-id"] in {first, second}]
    talk.came("the one", [{"id": 1, "rest": 1}], mine)
    talk.ask("GET", f"{APP}/msg/{second}/endpoint", shows={"data": [{"status": 4, "statusText": "canceled"}]})
    talk.ask("GET", f"{APP}/msg/{first}/endpoint", shows={"data": [{"status": 0}]})
    talk.ask("PATCH", CODE, {"code": _returns("throw new Error('because of ' + webhook.env.KEY)")}, status=204)
    talk.sleep(2)
    third = _post(talk, 3)
    talk.sleep(20)
    talk.ask("GET", f"{APP}/msg/{third}/endpoint", shows={"data": [{"status": 2, "nextAttempt": str}]})
    attempts = talk.ask("GET", f"{APP}/attempt/msg/{third}", shows={"data": lambda each: len(each) >= 1})["data"]
    talk.is_so("no answer", {0}, {each["responseStatusCode"] for each in attempts})
    talk.is_so("no variable is shown", False, "hidden" in json.dumps(attempts))
    talk.ask("GET", f"{PATH}/health", shows={"circuit": "closed"})
    talk.ask("PATCH", CODE, {"code": None}, status=204)
    talk.sleep(2)
    talk.ask("POST", f"{APP}/msg/{third}/endpoint/one/resend", status=202)
    talk.sleep(5)
    mine = [json.loads(each.body) for each in came if each.headers["webhook-id"] == third]
    talk.came("by hand, and without code", [{"id": 3, "rest": 1}], mine)


def _elsewhere(talk: Talk) -> None:
    """Another host gets neither the endpoint's headers nor its user information."""
    came = talk.listen("talk-code-else.example", lambda _: (200, b""))
    talk.ask("PATCH", PATH, {"url": f"https://me:s3cret@{HOST}/in"})
    code = _returns("webhook.url = 'https://talk-code-else.example/there'; webhook.method = 'PUT'; return webhook")
    talk.ask("PATCH", CODE, {"code": code, "enabled": True}, status=204)
    talk.sleep(2)
    _post(talk, 1)
    last = arrived(talk, came, 1)
    talk.came("where", "/there", last.path)
    talk.came("none of them", set(), {"x-own", "authorization"} & {*last.headers})
    simulated(
        talk,
        CODE,
        {"code": _returns("return { payload: webhook.url }"), "eventType": KIND, "payload": {}},
        shows={"payload": f"https://{HOST}/in"},
    )


__all__ = ["arrived", "simulated", "webhooks"]
