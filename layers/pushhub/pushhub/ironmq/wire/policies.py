"""The policy simulator on the wire: a policy in the terms of its protocol, an outage as windows, and the forecast as
JSON.

The command line uses the same format (``pushhub simulate policy``). Imported only when a simulation is requested.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from pushhub.base.errors import Invalid
from pushhub.base.fields import settings_of
from pushhub.base.times import iso_time
from pushhub.engine.model.answer_rules import NO_RULES, STANDARD_RULES
from pushhub.engine.model.backoff import SCHEDULES, Exponential, FixedDelay, RetryPolicy, Schedule
from pushhub.engine.model.circuit import Circuit
from pushhub.engine.model.forecast import PERCENTS, Forecast, Plan
from pushhub.engine.model.outage import Endpoint, Trouble, Window
from pushhub.engine.model.queue import MAX_EXPIRATION_S, PushSettings
from pushhub.ironmq.wire.subscribers import MAX_TIMEOUT_S
from pushhub.web.json import Fields, boolean, integer, listed, moment, section, text
from pushhub.web.settings import read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pushhub.engine.history import History

MAX_DURATION_S: Final = 604_800
"""Maximum duration of traffic and outages: a week."""
MAX_RATE: Final = 1000
MIN_RATE: Final = 0.001
MAX_WINDOWS: Final = 60
MAX_WAITS: Final = 100
MAX_WAIT_S: Final = 2_592_000
MAX_ATTEMPTS: Final = 100_000
MAX_SEED: Final = 2**31
MAX_NAME_BYTES: Final = 512
MAX_TAKES_S: Final = 600
DEFAULT_DURATION_S: Final = 3600
DEFAULT_LIFE_S: Final = 604_800

CIRCUIT: Final = Circuit(failures=20)
"""The default for webhook endpoints."""

COMPARISONS: Final = ("no_circuit", "default", "nothing")

IRONMQ_FIELDS: Final = frozenset(name for name, *_ in settings_of(PushSettings) if name.startswith("retries"))
"""Push settings that are a policy."""
_HUB = {"max_attempts", "retry_base", "retry_cap"}
_WEBHOOKS = {"schedule"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Defaults of a protocol's policies.

    Attributes:
        policy: The protocol's default policy.
        timeout_s: Seconds that a subscriber has to answer.
        standard: Whether what answers ask for is obeyed, and there is a circuit.
    """

    policy: RetryPolicy
    timeout_s: int
    standard: bool = False


