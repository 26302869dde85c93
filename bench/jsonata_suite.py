"""JSONata's own suite, run in the sandbox of transformations (docs/transformations.md).

    git clone --depth 1 --branch v2.2.2 https://github.com/jsonata-js/jsonata
    PYTHONPATH=layers/pushhub:. .venv/bin/python -m bench.jsonata_suite jsonata/test/test-suite

A case passes with the result or the error code that the suite demands, within the limits of a transformation: a second
and 64 MB. Bindings are written before the expression. It prints the cases that do not pass, and how many do.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pushhub.scripting.sandbox import Sandbox

NOTHING = object()


def cases(suite: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each case of the suite, with its name."""
    for file in sorted((suite / "groups").glob("*/*.json")):
        found = json.loads(file.read_text(encoding="utf-8"))
        for number, case in enumerate(found if isinstance(found, list) else [found]):
            if "expr-file" in case:
                case["expr"] = file.with_name(case["expr-file"]).read_text(encoding="utf-8")
            yield f"{file.parent.name}/{file.stem}[{number}]", case


def data_of(case: dict[str, Any], suite: Path) -> Any:
    """The input of a case; :data:`NOTHING` for none."""
    if "data" in case:
        return case["data"]
    if case.get("dataset") is None:
        return NOTHING
    return json.loads((suite / "datasets" / f"{case['dataset']}.json").read_text(encoding="utf-8"))


def run(sandbox: Sandbox, case: dict[str, Any], suite: Path) -> str:
    """Why a case does not pass; empty if it does."""
    data = data_of(case, suite)
    bound = "".join(f"${name} := {json.dumps(value)}; " for name, value in case.get("bindings", {}).items())
    found = sandbox.run(
        {
            "language": "jsonata",
            "code": f"({bound}{case['expr']})" if bound else case["expr"],
            "input": "" if data is NOTHING else json.dumps(data),
            "answers": "value",
            "now": 1_800_000_000_000,
            "seed": "suite",
        }
    )
    expected = case.get("code") or (case.get("error") or {}).get("code")
    if "error" in found:
        said = str(found.get("message", ""))
        return "" if expected and said.startswith(f"{expected}:") else f"{found['error']}: {said[:100]}"
    if expected:
        return f"no error {expected}"
    payload = found["result"].get("payload", {})
    text = json.dumps(payload["text"]) if "text" in payload else payload.get("json")
    if "undefinedResult" in case:
        return "" if text is None else f"{text[:80]} instead of nothing"
    if text is None:
        return "nothing"
    return "" if json.loads(text) == case["result"] else f"{text[:80]} instead of {json.dumps(case['result'])[:80]}"


def main() -> int:
    """Run it."""
    suite, sandbox, count, failed = Path(sys.argv[1]), Sandbox(), 0, 0
    for name, case in cases(suite):
        count += 1
        why = run(sandbox, case, suite)
        if why:
            failed += 1
            print(f"{name}: {why}")
    sandbox.close()
    print(f"{count - failed} of {count} cases pass")
    return 0


if __name__ == "__main__":
    sys.exit(main())
