"""Statements of the policies that a role's credentials are made with: for one action on one resource."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pushhub.base.sink_url import SinkUrl


def allowing(action: str, resource: str) -> Mapping[str, object]:
    """A statement that allows one action on one resource."""
    return {"Effect": "Allow", "Action": action, "Resource": resource}


def with_keys(url: SinkUrl, host: str) -> Mapping[str, object]:
    """A statement that allows the service, and nobody else, to encrypt what it is sent: a queue or topic with a key of
    its owner's takes a message only from those who may use the key.
    """
    via = {"StringEquals": {"kms:ViaService": f"{host}.{url.region}.{url.domain}"}}
    return {"Effect": "Allow", "Action": ["kms:GenerateDataKey", "kms:Decrypt"], "Resource": "*", "Condition": via}
