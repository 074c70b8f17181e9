"""The real OpenAI Agents SDK with a scripted model, and tools behind the guard: `python tests/openai_agents.py`."""
import asyncio
import json
import sys
from pathlib import Path

# This file has the example's name, which has to be found first.
sys.path[0] = str(Path(__file__).parent.parent)
from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from openai_agents import guarded
from tool_guard import ToolGuard

set_tracing_disabled(True)
runs = {"pay": 0, "read": 0}


@function_tool
def pay(cents: int) -> str:
    """Pays."""
    runs["pay"] += 1
    return f"receipt {runs['pay']}"


@function_tool
def read(path: str) -> str:
    """Reads."""
    runs["read"] += 1
    raise OSError("no such file")


class Script(Model):
    """Asks for the calls, one after the other, and keeps what it reads."""

    def __init__(self, calls):
        self.calls, self.read = iter(calls), []

    async def get_response(self, system_instructions, input, *args, **kwargs):
        self.read = [item["output"] for item in input if isinstance(item, dict) and item.get("type") == "function_call_output"]
        call = next(self.calls, None)
        if call:
            name, params, id = call
            item = ResponseFunctionToolCall(type="function_call", name=name, arguments=json.dumps(params), call_id=id)
        else:
            text = ResponseOutputText(type="output_text", text="done", annotations=[])
            item = ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[text])
        return ModelResponse(output=[item], usage=Usage(), response_id=None)

    def stream_response(self, *args, **kwargs):
        raise NotImplementedError


def turn(guard, calls, turn):
    """What the model reads after each of these calls."""
    model = Script(calls)
    agent = Agent(name="a", model=model, tools=guarded(guard, [pay, read], "s", turn, {"read"}))
    asyncio.run(Runner.run(agent, "go on"))
    return model.read


guard = ToolGuard("--records", "memory", "--log", "off")
repeated = turn(guard, [("pay", {"cents": 500}, "call_abcdEFGH1234567890ijKLmn")] * 2, "t1")
assert runs["pay"] == 1 and set(repeated) == {"receipt 1"}, repeated
failed = turn(guard, [("read", {"path": "x"}, f"call_{number}") for number in range(3)], "t2")
assert runs["read"] == 2, runs
assert "LOOP" not in failed[0] and failed[1].startswith("An error") and "LOOP DETECTED" in failed[1], failed
assert failed[2].startswith("[LOOP DETECTED]"), failed
turn(guard, [("read", {"path": "x"}, "call_9")], "t3")
assert runs["read"] == 3, "the next turn starts from zero"
guard.close()
print("OpenAI Agents SDK: a repeat ran once, the third failing call did not run")
