"""Puts IronMQ v3 together: its contributions to the engine, and its API."""

# ruff: noqa: PLC0415 (a function imports only what it uses)

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from pushhub.cloud.settings import EnvironmentSetting, number, text
from pushhub.engine.model.reach import Scope
from pushhub.engine.protocol import Protocol as WireProtocol
from pushhub.engine.protocol import ReadAccepted, ReadChange
from pushhub.engine.target import TargetOffer
from pushhub.engine.wiring import CONFIG_TABLE, AwsEnginePorts, Engine

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pushhub.engine.ends import EndNotes, Ends
    from pushhub.engine.ports import Waits
    from pushhub.engine.records.activity import ProjectActivity
    from pushhub.engine.records.report import ProjectReport
    from pushhub.ironmq.alerts.alert_counts import AlertCounts
    from pushhub.ironmq.alerts.check_alerts import AlertPost, CheckAlerts, OwnQueues
    from pushhub.ironmq.alerts.ports import AlertStore
    from pushhub.ironmq.alerts.project_alerts import ProjectAlerts
    from pushhub.ironmq.api.call import IronCall
    from pushhub.ironmq.api.past import PastUseCases
    from pushhub.ironmq.api.use_cases import IronUseCases
    from pushhub.ironmq.finding.events import Events
    from pushhub.ironmq.finding.lookup import Lookup
    from pushhub.ironmq.finding.overview import Overviews
    from pushhub.ironmq.finding.search import Search
    from pushhub.ironmq.ports import PullStore
    from pushhub.ironmq.posting.consuming import QueueTakesIn
    from pushhub.ironmq.posting.error_queue import ErrorQueuePost
    from pushhub.ironmq.posting.intake import QueueIntake
    from pushhub.ironmq.posting.named_fields import FieldIndex
    from pushhub.ironmq.posting.post import Post
    from pushhub.ironmq.pulling.conversion import Conversion
    from pushhub.ironmq.pulling.pull import PullQueues
    from pushhub.ironmq.pushing.push_messages import PushMessages
    from pushhub.ironmq.pushing.replay import QueueReplay
    from pushhub.ironmq.pushing.targets import HttpTarget, IronMqQueueTarget, IronWorkerQueueTarget
    from pushhub.ironmq.queues.queues import Queues
    from pushhub.ironmq.queues.size_alerts import AlertLevelStore, Alerts
    from pushhub.ironmq.queues.subscribers import Subscribers
    from pushhub.ironmq.traces.span_export import CollectorTarget, PostSpans, SpanCounts
    from pushhub.ironmq.traces.span_settings import SpanSettings
    from pushhub.web.api import Api, Route
    from pushhub.web.description import ApiDescription


PULL_TABLE = text("PULL_TABLE")
QUEUE_DESCENDANTS = number("QUEUE_DESCENDANTS", least=1, most=100_000)
"""How many messages may derive from one that a producer posts, through queues that feed other queues."""

LONG_POLLS = number("LONG_POLLS", least=1, most=1_000)
"""How many requests of one project may wait for messages at the same time; each occupies a run of control."""


class AwsIronmqPorts:
    """What IronMQ needs besides the engine's ports, on AWS."""

    def __init__(self, aws: AwsEnginePorts) -> None:
        self._aws = aws

    @cached_property
    def pull(self) -> PullStore:
        from pushhub.ironmq.store.dynamodb_pull import DynamoDBPullStore

        return DynamoDBPullStore(*self._aws.table(PULL_TABLE))

    @property
    def pull_table(self) -> str:
        """Name of their table, for the records of its changes."""
        return self._aws.settings[PULL_TABLE]

    @cached_property
    def alert_levels(self) -> AlertLevelStore:
        """What their alerts know of their sizes, beside them."""
        from pushhub.ironmq.store.dynamodb_alert_levels import DynamoDBAlertLevels

        return DynamoDBAlertLevels(*self._aws.table(PULL_TABLE))

    @cached_property
    def alerts(self) -> AlertStore:
        from pushhub.ironmq.store.dynamodb_alerts import DynamoDBAlerts

        return DynamoDBAlerts(*self._aws.table(CONFIG_TABLE))

    @cached_property
    def waits(self) -> Waits:
        from pushhub.engine.store.dynamodb_waits import DynamoDBWaits

        return DynamoDBWaits(*self._aws.table(CONFIG_TABLE), kind="WAIT", places=self._aws.settings[LONG_POLLS])

    @property
    def queue_descendants(self) -> int:
        """How many messages may derive from one that a producer posts."""
        return self._aws.settings[QUEUE_DESCENDANTS]


