"""IronMQ v3's kinds of subscribers: HTTP endpoints, queues, and tasks of a worker API."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from pushhub.base.credentials import without_credentials
from pushhub.base.errors import Invalid, ProjectSuspended, RequestRefused
from pushhub.base.ports import Clock, PushRequest, Sender
from pushhub.base.verdict import Answer, iron_verdict
from pushhub.engine.attempts.traces import passed_on, trace_headers
from pushhub.engine.component import Component
from pushhub.engine.model.message import MAX_HOPS, NewMessage
from pushhub.engine.model.reach import Reach
from pushhub.engine.projects.projects import allowed_targets
from pushhub.engine.projects.suspension import is_suspended
from pushhub.engine.projects.tokens import token_hash
from pushhub.engine.target import Outcome, PushOrder
from pushhub.ironmq.wire.headers import WEBHOOK_PREFIX, check_header_value, trail_headers
from pushhub.ironmq.wire.names import check_queue_name
from pushhub.ironmq.wire.push import IronMqTarget, layered, parse_ironmq_url, parse_ironworker_url, push_headers
from pushhub.ironmq.wire.urls import check_callable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pushhub.engine.ports import ProjectStore, TokenStore
    from pushhub.engine.security.gate_sending import GateSending
    from pushhub.engine.security.signing import Signature, Signing
    from pushhub.ironmq.posting.intake import QueueIntake

DIALECT = "raw"
"""The body is sent unchanged; of the answer, only the status matters."""

_URL = "Subscriber url"


def check_queue_url(url: str) -> None:
    """Refuse, as ``Invalid``, a queue's URL without a valid name, at a hub that the sender could never call, or with
    a token that no header can hold.
    """
    target = parse_ironmq_url(url)
    check_queue_name(target.queue, "Queue name in a subscriber url")
    if target.host is not None:
        check_header_value(target.token or "", "Token in a subscriber url")
        check_callable(f"https://{target.host}/", _URL)


def check_worker_url(url: str) -> None:
    """Refuse, as ``Invalid``, a worker's URL without project, token or code name, or that could never be called."""
    check_callable(f"https://{parse_ironworker_url(url).host}/", _URL)


class HttpTarget(Component):
    """Pushes to ``http`` and ``https`` URLs as IronMQ v3 does."""

    dialect = DIALECT

    sending: GateSending
    projects: ProjectStore  # For the project's allowed targets.
    base_url: str  # Public base URL of this hub, for ``Iron-Subscriber-Message-Url``.
    own_addresses: tuple[str, ...]  # URLs of this hub, which no queue may push to.
    signing: Signing

    def check(self, url: str) -> None:
        """Requires a URL that the sender can call, and that is not this hub's own.

        Several APIs of this hub answer 202, which means "reserved" to a push queue: the message would be sent again
        until it is given up, each time as a new one.
        """
        check_callable(url, _URL)
        if self._is_own(url):
            raise Invalid(
                "Subscriber url is an address of this hub: push to a queue of it with ironmq:///QUEUE, and post to its"
                " other APIs directly"
            )

    def _is_own(self, url: str) -> bool:
        from pushhub.egress.url import InvalidTarget, is_same_place  # noqa: PLC0415 (only registration needs it)

        for each in self.own_addresses:
            # One that the sender could never call, as the emulator's for its API, is nobody's target.
            with suppress(InvalidTarget):
                if is_same_place(url, each):
                    return True
        return False

    def reaches(self, url: str, *, project: str, queue: str) -> str | None:  # noqa: ARG002 (the same for all queues)
        """The URL itself."""
        return url

    def deliver(self, order: PushOrder) -> Outcome:
        """POST the body unchanged and interpret the status."""
        signature = _signature(self.signing, order)
        headers = push_headers(
            base_url=self.base_url,
            queue=order.queue,
            message=order.message,
            subscriber=order.subscriber,
            attempt=order.attempt,
            allowance=order.allowance,
            signature=signature.headers,
            trace=trace_headers(self.projects, order, own=True),
        )
        request = PushRequest(
            url=order.subscriber.url,
            body=order.body,
            headers=headers,
            timeout_s=order.subscriber.timeout_s,
            answer_limit=4096,
            allowed_targets=allowed_targets(self.projects, order.queue.project, Reach.PROJECT),
        )
        subscriber = order.subscriber
        sent = self.sending.send(order.queue.project, subscriber.subscriber_id, subscriber, request)
        return replace(
            _outcome(order, sent.answer),
            reached=sent.reached,
            asked=sent.asked,
            proof=replace(sent.proof, schemes=signature.schemes if sent.reached else ()),
        )


