"""Prepares ``sam local`` against the running local stack: ``python -m local.sam_local`` (``make sam-local``).

``sam local`` runs what ``sam build`` built in a container, but knows neither the names of the stack's tables and queues
nor a way to its loopback address. So this seeds the stack with work that waits for each function
(:mod:`local.sam_local.seed`), writes a template with the settings of the deployed functions and an event for each piece
of work, and hands connections from containers on to the emulator until Ctrl-C. ``python -m local.sam_local look`` tells
what has become of the work.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import platform
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from local import stack
from local.__main__ import say, status_of
from local.aws import Aws
from local.demo.clients import Hub, Store
from local.deploy import template
from local.errors import LocalError, Say
from local.place import HOST, REPOSITORY, Place
from local.sam_local.seed import Seeded, queue_of, seeded
from local.stack import Description
from pushhub.hub.model.object_ids import to_object_id

Resources = dict[str, dict[str, Any]]
"""Resources of a template by logical id."""
BUILT = REPOSITORY / ".aws-sam" / "build"
PREPARED = REPOSITORY / ".aws-sam" / "local"
BRIDGE = "172.17.0.1"
"""This machine's address on Docker's default network, as seen from a container."""
ARCHITECTURES = {"aarch64": "arm64", "arm64": "arm64", "x86_64": "x86_64", "AMD64": "x86_64"}
RUNTIME = "python3.13"
"""The template's default, for which ``sam build`` builds the layer."""
ROUTES = {
    "IngestFunction": (
        ("POST", "/3/projects/{project}/queues/{queue}/messages"),
        ("POST", "/3/projects/{project}/queues/{queue}/webhook"),
    ),
    "PastFunction": (("POST", "/3/projects/{project}/past"), ("GET", "/3/projects/{project}/past/{search}")),
    "ConsoleFunction": tuple(("ANY", path) for path in ("/console", "/console/{proxy+}", "/docs", "/docs/{proxy+}")),
    "ControlFunction": (("ANY", "/{proxy+}"),),
}
"""What ``sam local start-api`` serves: the HTTP API.

It does not support WebSocket APIs, and fails when it finds one.
"""
LAYERS = {"TransformFunction": ("PushhubLayer", "ScriptingLayer")}
"""The layers of functions that have more than the hub's own."""
_BLOCK_BYTES = 65_536
_QUEUES = ("Push", "Route", "Retry", "Slow", "Errors", "Poll", "Notify")


def invocation_template(
    built: Resources, settings: dict[str, dict[str, str]], *, endpoint_url: str, emulator_url: str
) -> dict[str, Any]:
    """A SAM template with only the functions and the layer, and every setting as a plain value.

    Args:
        built: Resources of the template that ``sam build`` wrote.
        settings: Environment of each deployed function, by logical id.
        endpoint_url: Where a container finds the emulator.
        emulator_url: Where this machine finds it, as settings name it.
    """
    resources: Resources = {}
    for name, resource in built.items():
        properties = resource.get("Properties", {})
        if resource["Type"] == "AWS::Serverless::LayerVersion":
            content = str((BUILT / properties["ContentUri"]).resolve())
            resources[name] = {"Type": resource["Type"], "Properties": {"ContentUri": content}}
        elif resource["Type"] == "AWS::Serverless::Function":
            variables = {key: value.replace(emulator_url, endpoint_url) for key, value in settings[name].items()}
            resources[name] = {
                "Type": resource["Type"],
                "Properties": {
                    "CodeUri": str((BUILT / properties["CodeUri"]).resolve()),
                    "Handler": "handler.handler",
                    "Runtime": RUNTIME,
                    "Architectures": [architecture()],
                    "Timeout": properties["Timeout"],
                    "MemorySize": 512,
                    "Layers": [{"Ref": each} for each in LAYERS.get(name, ("PushhubLayer",))],
                    "Environment": {"Variables": variables | {"AWS_ENDPOINT_URL": endpoint_url}},
                    "Events": {
                        f"Route{number}": {"Type": "HttpApi", "Properties": {"Method": method, "Path": path}}
                        for number, (method, path) in enumerate(ROUTES.get(name, ()))
                    },
                },
            }
    return {"Transform": "AWS::Serverless-2016-10-31", "Resources": resources}


def architecture() -> str:
    """The processor of this machine, and of the containers on it, as AWS calls it."""
    return ARCHITECTURES[platform.machine()]


def write_template(description: Description, *, endpoint_url: str) -> None:
    """Write the template."""
    built = template.load(BUILT / "template.yaml")["Resources"]
    functions = [name for name, each in built.items() if each["Type"] == "AWS::Serverless::Function"]
    settings = _settings(description, functions)
    prepared = invocation_template(
        built, settings, endpoint_url=endpoint_url, emulator_url=description.aws_endpoint_url
    )
    PREPARED.mkdir(parents=True, exist_ok=True)
    (PREPARED / "template.json").write_text(json.dumps(prepared, indent=2) + "\n")


