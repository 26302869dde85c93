"""What a delivery is pushed to: one strategy per kind of subscriber, chosen by its dialect and URL scheme."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote, urlsplit

from pushhub.base.errors import RequestRefused
from pushhub.base.ports import Clock, PushRequest, Sender
from pushhub.base.verdict import Answer, Verdict, iron_verdict
from pushhub.engine.model.backoff import RetryPolicy
from pushhub.engine.model.delivery import Delivery
from pushhub.engine.model.message import Message, NewMessage
from pushhub.engine.model.queue import Dialect, Project, PushSettings, Queue, Subscriber
from pushhub.engine.ports import ConfigStore
from pushhub.engine.tokens import token_hash
from pushhub.ironmq.post import Ingest
from pushhub.ironmq.wire.headers import HOPS_HEADER, WEBHOOK_PREFIX
from pushhub.ironmq.wire.push import IronMqTarget, parse_ironmq_url, parse_ironworker_url, push_headers

__all__ = [
    "MAX_HOPS",
    "HttpTarget",
    "IronMqQueueTarget",
    "IronWorkerQueueTarget",
    "Outcome",
    "PushOrder",
    "Target",
    "Targets",
]

MAX_HOPS = 10
"""How many queues a message may pass through ``ironmq://`` and error queues before it is taken for a loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PushOrder:
    """Everything one attempt needs.

    Attributes:
        queue: The queue pushed from.
        push: Its push settings.
        subscriber: Who is asked.
        message: The message, its body loaded.
        body: The exact bytes.
        delivery: As it stands before the attempt.
    """

    queue: Queue
    push: PushSettings
    subscriber: Subscriber
    message: Message
    body: bytes
    delivery: Delivery

    @property
    def attempt(self) -> int:
        """Number of this attempt, from 1."""
        return self.delivery.attempts + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What an attempt came to.

    Attributes:
        answer: What came back.
        verdict: What it means.
        reserve_ms: How long a 202 reserves, or an answer that polls or postpones asks to wait; milliseconds.
        update_url: With ``Verdict.POLL``: where to ask what became of the delivery.
    """

    answer: Answer
    verdict: Verdict
    reserve_ms: int = 0
    update_url: str | None = None


class Target(Protocol):
    """One way to push."""

    def policy(self, push: PushSettings, subscriber_id: str) -> RetryPolicy:
        """The retry policy of deliveries to this kind of target."""
        ...

    def deliver(self, order: PushOrder) -> Outcome:
        """Make one attempt. Raises ``Unavailable`` only when nothing was sent and it is the hub's own fault."""
        ...


class _IronRetries:
    """IronMQ's fixed delay, shared by the targets of that dialect."""

    def policy(self, push: PushSettings, subscriber_id: str) -> RetryPolicy:  # noqa: ARG002 (the same for all)
        """The queue's ``retries`` and ``retries_delay``."""
        return push.policy

    @staticmethod
    def _outcome(order: PushOrder, answer: Answer) -> Outcome:
        return Outcome(answer=answer, verdict=iron_verdict(answer), reserve_ms=order.push.retries_delay * 1000)


class HttpTarget(_IronRetries):
    """Pushes to ``http`` and ``https`` URLs as IronMQ v3 does.

    Args:
        sender: Makes the request.
        config: For the project's allowed targets.
        base_url: Public base URL of this hub, for ``Iron-Subscriber-Message-Url``.
    """

    def __init__(self, *, sender: Sender, config: ConfigStore, base_url: str) -> None:
        self._sender = sender
        self._config = config
        self._base_url = base_url

    def deliver(self, order: PushOrder) -> Outcome:
        """POST the body as it is and read the status."""
        headers = push_headers(
            base_url=self._base_url,
            queue=order.queue,
            message=order.message,
            subscriber=order.subscriber,
            attempt=order.attempt,
        )
        request = PushRequest(
            url=order.subscriber.url,
            body=order.body,
            headers=headers,
            timeout_s=order.subscriber.timeout_s,
            answer_limit=4096,
            allowed_targets=_allowed(self._config.project(order.queue.project)),
        )
        return self._outcome(order, self._sender.send(request))


def _allowed(project: Project | None) -> tuple[str, ...]:
    return project.allowed_targets if project else ()


