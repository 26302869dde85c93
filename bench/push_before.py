"""What the push function does in a second before and after a commit, as a ratio: both work in turns on one stack.

    make up && .venv/bin/python -m bench.push_before COMMIT [--rounds 12] [--save docs/figures/push-before.md]

The commit before is checked out beside this one. The push function of each runs in a process of its own, invocation
after invocation, as ``bench.push`` does, against the same tables and the same sink; a third process runs today's once
more, so what the machine does by itself is seen, too. The three take turns, each round in another order, and the rates
of a round are compared with one another: what the machine does beside it strikes all three.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.harness import ROOT, Page, cells
from bench.local_hub import described, endpoint

BEFORE, AFTER, AGAIN = "before", "after", "after, again"
WORK = """
import json, os, sys
from bench import push
local, name, url, seconds = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3], float(sys.argv[4])
nowhere = os.open(os.devnull, os.O_WRONLY)
handler = push.deployed_push(local)
queue = push.make_queue(local, name, [url])
for line in sys.stdin:
    with push.quiet_stdout(nowhere):
        pace = push.run_push(handler, push.events(queue, int(line)), seconds)
    print(json.dumps([pace.per_second, pace.cpu_ms]), flush=True)
"""
"""Told the size of a batch, makes a run and says what it made."""


class Worker:
    """The push function of a source tree, in a process of its own."""

    def __init__(self, tree: Path, *words: str) -> None:
        environment = {**os.environ, "PYTHONPATH": f"{tree / 'layers' / 'pushhub'}:{tree}"}
        self._process = subprocess.Popen(
            [sys.executable, "-c", WORK, *words],
            cwd=tree,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, batch: int) -> tuple[float, float]:
        """Deliveries a second, and CPU milliseconds of each."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{batch}\n")
        self._process.stdin.flush()
        rate, cpu = json.loads(self._process.stdout.readline())
        return rate, cpu

    def end(self) -> None:
        """End the process."""
        self._process.communicate()


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """The source tree of a commit."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "before"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--detach", "--quiet", str(tree), commit], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def measured(workers: dict[str, Worker], batch: int, rounds: int) -> dict[str, list[tuple[float, float]]]:
    """What each made in each round."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in workers}
    names = [*workers]
    for name in names:
        workers[name].run(batch)
    for number in range(rounds):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            found[name].append(workers[name].run(batch))
    return found


def compared(found: dict[str, list[tuple[float, float]]], name: str, to: str, which: int) -> str:
    """The median of the rounds' ratios, and its quartiles."""
    ratios = [one[which] / other[which] for one, other in zip(found[name], found[to], strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    return f"{middle:.3f} ({low:.2f} to {high:.2f})"


def main() -> None:
    """Measure, print, save."""
    title = "Push function before and after issue 31"
    page = Page(title, __doc__, commit=str, seconds=2.0, rounds=12, delay_ms=50)
    options = page.options
    much = f"{options.rounds} rounds of {options.seconds:g} s each."
    page.tell(f"Endpoint answers after {options.delay_ms} ms; {much}")
    rows: list[list[str]] = []
    with ExitStack() as held:
        tree = held.enter_context(checked_out(options.commit))
        url = f"{held.enter_context(endpoint(options.delay_ms)).url}/in"
        workers = {}
        for number, (name, place) in enumerate(((BEFORE, tree), (AFTER, ROOT), (AGAIN, ROOT))):
            words = (json.dumps(described()), f"bench-before-{number}", url, str(options.seconds))
            workers[name] = Worker(place, *words)
            held.callback(workers[name].end)
        for batch in (10, 50):
            found = measured(workers, batch, options.rounds)
            rates, cpu = ([statistics.median(each[at] for each in found[name]) for name in workers] for at in (0, 1))
            ratios = [
                compared(found, name, to, which) for which in (0, 1) for name, to in ((AFTER, BEFORE), (AGAIN, AFTER))
            ]
            rows.append([str(batch), *cells(".0f", *rates[:2]), *ratios[:2], *cells(".2f", *cpu[:2]), *ratios[2:]])
    rates_of = ["before, /s", "after, /s", "after to before", "after to itself"]
    page.table(["batch", *rates_of, "CPU ms, before", "after", "CPU, after to before", "to itself"], rows)
    page.save()


if __name__ == "__main__":
    main()
