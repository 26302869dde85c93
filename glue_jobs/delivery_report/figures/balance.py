"""The balance: by project and hour of acceptance, what was owed beside how it stands."""

from __future__ import annotations

from ..proof.conservation import STANDINGS
from ..storage.driver import total
from ..storage.schema import SETTLED
from .cells import IS_COPY, IS_ROUTED


def balance(cells: str) -> str:
    """One row per project and hour of acceptance, over :func:`.traffic.fate_cells`: messages, deliveries owed, each
    standing, and whether it balances.
    """
    # A hub message was posted once; once it is routed, its copies are what is owed.
    routed = f"({IS_ROUTED} AND standing IN {SETTLED})"
    counts = ", ".join(
        total(f"CASE WHEN standing = '{each}' AND NOT {routed} THEN owing ELSE 0 END", each) for each in STANDINGS
    )
    accounted = " + ".join(each for each in STANDINGS if each != "missing")
    return f"""
        SELECT *, owed = {accounted} AND unexpected = 0 AS balanced FROM (
            SELECT project, hour, {total(f"CASE WHEN {IS_COPY} THEN 0 ELSE messages END", "messages")},
                   {total(f"CASE WHEN {routed} THEN 0 ELSE deliveries END", "owed")},
                   {counts}, {total("unexpected", "unexpected")}
            FROM {cells} GROUP BY project, hour
        )"""


def verdicts(balanced: str, findings: str) -> str:
    """One row per project: its sums, and whether everything of it is accounted for. What a project may see of a report
    about all projects.
    """
    sums = ("messages", "owed", *STANDINGS, "unexpected")
    zero = ", ".join(f"coalesce({name}, 0) AS {name}" for name in (*sums, "unbalanced_hours", "breaches"))
    return f"""
        SELECT *, breaches = 0 AND unbalanced_hours = 0 AS conserved FROM (
            SELECT * REPLACE ({zero}) FROM (
                SELECT project, {", ".join(total(name, name) for name in sums)},
                       count(*) FILTER (NOT balanced) AS unbalanced_hours
                FROM {balanced} GROUP BY project
            ) FULL JOIN (
                SELECT project, count(*) AS breaches FROM {findings}
                WHERE severity = 'breach' AND project IS NOT NULL GROUP BY project
            ) USING (project)
        )"""
