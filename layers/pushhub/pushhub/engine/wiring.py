"""Puts the engine together from its ports and the protocols' contributions; each use case is made on first use."""

# ruff: noqa: PLC0415 (a function imports only what it uses)

from __future__ import annotations

from concurrent.futures import Executor, ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pushhub.cloud.clients import CONNECTIONS, Clients
from pushhub.cloud.clock import SystemClock
from pushhub.cloud.settings import EnvironmentSetting, Settings, listed, number, one_of, optional_text, text, url

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mypy_boto3_dynamodb import DynamoDBClient

    from pushhub.base.ports import Clock, Sender, Telemetry, Vault
    from pushhub.engine.acceptance.accept import Accept, AcceptBodies, Ids
    from pushhub.engine.acceptance.dispatch import Dispatch
    from pushhub.engine.acceptance.first_orders import FirstOrders
    from pushhub.engine.acceptance.order_queues import OrderQueues
    from pushhub.engine.attempts.circuits import Circuits, Recover
    from pushhub.engine.attempts.deliver import Deliver
    from pushhub.engine.attempts.resend import Resend
    from pushhub.engine.ends import EndNote, EndNotes
    from pushhub.engine.flow.ports import AttemptReads, QueueLevel
    from pushhub.engine.flow.push import Push
    from pushhub.engine.flow.queue_levels import LookAtQueues
    from pushhub.engine.flow.slow_lane import SlowLane
    from pushhub.engine.flow.wake_ups import WakeUps
    from pushhub.engine.model.catalogue import Accepted
    from pushhub.engine.model.pulse import Pulse
    from pushhub.engine.model.queue import Queue
    from pushhub.engine.model.record import DeliveryRecord
    from pushhub.engine.ports import BodyStore, Finder, SearchIndex, SubscriberEvents, Waits, Watcher, WorkQueue
    from pushhub.engine.projects.copies import ChangeNotes, Changes
    from pushhub.engine.projects.quotas import Quotas
    from pushhub.engine.protocol import ByQueue, OwnIds
    from pushhub.engine.protocol import Protocol as WireProtocol
    from pushhub.engine.records.catalogue import Cataloguer
    from pushhub.engine.records.nights import Nights
    from pushhub.engine.records.past import PastSearches
    from pushhub.engine.records.ports import (
        ActivityStore,
        Catalogue,
        PastRecords,
        PastSearchStore,
        PulseStore,
        RecordStore,
        ReportStore,
    )
    from pushhub.engine.records.pulses import SendPulses
    from pushhub.engine.records.records import Records
    from pushhub.engine.security.credentials import Credentials
    from pushhub.engine.security.external_ids import ExternalIds
    from pushhub.engine.security.gate_sending import GateSending
    from pushhub.engine.security.gates import GateSettings
    from pushhub.engine.security.oauth import AccessTokens, AccessTokenStore
    from pushhub.engine.security.signing import Signing
    from pushhub.engine.security.stranger_calls import StrangerCalls
    from pushhub.engine.stores import ConfigStore, MessageStore, SubscriberStore
    from pushhub.engine.target import Targets
    from pushhub.engine.waiting.health import SubscriberHealths
    from pushhub.engine.waiting.ports import Schedule, ShardRuns
    from pushhub.engine.waiting.sweep import Sweep
    from pushhub.engine.waiting.wake import Wake


MOST_CALLS = 8
"""How many requests of one project may call strangers at the same time."""

