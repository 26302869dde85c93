"""Transformations as values."""

from __future__ import annotations

import json

from pushhub.engine.model.reach import Reach
from pushhub.webhooks.model.transformation import EventBatch, Language, Transformation, Webhook


def test_what_is_stored_reads_the_same_and_is_small() -> None:
    code = "function handler(webhook) { return webhook } // ü\n" * 1_000
    stored = Transformation(
        code=code,
        language=Language.JSONATA,
        enabled=True,
        variables={"KEY": "s3cret"},
        reach=Reach.PROJECT,
        updated_at=7,
    )
    assert Transformation.decode(stored.encode()) == stored
    assert len(stored.encode()) < len(code) / 10
    assert "s3cret" not in repr(stored)


def test_it_applies_with_code_that_is_enabled() -> None:
    assert [Transformation(code=code, enabled=enabled).applies for code in ("", "x") for enabled in (False, True)] == [
        False,
        False,
        False,
        True,
    ]


def test_values_of_variables_are_hidden_in_what_code_says() -> None:
    stored = Transformation(variables={"A": "s3cret", "B": "s3cret-longer", "C": "no"})
    assert stored.without_secrets("no s3cret-longer, s3cret") == "no ********, ********"


def test_a_payload_is_given_as_it_was_posted() -> None:
    # Given JSON with what Python and JavaScript write differently
    payload = '{"a": 1.0, "__proto__": 12345678901234567890}'
    webhook = Webhook(url="https://a.example/", payload=payload, is_json=True, event_type="t")
    assert webhook.input({"K": "v"}).endswith(f'"payload":{payload}}}')
    assert json.loads(webhook.input({"K": "v"}))["env"] == {"K": "v"}
    # And other text as a string
    text = Webhook(url="https://a.example/", payload='say "hi"', is_json=False, event_type="t")
    assert json.loads(text.input({}))["payload"] == 'say "hi"'
    batch = EventBatch(events=(webhook, text), url="https://a.example/")
    assert json.loads(batch.input({"K": "v"}))["events"][1] == {"eventType": "t", "payload": 'say "hi"'}
    assert f'"payload":{payload}}}' in batch.input({})
    assert (json.loads(batch.input({"K": "v"}))["env"], json.loads(batch.input({}))["url"]) == ({"K": "v"}, webhook.url)
    assert "url" not in json.loads(EventBatch(events=(text,)).input({}))
