"""The word for how an endpoint is doing: of several that apply the first, since when, until when and why; in a second
outage as in the first.

Sources: docs/ironmq.md ("How a subscriber is doing"), docs/gates.md ("What happens at a delivery").
"""

from __future__ import annotations

from typing import Any

from simulation.promises.judgement import SECOND
from simulation.promises.talks.certificates import identity
from simulation.promises.talks.customers import HOUR, LATE_S, MINUTE, Customer
from simulation.promises.talks.talk import Talk

MANY = 30
"""Failures one after another that open a circuit for certain."""

SOON_S = 130
"""A circuit that opened a moment ago is probed within this time."""

OUTAGE_S = 20 * MINUTE
"""So long an outage that probes are further apart than that."""

ILL, OK = (500, b""), (200, b"")


def webhooks(talk: Talk) -> None:
    """All of it."""
    talk.through(_opens_again, _first_that_applies, _limited)


def _doing(talk: Talk, one: Customer, uid: str) -> Any:
    return talk.ask("GET", f"{one.path}/endpoint/{uid}/health")["health"]


def _falls_ill(talk: Talk, one: Customer, uid: str) -> None:
    """An endpoint fails until its circuit has opened, which shows since when, and when it is asked next."""
    one.says[uid] = ILL
    began = talk.now()
    for number in range(MANY):
        one.post(number)
        talk.sleep(1, exactly=True)
    talk.sleep(MINUTE + talk.put_off_s)
    found = _doing(talk, one, uid)
    talk.is_so("its circuit is open", {"state": "circuit_open", "since": str}, found)
    late_s = MINUTE + talk.gathered_s + talk.put_off_s
    since = (talk.moment(found["since"]) - began) / SECOND
    talk.is_so("since its first failure", lambda each: -2 <= each <= late_s, since)
    # Nothing is said of a moment that has passed
    until = talk.now() if found["until"] is None else talk.moment(found["until"])
    talk.is_so("until it is asked", lambda each: 0 <= each <= SOON_S, (until - talk.now()) / SECOND)


