"""What a request that begins a task does before it is answered: so many calls, however much the task has to do."""

from __future__ import annotations

from functools import partial

from simulation.account import Account, HttpAnswer
from simulation.template import stack
from simulation.truth import Truth
from simulation.weather import Weather
from simulation.worlds.tenants import TenantsWorld

MOST_CALLS = 10
"""Who asks (a token, and its project), an endpoint (its application and itself), the note of its key, the task (one
transaction), whether its project is being worked on, and a run; and once in a while copies that are read anew: of
settings, and of the project, which may be suspended.
"""


class Requests:
    """Requests of an owner, in good weather, and the calls of services made for each."""

    def __init__(self) -> None:
        self.account = Account("task requests", stack(), Weather((), "task requests"))
        self.world = TenantsWorld(self.account, Truth(self.account), hours=1, rate=1)

    def ask(self, method: str, path: str, body: object, key: str) -> tuple[HttpAnswer, list[str]]:
        """The answer, and the operations called for it."""
        answers: list[HttpAnswer] = []
        lines = self.account.scheduler.lines = []
        busy = self.world.tenants[0]

        def work() -> None:
            answers.append(self.world._ask(busy, method, path, body, key))
            self.account.scheduler.lines = None

        self.account.scheduler.spawn(work)
        self.account.scheduler.run(self.account.scheduler.now + 5_000_000)
        control = [line.split(" ")[1] for _, line in lines if line.startswith("control-")]
        return answers[0], [each for each in control if each != "runs"]


def test_a_request_makes_as_many_calls_for_a_large_task_beside_thirty_as_for_the_first() -> None:
    requests = Requests()
    with requests.account.installed():
        requests.world.set_up()
        app = requests.world.tenants[0].app
        begin = partial(requests.ask, "POST", body={"since": "2020-01-01T00:00:00Z", "unlimited": True})
        counts: list[int] = []
        for number in range(30):
            endpoint = {"url": f"https://e{number}.example/in", "uid": f"e{number}"}
            requests.account.endpoints.add(f"e{number}.example", [])
            assert requests.ask("POST", f"/app/{app}/endpoint", endpoint, f"made {number}")[0].status == 201
            answer, calls = begin(path=f"/app/{app}/endpoint/e{number}/replay-missing", key=f"key {number}")
            assert answer.status == 202, answer
            counts.append(len(calls))
        # And a repeated request makes no more than the first
        again, calls = begin(path=f"/app/{app}/endpoint/e0/replay-missing", key="key 0")
        assert again.status == 202
        counts.append(len(calls))
    assert max(counts) <= MOST_CALLS, calls
