"""Owners change their settings at random in the middle of traffic: no attempt that begins a second after the answer to
a change goes by what was before it.

Judged by what the receivers were sent: each version of the settings has a header and, at times, a URL of its own.
"""

from __future__ import annotations

import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest
import requests
from tests.stack.endpoints import Endpoint, Push, Recorder
from tests.stack.project import ProjectClient, unique, until
from tests.stack.running import RunningStack

pytestmark = pytest.mark.stack

QUEUES = 3
CHANGES = 5
"""Changes of each queue. The first of each meets copies that were made before anything was noted."""
DELAYS_S = 0, 0, 1, 3
POSTED_EVERY_S = 0.2
"""Often enough that each environment of the functions has used what is changed; more only takes processors."""


class Stalls:
    """Watches how long a thread of this machine waits for a processor."""

    def __init__(self) -> None:
        self._longest_s = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        before = time.monotonic()
        while not self._over.wait(0.02):
            now = time.monotonic()
            self._longest_s, before = max(self._longest_s, now - before), now

    def __enter__(self) -> Stalls:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def late_s(self) -> float:
        """How long after the answer to a change a request from before it may arrive: a second, and the time in which
        the processes of this machine begin one, send it and read it. A copy that nobody is told of would last a minute.
        """
        return 5 + 5 * self._longest_s


def version_of(push: Push) -> str:
    """The version of the settings that a request went by."""
    return next(value for name, value in push.received.headers if name.lower() == "x-version")


class Owner(ABC):
    """Someone with one subscriber, who changes it at random.

    Args:
        project: Its project.
        recorder: Where its endpoints are.
        random: Decides.

    Attributes:
        told: Each change, for people.
    """

    def __init__(self, project: ProjectClient, recorder: Recorder, random: Random) -> None:
        self.project, self.random = project, random
        self.told: list[str] = []
        self._recorder = recorder
        self._endpoints: list[Endpoint] = []
        self._version = 0
        self._over: dict[str, float] = {}
        self._taken_back: dict[str, float] = {}
        self._posted: set[str] = set()
        self.make()

    @abstractmethod
    def make(self) -> None:
        """Make the queue or application."""

    @abstractmethod
    def post(self) -> None:
        """Post something."""

    @abstractmethod
    def change(self) -> None:
        """Make one change at random."""

    def next(self, *, moves: bool) -> tuple[str, dict[str, str]]:
        """URL and headers of another version."""
        self._version += 1
        if moves or not self._endpoints:
            self._endpoints.append(self._recorder.endpoint())
        return self._endpoints[-1].url, {"X-Version": str(self._version)}

    def posts(self, *markers: str) -> None:
        """Say what was posted, once that was answered."""
        self._posted.update(markers)

    def changed(self, what: str, before: int, *, taken_back: frozenset[str] = frozenset()) -> None:
        """Say that a change was answered: the versions up to one are over, and some messages must not be sent."""
        now = time.monotonic()
        self.told.append(what)
        for version in range(1, before + 1):
            self._over.setdefault(str(version), now)
        for marker in taken_back:
            self._taken_back.setdefault(marker, now)

    @property
    def version(self) -> int:
        """The present version."""
        return self._version

    @property
    def answered(self) -> frozenset[str]:
        """What was posted and answered so far."""
        return frozenset(self._posted)

    @property
    def pushes(self) -> list[Push]:
        """Everything it got."""
        return [push for each in self._endpoints for push in each.pushes]

    def wrong(self, late_s: float) -> Iterator[str]:
        """What went the old way."""
        for push in self.pushes:
            version = version_of(push)
            too_late = self._over.get(version, push.at) + late_s
            if push.at > too_late:
                yield f"version {version} came {push.at - too_late + late_s:.2f} s after its end ({self.told})"
            marker = push.body.decode().strip('{"}').rpartition('"')[2]
            if push.at > self._taken_back.get(marker, push.at) + late_s:
                yield f"{marker} came although it was taken back ({self.told})"


