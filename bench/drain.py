"""A long backlog of notifications, drained in one connection while the machine is busy.

    make up && .venv/bin/python -m bench.drain [--count 10000] [--busy 20] [--save docs/figures/drain.md]

Runs against the running local stack, from outside: a subscriber that was away connects with the usual settings of
`websockets` (a ping every 20 s, answered within 20 s), and acknowledges each notification as it comes, until all have
come. Meanwhile `--busy` processes compute, at the same priority as the stack. Then its connection breaks without a
closing handshake, and the time until the next one is accepted is measured. *Again*: notifications that came once more
although they had been acknowledged.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from typing import Any

import aiohttp
import websockets

from bench.harness import Page, busy
from bench.local_hub import described
from bench.notifications import Tenant

LONGEST_S = 1800.0
"""How long a drain may take."""


async def drain(local: dict[str, Any], count: int) -> list[list[str]]:
    """The rows of the table."""
    headers = {"Authorization": aiohttp.encode_basic_auth(f"{local['project_id']}/bench", local["token"])}
    timeout = aiohttp.ClientTimeout(total=300)
    async with aiohttp.ClientSession(timeout=timeout, headers=headers) as session:
        tenant = Tenant(local, session)
        await tenant.subscribe()
        token = (await tenant.post("token", {"subscriber": "away", "subscription": tenant.topic}))["token"]
        url = f"{local['base_url'].replace('http', 'ws', 1)}/notification2/consumer/?token={token}"
        await (await websockets.connect(url, open_timeout=60)).close()
        for start in range(0, count, 100):
            await tenant.publish(*range(start, min(count, start + 100)))
        came: list[int] = []
        connections, start_s = 0, time.perf_counter()
        while len(set(came)) < count:
            try:
                connection = await websockets.connect(url, open_timeout=60)
            except websockets.InvalidStatus as refused:
                print(f"refused after {len(came)}: {refused}")
                await asyncio.sleep(1)
                continue
            connections += 1
            try:
                async with asyncio.timeout(LONGEST_S):
                    while len(set(came)) < count:
                        text = str(await connection.recv())
                        came.append(json.loads(text.partition("\n\n")[2])["n"])
                        await connection.send(text.partition("\n")[0])
            except websockets.ConnectionClosed as closed:
                print(f"closed after {len(came)}: {closed}")
        drained_s = time.perf_counter() - start_s
        connection.transport.close()
        broken_s = time.perf_counter()
        again = await websockets.connect(url, open_timeout=60)
        taken_s = time.perf_counter() - broken_s
        await tenant.publish(count)
        first = str(await asyncio.wait_for(again.recv(), 120))
        after = json.loads(first.partition("\n\n")[2])["n"]
        await again.close()
        await tenant.post(f"unsubscribe?token={token}", {})
    return [
        ["notifications", f"{count:,}"],
        ["connections that it took", f"{connections}"],
        ["came again after they were acknowledged", f"{len(came) - len(set(came)) + (after != count)}"],
        ["in order", "yes" if came == sorted(came) else "no"],
        ["seconds", f"{drained_s:.0f}"],
        ["notifications a second", f"{count / drained_s:.0f}"],
        ["seconds from the break of the connection to the next one", f"{taken_s:.1f}"],
    ]


def main() -> None:
    """Measure, print, save."""
    page = Page("Notifications: a long backlog", __doc__, count=10_000, busy=20)
    with busy(page.options.busy):
        rows = asyncio.run(drain(described(), page.options.count))
    load = f"{page.options.busy} on {os.cpu_count()} cores, and what else ran (load {os.getloadavg()[0]:.0f})"
    page.table(["what", "on this machine"], [*rows, ["processes that computed meanwhile", load]])
    page.save()


if __name__ == "__main__":
    main()
