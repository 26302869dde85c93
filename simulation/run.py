"""One run: an account, its weather, a world, some hours of traffic; then everything comes to an end, and the promises
are checked.
"""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any

from simulation.account import Account
from simulation.conservation import judged
from simulation.deployed import deployed
from simulation.lost import Lost
from simulation.promises.judgement import Violation
from simulation.receivers import Receiver
from simulation.record_fields import described, placed, stored
from simulation.recorded import as_told, compared
from simulation.scheduler import SECOND
from simulation.strikes import Chosen, Strike
from simulation.template import stack, template
from simulation.truth import Truth
from simulation.weather import HOUR, Storm, Weather, chosen, forecast
from simulation.worlds.egress import EgressWorld
from simulation.worlds.gates import GatesWorld
from simulation.worlds.hub import HubWorld
from simulation.worlds.ironmq import IronMqWorld
from simulation.worlds.notifications import NotificationsWorld
from simulation.worlds.policies import PoliciesWorld
from simulation.worlds.pull import PullWorld
from simulation.worlds.sinks import SinksWorld
from simulation.worlds.small import SMALL
from simulation.worlds.tenants import TenantsWorld
from simulation.worlds.webhooks import WebhooksWorld
from simulation.worlds.world import World

WORLDS: dict[str, type[World]] = {
    each.name: each
    for each in (
        *(IronMqWorld, PullWorld, PoliciesWorld, HubWorld, NotificationsWorld, WebhooksWorld, TenantsWorld),
        *(GatesWorld, SinksWorld, EgressWorld),
    )
}
"""Worlds with weather, by name."""

SMALL_WORLDS: dict[str, type[World]] = {each.name: each for each in SMALL}
"""Worlds whose calls are struck one by one, by name."""

SETTLES_WITHIN = 40
"""Hours after the last storm within which everything ends: the longest retries, and a day of sweeping."""

LONGEST_EXPIRY = 8 * 24
"""Hours until the last message expires, if nothing else ends it."""

LONGEST_TALK = 1_000
"""Hours that a talk lasts at most: some wait for what ends after weeks."""

LONGEST_RECORDING = 30
"""Minutes after a talk within which all is recorded, if nothing goes on any more."""

PURGEABLE = ("PushQueue", "RetryQueue", "SlowQueue", "PollQueue", "RouteQueue")


@dataclass(frozen=True)
class Plan:
    """What to run.

    Attributes:
        seed: Decides everything.
        world: Name of the world.
        hours: How long there are posts and storms.
        rate: Posts per hour of each producer.
        only: Names of the storms and producers that take part; None for all.
        calm: Whether nothing goes wrong but what endpoints and owners do.
        talk: Whether the documents are talked through at the end.
        strike: What happens to one call, chosen by its number; calls are numbered from the beginning of the traffic.
        past: Whether each read that is not consistent, and each index, shows what was up to a second ago, which AWS
            always may; of every other seed unless it is given.
    """

    seed: int
    world: str = "ironmq"
    hours: float = 6.0
    rate: float = 12.0
    only: frozenset[str] | None = None
    calm: bool = False
    talk: bool = True
    strike: Strike | None = None
    past: bool | None = None

    @property
    def reads_the_past(self) -> bool:
        """See :attr:`past`."""
        return self.seed % 2 == 0 if self.past is None else self.past

    def takes(self, name: str) -> bool:
        """Whether a storm or a producer takes part."""
        return self.only is None or name in self.only


@dataclass
class Result:
    """What came of a run.

    Attributes:
        plan: Its plan.
        violations: Promises that were not kept.
        fingerprint: The same for every run of the same plan.
        parts: Names of the storms and producers that took part.
        storms: Those storms.
        simulated_hours: Its length in virtual time.
        seconds: Its length in real time.
        figures: Counts of what happened.
        lines: The trace, if it was kept.
    """

    plan: Plan
    violations: list[Violation]
    fingerprint: str
    parts: list[str]
    storms: list[Storm]
    simulated_hours: float
    seconds: float
    figures: Counter[str] = field(default_factory=Counter)
    lines: list[tuple[int, str]] = field(default_factory=list)

    def about(self, violation: Violation) -> list[tuple[int, str]]:
        """The lines of the trace that matter for a violation: those that name its subject, and the failures of whatever
        they name.
        """
        naming = [(at, line) for at, line in self.lines if violation.about in line]
        who = {line.split(" ", 1)[0] for _, line in naming}
        wrong = (" dies", " refused", " unanswered", " repeated", " runs out", " raises", "storm", "purged")
        return [
            (at, line)
            for at, line in self.lines
            if violation.about in line
            or (any(each in line for each in wrong) and (line.startswith("storm") or line.split(" ", 1)[0] in who))
        ]


