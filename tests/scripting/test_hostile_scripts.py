"""Hostile code: each run ends, says why in a few words, and leaves nothing for the next one, which is another's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pushhub.base import json_text
from pushhub.scripting import sandbox as sandboxes
from pushhub.scripting.sandbox import CHILD, MOST_CHARACTERS, Sandbox, engine_folder

HANDLER = "function handler(webhook) {{ {} }}"
GOOD = "function handler(webhook) { webhook.payload.seen = [typeof stolen, typeof Object.prototype.x]; return webhook }"
DEEP = "[" * 100_000 + "]" * 100_000

ENDED: dict[str, tuple[str, set[str]]] = {
    "loop": ("for (;;);", {"timeout"}),
    "loop when it is loaded": ("} for (;;); function other() {", {"timeout"}),
    "string that doubles": ("let s = 'x'; for (;;) s += s", {"memory", "error"}),
    "one large string": ("return { payload: 'x'.repeat(1 << 29) }", {"memory", "error"}),
    "large array": ("return { payload: new Array(1e9).fill(0) }", {"memory", "timeout"}),
    "many buffers": ("const all = []; for (;;) all.push(new Uint8Array(1 << 20))", {"memory", "error"}),
    "recursion": ("return handler(webhook)", {"error"}),
    "regular expression": ("return /^(a+)+$/.test('a'.repeat(40) + 'b')", {"timeout"}),
    "another": ("return /(.*)*x/.test('y'.repeat(5000))", {"timeout", "result", "error"}),
    "what the engine does not interrupt": (
        "let s = 'a'.repeat(4e6); for (let i = 0; i < 9; i++) s = s.replaceAll('a', 'b'); return { payload: s }",
        {"timeout", "memory", "result"},
    ),
    "sort": ("return { payload: Array.from({length: 3e6}, Math.random).sort().length }", {"timeout", "memory"}),
    "large number": ("return { payload: String(2n ** 10000000n) }", {"error", "timeout", "memory"}),
    "deep text": (f"return {{ payload: JSON.parse('{DEEP}') }}", {"error"}),
    "deep object": ("let o = {}; for (let i = 0; i < 1e5; i++) o = {o}; return { payload: o }", {"error"}),
    "circle": ("webhook.payload.me = webhook; return webhook", {"error"}),
    "conversion that loops": ("return { payload: { toJSON() { for (;;); } } }", {"timeout"}),
    "getter that loops": ("return { get payload() { for (;;); } }", {"timeout"}),
    "getter that throws": ("return { get url() { throw null } }", {"error"}),
    "proxy": ("return new Proxy({}, { get() { return new Proxy({}, this) } })", {"result", "error"}),
    "promises for ever": ("const next = () => Promise.resolve().then(next); return next()", {"result", "timeout"}),
    "promise that nobody resolves": ("return new Promise(() => {})", {"result"}),
    "thenable that is none": ("return { then() { for (;;); } }", set()),
    "error that cannot be told": ("throw { toString() { throw 1 } }", {"error"}),
    "error whose message loops": ("throw { get message() { for (;;); } }", {"timeout"}),
    "error that is large": ("throw new Error('x'.repeat(1e6))", {"error"}),
    "throws null": ("throw null", {"error"}),
    "returns a function": ("return () => 1", {"result"}),
    "returns a number": ("return 7", {"result"}),
    "payload that is a function": ("return { payload() {} }", {"result"}),
    "payload that is a symbol": ("return { payload: Symbol('x') }", {"result"}),
    "payload that is a large integer": ("return { payload: 7n }", {"error"}),
    "output that is too large": ("return { payload: 'x'.repeat(2 << 20) }", {"result"}),
    "headers that are too many": (
        "return { headers: Object.fromEntries([...Array(99)].map((_, i) => ['x' + i, ''])) }",
        {"result"},
    ),
    "headers that are objects": ("return { headers: { a: {} } }", {"result"}),
    "method": ("return { method: 'CONNECT' }", {"result"}),
    "half a surrogate pair": ("return { payload: '\\ud800' }", {"result"}),
    "half a pair in an error": ("throw new Error('\\udc00')", {"result"}),
    "import": ("return import('os')", {"error"}),
    "require": ("return require('fs')", {"error"}),
    "process": ("return process.exit(1)", {"error"}),
    "std": ("return std.exit(1)", {"error"}),
    "a function from text": ("return { payload: [].constructor.constructor('return this.process')() }", set()),
    "built-in objects": (
        "Object.prototype.x = 1; Array.prototype.map = 1; JSON.stringify = 1; globalThis.stolen = 1; return webhook",
        set(),
    ),
    "shared memory": (
        "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0); return webhook",
        {"timeout", "error", "crash"},
    ),
}
"""By what it does: the body of a handler, and how it may end; empty if it may go on and do no harm."""

EXPRESSIONS = {
    "recursion": ("( $f := function($n){ 1 + $f($n + 1) }; $f(1) )", {"error", "timeout", "memory", "result"}),
    "tail recursion": ("( $f := function($n){ $f($n + 1) }; $f(1) )", {"result", "timeout", "memory"}),
    "range": ("[1..10000000]", {"error", "timeout", "memory", "result"}),
    "padding": ('{"payload": $pad("x", 500000000)}', {"error", "timeout", "memory"}),
    "text that is evaluated": ('$eval("[1..9999999]")', {"error", "timeout", "memory", "result"}),
    "regular expression": ('$match("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", /^(a+)+$/)', {"timeout"}),
    "prototype": ('{"payload": payload.constructor.constructor("return 1")()}', set()),
    "syntax": ("{{", {"error"}),
}


SPOILED = """let asked = 0;
Object.prototype.toJSON = function () {{
  if (asked++ < {times}) return 1;
  delete Object.prototype.toJSON;
  return {made};
}};
const handler = (webhook) => {{ {ends} }};"""
"""Code that has the harness write something else than it has looked at."""
WRITTEN = {
    "deep": "[...Array(900)].reduce((within) => [within], 1)",
    "deeper": "[...Array(4000)].reduce((within) => [within], 1)",
    "large": "{ result: { payload: { text: 'y'.repeat(1 << 21) } } }",
    "another error": "{ error: { a: 1 }, message: ['y'.repeat(1 << 21)] }",
    "nothing": "undefined",
}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    created = Sandbox()
    yield created
    created.close()


def run(sandbox: Sandbox, code: str, language: str = "javascript") -> dict[str, Any]:
    webhook = {"method": "POST", "url": "https://a.example/", "payload": {"__proto__": {"x": 1}}, "env": {"K": "s3"}}
    written = json.dumps(webhook)
    return sandbox.run(
        {"language": language, "code": code, "input": written, "answers": "webhook", "now": 1, "seed": "msg_1"}
    )


def process_of(sandbox: Sandbox) -> int:
    assert sandbox._process is not None
    return sandbox._process.pid


def ends_well(sandbox: Sandbox, code: str, language: str, allowed: set[str]) -> None:
    run(sandbox, GOOD)
    before = process_of(sandbox)
    # When the code is run
    found = run(sandbox, code, language)
    # Then it ends in one of the ways that are right for it, in few words
    assert found.get("error") in allowed if allowed else "result" in found, found
    assert len(found.get("message", "")) <= 500
    # And the process that ends runs lives on, without any that it forgot
    assert process_of(sandbox) == before
    assert Path(f"/proc/{before}/task/{before}/children").read_text(encoding="ascii") == ""
    # And another's code finds nothing of it
    assert json.loads(run(sandbox, GOOD)["result"]["payload"]["json"])["seen"] == ["undefined", "undefined"]


@pytest.mark.parametrize("name", ENDED)
def test_code_ends_within_its_bounds(sandbox: Sandbox, name: str) -> None:
    body, allowed = ENDED[name]
    ends_well(sandbox, HANDLER.format(body), "javascript", allowed)


@pytest.mark.parametrize("ends", ["return { payload: 'x' }", "throw webhook"])
@pytest.mark.parametrize("times", range(3))
@pytest.mark.parametrize("name", WRITTEN)
def test_what_code_has_written_in_the_harness_s_place_is_bounded(
    sandbox: Sandbox, name: str, times: int, ends: str
) -> None:
    # Given code that has spoiled how results are written
    code = SPOILED.format(times=times, made=WRITTEN[name], ends=ends)
    # When it ends, then what is said is no larger and no deeper than any result, and can be written again
    found = run(sandbox, code)
    written = json_text.write(found).encode()
    assert len(written) <= MOST_CHARACTERS + 1_000
    assert len(str(found.get("message", ""))) <= 500
    assert json_text.read(written) == found


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expressions_end_within_their_bounds(sandbox: Sandbox, name: str) -> None:
    expression, allowed = EXPRESSIONS[name]
    ends_well(sandbox, expression, "jsonata", allowed)


@pytest.mark.parametrize("code", ["", "handler = 1", "var handler", "function handler( {", "}", "'\\u{110000}'"])
def test_code_without_a_handler_is_an_error(sandbox: Sandbox, code: str) -> None:
    assert run(sandbox, code)["error"] in {"result", "error"}


def test_a_syntax_error_says_its_line_in_one_line(sandbox: Sandbox) -> None:
    message = run(sandbox, "\n" * 899 + "function (")["message"]
    assert ":900:" in message
    assert message.isprintable()


def test_nothing_of_the_functions_environment_is_in_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given keys in the environment of the function
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cret-key")
    sandbox = Sandbox()
    run(sandbox, GOOD)
    # Then the process that runs code has none of it, and runs have no descriptors but their own
    assert b"s3cret" not in Path(f"/proc/{process_of(sandbox)}/environ").read_bytes()
    sandbox.close()


def test_a_process_that_does_not_answer_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a process that has stopped
    sandbox = Sandbox()
    run(sandbox, GOOD)
    first = process_of(sandbox)
    os.kill(first, 19)
    monkeypatch.setattr(sandboxes, "ANSWER_S", 0.2)
    # When code is run, then the try fails, and the next one has another process
    assert run(sandbox, GOOD)["error"] == "crash"
    monkeypatch.undo()
    assert "result" in run(sandbox, GOOD)
    assert process_of(sandbox) != first
    sandbox.close()


LOADS = """
import json, sys
sys.path[:0] = sys.argv[1:3]
import child
runner, loaded = child.Runner(), []
runner.prepare("jsonata")
sys.addaudithook(lambda event, what: loaded.append(what[0]) if event == "import" else None)
child.confine()
asked = {"input": "{}", "answers": "value", "now": 1, "seed": "m", "most": 1000}
said = [runner.run({"language": language, "code": code, **asked}) for language, code in json.loads(sys.argv[3])]
print(json.dumps([said, loaded, "threading" in sys.modules]))
"""


def test_a_run_loads_nothing_and_the_process_has_no_threads_to_fork() -> None:
    # Given the process that forks for each run
    codes = [["javascript", "function handler() { return 7 }"], ["jsonata", "3 + 4"]]
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", LOADS, engine_folder(), str(CHILD.parent), json.dumps(codes)],
        check=True,
        capture_output=True,
    )
    # When it runs code, then it loads no module first, which it would do again in each fork
    said, loaded, threads = json.loads(ran.stdout)
    assert said == [json.dumps({"result": {"payload": {"json": "7"}}}, separators=(",", ":"))] * 2
    assert loaded == []
    assert not threads
