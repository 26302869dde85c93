"""One path of each kind through one running stack: each protocol with a client that knows nothing of this house, a
night of the report over what they left, and a page of the console.

This is what ``make test`` shows of the whole; what can go wrong on these paths is in ``tests/stack``, ``tests/glue``
and ``tests/browser``. The report is made of what the fixture ``sent`` did, so each test can run alone.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import urllib.parse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import requests
from c8y_api import CumulocityApi
from c8y_api.model import Subscription
from c8y_tk.notification2 import AsyncListener
from iron_mq import IronMQ
from tests.stack.delivery_report import make_report, records_of, rows
from tests.stack.endpoints import Recorder
from tests.stack.hub_endpoint import TOKEN, HubEndpoint
from tests.stack.project import ProjectClient, until
from tests.stack.running import RunningStack
from tests.stack.webhooks import clients

pytestmark = pytest.mark.stack

WAIT_S = 180.0
"""How long something may take on a busy machine, seconds."""
ORDERS = ("one", "zwei \u00e9")


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    """The running stack."""
    running = RunningStack.start(tmp_path_factory.mktemp("paths"))
    yield running
    running.discard()


@pytest.fixture(scope="module")
def shop(stack: RunningStack) -> ProjectClient:
    """The project that the report is about."""
    return ProjectClient.another(stack)


@dataclass
class Sent:
    """What was sent of the two orders, and how the pull queue's task was consumed."""

    good: Sequence[str]
    bad: Sequence[str]
    task: str
    reserved: Mapping[str, Any]
    deleted: Mapping[str, Any]


@pytest.fixture(scope="module")
def sent(shop: ProjectClient) -> Sent:
    """Orders posted to a push queue by IronMQ's client, until every attempt was made, and a task pulled by it."""
    address = urllib.parse.urlsplit(shop.base_url)
    client: Any = IronMQ(
        host=address.hostname, port=address.port, protocol="http", project_id=shop.project_id, token=shop.token
    )
    with Recorder() as recorder:
        good, bad = recorder.endpoint(200), recorder.endpoint(500)
        subscribers = [{"name": "good", "url": good.url}, {"name": "bad", "url": bad.url}]
        push = {"subscribers": subscribers, "retries": 1, "retries_delay": 3}
        client.create_queue("orders", {"type": "multicast", "push": push})
        for message_id in client.queue("orders").post(*ORDERS)["ids"]:
            shop.wait_codes("orders", message_id, [200, 500], [1, 2], seconds=WAIT_S)
        to_good, to_bad = ([each.body.decode() for each in arrived] for arrived in (good.wait(2), bad.wait(4)))
    pull = client.queue("tasks")
    [task] = pull.post("task")["ids"]
    [reserved] = pull.reserve()["messages"]
    return Sent(to_good, to_bad, task, reserved, pull.delete(task, reserved["reservation_id"]))


def test_the_ironmq_client_posts_and_subscribers_are_sent_the_bytes(sent: Sent) -> None:
    # Given a push queue with a subscriber that accepts, and one that never does, when messages were posted
    # Then both were asked, the one once and the other twice, with these bytes
    assert sorted(sent.good) == sorted(ORDERS)
    assert Counter(sent.bad) == dict.fromkeys(ORDERS, 2)
    # And what was in a pull queue was reserved and deleted
    assert (sent.reserved["id"], sent.reserved["body"]) == (sent.task, "task")
    assert sent.deleted == {"msg": "Deleted"}


@pytest.mark.usefixtures("sent")
def test_the_report_accounts_for_everything_that_was_posted(stack: RunningStack, shop: ProjectClient) -> None:
    # Given their records: two messages accepted with three attempts each, and three of a pull queue
    # (they come by the streams of two tables, which do not wait for each other)
    def recorded() -> bool:
        kinds = Counter((each["dialect"], each["kind"]) for each in records_of(stack, shop.project_id))
        of_pull = sum(count for (dialect, _), count in kinds.items() if dialect == "pull")
        return (of_pull, kinds["raw", "accepted"], kinds["raw", "attempt"]) == (3, 2, 6)

    until(recorded, WAIT_S, lambda: str([*records_of(stack, shop.project_id)]))
    # When the nightly job runs on Spark, then everything is accounted for
    report = make_report(stack, shop.project_id)
    verdict = json.loads((report / "summary.json").read_text())["verdict"]
    assert verdict["conserved"]
    assert [verdict[each] for each in ("messages", "owed", "delivered", "exhausted")] == [3, 5, 3, 2]
    # And the job had the stack's own tables to compare the records with
    assert "not_compared" not in {row["finding"] for row in rows(report, "findings")}
    # And attempts are counted as the subscribers saw them
    assert {row["subscriber"]: row["attempts"] for row in rows(report, "subscribers")} == {"good": 2, "bad": 4}


