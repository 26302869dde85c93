"""What a Python team would build with Celery or Dramatiq: a task that posts a message with requests, and retries.

Runs in an environment of its own.

    python bench/peers_tasks.py celery|dramatiq URL COUNT RATE

posts messages and prints when each was (JSON); RATE 0: as fast as it goes.

The workers import it as ``peers_tasks:celery_app`` and ``peers_tasks``. ``PEERS_CAREFUL`` lets Celery acknowledge late,
and give back what a lost worker had after 20 seconds instead of an hour.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import dramatiq  # type: ignore[import-not-found, unused-ignore]
import requests
from celery import Celery  # type: ignore[import-not-found, unused-ignore]
from dramatiq.brokers.redis import RedisBroker  # type: ignore[import-not-found, unused-ignore]

BROKER = os.environ.get("PEERS_BROKER", "redis://127.0.0.1:6390/0")
CAREFUL = bool(os.environ.get("PEERS_CAREFUL"))

celery_app: Any = Celery("peers", broker=BROKER)
celery_app.conf.update(task_ignore_result=True, broker_connection_retry_on_startup=True)
if CAREFUL:
    celery_app.conf.update(
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        worker_prefetch_multiplier=1,
        broker_transport_options={"visibility_timeout": 20},
    )
dramatiq.set_broker(RedisBroker(url=BROKER))
_session = requests.Session()
_session.trust_env = False


def _post(url: str, body: str) -> None:
    _session.post(url, data=body, timeout=10).raise_for_status()


def _celery_deliver(self: Any, url: str, body: str) -> None:
    try:
        _post(url, body)
    except requests.RequestException as error:
        raise self.retry(exc=error, countdown=3, max_retries=10) from error


celery_deliver: Any = celery_app.task(bind=True, name="deliver")(_celery_deliver)
dramatiq_deliver: Any = dramatiq.actor(max_retries=10, min_backoff=3_000)(_post)


def main(kind: str, url: str, count: int, rate: float) -> None:
    """Post messages of a kilobyte."""
    send = celery_deliver.delay if kind == "celery" else dramatiq_deliver.send
    begun = time.time()
    posted: dict[str, float] = {}
    for number in range(count):
        if rate:
            time.sleep(max(0.0, begun + number / rate - time.time()))
        body = f"{kind}-{begun:.3f}-{number}-" + "x" * 1000
        posted[body] = time.time()
        send(url, body)
    json.dump(posted, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
