"""A FastMCP server whose `pay` writes into LEDGER, and whose `count` notes there that it was cancelled.

Usage: bank.py stdio|http [MARK]; over HTTP it prints its address.
"""

import asyncio
import os
import socket
import sys

import uvicorn
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError

bank = FastMCP("bank", version="1")


def note(line):
    with open(os.environ["LEDGER"], "a", encoding="utf-8") as ledger:
        ledger.write(line + "\n")


@bank.tool
def pay(order: str, cents: int) -> str:
    """Pays an order."""
    note(f"paid {order}")
    return f"receipt of {cents} cents"


@bank.tool(annotations={"readOnlyHint": True})
def balance(account: str) -> dict[str, str | int]:
    """What an account has."""
    return {"account": account, "cents": 4200}


@bank.tool
def refuse(order: str) -> str:
    """Refuses an order."""
    note(f"refused {order}")
    raise ToolError("the account is closed: späß 🦀")


@bank.tool(annotations={"readOnlyHint": True})
async def count(order: str, steps: int, pause: float, context: Context) -> str:
    """Counts, with a pause before each step."""
    try:
        for step in range(steps):
            await asyncio.sleep(pause)
            await context.report_progress(step + 1, steps, f"step {step + 1}")
    except asyncio.CancelledError:
        note(f"cancelled {order}")
        raise
    return f"counted to {steps}"


def serve():
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    config = uvicorn.Config(bank.http_app(path="/mcp"), log_level="warning")
    uvicorn.Server(config).run(sockets=[listener])


if sys.argv[1] == "http":
    serve()
else:
    bank.run(transport="stdio", show_banner=False)