@dataclass(frozen=True)
class Scene:
    """A world in which everything has ended, and who watched.

    Attributes:
        account: The account.
        world: The world.
        truth: What was written.
        lost: What the sweeper found.
        storms: The storms that took part.
        actors: Who took part.
    """

    account: Account
    world: World
    truth: Truth
    lost: Lost
    storms: list[Storm]
    actors: list[str]

    def broken(self) -> list[Violation]:
        """Every promise that was not kept."""
        records = [*self.truth.records()]
        violations = [*self.world.check(), *self.world.talked.violations, *_conservation(self.truth, records)]
        # Receivers on AWS get bytes of its protocols around what is sent.
        plain = (each for each in self.account.endpoints.known.values() if not isinstance(each, Receiver))
        violations += compared(records, (request for each in plain for request in each.log))
        violations += [*described(records), *stored(records, self.truth.deliveries), *placed(self.account.s3.objects)]
        violations += as_told(records, self.world.recorded_as)
        violations += self.world.check_records(records)
        violations += self.world.held_up()
        return [*violations, *_queues(self.account), *self.lost.violations(), *_numbers()]


@cache
def _numbers() -> Sequence[Violation]:
    """What is deployed otherwise than promised; the same in each run."""
    return [*deployed(template())]


@contextmanager
def played(
    plan: Plan, *, keep_lines: bool = False, progress: Callable[[str], None] = lambda _: None
) -> Iterator[Scene]:
    """A plan's hours of traffic and faults, and the good weather that follows; nothing is judged."""
    seed = f"{plan.world}/{plan.seed}"
    functions = [each.name for each in stack().functions]
    storms = [] if plan.calm else forecast(seed, plan.hours, functions, PURGEABLE)
    storms = [each for each in storms if plan.takes(each.name)]
    # In small worlds as by default, without; the calls of others are not counted.
    trail = {} if plan.world in SMALL_WORLDS else {"AuditTrail": "true"}
    deployed = stack(**{**chosen(storms), **trail})
    weather = Weather((), seed)
    account = Account(seed, deployed, weather, reads_the_past=plan.reads_the_past)
    if keep_lines:
        account.scheduler.lines = []
    truth, lost = Truth(account), Lost(account)
    account.queues[GIVEN_UP].passed = Counter()
    world = (WORLDS | SMALL_WORLDS)[plan.world](account, truth, plan.hours, plan.rate)
    with account.installed():
        world.set_up()
        account.begin_schedules()
        account.weather = _shifted(storms, account.scheduler.now, seed)
        for storm in account.weather.storms:
            _announce(account, storm)
        if plan.world in SMALL_WORLDS:
            # Of other worlds no call is struck by its number, and who made each of a million is not noted.
            account.chosen = Chosen(account, plan.strike)
        actors = [each for each in world.actors() if plan.takes(each)]
        world.begin(actors)
        start = account.scheduler.now
        for hour in range(1, math.ceil(plan.hours) + 1):
            account.scheduler.run(start + round(min(hour, plan.hours) * HOUR))
            progress(
                f"hour {hour}: {account.calls} calls, {sum(account.weather.struck.values())} faults, "
                f"{world.open()} open"
            )
        _settle(account, world, progress)
        yield Scene(account, world, truth, lost, storms, actors)


def simulate(plan: Plan, *, keep_lines: bool = False, progress: Callable[[str], None] = lambda _: None) -> Result:
    """Run a plan.

    Args:
        plan: What to run.
        keep_lines: Whether the trace is kept.
        progress: Told now and then how far it is.
    """
    began = time.perf_counter()
    with played(plan, keep_lines=keep_lines, progress=progress) as scene:
        account, world = scene.account, scene.world
        if plan.talk:
            _talk(account, world)
        violations = scene.broken()
        figures = _figures(account, scene.truth)
        figures["judged"] = world.judgement.judged + world.recorded.judged
        figures["judged in talks"] = world.talked.judged
        figures.update({f"gates {name}": count for name, count in world.happened.items()})
        for judgement in (world.judgement, world.recorded):
            for name, count in judgement.excused.items():
                figures[f"excused {name}"] += count
        fingerprint = account.scheduler.fingerprint
        hours = account.scheduler.now / HOUR
    return Result(
        plan=plan,
        violations=violations,
        fingerprint=fingerprint,
        parts=[*(each.name for each in scene.storms), *scene.actors],
        storms=scene.storms,
        simulated_hours=hours,
        seconds=time.perf_counter() - began,
        figures=figures,
        lines=account.scheduler.lines or [],
    )


