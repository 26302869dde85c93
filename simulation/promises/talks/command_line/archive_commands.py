"""What operators type about a whole project: it is exported, deleted and imported again, with everything that is its;
and what happens in it is shown from its records.

Sources: docs/operations.md ("Deleting a project", "Moving a project"), docs/cli.md.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from simulation.promises.talks.command_line.printed import REFUSED, WRONG_USAGE
from simulation.promises.talks.pages import chosen
from simulation.promises.talks.talk import Came, Talk

MINUTE = 60
A_QUARTER_S = 16 * MINUTE
"""After a quarter of an hour, nothing is written for a suspended project any more."""
NOT_TEXT = hashlib.shake_256(b"not compressible").hexdigest(20_000)
"""A body that takes more than 8 KiB, compressed."""


def archives(talk: Talk) -> None:
    """A project that moves away, and back."""
    talk.through(_moved_away_and_back)


def _owned(talk: Talk, project: str, token: str, base: str) -> Talk:
    shown = {"authorization": f"Bearer {token}", "x_augury_token": token}
    return talk.with_headers(**shown).at(base.format(project=project))


def _moved_away_and_back(talk: Talk) -> None:
    came = talk.listen("archived.example", lambda _: (200, b""))
    fails = talk.listen("archived-ill.example", lambda _: (500, b"no"))
    [created] = talk.typed("projects", "make", "Archived", "--allow", "a.example")
    project, token = created["project"], created["token"]
    talk.typed("projects", "quota", project, "1000", "--burst", "5000")
    mine, store, app, notified = (
        _owned(talk, project, token, base)
        for base in ("/3/projects/{project}", "/api/stores/{project}", "/api/v1", "/notification2")
    )
    ids = _filled(mine, store, app, notified)
    talk.sleep(4 * MINUTE + talk.put_off_s)
    talk.typed("projects", "export", project, "/nowhere/at/all", code=REFUSED, says="suspend it")
    talk.typed("projects", "export", 24 * "0", "/nowhere/at/all", code=REFUSED, says="Project not found")
    talk.typed("projects", "delete", "none", code=WRONG_USAGE)
    talk.typed("projects", "suspend", project, shows=[{"suspended": str}])
    mine.ask("POST", "/queues/kept/messages", {"messages": [{"body": "late"}]}, status=403)
    before = _shown(mine, store, app, notified, ids)
    requests = len(came), len(fails)
    talk.typed("projects", "export", project, "/nowhere/at/all", code=REFUSED, says="a quarter of an hour")
    talk.sleep(A_QUARTER_S)
    with tempfile.TemporaryDirectory() as folder:
        _there_and_back(talk, project, folder)
    # What counts of queues are read from may be a second old.
    talk.sleep(3, exactly=True)
    talk.is_so("what it has", before, _shown(mine, store, app, notified, ids))
    talk.came("nothing was sent meanwhile", requests, (len(came), len(fails)))
    talk.typed("projects", "resume", project, shows=[{"suspended": None, "quota": "1000/s, 5000 at once"}])
    talk.sleep(3 * MINUTE)
    talk.came("and what was delivered is not sent again", requests[0], len(came))
    got = mine.ask("POST", "/queues/kept/reservations", {"n": 9})["messages"]
    talk.is_so("its messages", [each for each, _ in ids["kept"]], [each["id"] for each in got])
    talk.sleep(3_600 + 3 * MINUTE)
    talk.came("what was due comes", {b"later"}, {each.body for each in came[requests[0] :]})
    talk.came("what had failed is tried again", True, len(fails) > requests[1])
    mine.ask("DELETE", f"/queues/ill/messages/{ids['ill'][0][0]}", {})
    mine.ask("DELETE", "/queues/kept")


def _filled(mine: Talk, store: Talk, app: Talk, notified: Talk) -> dict[str, list[tuple[str, str]]]:
    """Something of everything; the ids of messages by queue, with their bodies."""
    mine.ask("PUT", "/queues/kept", {"queue": {"message_timeout": 77, "dead_letter": {"queue_name": "kept-dead"}}})
    for name, host, more in (("well", "archived", {}), ("ill", "archived-ill", {"retries": 9, "retries_delay": 3_600})):
        subscriber = {"name": "s", "url": f"https://{host}.example/in", "headers": {"X-Key": "hush"}}
        mine.ask("PUT", f"/queues/{name}", {"queue": {"push": {"subscribers": [subscriber], **more}}})
    ids: dict[str, list[tuple[str, str]]] = {}
    for queue, bodies in (("kept", ("a", "é", NOT_TEXT)), ("well", ("b", NOT_TEXT)), ("ill", ("c",))):
        messages = {"messages": [{"body": each} for each in bodies]}
        shown = mine.ask("POST", f"/queues/{queue}/messages", messages, status=201)["ids"]
        ids[queue] = list(zip(shown, bodies, strict=True))
    # Due when the project is back
    mine.ask("POST", "/queues/well/messages", {"messages": [{"body": "later", "delay": 4_000}]}, status=201)
    parameter = {"name": "archived.api_key", "value": "hush", "data_type": "string"}
    store.ask("POST", "/parameters", {"parameter": parameter}, status=201)
    fields = {"name": "archived", "url": "https://archived.example/in", "token": "t", "messages": ["a:b"]}
    store.ask("POST", "/mappings", {"mapping": fields}, status=201)
    store.ask("POST", "/schedulers", {"scheduler": {"key": "a:b", "count": 9, "interval": "weeks"}}, status=201)
    app.ask("POST", "/event-type", {"name": "archived.made", "description": "d"}, status=201)
    app.ask("POST", "/app", {"name": "Archived", "uid": "archived", "metadata": {"a": "b"}}, status=201)
    endpoint = {"url": "https://archived.example/hook", "uid": "one", "channels": ["x"], "description": "ü"}
    app.ask("POST", "/app/archived/endpoint", endpoint, status=201)
    rule = {"context": "tenant", "subscription": "archivedTopic", "subscriptionFilter": {"apis": ["events"]}}
    notified.ask("POST", "/subscriptions", rule, status=201)
    return ids


def _shown(
    mine: Talk, store: Talk, app: Talk, notified: Talk, ids: Mapping[str, Sequence[tuple[str, str]]]
) -> dict[str, Any]:
    """Everything that its owner is shown of it."""
    shown: dict[str, Any] = {}
    for queue, messages in ids.items():
        shown[queue] = mine.ask("GET", f"/queues/{queue}")
        for each, body in messages:
            path = f"/queues/{queue}/messages/{each}"
            shown[path] = mine.ask("GET", path, shows={"message": {"body": body}})
        if queue != "kept":
            for each, _ in messages:
                path = f"/queues/{queue}/messages/{each}/attempts"
                shown[path] = mine.ask("GET", path, shows={"attempts": [...]})
    for talk, paths in (
        (mine, ("/queues", "/alerts", "/queues/ill/deliveries?state=retrying")),
        (store, ("/mappings.json", "/parameters.json", "/schedulers.json", "/integrations.json")),
        (app, ("/app/archived", "/app/archived/endpoint/one", "/app/archived/endpoint/one/secret", "/event-type")),
        (notified, ("/subscriptions?pageSize=9",)),
    ):
        shown |= {path: talk.ask("GET", path) for path in paths}
    return shown


def _there_and_back(talk: Talk, project: str, folder: str) -> None:
    """Exported, deleted in two runs, and imported; each can be repeated, and what was changed in between is refused."""
    place = str(Path(folder) / "acme")
    keys = ("--with-keys",) if talk.turn % 2 else ()
    exported = talk.typed("projects", "export", project, place, *keys)
    counts = {each["place"]: each["exported"] for each in exported}
    some = (
        "ConfigTable",
        "MessagesTable",
        "PullTable",
        "HubTable",
        "WebhooksTable",
        "BacklogsTable",
        "bodies",
        "records",
    )
    talk.is_so("something of everything", {each: lambda count: count > 0 for each in some}, counts)
    talk.typed("projects", "export", project, place, *keys, shows=exported)
    other = ("--with-keys",) if not keys else ()
    talk.typed("projects", "export", project, place, *other, code=REFUSED, says="another export was begun")
    held = "hush" in "".join(each.read_bytes().decode("latin-1") for each in Path(place).rglob("*.json*"))
    talk.is_so("no secret in plain text", False, held and not keys)
    talk.typed("projects", "import", place, code=REFUSED, says=f"there is a project {project} already")
    would = {each["place"]: each["would remove"] for each in talk.typed("projects", "delete", project, "--dry-run")}
    talk.typed("projects", "delete", project, code=WRONG_USAGE, says="--yes")
    removed = talk.typed("projects", "delete", project, "--yes", code=REFUSED, says="run this command again after that")
    talk.is_so("what a dry run says is removed", would, {each["place"]: each["removed"] for each in removed})
    talk.is_so("nothing is left", {0}, {each["left"] for each in removed})
    talk.sleep(A_QUARTER_S)
    again = talk.typed(
        "projects", "delete", project, "--yes", shows=lambda rows: {each["left"] for each in rows} == {0}
    )
    talk.is_so("little was left to be removed", True, sum(each["removed"] for each in again) < 20)
    talk.is_so("it is gone", False, project in {each["project"] for each in talk.typed("projects", "list")})
    nothing = talk.typed("projects", "delete", project, "--dry-run")
    talk.is_so("nothing of it is anywhere", {0}, {each["would remove"] for each in nothing} or {0})
    talk.typed("projects", "import", folder, code=REFUSED, says="the export is not finished")
    manifest = Path(place) / "manifest.json"
    whole = manifest.read_text()
    manifest.write_text(json.dumps({**json.loads(whole), "files": {}}))
    talk.typed("projects", "import", place, code=REFUSED, says="is not as it was exported")
    manifest.write_text(whole)
    dry = talk.typed("projects", "import", place, "--dry-run")
    talk.is_so("what would come", counts, {each["place"]: each["would import"] for each in dry})
    talk.is_so("nothing came", False, project in {each["project"] for each in talk.typed("projects", "list")})
    both = [{"place": each["place"], "exported": each["exported"], "imported": each["exported"]} for each in exported]
    for _ in range(2):
        talk.typed("projects", "import", place, shows=both)
    [back] = [each for each in talk.typed("projects", "list") if each["project"] == project]
    shown = {"name": "Archived", "allowed_targets": ["a.example"], "quota": "1000/s, 5000 at once", "suspended": str}
    talk.is_so("as it was, and suspended", shown, back)


def recorded(talk: Talk) -> None:
    """What happens, as it is recorded, and what it costs."""
    talk.through(_tailed, _reckoned)


def _tailed(talk: Talk) -> None:
    """Each option of ``tail`` shows what it chooses of the whole."""
    says = {"status": 200}

    def say(_: Came) -> tuple[int, bytes]:
        return says["status"], b""

    talk.listen("tailed.example", say)
    began = talk.now()
    for name, subscriber in (("tailed-a", "one"), ("tailed-b", "two")):
        push = {"subscribers": [{"name": subscriber, "url": "https://tailed.example/in"}], "retries": 0}
        talk.ask("PUT", f"/queues/{name}", {"queue": {"push": push}})
        talk.ask("POST", f"/queues/{name}/messages", {"messages": [{"body": "x"}]}, status=201)
        talk.sleep(20 + talk.put_off_s)
        says["status"] = 500
    talk.sleep(4 * MINUTE)
    back = ("--since", f"{2 + (talk.now() - began) // (MINUTE * 1_000_000)}m", "--for", "1s")
    whole = talk.typed("tail", *back, "--project", talk.project)
    ours = [each for each in whole if each["queue"].startswith("tailed-")]
    kinds = [("tailed-a", "accepted", None), ("tailed-a", "attempt", "delivered")]
    kinds += [("tailed-b", "accepted", None), ("tailed-b", "attempt", "exhausted")]
    talk.is_so("in their order", kinds, [(each["queue"], each["kind"], each.get("state")) for each in ours])
    attempts = [{"status_code": each, "attempt": 1, "duration_ms": int, "tries": 1} for each in (200, 500)]
    talk.is_so("with their answers", attempts, [each for each in ours if each["kind"] == "attempt"])
    options: tuple[tuple[tuple[str, ...], Callable[[Any], bool]], ...] = (
        (("tailed-a",), lambda each: each["queue"] == "tailed-a"),
        (("--subscriber", "two"), lambda each: each.get("subscriber") == "two"),
        (("--state", "exhausted"), lambda each: each.get("state") == "exhausted"),
        (("tailed-b", "--state", "exhausted"), lambda each: each.get("state") == "exhausted"),
    )
    for words, by in options:
        shown = talk.typed("tail", *words, *back, "--project", talk.project)
        chosen(talk, f"tail {' '.join(words)}", ours, lambda shown=shown: [each for each in shown if each in ours], by)  # type: ignore[misc]
    talk.typed("tail", "tailed-a", *back, "--project", 24 * "0", shows=[])
    talk.typed("tail", "tailed-a", "--for", "1s", shows=[])
    talk.typed("tail", "--since", "soon", code=WRONG_USAGE)
    for name in ("tailed-a", "tailed-b"):
        talk.ask("DELETE", f"/queues/{name}")


def _reckoned(talk: Talk) -> None:
    """What a month costs: the sum of its parts, and never less for more."""

    def total(*words: str) -> float:
        rows = talk.typed("cost", *words)
        *some, last = (float(each["dollars"]) for each in rows)
        talk.is_so(
            f"the parts of cost {' '.join(words)}", True, rows[-1]["part"] == "all" and abs(sum(some) - last) < 0.02
        )
        talk.is_so("no part is less than nothing", True, min(some) >= 0)
        return last

    usual = total()
    talk.is_so(
        "as documented", usual, total("--messages", "1000000", "--size", "2048", "--subscribers", "1", "--failing", "0")
    )
    nothing = total("--messages", "0")
    talk.is_so("what nobody posts costs something", True, 0 < nothing < usual)
    twice, thrice = total("--messages", "2000000"), total("--messages", "3000000")
    talk.is_so("a further million costs no more than the one before it", True, 0 < thrice - twice <= twice - usual)
    for words in (
        ("--size", "20000"),
        ("--size", "200000"),
        ("--subscribers", "2"),
        ("--failing", "50"),
        ("--transformed", "100"),
        ("--sourced", "100"),
    ):
        talk.is_so(f"{' '.join(words)} costs more", True, total(*words) > usual)
    for kind in ("sqs", "sns", "events", "lambda"):
        alone, together = (total("--sink", kind, "--together", each) for each in ("1", "10"))
        talk.is_so(f"ten in a call to {kind} cost no more than one", True, together <= alone)
    stream = ("--stream", "--sink", "s3")
    talk.is_so("a batch of a stream", True, total(*stream, "--together", "1000") < total(*stream, "--together", "1"))
    wrong: tuple[tuple[str, ...], ...] = (
        ("--together", "11"),
        ("--together", "1001", "--stream"),
        ("--messages", "-1"),
        ("--size", "262145"),
        ("--subscribers", "0"),
        ("--subscribers", "10001"),
        ("--failing", "101"),
        ("--transformed", "-1"),
        ("--sink", "other"),
    )
    for each in wrong:
        talk.typed("cost", *each, code=WRONG_USAGE)


__all__ = ["archives", "recorded"]
