"""Plays a script to servers with PyPI's `mcp` client, or with `fastmcp`'s, and prints what it sees as JSON lines.

With `mcp`, a user whom a server asks confirms after 6 s.

Usage: python.py mcp|fastmcp [{"name", "command" | "url", "script": [{"do", "tool", "arguments"}]}] [together]

A target's script `again` is played by another client once the first has ended, in whatever way, and its file `back`
is there, if it names one.
"""

import json
import os
import sys
import time

import anyio

# How long a client waits for an answer, in seconds.
LIMIT = 15


def jsonable(seen):
    if hasattr(seen, "model_dump"):
        return seen.model_dump(mode="json", by_alias=True, exclude_none=True)
    return seen


class Seen:
    """What one client sees of a target."""

    def __init__(self, target, client=""):
        self.target = target
        self.client = client

    def note(self, what, seen):
        print(json.dumps([self.target, self.client + what, seen], ensure_ascii=False), flush=True)

    async def see(self, what, call):
        """Awaits a call and notes its result or its error."""
        try:
            self.note(what, jsonable(await call))
        except Exception as error:
            told = getattr(error, "error", None)
            self.note(what, {type(error).__name__: jsonable(told) if told else str(error)})


async def exists(file):
    with anyio.fail_after(LIMIT):
        while not os.path.exists(file):
            await anyio.sleep(0.005)


async def within(seen, step, what, call):
    begun, answer = time.monotonic(), None
    with anyio.move_on_after(LIMIT):
        try:
            made = step["tool"], step["arguments"]
            answer = jsonable(await call(*made, limit=step.get("limit"), meta=step.get("meta")))
        except Exception as error:
            answer = {"error": str(error)}
    seen.note(what, {"took": int((time.monotonic() - begun) * 1000), "seen": answer})


async def play(seen, script, tools, call, headers=None):
    for number, step in enumerate(script):
        do = step["do"]
        what = f"{number} {do}"
        if do == "list":
            await seen.see(what, tools())
            continue
        if do == "wait":
            await exists(step["file"])
            continue
        if do == "renew":
            headers["authorization"] = step["token"]
            continue
        made = step["tool"], step["arguments"]
        if do == "call":
            await seen.see(what, call(*made))
        elif do == "within":
            await within(seen, step, what, call)
        elif do == "both":
            async with anyio.create_task_group() as tasks:
                for _ in range(2):
                    tasks.start_soon(within, seen, step, f"{what} within", call)
        elif do == "progress":

            async def progressed(progress, total, message, what=what):
                seen.note(f"{what} of {progress}", [total, message])

            await seen.see(what, call(*made, progressed))
        elif do == "cancel":
            with anyio.CancelScope() as scope:

                async def cancel(*_, scope=scope):
                    scope.cancel()

                await seen.see(what, call(*made, cancel))
            seen.note(what, {"cancelled": scope.cancelled_caught})


async def confirm(*_):
    from mcp.types import ElicitResult

    await anyio.sleep(6)
    return ElicitResult(action="accept", content={})


async def with_mcp(seen, target, script):
    from mcp import Client, StdioServerParameters
    from mcp.client import session
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    # In ten seconds not every server has started on a busy machine; then it would speak an older version.
    session.DISCOVER_TIMEOUT_SECONDS = 120
    http = create_mcp_http_client(headers=target.get("headers"))
    if url := target.get("url"):
        server = streamable_http_client(url, http_client=http)
    else:
        command, *args = target["command"]
        server = StdioServerParameters(command=command, args=args, env=target["env"])
    async with http, Client(server, elicitation_callback=confirm) as client:
        begun = [client.protocol_version, jsonable(client.server_capabilities), jsonable(client.server_info)]
        seen.note("initialized", begun)

        def call(tool, arguments, progress=None, limit=None, meta=None):
            return client.call_tool(tool, arguments, limit, progress, meta=meta)

        await play(seen, script, client.list_tools, call, http.headers)


async def with_fastmcp(seen, target, script):
    from fastmcp import Client
    from fastmcp.client.transports import StdioTransport

    server = target.get("url")
    if not server:
        command, *args = target["command"]
        server = StdioTransport(command, args, env=target["env"], keep_alive=False)
    async with Client(server) as client:
        begun = [client.protocol_version, jsonable(client.server_capabilities), jsonable(client.server_info)]
        seen.note("initialized", begun)

        def call(tool, arguments, progress=None):
            return client.call_tool_mcp(tool, arguments, progress_handler=progress)

        await play(seen, script, client.list_tools_mcp, call)


async def with_each(with_client, target):
    name, again = target["name"], target.get("again")
    if not again:
        return await with_client(Seen(name), target, target["script"])
    try:
        await with_client(Seen(name), target, target["script"])
    except Exception as error:
        Seen(name).note("ended", str(error))
    if "back" in target:
        await exists(target["back"])
    await with_client(Seen(name, "again "), target, again)


async def main(kind, targets, together=None):
    with_client = {"mcp": with_mcp, "fastmcp": with_fastmcp}[kind]
    async with anyio.create_task_group() as tasks:
        for target in json.loads(targets):
            if together:
                tasks.start_soon(with_each, with_client, target)
            else:
                await with_each(with_client, target)


anyio.run(main, *sys.argv[1:])