def _opens_again(talk: Talk) -> None:
    """While a circuit is open, catches up, and is open again: since the second outage began, with probes as at first;
    and whoever is switched off is that before anything else.
    """
    one = Customer(talk, "doing")
    for uid in ("ill", "well"):
        one.endpoint(uid)
    _falls_ill(talk, one, "ill")
    talk.is_so("the other is not", "delivering", _doing(talk, one, "well")["state"])
    talk.sleep(OUTAGE_S, exactly=True)
    one.says["ill"] = OK
    before = len(one.came["ill"])
    for _ in range(OUTAGE_S * 2 // 15):
        talk.sleep(15, exactly=True)
        if len(one.came["ill"]) > before:
            break
    talk.sleep(3, exactly=True)
    found = _doing(talk, one, "ill")
    talk.is_so("it catches up", {"state": "catching_up", "since": str}, found)
    back = one.came["ill"][before].at
    talk.is_so("since it is back", lambda each: -1 <= each <= 3, (talk.moment(found["since"]) - back) / SECOND)
    talk.sleep(HOUR, exactly=True)
    talk.is_so("nothing is the matter", {"state": "delivering"}, _doing(talk, one, "ill"))
    talk.came("all of it, once", [*range(MANY)], sorted(one.numbers("ill")[before:]))
    _falls_ill(talk, one, "ill")
    talk.ask("PATCH", f"{one.path}/endpoint/ill", {"disabled": True})
    talk.is_so("switched off", {"state": "disabled"}, _doing(talk, one, "ill"))
    one.over()


def _first_that_applies(talk: Talk) -> None:
    """Disabled before waiting for consent, that before suspended, that before a certificate that has ended, and that
    before a token server that is down, which says what that answered.
    """
    one = Customer(talk, "applies")
    talk.listen("applies-login.example", lambda _: (503, b""))
    for uid in ("gated", "ended"):
        one.endpoint(uid)
        grant = {"grantType": "clientCredentials", "authMethod": "clientSecretPost", "clientId": uid}
        grant |= {"clientSecret": "hush", "tokenUrl": f"https://applies-login.example/{uid}"}
        talk.ask("PUT", f"{one.path}/endpoint/{uid}/oauth", grant, status=204)
    one.endpoint("asked", cloudEvents={"mode": "binary", "consent": True})
    one.endpoint("plain")
    talk.sleep(2)
    began = talk.now()
    one.post(1)
    talk.sleep(30 + talk.put_off_s)
    ends_s = talk.epoch_s() + 20
    talk.ask("PUT", f"{one.path}/endpoint/ended/mtls", {"identity": identity(90, ends_s)}, status=204)
    talk.sleep(30, exactly=True)
    states = {
        "gated": "token_server_down",
        "ended": "certificate_ended",
        "asked": "awaits_consent",
        "plain": "delivering",
    }
    _are(talk, one, states)
    found = _doing(talk, one, "gated")
    talk.is_so("what it answered", {"reason": lambda each: "503" in each, "since": str, "until": str}, found)
    since, until = (talk.moment(found[each]) for each in ("since", "until"))
    late_s = 20 + talk.gathered_s + talk.put_off_s
    talk.is_so("since its first refusal", lambda each: -1 <= each <= late_s, (since - began) / SECOND)
    talk.is_so("until it is asked again", lambda each: 0 <= each <= SOON_S, (until - talk.now()) / SECOND)
    since_end = talk.moment(_doing(talk, one, "ended")["since"]) / SECOND + talk.epoch_s() - talk.now() / SECOND
    talk.is_so("since its end", lambda each: abs(each) <= 2, since_end - ends_s)
    talk.typed("projects", "suspend", talk.project, shows=[{"suspended": str}])
    talk.sleep(6, exactly=True)
    suspended = dict.fromkeys(states, "suspended") | {"asked": "awaits_consent"}
    _are(talk, one, suspended)
    talk.typed("projects", "resume", talk.project, shows=[{"suspended": None}])
    talk.sleep(6, exactly=True)
    for uid in states:
        talk.ask("PATCH", f"{one.path}/endpoint/{uid}", {"disabled": True})
    talk.sleep(2)
    talk.typed("projects", "suspend", talk.project, shows=[{"suspended": str}])
    talk.sleep(6, exactly=True)
    _are(talk, one, dict.fromkeys(states, "disabled"))
    talk.typed("projects", "resume", talk.project, shows=[{"suspended": None}])
    talk.sleep(6, exactly=True)
    one.over()


def _are(talk: Talk, one: Customer, states: dict[str, str]) -> None:
    """How several endpoints are doing, as each shows it, and their list."""
    found = {uid: _doing(talk, one, uid)["state"] for uid in states}
    talk.is_so("how they are doing", states, found)
    listed = {each["uid"]: each["health"]["state"] for each in talk.ask("GET", f"{one.path}/endpoint")["data"]}
    talk.is_so("the same in the list", found, listed)


def _limited(talk: Talk) -> None:
    """What waits for its rate is counted, and its endpoint limited, until it has come."""
    if talk.gathered_s or talk.put_off_s:
        return
    one = Customer(talk, "limited")
    one.endpoint("limited", throttleRate=1)
    one.endpoint("free")
    talk.sleep(2)
    for number in range(MANY):
        one.post(number)
        if number == MANY // 2 - 1:
            talk.sleep(8)
    talk.sleep(4)
    path = f"{one.path}/endpoint/limited/health"
    came = len(one.came["limited"])
    waits = talk.ask("GET", path, shows={"circuit": "closed", "health": {"state": "rate_limited"}})["waiting"]
    # What waited together is counted until all of it has been sent
    talk.is_so("what waits", lambda each: MANY - came - 3 <= each <= MANY, waits)
    talk.is_so("the other is not", "delivering", _doing(talk, one, "free")["state"])
    talk.sleep(MANY + LATE_S)
    talk.ask("GET", path, shows={"waiting": 0, "health": {"state": "delivering"}})
    numbers = one.numbers("limited")
    talk.came("each once", [*range(MANY)], sorted(numbers))
    # Those that come at one moment have no order
    early = sum(each < MANY // 2 for each in numbers[: MANY // 2])
    talk.came("in order, about", lambda each: each >= MANY // 2 - 2, early)
    one.over()


__all__ = ["webhooks"]