class IronMqQueueTarget(Component):
    """Pushes to a queue: of this project, of another project here, or of another hub (through its webhook)."""

    dialect = DIALECT

    intake: QueueIntake  # Posts to queues of this hub.
    projects: ProjectStore  # For the project's allowed targets.
    tokens: TokenStore  # Checks other projects' tokens.
    sender: Sender  # Reaches other hubs.
    base_url: str  # Public base URL of this hub; a URL that names it is served without HTTP.
    clock: Clock  # Timestamps of attempts that need no HTTP.
    signing: Signing

    def __post_init__(self) -> None:
        self._own_host = urlsplit(self.base_url).netloc.lower()

    def check(self, url: str) -> None:
        """Requires a valid queue name, and another hub that the sender can call."""
        check_queue_url(url)

    def reaches(self, url: str, *, project: str, queue: str) -> str | None:
        """Another hub's host; a queue of this hub is posted to directly."""
        target = parse_ironmq_url(url)
        if target.host is not None and target.host.lower() != self._own_host:
            return f"https://{target.host}/"
        if target.queue == queue and target.project in (None, project):
            raise Invalid("A queue cannot subscribe to itself")
        return None

    def deliver(self, order: PushOrder) -> Outcome:
        """Post the body to the target queue."""
        target = parse_ironmq_url(order.subscriber.url)
        started = self.clock.now()
        refusal: tuple[int, str] | None
        if order.message.hops >= MAX_HOPS:
            refusal = 508, f"Message has passed {MAX_HOPS} queues; taken for a loop"
        elif order.allowance < 1:
            refusal = 508, "One message has led to as many messages as allowed; taken for a loop"
        elif target.host is not None and target.host.lower() != self._own_host:
            return _outcome(order, self.sender.send(self._webhook(order, target, target.host)))
        else:
            refusal = self._post_here(order, target.project, target.token, target.queue)
        answer = Answer(
            status_code=200 if refusal is None else refusal[0],
            message="OK" if refusal is None else refusal[1],
            started_at=started,
            finished_at=self.clock.now(),
            bytes_out=len(order.body),
        )
        return _outcome(order, answer)

    def _webhook(self, order: PushOrder, target: IronMqTarget, host: str) -> PushRequest:
        """The request to another hub, which may be this one under another name, so it says how many queues the message
        has passed.
        """
        headers = {f"{WEBHOOK_PREFIX}{name}": value for name, value in self._kept_headers(order).items()}
        return PushRequest(
            url=f"{_scheme(host)}://{host}/3/projects/{quote(target.project or '', safe='')}"
            f"/queues/{quote(target.queue, safe='')}/webhook",
            body=order.body,
            headers={
                **headers,
                **trace_headers(self.projects, order, own=True),
                "Authorization": f"OAuth {target.token}",
                "Content-Type": "application/octet-stream",
                **trail_headers(order.message, order.allowance),
            },
            timeout_s=order.subscriber.timeout_s,
            answer_limit=4096,
            allowed_targets=allowed_targets(self.projects, order.queue.project, Reach.PROJECT),
        )

    def _kept_headers(self, order: PushOrder) -> Mapping[str, str]:
        """The headers that the message keeps in the target queue, which passes them on to its own subscribers; they
        include signature headers.
        """
        return layered(order.message.headers, _signature(self.signing, order).headers)

    def _post_here(
        self, order: PushOrder, project: str | None, token: str | None, queue: str
    ) -> tuple[int, str] | None:
        """Post to a queue of this hub; returns (status code, reason) when that is refused."""
        if project is not None and not self.tokens.has_token(project, token_hash(token or "")):
            return 401, "Invalid project/token combination"
        if project is not None and is_suspended(self.projects, project):
            return 403, ProjectSuspended().message
        try:
            self.intake.post_caused(
                project or order.queue.project,
                queue,
                NewMessage(
                    body=order.body,
                    headers=self._kept_headers(order),
                    hops=order.message.hops + 1,
                    descendants=order.allowance - 1,
                    trace=passed_on(self.projects, order, own=True),
                ),
                cause=_cause(order),
                at=order.message.accepted_at,
            )
        except RequestRefused as error:
            return 400, error.message
        return None


