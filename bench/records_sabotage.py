"""What is taken away from a hub's records, and in which night the report names it.

    .venv-glue/bin/python -m bench.records_sabotage

Two days of hubs with 10, 60 and 10,000 records an hour in three streams of two shards each; in the night after each day
the report runs over all of them, with the tables as they are then (tests/glue/sabotaged.py). What is taken away never
reached the bucket, or whole objects were removed before the first night. *Night 1* is the next one; of several things
each must be named. *False*: breaches about anything that was not taken away. *Never*, where it
is expected, is a limit of the proof (docs/report.md). What chance takes (``--drawn``) is of any kind, time, length and
stream, alone or two or eight at once.

``--add-to`` keeps the results in a file, so that the table can be made in several runs, each of some sabotages.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.harness import Page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.glue.sabotaged import Hub, Named, Part

RATES = (10, 60, 10_000)
BUSY = 1_000
"""From so many records an hour on, the second night is left out if the first has named everything."""

DRAWN = {1: "drawn by chance, alone", 2: "drawn by chance, two at once", 8: "drawn by chance, eight at once"}


def told(named: Named) -> str:
    """A cell of the table."""
    counted = Counter("never" if each is None else f"night {each + 1}" for each in named.nights)
    night = ", ".join(f"{each} ({count})" if len(counted) > 1 else each for each, count in sorted(counted.items()))
    night = night or "nothing"
    return night + (f", {len(named.false)} false" if named.false else "")


def cell(found: list[dict[str, Any]]) -> str:
    """A cell of the table, of one sabotage or of several alike."""
    if len(found) == 1:
        text = str(found[0]["told"])
    else:
        nights = Counter("never" if each is None else f"night {each + 1}" for one in found for each in one["nights"])
        text = f"{nights.total()} in {len(found)} runs: "
        text += ", ".join(f"{count} {night}" for night, count in sorted(nights.items()))
        text += f"; {false} false" if (false := sum(one["false"] for one in found)) else ""
    return text + (" **not as expected**" if any(each["wrong"] for each in found) else "")


def sabotages(numbers: range, seed: int) -> Iterator[tuple[str, str, Callable[[Hub], list[Part]]]]:
    """Row, name, and what chooses the parts."""
    from tests.glue.sabotaged import SABOTAGES, drawn  # noqa: PLC0415 (Java first)

    for name, sabotage in SABOTAGES.items():
        yield name, name, sabotage
    for count, row in DRAWN.items():
        for number in numbers:

            def some(hub: Hub, count: int = count, number: int = number) -> list[Part]:
                chance = random.Random(f"{seed}/{count}/{number}")
                return [drawn(hub, chance) for _ in range(count)]

            yield row, f"{row}, {number}", some


def main() -> None:
    """Records an hour; sabotages whose names contain one of some words; how many of each that chance draws; where
    results are kept.
    """
    title = "What the report names, and when"
    page = Page(title, __doc__, saved="records-sabotage.md", rates=[*RATES], only=[""], drawn=10, seed=1, add_to=Path)
    options = page.options
    from glue_jobs.delivery_report.run.session import FOR_LITTLE, open_session  # noqa: PLC0415 (Java first)
    from glue_jobs.local_spark import use_bundled_java  # noqa: PLC0415
    from tests.glue.sabotaged import made_hub, named_by  # noqa: PLC0415

    use_bundled_java()
    quick = FOR_LITTLE if max(options.rates) < BUSY else {}
    spark = open_session("local[2]", settings={"spark.sql.shuffle.partitions": "2"} | quick)
    results: dict[str, dict[str, Any]] = {}
    if options.add_to and options.add_to.exists():
        results = json.loads(options.add_to.read_text(encoding="utf-8"))
    for rate in options.rates:
        hub = made_hub(rate, seed=options.seed)
        for row, name, sabotage in sabotages(range(options.drawn), options.seed):
            key = f"{rate}: {name}"
            if key in results or not any(each in name for each in options.only):
                continue
            parts = sabotage(hub)
            with tempfile.TemporaryDirectory() as folder:
                named = named_by(spark, Path(folder), hub, parts, brief=rate >= BUSY and bool(parts))
            wrong = f"{named}" if named.false or named.nights != named.expected else ""
            results[key] = {
                **{"row": row, "rate": rate, "told": told(named), "by": named.by, "wrong": wrong},
                **{"nights": named.nights, "false": len(named.false)},
            }
            print(f"{rate:,}: {name}: {told(named)} ({', '.join(named.by)}) {wrong}", flush=True)
            if options.add_to:
                options.add_to.write_text(json.dumps(results, indent=1), encoding="utf-8")
    rates = sorted({each["rate"] for each in results.values()})
    by_row: dict[str, dict[int, list[dict[str, Any]]]] = {}
    for each in results.values():
        by_row.setdefault(each["row"], {}).setdefault(each["rate"], []).append(each)
    cells = [
        [row, *(cell(of_rate[rate]) if rate in of_rate else "" for rate in rates)] for row, of_rate in by_row.items()
    ]
    odd = [f"- {key}: {each['wrong']}" for key, each in results.items() if each["wrong"]]
    page.table(["taken away", *(f"{rate:,} an hour" for rate in rates)], cells)
    page.tell(*(["Not as expected:", *odd] if odd else ["All as expected."]))
    page.save()
    if odd:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
