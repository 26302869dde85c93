"""Subscribers: add, replace, remove, and what is refused at registration (IronMQ v3, S1 to S3 and section 3)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.world import PROJECT
from tests.fakes.credentials import credentials
from tests.ironmq.api.hub import OTHER_PROJECT, Hub

from pushhub.base.credentials import MASK

A, B, C = "https://a.example/in", "https://b.example/in", "https://c.example/in"


def shown(hub: Hub, name: str = "q") -> list[dict[str, Any]]:
    return list(hub.info(name)["push"]["subscribers"])


def ids(hub: Hub) -> list[str]:
    queue = hub.world.config.queue(PROJECT, "q")
    assert queue is not None
    assert queue.push is not None
    return [each.subscriber_id for each in queue.push.subscribers]


def test_adding_keeps_the_others_and_updates_by_name(hub: Hub) -> None:
    # Given a queue with two subscribers
    hub.make_push("q", A, B)
    before = ids(hub)
    # When one of them and a new one are added
    result = hub.call(
        "POST", "/queues/q/subscribers", {"subscribers": [{"name": "s1", "url": C}, {"name": "new", "url": A}]}
    )
    assert (result.status, result.body) == (200, {"msg": "Updated"})
    # Then the existing one has the new URL, with its old place and id, and the new one comes last
    assert shown(hub) == [{"name": "s0", "url": A}, {"name": "s1", "url": C}, {"name": "new", "url": A}]
    assert ids(hub)[:2] == before


def test_replacing_sets_the_whole_list_and_keeps_ids_by_name(hub: Hub) -> None:
    hub.make_push("q", A, B)
    before = ids(hub)
    result = hub.call("PUT", "/queues/q/subscribers", {"subscribers": [{"name": "s1", "url": B}]})
    assert (result.status, result.body) == (200, {"msg": "Updated"})
    assert shown(hub) == [{"name": "s1", "url": B}]
    assert ids(hub) == before[1:]


def test_removing_by_name_ignores_unknown_ones_and_extra_fields(hub: Hub) -> None:
    hub.make_push("q", A, B, C)
    removed = {"subscribers": [{"name": "s1", "url": "https://unimportant.example"}, {"name": "unknown"}]}
    result = hub.call("DELETE", "/queues/q/subscribers", removed)
    assert (result.status, result.body) == (200, {"msg": "Updated"})
    assert [each["name"] for each in shown(hub)] == ["s0", "s2"]


def test_the_last_subscriber_cannot_be_removed(hub: Hub) -> None:
    hub.make_push("q", A)
    result = hub.call("DELETE", "/queues/q/subscribers", {"subscribers": [{"name": "s0"}]})
    assert result.status == 400
    assert "Push queues must have at least one subscriber" in result.msg
    assert len(shown(hub)) == 1


def test_subscribers_without_names_are_known_by_their_urls(hub: Hub) -> None:
    # Given subscribers without names, as qpush creates them
    hub.make("q", push={"subscribers": [{"url": A}, {"name": "", "url": B}]})
    # When one is added again and one removed
    hub.call("POST", "/queues/q/subscribers", {"subscribers": [{"url": A, "headers": {"X-A": "1"}}]})
    hub.call("DELETE", "/queues/q/subscribers", {"subscribers": [{"name": "", "url": B}]})
    # Then each is still there once
    assert shown(hub) == [{"name": "", "url": A, "headers": {"X-A": MASK}}]


def test_subscribers_that_differ_in_nothing_keep_their_deliveries_too(hub: Hub) -> None:
    # Given two subscribers without a name for the same URL
    same = [{"url": A}, {"url": A}]
    hub.make("q", push={"subscribers": same})
    before = ids(hub)
    # When the same list is set again, then both keep their ids
    hub.call("PUT", "/queues/q/subscribers", {"subscribers": same})
    assert ids(hub) == before
    # And a third one is new
    hub.call("PUT", "/queues/q/subscribers", {"subscribers": [*same, {"url": A}]})
    assert ids(hub)[:2] == before
    assert len(set(ids(hub))) == 3


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_pull_and_missing_queues_have_no_subscribers(hub: Hub, method: str) -> None:
    hub.make("pull")
    body = {"subscribers": [{"name": "s", "url": A}]}
    assert hub.call(method, "/queues/pull/subscribers", body).status == 400
    assert hub.call(method, "/queues/none/subscribers", body).msg == "Queue not found"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
@pytest.mark.parametrize(
    "body", [{}, {"subscribers": []}, {"subscribers": None}, {"subscribers": {}}, {"subscribers": ["x"]}], ids=str
)
def test_requests_without_subscribers(hub: Hub, method: str, body: Any) -> None:
    hub.make_push("q", A)
    assert hub.call(method, "/queues/q/subscribers", body).status == 400


def test_removing_needs_a_name(hub: Hub) -> None:
    hub.make_push("q", A, B)
    assert hub.call("DELETE", "/queues/q/subscribers", {"subscribers": [{"name": ""}]}).status == 400


def test_two_subscribers_may_have_one_name(hub: Hub) -> None:
    # Given two subscribers with the same name, as in IronMQ's own Ruby test suite, and a third
    twins = [{"name": "s", "url": A}, {"name": "s", "url": B}]
    hub.make("q", push={"subscribers": [*twins, {"name": "t", "url": C}]})
    assert shown(hub)[:2] == twins
    first, second, third = ids(hub)
    # When the list is set again in another order, then each keeps its id
    hub.call("PUT", "/queues/q/subscribers", {"subscribers": [twins[1], {"name": "t", "url": C}, twins[0]]})
    assert ids(hub) == [second, third, first]
    # When one is added again with a header, then that of the same URL is changed
    hub.call("POST", "/queues/q/subscribers", {"subscribers": [{**twins[0], "headers": {"X-A": "1"}}]})
    assert ids(hub) == [second, third, first]
    assert shown(hub)[2] == {**twins[0], "headers": {"X-A": MASK}}
    # When one is removed by name and URL, then the other stays; by name alone all go
    hub.call("DELETE", "/queues/q/subscribers", {"subscribers": [twins[1]]})
    assert ids(hub) == [third, first]
    hub.call("POST", "/queues/q/subscribers", {"subscribers": [{"name": "u", "url": A}, {"name": "u", "url": B}]})
    assert len(ids(hub)) == 4
    hub.call("DELETE", "/queues/q/subscribers", {"subscribers": [{"name": "u"}]})
    assert ids(hub) == [third, first]


def test_a_named_subscriber_can_be_removed_by_its_url(hub: Hub) -> None:
    hub.make_push("q", A, B, C)
    assert hub.call("DELETE", "/queues/q/subscribers", {"subscribers": [{"url": B}]}).status == 200
    assert [each["url"] for each in shown(hub)] == [A, C]


def test_adding_a_second_subscriber_for_an_url_is_no_renaming(hub: Hub) -> None:
    hub.make_push("q", A)
    hub.call("POST", "/queues/q/subscribers", {"subscribers": [{"name": "second", "url": A}]})
    assert [each["name"] for each in shown(hub)] == ["s0", "second"]


@pytest.mark.parametrize(
    "url",
    [
        "http://a.example",
        "HTTPS://a.example:8443/in?auth=TOKEN&x=%20#f",
        "http://user:password@a.example/",
        "http://[2001:db8::1]:81/x",
        "ironmq:///other",
        f"ironmq://{OTHER_PROJECT}:TOKEN@/q",
        f"ironmq://{PROJECT}:TOKEN@mq.example.com:8080/q",
        f"ironworker://{PROJECT}:TOKEN@worker.example.com/myWorker",
        "https://a.example/" + "x" * (2048 - len("https://a.example/")),
    ],
)
def test_urls_taken(hub: Hub, url: str) -> None:
    hub.make_push("q", url)
    assert opened(hub) == [(url, {})]
    assert shown(hub) == [{"name": "s0", "url": re.sub("//[^/]*@", f"//{MASK}@", url)}]


@pytest.mark.parametrize(
    "url",
    [
        "",
        None,
        7,
        "a.example/in",
        "ftp://a.example/in",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "http:///in",
        "http://",
        "http:a.example",
        "http://a.example:port/",
        "http://a.example:99999/",
        "http://a.example:0/",
        "http://[::1/",
        "http://a.example/a b",
        "http://a.example/\r\nX: y",
        "http://a.example\\@b.example/",
        "ironmq:///q",
        f"ironmq://{PROJECT}:TOKEN@/q",
        f"ironmq://{PROJECT}:TOKEN@hub.example/q",
        f"ironmq://{PROJECT}@/other",
        f"ironmq://{PROJECT}:TOKEN%0d%0aX:%20y@mq.example.com/other",
        "ironmq://host.example/other",
        "ironmq:///",
        "ironmq:///a/b",
        "ironworker://worker.example/myWorker",
        f"ironworker://{PROJECT}:TOKEN@/myWorker",
        "https://a.example/" + "x" * 2048,
    ],
)
def test_urls_refused_without_being_repeated(hub: Hub, url: Any) -> None:
    # When a queue q is made with such a subscriber
    result = hub.call("PUT", "/queues/q", {"queue": {"push": {"subscribers": [{"name": "s", "url": url}]}}})
    # Then it is refused, and the error does not leak the URL
    assert result.status == 400
    assert "TOKEN" not in result.msg
    assert not (isinstance(url, str) and url and url in result.msg)
    assert hub.call("GET", "/queues").body == {"queues": []}


@pytest.mark.parametrize(
    "url",
    [
        "https://hub.example",
        "https://HUB.example./api/v1/app/a/msg",
        "https://user:pass@hub.example:443/3/projects/p/queues/q/webhook?oauth=t",
        "http://hub.example/",
        "https://api.example/api/stores/s/messages",
    ],
)
def test_the_hubs_own_addresses_are_no_subscribers(hub: Hub, url: str) -> None:
    # When a queue would push to one of the hub's own addresses, by whatever route
    asked = {"push": {"subscribers": [{"name": "a", "url": url}]}}
    created = hub.call("PUT", "/queues/own", {"queue": asked})
    hub.make_push("q", "https://a.example/in")
    added = hub.call("POST", "/queues/q/subscribers", {"subscribers": [{"name": "b", "url": url}]})
    # Then it is refused with what to do instead, and nothing is stored
    assert (created.status, added.status) == (400, 400)
    assert "ironmq:///" in created.msg
    assert url not in created.msg
    assert hub.call("GET", "/queues/own").status == 404
    assert [each["url"] for each in hub.info("q")["push"]["subscribers"]] == ["https://a.example/in"]
    # And other ports and hosts are
    for other in ("https://hub.example:8443/", "https://a.hub.example/", "https://hub.example.com/"):
        assert hub.call("POST", "/queues/q/subscribers", {"subscribers": [{"name": "c", "url": other}]}).status == 200


def test_the_guard_is_asked_once_for_each_host(hub: Hub) -> None:
    hub = Hub(allowed_targets=["10.0.0.0/8"])
    hub.make_push(
        "q",
        "http://a.example/1",
        "http://a.example/2",
        "https://a.example/1",
        f"ironmq://{PROJECT}:T@mq.example:1/q",
        f"ironworker://{PROJECT}:T@w.example/c",
        "ironmq:///x",
    )
    allowed = ("10.0.0.0/8",)
    assert hub.checked == [
        ("http://a.example/1", allowed),
        ("https://a.example/1", allowed),
        ("https://mq.example:1/", allowed),
        ("https://w.example/", allowed),
    ]


def test_hosts_that_are_slow_to_resolve_do_not_hold_up_a_registration(hub: Hub) -> None:
    # Given hundreds of hosts, each of which takes five seconds to check
    hub.check_takes_s = 5
    start = hub.world.clock.now()
    # When they are made subscribers
    hub.make_push("q", *[f"https://{number}.example/" for number in range(500)])
    # Then that is done before the gateway times out; each request will be checked again
    assert hub.world.clock.now() - start <= 15_000


@pytest.mark.parametrize(("method", "path"), [("POST", "/queues/q/subscribers"), ("PUT", "/queues/q/subscribers")])
def test_what_the_guard_refuses_is_refused(hub: Hub, method: str, path: str) -> None:
    hub.make_push("q", A)
    hub.refusals["http://10.0.0.1/"] = "address is private"
    result = hub.call(method, path, {"subscribers": [{"name": "x", "url": "http://10.0.0.1/"}]})
    assert result.status == 400
    assert "address is private" in result.msg
    assert shown(hub) == [{"name": "s0", "url": A}]


def test_our_additions_to_subscribers(hub: Hub) -> None:
    hub.make("q", push={"subscribers": [{"name": "s", "url": A, "timeout": 180, "dialect": "raw"}]})
    assert shown(hub) == [{"name": "s", "url": A, "timeout": 180}]
    # zero and null mean the default, which is not shown
    hub.make("q", push={"subscribers": [{"name": "s", "url": A, "timeout": 0, "dialect": None}]})
    assert shown(hub) == [{"name": "s", "url": A}]


@pytest.mark.parametrize(
    "extra",
    [
        {"timeout": 181},
        {"timeout": -1},
        {"timeout": "10"},
        {"timeout": 1.5},
        {"dialect": "hub"},
        {"dialect": "latin"},
        {"dialect": 1},
        {"name": 1},
        {"name": "a\r\nb"},
        {"name": "漢字"},
        {"name": " a"},
        {"name": "n" * 256},
        {"headers": []},
        {"headers": {"": "x"}},
        {"headers": {"X Y": "x"}},
        {"headers": {"X:": "x"}},
        {"headers": {"Hé": "x"}},
        {"headers": {"X": 1}},
        {"headers": {"X": None}},
        {"headers": {"X": "a\r\nSet-Cookie: b"}},
        {"headers": {"X": "a\nb"}},
        {"headers": {"X": "a\x00b"}},
        {"headers": {"X": "漢"}},
        {"headers": {"X": " a"}},
        {"headers": {"X": "1", "x": "2"}},
        {"headers": {"Host": "internal"}},
        {"headers": {"content-length": "0"}},
        {"headers": {"Transfer-Encoding": "chunked"}},
        {"headers": {"Connection": "close"}},
        {"headers": {"TE": "trailers"}},
        {"headers": {"Upgrade": "h2c"}},
        {"headers": {"Expect": "100-continue"}},
    ],
    ids=str,
)
def test_subscriber_settings_refused(hub: Hub, extra: dict[str, Any]) -> None:
    subscribers = [{"name": "s", "url": A, **extra}]
    assert hub.call("PUT", "/queues/q", {"queue": {"push": {"subscribers": subscribers}}}).status == 400


def test_subscribers_may_set_user_agent_and_content_type(hub: Hub) -> None:
    headers = {"User-Agent": "mine", "Content-Type": "application/json", "X-Empty": "", "X-Latin": "é"}
    hub.make("q", push={"subscribers": [{"name": "s", "url": A, "headers": headers}]})
    assert shown(hub)[0]["headers"] == headers | {"X-Latin": MASK}


def test_subscribers_may_take_64_kb_of_json(hub: Hub) -> None:
    def subscriber(number: int) -> dict[str, str]:
        return {"name": f"{number:04d}", "url": "https://a.example/" + "x" * 2000}

    hub.make("q", push={"subscribers": [subscriber(number) for number in range(31)]})
    # one more would still fit, two more would not
    added = {"subscribers": [subscriber(number) for number in (31, 32)]}
    assert hub.call("POST", "/queues/q/subscribers", added).status == 400
    assert len(shown(hub)) == 31
    assert hub.call("POST", "/queues/q/subscribers", {"subscribers": added["subscribers"][:1]}).status == 200


# What opens something: shown as a mask, kept sealed, and kept when the mask is sent back


def opened(hub: Hub, name: str = "q") -> list[tuple[str, dict[str, str]]]:
    """URL and headers that each subscriber's attempts use."""
    queue = hub.world.config.queue(PROJECT, name)
    assert queue is not None
    assert queue.push is not None
    found = [credentials().opened(PROJECT, queue.push, each) for each in queue.push.subscribers]
    return [(each.url, dict(each.headers)) for each in found]


