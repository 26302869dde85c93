"""Sources are made by a person, take in what their sender signs, and show what they refused."""

from __future__ import annotations

import hashlib
import hmac
import urllib.request
from urllib.error import HTTPError

from playwright.sync_api import expect
from tests.browser.console import HOSTILE, Console
from tests.stack.endpoints import Recorder
from tests.stack.project import until

BODY = b'{"zen": "Keep it logically awesome."}'


def posted(url: str, secret: str) -> int:
    """The status with which GitHub's post is answered."""
    signature = hmac.new(secret.encode(), BODY, hashlib.sha256).hexdigest()
    headers = {
        "Content-Type": "application/json",
        "X-GitHub-Event": "push",
        "X-GitHub-Delivery": "72d3162e",
        "X-Hub-Signature-256": f"sha256={signature}",
    }
    try:
        with urllib.request.urlopen(urllib.request.Request(url, BODY, headers), timeout=60) as answer:
            return int(answer.status)
    except HTTPError as error:
        return error.code


def test_a_source_is_made_takes_in_shows_what_it_refused_and_is_deleted(console: Console, recorder: Recorder) -> None:
    page, receiver = console.page, recorder.endpoint(200)
    console.open("sources")
    expect(page.get_by_text("No sources yet.")).to_be_visible()
    # When a person makes one, at first without the secret that its sender needs
    page.get_by_role("button", name="New source").click()
    page.get_by_label("Name").fill(HOSTILE)
    page.get_by_label("Sender", exact=True).select_option("stripe")
    page.get_by_label("Send what comes in to").fill(receiver.url)
    assert console.violations() == []
    page.get_by_role("button", name="Create the source").click()
    expect(page.get_by_text("needs a secret")).to_be_visible()
    page.get_by_label("Sender", exact=True).select_option("github")
    page.get_by_label("The sender's secret").fill("not so secret")
    page.get_by_role("button", name="Create the source").click()
    # Then it has a URL that takes in what its sender signs
    row = page.get_by_role("region", name="Sources").get_by_role("row", name="github")
    expect(row).to_contain_text("by signature")
    url = console.copied(row.get_by_role("button", name="Copy the URL"))
    assert [posted(url, secret) for secret in ("another", "not so secret")] == [400, 200]
    assert receiver.wait()[0].body == BODY
    # And what it refused is shown
    row.get_by_role("button", name="refused").click()
    expect(page.get_by_text("The last one (forged)")).to_be_visible()
    assert console.violations() == []
    page.keyboard.press("Escape")
    # And it is deleted
    row.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No sources yet.")).to_be_visible()
    # (which each process of the hub knows within a second)
    until(lambda: posted(url, "not so secret") == 404, 60, lambda: "it still takes in")
