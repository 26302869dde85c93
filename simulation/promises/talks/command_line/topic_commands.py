"""What waits for the subscribers of topics."""

from __future__ import annotations

from simulation.promises.talks.notifications import Connect
from simulation.promises.talks.talk import Talk


def topics(talk: Talk, connect: Connect) -> None:
    """What waits for the subscribers of topics."""

    def waits(one: Talk) -> None:
        _topics(one, connect)

    talk.through(waits)


def _topics(talk: Talk, connect: Connect) -> None:
    talk.typed("topics", shows=[])
    rule = {"context": "tenant", "subscription": "typedTopic", "subscriptionFilter": {"apis": ["events"]}}
    created = talk.ask("POST", "/subscriptions", rule, status=201)["id"]
    tokens = {
        name: talk.ask("POST", "/token", {"subscription": "typedTopic", "subscriber": name, **more})["token"]
        for name, more in (("kept", {}), ("brief", {"nonPersistent": True}))
    }
    sides = [connect({"token": each}) for each in tokens.values()]
    talk.sleep(5)
    talk.ask("POST", "/notifications", {"api": "events", "source": "1", "data": {"type": "t"}}, status=201)
    talk.sleep(5)
    row = {"topic": "typedTopic", "consumers": 1, "bytes": int}
    rows = [
        {**row, "subscriber": "brief", "kept": "while connected", "unacknowledged": 0},
        {**row, "subscriber": "kept", "kept": "until acknowledged", "unacknowledged": 1},
    ]
    for words in (("topics",), ("topics", "typedTopic")):
        shown = sorted(talk.typed(*words), key=lambda each: str(each["subscriber"]))
        talk.is_so("subscribers", rows, shown)
    talk.typed("topics", "nobody", shows=[])
    for each in sides:
        each.close()
    for each in tokens.values():
        talk.ask("POST", f"/unsubscribe?token={each}", shows={"result": "DONE"})
    talk.ask("DELETE", f"/subscriptions/{created}", status=204)


__all__ = ["topics"]
