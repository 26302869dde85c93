"""The console in a browser, as a person uses it, and what must never happen while they do."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import requests
from local.projects import Credentials
from playwright.sync_api import Browser, BrowserContext, Dialog, Locator, Page, Request, expect
from tests.stack.project import REPEATED_AFTER_S
from tests.stack.running import RunningStack

AXE = (Path(__file__).parent / "vendor" / "axe.min.js").read_text(encoding="utf-8")
DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
WAIT_S = 90.0
"""How long something may take on a busy machine, seconds."""
HOSTILE = "<img src=x onerror=\"alert('name')\">'\"&amp;"
"""A name that would run a script if it were rendered as markup."""
HOSTILE_BODY = (
    "<script>alert('body')</script><img src=x onerror=alert(1)><a href=javascript:alert(1)>click</a>\u202e\u0000"
)


@dataclass(kw_only=True)
class Project:
    """A project of the stack with a token, called as a client would.

    Attributes:
        base_url: Base URL of the stack.
        credentials: Credentials of the project.
    """

    base_url: str
    credentials: Credentials

    @property
    def id(self) -> str:
        """24 hex characters."""
        return self.credentials.project_id

    @property
    def token(self) -> str:
        """The project's token."""
        return self.credentials.token

    def ironmq(self, method: str, path: str, body: Any = None) -> Any:
        """Ask the queue API; ``path`` is what follows ``/queues``."""
        url = f"{self.base_url}/3/projects/{self.id}/queues{path}"
        return self._asked(method, url, body, {"Authorization": f"OAuth {self.token}"})

    def ironmq_project(self, path: str, body: Any = None) -> Any:
        """Ask for information about the project, with a POST if there is a body; ``path`` is what follows its id."""
        url = f"{self.base_url}/3/projects/{self.id}{path}"
        return self._asked("POST" if body is not None else "GET", url, body, {"Authorization": f"OAuth {self.token}"})

    def find(self, value: str) -> list[Any]:
        """All messages with a value; one request reads only so much, and less on a busy machine."""
        found: list[Any] = []
        after: str | None = ""
        while after is not None:
            answer = self.ironmq_project(f"/search?value={quote(value)}" + (f"&after={quote(after)}" if after else ""))
            found, after = [*found, *answer["found"]], answer["after"]
        return found

    def hub(self, method: str, path: str, body: Any = None) -> Any:
        """Ask the store API; ``path`` is what follows the store's id."""
        url = f"{self.base_url}/api/stores/{self.id}{path}"
        return self._asked(method, url, body, {"X-Augury-Token": self.token})

    def notifications(self, method: str, path: str, body: Any = None) -> Any:
        """Ask the notification API; ``path`` is what follows ``/notification2``."""
        return self._asked(
            method, f"{self.base_url}/notification2{path}", body, {"Authorization": f"Bearer {self.token}"}
        )

    def webhooks(self, method: str, path: str, body: Any = None) -> Any:
        """Ask the webhooks API; ``path`` is what follows ``/api/v1``."""
        return self._asked(method, f"{self.base_url}/api/v1{path}", body, {"Authorization": f"Bearer {self.token}"})

    def push_queue(self, name: str, **subscribers: str) -> None:
        """Make a push queue that tries once more after an hour: not while a test looks."""
        listed = [{"name": each, "url": url} for each, url in subscribers.items()]
        queue = {"type": "multicast", "push": {"subscribers": listed, "retries": 1, "retries_delay": 3600}}
        self.ironmq("PUT", f"/{quote(name, safe='')}", {"queue": queue})

    def post(self, name: str, *bodies: str) -> list[str]:
        """Post messages; their ids."""
        messages = [{"body": each} for each in bodies]
        ids: list[str] = self.ironmq("POST", f"/{quote(name, safe='')}/messages", {"messages": messages})["ids"]
        return ids

    def _asked(self, method: str, url: str, body: Any, headers: dict[str, str]) -> Any:
        for pause in (*REPEATED_AFTER_S, None):
            answer = requests.request(method, url, json=body, headers=headers, timeout=60)
            if answer.status_code != 503 or pause is None:
                break
            # As clients do that a busy hub asks for that.
            time.sleep(pause)
        assert answer.ok, f"{method} {url}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None


