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
    from pushhub.ironmq.alerts.project_alerts import ProjectAlerts
    from pushhub.ironmq.finding.events import Events
    from pushhub.ironmq.finding.overview import Overviews
    from pushhub.ironmq.finding.search import Search
    from pushhub.ironmq.posting.post import Post
    from pushhub.ironmq.pulling.conversion import Conversion
    from pushhub.ironmq.pulling.pull import PullQueues
    from pushhub.ironmq.pushing.acknowledge import Acknowledge
    from pushhub.ironmq.pushing.push_messages import PushMessages
    from pushhub.ironmq.pushing.replay import QueueReplay
    from pushhub.ironmq.queues.queues import Queues
    from pushhub.ironmq.queues.senders import QueueSenders
    from pushhub.ironmq.queues.subscribers import Subscribers
    from pushhub.ironmq.traces.span_settings import SpanSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class IronUseCases(PastUseCases):
    """The use cases of IronMQ. Those that producers never need are made on first use."""

    queues: Queues
    senders: QueueSenders
    conversion: Callable[[], Conversion]
    subscribers: Subscribers
    post: Post
    pull: PullQueues
    push_messages: PushMessages
    acknowledge: Acknowledge
    replay: Callable[[], QueueReplay]
    search: Callable[[], Search]
    events: Callable[[], Events]
    overviews: Callable[[], Overviews]
    activity: Callable[[], ProjectActivity]
    report: Callable[[], ProjectReport]
    alerts: Callable[[], ProjectAlerts]
    spans: Callable[[], SpanSettings]
    external_ids: Callable[[], ExternalIds]
