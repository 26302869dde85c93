"""No cryptography of our own: ciphers, keys and tokens are a library's, and only where this names it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from tests.architecture.test_layers import LAYER, ROOT, nodes_of, tree_of

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
    "base/signature_check.py": "signatures of senders, compared in constant time",
    "base/signature_schemes.py": "signatures as owners describe them",
    "base/signing.py": "signatures v1",
    "engine/security/external_ids.py": "external ids that nobody can guess",
    "ironmq/pushing/acknowledge.py": "comparing reservation ids in constant time",
    "notifications/wire/frames.py": "ids of acknowledgements",
    "notifications/wire/tokens.py": "the key of each tenant",
    "webhooks/endpoints/endpoints.py": "comparing secrets in constant time",
    "webhooks/model/autoconfig.py": "the signing secret that follows from a key",
    "webhooks/model/source.py": "comparing tokens in constant time",
    "webhooks/sources/arrivals.py": "what Zoom and Meta want to read",
}
DIGESTS = {"sha256", "blake2b"}
"""What is taken of hashlib: digests, and no generators, derivations or keyed modes."""


@cache
def modules() -> tuple[tuple[str, Path], ...]:
    """Each module of the product."""
    return tuple(
        (path.relative_to(folder).as_posix(), path)
        for folder in (LAYER, ROOT / "functions")
        for path in sorted(folder.rglob("*.py"))
    )


def importers(*names: str) -> set[str]:
    """The modules that import one of these packages when they run, anywhere in them."""
    return {name for name, path in modules() if _imported(_run_by(tree_of(path))) & {*names}}


def _run_by(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below one, without what is only there for types."""
    for each in ast.iter_child_nodes(node):
        yield each
        if not (isinstance(each, ast.If) and ast.unparse(each.test) == "TYPE_CHECKING"):
            yield from _run_by(each)


def arithmetic(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Calculations that only ciphers and signatures need: with moduli, and with bits of whole texts."""
    for node in nodes:
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"pow", "math.gcd"}:
            yield ast.unparse(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitXor):
            yield ast.unparse(node)


def test_only_the_named_modules_use_the_libraries() -> None:
    assert importers(*LIBRARIES) == WITH_LIBRARIES.keys()


def test_only_the_named_modules_use_hmac() -> None:
    assert importers("hmac") == WITH_HMAC.keys()


def test_hashlib_is_used_for_digests_only() -> None:
    for name, path in modules():
        for node in nodes_of(path):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "hashlib":
                assert node.attr in DIGESTS, f"{name}: {ast.unparse(node)}"
            if isinstance(node, ast.ImportFrom) and node.module in {"hashlib", "hmac"}:
                assert {each.name for each in node.names} <= DIGESTS, name


def test_nothing_calculates_as_ciphers_do() -> None:
    assert [(name, each) for name, path in modules() for each in arithmetic(nodes_of(path))] == []


def test_no_library_is_imported_before_there_is_something_for_it_to_do() -> None:
    """At the top of a module, an import makes every start of every function pay."""
    for name, path in modules():
        assert not _imported(tree_of(path).body) & LIBRARIES, name


def _imported(nodes: Iterable[ast.AST]) -> set[str]:
    """The packages that these statements import."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {each.name.partition(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((node.module or "").partition(".")[0])
    return found
