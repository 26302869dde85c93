"""A transformation on the local stack, warm: how long a run of code takes, and what it adds to a request.

    make up && .venv/bin/python -m bench.transformations [--rounds 200] [--save docs/figures/transformations.md]

*The sandbox alone*: what that function calls, in this process, without Lambda: all of a run that is our own.
*A run*: the transform function is invoked as push invokes it, through the stack's Lambda, with a message of 1 KB; one
after the other, after twenty that do not count. *Tried*: `POST .../transformation/simulate`, which is a request to
control and such a run. The *baseline* is `GET .../transformation` of the same endpoint, a request to control without a
run, made in turn with the others: *ratio* is to its p95. The emulator, the functions and the client share the machine's
cores.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from local.place import Place

from bench.harness import Page, percentile, percentiles
from bench.local_hub import tenant
from local import stack
from pushhub.scripting.sandbox import Sandbox

WARM = 20
CODES: Mapping[str, str] = {
    "javascript": "function handler(webhook) { webhook.payload = { id: webhook.payload.id }; return webhook; }",
    "jsonata": '{"payload": {"id": payload.id}}',
}
PAYLOAD = {"id": "R154085346", "text": "x" * 1_000}


def timed(calls: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Seconds of each call, made in turn, without the first ones."""
    took: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(WARM + rounds):
        for name, call in calls.items():
            begun = time.perf_counter()
            call()
            if number >= WARM:
                took[name].append(time.perf_counter() - begun)
    return took


def main() -> None:
    """Measure, print, save."""
    page = Page("Transformations on the local stack", __doc__, rounds=200)
    owner = tenant("transformations")
    app = owner.webhooks("POST", "/app", {"name": "shop"})["id"]
    created = owner.webhooks("POST", f"/app/{app}/endpoint", {"url": "http://127.0.0.1:9/"})
    path = f"/app/{app}/endpoint/{created['id']}/transformation"
    description = stack.describe(Place.from_environment())
    functions, name = stack.aws(description).functions(), description.outputs["TransformFunctionName"]

    sandbox = Sandbox()

    def asked(language: str) -> dict[str, Any]:
        webhook = {"method": "POST", "url": "https://a.example/in", "payload": PAYLOAD, "eventType": "order.paid"}
        code = {"language": language, "code": CODES[language], "answers": "webhook", "now": 1, "seed": "msg_1"}
        return {**code, "input": json.dumps({**webhook, "env": {}, "transformationsParams": {}})}

    def alone(language: str) -> None:
        assert "result" in sandbox.run(asked(language))

    def run(language: str) -> None:
        answer = functions.invoke(FunctionName=name, Payload=json.dumps(asked(language)).encode())
        said: dict[str, Any] = json.loads(answer["Payload"].read())
        assert "result" in said, said

    def tried(language: str) -> None:
        body = {"code": CODES[language], "language": language, "eventType": "order.paid", "payload": PAYLOAD}
        assert owner.webhooks("POST", f"{path}/simulate", body)["payload"]

    calls: dict[str, Callable[[], object]] = {"baseline": lambda: owner.webhooks("GET", path)}
    for language in CODES:
        calls[f"the sandbox alone, {language}"] = lambda language=language: alone(language)  # type: ignore[misc]
        calls[f"a run, {language}"] = lambda language=language: run(language)  # type: ignore[misc]
        calls[f"tried, {language}"] = lambda language=language: tried(language)  # type: ignore[misc]
    took = timed(calls, page.options.rounds)
    sandbox.close()
    base = percentile(took["baseline"], 0.95)
    rows = [[each, *percentiles(times), f"{percentile(times, 0.95) / base:.2f}"] for each, times in took.items()]
    page.tell(f"The machine's load before was {page.load:.1f}.")
    page.table(["", "p50 ms", "p95 ms", "ratio of p95"], rows)
    page.save()


if __name__ == "__main__":
    main()