class IronMqQueueTarget(_IronRetries):
    """Pushes to a queue: of this project, of another one here, or of another hub (through its webhook).

    Args:
        ingest: Posts to queues of this hub.
        config: Checks other projects' tokens.
        sender: Reaches other hubs.
        base_url: Public base URL of this hub; a URL that names it is served without HTTP.
        clock: Times of attempts that need no HTTP.
    """

    def __init__(self, *, ingest: Ingest, config: ConfigStore, sender: Sender, base_url: str, clock: Clock) -> None:
        self._ingest = ingest
        self._config = config
        self._sender = sender
        self._own_host = urlsplit(base_url).netloc
        self._clock = clock

    def deliver(self, order: PushOrder) -> Outcome:
        """Post the body to the target queue."""
        target = parse_ironmq_url(order.subscriber.url)
        started = self._clock.now()
        refusal: tuple[int, str] | None
        if order.message.hops >= MAX_HOPS:
            refusal = 508, f"Message has passed {MAX_HOPS} queues; taken for a loop"
        elif target.host is not None and target.host != self._own_host:
            return self._outcome(order, self._sender.send(self._webhook(order, target, target.host)))
        else:
            refusal = self._post_here(order, target.project, target.token, target.queue)
        answer = Answer(
            status_code=200 if refusal is None else refusal[0],
            message="OK" if refusal is None else refusal[1],
            started_at=started,
            finished_at=self._clock.now(),
            bytes_out=len(order.body),
        )
        return self._outcome(order, answer)

    def _webhook(self, order: PushOrder, target: IronMqTarget, host: str) -> PushRequest:
        """The request to another hub, which may be this one under another name: so it tells how far the message has come."""
        headers = {f"{WEBHOOK_PREFIX}{name}": value for name, value in order.message.headers.items()}
        return PushRequest(
            url=f"{_scheme(host)}://{host}/3/projects/{quote(target.project or '', safe='')}"
            f"/queues/{quote(target.queue, safe='')}/webhook",
            body=order.body,
            headers={
                **headers,
                "Authorization": f"OAuth {target.token}",
                "Content-Type": "application/octet-stream",
                HOPS_HEADER: str(order.message.hops + 1),
            },
            timeout_s=order.subscriber.timeout_s,
            answer_limit=4096,
            allowed_targets=_allowed(self._config.project(order.queue.project)),
        )

    def _post_here(
        self, order: PushOrder, project: str | None, token: str | None, queue: str
    ) -> tuple[int, str] | None:
        """Post to a queue of this hub; (status code, reason) when that is refused."""
        if project is not None and not self._config.has_token(project, token_hash(token or "")):
            return 401, "Invalid project/token combination"
        try:
            self._ingest.post_caused(
                project or order.queue.project,
                queue,
                NewMessage(body=order.body, headers=order.message.headers, hops=order.message.hops + 1),
                cause=f"push/{order.queue.project}/{order.queue.uid}/{order.delivery.delivery_id}/{order.subscriber.subscriber_id}",
                at=order.message.accepted_at,
            )
        except RequestRefused as error:
            return 400, error.message
        return None


class IronWorkerQueueTarget(_IronRetries):
    """Queues a task on a worker API: the webhook of IronWorker v2.

    Args:
        sender: Makes the request.
        config: For the project's allowed targets.
    """

    def __init__(self, *, sender: Sender, config: ConfigStore) -> None:
        self._sender = sender
        self._config = config

    def deliver(self, order: PushOrder) -> Outcome:
        """POST the body as the task's payload."""
        target = parse_ironworker_url(order.subscriber.url)
        query = f"code_name={quote(target.code_name, safe='')}&oauth={quote(target.token, safe='')}"
        request = PushRequest(
            url=f"{_scheme(target.host)}://{target.host}/2/projects/{quote(target.project, safe='')}/tasks/webhook?{query}",
            body=order.body,
            headers={"Content-Type": "text/plain; charset=utf-8", "User-Agent": "IronMQ Pusherd"},
            timeout_s=order.subscriber.timeout_s,
            answer_limit=4096,
            allowed_targets=_allowed(self._config.project(order.queue.project)),
        )
        return self._outcome(order, self._sender.send(request))


def _scheme(host: str) -> str:
    """``https`` always, as the URL carries a token; ``http`` for loopback, where hubs under development listen."""
    name = host.rpartition("@")[2].partition(":")[0]
    return "http" if name == "localhost" or name.startswith("127.") else "https"


class Targets:
    """Picks the target of a subscriber.

    Args:
        raw: By URL scheme, for subscribers of the raw dialect.
        by_dialect: For every other dialect.
    """

    def __init__(self, *, raw: Mapping[str, Target], by_dialect: Mapping[Dialect, Target] | None = None) -> None:
        self._raw = raw
        self._by_dialect = by_dialect or {}

    def of(self, subscriber: Subscriber) -> Target:
        """The target for a subscriber; its URL was checked when it was registered."""
        if subscriber.dialect in self._by_dialect:
            return self._by_dialect[subscriber.dialect]
        return self._raw[subscriber.url.partition(":")[0].lower()]
