"""Every rule of the simulator fails when its promise is broken: in this folder, or by a known defect.

Rules of whole worlds are tried on a world in which all went well: something that was seen is replaced, and the world is
judged once more.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from simulation.promises.judgement import Judgement
from simulation.run import MOST_GIVEN_UP, Plan, Scene, played, simulate
from simulation.scheduler import SECOND
from simulation.strangers.diffs import known
from simulation.weather import HOUR, Kind, Storm
from simulation.worlds.gates import GatesWorld

from simulation import run

ROOT = Path(__file__).parents[2]
JUDGES = [
    path for path in sorted((ROOT / "simulation").rglob("*.py")) if "strangers" not in path.relative_to(ROOT).parts
]


def reported(text: str) -> dict[str, str]:
    """The rules that a module reports: what it says to ``fact`` and ``Violation``, or gives a name that it says, and
    that name.
    """
    nodes = [*ast.walk(ast.parse(text))]
    named: dict[str, list[ast.expr]] = {}
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                names = target.elts if isinstance(target, ast.Tuple) else [target]
                values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value] * len(names)
                for name, value in zip(names, values, strict=False):
                    if isinstance(name, ast.Name):
                        named.setdefault(name.id, []).append(value)
    found: dict[str, str] = {}
    for node in nodes:
        if not isinstance(node, ast.Call) or len(node.args) < 3:
            continue
        called = ast.unparse(node.func).rpartition(".")[2]
        if called in {"fact", "Violation"}:
            said = node.args[1 if called == "fact" else 0]
            its_name = said.id if isinstance(said, ast.Name) else ""
            for each in [said, *named.get(its_name, [])]:
                found |= {str(text.value): its_name for text in _branches(each) if isinstance(text, ast.Constant)}
    return found


def _branches(said: ast.expr) -> list[ast.expr]:
    return [said.body, said.orelse] if isinstance(said, ast.IfExp) else [said]


def test_no_rule_is_without_a_test_or_a_known_defect_that_breaks_it() -> None:
    # Given every rule that can be reported, what tests say, and what known defects break
    broken = {rule for defect in known() for rule in defect.found_by}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        test = path.read_text(encoding="utf-8")
        broken |= {*re.findall(r'"([^"\n]+)"', test), *re.findall(r"\b[a-z]+\.[A-Z_]+\b", test)}
        for judge, names in re.findall(r"from simulation\.[\w.]*?(\w+) import ([^(\n]+|\([^)]+\))", test):
            broken |= {f"{judge}.{name}" for name in re.findall(r"[A-Z_]{3,}", names)}
    # Then a test, or a known defect, breaks each of them
    found: set[str] = set()
    for path in JUDGES:
        rules = reported(path.read_text(encoding="utf-8"))
        found |= {*rules}
        unbroken = [rule for rule, name in rules.items() if not {rule, f"{path.stem}.{name}"} & broken]
        assert unbroken == [], path
    assert {"given up again and again", "asked before its time", "reserved by two"} <= found


def rules(scene: Scene) -> set[str]:
    """The rules that are broken, judged anew."""
    scene.world.judgement = Judgement()
    return {each.rule for each in scene.broken()}


@contextmanager
def instead(place: Any, name: Any, value: Any) -> Iterator[None]:
    """Something else than what was seen, for a while: an attribute, or what lies in a list or a map."""
    inside = isinstance(place, dict | list)
    before = place[name] if inside else getattr(place, name)
    (place.__setitem__ if inside else place.__setattr__)(name, value)
    try:
        yield
    finally:
        (place.__setitem__ if inside else place.__setattr__)(name, before)


def ended(scene: Scene, name: str) -> Scene:
    """A world that has ended, in which every promise was kept."""
    assert scene.world.name == name
    assert rules(scene) == set()
    return scene


def scene_of(name: str, hours: float = 0.1, rate: float = 60.0) -> Any:
    return played(Plan(1, name, hours, rate, calm=True))


def test_what_gates_promise() -> None:
    with scene_of("gates") as scene:
        world: Any = ended(scene, "gates").world
        token, certified, plain = (world._receivers[each, 0] for each in ("oauth-0", "certified", "plain"))
        anothers = world._receivers["oauth-0", 1].shown[0]
        # When a token of another client is shown, also of one of the same name in another project; a certificate that
        # has ended, or is another project's; or anything to who asks for nothing
        for shown in (("anybody's", ""), anothers):
            with instead(token.shown, 0, shown):
                assert rules(scene) == {"sent without a token of its server"}
        with instead(certified.shown, -1, ("", world._first[0])), instead(world, "_ends", 0):
            assert "sent without a valid certificate" in rules(scene)
        with instead(certified.shown, -1, ("", world._second[1])):
            assert rules(scene) == {"sent without a valid certificate"}
        with instead(plain.shown, 0, ("token-0", "")):
            assert rules(scene) == {"shown to somebody else"}
        with instead(world._server.asked_by, 0, ("oauth-0", "secret of oauth-1 at 0")):
            assert rules(scene) == {"a token asked for by another"}
        # When a token is shown again that was refused, although the server was well and long before
        first, last = token.log[0], token.log[-1]
        same = token.shown[0]
        world._server.given[same[0]].ends = 10**18
        world._server.moods[:] = world._server.moods[:1]
        refused = replace(first, status=401)
        again = replace(last, environment=first.environment, at=first.at + 3_600 * SECOND)
        with instead(token.log, 0, refused), instead(token.log, -1, again), instead(token.shown, -1, same):
            assert "a refused token was sent again" in rules(scene)
        # When what is called delivered was not let in, or was given up
        owed = next(each for _, each in world._owed())
        history = scene.truth.deliveries[owed]
        for receiver in world._receivers.values():
            receiver.about_message.setdefault(owed[0], [])
        with instead(token, "let_in", set()):
            assert rules(scene) == {"delivered, and not let in"}
        with instead(history, -1, replace(history[-1], state="exhausted")):
            assert "given up at a gate" in rules(scene)
        # When a server that fails is asked each second
        well = world._server.moods[0][1]
        down = [(0, well), (1, next(each for each in type(well) if each is not well)), (3_600 * SECOND, well)]
        asked = [replace(first, at=2 + number * SECOND, message_id="secret of oauth-0 at 0") for number in range(1_000)]
        with instead(world._server, "moods", down), instead(world._server, "log", asked):
            assert "a failing token server is not spared" in rules(scene)


def test_what_the_hub_promises() -> None:
    with scene_of("hub") as scene:
        world: Any = ended(scene, "hub").world
        incoming = [owed for each, owed in world._owed() if each.message.queue == "hub/incoming"]
        sent = [owed for each, owed in world._owed() if each.message.queue != "hub/incoming"]
        # When a message was accepted that the hub has not
        world.pushed.append("0123456789abcdef01234567")
        assert rules(scene) == {"accepted and not stored"}
        world.pushed.pop()
        # When a message was not routed, waits for a person who was not asked for, or was given up
        for state, owed, rule in (
            ("exhausted", incoming[0], "not routed"),
            ("held", sent[0], "held without a reason"),
            ("expired", sent[0], "given up"),
        ):
            history = scene.truth.deliveries[owed]
            service = next((each for each in world.services if each.mapping_id == owed[1]), None)
            options = dict(service.settings["options"]) if service else {}
            options.pop("max_attempts", None)
            with (
                instead(history, -1, replace(history[-1], state=state)),
                instead(service.settings if service else {"options": 0}, "options", options),
            ):
                assert rule in rules(scene), state
        # When a child that was asked for was not made
        asking = next(each for each in world.services if each.behaviour == "children")
        seen = asking.endpoint.log[0]
        other = replace(seen, body=seen.body.replace(b'"message_id"', b'"_"').replace(b"{", b'{"message_id":"-",', 1))
        with instead(asking.endpoint.log, 0, other):
            assert "a child is missing" in rules(scene)


def test_what_webhooks_promise() -> None:
    with scene_of("webhooks") as scene:
        world: Any = ended(scene, "webhooks").world
        owed = next(each for _, each in world._owed())
        customer = next(each for each in world.customers if each.endpoint_id == owed[1])
        history = scene.truth.deliveries[owed]
        # When a message ends in a way that the protocol does not know
        with instead(history, -1, replace(history[-1], state="expired")):
            assert rules(scene) >= {"ended otherwise"}
        # When a request is signed with another key, or tells another place in its order
        with instead(customer, "secrets", [(0, "whsec_AAAA")]):
            assert rules(scene) == {"signature"}
        ordered = next(
            seen for each in world.customers for seen in each.endpoint.log if "webhook-sequence" in seen.headers
        )
        with instead(ordered, "headers", {**ordered.headers, "webhook-sequence": "99"}):
            assert "a place told wrong" in rules(scene)
        # When a message is owed to nobody, or one key made two
        key, accepted = next((key, each) for key, each in scene.truth.accepted.items() if world._is_own(each.message))
        with instead(accepted, "message", replace(accepted.message, subscriber_ids=())):
            assert "owed to others" in rules(scene)
        scene.truth.accepted[key[0], "twice"] = accepted
        assert "taken twice" in rules(scene)
        del scene.truth.accepted[key[0], "twice"]
        # When it is sent by hand, and nobody asked for that
        asked = replace(history[-1], asked=True, attempts=0), replace(history[-1], asked=False, attempts=1)
        history[:0] = asked
        assert "sent again too often" in rules(scene)
        del history[:2]
        # When it has a place before one that was answered before it was posted
        pair = [each for each in world.placed if (each.app, each.key) == (world.placed[0].app, world.placed[0].key)]
        late = [replace(each, began=10**15 - number, at=10**15 - number) for number, each in enumerate(pair)]
        with instead(world, "placed", late):
            assert "placed before what was posted before it" in rules(scene)


def test_what_notifications_promise() -> None:
    with scene_of("notifications", 0.03, 40.0) as scene:
        world: Any = ended(scene, "notifications").world
        published = world.published[0]
        # When something was published that nobody got
        world.published.append(replace(published, number=10**6, began=10**15))
        assert rules(scene) == {"never arrived"}
        world.published.pop()
        # When two of one publisher changed places, at everybody's
        own = sorted({each.number for each in world.published if (each.publisher, each.topic) == _of(published)})[:2]
        turned = dict(zip(own, reversed(own), strict=True))
        frames = [each for one in world.subscribers for each in one.frames if each.key[0] == published.publisher]
        swapped = [each for each in frames if each.key[1] in turned]
        for each in swapped:
            each.key = each.key[0], turned[each.key[1]]
        assert "publisher's order" in rules(scene)


def _of(published: Any) -> tuple[int, str]:
    return published.publisher, published.topic


def _chain(account: Any) -> None:
    account.chains_ended.append(("push", "1910872757046663791"))


def _fault(account: Any) -> None:
    account.telemetry.counts["PushFaults"] += 1


def _given_up(account: Any) -> None:
    account.queues["ErrorsQueue"].passed["1910872757046663791"] = MOST_GIVEN_UP + 1


def _hasty(account: Any) -> None:
    account.queues["PushQueue"].hasty["1"] = SimpleNamespace(body="1910872757046663791", hasty=99)


def _stopped(account: Any) -> None:
    account.queues["PushQueue"].stopped = 1


def _worn_out(account: Any) -> None:
    worn = SimpleNamespace(body="1910872757046663791", receives=5, failed_runs=1)
    account.queues["PushQueue"].worn_out.append(worn)


def _quarantined(account: Any) -> None:
    account.s3.objects["RecordsBucket", "records/quarantine/1"] = b"what is this?"


def _refused(account: Any) -> None:
    """The role of a function does not grant a call that it makes."""
    read = account.roles["console"].guarded("dynamodb", "get_item", account.services["dynamodb"].get_item)
    with pytest.raises(ClientError, match="AccessDenied"):
        read(TableName="ConfigTable", Key={"pk": {"S": "a"}, "sk": {"S": "b"}})


WRONGS: dict[str, Callable[[Any], None]] = {
    "a chain that Lambda ended": _chain,
    "a fault of the hub's own": _fault,
    "given up again and again": _given_up,
    "handed out in vain": _hasty,
    "refused by its role": _refused,
    "too many in flight": _stopped,
    "dead letter without a fault": _worn_out,
    "quarantined": _quarantined,
}


@pytest.fixture(scope="module")
def played_calmly() -> Iterator[Scene]:
    """A few posts to push queues, which all ended."""
    with scene_of("ironmq", 0.02) as scene:
        yield ended(scene, "ironmq")


@pytest.mark.parametrize("rule", WRONGS)
def test_what_queues_and_records_promise(rule: str) -> None:
    with scene_of("gates", 0.01, 1.0) as scene:
        ended(scene, "gates")
        # When a function's chain is ended, an order is given up fifty times, comes back within seconds, ...
        WRONGS[rule](scene.account)
        # Then it is told
        assert rules(scene) == {rule}


def test_each_copy_of_an_order_may_find_its_delivery_given_up() -> None:
    with scene_of("gates", 0.01, 1.0) as scene:
        ended(scene, "gates")
        # When SQS hands out four orders once more than they were sent, and all of them lead to what was given up
        scene.account.queues["RetryQueue"].copied["1910872757046663791"] = 4
        scene.account.queues["ErrorsQueue"].passed["1910872757046663791"] = MOST_GIVEN_UP + 4
        # Then that is as it must be, and one more is not
        assert rules(scene) == set()
        scene.account.queues["ErrorsQueue"].passed["1910872757046663791"] += 1
        assert rules(scene) == {"given up again and again"}


def test_a_talk_that_does_not_end_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a hub that somebody waits for as long as a test can
    monkeypatch.setattr(GatesWorld, "talk", lambda self: self._account.scheduler.sleep(10**18))
    # Then that is told
    result = simulate(Plan(1, "gates", 0.01, 1.0, calm=True))
    assert [each.rule for each in result.violations] == ["a talk without an end"]


def test_a_talk_begins_once_the_weather_is_good(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a function that is broken for longer than anything is open
    broken = Storm("broken", Kind.STOPPED, "errors", 0, 9 * HOUR, 1.0)
    monkeypatch.setattr(run, "forecast", lambda *_: [broken])
    began: list[tuple[int, int]] = []
    note = lambda self: began.append((self._account.scheduler.now, self._account.weather.over))  # noqa: E731
    monkeypatch.setattr(GatesWorld, "talk", note)
    # When the run is over, and somebody talks to the hub
    simulate(Plan(1, "gates", 0.01, 1.0))
    # Then it works again
    [(at, over)] = began
    assert at >= over > 9 * HOUR


def test_what_goes_by_its_time_to_live_too_early_is_told(played_calmly: Scene) -> None:
    played_calmly.truth.removed_early.append(("1910872757046663791", "s"))
    assert rules(played_calmly) == {"removed before its end"}
    played_calmly.truth.removed_early.clear()
