"""Alerts are made, changed, tested and deleted by a person."""

from __future__ import annotations

import json

from playwright.sync_api import expect
from tests.browser.console import HOSTILE, Console
from tests.stack.endpoints import Recorder


def test_an_alert_is_made_tested_changed_and_deleted(console: Console, recorder: Recorder) -> None:
    page, project = console.page, console.project
    hook = recorder.endpoint(200)
    project.push_queue("orders", shop=recorder.endpoint(200).url)
    console.open("alerts")
    expect(page.get_by_text("No alert is set.")).to_be_visible()
    # When a person makes one, with a mistake first
    page.get_by_role("button", name="New alert").click()
    page.get_by_label("Name").fill(HOSTILE)
    page.get_by_label("When").select_option("oldest_waiting")
    page.get_by_label("Seconds").fill("600")
    page.get_by_label("Queue").fill("nosuch")
    page.get_by_label("Send to").fill(hook.url)
    assert console.violations() == []
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Queue not found")).to_be_visible()
    page.get_by_label("Queue").fill("orders")
    page.get_by_role("button", name="Save").click()
    # Then it is shown, and a test of it arrives
    row = page.get_by_role("region", name="Alerts").get_by_role("row", name="oldest waits 600 s")
    expect(row).to_contain_text("quiet")
    row.get_by_role("button", name="Test").click()
    sent = json.loads(hook.wait()[0].body)
    assert (sent["state"], sent["alert"]["name"]) == ("test", HOSTILE)
    # And it is changed and deleted
    row.get_by_role("button", name="Edit").click()
    page.get_by_label("Seconds").fill("60")
    page.get_by_role("button", name="Save").click()
    row = page.get_by_role("region", name="Alerts").get_by_role("row", name="oldest waits 60 s")
    row.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No alert is set.")).to_be_visible()
    assert project.ironmq_project("/alerts") == {"alerts": []}