def write_events(work: Seeded) -> list[str]:
    """Write the events and what :func:`look` needs to know; return a command for each event."""
    events = PREPARED / "events"
    events.mkdir(parents=True, exist_ok=True)
    for old in events.glob("*.json"):
        old.unlink()
    commands = []
    for name, event in sorted(work.events.items()):
        file = events / f"{name}.json"
        file.write_text(json.dumps(event, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        function = f"{name.split('-')[0].title()}Function"
        paths = f"-t {(PREPARED / 'template.json').relative_to(REPOSITORY)} -e {file.relative_to(REPOSITORY)}"
        commands.append(f".venv-sam/bin/sam local invoke {function} {paths} --skip-pull-image")
    known = {"project_id": work.project.project_id, "token": work.project.token, "message_ids": work.message_ids}
    (PREPARED / "seeded.json").write_text(json.dumps(known, indent=2) + "\n")
    return commands


def _settings(description: Description, functions: Iterable[str]) -> dict[str, dict[str, str]]:
    client = Aws(description.aws_endpoint_url).functions()
    found: dict[str, dict[str, str]] = {}
    for name in functions:
        deployed = description.outputs.get(f"{name}Name")
        if deployed is None:
            raise LocalError(f"the stack has no {name}, the build has: 'make up' deploys it")
        found[name] = client.get_function_configuration(FunctionName=deployed)["Environment"]["Variables"]
    return found


class Connection:
    """Forwards between containers and the emulator."""

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._serving: set[asyncio.Task[Any] | None] = set()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until both sides have finished, or the program ends."""
        # Once a container has gone nothing else holds what still waits for the emulator.
        task = asyncio.current_task()
        self._serving.add(task)
        try:
            await self._serve(reader, writer)
        finally:
            self._serving.discard(task)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers, copies = [writer], []
        # The server would report each cancelled connection as if it were a fault.
        with contextlib.suppress(OSError, asyncio.CancelledError):
            far_reader, far_writer = await asyncio.open_connection(self._host, self._port)
            writers.append(far_writer)
            copies = [asyncio.create_task(_copy(*each)) for each in ((reader, far_writer), (far_reader, writer))]
            await asyncio.wait(copies)
        for each in copies:
            each.cancel()
        await asyncio.gather(*copies, return_exceptions=True)
        for each_writer in writers:
            each_writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Forward one side's data until it has finished."""
    with contextlib.suppress(OSError):
        while block := await reader.read(_BLOCK_BYTES):
            writer.write(block)
            await writer.drain()
        writer.write_eof()


async def prepare(place: Place, address: str, say: Say, stopped: asyncio.Event) -> None:
    """Seed, write template and events, show the commands, and forward until ``stopped``."""
    description = stack.describe(place)
    place = stack.where_it_runs(place)
    write_template(description, endpoint_url=f"http://{address}:{place.aws_port}")
    try:
        async with contextlib.AsyncExitStack() as resources:
            if address != HOST:
                way = await asyncio.start_server(Connection(HOST, place.aws_port), address, place.aws_port)
                await resources.enter_async_context(way)
            say("Seeding the stack; until Ctrl-C its own functions leave all work to you ...")
            work = await resources.enter_async_context(seeded(place, description, address, say))
            say("\n".join(write_events(work)))
            say("\nWhat has become of the work: .venv/bin/python -m local.sam_local look")
            say("Containers reach the stack until Ctrl-C; then it does by itself what you have left.")
            await stopped.wait()
    except OSError as error:
        raise LocalError(f"cannot listen on {address}: {error.strerror}; is Docker running?") from error


async def look(place: Place, say: Say) -> None:
    """Show what has happened to the prepared work."""
    description = stack.describe(place)
    try:
        known = json.loads((PREPARED / "seeded.json").read_text())
    except FileNotFoundError:
        raise LocalError("nothing was seeded: 'make sam-local' does that") from None
    for line in _waiting(Aws(description.aws_endpoint_url), description, known["project_id"]):
        say(line)
    own = replace(description, project_id=known["project_id"], token=known["token"])
    async with Hub(own) as hub, Store(own) as store:
        for name, message_id in known["message_ids"].items():
            if name == "route":
                # ``incoming`` until it is compared with the mappings.
                routed = await store.call("GET", f"/messages/{to_object_id(message_id)}")
                say(f"message for {name:9}{routed['queue_name']}")
                continue
            for subscriber, status in (await hub.statuses(queue_of(name), message_id)).items():
                code = status.get("status_code", status.get("last_status_code", ""))
                stands = f"tries {status['tries']}  {status.get('status', '')} {code}"
                say(f"message for {name:9}{subscriber:8}{stands}".rstrip())
        names = sorted({*await hub.queue_names(""), "copies", "failed"})
        say("messages posted   " + "  ".join([f"{name} {await hub.total_messages(name)}" for name in names]))


def _waiting(aws: Aws, description: Description, project_id: str) -> Iterator[str]:
    """The contents of the work queues, and the newest delivery records."""
    client = aws.sqs()
    sizes = []
    for name in _QUEUES:
        url = description.outputs[f"{name}QueueUrl"]
        attributes = client.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        waiting = sum(int(each) for key, each in attributes.items() if key.startswith("ApproximateNumberOfMessages"))
        sizes.append(f"{name.lower()} {waiting}")
    yield "work that waits   " + "  ".join(sizes)
    bucket = description.outputs["RecordsBucketName"]
    objects = aws.s3().list_objects_v2(Bucket=bucket, Prefix="records/").get("Contents", [])
    newest = max((each["LastModified"] for each in objects), default=None)
    yield (
        f"delivery records  {len(objects)} objects, the newest of {newest:%H:%M:%S} UTC" if newest else "no records yet"
    )
    yield f"project           {project_id}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Prepare, show the commands, forward until Ctrl-C; or look."""
    parser = argparse.ArgumentParser(prog="python -m local.sam_local", description="Prepare sam local invoke.")
    parser.add_argument("command", nargs="?", choices=["prepare", "look", "architecture"], default="prepare")
    parser.add_argument("--address", default=BRIDGE, help=f"this machine as containers see it (default {BRIDGE})")
    given = parser.parse_args(arguments)

    if given.command == "architecture":
        say(architecture())
        return 0

    async def run() -> None:
        place = Place.from_environment()
        if given.command == "look":
            await look(place, say)
            return
        stopped = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
        await prepare(place, given.address, say, stopped)

    return status_of(lambda: asyncio.run(run()))


if __name__ == "__main__":
    sys.exit(main())
