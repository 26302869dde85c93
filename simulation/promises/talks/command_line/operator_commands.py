"""What operators type: projects and tokens, and the secret that signs consumers' tokens."""

from __future__ import annotations

from simulation.promises.talks.command_line.printed import REFUSED, WRONG_USAGE
from simulation.promises.talks.talk import Talk

MINUTE = 60


def operators(talk: Talk) -> None:
    """Projects and tokens."""
    talk.through(_projects)


def signing_secret(talk: Talk) -> None:
    """The secret that signs consumers' tokens, of a hub that has made none yet. ``talk`` asks below /notification2."""
    talk.through(_rotated)


def _rotated(talk: Talk) -> None:
    """A new secret signs ten minutes later; what the one before signed is good until the next rotation."""
    rotate = ("signing-secret", "rotate")
    talk.typed(*rotate, code=REFUSED, says="it is made with the first token")
    wanted = {"subscription": "typedTopic", "subscriber": "s", "expiresInMinutes": 600}
    tokens = {"first": str(talk.ask("POST", "/token", wanted)["token"])}

    def good(*names: str) -> None:
        for name, token in tokens.items():
            talk.ask("GET", f"/token?token={token}", status=200 if name in names else 401)

    talk.typed(*rotate, code=REFUSED, says="made less than ten minutes ago")
    talk.sleep(11 * MINUTE, exactly=True)
    talk.typed(*rotate, "--dry-run")
    talk.typed(*rotate, shows=[{"signing secret": "rotated", "signs from": str}])
    talk.sleep(30, exactly=True)
    talk.typed(*rotate, code=REFUSED, says="made less than ten minutes ago")
    tokens["meanwhile"] = talk.ask("POST", "/token", wanted)["token"]
    good("first", "meanwhile")
    talk.sleep(11 * MINUTE, exactly=True)
    tokens["second"] = talk.ask("POST", "/token", wanted)["token"]
    good("first", "meanwhile", "second")
    talk.typed(*rotate, shows=[{"signing secret": "rotated", "signs from": str}])
    talk.sleep(11 * MINUTE, exactly=True)
    tokens["third"] = talk.ask("POST", "/token", wanted)["token"]
    good("second", "third")
    talk.ask("POST", f"/unsubscribe?token={tokens['first']}", status=401)


def _projects(talk: Talk) -> None:
    # Of what is made in one millisecond, no one is the older
    talk.sleep(1, exactly=True)
    talk.typed("projects", "make", "Typed", "--dry-run")
    before = talk.typed("projects", "list")
    talk.is_so("nothing was made", False, "Typed" in {each["name"] for each in before})
    shown = {"name": "Typed", "allowed_targets": ["10.0.0.0/8"], "quota": "default", "traces": "own", "suspended": None}
    [created] = talk.typed("projects", "make", "Typed", "--allow", "10.0.0.0/8", shows=[{**shown, "token": str}])
    project = created["project"]
    talk.typed("projects", "list", shows=[*before, {**shown, "project": project}])
    for words, changed in (
        (("rename", project, "Other"), {"name": "Other"}),
        (("allow", project, "a.example", "b.example"), {"allowed_targets": ["a.example", "b.example"]}),
        (("allow", project), {"allowed_targets": []}),
        (("quota", project, "20"), {"quota": "20/s, 200 at once"}),
        (("quota", project, "7", "--burst", "9"), {"quota": "7/s, 9 at once"}),
        (("quota", project, "none"), {"quota": "none"}),
        (("quota", project, "default"), {"quota": "default"}),
        (("traces", project, "all"), {"traces": "all"}),
    ):
        talk.typed("projects", *words, "--dry-run")
        talk.typed("projects", "list", shows=[*before, {**shown, "project": project}])
        shown |= changed
        talk.typed("projects", *words, shows=[shown])
        talk.typed("projects", "list", shows=[*before, {**shown, "project": project}])
    for each in ("0", "1000001", "x"):
        talk.typed("projects", "quota", project, each, code=WRONG_USAGE)
    talk.typed("projects", "rename", "none", "x", code=REFUSED)
    _suspended(talk, project, talk.with_headers(authorization=f"OAuth {created['token']}"))
    _tokens(talk, project, created["token"])


def _suspended(talk: Talk, project: str, owner: Talk) -> None:
    """Silent within five seconds, read only, and everything goes on when it is resumed."""
    came = talk.listen("operated.b.example", lambda _: (500, b""))
    one = {"name": "s", "url": "https://operated.b.example/in"}
    queue = f"/3/projects/{project}/queues/stopped"
    owner.ask("PUT", queue, {"queue": {"push": {"subscribers": [one], "retries": 100, "retries_delay": 3}}})
    owner.ask("POST", f"{queue}/messages", {"messages": [{"body": f"{number}"} for number in range(3)]}, status=201)
    talk.sleep(20)
    talk.came("before", True, len(came) > 3)
    talk.typed("projects", "suspend", project, shows=[{"suspended": str}])
    talk.sleep(5, exactly=True)
    before = len(came)
    said = {"msg": "The project is suspended"}
    owner.ask("POST", f"{queue}/messages", {"messages": [{"body": "x"}]}, status=403, shows=said)
    owner.ask("DELETE", queue, status=403, shows=said)
    owner.ask("GET", queue, shows={"queue": {"size": 3}})
    talk.sleep(2 * MINUTE)
    talk.came("nothing", before, len(came))
    talk.typed("projects", "resume", project, shows=[{"suspended": None}])
    talk.sleep(2 * MINUTE)
    talk.came("it goes on", True, len(came) > before)
    owner.ask("DELETE", queue)


def _tokens(talk: Talk, project: str, first: str) -> None:
    """Made, listed, replaced and taken back; each opens the project as long as it lasts."""
    [known] = talk.typed("tokens", "list", project, shows=[{"label": "first", "expires": None}])
    talk.sleep(1, exactly=True)
    [created] = talk.typed(
        "tokens", "make", project, "--label", "brief", "--expires", "30m", shows=[{"label": "brief"}]
    )
    talk.typed("tokens", "list", project, shows=[known, {"label": "brief", "expires": str}])
    [other] = talk.typed("tokens", "rotate", project, known["token_id"], "--overlap", "10m", shows=[{"token": str}])
    owners = {
        name: talk.with_headers(authorization=f"OAuth {token}")
        for name, token in (("first", first), ("brief", created["token"]), ("other", other["token"]))
    }
    for wait, valid in ((1, {"first", "brief", "other"}), (11 * MINUTE, {"brief", "other"}), (20 * MINUTE, {"other"})):
        talk.sleep(wait, exactly=True)
        for name, owner in owners.items():
            owner.ask("GET", f"/3/projects/{project}/queues", status=200 if name in valid else 401)
    [left] = [each for each in talk.typed("tokens", "list", project) if not each["expires"]]
    talk.typed("tokens", "revoke", project, left["token_id"], "--dry-run")
    owners["other"].ask("GET", f"/3/projects/{project}/queues")
    talk.typed("tokens", "revoke", project, left["token_id"], shows=[{"token_id": left["token_id"]}])
    talk.sleep(40, exactly=True)
    owners["other"].ask("GET", f"/3/projects/{project}/queues", status=401)


__all__ = ["operators", "signing_secret"]
