"""What operators type when the key changes that seals: everything works with both keys, then with the new one alone.

Source: docs/deploy.md ("Keys, and how to change them"). What settings hold: docs/ironmq.md, docs/hub-protocol.md,
docs/webhooks.md, docs/sources.md, docs/gates.md, docs/traces.md.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from typing import Any

from simulation.promises.talks.certificates import identity
from simulation.promises.talks.customers import Customer
from simulation.promises.talks.senders import Event, comes, new_source, removed, standard_webhooks
from simulation.promises.talks.services import done
from simulation.promises.talks.talk import Came, Talk
from simulation.promises.talks.webhooks import OTHER_SECRET, is_signed

MINUTE = 60
TOKENS_END_S = 65 * MINUTE
"""After an hour each token is asked for anew (docs/gates.md); what expires is not sealed anew."""

OWN_KEY, NEW_KEY = "WebhooksKey", "arn:aws:kms:eu-central-1:123456789012:key/of-your-own"
"""The stack's own key, as its template calls it, and the one that is deployed."""

FROM_S3 = "AES256"
"""What is shown for keys of S3's own."""

SENDERS_KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
SLACK_KEY = "slack's secret"
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
PARTS = ("headers", "token", "certificate", "signed", "first", "second")
SEALED = 15
"""So many values are sealed at least of what is set here."""


def keys_changed(talk: Talk) -> None:
    """The key that seals."""
    talk.through(_resealed)


