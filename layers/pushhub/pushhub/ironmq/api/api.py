"""The queue API (IronMQ v3): its routes, its callers, its errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.engine.queue_copies import QuietQueues
from pushhub.ironmq.acknowledge import Acknowledge
from pushhub.ironmq.api import alerts as alert_routes
from pushhub.ironmq.api import changes as change_routes
from pushhub.ironmq.api import messages as message_routes
from pushhub.ironmq.api import past as past_routes
from pushhub.ironmq.api import policies as policy_routes
from pushhub.ironmq.api import project as project_routes
from pushhub.ironmq.api import queues as queue_routes
from pushhub.ironmq.api.call import IronCall
from pushhub.ironmq.api.dialect import IronDialect
from pushhub.ironmq.api.use_cases import IronUseCases
from pushhub.ironmq.conversion import Conversion
from pushhub.ironmq.pull import PullQueues
from pushhub.ironmq.push_messages import PushMessages
from pushhub.ironmq.queues import Queues
from pushhub.ironmq.replay import Replay
from pushhub.ironmq.search import Search
from pushhub.ironmq.subscribers import Registration, Subscribers
from pushhub.web.api import Api, Auth, Function, Route
from pushhub.web.http import Response

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pushhub.base.ports import Clock
    from pushhub.engine.activity import ProjectActivity
    from pushhub.engine.credentials import Credentials
    from pushhub.engine.past import PastSearches
    from pushhub.engine.ports import (
        BodyStore,
        ConfigStore,
        Finder,
        MessageStore,
        SearchIndex,
        SubscriberBacklog,
        Waits,
    )
    from pushhub.engine.report import ProjectReport
    from pushhub.engine.resend import Resend
    from pushhub.engine.signing import Signing
    from pushhub.engine.stranger_calls import StrangerCalls
    from pushhub.engine.subscriber_history import SubscriberHistory
    from pushhub.engine.target import Targets
    from pushhub.ironmq.ports import PullStore
    from pushhub.ironmq.post import Post
    from pushhub.ironmq.project_alerts import ProjectAlerts
    from pushhub.ironmq.search import Fields

API_VERSION = "3"


def _version(_: IronUseCases, __: IronCall) -> Response:
    return Response(status=200, body={"version": API_VERSION})


ROUTES: tuple[Route[IronUseCases, IronCall], ...] = (
    Route("GET", "/version", _version, name="ironmq.version", summary="Show the API's version", auth=Auth.NONE),
    *queue_routes.ROUTES,
    *message_routes.ROUTES,
    *project_routes.ROUTES,
    *past_routes.ROUTES,
    *policy_routes.ROUTES,
    *alert_routes.ROUTES,
    *change_routes.ROUTES,
)
"""Every route of the queue API."""

POSTING = tuple(
    each for each in ROUTES if each.path in {posted.path for posted in ROUTES if posted.function is Function.INGEST}
)
"""The paths that producers post to, with their other methods: a POST reaches those with a method override."""


class IronApi(Api[IronUseCases, IronCall]):
    """The queue API.

    Args:
        routes: What it serves: all of it, or what producers call.
        post: Posts messages.
        targets: All kinds of subscribers.
        config: Projects, tokens, queues.
        messages: Messages of push queues.
        pull: Messages of pull queues.
        waits: Bounds how many requests wait.
        bodies: Large bodies.
        activity: Makes the activity use case on first use.
        report: Makes the report use case on first use.
        history: Makes the use case for histories of failing subscribers on first use.
        calls: Checks where the URLs of subscribers lead.
        signing: Manages the signing keys of subscribers.
        credentials: Opens what subscribers' settings hide.
        resend: Makes the use case for manual tries on first use.
        fields: Keeps the index of named fields.
        index: Provides it, on first use.
        finders: Show what it finds in internal queues.
        backlog: Provides what waits for paused subscribers, on first use.
        alerts: Makes the use case for alerts of projects on first use.
        past: Makes the use case for searches of the past on first use.
    """

    def __init__(
        self,
        *,
        routes: Iterable[Route[IronUseCases, IronCall]],
        post: Post,
        targets: Targets,
        config: ConfigStore,
        messages: MessageStore,
        pull: PullStore,
        waits: Waits,
        bodies: BodyStore,
        activity: Callable[[], ProjectActivity],
        report: Callable[[], ProjectReport],
        history: Callable[[], SubscriberHistory],
        clock: Clock,
        calls: StrangerCalls,
        signing: Signing,
        credentials: Credentials,
        resend: Callable[[], Resend],
        backlog: Callable[[], SubscriberBacklog],
        fields: Fields,
        index: Callable[[], SearchIndex],
        finders: Callable[[str], Sequence[Finder]],
        alerts: Callable[[], ProjectAlerts],
        past: Callable[[], PastSearches],
    ) -> None:
        registration = Registration(
            targets=targets, config=config, calls=calls, signing=signing, credentials=credentials
        )
        push_messages = PushMessages(messages=messages, bodies=bodies, fields=fields, resend=resend, clock=clock)
        pull_queues = PullQueues(config=config, pull=pull, bodies=bodies, post=post, waits=waits, clock=clock)
        quiet = QuietQueues(config, clock)
        use_cases = IronUseCases(
            queues=Queues(
                config=config, messages=messages, pull=pull, registration=registration, quiet=quiet, clock=clock
            ),
            conversion=Conversion(pull=pull, bodies=bodies, post=post, calls=calls, clock=clock),
            subscribers=Subscribers(config=config, registration=registration, quiet=quiet, backlog=backlog),
            post=post,
            pull=pull_queues,
            push_messages=push_messages,
            acknowledge=Acknowledge(
                config=config, messages=messages, push_messages=push_messages, resend=resend, clock=clock
            ),
            replay=Replay(messages=messages, resend=resend, clock=clock),
            search=Search(
                index=index,
                config=config,
                messages=messages,
                push_messages=push_messages,
                pull=pull_queues,
                finders=finders,
            ),
            activity=activity,
            report=report,
            history=history,
            alerts=alerts,
            past=past,
        )
        super().__init__(routes=routes, use_cases=use_cases, dialect=IronDialect(config))
