"""What is taken away from a hub's records, and in which night the report names it.

    PYTHONPATH=layers/pushhub:. .venv-glue/bin/python -m bench.records_sabotage --save docs/figures/records-sabotage.md

Two days of hubs with 10, 60 and 10,000 records an hour in three streams of two shards each; in the night after each day
the report runs over all of them, with the tables as they are then (tests/glue/sabotaged.py). What is taken away never
reached the bucket. *Night 1* is the next one; of several things each must be named, and the latest counts. *False*:
breaches about anything that was not taken away. One that is expected never to be named is a limit of the proof
(docs/report.md).
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from bench.tables import save, table

if TYPE_CHECKING:
    from tests.glue.sabotaged import Named

RATES = (10, 60, 10_000)


def told(named: Named) -> str:
    """A cell of the table."""
    if not named.nights:
        night = "nothing"
    elif None in named.nights:
        night = f"{named.nights.count(None)} never"
    else:
        night = f"night {1 + max(each for each in named.nights if each is not None)}"
    return night + (f", {len(named.false)} false" if named.false else "")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", type=int, nargs="+", default=RATES, help="records an hour")
    parser.add_argument("--only", nargs="+", default=[], help="sabotages whose names contain one of these")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()
    from glue_jobs.delivery_report.session import open_session  # noqa: PLC0415 (Java first)
    from glue_jobs.local_spark import use_bundled_java  # noqa: PLC0415
    from tests.glue.sabotaged import SABOTAGES, made_hub, named_by  # noqa: PLC0415

    use_bundled_java()
    spark = open_session("local[2]", settings={"spark.sql.shuffle.partitions": "2"})
    rows, wrong = {name: [name] for name in SABOTAGES}, []
    for rate in options.rates:
        for name, sabotage in SABOTAGES.items():
            if options.only and not any(each in name for each in options.only):
                continue
            hub = made_hub(rate, seed=options.seed)
            with tempfile.TemporaryDirectory() as folder:
                named = named_by(spark, Path(folder), hub, sabotage(hub))
            rows[name].append(told(named))
            print(f"{rate:,}: {name}: {told(named)} ({', '.join(named.by)})", flush=True)
            if named.false or named.nights != named.expected:
                wrong.append(f"- {rate:,} records an hour, {name}: {named}")
    head = ["taken away", *(f"{rate:,} an hour" for rate in options.rates)]
    parts = [table(head, [row for row in rows.values() if len(row) > 1])]
    parts += ["Not as expected:", *wrong] if wrong else ["All as expected."]
    print("\n\n".join(parts))
    save(options.save, "What the report names, and when", __doc__ or "", *parts)
    if wrong:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
