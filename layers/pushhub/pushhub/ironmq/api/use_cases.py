"""What the handlers of the queue API call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pushhub.ironmq.api.past import PastUseCases

if TYPE_CHECKING:
    from collections.abc import Callable

    from pushhub.engine.records.activity import ProjectActivity
    from pushhub.engine.records.report import ProjectReport
    from pushhub.engine.security.external_ids import ExternalIds
    from pushhub.ironmq.acknowledge import Acknowledge
    from pushhub.ironmq.conversion import Conversion
    from pushhub.ironmq.events import Events
    from pushhub.ironmq.overview import Overviews
    from pushhub.ironmq.post import Post
    from pushhub.ironmq.project_alerts import ProjectAlerts
    from pushhub.ironmq.pull import PullQueues
    from pushhub.ironmq.push_messages import PushMessages
    from pushhub.ironmq.queues import Queues
    from pushhub.ironmq.replay import QueueReplay
    from pushhub.ironmq.search import Search
    from pushhub.ironmq.senders import QueueSenders
    from pushhub.ironmq.span_settings import SpanSettings
    from pushhub.ironmq.subscribers import Subscribers


@dataclass(frozen=True, slots=True, kw_only=True)
class IronUseCases(PastUseCases):
    """The use cases of IronMQ. Those that producers never need are made on first use."""

    queues: Queues
    senders: QueueSenders
    conversion: Conversion
    subscribers: Subscribers
    post: Post
    pull: PullQueues
    push_messages: PushMessages
    acknowledge: Acknowledge
    replay: QueueReplay
    search: Search
    events: Events
    overviews: Callable[[], Overviews]
    activity: Callable[[], ProjectActivity]
    report: Callable[[], ProjectReport]
    alerts: Callable[[], ProjectAlerts]
    spans: Callable[[], SpanSettings]
    external_ids: Callable[[], ExternalIds]
