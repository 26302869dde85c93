"""A store: incoming messages, where they go, and what a person decides."""

from __future__ import annotations

from playwright.sync_api import expect
from tests.browser.console import HOSTILE, Console
from tests.fakes.verifier import symmetric
from tests.stack.endpoints import Recorder
from tests.stack.project import until


def test_a_mapping_is_made_and_a_message_that_waits_for_a_person_is_tried_again(
    console: Console, recorder: Recorder
) -> None:
    page, project = console.page, console.project
    # Given a failing service, and a mapping to it created by a person, with a mistake first
    service = recorder.endpoint(500, 500)
    console.open("store", "mappings")
    page.get_by_role("button", name="New mapping").click()
    page.get_by_label("Name", exact=True).fill("acme.ship")
    page.get_by_label("URL of the service").fill("ftp://acme.example")
    page.get_by_label("Token sent to it").fill("k1")
    page.get_by_label("Types").fill("order:new")
    page.get_by_label("Options").fill('{"retries_allowed": false}')
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("must be an http or https URL")).to_be_visible()
    expect(page.get_by_label("URL of the service")).to_have_attribute("aria-invalid", "true")
    page.get_by_label("URL of the service").fill(service.url)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("link", name="acme.ship")).to_be_visible()
    # When an order is pushed
    page.get_by_role("button", name="Push a message").click()
    page.get_by_label("Type", exact=True).fill("order:new")
    page.get_by_label("Payload").fill('{"order": {"note": "<b>&lt;bold</b>"}}')
    page.get_by_role("button", name="Push", exact=True).click()
    # Then its page shows where it went, and the way to the copy that failed
    expect(page.get_by_role("heading", name="order:new")).to_be_visible()
    expect(page.get_by_role("img", name="acme.ship: parked")).to_be_visible()
    expect(page.locator("pre.body")).to_contain_text('"<b>&lt;bold</b>"')
    page.get_by_role("link", name="acme.ship").click()
    life = page.get_by_role("list", name="History")
    expect(life.get_by_text("Attempt 1: HTTP 500")).to_be_visible()
    expect(life.get_by_text("Waits for a person")).to_be_visible()
    # And its request can be repeated by hand
    copied = console.copied(page.get_by_role("button", name="Copy as curl"))
    assert "-H 'X-Augury-Token: ********'" in copied
    assert '"message":"order:new"' in copied
    assert copied.endswith(f"'{service.url}'")
    # When it is tried again from there, then the service gets it again
    page.get_by_role("button", name="Try now").click()
    service.wait(2)
    expect(life.get_by_text("Attempt 2: HTTP 500")).to_be_visible()
    # And the page of today lists it among what needs a person, and it can be given up there
    console.open("today")
    needs = page.get_by_role("region", name="Needs a person")
    expect(needs.get_by_role("link", name="order:new")).to_be_visible()
    needs.get_by_role("button", name="Archive").click()
    page.get_by_role("dialog").get_by_role("button", name="Archive").click()
    expect(page.get_by_text("Nothing is failing.")).to_be_visible()
    until(lambda: project.hub("GET", "/queues")["parked"] == 0, 60, lambda: f"{project.hub('GET', '/queues')}")


def test_a_mapping_is_paused_and_resumed(console: Console, recorder: Recorder) -> None:
    page, project = console.page, console.project
    mapping = {"name": HOSTILE, "url": recorder.endpoint(200).url, "token": "k", "messages": ["order:new"]}
    project.hub("POST", "/mappings", {"mapping": mapping})
    console.open("store", "mappings")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    assert project.hub("GET", "/mappings")[0]["enabled"] is False
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    assert project.hub("GET", "/mappings")[0]["enabled"] is True


def test_what_a_service_demands_is_set_and_removed(console: Console) -> None:
    """The forms are those of subscribers (:mod:`tests.browser.test_queues`)."""
    page, project = console.page, console.project
    mapping = {"name": "acme.ship", "url": "https://a.example/in", "token": "k", "messages": ["order:new"]}
    project.hub("POST", "/mappings", {"mapping": mapping})
    console.open("store", "mappings")
    page.get_by_role("button", name="Gates of acme.ship").click()
    whole = page.get_by_role("dialog", name="Gates of acme.ship")
    # When tokens are to be sent, and requests signed
    whole.get_by_role("button", name="Tokens").click()
    form = page.get_by_role("dialog", name="Tokens")
    form.get_by_label("Token URL").fill("https://login.example/token")
    form.get_by_label("Client id").fill("pushhub")
    form.get_by_label("Client secret").fill("never-shown-again")
    form.get_by_label("Scopes").fill("orders")
    form.get_by_role("button", name="Save").click()
    expect(whole.get_by_text("each request carries one")).to_be_visible()
    whole.get_by_role("button", name="Signatures").click()
    form = page.get_by_role("dialog", name="Signatures")
    form.get_by_label("Secret").fill(symmetric("1"))
    form.get_by_role("button", name="Save").click()
    expect(whole.get_by_text("each request is signed")).to_be_visible()
    # Then the mapping has both, and is else as it was
    assert console.violations() == []
    (answer,) = project.hub("GET", "/mappings")
    assert (answer["oauth"], answer["signing"]) == (True, True)
    assert (answer["url"], answer["messages"]) == (mapping["url"], mapping["messages"])
    # When they are ended, then nothing is left of them
    whole.get_by_role("button", name="Tokens").click()
    page.get_by_role("dialog", name="Tokens").get_by_role("button", name="Send no tokens").click()
    expect(whole.get_by_text("each request carries one")).to_have_count(0)
    whole.get_by_role("button", name="Signatures").click()
    page.get_by_role("dialog", name="Signatures").get_by_role("button", name="Sign no more").click()
    page.get_by_role("dialog", name="Sign requests no more?").get_by_role("button", name="Sign no more").click()
    expect(whole.get_by_text("each request is signed")).to_have_count(0)
    assert not {"oauth", "signing"} & set(project.hub("GET", "/mappings")[0])


