"""Webhooks: a provider's applications, and the portal for a customer."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

from playwright.sync_api import Browser, expect
from tests.browser.console import HOSTILE, Console, Project, tab
from tests.fakes.private_keys import identity
from tests.stack.endpoints import Recorder
from tests.stack.running import RunningStack

STORED = "JSON.stringify([{...sessionStorage}, {...localStorage}, document.cookie, location.href, history.state])"


def application(project: Project, name: str) -> str:
    created: dict[str, Any] = project.webhooks("POST", "/app", {"name": name})
    return str(created["id"])


def test_a_name_turns_no_text_around_it(console: Console) -> None:
    page, project = console.page, console.project
    # Given a customer whose names hold what turns the text that follows (U+202E), or isolates it
    name = "Acme \u202egnp.exe\u2066"
    app = application(project, name)
    project.webhooks("POST", f"/app/{app}/endpoint", {"url": "https://acme.example/in", "description": name})
    for path in (("apps",), ("apps", app)):
        # When a person looks at it, then it is written out, in the page and in its title
        console.open(*path)
        expect(page.get_by_text("Acme [U+202E]gnp.exe[U+2066]").first).to_be_visible()
        answer = page.evaluate("document.title + document.documentElement.innerHTML")
        assert "\u202e" not in answer
        assert "\u2066" not in answer


def test_an_application_and_an_endpoint_are_made_changed_and_paused(console: Console, recorder: Recorder) -> None:
    page, project = console.page, console.project
    # Given an application with a hostile name, created by a person
    console.open("apps")
    page.get_by_role("button", name="New application").click()
    page.get_by_label("Name", exact=True).fill(HOSTILE)
    page.get_by_label("Your own id").fill("no spaces please")
    page.get_by_role("button", name="Make it").click()
    expect(page.get_by_label("Your own id")).to_have_attribute("aria-invalid", "true")
    page.get_by_label("Your own id").fill("acme")
    page.get_by_role("button", name="Make it").click()
    expect(page.get_by_role("heading", name=HOSTILE)).to_be_visible()
    # And an endpoint in it, with a mistake first
    page.get_by_role("button", name="New endpoint").click()
    page.get_by_label("URL").fill("ftp://acme.example")
    page.get_by_role("button", name="Create the endpoint").click()
    expect(page.get_by_label("URL")).to_have_attribute("aria-invalid", "true")
    url = recorder.endpoint(200).url
    page.get_by_label("URL").fill(url)
    page.get_by_role("button", name="Create the endpoint").click()
    expect(page.get_by_role("heading", name=url)).to_be_visible()
    (endpoint,) = project.webhooks("GET", "/app/acme/endpoint")["data"]
    # When it is paused and resumed
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("Disabled. Nothing is sent to it.")).to_be_visible()
    assert project.webhooks("GET", f"/app/acme/endpoint/{endpoint['id']}")["disabled"] is True
    page.locator(".head").get_by_role("button", name="Resume").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    # And its headers are set, and its secret shown and rotated
    page.get_by_role("button", name="Headers").click()
    page.get_by_role("dialog").get_by_label("Headers").fill("X-Team: billing")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert project.webhooks("GET", f"/app/acme/endpoint/{endpoint['id']}/headers")["headers"] == {"X-Team": "billing"}
    # And it is sent tokens, whose secret nobody sees again; and none any more
    page.get_by_role("button", name="Tokens").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Token URL").fill("https://login.example/token")
    dialog.get_by_label("Client id").fill("pushhub")
    dialog.get_by_label("Client secret").fill("never-shown-again")
    dialog.get_by_label("Scopes").fill("webhooks")
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    shown = project.webhooks("GET", f"/app/acme/endpoint/{endpoint['id']}/oauth")
    assert (shown["authMethod"], shown["clientId"], shown["scopes"]) == ("clientSecretBasic", "pushhub", ["webhooks"])
    page.get_by_role("button", name="Tokens").click()
    expect(dialog.get_by_label("Client id")).to_have_value("pushhub")
    expect(dialog.get_by_label("Client secret")).to_have_value("")
    dialog.get_by_role("button", name="Send no tokens").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert project.webhooks("GET", f"/app/acme/endpoint/{endpoint['id']}/oauth-config") == {"enabled": False}
    # And its connections show a certificate, whose end is told and whose key is not
    page.get_by_role("button", name="Certificate").click()
    dialog.get_by_label("Private key and certificate").fill("junk")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_text("missing")).to_be_visible()
    project.webhooks("PATCH", f"/app/acme/endpoint/{endpoint['id']}", {"url": "https://a.example/in"})
    dialog.get_by_label("Private key and certificate").fill(identity(name="hub.acme.example"))
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name="Certificate").click()
    expect(dialog.get_by_text("hub.acme.example")).to_be_visible()
    dialog.get_by_role("button", name="Show no certificate").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert project.webhooks("GET", f"/app/acme/endpoint/{endpoint['id']}/mtls-config") == {"enabled": False}
    page.get_by_role("button", name="Show", exact=True).click()
    secret = page.locator("[data-secret]")
    expect(secret).to_have_text(project.webhooks("GET", f"/app/acme/endpoint/{endpoint['id']}/secret")["key"])
    before = secret.inner_text()
    page.get_by_role("button", name="New secret").click()
    page.get_by_role("dialog").get_by_role("button", name="New secret").click()
    expect(secret).not_to_have_text(before)


def test_signatures_are_set_replaced_and_ended(console: Console) -> None:
    page, project = console.page, console.project
    # Given an endpoint, whose application inherits nothing
    app = project.webhooks("POST", "/app", {"name": "Signed", "uid": "signed"})["id"]
    endpoint = project.webhooks("POST", f"/app/{app}/endpoint", {"url": "https://a.example/in"})["id"]
    path = f"/app/{app}/endpoint/{endpoint}/signatures"
    console.open("apps", app, "endpoints", endpoint)
    page.get_by_role("button", name="Signatures").click()
    whole = page.get_by_role("dialog", name="Signatures", exact=True)
    expect(whole.get_by_role("heading", name="Standard Webhooks")).to_be_visible()
    # When another scheme is added beside it, with a mistake first
    whole.get_by_role("button", name="Add a signature").click()
    form = page.get_by_role("dialog", name="Add a signature")
    form.get_by_label("As").select_option("Stripe")
    form.get_by_role("button", name="Add it").click()
    expect(form.get_by_label("Secret")).to_have_attribute("aria-invalid", "true")
    form.get_by_label("Secret").fill("whsec_never_shown_again")
    assert console.violations() == []
    form.get_by_role("button", name="Add it").click()
    expect(form).to_have_count(0)
    expect(whole.get_by_role("heading", name="Stripe")).to_be_visible()
    assert [each["preset"] for each in project.webhooks("GET", path)["signatures"]] == ["standard-webhooks", "stripe"]
    stripe = whole.locator(".card", has=page.get_by_role("heading", name="Stripe"))
    # And its secret is replaced, so that two sign
    stripe.get_by_role("button", name="New secret").click()
    form = page.get_by_role("dialog", name="New secret of Stripe")
    form.get_by_label("New secret").fill("whsec_the_next")
    form.get_by_role("button", name="Replace it").click()
    expect(stripe.get_by_text("Earlier secrets")).to_be_visible()
    # And Standard Webhooks ends in two days, which is said
    standard = whole.locator(".card", has=page.get_by_role("heading", name="Standard Webhooks"))
    standard.get_by_role("button", name="Set an end").click()
    form = page.get_by_role("dialog", name="End Standard Webhooks")
    form.get_by_label("Last day").fill("2001-01-01")
    form.get_by_role("button", name="Set the end").click()
    expect(form.get_by_label("Last day")).to_have_attribute("aria-invalid", "true")
    form.get_by_label("Last day").fill((datetime.now(UTC) + timedelta(days=2)).date().isoformat())
    form.get_by_role("button", name="Set the end").click()
    expect(standard.get_by_text("It ends")).to_be_visible()
    assert console.violations() == []
    assert "endsAt" in project.webhooks("GET", path)["signatures"][0]
    # And no secret is on the page
    assert "whsec_" not in whole.inner_text()
    # And the endpoint's page itself says so
    whole.get_by_role("button", name="Close").click()
    expect(page.get_by_text("The signature webhook-signature ends")).to_be_visible()
    page.get_by_role("button", name="Signatures").click()
    # When everything is removed, and the application is signed as GitHub does
    whole.get_by_role("button", name="Remove all").click()
    page.get_by_role("dialog", name="Remove all").get_by_role("button", name="Remove all").click()
    expect(whole.get_by_role("heading", name="Stripe")).to_have_count(0)
    whole.get_by_role("button", name="Close").click()
    console.open("apps", app, "settings")
    page.get_by_role("button", name="Signatures").click()
    shared = page.get_by_role("dialog", name="Signatures of the application")
    shared.get_by_role("button", name="Add a signature").click()
    form = page.get_by_role("dialog", name="Add a signature")
    form.get_by_label("As").select_option("GitHub")
    expect(form.get_by_label("Secret")).to_have_count(0)
    form.get_by_role("button", name="Add it").click()
    expect(shared.get_by_role("heading", name="GitHub")).to_be_visible()
    assert console.violations() == []
    # Then the endpoint's page says whose it is
    console.open("apps", app, "endpoints", endpoint)
    page.get_by_role("button", name="Signatures").click()
    expect(whole.get_by_text("They are those of the application")).to_be_visible()
    expect(whole.get_by_role("heading", name="GitHub")).to_be_visible()
    # And if the application says nothing, and what the project hands down ends, the page says so, too
    end = (datetime.now(UTC) + timedelta(days=3)).isoformat()
    project.webhooks("PUT", f"/app/{app}/signatures", {"signatures": []})
    ending = [{"preset": "slack", "endsAt": end}, {"preset": "standard-webhooks"}]
    project.webhooks("PUT", "/signatures", {"signatures": ending})
    console.open("apps", app, "endpoints", endpoint)
    expect(page.get_by_text("The signature X-Slack-Signature ends")).to_be_visible()


def test_the_end_of_a_subscribers_or_services_signature_is_shown(console: Console, recorder: Recorder) -> None:
    page, project, url = console.page, console.project, recorder.endpoint(200).url
    # Given a subscriber and a service, of which a signature each ends soon
    end = (datetime.now(UTC) + timedelta(days=3)).isoformat()
    both = [{"preset": "stripe", "secret": "s", "endsAt": end}, {"preset": "github", "secret": "g"}]
    subscriber = {"name": "shop", "url": url, "signing": {"signatures": both}}
    project.ironmq("PUT", "/signed", {"queue": {"push": {"subscribers": [subscriber]}}})
    mapping = {"name": "acme.sign", "url": url, "token": "k", "messages": ["order:new"]}
    project.hub("POST", "/mappings", {"mapping": {**mapping, "signing": {"signatures": both}}})
    # Then their pages say so
    for place in (("queues", "signed", "subscribers", "shop"), ("store", "mappings")):
        console.open(*place)
        expect(page.get_by_text("The signature Stripe-Signature ends")).to_be_visible()
        assert console.violations() == []


def test_event_types_are_made_archived_and_brought_back(console: Console) -> None:
    page, project = console.page, console.project
    console.open("event-types")
    page.get_by_role("button", name="New event type").click()
    page.get_by_label("Name", exact=True).fill("invoice.paid")
    page.get_by_role("button", name="Make it").click()
    page.get_by_role("button", name="Archive").click()
    expect(page.get_by_role("button", name="Bring back")).to_be_visible()
    assert project.webhooks("GET", "/event-type/invoice.paid")["archived"] is True
    page.get_by_role("button", name="Bring back").click()
    expect(page.get_by_role("button", name="Archive")).to_be_visible()


def test_a_customer_opens_their_portal_by_its_link_and_sees_their_own_alone(
    stack: RunningStack, chromium: Browser, project: Project, recorder: Recorder
) -> None:
    # Given two customers, and a link to the portal of one
    mine, other = application(project, "mine"), application(project, "other")
    project.webhooks("POST", f"/app/{mine}/endpoint", {"url": recorder.endpoint(200).url})
    access = project.webhooks("POST", f"/auth/app-portal-access/{mine}", {})
    key = access["url"].partition("#key=")[2]
    assert json.loads(base64.b64decode(key))["appId"] == mine
    with tab(stack, chromium, project) as console:
        page = console.page
        # When it is opened
        page.goto(f"{console.url}#key={key}")
        expect(page.get_by_role("heading", name="mine")).to_be_visible()
        expect(page.get_by_role("row")).to_have_count(2)
        # Then only their own application is visible, whatever the address says
        expect(page.get_by_role("link", name="Queues")).to_have_count(0)
        page.goto(f"{console.url}#/apps/{other}")
        expect(page.locator("main")).to_have_attribute("data-address", f"#/apps/{other}")
        expect(page.get_by_role("heading", name="mine")).to_be_visible()
        console.loaded()
        assert [url for url in console.asked if other in url] == []
        # And they may create endpoints and see secrets
        page.get_by_role("button", name="New endpoint").click()
        page.get_by_label("URL").fill(recorder.endpoint(200).url)
        page.get_by_role("button", name="Create the endpoint").click()
        page.get_by_role("button", name="Show", exact=True).click()
        expect(page.locator("[data-secret]")).to_contain_text("whsec_")
        # And the token is stored nowhere, and in no address
        for secret in (access["token"], key):
            assert secret not in page.evaluate(STORED)
            assert [url for url in console.asked if secret in url] == []
        assert console.violations() == []
        # And signing out ends it at the hub, too
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    with tab(stack, chromium, project) as again:
        again.page.goto(f"{again.url}#key={key}")
        expect(again.page.get_by_text("does not accept this token")).to_be_visible()


def test_a_customer_finds_no_button_for_the_tenants_own_endpoint(
    stack: RunningStack, chromium: Browser, project: Project, recorder: Recorder
) -> None:
    # Given an application with a public endpoint and one of the tenant's own, both with a message, and its portal
    app = application(project, "acme")
    shown = recorder.endpoint(200)
    for url in (shown.url, "ironmq:///copies"):
        project.webhooks("POST", f"/app/{app}/endpoint", {"url": url})
    project.webhooks("POST", "/event-type", {"name": "invoice.paid", "description": "paid"})
    message = project.webhooks("POST", f"/app/{app}/msg", {"eventType": "invoice.paid", "payload": {}})["id"]
    shown.wait()
    access = project.webhooks("POST", f"/auth/app-portal-access/{app}", {})
    with tab(stack, chromium, project) as console:
        page = console.page
        page.goto(f"{console.url}#key={access['url'].partition('#key=')[2]}")
        # When its page is opened
        page.get_by_role("link", name="ironmq://hidden").click()
        expect(page.get_by_text("the provider's own")).to_be_visible()
        expect(page.get_by_role("heading", name="Attempts")).to_be_visible()
        # Then nothing that would be refused is offered
        for name in (
            "Pause",
            "Resume",
            "Edit",
            "Delete",
            "Headers",
            "Tokens",
            "Certificate",
            "Signatures",
            "Show",
            "New secret",
            "Send again",
        ):
            expect(page.get_by_role("button", name=name, exact=True)).to_have_count(0)
        expect(page.get_by_role("link", name="Transformation")).to_have_count(0)
        # And a message is sent again to the other one alone
        page.goto(f"{console.url}#/apps/{app}/messages/{message}")
        expect(page.get_by_role("button", name=f"Send again to {shown.url}"[:40])).to_have_count(1)
        expect(page.get_by_role("button", name="Send again to ironmq")).to_have_count(0)
        assert console.violations() == []


def test_a_webhooks_message_is_followed_and_sent_again(console: Console, recorder: Recorder) -> None:
    page, project = console.page, console.project
    # Given an application with one endpoint that accepts its messages, and one that fails
    good, bad = recorder.endpoint(200), recorder.endpoint(500)
    app = application(project, "acme")
    stripe = [{"preset": "stripe", "secret": "whsec_of-stripe"}]
    for each, more in ((good, {"signatures": stripe}), (bad, {})):
        project.webhooks("POST", f"/app/{app}/endpoint", {"url": each.url, **more})
    # When a person sends a message
    console.open("apps", app)
    page.get_by_role("button", name="Send a message").click()
    page.get_by_label("Event type").fill("invoice.paid")
    page.get_by_label("Payload").fill('{"note": "<script>alert(1)</script>"}')
    page.get_by_role("button", name="Send", exact=True).click()
    # Then its history is shown: each attempt with its answer, and when the next one is due
    life = page.get_by_role("list", name="History")
    expect(life.get_by_text(f"{good.url}: HTTP 200")).to_be_visible()
    expect(life.get_by_text(f"{bad.url}: HTTP 500").first).to_be_visible()
    expect(life.get_by_text(f"{bad.url}: the next attempt")).to_be_visible()
    expect(life.get_by_text("Signed by stripe.")).to_have_count(1)
    expect(page.locator("pre.body").last).to_contain_text("<script>alert(1)</script>")
    # And it is resent where a person requests it
    page.get_by_role("button", name=f"Send again to {good.url}").click()
    dialog = page.get_by_role("dialog", name=f"Send this message again to {good.url}?")
    dialog.get_by_role("button", name="Cancel").click()
    assert len(good.pushes) == 1
    page.get_by_role("button", name=f"Send again to {good.url}").click()
    dialog.get_by_role("button", name="Send again").click()
    good.wait(2)
    expect(life.get_by_text("Requested by a person.")).to_be_visible()
    # And two of its attempts stand side by side
    # (of which endpoint depends on whether the next automatic one has been made meanwhile)
    for label, place in (("This one", 0), ("And this one", -1)):
        choice = page.get_by_label(label, exact=True)
        of_good = [text for text in choice.get_by_role("option").all_inner_texts() if text.startswith(good.url)]
        choice.select_option(label=of_good[place])
    compared = page.get_by_role("region", name="Two attempts compared")
    expect(compared.get_by_text("HTTP 200")).to_have_count(2)
    # And its request to an endpoint can be repeated by hand
    copied = console.copied(page.get_by_role("button", name=f"Copy as curl for {good.url}"))
    assert copied.startswith("curl -X POST")
    assert copied.endswith(f"'{good.url}'")
    assert """--data-raw '{"note":"<script>alert(1)</script>"}'""" in copied
    assert (console.too_wide(), console.violations()) == (False, [])
    # When its content is expunged, then nobody can read it any more
    page.get_by_role("button", name="Expunge").click()
    page.get_by_role("dialog").get_by_role("button", name="Expunge").click()
    expect(page.locator("pre.body").last).to_contain_text('"expired": true')


def test_an_endpoints_health_is_shown_and_a_test_is_sent(console: Console, recorder: Recorder) -> None:
    page, project = console.page, console.project
    target = recorder.endpoint(200)
    app = application(project, "acme")
    created = project.webhooks("POST", f"/app/{app}/endpoint", {"url": target.url})
    console.open("apps", app, "endpoints", created["id"])
    # When a test is sent
    page.get_by_role("button", name="Send a test").click()
    # Then the endpoint gets it, and its page counts it and includes it in the chart
    assert json.loads(target.wait()[0].body) == {"success": True}
    expect(page.get_by_role("region", name="Attempts").get_by_text("HTTP 200")).to_be_visible()
    expect(page.get_by_role("img", name="1 good, 0 failed")).to_be_visible()
    expect(page.get_by_text("None that was tried before.")).to_be_visible()
    # And whatever sends something again asks first, or says that there is nothing
    page.get_by_role("region", name="Attempts").get_by_role("button", name="Send again").click()
    page.get_by_role("dialog", name="Send this message again?").get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Count and send again").click()
    expect(page.get_by_text("0 messages failed and never arrived.")).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert len(target.pushes) == 1
    assert console.violations() == []
