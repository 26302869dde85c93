"""A talk in an account of its own, in good weather: with the hub as it is, or with answers that are not its own."""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from simulation.account import Account
from simulation.gateway import WebSocketGateway
from simulation.promises.judgement import Violation
from simulation.promises.talks.notifications import Connect, Connected
from simulation.promises.talks.talk import Answered, Surroundings, Talk
from simulation.scheduler import SECOND
from simulation.template import stack
from simulation.truth import Truth
from simulation.weather import Weather
from simulation.worlds.world import World

HOUR = 3_600 * SECOND
LONGEST_H = 72

Changed = Callable[[str, str, Answered], Answered]
"""Makes another answer of one, by method and path."""


class Alone(World):
    """A world in which nobody is but who talks."""

    name = "alone"

    def set_up(self) -> None:
        """Nobody is there."""

    def actors(self) -> Mapping[str, Callable[[], object]]:
        """Nobody."""
        return {}

    def open(self) -> int:
        """Nothing."""
        return 0

    def check(self) -> Iterable[Violation]:
        """Nothing was promised."""
        return ()

    def client(self, base: str, headers: Callable[[str, str], Mapping[str, str]], changed: Changed | None) -> Talk:
        """A client of a new project, whose answers are changed."""
        talk = self._talking(base, headers)
        if changed is None:
            return talk
        around: Surroundings = talk._around

        def http(method: str, path: str, body: object, sent: Mapping[str, str]) -> Answered:
            return changed(method, path, around.http(method, path, body, sent))

        return Talk(dataclasses.replace(around, http=http), self.talked, base=talk._base, headers=talk._headers)


def oauth(_: str, token: str) -> Mapping[str, str]:
    """How a client of IronMQ shows its token."""
    return {"authorization": f"OAuth {token}"}


def augury(_: str, token: str) -> Mapping[str, str]:
    """How a store shows its token."""
    return {"x-augury-token": token}


def basic(project: str, token: str) -> Mapping[str, str]:
    """How a client of Notifications 2.0 shows its token."""
    return {"authorization": f"Basic {base64.b64encode(f'{project}/me:{token}'.encode()).decode()}"}


IRONMQ = ("/3/projects/{project}", oauth)
STORES = ("/api/stores/{project}", augury)
TOPICS = ("/notification2", basic)
OPERATORS = ("", lambda *_: {})


def talked(
    part: Callable[..., None],
    protocol: tuple[str, Callable[[str, str], Mapping[str, str]]] = IRONMQ,
    *,
    changed: Changed | None = None,
    clients: int = 1,
    connects: bool = False,
    seed: str = "alone/1",
) -> list[str]:
    """What a part of a talk has to say: rule, subject and detail of each difference.

    Args:
        part: The part.
        protocol: Where its paths begin, and how its client shows a token.
        changed: Makes other answers.
        clients: How many clients it has, each with a project.
        connects: Whether it opens connections of consumers.
    """
    account = Account(seed, stack(), Weather((), seed))
    with account.installed():
        world = Alone(account, Truth(account), 1, 1)
        account.begin_schedules()
        sides: list[Any] = [world.client(*protocol, changed) for _ in range(clients)]
        if connects:
            sides.append(connecting(account))
        done: list[bool] = []

        def talk() -> None:
            part(*sides)
            done.append(True)

        account.scheduler.spawn(talk)
        for _ in range(LONGEST_H):
            account.scheduler.run(account.scheduler.now + HOUR)
            if done:
                return [f"{each.rule}: {each.about}: {each.detail}" for each in world.talked.violations]
    raise AssertionError("a talk without an end")


def connecting(account: Account) -> Connect:
    """Opens connections in an account."""
    gateway = WebSocketGateway(account)

    def connect(query: Mapping[str, str]) -> Connected:
        frames: list[str] = []

        def heard(_: str, frame: str) -> None:
            if frame:
                frames.append(frame)

        status, connection = gateway.connect(query, heard)
        return Connected(status, frames, partial(gateway.send, connection), partial(gateway.cut, connection))

    return connect