IRONMQ: Final = Kind(policy=PushSettings(subscribers=()).policy, timeout_s=10)
HUB: Final = Kind(policy=Exponential(base_s=30, cap_s=3600, holds=True), timeout_s=180)
WEBHOOKS: Final = Kind(policy=SCHEDULES["svix"], timeout_s=30, standard=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationRequest:
    """A simulation request.

    Attributes:
        compared: Another plan for comparison; None for none.
        compared_with: How that one differs, one of :data:`COMPARISONS`.
    """

    plan: Plan
    compared: Plan | None
    compared_with: str


def parse_simulation(fields: Fields) -> SimulationRequest:
    """Read a request."""
    kind, policy = _policy(section(fields, "policy") or {})
    windows = tuple(_window(each) for each in _some(fields, "outage", MAX_WINDOWS))
    ends_s = -(-max((each.ends for each in windows), default=0) // 1000)
    duration_s = integer(fields, "duration", least=1, most=MAX_DURATION_S) or ends_s or DEFAULT_DURATION_S
    life_s = integer(fields, "message_expiration", least=1, most=MAX_EXPIRATION_S) or DEFAULT_LIFE_S
    longest_s = MAX_DURATION_S + MAX_EXPIRATION_S
    watch_s = integer(fields, "watch", least=1, most=longest_s) or duration_s + life_s
    if watch_s < duration_s:
        raise Invalid("watch must not be shorter than duration")
    circuit = boolean(fields, "circuit") if fields.get("circuit") is not None else kind.standard
    obeyed = boolean(fields, "obey_answers") if fields.get("obey_answers") is not None else kind.standard
    rate = _number(fields, "rate", least=MIN_RATE, most=MAX_RATE)
    timeout_s = integer(fields, "timeout", least=1, most=MAX_TIMEOUT_S) or kind.timeout_s
    takes_s = _number(fields, "takes", least=0, most=MAX_TAKES_S)
    plan = Plan(
        policy=policy,
        rules=STANDARD_RULES if obeyed else NO_RULES,
        circuit=CIRCUIT if circuit else None,
        rate_limit=_number(fields, "rate_limit", least=MIN_RATE, most=MAX_RATE),
        timeout_s=timeout_s,
        endpoint=Endpoint(windows=windows, takes_ms=50 if takes_s is None else round(takes_s * 1000)),
        rate=1.0 if rate is None else rate,
        duration_ms=duration_s * 1000,
        life_ms=life_s * 1000,
        watch_ms=watch_s * 1000,
        seed=integer(fields, "seed", least=0, most=MAX_SEED, zero_is_unset=False) or 0,
    )
    compare = text(fields, "compare") or ("no_circuit" if circuit else "default")
    if compare not in COMPARISONS:
        raise Invalid(f"compare must be one of: {', '.join(COMPARISONS)}")
    compared: Plan | None = None
    if compare == "no_circuit" and circuit:
        compared = replace(plan, circuit=None)
    elif compare == "default" and policy != kind.policy:
        compared = replace(plan, policy=kind.policy)
    return SimulationRequest(plan=plan, compared=compared, compared_with=compare)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRequest:
    """A request for a subscriber's history.

    Attributes:
        subscriber: Its id or its name.
        since: Start, epoch milliseconds.
        until: End, epoch milliseconds.
    """

    queue: str
    subscriber: str
    since: int
    until: int


def parse_replay(fields: Fields) -> ReplayRequest | None:
    """The subscriber whose history a request wants as its outage; None if it wants none."""
    given = section(fields, "replay")
    if given is None:
        return None
    since = moment(given, "since")
    if since is None:
        raise Invalid("since is missing in replay")
    longest = since + MAX_DURATION_S * 1000
    until = moment(given, "until")
    until = longest if until is None else until
    if not since < until <= longest:
        raise Invalid("until must be at most a week after since in replay")
    return ReplayRequest(queue=_named(given, "queue"), subscriber=_named(given, "subscriber"), since=since, until=until)


def _named(given: Fields, name: str) -> str:
    """A name or an id. Nothing stored matches a malformed one, so only its length is limited, to fit a key."""
    value = text(given, name)
    if not value:
        raise Invalid(f"{name} is missing in replay")
    if len(value.encode()) > MAX_NAME_BYTES:
        raise Invalid(f"{name} is longer than {MAX_NAME_BYTES} bytes")
    return value


def _policy(given: Fields) -> tuple[Kind, RetryPolicy]:
    said = {name for name, value in given.items() if value is not None}
    known = [(kind, names & said) for kind, names in ((IRONMQ, IRONMQ_FIELDS), (HUB, _HUB), (WEBHOOKS, _WEBHOOKS))]
    named = [(kind, names) for kind, names in known if names]
    if len(named) > 1:
        raise Invalid(
            "policy mixes protocols: retries and retries_delay, or max_attempts, retry_base and retry_cap, or schedule"
        )
    if not named:
        if said:
            raise Invalid("policy must have retries, retries_delay, max_attempts, retry_base, retry_cap or schedule")
        return IRONMQ, IRONMQ.policy
    kind = named[0][0]
    return kind, _ironmq(given) if kind is IRONMQ else _hub(given) if kind is HUB else _schedule(given)


def _ironmq(given: Fields) -> RetryPolicy:
    asked = read(PushSettings, {name: given[name] for name in IRONMQ_FIELDS & given.keys()})
    return asked.applied(PushSettings(subscribers=())).policy


def _hub(given: Fields) -> Exponential:
    base_s = _number(given, "retry_base", least=1, most=MAX_WAIT_S)
    cap_s = _number(given, "retry_cap", least=1, most=MAX_WAIT_S)
    base_s, cap_s = 30.0 if base_s is None else base_s, 3600.0 if cap_s is None else cap_s
    if cap_s < base_s:
        raise Invalid("retry_cap must not be below retry_base")
    tries = integer(given, "max_attempts", least=1, most=MAX_ATTEMPTS)
    return Exponential(base_s=base_s, cap_s=cap_s, max_attempts=tries, holds=True)


def _schedule(given: Fields) -> Schedule:
    named = given.get("schedule")
    if isinstance(named, str):
        if named not in SCHEDULES:
            raise Invalid(f"schedule must be one of {', '.join(SCHEDULES)}, or a list of seconds to wait")
        return SCHEDULES[named]
    waits = _some(given, "schedule", MAX_WAITS)
    numbers = [_checked(each, "schedule", least=0, most=MAX_WAIT_S) for each in waits]
    return Schedule(waits_s=tuple(numbers))


def _window(given: Any) -> Window:
    if not isinstance(given, dict):
        raise Invalid("outage must be an array of objects")
    start_s = integer(given, "start", least=0, most=MAX_DURATION_S, zero_is_unset=False) or 0
    end_s = integer(given, "end", least=1, most=MAX_DURATION_S)
    if end_s is None:
        raise Invalid("end is missing in a window of outage")
    if end_s <= start_s:
        raise Invalid("end must be after start in each window of outage")
    troubles = [each.value for each in Trouble]
    trouble = text(given, "endpoint") or Trouble.TIMES_OUT
    if trouble not in troubles:
        raise Invalid(f"endpoint must be one of: {', '.join(troubles)}")
    down_s = integer(given, "down", least=1, most=MAX_DURATION_S)
    up_s = integer(given, "up", least=1, most=MAX_DURATION_S)
    if (down_s is None) is not (up_s is None):
        raise Invalid("down and up must be given together")
    takes_s = _number(given, "takes", least=0, most=MAX_TAKES_S)
    share = _number(given, "share", least=0, most=1)
    return Window(
        begins=start_s * 1000,
        ends=end_s * 1000,
        trouble=Trouble(trouble),
        status=integer(given, "status", least=300, most=599) or 503,
        retry_after_s=integer(given, "retry_after", least=0, most=MAX_WAIT_S, zero_is_unset=False),
        takes_ms=50 if takes_s is None else round(takes_s * 1000),
        share=1.0 if share is None else share,
        down_ms=(down_s or 0) * 1000,
        up_ms=(up_s or 0) * 1000,
    )


def _some(fields: Fields, name: str, most: int) -> Sequence[Any]:
    given = listed(fields, name) or ()
    if len(given) > most:
        raise Invalid(f"{name} must have {most} entries at most")
    return given


def _number(fields: Fields, name: str, *, least: float, most: float) -> float | None:
    value = fields.get(name)
    return None if value is None else _checked(value, name, least=least, most=most)


def _checked(value: Any, name: str, *, least: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Invalid(f"{name} must be a number")
    if not least <= value <= most:
        raise Invalid(f"{name} must be from {least} to {most}")
    return float(value)


def render_plan(plan: Plan) -> dict[str, object]:
    """The simulated plan, with defaults filled in."""
    return {
        "policy": _render_policy(plan.policy),
        "timeout": plan.timeout_s,
        "circuit": plan.circuit is not None,
        "obey_answers": plan.rules is not NO_RULES,
        "rate_limit": plan.rate_limit,
        "takes": plan.endpoint.takes_ms / 1000,
        "rate": plan.rate,
        "duration": plan.duration_ms // 1000,
        "message_expiration": plan.life_ms // 1000,
        "watch": plan.watch_ms // 1000,
        "seed": plan.seed,
    }


def _render_policy(policy: RetryPolicy) -> dict[str, object]:
    match policy:
        case FixedDelay():
            return {"retries": policy.retries, "retries_delay": policy.delay_s}
        case Exponential():
            return {"max_attempts": policy.max_attempts, "retry_base": policy.base_s, "retry_cap": policy.cap_s}
        case Schedule():
            return {"schedule": list(policy.waits_s)}


def render_windows(endpoint: Endpoint) -> list[dict[str, object]]:
    """Outage windows in request format."""
    return [
        {
            "start": each.begins // 1000,
            "end": -(-each.ends // 1000),
            "endpoint": each.trouble.value,
            "status": each.status,
            "retry_after": each.retry_after_s,
            "takes": each.takes_ms / 1000,
            "share": round(each.share, 3),
            "down": each.down_ms // 1000 or None,
            "up": each.up_ms // 1000 or None,
        }
        for each in endpoint.windows
    ]


def filled(fields: Fields, told: History | None) -> Fields:
    """A request with a subscriber's history, if there is one, as outage and traffic.

    Values in the request itself take precedence.
    """
    if told is None:
        return fields
    return request_of(told) | {name: value for name, value in fields.items() if value is not None}


def request_of(told: History) -> dict[str, object]:
    """A request with a subscriber's history as its outage."""
    return {
        "outage": render_windows(told.endpoint),
        "rate": min(float(MAX_RATE), max(MIN_RATE, told.rate)),
        "takes": told.endpoint.takes_ms / 1000,
        "duration": min(MAX_DURATION_S, max(1, told.duration_ms // 1000)),
        "message_expiration": min(MAX_EXPIRATION_S, max(1, told.life_ms // 1000)),
    }


def render_history(told: History) -> dict[str, object]:
    """A subscriber's history as the simulator uses it."""
    return {
        "from": iso_time(told.starts_at),
        "messages": told.messages,
        "attempts": told.attempts,
        "failed": told.failed,
        "outage": render_windows(told.endpoint),
    }


def render_forecast(forecast: Forecast) -> dict[str, object]:
    """A forecast; times are seconds."""
    delays = forecast.delays_ms
    return {
        "accepted": forecast.accepted,
        "delivered": forecast.delivered,
        "expired": forecast.expired,
        "given_up": forecast.given_up,
        "held": forecast.held,
        "waiting": forecast.waiting,
        "attempts": forecast.attempts,
        "failed_attempts": forecast.failed,
        "retries": forecast.retries,
        "peak_per_minute": forecast.peak,
        "delay": None
        if delays is None
        else {
            name: round(delay / 1000, 1)
            for name, delay in zip((*(f"p{each}" for each in PERCENTS[:-1]), "max"), delays, strict=True)
        },
        "over_time": {
            "every": forecast.series.every_ms // 1000,
            "attempts": list(forecast.series.attempts),
            "failed": list(forecast.series.failed),
        },
        "circuit_opened": forecast.opened,
        "disabled_after": None if forecast.disabled_at_ms is None else forecast.disabled_at_ms // 1000,
        "dollars": round(forecast.dollars, 4),
        "sample": forecast.sample,
    }


def notes(forecast: Forecast) -> list[str]:
    """Notes that a reader of a forecast needs."""
    told = ["Cost is calculated from list prices (us-east-1), for messages of 1 KB that are posted one by one."]
    if forecast.sample > 1:
        told.append(
            f"Not every message was simulated: up to {forecast.sample} were simulated as one, and figures are scaled."
        )
    if forecast.disabled_at_ms is not None:
        told.append("The subscriber was disabled: messages that were waiting, or came later, were given up.")
    return told
