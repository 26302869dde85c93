"""The report for people: one HTML file with everything in it, the last day at a glance first, then detail."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from html import escape
from importlib.resources import files
from string import Template
from typing import Any, Final

from ..figures.outages import DAYS, LEAST_FAILED
from ..figures.traffic import WAITING
from ..proof.conservation import STANDINGS
from ..proof.findings import UNCOUNTED
from . import charts
from .results import Results
from .wording import as_duration, as_html, called

_logger = logging.getLogger(__name__)

Row = Mapping[str, Any]

ATTEMPT_TIMES: Final = {"p50_ms": "p50", "p95_ms": "p95", "p99_ms": "p99"}
DELIVERY_TIMES: Final = {f"delivery_{each}": name for each, name in ATTEMPT_TIMES.items()}

LITTLE: Final = 0.0005
"""Share of deliveries that further attempts must add to be worth naming."""

_SHOWN: Final = 25
"""Rows of a table on the page; the folder has them all."""


def _project(row: Row) -> str:
    return as_html(row["project"] or "", 12)


def _queue(row: Row) -> str:
    return as_html(row["queue"] or "", 32)


def _subscriber(row: Row) -> str:
    return as_html(called(row.get("subscriber"), str(row["subscriber_id"])), 32)


WHOSE: Final = {"project": _project, "queue": _queue, "subscriber": _subscriber}
"""The columns that say whose row it is."""

Columns = Mapping[str, Callable[[Row], str]]
"""What each column of a table makes of a row, by its name: one that starts with # is set right, one that starts with
``text:`` has room for sentences.
"""


def render(results: Results) -> str:
    """The page."""
    contents = (
        ("today", "Today and the last day", _last_day),
        ("conservation", "Is everything accounted for?", _conservation),
        ("undelivered", "What did not arrive", _undelivered),
        ("traffic", "Traffic and speed", _traffic),
        ("retries", "Does another try help?", _retries),
        ("subscribers", "Subscribers", _subscribers),
        ("anomalies", "Anomalies", _anomalies),
        ("projects", "Projects and queues", _projects),
        ("input", "What was read", _input),
    )
    sections = [(name, title, _part(title, partial(make, results))) for name, title, make in contents]
    links = "".join(f'<a href="#{name}">{escape(title)}</a>' for name, title, _ in sections)
    body = "".join(f'<h2 id="{name}">{escape(title)}</h2>{content}' for name, title, content in sections)
    arguments = results.arguments
    days = f"{arguments.date_from} to {arguments.date_to}"
    whose = f"projects {', '.join(arguments.projects)}" if arguments.projects else "all projects"
    return Template(template("page.html")).substitute(
        days=days,
        style=template("page.css"),
        whose=escape(whose),
        at=_time(results.verdict["as_of"]),
        verdict=_verdict(results),
        links=links,
        body=body,
        path=escape(results.path),
    )


def template(name: str) -> str:
    """A file of the page, which lies beside this module, or within the archive that Glue runs."""
    return files(__package__).joinpath(name).read_text()


def _part(title: str, make: Callable[[], str]) -> str:
    """A part of the page, or the note that it is missing: nothing that goes wrong in drawing takes the rest with it."""
    try:
        return make()
    except Exception as error:  # noqa: BLE001 (whatever it is, the verdict does not depend on a picture)
        # Not the error's text: it may quote a tenant's.
        _logger.warning("Not drawn: %s (%s)", title, type(error).__name__)
        return (
            f'<p class="missing">Not drawn: {escape(title)} ({type(error).__name__}). Its numbers are in the '
            f"folder.</p>"
        )


def _verdict(results: Results) -> str:
    """Whether everything is accounted for, which is not whether it arrived: so the numbers of both stand beside it.

    Where records are missing, nobody knows of how many deliveries: then what is known of them is counted, and what is
    not is said. Where nothing proves that none are missing, that is said, too.
    """
    verdict = results.verdict
    conserved = verdict["conserved"]
    found = {(row["severity"], row["finding"]) for row in results.rows.get("causes", ())}
    unproved = ("notice", "pulse_not_sent") in found
    headline = "Every delivery is accounted for." if conserved else "Not everything is accounted for."
    if conserved and unproved:
        headline = "Every delivery that is known is accounted for. For a time, nothing proves that these are all."
    uncounted = any(("breach", each) in found for each in UNCOUNTED)
    if uncounted:
        headline = "Not everything is accounted for, and nothing proves the rest: nobody can count what is missing."
        if verdict["lines_gone"]:
            gone = f"at least {verdict['lines_gone']:,} line{_s(verdict['lines_gone'])} of the records gone"
            headline = f"Not everything is accounted for, and with {gone} nothing proves the rest."
    missing = verdict["missing"]
    lost = f"at least {missing:,}" if missing else "an unknown number"
    without = {
        "without an acceptance": verdict["unexpected"],
        f"message{_s(verdict['unrecorded'])} without any record": verdict["unrecorded"],
    }
    given_up = verdict["exhausted"] + verdict["expired"]
    counts = [
        _counted("lost", missing, lost if uncounted else "", wrong=missing > 0 or uncounted),
        *(_counted(name, count, wrong=True) for name, count in without.items() if count),
        _counted("given up", given_up, wrong=given_up > 0),
        _counted("cancelled", verdict["cancelled"]),
        _counted("waiting", sum(verdict[each] for each in WAITING)),
        _counted("delivered", _won(verdict)),
    ]
    kind = "" if not conserved else ' class="notice"' if unproved else ' class="ok"'
    return (
        f'<div class="verdict{"" if conserved else " broken"}"><b{kind}>{headline}</b>'
        f'<p class="counts">{" ".join(counts)}</p>{escape(verdict["sentence"].partition(": ")[2])}</div>'
    )


def _counted(name: str, count: int, instead: str = "", *, wrong: bool = False) -> str:
    """A number of the headline, or what is said ``instead`` where nobody knows it."""
    return f'<span><b class="{"breach" if wrong else ""}">{instead or f"{count:,}"}</b> {name}</span>'


def _last_day(results: Results) -> str:
    """The last day that was over when the report was made, against the one before; and what has begun, beside it."""
    days = results.rows["deliveries_by_day"]
    until = results.arguments.until
    over = [row for row in days if datetime.combine(row["day"] + timedelta(days=1), time(), UTC) <= until]
    begun = _tiles(days[-1], None, f", until {until:%H:%M} only") if len(over) < len(days) else ""
    if not over:
        return begun or '<p class="none">No day is over yet.</p>'
    whole = _tiles(over[-1], over[-2] if len(over) > 1 else None, "")
    # Who began today reads of today first.
    return whole + begun if over[-1]["messages"] else begun + whole


def _tiles(day: Row, before: Row | None, note: str) -> str:
    won, p95 = _won(day), as_duration(day["delivery_p95_ms"])
    tiles = [
        _tile("messages accepted", f"{day['messages']:,}", _change(day, before, "messages")),
        _tile("deliveries owed", f"{day['deliveries']:,}", _change(day, before, "deliveries")),
        _tile("delivered", _percent(won, day["deliveries"]), f"{day['open']:,} still waiting", link="backlog"),
        _tile("at the first try", _percent(day["first_won"], day["tried"]), f"of {day['tried']:,} tried"),
        _tile("acceptance to delivery, p50", as_duration(day["delivery_p50_ms"]), f"p95 {p95}"),
        _tile(
            "given up",
            f"{_given_up(day):,}",
            f"{day['exhausted']:,} exhausted, {day['expired']:,} expired",
            link="given-up",
        ),
    ]
    return (
        f'<p class="sub">{_day(day["day"])}{note}, messages by acceptance</p><div class="tiles">{"".join(tiles)}</div>'
    )


def _conservation(results: Results) -> str:
    verdict = results.verdict
    counted = [each for each in STANDINGS if verdict[each]]
    head = "".join(f'<th class="r">{each}</th>' for each in ["messages", "owed", *counted, "unexpected"])
    cells = "".join(f'<td class="r">{verdict[each]:,}</td>' for each in ["messages", "owed", *counted, "unexpected"])
    table = f'<div class="scroll" tabindex="0"><table><tr>{head}</tr><tr>{cells}</tr></table></div>'
    text = (
        "<p>Every delivery owed must stand somewhere: settled, waiting, or named below. "
        f"{verdict['unbalanced_hours']:,} of {results.totals['conservation']:,} project-hours do not balance.</p>"
    )
    kind: Columns = {
        "": lambda row: f'<span class="{row["severity"]} when">{row["severity"]}</span>',
        "finding": lambda row: _plain(row["finding"]),
    }
    of_cause: Columns = {
        **kind,
        "#how many": lambda row: f"{row['count']:,}",
        "project": _project,
        "queue": _queue,
        "accepted": lambda row: _span(row["first_hour"], row["last_hour"]),
        "text:what, or one of them": _cause,
    }
    of_finding: Columns = {
        **kind,
        "delivery": lambda row: as_html(row["delivery_id"] or ""),
        "project": _project,
        "queue": _queue,
        "accepted": lambda row: _span(row["hour"], row["hour"]),
        "text:what": lambda row: as_html(row["detail"], 400),
    }
    listed = _table(results, "findings", of_finding)
    summary = f"<summary>Each of the {results.totals['findings']:,} findings</summary>"
    each = f'<details class="card">{summary}{listed}</details>' if results.rows["findings"] else ""
    causes = _card("Findings by cause", _table(results, "causes", of_cause, none="No findings."))
    return f'<div class="card">{table}{text}</div>{causes}{each}'


def _cause(row: Row) -> str:
    """What a cause is, and how much follows from it."""
    detail = as_html(f"{row['delivery_id']}: {row['detail']}" if row["delivery_id"] else row["detail"], 400)
    if not row["explained"]:
        return detail
    return f"{detail}; <b>{row['explained']:,} finding{_s(row['explained'])} may follow from it</b>"


def _undelivered(results: Results) -> str:
    """Who did not get what was meant for it, and what still waits."""
    ended: Columns = {
        **WHOSE,
        **_numbers("given_up"),
        "#of": lambda row: f"{row['deliveries']:,}",
        "#share": lambda row: _percent(row["given_up"], row["deliveries"]),
        **_numbers("exhausted", "expired", "cancelled"),
        "mostly failed with": lambda row: as_html(row["cause"] or "", 40),
    }
    waiting: Columns = {
        **WHOSE,
        **_numbers("waiting"),
        "oldest": lambda row: _span(row["oldest"], row["oldest"]),
        **_numbers(*WAITING, zero="·"),
    }
    gone = _table(results, "given_up", ended, none="Nothing was given up.")
    waits = _table(results, "backlog", waiting, none="Nothing waits.")
    return _card("Given up", gone, "given-up") + _card("The backlog", waits, "backlog")


def _traffic(results: Results) -> str:
    if not results.rows["overall"]:
        return '<p class="none">No message was accepted.</p>'
    overall = results.rows["overall"][0]
    of_attempts = ", ".join(f"{name} {as_duration(overall[each])}" for each, name in ATTEMPT_TIMES.items())
    of_delivery = ", ".join(f"{name} {as_duration(overall[each])}" for each, name in DELIVERY_TIMES.items())
    numbers = (
        f"<p>{overall['attempts_made']:,} attempts, {_percent(overall['attempts_failed'], overall['attempts_made'])} "
        f"failed; {overall['retries'] / max(1, overall['tried']):.3f} retries per delivery; attempt {of_attempts}; "
        f"acceptance to delivery {of_delivery}.</p>"
    )
    title = "Deliveries by hour of acceptance"
    picture = charts.fates_by_hour(results.rows["deliveries_by_hour"])
    return f'<div class="card wide" tabindex="0"><h3>{title}</h3>{picture}</div>{numbers}'


def _retries(results: Results) -> str:
    rows = results.rows["attempts_needed"]
    if not rows:
        return '<p class="none">No attempt was made.</p>'
    best = max((row["won_so_far"] for row in rows), default=0.0)
    enough = next(row["attempt"] for row in rows if row["won_so_far"] >= best - LITTLE)
    last = rows[-1]
    after = (
        f"All attempts after number {enough} together add less than {LITTLE * 100:g} points; "
        if enough < last["attempt"]
        else "Each attempt still adds something; "
    )
    text = (
        f"<p>{_percent(rows[0]['won'], rows[0]['tried'])} succeed at the first attempt and {_share(best, 2)} in the "
        f"end. {after}the last one, number {last['attempt']}, was made {last['tried']:,} times and won "
        f"{last['won']:,}.</p>"
    )
    columns: Columns = {
        "attempt": lambda row: str(row["attempt"]),
        "#made": lambda row: f"{row['tried']:,}",
        **_numbers("won"),
        "#share": lambda row: _share(row["share"]),
        "#won so far": lambda row: _share(row["won_so_far"], digits=3),
    }
    table = _table(results, "attempts_needed", columns, shown=12)
    return _card("Success by attempt", table + text) + _outages(results)


def _outages(results: Results) -> str:
    """Who was down, and what longer retries would have reached."""
    rows = [row for row in results.rows["outages"] if row["times_down"]]
    columns: Columns = {
        **WHOSE,
        "text:when it was down, and what was given up": lambda row: escape(row["sentence"]),
    }
    about = (
        f'<p class="sub">Down: at least {LEAST_FAILED} attempts in a row failed, of several messages; until the next '
        f"success. In up to {DAYS} days.</p>"
    )
    table = _html(rows, columns, none="No subscriber was down.")
    return _card("When subscribers were down", table + (about if rows else ""), "outages")


def _subscribers(results: Results) -> str:
    if not results.rows["slowest"]:
        return '<p class="none">No attempt was made.</p>'
    measured: Columns = {
        **WHOSE,
        **_numbers("attempts", "failed"),
        "#share": lambda row: _percent(row["failed"], row["attempts"]),
        "#first try": lambda row: _percent(row["first_won"], row["first_attempts"]),
        **_times(ATTEMPT_TIMES),
    }
    causes: Columns = {"cause": lambda row: as_html(row["cause"], 60), **_numbers("attempts")}
    tables = {
        "Sickest subscribers": _table(results, "sickest", measured, none="No subscriber failed."),
        "Slowest subscribers": _table(results, "slowest", measured, shown=12),
        "Why attempts failed": _table(results, "failures_by_cause", causes, shown=10, none="None failed."),
    }
    return "".join(_card(title, table) for title, table in tables.items())


def _anomalies(results: Results) -> str:
    if not results.arguments.anomalies:
        return '<p class="none">Nobody asked for them (<code>--anomalies yes</code>).</p>'
    columns: Columns = {
        "what": lambda row: _plain(row["anomaly"]),
        "when": lambda row: _span(row["started_at"], row["ended_at"]),
        **WHOSE,
        "text:in numbers": lambda row: as_html(row["detail"], 400),
    }
    table = _table(results, "anomalies", columns, none="Nothing unusual, or too few days yet to tell.")
    claim = (
        '<p class="sub">What differs from a subscriber\'s own past. Of what it told of traffic unlike that of its '
        "tests, 58 to 87 % was right; no claim of the proof rests on it.</p>"
    )
    return f'<div class="card">{table}{claim}</div>'


def _projects(results: Results) -> str:
    course: Columns = {
        **_numbers("messages", "deliveries"),
        "#delivered": lambda row: _percent(_won(row), row["deliveries"]),
        "#first try": lambda row: _percent(row["first_won"], row["tried"]),
        "#retries each": lambda row: f"{row['retries'] / max(1, row['tried']):.2f}",
        "#given up": lambda row: f"{_given_up(row):,}",
        "#waiting": lambda row: f"{row['open']:,}",
        **_times({"delivery_p50_ms": "p50", "delivery_p95_ms": "p95"}),
    }
    projects = _table(results, "projects", {"project": _project, **course}, none="No project.")
    queues = _table(results, "queues", {"project": _project, "queue": _queue, **course}, none="No queue.")
    return _card("Projects", projects) + _card("Queues", queues)


def _input(results: Results) -> str:
    rows = [
        {"day": each.day, "objects": each.objects, "size": each.bytes, "records": each.used, "rejected": each.rejected}
        for each in results.intakes
    ]
    columns: Columns = {
        "day": lambda row: _day(row["day"]),
        **_numbers("objects"),
        "#MB": lambda row: f"{row['size'] / 1_048_576:,.1f}",
        **_numbers("records", "rejected"),
    }
    none = "No raw records on these days; the report stands on what was compacted before."
    aside = f"Stream records set aside by the records function: {results.verdict['stream_records_quarantined']:,}."
    return f'<div class="card">{_html(rows, columns, shown=40, none=none)}<p class="sub">{aside}</p></div>'


def _table(results: Results, name: str, columns: Columns, *, shown: int = _SHOWN, none: str = "None.") -> str:
    """A table of the report, as :func:`_html` makes it."""
    return _html(results.rows[name], columns, total=results.totals[name], shown=shown, none=none)


def _html(rows: Sequence[Row], columns: Columns, *, total: int = 0, shown: int = _SHOWN, none: str) -> str:
    """Rows as an HTML table, of which not all are shown, and of a ``total`` not all may be at hand."""
    if not rows:
        return f'<p class="none">{escape(none)}</p>'
    head = "".join(
        f'<th class="r">{escape(name[1:])}</th>'
        if name.startswith("#")
        else f"<th>{escape(name.rpartition(':')[2])}</th>"
        for name in columns
    )
    body = "".join(
        f"<tr>{''.join(f'<td {_cell(name)}>{cell(row)}</td>' for name, cell in columns.items())}</tr>"
        for row in rows[:shown]
    )
    left = max(total, len(rows)) - shown
    more = f'<p class="sub">{left:,} more in the folder.</p>' if left > 0 else ""
    return f'<div class="scroll" tabindex="0"><table><tr>{head}</tr>{body}</table></div>{more}'


def _numbers(*names: str, zero: str = "0") -> Columns:
    """Columns of whole numbers, called as in the table."""
    return {f"#{name.replace('_', ' ')}": partial(_number, name, zero) for name in names}


def _number(name: str, zero: str, row: Row) -> str:
    return f"{row[name]:,}" if row[name] else zero


def _times(names: Mapping[str, str]) -> Columns:
    """Columns of durations, with what they are called."""
    return {f"#{called}": partial(_duration, name) for name, called in names.items()}


def _duration(name: str, row: Row) -> str:
    return as_duration(row[name])


def _card(title: str, content: str, place: str = "") -> str:
    """A part of a section with a title of its own, and a place that links lead to."""
    named = f' id="{place}"' if place else ""
    return f'<div class="card"{named}><h3>{title}</h3>{content}</div>'


def _cell(name: str) -> str:
    """The attributes of a column's cells; a number carries its column's name to where there is no room for a head."""
    if name.startswith("#"):
        return f'class="r" data-name="{escape(name[1:])}"'
    kinds = {"delivery": "id", "text": "text", "finding": "when", "project": "when", "mostly failed with": ""}
    return f'class="{kinds.get(name.partition(":")[0], "name")}"'


def _tile(label: str, number: str, detail: str, link: str = "") -> str:
    described = f'<a href="#{link}">{escape(detail)}</a>' if link else escape(detail)
    return (
        f'<div class="tile"><div class="l">{escape(label)}</div><div class="n">{escape(number)}</div><div '
        f'class="d">{described}</div></div>'
    )


def _change(day: Row, before: Row | None, name: str) -> str:
    if before is None:
        return ""
    if not before[name]:
        return "none on the day before" if day[name] else ""
    return f"{day[name] / before[name] - 1:+.1%} on the day before"


def _won(row: Row) -> int:
    return int(row["delivered"] + row["acknowledged"])


def _given_up(row: Row) -> int:
    return int(row["exhausted"] + row["expired"] + row["cancelled"])


def _s(number: int) -> str:
    """The ending of a word for so many."""
    return "" if number == 1 else "s"


def _plain(word: str) -> str:
    return escape(word.replace("_", " "))


def _percent(part: float, whole: float) -> str:
    return "–" if not whole else _share(part / whole)


def _share(share: float, digits: int = 1) -> str:
    """A share in percent; never rounded up to 100 or down to 0."""
    text = f"{share * 100:.{digits}f}"
    if share < 1 and float(text) == 100:
        text = f"{100 - 10**-digits:.{digits}f}"
    if share > 0 and float(text) == 0:
        return f"<{10**-digits:g} %"
    return f"{text} %"


def _time(moment: datetime) -> str:
    return f"{moment:%d %b %H:%M}"


def _span(first: datetime | None, last: datetime | None) -> str:
    """From one hour to another one, kept on one line."""
    if first is None or last is None:
        return ""
    until = "" if first == last else f" – {f'{last:%H:%M}' if first.date() == last.date() else _time(last)}"
    return f'<span class="when">{_time(first)}{until}</span>'


def _day(day: date) -> str:
    return f"{day:%A, %d %B %Y}"
