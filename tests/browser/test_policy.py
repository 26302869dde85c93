"""The policy simulator, as a person asks it."""

from __future__ import annotations

import re

from playwright.sync_api import expect
from tests.browser.console import DESKTOP, Console
from tests.stack.endpoints import Recorder


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
    page.get_by_label("Hours that it lasts").fill("0.5")
    page.get_by_label("Probe a failing endpoint").uncheck()
    page.get_by_role("button", name="Simulate").click()
    # Then what is lost is said, the load is drawn, and the protocol's own policy stands beside it
    table = page.get_by_role("region", name="In figures")
    expect(table.get_by_role("columnheader", name="Default policy")).to_be_visible()
    expect(table.get_by_role("row", name="Accepted").get_by_role("cell").nth(1)).to_have_text("1,800")
    expect(page.get_by_role("img", name="This policy: ")).to_be_visible()
    expect(page.get_by_text("Cost is calculated from list prices")).to_be_visible()
    assert console.violations() == []
    page.set_viewport_size(DESKTOP)
    # And a wrong field is told where it is
    page.get_by_label("Retries").fill("1000")
    page.get_by_role("button", name="Simulate").click()
    expect(page.get_by_label("Retries")).to_have_attribute("aria-invalid", "true")


def test_an_endpoints_last_day_is_the_outage(console: Console, recorder: Recorder) -> None:
    page, project = console.page, console.project
    # Given an endpoint that failed
    app = project.webhooks("POST", "/app", {"name": "acme"})["id"]
    endpoint = project.webhooks("POST", f"/app/{app}/endpoint", {"url": recorder.endpoint(500).url})["id"]
    project.webhooks("POST", f"/app/{app}/msg", {"eventType": "invoice.paid", "payload": {"n": 1}})
    console.open("apps", app, "endpoints", endpoint)
    expect(page.get_by_role("row", name="fail").first).to_be_visible()
    # When another policy is to be tried against what happened to it
    page.get_by_role("link", name="Try another policy against it").click()
    # Then its own failures are the outage; it may have been tried again by now
    expect(page.get_by_text(re.compile(r"(\d) of its last \1 attempts failed, in one stretch"))).to_be_visible()
    expect(page.get_by_label("Hours that it lasts")).to_be_hidden()
    page.get_by_role("button", name="Simulate").click()
    expect(page.get_by_role("region", name="In figures")).to_be_visible()
