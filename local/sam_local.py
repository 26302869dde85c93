"""Prepares ``sam local invoke`` against the running local stack: ``python -m local.sam_local``.

``sam local`` runs what ``sam build`` built in a container, but knows neither the names of the stack's tables and queues nor a
way to its loopback address. So this writes a template with the settings of the deployed functions, writes ``events/``
with the stack's names in them, and hands connections from containers on to the emulator until Ctrl-C.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import platform
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from local import stack, template
from local.aws import Aws
from local.errors import LocalError
from local.place import REPOSITORY, Place
from local.stack import Description

__all__ = ["Connection", "invocation_template", "main", "with_names_of"]

Resources = dict[str, dict[str, Any]]
"""Resources of a template by logical id."""
BUILT = REPOSITORY / ".aws-sam" / "build"
PREPARED = REPOSITORY / ".aws-sam" / "local"
BRIDGE = "172.17.0.1"
"""This machine, as a container on Docker's default network sees it."""
ARCHITECTURES = {"aarch64": "arm64", "arm64": "arm64", "x86_64": "x86_64", "AMD64": "x86_64"}
EXAMPLE_PROJECT = "5b6c2f1d9e8a4c7b3d2e1f0a"
EXAMPLE_TOKEN = "Zx3nV0sK9qTb7mLr2YwHc8Jd5PfGa1Ue"  # noqa: S105 (of the examples in events/, opens nothing)
_EXAMPLE_NAME = re.compile(r"\bpushhub-([A-Z][A-Za-z]+)-[A-Za-z0-9]{8,13}\b")
_BLOCK_BYTES = 65_536


def invocation_template(built: Resources, settings: dict[str, dict[str, str]], *, endpoint_url: str) -> dict[str, Any]:
    """A SAM template with the functions and the layer only, every setting a plain value.

    Args:
        built: Resources of the template that ``sam build`` wrote.
        settings: Environment of each deployed function, by logical id.
        endpoint_url: Where a container finds the emulator.
    """
    architecture = ARCHITECTURES[platform.machine()]
    resources: Resources = {}
    for name, resource in built.items():
        properties = resource["Properties"]
        if resource["Type"] == "AWS::Serverless::LayerVersion":
            content = str((BUILT / properties["ContentUri"]).resolve())
            resources[name] = {"Type": resource["Type"], "Properties": {"ContentUri": content}}
        elif resource["Type"] == "AWS::Serverless::Function":
            resources[name] = {
                "Type": resource["Type"],
                "Properties": {
                    "CodeUri": str((BUILT / properties["CodeUri"]).resolve()),
                    "Handler": "handler.handler",
                    "Runtime": "python3.11",
                    "Architectures": [architecture],
                    "Timeout": properties["Timeout"],
                    "MemorySize": 512,
                    "Layers": [{"Ref": "PushhubLayer"}],
                    "Environment": {"Variables": settings[name] | {"AWS_ENDPOINT_URL": endpoint_url}},
                },
            }
    return {"Transform": "AWS::Serverless-2016-10-31", "Resources": resources}


def with_names_of(description: Description, event: str) -> str:
    """An event of ``events/`` with project, token and resource names of the running stack."""
    names = {
        match.group(1): value.rpartition("/")[2]
        for value in description.outputs.values()
        if (match := re.fullmatch(r"pushhub-([A-Za-z]+)-\w+", value.rpartition("/")[2]))
    }
    event = event.replace(EXAMPLE_PROJECT, description.project_id).replace(EXAMPLE_TOKEN, description.token)
    return _EXAMPLE_NAME.sub(lambda match: names.get(match.group(1), match.group(0)), event)


def prepare(description: Description, *, endpoint_url: str) -> list[str]:
    """Write template and events.

    Returns:
        A command for each event.

    Raises:
        LocalError: There is no build, or it has other functions than the stack.
    """
    built = template.load(BUILT / "template.yaml")["Resources"]
    functions = [name for name, each in built.items() if each["Type"] == "AWS::Serverless::Function"]
    made = invocation_template(built, _settings(description, functions), endpoint_url=endpoint_url)
    events = PREPARED / "events"
    events.mkdir(parents=True, exist_ok=True)
    (PREPARED / "template.json").write_text(json.dumps(made, indent=2) + "\n")
    commands = []
    for example in sorted((REPOSITORY / "events").glob("*.json")):
        event = events / example.name
        event.write_text(with_names_of(description, example.read_text(encoding="utf-8")), encoding="utf-8")
        function = f"{example.name.split('-')[0].title()}Function"
        paths = f"-t {(PREPARED / 'template.json').relative_to(REPOSITORY)} -e {event.relative_to(REPOSITORY)}"
        commands.append(f"sam local invoke {function} {paths} --skip-pull-image")
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
    """Hands what a container sends on to the emulator, and back.

    Args:
        host: The emulator.
        port: Its port.
    """

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until either side ends it."""
        try:
            far_reader, far_writer = await asyncio.open_connection(self._host, self._port)
        except OSError:
            writer.close()
            return
        try:
            await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))
        finally:
            far_writer.close()
            writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Hand on what one side says until it has said everything."""
    with contextlib.suppress(ConnectionError):
        while block := await reader.read(_BLOCK_BYTES):
            writer.write(block)
            await writer.drain()
        writer.write_eof()


async def _forward(address: str, place: Place) -> None:
    try:
        server = await asyncio.start_server(Connection("127.0.0.1", place.aws_port), address, place.aws_port)
    except OSError as error:
        raise LocalError(f"cannot listen on {address}: {error.strerror}; is Docker running?") from error
    async with server:
        await server.serve_forever()


def main(arguments: Sequence[str] | None = None) -> int:
    """Prepare, show the commands, forward until Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m local.sam_local", description="Prepare sam local invoke.")
    parser.add_argument("--address", default=BRIDGE, help=f"this machine as containers see it (default {BRIDGE})")
    address = parser.parse_args(arguments).address
    place = Place.from_environment()
    try:
        commands = prepare(stack.describe(place), endpoint_url=f"http://{address}:{place.aws_port}")
        print("\n".join(commands), "\nContainers reach the stack until Ctrl-C.", sep="\n", flush=True)
        asyncio.run(_forward(address, place))
    except LocalError as error:
        print(f"pushhub: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