CONFIG_TABLE = text("CONFIG_TABLE")
MESSAGES_TABLE = text("MESSAGES_TABLE")
SCHEDULE_TABLE = text("SCHEDULE_TABLE")
BODIES_BUCKET = text("BODIES_BUCKET")
RECORDS_BUCKET = text("RECORDS_BUCKET")
PUSH_QUEUE_URL = text("PUSH_QUEUE_URL")
RETRY_QUEUE_URL = text("RETRY_QUEUE_URL")
SLOW_QUEUE_URL = text("SLOW_QUEUE_URL")
POLL_QUEUE_URL = text("POLL_QUEUE_URL")
ROUTE_QUEUE_URL = text("ROUTE_QUEUE_URL")
ERRORS_QUEUE_URL = text("ERRORS_QUEUE_URL")
DISPATCH_FAILURES_URL = text("DISPATCH_FAILURES_URL")
SET_ASIDE_QUEUES = listed("SET_ASIDE_QUEUES")
"""Queues of dead letters and failures, which wake looks at."""
CROWDED_QUEUES = listed("CROWDED_QUEUES")
BRISK_QUEUES = listed("BRISK_QUEUES")
"""Queues whose messages stay in flight for long, which wake looks at."""
VAULT_KEY = text("VAULT_KEY")
"""ARN of the KMS key that seals what opens something."""
ACCOUNT = text("ACCOUNT")
"""The account that the hub runs in."""
PUBLIC_BASE_URL = url("PUBLIC_BASE_URL")
OWN_ADDRESSES = listed("OWN_ADDRESSES")
"""Further URLs under which this hub can be reached: no queue may push to them."""
ALLOWED_TARGETS = listed("ALLOWED_TARGETS")
REFUSED_TARGET_HINT = optional_text("REFUSED_TARGET_HINT")
"""Operator's text for a target that the egress guard refuses at registration: who can allow it, and how."""
PROJECT_QUOTA = number("PROJECT_QUOTA", least=0, most=1_000_000)
"""Messages per second that a project without a quota of its own may post; 0 for no bound."""
ATTEMPT_EVENTS = one_of("ATTEMPT_EVENTS", "all", "exceptions")
"""Which attempts are told in the log: all, or those that did not deliver at the first try."""
PAST_SEARCH = one_of("PAST_SEARCH", "athena", "objects", "off")
"""How delivery records are searched: with Athena, by reading the objects (on one machine), or not at all."""
PAST_WORKGROUP = optional_text("PAST_WORKGROUP")
"""Name of Athena's workgroup."""
PAST_DATABASE = optional_text("PAST_DATABASE")
"""Name of the Glue database that describes the records."""

PULSED_TABLES = listed("PULSED_TABLES")
"""Names of the tables through whose streams pulses are sent: those that have delivery records."""

REPORT_JOB = optional_text("REPORT_JOB")
"""Name of the Glue job that makes the delivery report; empty where nobody starts it each night."""

_ATTEMPTS: tuple[EnvironmentSetting[Any], ...] = (
    *(CONFIG_TABLE, MESSAGES_TABLE, SCHEDULE_TABLE, BODIES_BUCKET, RETRY_QUEUE_URL, SLOW_QUEUE_URL, POLL_QUEUE_URL),
    *(ERRORS_QUEUE_URL, PUBLIC_BASE_URL, ALLOWED_TARGETS, VAULT_KEY, ATTEMPT_EVENTS),
)
SETTINGS: dict[str, tuple[EnvironmentSetting[Any], ...]] = {
    "ingest": (
        *(CONFIG_TABLE, MESSAGES_TABLE, SCHEDULE_TABLE, BODIES_BUCKET, PUBLIC_BASE_URL, ALLOWED_TARGETS),
        *(REFUSED_TARGET_HINT, PROJECT_QUOTA, PUSH_QUEUE_URL, VAULT_KEY),
    ),
    "control": (
        *(CONFIG_TABLE, MESSAGES_TABLE, SCHEDULE_TABLE, BODIES_BUCKET, RETRY_QUEUE_URL),
        *(RECORDS_BUCKET, PUBLIC_BASE_URL, ALLOWED_TARGETS, REFUSED_TARGET_HINT, VAULT_KEY, PROJECT_QUOTA),
        *(OWN_ADDRESSES, ACCOUNT),
    ),
    "dispatch": (
        *(CONFIG_TABLE, MESSAGES_TABLE, SCHEDULE_TABLE, PUSH_QUEUE_URL, POLL_QUEUE_URL, ROUTE_QUEUE_URL),
        DISPATCH_FAILURES_URL,
    ),
    "push": (*_ATTEMPTS, PUSH_QUEUE_URL, ROUTE_QUEUE_URL, ACCOUNT),
    "poll": (*_ATTEMPTS, ACCOUNT),
    "sweep": (
        *(MESSAGES_TABLE, SCHEDULE_TABLE, PUSH_QUEUE_URL, RETRY_QUEUE_URL, POLL_QUEUE_URL, ROUTE_QUEUE_URL),
        *(RECORDS_BUCKET, PULSED_TABLES, REPORT_JOB),
    ),
    "wake": (
        CONFIG_TABLE,
        MESSAGES_TABLE,
        SCHEDULE_TABLE,
        BODIES_BUCKET,
        RETRY_QUEUE_URL,
        POLL_QUEUE_URL,
        ROUTE_QUEUE_URL,
        PUBLIC_BASE_URL,
        SET_ASIDE_QUEUES,
        CROWDED_QUEUES,
        BRISK_QUEUES,
        PULSED_TABLES,
    ),
    "errors": (CONFIG_TABLE, MESSAGES_TABLE, SCHEDULE_TABLE, BODIES_BUCKET),
    "consumers": (CONFIG_TABLE,),
    "notify": (CONFIG_TABLE,),
    "records": (RECORDS_BUCKET, MESSAGES_TABLE, SCHEDULE_TABLE),
    "past": (CONFIG_TABLE, SCHEDULE_TABLE, RECORDS_BUCKET, PAST_SEARCH, PAST_WORKGROUP, PAST_DATABASE),
}
"""Each function's settings for the engine, by its folder; protocols add their own."""


