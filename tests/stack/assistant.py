"""An assistant's client, PyPI ``mcp``, in the environment of ``requirements/judges.txt``.

Takes a JSON array from standard input, with an object for each talk (``url`` of the hub's ``/mcp``; ``mode`` of the
client; ``token``; ``calls``, a list of ``[tool, arguments]``). In each it connects once, lists the tools, and calls
them in order; and it prints what it was told in each as a JSON array. A call that the server refuses as a protocol
error has the key ``refused``.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import httpx2  # type: ignore[import-not-found]
from mcp import Client, MCPError  # type: ignore[import-not-found]
from mcp.client.streamable_http import streamable_http_client  # type: ignore[import-not-found]


async def talk(given: dict[str, Any]) -> dict[str, Any]:
    """One connection."""
    headers = {"Authorization": f"Bearer {given['token']}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        transport = streamable_http_client(given["url"], http_client=http)
        async with Client(transport, mode=given["mode"], read_timeout_seconds=60) as client:
            listed = await client.list_tools()
            reported = [await called(client, tool, arguments) for tool, arguments in given["calls"]]
            return {
                "revision": client.protocol_version,
                "server": client.server_info.name,
                "instructions": client.instructions,
                "tools": {
                    each.name: [each.annotations.read_only_hint, each.annotations.destructive_hint]
                    for each in listed.tools
                },
                "calls": reported,
            }


async def called(client: Client, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """What a tool told."""
    try:
        result = await client.call_tool(tool, arguments)
    except MCPError as error:
        return {"refused": str(error)}
    return {"failed": result.is_error, "texts": [each.text for each in result.content]}


def told_in(given: dict[str, Any]) -> dict[str, Any]:
    """What was told in a talk."""
    try:
        return asyncio.run(talk(given))
    except BaseExceptionGroup as error:
        return {"error": repr(error)}
    except Exception as error:  # noqa: BLE001 (whatever the client says is the result)
        return {"error": repr(error)}


def main() -> None:
    """Talk, and tell."""
    json.dump([told_in(each) for each in json.load(sys.stdin)], sys.stdout)


if __name__ == "__main__":
    main()
