"""Applications' endpoints, sources, streams, portals."""

from __future__ import annotations

import json
from typing import Any

from simulation.promises.talks.command_line.printed import REFUSED, WRONG_USAGE, would
from simulation.promises.talks.command_line.receiver_commands import gated
from simulation.promises.talks.talk import Came, Talk


def webhooks(talk: Talk) -> None:
    """Applications' endpoints, sources, streams, portals, and what another sender has."""
    talk.through(_endpoints, _streams, _sources, _resent)


SHOP = ("--app", "acme", "--endpoint", "shop")


def _acme(talk: Talk, url: str = "https://typed-acme.example/in", **more: Any) -> None:
    talk.ask("POST", "/app", {"name": "Acme", "uid": "acme"}, status=201)
    talk.ask("POST", "/app/acme/endpoint", {"url": url, "uid": "shop", **more}, status=201)


def _endpoints(talk: Talk) -> None:
    """Signatures, gates, transformations, frames."""
    both = [{"preset": "stripe", "secret": "12345678"}, {"preset": "standard-webhooks"}]
    _acme(talk, signatures=both)
    stripe, standard = {"preset": "stripe", "header": "Stripe-Signature"}, {"header": "webhook-signature"}
    talk.typed("signatures", "show", *SHOP, shows=[{**stripe, "inheritedFrom": None}, standard])
    another = ("signatures", "add", "stripe", *SHOP, "--secret-file", "-")
    talk.typed(*another, "--dry-run", given="another-one\n", shows=would("PUT", "/signatures"))
    shown = talk.typed(*another, given="another-one\n")
    talk.is_so("both secrets sign", [1, 0], sorted((len(each["oldSecretsEnd"] or []) for each in shown), reverse=True))
    end = "2027-03-01T00:00:00.000Z"
    for words, ends in (("stripe-signature", end), ("stripe", None)):
        talk.typed("signatures", "end", words, ends or "never", *SHOP)
        shown = talk.typed("signatures", "show", *SHOP)
        talk.is_so("when it ends", {None, ends}, {each["endsAt"] for each in shown})
    remove = ("signatures", "remove", "standard-webhooks", *SHOP)
    talk.typed(*remove, code=WRONG_USAGE)
    talk.typed(*remove, "--yes", "--dry-run", shows=would("PUT"))
    talk.typed(*remove, "--yes", shows=[stripe])
    talk.typed("signatures", "remove", "standard-webhooks", *SHOP, "--yes", code=REFUSED, says="no schemes are called")
    own = [{"content": "{body}", "header": {"name": "X-Own"}, "secret": "12345678"}]
    talk.typed("signatures", "set", "-", *SHOP, given=json.dumps(own), shows=[{"preset": None, "header": "X-Own"}])
    talk.typed("signatures", "set", "-", *SHOP, given="[]", shows=[...])
    # What is inherited, of the application or else of the project
    talk.typed("signatures", "show", shows=[])
    talk.typed("signatures", "add", "github", shows=[{"preset": "github"}])
    talk.typed("signatures", "show", *SHOP, shows=[{"preset": "github", "inheritedFrom": "project"}])
    sends = ("--send", "X-Shopify-Shop-Domain=a.example", "--send", "X-Shopify-API-Version=2026-10")
    talk.typed("signatures", "add", "shopify", "--send", "odd", "--app", "acme", code=WRONG_USAGE)
    talk.typed("signatures", "add", "shopify", *sends, "--app", "acme", shows=[{"header": "X-Shopify-Hmac-Sha256"}])
    added = ("signatures", "add", "hmac-body", "--header", "X-Sign", "--app", "acme")
    talk.typed(*added, shows=[{"header": "X-Shopify-Hmac-Sha256"}, {"header": "X-Sign"}])
    inherited = {"inheritedFrom": "application"}
    talk.typed(
        "signatures", "show", *SHOP, shows=[{**inherited, "preset": "shopify"}, {**inherited, "header": "X-Sign"}]
    )
    talk.typed("signatures", "remove", "shopify", *SHOP, "--yes", code=REFUSED, says="those of the application")
    talk.typed("signatures", "add", "standard-webhooks", *SHOP, shows=[{**standard, "inheritedFrom": None}])
    talk.typed("signatures", "off", *SHOP, "--yes", code=WRONG_USAGE)
    talk.typed("signatures", "show", "--endpoint", "shop", code=WRONG_USAGE)
    gated(talk, SHOP)
    frame = ("frames", "set", "https://app.example.com", "http://localhost:8080")
    talk.typed(*frame, "--dry-run", shows=would("PUT"))
    talk.typed("frames", "show", shows=[])
    talk.typed(*frame)
    talk.typed("frames", "set", "https://acme.example", "--app", "acme")
    talk.typed("frames", "show", shows=[{"origin": each} for each in frame[2:]])
    talk.typed("frames", "show", "--app", "acme", shows=[{"origin": "https://acme.example"}])
    talk.typed("frames", "set", "https://acme.example/path", code=REFUSED)
    talk.typed("frames", "set", shows=[])
    code = "function handler(webhook) { return webhook }"
    change = ("transformations", "set", "-", *SHOP, "--enable", "--variable", "K=v")
    empty = {"enabled": False, "code": None}
    talk.typed(*change, "--dry-run", given=code, shows=would("PATCH"))
    talk.typed("transformations", "show", *SHOP, shows=[empty])
    talk.typed(*change, given=code)
    shows = {"enabled": True, "language": "javascript", "code": code, "variables": "K"}
    talk.typed("transformations", "show", *SHOP, shows=[shows])
    talk.typed("transformations", "set", *SHOP, "--disable")
    talk.typed("transformations", "show", *SHOP, shows=[{**shows, "enabled": False}])
    for bad in ((), ("--variable", "K")):
        talk.typed("transformations", "set", *SHOP, *bad, code=WRONG_USAGE)
    talk.ask("DELETE", "/app/acme", status=204)
    talk.typed("signatures", "remove", "github", "--yes", shows=[])