class _Everything:
    """Something that is kept sealed in each place, and what receivers see of it."""

    def __init__(self, queues: Talk) -> None:
        self._queues = queues
        shown = {"authorization": f"Bearer {queues.token}"}
        self._store = queues.at(f"/api/stores/{queues.project}").with_headers(
            authorization="", x_augury_token=queues.token
        )
        self._hooks = queues.at("/api/v1").with_headers(**shown)
        self._notified = queues.at("/notification2").with_headers(**shown)
        self._certificate = identity(7)
        login = {"access_token": "of-the-client", "token_type": "Bearer", "expires_in": 36_000}
        queues.listen("sealed-login.example", lambda _: (200, json.dumps(login).encode()))
        self._of_queue = self._subscribed()
        self._service = queues.listen("sealed-service.example", done)
        self._served()
        self._one = Customer(self._hooks, "sealed")
        self._own()
        self._source = new_source(self._hooks, "sealed-source", "clerk", {"secret": SENDERS_KEY})
        slack = {"type": "slack", "secret": SLACK_KEY}
        queues.ask("PUT", "/queues/sealed-from", {"queue": {"type": "pull", "webhook": slack}})
        collector = {"url": "https://sealed-collector.example/v1/traces", "headers": {"X-Key": "hush collector"}}
        self._spans = queues.listen("sealed-collector.example", lambda _: (200, b"{}"))
        queues.ask("PUT", "/traces", {"traces": {**collector, "on": True}})
        wanted = {"subscription": "sealedTopic", "subscriber": "s", "expiresInMinutes": 600}
        self._token = self._notified.ask("POST", "/token", wanted)["token"]

    def _grant(self) -> dict[str, str]:
        return {"token_url": "https://sealed-login.example/", "client_id": "c", "client_secret": "hush client"}

    def _subscribed(self) -> Mapping[str, Sequence[Came]]:
        several: dict[str, dict[str, Any]] = {
            "headers": {"headers": {"X-Key": "hush header"}},
            "token": {"oauth": self._grant()},
            "certificate": {"mtls": {"identity": self._certificate}},
            "signed": {"signing": {"secret": OTHER_SECRET}},
        }
        subscribers = [
            {"name": name, "url": f"https://sealed-{name}.example/", **more} for name, more in several.items()
        ]
        self._queues.ask(
            "PUT", "/queues/sealed", {"queue": {"type": "multicast", "push": {"subscribers": subscribers}}}
        )
        # What is kept sealed of a queue may be the second subscriber's alone
        several |= {"first": {}, "second": {"mtls": {"identity": self._certificate}}}
        pair = [
            {"name": name, "url": f"https://sealed-{name}.example/", **several[name]} for name in ("first", "second")
        ]
        self._queues.ask("PUT", "/queues/sealed-pair", {"queue": {"type": "multicast", "push": {"subscribers": pair}}})
        return {name: self._queues.listen(f"sealed-{name}.example", lambda _: (200, b"")) for name in several}

    def _served(self) -> None:
        """A service, of an integration that has a token of its own, with parameters and whatever gates there are."""
        services = [{"name": "one", "path": "/one", "recommends": {"messages": ["sealed:one"]}}]
        described = json.dumps({"name": "sealed", "services": services}).encode()
        self._described = self._queues.listen("sealed-described.example", lambda _: (200, described))
        fields = {
            "name": "sealed",
            "url": "https://sealed-described.example",
            "token": "hush own",
            "category": "custom",
        }
        answer = self._store.ask("POST", "/integrations", {"integration": fields}, status=201)
        self._integration = f"/integrations/{answer['id']}"
        self._store.ask("GET", f"{self._integration}/disable_mappings")
        given = {"name": "sealed.api_key", "value": "hush value", "data_type": "string"}
        parameter = self._store.ask("POST", "/parameters", {"parameter": given}, status=201)["id"]
        mapping = {
            "name": "sealed-service",
            "url": "https://sealed-service.example/in",
            "token": "hush token",
            "messages": ["sealed:made"],
            "parameters": [parameter],
            "signing": {"secret": OTHER_SECRET},
            "oauth": self._grant(),
            "mtls": {"identity": self._certificate},
        }
        self._store.ask("POST", "/mappings", {"mapping": mapping}, status=201)

    def _own(self) -> None:
        """An application's endpoint with its secret, a scheme of its own, headers, a token and a certificate."""
        self._one.endpoint("all", secret=OTHER_SECRET, headers={"X-Key": "hush endpoint"})
        path = f"{self._one.path}/endpoint/all"
        stripe = {"preset": "stripe", "secret": "hush scheme"}
        self._hooks.ask("PUT", f"{path}/signatures", {"signatures": [stripe, {"preset": "standard-webhooks"}]})
        grant = {"grantType": "clientCredentials", "authMethod": "clientSecretPost", "clientId": "c"}
        login = {"clientSecret": "hush client", "tokenUrl": "https://sealed-login.example/"}
        self._hooks.ask("PUT", f"{path}/oauth", {**grant, **login}, status=204)
        self.changed()

    def changed(self) -> None:
        """One of the secrets of an endpoint is set again, as it was: it is sealed anew, and no other is."""
        self._hooks.ask("PUT", f"{self._one.path}/endpoint/all/mtls", {"identity": self._certificate}, status=204)

    def seen(self, number: int) -> None:
        """All that receivers and senders do with it, as it was set."""
        talk = self._queues
        before = {name: len(came) for name, came in self._heard().items()}
        traced = talk.with_headers(traceparent=TRACEPARENT)
        for queue in ("sealed", "sealed-pair"):
            traced.ask("POST", f"/queues/{queue}/messages", {"messages": [{"body": f"{number}"}]}, status=201)
        text = hashlib.shake_256(f"{number}".encode()).hexdigest(20_000)
        message = {"message": "sealed:made", "payload": {"n": number, "text": text}}
        posted = self._store.ask("POST", "/messages", message, status=201)["message_id"]
        self._one.post(number)
        talk.sleep(5 * MINUTE + 2 * talk.put_off_s + 2 * talk.gathered_s)
        came = {name: [*heard[before[name] :]] for name, heard in self._heard().items()}
        talk.came(f"{number}: one each", dict.fromkeys((*PARTS, "service", "all"), 1), _counts(came))
        self._look(number, {name: heard[0] for name, heard in came.items() if heard})
        self._store.ask("GET", f"/messages/{posted}", shows={"payload": {"n": number, "text": text}})
        self._store.ask("PUT", self._integration, {"integration": {"category": f"{number}"}})
        talk.came("its own token", "hush own", self._described[-1].headers["x-augury-token"])
        body, now = json.dumps({"type": "made", "n": number}).encode(), talk.epoch_s()
        event = Event(body, number, now, self._source["ingestUrl"], SENDERS_KEY)
        comes(self._hooks, self._source["ingestUrl"], body, standard_webhooks("svix")(event))
        mac = hmac.digest(SLACK_KEY.encode(), f"v0:{now}:".encode() + body, hashlib.sha256).hex()
        slack = talk.at("").with_headers(
            authorization="", x_slack_signature=f"v0={mac}", x_slack_request_timestamp=f"{now}"
        )
        webhook = f"/3/projects/{talk.project}/queues/sealed-from/webhook?oauth={talk.token}"
        talk.is_so("a sender's webhook", 201, slack.status("POST", webhook, body))
        self._notified.ask("GET", f"/token?token={self._token}")
        secret = self._hooks.ask("GET", f"{self._one.path}/endpoint/all/secret")["key"]
        talk.is_so("its secret", OTHER_SECRET, secret)

    def _heard(self) -> dict[str, Sequence[Came]]:
        return {**self._of_queue, "service": self._service, **self._one.came, "spans": self._spans}

    def _look(self, number: int, came: Mapping[str, Came]) -> None:
        talk, bearer, pem = self._queues, "Bearer of-the-client", self._certificate.strip()
        service, endpoint = came["service"], came["all"]
        parameters = json.loads(service.body)["payload"]["parameters"]
        found = {
            "headers": [came["headers"].headers["x-key"], endpoint.headers["x-key"], came["spans"].headers["x-key"]],
            "tokens": [each.headers["authorization"] for each in (came["token"], service, endpoint)],
            "certificates": [
                each.identity.strip() == pem for each in (came["certificate"], came["second"], service, endpoint)
            ],
            "signed": [is_signed(each, OTHER_SECRET) for each in (came["signed"], service, endpoint)],
            "scheme": _is_stripes(endpoint, "hush scheme"),
            "service": [service.headers["x-augury-token"], parameters],
        }
        expected = {
            "headers": ["hush header", "hush endpoint", "hush collector"],
            "tokens": [bearer] * 3,
            "certificates": [True] * 4,
            "signed": [True] * 3,
            "scheme": True,
            "service": ["hush token", [{"name": "sealed.api_key", "value": "hush value"}]],
        }
        talk.came(f"{number}: as it was set", expected, found)

    def removed(self) -> None:
        """All of it."""
        removed(self._hooks, "sealed-source")
        self._hooks.ask("DELETE", self._one.path, status=204)
        self._queues.ask("DELETE", "/traces")
        for each in ("/queues/sealed", "/queues/sealed-pair", "/queues/sealed-from"):
            self._queues.ask("DELETE", each)
        self._store.ask("DELETE", self._integration)
        for kind in ("mappings", "parameters"):
            for each in self._store.ask("GET", f"/{kind}.json"):
                self._store.ask("DELETE", f"/{kind}/{each['id']}")