class QueueOwner(Owner):
    """The owner of a push queue."""

    def make(self) -> None:
        self.queue = unique("changing")
        self._made()

    def _made(self) -> None:
        settings = {"type": "multicast", "push": {"subscribers": [self._subscriber(moves=True)]}}
        for _ in range(50):
            if self.project.call("PUT", f"/queues/{self.queue}", {"queue": settings}).status_code in (200, 201):
                return
            # A post since the deletion has made a pull queue.
            self.project.call("DELETE", f"/queues/{self.queue}")
        raise AssertionError("posts keep making pull queues")

    def _subscriber(self, *, moves: bool, name: str = "one") -> dict[str, object]:
        url, headers = self.next(moves=moves)
        return {"name": name, "url": url, "headers": headers}

    def post(self) -> None:
        markers = [unique("m") for _ in range(self.random.randint(1, 4))]
        messages = [{"body": each, "delay": self.random.choice(DELAYS_S)} for each in markers]
        answer = self.project.call("POST", f"/queues/{self.queue}/messages", {"messages": messages})
        if answer.status_code == 201:
            self.posts(*markers)

    def change(self) -> None:
        before, posted, path = self.version, self.answered, f"/queues/{self.queue}"
        what = self.random.choice(("moved", "other headers", "replaced", "removed", "cleared", "deleted"))
        if what in ("moved", "other headers"):
            changed = self._subscriber(moves=what == "moved")
            self.project.take("POST", f"{path}/subscribers", {"subscribers": [changed]})
            self.changed(what, before)
        elif what == "replaced":
            other = self._subscriber(moves=False, name=f"v{before}")
            self.project.take("PUT", f"{path}/subscribers", {"subscribers": [other]})
            self.changed(what, before)
            self.project.take("PUT", f"{path}/subscribers", {"subscribers": [self._subscriber(moves=True)]})
            self.changed(what, before + 1)
        elif what == "removed":
            self.project.take("POST", f"{path}/subscribers", {"subscribers": [self._subscriber(moves=True, name="x")]})
            self.project.take("DELETE", f"{path}/subscribers", {"subscribers": [{"name": "one"}]})
            self.changed(what, before)
            self.project.take("PUT", f"{path}/subscribers", {"subscribers": [self._subscriber(moves=False)]})
        elif what == "cleared":
            self.project.take("DELETE", f"{path}/messages", {})
            self.changed(what, 0, taken_back=posted)
        else:
            self.project.take("DELETE", path)
            self.changed(what, before, taken_back=posted)
            self._made()


class ApplicationOwner(Owner):
    """The owner of an application of webhooks."""

    def make(self) -> None:
        url, headers = self.next(moves=True)
        self.app = self._call("POST", "", {"name": "changing"})["id"]
        made = self._call("POST", f"/{self.app}/endpoint", {"url": url, "headers": headers})
        self.path = f"/{self.app}/endpoint/{made['id']}"

    def _call(self, method: str, path: str, body: object = None) -> dict[str, str]:
        token = {"Authorization": f"Bearer {self.project.token}"}
        url = f"{self.project.base_url}/api/v1/app{path}"
        answer = requests.request(method, url, json=body, headers=token, timeout=60)
        assert answer.status_code in (200, 201, 202, 204), f"{method} {path}: {answer.status_code} {answer.text}"
        content: dict[str, str] = answer.json() if answer.content else {}
        return content

    def post(self) -> None:
        marker = unique("m")
        self._call("POST", f"/{self.app}/msg", {"eventType": "a.b", "payload": {"marker": marker}})
        self.posts(marker)

    def change(self) -> None:
        before = self.version
        what = self.random.choice(("other headers", "moved", "disabled", "deleted"))
        if what == "other headers":
            self._call("PUT", f"{self.path}/headers", {"headers": self.next(moves=False)[1]})
            self.changed(what, before)
        elif what == "disabled":
            self._call("PATCH", self.path, {"disabled": True})
            self.changed(what, before)
            time.sleep(0.5)
            self._call("PUT", f"{self.path}/headers", {"headers": self.next(moves=False)[1]})
            self._call("PATCH", self.path, {"disabled": False})
        elif what == "deleted":
            self._call("DELETE", self.path)
            self.changed(what, before)
            url, headers = self.next(moves=False)
            made = self._call("POST", f"/{self.app}/endpoint", {"url": url, "headers": headers})
            self.path = f"/{self.app}/endpoint/{made['id']}"
        else:
            url, headers = self.next(moves=True)
            self._call("PUT", f"{self.path}/headers", {"headers": headers})
            self._call("PATCH", self.path, {"url": url})
            self.changed(what, before)


@pytest.mark.parametrize("kind", [QueueOwner, ApplicationOwner])
def test_no_attempt_goes_the_old_way_a_second_after_a_change(stack: RunningStack, kind: type[Owner]) -> None:
    seed = int(os.environ.get("PUSHHUB_SEED", "17"))
    random = Random(seed)
    project = ProjectClient.another(stack)
    with Recorder() as recorder, Stalls() as stalls:
        # Given queues to which messages are posted all the time, so that environments have copies of them
        owners = [kind(project, recorder, Random(random.random())) for _ in range(QUEUES)]
        enough = threading.Event()

        def produce(owner: Owner) -> None:
            while not enough.wait(POSTED_EVERY_S):
                owner.post()

        with ThreadPoolExecutor() as pool:
            producers = [pool.submit(produce, each) for each in owners]
            try:
                until(lambda: all(len(each.pushes) > 5 for each in owners), 120, lambda: "pushes are missing")
                # When their owners change them at random
                for _ in range(QUEUES * CHANGES):
                    random.choice(owners).change()
                    time.sleep(random.choice((0, 0.3, 1.5)))
                time.sleep(stalls.late_s)
            finally:
                enough.set()
            for each in producers:
                each.result()
        # Then what is posted goes the newest way
        for owner in owners:
            owner.post()

        def came() -> bool | None:
            return all(str(each.version) in map(version_of, each.pushes) for each in owners) or None

        until(came, 120, lambda: f"seed {seed}: the last versions are not in use")
        # And nothing went the old way later than a second after the answer
        wrong = [why for each in owners for why in each.wrong(stalls.late_s)]
        assert not wrong, f"seed {seed}, {stalls.late_s:.2f} s: " + "; ".join(wrong)