def _streams(talk: Talk) -> None:
    """Events in order, and who reads them."""
    talk.listen("typed-sink.example", lambda _: (200, b""))
    create = ("streams", "create", "Orders", "--uid", "orders")
    talk.typed(*create, "--dry-run", shows=would("POST", "/stream"))
    talk.typed("streams", "list", shows=[])
    [created] = talk.typed(*create, shows=[{"name": "Orders", "uid": "orders"}])
    talk.typed("streams", "list", shows=[created])
    talk.typed("streams", "show", "orders", shows=[{**created, "externalId": str}])
    sink = ("streams", "add-sink", "orders")
    bucket = {"accessKeyId": "a", "secretAccessKey": "s", "bucket": "b", "region": "eu-central-1", "prefix": "p/"}
    settings = (
        "--config-file",
        "-",
        "--uid",
        "archive",
        "--batch-size",
        "7",
        "--max-wait",
        "60",
        "--event-type",
        "a.b",
    )
    shown = {"uid": "archive", "type": "amazonS3", "status": "enabled", "batchSize": 7, "maxWaitSecs": 60}
    talk.typed(*sink, "poller", "--uid", "own", shows=[{"type": "poller", "uid": "own", "status": "enabled"}])
    talk.typed(*sink, "http", code=WRONG_USAGE, says="--config-file")
    talk.typed(*sink, "http", "--config-file", "-", given=json.dumps({"url": "https://typed-sink.example/in"}))
    talk.typed(*sink, "amazonS3", *settings, given=json.dumps(bucket), code=REFUSED)
    talk.typed("streams", "skip", "orders", "own", "--yes", code=REFUSED)
    talk.typed("streams", "post", "orders", "order.paid", '{"n": 1}', '{"n": 2}', "--dry-run", shows=would("POST"))
    talk.typed("streams", "events", "orders", shows=[])
    talk.typed("streams", "post", "orders", "order.paid", '{"n": 1}', '{"n": 2}')
    talk.sleep(5)
    events = [{"eventType": "order.paid", "payload": {"n": number}, "id": str} for number in (2, 1)]
    talk.typed("streams", "events", "orders", shows=events)
    talk.typed("streams", "events", "orders", "--limit", "1", shows=events[:1])
    before, *_ = [each for each in talk.typed("streams", "sinks", "orders") if each["uid"] == "own"]
    talk.typed("streams", "skip", "orders", "own", code=WRONG_USAGE)
    later = {"uid": "own", "currentIterator": lambda each: each > before["currentIterator"]}
    talk.typed("streams", "skip", "orders", "own", "--yes", shows=[later])
    talk.typed("streams", "retry", "orders", "own", shows=[{"uid": "own"}])
    talk.typed("streams", "remove-sink", "orders", "own", code=WRONG_USAGE)
    talk.typed("streams", "remove-sink", "orders", "own", "--yes")
    talk.is_so(
        "it is gone", shown["uid"] == "own", "own" in {each["uid"] for each in talk.typed("streams", "sinks", "orders")}
    )
    talk.typed("streams", "delete", "orders", "--dry-run", shows=would("DELETE"))
    talk.typed("streams", "delete", "orders", code=WRONG_USAGE)
    talk.typed("streams", "delete", "orders", "--yes")
    talk.typed("streams", "list", shows=[])
    talk.typed("streams", "show", "orders", code=REFUSED, says="the hub says 404")


