"""The outside of a whole hub, in memory: every port of the engine and of all protocols."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Executor, Future
from typing import Any, cast

from tests.fakes.activity import FakeActivity, FakeReports
from tests.fakes.alerts import FakeAlertLevels, FakeAlerts
from tests.fakes.attempt_reads import FakeAttemptReads
from tests.fakes.body_store import FakeBodyStore
from tests.fakes.catalogue import FakeCatalogue
from tests.fakes.clock import FakeClock
from tests.fakes.config_store import FakeConfigStore
from tests.fakes.credentials import FakeVault
from tests.fakes.descendants import FakeDescendants
from tests.fakes.faults import Crash, FaultPlan, faulty
from tests.fakes.hub import FakeHubLog, FakeHubSettings
from tests.fakes.message_store import FakeMessageStore
from tests.fakes.notification_stores import (
    FakeBacklogStore,
    FakeConnectionStore,
    FakeRequestStore,
    FakeSubscriptionStore,
    FakeTopicStore,
)
from tests.fakes.past import FakePastRecords, FakePastSearches
from tests.fakes.pull_store import FakePullStore
from tests.fakes.roles import FakeRoles
from tests.fakes.schedule import FakeSchedule, FakeShardRuns
from tests.fakes.scripts import FakeScripts
from tests.fakes.search import FakeSearchIndex
from tests.fakes.sender import FakeSender
from tests.fakes.sockets import FakeSockets
from tests.fakes.subscribers import FakeSubscribers
from tests.fakes.telemetry import FakeTelemetry
from tests.fakes.tokens import FakeEndNotes, FakeTokens
from tests.fakes.waits import FakeWaits
from tests.fakes.wake_queue import FakeWakeQueue
from tests.fakes.webhook_tasks import (
    FakeAppIntegrations,
    FakeAutoconfigs,
    FakeConnectors,
    FakeOperationalCounts,
    FakePlaces,
    FakePortalFrames,
    FakePortalTokens,
    FakeTaskRuns,
    FakeTasks,
)
from tests.fakes.webhooks import (
    FakeArrivalCounts,
    FakeConsumers,
    FakeIdempotencyKeys,
    FakeReaders,
    FakeWebhooksLogs,
    FakeWebhooksSettings,
)
from tests.fakes.work_queue import FakeWorkQueue

from pushhub.base.errors import Unavailable
from pushhub.base.ports import Sender
from pushhub.engine.flow.ports import QueueLevel
from pushhub.engine.model.message import DESCENDANTS
from pushhub.engine.wiring import AwsEnginePorts
from pushhub.notifications.log import Retention
from pushhub.notifications.model.backlog import WINDOW
from pushhub.runtime.hub import Pushhub, build

BASE_URL = "https://hub.example"

STRUCK = {
    "config": "config",
    "messages": "messages",
    "pull": "pull",
    "subscribers": "subscribers",
    "token_store": "tokens",
    "schedule": "schedule",
    "search_index": "search_index",
    "catalogue": "catalogue",
    "alerts": "alerts",
    "alert_levels": "alert_levels",
    "bodies": "bodies",
    "kept_bodies": "bodies",
    "push_queue": "push_queue",
    "retry_queue": "retry_queue",
    "slow_queue": "slow_queue",
    "errors_queue": "errors_queue",
    "poll_queue": "poll_queue",
    "route_queue": "route_queue",
    "settings": "settings",
    "schedulers": "settings",
    "log": "log",
    "descendants": "descendants",
    "topics": "topics",
    "backlogs": "backlogs",
    "connections": "connections",
    "sockets": "sockets",
    "wakes": "queue",
    "requests": "requests",
    "applications": "applications",
    "idempotency_keys": "idempotency_keys",
    "message_log": "message_log",
    "readers": "readers",
    "consumers": "consumers",
}
"""Ports that faults can strike, and their names in a plan."""


class _Ended(Future[Any]):
    """What has ended already: nobody waits for it, so it has no lock, which took a twelfth of all CPU."""

    def __init__(self, value: Any, error: Exception | None) -> None:
        self._value, self._error = value, error

    def done(self) -> bool:
        return True

    def cancel(self) -> bool:
        return False

    def result(self, timeout: float | None = None) -> Any:
        if self._error is not None:
            raise self._error
        return self._value

    def exception(self, timeout: float | None = None) -> Exception | None:
        return self._error

    def add_done_callback(self, fn: Callable[[Future[Any]], object]) -> None:
        fn(self)


class InlineExecutor(Executor):
    """Runs each call at once, on the caller's thread, so that tests are deterministic."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        try:
            return _Ended(fn(*args, **kwargs), None)
        except Crash:
            raise
        except Exception as error:  # noqa: BLE001 (a future carries it)
            return _Ended(None, error)