@dataclass(kw_only=True)
class Console:
    """One tab with the console.

    Attributes:
        page: The tab.
        url: Where the console is.
        project: Whose it is.
        asked: Every address that was requested.
        wrong: What must not happen: a script of a tenant's that ran, something the policy had to stop, an error of the
            console's own.
    """

    page: Page
    url: str
    project: Project
    asked: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("request", self._note)
        self.page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        self.page.on("console", lambda said: self._hear(said.type, said.text))
        self.page.on("dialog", self._dismiss)

    def _dismiss(self, dialog: Dialog) -> None:
        self.wrong.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _note(self, request: Request) -> None:
        self.asked.append(request.url)

    def _hear(self, kind: str, text: str) -> None:
        # The browser reports every refused request as an error; for the person at the screen it is not one.
        if kind == "error" and not text.startswith("Failed to load resource"):
            self.wrong.append(f"console: {text}")

    def sign_in(self) -> None:
        """Sign in as a person does who has a project's id and token."""
        self.page.goto(self.url)
        self.page.get_by_label("Project id").fill(self.project.id)
        self.page.get_by_label("Token").fill(self.project.token)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.locator("main[data-address]").wait_for()

    def follow_link(self) -> None:
        """Follow a link with the project's token."""
        self.page.goto(f"{self.url}#project={self.project.id}&token={self.project.token}")
        self.page.locator("main[data-address]").wait_for()

    def open(self, *segments: str) -> None:
        """Go to a page in a tab that is signed in to the project."""
        if self.page.url == "about:blank":
            # As a tab keeps it over a reload. A link with a token leads to another page first, which asks a lot.
            self.page.goto(f"{self.url}/config.json")
            session = {"kind": "project", "project": self.project.id, "token": self.project.token}
            self.page.evaluate("told => sessionStorage.setItem('pushhub.session', told)", json.dumps(session))
        address = self.link(*segments)
        self.page.goto(address)
        # The previous page stays until the console has noticed the new address.
        expect(self.page.locator("main")).to_have_attribute("data-address", address.removeprefix(self.url))

    def link(self, *segments: str) -> str:
        """The address of a page."""
        return f"{self.url}#/{'/'.join(quote(each, safe='') for each in segments)}"

    def loaded(self) -> None:
        """Wait until nothing on the page is still being loaded."""
        self.page.locator(".waiting").first.wait_for(state="detached")

    def until(self, condition: Callable[[], object], missed: Callable[[], str]) -> None:
        """Wait until something is so, while the page goes on: what answers its requests runs in this thread, too."""
        deadline = time.monotonic() + WAIT_S
        while not condition():
            assert time.monotonic() < deadline, missed()
            self.page.wait_for_timeout(50)

    def copied(self, button: Locator) -> str:
        """What a button puts into the clipboard."""
        self.page.evaluate(
            "delete window.copied; navigator.clipboard.writeText = async (text) => { window.copied = text; }"
        )
        button.click()
        self.page.wait_for_function("window.copied")
        return str(self.page.evaluate("window.copied"))

    def violations(self, *rules: str) -> list[str]:
        """What axe finds wrong with the page as it is (WCAG 2.2 A and AA, and best practice), by all rules or these."""
        if not self.page.evaluate("!!window.axe"):
            self.page.evaluate(AXE)
        options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
        found = self.page.evaluate("options => axe.run(document, options)", options)
        return [
            (
                f"{each['id']}: {json.dumps([node['target'] for node in each['nodes']])} "
                f"{each['nodes'][0]['failureSummary']}"
            )
            for each in found["violations"]
        ]

    def too_wide(self) -> bool:
        """Whether the page has to be scrolled sideways."""
        wide: bool = self.page.evaluate(
            "document.documentElement.scrollWidth > document.documentElement.clientWidth + 1"
        )
        return wide


@contextmanager
def tab(stack: RunningStack, chromium: Browser, project: Project, **context: Any) -> Iterator[Console]:
    """A tab in which nobody is signed in; anything that goes wrong in it fails the test. Nothing moves in it, as that
    takes a processor from the hub.
    """
    wanted = {"viewport": DESKTOP, "reduced_motion": "reduce", **context}
    opened = _profile(chromium, json.dumps(wanted, sort_keys=True))
    page = opened.new_page()
    try:
        # What a tab before this one has left. The files of the console stay.
        forgotten = {"origin": stack.base_url, "storageTypes": "cookies,local_storage"}
        opened.new_cdp_session(page).send("Storage.clearDataForOrigin", forgotten)
        console = Console(page=page, url=f"{stack.base_url}/console", project=project)
        yield console
        assert console.wrong == []
    finally:
        for each in opened.pages:
            each.close()


@cache
def _profile(chromium: Browser, wanted: str) -> BrowserContext:
    """One for all tabs of its kind: a new one would load and compile every module of the console again."""
    opened = chromium.new_context(**json.loads(wanted))
    opened.set_default_timeout(60_000)
    return opened


def new_project(stack: RunningStack) -> Project:
    """A new project for one test."""
    return Project(base_url=stack.base_url, credentials=stack.make_project(f"console-{secrets.token_hex(4)}"))