def test_an_endpoint_of_the_hub_protocol_is_sent_an_order_and_answers_with_another(stack: RunningStack) -> None:
    # Given a store whose endpoint answers an order with a message of its own, and takes that
    store = stack.make_project()
    url, headers = f"{stack.base_url}/api/stores/{store.project_id}", {"X-Augury-Token": store.token}

    def call(method: str, path: str, body: Any = None) -> Any:
        answer = requests.request(method, url + path, json=body, headers=headers, timeout=60)
        assert answer.ok, answer.text
        return answer.json()

    with HubEndpoint() as endpoint:
        for message, path in (("order:new", "/import"), ("order:imported", "/take")):
            mapping = {"name": f"acme{path.replace('/', '.')}", "url": endpoint.url + path, "token": TOKEN}
            call("POST", "/mappings", {"mapping": {**mapping, "messages": [message]}})
        # When an order is pushed
        call("POST", "/messages", {"message": "order:new", "payload": {"number": "R1"}})
        # Then the endpoint is sent both, with the token that it asked for
        until(lambda: endpoint.of("/take", number="R1") or None, WAIT_S, lambda: str(endpoint.seen))
        [first], [second] = endpoint.of("/import", number="R1"), endpoint.of("/take", number="R1")
        assert (first.body["message"], second.body["message"]) == ("order:new", "order:imported")


def test_the_client_of_cumulocity_subscribes_listens_and_acknowledges(stack: RunningStack) -> None:
    # Given a subscription of a tenant
    tenant = stack.make_project()
    c8y: Any = CumulocityApi(stack.base_url, tenant.project_id, "tester", tenant.token)
    Subscription(c8y, name="machines", context="tenant").create()
    heard: list[int] = []

    def publish() -> requests.Response:
        drafts = [{"api": "events", "source": "111", "data": {"n": number}} for number in range(3)]
        caller = (f"{tenant.project_id}/tester", tenant.token)
        return requests.post(f"{stack.base_url}/notification2/notifications", json=drafts, auth=caller, timeout=60)

    async def hear(message: Any) -> None:
        heard.append(message.json["n"])
        if len(heard) == 3:
            listener.stop()

    # When a listener is connected while something is published
    listener: Any = AsyncListener(c8y, subscription_name="machines", subscriber_name="app", auto_unsubscribe=False)

    async def play() -> None:
        running = listener.start(hear)
        await asyncio.wait_for(listener._is_connected.wait(), WAIT_S)
        published = await asyncio.to_thread(publish)
        assert published.status_code == 201, published.text
        await asyncio.wait_for(asyncio.gather(running, return_exceptions=True), WAIT_S)

    asyncio.run(play())
    # Then it has heard all of it, in order
    assert heard == [0, 1, 2]


def test_the_client_of_svix_sends_and_its_verifier_accepts_what_arrives(stack: RunningStack) -> None:
    # Given two projects, when the client makes these checks of its list
    tokens = [stack.make_project().token for _ in range(2)]
    failed = clients.judged_by_python(2, stack.base_url, tokens, "check_2")
    # Then none failed
    assert "check_24_both_verifiers_accept_each_delivery" in failed
    assert not any(failed.values()), "\n".join(failed.values())


def test_a_person_follows_a_message_in_the_browser(stack: RunningStack) -> None:
    browser = shutil.which("chromium")
    if not browser:
        pytest.skip("there is no chromium here: install the package chromium")
    from playwright.sync_api import expect, sync_playwright  # noqa: PLC0415 (there is none without a browser)
    from tests.browser.console import new_project, tab  # noqa: PLC0415

    # Given a project with a queue whose only subscriber accepts
    project = new_project(stack)
    with Recorder() as recorder, sync_playwright() as playwright:
        first = recorder.endpoint(200)
        project.push_queue("orders", first=first.url)
        # Its sandbox needs a user that is not root, and what it opens here is our own
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        with tab(stack, chromium, project) as console:
            # When a person signs in and posts a message
            console.sign_in()
            console.open("queues", "orders")
            console.page.get_by_role("button", name="Post a message").click()
            console.page.get_by_label("Body").fill(json.dumps({"order": "SO-1"}))
            console.page.get_by_role("button", name="Post", exact=True).click()
            # Then the page tells its life, and it was sent as typed
            life = console.page.get_by_role("list", name="History")
            expect(life.get_by_text("first: HTTP 200")).to_be_visible(timeout=WAIT_S * 1000)
            assert [json.loads(each.body) for each in first.wait()] == [{"order": "SO-1"}]
            assert console.violations() == []
        chromium.close()
