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


def test_traces_are_exported_changed_and_stopped(console: Console, recorder: Recorder) -> None:
    page, project = console.page, console.project
    collector = recorder.endpoint(200)
    console.open("alerts")
    traces = page.locator("section.card").filter(has=page.get_by_role("heading", name="Traces"))
    # When a person names a collector, at first one that cannot be
    traces.get_by_role("button", name="Export traces").click()
    page.get_by_label("Collector").fill("ftp://otel.example")
    page.get_by_label("Headers").fill("x-key: s3cret")
    assert console.violations() == []
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("url must begin with https:// or http://")).to_be_visible()
    page.get_by_label("Collector").fill(collector.url)
    page.get_by_role("button", name="Save").click()
    # Then it is shown without its secret, which a change of something else keeps
    expect(traces).to_contain_text("exporting")
    expect(traces).to_contain_text("0 exported, 0 dropped")
    traces.get_by_role("button", name="Edit the export of traces").click()
    expect(page.get_by_label("Headers")).to_have_value("x-key: ********")
    page.get_by_label("Export now").uncheck()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label("Export now")).to_have_count(0)
    expect(traces).to_contain_text("off")
    shown = project.ironmq_project("/traces")["traces"]
    assert (shown["url"], shown["headers"], shown["on"]) == (collector.url, {"x-key": "********"}, False)
    # And it can be stopped
    traces.get_by_role("button", name="Stop").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop").click()
    expect(traces.get_by_role("button", name="Export traces")).to_be_visible()
    assert project.ironmq_project("/traces") == {"traces": None}