class Ironmq:
    """IronMQ's use cases, each made on first use."""

    aws_ports = AwsIronmqPorts
    settings: ClassVar[dict[str, tuple[EnvironmentSetting[Any], ...]]] = {
        **dict.fromkeys(("push", "poll", "errors"), (PULL_TABLE, QUEUE_DESCENDANTS)),
        **dict.fromkeys(("ingest", "control"), (PULL_TABLE, QUEUE_DESCENDANTS, LONG_POLLS)),
        **dict.fromkeys(("records", "wake"), (PULL_TABLE,)),
    }

    @staticmethod
    def routes() -> Sequence[Route[Any, Any]]:
        from pushhub.ironmq.api.api import ROUTES

        return ROUTES

    @staticmethod
    def description() -> ApiDescription:
        from pushhub.ironmq.api.description import DESCRIPTION

        return DESCRIPTION

    def __init__(self, ports: AwsIronmqPorts, engine: Engine) -> None:
        self.ports = ports
        self._engine = engine
        self._outside = engine.ports

    @cached_property
    def protocol(self) -> WireProtocol:
        return WireProtocol(
            name="ironmq",
            targets=(
                TargetOffer(("http", "https"), self._http_target, Scope.PUBLIC, signed=True),
                TargetOffer(("ironmq",), self._queue_target, self._queue_scope, signed=True),
                TargetOffer(("ironworker",), self._worker_target, Scope.ELSEWHERE, signed=True),
                TargetOffer(("ironmq-spans",), self._collector_target, Scope.PROJECT, public=False),
            ),
            queue_source=lambda: self._own_queues,
            uncounted=self._is_uncounted,
            watchers=(lambda: self._span_counts,),
            record_listeners=(self._post_spans,),
            ticks=(lambda: self.check_alerts, lambda: self.ends),
            end_notes=self._end_notes,
            exhausted=lambda: self.error_queue_post,
            change_readers=self._change_readers,
            accepted_readers=self._accepted_readers,
            apis={"": lambda: self.api},
            producer_apis={"": lambda: self.posting_api},
            takes_in={"queues": lambda: self.takes_in},
        )

    @cached_property
    def post(self) -> Post:
        from pushhub.ironmq.posting.post import Post

        return Post(
            intake=self.intake,
            quotas=lambda: self._engine.quotas,
            first_orders=lambda: self._engine.first_orders,
            executor=lambda: self._outside.executor,
            clock=self._outside.clock,
        )

    @cached_property
    def intake(self) -> QueueIntake:
        from pushhub.ironmq.posting.intake import QueueIntake

        outside = self._outside
        return QueueIntake(
            accept=self._engine.accept_bodies(outside.bodies),
            config=outside.config,
            messages=outside.messages,
            pull=self.ports.pull,
            alerts=self._size_alerts,
            fields=self._fields,
            clock=outside.clock,
            descendants=self.ports.queue_descendants,
        )

    @cached_property
    def _size_alerts(self) -> Alerts:
        from pushhub.ironmq.queues.size_alerts import Alerts

        outside, ports = self._outside, self.ports
        return Alerts(
            config=outside.config,
            pull=ports.pull,
            levels=ports.alert_levels,
            clock=outside.clock,
            telemetry=outside.telemetry,
        )

    @cached_property
    def _fields(self) -> FieldIndex:
        from pushhub.ironmq.posting.named_fields import FieldIndex

        return FieldIndex(lambda: self._outside.search_index)

    @staticmethod
    def _is_uncounted(queue: str) -> bool:
        # Alerts whose receiver fails must not keep each other firing, and spans are no messages of their owner.
        return queue.startswith("ironmq/")

    @cached_property
    def _own_queues(self) -> OwnQueues:
        from pushhub.ironmq.alerts.check_alerts import OwnQueues
        from pushhub.ironmq.traces.span_export import SpanQueues

        return OwnQueues(self.ports.alerts, SpanQueues(self._outside.config))

    @cached_property
    def _span_counts(self) -> SpanCounts:
        from pushhub.ironmq.traces.span_export import SpanCounts

        outside = self._outside
        return SpanCounts(activity=outside.activity, clock=outside.clock, telemetry=outside.telemetry)

    def _post_spans(self) -> PostSpans:
        from pushhub.engine.records.past import as_clients_know
        from pushhub.ironmq.traces.span_export import PostSpans

        outside = self._outside
        return PostSpans(
            messages=outside.messages,
            shown=lambda queue, message_id: as_clients_know(self._engine.own_ids.of(queue), queue, message_id),
            clock=outside.clock,
            telemetry=outside.telemetry,
        )

    def _collector_target(self) -> CollectorTarget:
        from pushhub.ironmq.traces.span_export import CollectorTarget

        outside = self._outside
        return CollectorTarget(sender=outside.sender, projects=outside.config, counts=self._span_counts)

    @cached_property
    def _alert_post(self) -> AlertPost:
        from pushhub.ironmq.alerts.check_alerts import AlertPost

        outside = self._outside
        return AlertPost(accept=self._engine.accept, messages=outside.messages, base_url=outside.base_url)

    @cached_property
    def _alert_counts(self) -> AlertCounts:
        from pushhub.ironmq.alerts.alert_counts import AlertCounts

        return AlertCounts(activity=self._outside.activity, queues=self._outside.config)

    @cached_property
    def project_alerts(self) -> ProjectAlerts:
        from pushhub.ironmq.alerts.project_alerts import ProjectAlerts

        outside = self._outside
        return ProjectAlerts(
            alerts=self.ports.alerts,
            queues=outside.config,
            targets=self._engine.targets,
            config=outside.config,
            counts=self._alert_counts,
            calls=self._engine.stranger_calls,
            post=self._alert_post,
            clock=outside.clock,
        )

    @cached_property
    def ends(self) -> Ends:
        from pushhub.engine.ends import Ends
        from pushhub.ironmq.alerts.ends import SubscriberEnds

        outside = self._outside
        found = SubscriberEnds(
            queues=outside.config,
            projects=outside.config,
            alerts=self.ports.alerts,
            post=self._alert_post,
            base_url=outside.base_url,
            telemetry=outside.telemetry,
        )
        return Ends(notes=self._end_notes(), find=found.find, clock=outside.clock)

    def _end_notes(self) -> EndNotes:
        from pushhub.ironmq.queues.subscribers import PROTOCOL

        return self._outside.ends_of(PROTOCOL)

    @cached_property
    def check_alerts(self) -> CheckAlerts:
        from pushhub.ironmq.alerts.check_alerts import CheckAlerts, OldestWaiting

        outside = self._outside
        return CheckAlerts(
            alerts=self.ports.alerts,
            counts=self._alert_counts,
            oldest=OldestWaiting(
                queues=outside.config,
                unsettled=outside.messages,
                messages=outside.messages,
                backlog=outside.subscribers,
                pull=lambda: self.ports.pull,
            ),
            post=self._alert_post,
            clock=outside.clock,
            telemetry=outside.telemetry,
        )

    @cached_property
    def error_queue_post(self) -> ErrorQueuePost:
        from pushhub.ironmq.posting.error_queue import ErrorQueuePost

        outside = self._outside
        return ErrorQueuePost(
            config=outside.config,
            messages=outside.messages,
            pull=self.ports.pull,
            bodies=outside.bodies,
            intake=self.intake,
            clock=outside.clock,
            telemetry=outside.telemetry,
            executor=outside.executor,
        )

    @cached_property
    def takes_in(self) -> QueueTakesIn:
        """Takes in what the hub consumes for queues."""
        from pushhub.ironmq.posting.consuming import QueueTakesIn

        return QueueTakesIn(post=self.post, projects=self._outside.config)

    @cached_property
    def api(self) -> Api[IronUseCases, IronCall]:
        from pushhub.ironmq.api.api import ROUTES

        return self._api(ROUTES)

    @cached_property
    def posting_api(self) -> Api[IronUseCases, IronCall]:
        """The part of the queue API that producers call."""
        from pushhub.ironmq.api.messages import POSTING

        return self._api(POSTING)

    def _api(self, routes: Sequence[Route[IronUseCases, IronCall]]) -> Api[IronUseCases, IronCall]:
        from pushhub.ironmq.api.dialect import IronDialect
        from pushhub.web.api import Api
        from pushhub.web.misspelt import Misspelt

        dialect = IronDialect(self._outside.config)
        return Api(routes=routes, use_cases=self._use_cases, dialect=dialect, warnings=Misspelt(self.description))

    @cached_property
    def _use_cases(self) -> IronUseCases:
        from pushhub.engine.projects.queue_copies import QuietQueues
        from pushhub.ironmq.api.use_cases import IronUseCases
        from pushhub.ironmq.pushing.acknowledge import Acknowledge
        from pushhub.ironmq.queues.queues import Queues
        from pushhub.ironmq.queues.senders import QueueSenders
        from pushhub.ironmq.queues.subscribers import Registration, Subscribers

        engine, outside = self._engine, self._outside
        config, messages, clock = outside.config, outside.messages, outside.clock
        registration = Registration(
            targets=engine.targets,
            config=config,
            calls=engine.stranger_calls,
            signing=engine.signing,
            gates=lambda: engine.gate_settings,
            credentials=engine.credentials,
        )
        quiet = QuietQueues(config, clock)
        senders = QueueSenders(vault=lambda: outside.vault, base_url=outside.base_url, clock=clock)
        queues = Queues(
            config=config,
            messages=messages,
            pull=self.ports.pull,
            alerts=self._size_alerts,
            registration=registration,
            quiet=quiet,
            senders=senders,
            clock=clock,
        )
        subscribers = Subscribers(config=config, registration=registration, quiet=quiet, healths=lambda: engine.healths)
        return IronUseCases(
            queues=queues,
            senders=senders,
            conversion=lambda: self._conversion,
            subscribers=subscribers,
            post=self.post,
            pull=self._pull_queues,
            push_messages=self._push_messages,
            acknowledge=Acknowledge(
                config=config,
                messages=messages,
                push_messages=self._push_messages,
                resend=lambda: engine.resend,
                clock=clock,
            ),
            replay=lambda: self._replay,
            search=lambda: self._search,
            events=lambda: self._events,
            overviews=lambda: self._overviews(queues, subscribers),
            activity=lambda: self.activity,
            report=lambda: self.report,
            alerts=lambda: self.project_alerts,
            past=lambda: engine.past_searches,
            spans=lambda: self.span_settings,
            external_ids=lambda: engine.external_ids,
        )

    @cached_property
    def _push_messages(self) -> PushMessages:
        from pushhub.ironmq.pushing.push_messages import PushMessages

        outside = self._outside
        return PushMessages(
            messages=outside.messages,
            bodies=outside.bodies,
            fields=self._fields,
            resend=lambda: self._engine.resend,
            clock=outside.clock,
        )

    @cached_property
    def _pull_queues(self) -> PullQueues:
        from pushhub.ironmq.pulling.pull import PullQueues

        outside, ports = self._outside, self.ports
        return PullQueues(
            config=outside.config,
            pull=ports.pull,
            bodies=outside.bodies,
            intake=self.intake,
            waits=ports.waits,
            clock=outside.clock,
            telemetry=outside.telemetry,
        )

    @cached_property
    def _conversion(self) -> Conversion:
        from pushhub.ironmq.pulling.conversion import Conversion

        outside = self._outside
        return Conversion(
            pull=self.ports.pull,
            bodies=outside.bodies,
            intake=self.intake,
            calls=self._engine.stranger_calls,
            clock=outside.clock,
        )

    @cached_property
    def _replay(self) -> QueueReplay:
        from pushhub.ironmq.pushing.replay import QueueReplay

        outside = self._outside
        return QueueReplay(messages=outside.messages, resend=lambda: self._engine.resend, clock=outside.clock)

    @cached_property
    def _lookup(self) -> Lookup:
        from pushhub.ironmq.finding.lookup import Lookup

        return Lookup(
            config=self._outside.config,
            push_messages=self._push_messages,
            pull=self._pull_queues,
            finders=self._engine.finders.of,
        )

    @cached_property
    def _search(self) -> Search:
        from pushhub.ironmq.finding.search import Search

        outside = self._outside
        return Search(
            index=lambda: outside.search_index,
            catalogue=lambda: outside.catalogue,
            messages=outside.messages,
            lookup=self._lookup,
            clock=outside.clock,
        )

    @cached_property
    def _events(self) -> Events:
        from pushhub.ironmq.finding.events import Events

        outside = self._outside
        return Events(
            catalogue=lambda: outside.catalogue,
            lookup=self._lookup,
            finders=self._engine.finders.of,
            clock=outside.clock,
        )

    def _overviews(self, queues: Queues, subscribers: Subscribers) -> Overviews:
        from pushhub.ironmq.finding.overview import Overviews

        outside = self._outside
        return Overviews(
            config=outside.config,
            queues=queues,
            subscribers=subscribers,
            push_messages=self._push_messages,
            pull=self._pull_queues,
            executor=lambda: outside.executor,
            clock=outside.clock,
        )

    @cached_property
    def span_settings(self) -> SpanSettings:
        from pushhub.ironmq.traces.span_settings import SpanSettings

        outside = self._outside
        return SpanSettings(
            config=outside.config,
            messages=outside.messages,
            calls=self._engine.stranger_calls,
            credentials=self._engine.credentials,
            activity=lambda: self.activity,
        )

    @cached_property
    def past_api(self) -> Api[PastUseCases, IronCall]:
        """The part of the queue API that searches the past."""
        from pushhub.ironmq.api.dialect import IronDialect
        from pushhub.ironmq.api.past import ROUTES, PastUseCases
        from pushhub.web.api import Api

        use_cases = PastUseCases(past=lambda: self._engine.past_searches)
        return Api(routes=ROUTES, use_cases=use_cases, dialect=IronDialect(self._outside.config))

    @cached_property
    def activity(self) -> ProjectActivity:
        from pushhub.engine.records.activity import ProjectActivity

        return ProjectActivity(store=self._outside.activity, clock=self._outside.clock)

    @cached_property
    def report(self) -> ProjectReport:
        from pushhub.engine.records.report import ProjectReport

        return ProjectReport(store=self._outside.reports)

    def _change_readers(self) -> Mapping[str, ReadChange]:
        from pushhub.ironmq.store.changes import record_of_pull_change

        return {self.ports.pull_table: record_of_pull_change}

    def _accepted_readers(self) -> Mapping[str, ReadAccepted]:
        from pushhub.ironmq.store.changes import accepted_in_pull_queue

        return {self.ports.pull_table: accepted_in_pull_queue}

    def _http_target(self) -> HttpTarget:
        from pushhub.ironmq.pushing.targets import HttpTarget

        outside = self._outside
        return HttpTarget(
            sending=self._engine.gate_sending,
            projects=outside.config,
            base_url=outside.base_url,
            own_addresses=outside.own_addresses,
            signing=self._engine.signing,
        )

    @staticmethod
    def _queue_scope(url: str) -> Scope:
        from pushhub.base.credentials import MASK, user_of
        from pushhub.ironmq.wire.push import parse_ironmq_url

        if user_of(url) == MASK:
            # The hidden part names a project and its token.
            return Scope.ELSEWHERE
        return Scope.PROJECT if parse_ironmq_url(url).project is None else Scope.ELSEWHERE

    def _queue_target(self) -> IronMqQueueTarget:
        from pushhub.ironmq.pushing.targets import IronMqQueueTarget

        outside = self._outside
        return IronMqQueueTarget(
            intake=self.intake,
            projects=outside.config,
            tokens=outside.config,
            sender=outside.sender,
            base_url=outside.base_url,
            clock=outside.clock,
            signing=self._engine.signing,
        )

    def _worker_target(self) -> IronWorkerQueueTarget:
        from pushhub.ironmq.pushing.targets import IronWorkerQueueTarget

        return IronWorkerQueueTarget(
            sender=self._outside.sender, projects=self._outside.config, signing=self._engine.signing
        )
