"""A talk in an account of its own, in good weather: with the hub as it is, or with answers that are not its own."""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from simulation.account import Account
from simulation.gateway import WebSocketGateway
from simulation.promises.judgement import Exchange, Violation
from simulation.promises.talks.notifications import Connect, Connected
from simulation.promises.talks.talk import Answered, Came, Say, Talk, Typed
from simulation.scheduler import SECOND
from simulation.template import stack
from simulation.truth import Truth
from simulation.weather import Weather
from simulation.worlds.world import World

HOUR = 3_600 * SECOND
LONGEST_H = 2_400

Changed = Callable[[Any], Any]
"""Makes another answer of what an answer's JSON says."""


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

    def client(self, base: str, headers: Callable[[str, str], Mapping[str, str]], changed: Changed) -> Talk:
        """A client of a new project, whose answers are changed, and the numbers in what comes to its endpoints."""
        talk = self._talking(base, headers)
        around = talk._around
        if changed is as_it_is:
            return talk

        def http(method: str, path: str, body: object, sent: Mapping[str, str]) -> Answered:
            answer = around.http(method, path, body, sent)
            return OtherAnswer(answer.status, changed(answer.body), answer.exchange, answer.headers)

        def types(words: Sequence[str], given: bytes) -> Typed:
            came = around.types(words, given)
            shown = came.printed.splitlines() if came.printed.startswith(("[", "{")) else []
            printed = "\n".join(json.dumps(changed(json.loads(each))) for each in shown) or came.printed
            return dataclasses.replace(came, printed=printed)

        def listen(host: str, say: Say) -> Sequence[Came]:
            heard: list[Came] = []

            def says(came: Came) -> Any:
                numbers = {
                    name: str(changed(int(each))) if each.isdigit() else each for name, each in came.headers.items()
                }
                heard.append(
                    dataclasses.replace(
                        came,
                        headers=numbers,
                        body=_changed_text(came.body.decode("latin-1"), changed).encode("latin-1"),
                    )
                )
                return say(came)

            around.listen(host, says)
            return heard

        def records() -> Sequence[Mapping[str, Any]]:
            return [changed(each) for each in around.records()]

        changed_around = dataclasses.replace(around, http=http, types=types, listen=listen, records=records)
        return Talk(changed_around, self.talked, base=talk._base, headers=talk._headers)


@dataclasses.dataclass(frozen=True)
class OtherAnswer:
    """An answer that is not the hub's own."""

    status: int
    body: Any
    exchange: Exchange
    headers: Mapping[str, str]


def _changed_text(text: str, changed: Changed) -> str:
    """A text of JSON, changed; any other as it is."""
    try:
        return json.dumps(changed(json.loads(text)))
    except ValueError:
        return text


def as_it_is(found: Any) -> Any:
    """The answer."""
    return found


def one_higher(found: Any) -> Any:
    """Each number one higher, each answer of yes or no the other one, each list without its last item."""
    if isinstance(found, bool):
        return not found
    if isinstance(found, int | float):
        return found + 1
    if isinstance(found, list):
        return [one_higher(each) for each in found[:-1]] if len(found) > 1 else [one_higher(each) for each in found]
    if isinstance(found, dict):
        return {name: one_higher(each) for name, each in found.items()}
    return found


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
OPERATORS: tuple[str, Callable[[str, str], Mapping[str, str]]] = ("", lambda *_: {})


def talked(
    part: Callable[..., None],
    protocol: tuple[str, Callable[[str, str], Mapping[str, str]]] = IRONMQ,
    *,
    changed: Changed = as_it_is,
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
    account = Account(seed, stack(AuditTrail="true"), Weather((), seed))
    with account.installed():
        world = Alone(account, Truth(account), 1, 1)
        account.begin_schedules()
        sides: list[Any] = [world.client(*protocol, changed) for _ in range(clients)]
        if connects:
            sides.append(connecting(account, changed))
        done: list[bool] = []

        def whole(_: Talk) -> None:
            part(*sides)

        def talk() -> None:
            sides[0].through(whole)
            done.append(True)

        account.scheduler.spawn(talk)
        for _ in range(LONGEST_H):
            account.scheduler.run(account.scheduler.now + HOUR)
            if done:
                return [f"{each.rule}: {each.about}: {each.detail}" for each in world.talked.violations]
    raise AssertionError("a talk without an end")


def connecting(account: Account, changed: Changed) -> Connect:
    """Opens connections in an account, and changes what comes on them."""
    gateway = WebSocketGateway(account)

    def connect(query: Mapping[str, str]) -> Connected:
        frames: list[str] = []
        closed: list[bool] = []

        def heard(_: str, frame: str) -> None:
            if not frame:
                closed.append(True)
                return
            head, gap, body = frame.partition("\n\n")
            frames.append(frame if changed is as_it_is else f"{head}{gap}{_changed_text(body, changed)}")

        status, connection = gateway.connect(query, heard)
        return Connected(
            status,
            frames,
            partial(gateway.send, connection),
            partial(gateway.cut, connection),
            partial(gateway.vanish, connection),
            lambda: bool(closed),
        )

    return connect


def bearer(_: str, token: str) -> Mapping[str, str]:
    """How a client of webhooks shows its token."""
    return {"authorization": f"Bearer {token}"}


WEBHOOKS = ("/api/v1", bearer)
