"""Queues whose receivers stand behind gates: a token server that is down for spells and whose tokens are taken back now
and then, and a client certificate that ends before its owner has another one.

Everything else is well, so that what came, and what did not, is the gates' doing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from random import Random
from typing import Any
from urllib.parse import parse_qs, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from pushhub.base.ports import PushRequest
from pushhub.engine.model.message import Message
from simulation.account import START_MS, Account, HttpAnswer
from simulation.endpoints import Asked, Endpoint, Mood, Reply, life
from simulation.promises.judgement import Violation
from simulation.promises.talks import (
    certificate_warnings,
    certificates,
    coded,
    doors,
    endpoint_health,
    inherited,
    listings,
    redactions,
    signing,
    signing_meanwhile,
    token_outages,
    token_owners,
    token_subscribers,
    tokens,
    transformed,
)
from simulation.scheduler import SECOND
from simulation.weather import HOUR, MINUTE
from simulation.worlds.world import Owed, PushWorld, moment

QUEUE, SERVER = "gated", "login.example"
TOKEN_URL = f"https://{SERVER}/token"
CLIENTS = ("oauth-0", "oauth-1")
TENANTS = range(2)
"""Two projects have queues, subscribers and clients of the same names, at the same hosts."""
CERTIFIED, PLAIN = "certified", "plain"
LIFETIMES_S = (120, 900, 3_600)
DOWN = (Mood.DOWN, Mood.ERRORS, Mood.BUSY, Mood.HANGS, Mood.LIES, Mood.REDIRECTS)

REVOKED_AN_HOUR = 4.0
"""How often the receivers stop taking tokens that were given before: often enough that of two environments one still
has a token of the time before the last but one.
"""

HOST = "receivers.example"
"""Where all receivers are, each at a path of its own: neither a token nor a certificate goes by its host."""

REFUSES = 20_000
"""How long a receiver takes to refuse a token or a certificate, microseconds."""

SENT_MEANWHILE = 5 * REFUSES
"""Within this time of a refused request, requests arrive that had the same token before the answer came."""

LATE = 90 * SECOND
"""How long after a token's or certificate's end a request may come that began before it (microseconds)."""

UNAUTHORIZED = 401

FIRST_WAITS, LONGEST_WAIT = 8, 600 * SECOND
"""A token server that fails is asked so often at first, and then once in this time (microseconds), by each client."""


@dataclass
class Given:
    """A token.

    Attributes:
        client: Whom it was given to, by its secret.
        at: When, microseconds.
        ends: When it ends.
    """

    client: str
    at: int
    ends: int


class TokenServer(Endpoint):
    """Gives tokens when it is well.

    Attributes:
        given: The tokens, by their text.
        asked_by: Of each token, the client that was named, and the secret that was shown, which tells whose it is.
    """

    def __init__(self, account: Account, moods: list[tuple[int, Mood]]) -> None:
        super().__init__(account, SERVER, moods)
        self.given: dict[str, Given] = {}
        self.asked_by: list[tuple[str, str]] = []
        self.about = lambda _, body: parse_qs(body.decode())["client_secret"][0]
        self.answers = self._give

    def _give(self, seen: Asked, random: Random) -> Reply:
        lasts_s, token = random.choice(LIFETIMES_S), f"token-{len(self.given)}"
        self.asked_by.append((parse_qs(seen.body.decode())["client_id"][0], seen.message_id))
        self.given[token] = Given(seen.message_id, seen.at, seen.at + lasts_s * SECOND)
        body = {"access_token": token, "token_type": "Bearer", "expires_in": lasts_s}
        return Reply(body=json.dumps(body).encode())


class Host(Endpoint):
    """A host with several receivers.

    Args:
        account: Where it lives.
        receivers: By the name of their path.
    """

    def __init__(self, account: Account, receivers: Mapping[str, Receiver]) -> None:
        super().__init__(account, HOST, [(0, Mood.WELL)])
        self._receivers = receivers

    def asked(self, request: PushRequest, environment: str) -> tuple[Asked, Reply]:
        """Handle a request: the receiver at its path does."""
        return self._receivers[urlsplit(request.url).path.strip("/")].asked(request, environment)


class Receiver(Endpoint):
    """Lets in only what shows what it wants.

    Attributes:
        let_in: The messages that it took.
        shown: Of each request in its log: the token and the certificate's file.
    """

    def __init__(self, account: Account, name: str, opens: Callable[[str, str, int], Reply | None]) -> None:
        super().__init__(account, name, [(0, Mood.WELL)])
        self._opens = opens
        self.let_in: set[str] = set()
        self.shown: list[tuple[str, str]] = []

    def asked(self, request: PushRequest, environment: str) -> tuple[Asked, Reply]:
        """Handle a request."""
        seen, reply = super().asked(request, environment)
        token = seen.headers.get("authorization", "").removeprefix("Bearer ")
        pem = request.identity.pem if request.identity is not None else ""
        self.shown.append((token, pem))
        refused = self._opens(token, pem, seen.at)
        if refused is None:
            self.let_in.add(seen.message_id)
            return seen, reply
        seen.status = refused.status
        return seen, refused


def certificate(ends_s: int, number: int) -> str:
    """A certificate and its key, the same in each run."""
    key = Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"certificate {number}")])
    certificate_of = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(number)
        .not_valid_before(datetime(2026, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime.fromtimestamp(ends_s, UTC))
        .sign(key, None)
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return (private + certificate_of.public_bytes(Encoding.PEM)).decode()


def secret_of(client: str, tenant: int) -> str:
    """The secret of a project's client, whose name is that of another project's, too."""
    return f"secret of {client} at {tenant}"


class GatesWorld(PushWorld):
    """Two projects, each with a queue whose subscribers are behind gates, and one that is not."""

    name = "gates"

    def set_up(self) -> None:
        """Make the projects and their queues, before any weather."""
        self._projects: list[tuple[str, str]] = []
        for _ in TENANTS:
            self._make_project()
            self._projects.append((self._project, self._token))
        known, account = self._account.endpoints.known, self._account
        self._server = TokenServer(account, self._spells())
        self._revoked_at = 0
        # Half way through the traffic, in whole seconds, as certificates end.
        self._ends = round((0.02 + self._hours / 2) * 3_600) * SECOND
        ends_s = (START_MS * 1000 + self._ends) // SECOND
        self._first = [certificate(ends_s, 1 + 2 * tenant) for tenant in TENANTS]
        self._second = [certificate(2_400_000_000, 2 + 2 * tenant) for tenant in TENANTS]
        known[SERVER] = self._server
        self._receivers: dict[tuple[str, int], Receiver] = {}
        for tenant in TENANTS:
            opens: dict[str, Callable[[str, str, int], Reply | None]] = {
                **{client: partial(self._takes_tokens, secret_of(client, tenant)) for client in CLIENTS},
                CERTIFIED: partial(self._takes_certificates, tenant),
                PLAIN: lambda *_: None,
            }
            for name, lets_in in opens.items():
                self._receivers[name, tenant] = Receiver(account, f"{name}-{tenant}.example", lets_in)
        known[HOST] = Host(account, {f"{name}/{tenant}": each for (name, tenant), each in self._receivers.items()})
        self._in_good_weather(*(partial(self._make, tenant) for tenant in TENANTS))

    def _spells(self) -> list[tuple[int, Mood]]:
        """How the token server fares: as others do, but down at least once."""
        random = self._chance("token server")
        moods = life(random, self._hours, DOWN)
        if len(moods) == 1:
            begins = round(self._hours * HOUR * random.uniform(0.1, 0.6))
            moods += [(begins, random.choice(DOWN)), (begins + round(self._hours * HOUR / 5), Mood.WELL)]
        return moods

    def _takes_tokens(self, client: str, token: str, _: str, at: int) -> Reply | None:
        given = self._server.given.get(token)
        valid = given is not None and given.client == client and given.at >= self._revoked_at and at < given.ends
        return None if valid else Reply(status=UNAUTHORIZED, takes=REFUSES)

    def _takes_certificates(self, tenant: int, _: str, pem: str, at: int) -> Reply | None:
        valid = self._certifies(tenant, pem, at)
        return None if valid else Reply(error_class="tls", takes=REFUSES)

    def _certifies(self, tenant: int, pem: str, before: int) -> bool:
        return pem == self._second[tenant] or (pem == self._first[tenant] and before < self._ends)

    def _subscriber(self, name: str, tenant: int, **gates: Any) -> dict[str, Any]:
        return {"name": name, "url": f"https://{HOST}/{name}/{tenant}", **gates}

    def _make(self, tenant: int) -> None:
        common = {"token_url": TOKEN_URL, "auth_method": "client_secret_post"}
        grants = [{**common, "client_id": each, "client_secret": secret_of(each, tenant)} for each in CLIENTS]
        subscribers = [
            *(self._subscriber(each, tenant, oauth=grant) for each, grant in zip(CLIENTS, grants, strict=True)),
            self._subscriber(CERTIFIED, tenant, mtls={"identity": self._first[tenant]}),
            self._subscriber(PLAIN, tenant),
        ]
        # More retries than any spell lasts, so that nothing is given up.
        push = {"subscribers": subscribers, "retries": 100, "retries_delay": 300}
        settings = {"type": "multicast", "message_expiration": 604_800, "push": push}
        answer = self._ask(tenant, "PUT", "", {"queue": settings})
        assert answer.status == 200, answer

    def _ask(self, tenant: int, method: str, path: str, body: object) -> HttpAnswer:
        project, token = self._projects[tenant]
        return self._account.http(method, f"/3/projects/{project}/queues/{QUEUE}{path}", body, token=token)

    def actors(self) -> Mapping[str, Callable[[], object]]:
        """Producers, the receivers who take tokens back, and the owners of the certificates."""
        revoke = self._chance("receivers")
        found: dict[str, Callable[[], object]] = {
            "receivers": partial(self._each_while_traffic, revoke, self._revoke, an_hour=REVOKED_AN_HOUR)
        }
        for tenant in TENANTS:
            post, chance = partial(self._post, tenant), self._chance(f"producer {tenant}")
            found[f"producer-{tenant}"] = partial(self._each_while_traffic, chance, post, an_hour=self._rate)
            found[f"owner-{tenant}"] = partial(self._renew, tenant, self._chance(f"owner {tenant}"))
        return found

    def _post(self, tenant: int) -> None:
        self._until(201, lambda: self._ask(tenant, "POST", "/messages", {"messages": [{"body": "x"}]}))

    def _revoke(self) -> None:
        self._revoked_at = self._account.scheduler.now

    def _renew(self, tenant: int, random: Random) -> None:
        """The owner notices some time after its end that the certificate has ended."""
        scheduler = self._account.scheduler
        scheduler.sleep(max(0, self._ends - scheduler.now) + random.randrange(1, 45) * MINUTE)
        subscribers = [self._subscriber(CERTIFIED, tenant, mtls={"identity": self._second[tenant]})]
        renewed = partial(self._ask, tenant, "POST", "/subscribers", {"subscribers": subscribers})
        assert self._until(200, renewed, tries=40), "the certificate could not be renewed"

    def _is_own(self, message: Message) -> bool:
        return message.queue == QUEUE and message.project in {project for project, _ in self._projects}

    def talk(self) -> None:
        """Lists, signatures, gates, code of endpoints, and what all routes have in common, talked through."""
        talk = self._talking_webhooks()
        listings.webhooks(talk)
        signing.webhooks(talk)
        signing_meanwhile.webhooks(talk)
        transformed.webhooks(talk)
        coded.webhooks(talk)
        doors.webhooks(talk)
        tokens.webhooks(talk)
        certificates.webhooks(talk)
        token_subscribers.webhooks(talk)
        token_owners.webhooks(talk)
        inherited.webhooks(talk)
        certificate_warnings.webhooks(talk)
        token_outages.webhooks(talk)
        endpoint_health.webhooks(talk)
        redactions.webhooks(talk)

    def check(self) -> Iterator[Violation]:
        """Every promise that was not kept."""
        late = LATE + round(self._clocks_off_s * SECOND)
        for tenant in TENANTS:
            for client in CLIENTS:
                self._judge_tokens(client, tenant, late)
            certified, plain = self._receivers[CERTIFIED, tenant], self._receivers[PLAIN, tenant]
            for seen, (_, pem) in zip(certified.log, certified.shown, strict=True):
                valid = self._certifies(tenant, pem, seen.at - late)
                self.judgement.fact(valid, "sent without a valid certificate", seen.message_id, moment(seen.at))
            for seen, shown in zip(plain.log, plain.shown, strict=True):
                self.judgement.fact(shown == ("", ""), "shown to somebody else", seen.message_id, moment(seen.at))
        for client, secret in self._server.asked_by:
            own = secret in {secret_of(client, tenant) for tenant in TENANTS}
            self.judgement.fact(own, "a token asked for by another", client, secret)
        self._judge_waits()
        yield from self._deliveries()
        yield from self.judgement.violations

    def _judge_tokens(self, name: str, tenant: int, late: int) -> None:
        receiver, client = self._receivers[name, tenant], secret_of(name, tenant)
        for seen, (token, pem) in zip(receiver.log, receiver.shown, strict=True):
            given = self._server.given.get(token)
            fits = given is not None and given.client == client and seen.at < given.ends + late and not pem
            self.judgement.fact(fits, "sent without a token of its server", seen.message_id, moment(seen.at))
        refused: dict[tuple[str, str], int] = {}
        for seen, (token, _) in zip(receiver.log, receiver.shown, strict=True):
            before = refused.get((seen.environment, token))
            # Others may not know yet that it was refused, and while the server fails there is no other.
            was_refused = before is not None and seen.at > before + SENT_MEANWHILE
            again = before is not None and was_refused and self._server.well_between(before - LATE, seen.at)
            self.judgement.fact(not again, "a refused token was sent again", seen.message_id, moment(seen.at))
            if seen.status == UNAUTHORIZED:
                refused.setdefault((seen.environment, token), seen.at)

    def _judge_waits(self) -> None:
        """While the token server fails it is spared."""
        applied = [each.at for each in self._account.weather.applied if each.who[1].startswith("push")]
        spells = zip(self._server.moods, [*self._server.moods[1:], (10**18, Mood.WELL)], strict=True)
        for (begins, mood), (ends, _) in spells:
            if mood is Mood.WELL:
                continue
            struck = sum(begins - MINUTE <= at <= ends + MINUTE for at in applied)
            most = FIRST_WAITS + (ends - begins) // LONGEST_WAIT + struck
            for client in (secret_of(name, tenant) for name in CLIENTS for tenant in TENANTS):
                asked = sum(begins <= each.at < ends and each.message_id == client for each in self._server.log)
                self.judgement.fact(asked <= most, "a failing token server is not spared", client, f"{asked} of {most}")

    def _deliveries(self) -> Iterator[Violation]:
        """All that was owed came, and what is called delivered was let in."""
        receivers = {
            (queue.project, each.subscriber_id): (each.name, int(each.url.rpartition("/")[2]))
            for _, queue in self._truth.queues[QUEUE]
            if queue is not None and queue.push is not None
            for each in queue.push.subscribers
        }
        for accepted, owed in self._owed():
            name, tenant = receivers[accepted.message.project, owed[1]]
            history = self._truth.deliveries.get(owed)
            if not self._has_ended(owed) or not history:
                yield self._never_ended(owed, name)
                continue
            receiver = self._receivers[name, tenant]
            self.judgement.fact(history[-1].state == "delivered", "given up at a gate", owed[0], history[-1].state)
            self.judgement.fact(owed[0] in receiver.let_in, "delivered, and not let in", owed[0], name)
            self._count(owed, name, history[-1].attempts - len(receiver.about_message[owed[0]]))

    def _count(self, owed: Owed, name: str, unsent: int) -> None:
        """How often something was kept from being sent."""
        del owed
        if unsent > 0 and name != PLAIN:
            self.happened["certificate ended" if name == CERTIFIED else "token server down"] += unsent


__all__ = ["GatesWorld"]