class FakePulses:
    """Implements :class:`pushhub.engine.records.ports.PulseStore`.

    Attributes:
        sent: The times that pulses stood for, one for each call.
        failing: Whether the next calls fail.
    """

    def __init__(self) -> None:
        self.sent: list[int] = []
        self.failing = False

    def send(self, at: int) -> None:
        if self.failing:
            raise Unavailable("dynamodb:PutItem", "Throttled")
        self.sent.append(at)


class FakePorts:
    """All ports of the hub. Tests replace what they want to be different before they build the hub.

    Args:
        config: A configuration store other than the plain fake.
        clock: A clock other than one that stands still.
    """

    pull_table = "lines"
    backlogs_table = "backlogs"

    def __init__(self, config: FakeConfigStore | None = None, clock: FakeClock | None = None) -> None:
        self.clock = clock or FakeClock()
        self.telemetry = FakeTelemetry()
        self.sender: Sender = FakeSender(self.clock)
        self.executor: Executor = InlineExecutor()
        self.base_url = BASE_URL
        # The emulator's address of an API is none that anybody can call.
        self.own_addresses = (BASE_URL, "http://feed0001.execute-api.127.0.0.1:4577", "https://api.example")
        self.queue_descendants = DESCENDANTS
        self.account = "999999999999"
        self.own_roles: tuple[str, ...] = ()
        self.roles = FakeRoles(self.clock)
        self.assume_role = self.roles
        self.project_quota = 0
        self.tells_first_successes = True
        self.check_url: Callable[[str, Sequence[str]], str | None] = lambda url, allowed: None
        self.config = config or FakeConfigStore(self.clock)
        self.schedule = FakeSchedule(self.clock)
        self.shard_runs = FakeShardRuns()
        self.search_index = FakeSearchIndex()
        self.catalogue = FakeCatalogue()
        self.past_records = FakePastRecords()
        self.past_searches = FakePastSearches()
        self.pulses = FakePulses()
        self.messages = FakeMessageStore(self.schedule)
        self.pull = FakePullStore()
        self.subscribers = FakeSubscribers()
        self.token_store = FakeTokens()
        self.activity = FakeActivity()
        self.alerts = FakeAlerts()
        self.alert_levels = FakeAlertLevels()
        self.reports = FakeReports()
        self.waits = FakeWaits()
        self.calls = FakeWaits(8)
        self.bodies = FakeBodyStore()
        self.kept_bodies = self.bodies
        self.push_queue = FakeWorkQueue(self.clock, name="push", max_receive_count=20)
        self.retry_queue = FakeWorkQueue(self.clock, name="retry", max_receive_count=100)
        self.slow_queue = FakeWorkQueue(self.clock, name="slow", max_receive_count=100)
        self.errors_queue = FakeWorkQueue(self.clock, name="errors", max_receive_count=100)
        self.poll_queue = FakeWorkQueue(self.clock, name="poll", max_receive_count=100)
        self.route_queue = FakeWorkQueue(self.clock, name="route", max_receive_count=100)
        self.put_aside: list[str] = []
        self.set_aside: Callable[[str], None] = self.put_aside.append
        self.set_aside_queues: tuple[str, ...] = ("https://sqs/hub-PushDeadLetters", "https://sqs/hub-DispatchFailures")
        self.crowded_queues: tuple[str, ...] = ("https://sqs/hub-RetryQueue",)
        self.brisk_queues: tuple[str, ...] = ("https://sqs/hub-PushQueue",)
        self.levels: dict[str, QueueLevel] = {}
        self.queue_level: Callable[[str], QueueLevel] = lambda each: self.levels.get(each, QueueLevel(0, 0))
        self.settings = self.schedulers = FakeHubSettings()
        self.log = FakeHubLog()
        self.descendants = FakeDescendants()
        self.requests = FakeRequestStore()
        self.topics = FakeTopicStore(self.requests)
        self.backlogs = FakeBacklogStore()
        self.connections = FakeConnectionStore()
        self.subscriptions = FakeSubscriptionStore()
        self.sockets = FakeSockets(self.clock)
        self.wakes = FakeWakeQueue(self.clock)
        self.retention = Retention()
        self.window = WINDOW
        self.applications = FakeWebhooksSettings()
        self.idempotency_keys = FakeIdempotencyKeys()
        self.vault = FakeVault()
        self.portal_tokens = FakePortalTokens()
        self.integration_store = FakeAppIntegrations()
        self.autoconfig_store = FakeAutoconfigs()
        self.connector_store = FakeConnectors()
        self.portal_frames = FakePortalFrames()
        self.task_store = FakeTasks()
        self.task_runs = FakeTaskRuns()
        self.operational_counts = FakeOperationalCounts()
        self.scripts = FakeScripts()
        self.arrival_counts = FakeArrivalCounts()
        self.places = FakePlaces()
        self.readers = FakeReaders()
        self.consumers = FakeConsumers()
        self.end_notes = FakeEndNotes()
        self.scheme_end_notes = FakeEndNotes()
        self.end_notes_of: dict[str, FakeEndNotes] = {}
        self.message_log = FakeWebhooksLogs()
        self.idempotency_ms = 12 * 3_600_000

    @property
    def sign(self) -> Any:
        """The SDK's own signer: it asks nobody."""
        from pushhub.sinks.store.signature_v4 import sign  # noqa: PLC0415 (few tests sign)

        return sign

    def ends_of(self, protocol: str) -> FakeEndNotes:
        """Ends of certificates of a protocol's subscribers."""
        return self.end_notes_of.setdefault(protocol, FakeEndNotes())

    @property
    def attempt_reads(self) -> FakeAttemptReads:
        """What strikes one of them strikes this."""
        return FakeAttemptReads(self.messages, self.config)

    @property
    def endpoints(self) -> FakeWebhooksSettings:
        """Endpoints."""
        return self.applications

    @property
    def event_types(self) -> FakeWebhooksSettings:
        """Event types."""
        return self.applications

    @property
    def attempt_log(self) -> FakeWebhooksLogs:
        """Attempts."""
        return self.message_log

    @property
    def webhook_bodies(self) -> FakeBodyStore:
        """Large bodies."""
        return self.bodies

    @property
    def keys(self) -> FakePorts:
        """Signing keys."""
        return self

    def secrets(self) -> Sequence[bytes]:
        """One key."""
        return [b"s" * 32]

    def signing(self) -> Sequence[bytes]:
        """The same one."""
        return self.secrets()

    @property
    def records(self) -> Any:
        """No test of a whole hub writes records yet."""
        raise NotImplementedError

    def build(self, plan: FaultPlan | None = None, *, only: Collection[str] = STRUCK) -> Pushhub:
        """The whole hub on these ports, freshly started.

        Args:
            plan: Which call goes wrong.
            only: Ports that the plan applies to.
        """
        struck = copy.copy(self)
        for port in only if plan else ():
            setattr(struck, port, faulty(getattr(self, port), STRUCK[port], plan or FaultPlan()))
        return build(cast(AwsEnginePorts, struck), lambda _: struck)