class AwsEnginePorts:
    """Everything the engine and all protocols need from outside, on AWS; each port is made on first use."""

    def __init__(self, settings: Settings, clients: Clients) -> None:
        self.settings = settings
        self.clients = clients
        self.clock = SystemClock()

    def table(self, setting: EnvironmentSetting[str]) -> tuple[DynamoDBClient, str, Clock]:
        """What a store needs for its table, whose name a setting says."""
        return self.clients.of("dynamodb"), self.settings[setting], self.clock

    @cached_property
    def telemetry(self) -> Telemetry:
        """Events and metrics: the execution environment's one telemetry."""
        from pushhub.cloud.observability import telemetry

        return telemetry

    @cached_property
    def sender(self) -> Sender:
        from pushhub.egress.sender import GuardedSender

        return GuardedSender(now=self.clock.now, allowed_targets=self._allowed_targets, threads=CONNECTIONS)

    @property
    def _allowed_targets(self) -> tuple[str, ...]:
        return self.settings[ALLOWED_TARGETS]

    def check_url(self, url: str, allowed: Sequence[str]) -> str | None:
        """Why the hub may not reach a URL, given a project's allowed targets; None when it may."""
        from pushhub.egress.guard import refusal

        reason = refusal(url, (*self._allowed_targets, *allowed))
        return f"{reason}{self.settings[REFUSED_TARGET_HINT]}" if reason and reason.endswith("not allowed") else reason

    @cached_property
    def vault(self) -> Vault:
        from pushhub.cloud.vault import KmsVault

        return KmsVault(self.clients.of("kms"), self.settings[VAULT_KEY], self.clock)

    @cached_property
    def executor(self) -> Executor:
        """Runs attempts in parallel: ten SQS messages of ten orders each. Threads are only started when needed."""
        return ThreadPoolExecutor(max_workers=CONNECTIONS, thread_name_prefix="attempt")

    @property
    def base_url(self) -> str:
        """Public base URL of this hub, without a trailing slash."""
        return self.settings[PUBLIC_BASE_URL]

    @property
    def account(self) -> str:
        """The account that the hub runs in, twelve digits."""
        return self.settings[ACCOUNT]

    @property
    def own_addresses(self) -> tuple[str, ...]:
        """URLs under which this hub can be reached, as far as the function knows them."""
        return (self.base_url, *self.settings.get(OWN_ADDRESSES, ()))

    @property
    def project_quota(self) -> int:
        """Messages per second that a project without a quota of its own may post; 0 for no bound."""
        return self.settings[PROJECT_QUOTA]

    @property
    def tells_first_successes(self) -> bool:
        """Whether the log tells of attempts that delivered at the first try."""
        return self.settings[ATTEMPT_EVENTS] == "all"

    @cached_property
    def config(self) -> ConfigStore:
        from pushhub.engine.store.dynamodb_config import DynamoDBConfigStore

        return DynamoDBConfigStore(*self.table(CONFIG_TABLE), self._sealed)

    def _sealed(self, queue: Queue) -> Queue:
        return self.credentials.sealed(queue)

    @cached_property
    def credentials(self) -> Credentials:
        """For the stores, which seal what they write."""
        from pushhub.engine.security.credentials import Credentials

        return Credentials(vault=lambda: self.vault, clock=self.clock)

    @cached_property
    def messages(self) -> MessageStore:
        from pushhub.engine.store.dynamodb_messages import DynamoDBMessageStore

        return DynamoDBMessageStore(
            *self.table(MESSAGES_TABLE),
            lambda: self.schedule,
            ThreadPoolExecutor(max_workers=1, thread_name_prefix="insert"),
        )

    @cached_property
    def attempt_reads(self) -> AttemptReads:
        from pushhub.engine.store.dynamodb_attempt_reads import DynamoDBAttemptReads

        return DynamoDBAttemptReads(*self.table(MESSAGES_TABLE), self.settings[CONFIG_TABLE])

    @cached_property
    def schedule(self) -> Schedule:
        from pushhub.engine.store.dynamodb_schedule import DynamoDBSchedule

        return DynamoDBSchedule(*self.table(SCHEDULE_TABLE))

    @cached_property
    def search_index(self) -> SearchIndex:
        from pushhub.engine.store.dynamodb_search import DynamoDBSearchIndex

        return DynamoDBSearchIndex(*self.table(SCHEDULE_TABLE))

    @cached_property
    def catalogue(self) -> Catalogue:
        from pushhub.engine.store.dynamodb_catalogue import DynamoDBCatalogue

        return DynamoDBCatalogue(*self.table(SCHEDULE_TABLE))

    @property
    def shard_runs(self) -> ShardRuns:
        from pushhub.engine.store.lambda_runs import LambdaRuns

        return LambdaRuns(self.clients)

    @cached_property
    def subscribers(self) -> SubscriberStore:
        from pushhub.engine.store.dynamodb_subscribers import DynamoDBSubscribers

        return DynamoDBSubscribers(*self.table(SCHEDULE_TABLE))

    @cached_property
    def token_store(self) -> AccessTokenStore:
        from pushhub.engine.store.dynamodb_tokens import DynamoDBTokens

        return DynamoDBTokens(*self.table(SCHEDULE_TABLE))

    def ends_of(self, protocol: str) -> EndNotes:
        """What is to be told of the ends of certificates and schemes of a protocol's subscribers, in the table of the
        schedule.
        """
        from pushhub.engine.store.dynamodb_ends import DynamoDBEndNotes, of_protocol

        return DynamoDBEndNotes(*self.table(SCHEDULE_TABLE), of_protocol(protocol))

    @cached_property
    def calls(self) -> Waits:
        from pushhub.engine.store.dynamodb_waits import DynamoDBWaits

        return DynamoDBWaits(*self.table(CONFIG_TABLE), kind="CALL", places=MOST_CALLS)

    @cached_property
    def activity(self) -> ActivityStore:
        from pushhub.engine.store.dynamodb_activity import DynamoDBActivity

        return DynamoDBActivity(*self.table(SCHEDULE_TABLE))

    @cached_property
    def bodies(self) -> BodyStore:
        from pushhub.engine.store.s3_bodies import S3BodyStore

        return S3BodyStore(self.clients.of("s3"), self.settings[BODIES_BUCKET])

    @cached_property
    def push_queue(self) -> WorkQueue:
        """First attempts, on SQS."""
        return self._work_queue(PUSH_QUEUE_URL)

    @cached_property
    def retry_queue(self) -> WorkQueue:
        """Later attempts, on SQS."""
        return self._work_queue(RETRY_QUEUE_URL)

    @cached_property
    def slow_queue(self) -> WorkQueue:
        """Attempts at subscribers that are known to be slow, on SQS."""
        return self._work_queue(SLOW_QUEUE_URL)

    @cached_property
    def poll_queue(self) -> WorkQueue:
        """Polls, on SQS."""
        return self._work_queue(POLL_QUEUE_URL)

    @cached_property
    def route_queue(self) -> WorkQueue:
        """Work that the hub does itself, without waiting for anybody, on SQS."""
        return self._work_queue(ROUTE_QUEUE_URL)

    @cached_property
    def errors_queue(self) -> WorkQueue:
        """Deliveries that were given up, on SQS."""
        return self._work_queue(ERRORS_QUEUE_URL)

    def _work_queue(self, setting: EnvironmentSetting[str]) -> WorkQueue:
        from pushhub.engine.store.sqs_work import SqsWorkQueue

        return SqsWorkQueue(self.clients.of("sqs"), self.settings[setting], self.clock)

    @cached_property
    def records(self) -> RecordStore:
        from pushhub.engine.store.s3_records import S3RecordStore

        return S3RecordStore(self.clients.of("s3"), self.settings[RECORDS_BUCKET])

    @cached_property
    def pulses(self) -> PulseStore:
        from pushhub.engine.store.dynamodb_pulses import DynamoDBPulses

        tables = self.settings[PULSED_TABLES]
        return DynamoDBPulses(self.clients.of("dynamodb"), tables, self.clock)

    @cached_property
    def reports(self) -> ReportStore:
        from pushhub.engine.store.s3_reports import S3Reports

        return S3Reports(self.clients.of("s3"), self.settings[RECORDS_BUCKET])

    @cached_property
    def past_records(self) -> PastRecords:
        """Searches delivery records as the setting says; functions that do not have it search nothing."""
        how = self.settings.get(PAST_SEARCH, "off")
        if how == "athena":
            from pushhub.engine.store.athena_past import AthenaPastRecords

            settings = self.settings
            return AthenaPastRecords(
                self.clients.of("athena"), workgroup=settings[PAST_WORKGROUP], database=settings[PAST_DATABASE]
            )
        from pushhub.engine.store.s3_past import NoPastRecords, S3PastRecords

        if how == "off":
            return NoPastRecords()
        return S3PastRecords(self.clients.of("s3"), self.settings[RECORDS_BUCKET], self.clock)

    @cached_property
    def past_searches(self) -> PastSearchStore:
        from pushhub.engine.store.dynamodb_past import DynamoDBPastSearches

        return DynamoDBPastSearches(*self.table(SCHEDULE_TABLE))

    def set_aside(self, text: str) -> None:
        """Stores a whole stream record that cannot be processed in the queue of dispatch failures, for an operator."""
        from pushhub.engine.store.sqs_aside import send_aside

        send_aside(self.clients.of("sqs"), self.settings[DISPATCH_FAILURES_URL], text)

    @property
    def set_aside_queues(self) -> tuple[str, ...]:
        """Queues of dead letters and failures."""
        return self.settings[SET_ASIDE_QUEUES]

    @property
    def crowded_queues(self) -> tuple[str, ...]:
        """Queues whose messages stay in flight for long."""
        return self.settings[CROWDED_QUEUES]

    @property
    def brisk_queues(self) -> tuple[str, ...]:
        """Those that runs empty as soon as they can."""
        return self.settings[BRISK_QUEUES]

    def queue_level(self, queue: str) -> QueueLevel:
        from pushhub.engine.store.sqs_levels import queue_level

        return queue_level(self.clients.of("sqs"), queue)


