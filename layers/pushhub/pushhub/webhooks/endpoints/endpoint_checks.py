"""What an endpoint may be, and who may set it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Protocol

from pushhub.base.credentials import place_of
from pushhub.base.errors import Invalid
from pushhub.engine.component import Component
from pushhub.engine.model.reach import Reach
from pushhub.engine.target import OUT_OF_REACH
from pushhub.webhooks.model.endpoint import POLLER, is_sensitive
from pushhub.webhooks.model.refusals import insufficient, unprocessable
from pushhub.webhooks.wire.endpoint import is_http
from pushhub.webhooks.wire.fields import size_of

if TYPE_CHECKING:
    from pushhub.base.signing_change import WantedSignature
    from pushhub.engine.target import Targets
    from pushhub.webhooks.model.application import Application
    from pushhub.webhooks.model.endpoint import Endpoint, EndpointFields
    from pushhub.webhooks.model.rights import Rights
    from pushhub.webhooks.wire.endpoint import NewEndpoint


class MissingTypes(Protocol):
    """Says which event types may not be chosen:
    :meth:`pushhub.webhooks.applications.event_types.WebhooksEventTypes.missing`.
    """

    def __call__(self, project_id: str, names: Sequence[str], flags: frozenset[str] | None, /) -> list[str]:
        """Those of the names."""
        ...


MAX_BYTES = 300_000
"""Maximum size of an endpoint without its headers and keys, in bytes of JSON: it is kept in one item."""

CONSENT = ("body", "cloudEvents", "consent")
"""Where a request says whether an endpoint is asked for its consent."""


class EndpointChecks(Component):
    """Checks what is asked for; what may not be is refused as ``Unprocessable``."""

    missing_types: MissingTypes
    targets: Callable[[], Targets]  # Other kinds of subscribers, whose URLs endpoints may have, too.

    def signs(self, url: str) -> bool:
        """Whether requests to a URL are signed."""
        return self.targets().signs(url)

    def url_as_shown(self, reach: Reach) -> Callable[[str], str]:
        """How a caller is shown URLs: those out of its reach, which may contain a token, without all but the scheme."""

        def shown(url: str) -> str:
            return url if self.targets().within(reach, url) else f"{url.partition(':')[0]}://hidden"

        return shown

    def new(
        self,
        application: Application,
        wanted: NewEndpoint,
        signatures: Callable[[], Sequence[WantedSignature]],
        rights: Rights,
    ) -> Sequence[WantedSignature]:
        """Check an endpoint that is to be made.

        Args:
            signatures: Reads the schemes that are to sign its requests, when everything else is right.

        Returns:
            Those schemes.
        """
        given = wanted.fields
        self.check(application.project, given, rights)
        self.consent(rights, application, given, None)
        self.headers(given, wanted.headers)
        if wanted.key is not None and not self.signs(given.url):
            raise unprocessable("An endpoint with such a url has no signature, so it takes no secret", "body", "secret")
        schemes = signatures()
        if schemes and wanted.key is not None and not any(each.scheme.standard for each in schemes):
            raise unprocessable("None of the signatures uses this secret: each has its own", "body", "secret")
        return schemes

    def check(
        self, project_id: str, given: EndpointFields, rights: Rights, before: EndpointFields | None = None
    ) -> None:
        """Check that its URL is usable and within the caller's reach, and that the event types it chooses exist for
        the caller.

        Types it already has may have been archived since.
        """
        if size_of(asdict(given)) > MAX_BYTES:
            raise unprocessable(f"An endpoint may take at most {MAX_BYTES} bytes", "body", "description")
        if not is_http(given.url) and given.url != POLLER:
            try:
                self.targets().registered(given.url, rights.reach)
            except Invalid as error:
                raise unprocessable(error.message, "body", "url") from error
        elif not self.targets().within(rights.reach, given.url):
            raise unprocessable(OUT_OF_REACH, "body", "url")
        kept = before.event_types or () if before else ()
        names = [each for each in given.event_types or () if each not in kept]
        missing = self.missing_types(project_id, names, rights.flags) if names else []
        if missing:
            raise unprocessable(f"The following event types don't exist: {', '.join(missing)}", "body", "eventTypes")

    def may_set(self, rights: Rights, stored: Endpoint, given: EndpointFields) -> None:
        """Check that a caller may change an endpoint as it is stored now.

        Args:
            stored: Opened.

        Raises:
            Refused: It leads out of the caller's reach (403).
            Unprocessable: The endpoint's consent would no longer be needed, which a portal may not decide; or what was
                given for its host would be sent to another one, for a caller who may not read it.
        """
        if not self.targets().within(rights.reach, stored.fields.url):
            raise insufficient()
        if not rights.reads_secrets and place_of(given.url) != place_of(stored.fields.url):
            bound = _bound(stored)
            if bound:
                raise unprocessable(
                    f"The endpoint's {' and '.join(bound)} stay with the host they were given for: remove them first, "
                    "or use a token that may read secrets",
                    "body",
                    "url",
                )
        if rights.reach is Reach.PORTAL and stored.fields.asks_consent and not given.asks_consent:
            raise unprocessable("Only a token of the project can switch consent off", *CONSENT)

    def headers(self, given: EndpointFields, headers: Mapping[str, str]) -> None:
        """Check that an endpoint with headers has a URL to which they can be sent."""
        if headers and not self.targets().carries_headers(given.url):
            raise unprocessable(
                "An endpoint with such a url has no headers, as nothing would carry them", "body", "headers"
            )

    @staticmethod
    def askable(given: EndpointFields) -> None:
        """Check that an endpoint can be asked for its consent, if it is to be."""
        if given.asks_consent and not is_http(given.url):
            raise unprocessable("Only an HTTP endpoint can be asked for its consent", *CONSENT)

    @staticmethod
    def consent(rights: Rights, application: Application, given: EndpointFields, stored: Endpoint | None) -> None:
        """Check that a URL that a portal sets is asked for its consent, if the application demands that."""
        sets_url = stored is None or given.url != stored.fields.url
        demanded = rights.reach is Reach.PORTAL and application.fields.portal_consent
        if demanded and sets_url and not given.asks_consent:
            raise unprocessable("This application's endpoints must be asked for their consent", *CONSENT)


def _bound(endpoint: Endpoint) -> list[str]:
    """What an endpoint's requests carry that opens something at its host, in words."""
    carried = {
        "OAuth tokens": bool(endpoint.oauth),
        "client certificate": endpoint.certificate is not None,
        "sensitive headers": any(map(is_sensitive, endpoint.headers)),
    }
    return [what for what, there in carried.items() if there]
