"""``pushhub cost``, and the prices in README and docs, which are what it reckons."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from bench import list_prices
from cli.__main__ import main
from cli.cost.counted_units import MESSAGES, PRICES
from cli.cost.reckoning import RECORDS_WINDOW_S, SECONDS, SINKS, Line, Month, at_rest, bill, total
from click.testing import CliRunner
from tests.template.cloudformation import parameter

ROOT = Path(__file__).parents[2]


def typed(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(main, ["cost", *arguments])
    assert result.exit_code == code, result.output
    return result.output


def test_a_month_is_told_part_by_part_and_the_parts_are_the_sum() -> None:
    # When a month is asked for
    answer = json.loads(typed("--messages", "1000000", "--size", "2048", "--json"))
    # Then every part an AWS bill has is there, and the last line is their sum
    parts = {each["part"]: each["dollars"] for each in answer}
    assert parts.keys() >= {
        *("alarms", "keys", "custom metrics", "empty receives", "empty receives, FIFO", "wake", "messages"),
        *("records, runs", "records, changes", "report, Glue", "searches, Athena", "calls of the key", "data out"),
    }
    whole = parts.pop("all")
    assert whole == pytest.approx(sum(parts.values()))
    assert whole == pytest.approx(total(bill(Month(1_000_000))))


def test_a_person_sees_a_table() -> None:
    shown = typed("--messages", "100000000", "--subscribers", "3", "--failing", "5")
    assert re.search(r"^further deliveries +200,000,000 +[0-9,.]+$", shown, re.MULTILINE)
    assert re.search(r"^failed attempts +15,000,000 +[0-9,.]+$", shown, re.MULTILINE)
    assert re.search(r"^all +- +[0-9,]+\.[0-9]{2}$", shown, re.MULTILINE)
    assert "a million messages" in shown


def test_without_messages_it_is_what_a_hub_costs_at_rest() -> None:
    assert json.loads(typed("--messages", "0", "--json"))[-1]["dollars"] == pytest.approx(total(at_rest()))


@pytest.mark.parametrize(
    "wrong", [("--messages", "-1"), ("--size", "300000"), ("--subscribers", "0"), ("--failing", "101"), ("--size", "x")]
)
def test_what_no_hub_does_is_wrong_usage(wrong: tuple[str, str]) -> None:
    assert "Invalid value" in typed(*wrong, code=2)


@pytest.mark.parametrize("messages", [1, 10_000, 3_000_000, 100_000_000, 10**12])
def test_more_of_anything_never_costs_less(messages: int) -> None:
    # Given a month
    least = total(bill(Month(messages, 0)))
    # Then larger bodies, more subscribers and more failures cost more
    rising = [
        least,
        *(total(bill(Month(messages, size))) for size in (385, 1_000, 2_048, 6_144, 24_576)),
    ]
    assert rising == sorted(rising)
    assert total(bill(Month(messages, 2_048, 2))) > total(bill(Month(messages, 2_048)))
    assert total(bill(Month(messages, 2_048, 1, 0.5))) > total(bill(Month(messages, 2_048)))
    assert total(bill(Month(messages + 1_000_000))) > total(bill(Month(messages)))


def test_between_what_was_counted_it_is_between() -> None:
    # Given units counted at two rates and sizes
    rates = sorted(MESSAGES[2_048])
    low, high = (total([each]) / rate for rate in rates[:2] for each in bill(Month(rate)) if each.part == "messages")
    # Then a message at a rate between costs something between
    rate = rates[0] * 3
    [between] = [each.dollars / rate for each in bill(Month(rate)) if each.part == "messages"]
    assert min(low, high) < between < max(low, high)
    sizes = [
        sum(each.dollars for each in bill(Month(rate, size)) if each.part == "messages")
        for size in (2_048, 4_000, 6_144)
    ]
    assert sizes == sorted(sizes)


def test_a_quiet_hub_pays_for_small_batches_of_records() -> None:
    # Given a hub that gets a message now and then, and a busy one
    def runs(messages: int) -> float:
        [line] = [each for each in bill(Month(messages)) if each.part == "records, runs"]
        return float(line.counted.replace(",", "")) / messages

    # Then the first has a run for nearly each message, and the other one for thousands
    assert runs(10_000) > 0.85
    assert runs(10_000_000_000) < 0.001
    # And one that gets a message in 2.6 s has a run in two minutes for each of four shards
    assert runs(1_000_000) * 1_000_000 == pytest.approx(4 * SECONDS / (115 + 4 * 2.6), rel=0.01)


def test_records_wait_for_others_as_long_as_the_template_says() -> None:
    assert int(parameter("RecordsWindow")["Default"]) == RECORDS_WINDOW_S


def test_prices_are_those_of_the_one_table() -> None:
    assert PRICES == list_prices.PRICES


def test_figures_are_what_the_command_reckons() -> None:
    # Given the page of months
    page = (ROOT / "docs/figures/months.md").read_text()

    # Then its tables are what the command says now
    def row(*cells: str) -> str:
        return r"\| " + r" +\| ".join(map(re.escape, cells)) + r" +\|"

    def shown(line: Line) -> str:
        return row(line.part, line.counted, f"{line.dollars:,.2f}")

    for line in (*at_rest(), *bill(Month(1_000_000)), *bill(Month(10_000_000_000))):
        assert re.search(shown(line), page), line
    for messages in (10_000, 1_000_000, 100_000_000, 10_000_000_000):
        month = [f"{total(bill(Month(messages, size))):,.2f}" for size in sorted(MESSAGES)]
        assert re.search(row(f"{messages:,}", *month), page), messages


def besides(month: Month) -> float:
    """Dollars of a month beyond those of the same month with URLs, without sources and code."""
    return total(bill(month)) - total(bill(Month(month.messages, month.size, month.subscribers, month.failing)))


def test_a_sink_costs_about_a_dollar_a_million_more_than_a_url_at_most_and_less_in_tens() -> None:
    million = 1_000_000
    for kind in ("sqs", "fifo", "sns", "events", "lambda"):
        alone, in_tens = besides(Month(million, sink=kind)), besides(Month(million, sink=kind, together=10))
        assert 0 < in_tens < alone < 1.01, kind
    assert besides(Month(million, sink="sqs", together=10)) < 0.1 * besides(Month(million, sink="sqs")) + 0.01


def test_a_transformation_is_a_small_part_of_the_cost_and_costs_nothing_without_code() -> None:
    month = 100_000_000
    assert 0 < besides(Month(month, 385, transformed=1)) < 0.15 * total(bill(Month(month, 385, transformed=1)))
    assert besides(Month(month, transformed=0.1)) == pytest.approx(0.1 * besides(Month(month, transformed=1)))
    assert besides(Month(month)) == 0


def test_an_event_of_a_source_costs_more_than_a_message_and_parts_say_so() -> None:
    answer = json.loads(typed("--sourced", "50", "--transformed", "20", "--sink", "fifo", "--together", "10", "--json"))
    parts = {each["part"]: (each["counted"], each["dollars"]) for each in answer}
    assert parts["events of sources"] == ("500,000", pytest.approx(besides(Month(1_000_000, sourced=0.5))))
    assert parts["transformations"][0] == "200,000"
    assert parts["sinks, fifo"][0] == "1,000,000"
    assert typed("--together", "11", code=2)


def test_the_page_shows_what_sinks_sources_and_code_cost() -> None:
    page = (ROOT / "docs/figures/months.md").read_text()
    for kind in SINKS:
        alone, in_tens = (besides(Month(1_000_000, sink=kind, together=each)) for each in (1, 10))
        assert re.search(rf"\| a sink: {kind} +\| {alone:.3f} +\| {in_tens:.3f} +\|", page), kind
    assert re.search(rf"\| an event of a source +\| {besides(Month(1_000_000, sourced=1)):.3f} ", page)
    assert re.search(rf"\| a transformation +\| {besides(Month(1_000_000, transformed=1)):.3f} ", page)


SAID = re.compile(r"\| ([0-9,]+) \| \$([0-9,.]+) \| \$([0-9,.]+) \| \$([0-9,.]+) \|")


def test_prices_in_prose_are_what_the_command_reckons() -> None:
    # Given the prices by messages a month that README gives
    said = SAID.findall((ROOT / "README.md").read_text())
    assert len(said) >= 4
    # Then each is what the command says, in as many digits
    for messages, *prices in said:
        for price, size in zip(prices, sorted(MESSAGES), strict=True):
            dollars = total(bill(Month(int(messages.replace(",", "")), size)))
            digits = len(price.partition(".")[2])
            assert f"{dollars:,.{digits}f}" == price, (messages, size)
    assert f"**${total(at_rest()):.2f}**" in (ROOT / "README.md").read_text()


def test_a_hub_at_rest_and_a_small_one_cost_little() -> None:
    assert total(at_rest()) <= 4.00
    assert total(bill(Month(1_000_000, 2_048))) <= 12.00


def test_nothing_is_asked_of_a_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given no hub at all
    monkeypatch.setenv("PUSHHUB_URL", "http://127.0.0.1:9")
    assert "all" in typed()


def test_events_of_a_stream_cost_less_the_more_are_in_a_batch_and_more_by_sink_and_size() -> None:
    # Given a month of events of a stream
    def month(together: int = 10, size: int = 385, subscribers: int = 1, sink: str = "") -> float:
        return total(bill(Month(10**6, size, subscribers, sink=sink, together=together, stream=True)))

    # Then larger batches cost less, and more sinks, larger events and services of AWS more
    falling = [month(each) for each in (1, 2, 10, 50, 100, 1_000)]
    assert falling == sorted(falling, reverse=True)
    assert month() < month(subscribers=2) < month(subscribers=3)
    assert month() < month(size=2_048) < month(size=6_144)
    assert month() < month(sink="kinesis") < month(sink="s3")
    assert month(100, sink="s3") < month(10, sink="s3")


def test_a_person_asks_for_a_stream() -> None:
    # Given the same month for a push queue and for a stream, when they are asked for, then they differ
    arguments = ("--messages", "100000", "--sink", "s3", "--json")
    answer = json.loads(typed(*arguments, "--stream", "--together", "100"))
    month = Month(100_000, sink="s3", together=100, stream=True)
    assert answer[-1]["dollars"] == pytest.approx(total(bill(month)))
    assert answer[-1]["dollars"] != json.loads(typed(*arguments))[-1]["dollars"]
    # And what only streams have is wrong usage for others
    assert "Only batches of a stream have more than 10" in typed("--together", "11", code=2)