def _shifted(storms: Sequence[Storm], start: int, seed: str) -> Weather:
    moved = [
        Storm(each.name, each.kind, each.where, each.begins + start, each.ends + start, each.rate) for each in storms
    ]
    return Weather(moved, seed)


def _announce(account: Account, storm: Storm) -> None:
    account.scheduler.at(storm.begins, lambda: account.note(f"storm begins: {storm}"))
    if storm.kind == "purged":
        account.scheduler.at(storm.begins, lambda: account.purge(storm.where))


def _settle(account: Account, world: World, progress: Callable[[str], None]) -> None:
    """Continue in good weather until everything has ended and its records are written."""
    waited = 0
    while True:
        while waited < LONGEST_EXPIRY + SETTLES_WITHIN and (world.open() or account.undelivered_records):
            account.scheduler.run(account.scheduler.now + HOUR)
            waited += 1
            if waited % 24 == 0:
                progress(f"{waited} hours of good weather: {world.open()} open")
        # For late duplicates, errors on their way to their queues, and records of the last minute.
        account.scheduler.run(account.scheduler.now + HOUR)
        waited += 1
        # Whoever had no answer in the storms may have posted only now.
        if waited >= LONGEST_EXPIRY + SETTLES_WITHIN or not world.open():
            return


def _talk(account: Account, world: World) -> None:
    """Somebody talks to the hub, in good weather; then the records of that are written.

    A function may be broken for longer than anything is open. And no environment of before is left, whose clock may be
    off, as one that is never idle lasts.
    """
    account.scheduler.run(max(account.scheduler.now, account.weather.over))
    for function in account.functions.values():
        function.renew()
    done: list[bool] = []

    def talk() -> None:
        world.talk()
        done.append(True)

    account.scheduler.spawn(talk)
    for _ in range(LONGEST_TALK):
        account.scheduler.run(account.scheduler.now + HOUR)
        if done:
            _record(account)
            return
    world.talked.fact(False, "a talk without an end", world.name, f"in {LONGEST_TALK} hours")


def _record(account: Account) -> None:
    """Wait until what was done last is recorded, as far as that ends."""
    for _ in range(LONGEST_RECORDING):
        account.scheduler.run(account.scheduler.now + 60 * SECOND)
        if not account.undelivered_records:
            return


def _conservation(truth: Truth, records: Sequence[dict[str, Any]]) -> list[Violation]:
    standing, violations = judged(records)
    violations += [Violation("quarantined", "records", each) for each in truth.quarantined()]
    by_delivery: dict[str, list[str]] = {}
    for (_, delivery), state in standing.items():
        by_delivery.setdefault(delivery, []).append(state)
    for (message_id, subscriber_id), history in truth.deliveries.items():
        found = by_delivery.get(f"{message_id}.{subscriber_id}", [])
        if history[-1].state not in found:
            violations.append(
                Violation("records differ", message_id, f"records say {found}, stored {history[-1].state}")
            )
    # A stay in a pull queue has a number of its own after the message's id (docs/decisions/pull-queues.md).
    recorded = {(uid, delivery.partition(".")[0].partition("~")[0]) for uid, delivery in standing}
    for (uid, message_id), accepted in truth.accepted.items():
        owes = accepted.pull or accepted.message.delivery_subscribers
        if owes and (uid, message_id) not in recorded:
            violations.append(Violation("acceptance not recorded", message_id, accepted.message.queue))
    return violations


TROUBLED_WITHIN = 120 * SECOND
"""An environment that had a call fail within this time (microseconds) may keep orders in flight until it knows the
outcome.
"""

GIVEN_UP, MOST_GIVEN_UP = "ErrorsQueue", 20
"""Where orders for what was given up go, and how often those of one message do at most, beside those that SQS handed
out once more: each copy of an order lives as long as its delivery, and finds it given up for itself.
"""