def _sources(talk: Talk) -> None:
    """URLs for other senders."""
    create = ("sources", "create", "Repos", "github", "--uid", "repos", "--to", "https://typed-to.example/in")
    talk.typed(*create, "--secret-file", "-", "--dry-run", given="a-secret\n", shows=would("POST", "/source"))
    talk.typed("sources", "list", shows=[])
    shown = {"uid": "repos", "name": "Repos", "type": "github", "verified": True, "ingestUrl": str}
    [created] = talk.typed(*create, "--secret-file", "-", given="a-secret\n", shows=[shown])
    talk.typed("sources", "list", shows=[created])
    talk.typed("sources", "show", "repos", shows=[created])
    talk.typed("sources", "refused", "repos", shows=[])
    talk.typed("sources", "rotate", "repos", code=WRONG_USAGE)
    talk.typed("sources", "rotate", "repos", "--dry-run", shows=would("POST", "rotate"))
    talk.typed("sources", "show", "repos", shows=[created])
    other = {**created, "ingestUrl": lambda each: each != created["ingestUrl"]}
    talk.typed("sources", "rotate", "repos", "--yes", shows=[other])
    signature = json.dumps({"content": "{body}", "header": {"name": "X-Own"}, "secret": "12345678"})
    own = ("sources", "create", "Own", "generic-webhook", "--uid", "own", "--signature-file", "-")
    talk.typed(*own, given=signature, shows=[{"uid": "own", "verified": True}])
    talk.typed(*own, given="{", code=WRONG_USAGE)
    talk.typed("sources", "create", "Odd", "odd", code=WRONG_USAGE)
    for uid in ("repos", "own"):
        talk.typed("sources", "delete", uid, code=WRONG_USAGE)
        talk.typed("sources", "delete", uid, "--dry-run", shows=would("DELETE"))
        talk.typed("sources", "show", uid)
        talk.typed("sources", "delete", uid, "--yes")
        talk.typed("sources", "show", uid, code=REFUSED, says="the hub says 404")


def _resent(talk: Talk) -> None:
    """Webhooks that are sent again, replayed and removed."""
    if talk.gathered_s or talk.put_off_s:
        return
    says = {"status": 500}

    def say(_: Came) -> tuple[int, bytes]:
        return says["status"], b""

    came = talk.listen("typed-acme.example", say)
    _acme(talk)
    talk.ask("POST", "/event-type", {"name": "typed.made", "description": "d"}, status=201)
    body = {"eventType": "typed.made", "payload": {"n": 1}}
    one = talk.ask("POST", "/app/acme/msg", body, status=202)["id"]
    talk.sleep(20)
    talk.came("two tries", 2, len(came))
    says["status"] = 200
    talk.typed("retry", one, *SHOP, "--dry-run", shows=would("POST", "/resend"))
    talk.typed("retry", one, *SHOP, shows=[{"message": one, "endpoint": "shop", "state": "queued"}])
    talk.sleep(10)
    talk.came("a third", 3, len(came))
    talk.ask("PATCH", "/app/acme/endpoint/shop", {"disabled": True})
    talk.sleep(5)
    talk.typed("retry", one, *SHOP, code=REFUSED, shows=[{"state": lambda each: "disabled" in each}])
    talk.ask("PATCH", "/app/acme/endpoint/shop", {"disabled": False})
    talk.sleep(5)
    for words in ((one, "--app", "acme"), (), (one, "--waiting")):
        talk.typed("retry", *words, code=WRONG_USAGE)
    talk.typed("replay", *SHOP, code=WRONG_USAGE)
    for more, kind in (((), "recover"), (("--missing",), "replay-missing")):
        words = ("replay", *SHOP, "--since", "1h", *more)
        talk.typed(*words, "--dry-run", shows=would("POST", kind))
        talk.typed(*words, shows=[{"status": "running", "id": str}])
    talk.sleep(100)
    talk.typed("expunge", one, "--app", "acme", code=WRONG_USAGE)
    talk.typed("expunge", one, "--app", "acme", "--yes")
    talk.ask("GET", f"/app/acme/msg/{one}", shows={"payload": lambda each: each != {"n": 1}})
    talk.ask("DELETE", "/app/acme", status=204)


__all__ = ["webhooks"]
