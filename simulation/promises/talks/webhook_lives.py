"""What delivery records say of messages of Svix's API, from their acceptance to their end.

Source: docs/records.md, field by field and kind by kind.
"""

from __future__ import annotations

from collections import defaultdict

from simulation.promises.talks.records import Answers, Record, in_turn, near, recorded_of
from simulation.promises.talks.talk import Talk


def webhooks(talk: Talk) -> None:
    """Of Svix's API."""
    talk.through(_sent)


def _sent(talk: Talk) -> None:
    """Messages with an ordering key, which fail once; one again, by hand; signatures by their names; and 410."""
    talk.ask("POST", "/event-type", {"name": "lives.made", "description": "d"}, status=201)
    app = talk.ask("POST", "/app", {"name": "Lives", "uid": "lives"}, status=201)["id"]
    answers: Answers = [(500, b"no"), (200, b"ok")]
    came = talk.listen("lives-sent.example", in_turn(answers))
    endpoint = {"url": "https://lives-sent.example/in", "uid": "one", "secret": "whsec_" + 32 * "A"}
    talk.ask("POST", "/app/lives/endpoint", endpoint, status=201)

    def posted(number: int) -> str:
        message = {"eventType": "lives.made", "payload": {"n": number}, "orderingKey": "k"}
        return str(talk.ask("POST", "/app/lives/msg", message, status=202)["id"])

    first, second = posted(1), posted(2)
    talk.sleep(30 + 2 * talk.gathered_s + talk.put_off_s)
    talk.ask("POST", f"/app/lives/msg/{second}/endpoint/one/resend", {}, status=202)
    talk.sleep(20 + talk.put_off_s)
    both = [{"preset": "stripe", "secret": "whsec_of_stripe"}, {"preset": "standard-webhooks"}]
    talk.ask("PUT", "/app/lives/endpoint/one/signatures", {"signatures": both})
    talk.sleep(5, exactly=True)
    posted(3)
    talk.sleep(20 + talk.put_off_s)
    gone = talk.listen("lives-sent.example", lambda _: (410, b""))
    posted(4)
    talk.sleep(20 + talk.put_off_s)
    found = recorded_of(talk, lambda each: bool(each["queue"] == f"webhooks/{app}"), 11)
    by_message: dict[str, list[Record]] = defaultdict(list)
    for each in sorted(found, key=lambda each: (str(each["message_id"]), int(each.get("version", 0)))):
        by_message[each["message_id"]].append(each)
    lives = [*by_message.values()]
    talk.is_so("in the order of their key", [1, 2, 3, 4], [each[0].get("sequence") for each in lives])
    attempts = [[each for each in several if each["kind"] == "attempt"] for several in lives]
    wanted = [
        [("retrying", False, None), ("delivered", False, None)],
        [("delivered", False, None), ("delivered", True, None)],
        [("delivered", False, {"stripe", "standard-webhooks"})],
        [("exhausted", False, {"stripe", "standard-webhooks"})],
    ]
    shown = [
        [
            (each["state"], each.get("manual", False), {*each["signed_by"]} if "signed_by" in each else None)
            for each in several
        ]
        for several in attempts
    ]
    talk.is_so("their attempts", wanted, shown)
    places = [{(each["sequence"], each["dialect"]) for each in several} for several in attempts]
    talk.is_so("each at its place", [{(number, "webhooks")} for number in (1, 2, 3, 4)], places)
    talk.is_so("of one key", 1, len({each["order_key"] for several in attempts for each in several}))
    requests = [[came[0], came[1]], [came[2], came[3]], [came[4]], [gone[0]]]
    statuses = [[500, 200], [200, 200], [200], [410]]
    for several, sent, answered in zip(attempts, requests, statuses, strict=True):
        rows = [
            {"status_code": status, "bytes_out": len(each.body), "started_at": near(talk, each.at)}
            for each, status in zip(sent, answered, strict=True)
        ]
        talk.is_so("as they came", rows, several)
    talk.is_so("why it ended", {"reason": "status_410", "tries": 1}, attempts[3][0])
    asked = [each for each in lives[1] if each["kind"] == "rescheduled"]
    talk.is_so("who asked", [{"manual": True, "state": "delivered"}], asked)
    talk.is_so("not by the second alone", (str, str), (first, second))
    talk.ask("DELETE", "/app/lives", status=204)
    talk.ask("DELETE", "/event-type/lives.made?expunge=true", status=204)


__all__ = ["webhooks"]