WORKERS = {"PushQueue": "push", "RetryQueue": "push", "RouteQueue": "push", "SlowQueue": "poll", "PollQueue": "poll"}
"""The function that works on each queue."""


def _queues(account: Account) -> list[Violation]:
    """Violations seen by the queues: orders that wore out, came back too early, were in flight for too long, or were
    too many.
    """
    violations = [
        Violation("a fault of the hub's own", name, f"{count} times")
        for name, count in account.telemetry.counts.items()
        if name.endswith("Faults")
    ]
    violations += [
        Violation("refused by its role", role.function, f"{action} on {resource}, {count} times")
        for role in account.roles.values()
        for (action, resource), count in Counter((each.action, each.resource) for each in role.refused).items()
    ]
    violations += [
        Violation("a chain that Lambda ended", _message_in(text), function) for function, text in account.chains_ended
    ]
    violations += [Violation("an answer without its header", "HTTP", each) for each in account.bare]
    copied = sum((each.copied for each in account.queues.values()), Counter())
    for message_id, count in (account.queues[GIVEN_UP].passed or {}).items():
        if count > MOST_GIVEN_UP + copied[message_id]:
            violations.append(Violation("given up again and again", message_id, f"{count} times"))
    for queue in account.queues.values():
        for each in queue.worn_out:
            detail = f"{queue.name}: {each.receives} receives, {each.failed_runs} of them failed"
            violations.append(Violation("dead letter without a fault", _message_in(each.body), detail))
        for each in queue.hasty.values():
            detail = f"{queue.name}: {each.hasty} times within seconds"
            violations.append(Violation("handed out in vain", _message_in(each.body), detail))
        if queue.stopped:
            detail = f"{queue.most_seen} were, and {queue.stopped} times nothing was handed out"
            violations.append(Violation("too many in flight", queue.name, detail))
        for at_ms, seconds, body in queue.long:
            at, worker = account.moment(at_ms), WORKERS.get(queue.name)
            if worker is not None and not account.troubled(worker, at - TROUBLED_WITHIN, at):
                detail = f"{queue.name}: {seconds} s at {at / SECOND:.1f} s"
                violations.append(Violation("a long wait in flight", _message_in(body), detail))
        for at_ms, hidden_ms, body in queue.abandoned:
            at, worker = account.moment(at_ms), WORKERS.get(queue.name)
            # Calls that fail keep a run from hiding its messages again in time.
            if worker is not None and not account.troubled(worker, at - TROUBLED_WITHIN, at, alive=True):
                detail = f"{queue.name}: hidden for {hidden_ms / 1000:.0f} s more at {at / SECOND:.1f} s"
                violations.append(Violation("what a dead run had in hand", _message_in(body), detail))
    return violations


def _message_in(body: str) -> str:
    """The message that an order is about."""
    found = re.search(r"\b[0-9]{19}\b", body)
    return found.group() if found else body


def _figures(account: Account, truth: Truth) -> Counter[str]:
    figures: Counter[str] = Counter()
    figures["service calls"] = account.calls
    figures["messages"] = len(truth.accepted)
    figures["deliveries"] = len(truth.deliveries)
    for history in truth.deliveries.values():
        figures[f"ended {history[-1].state}"] += 1
        states = [each.state for each in history]
        for before, after in pairwise(["accepted", *states]):
            figures[f"step {before} to {after}"] += 1
    for changes in truth.circuits.values():
        for before, after in pairwise(["closed", *(each.state.value for _, each in changes)]):
            if before != after:
                figures[f"circuit {before} to {after}"] += 1
    for kind, count in account.weather.struck.items():
        figures[f"fault {kind}"] += count
    busiest = {f"most to one key in a second: {name}": math.ceil(pace.most) for name, pace in account.paces()}
    figures["refused by a hot key"] = sum(table.refused for table in account.dynamodb.tables.values())
    figures.update({name: most for name, most in busiest.items() if most})
    for name, count in account.telemetry.counts.items():
        figures[f"hub {name}"] += count
    for queue in account.queues.values():
        if queue.most_seen:
            figures[f"most in flight {queue.name}"] = queue.most_seen
        if queue.stopped:
            figures[f"stopped {queue.name}"] = queue.stopped
        if queue.early:
            figures[f"early {queue.name}"] = queue.early
        if len(queue):
            figures[f"left in {queue.name}"] = len(queue)
    return figures
