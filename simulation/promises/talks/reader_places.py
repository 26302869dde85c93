"""How far readers are: what a consumer may acknowledge, what takes nothing back, and whose place it is where names are
equal.

Sources: docs/webhooks.md ("Pollers").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simulation.promises.talks.talk import Talk

KIND, OTHER = "places.made", "places.else"
APP, TWIN = "/app/places", "/app/places-twin"
SETTLED_S = 3
"""Messages are read two seconds after they were posted."""

LEASE_S = 30


def webhooks(talk: Talk) -> None:
    """All of it."""
    talk.through(_acknowledged, _chosen, _namesakes)


def _begun(talk: Talk, *paths: str) -> None:
    for name in (KIND, OTHER):
        talk.ask("POST", "/event-type", {"name": name, "description": "d"}, status=201)
    for path in paths:
        talk.ask("POST", "/app", {"name": "Places", "uid": path.rpartition("/")[2]}, status=201)


def _over(talk: Talk, *paths: str) -> None:
    for path in paths:
        talk.ask("DELETE", path, status=204)
    for name in (KIND, OTHER):
        talk.ask("DELETE", f"/event-type/{name}?expunge=true", status=204)


def _post(talk: Talk, *numbers: int, path: str = APP, kind: str = KIND) -> None:
    for number in numbers:
        talk.ask("POST", f"{path}/msg", {"eventType": kind, "payload": {"n": number}}, status=202)
        talk.sleep(0.2, exactly=True)


def _polling(talk: Talk, uid: str, *, path: str = APP, **more: Any) -> str:
    """A polling endpoint; where its consumers read."""
    fields = {"type": "pollingEndpoint", "config": {}, "uid": uid, **more}
    talk.ask("POST", f"{path}/destination", fields, status=201)
    return f"{path}/polling-endpoint/{uid}/consumer"


def _given(talk: Talk, path: str, expected: Sequence[int]) -> list[int]:
    """Read what a consumer is given; the offsets."""
    page = talk.ask("GET", path)
    talk.is_so(f"what {path[-60:]} is given", [*expected], [each["payload"]["n"] for each in page["data"]])
    return [each["offset"] for each in page["data"]]


def _acknowledged(talk: Talk) -> None:
    """What was given may be acknowledged, and nothing beyond; what is acknowledged again ends no lease and takes
    nothing back; each consumer has offsets of its own.
    """
    _begun(talk, APP)
    path = _polling(talk, "polls")
    _post(talk, *range(6))
    talk.sleep(SETTLED_S, exactly=True)
    first = _given(talk, f"{path}/one?limit=3", [0, 1, 2])
    talk.ask("POST", f"{path}/one/commit", {"offset": first[-1] + 1}, status=422)
    talk.ask("POST", f"{path}/none/commit", {"offset": first[0]}, status=422)
    _given(talk, f"{path}/one", [])
    talk.ask("POST", f"{path}/one/commit", {"offset": first[1]}, status=204)
    rest = _given(talk, f"{path}/one?limit=2", [2, 3])
    talk.is_so("one after the other", [first[1] + 1, first[1] + 2], rest)
    # Once more, and one before it
    for offset in (first[1], first[0]):
        talk.ask("POST", f"{path}/one/commit", {"offset": offset}, status=204)
    _given(talk, f"{path}/one", [])
    other = _given(talk, f"{path}/two", [0, 1, 2, 3, 4, 5])
    talk.ask("POST", f"{path}/two/commit", {"offset": other[-1]}, status=204)
    _given(talk, f"{path}/two", [])
    talk.sleep(LEASE_S, exactly=True)
    again = _given(talk, f"{path}/one", [2, 3, 4, 5])
    talk.is_so("by the same numbers", rest, again[:2])
    talk.ask("POST", f"{path}/one/commit", {"offset": again[-1]}, status=204)
    _post(talk, 6)
    talk.sleep(SETTLED_S, exactly=True)
    for name in ("one", "two"):
        last = _given(talk, f"{path}/{name}", [6])
        talk.is_so("in the end", [again[-1] + 1], last)
    _over(talk, APP)


def _chosen(talk: Talk) -> None:
    """A polling endpoint gives what it chooses as it is by then; while it is off, nothing; and what was read from is
    left out once it is erased.
    """
    _begun(talk, APP)
    path = _polling(talk, "polls", eventTypes=[OTHER])
    destination = f"{APP}/destination/polls"
    _post(talk, 0)
    _post(talk, 1, 2, kind=OTHER)
    talk.sleep(SETTLED_S, exactly=True)
    offsets = _given(talk, f"{path}/one?lease_duration_ms=1000", [1, 2])
    talk.is_so("without gaps", 1, offsets[1] - offsets[0])
    talk.sleep(2, exactly=True)
    talk.ask("PATCH", destination, {"type": "pollingEndpoint", "status": "disabled"}, shows={"status": "disabled"})
    talk.sleep(1, exactly=True)
    _given(talk, f"{path}/two", [])
    talk.ask("PATCH", destination, {"type": "pollingEndpoint", "status": "enabled"}, shows={"status": "enabled"})
    talk.sleep(1, exactly=True)
    offsets = _given(talk, f"{path}/one?lease_duration_ms=1000", [1, 2])
    talk.ask("POST", f"{path}/one/commit", {"offset": offsets[0]}, status=204)
    talk.ask("PATCH", destination, {"type": "pollingEndpoint", "eventTypes": None}, shows={"eventTypes": None})
    talk.sleep(1, exactly=True)
    _post(talk, 3)
    talk.sleep(SETTLED_S, exactly=True)
    _given(talk, f"{path}/one", [2, 3])
    _given(talk, f"{path}/three", [0, 1, 2, 3])
    _over(talk, APP)


def _namesakes(talk: Talk) -> None:
    """Consumers of equal names at other readers, in another application, or at a reader that is made again, each have
    a place of their own.
    """
    _begun(talk, APP, TWIN)
    paths = {path: _polling(talk, "polls", path=path) for path in (APP, TWIN)}
    beside = _polling(talk, "beside")
    for path, number in ((APP, 0), (TWIN, 10)):
        _post(talk, number, number + 1, path=path)
    talk.sleep(SETTLED_S, exactly=True)
    offsets = _given(talk, f"{paths[APP]}/same", [0, 1])
    talk.ask("POST", f"{paths[APP]}/same/commit", {"offset": offsets[-1]}, status=204)
    _given(talk, f"{paths[TWIN]}/same", [10, 11])
    _given(talk, f"{beside}/same", [0, 1])

    def read(sink: str, expected: Sequence[int], query: str = "", path: str = APP) -> str:
        page = talk.ask("GET", f"{path}/poller/{sink}/consumer/same{query}")
        talk.is_so(f"what {path} {sink} has", [*expected], [each["payload"]["n"] for each in page["data"]])
        return str(page["iterator"])

    iterator = read("left", [0], "?limit=1")
    read("left", [1], f"?limit=1&iterator={iterator}")
    read("left", [1])
    read("right", [0, 1])
    read("left", [10, 11], path=TWIN)
    talk.ask("DELETE", f"{APP}/destination/polls", status=204)
    again = _polling(talk, "polls")
    _given(talk, f"{again}/same", [])
    _post(talk, 2)
    talk.sleep(SETTLED_S, exactly=True)
    talk.is_so("from its making on", 1, len(_given(talk, f"{again}/same", [2])))
    talk.ask("DELETE", APP, status=204)
    talk.ask("POST", "/app", {"name": "Places", "uid": "places"}, status=201)
    read("left", [])
    talk.ask("GET", f"{again}/same", status=404)
    _over(talk, APP, TWIN)


__all__ = ["webhooks"]
