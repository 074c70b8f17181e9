"""Drives the MCP server COMMAND with PyPI's `mcp` client and prints what it sees as JSON lines.

Usage: client.py everything|filesystem COMMAND... | URL
"""

import json
import sys
from functools import partial

import anyio
from mcp import Client, MCPError, StdioServerParameters, types


def note(what, seen):
    if hasattr(seen, "model_dump"):
        seen = seen.model_dump(mode="json", by_alias=True)
    print(json.dumps([what, seen], ensure_ascii=False), flush=True)


async def see(what, call):
    """Awaits a call and notes its result or its error."""
    try:
        note(what, await call)
    except MCPError as error:
        note(what, {"MCPError": error.error.model_dump(mode="json")})
    except Exception as error:
        note(what, {type(error).__name__: str(error)})


async def sampled(context, params):
    note("asked to sample", params)
    text = types.TextContent(type="text", text="Sampled: späß 🦀")
    return types.CreateMessageResult(role="assistant", model="none", content=text)


async def elicited(context, params):
    note("asked to elicit", params)
    return types.ElicitResult(action="accept", content={"name": "Ada", "check": True})


async def progressed(progress, total, message):
    note("progress", [progress, total, message])


async def lists(client):
    note("initialized", [client.protocol_version, client.server_capabilities.model_dump(mode="json")])
    for what in ["tools", "resources", "resource_templates", "prompts"]:
        await see(what, getattr(client, f"list_{what}")())


async def everything(client):
    call = client.call_tool
    await lists(client)
    await see("prompt", client.get_prompt("args-prompt", {"city": "Zürich"}))
    await see("resource", client.read_resource("demo://resource/dynamic/text/1"))
    await see("no resource", client.read_resource("demo://nowhere"))
    await see("echo", call("echo", {"message": "späß 🦀"}))
    await see("image", call("get-tiny-image"))
    await see("structured", call("get-structured-content", {"location": "Chicago"}))
    await see("links", call("get-resource-links", {"count": 2}))
    await see("annotated", call("get-annotated-message", {"messageType": "error", "includeImage": True}))

    operation = partial(call, "trigger-long-running-operation")
    await see("operation", operation({"duration": 0.2, "steps": 4}, progress_callback=progressed))
    await see("timeout", operation({"duration": 0.9, "steps": 1}, read_timeout_seconds=0.2))
    with anyio.CancelScope() as scope:

        async def cancel(*_):
            scope.cancel()

        await operation({"duration": 0.6, "steps": 6}, progress_callback=cancel)
    note("cancelled", scope.cancelled_caught)
    results = {}
    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(keep, results, number, call("get-sum", {"a": number, "b": 1}))
    note("at once", sorted(results.items()))

    await see("sampling", call("trigger-sampling-request", {"prompt": "a haiku"}))
    await see("elicitation", call("trigger-elicitation-request"))
    await see("no tool", call("no such tool"))
    await see("bad arguments", call("get-sum", {"a": "x"}))
    await see("ping", client.send_ping())
    unknown = types.Request[dict, str](method="no/such/method", params={})
    await see("unknown method", client.session.send_request(unknown, types.EmptyResult))


async def keep(results, number, call):
    results[number] = (await call).content[0].text


async def filesystem(client, folder):
    call = client.call_tool
    await lists(client)
    await see("read", call("read_text_file", {"path": f"{folder}/file.txt"}))
    await see("list", call("list_directory", {"path": folder}))
    await see("outside", call("read_text_file", {"path": "/etc/hostname"}))
    await see("missing", call("read_text_file", {"path": f"{folder}/nowhere"}))
    await see("bad arguments", call("read_text_file", {"file": "x"}))


async def main(session, command, *args):
    server = StdioServerParameters(command=command, args=args, env={"TZ": "UTC"})
    if command.startswith("http:"):
        server = command
    callbacks = {"sampling_callback": sampled, "elicitation_callback": elicited}
    async with Client(server, **callbacks) as client:
        if session == "everything":
            await everything(client)
        else:
            await filesystem(client, args[-1])


anyio.run(main, *sys.argv[1:])
