"""The records of two days of webhooks on the whole engine: endpoints that work, are down, and are disabled.

There are ordering keys, resends, replays and an erasure.

    python -m tests.webhooks.lived FILE

writes them as JSON lines, in the order in which they were made. The report's tests have an environment of their own and
run this in the hub's.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.engine.world import PROJECT
from tests.fakes import Reply
from tests.webhooks.world import WebhooksWorld

from pushhub.base.times import iso_time
from pushhub.engine.model.delivery import Delivery
from pushhub.engine.model.keys import DeliveryKey
from pushhub.engine.model.record import DeliveryRecord
from pushhub.engine.model.records import record_of_acceptance, record_of_delivery
from pushhub.webhooks.wiring import Webhooks

__all__ = ["Lived", "live"]

WELL, DOWN, GONE, LATE = (f"https://{name}.example/in" for name in ("well", "down", "gone", "late"))
HOUR = 3600


class Lived:
    """A world whose changes become records as they happen.

    Attributes:
        world: The world.
        records: In the order in which they were made.
    """

    def __init__(self) -> None:
        self.world = WebhooksWorld()
        self.records: list[DeliveryRecord] = []
        self._stood: dict[DeliveryKey, Delivery] = {}
        self._accepted = 0
        real = self.world.messages.save

        def save(delivery: Delivery) -> None:
            real(delivery)
            self.note_accepted()
            record = record_of_delivery(self._stood.get(delivery.key), delivery, self.world.clock.now())
            self._stood[delivery.key] = delivery
            if record is not None:
                self.records.append(record)

        self.world.messages.save = save  # type: ignore[method-assign]

    def note_accepted(self) -> None:
        """Write the records of what was accepted since the last call."""
        messages = self.world.messages.all_messages()
        self.records += map(record_of_acceptance, messages[self._accepted :])
        self._accepted = len(messages)


def live() -> Lived:
    """Two days."""
    lived = Lived()
    world = lived.world
    app = world.make_app("Acme", uid="acme")
    path = f"/app/{app}/endpoint"
    world.make_endpoint(app, WELL, uid="well")
    down = world.make_endpoint(app, DOWN, uid="down")
    gone = world.make_endpoint(app, GONE, uid="gone", channels=["news"])
    late = world.make_endpoint(app, LATE, uid="late", channels=["late"])
    world.sender.script(DOWN, 503)
    world.sender.script(GONE, 200, Reply(status_code=410))
    began = iso_time(world.clock.now())
    posted: list[str] = []
    for number in range(60):
        body: dict[str, Any] = {"eventType": "order.paid", "payload": {"number": number}}
        if number % 2:
            body["orderingKey"] = f"customer-{number % 6}"
        if number % 10 == 0:
            body["channels"] = ["news"]
        if number == 7:
            body["ttl"] = 2 * HOUR
        posted.append(str(world.ask("POST", f"/app/{app}/msg", body)["id"]))
        world.run(seconds=30)
    world.ask("DELETE", f"/app/{app}/msg/{posted[3]}/content")
    world.ask("POST", f"/app/{app}/msg/{posted[4]}/endpoint/{down}/resend")
    world.run(seconds=3 * HOUR)
    world.sender.script(DOWN, 200)
    world.run(seconds=6 * HOUR)
    world.ask("PATCH", f"{path}/{late}", {"channels": None})
    world.ask("POST", f"{path}/{late}/replay-missing", {"since": began})
    world.ask("POST", f"/app/{app}/msg/{posted[20]}/endpoint/{gone}/resend")
    for _ in range(10):
        world.hub.part(Webhooks).tasks.run_project(PROJECT, lambda: 55_000)
        world.run(seconds=60)
    world.run(seconds=38 * HOUR)
    lived.note_accepted()
    return lived


def main(file: Path) -> None:
    """Live through two days and write their records."""
    file.write_text("".join(json.dumps(each.as_fields()) + "\n" for each in live().records))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
