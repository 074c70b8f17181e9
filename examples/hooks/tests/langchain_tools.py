"""The real LangChain with a scripted model, and tools behind the guard: `python tests/langchain_tools.py`."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import ToolException, tool
from langchain_tools import Guarded
from tool_guard import ToolGuard

runs = {"pay": 0, "read": 0}


@tool
def pay(cents: int) -> str:
    """Pays."""
    runs["pay"] += 1
    return f"receipt {runs['pay']}"


@tool
def read(path: str) -> str:
    """Reads."""
    runs["read"] += 1
    raise ToolException("no such file")


read.handle_tool_error = True


class Model(GenericFakeChatModel):
    def bind_tools(self, tools, **kwargs):
        return self


def turn(guard, calls):
    """What the model reads after each of these calls."""
    asks = [AIMessage("", tool_calls=[{"name": name, "args": args, "id": id}]) for name, args, id in calls]
    model = Model(messages=iter([*asks, AIMessage("done")]))
    agent = create_agent(model, [pay, read], middleware=[Guarded(guard, "s", frozenset({"read"}))])
    messages = agent.invoke({"messages": [("user", "go on")]})["messages"]
    return [message for message in messages if isinstance(message, ToolMessage)]


guard = ToolGuard("--records", "memory", "--log", "off")
repeated = turn(guard, [("pay", {"cents": 500}, "call_abcdEFGH1234567890ijKLmn")] * 2)
assert runs["pay"] == 1 and [message.text for message in repeated] == ["receipt 1"] * 2, repeated
failed = turn(guard, [("read", {"path": "x"}, f"call_{number}") for number in range(3)])
assert runs["read"] == 2, runs
assert "LOOP" not in failed[0].text and "no such file" in failed[1].text and "LOOP DETECTED" in failed[1].text, failed
assert "LOOP DETECTED" in failed[2].text and failed[2].status == "error", failed
turn(guard, [("read", {"path": "x"}, "call_9")])
assert runs["read"] == 3, "the next turn starts from zero"
guard.close()
print("LangChain: a repeat ran once, the third failing call did not run")
