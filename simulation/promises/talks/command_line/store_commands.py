"""Messages of a store that wait for a person, and services."""

from __future__ import annotations

import json

from simulation.promises.talks.command_line.printed import REFUSED, WRONG_USAGE
from simulation.promises.talks.command_line.receiver_commands import gated, receiver_signed
from simulation.promises.talks.talk import Came, Talk

MINUTE = 60


def stores(talk: Talk) -> None:
    """Messages that wait for a person, and services."""
    talk.through(_waiting, _services)


def _waiting(talk: Talk) -> None:
    says = {"status": 500}

    def done(each: Came) -> tuple[int, bytes]:
        return says["status"], json.dumps({"message_id": json.loads(each.body)["message_id"]}).encode()

    came = talk.listen("typed-held.example", done)
    options = {"retry_base": 5, "retry_cap": 60, "max_attempts": 1}
    fields = {"name": "typed-held", "url": "https://typed-held.example/in", "token": "t", "messages": ["typed:held"]}
    mapping = {"mapping": {**fields, "options": options}}
    answer = talk.ask("POST", "/mappings", mapping, status=201)
    mapping_id = answer.get("mapping", answer)["id"]
    talk.sleep(61)
    for number in range(3):
        talk.ask("POST", "/messages", {"message": "typed:held", "payload": {"n": number}}, status=201)
    talk.sleep(2 * MINUTE + talk.put_off_s)
    talk.came("one try each", 3, len(came))
    waits = talk.typed("retry", "--waiting", "--dry-run", shows=3 * [{"state": "would be tried"}])
    first = waits[0]["message"]
    talk.came("nothing was sent", 3, len(came))
    talk.typed("health", "--store", shows=[{"mapping": "typed-held", "state": str}])
    says["status"] = 200
    talk.typed("retry", first, shows=[{"message": first, "type": "typed:held"}])
    talk.sleep(20)
    talk.came("one more", 4, len(came))
    talk.typed(
        "retry", first, code=REFUSED, shows=[{"message": first, "state": lambda each: each.startswith("refused")}]
    )
    talk.typed("retry", "--waiting", code=WRONG_USAGE)
    talk.typed("retry", "--waiting", "--yes", shows=[{"type": "typed:held"}, {"type": "typed:held"}])
    talk.sleep(30 + talk.put_off_s)
    talk.came("all that waited", 6, len(came))
    talk.typed("retry", "--waiting", "--yes", shows=[])
    talk.typed("events", "--store", "--type", "typed:held", shows=lambda rows: len(rows) >= 3)
    talk.typed("events", "--store", "--type", "typed:none", shows=[])
    talk.ask("DELETE", f"/mappings/{mapping_id}")


def _services(talk: Talk) -> None:
    fields = {"name": "typed.ship", "url": "https://typed-ship.example/in", "token": "t", "messages": ["typed:ship"]}
    answer = talk.ask("POST", "/mappings", {"mapping": fields}, status=201)
    mapping_id = answer.get("mapping", answer)["id"]
    whose = ("--mapping", "typed.ship")
    receiver_signed(talk, whose)
    gated(talk, whose)
    talk.typed("signatures", "show", "--mapping", "typed.none", code=REFUSED, says="no mappings are called")
    talk.ask("DELETE", f"/mappings/{mapping_id}")


__all__ = ["stores"]
