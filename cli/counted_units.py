"""Units that were counted, and their prices. Written by ``python -m bench.months --write``."""

PRICES: dict[str, float] = {}
AT_REST: list[tuple[str, str, float]] = []
METRICS_AT_REST = 0
METRICS = 0
MESSAGES: dict[int, dict[int, dict[str, float]]] = {}
FURTHER_SUBSCRIBERS: dict[int, dict[str, float]] = {}
RECORDS_RUN: dict[str, float] = {}
RECORDS_CHANGE: dict[str, float] = {}
LARGE_CHANGES = 1
