"""What every index of named fields does."""

from __future__ import annotations

from tests.contract.samples import NOW, OTHER_PROJECT, PROJECT

from pushhub.engine.model.search import IndexEntry
from pushhub.engine.ports import SearchIndex


def entry(number: int, value: str = "4711", *, project: str = PROJECT, field: str = "order#id") -> IndexEntry:
    return IndexEntry(
        project=project,
        value=value,
        queue="orders",
        queue_uid="0123456789ab",
        message_id=f"{10**18 + number}",
        field=field,
        expires_at=NOW + 60_000,
    )


def test_entries_are_found_by_value_newest_first_page_by_page(search_index: SearchIndex) -> None:
    entries = [entry(number) for number in range(30)]
    search_index.add(entries)
    search_index.add(entries[:2])
    search_index.add([entry(1, "other"), entry(2, project=OTHER_PROJECT)])
    found, after = search_index.find(PROJECT, "4711", 20)
    assert found == entries[:9:-1]
    assert after is not None
    rest, end = search_index.find(PROJECT, "4711", 20, after)
    assert (rest, end) == (entries[9::-1], None)
    assert search_index.find(OTHER_PROJECT, "4711", 20) == ([entry(2, project=OTHER_PROJECT)], None)
    assert search_index.find(PROJECT, "471", 20) == ([], None)
    assert [each.message_id for each in search_index.find(PROJECT, " OTHER ", 20)[0]] == [entry(1).message_id]


def test_what_is_removed_is_not_found(search_index: SearchIndex) -> None:
    search_index.add([entry(1), entry(2), entry(2, field="b")])
    search_index.remove([entry(1), entry(2), entry(3)])
    assert search_index.find(PROJECT, "4711", 20) == ([entry(2, field="b")], None)
