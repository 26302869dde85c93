"""Is this endpoint healthy? Every page says the same, in the same words and numbers."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect
from tests.browser.console import Console, Project
from tests.stack.endpoints import Recorder
from tests.stack.project import until

OAUTH = {"grantType": "clientCredentials", "authMethod": "clientSecretPost", "clientId": "c", "clientSecret": "s"}


@pytest.fixture
def down(project: Project, recorder: Recorder) -> tuple[str, str, str]:
    """An application with a healthy endpoint and one whose token server is down, which a message waits for: the
    application, that endpoint, and the message.
    """
    app = project.webhooks("POST", "/app", {"name": "Acme"})["id"]
    project.webhooks("POST", f"/app/{app}/endpoint", {"url": recorder.endpoint(200).url})
    waits = project.webhooks("POST", f"/app/{app}/endpoint", {"url": recorder.endpoint(200).url})["id"]
    oauth = {**OAUTH, "tokenUrl": recorder.endpoint(503).url}
    project.webhooks("PUT", f"/app/{app}/endpoint/{waits}/oauth", oauth)
    message = project.webhooks("POST", f"/app/{app}/msg", {"eventType": "order.paid", "payload": {"n": 1}})["id"]

    def health() -> dict[str, Any] | None:
        answer: dict[str, Any] = project.webhooks("GET", f"/app/{app}/endpoint/{waits}/health")["health"]
        return answer if answer["state"] == "token_server_down" else None

    until(health, 120, lambda: "its token server is not down")
    return app, waits, message


def test_an_endpoint_whose_token_server_is_down_is_shown_alike_everywhere(
    console: Console, down: tuple[str, str, str]
) -> None:
    app, waits, message = down
    page, said = console.page, "waits for its token server"
    # The list of endpoints, beside one that is well
    console.open("apps", app)
    rows = page.get_by_role("region", name="Endpoints").get_by_role("row")
    expect(rows.filter(has_text=said)).to_have_count(1)
    expect(rows.filter(has_text=said)).to_contain_text("1")
    expect(rows.filter(has_text="delivering")).to_have_count(1)
    # Its own page, with the reason, and one number of what waits
    console.open("apps", app, "endpoints", waits)
    notice = page.locator(".notice").filter(has_text="Waits for its token server")
    expect(notice).to_contain_text("503")
    expect(notice).to_contain_text("1 delivery waits.")
    expect(page.locator("dl.figures").get_by_text(said)).to_be_visible()
    expect(page.get_by_text("1 delivery waits for the same")).to_be_visible()
    # The message's page, and today's
    console.open("apps", app, "messages", message)
    expect(page.get_by_role("list", name="History")).to_contain_text(f"The endpoint: {said}")
    console.open("")
    expect(page.get_by_role("row").filter(has_text=said)).to_have_count(1)
    assert console.wrong == []
    assert console.violations() == []


def test_a_paused_subscriber_is_shown_with_what_waits_for_it(
    console: Console, project: Project, recorder: Recorder
) -> None:
    project.push_queue("orders", shop=recorder.endpoint(200).url, crm=recorder.endpoint(200).url)
    project.ironmq("POST", "/orders/pause", {"subscriber": "shop"})
    project.post("orders", "one", "two")
    until(lambda: project.ironmq("GET", "/orders/health")["waiting"] == 2, 120, lambda: "they do not wait")
    console.open("queues", "orders", "subscribers")
    page = console.page
    expect(page.locator(".notice").filter(has_text="shop: Paused. 2 deliveries wait.")).to_be_visible()
    rows = page.get_by_role("region", name="Subscribers").get_by_role("row")
    expect(rows.filter(has_text="paused")).to_contain_text("2")
    expect(rows.filter(has_text="delivering")).to_have_count(1)
    assert console.wrong == []


def test_lists_of_queues_and_mappings_say_how_subscribers_are_doing(
    console: Console, project: Project, recorder: Recorder
) -> None:
    page = console.page
    # Given a queue one of whose subscribers fails, and a mapping whose service fails
    bad = recorder.endpoint(503).url
    project.push_queue("orders", shop=recorder.endpoint(200).url, till=bad)
    project.post("orders", "one")
    mapping = {"name": "acme.ship", "url": bad, "token": "k", "messages": ["order:new"]}
    created = project.hub("POST", "/mappings", {"mapping": mapping})
    project.hub("POST", "/messages", {"message": "order:new", "payload": {}})

    def ill() -> bool:
        waits = project.ironmq("GET", "/orders/health")["waiting"]
        return bool(waits and project.hub("GET", f"/mappings/{created['id']}")["health"]["waiting"])

    until(ill, 120, lambda: "nothing waits")
    # When they are listed, then both say so, with what waits
    for address, name in ((("queues",), "orders"), (("store", "mappings"), "acme.ship")):
        console.open(*address)
        row = page.get_by_role("row").filter(has=page.get_by_role("link", name=name, exact=True))
        expect(row).to_contain_text("failing")
        expect(row.get_by_role("cell", name="1", exact=True).first).to_be_visible()
