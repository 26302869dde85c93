"""Requests to subscribers, through the gates in front of them: with a token, if the subscriber is behind OAuth 2.0, and
with a client certificate, if it has one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pushhub.base.gates import NO_PROOF, Proof
from pushhub.base.times import iso_time
from pushhub.base.verdict import Answer
from pushhub.engine.component import Component
from pushhub.engine.model.answer_rules import NOTHING_ASKED, Asked

if TYPE_CHECKING:
    from pushhub.base.gates import ClientCertificate, Gated
    from pushhub.base.ports import Clock, PushRequest, Sender, Vault
    from pushhub.engine.ports import ProjectStore
    from pushhub.engine.security.oauth import AccessTokens

UNAUTHORIZED = 401
LEAST_LEFT_MS = 1_000
"""A request is repeated with another token only if the subscriber has this much time left."""

_NO_TOKEN, _ENDED = "oauth", "mtls: the client certificate ended "


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of a request.

    Attributes:
        answer: The subscriber's, or why there is none.
        reached: Whether the subscriber was asked at all.
        asked: What the failure asks for; None leaves that to the rules of the subscriber.
        proof: What the request showed.
    """

    answer: Answer
    reached: bool = True
    asked: Asked | None = None
    proof: Proof = NO_PROOF


def was_sent(answer: Answer) -> bool:
    """Whether an answer that is no longer fresh says that its subscriber was asked at all."""
    return answer.error_class != _NO_TOKEN and not answer.message.startswith(_ENDED)


class GateSending(Component):
    """Sends to subscribers."""

    sender: Sender
    tokens: Callable[[], AccessTokens]  # Obtains tokens; made when the first subscriber needs one.
    vault: Callable[[], Vault]  # Opens how they are obtained; made when it is first needed.
    projects: ProjectStore  # For the projects' allowed targets.
    clock: Clock

    def send(self, project_id: str, name: str, gated: Gated, request: PushRequest) -> Sent:
        """Make a request to a subscriber.

        Args:
            name: The subscriber, unique in the project: nobody else gets its tokens, or a connection of its own.

        Raises:
            Unavailable: Nothing was sent because of a fault of ours.
        """
        proof = NO_PROOF
        if gated.certificate is not None:
            from pushhub.engine.security.gates import identity_of  # noqa: PLC0415 (only who has a certificate pays)

            now = self.clock.now()
            if gated.certificate.ends_at <= now:
                return self._not_sent("tls", f"{_ENDED}{_day(gated.certificate)}", now)
            identity = identity_of(project_id, name, gated, self.vault())
            request = replace(request, identity=identity)
            proof = Proof(certificate=gated.certificate.fingerprint)
        if not gated.oauth:
            return Sent(self.sender.send(request), proof=proof)
        return self._with_token(project_id, name, gated, request, proof)

    def _with_token(self, project_id: str, name: str, gated: Gated, request: PushRequest, proof: Proof) -> Sent:
        from pushhub.engine.model.reach import Reach  # noqa: PLC0415
        from pushhub.engine.projects.projects import allowed_targets  # noqa: PLC0415
        from pushhub.engine.security.gates import grant_of  # noqa: PLC0415 (only who is sent tokens pays)
        from pushhub.engine.security.oauth import TIMEOUT_S, NoToken, TokenOwner  # noqa: PLC0415

        grant, owner = grant_of(project_id, gated, self.vault()), TokenOwner(project_id, name)
        proof = replace(proof, client=grant.client_id)
        allowed = allowed_targets(self.projects, project_id, Reach(grant.reach))
        begun = self.clock.now()
        ends = begun + round(request.timeout_s * 1000)
        others = {name: value for name, value in request.headers.items() if name.lower() != "authorization"}

        def token() -> str:
            until = min(ends - LEAST_LEFT_MS, self.clock.now() + round(TIMEOUT_S * 1000))
            return self.tokens().token(owner, grant, allowed=allowed, until=until)

        def send(token: str) -> Answer:
            headers = {**others, "Authorization": f"Bearer {token}"}
            left_s = max(LEAST_LEFT_MS, ends - self.clock.now()) / 1000
            answer = self.sender.send(replace(request, headers=headers, timeout_s=left_s))
            return replace(answer, started_at=begun)

        try:
            used = token()
        except NoToken as error:
            asked = Asked(wait_ms=error.wait_ms, spares=error.spares)
            return self._not_sent(_NO_TOKEN, f"oauth: {error.reason}", begun, asked)
        answer = send(used)
        # A second token may be another environment's, and as old as the first one: then a third one is tried.
        for _ in range(2):
            if answer.status_code != UNAUTHORIZED:
                break
            self.tokens().refuse(owner, used)
            if ends - self.clock.now() < 2 * LEAST_LEFT_MS:
                break
            try:
                used = token()
            except NoToken:
                break
            answer = send(used)
            if answer.status_code == UNAUTHORIZED and self.tokens().obtained(owner, used):
                self.tokens().useless(owner, grant)
                break
        else:
            if answer.status_code == UNAUTHORIZED:
                self.tokens().refuse(owner, used)
        return Sent(answer, proof=proof)

    def _not_sent(self, error_class: str, message: str, begun: int, asked: Asked = NOTHING_ASKED) -> Sent:
        answer = Answer(
            status_code=0,
            message=message[:200],
            error_class=error_class,
            started_at=begun,
            finished_at=self.clock.now(),
        )
        return Sent(answer, reached=False, asked=asked)


def _day(certificate: ClientCertificate) -> str:
    return iso_time(certificate.ends_at)[:10]
