"""The three documents that this hub was made from, sentence by sentence, each with the tests that hold it.

The sentences stand in the files beside this one, shortened or in their own words. ``python -m tests.seeds.table``
writes the tables in ``sentences.md`` beside it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

HERE = Path(__file__).parent
TESTS = HERE.parent
PAGE = HERE / "sentences.md"
BEGIN = "<!-- sentences: written by tests.seeds.table -->\n"
END = "<!-- end of sentences -->\n"


class Unproved(Exception):
    """A sentence has no test, or names one that there is not.

    Args:
        problems: What is wrong, one for each.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """What a document says.

    Attributes:
        says: The sentence, shortened.
        tests: Tests that hold it, as ``folder/file.py::test``, below ``tests``.
        about: Why there is nothing to test: it is about something else than the hub.
        differs: How the hub differs from it.
    """

    says: str
    tests: tuple[str, ...] = ()
    about: str = ""
    differs: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A document with its sentences, in their order."""

    title: str
    sentences: tuple[Sentence, ...]


def documents(folder: Path = HERE) -> list[Document]:
    """All of them."""
    return [_document(yaml.safe_load(each.read_text(encoding="utf-8"))) for each in sorted(folder.glob("*.yaml"))]


def _document(given: Mapping[str, object]) -> Document:
    sentences = given["sentences"]
    assert isinstance(sentences, list)
    read = (Sentence(**{**each, "tests": tuple(each.get("tests", ()))}) for each in sentences)
    return Document(title=str(given["title"]), sentences=tuple(read))


def check(found: Sequence[Document], tests: Path = TESTS) -> None:
    """See that each sentence has a test that exists, or says why there is nothing to test.

    Raises:
        Unproved: One has not.
    """
    problems = [
        f"{document.title}: {each.says}: {problem}"
        for document in found
        for each in document.sentences
        for problem in _problems(each, tests)
    ]
    if problems:
        raise Unproved(problems)


def _problems(sentence: Sentence, tests: Path) -> Iterator[str]:
    if bool(sentence.tests) is bool(sentence.about):
        yield "needs tests, or a reason why there is nothing to test"
    for each in sentence.tests:
        file, _, name = each.partition("::")
        if name not in _tests_in(tests / file):
            yield f"there is no test {each}"


@cache
def _tests_in(file: Path) -> frozenset[str]:
    if not file.is_file():
        return frozenset()
    functions = (each for each in ast.parse(file.read_text(encoding="utf-8")).body if isinstance(each, ast.FunctionDef))
    return frozenset(each.name for each in functions if each.name.startswith("test_"))


def rendered(found: Sequence[Document]) -> str:
    """The tables, in Markdown."""
    return "\n".join("\n".join(_table(each)) for each in found)


def _table(document: Document) -> Iterator[str]:
    yield f"### {document.title}\n"
    yield "| sentence | test |"
    yield "|---|---|"
    for each in document.sentences:
        held = "<br>".join(f"`{test}`" for test in each.tests) or f"none: {each.about}"
        yield f"| {each.says} | {held}{f' ({each.differs})' if each.differs else ''} |"
    yield ""


def on_page(page: str, tables: str) -> str:
    """The page with these tables."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{tables}\n{END}{after}"


if __name__ == "__main__":
    check(documents())
    PAGE.write_text(on_page(PAGE.read_text(encoding="utf-8"), rendered(documents())), encoding="utf-8")
