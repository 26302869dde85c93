"""Background tasks, as owners are promised them, from what they asked and were answered, and what their endpoints
received.

A request that is repeated with its key is the same task, however often, at once or later. A task does not wait for
another project's: while nothing fails, what it sends has arrived soon after it was begun, whatever others have begun.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from simulation.promises.judgement import SECOND, Exchange, Judgement, moment

SOON_S = 20
"""A task with a page of messages has sent them by then, if it waits for nobody: its run starts at once."""

TWO_TASKS, NOBODYS, NOT_LISTED = (
    "one key, two tasks",
    "a task that nobody began",
    "a task that was begun and is not there",
)
WAITED, IN_VAIN, TWICE = "a task waited", "a task in vain", "sent twice by a task"


@dataclass(frozen=True)
class Began:
    """A request that begins a task.

    Attributes:
        project: Its project.
        key: Its idempotency key.
        exchange: The request.
        task_id: The task, if it was answered.
    """

    project: str
    key: str
    exchange: Exchange
    task_id: str = ""


@dataclass(frozen=True)
class Replay:
    """What the endpoint of a task received.

    Attributes:
        project: Its project.
        key: The key that the task was begun with.
        messages: What the task has to send.
        arrived: When each of them came, microseconds.
        undisturbed: Whether nothing failed from before it was begun until it had time enough.
    """

    project: str
    key: str
    messages: Set[str]
    arrived: Mapping[str, Sequence[int]]
    undisturbed: bool


class Tasks:
    """Judges a run.

    Args:
        judgement: Where the facts go.
    """

    def __init__(self, judgement: Judgement) -> None:
        self._judgement = judgement

    def judge(self, began: Sequence[Began], listed: Mapping[str, Set[str]], replays: Sequence[Replay]) -> None:
        """Judge each key, and each replay.

        Args:
            began: All requests.
            listed: The tasks of each project, as it was told them at the end.
            replays: What was received.
        """
        by_key: dict[tuple[str, str], list[Began]] = defaultdict(list)
        for each in began:
            by_key[each.project, each.key].append(each)
        unknown: dict[str, int] = defaultdict(int)
        listed_ids: dict[str, set[str]] = defaultdict(set)
        for (project, key), requests in by_key.items():
            ids = {each.task_id for each in requests if each.task_id}
            self._judgement.fact(len(ids) <= 1, TWO_TASKS, key, f"{len(requests)} requests: {sorted(ids)}")
            listed_ids[project] |= ids
            unknown[project] += not ids
        for project, there in listed.items():
            strangers = there - listed_ids[project]
            # Of a key whose requests all failed nobody knows the task.
            allowed = unknown[project]
            self._judgement.fact(len(strangers) <= allowed, NOBODYS, project, f"{sorted(strangers)}, {allowed} may be")
            for task_id in sorted(listed_ids[project]):
                self._judgement.fact(task_id in there, NOT_LISTED, task_id, project)
        for replay in replays:
            self._received(replay, by_key[replay.project, replay.key])

    def _received(self, replay: Replay, requests: Sequence[Began]) -> None:
        answered = [each.exchange.answered for each in requests if each.task_id]
        if not answered:
            return
        begun = min(answered)
        missing = sorted(each for each in replay.messages if not replay.arrived.get(each))
        self._judgement.fact(not missing, IN_VAIN, replay.key, f"{len(missing)} never came: {missing[:3]}")
        if not replay.undisturbed:
            return
        last = max((times[0] for times in replay.arrived.values()), default=begun)
        late = (last - begun) / SECOND
        self._judgement.fact(late <= SOON_S, WAITED, replay.key, f"{late:.1f} s, begun at {moment(begun)}")
        again = [each for each, times in replay.arrived.items() if len(times) > 1]
        self._judgement.fact(not again, TWICE, replay.key, f"{len(again)} of {len(replay.messages)}")
