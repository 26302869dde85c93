"""What one store has for several rooms, as one table holds it; used where the hub is put together."""

from __future__ import annotations

from typing import Protocol

from pushhub.engine.acceptance.ports import Workers
from pushhub.engine.attempts.ports import Healths, SubscriberBacklog, Successors, Unsettled
from pushhub.engine.flow.ports import FlowStore, SlowSubscribers
from pushhub.engine.ports import MessageSink, ProjectDirectory, QueuesAndTotals, SpanExports, StoredMessages
from pushhub.engine.projects.ports import ChangeNoteStore, QuotaStore
from pushhub.engine.records.ports import Restored
from pushhub.engine.waiting.ports import Outstanding


class ConfigStore(ProjectDirectory, SpanExports, QueuesAndTotals, QuotaStore, ChangeNoteStore, Workers, Protocol):
    """The configuration table."""


class MessageStore(MessageSink, StoredMessages, Unsettled, Restored, Outstanding, Protocol):
    """The messages table."""


class SubscriberStore(Healths, SubscriberBacklog, FlowStore, Successors, SlowSubscribers, Protocol):
    """The backlogs table."""
