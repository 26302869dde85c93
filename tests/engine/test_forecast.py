"""The policy simulator: its figures follow from the hub's own rules, every message is counted once,
and its work is bounded.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest
from glue_jobs.delivery_report.list_prices import PRICES as REPORT_PRICES
from glue_jobs.delivery_report.usage import USAGE
from hypothesis import given, settings, target
from hypothesis import strategies as st
from tests.engine.world import World, subscribers
from tests.fakes.effort import effort

from pushhub.base.errors import Invalid
from pushhub.engine.forecast import forecast
from pushhub.engine.model import cost
from pushhub.engine.model.answer_rules import NO_RULES, STANDARD_RULES
from pushhub.engine.model.backoff import SCHEDULES, Exponential, FixedDelay, RetryPolicy, Schedule
from pushhub.engine.model.circuit import Circuit
from pushhub.engine.model.delivery import Delivery, after_attempt
from pushhub.engine.model.forecast import Forecast, PerMinute, Plan, percentiles
from pushhub.engine.model.outage import Endpoint, Trouble, Window

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
CIRCUIT = Circuit(failures=20)


def outage(trouble: Trouble = Trouble.TIMES_OUT, *, begins: int = 0, ends: int = HOUR, **more: float) -> Endpoint:
    return Endpoint(windows=(Window(begins=begins, ends=ends, trouble=trouble, **more),))  # type: ignore[arg-type]


def plan(**changed: object) -> Plan:
    given_ = Plan(
        policy=FixedDelay(retries=3, delay_s=60),
        endpoint=outage(),
        rate=0.1,
        duration_ms=HOUR,
        life_ms=7 * DAY,
        watch_ms=8 * DAY,
    )
    return replace(given_, **changed)  # type: ignore[arg-type]


def ends(of: Forecast) -> int:
    return of.delivered + of.expired + of.given_up + of.held + of.waiting


# What follows from the rules


def test_what_never_fails_is_delivered_at_once() -> None:
    of = forecast(plan(endpoint=Endpoint(), rate=50))
    assert (of.accepted, of.delivered, of.attempts, of.retries, of.failed) == (180_000, 180_000, 180_000, 0, 0)
    assert of.delays_ms == (0, 0, 0, 0)
    assert of.peak == pytest.approx(3000, abs=5)


def test_an_outage_longer_than_the_tries_loses_what_came_before_its_last_minutes() -> None:
    """Given 4 tries of 10 s that time out, 60 s apart, then the fourth begins 210 s after acceptance:
    only what came later meets the end.
    """
    of = forecast(plan(rate=1, duration_ms=HOUR), work=100_000)
    assert of.sample == 1
    assert of.given_up == 3600 - 210
    assert of.delivered == 210
    assert of.delays_ms == (140_000, 210_000, 210_000, 210_000)
    # Each lost one was tried four times; the others as often as the outage required
    assert of.attempts == 4 * 3390 + 70 * 4 + 70 * 3 + 70 * 2
    assert of.failed == of.attempts - 210


def test_a_list_of_waits_outlasts_it() -> None:
    of = forecast(plan(policy=SCHEDULES["svix"], rate=1, duration_ms=HOUR))
    assert of.given_up == of.expired == 0
    assert of.delays_ms is not None
    # The wait of two hours, spread by a fifth, is the longest that an hour's outage leads to
    assert of.delays_ms[-1] <= (5 + 300 + 1800 + 7200) * 1200 + 4 * 10_000


def test_what_outlives_its_message_is_lost_to_expiry() -> None:
    of = forecast(plan(policy=SCHEDULES["svix"], rate=1, life_ms=10 * MINUTE))
    assert of.expired > 0
    assert of.given_up == 0
    assert of.delays_ms is not None
    assert of.delays_ms[-1] < 10 * MINUTE


def test_the_hubs_policy_holds_what_used_up_its_tries() -> None:
    of = forecast(plan(policy=Exponential(base_s=30, cap_s=3600, max_attempts=3, holds=True)))
    assert of.held > 0
    assert of.given_up == 0


def test_what_is_still_on_its_way_when_the_look_ends_is_said() -> None:
    of = forecast(plan(policy=SCHEDULES["svix"], duration_ms=HOUR, watch_ms=HOUR))
    assert of.waiting == of.accepted - of.delivered > 300


def test_a_circuit_spares_an_endpoint_that_is_down() -> None:
    """Given 20 failures in a row open the circuit, then little more than what was on its way by then is sent before the
    endpoint is back.
    """
    without = forecast(plan(policy=SCHEDULES["svix"], endpoint=outage(Trouble.REFUSES), rate=50))
    of = forecast(plan(policy=SCHEDULES["svix"], endpoint=outage(Trouble.REFUSES), rate=50, circuit=CIRCUIT))
    assert of.opened == 1
    assert of.failed < 60
    assert without.failed > 500_000
    assert of.delivered == without.delivered == 180_000


def test_after_it_what_waited_is_let_go_a_little_more_each_minute() -> None:
    of = forecast(plan(policy=SCHEDULES["svix"], endpoint=outage(Trouble.REFUSES), rate=50, circuit=CIRCUIT))
    assert of.peak <= 5000 + 10
    assert of.series.every_ms == MINUTE


def test_an_endpoint_that_is_down_for_days_is_disabled() -> None:
    week = outage(Trouble.REFUSES, ends=7 * DAY)
    of = forecast(
        plan(policy=SCHEDULES["svix"], endpoint=week, duration_ms=7 * DAY, watch_ms=14 * DAY, circuit=CIRCUIT)
    )
    assert of.disabled_at_ms is not None
    assert 5 * DAY <= of.disabled_at_ms < 5 * DAY + 2 * HOUR
    assert of.given_up == of.accepted


def test_410_disables_where_answers_are_obeyed() -> None:
    gone = outage(Trouble.ANSWERS, status=410)
    assert forecast(plan(endpoint=gone, rules=STANDARD_RULES)).attempts == 1
    assert forecast(plan(endpoint=gone, rules=NO_RULES)).attempts > 1000


def test_retry_after_is_waited_for_where_answers_are_obeyed() -> None:
    busy = outage(Trouble.ANSWERS, status=429, retry_after_s=1200)
    obeyed = forecast(plan(endpoint=busy, rules=STANDARD_RULES))
    ignored = forecast(plan(endpoint=busy))
    assert obeyed.given_up == 0
    assert ignored.given_up > 0
    assert obeyed.attempts < ignored.attempts


def test_a_slow_endpoint_succeeds_within_its_timeout_only() -> None:
    assert forecast(plan(endpoint=outage(Trouble.SLOW, takes_ms=9_000))).failed == 0
    assert forecast(plan(endpoint=outage(Trouble.SLOW, takes_ms=10_000))).failed > 0
    assert forecast(plan(endpoint=Endpoint(takes_ms=10_000))).delivered == 0


def test_a_rate_limit_holds_at_every_minute_and_loses_nothing() -> None:
    of = forecast(plan(endpoint=Endpoint(), rate=20, duration_ms=HOUR, rate_limit=10))
    assert of.delivered == of.accepted
    assert of.peak <= 10 * 60 * 1.1
    assert of.delays_ms is not None
    # Twice as much as may be sent takes twice as long, and orders put aside are overtaken by new ones
    assert 0.9 * HOUR < of.delays_ms[-1] < 2.1 * HOUR
    assert len(of.series.attempts) in (120, 121)


def test_an_endpoint_that_comes_and_goes_fails_for_its_part() -> None:
    flapping = outage(Trouble.REFUSES, down_ms=30_000, up_ms=90_000)
    of = forecast(plan(policy=FixedDelay(retries=0, delay_s=60), endpoint=flapping, rate=10))
    assert of.failed == pytest.approx(9_000, rel=0.05)
    part = forecast(plan(policy=FixedDelay(retries=0, delay_s=60), endpoint=outage(share=0.25), rate=10))
    assert part.failed == pytest.approx(9_000, rel=0.1)


@pytest.mark.parametrize("circuit", [None, Circuit(failures=5), CIRCUIT])
@pytest.mark.parametrize("policy", [FixedDelay(retries=100, delay_s=120), Schedule(waits_s=(60,) * 40, spread=(1, 1))])
def test_the_whole_engine_makes_the_same_attempts(policy: RetryPolicy, circuit: Circuit | None) -> None:
    """Given the same outage on the engine with queues, stores and functions (fakes),
    then it makes as many attempts as the simulator says.
    """
    url = "https://shop.example/in"
    world = World()
    world.make_queue("q", subscribers(url), retry=policy, circuit=circuit)
    world.sender.script(url, 503)
    for _ in range(60):
        world.post("q", b"x")
        world.run(seconds=10)
    world.run(seconds=1195)
    failed = len(world.sender.requests_to(url))
    world.sender.script(url, 200)
    world.run(seconds=6 * 3600)
    of = forecast(
        plan(
            policy=policy,
            circuit=circuit,
            endpoint=Endpoint(
                windows=(Window(begins=0, ends=1_795_000, trouble=Trouble.ANSWERS, takes_ms=0),), takes_ms=0
            ),
            rate=0.1,
            duration_ms=600_000,
        ),
        work=100_000,
    )
    assert of.failed == pytest.approx(failed, abs=2 if circuit else 0)
    assert of.attempts - of.failed == len(world.sender.requests_to(url)) - failed == 60


# Every message once, whatever is tried

POLICIES = st.one_of(
    st.builds(FixedDelay, retries=st.integers(0, 12), delay_s=st.integers(3, 4000)),
    st.builds(
        Exponential,
        base_s=st.floats(1, 600),
        cap_s=st.just(3600.0),
        max_attempts=st.none() | st.integers(1, 10),
        holds=st.booleans(),
    ),
    st.builds(Schedule, waits_s=st.lists(st.floats(0, 20_000), max_size=6).map(tuple)),
)
WINDOWS = st.builds(
    lambda begins, lasts, trouble, share, down, up, status, after, takes: Window(
        begins=begins,
        ends=begins + lasts,
        trouble=trouble,
        share=share,
        down_ms=down and down * 1000,
        up_ms=down and up * 1000,
        status=status,
        retry_after_s=after,
        takes_ms=takes,
    ),
    st.integers(0, HOUR),
    st.integers(1, 6 * HOUR),
    st.sampled_from(Trouble),
    st.sampled_from([0.0, 0.3, 1.0]),
    st.sampled_from([0, 0, 20, 600]),
    st.integers(1, 900),
    st.sampled_from([410, 429, 500, 503]),
    st.none() | st.integers(0, 7200),
    st.integers(0, 40_000),
)
PLANS = st.builds(
    Plan,
    policy=POLICIES,
    rules=st.sampled_from([NO_RULES, STANDARD_RULES]),
    circuit=st.none() | st.just(CIRCUIT) | st.just(Circuit(failures=2, probe_s=30, disable_after_s=3600)),
    rate_limit=st.none() | st.floats(0.5, 100),
    timeout_s=st.integers(1, 60),
    endpoint=st.builds(Endpoint, windows=st.lists(WINDOWS, max_size=4).map(tuple), takes_ms=st.integers(0, 2000)),
    rate=st.sampled_from([0.001, 0.05, 3.0, 200.0]),
    duration_ms=st.integers(1, 6 * HOUR),
    life_ms=st.integers(1000, 3 * DAY),
    watch_ms=st.integers(6 * HOUR, 4 * DAY),
    seed=st.integers(0, 5),
)


@settings(max_examples=60, deadline=None)
@given(PLANS)
def test_every_message_is_counted_once_and_no_one_tried_more_often_than_the_policy_says(tried: Plan) -> None:
    try:
        of = forecast(tried, work=500)
    except Invalid:
        return  # said to be too much
    assert ends(of) == of.accepted == tried.messages
    assert min(of.delivered, of.expired, of.given_up, of.held, of.waiting, of.retries) >= 0
    assert of.failed <= of.attempts
    assert of.delivered == of.attempts - of.failed or of.waiting
    most = tried.policy.max_tries
    assert most is None or of.attempts <= most * of.accepted
    assert sum(of.series.attempts) == pytest.approx(of.attempts, abs=len(of.series.attempts))
    assert (of.delays_ms is None) == (of.delivered == 0)


@settings(max_examples=15, deadline=None)
@given(PLANS)
def test_no_plan_takes_more_work_than_its_budget(tried: Plan) -> None:
    def work() -> None:
        with suppress(Invalid):
            forecast(tried, work=5)

    done = effort(work)
    target(done)
    # A run to measure, one that is cut, and one of up to four times the budget; each begins with the lots and minutes.
    assert done <= 200_000


def test_the_same_plan_has_the_same_forecast() -> None:
    tried = plan(policy=SCHEDULES["svix"], rate=20, endpoint=outage(share=0.5), circuit=CIRCUIT, rules=STANDARD_RULES)
    assert forecast(tried) == forecast(tried)
    assert forecast(replace(tried, seed=2)) != forecast(tried)


@pytest.mark.parametrize("circuit", [None, CIRCUIT])
@pytest.mark.parametrize("trouble", [Trouble.TIMES_OUT, Trouble.REFUSES])
def test_a_sample_says_what_all_messages_say(trouble: Trouble, circuit: Circuit | None) -> None:
    tried = plan(policy=SCHEDULES["svix"], endpoint=outage(trouble), rate=0.6, circuit=circuit)
    exact, sampled = forecast(tried, work=200_000), forecast(tried, work=1000)
    assert exact.sample == 1 < sampled.sample
    assert sampled.attempts == pytest.approx(exact.attempts, rel=0.03)
    assert sampled.failed == pytest.approx(exact.failed, rel=0.1, abs=20)
    assert sampled.delays_ms is not None
    assert exact.delays_ms is not None
    assert sampled.delays_ms[:3] == pytest.approx(exact.delays_ms[:3], rel=0.12)
    assert sampled.dollars == pytest.approx(exact.dollars, rel=0.05)


# Bounded


def test_what_would_take_too_long_is_refused() -> None:
    endless = plan(
        policy=Exponential(base_s=1, cap_s=1),
        endpoint=outage(Trouble.REFUSES, ends=7 * DAY),
        rate=1000,
        duration_ms=7 * DAY,
        life_ms=30 * DAY,
        watch_ms=37 * DAY,
    )
    with pytest.raises(Invalid, match="too much to simulate"):
        forecast(endless)


@pytest.mark.parametrize("rate", [0.001, 1, 1000])
def test_the_work_does_not_grow_with_the_messages(rate: float, monkeypatch: pytest.MonkeyPatch) -> None:
    judged = 0

    def counted(*args: object, **named: object) -> Delivery:
        nonlocal judged
        judged += 1
        return after_attempt(*args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr("pushhub.engine.forecast.after_attempt", counted)
    forecast(plan(policy=SCHEDULES["svix"], rate=rate, endpoint=outage(ends=6 * HOUR), duration_ms=6 * HOUR), work=1000)
    assert 0 < judged < 3000


# Parts


def test_the_cost_is_that_of_the_report() -> None:
    """Given the same counts, then every item costs what the delivery report says."""
    counts = cost.Counts(
        messages=12_000, body_bytes=1000, attempts=50_000, retries=38_000, changes=51_000, scheduled=7_000, busy_ms=9e7
    )
    sums = {
        "messages": counts.messages,
        "deliveries": counts.messages,
        "attempts": counts.attempts,
        "retries": counts.retries,
        "changes": counts.changes,
        "parks": counts.scheduled,
        "busy_ms": counts.busy_ms,
        "inline_bytes": counts.inline_bytes,
        "body_bytes": counts.inline_bytes,
        "bytes_out": counts.attempts * counts.body_bytes,
        "notified": 0,
        "large_bodies": 0,
    }
    known = {"ceil": lambda value: -(-value // 1), "greatest": max, **sums}
    reported = {each.price: eval(each.units, {"__builtins__": {}}, known) for each in USAGE}
    mine = {name: units(counts) for name, units in cost.UNITS.items()}
    assert mine == pytest.approx({name: units for name, units in reported.items() if units})
    assert {name: REPORT_PRICES[name] for name in cost.PRICES} == dict(cost.PRICES)
    assert cost.dollars(counts) == pytest.approx(sum(REPORT_PRICES[name] * units for name, units in reported.items()))


def test_percentiles_are_weighted() -> None:
    assert percentiles([]) is None
    assert percentiles([(5, 1)]) == (5, 5, 5, 5)
    assert percentiles([(1000, 1), (0, 99)]) == (0, 0, 0, 1000)
    assert percentiles([(0, 50), (10, 40), (20, 9), (30, 1)]) == (0, 10, 20, 30)


@given(st.lists(st.tuples(st.integers(0, DAY), st.integers(0, DAY), st.integers(1, 10_000)), max_size=20))
def test_what_is_spread_over_minutes_stays_as_much(spans: list[tuple[int, int, int]]) -> None:
    minutes = PerMinute()
    for at, span, count in spans:
        minutes.add(at, span, count)
    assert sum(minutes.counts()) == pytest.approx(sum(count for _, _, count in spans), rel=1e-6)
