"""No cryptography of our own: ciphers, keys and tokens are a library's, and only where this names it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.architecture.test_layers import LAYER, ROOT

LIBRARIES = {"cryptography", "jwt"}
WITH_LIBRARIES = {
    "base/oauth.py": "assertions of private_key_jwt",
    "base/pem.py": "owners' private keys and certificates",
    "base/signing.py": "signatures v1a",
    "cloud/vault.py": "sealed values",
    "notifications/wire/tokens.py": "consumers' tokens",
}
"""The only modules that use them, and for what."""

WITH_HMAC = {
    "base/ids.py": "ids that only the hub can make",
    "base/signature_schemes.py": "signatures as owners describe them",
    "base/signing.py": "signatures v1",
    "ironmq/acknowledge.py": "comparing reservation ids in constant time",
    "notifications/wire/frames.py": "ids of acknowledgements",
    "notifications/wire/tokens.py": "the key of each tenant",
    "webhooks/endpoints/endpoints.py": "comparing secrets in constant time",
}
DIGESTS = {"sha256", "blake2b"}
"""What is taken of hashlib: digests, and no generators, derivations or keyed modes."""


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Each module of the product."""
    for folder in (LAYER, ROOT / "functions"):
        for path in sorted(folder.rglob("*.py")):
            yield path.relative_to(folder).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def imported(tree: ast.Module) -> set[str]:
    """The packages that a module imports when it runs, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body.clear()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {each.name.partition(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((node.module or "").partition(".")[0])
    return found


def importers(*names: str) -> set[str]:
    return {path for path, tree in modules() if imported(tree) & {*names}}


def arithmetic(tree: ast.Module) -> Iterator[str]:
    """Calculations that only ciphers and signatures need: with moduli, and with bits of whole texts."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"pow", "math.gcd"}:
            yield ast.unparse(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitXor):
            yield ast.unparse(node)


def test_only_the_named_modules_use_the_libraries() -> None:
    assert importers(*LIBRARIES) == WITH_LIBRARIES.keys()


def test_only_the_named_modules_use_hmac() -> None:
    assert importers("hmac") == WITH_HMAC.keys()


def test_hashlib_is_used_for_digests_only() -> None:
    for path, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "hashlib":
                assert node.attr in DIGESTS, f"{path}: {ast.unparse(node)}"
            if isinstance(node, ast.ImportFrom) and node.module in {"hashlib", "hmac"}:
                assert {each.name for each in node.names} <= DIGESTS, path


def test_nothing_calculates_as_ciphers_do() -> None:
    assert [(path, each) for path, tree in modules() for each in arithmetic(tree)] == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("x = pow(a, b, n)", True),
        ("x = int.from_bytes(a) ^ int.from_bytes(b)", True),
        ("x = a * b % n", False),
    ],
)
def test_what_is_taken_for_a_calculation_of_ciphers(text: str, found: bool) -> None:
    assert bool([*arithmetic(ast.parse(text))]) is found


def test_no_library_is_imported_before_there_is_something_for_it_to_do() -> None:
    """At the top of a module, an import makes every start of every function pay."""
    for path, tree in modules():
        imported(tree)  # what is only for types is taken out
        top = {name for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom) for name in _names(node)}
        assert not top & LIBRARIES, path


def _names(node: ast.Import | ast.ImportFrom) -> set[str]:
    names = [each.name for each in node.names] if isinstance(node, ast.Import) else [node.module or ""]
    return {each.partition(".")[0] for each in names}


def test_the_vectors_are_published_ones() -> None:
    assert "C2SP/wycheproof" in Path(ROOT / "tests" / "fakes" / "vectors.json").read_text(encoding="utf-8")
