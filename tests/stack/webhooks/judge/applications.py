"""Tokens, applications, lists and errors."""

from __future__ import annotations

import re
import secrets
from datetime import timedelta

from svix.models import ApplicationIn, ApplicationPatch
from tests.stack.webhooks.judge.stage import OLD, Stage, is_invalid, options, unprocessable


def check_02_an_application_is_created(stage: Stage) -> None:
    answer = stage.raw("POST", "/app", {"name": "first"})
    assert answer.status == 201, answer.content
    assert answer.headers["content-type"].startswith("application/json")
    created = answer.json
    assert re.fullmatch(r"app_[0-9A-Za-z]{27}", created["id"])
    assert created["metadata"] == {}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", created["createdAt"])
    read = stage.svix.application.get(created["id"])
    assert (read.id, read.name, read.metadata, read.uid) == (created["id"], "first", {}, None)
    assert read.created_at.utcoffset() == timedelta(0)
    assert read.updated_at >= read.created_at
    later = stage.app(metadata={"plan": "gold"}, throttle_rate=7)
    assert later.metadata == {"plan": "gold"}
    assert later.throttle_rate == 7
    assert later.id > created["id"], "ids carry the time of creation"


def check_06_patch_keeps_what_is_absent_and_put_replaces_everything(stage: Stage) -> None:
    uid = f"uid-{secrets.token_hex(4)}"
    created = stage.app(uid=uid, throttle_rate=5, metadata={"a": "1", "b": "2"})
    patched = stage.svix.application.patch(created.id, ApplicationPatch(name="renamed"))
    assert (patched.name, patched.uid, patched.throttle_rate) == ("renamed", uid, 5)
    assert patched.metadata == {"a": "1", "b": "2"}
    patched = stage.svix.application.patch(
        created.id, ApplicationPatch(uid=None, throttle_rate=None, metadata={"c": "3"})
    )
    assert (patched.name, patched.uid, patched.throttle_rate, patched.metadata) == ("renamed", None, None, {"c": "3"})
    is_invalid(stage.raw("PATCH", f"/app/{created.id}", {"name": None}))
    is_invalid(stage.raw("PATCH", f"/app/{created.id}", {"name": ""}))
    stage.svix.application.patch(created.id, ApplicationPatch(uid=uid, throttle_rate=6))
    put = stage.upsert_app(created.id, ApplicationIn(name="put"))
    assert (put.id, put.name, put.uid, put.throttle_rate, put.metadata) == (created.id, "put", None, None, {})
    assert put.updated_at > created.updated_at


def check_08_lists_are_walked_forth_and_back(stage: Stage) -> None:
    app = stage.app()
    # Ids have a grain of 4 ms, as Svix's own have: two that are made within it are in no order.
    created = sorted(stage.endpoint(app)[0].id for _ in range(7))
    walk = stage.svix.endpoint.list
    # Newest first, unless asked otherwise
    assert [each.id for each in walk(app.id).data] == created[::-1]
    seen, pages, iterator = [], [], None
    while True:
        page = walk(app.id, options("EndpointListOptions", limit=3, iterator=iterator, order="ascending"))
        pages.append(page)
        seen += [each.id for each in page.data]
        if page.done:
            break
        iterator = page.iterator
    assert seen == created
    assert [len(page.data) for page in pages] == [3, 3, 1]
    back = walk(app.id, options("EndpointListOptions", limit=3, iterator=pages[2].prev_iterator, order="ascending"))
    assert [each.id for each in back.data] == created[3:6], "in the list's own order"
    assert not back.done
    back = walk(app.id, options("EndpointListOptions", limit=3, iterator=back.prev_iterator, order="ascending"))
    assert [each.id for each in back.data] == created[:3]
    assert back.done
    # done is exact, also when the page is just full
    assert walk(app.id, options("EndpointListOptions", limit=7)).done
    assert not walk(app.id, options("EndpointListOptions", limit=6)).done
    assert len(walk(app.id, options("EndpointListOptions", limit=250)).data) == 7
    unprocessable(walk, app.id, options("EndpointListOptions", limit=251))
    for query, status in (("limit=x", 400), ("order=sideways", 400)):
        answer = stage.raw("GET", f"/app/{app.id}/endpoint?{query}")
        assert answer.status == status, answer.content
        assert answer.json["code"]
    # An iterator is only compared: what it names need not exist any more.
    stage.svix.endpoint.delete(app.id, created[3])
    page = walk(app.id, options("EndpointListOptions", iterator=created[3], order="ascending"))
    assert [each.id for each in page.data] == created[4:]


def check_47_trailing_slashes_old_names_and_unknown_fields_are_accepted(stage: Stage) -> None:
    uid = f"u-{secrets.token_hex(4)}"
    created = stage.raw("POST", "/app/", {"name": "n", "uid": uid, "rateLimit": 9, "nonsense": {"a": []}})
    assert created.status == 201, created.content
    assert (created.json["rateLimit"], created.json["throttleRate"]) == (9, 9)
    assert stage.raw("GET", f"/app/{uid}//").json["id"] == created.json["id"]
    name = stage.event_type()
    body = {"url": "http://127.0.0.1:9/x", "filterTypes": [name], "rateLimit": 3, "version": 1, "unknown": 1}
    endpoint = stage.raw("POST", f"/app/{uid}/endpoint/", body)
    assert endpoint.status == 201, endpoint.content
    for old, new in (("filterTypes", "eventTypes"), ("rateLimit", "throttleRate")):
        assert endpoint.json[old] == endpoint.json[new]
    assert endpoint.json["eventTypes"] == [name]
    assert endpoint.json["throttleRate"] == 3
    assert isinstance(endpoint.json["version"], int)
    client = stage.client(stage.token) if OLD else stage.svix
    assert client.endpoint.get(uid, endpoint.json["id"]).throttle_rate == 3
    # Whatever the content type says, the body is JSON.
    plain = stage.raw("POST", "/app", b'{"name": "plain"}', headers={"Content-Type": "text/plain"})
    assert plain.status == 201, plain.content
