"""Asks for a payment as clients on PyPI's `mcp` 1 do, which give up without a word, and prints what each asking sees.

Usage: gives_up.py mcp|agents|langchain '{"command": [...]} or {"url": "..."}' '{"limit", "takes", "asks", "retries", "together", "keys"}'
"""

import asyncio
import datetime
import json
import os
import sys
import time
from contextlib import asynccontextmanager


@asynccontextmanager
async def with_mcp(target, plan):
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamablehttp_client

    if "url" in target:
        transport = streamablehttp_client(target["url"])
    else:
        command, *args = target["command"]
        transport = stdio_client(StdioServerParameters(command=command, args=args, env=dict(os.environ)))
    async with transport as streams, ClientSession(*streams[:2]) as session:
        await session.initialize()
        await session.list_tools()
        limit = datetime.timedelta(seconds=plan["limit"])
        yield lambda arguments: session.call_tool("pay", arguments, read_timeout_seconds=limit)


@asynccontextmanager
async def with_agents(target, plan):
    from agents.mcp import MCPServerStdio, MCPServerStreamableHttp

    options = {"max_retry_attempts": plan["retries"], "client_session_timeout_seconds": plan["limit"]}
    if "url" in target:
        server = MCPServerStreamableHttp(params={"url": target["url"]}, **options)
    else:
        command, *args = target["command"]
        server = MCPServerStdio(params={"command": command, "args": args, "env": dict(os.environ)}, **options)
    async with server:
        await server.list_tools()
        yield lambda arguments: server.call_tool("pay", arguments)


@asynccontextmanager
async def with_langchain(target, plan):
    from langchain_mcp_adapters.client import MultiServerMCPClient

    options = {"session_kwargs": {"read_timeout_seconds": datetime.timedelta(seconds=plan["limit"])}}
    if "url" in target:
        connection = {"transport": "streamable_http", "url": target["url"], **options}
    else:
        command, *args = target["command"]
        connection = {"transport": "stdio", "command": command, "args": args, "env": dict(os.environ), **options}
    # Each call has a session, and so a process, of its own.
    [tool] = await MultiServerMCPClient({"bank": connection}).get_tools()
    yield lambda arguments: tool.ainvoke({"type": "tool_call", "id": "call", "name": "pay", "args": arguments})


async def main(kind, target, plan):
    plan = json.loads(plan)
    arguments = {"order": "42", "takes": plan["takes"]}
    async with CLIENTS[kind](json.loads(target), plan) as pay:

        async def ask(number):
            try:
                key = {"idempotency_key": f"key-{number}"} if plan["keys"] else {}
                result = await pay(arguments | key)
                blocks = result.content if isinstance(result.content, list) else [result.content]
                said = "\n".join(getattr(block, "text", None) or str(block) for block in blocks)
            except Exception as error:
                said = f"{type(error).__name__}: {error}"
            print(json.dumps(said), flush=True)

        if plan["together"]:
            await asyncio.gather(*map(ask, range(plan["asks"])))
        else:
            for number in range(plan["asks"]):
                await ask(number)
        # The server goes on with what its client has given up; each payment takes so long.
        ends = time.monotonic() + plan["takes"] + 1
        while time.monotonic() < ends and not os.path.exists(os.environ["DONE"]):
            await asyncio.sleep(0.05)


CLIENTS = {"mcp": with_mcp, "agents": with_agents, "langchain": with_langchain}

asyncio.run(main(*sys.argv[1:]))
