"""Function tools of the OpenAI Agents SDK behind `tool-guard decide`: `Agent(tools=guarded(guard, tools))`."""
import asyncio
import dataclasses
import json

from agents import FunctionTool
from tool_guard import ToolGuard


def guarded(guard: ToolGuard, tools: list, session: str | None = None, turn: str | None = None, reads=frozenset()) -> list:
    """The same tools, each of whose calls the guard decides about. `reads` names those that change nothing."""
    return [_guarded(guard, tool, session, turn, reads) if isinstance(tool, FunctionTool) else tool for tool in tools]


def _guarded(guard, tool, session, turn, reads):
    make = tool.on_invoke_tool

    def ask(event, **members):
        return asyncio.to_thread(guard.ask, event, **members)

    async def invoke(context, text):
        try:
            params = json.loads(text or "{}")
        except ValueError:
            # The tool itself refuses it.
            return await make(context, text)
        before = await ask(
            "before",
            tool=tool.name,
            params=params,
            call=context.tool_call_id,
            session=session,
            turn=turn,
            effect="read_only" if tool.name in reads else None,
        )
        if before["decision"] == "block":
            # Of a repeat, the reason is the recorded answer.
            return before["reason"]
        if before["decision"] == "rewrite":
            text = json.dumps(before["params"])
        try:
            output = await make(context, text)
        except Exception as error:
            await ask("after", before=before["id"], error=str(error))
            raise
        said = output if isinstance(output, str) else str(output)
        # The SDK makes a tool's exception the text that its model reads.
        failed = said.startswith("An error occurred while running the tool")
        after = await ask("after", before=before["id"], output=said, isError=failed)
        return "\n".join([said, *after["notes"]]) if "notes" in after else output

    return dataclasses.replace(tool, on_invoke_tool=invoke)
