"""The policy simulator, as a person uses it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import partial

import requests
from playwright.sync_api import expect
from tests.browser.console import DESKTOP, Console, Project
from tests.stack.endpoints import Recorder
from tests.stack.project import until


def counted(project: Project, queue: str, subscriber: str) -> bool | None:
    """Whether the hub has counted a failure of a subscriber; it does so shortly after the attempt."""
    asked = {"replay": {"queue": queue, "subscriber": subscriber, "since": f"{datetime.now(UTC) - timedelta(days=1)}"}}
    url = f"{project.base_url}/3/projects/{project.id}/policies/simulate"
    return requests.post(url, json=asked, headers={"Authorization": f"OAuth {project.token}"}, timeout=40).ok or None


def test_a_policy_is_tried_and_its_figures_are_drawn(console: Console) -> None:
    page = console.page
    # Given the page, reached from the reports
    console.open("reports")
    page.get_by_role("link", name="Policy simulator").click()
    expect(page.get_by_role("heading", name="Policy simulator")).to_be_visible()
    # When a policy of IronMQ is tried against half an hour of refusals
    page.get_by_label("Policy", exact=True).select_option("ironmq")
    page.get_by_label("Retries").fill("2")
    page.get_by_label("Messages a second").fill("1")
    page.get_by_label("The endpoint").select_option("refuses")
    page.get_by_label("Duration in hours").fill("0.5")
    page.get_by_label("Probe a failing endpoint").uncheck()
    page.get_by_role("button", name="Simulate").click()
    # Then the losses are shown, the load is drawn, and the protocol's own policy is shown beside it
    table = page.get_by_role("region", name="In figures")
    expect(table.get_by_role("columnheader", name="Default policy")).to_be_visible()
    expect(table.get_by_role("row", name="Accepted").get_by_role("cell").nth(1)).to_have_text("1,800")
    expect(page.get_by_role("img", name="This policy: ")).to_be_visible()
    expect(page.get_by_text("Cost is calculated from list prices")).to_be_visible()
    assert console.violations() == []
    page.set_viewport_size(DESKTOP)
    # And an error is shown at the field it belongs to
    page.get_by_label("Retries").fill("1000")
    page.get_by_role("button", name="Simulate").click()
    expect(page.get_by_label("Retries")).to_have_attribute("aria-invalid", "true")


def test_what_a_subscriber_went_through_is_the_outage(console: Console, recorder: Recorder) -> None:
    page, project = console.page, console.project
    # Given an endpoint of webhooks that failed, and a subscriber of a queue that did
    app = project.webhooks("POST", "/app", {"name": "acme"})["id"]
    endpoint = project.webhooks("POST", f"/app/{app}/endpoint", {"url": recorder.endpoint(500).url})["id"]
    project.webhooks("POST", f"/app/{app}/msg", {"eventType": "invoice.paid", "payload": {"n": 1}})
    project.push_queue("orders", billing=recorder.endpoint(503).url)
    project.post("orders", "one")
    for queue, subscriber in ((f"webhooks/{app}", endpoint), ("orders", "billing")):
        until(partial(counted, project, queue, subscriber), 60, lambda: "no failure was counted")
    # When another policy is simulated with the endpoint's own history
    console.open("apps", app, "endpoints", endpoint)
    page.get_by_role("link", name="Try another policy against it").click()
    expect(page.get_by_label("Subscriber")).to_have_value(endpoint)
    expect(page.get_by_label("Duration in hours")).to_be_hidden()
    page.get_by_role("button", name="Simulate").click()
    # Then its own failures are the outage; it may have been retried by now
    expect(
        page.get_by_text(re.compile(r"(\d) of \1 attempts failed, in one stretch; 1 message within"))
    ).to_be_visible()
    expect(page.get_by_role("region", name="In figures")).to_be_visible()
    # And the same works for the subscriber of the queue, and with the address that the page has then
    console.open("queues", "orders", "subscribers", "billing")
    page.get_by_role("link", name="Try another policy").click()
    expect(page.get_by_label("Policy", exact=True)).to_have_value("ironmq")
    for _ in range(2):
        page.get_by_role("button", name="Simulate").click()
        expect(page.get_by_text(re.compile("attempts failed, in one stretch; 1 message within"))).to_be_visible()
        page.reload()
        expect(page.get_by_label("Subscriber")).to_have_value("billing")
    assert console.violations() == []
    # When the subscriber never failed, or no time is given, then the field says so
    page.get_by_label("Subscriber").fill("warehouse")
    page.get_by_role("button", name="Simulate").click()
    expect(page.get_by_label("Subscriber")).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_text("No failure of this subscriber was counted in that time")).to_be_visible()
    page.get_by_label("Until").fill("2020-01-01T00:00")
    page.get_by_role("button", name="Simulate").click()
    expect(page.get_by_label("Until")).to_have_attribute("aria-invalid", "true")
    page.get_by_label("Since").fill("")
    page.get_by_role("button", name="Simulate").click()
    expect(page.get_by_label("Since")).to_have_attribute("aria-invalid", "true")
