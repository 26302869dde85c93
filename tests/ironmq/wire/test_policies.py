"""The policy simulator's requests: the terms and defaults of every protocol, and what is refused."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pushhub
from pushhub.base.errors import Invalid
from pushhub.engine.model.answer_rules import NO_RULES, STANDARD_RULES
from pushhub.engine.model.backoff import SCHEDULES, Exponential, FixedDelay, Schedule
from pushhub.engine.model.outage import Trouble
from pushhub.hub.model.mapping import ServiceOptions
from pushhub.ironmq.wire.policies import CIRCUIT, HUB, IRONMQ, MAX_WINDOWS, WEBHOOKS, parse_simulation
from pushhub.webhooks import queues as webhooks

WINDOW = {"start": 0, "end": 3600}


def test_what_is_left_out_is_the_protocols_own() -> None:
    asked = parse_simulation({"outage": [WINDOW]}).plan
    assert asked.policy == FixedDelay(retries=3, delay_s=60)
    assert (asked.circuit, asked.rules, asked.timeout_s) == (None, NO_RULES, 10)
    assert (asked.rate, asked.duration_ms, asked.life_ms) == (1.0, 3_600_000, 604_800_000)
    assert asked.watch_ms == asked.duration_ms + asked.life_ms
    asked = parse_simulation({"policy": {"schedule": "svix"}, "outage": [WINDOW]}).plan
    assert asked.policy is SCHEDULES["svix"]
    assert (asked.circuit, asked.rules, asked.timeout_s) == (CIRCUIT, STANDARD_RULES, 30)
    asked = parse_simulation({"policy": {"max_attempts": 5}}).plan
    assert asked.policy == Exponential(base_s=30, cap_s=3600, max_attempts=5, holds=True)
    assert (asked.circuit, asked.rules, asked.timeout_s, asked.duration_ms) == (None, NO_RULES, 180, 3_600_000)


def test_the_defaults_are_those_of_the_protocols() -> None:
    assert (CIRCUIT, WEBHOOKS.timeout_s) == (webhooks.CIRCUIT, webhooks.TIMEOUT_S)
    assert ServiceOptions().policy == HUB.policy
    assert IRONMQ.policy == parse_simulation({}).plan.policy


def test_protection_can_be_taken_away_or_given() -> None:
    plan = parse_simulation({"policy": {"schedule": [5]}, "circuit": False, "obey_answers": False}).plan
    assert (plan.policy, plan.circuit, plan.rules) == (Schedule(waits_s=(5,)), None, NO_RULES)
    plan = parse_simulation({"policy": {"retries": 0}, "circuit": True, "obey_answers": True}).plan
    assert (plan.policy.max_tries, plan.circuit, plan.rules) == (1, CIRCUIT, STANDARD_RULES)


def test_what_it_is_compared_with() -> None:
    asked = parse_simulation({"policy": {"schedule": "svix"}})
    assert asked.compared_with == "no_circuit"
    assert asked.compared is not None
    assert asked.compared.circuit is None
    asked = parse_simulation({"policy": {"retries": 9}})
    assert asked.compared_with == "default"
    assert asked.compared is not None
    assert asked.compared.policy == IRONMQ.policy
    # Null counts as absent
    assert parse_simulation({"policy": {"retries": None, "schedule": "svix"}}).plan.policy is SCHEDULES["svix"]
    # No policy is compared with itself
    assert parse_simulation({}).compared is None
    assert parse_simulation({"policy": {"retries": 9}, "compare": "no_circuit"}).compared is None
    assert parse_simulation({"policy": {"schedule": "svix"}, "compare": "nothing"}).compared is None


def test_a_window_is_read_whole() -> None:
    [window] = parse_simulation(
        {
            "outage": [
                {
                    "start": 60,
                    "end": 120,
                    "endpoint": "answers",
                    "status": 429,
                    "retry_after": 0,
                    "takes": 2.5,
                    "share": 0.25,
                    "down": 5,
                    "up": 10,
                }
            ]
        }
    ).plan.endpoint.windows
    assert (window.begins, window.ends, window.trouble, window.status) == (60_000, 120_000, Trouble.ANSWERS, 429)
    assert (window.retry_after_s, window.takes_ms, window.share) == (0, 2500, 0.25)
    assert (window.down_ms, window.up_ms) == (5000, 10_000)


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({"policy": []}, "policy must be an object"),
        ({"policy": {"tries": 3}}, "policy must have"),
        ({"policy": {"retries": 3, "schedule": "svix"}}, "mixes protocols"),
        ({"policy": {"retries": 101}}, "retries must be from 0 to 100"),
        ({"policy": {"retries_delay": 2}}, "retries_delay must be from 3"),
        ({"policy": {"retry_base": 60, "retry_cap": 30}}, "retry_cap must not be below"),
        ({"policy": {"retry_base": "1"}}, "retry_base must be a number"),
        ({"policy": {"schedule": "hourly"}}, "schedule must be one of svix, standard-webhooks"),
        ({"policy": {"schedule": {}}}, "schedule must be an array"),
        ({"policy": {"schedule": [-1]}}, "schedule must be from 0"),
        ({"policy": {"schedule": [True]}}, "schedule must be a number"),
        ({"policy": {"schedule": [1] * 101}}, "100 entries at most"),
        ({"outage": [WINDOW] * (MAX_WINDOWS + 1)}, "60 entries at most"),
        ({"outage": ["6h"]}, "array of objects"),
        ({"outage": [{}]}, "end is missing"),
        ({"outage": [{"start": 5, "end": 5}]}, "end must be after start"),
        ({"outage": [{"end": 604_801}]}, "end must be from 1 to 604800"),
        ({"outage": [{**WINDOW, "endpoint": "melts"}]}, "endpoint must be one of"),
        ({"outage": [{**WINDOW, "status": 200}]}, "status must be from 300"),
        ({"outage": [{**WINDOW, "share": 1.5}]}, "share must be from 0 to 1"),
        ({"outage": [{**WINDOW, "down": 5}]}, "given together"),
        ({"outage": [{**WINDOW, "takes": 1e308}]}, "takes must be from"),
        ({"rate": 0}, "rate must be from"),
        ({"rate": 10**400}, "rate must be from"),
        ({"rate": float("inf")}, "rate must be from"),
        ({"rate_limit": -1}, "rate_limit must be from"),
        ({"duration": 604_801}, "duration must be from"),
        ({"duration": 60, "watch": 30}, "watch must not be shorter"),
        ({"message_expiration": 2_592_001}, "message_expiration must be from"),
        ({"timeout": 181}, "timeout must be from"),
        ({"circuit": "yes"}, "circuit must be true or false"),
        ({"compare": "others"}, "compare must be one of"),
        ({"seed": -1}, "seed must be from"),
    ],
)
def test_what_cannot_be_simulated_is_refused_by_name(request_: dict[str, Any], said: str) -> None:
    with pytest.raises(Invalid, match=said):
        parse_simulation(request_)


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["svix", "answers"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["schedule", "retries", "end", "start", "endpoint", "share", "down", "up"]), inner
        )
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(
            ["policy", "outage", "rate", "rate_limit", "duration", "watch", "takes", "circuit", "compare", "seed"]
        ),
        ANYTHING,
    )
)
def test_anything_is_read_or_refused(fields: dict[str, Any]) -> None:
    try:
        plan = parse_simulation(fields).plan
    except Invalid:
        return
    assert 1 <= plan.messages <= 10**9
    assert plan.duration_ms <= plan.watch_ms


def test_no_request_but_its_own_pays_for_the_simulator() -> None:
    """Given only the queue API's module, then neither the simulator nor its dependencies are imported."""
    script = "import sys, json, pushhub.ironmq.api.api; print(json.dumps([*sys.modules]))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = set(json.loads(run.stdout))
    assert not loaded & {"pushhub.engine.forecast", "pushhub.ironmq.policy_simulation", "pushhub.ironmq.wire.policies"}


def test_the_simulator_has_no_rule_of_its_own() -> None:
    """Given its source, then it neither reads a policy's numbers nor calculates a delivery's next state: the engine's
    functions do.
    """
    source = (Path(pushhub.__file__).parent / "engine/forecast.py").read_text()
    attributes = {each.attr for each in ast.walk(ast.parse(source)) if isinstance(each, ast.Attribute)}
    assert not attributes & {"max_tries", "retries", "delay_s", "waits_s", "base_s", "due_at", "probes"}
