"""The health of endpoints on the wire. Svix has no such route; the format follows its other answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pushhub.base.times import iso_time
from pushhub.engine.ends import days_left
from pushhub.engine.model.circuit import CircuitState, Health, SubscriberKey
from pushhub.web.health import health_view
from pushhub.webhooks.wire.endpoint import endpoint_view

if TYPE_CHECKING:
    from pushhub.webhooks.model.health import EndpointCheckup, EndpointHealth


_NEVER_FAILED = Health(key=SubscriberKey(project="", queue="", queue_uid="", subscriber_id=""))


def _circuit_view(shown: EndpointHealth) -> dict[str, Any]:
    health = shown.health.stored or _NEVER_FAILED
    return {
        "health": health_view(shown.health),
        "circuit": health.state.value,
        "circuitSince": iso_time(health.changed_at) if health.changed_at else None,
        "nextProbe": iso_time(health.probe_at) if health.state is CircuitState.OPEN else None,
        "failedProbes": health.probes,
        "failingSince": None if health.failing_since is None else iso_time(health.failing_since),
        "disablesAt": None if shown.disables_at is None else iso_time(shown.disables_at),
    }


def checkup_view(shown: EndpointCheckup) -> dict[str, Any]:
    """The health of one endpoint."""
    ends = {header: iso_time(at) for header, at in shown.signatures_end.items()}
    certificate = shown.endpoint.certificate
    return {
        "disabled": shown.endpoint.fields.disabled,
        **_circuit_view(shown),
        "waiting": shown.health.owed.waiting,
        "oldSecretsEnd": [iso_time(each) for each in shown.old_keys_end],
        **({"signaturesEnd": ends} if ends else {}),
        **(
            {
                "certificateEndsAt": iso_time(certificate.ends_at),
                "certificateDaysLeft": days_left(certificate.ends_at, shown.seen_at),
            }
            if certificate
            else {}
        ),
    }


def troubled_view(troubled: Sequence[EndpointHealth], most: int) -> dict[str, Any]:
    """Endpoints that get nothing, or only some of their messages.

    Args:
        most: How many are shown; all of them are counted.
    """
    return {
        "total": len(troubled),
        "totals": dict(sorted(Counter(str(each.health.state) for each in troubled).items())),
        "data": [
            {
                "appId": each.application.app_id,
                "appName": each.application.fields.name,
                "endpoint": endpoint_view(each.endpoint, url_as_shown=str),
                **_circuit_view(each),
            }
            for each in troubled[:most]
        ],
    }
