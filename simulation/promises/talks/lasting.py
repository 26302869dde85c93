"""What ends by itself, and when: messages that wait longer than they are kept, a payload that is kept for days, and
what opens a portal.

Sources: docs/webhooks.md ("Portal", "Ordering keys", "Differences from Svix").
"""

from __future__ import annotations

from typing import Any

from simulation.promises.talks.customers import DAY, HOUR, LATE_S, MINUTE, Customer
from simulation.promises.talks.talk import Talk

LONG_TURNS = 5
"""What takes more than a week is asked in one of so many runs."""

WEEK = 7 * DAY
GRACE_S = 3 * DAY
"""The longest time for which a token that is ended may go on."""

SECOND_S, THIRD_S = 300, 1_800
"""Svix's second and third wait, which are up to a fifth shorter or longer."""


def webhooks(talk: Talk) -> None:
    """All of it."""
    talk.through(_expired, _weeks)


def _expired(talk: Talk) -> None:
    """A message that has expired is not tried any more, whatever its endpoint asked for; its place in its key is taken
    by the next one, and a person cannot send it, either.
    """
    one = Customer(talk, "expired")
    answers: dict[str, Any] = {"fails": (500, b""), "later": (503, b"", {"retry-after": f"{3 * HOUR}"})}
    for uid, answer in answers.items():
        one.says[uid] = lambda came, answer=answer: answer if b"1" in came.body else (200, b"")
        one.endpoint(uid)
    first = one.post(1, orderingKey="k", payloadRetentionHours=1)
    second = one.post(2, orderingKey="k")
    talk.sleep((SECOND_S + THIRD_S) * 1.2 + 3 * LATE_S + 2 * talk.gathered_s)
    talk.came("until then only the first", {"fails": 4, "later": 1}, {uid: len(each) for uid, each in one.came.items()})
    talk.sleep(HOUR, exactly=True)
    talk.sleep(2 * MINUTE + LATE_S + talk.put_off_s + 2 * talk.gathered_s)
    for uid in answers:
        talk.came(f"then the second, to {uid}", [2], [number for number in one.numbers(uid) if number != 1])
    before = {uid: len(each) for uid, each in one.came.items()}
    talk.is_so("the second has arrived", dict.fromkeys(answers, (0, None)), one.state(second))
    for uid in answers:
        sent = f"{one.path}/msg/{first}/endpoint/{uid}/resend"
        talk.ask("POST", sent, status=400, shows={"code": "missing_payload"})
    talk.sleep(4 * HOUR)
    talk.came("nothing more", before, {uid: len(each) for uid, each in one.came.items()})
    talk.ask("GET", f"{one.path}/msg/{first}", shows={"payload": lambda each: each == {"expired": True}})
    one.over()


def _weeks(talk: Talk) -> None:
    """A portal's token lasts a week, or as long as was asked for. With grace it goes on for up to three days, and never
    longer than it would have; an integration's key does not end with portals. A payload is kept for its days.
    """
    if talk.turn % LONG_TURNS != 1:
        return
    one = Customer(talk, "weeks")
    began = talk.now()
    asked: dict[str, dict[str, Any]] = {
        "week": {},
        **{name: {"sessionId": name} for name in ("day", "graced", "other")},
    }
    asked["day"]["expiry"] = DAY
    tokens = {name: talk.ask("POST", "/auth/app-portal-access/weeks", body)["token"] for name, body in asked.items()}
    integration = talk.ask("POST", f"{one.path}/integration", {"name": "CRM"}, status=201)["id"]
    tokens["key"] = talk.ask("POST", f"{one.path}/integration/{integration}/key/rotate")["key"]
    kept = {days: one.post(days, payloadRetentionPeriod=days) for days in (1, 6)}

    def ends(*named: str, grace_s: int = 0) -> None:
        body = {"sessionIds": named, "expiry": grace_s} if named else {"expiry": grace_s}
        talk.ask("POST", "/auth/app/weeks/expire-all", body, status=204)

    def opens(after_s: int, *opening: str) -> None:
        talk.sleep(after_s - (talk.now() - began) / 1_000_000, exactly=True)
        found = {
            name
            for name, token in tokens.items()
            if talk.with_headers(authorization=f"Bearer {token}").status("GET", one.path) == 200
        }
        talk.is_so(f"what opens it after {after_s / HOUR:.1f} h", {*opening}, found)
        shown = {days: talk.ask("GET", f"{one.path}/msg/{each}")["payload"] for days, each in kept.items()}
        lasts = {days: {"n": days} if after_s < days * DAY else {"expired": True} for days in kept}
        talk.is_so(f"what is kept for {after_s / HOUR:.1f} h", lasts, shown)

    ends("graced", "none", grace_s=GRACE_S)
    opens(MINUTE, *tokens)
    ends("day", grace_s=GRACE_S)
    opens(DAY - MINUTE, *tokens)
    opens(DAY + 2 * MINUTE, "week", "graced", "other", "key")
    ends("graced", grace_s=GRACE_S)
    opens(GRACE_S - MINUTE, "week", "graced", "other", "key")
    opens(GRACE_S + 2 * MINUTE, "week", "other", "key")
    ends("other")
    opens(6 * DAY + 2 * MINUTE, "week", "key")
    ends(grace_s=GRACE_S)
    opens(WEEK - MINUTE, "week", "key")
    opens(WEEK + 2 * MINUTE, "key")
    opens(6 * DAY + GRACE_S + HOUR, "key")
    one.over()


__all__ = ["webhooks"]