def _counts(came: Mapping[str, Sequence[Came]]) -> dict[str, int]:
    return {name: len(heard) for name, heard in came.items() if name != "spans"}


def _is_stripes(came: Came, key: str) -> bool:
    stated = dict(part.partition("=")[::2] for part in came.headers["stripe-signature"].split(","))
    signed = f"{stated['t']}.".encode() + came.body
    return hmac.digest(key.encode(), signed, hashlib.sha256).hex() == stated["v1"]


def _resealed(talk: Talk) -> None:
    """A new key is deployed, and what the former one sealed still opens. ``reseal`` says what is sealed with which,
    seals it with the new one, and nothing is left to do; then the former one may be disabled.
    """
    everything = _Everything(talk)
    talk.sleep(MINUTE + 1)
    everything.seen(1)
    talk.seals_with(NEW_KEY)
    everything.changed()
    everything.seen(2)

    def by_key(rows: Sequence[Mapping[str, Any]]) -> dict[str, tuple[int, int]]:
        return {each["sealed with"]: (each["values"], each["objects"]) for each in rows}

    would = by_key(talk.typed("reseal", "--dry-run", code=1, says="to be sealed anew"))
    talk.is_so("sealed with the former one", True, would[OWN_KEY][0] >= SEALED)
    talk.is_so("nothing was done", would, by_key(talk.typed("reseal", "--dry-run", code=1)))
    done_now = by_key(talk.typed("reseal", says=f"Nothing stored here needs another key than {NEW_KEY}."))
    talk.is_so("what it found", would, done_now)
    values, objects = (sum(each[place] for each in would.values()) for place in range(2))
    talk.is_so("objects of stores", True, would[FROM_S3][1] >= 1)
    left = by_key(talk.typed("reseal", "--dry-run", says="to be sealed anew: 0"))
    talk.is_so("all with the new one", {NEW_KEY: (values, objects)}, left)
    talk.sleep(TOKENS_END_S)
    talk.disables(OWN_KEY, True)
    everything.seen(3)
    talk.disables(OWN_KEY, False)
    everything.removed()


__all__ = ["keys_changed"]
