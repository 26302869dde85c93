"""Control keeps an audit trail if the operator wants one (docs/decisions/security.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pushhub.cloud.settings import EnvironmentSetting, one_of
from pushhub.engine.wiring import RECORDS_BUCKET
from pushhub.web.audit import audit

if TYPE_CHECKING:
    from pushhub.engine.wiring import AwsEnginePorts

AUDIT_TRAIL: Final = one_of("AUDIT_TRAIL", "true", "false")
"""Whether changes through the APIs are kept."""
SETTINGS: tuple[EnvironmentSetting[Any], ...] = (AUDIT_TRAIL, RECORDS_BUCKET)


def keep(aws: AwsEnginePorts) -> None:
    """Keep entries from now on, if there is to be a trail."""
    if aws.settings[AUDIT_TRAIL] == "true":
        from pushhub.cloud.audit_trail import S3AuditTrail  # noqa: PLC0415 (most hubs have no trail)

        audit.trail = S3AuditTrail(aws.clients.of("s3"), aws.settings[RECORDS_BUCKET])