class IronWorkerQueueTarget(Component):
    """Queues a task on a worker API: the webhook of IronWorker v2."""

    dialect = DIALECT

    sender: Sender
    projects: ProjectStore  # For the project's allowed targets.
    signing: Signing

    def check(self, url: str) -> None:
        """Requires project, token, code name, and a host that the sender can call."""
        check_worker_url(url)

    def reaches(self, url: str, *, project: str, queue: str) -> str | None:  # noqa: ARG002 (the same for all queues)
        """The worker API's host."""
        return f"https://{parse_ironworker_url(url).host}/"

    def deliver(self, order: PushOrder) -> Outcome:
        """POST the body as the task's payload."""
        target = parse_ironworker_url(order.subscriber.url)
        query = f"code_name={quote(target.code_name, safe='')}&oauth={quote(target.token, safe='')}"
        tasks = f"{_scheme(target.host)}://{target.host}/2/projects/{quote(target.project, safe='')}/tasks"
        request = PushRequest(
            url=f"{tasks}/webhook?{query}",
            body=order.body,
            headers={
                "Content-Type": "text/plain; charset=utf-8",
                "User-Agent": "IronMQ Pusherd",
                **trace_headers(self.projects, order, own=True),
                **_signature(self.signing, order).headers,
            },
            timeout_s=order.subscriber.timeout_s,
            answer_limit=4096,
            allowed_targets=allowed_targets(self.projects, order.queue.project, Reach.PROJECT),
        )
        return _outcome(order, self.sender.send(request))


def _cause(order: PushOrder) -> str:
    """What a copy in another queue is made for: the delivery, or the try that a person asks for.

    Each such try makes a copy of its own, as it makes a request of its own elsewhere; repeating it makes no other.
    """
    owed = f"push/{order.queue.project}/{order.queue.uid}/{order.delivery.delivery_id}/{order.subscriber.subscriber_id}"
    return owed if order.delivery.asked_at is None else f"{owed}/asked/{order.delivery.asked_at}"


def _signature(signing: Signing, order: PushOrder) -> Signature:
    """What signs a request to a subscriber; nothing if it has no keys."""
    return signing.signature(
        order.message.project,
        order.subscriber.sealed,
        message_id=order.message.message_id,
        body=order.body,
        kind=order.queue.name,
        url=order.subscriber.url,
    )


def _scheme(host: str) -> str:
    """``https``, because the URL contains a token; ``http`` for loopback, where hubs under development listen."""
    name = host.rpartition("@")[2].partition(":")[0]
    return "http" if name == "localhost" or name.startswith("127.") else "https"


def _outcome(order: PushOrder, answer: Answer) -> Outcome:
    # The beginning of the body is kept and shown.
    headers = {**order.message.headers, **order.subscriber.headers}
    shown = (
        replace(answer, body=without_credentials(answer.body, order.subscriber.url, headers)) if answer.body else answer
    )
    return Outcome(answer=shown, verdict=iron_verdict(answer), reserve_ms=order.push.retries_delay * 1000)
