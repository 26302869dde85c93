"""What one message costs on its way through the local stack: CPU of each process, and how long each function runs.

    make up && .venv/bin/python -m bench.steps [--messages 300] [--rate 10] [--save docs/figures/steps.md]

Messages of 1 KB are posted one at a time, at an even pace, to a push queue with a prompt endpoint. Of each process the
CPU time is read before the first and after the last message has arrived and been recorded, less what the same process
takes in as long a time without a message. CPU says more than the clock on a machine that others use, too. How long a
function's runs take is what its log says, in whole milliseconds, and contains their calls of AWS; the rest of the time
is spent between functions. The emulator, which stands for API Gateway, the table, its stream and the queues, is one
process.
"""

from __future__ import annotations

import os
import re
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

from local.aws import Aws
from local.emulator import lifecycle
from local.place import Place

from bench.harness import Page, cells, percentiles
from bench.local_hub import endpoint, paced, tenant
from local import stack

STEPS = {
    "front door": "takes the request",
    "ingest": "checks and stores it",
    "dispatch": "reads it from the stream, queues its deliveries, counts it",
    "push": "attempts the delivery, stores its outcome",
    "records": "writes and counts delivery records, in batches",
    "emulator": "API Gateway, tables, streams, queues; hands work to functions",
    "other functions": "at rest: wake, sweep and others",
}
SETTLED_S = 4.0
"""After the last message: the window of the records and what follows it."""
_TICKS = os.sysconf("SC_CLK_TCK")
_SIGN = re.compile(r"/function-\w+-([A-Za-z]+)Function-")
_REPORT = re.compile(r"REPORT .*\tDuration: (\d+) ms")


def cpu_s(place: Place) -> dict[str, float]:
    """CPU seconds that the stack's processes have taken, by name."""
    known = {lifecycle.daemon(place).pid(): "emulator", stack.front_door(place).pid(): "front door"}
    found = defaultdict[str, float](float)
    for process in Path("/proc").iterdir():
        # Some end meanwhile.
        with suppress(OSError, ValueError):
            name = known.get(int(process.name)) or _function(process, f"{place.temporary}/")
            if name:
                fields = (process / "stat").read_text().rpartition(")")[2].split()
                found[name if name in STEPS else "other functions"] += (int(fields[11]) + int(fields[12])) / _TICKS
    return found


def _function(process: Path, folder: str) -> str:
    """The function that runs in a process, of which it holds a file open that says so; empty for any other."""
    for each in (process / "fd").iterdir():
        target = str(each.readlink())
        if target.startswith(folder) and (found := _SIGN.search(target)):
            return found[1].lower()
    return ""


def runs_s(aws: Aws, since: float) -> dict[str, list[float]]:
    """How long the runs of each function took, seconds."""
    logs, found = aws.logs(), dict[str, list[float]]()
    for page in logs.get_paginator("describe_log_groups").paginate(logGroupNamePrefix="/aws/lambda/"):
        for name in (each["logGroupName"] for each in page["logGroups"]):
            reported = logs.get_paginator("filter_log_events").paginate(
                logGroupName=name, startTime=round(since * 1000)
            )
            reports = (_REPORT.match(event["message"]) for each in reported for event in each["events"])
            found[name.rpartition("-")[2]] = [int(each[1]) / 1000 for each in reports if each]
    return found


def main() -> None:
    """Measure, print, save."""
    page = Page("What one message costs, step by step", __doc__, messages=300, rate=10.0)
    options, place = page.options, Place.from_environment()
    with endpoint(0) as target:
        owner = tenant("steps")
        owner.push_queue("steps", f"{target.url}/stamp")
        for _ in range(20):
            owner.post("steps", ["warm" + "x" * 1000])
        time.sleep(SETTLED_S)
        begun = cpu_s(place)
        time.sleep(options.messages / options.rate + SETTLED_S)
        rested = cpu_s(place)
        since, waits = time.time(), []
        for number in paced(options.messages, options.rate):
            body = f"{number}-" + "x" * 1000
            posted = time.time()
            owner.post("steps", [body])
            waits.append((body, posted, time.time()))
        assert target.wait_for([body for body, _, _ in waits], 60), "some messages did not arrive"
        time.sleep(max(0.0, waits[-1][2] + SETTLED_S - time.time()))
        ended = cpu_s(place)
    page.tell(f"{options.messages} messages, {options.rate:g} a second. The machine's load before was {page.load:.1f}.")
    rows, took, whole = [], runs_s(stack.aws(stack.describe(place)), since), 0.0
    for name, does in STEPS.items():
        ms = 1000 * ((ended[name] - rested[name]) - (rested[name] - begun[name])) / options.messages
        whole += ms
        runs = took.get(name, [])
        rows.append([name, does, *cells(".2f", ms), *([f"{len(runs)}", *percentiles(runs)] if runs else [""] * 3)])
    rows.append(["all", "", *cells(".2f", whole), "", "", ""])
    page.table(["process", "what it does", "CPU ms a message", "runs", "a run, p50 ms", "p95"], rows)
    answered = [after - before for _, before, after in waits]
    arrived = [target.seen[body][0] - before for body, before, _ in waits]
    head = ["from the post", "p50 ms", "p95"]
    page.table(head, [["to its answer", *percentiles(answered)], ["to its arrival", *percentiles(arrived)]])
    page.save()


if __name__ == "__main__":
    main()
