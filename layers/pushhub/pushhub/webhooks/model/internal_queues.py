"""Names of the internal queues of webhooks: one for each application."""

from __future__ import annotations

from pushhub.engine.model.keys import LISTED

PROTOCOL = "webhooks"
"""Name of the protocol, and the first part of its queues' names."""

OPERATIONAL_APP = "app_" + "0" * 27
"""Id of the application in each project that sends operational events; it sorts before all others."""


CONSENT_QUEUE = f"{PROTOCOL}/consent"
"""Name of the internal queue of a project whose messages ask endpoints for their consent."""

CONSENT_UID = "consent"
"""Generation of that queue; its messages are not listed."""


CONSENT_SCHEME = f"{PROTOCOL}-consent"
"""Scheme of that queue's subscriber."""


READERS_QUEUE = f"{PROTOCOL}/readers"
"""Name of the internal queue of a project whose messages have a sink read its stream now."""

READERS_UID = "readers"
"""Generation of that queue; its messages are not listed."""

READER_SCHEME = f"{PROTOCOL}-reader"
"""Scheme of the subscribers that read streams."""


def queue_of(app_id: str) -> str:
    """Name of the internal queue of an application."""
    return f"{PROTOCOL}/{app_id}"


def queue_uid(app_id: str) -> str:
    """Generation of that queue, whose messages can be listed. It never changes, as a deleted application's id is not
    reused.
    """
    return f"{LISTED}{app_id}"


def app_of(uid: str) -> str:
    """The id of the application whose queue has that generation."""
    return uid.removeprefix(LISTED)
