"""Each sentence of the three documents has a test, and the page shows which."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.seeds.table import PAGE, Document, Sentence, Unproved, check, documents, on_page, rendered

LEAST = {
    "Consuming messages (Spree hub)": 24,
    "Push queues (IronMQ)": 60,
    "Consumer protocol (Cumulocity Notifications 2.0)": 35,
}
"""So many sentences there are at least: what is there cannot be left out unseen."""


def test_every_sentence_has_a_test_that_exists_or_says_why_it_has_none() -> None:
    found = documents()
    check(found)
    assert {each.title: len(each.sentences) >= LEAST[each.title] for each in found} == dict.fromkeys(LEAST, True)


def test_the_page_has_the_tables() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == on_page(page, rendered(documents())), "write them again: .venv/bin/python -m tests.seeds.table"


@pytest.mark.parametrize(
    ("sentence", "problem"),
    [
        (Sentence(says="x"), "needs tests"),
        (Sentence(says="x", tests=("a/test_a.py::test_one",), about="and a reason"), "needs tests"),
        (Sentence(says="x", tests=("a/test_a.py::test_two",)), "there is no test a/test_a.py::test_two"),
        (Sentence(says="x", tests=("a/test_a.py::helper",)), "there is no test"),
        (Sentence(says="x", tests=("a/test_b.py::test_one",)), "there is no test"),
    ],
)
def test_a_sentence_without_a_test_is_found(tmp_path: Path, sentence: Sentence, problem: str) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "test_a.py").write_text("def test_one() -> None: ...\n\n\ndef helper() -> None: ...\n")
    check([Document(title="t", sentences=(Sentence(says="y", tests=("a/test_a.py::test_one",)),))], tmp_path)
    with pytest.raises(Unproved, match=problem):
        check([Document(title="t", sentences=(sentence,))], tmp_path)