class Engine:
    """The engine's use cases, each made on first use.

    Attributes:
        protocols: The protocols' contributions; set before the first use case is made.
    """

    def __init__(self, ports: AwsEnginePorts) -> None:
        self.ports = ports
        self.protocols: list[WireProtocol] = []

    @cached_property
    def accept(self) -> Accept:
        from pushhub.engine.acceptance.accept import Accept

        return Accept(self._ids)

    def accept_bodies(self, bodies: BodyStore) -> AcceptBodies:
        """The entry point for messages of a protocol that stores their large bodies there."""
        from pushhub.engine.acceptance.accept import AcceptBodies

        return AcceptBodies(self._ids, bodies=bodies, clock=self.ports.clock)

    @cached_property
    def _ids(self) -> Ids:
        from pushhub.engine.acceptance.accept import Ids

        return Ids(workers=self.ports.config, clock=self.ports.clock)

    @cached_property
    def first_orders(self) -> FirstOrders:
        from pushhub.engine.acceptance.first_orders import FirstOrders

        ports = self.ports
        return FirstOrders(push_queue=lambda: ports.push_queue, clock=ports.clock, telemetry=ports.telemetry)

    @cached_property
    def quotas(self) -> Quotas:
        from pushhub.engine.projects.quotas import Quotas

        ports = self.ports
        return Quotas(
            projects=ports.config,
            marks=ports.config,
            default=lambda: ports.project_quota,
            clock=ports.clock,
            telemetry=ports.telemetry,
        )

    @cached_property
    def change_notes(self) -> ChangeNotes:
        from pushhub.engine.projects.copies import ChangeNotes

        return ChangeNotes(self.ports.config, self.ports.clock)

    @cached_property
    def changes(self) -> Changes:
        """Owners' changes, as this execution environment has heard of them."""
        from pushhub.engine.projects.copies import Changes

        return Changes(self.ports.config, self.ports.clock)

    @cached_property
    def targets(self) -> Targets:
        from pushhub.engine.target import Targets

        return Targets(offer for protocol in self.protocols for offer in protocol.targets)

    @cached_property
    def stranger_calls(self) -> StrangerCalls:
        from pushhub.engine.security.stranger_calls import StrangerCalls

        return StrangerCalls(waits=self.ports.calls, check_url=self.ports.check_url, clock=self.ports.clock)

    @cached_property
    def signing(self) -> Signing:
        from pushhub.engine.security.signing import Signing

        ports = self.ports
        return Signing(vault=lambda: ports.vault, projects=ports.config, clock=ports.clock, notes=ports.ends_of)

    @cached_property
    def external_ids(self) -> ExternalIds:
        from pushhub.engine.security.external_ids import ExternalIds

        return ExternalIds(projects=self.ports.config, account=self.ports.account)

    @cached_property
    def tokens(self) -> AccessTokens:
        from pushhub.engine.security.oauth import AccessTokens

        ports = self.ports
        return AccessTokens(
            store=ports.token_store,
            sender=ports.sender,
            vault=ports.vault,
            clock=ports.clock,
            telemetry=ports.telemetry,
        )

    @cached_property
    def gate_sending(self) -> GateSending:
        from pushhub.engine.security.gate_sending import GateSending

        ports = self.ports
        return GateSending(
            sender=ports.sender,
            tokens=lambda: self.tokens,
            vault=lambda: ports.vault,
            projects=ports.config,
            clock=ports.clock,
        )

    @cached_property
    def gate_settings(self) -> GateSettings:
        from pushhub.engine.security.gates import GateSettings

        ports = self.ports
        return GateSettings(
            vault=lambda: ports.vault,
            projects=ports.config,
            calls=self.stranger_calls,
            within=self.targets.within,
            notes=ports.ends_of,
            clock=ports.clock,
        )

    @cached_property
    def credentials(self) -> Credentials:
        from pushhub.engine.security.credentials import Credentials

        return Credentials(vault=lambda: self.ports.vault, clock=self.ports.clock)

    @cached_property
    def push(self) -> Push:
        """Attempts batches of deliveries, in short runs."""
        return self._push(slow_lane=self._slow_lane)

    @cached_property
    def poll(self) -> Push:
        """Attempts batches of polls, and of deliveries whose attempts may take long."""
        return self._push(slow_lane=self._slow_lane, long=True)

    @cached_property
    def slow(self) -> Push:
        """Attempts batches of deliveries to slow subscribers."""
        return self._push(slow_lane=self._slow_lane, long=True)

    @cached_property
    def _slow_lane(self) -> SlowLane:
        from pushhub.engine.flow.slow_lane import SlowLane

        ports = self.ports
        return SlowLane(
            queue=ports.slow_queue, subscribers=ports.subscribers, clock=ports.clock, telemetry=ports.telemetry
        )

    @cached_property
    def route(self) -> Push:
        """Handles batches of the hub's own work; orders that have to wait do so in the route queue."""
        return self._push(retries=self.ports.route_queue)

    def note_inherited_end(self, note: EndNote) -> None:
        """Note what is to be told of the end of a scheme that receivers of a project inherit, for each protocol."""
        for each in self.protocols:
            if each.end_notes is not None:
                each.end_notes().note_end(note)

    def _internal(self, queue: str) -> bool:
        return any(protocol.internal(queue) for protocol in self.protocols)

    def _long(self, queue: str) -> bool:
        return any(protocol.long(queue) for protocol in self.protocols)

    def _push(self, *, retries: WorkQueue | None = None, slow_lane: SlowLane | None = None, long: bool = False) -> Push:
        """The push use case, in short runs or long ones; its deliveries wait in the retry queue unless another one is
        given.
        """
        from pushhub.engine.attempts.job import LONGEST_ATTEMPT_MS
        from pushhub.engine.flow.delivery_reads import DeliveryReads
        from pushhub.engine.flow.forwarding import NextQueues
        from pushhub.engine.flow.leases import Leases
        from pushhub.engine.flow.push import Push
        from pushhub.engine.model.flow import SHORT_ATTEMPT_MS

        ports = self.ports
        return Push(
            reads=DeliveryReads(messages=ports.messages, together=ports.attempt_reads, changes=self.changes),
            deliver=self._deliver(),
            queues=NextQueues(
                retry=retries or ports.retry_queue,
                poll=ports.poll_queue,
                errors=ports.errors_queue,
                slow_lane=slow_lane,
            ),
            leases=Leases(
                store=ports.subscribers,
                calls=retries or ports.retry_queue,
                clock=ports.clock,
                telemetry=ports.telemetry,
            ),
            clock=ports.clock,
            telemetry=ports.telemetry,
            executor=ports.executor,
            longest_ms=LONGEST_ATTEMPT_MS if long else SHORT_ATTEMPT_MS,
        )

    @cached_property
    def _watchers(self) -> ByQueue[Watcher]:
        from pushhub.engine.protocol import ByQueue

        return ByQueue({each.name: each.watchers for each in self.protocols})

    @cached_property
    def finders(self) -> ByQueue[Finder]:
        """Show messages of internal queues that a search has found."""
        from pushhub.engine.protocol import ByQueue

        return ByQueue({each.name: (each.finder,) for each in self.protocols if each.finder})

    @cached_property
    def own_ids(self) -> ByQueue[OwnIds]:
        """How protocols name the messages of their internal queues."""
        from pushhub.engine.protocol import ByQueue

        return ByQueue({each.name: (each.own_ids,) for each in self.protocols if each.own_ids})

    @cached_property
    def past_searches(self) -> PastSearches:
        from pushhub.engine.records.past import PastSearches

        factories = [each.own_ids for each in self.protocols if each.own_ids]
        ports = self.ports
        return PastSearches(
            records=ports.past_records,
            store=ports.past_searches,
            own_ids=self.own_ids.of,
            all_own_ids=lambda: [make() for make in factories],
            clock=ports.clock,
        )

    @cached_property
    def _subscriber_events(self) -> ByQueue[SubscriberEvents]:
        from pushhub.engine.protocol import ByQueue

        return ByQueue({each.name: (each.subscriber_events,) for each in self.protocols if each.subscriber_events})

    @cached_property
    def circuits(self) -> Circuits:
        """Circuits of subscribers, as seen by this execution environment."""
        from pushhub.engine.attempts.circuits import Circuits

        ports = self.ports
        return Circuits(
            healths=ports.subscribers, events=self._subscriber_events.of, clock=ports.clock, telemetry=ports.telemetry
        )

    @cached_property
    def healths(self) -> SubscriberHealths:
        """How subscribers are doing."""
        from pushhub.engine.projects.suspension import is_suspended
        from pushhub.engine.waiting.health import SubscriberHealths

        ports = self.ports
        return SubscriberHealths(
            subscribers=lambda: ports.subscribers,
            tokens=lambda: ports.token_store,
            deliveries=ports.messages,
            activity=lambda: ports.activity,
            is_suspended=lambda project_id: is_suspended(ports.config, project_id),
            executor=ports.executor,
            clock=ports.clock,
        )

    @cached_property
    def wake_ups(self) -> WakeUps:
        from pushhub.engine.flow.wake_ups import WakeUps

        ports = self.ports
        return WakeUps(
            backlogs=ports.subscribers, queue=ports.retry_queue, clock=ports.clock, telemetry=ports.telemetry
        )

    @cached_property
    def pulses(self) -> SendPulses:
        from pushhub.engine.records.pulses import SendPulses

        return SendPulses(store=self.ports.pulses, clock=self.ports.clock, telemetry=self.ports.telemetry)

    @cached_property
    def recover(self) -> Recover:
        from pushhub.engine.attempts.circuits import Recover
        from pushhub.engine.projects.suspension import is_suspended

        ports = self.ports
        return Recover(
            queues=ports.config,
            is_suspended=lambda project_id: is_suspended(ports.config, project_id),
            healths=ports.subscribers,
            backlog=ports.subscribers,
            retry_queue=ports.retry_queue,
            clock=ports.clock,
            telemetry=ports.telemetry,
            executor=ports.executor,
        )

    def _deliver(self) -> Deliver:
        from pushhub.engine.attempts.admission import Admission
        from pushhub.engine.attempts.deliver import Deliver, Requests
        from pushhub.engine.attempts.delivery_news import DeliveryNews
        from pushhub.engine.attempts.in_order import InOrder
        from pushhub.engine.projects.copies import CopiedProjects, CopiedQueues
        from pushhub.engine.protocol import AllQueues

        ports = self.ports
        clock, telemetry = ports.clock, ports.telemetry
        owners = CopiedQueues(ports.config, self.changes, clock)
        projects = CopiedProjects(ports.config, ports.config, self.changes, clock)
        in_order = InOrder(
            messages=ports.messages, successors=ports.subscribers, next_queue=ports.retry_queue, telemetry=telemetry
        )
        return Deliver(
            queues=AllQueues(owners=owners, protocols=self.protocols),
            messages=ports.messages,
            requests=Requests(targets=self.targets, credentials=self.credentials, bodies=ports.bodies),
            admission=Admission(
                circuits=self.circuits,
                backlog=ports.subscribers,
                projects=projects,
                internal=self._internal,
                in_order=in_order,
                clock=clock,
                telemetry=telemetry,
            ),
            news=DeliveryNews(
                watchers=self._watchers.of,
                subscriber_events=self._subscriber_events.of,
                in_order=in_order,
                telemetry=telemetry,
                tells_first_successes=ports.tells_first_successes,
            ),
            projects=projects,
            clock=clock,
            telemetry=telemetry,
        )

    @cached_property
    def dispatch(self) -> Dispatch:
        from pushhub.engine.acceptance.dispatch import Dispatch

        ports = self.ports
        return Dispatch(
            totals=ports.config,
            deliveries=ports.messages,
            queues=self._queues_with(ports.push_queue),
            executor=ports.executor,
            clock=ports.clock,
            telemetry=ports.telemetry,
        )

    @cached_property
    def _order_queues(self) -> OrderQueues:
        return self._queues_with(self.ports.retry_queue)

    def _queues_with(self, usual: WorkQueue) -> OrderQueues:
        from pushhub.engine.acceptance.order_queues import OrderQueues

        ports = self.ports
        return OrderQueues(
            usual=usual, poll=ports.poll_queue, route=ports.route_queue, internal=self._internal, long=self._long
        )

    @cached_property
    def wake(self) -> Wake:
        from pushhub.engine.waiting.wake import Wake

        ports = self.ports
        return Wake(
            schedule=ports.schedule,
            runs=ports.shard_runs,
            queues=self._order_queues,
            clock=ports.clock,
            telemetry=ports.telemetry,
            executor=ports.executor,
        )

    @cached_property
    def queue_levels(self) -> LookAtQueues:
        from pushhub.engine.flow.queue_levels import LookAtQueues

        ports = self.ports
        return LookAtQueues(
            level=ports.queue_level,
            set_aside=ports.set_aside_queues,
            crowded=ports.crowded_queues,
            brisk=ports.brisk_queues,
            clock=ports.clock,
            telemetry=ports.telemetry,
        )

    @cached_property
    def resend(self) -> Resend:
        from pushhub.engine.attempts.resend import Resend

        return Resend(deliveries=self.ports.messages, retry_queue=self.ports.retry_queue, clock=self.ports.clock)

    @cached_property
    def sweep(self) -> Sweep:
        from pushhub.engine.waiting.sweep import Sweep

        ports = self.ports
        return Sweep(
            messages=ports.messages,
            schedule=ports.schedule,
            subscribers=ports.subscribers,
            push_queue=ports.push_queue,
            queues=self._order_queues,
            clock=ports.clock,
            telemetry=ports.telemetry,
        )

    @cached_property
    def nights(self) -> Nights | None:
        """Decides whether a night needs the delivery report; None where nothing starts it."""
        ports = self.ports
        job = ports.settings[REPORT_JOB]
        if not job:
            return None
        from pushhub.engine.records.nights import Nights
        from pushhub.engine.store.aws_nights import AwsNights, GlueRuns

        bucket, tables = ports.settings[RECORDS_BUCKET], ports.settings[PULSED_TABLES]
        store = AwsNights(ports.clients, bucket, tables, clock=ports.clock, executor=ports.executor)
        runs = GlueRuns(ports.clients, job)
        return Nights(store=store, runs=runs, clock=ports.clock, telemetry=ports.telemetry)

    def records(self, table: str) -> Records:
        """Writes delivery records of the changes in a table, either a protocol's or the engine's own."""
        if table not in self._records:
            self._records[table] = self._records_of(table)
        return self._records[table]

    def cataloguer(self, table: str) -> Cataloguer:
        """Enters what was accepted into a table, either a protocol's or the engine's own, into the catalogue."""
        from pushhub.engine.records.catalogue import Cataloguer
        from pushhub.engine.store.dynamodb_changes import accepted_in, is_restored

        readers = {name: read for protocol in self.protocols for name, read in protocol.accepted_readers().items()}
        own = readers.get(table, accepted_in)

        def read(stream_record: Mapping[str, Any]) -> Sequence[Accepted]:
            return () if is_restored(stream_record) else own(stream_record)

        return Cataloguer(read=read, catalogue=lambda: self.ports.catalogue, telemetry=self.ports.telemetry)

    @cached_property
    def _records(self) -> dict[str, Records]:
        return {}

    def _records_of(self, table: str) -> Records:
        from pushhub.engine.records.records import Records
        from pushhub.engine.store.dynamodb_changes import is_restored, record_of_change
        from pushhub.engine.store.dynamodb_pulses import pulses_of_change

        readers = {name: read for protocol in self.protocols for name, read in protocol.change_readers().items()}
        own = readers.get(table, record_of_change)

        def read(stream_record: Mapping[str, Any]) -> DeliveryRecord | Sequence[DeliveryRecord | Pulse] | None:
            if is_restored(stream_record):
                return None
            pulses = pulses_of_change(stream_record, table)
            return own(stream_record) if pulses is None else pulses

        return Records(
            read=read,
            store=self.ports.records,
            activity=self.ports.activity,
            internal=lambda queue: self._internal(queue) or any(each.uncounted(queue) for each in self.protocols),
            telemetry=self.ports.telemetry,
            listeners=[make() for protocol in self.protocols for make in protocol.record_listeners],
        )