def test_what_went_nowhere_is_found_by_type_and_state_and_says_why(console: Console) -> None:
    page, project = console.page, console.project
    # Given a message that no mapping wants
    project.hub("POST", "/messages", {"message": "stock:low", "payload": {}})
    nowhere = "/queues/archived.json?source=incoming&state=never_processed"
    until(lambda: project.hub("GET", nowhere), 120, lambda: "it is not archived")
    # When a person looks for it
    console.open("search")
    page.get_by_label("Type").fill("stock:low")
    page.get_by_label("State").select_option("never_processed")
    page.get_by_role("button", name="Search", exact=True).click()
    # Then it is found, and says why
    page.get_by_role("region", name="Messages of the store").get_by_role("link", name="stock:low").click()
    expect(page.get_by_text("Why it went nowhere")).to_be_visible()


def test_a_scheduler_a_parameter_and_an_integration_are_made_and_removed(console: Console) -> None:
    page, project = console.page, console.project
    # Given a scheduler, with a mistake first
    console.open("store", "schedulers")
    page.get_by_role("button", name="New scheduler").click()
    page.get_by_label("Every").fill("0")
    page.get_by_label("Message type").fill("acme:order:poll")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("[aria-invalid=true], dialog [role=alert]").first).to_be_visible()
    page.get_by_label("Every").fill("2")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("region", name="Schedulers").get_by_text("2 hours")).to_be_visible()
    # And a parameter, whose value is never shown
    console.open("store", "parameters")
    page.get_by_role("button", name="New parameter").click()
    page.get_by_label("Name", exact=True).fill("acme.key")
    page.get_by_label("Value").fill("s3cret-value")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("region", name="Parameters").get_by_text("acme.key")).to_be_visible()
    expect(page.get_by_text("s3cret-value")).to_have_count(0)
    # And an integration whose endpoint does not answer, which says so
    console.open("store", "integrations")
    page.get_by_role("button", name="New integration").click()
    page.get_by_label("Name", exact=True).fill("acme")
    page.get_by_label("URL of the endpoint").fill("http://127.0.0.1:9")
    page.get_by_label("Token sent to it").fill("k")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("region", name="Integrations").get_by_text("http://127.0.0.1:9")).to_be_visible()
    # When each is removed, then it is gone
    for kind in ("schedulers", "parameters", "integrations"):
        console.open("store", kind)
        page.get_by_role("button", name="Remove").click()
        page.get_by_role("dialog").get_by_role("button", name="Remove").click()
        expect(page.get_by_text("is removed.").last).to_be_visible()
        expect(page.get_by_role("button", name="Remove")).to_have_count(0)
        assert project.hub("GET", f"/{kind}") == []


def test_who_gets_messages_is_found_by_name_or_url_whatever_the_protocol(console: Console, recorder: Recorder) -> None:
    page, project = console.page, console.project
    # Given a subscriber of a queue, a service and an endpoint with the same address, and one with another
    url = recorder.endpoint(500).url
    project.push_queue("orders", warehouse=url, other="http://127.0.0.1:9/elsewhere")
    project.hub("POST", "/mappings", {"mapping": {"name": "acme.ship", "url": url, "token": "k", "messages": ["a:b"]}})
    app = project.webhooks("POST", "/app", {"name": "acme"})["id"]
    endpoint = project.webhooks("POST", f"/app/{app}/endpoint", {"url": url})["id"]
    message = project.webhooks("POST", f"/app/{app}/msg", {"eventType": "a.b", "payload": {}})["id"]
    (posted,) = project.post("orders", "one")
    statuses = f"/orders/messages/{posted}/subscribers"

    def failed() -> bool | None:
        return any(each.get("status_code") == 500 for each in project.ironmq("GET", statuses)["subscribers"]) or None

    until(failed, 120, lambda: "the message was not pushed")
    attempts = f"/app/{app}/attempt/msg/{message}"
    until(lambda: project.webhooks("GET", attempts)["data"], 120, lambda: "the webhook was not sent")
    # When a person looks for the address
    console.open("search")
    page.get_by_label("Subscriber").fill(url.removeprefix("http://"))
    page.get_by_role("button", name="Search", exact=True).click()
    # Then all three are found
    found = page.get_by_role("region", name="Subscribers")
    for what in ("Of the queue orders", "Service of the store", "Endpoint of acme"):
        expect(found.get_by_text(what)).to_be_visible()
    expect(found.get_by_role("row")).to_have_count(4)
    # And lead to what was not delivered there
    found.get_by_role("link", name="warehouse").click()
    expect(page.get_by_role("region", name="What it has not accepted").get_by_role("link", name=posted)).to_be_visible()
    # And messages can be found by their state, in the queue and in the application
    console.open("search")
    page.get_by_label("State").select_option("failing")
    page.get_by_role("button", name="Search", exact=True).click()
    of_queues = page.get_by_role("region", name="Messages of queues")
    expect(of_queues.get_by_role("link", name=posted).first).to_be_visible()
    expect(page.get_by_role("region", name="Messages of applications").get_by_role("link", name="a.b")).to_be_visible()
    # And a webhook's message and endpoint are found by their ids, and its messages by type
    for sought, label, name in (
        (message, "Id or value", "a.b"),
        (endpoint, "Id or value", url),
        (app, "Application", message),
    ):
        console.open("search")
        page.get_by_label(label).fill(sought)
        page.get_by_role("button", name="Search", exact=True).click()
        expect(page.locator("main").get_by_role("link", name=name)).to_be_visible()
