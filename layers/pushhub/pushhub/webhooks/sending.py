"""Requests to endpoints, through the gates in front of them: with a token, if the endpoint is behind OAuth 2.0, and
with a client certificate, if it has one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pushhub.base.times import iso_time
from pushhub.base.verdict import Answer
from pushhub.engine.model.answer_rules import Asked

if TYPE_CHECKING:
    from pushhub.base.ports import Clock, PushRequest, Sender, Vault
    from pushhub.engine.oauth import Tokens
    from pushhub.engine.ports import ProjectStore
    from pushhub.webhooks.model.endpoint import ClientCertificate, Endpoint

UNAUTHORIZED = 401
LEAST_LEFT_MS = 1_000
"""A request is repeated with another token only if the endpoint has this much time left."""


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of a request.

    Attributes:
        answer: The endpoint's, or why there is none.
        reached: Whether the endpoint was asked at all.
        asked: What the failure asks for; None leaves that to the rules of the endpoint.
    """

    answer: Answer
    reached: bool = True
    asked: Asked | None = None


class EndpointSending:
    """Sends to endpoints.

    Args:
        sender: Makes the requests.
        tokens: Obtains tokens; made when the first endpoint needs one.
        vault: Opens how they are obtained.
        projects: For the projects' allowed targets.
        clock: Time.
    """

    def __init__(
        self, *, sender: Sender, tokens: Callable[[], Tokens], vault: Vault, projects: ProjectStore, clock: Clock
    ) -> None:
        self._sender = sender
        self._tokens = tokens
        self._vault = vault
        self._projects = projects
        self._clock = clock

    def send(self, endpoint: Endpoint, request: PushRequest) -> Sent:
        """Make a request to an endpoint.

        Raises:
            Unavailable: Nothing was sent because of a fault of ours.
        """
        if endpoint.certificate is not None:
            from pushhub.webhooks.gates import identity_of  # noqa: PLC0415 (only who has a certificate pays)

            now = self._clock.now()
            if endpoint.certificate.ends_at <= now:
                return self._not_sent("tls", f"mtls: the client certificate ended {_day(endpoint.certificate)}", now)
            request = replace(request, identity=identity_of(endpoint, endpoint.certificate, self._vault))
        if not endpoint.oauth:
            return Sent(self._sender.send(request))
        return self._with_token(endpoint, request)

    def _with_token(self, endpoint: Endpoint, request: PushRequest) -> Sent:
        from pushhub.engine.model.reach import Reach  # noqa: PLC0415 (only who is sent tokens pays)
        from pushhub.engine.oauth import TIMEOUT_S, NoToken, TokenOwner  # noqa: PLC0415
        from pushhub.engine.projects import allowed_targets  # noqa: PLC0415
        from pushhub.webhooks.gates import grant_of  # noqa: PLC0415

        grant, owner = grant_of(endpoint, self._vault), TokenOwner(endpoint.project, endpoint.endpoint_id)
        allowed = allowed_targets(self._projects, endpoint.project, Reach(grant.reach))
        begun = self._clock.now()
        ends = begun + round(request.timeout_s * 1000)

        def token(refused: str | None = None) -> str:
            until = min(ends - LEAST_LEFT_MS, self._clock.now() + round(TIMEOUT_S * 1000))
            return self._tokens().token(owner, grant, allowed=allowed, until=until, refused=refused)

        def send(token: str) -> Answer:
            headers = {**request.headers, "Authorization": f"Bearer {token}"}
            left_s = max(LEAST_LEFT_MS, ends - self._clock.now()) / 1000
            answer = self._sender.send(replace(request, headers=headers, timeout_s=left_s))
            return replace(answer, started_at=begun)

        try:
            used = token()
        except NoToken as error:
            return self._not_sent("oauth", f"oauth: {error.reason}", begun, error.wait_ms)
        answer = send(used)
        if answer.status_code != UNAUTHORIZED or ends - self._clock.now() < 2 * LEAST_LEFT_MS:
            return Sent(answer)
        try:
            fresh = token(refused=used)
        except NoToken:
            return Sent(answer)
        answer = send(fresh)
        if answer.status_code == UNAUTHORIZED:
            self._tokens().useless(owner, grant)
        return Sent(answer)

    def _not_sent(self, error_class: str, message: str, begun: int, wait_ms: int = 0) -> Sent:
        answer = Answer(
            status_code=0,
            message=message[:200],
            error_class=error_class,
            started_at=begun,
            finished_at=self._clock.now(),
        )
        return Sent(answer, reached=False, asked=Asked(wait_ms=wait_ms))


def _day(certificate: ClientCertificate) -> str:
    return iso_time(certificate.ends_at)[:10]
