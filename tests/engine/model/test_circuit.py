"""The circuit's state machine, step by step, and with random histories."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pushhub.engine.model.circuit import (
    MOST_RELEASED,
    WARNINGS,
    Circuit,
    CircuitState,
    Health,
    SubscriberKey,
    claimed,
    drained,
    due_warning,
    failed,
    ramped,
    reset,
    succeeded,
    warned,
)

KEY = SubscriberKey(project="p", queue="q", queue_uid="u", subscriber_id="s0")
NOW = 1_795_000_000_000
HOUR_MS = 3_600_000
CIRCUIT = Circuit()


def an_open_one() -> Health:
    return failed(Health(key=KEY), CIRCUIT, NOW, tripped=True, probe=False)


def test_a_failure_that_is_not_one_too_many_is_noted_once() -> None:
    first = failed(Health(key=KEY), CIRCUIT, NOW, tripped=False, probe=False)
    assert (first.state, first.failing_since, first.version) == (CircuitState.CLOSED, NOW, 1)
    assert failed(first, CIRCUIT, NOW + 1, tripped=False, probe=False) is first


def test_probes_are_further_and_further_apart_and_made_one_at_a_time() -> None:
    health, now, waits = an_open_one(), NOW, []
    for _ in range(9):
        waits.append((health.probe_at - now) // 1000)
        assert claimed(health, health.probe_at - 1, for_ms=90_000) is None
        now = health.probe_at
        taken = claimed(health, now, for_ms=90_000)
        assert taken is not None
        # While it is in progress there is no other probe, but if its outcome is never reported there is
        assert claimed(taken, now + 89_999, for_ms=90_000) is None
        assert claimed(taken, now + 90_000, for_ms=90_000) is not None
        health = failed(taken, CIRCUIT, now, tripped=False, probe=True)
    assert waits == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]


def test_a_failure_that_began_before_it_opened_changes_nothing() -> None:
    health = an_open_one()
    assert failed(health, CIRCUIT, NOW + 5, tripped=True, probe=False) is health


def test_a_success_starts_a_ramp_that_doubles_and_ends_when_nothing_waits() -> None:
    back = succeeded(an_open_one(), NOW + 9)
    assert (back.state, back.failing_since) == (CircuitState.RAMPING, None)
    released = []
    for _ in range(12):
        released.append(back.release)
        back = ramped(back)
    assert released == [10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5000, 5000, 5000]
    closed = drained(back, NOW + 99)
    assert (closed.state, closed.ramped) == (CircuitState.CLOSED, 0)
    assert succeeded(closed, NOW + 100) is closed


def test_warnings_at_half_seven_and_nine_tenths_and_then_the_end() -> None:
    # Given a subscriber that fails each hour for five days
    health, reported = failed(Health(key=KEY), CIRCUIT, NOW, tripped=False, probe=False), []
    for hour in range(1, 121):
        now = NOW + hour * HOUR_MS
        health = failed(health, CIRCUIT, now, tripped=False, probe=False)
        percent = due_warning(health, CIRCUIT, now)
        if percent is not None:
            reported.append((hour, percent))
            health = warned(health, now)
    # Then each was given once, and the count starts again after it was disabled
    assert reported == [(60, 50), (84, 70), (108, 90), (120, 100)]
    assert (health.failing_since, health.warnings, health.state) == (None, 0, CircuitState.CLOSED)


def test_a_subscriber_that_is_seldom_asked_is_warned_before_it_is_disabled() -> None:
    # Given one failure, silence for six days, and then failures each hour
    health, reported = failed(Health(key=KEY), CIRCUIT, NOW, tripped=False, probe=False), []
    for hour in range(144, 200):
        percent = due_warning(health, CIRCUIT, NOW + hour * HOUR_MS)
        if percent is not None:
            reported.append((hour, percent))
            health = warned(health, NOW + hour * HOUR_MS)
            if percent == 100:
                break
    # Then the warnings are half a day apart
    assert reported == [(144, 50), (156, 70), (168, 90), (180, 100)]


def test_without_a_limit_nobody_is_warned() -> None:
    health = failed(Health(key=KEY), CIRCUIT, 0, tripped=False, probe=False)
    assert due_warning(health, Circuit(disable_after_s=None), 10**13) is None


def with_everything(state: CircuitState) -> Health:
    """A health with every field set, to see that nothing else changes."""
    return Health(
        key=KEY,
        state=state,
        changed_at=NOW - 9,
        probe_at=NOW - 8,
        probes=2,
        ramped=3,
        failing_since=NOW - 7,
        warnings=1,
        warned_at=NOW - 6,
        version=4,
    )


def test_each_change_changes_what_it_says_and_nothing_else() -> None:
    # Given an open circuit, a ramping one and a closed one, each of a subscriber that fails
    is_open, ramping, closed = (
        with_everything(each) for each in (CircuitState.OPEN, CircuitState.RAMPING, CircuitState.CLOSED)
    )
    # Then a claim moves the next probe
    assert claimed(is_open, NOW, for_ms=90_000) == replace(is_open, probe_at=NOW + 90_000, version=5)
    assert claimed(ramping, NOW, for_ms=90_000) is None
    # And a probe that failed moves it further
    assert failed(is_open, CIRCUIT, NOW, tripped=True, probe=True) == replace(
        is_open, probes=3, probe_at=NOW + 480_000, version=5
    )
    # And a run of failures opens it
    for before in (ramping, closed):
        assert failed(before, CIRCUIT, NOW, tripped=True, probe=False) == replace(
            before, state=CircuitState.OPEN, changed_at=NOW, probe_at=NOW + 60_000, probes=0, ramped=0, version=5
        )
    # And a success clears the failures
    well = {"failing_since": None, "warnings": 0, "warned_at": 0, "version": 5}
    assert succeeded(ramping, NOW) == replace(ramping, **well)  # type: ignore[arg-type]
    assert succeeded(is_open, NOW) == replace(
        is_open,
        state=CircuitState.RAMPING,
        changed_at=NOW,
        probe_at=0,
        probes=0,
        ramped=0,
        **well,  # type: ignore[arg-type]
    )
    # And so on
    assert ramped(ramping) == replace(ramping, ramped=4, version=5)
    assert drained(ramping, NOW) == replace(ramping, state=CircuitState.CLOSED, changed_at=NOW, ramped=0, version=5)
    assert warned(is_open, NOW) == replace(is_open, warnings=2, warned_at=NOW, version=5)
    last = replace(is_open, warnings=len(WARNINGS))
    assert warned(last, NOW) == reset(is_open, NOW) == Health(key=KEY, changed_at=NOW, version=5)


def test_a_warning_is_due_to_the_millisecond_and_a_tenth_of_the_time_after_the_one_before() -> None:
    circuit = Circuit(disable_after_s=1000)
    health = replace(with_everything(CircuitState.CLOSED), failing_since=NOW, warnings=1, warned_at=NOW + 650_000)
    # Given seven tenths of the time are over, but the first warning was just given
    assert due_warning(health, circuit, NOW + 749_999) is None
    assert due_warning(health, circuit, NOW + 750_000) == 70
    # Given the first warning was given long ago, or none was
    before = replace(health, warned_at=NOW + 500_000)
    assert due_warning(before, circuit, NOW + 699_999) is None
    assert due_warning(before, circuit, NOW + 700_000) == 70
    unwarned = replace(health, warnings=0, warned_at=NOW + 499_999)
    assert due_warning(unwarned, circuit, NOW + 500_000) == 50
    # Then nothing is due without failures
    assert due_warning(replace(health, failing_since=None), circuit, NOW + 10**9) is None


def test_however_long_it_lasts_waits_and_ramps_have_an_end() -> None:
    assert Circuit(probe_s=1, most_probe_s=10**8).probe_wait_ms(20) == 1_048_576_000
    assert Circuit().probe_wait_ms(10**6) == 3_600_000
    assert replace(with_everything(CircuitState.RAMPING), ramped=10**6).release == MOST_RELEASED


class CircuitLife(RuleBasedStateMachine):
    """Plays several execution environments with stale knowledge, a store with version checks, and a ticker."""

    @initialize()
    def begins(self) -> None:
        self.stored = Health(key=KEY)
        self.now = NOW
        self.seen = [self.stored] * 3
        self.last_success = 0
        self.open_until_probe = 0
        self.probes_open: list[int] = []

    def save(self, health: Health) -> bool:
        if health.version != self.stored.version + 1:
            return False
        before, self.stored = self.stored, health
        if before.state is CircuitState.CLOSED:
            assert health.state is not CircuitState.RAMPING, "nothing waits on a closed circuit"
        return True

    @rule(seconds=st.sampled_from([0, 1, 10, 61, 3_600, 90_000]))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds * 1000

    @rule(who=st.integers(0, 2))
    def an_environment_reads(self, who: int) -> None:
        self.seen[who] = self.stored

    @rule(who=st.integers(0, 2), tripped=st.booleans())
    def an_attempt_fails(self, who: int, tripped: bool) -> None:
        before = self.seen[who]
        after = failed(before, CIRCUIT, self.now, tripped=tripped, probe=False)
        if after is not before and self.save(after):
            self.seen[who] = after
            assert after.failing_since is not None
            assert after.failing_since >= self.last_success

    @rule(who=st.integers(0, 2))
    def a_probe_is_made(self, who: int) -> None:
        taken = claimed(self.seen[who], self.now, for_ms=90_000)
        if taken is None or not self.save(taken):
            return
        # No other probe is in progress: the previous one ended, or its time was over
        assert self.now >= self.open_until_probe
        self.open_until_probe = self.now + 90_000
        self.seen[who] = taken

    @rule(who=st.integers(0, 2))
    def the_probe_fails(self, who: int) -> None:
        before = self.seen[who]
        if before.state is not CircuitState.OPEN:
            return
        after = failed(before, CIRCUIT, self.now, tripped=False, probe=True)
        if self.save(after):
            self.seen[who] = after
            self.open_until_probe = 0
            assert after.probe_at - self.now >= CIRCUIT.probe_s * 1000
            assert after.probe_at - self.now <= CIRCUIT.most_probe_s * 1000

    @rule(who=st.integers(0, 2))
    def an_attempt_succeeds(self, who: int) -> None:
        before = self.seen[who]
        after = succeeded(before, self.now)
        if after is not before and self.save(after):
            self.seen[who], self.last_success, self.open_until_probe = after, self.now, 0
            assert after.failing_since is None
            assert after.warnings == 0

    @rule()
    def a_minute_is_ticked(self) -> None:
        if self.stored.state is CircuitState.RAMPING:
            assert 0 < self.stored.release <= MOST_RELEASED
            assert self.save(ramped(self.stored))

    @rule()
    def nothing_waits_any_more(self) -> None:
        if self.stored.state is CircuitState.RAMPING:
            assert self.save(drained(self.stored, self.now))

    @rule()
    def a_warning_is_due(self) -> None:
        percent = due_warning(self.stored, CIRCUIT, self.now)
        if percent is not None:
            assert self.stored.failing_since is not None
            assert self.now - self.stored.failing_since >= percent * 4_320_000
            assert self.save(warned(self.stored, self.now))
            self.open_until_probe = 0

    @rule()
    def its_owner_changes_it(self) -> None:
        assert self.save(reset(self.stored, self.now))
        self.open_until_probe = 0

    @invariant()
    def it_is_legal(self) -> None:
        health = self.stored
        assert (health.probe_at > 0) == (health.state is CircuitState.OPEN)
        assert health.state is CircuitState.RAMPING or health.ramped == 0
        assert 0 <= health.warnings <= 3
        assert health.failing_since is not None or health.warnings == 0
        assert health.state is not CircuitState.OPEN or health.failing_since is not None


CircuitLife.TestCase.settings = settings(max_examples=50, stateful_step_count=40, deadline=None)
TestCircuitLife = CircuitLife.TestCase
