"""Code is run with the message's time and its own chance, and what it returns is said exactly."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from pushhub.scripting.sandbox import Sandbox

NOW = 1_800_000_000_000
"""2027-01-15T08:00:00Z."""
WEBHOOK = {
    "method": "POST",
    "url": "https://example.com/hook",
    "payload": {"a": 1, "name": "café"},
    "eventType": "order.paid",
    "env": {"KEY": "v"},
    "transformationsParams": {},
}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    created = Sandbox()
    yield created
    created.close()


def run(sandbox: Sandbox, code: str, language: str = "javascript", **given: Any) -> dict[str, Any]:
    request = {
        "language": language,
        "code": code,
        "input": json.dumps(given.pop("input", WEBHOOK)),
        "answers": "webhook",
        "now": NOW,
        "seed": "msg_1",
    }
    return sandbox.run({**request, **given})


def payload(found: dict[str, Any]) -> Any:
    assert "result" in found, found
    return json.loads(found["result"]["payload"]["json"])


def test_a_handler_changes_what_it_returns(sandbox: Sandbox) -> None:
    code = """function handler(webhook) {
      webhook.payload.type = webhook.eventType;
      webhook.url += "?k=" + webhook.env.KEY;
      webhook.method = "PUT";
      webhook.headers = { "X-Count": 7 };
      return webhook;
    }"""
    assert run(sandbox, code) == {
        "result": {
            "method": "PUT",
            "url": "https://example.com/hook?k=v",
            "payload": {"json": '{"a":1,"name":"café","type":"order.paid"}'},
            "headers": [["X-Count", "7"]],
        }
    }


@pytest.mark.parametrize(
    ("code", "result"),
    [
        ("function handler(w) { w.cancel = true; return w }", {"cancel": True}),
        ("const handler = () => ({ cancel: false, payload: 'plain' })", {"payload": {"text": "plain"}}),
        ("async function handler(w) { return { payload: await w.payload.a } }", {"payload": {"json": "1"}}),
        ("function handler() { return {} }", {}),
        ("function handler() { return { payload: { a: NaN, b: undefined } } }", {"payload": {"json": '{"a":null}'}}),
    ],
)
def test_what_is_left_out_stays_as_it_was(sandbox: Sandbox, code: str, result: dict[str, Any]) -> None:
    assert run(sandbox, code) == {"result": result}


def test_the_same_message_gives_the_same_result_at_each_try(sandbox: Sandbox) -> None:
    # Given code that asks for the time and for chance, in both languages
    code = """function handler() {
      const times = [Date.now(), new Date().toISOString(), new Date(5).getTime(), Date()];
      return { payload: [...times, Math.random(), Math.random()] }
    }"""
    expression = '{"payload": [$now(), $millis(), $random()]}'
    # When a message is tried twice, then both results are the same, and the time is that of the message
    first = payload(run(sandbox, code))
    assert payload(run(sandbox, code)) == first
    assert first[:3] == [NOW, "2027-01-15T08:00:00.000Z", 5]
    assert payload(run(sandbox, expression, "jsonata"))[:2] == ["2027-01-15T08:00:00.000Z", NOW]
    # And another message has other chances
    assert payload(run(sandbox, code, seed="msg_2"))[4:] != first[4:]


def test_jsonata_is_the_whole_result(sandbox: Sandbox) -> None:
    expression = '{"payload": payload.{"total": a * 2, "by": $uppercase(name)}, "headers": {"x-type": eventType}}'
    assert run(sandbox, expression, "jsonata") == {
        "result": {"payload": {"json": '{"total":2,"by":"CAFÉ"}'}, "headers": [["x-type", "order.paid"]]}
    }


@pytest.mark.parametrize(
    ("code", "answers", "result"),
    [
        ("return { messages: input.events.map((e) => ({ payload: e.payload })) }", "messages", {"json": '{"a":1}'}),
        ("return { messages: [{ payload: 'text', subject: 'x' }] }", "messages", {"text": "text"}),
        ("return { payloads: [JSON.stringify(input.events[0].eventType)] }", "payloads", {"text": '"t"'}),
    ],
)
def test_a_destinations_handler_gets_events(sandbox: Sandbox, code: str, answers: str, result: dict[str, str]) -> None:
    events = {"events": [{"payload": {"a": 1}, "eventType": "t"}]}
    found = run(sandbox, f"function handler(input) {{ {code} }}", answers=answers, input=events)
    assert found == {"result": {"payload": result}}


@pytest.mark.parametrize(
    ("returned", "answers", "error"),
    [
        ("{ messages: [] }", "messages", None),
        ("{ messages: [{payload: 1}, {payload: 2}] }", "messages", "it may return one message at most"),
        ("{ payloads: 'x' }", "payloads", "it must return an object with a list of payloads"),
        ("{ messages: [null] }", "messages", "a message must be an object"),
    ],
)
def test_events_are_sent_one_by_one(sandbox: Sandbox, returned: str, answers: str, error: str | None) -> None:
    found = run(sandbox, f"function handler() {{ return {returned} }}", answers=answers, input={"events": []})
    if error is None:
        assert found == {"result": {"cancel": True}}
    else:
        assert found["error"] == "result"
        assert found["message"].startswith(error)


def test_an_error_of_the_codes_own_is_told_in_its_words(sandbox: Sandbox) -> None:
    # Given code that ends before there is a handler, with words that the engine uses when it stops code
    found = run(sandbox, "throw new Error('interrupted')")
    # Then nobody is told that it took too long
    assert found["error"] == "error"
    assert found["message"].startswith("Error: interrupted")
