"""Several who do the same at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


def together(count: int, work: Callable[[int], Any]) -> list[Any]:
    """Do something so many times at once; the results."""
    barrier, results = threading.Barrier(count), [None] * count

    def one(number: int) -> None:
        barrier.wait()
        results[number] = work(number)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(count)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return results
