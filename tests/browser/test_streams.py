"""Streams are made by a person, who sees where their sinks are, mends one that fails, or moves it on."""

from __future__ import annotations

import re

from playwright.sync_api import expect
from tests.browser.console import HOSTILE, Console
from tests.stack.endpoints import Recorder

NOBODY = "http://127.0.0.1:9/nobody"
CODE = 'function handler(input) { return { config: { format: "raw" }, data: input.events[0].eventType } }'


def test_a_stream_is_made_read_by_its_sinks_mended_and_deleted(console: Console, recorder: Recorder) -> None:
    page, receiver = console.page, recorder.endpoint(200)
    console.open("streams")
    expect(page.get_by_text("No streams yet.")).to_be_visible()
    # When a person makes one
    page.get_by_role("button", name="New stream").click()
    page.get_by_label("Name").fill(HOSTILE)
    page.get_by_role("button", name="Make it").click()
    expect(page.get_by_text("No sinks yet")).to_be_visible()
    # And a sink, at first without what it needs, and then where nobody listens
    page.get_by_role("button", name="New sink").click()
    page.get_by_label("What it writes").select_option("amazonS3")
    expect(page.get_by_role("button", name="Copy the external id")).to_be_visible()
    page.get_by_label("Bucket").fill("orders")
    assert console.violations() == []
    page.get_by_role("button", name="Make the sink").click()
    expect(page.get_by_text("region is required")).to_be_visible()
    page.get_by_label("What it writes").select_option("http")
    page.get_by_label("URL", exact=True).fill(NOBODY)
    page.get_by_label("Your own id for it").fill("broken")
    page.get_by_role("button", name="Make the sink").click()
    sinks = page.get_by_role("region", name="Sinks")
    broken = sinks.get_by_role("row", name="broken")
    expect(broken).to_contain_text("enabled")
    # And posts an event, which is listed
    page.get_by_role("button", name="Post an event").click()
    page.get_by_label("Event type").fill("order.paid")
    page.get_by_label("Payload").fill('{"note": "grüß dich"}')
    page.get_by_role("button", name="Post it").click()
    expect(page.get_by_role("region", name="Events").get_by_role("row", name="order.paid")).to_contain_text("grüß dich")
    assert console.violations() == []
    # Then the sink says why it waits, and can be tried at once, and moved on
    page.get_by_role("link", name="Sinks", exact=True).click()
    expect(broken.get_by_text("retrying")).to_be_visible(timeout=60_000)
    expect(broken).to_contain_text("next try")
    assert console.violations() == []
    broken.get_by_role("button", name="Try now").click()
    expect(page.get_by_text("It is tried now.")).to_be_visible()
    broken.get_by_role("button", name="Disable").click()
    expect(broken.get_by_role("button", name="Enable")).to_be_visible()
    # And another one with code gets what its code makes of the next event
    page.get_by_role("button", name="New sink").click()
    page.get_by_label("What it writes").select_option("http")
    page.get_by_label("URL", exact=True).fill(receiver.url)
    page.get_by_label("Your own id for it").fill("well")
    page.get_by_role("button", name="Make the sink").click()
    sinks.get_by_role("row", name="well").get_by_role("link", name="Transformation").click()
    code = page.get_by_label("Code", exact=True)
    expect(code).to_have_value(re.compile(r"function handler\(input\)"))
    code.fill(CODE)
    page.get_by_role("button", name="Try", exact=True).click()
    expect(page.get_by_role("region", name="Payload that would be sent")).to_have_text("order.paid")
    assert console.violations() == []
    page.get_by_label("Enabled").check()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved. It applies to each try from now on.")).to_be_visible()
    stream = console.project.webhooks("GET", "/stream")["data"][0]["id"]
    event = {"eventType": "order.sent", "payload": "{}"}
    console.project.webhooks("POST", f"/stream/{stream}/events", {"events": [event]})
    assert receiver.wait()[0].body == b"order.sent"
    # And the stream is deleted
    console.open("streams", stream)
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No streams yet.")).to_be_visible()


def test_a_streams_portal_shows_its_sinks_and_events_and_nothing_else(console: Console) -> None:
    page, project = console.page, console.project
    stream = project.webhooks("POST", "/stream", {"name": "Orders"})["id"]
    project.webhooks("POST", f"/stream/{stream}/sink", {"type": "poller", "config": {}, "uid": "own"})
    access = project.webhooks("POST", f"/auth/stream-portal-access/{stream}", {})
    page.goto(f"{console.url}#key={access['url'].partition('#key=')[2]}")
    expect(page.get_by_role("region", name="Sinks").get_by_role("row", name="own")).to_contain_text("poller")
    assert page.get_by_role("navigation", name="Pages", exact=True).get_by_role("link").all_inner_texts() == [
        "Sinks",
        "Events",
    ]
    page.get_by_role("navigation", name="Pages", exact=True).get_by_role("link", name="Events").click()
    expect(page.get_by_text("No events yet.")).to_be_visible()
    assert console.violations() == []
