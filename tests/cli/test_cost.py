"""``pushhub cost``, and the prices in README and docs, which are what it reckons."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from cli.__main__ import main
from cli.counted_units import MESSAGES, PRICES
from cli.reckoning import Line, Month, at_rest, bill, total
from click.testing import CliRunner
from glue_jobs.delivery_report import list_prices

ROOT = Path(__file__).parents[2]


def typed(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(main, ["cost", *arguments])
    assert result.exit_code == code, result.output
    return result.output


def test_a_month_is_told_part_by_part_and_the_parts_are_the_sum() -> None:
    # When a month is asked for
    told = json.loads(typed("--messages", "1000000", "--size", "2048", "--json"))
    # Then every part an AWS bill has is there, and the last line is their sum
    parts = {each["part"]: each["dollars"] for each in told}
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
    assert runs(10_000) > 0.95
    assert runs(10_000_000_000) < 0.001


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


SAID = re.compile(r"\| ([0-9,]+) \| \$([0-9,.]+) \| \$([0-9,.]+) \| \$([0-9,.]+) \|")


@pytest.mark.parametrize("page", ["README.md", "docs/scale.md"])
def test_prices_in_prose_are_what_the_command_reckons(page: str) -> None:
    # Given the prices by messages a month that a page gives
    said = SAID.findall((ROOT / page).read_text())
    assert len(said) >= 4
    # Then each is what the command says, in as many digits
    for messages, *prices in said:
        for price, size in zip(prices, sorted(MESSAGES), strict=True):
            dollars = total(bill(Month(int(messages.replace(",", "")), size)))
            digits = len(price.partition(".")[2])
            assert f"{dollars:,.{digits}f}" == price, (messages, size)
    assert f"**${total(at_rest()):.2f}**" in (ROOT / "README.md").read_text()


def test_nothing_is_asked_of_a_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given no hub at all
    monkeypatch.setenv("PUSHHUB_URL", "http://127.0.0.1:9")
    assert "all" in typed()