SECRETS = st.text("abcdefghijklmnopqrstuvwxyzABC0123456789", min_size=8, max_size=60).map("zQ-{}-Qz".format)
GIVEN = st.lists(
    st.tuples(
        st.sampled_from(
            ["https://{}@a.example/in", "http://u:{}@b.example:81/x?y=@z", "ironmq://p:{}@c.example/other"]
        ),
        st.dictionaries(st.sampled_from(["Authorization", "X-Api-Key", "Cookie", "x-own"]), SECRETS, max_size=3),
        SECRETS,
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=25, deadline=None)
@given(wanted=GIVEN, add=st.booleans())
def test_a_list_that_is_read_changed_and_written_keeps_its_secrets(
    wanted: list[tuple[str, dict[str, str], str]], *, add: bool
) -> None:
    # Given subscribers with secrets in URLs and headers
    hub = Hub()
    subscribers = [
        {"name": f"s{place}", "url": url.format(secret), "headers": headers}
        for place, (url, headers, secret) in enumerate(wanted)
    ]
    hub.make("q", push={"subscribers": subscribers})
    before = opened(hub)
    assert before == [(each["url"], each["headers"]) for each in subscribers]
    # Then they are stored and shown nowhere
    secrets = {each for _, headers, secret in wanted for each in (secret, *headers.values())}
    queue = hub.world.config.queue(PROJECT, "q")
    assert not any(each in repr(queue) or each in repr(shown(hub)) for each in secrets)
    # When a client changes something else in what it reads, and writes all of it back
    read = shown(hub)
    for each in read:
        each["timeout"] = 7
    body = {"subscribers": read}
    result = hub.call("POST", "/queues/q/subscribers", body) if add else hub.call("PUT", "/queues/q/subscribers", body)
    # Then the change is made, and the secrets are what they were
    assert result.status == 200
    assert opened(hub) == before
    assert [each["timeout"] for each in shown(hub)] == [7] * len(wanted)


def test_writing_the_same_list_again_in_clear_or_masked_writes_nothing(hub: Hub) -> None:
    given = [{"name": "s", "url": "https://u:p4ss@a.example/in", "headers": {"Authorization": "Bearer t0ken"}}]
    hub.make("q", push={"subscribers": given})
    before = hub.world.config.queue(PROJECT, "q")
    for same in (given, shown(hub)):
        assert hub.call("PUT", "/queues/q", {"queue": {"push": {"subscribers": same}}}).status == 200
        assert hub.world.config.queue(PROJECT, "q") == before


@pytest.mark.parametrize(
    "masked",
    [
        {"name": "new", "url": f"https://{MASK}@a.example/in"},
        {"name": "s", "url": f"https://{MASK}@evil.example/in"},
        {"name": "s", "url": f"http://{MASK}@a.example/in"},
        {"name": "s", "url": A, "headers": {"X-Other": MASK}},
        {"name": "new", "url": B, "headers": {"Authorization": MASK}},
        {"name": "s", "url": "https://evil.example/in", "headers": {"Authorization": MASK}},
    ],
    ids=str,
)
def test_a_mask_that_stands_for_nothing_or_for_another_host_is_refused(hub: Hub, masked: dict[str, Any]) -> None:
    path = "https://u:p4ss@a.example/in" if masked["name"] == "s" and "headers" not in masked else A
    given = {"name": "s", "url": path, "headers": {"Authorization": "Bearer t0ken"}}
    hub.make("q", push={"subscribers": [given]})
    result = hub.call("POST", "/queues/q/subscribers", {"subscribers": [masked]})
    assert result.status == 400
    assert MASK in result.msg
    assert "p4ss" not in result.msg


def test_subscribers_are_removed_by_their_url_in_clear_or_as_it_is_shown(hub: Hub) -> None:
    secret = [f"https://u:p4ss{number}@a.example/{number}" for number in range(3)]
    hub.make("q", push={"subscribers": [{"url": each} for each in (*secret, A)]})
    for url in (secret[0], f"https://{MASK}@a.example/1"):
        assert hub.call("DELETE", "/queues/q/subscribers", {"subscribers": [{"url": url}]}).status == 200
    assert [url for url, _ in opened(hub)] == [secret[2], A]
    queue = hub.world.config.queue(PROJECT, "q")
    assert queue is not None
    assert queue.push is not None
    # What was removed is not kept either.
    assert len(credentials().open(PROJECT, queue.push.credentials)) == 1
