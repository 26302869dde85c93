"""How soon messages of eager queues are delivered, in the simulator's model of AWS.

    PYTHONHASHSEED=0 .venv/bin/python -m bench.eager_model [--save docs/figures/eager.md]

The real functions run in the simulator's account, as template.yaml has them, in virtual time: no figure depends on the
machine. One message is posted after the other, at an even pace, to a push queue with one endpoint, which is prompt.
Latency is from the answer to the post (and from before it) until the endpoint has the request; the first seconds, when
environments start, are left out. The model of SQS, DynamoDB, its streams and Lambda is that of simulation/, whose times
are those that AWS's users report.
"""

from __future__ import annotations

from dataclasses import dataclass

from simulation.scheduler import SECOND
from simulation.template import stack

from bench.harness import Page, cells, percentile, with_fixed_hashes
from bench.neighbours_model import Seen, account_with

WARM_S = 10
"""Seconds that are left out."""


@dataclass(frozen=True)
class Measured:
    """What one run told, in milliseconds.

    Attributes:
        posts: How long the posts took.
        latencies: From the answers to the arrivals.
        whole: From before the posts to the arrivals.
        lost: Messages that did not arrive.
        twice: Requests beyond one for each message.
    """

    posts: list[float]
    latencies: list[float]
    whole: list[float]
    lost: int
    twice: int


def run(*, eager: bool, rate: int, seconds: int, warm_s: int = WARM_S) -> Measured:
    """Post so many messages a second for so long; the first ones are left out."""
    seed = "eager/1"
    with account_with(seed, stack(), "bench") as (account, [owner]):
        endpoint = Seen(account, hangs=False)
        owner.push_queue("q", endpoint, eager=eager)
        account.scheduler.run(60 * SECOND)
        account.begin_schedules()
        began: dict[str, int] = {}
        answered: dict[str, int] = {}

        def post() -> None:
            at = account.scheduler.now
            message_id = owner.post("q")
            began[message_id], answered[message_id] = at, account.scheduler.now

        start = account.scheduler.now
        for number in range(seconds * rate):
            account.scheduler.spawn(post, after=number * SECOND // rate)
        account.scheduler.run(start + (seconds + 180) * SECOND)
        watched = [each for each, at in began.items() if at >= start + warm_s * SECOND and each in endpoint.at]
        return Measured(
            posts=sorted((answered[each] - began[each]) / 1000 for each in watched),
            latencies=sorted((endpoint.at[each] - answered[each]) / 1000 for each in watched),
            whole=sorted((endpoint.at[each] - began[each]) / 1000 for each in watched),
            lost=len(began.keys() - endpoint.at.keys()),
            twice=endpoint.times - len(endpoint.at),
        )


def main() -> None:
    """Measure, print, save."""
    page = Page("Eager queues, in the model of AWS", __doc__, seconds=40)
    rows: list[list[str]] = []
    for rate in (10, 200):
        for eager in (False, True):
            result = run(eager=eager, rate=rate, seconds=page.options.seconds)
            times = (result.posts, result.latencies, result.whole)
            figures = cells(".0f", *(percentile(each, share) for each in times for share in (0.5, 0.95)))
            rows.append(
                [str(rate), "eager" if eager else "by the stream", *figures, str(result.lost), str(result.twice)]
            )
            print(rows[-1], flush=True)
    head = ["posts a second", "first orders"]
    for name in ("a post takes", "from its answer to the endpoint", "from before it"):
        head += [f"{name}, ms: p50", "p95"]
    page.table([*head, "lost", "more than once"], rows)
    page.save()


if __name__ == "__main__":
    with_fixed_hashes("bench.eager_model")
    main()
